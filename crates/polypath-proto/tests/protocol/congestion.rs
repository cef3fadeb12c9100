//! Congestion control: slow start, congestion avoidance, fast retransmit, fast recovery, bursts
//! (RFC 9260 6.1 B to D, 7.2).

use crate::common::*;
use polypath_proto::*;

/// PMDCS over IPv4 with an MTU of 1500 (RFC 9260 1.3).
const PMDCS: u32 = 1468;

/// Host 1 sends full chunks to a hand.
struct Flow {
    net: Net,
    hand: Hand,
}

impl Flow {
    fn new(config: Config, chunks: usize) -> Self {
        let mut net = pair(1, config);
        let hand = Hand { rwnd: 1 << 24, ..Hand::new(1) }.open(&mut net);
        let mut flow = Self { net, hand };
        flow.give(chunks);
        flow
    }

    /// Queues `chunks` messages, each of which fills a packet.
    fn give(&mut self, chunks: usize) {
        let now = self.net.now;
        for _ in 0..chunks {
            let message = Message::new(StreamId(0), vec![1; PMDCS as usize - 16]);
            self.net.am(1).send(now, message).unwrap();
        }
        self.net.settle();
    }

    fn sack(&mut self, cumulative: u32, gaps: &[(u16, u16)]) -> Vec<Vec<u32>> {
        data_numbers(&self.hand.sack(&mut self.net, cumulative, gaps))
    }

    fn window(&self) -> Window {
        self.net.path(1, 0).window
    }

    fn cwnd(&self) -> u32 {
        self.window().cwnd / PMDCS
    }

    fn in_flight(&self) -> u32 {
        self.net.path(1, 0).in_flight / PMDCS
    }

    /// The highest TSN sent.
    fn highest(&self) -> u32 {
        data_numbers(&self.net.sent(1)).concat().into_iter().max().unwrap_or(0)
    }

    /// A flow with this number of chunks in flight and all earlier ones acknowledged, and the last
    /// acknowledged TSN.
    fn flying(config: Config, chunks: u32) -> (Self, u32) {
        let mut flow = Self::new(config, 400);
        let mut acked = 0;
        while flow.cwnd() < chunks {
            acked += 1;
            flow.sack(acked, &[]);
        }
        while flow.in_flight() > chunks {
            acked += 1;
            flow.sack(acked, &[]);
        }
        assert_eq!((flow.cwnd(), flow.in_flight()), (chunks, chunks));
        (flow, acked)
    }
}

fn rfc() -> Config {
    Config::rfc9260()
}

/// RFC 9260 7.2.1: min(4 * PMDCS, max(2 * PMDCS, 4404)).
#[test]
fn the_initial_window_depends_on_the_mtu() {
    for (mtu, cwnd, packets) in [(576, 4 * 544, 4), (1500, 4404, 3), (9000, 2 * 8968, 2)] {
        let config = Config::rfc9260().to_builder().path_mtu(mtu).build().unwrap();
        let mut net = established(1, config);
        assert_eq!(net.path(0, 0).window.cwnd, cwnd, "an MTU of {mtu}");
        let mark = net.log.len();
        net.send(0, 0, payload(1, 100_000)).unwrap();
        assert_eq!(net.log.len() - mark, packets, "an MTU of {mtu}");
    }
}

/// RFC 9260 7.2.1: "min(4 * PMDCS, max(2 * PMDCS, 4344)) if the peer address is an IPv6 address".
#[test]
fn the_initial_window_over_ipv6_is_three_packets_too() {
    let mut net = Setup { v6: true, ..Setup::default() }.build();
    net.establish();
    assert_eq!(net.path(0, 0).window.cwnd, 4344);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 100_000)).unwrap();
    assert_eq!(net.log.len() - mark, 3);
}

/// RFC 9260 7.2.1: ssthresh begins with the peer's window, or as configured.
#[test]
fn the_slow_start_threshold_begins_high() {
    let flow = Flow::new(rfc(), 1);
    assert_eq!(flow.window().ssthresh, 1 << 24);
    let config = Config::rfc9260().to_builder().initial_ssthresh(Some(65_536)).build().unwrap();
    assert_eq!(Flow::new(config, 1).window().ssthresh, 65_536);
}

