//! RFC 9260, sections 6.5 to 6.7: streams, order, gaps.

use super::super::setup::{FULL, Flow, NONE, quiet, receiver, texts, two_homed};
use crate::common::*;
use polypath_proto::wire::Data;
use polypath_proto::*;

/// Chunk `n`: a whole message with this stream sequence number.
fn message(hand: &Hand, n: u32, stream: u16, ssn: u16) -> Data<'static> {
    Data { stream: StreamId(stream), ssn: Ssn(ssn), ..hand.chunk(n, b"") }
}

/// The payloads that the application has received, as text.
fn got(net: &Net) -> Vec<String> {
    let text = |r: &Received| String::from_utf8(r.payload.to_vec()).unwrap();
    net.hosts[1].received.iter().map(text).collect()
}

#[test]
fn s6_5_r1_no_data_is_sent_on_streams_that_the_peer_lacks() {
    let mut net = pair(1, quiet().outbound_streams(10).build().unwrap());
    // The peer accepts four streams; messages on higher ones were given to `send` before this was
    // known.
    let hand = Hand { streams: (64, 4), ..Hand::new(0) }.be_called(&mut net);
    for stream in [0, 3, 4, 9] {
        net.send(0, stream, payload(1, 100)).unwrap();
    }
    hand.init_ack(&mut net);
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    net.run(S(5));
    let refused = net.send(0, 4, payload(1, 100));
    assert_eq!(refused, Err(SendError::NoSuchStream { stream: StreamId(4), streams: 4 }));
    let sent = net.sent(0).iter().flat_map(Sent::data).collect::<Vec<_>>();
    assert!(!sent.is_empty() && sent.iter().all(|d| d.stream < 4), "{sent:?}");
}

#[test]
fn s6_5_r2_data_of_an_unknown_stream_is_acknowledged_reported_and_discarded() {
    let (mut net, hand) = receiver(quiet().inbound_streams(5));
    let stray = Data { payload: b"stray", ..message(&hand, 1, 5, 0) };
    let answers = hand.say(&mut net, &|w| w.data(&stray).unwrap());
    assert_eq!(answers[0].causes(), [1], "Invalid Stream Identifier, at once");
    net.run(MS(200));
    assert!(net.sent(1).iter().any(|p| p.has("SACK 1")));
    assert_eq!(got(&net), [""; 0]);
    assert!(net.a(1).is_established());
}

#[test]
fn s6_5_r3_r4_r6_each_stream_counts_its_ordered_messages_from_zero() {
    let mut net = established(1, quiet().build().unwrap());
    for _ in 0..3 {
        for stream in [0, 7, 63] {
            net.send(0, stream, payload(1, 2000)).unwrap();
            let unordered = Message { unordered: true, ..Message::new(StreamId(stream), vec![1]) };
            net.send_message(0, unordered).unwrap();
        }
        net.run(S(1));
    }
    let sent: Vec<DataSeen> = net.sent(0).iter().flat_map(Sent::data).collect();
    for stream in [0, 7, 63] {
        let of = sent.iter().filter(|d| d.stream == stream && !d.unordered && d.beginning);
        assert_eq!(of.map(|d| d.ssn).collect::<Vec<_>>(), [0, 1, 2]);
    }
}

#[test]
fn s6_5_r5_65535_is_followed_by_0() {
    let mut flow = Flow::new(quiet().initial_cwnd(1024).max_burst(10_000));
    let mut ssns = Vec::new();
    let mut seen = flow.net.log.len();
    while ssns.len() < 65_540 {
        flow.give(1000, 1);
        for packet in &flow.net.sent_since(1, seen) {
            ssns.extend(packet.data().iter().map(|d| d.ssn));
        }
        flow.sack(ssns.len() as u32, &[]);
        seen = flow.net.log.len();
    }
    assert!(ssns.iter().enumerate().all(|(n, ssn)| *ssn == n as u16));
}

