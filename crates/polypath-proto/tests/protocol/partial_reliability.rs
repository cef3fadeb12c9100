//! Partial reliability (RFC 3758, RFC 7496): which messages are abandoned, how the peer is
//! informed, and that other data is not affected.

use crate::common::*;
use polypath_proto::wire::{Chunk, Data, PacketWriter, Parameter};
use polypath_proto::{
    AbandonedCounts, CloseReason, Config, Event, Message, Ppid, Registry, Reliability, StreamId,
    Tsn,
};
use proptest::prelude::*;

fn config() -> Config {
    Config::rfc9260().to_builder().partial_reliability(true).build().unwrap()
}

/// Both sides support it; one reliable message has been acknowledged.
fn agreed() -> Net {
    let mut net = established(1, config());
    net.send(0, 0, payload(0, 100)).unwrap();
    net.run(S(1));
    net
}

fn unreliable(stream: u16, len: usize, reliability: Reliability) -> Message {
    Message {
        reliability,
        context: len as u32,
        ppid: Ppid(7),
        ..Message::new(StreamId(stream), payload(u64::from(stream), len))
    }
}

/// Contexts of the messages that host `h` reported as failed, and whether each had been sent.
fn failed(net: &Net, h: usize) -> Vec<(u32, bool)> {
    let events = net.events(h, |e| matches!(e, Event::SendFailed { .. }));
    let told = |(_, event)| match event {
        Event::SendFailed { context, sent, ppid: Ppid(7), .. } => (context, sent),
        other => panic!("{other:?}"),
    };
    events.into_iter().map(told).collect()
}

fn lengths(net: &Net, h: usize) -> Vec<usize> {
    net.hosts[h].received.iter().map(|r| r.payload.len()).collect()
}

/// RFC 7496 3.1, like UDP; RFC 3758 3.5, 3.6. Messages queued behind the skipped one are delivered.
#[test]
fn a_message_that_may_not_be_sent_again_is_skipped() {
    let mut net = agreed();
    let mark = net.log.len();
    net.nth("DATA 2", &[1], Fate::Drop);
    net.send_message(0, unreliable(3, 500, Reliability::Retransmissions(0))).unwrap();
    for n in 1..6 {
        net.send(0, 3, payload(n, 1000 + n as usize)).unwrap();
    }
    net.run(S(3));
    assert_eq!(failed(&net, 0), [(500, true)]);
    assert_eq!(lengths(&net, 1), [100, 1001, 1002, 1003, 1004, 1005]);
    assert!(!net.sent_since(0, mark).iter().skip(1).any(|p| p.has("DATA 2")), "{}", net.tail(20));
    assert_eq!(net.sent_with(0, "FORWARD TSN")[0].text(), "FORWARD TSN 2 [3:0]");
    assert_eq!((net.a(0).buffered(), net.a(0).stats().messages_sent), (0, 7));
    let counts = net.a(0).abandoned(None);
    assert_eq!(counts.retransmissions, AbandonedCounts { unsent: 0, sent: 1 });
    assert_eq!(net.a(0).abandoned(Some(StreamId(3))), counts);
    assert_eq!(net.a(0).abandoned(Some(StreamId(4))).total(), AbandonedCounts::default());
    // The window is cut as for any loss (F5).
    assert!(net.path(0, 0).window.ssthresh < 100_000);
    net.shutdown(0);
    net.run(S(1));
    assert_eq!(net.closed(0), Some(CloseReason::Graceful));
}

/// The peer does not support it: every message is reliable.
#[test]
fn without_the_peer_everything_is_reliable() {
    let mut net = Setup { configs: [config(), Config::rfc9260()], ..Setup::default() }.build();
    net.establish();
    net.nth("DATA 1", &[1, 2], Fate::Drop);
    net.send_message(0, unreliable(0, 500, Reliability::Retransmissions(0))).unwrap();
    net.send_message(0, unreliable(0, 501, Reliability::Lifetime(MS(1)))).unwrap();
    net.run(S(10));
    assert_eq!((lengths(&net, 1), failed(&net, 0)), (vec![500, 501], vec![]));
    // RFC 3758 3.3.2: an endpoint that does not use it reports the parameter as unrecognized.
    let init_ack = net.sent_with(1, "INIT ACK").remove(0);
    let Chunk::InitAck(init) = init_ack.parsed()[0] else { panic!("{}", init_ack.text()) };
    let reported = Parameter::UnrecognizedParameter(&[0xc0, 0, 0, 4]);
    assert!(init.parameters.iter().any(|p| p == Ok(reported)));
}

