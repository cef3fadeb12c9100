//! RFC 9260, section 6.1: Transmission of DATA Chunks.

use super::super::setup::{FULL, Flow, NONE, PMDCS, quiet};
use crate::common::*;
use polypath_proto::*;

/// A sender whose peer has closed its window to `rwnd` bytes and acknowledged everything: chunks 1
/// to 3 have been sent, and others wait.
fn closed_window(rwnd: u32) -> Flow {
    let mut flow = Flow::new(quiet());
    flow.give(10, FULL);
    assert_eq!(flow.sack_rwnd(3, rwnd), NONE);
    flow
}

/// Answers each probe of the closed window with a SACK that does not acknowledge it; returns the
/// times of the probes, in milliseconds since the window closed.
fn probes(flow: &mut Flow, rwnd: u32, count: usize) -> Vec<u64> {
    let (start, mut seen) = (flow.net.now, flow.net.log.len());
    let mut times = Vec::new();
    while times.len() < count {
        flow.net.drive_until(S(200), |net| net.log.len() > seen);
        for packet in &flow.net.sent_since(1, seen) {
            assert_eq!(packet.data().len(), 1, "one chunk: {}", packet.text());
            times.push(packet.at.since(start).as_millis() as u64);
        }
        flow.sack_rwnd(3, rwnd);
        seen = flow.net.log.len();
    }
    times
}

#[test]
fn s6_1_r2_no_new_data_beyond_the_peers_window() {
    let mut flow = Flow::to(Hand { rwnd: 2600, ..Hand::new(1) }, quiet());
    assert_eq!(flow.give(10, 1000), [[1], [2]], "2600 bytes hold two chunks of 1000");
    assert_eq!(flow.wait(900), NONE);
    assert_eq!(flow.sack_rwnd(2, 999), NONE, "smaller than the next chunk");
    assert_eq!(flow.sack_rwnd(2, 2100), [[3], [4]]);
}

#[test]
fn s6_1_r3_r4_a_probe_waits_until_nothing_is_in_flight() {
    let mut flow = Flow::new(quiet());
    flow.give(10, FULL);
    flow.sack_rwnd(1, 0);
    let sent = flow.wait(30_000).concat();
    assert!(sent.iter().all(|n| (2..=3).contains(n)), "retransmissions only: {sent:?}");
    let mark = flow.net.log.len();
    flow.sack_rwnd(3, 0);
    assert!(flow.path().in_flight == 0 && flow.net.log.len() == mark + 1);
    let rto = flow.path().rto.as_millis() as u64;
    assert_eq!(flow.wait(rto + 1), [[4]]);
}

#[test]
fn s6_1_r5_r7_a_closed_window_is_probed_with_growing_intervals() {
    let mut flow = closed_window(0);
    let rto = flow.path().rto.as_millis() as u64;
    let times = probes(&mut flow, 0, 6);
    assert_eq!(times[0], rto, "the first after one RTO");
    let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps[0] >= rto && gaps.windows(2).all(|w| w[1] == 2 * w[0]), "{times:?}");
    assert_eq!(flow.sack_rwnd(4, 1 << 20).concat()[0], 5, "open again");
}

#[test]
fn s6_1_r9_no_pieces_are_cut_to_a_small_window() {
    let mut flow = Flow::new(quiet());
    flow.give(1, 50_000);
    for rwnd in [1, 100, 700, 1400] {
        assert_eq!(flow.sack_rwnd(3, rwnd), NONE, "a_rwnd {rwnd}");
    }
    probes(&mut flow, 700, 3);
    let mut acked = 4;
    while flow.net.a(1).buffered() > 0 {
        flow.sack_rwnd(acked, 1 << 20);
        acked += 1;
    }
    let chunks = flow.net.sent(1).iter().flat_map(Sent::data).collect::<Vec<_>>();
    assert!(chunks.iter().all(|c| c.len == FULL || c.end), "only the last one is shorter");
}

#[test]
fn s6_1_r10_r11_r12_cwnd_is_exceeded_by_one_packet_at_most() {
    for len in [1, 100, 700, 1300, FULL] {
        let mut flow = Flow::new(quiet());
        let cwnd = flow.path().window.cwnd;
        flow.give(500, len);
        let chunk = (16 + len as u32).next_multiple_of(4);
        let mut flight = 0;
        for packet in data_numbers(&flow.net.sent(1)) {
            assert!(flight < cwnd, "{len}: only the last packet exceeds cwnd");
            flight += packet.len() as u32 * chunk;
        }
        assert!(flight >= cwnd, "{len}: rule B allows one packet more than {flight}");
        assert!(flight < cwnd + PMDCS, "{len}: {flight}");
    }
}

#[test]
fn s6_1_r13_retransmissions_leave_before_new_data() {
    let mut flow = Flow::new(quiet());
    flow.give(20, FULL);
    assert_eq!(flow.wait(1500), [[1]]);
    let mut sent = Vec::new();
    for n in 1..=3 {
        sent.extend(flow.sack(n, &[]).concat());
    }
    assert_eq!(sent[..2], [2, 3], "{sent:?}");
    assert_eq!(sent[2], 4);
}