#[test]
fn s6_6_r1_r2_a_stream_is_delivered_in_order() {
    let (mut net, hand) = receiver(quiet());
    for (n, ssn, text, after) in [
        (3, 2, "c", &[][..]),
        (2, 1, "b", &[]),
        (5, 4, "e", &[]),
        (1, 0, "a", &["a", "b", "c"]),
        (4, 3, "d", &["a", "b", "c", "d", "e"]),
    ] {
        let chunk = Data { payload: text.as_bytes(), ..message(&hand, n, 3, ssn) };
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
        assert_eq!(got(&net), after);
    }
    // TSNs in sequence do not help a message whose predecessor is missing.
    let chunk = Data { payload: b"g", ..message(&hand, 6, 3, 6) };
    hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    assert_eq!(got(&net).len(), 5);
}

#[test]
fn s6_6_r3_the_ssn_of_unordered_data_is_ignored() {
    let (mut net, hand) = receiver(quiet());
    for (n, ssn) in [(1, 500), (2, 500), (3, 0), (5, 65_535)] {
        let chunk = Data { unordered: true, payload: b"u", ..message(&hand, n, 3, ssn) };
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    assert_eq!(got(&net), ["u"; 4], "at once, 5 before 4");
    let chunk = Data { payload: b"o", ..message(&hand, 4, 3, 0) };
    hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    assert_eq!(got(&net).last().unwrap(), "o", "the ordered ones still begin with 0");
}

#[test]
fn s6_7_r1_a_gap_is_reported_at_once_and_with_every_packet() {
    let (mut net, hand) = receiver(quiet());
    for (n, sack) in [
        (2, "SACK 0 [2-2]"),
        (3, "SACK 0 [2-3]"),
        (6, "SACK 0 [2-3] [6-6]"),
        (7, "SACK 0 [2-3] [6-7]"),
        (1, "SACK 3 [3-4]"),
    ] {
        assert_eq!(texts(&hand.data(&mut net, n)), [sack]);
    }
}

#[test]
fn s6_7_r2_a_sack_goes_to_the_source_of_the_last_data() {
    let (mut net, hand, second) = two_homed(quiet());
    for (n, first, last) in [(1, &hand, &second), (3, &second, &hand), (5, &second, &second)] {
        assert!(first.data(&mut net, n).is_empty());
        last.data(&mut net, n + 1);
        let sack = net.sent_with(1, "SACK").pop().unwrap();
        assert!(sack.has(&format!("SACK {}", n + 1)));
        assert_eq!(sack.to.ip(), last.ip);
    }
}

#[test]
fn s6_7_r3_what_is_acknowledged_leaves_the_queue() {
    let mut flow = Flow::new(quiet());
    flow.give(3, FULL);
    flow.sack(2, &[]);
    assert_eq!((flow.net.a(1).buffered(), flow.path().in_flight), (FULL, 1468));
    let again = flow.wait(30_000).concat();
    assert!(!again.is_empty() && again.iter().all(|n| *n == 3), "{again:?}");
}

#[test]
fn s6_7_r4_r5_missing_reports_are_counted_for_each_chunk() {
    let mut flow = Flow::new(quiet().initial_cwnd(12).max_burst(12));
    flow.give(12, FULL);
    // 1 and 4 are missing; 4 is below the highest TSN reported one SACK later.
    assert_eq!(flow.sack(0, &[(2, 3)]), NONE);
    assert_eq!(flow.sack(0, &[(2, 3), (5, 5)]), NONE);
    assert_eq!(flow.sack(0, &[(2, 3), (5, 6)]), [[1]], "the third report for 1");
    assert_eq!(flow.sack(0, &[(2, 3), (5, 7)]).concat(), [], "the third for 4: cwnd is full");
    let sent: Vec<u32> = (8..=12).flat_map(|n| flow.sack(0, &[(2, 3), (5, n)]).concat()).collect();
    assert_eq!(sent, [4], "marked, it leaves when cwnd allows");
}

#[test]
fn s6_7_r6_r7_gaps_that_do_not_fit_are_left_out_from_the_top() {
    let (mut net, hand) = receiver(quiet().path_mtu(576));
    for n in 1..400 {
        let answers = hand.data(&mut net, 2 * n);
        assert_eq!(answers.len(), 1, "one SACK");
        let gaps = answers[0].sack().unwrap().gaps;
        let lowest: Vec<(u16, u16)> =
            (1..=n as u16).map(|k| (2 * k, 2 * k)).take(gaps.len()).collect();
        assert_eq!(gaps, lowest);
        assert_eq!(gaps.len(), 132.min(n as usize));
    }
}
