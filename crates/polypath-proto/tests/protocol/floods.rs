//! Peers and strangers who send more, or farther, than they should: replies and buffers are bounded
//! (RFC 9260 12.2).

use std::net::SocketAddr;

use crate::common::*;
use polypath_proto::wire::{Data, PacketWriter};
use polypath_proto::*;

/// Hands packets to host 1 without letting it send between them; what it sends then.
fn flood(
    net: &mut Net,
    from: impl Fn(u32) -> SocketAddr,
    packets: &[Vec<u8>],
    count: u32,
) -> Vec<Vec<u8>> {
    let now = net.now;
    let endpoint = &mut net.hosts[1].endpoint;
    for i in 0..count {
        let four_tuple = FourTuple { local: (v4(0, 1), 0).into(), remote: from(i) };
        let packet = &packets[i as usize % packets.len()];
        endpoint.handle_datagram(now, four_tuple, Ecn::NotEct, packet);
    }
    endpoint.check_invariants().unwrap();
    let mut buf = vec![0; 1500];
    let mut sent = Vec::new();
    while let Some(t) = endpoint.poll_transmit(now, &mut buf) {
        sent.push(buf[..t.size].to_vec());
        assert!(sent.len() < 100_000);
    }
    sent
}

fn peer() -> (Net, Hand) {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    (net, hand)
}

fn bytes(packets: &[Vec<u8>]) -> usize {
    packets.iter().map(Vec::len).sum()
}

/// RFC 9260 5.1.3: INITs leave nothing behind, and only so many answers wait.
#[test]
fn a_flood_of_inits_leaves_little_behind() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let init = hand.packet(0, &|w| w.init(&hand.fields(), |_| Ok(())).unwrap());
    let from = |i: u32| SocketAddr::from(([10, 0, (i >> 8) as u8, i as u8], 0));
    let sent = flood(&mut net, from, &[init], 20_000);
    assert!(sent.len() <= 1000, "{} answers waited", sent.len());
    let endpoint = &mut net.hosts[1].endpoint;
    assert_eq!(endpoint.associations().count(), 0);
    assert_eq!(endpoint.poll_timeout(), None);
    assert!(endpoint.stats().replies_dropped > 0);
}

#[test]
fn a_flood_of_inits_for_one_association_is_bounded() {
    let (mut net, hand) = peer();
    let init = hand.packet(0, &|w| w.init(&hand.fields(), |_| Ok(())).unwrap());
    let sent = flood(&mut net, |_| (hand.ip, 0).into(), &[init], 20_000);
    assert!(sent.len() <= 1000, "{} answers waited", sent.len());
    assert!(net.a(1).is_established());
}

#[test]
fn a_flood_of_strange_packets_is_bounded() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let packet = hand.packet(5, &|w| w.heartbeat(b"?").unwrap());
    let sent = flood(&mut net, |_| (hand.ip, 0).into(), &[packet], 20_000);
    assert!(sent.len() <= 1000);
}

