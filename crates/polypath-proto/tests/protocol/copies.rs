//! Messages that are to arrive as early as possible, and copies of chunks in flight.

use crate::common::*;
use polypath_proto::*;

/// Two paths with round-trip times of 20 and 40 ms, established and measured.
fn open(config: ConfigBuilder) -> Net {
    let config = config.build().unwrap();
    let mut net = pair(2, config);
    net.delays.extend([((0, 1), MS(20)), ((1, 1), MS(20))]);
    net.establish();
    net.drive_until(S(5), |net| net.all_active());
    // The first data measures the round-trip times.
    net.send_message(0, message(100, Some(Delivery::Standard))).unwrap();
    net.run(S(2));
    net
}

fn modern() -> ConfigBuilder {
    Config::modern().to_builder()
}

fn message(len: usize, delivery: Option<Delivery>) -> Message {
    Message { delivery, unordered: true, ..Message::new(StreamId(1), payload(9, len)) }
}

/// TSN and network of each DATA chunk that host 0 has sent since `mark`.
fn sent(net: &Net, mark: usize) -> Vec<(u32, u8)> {
    let packets = net.sent_since(0, mark);
    packets.iter().flat_map(|p| p.data().into_iter().map(|d| (d.n, p.net()))).collect()
}

fn counts(net: &Net, path: u8) -> PathStats {
    net.a(0).path_stats(PathId(path)).unwrap()
}

/// The same chunk leaves on the other path, and again on the first in a packet of its own.
#[test]
fn a_redundant_message_is_sent_on_both_paths() {
    let mut net = open(modern());
    let mark = net.log.len();
    let before = net.am(1).stats().messages_received;
    net.send_message(0, message(1000, Some(Delivery::Redundant))).unwrap();
    net.run(MS(15));
    let chunks = sent(&net, mark);
    assert_eq!(chunks.iter().map(|c| c.1).collect::<Vec<_>>(), [0, 1, 0], "{}", net.tail(10));
    assert!(chunks.iter().all(|c| c.0 == chunks[0].0));
    net.run(S(1));
    assert_eq!(net.a(1).stats().messages_received, before + 1);
    assert_eq!(net.a(1).stats().duplicates_received, 2);
    assert_eq!([0, 1].map(|path| counts(&net, path).copies_sent), [1, 1]);
    assert_eq!(net.a(0).buffered(), 0);
    // Other messages have no copies.
    net.send_message(0, message(1000, None)).unwrap();
    net.run(S(1));
    assert_eq!([0, 1].map(|path| counts(&net, path).copies_sent), [1, 1]);
}

/// A message, its stream and the association, in this order, decide how it is sent.
#[test]
fn the_choice_of_a_message_precedes_that_of_its_stream() {
    let mut net = open(modern().redundant_copies(1));
    let copies = |net: &mut Net, message: Message| {
        let copied = |net: &Net| counts(net, 0).copies_sent + counts(net, 1).copies_sent;
        let before = copied(net);
        net.send_message(0, message).unwrap();
        net.run(S(1));
        copied(net) - before
    };
    let on =
        |stream, delivery| Message { delivery, ..Message::new(StreamId(stream), payload(1, 500)) };
    net.am(0).set_delivery(Some(StreamId(1)), Delivery::Redundant).unwrap();
    assert_eq!([0, 1].map(|stream| copies(&mut net, on(stream, None))), [0, 1]);
    assert_eq!(copies(&mut net, on(1, Some(Delivery::Standard))), 0);
    net.am(0).set_delivery(None, Delivery::Redundant).unwrap();
    net.am(0).set_delivery(Some(StreamId(1)), Delivery::Earliest).unwrap();
    assert_eq!([0, 1].map(|stream| copies(&mut net, on(stream, None))), [1, 0]);
    let none = net.am(0).set_delivery(Some(StreamId(64)), Delivery::Redundant);
    assert_eq!(none, Err(SendError::NoSuchStream { stream: StreamId(64), streams: 64 }));
}

/// All messages over the path that delivers first, although the scheduler would fill both.
#[test]
fn an_urgent_message_takes_the_path_that_delivers_first() {
    let mut net = open(modern().delivery(Delivery::Earliest));
    let mark = net.log.len();
    for _ in 0..20 {
        net.send_message(0, message(1000, None)).unwrap();
        net.run(MS(20));
    }
    assert!(sent(&net, mark).iter().all(|c| c.1 == 0), "{:?}", sent(&net, mark));
    // Each is acknowledged at once (RFC 7053).
    let asks = |chunk: &wire::Chunk<'_>| !matches!(chunk, wire::Chunk::Data(d) if !d.immediate);
    assert!(net.sent_since(0, mark).iter().all(|p| p.parsed().iter().all(asks)));
}

/// A message whose acknowledgement is late is sent again before a timer or a later message shows
/// its loss.
#[test]
fn an_overdue_message_gets_a_copy() {
    let mut net = open(modern().delivery(Delivery::Earliest));
    let (mark, start) = (net.log.len(), net.now);
    net.nth("DATA", &[1], Fate::Drop);
    net.send_message(0, message(1000, None)).unwrap();
    net.run(S(1));
    let data = net.sent_since(0, mark).into_iter().filter(|p| p.has("DATA"));
    let times: Vec<u64> = data.map(|p| p.at.since(start).as_millis() as u64).collect();
    assert_eq!(times.len(), 2, "{}", net.tail(10));
    // A round trip of 20 ms, and a margin.
    assert!((22..=26).contains(&times[1]), "{times:?}");
    assert_eq!(counts(&net, 0).copies_sent + counts(&net, 1).copies_sent, 1);
    assert_eq!(counts(&net, 0).fast_retransmissions + counts(&net, 0).timeouts, 0);
}

