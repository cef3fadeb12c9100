//! Peers and strangers that send more, or further ahead, than they should: replies and buffers are
//! bounded (RFC 9260 12.2).

use std::net::SocketAddr;

use crate::common::*;
use polypath_proto::wire::{Data, PacketWriter};
use polypath_proto::*;

/// Delivers packets to host 1 without letting it send in between; returns the packets that it sends
/// then.
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

/// RFC 9260 5.1.3: INITs leave no state behind, and the number of queued answers is limited.
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

/// Every request from the peer uses memory until it is answered: the amount is limited.
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
        assert!(
            net.hosts[1].endpoint.poll_event().map(|(_, event)| event).is_some() || name != "ERROR"
        );
    }
}

/// One packet gets only a few answers.
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

/// RFC 9260 6.2: TSNs beyond any window are not stored.
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

/// RFC 9260 3.3.4, 6.2: a SACK has as many gap ack blocks as fit its packet.
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

/// Fragments of one byte each, in descending order: the most work for the least data.
#[test]
fn fragments_in_the_worst_order_are_bounded() {
    let config = Config::rfc9260().to_builder().receive_buffer(1 << 20).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand::new(1).open(&mut net);
    // There are gaps between them, so that none can be joined.
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

/// RFC 9260 6.6: messages that wait for one that never arrives are bounded by the buffer.
#[test]
fn skipped_sequence_numbers_are_bounded_by_the_buffer() {
    let config = Config::rfc9260().to_builder().receive_buffer(20_000).build().unwrap();
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

/// RFC 9260 6.5, 6.6: a stream sequence number that was used already is a violation.
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

/// RFC 9260 6.5, 6.9: the same for a message in fragments; the accounting stays consistent.
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

/// RFC 9260 6.9: fragments that cannot belong to one message are a violation.
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
            // A whole message that arrives first is delivered before the contradiction is detected.
            let delivered = (i, order) == (1, [1, 0]) && net.hosts[1].received.len() == 1;
            assert!(violation || delivered, "case {i}, order {order:?}: {closed:?}");
        }
    }
}

/// With every stream in use, a full buffer and a missing chunk, no packet causes an expensive
/// search.
#[test]
fn many_streams_do_not_make_packets_expensive() {
    let config = Config::rfc9260()
        .to_builder()
        .inbound_streams(65_535)
        .receive_buffer(200_000)
        .build()
        .unwrap();
    let mut net = pair(1, config);
    let hand = Hand { streams: (65_535, 10), ..Hand::new(1) }.open(&mut net);
    net.hosts[1].reads = false;
    // SSN 1 of each stream waits for SSN 0; chunks beyond the buffer displace those kept.
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

/// Host 1 with this configuration, and a hand that offers partial reliability.
fn partial_peer(config: ConfigBuilder) -> (Net, Hand) {
    let mut net = pair(1, config.partial_reliability(true).build().unwrap());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.forward_tsn_supported().unwrap());
    hand.learn(&answers[0]);
    assert!(hand.echo(&mut net)[0].has("COOKIE ACK"));
    (net, hand)
}

fn received(net: &Net) -> usize {
    net.a(1).budget().received
}

/// RFC 3758 3.6: an abandoned message leaves fragments behind. Those that can never be completed
/// are not kept, and later chunks do not cause a search for them.
#[test]
fn fragments_of_messages_that_were_given_up_are_not_kept() {
    for shape in [(true, false), (false, false), (false, true)] {
        let (mut net, hand) = partial_peer(Config::rfc9260().to_builder());
        let fifty = |from: u32| {
            hand.packet(hand.peer_tag, &|w| {
                for n in from..from + 50 {
                    let chunk = Data { beginning: shape.0, end: shape.1, ..hand.chunk(n, b"x") };
                    w.data(&chunk).unwrap();
                }
            })
        };
        let packets: Vec<Vec<u8>> = (0..300).map(|i| fifty(1 + 50 * i)).collect();
        flood(&mut net, |_| (hand.ip, 0).into(), &packets, 300);
        assert!(net.a(1).is_established(), "{shape:?}");
        assert!(received(&net) < 2 * 98_304, "{shape:?}: {} bytes", received(&net));
        let before = net.a(1).budget().operations;
        flood(&mut net, |_| (hand.ip, 0).into(), &[fifty(15_001)], 1);
        let operations = net.a(1).budget().operations - before;
        assert!(operations <= 100, "{shape:?}: {operations} operations");
    }
}

/// RFC 9260 6.2: as the receive buffer fills, with bookkeeping too, the window shrinks. The hand
/// sends one-byte messages on every stream, each one sequence number ahead.
#[test]
fn small_messages_that_wait_take_no_more_memory_than_the_buffer() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand { streams: (2048, 10), ..Hand::new(1) }.open(&mut net);
    let packet = |from: u32| {
        hand.packet(hand.peer_tag, &|w| {
            for n in from..from + 50 {
                let (stream, ssn) = (StreamId((n % 2048) as u16), Ssn((n / 2048 + 1) as u16));
                w.data(&Data { stream, ssn, ..hand.chunk(n, b"x") }).unwrap();
            }
        })
    };
    let packets: Vec<Vec<u8>> = (0..1200).map(|i| packet(2 + 50 * i)).collect();
    for train in packets.chunks(50) {
        flood(&mut net, |_| (hand.ip, 0).into(), train, 50);
        assert!(received(&net) <= 2 << 20, "{} bytes", received(&net));
        let budget = net.a(1).budget();
        assert!(budget.memory <= budget.most_memory);
    }
    assert!(net.a(1).is_established());
    assert!(net.a(1).stats().dropped_no_buffer > 0);
    assert_eq!(net.a(1).budget().operations, 0, "nothing was searched for");
    // TSN 1 fills the gap: the chunks kept are acknowledged with it.
    let sacks = hand.data(&mut net, 1);
    assert!(sacks[0].sack().unwrap().cumulative > 3000, "{}", sacks[0].text());
}

