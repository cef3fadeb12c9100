//! Opening an association: INIT, INIT ACK, COOKIE ECHO, COOKIE ACK (RFC 9260 5.1, 3.3.2, 3.3.3).

use crate::common::*;
use polypath_proto::wire::{Action, Chunk, InitFields, Parameter, cause_code, checksum};
use polypath_proto::*;

fn recompute_checksum(packet: &mut [u8]) {
    let crc = checksum(packet);
    packet[8..12].copy_from_slice(&crc.to_le_bytes());
}

fn initiate_tag(sent: &Sent) -> u32 {
    sent.parsed()
        .iter()
        .find_map(|c| match c {
            Chunk::Init(i) | Chunk::InitAck(i) => Some(i.initiate_tag.0),
            _ => None,
        })
        .expect("an INIT or INIT ACK")
}

/// RFC 9260 5.1.
#[test]
fn four_packets_open_an_association() {
    let mut net = pair(1, Config::rfc9260());
    net.connect(0);
    net.run(MS(35));
    assert_eq!(net.script(), ["A INIT", "B INIT ACK", "A COOKIE ECHO", "B COOKIE ACK"]);
    assert_eq!(net.log.iter().map(Sent::ms).collect::<Vec<_>>(), [0, 10, 20, 30]);
    let (a, b) = (initiate_tag(&net.log[0]), initiate_tag(&net.log[1]));
    // 8.5.1: an INIT has tag 0, then each side uses the other one's.
    assert_eq!(net.log.iter().map(|p| p.tag).collect::<Vec<_>>(), [0, a, b, a]);
    assert!(net.saw(1, &Event::Established { inbound: true }));
    assert!(!net.a(0).is_established());
    net.run(MS(5));
    assert!(net.saw(0, &Event::Established { inbound: false }));
    assert_eq!(
        (net.hosts[0].endpoint.stats().established, net.states(0)),
        (1, vec![PathState::Active])
    );
}

/// RFC 9260 3.3.2.1.5: optional, and useful only if there are addresses to choose from. pion does
/// not answer an INIT that has the parameter.
#[test]
fn an_init_names_types_of_addresses_only_beside_a_list() {
    for paths in [1, 2] {
        let mut net = pair(paths, Config::rfc9260());
        net.connect(0);
        let parsed = net.log[0].parsed();
        let Chunk::Init(init) = &parsed[0] else { panic!("{}", net.log[0].text()) };
        let names = |p: &Parameter<'_>| matches!(p, Parameter::SupportedAddressTypes(_));
        assert_eq!(init.parameters.iter().any(|p| p.is_ok_and(|p| names(&p))), paths > 1);
    }
}

/// RFC 9260 5.1.3: no state is stored for an INIT; all of it is in the cookie.
#[test]
fn an_init_leaves_no_state_behind() {
    let mut net = pair(1, Config::rfc9260());
    net.drop_all("INIT ACK");
    net.connect(0);
    net.run(S(20));
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
    assert_eq!(net.hosts[1].endpoint.poll_timeout(), None);
    let tags: std::collections::BTreeSet<u32> =
        net.sent_with(1, "INIT ACK").iter().map(initiate_tag).collect();
    assert_eq!(tags.len(), net.times(1, "INIT ACK").len(), "a new tag for each answer");
}

/// RFC 9260 5.1: data may be queued before, and is sent when the association is established.
#[test]
fn data_given_early_leaves_when_the_cookie_is_acknowledged() {
    let mut net = pair(1, Config::rfc9260());
    net.connect(0);
    net.send(0, 3, payload(1, 100)).unwrap();
    net.run(MS(100));
    assert_eq!(net.times(0, "DATA"), [40]);
    assert_eq!(net.hosts[1].received[0].payload, payload(1, 100));
}

/// RFC 9260 5.1 A, C; 5.2.4 D: a lost chunk costs one expiry of T1.
#[test]
fn each_lost_packet_of_the_handshake_is_made_up_for() {
    for (lost, inits, echoes) in [
        ("INIT", vec![0, 1000], vec![1020]),
        ("INIT ACK", vec![0, 1000], vec![1020]),
        ("COOKIE ECHO", vec![0], vec![20, 1020]),
        ("COOKIE ACK", vec![0], vec![20, 1020]),
    ] {
        let mut net = pair(1, Config::rfc9260());
        net.drop_once(&[lost]);
        net.connect(0);
        net.drive_until(S(5), Net::all_active);
        assert_eq!((net.times(0, "INIT"), net.times(0, "COOKIE ECHO")), (inits, echoes), "{lost}");
        for h in 0..2 {
            let established = net.events(h, |e| matches!(e, Event::Established { .. }));
            assert_eq!(established.len(), 1, "{lost}");
        }
        net.send(0, 0, payload(1, 10)).unwrap();
        net.send(1, 0, payload(2, 10)).unwrap();
        net.run(S(1));
        assert_eq!((net.hosts[0].received.len(), net.hosts[1].received.len()), (1, 1), "{lost}");
    }
}