/// RFC 3758 4.1: a message that waits too long is not sent at all (TR3). A timer of its own
/// abandons it, which frees its send buffer.
#[test]
fn what_waits_too_long_is_never_sent() {
    let mut net = agreed();
    net.cuts.insert(0);
    for n in 0..20 {
        net.send(0, 0, payload(n, 1452)).unwrap();
    }
    let left = net.a(0).send_room();
    net.send_message(0, unreliable(1, 700, Reliability::Lifetime(MS(300)))).unwrap();
    let at = net.now.as_nanos() / 1_000_000;
    net.run(MS(400));
    let told = net.events(0, |e| matches!(e, Event::SendFailed { .. }));
    assert_eq!((told[0].0, failed(&net, 0)), (at + 300, vec![(700, false)]));
    assert_eq!(net.a(0).send_room(), left);
    assert_eq!(net.a(0).abandoned(None).lifetime, AbandonedCounts { unsent: 1, sent: 0 });
    net.cuts.clear();
    net.run(S(20));
    assert_eq!(lengths(&net, 1).len(), 21);
    assert_eq!(net.sent_with(0, "FORWARD TSN").len(), 0, "no TSN was used up");
}

/// TR4: no retransmission after the lifetime; all fragments are abandoned at once (A3), including
/// those never sent, and the stream continues although the FORWARD TSN is lost twice.
#[test]
fn a_long_message_is_given_up_in_its_midst() {
    let mut net = agreed();
    net.drop_once(&["DATA 3"]);
    net.nth("FORWARD TSN", &[1, 2], Fate::Drop);
    let end = net.now + MS(60);
    // Slow start: 4, 8, 16 packets a round trip.
    net.send_message(0, unreliable(2, 200_000, Reliability::Lifetime(MS(60)))).unwrap();
    net.send(0, 2, payload(9, 10)).unwrap();
    net.run_until(end + MS(1));
    assert_eq!(failed(&net, 0), [(200_000, true)]);
    net.run(S(10));
    assert_eq!(lengths(&net, 1), [100, 10]);
    assert!(net.sent_with(0, "FORWARD TSN").len() >= 3);
    assert_eq!((net.a(0).buffered(), net.a(1).stats().messages_received), (0, 2));
    net.shutdown(1);
    net.run(S(1));
    assert_eq!(net.closed(0), Some(CloseReason::Graceful));
}

/// All fragments sent have arrived; the others are never sent. The receiver still has to be
/// informed.
#[test]
fn the_rest_of_a_message_that_arrived_in_part() {
    let small = config().to_builder().receive_buffer(8000).build().unwrap();
    let mut net = Setup { configs: [config(), small], ..Setup::default() }.build();
    net.establish();
    net.hosts[1].reads = false;
    net.send_message(0, unreliable(0, 30_000, Reliability::Lifetime(S(2)))).unwrap();
    net.send(0, 0, payload(1, 20)).unwrap();
    net.run(S(1));
    let before = net.read(1);
    assert!(before.iter().all(|r| !r.end && !r.aborted) && before[0].beginning);
    net.run(S(10));
    assert_eq!(failed(&net, 0), [(30_000, true)]);
    let mut after = Vec::new();
    for _ in 0..20 {
        after.extend(net.read(1));
        net.run(S(1));
    }
    // RFC 6458 6.1.7: the application has read a part of it, and an aborted piece reports its end.
    let aborted = after.iter().position(|r| r.aborted).expect("a piece that says so");
    assert!(after[aborted].payload.is_empty() && !after[aborted].end && !after[aborted].beginning);
    assert_eq!(after[aborted + 1..].iter().map(|r| r.payload.len()).collect::<Vec<_>>(), [20]);
}

/// RFC 7496 3.2: a smaller number is a higher priority; messages of equal or higher priority and
/// reliable ones are kept.
#[test]
fn what_is_less_important_gives_way() {
    let config = config().to_builder().send_buffer(10_000).build().unwrap();
    let mut net = established(1, config);
    net.cuts.insert(0);
    let send = |net: &mut Net, len, reliability| {
        net.send_message(0, unreliable(0, len, reliability)).is_ok()
    };
    // At least a part of each of these has been sent by the time the buffer is full.
    for len in [2000, 2001, 2002] {
        assert!(send(&mut net, len, Reliability::Priority(5)));
    }
    assert!(send(&mut net, 3997, Reliability::Reliable));
    assert_eq!(net.a(0).send_room(), 0);
    assert!(!send(&mut net, 1000, Reliability::Priority(5)), "no more important than the others");
    assert!(send(&mut net, 1500, Reliability::Priority(4)));
    assert_eq!(failed(&net, 0), [(2002, true)], "what had not left as a whole");
    assert!(send(&mut net, 4000, Reliability::Priority(1)));
    assert_eq!(failed(&net, 0).len(), 3);
    let priority = net.a(0).abandoned(None).priority;
    assert_eq!(priority.sent + priority.unsent, 3);
    net.cuts.clear();
    net.run(S(20));
    let mut got = lengths(&net, 1);
    got.sort_unstable();
    assert_eq!(got, [2001, 3997, 4000], "what had not been sent went first");
}

