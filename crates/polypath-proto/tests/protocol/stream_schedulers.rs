//! The order in which the messages of streams are sent (RFC 8260 3), with and without interleaving.

use crate::common::*;
use polypath_proto::policy::{Entry, find};
use polypath_proto::policy::{StreamScheduler, stream_scheduler};
use polypath_proto::{Config, Message, Registry, SendError, StreamId};

/// Queues these messages before the association is established. Returns what is sent then: (stream,
/// payload bytes) for each chunk of each packet.
fn leaves(
    scheduler: &str,
    interleaving: bool,
    values: &[(u16, u16)],
    messages: &[(u16, usize)],
) -> Vec<Vec<(u16, usize)>> {
    let answer: &'static Entry<dyn StreamScheduler> =
        find(Registry::standard().stream_scheduler(), scheduler).expect("a scheduler");
    let config = Config::rfc9260()
        .to_builder()
        .interleaving(interleaving)
        .stream_scheduler(answer)
        .initial_cwnd(100)
        .max_burst(100)
        .build()
        .unwrap();
    let mut net = pair(1, config);
    net.connect(0);
    let now = net.now;
    for &(stream, value) in values {
        net.am(0).set_stream_value(StreamId(stream), value).unwrap();
        assert_eq!(net.a(0).stream_value(StreamId(stream)), value);
    }
    for (n, &(stream, len)) in messages.iter().enumerate() {
        net.am(0).send(now, Message::new(StreamId(stream), payload(n as u64, len))).unwrap();
    }
    net.run(S(2));
    assert_eq!(net.hosts[1].received.len(), messages.len());
    let data = net
        .sent(0)
        .into_iter()
        .map(|p| p.data().into_iter().map(|d| (d.stream, d.len)).collect::<Vec<_>>());
    data.filter(|chunks| !chunks.is_empty()).collect()
}

fn streams(packets: &[Vec<(u16, usize)>]) -> Vec<u16> {
    packets.iter().flatten().map(|(stream, _)| *stream).collect()
}

/// Three streams with four short messages each, one stream after the other.
fn short() -> Vec<(u16, usize)> {
    (0..12).map(|n| (n / 4, 100)).collect()
}

#[test]
fn first_come_first_served() {
    for interleaving in [false, true] {
        let packets = leaves("first-come", interleaving, &[], &short());
        assert_eq!(streams(&packets), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    }
}

#[test]
fn in_turn() {
    for interleaving in [false, true] {
        let packets = leaves("round-robin", interleaving, &[], &short());
        assert_eq!(streams(&packets), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }
}

/// RFC 8260 3.3: "only switches streams when starting to fill a new packet", and never bundles two
/// streams.
#[test]
fn in_turn_by_packets() {
    let packets = leaves("round-robin-packet", false, &[], &short());
    let whole = |stream| vec![(stream, 100); 4];
    assert_eq!(packets, [whole(0), whole(1), whole(2)]);
    let many: Vec<(u16, usize)> = (0..40).map(|n| (n % 2, 100)).collect();
    let packets = leaves("round-robin-packet", true, &[], &many);
    assert!(packets.iter().all(|chunks| chunks.iter().all(|c| c.0 == chunks[0].0)));
    assert_eq!(packets.iter().map(|chunks| chunks[0].0).collect::<Vec<_>>(), [0, 1, 0, 1]);
}

#[test]
fn the_most_important_first() {
    let packets = leaves("priority", false, &[(0, 9), (1, 2), (2, 2)], &short());
    assert_eq!(streams(&packets), [1, 2, 1, 2, 1, 2, 1, 2, 0, 0, 0, 0]);
}

/// RFC 8260 3.5: equal shares of bytes, not of messages.
#[test]
fn equal_shares_of_the_capacity() {
    let messages: Vec<(u16, usize)> =
        (0..40).map(|n| if n < 8 { (0, 1000) } else { (1, 250) }).collect();
    let packets = leaves("fair-capacity", false, &[], &messages);
    let order = streams(&packets);
    for first in (5..40).step_by(5) {
        let of = |stream| order[..first].iter().filter(|s| **s == stream).count();
        assert!(of(0).abs_diff(first / 5) <= 1 && of(1) > 0, "{order:?}");
    }
}

/// RFC 8260 3.6: in proportion to the weights, as long as all streams have data queued.
#[test]
fn weighted_shares() {
    let messages: Vec<(u16, usize)> = (0..40).map(|n| (n / 20, 500)).collect();
    let packets = leaves("weighted-fair-queueing", false, &[(0, 3), (1, 1)], &messages);
    let order = streams(&packets);
    let of_first = order[..24].iter().filter(|s| **s == 0).count();
    assert!((17..=19).contains(&of_first), "{order:?}");
}

/// A message that has begun is sent to its end if chunks cannot be interleaved (RFC 8260 3).
#[test]
fn a_long_message_holds_up_the_others_without_interleaving_only() {
    let messages = [(0, 10_000), (1, 200), (1, 201)];
    let packets = leaves("round-robin", false, &[], &messages);
    let order = streams(&packets);
    assert_eq!(order[order.len() - 2..], [1, 1], "{order:?}");
    let packets = leaves("round-robin", true, &[], &messages);
    assert_eq!(streams(&packets)[..4], [0, 1, 0, 1]);
    // A message of higher priority overtakes one that has begun.
    let packets = leaves("priority", true, &[(0, 1), (1, 0)], &messages);
    assert_eq!(streams(&packets)[..3], [1, 1, 0]);
}

#[test]
fn a_scheduler_can_be_changed_while_messages_wait() {
    let mut net = established(1, Config::rfc9260());
    net.cuts.insert(0);
    for n in 0..60 {
        net.send(0, n / 30, payload(n.into(), 1000)).unwrap();
    }
    net.am(0).set_stream_scheduler(&stream_scheduler::PRIORITY);
    net.am(0).set_stream_value(StreamId(0), 1).unwrap();
    net.cuts.clear();
    let mark = net.log.len();
    let before = net.sent(0).iter().flat_map(Sent::data).map(|d| d.n).max().unwrap();
    net.run(S(20));
    let new: Vec<u16> = net
        .sent_since(0, mark)
        .iter()
        .flat_map(Sent::data)
        .filter(|d| d.n > before)
        .map(|d| d.stream)
        .collect();
    assert_eq!(new.iter().take_while(|s| **s == 1).count(), 30, "{new:?}");
    assert_eq!(net.hosts[1].received.len(), 60);
    let none = net.am(0).set_stream_value(StreamId(64), 1);
    assert_eq!(none, Err(SendError::NoSuchStream { stream: StreamId(64), streams: 64 }));
}