/// RFC 9260 4, 5.1, 6.3.3 E2, 16: T1-init doubles from RTO.Initial to RTO.Max.
#[test]
fn init_is_repeated_with_growing_intervals_and_then_given_up() {
    let mut net = pair(1, Config::rfc9260());
    net.drop_all("INIT");
    net.connect(0);
    net.run(S(1000));
    let seconds: Vec<u64> = net.times(0, "INIT").iter().map(|ms| ms / 1000).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    let closed = net.events(0, |e| matches!(e, Event::Closed(_)));
    assert_eq!(closed, [(243_000, Event::Closed(CloseReason::NoAnswer))]);
}

/// RFC 9260 4, 5.1, 16: T1-cookie doubles in the same way as T1-init.
#[test]
fn a_cookie_is_repeated_with_growing_intervals_and_then_given_up() {
    let mut net = pair(1, Config::rfc9260());
    net.drop_all("COOKIE ECHO");
    net.connect(0);
    net.run(S(1000));
    let seconds: Vec<u64> = net.times(0, "COOKIE ECHO").iter().map(|ms| (ms - 20) / 1000).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    assert_eq!(net.closed(0), Some(CloseReason::NoAnswer));
    assert_eq!(net.times(0, "INIT").len(), 1);
}

/// RFC 9260 16: Max.Init.Retransmits of zero allows one attempt.
#[test]
fn max_init_retransmits_counts_the_repetitions() {
    for most in [0, 1, 3] {
        let config = Config::rfc9260().to_builder().max_init_retransmits(most).build().unwrap();
        let mut net = pair(1, config);
        net.drop_all("INIT");
        net.connect(0);
        net.run(S(100));
        assert_eq!(net.times(0, "INIT").len() as u32, most + 1);
        assert_eq!(net.closed(0), Some(CloseReason::NoAnswer));
    }
}

/// RFC 9260 6.4, 11.1.2: several addresses of the peer are known, and the first is unreachable.
#[test]
fn the_second_attempt_tries_the_second_address() {
    let mut net = pair(2, Config::rfc9260());
    net.cuts.insert(0);
    let remotes = net.remotes(1);
    net.hosts[0].endpoint.connect(net.now, PORT, &remotes).unwrap();
    net.drive_until(S(3), |net| net.a(0).is_established());
    let inits: Vec<(u64, u8)> =
        net.sent_with(0, "INIT").iter().map(|p| (p.ms(), p.net())).collect();
    assert_eq!(inits, [(0, 0), (1000, 1)]);
    net.send(1, 0, payload(1, 10)).unwrap();
    net.run(S(30));
    assert_eq!(net.hosts[0].received.len(), 1);
}

/// RFC 9260 8.4 (3), 5.1: the endpoint does not listen.
#[test]
fn who_does_not_listen_answers_with_an_abort() {
    let mut net = Setup { listens: [false, false], ..Setup::default() }.build();
    net.connect(0);
    net.run(S(100));
    assert_eq!(net.script(), ["A INIT", "B ABORT"]);
    assert_eq!(net.log[1].tag, initiate_tag(&net.log[0]));
    assert_eq!(net.events(0, |e| matches!(e, Event::Closed(_)))[0].0, 20, "at once");
    assert!(matches!(net.closed(0), Some(CloseReason::PeerAbort { .. })));
    assert_eq!(net.hosts[1].endpoint.stats().refused, 1);
}

/// RFC 9260 3.3.10.4, 5.1.
#[test]
fn too_many_associations_are_refused_as_out_of_resource() {
    let mut net = Setup { max_associations: 1, ..Setup::default() }.build();
    net.establish();
    let hand = Hand::new(1);
    let answers = hand.init(&mut net, &|_| {});
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].text(), answers[0].tag), ("ABORT (Out of Resource)".into(), hand.tag));
    let remote = [Hand::new(0).remote()];
    let again = net.hosts[0].endpoint.connect(net.now, PORT, &remote);
    assert_eq!(again, Err(ConnectError::TooMany { max: 1 }));
}

