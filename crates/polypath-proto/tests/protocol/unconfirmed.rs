//! Chunks that may be sent to an unconfirmed address of the peer, and how it is confirmed (RFC 9260
//! 5.4).

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::common::*;
use polypath_proto::wire::{Chunk, Data, ParameterWriter};
use polypath_proto::*;

const OTHER: [u8; 4] = [10, 0, 0, 77];

/// A peer that has opened an association with host 1 and listed a second address, from which it
/// sends; its COOKIE ECHO was sent from there if `echoes`.
fn two_addresses(net: &mut Net, echoes: bool) -> (Hand, Vec<Sent>) {
    let mut hand = Hand::new(1);
    let answer = hand.init(net, &|p| p.ipv4(OTHER.into()).unwrap());
    hand.learn(&answer[0]);
    let mark = net.log.len();
    let first = hand.ip;
    if echoes {
        hand.ip = OTHER.into();
    }
    hand.echo(net);
    net.settle();
    let sent = net.sent_since(1, mark);
    assert_eq!(net.states(1), [PathState::Active, PathState::Unconfirmed]);
    assert_eq!(net.path(1, 0).remote, first);
    hand.ip = OTHER.into();
    (hand, sent)
}

/// "A COOKIE ACK chunk MAY be sent to an UNCONFIRMED address, but it MUST be bundled with a
/// HEARTBEAT chunk including a nonce."
#[test]
fn a_cookie_ack_to_an_unconfirmed_address_carries_a_heartbeat() {
    let mut net = pair(1, Config::rfc9260());
    let (hand, sent) = two_addresses(&mut net, true);
    let texts: Vec<_> = sent.iter().map(|p| (p.to.ip(), p.text())).collect();
    assert_eq!(texts, [(hand.ip, "COOKIE ACK + HEARTBEAT".to_owned())]);
    // A repeated COOKIE ECHO is answered in the same way (5.2.4 D).
    for packet in hand.echo(&mut net) {
        assert_eq!(packet.text(), "COOKIE ACK + HEARTBEAT");
    }
    hand.answer_heartbeats(&mut net, &sent);
    assert_eq!(net.states(1), [PathState::Active; 2]);
    assert_eq!(hand.echo(&mut net)[0].text(), "COOKIE ACK");
}

/// "An endpoint MUST NOT send any chunks to an UNCONFIRMED address, with the following exceptions":
/// HEARTBEAT and HEARTBEAT ACK, whatever arrives from the address.
#[test]
fn what_answers_an_unconfirmed_address_goes_to_a_confirmed_one() {
    let mut net = pair(1, Config::rfc9260());
    let (hand, _) = two_addresses(&mut net, false);
    net.send(1, 0, payload(1, 3000)).unwrap();
    let mark = net.log.len();
    // ERROR for an unknown chunk and for a stream, SACKs, HEARTBEAT ACK.
    hand.say(&mut net, &|w| w.raw_chunk(&[0xff, 0, 0, 4]).unwrap());
    for n in 1..10 {
        hand.data(&mut net, n);
    }
    let wrong = Data { stream: StreamId(5000), ..hand.chunk(10, b"where to?") };
    hand.say(&mut net, &|w| w.data(&wrong).unwrap());
    hand.say(&mut net, &|w| w.heartbeat(b"are you there?").unwrap());
    net.run(S(3));
    // SHUTDOWN ACK, and an ABORT.
    let end = net.sent(1).iter().flat_map(Sent::data).map(|d| d.n).max().unwrap();
    hand.sack(&mut net, end, &[]);
    hand.shutdown(&mut net, end);
    net.run(S(3));
    net.abort(1, b"enough");
    net.settle();
    let mut to_first = String::new();
    for packet in net.sent_since(1, mark) {
        if packet.to.ip() == hand.ip {
            let allowed = |c: &Chunk<'_>| matches!(c, Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_));
            assert!(packet.parsed().iter().all(allowed), "{}", packet.text());
        } else {
            to_first += &(packet.text() + "\n");
        }
    }
    for expected in
        ["ERROR (unrecognized chunk", "ERROR (invalid stream", "SACK", "SHUTDOWN ACK", "ABORT"]
    {
        assert!(
            to_first.to_lowercase().contains(&expected.to_lowercase()),
            "{expected}: {to_first}"
        );
    }
}

/// "A COOKIE ECHO chunk MAY be sent to an UNCONFIRMED address, but it MUST be bundled with a
/// HEARTBEAT chunk including a nonce".
#[test]
fn a_cookie_echo_to_an_unconfirmed_address_carries_a_heartbeat() {
    let mut net = pair(3, Config::rfc9260());
    net.filter(|p| if p.has("COOKIE ECHO") && p.net() == 0 { Fate::Drop } else { Fate::Pass });
    net.connect(0);
    net.drive_until(S(10), Net::all_active);
    let echoes: Vec<_> =
        net.sent_with(0, "COOKIE ECHO").iter().map(|p| (p.net(), p.text())).collect();
    let both = "COOKIE ECHO + HEARTBEAT".to_owned();
    assert_eq!(echoes, [(0, "COOKIE ECHO".to_owned()), (1, both)]);
    let answer = &net.sent_with(1, "COOKIE ACK")[0];
    assert_eq!((answer.net(), answer.text()), (1, "COOKIE ACK + HEARTBEAT + HEARTBEAT ACK".into()));
}

