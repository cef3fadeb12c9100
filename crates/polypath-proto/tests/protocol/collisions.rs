//! INIT and COOKIE ECHO for an existing association: both sides opened it at once, packets were
//! duplicated, or the peer restarted (RFC 9260 5.2).

use crate::common::*;
use polypath_proto::wire::{Chunk, cause_code};
use polypath_proto::*;

fn hello(net: &mut Net) {
    for h in 0..2 {
        net.send(h, 0, payload(h as u64, 3000)).unwrap();
    }
    net.run(S(10));
    for h in 0..2 {
        let got = net.hosts[h].received.last().expect("a message");
        assert_eq!(got.payload, payload(1 - h as u64, 3000));
    }
}

/// RFC 9260 5.2.1, 5.2.4 B to D: in whatever order the packets arrive and whichever side is first,
/// the result is one association.
#[test]
fn both_sides_open_at_once() {
    for start in [0, 3, 12, 15, 25, 35] {
        for late in 0u32..1 << 9 {
            let mut net = Setup { listens: [true, true], ..Setup::default() }.build();
            let mut packet = 0;
            net.filter(move |_| {
                packet += 1;
                let late = packet <= 9 && late >> (packet - 1) & 1 == 1;
                if late { Fate::Late(MS(17)) } else { Fate::Pass }
            });
            net.connect(0);
            net.run(MS(start));
            let remotes = net.remotes(0);
            let now = net.now;
            let second = net.hosts[1].endpoint.connect(now, PORT, &remotes);
            assert!(matches!(second, Ok(_) | Err(ConnectError::Exists)));
            net.drive_until(S(10), Net::all_active);
            net.run(S(2));
            for h in 0..2 {
                let what = format!("start {start}, late {late:b}, host {h}\n{}", net.tail(20));
                assert_eq!(net.hosts[h].endpoint.associations().count(), 1, "{what}");
                let up = net.events(h, |e| matches!(e, Event::Established { .. }));
                assert_eq!(up.len(), 1, "{what}");
                assert!(!net.saw(h, &Event::Restarted), "{what}");
            }
            hello(&mut net);
        }
    }
}

/// RFC 9260 5.2.1: in COOKIE-WAIT, the INIT ACK has the tag and TSN of the endpoint's own INIT.
#[test]
fn an_init_in_cookie_wait_is_answered_with_our_own_tag() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    let other = Hand { tag: 77, ..hand.clone() };
    let answer = other.init(&mut net, &|_| {});
    let parsed = answer[0].parsed();
    let Chunk::InitAck(ack) = parsed[0] else { panic!("{}", answer[0].text()) };
    assert_eq!((ack.initiate_tag.0, ack.initial_tsn.0), (hand.peer_tag, hand.peer_tsn));
    assert_eq!(answer[0].tag, 77);
    // The attempt continues: the state has not changed.
    net.run(MS(1500));
    assert_eq!(net.times(0, "INIT").len(), 2);
}

/// RFC 9260 5.2.1: the same holds in COOKIE-ECHOED, and the cookie leads to an association.
#[test]
fn an_init_in_cookie_echoed_is_answered_with_our_own_tag() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    hand.init_ack(&mut net);
    let answer = hand.init(&mut net, &|_| {});
    let mut same = hand.clone();
    same.learn(&answer[0]);
    assert_eq!((same.peer_tag, same.peer_tsn), (hand.peer_tag, hand.peer_tsn));
    // 5.2.4 D: both tags match.
    assert_eq!(same.echo(&mut net)[0].text(), "COOKIE ACK");
    assert!(net.a(0).is_established());
}

/// RFC 9260 5.2.1: in COOKIE-ECHOED, "If the INIT chunk indicates that a new address has been added
/// to the association, then the entire INIT chunk MUST be discarded".
#[test]
fn an_init_in_cookie_echoed_must_not_bring_new_addresses() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    hand.init_ack(&mut net);
    let answers = hand.init(&mut net, &|p| p.ipv4([10, 7, 7, 7].into()).unwrap());
    assert!(answers.iter().all(|p| !p.has("INIT ACK")), "{}", answers[0].text());
    assert!(answers.iter().all(|p| p.causes() == [cause_code::RESTART_WITH_NEW_ADDRESSES]));
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    assert!(net.a(0).is_established());
}