/// RFC 9260 5.1.5 (4), 5.2.6: a stale cookie is reported, and a longer life requested.
#[test]
fn a_stale_cookie_is_tried_again_with_a_longer_life() {
    let config = Config::rfc9260().to_builder().cookie_life(MS(15)).build().unwrap();
    let mut net = pair(1, config);
    net.connect(0);
    net.drive_until(S(5), Net::all_active);
    let script = net.script();
    assert_eq!(script[..4], ["A INIT", "B INIT ACK", "A COOKIE ECHO", "B ERROR (Stale Cookie)"]);
    assert_eq!(script[4..], ["A INIT", "B INIT ACK", "A COOKIE ECHO", "B COOKIE ACK"]);
    let preservative = |sent: &Sent| match sent.parsed()[0] {
        Chunk::Init(i) => i.parameters.iter().flatten().find_map(|p| match p {
            Parameter::CookiePreservative(ms) => Some(ms),
            _ => None,
        }),
        _ => None,
    };
    assert_eq!(preservative(&net.log[0]), None);
    assert!(preservative(&net.log[4]).is_some());
    assert_eq!(net.hosts[1].endpoint.stats().stale_cookies, 1);
}

/// RFC 9260 5.2.6: the attempt is not repeated for ever.
#[test]
fn cookies_that_are_always_stale_end_the_attempt() {
    let config = Config::rfc9260().to_builder().cookie_life(MS(1)).build().unwrap();
    let mut net = pair(1, config);
    net.connect(0);
    net.run(S(1000));
    assert_eq!(net.closed(0), Some(CloseReason::NoAnswer));
    assert!(net.times(0, "INIT").len() <= 10, "{:?}", net.times(0, "INIT"));
}

/// RFC 9260 5.1.5 (2): an altered cookie is silently discarded.
#[test]
fn an_altered_cookie_is_discarded_and_the_true_one_accepted() {
    for byte in [16, 20, 40, 90, 110] {
        let mut net = pair(1, Config::rfc9260());
        let mut first = true;
        net.filter(move |p| {
            if !p.has("COOKIE ECHO") || !std::mem::take(&mut first) {
                return Fate::Pass;
            }
            let mut bytes = p.bytes.clone();
            bytes[byte] ^= 0x10;
            recompute_checksum(&mut bytes);
            Fate::Changed(bytes)
        });
        net.connect(0);
        net.run(MS(500));
        assert_eq!(net.script().len(), 3, "no answer");
        assert_eq!(net.hosts[1].endpoint.stats().bad_cookies, 1);
        assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
        net.drive_until(S(2), Net::all_active);
    }
}

/// RFC 9260 5.1.5 (3): a cookie is valid only for the port and tag that it was made for.
#[test]
fn a_cookie_holds_for_its_tag_and_port_alone() {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    let answer = hand.init(&mut net, &|_| {});
    hand.learn(&answer[0]);
    let tag = hand.peer_tag;
    assert!(
        hand.say_with_tag(&mut net, tag ^ 1, &|w| w.cookie_echo(&hand.cookie).unwrap()).is_empty()
    );
    let other_port = Hand { port: 4711, ..hand.clone() };
    assert!(other_port.echo(&mut net).is_empty());
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
    assert_eq!(hand.echo(&mut net)[0].text(), "COOKIE ACK");
}

/// RFC 9260 5.1 D, 6.10: DATA may follow the COOKIE ECHO in the same packet.
#[test]
fn data_in_the_packet_of_the_cookie_is_taken() {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    let answer = hand.init(&mut net, &|_| {});
    hand.learn(&answer[0]);
    let chunk = hand.chunk(1, b"with the cookie");
    let answers = hand.say(&mut net, &|w| {
        w.cookie_echo(&hand.cookie).unwrap();
        w.data(&chunk).unwrap();
    });
    assert!(answers[0].text().starts_with("COOKIE ACK"), "{}", answers[0].text());
    assert_eq!(&net.hosts[1].received[0].payload[..], b"with the cookie");
    net.run(MS(200));
    assert!(net.sent(1).iter().any(|p| p.has("SACK 1")));
}

/// RFC 9260 3.3.2: values that an INIT must not have.
#[test]
fn an_init_with_forbidden_fields_is_refused() {
    let fields = |change: fn(&mut Hand)| {
        let mut hand = Hand::new(1);
        change(&mut hand);
        let mut net = pair(1, Config::rfc9260());
        let answers = hand.init(&mut net, &|_| {});
        assert!(answers.iter().all(|p| p.tag == hand.tag));
        assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
        answers.iter().map(|p| p.chunks[0].name.clone()).collect::<Vec<_>>()
    };
    assert!(fields(|h| h.tag = 0).is_empty(), "there is no tag to answer with");
    assert_eq!(fields(|h| h.streams.0 = 0), ["ABORT"]);
    assert_eq!(fields(|h| h.streams.1 = 0), ["ABORT"]);
    assert_eq!(fields(|h| h.rwnd = 1499), ["ABORT"]);
    assert_eq!(fields(|h| h.rwnd = 1500), ["INIT ACK"]);
}