/// No data is in flight and the peer is unreachable: unanswered FORWARD TSNs count as errors, too.
#[test]
fn a_peer_that_answers_no_forward_tsn_is_gone() {
    let config = config().to_builder().association_max_retrans(3).build().unwrap();
    let mut net = established(1, config);
    net.cuts.insert(0);
    net.send_message(0, unreliable(0, 100, Reliability::Retransmissions(0))).unwrap();
    net.run(S(200));
    assert_eq!(failed(&net, 0), [(100, true)]);
    assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
}

/// A hand that may abandon messages it sends to host 1, whose receive buffer is small.
fn giver() -> (Net, Hand) {
    let config = config().to_builder().receive_buffer(6000).build().unwrap();
    let mut net = Setup { configs: [config.clone(), config], ..Setup::default() }.build();
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.forward_tsn_supported().unwrap());
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    (net, hand)
}

/// Sends a FORWARD TSN up to the hand's `n`-th chunk; returns the answers.
fn forward(net: &mut Net, hand: &Hand, n: u32, streams: &[(u16, u16)]) -> Vec<Sent> {
    hand.say(net, &|w: &mut PacketWriter<'_>| {
        let streams = streams.iter().map(|&(stream, ssn)| polypath_proto::wire::SkippedStream {
            stream: StreamId(stream),
            ssn: polypath_proto::Ssn(ssn),
        });
        w.forward_tsn(Tsn(hand.tsn.wrapping_add(n).wrapping_sub(1)), streams).unwrap();
    })
}

/// Fragments beyond the skipped TSN whose message can no longer be complete use no receive buffer:
/// neither those already received nor those that arrive late.
#[test]
fn what_is_left_of_a_skipped_message_takes_no_room() {
    for late in [false, true] {
        let (mut net, hand) = giver();
        hand.data(&mut net, 1);
        // The second message consists of chunks 2 to 5, and chunk 2 is lost.
        let payload = [7; 1400];
        let fragment = |n: u32| Data {
            beginning: false,
            end: n == 5,
            ssn: polypath_proto::Ssn(1),
            ..hand.chunk(n, &payload)
        };
        let say = |net: &mut Net, n| hand.say(net, &|w| w.data(&fragment(n)).unwrap());
        if late {
            say(&mut net, 4);
            say(&mut net, 5);
            forward(&mut net, &hand, 2, &[(0, 1)]);
            say(&mut net, 3);
        } else {
            (3..6).for_each(|n| drop(say(&mut net, n)));
            forward(&mut net, &hand, 2, &[(0, 1)]);
        }
        let next = Data { ssn: polypath_proto::Ssn(2), ..hand.chunk(6, b"next") };
        hand.say(&mut net, &|w| w.data(&next).unwrap());
        assert_eq!(net.hosts[1].received.len(), 2);
        let sack = hand.data(&mut net, 6)[0].sack().unwrap();
        assert_eq!((sack.cumulative, sack.rwnd), (6, 6000), "{late}\n{}", net.tail(9));
    }
}