/// RFC 9260 7.2.1: one PMDCS at most for each SACK that advances the ack point.
#[test]
fn slow_start_grows_by_a_packet_for_each_sack() {
    let mut flow = Flow::new(rfc(), 100);
    assert_eq!((flow.cwnd(), flow.in_flight()), (3, 3));
    assert_eq!(flow.sack(1, &[]), [[4], [5]]);
    assert_eq!((flow.cwnd(), flow.in_flight()), (4, 4));
    // A SACK for three chunks grows the window by no more than a SACK for one.
    flow.sack(4, &[]);
    assert_eq!((flow.cwnd(), flow.in_flight()), (5, 5));
    // A SACK that acknowledges by gap ack blocks alone does not grow the window.
    flow.sack(4, &[(2, 2)]);
    assert_eq!(flow.cwnd(), 5);
}

/// RFC 9260 7.2.1: the window grows by the acknowledged bytes, if these are less than a PMDCS.
#[test]
fn slow_start_grows_by_no_more_than_was_acknowledged() {
    let mut flow = Flow::new(rfc(), 0);
    let now = flow.net.now;
    for len in [100, 1452, 1452, 1452, 1452] {
        flow.net.am(1).send(now, Message::new(StreamId(0), vec![1; len])).unwrap();
    }
    flow.net.settle();
    let before = flow.window().cwnd;
    assert!(flow.net.path(1, 0).in_flight >= before);
    flow.sack(1, &[]);
    assert_eq!(flow.window().cwnd, before + 116);
}

/// RFC 9260 7.2.1: "only if the full cwnd is utilized".
#[test]
fn an_unused_window_does_not_grow() {
    let mut flow = Flow::new(rfc(), 2);
    for n in 1..=10 {
        flow.sack(2 * n, &[]);
        flow.give(2);
    }
    assert_eq!(flow.cwnd(), 3);
}

/// RFC 9260 7.2.2: one PMDCS for each window acknowledged.
#[test]
fn congestion_avoidance_grows_by_a_packet_for_each_window() {
    let config = Config::rfc9260().to_builder().initial_ssthresh(Some(3000)).build().unwrap();
    let mut flow = Flow::new(config, 100);
    let mut acked = 0;
    for cwnd in 3..8 {
        for k in 1..=cwnd {
            assert_eq!(flow.cwnd(), cwnd);
            acked += 1;
            flow.sack(acked, &[]);
            assert_eq!(flow.window().partial_bytes_acked, k % cwnd * PMDCS);
        }
    }
    assert_eq!((flow.cwnd(), flow.in_flight()), (8, 8));
    // Gap ack blocks count only if the SACK advances the ack point.
    let before = flow.window().partial_bytes_acked;
    flow.sack(acked, &[(2, 2)]);
    assert_eq!(flow.window().partial_bytes_acked, before);
    flow.sack(acked + 3, &[(2, 2)]);
    assert_eq!(flow.window().partial_bytes_acked, before + 3 * PMDCS);
}

/// RFC 9260 7.2.2: `partial_bytes_acked` is capped at one window while the window is not fully
/// used, and reset when all data is acknowledged.
#[test]
fn partial_bytes_acked_is_bounded_and_reset() {
    let config = Config::rfc9260().to_builder().initial_ssthresh(Some(3000)).build().unwrap();
    let mut flow = Flow::new(config, 1);
    for n in 1..=9 {
        flow.give(1);
        flow.sack(n, &[]);
        assert!(flow.window().partial_bytes_acked <= 3 * PMDCS);
    }
    assert_eq!((flow.cwnd(), flow.window().partial_bytes_acked), (3, 3 * PMDCS));
    flow.sack(10, &[]);
    assert_eq!(flow.window().partial_bytes_acked, 0);
}