/// RFC 9260 3.3.2.1.4.
#[test]
fn host_names_are_refused() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.typed(11, b"host.example\0").unwrap());
    assert_eq!(answers[0].chunks[0].name, "ABORT");
    assert!(answers[0].causes().iter().all(|c| *c == cause_code::UNRESOLVABLE_ADDRESS));
}

/// RFC 9260 3.2.1, 3.2.2: the highest bits of an unknown parameter's type select its treatment.
#[test]
fn unknown_parameters_are_treated_as_their_type_asks() {
    for (ty, expected) in [
        (0x0042, vec![]),
        (0x4042, vec![0x4042]),
        (0x8042, vec![0xc043]),
        (0xc042, vec![0xc042, 0xc043]),
    ] {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(1);
        let answers = hand.init(&mut net, &|p| {
            p.typed(ty, b"abc").unwrap();
            p.typed(0xc043, b"").unwrap();
        });
        let parsed = answers[0].parsed();
        let Chunk::InitAck(ack) = parsed[0] else { panic!("no INIT ACK: {}", answers[0].text()) };
        let reported = ack.parameters.iter().flatten().filter_map(|p| match p {
            Parameter::UnrecognizedParameter(raw) => Some(u16::from_be_bytes([raw[0], raw[1]])),
            _ => None,
        });
        assert_eq!(reported.collect::<Vec<_>>(), expected, "{:?}", Action::of_parameter(ty));
    }
}

/// RFC 9260 6.10: an INIT must be the only chunk in its packet.
#[test]
fn an_init_with_company_is_discarded() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let answers = hand.say_with_tag(&mut net, 0, &|w| {
        w.init(&hand.fields(), |_| Ok(())).unwrap();
        w.data(&hand.chunk(1, b"x")).unwrap();
    });
    assert!(answers.is_empty());
}

fn answer_to_init_ack(
    fields: impl FnOnce(InitFields) -> InitFields,
    cookie: bool,
) -> (Net, Hand, Vec<Sent>) {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    let fields = fields(hand.fields());
    let answers = hand.say(&mut net, &|w| {
        w.init_ack(&fields, |p| if cookie { p.state_cookie(b"cookie") } else { Ok(()) }).unwrap();
    });
    (net, hand, answers)
}

/// RFC 9260 3.3.3, 3.3.10.2: an INIT ACK without a cookie or with a stream count of zero.
#[test]
fn an_init_ack_with_forbidden_fields_ends_the_attempt() {
    let (net, hand, answers) = answer_to_init_ack(|f| f, false);
    assert_eq!(answers[0].text(), "ABORT (Missing Mandatory Parameter)");
    assert_eq!(answers[0].tag, hand.tag);
    assert!(matches!(net.closed(0), Some(CloseReason::ProtocolViolation { .. })));
    type Change = fn(InitFields) -> InitFields;
    let changes: [Change; 2] =
        [|f| InitFields { outbound_streams: 0, ..f }, |f| InitFields { inbound_streams: 0, ..f }];
    for change in changes {
        let (net, hand, answers) = answer_to_init_ack(change, true);
        assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", hand.tag));
        assert!(matches!(net.closed(0), Some(CloseReason::ProtocolViolation { .. })));
    }
}

/// RFC 9260 3.3.3: an INIT ACK with an a_rwnd below 1500: "MUST discard the packet, SHOULD send a
/// packet in response containing an ABORT chunk and using the Initiate Tag as the Verification Tag,
/// and MUST NOT change the state of any existing association".
#[test]
fn an_init_ack_with_a_small_window_is_discarded() {
    let (mut net, hand, answers) = answer_to_init_ack(|f| InitFields { a_rwnd: 1499, ..f }, true);
    assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", hand.tag));
    assert_eq!(net.closed(0), None);
    net.run(MS(1500));
    assert_eq!(net.times(0, "INIT").len(), 2, "T1-init runs");
    assert!(hand.init_ack(&mut net)[0].has("COOKIE ECHO"));
}

/// RFC 9260 3.3.3: "it MUST destroy the TCB and SHOULD send an ABORT chunk with the T bit set".
#[test]
fn an_init_ack_without_a_tag_ends_the_attempt() {
    let (net, hand, answers) =
        answer_to_init_ack(|f| InitFields { initiate_tag: VerificationTag(0), ..f }, true);
    assert!(net.closed(0).is_some());
    assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["ABORT T"]);
    assert_eq!(answers[0].tag, hand.peer_tag, "reflected");
}

