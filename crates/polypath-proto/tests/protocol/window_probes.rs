//! A closed window and several paths: which timeouts are errors of a path (RFC 9260 6.1 A, 8.2).

use crate::common::*;
use polypath_proto::policy::{retransmission, scheduler};
use polypath_proto::*;

/// Chunks up to this one are acknowledged.
const ACKED: u32 = 5;

/// Host 1, which has sent ten chunks to a hand with two addresses, by turns on two paths, and the
/// hand at each of its addresses. The hand has closed its window. It waits for chunk 6, which was
/// sent on path 1.
fn closed() -> (Net, [Hand; 2]) {
    let config = Config::rfc9260()
        .to_builder()
        .heartbeat_interval(None)
        .scheduler(&scheduler::CONCURRENT)
        .retransmission(&retransmission::SAME)
        .path_mtu(1060)
        .build()
        .unwrap();
    let mut net = pair(2, config);
    let mut hand = Hand { rwnd: 20_000, ..Hand::new(1) };
    let answers = hand.init(&mut net, &|p| {
        for path in 0..2 {
            p.address(v4(path, 98)).unwrap();
        }
    });
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    let hands = [0, 1].map(|path| Hand { ip: v4(path, 98), ..hand.clone() });
    net.run(MS(100));
    let sent = net.sent(1);
    hands.iter().for_each(|hand| hand.answer_heartbeats(&mut net, &sent));
    assert_eq!(net.states(1), [PathState::Active; 2], "{}", net.tail(9));
    for i in 0..20 {
        net.send(1, 0, payload(i, 1000)).unwrap();
    }
    let outstanding = |hand: &Hand| data_numbers(&hand.answers(&net, 0)).concat();
    assert_eq!(
        [outstanding(&hands[0]), outstanding(&hands[1])],
        [[1, 3, 5, 7, 9], [2, 4, 6, 8, 10]]
    );
    hands[0].sack_rwnd(&mut net, ACKED, &[], 0);
    (net, hands)
}

/// Chunks sent to a hand since the log had `mark` entries.
fn chunks_to(net: &Net, hand: &Hand, mark: usize) -> Vec<u32> {
    data_numbers(&hand.answers(net, mark)).concat()
}

/// RFC 9260 8.2: each T3-rtx expiration is an error of the path, and the path is inactive when the
/// errors exceed Path.Max.Retrans. 6.1 A exempts window probes while SACKs arrive, but not a chunk
/// that is lost on a path which has failed, while the peer has no room for the data that other
/// paths carry and answers that.
#[test]
fn a_failed_path_that_carries_the_chunk_before_a_closed_window_is_given_up() {
    let (mut net, hands) = closed();
    let mut mark = net.log.len();
    let begin = net.now;
    // From RTO.Initial on, 1 + 2 + 4 + 8 + 16 + 32 s are six timeouts (6.3.3 E2), one more than
    // Path.Max.Retrans; the data was sent 0.1 s after the start.
    while !chunks_to(&net, &hands[0], mark).contains(&(ACKED + 1)) {
        assert!(net.now.since(begin) < S(65), "{}", net.tail(12));
        if !chunks_to(&net, &hands[0], mark).is_empty() {
            mark = net.log.len();
            hands[0].sack_rwnd(&mut net, ACKED, &[], 0);
        }
        net.run(MS(20));
    }
    assert_eq!(net.states(1), [PathState::Active, PathState::Inactive]);
    assert_eq!(net.path(1, 0).error_count, 0, "it answers with a closed window");
    hands[0].sack_rwnd(&mut net, 10, &[], 20_000);
    assert_eq!(net.a(1).buffered(), 10 * 1000, "the rest is sent");
}

/// RFC 9260 6.1 A: "If the sender continues to receive SACK chunks from the peer while doing zero
/// window probing, the unacknowledged window probes SHOULD NOT increment the error counter for the
/// association or any destination transport address." Each path is answered, 300 ms later: T3-rtx
/// of one may expire between that of the other and its SACK.
#[test]
fn paths_that_answer_with_a_closed_window_have_no_errors() {
    let (mut net, hands) = closed();
    hands[1].sack_rwnd(&mut net, ACKED, &[], 0);
    let (mut probes, mut mark) = ([0, 0], net.log.len());
    for _ in 0..600 {
        net.run(S(1));
        let answers = [0, 1].map(|path| chunks_to(&net, &hands[path], mark));
        mark = net.log.len();
        net.run(MS(300));
        for (path, hand) in hands.iter().enumerate() {
            if !answers[path].is_empty() {
                probes[path] += 1;
                hand.sack_rwnd(&mut net, ACKED, &[], 0);
            }
        }
        let errors: Vec<u32> = net.a(1).paths().map(|p| p.error_count).collect();
        assert_eq!(errors, [0, 0], "after {probes:?} probes\n{}", net.tail(12));
    }
    assert!(probes.iter().all(|probes| *probes > 10), "{probes:?}");
    assert!(net.a(1).is_established());
}

/// RFC 9260 6.4: "The selection of the destination transport address for packets containing SACK
/// chunks is implementation dependent." A peer that sends all of them over path 0 is not
/// unreachable as long as they arrive (6.1 A), whatever that shows about path 1.
#[test]
fn sacks_over_one_path_keep_the_association() {
    let (mut net, hands) = closed();
    let begin = net.now;
    while net.now.since(begin) < S(3600) {
        let mark = net.log.len();
        net.run(S(1));
        if hands.iter().any(|hand| !chunks_to(&net, hand, mark).is_empty()) {
            hands[0].sack_rwnd(&mut net, ACKED, &[], 0);
        }
        assert!(net.a(1).is_established(), "{}", net.tail(12));
        assert_eq!(net.path(1, 0).error_count, 0, "{}", net.tail(12));
    }
    hands[0].sack_rwnd(&mut net, 10, &[], 20_000);
    assert_eq!(net.a(1).buffered(), 10 * 1000, "the rest is sent");
}