/// RFC 9260 5.2.3, 5.2.5.
#[test]
fn init_acks_and_cookie_acks_out_of_place_are_ignored() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    // COOKIE ACK in COOKIE-WAIT.
    assert!(hand.say(&mut net, &|w| w.cookie_ack().unwrap()).is_empty());
    assert!(!net.a(0).is_established());
    hand.init_ack(&mut net);
    // INIT ACK in COOKIE-ECHOED, with another tag.
    let other = Hand { tag: 5, ..hand.clone() };
    assert!(other.init_ack(&mut net).is_empty());
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    assert!(net.a(0).is_established());
    // Both in ESTABLISHED.
    assert!(other.init_ack(&mut net).is_empty());
    assert!(hand.say(&mut net, &|w| w.cookie_ack().unwrap()).is_empty());
    net.send(0, 0, payload(1, 10)).unwrap();
    assert_eq!(net.log.last().unwrap().tag, hand.tag, "the tag of the INIT ACK that counted");
}

/// RFC 9260 5.2.2 to 5.2.5: packets that the network duplicates, or delivers a second later.
#[test]
fn every_packet_of_the_handshake_may_come_twice() {
    for fate in [Fate::Twice, Fate::Late(MS(1010))] {
        for packet in 1..=4 {
            let mut net = pair(1, Config::rfc9260());
            let (mut count, fate) = (0, fate.clone());
            net.filter(move |_| {
                count += 1;
                if count == packet { fate.clone() } else { Fate::Pass }
            });
            net.connect(0);
            net.drive_until(S(5), Net::all_active);
            net.run(S(3));
            for h in 0..2 {
                let up = net.events(h, |e| matches!(e, Event::Established { .. }));
                assert_eq!(up.len(), 1, "packet {packet}\n{}", net.tail(20));
                assert!(!net.saw(h, &Event::Restarted));
                assert_eq!(net.hosts[h].endpoint.associations().count(), 1);
            }
            hello(&mut net);
        }
    }
}

/// RFC 9260 5.2.2: an INIT in ESTABLISHED changes nothing until its cookie arrives.
#[test]
fn a_late_init_changes_nothing() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    hand.data(&mut net, 1);
    let answer = hand.init(&mut net, &|_| {});
    let parsed = answer[0].parsed();
    let Chunk::InitAck(ack) = parsed[0] else { panic!("{}", answer[0].text()) };
    assert_ne!(ack.initiate_tag.0, hand.peer_tag, "a new tag");
    hand.data(&mut net, 2);
    assert_eq!(net.hosts[1].received.len(), 2);
    assert!(!net.saw(1, &Event::Restarted));
}

/// RFC 9260 5.2.4 D and (3): if both tags match, even a stale cookie is accepted.
#[test]
fn a_repeated_cookie_is_acknowledged_again_however_old() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    for seconds in [0, 61, 1] {
        net.run(S(seconds));
        let answers = hand.echo(&mut net);
        assert!(answers[0].has("COOKIE ACK"), "{}", net.tail(5));
    }
    assert_eq!(
        net.events(1, |e| matches!(e, Event::Established { .. } | Event::Restarted)).len(),
        1
    );
}

/// RFC 9260 5.2.4 (3): a stale cookie with other tags is reported, and nothing changes.
#[test]
fn a_stale_cookie_does_not_restart_an_association() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let mut again = Hand { tag: 99, ..hand.clone() };
    let answer = again.init(&mut net, &|_| {});
    again.learn(&answer[0]);
    net.run(S(61));
    let answers = again.echo(&mut net);
    assert_eq!(answers[0].text(), "ERROR (Stale Cookie)");
    assert_eq!(answers[0].tag, 99);
    hand.data(&mut net, 1);
    assert_eq!(net.hosts[1].received.len(), 1);
    assert!(!net.saw(1, &Event::Restarted));
}