/// RFC 9260 3.2.2: they are reported in an ERROR in the packet of the COOKIE ECHO.
#[test]
fn unknown_parameters_of_an_init_ack_are_reported_with_the_cookie() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    let answers = hand.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            p.typed(0xc042, b"?")?;
            p.typed(0x8042, b"?")?;
            p.state_cookie(b"cookie")
        })
        .unwrap();
    });
    assert_eq!(answers[0].text(), "COOKIE ECHO + ERROR (Unrecognized Parameters)");
}

/// RFC 9260 5.1.1: each direction has the smaller number of what one side requests and the other
/// allows.
#[test]
fn streams_are_what_both_sides_agree_to() {
    let config = |outbound, inbound| {
        Config::rfc9260()
            .to_builder()
            .outbound_streams(outbound)
            .inbound_streams(inbound)
            .build()
            .unwrap()
    };
    let mut net = Setup { configs: [config(100, 10), config(20, 30)], ..Setup::default() }.build();
    net.connect(0);
    for stream in [29, 30, 99] {
        net.send(0, stream, payload(1, 10)).unwrap();
    }
    net.drive_until(S(1), Net::all_active);
    let streams = |h| (net.a(h).outbound_streams(), net.a(h).inbound_streams());
    assert_eq!((streams(0), streams(1)), ((30, 10), (10, 30)));
    let failed = net.events(0, |e| matches!(e, Event::SendFailed { .. }));
    assert_eq!(failed.len(), 2, "what was meant for streams that do not exist");
    net.run(S(1));
    assert_eq!(net.hosts[1].received[0].stream, StreamId(29));
    let refused = SendError::NoSuchStream { stream: StreamId(30), streams: 30 };
    assert_eq!(net.send(0, 30, payload(1, 1)), Err(refused));
}

/// RFC 9260 11.1.2, ASSOCIATE.
#[test]
fn connections_that_cannot_be_are_refused_at_once() {
    let mut net = pair(1, Config::rfc9260());
    let now = net.now;
    let endpoint = &mut net.hosts[0].endpoint;
    assert_eq!(endpoint.connect(now, PORT, &[]), Err(ConnectError::NoAddress));
    let v6 = Remote { address: (v6(0, 1), 0).into(), local: None };
    assert_eq!(endpoint.connect(now, PORT, &[v6]), Err(ConnectError::NoPath));
    net.connect(0);
    let remotes = net.remotes(1);
    let endpoint = &mut net.hosts[0].endpoint;
    assert_eq!(endpoint.connect(now, PORT, &remotes), Err(ConnectError::Exists));
    assert!(endpoint.connect(now, PORT + 1, &remotes).is_ok(), "another port, another peer");
}

/// RFC 9260 5.1: an association that is released while it is being opened sends no further INIT.
#[test]
fn a_released_attempt_is_forgotten() {
    let mut net = pair(1, Config::rfc9260());
    let id = net.connect(0);
    let now = net.now;
    net.hosts[0].endpoint.release(now, id);
    net.run(S(100));
    assert_eq!(net.times(0, "INIT").len(), 1);
    assert_eq!(net.hosts[0].endpoint.associations().count(), 0);
    assert_eq!(net.hosts[0].endpoint.poll_timeout(), None);
    net.connect(0);
    net.drive_until(S(2), Net::all_active);
}

/// An endpoint has associations with several peers, and keeps them apart.
#[test]
fn three_hosts_talk_to_each_other() {
    let setup = Setup { paths: 2, listens: [true, true], ..Setup::default() };
    let third = setup.host(2, &Config::rfc9260(), true);
    let mut net = setup.build();
    net.hosts.push(third);
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let remotes = net.remotes(to);
        let id = net.hosts[from].endpoint.connect(net.now, PORT, &remotes).unwrap();
        let message = Message::new(StreamId(0), payload(from as u64, 20_000));
        net.hosts[from].endpoint.association_mut(id).unwrap().send(net.now, message).unwrap();
    }
    net.run(S(5));
    for h in 0..3 {
        let host = &net.hosts[h];
        assert_eq!(host.endpoint.associations().count(), 2);
        let received: Vec<_> = host.received.iter().map(|r| r.payload.clone()).collect();
        assert_eq!(received.len(), 1);
        assert!(received[0] == payload((h as u64 + 2) % 3, 20_000));
        let up = net.events(h, |e| matches!(e, Event::PathState { to: PathState::Active, .. }));
        assert_eq!(up.len(), 4, "two paths to each of the others");
    }
}