/// Karn's rule (RFC 9260 6.3.1 C5): nothing shows which transmission was acknowledged.
#[test]
fn copies_measure_no_round_trip() {
    let mut net = open(modern().delivery(Delivery::Redundant));
    let before = [0, 1].map(|path| counts(&net, path).rtt_samples);
    let heartbeats = [0, 1].map(|path| counts(&net, path).heartbeats_acked);
    for _ in 0..150 {
        net.send_message(0, message(1000, None)).unwrap();
        net.run(MS(20));
    }
    for path in [0, 1] {
        let (samples, answers) =
            (counts(&net, path).rtt_samples, counts(&net, path).heartbeats_acked);
        let (at, beats) = (usize::from(path), answers - heartbeats[usize::from(path)]);
        assert_eq!(samples - before[at], beats, "path {path}: HEARTBEATs alone");
        // One in each second.
        assert!((2..=4).contains(&beats), "path {path}: {beats}");
    }
    assert_eq!(net.path(0, 0).state, PathState::Active);
}

/// Duplicates that copies cause undo no recovery, and widen no reordering window (RFC 8985 6.2).
#[test]
fn duplicates_of_copies_are_no_sign_of_spurious_retransmissions() {
    let mut net = open(modern().delivery(Delivery::Redundant).redundant_copies(1));
    // Both transmissions of a message are lost: its retransmission is not spurious, although
    // duplicates of other messages are reported.
    let mut lost = 0;
    net.filter(move |p| {
        let first = p.has("DATA") && p.from.ip() == v4(p.net(), 0) && lost < 2;
        lost += u32::from(first);
        if first { Fate::Drop } else { Fate::Pass }
    });
    for _ in 0..20 {
        net.send_message(0, message(1000, None)).unwrap();
        net.run(MS(10));
    }
    net.run(S(1));
    let all = [0, 1].map(|path| counts(&net, path));
    assert_eq!(all.map(|c| c.recoveries_undone), [0, 0]);
    assert!(net.a(1).stats().duplicates_received >= 15);
    assert_eq!(net.a(1).stats().messages_received, 21);
}

/// Copies beyond the budget are not sent, and the messages themselves are.
#[test]
fn copies_keep_their_budget() {
    let config = modern().delivery(Delivery::Redundant).copy_rate(10_000).copy_share(0);
    let mut net = open(config);
    let start = counts(&net, 0).copy_bytes_sent + counts(&net, 1).copy_bytes_sent;
    for _ in 0..400 {
        net.send_message(0, message(1000, None)).unwrap();
        net.run(MS(10));
    }
    net.run(S(1));
    assert_eq!(net.a(0).buffered(), 0);
    let copied = counts(&net, 0).copy_bytes_sent + counts(&net, 1).copy_bytes_sent - start;
    // What was saved, and four seconds.
    assert!((100_000..=75_536 + 50_000).contains(&copied), "{copied}");
}

/// A path that has failed is not kept active by acknowledgements of copies.
#[test]
fn copies_hide_no_failure() {
    let mut net = open(modern().delivery(Delivery::Redundant).redundant_copies(1));
    net.cuts.insert(0);
    let before = net.a(1).stats().messages_received;
    let start = net.now;
    for _ in 0..300 {
        net.send_message(0, message(1000, None)).unwrap();
        net.run(MS(20));
        let (sent, arrived) = (net.a(0).stats().messages_sent, net.a(1).stats().messages_received);
        assert!(
            sent <= arrived + 3,
            "{sent} sent, {arrived} arrived at {}",
            net.now.since(start).as_millis()
        );
    }
    net.run(S(1));
    assert_eq!(net.a(1).stats().messages_received, before + 300);
    assert_ne!(net.path(0, 0).state, PathState::Active);
}

/// One that costs money carries data only while no other works, apart from its budget.
#[test]
fn a_metered_path_is_spared() {
    let mut net = open(modern());
    let bytes = |net: &Net, path| counts(net, path).bytes_sent;
    let spend = |net: &mut Net| {
        let before = bytes(net, 1);
        for _ in 0..80 {
            net.send(0, 0, payload(1, 10_000)).unwrap();
        }
        net.run(S(2));
        assert_eq!(net.a(0).buffered(), 0);
        bytes(net, 1) - before
    };
    let now = net.now;
    net.am(0).set_preference(now, PathId(1), Preference::metered(0)).unwrap();
    assert!(net.path(0, 1).held && net.path(0, 1).state == PathState::Active);
    // HEARTBEATs at most.
    assert!(spend(&mut net) < 2_000);
    // The other path fails.
    net.cuts.insert(0);
    assert!(spend(&mut net) >= 800_000);
    assert!(!net.path(0, 1).held);
    // It works again.
    net.cuts.clear();
    net.drive_until(S(5), |net| net.states(0)[0] == PathState::Active);
    assert!(spend(&mut net) < 2_000);
    // The shorter path is metered instead, with a budget of 100 kB.
    let (now, budget) = (net.now, bytes(&net, 0) + 100_000);
    net.am(0).set_preference(now, PathId(0), Preference::metered(budget)).unwrap();
    net.am(0).set_preference(now, PathId(1), Preference::NORMAL).unwrap();
    for _ in 0..40 {
        net.send(0, 0, payload(4, 10_000)).unwrap();
        net.run(MS(50));
    }
    let spent = bytes(&net, 0);
    // One buffer of packets may exceed it.
    assert!((budget..budget + 70_000).contains(&spent), "{spent} of {budget}");
    let none = net.am(0).set_preference(now, PathId(9), Preference::NORMAL);
    assert_eq!(none, Err(PathError::NoSuchPath(PathId(9))));
}