/// RFC 9260 7.2.4: the third missing report, not the second, is a loss, which halves the window.
#[test]
fn three_missing_reports_are_a_loss() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    assert!(!flow.sack(acked, &[(2, 2)]).concat().contains(&(acked + 1)));
    assert!(!flow.sack(acked, &[(2, 3)]).concat().contains(&(acked + 1)));
    assert_eq!(flow.cwnd(), 20);
    let answer = flow.sack(acked, &[(2, 4)]);
    assert_eq!(answer[0], [acked + 1], "at once, although the window is full");
    let half = 10 * PMDCS;
    assert_eq!(flow.window(), Window::unpaced(half, half));
    let stats = flow.net.a(1).path_stats(PathId(0)).unwrap();
    assert_eq!((stats.fast_retransmissions, stats.timeouts), (1, 0));
}

/// RFC 9260 7.2.3: never below 4 PMDCS.
#[test]
fn the_threshold_has_a_floor() {
    let (mut flow, acked) = Flow::flying(rfc(), 5);
    for last in 2..=4 {
        flow.sack(acked, &[(2, last)]);
    }
    assert_eq!((flow.window().ssthresh, flow.cwnd()), (4 * PMDCS, 4));
}

/// RFC 9260 7.2.4: the same SACK again adds no missing report.
#[test]
fn repeated_sacks_are_no_missing_reports() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    for _ in 0..10 {
        assert!(!flow.sack(acked, &[(2, 2)]).concat().contains(&(acked + 1)));
    }
    assert_eq!(flow.cwnd(), 20);
}

/// RFC 9260 7.2.4, HTNA: only TSNs below the highest newly acknowledged one are reported missing.
#[test]
fn missing_is_what_lies_below_the_highest_tsn_newly_acknowledged() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    // 1 to 3 are missing: one report each.
    flow.sack(acked, &[(4, 4)]);
    // 2 arrives: another report for 1, none for 3.
    flow.sack(acked, &[(2, 2), (4, 4)]);
    // 5 arrives: the third report for 1, the second for 3.
    let answer = flow.sack(acked, &[(2, 2), (4, 5)]);
    assert_eq!(answer[0], [acked + 1]);
    assert!(!answer.concat().contains(&(acked + 3)));
    let answer = flow.sack(acked, &[(2, 2), (4, 6)]);
    let stats = flow.net.a(1).path_stats(PathId(0)).unwrap();
    let waits = !answer.concat().contains(&(acked + 3));
    assert_eq!(stats.fast_retransmissions, 2 - u64::from(waits));
}

/// RFC 9260 7.2.4 (2), (5): the window is cut once, however many losses are found in it.
#[test]
fn several_losses_of_a_window_cut_it_once() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    let highest = flow.highest();
    // 1, 5 and 9 are lost.
    let mut again = Vec::new();
    for gaps in [
        &[(2, 2)][..],
        &[(2, 3)],
        &[(2, 4)],
        &[(2, 4), (6, 6)],
        &[(2, 4), (6, 7)],
        &[(2, 4), (6, 8)],
        &[(2, 4), (6, 8), (10, 10)],
        &[(2, 4), (6, 8), (10, 11)],
        &[(2, 4), (6, 8), (10, 18)],
        &[(2, 4), (6, 8), (10, 19)],
        &[(2, 4), (6, 8), (10, 20)],
    ] {
        again.extend(flow.sack(acked, gaps).concat());
    }
    assert_eq!((flow.cwnd(), flow.window().ssthresh), (10, 10 * PMDCS));
    let again: Vec<u32> = again.into_iter().filter(|n| *n <= highest).collect();
    assert_eq!(again, [acked + 1, acked + 5, acked + 9]);
    // 7.2.4 (5): in fast recovery the window does not grow until everything sent before it is
    // acknowledged.
    flow.sack(highest - 12, &[]);
    assert_eq!(flow.cwnd(), 10);
    flow.sack(highest, &[]);
    let at_exit = flow.window().cwnd + flow.window().partial_bytes_acked;
    let sent = flow.highest();
    for n in highest + 1..=sent {
        flow.sack(n, &[]);
    }
    assert!(flow.window().cwnd + flow.window().partial_bytes_acked > at_exit, "grows again");
}