/// Addresses that the application passed are CONFIRMED (rule 1): a COOKIE ECHO needs no HEARTBEAT.
#[test]
fn an_address_that_the_application_has_named_gets_a_bare_cookie_echo() {
    let mut net = pair(2, Config::rfc9260());
    net.filter(|p| if p.has("COOKIE ECHO") && p.net() == 0 { Fate::Drop } else { Fate::Pass });
    let remotes = net.remotes(1);
    net.hosts[0].endpoint.connect(net.now, PORT, &remotes).unwrap();
    net.drive_until(S(10), Net::all_active);
    let echoes: Vec<_> =
        net.sent_with(0, "COOKIE ECHO").iter().map(|p| (p.net(), p.text())).collect();
    assert_eq!(echoes, [(0, "COOKIE ECHO".to_owned()), (1, "COOKIE ECHO".to_owned())]);
}

/// "... and the size of the SCTP packet MUST NOT exceed the PMTU. If ... the bundled COOKIE ECHO
/// chunk plus HEARTBEAT chunk (including nonce) would result in an SCTP packet larger than the
/// PMTU, then the implementation MUST NOT send a COOKIE ECHO chunk to an UNCONFIRMED address."
#[test]
fn a_cookie_echo_without_room_for_a_heartbeat_goes_to_confirmed_addresses_alone() {
    // IPv4 leaves 1480 bytes: common header 12, chunk header 4, HEARTBEAT 24.
    for (len, fits) in [(1440, true), (1441, false)] {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(0).be_called(&mut net);
        let cookie = vec![7; len];
        hand.say(&mut net, &|w| {
            let write = |p: &mut ParameterWriter<'_>| {
                p.ipv4(OTHER.into())?;
                p.state_cookie(&cookie)
            };
            w.init_ack(&hand.fields(), write).unwrap();
        });
        net.run(S(100));
        let echoes = net.sent_with(0, "COOKIE ECHO");
        assert!(echoes.len() > 5);
        let other = echoes.iter().filter(|p| p.to.ip() == IpAddr::from(OTHER));
        let texts: Vec<_> = other.map(|p| (p.text(), p.bytes.len() <= 1480)).collect();
        assert_eq!(texts.is_empty(), !fits);
        assert!(
            texts.iter().all(|t| *t == ("COOKIE ECHO + HEARTBEAT".to_owned(), true)),
            "{texts:?}"
        );
    }
}

/// "The number of packets containing HEARTBEAT chunks sent at each RTO SHOULD be limited by the
/// 'HB.Max.Burst' parameter." Addresses of other hosts that a peer lists are probed one by one.
#[test]
fn a_list_of_victims_is_probed_one_by_one() {
    for burst in [1, 4] {
        let config = Config::rfc9260().to_builder().hb_max_burst(burst).build().unwrap();
        let mut net = pair(1, config);
        let mut hand = Hand::new(1);
        let answer = hand.init(&mut net, &|p| {
            for victim in 1..=15 {
                p.ipv4([10, 0, 9, victim].into()).unwrap();
            }
        });
        hand.learn(&answer[0]);
        let mark = net.log.len();
        hand.echo(&mut net);
        net.run(S(60));
        let victim = |p: &Sent| p.has("HEARTBEAT") && p.to.ip() != hand.ip;
        let asked: Vec<Sent> = net.sent_since(1, mark).into_iter().filter(victim).collect();
        // RTO.Initial is one second.
        for first in &asked {
            let second = first.ms()..first.ms() + 1000;
            let within = asked.iter().filter(|p| second.contains(&p.ms())).count();
            assert!(within <= burst as usize, "{within} from {first:?}");
        }
        let mut victims: BTreeMap<IpAddr, usize> = BTreeMap::new();
        asked.iter().for_each(|p| *victims.entry(p.to.ip()).or_default() += 1);
        assert_eq!(victims.len(), 15, "each has its turn");
        let first_round: Vec<IpAddr> = asked.iter().take(15).map(|p| p.to.ip()).collect();
        let expected: Vec<IpAddr> = (1..=15).map(|victim| [10, 0, 9, victim].into()).collect();
        assert_eq!(first_round, expected, "the one that has waited longest comes first");
    }
}

/// An address that has answered belongs to the peer: the next one is probed at once.
#[test]
fn addresses_that_answer_do_not_wait_for_each_other() {
    let mut net = pair(5, Config::rfc9260());
    net.connect(0);
    net.drive_until(S(1), Net::all_active);
    // The handshake, and one round trip for each of the others.
    assert_eq!(net.times(0, "HEARTBEAT"), [40, 60, 80, 100]);
    assert!(net.now <= Time::ZERO + MS(150));
}