/// RFC 9260 5.2.4 B: the local tag matches, the peer's does not: the peer's tag in the cookie is
/// used.
#[test]
fn action_b_takes_the_tag_of_the_cookie() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    let mut first = Hand { tag: 77, tsn: 500, ..hand.clone() };
    let answer = first.init(&mut net, &|_| {});
    first.learn(&answer[0]);
    hand.init_ack(&mut net);
    let answers = first.echo(&mut net);
    assert_eq!((answers[0].text(), answers[0].tag), ("COOKIE ACK".into(), 77));
    assert!(net.a(0).is_established());
    first.data(&mut net, 1);
    assert_eq!(net.hosts[0].received.len(), 1, "the cookie's TSN holds too");
    net.run(S(100));
    assert_eq!(net.times(0, "COOKIE ECHO").len(), 1, "T1-cookie was stopped");
}

/// RFC 9260 5.2.4 C: the cookie of an earlier attempt arrives late and is silently discarded.
#[test]
fn action_c_discards_the_cookie() {
    let mut net = pair(1, Config::rfc9260());
    let mut early = Hand::new(1);
    let answer = early.init(&mut net, &|_| {});
    early.learn(&answer[0]);
    let hand = Hand { tag: early.tag, ..Hand::new(1) }.be_called(&mut net);
    hand.init_ack(&mut net);
    assert!(early.echo(&mut net).is_empty());
    assert!(!net.a(1).is_established());
    net.run(MS(1500));
    assert_eq!(net.times(1, "COOKIE ECHO").len(), 2, "T1-cookie still runs");
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    assert!(net.a(1).is_established());
}

/// Host 0 restarts and opens the association again.
fn restart(net: &mut Net, setup: &Setup) {
    let config = net.hosts[0].endpoint.config().association.clone();
    net.hosts[0] = Setup { seed: 1000, ..*setup_like(setup) }.host(0, &config, false);
    net.connect(0);
}

fn setup_like(setup: &Setup) -> Box<Setup> {
    Box::new(Setup { paths: setup.paths, own_paths: setup.own_paths, ..Setup::default() })
}

/// RFC 9260 5.2.4.1 A: the peer restarted.
#[test]
fn a_restarted_peer_takes_its_association_over() {
    let mut net = pair(1, Config::rfc9260());
    net.establish();
    // Windows have grown, sequence numbers have advanced, and one message is unread.
    net.send(1, 5, payload(1, 100_000)).unwrap();
    net.send(0, 5, payload(2, 3000)).unwrap();
    net.run(S(3));
    let grown = net.path(1, 0).window.cwnd;
    net.hosts[1].reads = false;
    net.send(0, 5, payload(3, 50)).unwrap();
    net.run(S(1));
    let tags = net.log.last().unwrap().tag;
    let id = net.id(1);
    restart(&mut net, &Setup::default());
    net.drive_until(S(2), Net::all_active);
    assert!(net.saw(1, &Event::Restarted));
    assert_eq!(net.id(1), id, "the same association for the application");
    assert_ne!(net.log.last().unwrap().tag, tags, "new tags");
    assert!(net.path(1, 0).window.cwnd < grown && net.path(1, 0).window.cwnd == 4404);
    assert_eq!(net.path(1, 0).error_count, 0);
    assert_eq!(net.read(1)[0].payload, payload(3, 50), "what was received stays readable");
    net.hosts[1].reads = true;
    hello(&mut net);
    assert_eq!(net.sent_with(1, "DATA").last().unwrap().data()[0].ssn, 0, "counted anew");
}

/// RFC 9260 5.2.4.1 A: data in flight is lost, queued data is sent to the restarted peer.
#[test]
fn a_restart_in_the_middle_of_a_transfer() {
    let mut net = pair(1, Config::rfc9260());
    net.establish();
    for i in 0..50 {
        net.send(1, 1, payload(i, 4000)).unwrap();
        net.send(0, 1, payload(100 + i, 4000)).unwrap();
    }
    net.run(MS(25));
    restart(&mut net, &Setup::default());
    net.drive_until(S(5), Net::all_active);
    net.drive_until(S(20), |net| net.a(1).buffered() == 0);
    // No message arrives in part or twice, and the last one arrives.
    let got = &net.hosts[0].received;
    assert!(got.iter().all(|r| r.beginning && r.end));
    assert_eq!(got.last().unwrap().payload, payload(49, 4000));
    let numbers: Vec<_> =
        got.iter().map(|r| (0..50).find(|i| payload(*i, 4000) == r.payload).unwrap()).collect();
    assert!(numbers.is_sorted() && numbers.len() > 30, "{numbers:?}");
    hello(&mut net);
}