/// RFC 9260 6.2.1 (D iii): of a TSN that was acknowledged and no longer is, "count one miss
/// indication towards Fast Retransmit".
#[test]
fn reneged_data_is_reported_missing_once() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    flow.sack(acked, &[(2, 2)]);
    flow.sack(acked, &[]);
    assert_eq!(flow.net.a(1).stats().reneged, 1);
    flow.sack(acked, &[(5, 5)]);
    assert_eq!(flow.net.path(1, 0).lost, 0);
    // The third report for both: 1 is retransmitted at once, 2 waits for the window.
    assert_eq!(flow.sack(acked, &[(5, 6)])[0], [acked + 1]);
    assert_eq!(flow.net.path(1, 0).lost, PMDCS);
}

/// RFC 9260 7.2.4 (5): a chunk is fast retransmitted once; after that only T3-rtx retransmits it.
#[test]
fn a_chunk_is_fast_retransmitted_once() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    let mut times = 0;
    for last in 2..=20 {
        times +=
            flow.sack(acked, &[(2, last)]).concat().iter().filter(|n| **n == acked + 1).count();
    }
    assert_eq!(times, 1);
    let mark = flow.net.log.len();
    flow.net.run(MS(1100));
    let sent = data_numbers(&flow.net.sent_since(1, mark));
    assert_eq!(sent[0][0], acked + 1, "after the timeout");
}

/// RFC 9260 7.2.4: in fast recovery a SACK that advances the ack point reports all missing TSNs.
#[test]
fn in_fast_recovery_an_advance_reports_all_that_is_missing() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    for last in 2..=4 {
        flow.sack(acked, &[(2, last)]);
    }
    // The retransmission of 1 arrives; 5, 7 and 9 are missing now.
    let mut found = flow.sack(acked + 4, &[(2, 2), (4, 4), (6, 10)]).concat();
    found.extend(flow.sack(acked + 4, &[(2, 2), (4, 4), (6, 11)]).concat());
    assert!(found.iter().all(|n| *n > acked + 20), "two reports: {found:?}");
    // 5 arrives late and the ack point advances to 6: the third report for 7 and 9, although all
    // TSNs that the SACK newly acknowledges are below them.
    let lost = flow.sack(acked + 6, &[(2, 2), (4, 9)]).concat();
    assert_eq!(lost[..2], [acked + 7, acked + 9]);
    assert_eq!(flow.cwnd(), 10);
}

/// RFC 9260 7.2.3: after T3-rtx cwnd is one packet, and slow start ends at half the previous
/// window.
#[test]
fn a_timeout_begins_again_with_one_packet() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    let mark = flow.net.log.len();
    flow.net.run(MS(1500));
    assert_eq!(data_numbers(&flow.net.sent_since(1, mark)), [[acked + 1]]);
    let expected = Window::unpaced(PMDCS, 10 * PMDCS);
    assert_eq!(flow.window(), expected);
    assert_eq!(flow.in_flight(), 1);
    // Slow start: lost chunks are retransmitted before new data is sent.
    assert_eq!(flow.sack(acked + 1, &[]), [[acked + 2], [acked + 3]]);
    assert_eq!(flow.cwnd(), 2);
    let next = flow.sack(acked + 2, &[]).concat();
    assert_eq!(next, [acked + 4, acked + 5]);
    flow.net.run(S(4));
    assert_eq!((flow.cwnd(), flow.window().ssthresh), (1, 4 * PMDCS), "and the floor again");
}

/// RFC 9260 7.2.3: after T3-rtx a path performs slow start, which 7.2.1 allows outside fast
/// recovery only: a timeout ends fast recovery (RFC 6582 3.2 (4) for TCP).
#[test]
fn a_timeout_ends_fast_recovery() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    for last in 2..=4 {
        flow.sack(acked, &[(2, last)]);
    }
    assert_eq!(flow.cwnd(), 10);
    flow.net.run(MS(1500));
    assert_eq!((flow.cwnd(), flow.window().ssthresh), (1, 5 * PMDCS));
    // The exit point of fast recovery is far above.
    flow.sack(acked + 4, &[]);
    assert_eq!(flow.cwnd(), 2);
    flow.sack(acked + 5, &[]);
    assert_eq!((flow.cwnd(), flow.in_flight()), (3, 3));
}

