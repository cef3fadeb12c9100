//! RFC 7496, Additional Policies of Partial Reliability: the requirements with MUST.

use std::time::Duration;

use crate::common::*;
use polypath_proto::policy::Window;
use polypath_proto::*;

/// User data of a DATA chunk that fills a packet.
const FULL: usize = 1452;

/// Host 1, which sends, and a hand-built peer; both offer partial reliability.
fn sender() -> (Net, Hand) {
    let config = Config::rfc9260().to_builder().partial_reliability(true).heartbeat_interval(None);
    let config = config.initial_cwnd(20).max_burst(20).association_max_retrans(100);
    let mut net = pair(1, config.path_max_retrans(100).build().unwrap());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.forward_tsn_supported().unwrap());
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    (net, hand)
}

fn message(len: usize, reliability: Reliability) -> Message {
    Message { reliability, ..Message::new(StreamId(1), payload(1, len)) }
}

fn count(net: &Net, what: &str) -> usize {
    net.sent_with(1, what).len()
}

#[test]
fn s3_1_r1_a_message_is_abandoned_when_a_chunk_would_exceed_the_limit() {
    for limit in [0, 1, 3] {
        // T3-rtx alone.
        let reliability = Reliability::Retransmissions(limit);
        let (mut net, _) = sender();
        net.send_message(1, message(100, reliability)).unwrap();
        net.run(S(100));
        assert_eq!(count(&net, "DATA 1"), limit as usize + 1, "{limit}");
        let (t3, forwarded) = (net.times(1, "DATA 1"), net.times(1, "FORWARD TSN")[0]);
        // The limit has an effect: without it there would be another transmission at this time.
        assert_eq!(forwarded, (1 << (limit + 1)) * 1000 - 1000, "{t3:?}");
        assert_eq!(net.a(1).buffered(), 0);

        // One of four fragments is lost each time: first it is retransmitted by fast retransmit.
        let (mut net, hand) = sender();
        net.send_message(1, message(4 * FULL, reliability)).unwrap();
        for _ in 0..3 {
            net.send_message(1, message(FULL, Reliability::Reliable)).unwrap();
        }
        net.run(MS(10));
        for last in 3..=5 {
            hand.sack(&mut net, 1, &[(2, last)]);
        }
        net.run(S(100));
        assert!(net.times(1, "DATA 2").get(1).is_none_or(|at| *at < 1000));
        assert_eq!(count(&net, "DATA 2"), limit as usize + 1, "{limit}");
        let sent = net.sent_with(1, "FORWARD TSN");
        assert!(sent.iter().all(|p| p.has("FORWARD TSN 4 [1:0]")), "{}", sent[0].text());
    }
}

/// Window, RTO and error counter after the first of six packets is lost and found by T3-rtx or by
/// three missing reports.
fn after_loss(reliability: Reliability, timeout: bool) -> (Window, Duration, u32) {
    let (mut net, hand) = sender();
    for n in 0..6 {
        let reliability = if n == 0 { reliability } else { Reliability::Reliable };
        net.send_message(1, message(FULL, reliability)).unwrap();
    }
    net.run(MS(20));
    if timeout {
        net.drive_until(S(2), |net| net.path(1, 0).error_count == 1);
    } else {
        (2..=4).for_each(|last| drop(hand.sack(&mut net, 0, &[(2, last)])));
    }
    assert_eq!(count(&net, "FORWARD TSN") > 0, reliability != Reliability::Reliable);
    let path = net.path(1, 0);
    (path.window, path.rto, path.error_count)
}

#[test]
fn s3_1_r2_an_abandoned_chunk_has_all_other_effects_of_a_retransmission() {
    for timeout in [false, true] {
        let expected = after_loss(Reliability::Reliable, timeout);
        let (window, rto, errors) = expected;
        assert!(window.cwnd <= 10 * 1468, "{window:?}");
        assert_eq!(rto, if timeout { S(2) } else { rto });
        assert_eq!(errors, u32::from(timeout));
        assert_eq!(after_loss(Reliability::Retransmissions(0), timeout), expected);
    }
}
