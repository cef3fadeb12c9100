//! Section 3.3.3: INIT ACK.

use super::init::look_random;
use super::*;

type Change = fn(&mut Hand);

/// The answers to an INIT ACK with changed fields in COOKIE-WAIT.
fn answers_to(change: Change) -> (Net, Hand, Vec<Sent>) {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    let mut changed = hand.clone();
    change(&mut changed);
    let answers = changed.init_ack(&mut net);
    (net, hand, answers)
}

/// The INIT ACK that answers this INIT.
fn init_ack_to(hand: &Hand) -> Raw {
    let mut net = pair(1, Config::rfc9260());
    chunk(&hand.init(&mut net, &|_| {})[0].bytes, 2)
}

#[test]
fn s3_3_3_r3_the_flags_of_an_init_ack_are_0_and_ignored() {
    assert_eq!(init_ack_to(&Hand::new(1)).flags, 0);
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    let mut packet = hand.packet(hand.peer_tag, &|w| {
        w.init_ack(&hand.fields(), |p| p.state_cookie(b"cookie")).unwrap();
    });
    packet[13] = 0xff;
    reseal(&mut packet);
    assert_eq!(hand.raw(&mut net, &packet)[0].text(), "COOKIE ECHO");
}

#[test]
fn s3_3_3_r5_the_tag_of_an_init_ack_is_not_0() {
    let mut net = pair(1, Config::rfc9260());
    for tag in 1..=1000 {
        let hand = Hand { tag, ..Hand::new(1) };
        assert_ne!(initiate_tag(&hand.init(&mut net, &|_| {})[0]), 0);
    }
}

#[test]
fn s3_3_3_r6_an_init_ack_with_tag_0_ends_the_attempt() {
    let (net, hand, answers) = answers_to(|h| h.tag = 0);
    assert!(net.closed(0).is_some());
    assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["ABORT T"]);
    assert_eq!(answers[0].tag, hand.peer_tag);
}

const FORBIDDEN: [Change; 4] =
    [|h| h.tag = 0, |h| h.streams.0 = 0, |h| h.streams.1 = 0, |h| h.rwnd = 1499];

#[test]
fn s3_3_3_r7_r13_r16_such_an_init_ack_is_discarded_in_other_states() {
    for change in FORBIDDEN {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(0).be_called(&mut net);
        hand.init_ack(&mut net);
        let mut wrong = hand.clone();
        change(&mut wrong);
        assert!(wrong.init_ack(&mut net).is_empty(), "in COOKIE-ECHOED");
        hand.say(&mut net, &|w| w.cookie_ack().unwrap());
        assert!(net.a(0).is_established());
        assert!(wrong.init_ack(&mut net).is_empty(), "in ESTABLISHED");
        assert!(net.a(0).is_established());
        net.shutdown(0);
        assert!(wrong.init_ack(&mut net).is_empty(), "in SHUTDOWN-SENT");
        assert_eq!(net.closed(0), None);
    }
}

#[test]
fn s3_3_3_r8_the_window_of_an_init_ack_has_1500_bytes_at_least() {
    let config = Config::rfc9260().to_builder().receive_buffer(1500).build().unwrap();
    let mut net = pair(1, config);
    let ack = chunk(&Hand::new(1).init(&mut net, &|_| {})[0].bytes, 2);
    assert_eq!(u32_at(&ack.value, 4), 1500);
}

#[test]
fn s3_3_3_r9_an_init_ack_with_a_small_window_is_aborted_and_changes_nothing() {
    let (mut net, hand, answers) = answers_to(|h| {
        h.rwnd = 1499;
        h.tag = 77;
    });
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", 77));
    assert_eq!(net.closed(0), None);
    net.run(MS(1500));
    assert_eq!(net.times(0, "INIT"), [0, 1000], "still in COOKIE-WAIT");
    assert_eq!(hand.init_ack(&mut net)[0].text(), "COOKIE ECHO");
}

#[test]
fn s3_3_3_r11_r14_an_init_ack_offers_no_more_streams_than_the_init_allows() {
    for (allowed, expected) in [(1, 1), (3, 3), (64, 64), (65, 64), (u16::MAX, 64)] {
        let ack = init_ack_to(&Hand { streams: (1, allowed), ..Hand::new(1) });
        assert_eq!(ack.value[8..10], u16::to_be_bytes(expected));
        assert_ne!(ack.value[10..12], [0, 0]);
    }
}