/// Every question of the peer's costs memory until it is answered: not for ever.
#[test]
fn a_flood_of_questions_is_bounded() {
    let (_, hand) = peer();
    type Write<'a> = &'a dyn Fn(&mut PacketWriter<'_>);
    let stray = Data { stream: StreamId(9999), ..hand.chunk(1, b"x") };
    let floods: [(&str, Write<'_>); 6] = [
        ("HEARTBEAT", &|w| w.heartbeat(&[7; 1000]).unwrap()),
        ("unknown chunk", &|w| (0..300).for_each(|_| w.typed_chunk(0xff, 0, b"").unwrap())),
        ("stray DATA", &|w| (0..50).for_each(|_| w.data(&stray).unwrap())),
        ("COOKIE ECHO", &|w| w.cookie_echo(&hand.cookie).unwrap()),
        ("SHUTDOWN ACK", &|w| w.shutdown_ack().unwrap()),
        ("ERROR", &|w| w.error(|c| c.protocol_violation(&[b'x'; 1000])).unwrap()),
    ];
    for (name, write) in floods {
        let (mut net, hand) = peer();
        let packet = hand.packet(hand.peer_tag, write);
        let sent = flood(&mut net, |_| (hand.ip, 0).into(), &[packet], 20_000);
        assert!(bytes(&sent) <= 200_000, "{name}: {} bytes waited", bytes(&sent));
        assert!(net.a(1).is_established(), "{name}");
        assert!(net.am(1).poll_event().is_some() || name != "ERROR");
    }
}

/// One packet, a few answers.
#[test]
fn the_answer_is_no_larger_than_the_question_deserves() {
    let (mut net, hand) = peer();
    let answers = hand.say(&mut net, &|w| {
        for _ in 0..300 {
            w.typed_chunk(0xff, 0, b"").unwrap();
        }
    });
    assert!(answers.iter().map(|p| p.bytes.len()).sum::<usize>() <= 5000);
}

/// RFC 9260 6.2: TSNs that no window allows are not kept.
#[test]
fn tsns_far_ahead_are_not_kept() {
    let (mut net, hand) = peer();
    for n in [100_000, 1 << 20, 1 << 30, (1 << 31) - 2, 1 << 31, u32::MAX - 5] {
        hand.data(&mut net, n);
    }
    let sacks: Vec<SackSeen> = net.sent(1).iter().filter_map(Sent::sack).collect();
    assert!(sacks.iter().all(|s| s.cumulative == 0 && s.gaps.is_empty()), "{sacks:?}");
    assert!(net.a(1).is_established());
    hand.data(&mut net, 1);
    assert_eq!(net.hosts[1].received.len(), 1);
}

/// RFC 9260 3.3.4, 6.2: as many gap blocks as there is room for in a packet.
#[test]
fn a_sack_fits_its_packet_however_many_gaps_there_are() {
    let (mut net, hand) = peer();
    for n in 1..=2000 {
        let sack = &hand.data(&mut net, 2 * n)[0];
        assert!(sack.bytes.len() <= 1480);
        let seen = sack.sack().unwrap();
        assert!(seen.gaps.len() == n.min(364) as usize || seen.gaps.len() >= 360);
        assert!(seen.gaps.is_sorted());
    }
}

/// Single bytes in descending order, each a fragment of its own: the most work for the least data.
#[test]
fn fragments_in_the_worst_order_are_bounded() {
    let config = Config::builder().receive_buffer(1 << 20).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand::new(1).open(&mut net);
    // With gaps between them, so that nothing can be joined.
    let packets: Vec<Vec<u8>> = (1..600)
        .rev()
        .map(|group| {
            hand.packet(hand.peer_tag, &|w| {
                for n in (0..50).rev() {
                    let chunk = Data {
                        beginning: false,
                        end: false,
                        ..hand.chunk(group * 100 + 2 * n, b"x")
                    };
                    w.data(&chunk).unwrap();
                }
            })
        })
        .collect();
    let sent = flood(&mut net, |_| (hand.ip, 0).into(), &packets, packets.len() as u32);
    assert!(bytes(&sent) <= 200_000);
}

/// RFC 9260 6.6: messages that wait for one that never comes are bounded by the buffer.
#[test]
fn skipped_sequence_numbers_are_bounded_by_the_buffer() {
    let config = Config::builder().receive_buffer(20_000).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand::new(1).open(&mut net);
    let text = [3; 1000];
    for n in 1..200 {
        let chunk = Data { ssn: Ssn(n as u16 * 7), ..hand.chunk(n, &text) };
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    assert!(net.a(1).stats().dropped_no_buffer > 0);
    assert!(net.hosts[1].received.is_empty());
    let windows = net.sent(1).iter().filter_map(Sent::sack).next_back().unwrap().rwnd;
    assert_eq!(windows, 0);
}

/// RFC 9260 6.5, 6.6: a sequence number that was used already.
#[test]
fn a_sequence_number_twice_is_a_violation() {
    for early in [false, true] {
        let (mut net, hand) = peer();
        let ssn = Ssn(u16::from(early));
        for n in 1..=2 {
            let chunk = Data { ssn, ..hand.chunk(n, b"x") };
            hand.say(&mut net, &|w| w.data(&chunk).unwrap());
        }
        assert!(matches!(net.closed(1), Some(CloseReason::ProtocolViolation { .. })));
        assert_eq!(net.log.last().unwrap().text(), "ABORT (Protocol Violation)");
    }
}

/// RFC 9260 6.5, 6.9: the same for a message that came in fragments; the books still balance.
#[test]
fn a_sequence_number_twice_in_fragments_is_a_violation() {
    let (mut net, hand) = peer();
    let whole = Data { ssn: Ssn(0), ..hand.chunk(3, b"x") };
    let first = Data { ssn: Ssn(0), end: false, ..hand.chunk(1, b"y") };
    let second = Data { ssn: Ssn(0), beginning: false, ..hand.chunk(2, b"z") };
    for chunk in [whole, first, second] {
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    assert!(matches!(net.closed(1), Some(CloseReason::ProtocolViolation { .. })));
}

/// RFC 9260 6.9: fragments that cannot be of one message.
#[test]
fn contradicting_fragments_are_a_violation() {
    // Beginning, end, stream, SSN, unordered of chunks 1 and 2.
    type Flags = (bool, bool, u16, u16, bool);
    let begins = (true, false, 0, 0, false);
    let wrong: [[Flags; 2]; 7] = [
        [begins, begins],
        [begins, (true, true, 0, 0, false)],
        [begins, (false, true, 1, 0, false)],
        [begins, (false, true, 0, 1, false)],
        [begins, (false, true, 0, 0, true)],
        [(true, true, 0, 0, false), (false, true, 0, 1, false)],
        [(false, true, 0, 0, false), begins],
    ];
    for (i, pair) in wrong.iter().enumerate() {
        for order in [[0, 1], [1, 0]] {
            let (mut net, hand) = peer();
            for at in order {
                let (beginning, end, stream, ssn, unordered) = pair[at];
                let (stream, ssn) = (StreamId(stream), Ssn(ssn));
                let chunk = hand.chunk(at as u32 + 1, b"x");
                let chunk = Data { beginning, end, stream, ssn, unordered, ..chunk };
                hand.say(&mut net, &|w| w.data(&chunk).unwrap());
            }
            let closed = net.closed(1);
            let violation = matches!(closed, Some(CloseReason::ProtocolViolation { .. }));
            // A whole message that comes first is delivered before the contradiction shows.
            let delivered = (i, order) == (1, [1, 0]) && net.hosts[1].received.len() == 1;
            assert!(violation || delivered, "case {i}, order {order:?}: {closed:?}");
        }
    }
}

/// Every stream in use, the buffer full, something missing: no packet costs a walk that hurts.
#[test]
fn many_streams_do_not_make_packets_expensive() {
    let config = Config::builder().inbound_streams(65_535).receive_buffer(200_000).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand { streams: (65_535, 10), ..Hand::new(1) }.open(&mut net);
    net.hosts[1].reads = false;
    // SSN 1 of each stream waits for SSN 0; what is beyond the buffer drives out what was kept.
    let packets: Vec<Vec<u8>> = (2..5000)
        .rev()
        .map(|n| {
            let chunk =
                Data { stream: StreamId(n as u16 * 13), ssn: Ssn(1), ..hand.chunk(n, &[1; 100]) };
            hand.packet(hand.peer_tag, &|w| w.data(&chunk).unwrap())
        })
        .collect();
    flood(&mut net, |_| (hand.ip, 0).into(), &packets, packets.len() as u32);
    assert!(net.a(1).is_established());
}

/// RFC 9260 6.2.1: a peer that reneges with every second SACK.
#[test]
fn endless_reneging_is_survived() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand { rwnd: 1 << 24, ..Hand::new(1) }.open(&mut net);
    for i in 0..50 {
        net.send(1, 0, payload(i, 1452)).unwrap();
    }
    for round in 0..500 {
        let gaps: &[(u16, u16)] = if round % 2 == 0 { &[(2, 2)] } else { &[(3, 3)] };
        let sent = hand.sack(&mut net, 0, gaps);
        assert!(sent.len() <= 10);
        net.run(MS(1));
    }
    hand.sack(&mut net, 0, &[]);
    assert!(net.a(1).is_established());
}