/// RFC 9260 7.2.4 counts missing reports by TSN, which is the order of first transmissions. A
/// retransmission is sent after chunks with higher TSNs: those sent before it do not report it
/// missing (RFC 8985 3.1).
#[test]
fn a_retransmission_is_missing_by_what_left_after_it() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    flow.net.run(MS(1500));
    let fast = |flow: &Flow| {
        let stats = flow.net.a(1).path_stats(PathId(0)).unwrap();
        (stats.fast_retransmissions, stats.timeout_retransmissions)
    };
    assert_eq!(fast(&flow), (0, 1));
    // The path is slow: chunks sent before the timeout have arrived, and the retransmission has not
    // yet.
    for last in 10..=14 {
        flow.sack(acked, &[(10, last)]);
    }
    assert_eq!((fast(&flow).0, flow.window().ssthresh), (0, 10 * PMDCS));
    // 1 arrives; 2 is retransmitted and lost, and chunks retransmitted after it arrive.
    flow.net.run(MS(100));
    flow.sack(acked + 1, &[(9, 13)]);
    flow.net.run(MS(100));
    flow.sack(acked + 1, &[(2, 2), (9, 13)]);
    flow.net.run(MS(100));
    for last in 3..=5 {
        flow.sack(acked + 1, &[(2, last), (9, 13)]);
        flow.net.run(MS(100));
    }
    assert_eq!(fast(&flow).0, 1, "2 is lost again");
}

/// RFC 9260 7.2.4: "if the received SACK chunk also acknowledges new DATA chunks and advances the
/// Cumulative TSN Ack Point, the cwnd adjustment rules defined in Sections 7.2.1 and 7.2.2 MUST be
/// applied first".
#[test]
fn a_sack_that_advances_and_shows_a_loss_lets_the_window_grow_first() {
    let (mut flow, acked) = Flow::flying(rfc(), 20);
    flow.sack(acked, &[(3, 3)]);
    flow.sack(acked, &[(3, 4)]);
    assert_eq!((flow.cwnd(), flow.in_flight()), (20, 20));
    flow.sack(acked + 1, &[(2, 4)]);
    assert_eq!(flow.window().ssthresh, 21 * PMDCS / 2);
}

/// RFC 9260 1.6: a receiver compares stream sequence numbers by serial arithmetic, so it can
/// distinguish at most 2^15 - 1 messages of a stream; 6.1: "MUST NOT have more than 2^16 - 1
/// ordered user messages in the current send window". Gap ack blocks reach twice as far (3.3.4).
#[test]
fn no_more_messages_are_in_flight_than_their_numbers_tell_apart() {
    // The bookkeeping for each small message counts against the send buffer, too.
    let config =
        Config::rfc9260().to_builder().initial_cwnd(1024).max_burst(1024).send_buffer(16 << 20);
    let mut flow = Flow::new(config.build().unwrap(), 0);
    let now = flow.net.now;
    for _ in 0..32_800 {
        flow.net.am(1).send(now, Message::new(StreamId(0), vec![1])).unwrap();
    }
    flow.net.settle();
    assert_eq!(flow.highest(), 32_767);
    assert!(flow.sack(0, &[(2, 32_767)]).is_empty());
    flow.sack(10, &[(2, 32_757)]);
    assert_eq!(flow.highest(), 32_777);
    flow.sack(32_777, &[]);
    flow.sack(32_800, &[]);
    assert_eq!(flow.net.a(1).buffered(), 0);
}