#[test]
fn s3_3_3_r12_r15_an_init_ack_without_streams_ends_the_attempt() {
    for change in &FORBIDDEN[1..3] {
        let (net, hand, answers) = answers_to(*change);
        assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", hand.tag));
        assert!(net.closed(0).is_some());
    }
}

#[test]
fn s3_3_3_r17_the_initial_tsn_of_an_init_ack_is_random() {
    let mut net = pair(1, Config::rfc9260());
    let tsn = |tag| {
        let hand = Hand { tag, ..Hand::new(1) };
        u32_at(&chunk(&hand.init(&mut net, &|_| {})[0].bytes, 2).value, 12)
    };
    look_random(&(1..=64).map(tsn).collect::<Vec<_>>());
}

#[test]
fn s3_3_3_r18_an_init_ack_of_many_thousand_bytes_is_accepted() {
    for (cookie, addresses) in [(4000, 0), (100, 1000), (9000, 1000)] {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(0).be_called(&mut net);
        let cookie = payload(1, cookie);
        let answers = hand.say(&mut net, &|w| {
            w.init_ack(&hand.fields(), |p| {
                for i in 0..addresses {
                    p.ipv4([10, 0, 1 + (i / 250) as u8, (i % 250) as u8].into())?;
                }
                p.state_cookie(&cookie)
            })
            .unwrap();
        });
        assert!(answers[0].has("COOKIE ECHO"), "{} bytes", cookie.len());
        assert_eq!(chunk(&answers[0].bytes, 10).value, cookie);
        hand.say(&mut net, &|w| w.cookie_ack().unwrap());
        assert!(net.a(0).is_established());
    }
}

#[test]
fn s3_3_3_r19_an_init_ack_with_all_mandatory_parameters_is_answered_by_a_cookie_echo() {
    let (_, hand, answers) = answers_to(|_| {});
    assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["COOKIE ECHO"]);
    assert_eq!(answers[0].tag, hand.tag);
}

#[test]
fn s3_3_3_r20_without_addresses_the_source_of_the_init_ack_is_the_sole_destination() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).accept(&mut net);
    net.run(S(100));
    let remotes: Vec<_> = net.a(0).paths().map(|p| p.remote).collect();
    assert_eq!(remotes, [hand.ip]);
    assert!(net.sent(0).iter().all(|p| p.to.ip() == hand.ip));
}

#[test]
fn s3_3_3_1_r2_parameters_follow_the_fixed_fields() {
    let mut net = Setup { paths: 2, dual: true, ..Setup::default() }.build();
    let ack = chunk(&Hand::new(1).init(&mut net, &|_| {})[0].bytes, 2);
    assert_eq!(ack.value[4..12], [0, 0x10, 0, 0, 0, 64, 8, 0]);
    let types: Vec<u16> = parameters(&ack).iter().map(|p| p.ty).collect();
    assert_eq!(types.iter().filter(|ty| [5, 6].contains(*ty)).count(), 4);
    assert_eq!(types.iter().filter(|ty| **ty == 7).count(), 1);
}

/// The host keeps no state of the INIT, so all that the association has was in the cookie.
#[test]
fn s3_3_3_1_1_r1_the_cookie_has_all_that_the_association_needs_and_a_mac() {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand { streams: (5, 7), rwnd: 4321, tsn: 88, ..Hand::new(1) };
    let answers = hand.init(&mut net, &|p| p.ipv4([10, 0, 0, 77].into()).unwrap());
    hand.learn(&answers[0]);
    for byte in [0, hand.cookie.len() / 2, hand.cookie.len() - 1] {
        let mut forged = hand.clone();
        forged.cookie[byte] ^= 1;
        assert!(forged.echo(&mut net).is_empty());
    }
    assert_eq!(hand.echo(&mut net)[0].tag, hand.tag);
    let a = net.a(1);
    assert_eq!((a.inbound_streams(), a.outbound_streams(), a.peer_rwnd()), (5, 7, 4321));
    let remotes: BTreeSet<_> = a.paths().map(|p| p.remote).collect();
    assert_eq!(remotes, [hand.ip, "10.0.0.77".parse().unwrap()].into());
    hand.data(&mut net, 1);
    assert_eq!(net.hosts[1].received.len(), 1, "the initial TSN");
    net.send(1, 0, payload(1, 10)).unwrap();
    let packets = net.sent_with(1, "DATA");
    assert_eq!(u32_at(&chunk(&packets[0].bytes, 0).value, 0), hand.peer_tsn);
}