/// Probes of an unreachable address are exhausted, and HB.interval is off. Then data arrives from
/// it: the SACK must not be sent to it before the address is confirmed.
#[test]
fn data_from_an_unconfirmed_address_has_it_probed_again() {
    let config = Config::rfc9260().to_builder().heartbeat_interval(None).build().unwrap();
    let mut net = pair(1, config);
    let (hand, _) = two_addresses(&mut net, false);
    net.run(S(1000));
    let mark = net.log.len();
    net.run(S(10_000));
    assert_eq!(net.log.len(), mark, "the probes are exhausted");
    hand.data(&mut net, 1);
    net.run(MS(1));
    let sent = hand.answers(&net, mark);
    assert_eq!(sent.iter().map(Sent::text).collect::<Vec<_>>(), ["HEARTBEAT"]);
    assert!(net.sent_since(1, mark).iter().any(|p| p.has("SACK") && p.to.ip() != hand.ip));
    // Data triggers at most one probe per RTO.
    let mark = net.log.len();
    hand.data(&mut net, 2);
    net.run(S(50));
    assert!(!hand.answers(&net, mark).iter().any(|p| p.has("HEARTBEAT")));
    hand.answer_heartbeats(&mut net, &sent);
    assert_eq!(net.states(1), [PathState::Active; 2]);
    let mark = net.log.len();
    hand.data(&mut net, 3);
    net.run(S(1));
    let sacks = net.sent_since(1, mark).into_iter().filter(|p| p.has("SACK"));
    assert!(sacks.map(|p| p.to.ip()).eq([hand.ip]));
}

/// Host 0 opens an association with host 1, which loses the address that its INIT ACK was sent
/// from: no local address reaches the only CONFIRMED address of host 0 (rule 2), and the source
/// address of the COOKIE ECHO is yet to be confirmed.
fn only_unconfirmed(config: &Config) -> Net {
    let configs = [config.clone(), config.clone()];
    let mut net = Setup { configs, dual: true, ..Setup::default() }.build();
    net.connect(0);
    net.run(MS(15));
    net.goes(1, v4(0, 1));
    net
}

/// 5.4: "When probing UNCONFIRMED addresses, however, the association overall error count is not
/// incremented." Without confirmed addresses, nothing else would end the association (8.1) after
/// its peer has become unreachable.
#[test]
fn probes_count_as_errors_of_an_association_without_confirmed_addresses() {
    for interval in [None, Some(S(30))] {
        for max_retrans in [4, 10] {
            for data in [0, 3000] {
                let config = Config::rfc9260().to_builder().heartbeat_interval(interval);
                let config = config.association_max_retrans(max_retrans).build().unwrap();
                let mut net = only_unconfirmed(&config);
                let gone = v6(0, 1);
                net.filter(move |p| if p.from.ip() == gone { Fate::Drop } else { Fate::Pass });
                net.run(S(2));
                assert_eq!(net.states(1), [PathState::Unconfirmed]);
                if data > 0 {
                    net.send(1, 0, payload(1, data)).unwrap();
                }
                // `max_retrans` + 1 timeouts, each of at most RTO.Max.
                net.run(S(60 * (1 + u64::from(max_retrans))));
                assert_eq!(net.closed(1), Some(CloseReason::PeerUnreachable));
                let mut probes: Vec<Sent> = net.sent_with(1, "HEARTBEAT");
                probes.retain(|p| !p.has("COOKIE ACK"));
                assert!(probes.len() >= 4, "{}", net.tail(30));
                assert!(net.sent_with(1, "DATA").is_empty());
            }
        }
    }
}

/// Path.Max.Retrans probes get no answer, and HB.interval is off: the only address is still probed
/// once each RTO, and data is sent as soon as it is confirmed.
#[test]
fn the_only_address_is_probed_until_it_is_confirmed() {
    let config = Config::rfc9260().to_builder().heartbeat_interval(None).build().unwrap();
    let mut net = only_unconfirmed(&config);
    let (other, mut lost) = (v6(0, 0), 0);
    net.filter(move |p| {
        let answer = p.from.ip() == other && p.has("HEARTBEAT ACK") && lost < 8;
        lost += u32::from(answer);
        if answer { Fate::Drop } else { Fate::Pass }
    });
    net.run(S(2));
    net.send(1, 0, payload(1, 3000)).unwrap();
    net.run(S(300));
    assert_eq!(net.hosts[0].received.len(), 1, "{}", net.tail(30));
    assert_eq!((net.states(1), net.closed(1)), (vec![PathState::Active], None));
}

/// The probes of an unreachable address are exhausted. They begin again when the only confirmed
/// path fails while data is queued.
#[test]
fn exhausted_probes_begin_again_when_the_only_confirmed_path_fails() {
    for interval in [None, Some(S(30))] {
        let config = Config::rfc9260().to_builder().heartbeat_interval(interval).build().unwrap();
        let mut net = pair(2, config);
        net.cuts.insert(1);
        net.connect(0);
        net.run(S(2000));
        assert_eq!(net.states(0), [PathState::Active, PathState::Unconfirmed]);
        net.cuts.clear();
        net.cuts.insert(0);
        net.send(0, 0, payload(1, 3000)).unwrap();
        net.run(S(200));
        assert_eq!(net.hosts[1].received.len(), 1, "{}", net.tail(30));
    }
}