/// FORWARD TSNs built by hand: repeated, outdated, over a gap, for streams that do not exist.
#[test]
fn a_forward_tsn_is_answered_as_data_would_be() {
    let (mut net, hand) = giver();
    let forward = |net: &mut Net, n, streams: &[_]| forward(net, &hand, n, streams);
    hand.data(&mut net, 1);
    // Messages 2 and 3 are missing; 4 waits for them.
    let third = Data { ssn: polypath_proto::Ssn(3), ..hand.chunk(4, b"waits") };
    assert!(hand.say(&mut net, &|w| w.data(&third).unwrap())[0].has("SACK 1 [3-3]"));
    assert_eq!(net.hosts[1].received.len(), 1);
    let none = forward(&mut net, 3, &[(0, 2), (0xffff, 9)]);
    assert_eq!((none.len(), net.hosts[1].received.len()), (0, 2), "delayed, as for DATA");
    // Outdated FORWARD TSNs are acknowledged at once: the SACK may have been lost.
    assert!(forward(&mut net, 3, &[(0, 2)])[0].has("SACK 4"));
    assert!(forward(&mut net, 1, &[])[0].has("SACK 4"));
    // A skipped chunk that arrives after all is a duplicate.
    let late = Data { ssn: polypath_proto::Ssn(1), ..hand.chunk(2, b"late") };
    let sack = hand.say(&mut net, &|w| w.data(&late).unwrap())[0].sack().unwrap();
    assert_eq!((sack.cumulative, sack.duplicates), (4, vec![2]));
    assert_eq!(net.hosts[1].received.len(), 2);
    // The end of a message whose beginning was skipped, and a message that never ends.
    for chunk in [
        Data { beginning: false, ..hand.chunk(6, b"end") },
        Data { end: false, ..hand.chunk(7, b"beginning") },
        Data { ssn: polypath_proto::Ssn(5), ..hand.chunk(8, b"whole") },
    ] {
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    forward(&mut net, 5, &[(0, 4)]);
    forward(&mut net, 7, &[(0, 4)]);
    assert_eq!(net.hosts[1].received.last().map(|r| &r.payload[..]), Some(&b"whole"[..]));
    // Against 3.2, some senders list the SSN that an unordered message would have had: the ordered
    // message with that SSN is still delivered.
    forward(&mut net, 9, &[(0, 6)]);
    let next = Data { ssn: polypath_proto::Ssn(6), ..hand.chunk(10, b"next") };
    hand.say(&mut net, &|w| w.data(&next).unwrap());
    assert_eq!(net.hosts[1].received.last().map(|r| &r.payload[..]), Some(&b"next"[..]));
    assert!(net.a(1).is_established());
}

/// Unless both sides support it, it is reported like any unknown chunk (RFC 3758 3.3.1).
#[test]
fn a_forward_tsn_out_of_the_blue_is_reported() {
    for offered in [false, true] {
        let config = if offered { config() } else { Config::rfc9260() };
        let mut net = Setup { configs: [config.clone(), config], ..Setup::default() }.build();
        let hand = Hand::new(1).open(&mut net);
        let answers =
            hand.say(&mut net, &|w| w.forward_tsn(Tsn(hand.tsn), [].into_iter()).unwrap());
        assert_eq!(answers[0].causes(), [6]);
        // Nothing was skipped.
        assert!(hand.data(&mut net, 1)[0].has("SACK 1"));
        assert_eq!(net.hosts[1].received.len(), 1);
    }
}

/// A message of the property test: stream, unordered, length, reliability.
type Sending = (u16, bool, usize, Reliability);

fn sending() -> impl Strategy<Value = Sending> {
    let reliability = prop_oneof![
        3 => Just(Reliability::Reliable),
        2 => (0u64..400).prop_map(|ms| Reliability::Lifetime(MS(ms))),
        2 => (0u32..3).prop_map(Reliability::Retransmissions),
        2 => (0u32..4).prop_map(Reliability::Priority),
    ];
    let len = prop_oneof![2 => 1usize..200, 2 => 1usize..6000, 1 => 6000usize..20_000];
    (0u16..4, prop::bool::weighted(0.3), len, reliability)
}

/// Sends all messages over two lossy paths; returns the numbers of the delivered messages, and of
/// the reported ones with `sent`.
fn carry(net: &mut Net, messages: &[Sending]) -> (Vec<u32>, Vec<(u32, bool)>) {
    let mut next = 0;
    for steps in 0.. {
        assert!(steps < 20_000, "stuck\n{}", net.tail(40));
        while let Some(&(stream, unordered, len, reliability)) = messages.get(next) {
            let plain = Message::new(StreamId(stream), payload(next as u64, len));
            let number = Ppid(next as u32);
            let message = Message { unordered, reliability, ppid: number, ..plain };
            if net.send_message(0, message).is_err() {
                break;
            }
            next += 1;
        }
        if next == messages.len() && net.a(0).buffered() == 0 {
            break;
        }
        net.run(MS(20));
    }
    // With a quarter of the packets lost, all seven transmissions that T5 leaves time for (RFC 9260
    // 9.2) fail in one of some thousand cases.
    net.no_filters();
    net.shutdown(0);
    net.run(S(3000));
    let events = net.events(0, |e| matches!(e, Event::SendFailed { .. }));
    let reported = events.into_iter().map(|(_, event)| match event {
        Event::SendFailed { ppid, sent, .. } => (ppid.0, sent),
        other => panic!("{other:?}"),
    });
    let mut delivered = Vec::new();
    let mut parts: Vec<(u32, Vec<u8>)> = Vec::new();
    for piece in &net.hosts[1].received {
        let at = parts.iter().position(|p| p.0 == piece.ppid.0);
        assert_eq!(at.is_none(), piece.beginning, "{piece:?}");
        if piece.aborted {
            parts.remove(at.expect("it has begun"));
            continue;
        }
        let at = at.unwrap_or_else(|| {
            parts.push((piece.ppid.0, Vec::new()));
            parts.len() - 1
        });
        parts[at].1.extend(&piece.payload);
        if piece.end {
            let (number, bytes) = parts.remove(at);
            assert!(bytes == payload(number.into(), messages[number as usize].2), "content");
            delivered.push(number);
        }
    }
    assert!(parts.is_empty(), "a message never ends: {:?}", parts[0].0);
    (delivered, reported.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Every message is delivered once or reported; reliable messages are delivered; those reported
    /// as unsent are not; ordered streams are in order; the association closes gracefully.
    #[test]
    fn delivered_or_reported(
        seed in any::<u64>(),
        loss in 0u64..25,
        disorder in 0u64..20,
        interleaving in any::<bool>(),
        scheduler in 0..Registry::standard().stream_scheduler().len(),
        buffers in prop_oneof![Just((20_000, 20_000)), Just((1 << 20, 1 << 20)), Just((4000, 9000))],
        messages in prop::collection::vec(sending(), 1..60),
    ) {
        let config = config()
            .to_builder()
            .interleaving(interleaving)
            .stream_scheduler(Registry::standard().stream_scheduler()[scheduler])
            .association_max_retrans(1000)
            .path_max_retrans(1000)
            .rto_initial(MS(200))
            .rto_min(MS(50))
            .rto_max(MS(400))
            .receive_buffer(buffers.0)
            .send_buffer(buffers.1)
            .build()
            .unwrap();
        let mut net = Setup { paths: 2, seed: seed >> 8, configs: [config.clone(), config], ..Setup::default() }.build();
        net.establish();
        let mut dice = polypath_proto::Rng::new(&polypath_proto::Seed::from_u64(seed));
        net.filter(move |_| {
            if dice.below(100) < loss {
                Fate::Drop
            } else if dice.below(100) < disorder {
                Fate::Late(MS(dice.below(100)))
            } else if dice.below(100) < disorder / 4 {
                Fate::Twice
            } else {
                Fate::Pass
            }
        });
        let (delivered, reported) = carry(&mut net, &messages);
        let mut at = vec![None; messages.len()];
        for (place, number) in delivered.iter().enumerate() {
            prop_assert_eq!(at[*number as usize].replace(place), None, "twice");
        }
        for (number, message) in messages.iter().enumerate() {
            let told = reported.iter().filter(|r| r.0 as usize == number).collect::<Vec<_>>();
            prop_assert!(told.len() <= 1, "{} was reported twice", number);
            prop_assert!(at[number].is_some() || told.len() == 1, "{} vanished", number);
            prop_assert!(told.is_empty() || message.3 != Reliability::Reliable);
            prop_assert!(at[number].is_none() || told.iter().all(|r| r.1), "{} was not sent", number);
        }
        for stream in 0..4 {
            let ordered = |n: &&u32| messages[**n as usize].0 == stream && !messages[**n as usize].1;
            prop_assert!(delivered.iter().filter(ordered).is_sorted());
        }
        prop_assert_eq!(net.closed(0), Some(CloseReason::Graceful));
        prop_assert_eq!(net.closed(1), Some(CloseReason::Graceful));
    }
}

/// A message whose lifetime ends is abandoned instead of sent. This is reported although the
/// application has already read all earlier events.
#[test]
fn a_message_given_up_while_packets_are_written_is_reported() {
    let mut net = agreed();
    let lifetime = Reliability::Lifetime(std::time::Duration::from_millis(10));
    let now = net.now;
    net.am(0).send(now, unreliable(3, 500, lifetime)).unwrap();
    let endpoint = &mut net.hosts[0].endpoint;
    while endpoint.poll_event().is_some() {}
    assert_eq!(endpoint.poll_transmit(now + MS(11), &mut [0; 1500]), None);
    let event = endpoint.poll_event().map(|(_, event)| event);
    assert!(
        matches!(event, Some(Event::SendFailed { context: 500, sent: false, .. })),
        "{event:?}"
    );
}