/// RFC 9260 5.2.4: a cookie whose tie tags are those of an earlier incarnation restarts nothing.
#[test]
fn a_cookie_from_before_the_last_restart_is_discarded() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let mut offers = [91, 92].map(|tag| Hand { tag, ..hand.clone() });
    for offer in &mut offers {
        let answer = offer.init(&mut net, &|_| {});
        offer.learn(&answer[0]);
    }
    assert_eq!(offers[1].echo(&mut net)[0].text(), "COOKIE ACK");
    assert!(offers[0].echo(&mut net).is_empty());
    offers[1].data(&mut net, 1);
    assert_eq!(net.hosts[1].received.len(), 1);
    assert_eq!(net.events(1, |e| *e == Event::Restarted).len(), 1);
}

/// RFC 9260 5.2.2, 5.2.4: a restart may use fewer addresses, never new ones.
#[test]
fn a_restart_must_not_bring_new_addresses() {
    let setup = Setup { paths: 2, own_paths: [Some(1), Some(2)], ..Setup::default() };
    let mut net = Setup { paths: 2, own_paths: [Some(1), Some(2)], ..Setup::default() }.build();
    net.establish();
    let mark = net.log.len();
    restart(&mut net, &Setup { own_paths: [Some(2), Some(2)], ..setup });
    net.run(S(1));
    let abort = &net.sent_since(1, mark)[0];
    assert_eq!(abort.text(), "ABORT (Restart of an Association with New Addresses)");
    assert!(matches!(net.closed(0), Some(CloseReason::PeerAbort { .. })));
    assert!(net.a(1).is_established() && !net.saw(1, &Event::Restarted));
}

/// RFC 9260 5.2.2: an INIT also belongs to an association by the addresses that it lists; otherwise
/// anyone could take the peer's place.
#[test]
fn an_init_from_elsewhere_that_lists_an_address_of_the_peer_is_refused() {
    let mut net = pair(1, Config::rfc9260());
    let peer = Hand::new(1).open(&mut net);
    let thief = Hand { ip: v4(0, 55), tag: 4711, ..Hand::new(1) };
    let std::net::IpAddr::V4(known) = peer.ip else { unreachable!() };
    let answers = thief.init(&mut net, &|p| p.ipv4(known).unwrap());
    assert!(answers.iter().all(|p| !p.has("INIT ACK")), "{}", answers[0].text());
    peer.data(&mut net, 1);
    assert_eq!(net.hosts[1].received.len(), 1);
}

/// RFC 9260 9.2: in SHUTDOWN-ACK-SENT an INIT is answered by another SHUTDOWN ACK.
#[test]
fn an_init_in_shutdown_ack_sent_is_answered_by_the_shutdown_ack() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    assert_eq!(hand.shutdown(&mut net, 0)[0].text(), "SHUTDOWN ACK");
    let answers = hand.init(&mut net, &|_| {});
    assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["SHUTDOWN ACK"]);
}

/// RFC 9260 5.2.4.1 A: in SHUTDOWN-ACK-SENT there is no restart.
#[test]
fn a_restart_in_shutdown_ack_sent_is_refused() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let mut again = Hand { tag: 99, ..hand.clone() };
    let answer = again.init(&mut net, &|_| {});
    again.learn(&answer[0]);
    hand.shutdown(&mut net, 0);
    let answers = again.echo(&mut net);
    assert_eq!(answers[0].text(), "SHUTDOWN ACK + ERROR (Cookie Received While Shutting Down)");
    assert!(!net.saw(1, &Event::Restarted));
}