/// RFC 9260 7.2.1: an idle window is halved for each RTO, down to 4 PMDCS; ssthresh keeps its old
/// size.
#[test]
fn an_idle_window_decays() {
    for (idle, cwnd) in [(900, 32), (1100, 16), (2100, 8), (3100, 4), (60_000, 4)] {
        let config = rfc().to_builder().heartbeat_interval(None).build().unwrap();
        let mut flow = Flow::new(config, 0);
        let mut acked = 0;
        while flow.cwnd() < 32 {
            flow.give((flow.cwnd() - flow.in_flight()) as usize);
            acked += 1;
            flow.sack(acked, &[]);
        }
        let rest = flow.highest();
        flow.sack(rest, &[]);
        assert_eq!((flow.cwnd(), flow.in_flight()), (32, 0));
        flow.net.run(MS(idle));
        flow.give(1);
        assert_eq!(flow.cwnd(), cwnd, "after {idle} ms");
        if cwnd < 32 {
            assert!(flow.window().ssthresh >= 32 * PMDCS);
        }
    }
}

/// A flow with a window of 32 packets and none in flight; the last SACK acknowledged 10.
fn open_window() -> Flow {
    let (mut flow, acked) = Flow::flying(rfc(), 32);
    let mut highest = flow.highest();
    // Send and acknowledge the queued chunks, one by one.
    for n in acked + 1.. {
        flow.sack(n, &[]);
        let last = flow.highest();
        if n + 10 >= last && last == highest {
            break;
        }
        highest = last;
    }
    assert_eq!(flow.in_flight(), 10);
    flow.sack(highest, &[]);
    assert!(flow.in_flight() == 0 && flow.cwnd() >= 32);
    flow
}

/// RFC 9260 6.1 D: at most Max.Burst packets when the application sends after a pause.
#[test]
fn a_burst_after_a_pause_is_bounded() {
    let mut flow = open_window();
    flow.net.run(MS(500));
    let mark = flow.net.log.len();
    flow.give(30);
    assert_eq!(flow.net.sent_since(1, mark).len(), 4);
}

/// RFC 9260 6.1 D: at most Max.Burst packets in answer to one SACK, by the RFC's formula; by the
/// ack-clocked rule, Max.Burst plus the packets that the SACK took out of flight.
#[test]
fn a_burst_in_answer_to_a_sack_is_bounded() {
    for (rule, most) in
        [(BurstRule::FlightSize, 4), (BurstRule::PacketCount, 4), (BurstRule::AckClocked, 20 + 4)]
    {
        let config = Config::rfc9260().to_builder().burst_rule(rule).build().unwrap();
        let (mut flow, acked) = Flow::flying(config, 32);
        let packets = flow.sack(acked + 20, &[]).len();
        assert!((1..=most).contains(&packets), "{rule:?}: {packets} packets");
    }
}

/// RFC 9260 6.1 D, 16: Max.Burst is a parameter.
#[test]
fn the_burst_can_be_chosen() {
    for burst in [1, 2, 8] {
        let config = Config::rfc9260().to_builder().max_burst(burst).path_mtu(576).build().unwrap();
        let mut net = established(1, config);
        let mark = net.log.len();
        net.send(0, 0, payload(1, 10_000)).unwrap();
        // The initial window is 4 packets.
        assert_eq!(net.sent_since(0, mark).len() as u32, burst.min(4));
        net.run(S(5));
        assert_eq!(net.hosts[1].received.len(), 1);
    }
}

/// RFC 9260 7.1: each path has a window of its own.
#[test]
fn a_loss_on_one_path_cuts_that_path_alone() {
    let mut net = established(2, rfc());
    let now = net.now;
    for path in [0, 1] {
        net.am(0).set_primary(now, PathId(path)).unwrap();
        net.send(0, 0, payload(1, 300_000)).unwrap();
        net.run(S(1));
    }
    let before = [net.path(0, 0).window, net.path(0, 1).window];
    net.nth("DATA", &[2], Fate::Drop);
    net.send(0, 0, payload(1, 100_000)).unwrap();
    net.run(MS(500));
    assert_eq!(net.path(0, 0).window, before[0]);
    assert!(net.path(0, 1).window.ssthresh < before[1].ssthresh);
    assert_eq!(net.a(0).buffered(), 0);
}