#[test]
fn s6_1_r14_r15_a_burst_is_limited_and_leaves_cwnd_alone() {
    for max_burst in [2, 4, 8] {
        let mut flow = Flow::new(quiet().initial_cwnd(32).max_burst(max_burst));
        let sent = flow.give(40, FULL);
        assert_eq!(sent.len(), max_burst as usize);
        assert_eq!(flow.cwnd(), 32);
        // The data that the SACK acknowledges, and a burst.
        let sent = flow.sack(1, &[]).len() as u32;
        assert!((1..=max_burst + 1).contains(&sent), "{sent}");
        assert_eq!(flow.cwnd(), 32, "it was not in full use");
    }
}

#[test]
fn s6_1_r16_a_waiting_sack_travels_with_data() {
    let (mut net, hand) = super::super::setup::receiver(quiet());
    assert!(hand.data(&mut net, 1).is_empty());
    net.send(1, 0, payload(1, 1000)).unwrap();
    assert_eq!(net.log.last().unwrap().text(), "SACK 1 + DATA 1");
    // A packet that is full without the SACK has no room for it.
    assert!(hand.data(&mut net, 2).is_empty());
    let mark = net.log.len();
    net.send(1, 0, payload(1, 10 * FULL)).unwrap();
    assert!(net.sent_since(1, mark).iter().all(|p| p.bytes.len() + 20 <= 1500));
}

#[test]
fn s6_1_r17_a_full_window_takes_requests_and_sends_nothing() {
    let mut flow = Flow::new(quiet());
    assert_eq!(flow.give(3, FULL), [[1], [2], [3]]);
    assert_eq!(flow.give(50, FULL), NONE, "cwnd is used up, and the requests are taken");
    assert_eq!(flow.wait(900), NONE);
    assert_eq!(flow.sack(1, &[]).concat()[0], 4);
}

#[test]
fn s6_1_r18_r20_the_first_transmission_starts_the_timer_and_others_do_not() {
    let mut flow = Flow::new(quiet());
    flow.give(1, FULL);
    flow.wait(600);
    flow.give(1, FULL);
    assert_eq!(flow.wait(399), NONE);
    assert_eq!(flow.wait(2), [[1]], "RTO.Initial after the first chunk");
    flow.sack(2, &[]);
    flow.wait(5000);
    flow.give(1, FULL);
    let rto = flow.path().rto.as_millis() as u64;
    assert_eq!(flow.wait(rto - 1), NONE);
    assert_eq!(flow.wait(2), [[3]]);
}

#[test]
fn s6_1_r19_retransmitting_the_earliest_chunk_restarts_the_timer() {
    let mut flow = Flow::new(quiet().initial_cwnd(10).max_burst(10));
    flow.give(4, FULL);
    flow.wait(900);
    let mut sent = Vec::new();
    for last in 2..=4 {
        sent.extend(flow.sack(0, &[(2, last)]));
    }
    assert_eq!(sent, [[1]], "the fast retransmission of the earliest chunk");
    let rto = flow.path().rto.as_millis() as u64;
    assert_eq!(flow.wait(rto - 1), NONE);
    assert_eq!(flow.wait(2), [[1]]);
    assert_eq!(flow.timeouts(), 1);
}

#[test]
fn s6_1_r21_the_timer_runs_for_the_rto_after_its_doubling() {
    let mut flow = Flow::new(quiet());
    flow.give(1, FULL);
    flow.wait(16_000);
    // 6.3.2 R1: "that obtained after any doubling due to previous T3-rtx timer expirations".
    assert_eq!(flow.times(), [0, 1000, 3000, 7000, 15_000]);
}

/// Every chunk has at least one byte, so that the send buffer limits the number of TSNs in the
/// window.
#[test]
fn s6_1_r22_the_send_window_stays_within_half_of_the_tsns() {
    let refused = Config::rfc9260().to_builder().send_buffer(1 << 31).build().unwrap_err();
    assert_eq!(refused.parameter, "send_buffer");
    let mut flow = Flow::new(quiet());
    assert_eq!(flow.net.send(1, 0, payload(1, 0)), Err(SendError::Empty));
}

#[test]
fn s6_1_r6_answered_probes_are_no_errors() {
    // A window that is smaller than the next chunk is probed as well.
    for rwnd in [0, 500] {
        let config = quiet().association_max_retrans(4).path_max_retrans(2);
        let mut flow = Flow::new(config);
        flow.give(10, FULL);
        flow.sack_rwnd(3, rwnd);
        probes(&mut flow, rwnd, 12);
        assert_eq!(flow.path().error_count, 0, "a_rwnd {rwnd}");
        assert_eq!(flow.path().state, PathState::Active);
        assert!(flow.net.a(1).is_established());
    }
}

#[test]
fn s6_1_r23_at_most_65535_ordered_messages_of_a_stream_are_outstanding() {
    let config = quiet().initial_cwnd(1024).max_burst(10_000).send_buffer(1 << 29);
    let mut flow = Flow::new(config);
    flow.give(70_000, 1);
    let highest = |flow: &Flow| data_numbers(&flow.net.sent(1)).concat().len();
    let window = highest(&flow);
    assert!((1..=65_535).contains(&window), "{window}");
    flow.sack(10, &[]);
    assert!(highest(&flow) <= window + 10);
}