/// The application does not read, and the peer respects the window: none of its data is dropped,
/// and all of it arrives once the application reads.
#[test]
fn the_window_closes_before_small_messages_fill_the_memory() {
    for len in [1, 40, 300, 1400] {
        let config = Config::rfc9260().to_builder().receive_buffer(100_000).build().unwrap();
        let mut net = established(1, config);
        net.hosts[1].reads = false;
        let mut sent = 0u64;
        let mut fill = |net: &mut Net| {
            for _ in 0..400 {
                while net.am(0).send_room() > 0 && sent < 6000 {
                    net.send(0, (sent % 3) as u16, payload(sent, len)).unwrap();
                    sent += 1;
                }
                net.run(MS(50));
            }
        };
        fill(&mut net);
        let budget = net.a(1).budget();
        assert!(budget.received <= 200_000, "{len}: {} bytes", budget.received);
        assert!(net.a(0).peer_rwnd() < 3000, "{len}: {}", net.a(0).peer_rwnd());
        // Only probes of the closed window may be dropped, and a few chunks because of an inexact
        // estimate.
        let dropped = net.a(1).stats().dropped_no_buffer;
        assert!(dropped <= 60, "{len}: {dropped} dropped");
        let mut got = net.read(1).len() as u64;
        net.hosts[1].reads = true;
        for _ in 0..50 {
            fill(&mut net);
            got += net.hosts[1].received.drain(..).count() as u64;
            if got == 6000 {
                break;
            }
        }
        assert_eq!(got, 6000, "{len}");
    }
}

/// A peer that does not acknowledge: the send buffer also counts the overhead of small messages.
#[test]
fn small_messages_that_are_not_acknowledged_fill_the_send_buffer() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand { rwnd: 5000, ..Hand::new(1) }.open(&mut net);
    let mut taken = 0;
    while net.a(1).send_room() > 0 {
        let now = net.now;
        net.am(1).send(now, Message::new(StreamId(taken % 10), payload(1, 1))).unwrap();
        taken += 1;
        assert!(taken < 60_000, "no end");
    }
    net.settle();
    let budget = net.a(1).budget();
    assert!(budget.sent <= 2 << 20, "{} bytes", budget.sent);
    assert!(budget.memory <= budget.most_memory);
    assert_eq!(net.send(1, 0, payload(0, 1)), Err(SendError::WouldBlock));
    // The send buffer accepts more once the peer has acknowledged data.
    for round in 0..4000 {
        let highest = net.sent(1).iter().flat_map(|p| p.data()).map(|d| d.n).max().unwrap();
        net.log.clear();
        hand.sack(&mut net, highest, &[]);
        if net.saw(1, &Event::Writable) {
            break;
        }
        assert!(round < 3999);
    }
    net.send(1, 0, payload(0, 1)).unwrap();
}

/// RFC 9260 6.2: one SACK answers a packet. Many SACKs in one packet do not cause a comparison of
/// all outstanding chunks with each of them; nor do SACKs that take back what others acknowledged.
#[test]
fn many_sacks_in_a_packet_cost_as_much_as_one() {
    let config =
        Config::rfc9260().to_builder().initial_cwnd(1000).max_burst(1 << 20).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand { rwnd: 1 << 24, ..Hand::new(1) }.open(&mut net);
    for i in 0..600 {
        net.send(1, 0, payload(i, 1000)).unwrap();
    }
    net.settle();
    let outstanding = net.sent(1).iter().flat_map(|p| p.data()).count() as u16;
    assert!(outstanding > 500, "{outstanding}");
    let cumulative = Tsn(hand.peer_tsn.wrapping_sub(1));
    let packet = |turn: u16| {
        let block = |i| {
            let end = if u16::is_multiple_of(i + turn, 2) { outstanding } else { outstanding - 1 };
            wire::GapBlock { start: end.into(), end: end.into() }
        };
        hand.packet(hand.peer_tag, &|w| {
            for i in 0..50 {
                w.sack(cumulative, 1 << 20, 0, [block(i)].into_iter(), [].into_iter()).unwrap();
            }
        })
    };
    for turn in 0..200 {
        let before = net.a(1).budget().operations;
        flood(&mut net, |_| (hand.ip, 0).into(), &[packet(turn)], 1);
        let operations = net.a(1).budget().operations - before;
        assert!(operations <= 4 * u64::from(outstanding), "{operations} operations");
    }
    assert!(net.a(1).is_established());
}

/// The application reads no events; those that the peer can cause repeatedly are bounded.
#[test]
fn events_that_nobody_takes_are_bounded() {
    let (mut net, hand) = peer();
    let error = hand.packet(hand.peer_tag, &|w| {
        w.error(|c| c.protocol_violation(&[b'x'; 1000])).unwrap();
    });
    flood(&mut net, |_| (hand.ip, 0).into(), &[error], 20_000);
    let events = std::iter::from_fn(|| net.hosts[1].endpoint.poll_event().map(|(_, event)| event));
    let words: Vec<usize> = events
        .map(|event| match event {
            Event::PeerError { cause, causes } => cause.len() + causes.len(),
            _ => 0,
        })
        .collect();
    assert!(words.len() <= 1024 && words.iter().sum::<usize>() <= 200_000, "{}", words.len());
}
