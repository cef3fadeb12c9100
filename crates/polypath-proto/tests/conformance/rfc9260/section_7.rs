//! RFC 9260, section 7: Congestion Control.

use super::setup::{FULL, Flow, NONE, PMDCS, quiet, two_homed};
use crate::common::*;
use polypath_proto::*;

/// A full window of `packets` chunks in flight, each in its own packet.
fn full_window(packets: u32, config: ConfigBuilder) -> Flow {
    let mut flow = Flow::new(config.initial_cwnd(packets).max_burst(packets));
    flow.give(400, FULL);
    assert_eq!((flow.cwnd(), flow.path().in_flight / PMDCS), (packets, packets));
    flow
}

fn window(cwnd: u32, ssthresh: u32) -> Window {
    Window::unpaced(cwnd * PMDCS, ssthresh * PMDCS)
}

#[test]
fn s7_2_r1_r2_windows_grow_no_faster_than_the_algorithms_allow() {
    for ssthresh in [None, Some(10 * PMDCS)] {
        let mut flow = Flow::new(quiet().initial_ssthresh(ssthresh));
        flow.give(700, FULL);
        let (mut acked, mut sent) = (0, 3u32);
        for _ in 0..6 {
            let before = flow.path().window.cwnd;
            // One round trip: a SACK for every second packet.
            for _ in 0..sent.div_ceil(2) {
                acked += 2.min(flow.path().in_flight / PMDCS);
                flow.sack(acked, &[]);
                assert!(flow.path().in_flight < flow.path().window.cwnd + PMDCS);
            }
            sent = flow.path().in_flight / PMDCS;
            let most = match ssthresh {
                Some(limit) if before > limit => before + PMDCS,
                _ => 2 * before,
            };
            assert!(flow.path().window.cwnd <= most, "{before} -> {:?}", flow.path().window);
        }
        assert!(flow.cwnd() > 10, "and they do grow");
    }
}

#[test]
fn s7_2_r3_each_destination_has_its_own_variables() {
    let (mut net, hand, _) = two_homed(quiet().initial_cwnd(8).max_burst(8));
    let before = net.path(1, 1).window;
    net.send(1, 0, payload(1, 8 * FULL)).unwrap();
    for last in 2..=4 {
        hand.sack(&mut net, 0, &[(2, last)]);
    }
    assert_eq!(net.path(1, 0).window, window(4, 4));
    assert_eq!(net.path(1, 1).window, before);
}

#[test]
fn s7_2_r4_chunks_count_with_their_padding() {
    let mut flow = Flow::new(quiet());
    flow.give(100, 101);
    let (before, in_flight) = (flow.path().window.cwnd, flow.path().in_flight);
    // A chunk of 16 + 101 bytes takes 120.
    assert!(in_flight >= before && in_flight.is_multiple_of(120), "{in_flight}");
    flow.sack(1, &[]);
    assert_eq!(flow.path().window.cwnd, before + 120);
}

#[test]
fn s7_2_1_r1_the_initial_window_depends_on_mtu_and_family() {
    for (mtu, v6, cwnd) in [
        (576, false, 4 * 544),
        (1500, false, 4404),
        (9000, false, 2 * 8968),
        (1500, true, 4344),
        (9000, true, 2 * 8948),
    ] {
        let config = quiet().path_mtu(mtu).build().unwrap();
        let configs = [config.clone(), config];
        let mut net = Setup { v6, configs, ..Setup::default() }.build();
        net.establish();
        assert_eq!(net.path(0, 0).window.cwnd, cwnd, "an MTU of {mtu}");
        net.send(0, 0, payload(1, 100_000)).unwrap();
        let flight: usize = net.sent(0).iter().flat_map(Sent::data).map(|d| d.len).sum();
        assert!(flight as u32 <= cwnd + u32::from(mtu), "{flight} bytes at once");
    }
}

#[test]
fn s7_2_1_r2_one_packet_is_in_flight_after_a_timeout() {
    for len in [700, 1000, FULL] {
        let mut flow = Flow::new(quiet());
        flow.give(100, len);
        assert_eq!(flow.wait(1001).len(), 1, "{len}");
        assert!(flow.path().window.cwnd <= PMDCS);
        assert_eq!(flow.wait(900), NONE, "{len}: nothing before an acknowledgement");
        assert!(!flow.sack(1, &[]).is_empty());
    }
}

#[test]
fn s7_2_1_r3_ssthresh_begins_high() {
    let flow = Flow::to(Hand { rwnd: 77_000_000, ..Hand::new(1) }, quiet());
    assert!(flow.path().window.ssthresh >= 77_000_000);
}

#[test]
fn s7_2_1_r5_r6_a_window_that_is_not_in_full_use_does_not_grow() {
    let mut flow = Flow::new(quiet().initial_cwnd(10).max_burst(10));
    for n in 1..=9 {
        flow.give(9, FULL);
        flow.sack(9 * n, &[]);
    }
    assert_eq!(flow.cwnd(), 10);
    // A SACK in fast recovery does not increase it either.
    let mut flow = full_window(20, quiet());
    for last in 2..=4 {
        flow.sack(0, &[(2, last)]);
    }
    assert_eq!(flow.cwnd(), 10);
    let highest = data_numbers(&flow.net.sent(1)).concat().into_iter().max().unwrap();
    for n in 4..highest {
        flow.sack(n, &[]);
        assert_eq!(flow.cwnd(), 10, "until {highest} is acknowledged");
    }
}

#[test]
fn s7_2_1_r7_r8_a_sack_adds_one_pmdcs_at_most() {
    let mut flow = full_window(10, quiet());
    flow.sack(1, &[]);
    assert_eq!(flow.cwnd(), 11);
    flow.sack(9, &[]);
    assert_eq!(flow.cwnd(), 12, "eight chunks in one SACK");
    // Less than one PMDCS is acknowledged.
    let mut flow = Flow::new(quiet());
    flow.give(1, 200);
    flow.give(20, FULL);
    let before = flow.path().window.cwnd;
    flow.sack(1, &[]);
    assert_eq!(flow.path().window.cwnd, before + 216);
    // The same SACK again acknowledges nothing.
    flow.sack(1, &[]);
    assert_eq!(flow.path().window.cwnd, before + 216);
}

#[test]
fn s7_2_1_r9_a_sack_is_apportioned_to_the_destinations() {
    let (mut net, hand, _) = two_homed(quiet().initial_cwnd(6).max_burst(6));
    net.send(1, 0, payload(1, 6 * FULL)).unwrap();
    let now = net.now;
    net.am(1).set_primary(now, PathId(1)).unwrap();
    net.send(1, 0, payload(1, 6 * FULL)).unwrap();
    assert_eq!([0, 1].map(|p| net.path(1, p).in_flight / PMDCS), [6, 6]);
    hand.sack(&mut net, 6, &[]);
    assert_eq!([0, 1].map(|p| net.path(1, p).window.cwnd / PMDCS), [7, 6]);
    hand.sack(&mut net, 12, &[]);
    assert_eq!([0, 1].map(|p| net.path(1, p).window.cwnd / PMDCS), [7, 7]);
}

#[test]
fn s7_2_1_r10_an_idle_window_decays_once_per_rto() {
    for (idle, cwnd) in [(900, 32), (1100, 16), (2100, 8), (3100, 4), (60_000, 4)] {
        let mut flow = Flow::new(quiet().initial_cwnd(32).max_burst(32));
        flow.give(1, FULL);
        flow.sack(1, &[]);
        flow.wait(idle);
        flow.give(1, FULL);
        assert_eq!(flow.cwnd(), cwnd, "after {idle} ms");
        if cwnd < 32 {
            assert_eq!(flow.path().window.ssthresh, 32 * PMDCS, "the window before");
        }
        flow.sack(2, &[]);
        // A further decay starts from another window.
        flow.wait(1100);
        flow.give(1, FULL);
        assert_eq!(flow.cwnd(), (cwnd / 2).max(4));
    }
}

#[test]
fn s7_2_2_r1_r2_r3_congestion_avoidance_adds_one_pmdcs_per_round_trip() {
    let mut flow = full_window(10, quiet().initial_ssthresh(Some(5000)));
    let mut acked = 0;
    for cwnd in 10..16 {
        for k in 1..=cwnd {
            assert_eq!(flow.cwnd(), cwnd, "{k} chunks of this round trip");
            acked += 1;
            flow.sack(acked, &[]);
        }
        assert_eq!(flow.cwnd(), cwnd + 1);
    }
    // A window that is not fully used does not grow, and saves up at most one window.
    let mut flow = Flow::new(quiet().initial_cwnd(10).max_burst(10).initial_ssthresh(Some(5000)));
    let mut n = 0;
    for _ in 0..20 {
        flow.give(9, FULL);
        for _ in 0..9 {
            n += 1;
            flow.sack(n, &[]);
        }
    }
    assert_eq!(flow.cwnd(), 10);
}

#[test]
fn s7_2_3_r1_a_loss_halves_the_window() {
    for (before, after) in [(20, 10), (10, 5), (8, 4), (6, 4), (5, 4)] {
        let mut flow = full_window(before, quiet());
        for last in 2..=4 {
            flow.sack(0, &[(2, last)]);
        }
        assert_eq!(flow.path().window, window(after, after));
    }
}

#[test]
fn s7_2_3_r2_a_timeout_begins_slow_start() {
    for (before, ssthresh) in [(20, 10), (6, 4)] {
        let mut flow = full_window(before, quiet());
        assert_eq!(flow.wait(1001), [[1]]);
        assert_eq!(flow.path().window, window(1, ssthresh));
        flow.sack(1, &[]);
        assert_eq!(flow.cwnd(), 2);
        let mut n = 1;
        while flow.cwnd() < ssthresh {
            n += 1;
            flow.sack(n, &[]);
            assert_eq!(flow.cwnd(), n + 1, "slow start");
        }
    }
}

#[test]
fn s7_2_4_r1_a_hole_is_reported_with_every_packet_until_it_is_filled() {
    let (mut net, hand) = super::setup::receiver(quiet());
    for n in [2, 3, 4, 5, 6] {
        assert_eq!(hand.data(&mut net, n).len(), 1, "{n}");
    }
    hand.data(&mut net, 1);
    net.run(MS(200));
    assert!(hand.data(&mut net, 7).is_empty(), "delayed again");
}

#[test]
fn s7_2_4_r2_three_missing_reports_are_awaited() {
    let mut flow = full_window(20, quiet());
    for last in [2, 3] {
        assert!(!flow.sack(0, &[(2, last)]).concat().contains(&1));
        assert_eq!(flow.cwnd(), 20);
    }
    assert_eq!(flow.sack(0, &[(2, 4)])[0], [1]);
}

#[test]
fn s7_2_4_r3_only_what_lies_below_the_highest_newly_acknowledged_is_missing() {
    let mut flow = full_window(20, quiet());
    // Chunks 1 to 3 are missing: one report for each of them.
    flow.sack(0, &[(4, 4)]);
    // Chunk 2 arrives: another report for 1, none for 3.
    flow.sack(0, &[(2, 2), (4, 4)]);
    let sent = flow.sack(0, &[(2, 2), (4, 5)]).concat();
    assert!(sent.contains(&1) && !sent.contains(&3), "{sent:?}");
    // The same SACK again reports nothing.
    let mut flow = full_window(20, quiet());
    for _ in 0..9 {
        assert!(!flow.sack(0, &[(2, 2)]).concat().contains(&1));
    }
}

#[test]
fn s7_2_4_r4_a_fast_retransmission_ignores_cwnd() {
    let mut flow = full_window(20, quiet());
    let mut sent = Vec::new();
    for last in 2..=4 {
        sent = flow.sack(0, &[(2, last)]);
    }
    assert!(flow.path().in_flight > flow.path().window.cwnd, "no room by cwnd");
    assert_eq!(sent, [[1]], "one packet, at once");
}

#[test]
fn s7_2_4_r5_a_window_is_cut_once_in_fast_recovery() {
    let (mut net, hand, _) = two_homed(quiet().initial_cwnd(20).max_burst(20));
    net.send(1, 0, payload(1, 20 * FULL)).unwrap();
    for gaps in [
        &[(2, 2)][..],
        &[(2, 3)],
        &[(2, 4)],
        &[(2, 4), (6, 6)],
        &[(2, 4), (6, 8)],
        &[(2, 4), (6, 9), (11, 11)],
        &[(2, 4), (6, 9), (11, 12)],
        &[(2, 4), (6, 9), (11, 13)],
    ] {
        hand.sack(&mut net, 0, gaps);
    }
    let again: Vec<u32> = data_numbers(&net.sent(1)).concat()[20..].to_vec();
    assert_eq!(again, [1, 5, 10], "three losses, found one after the other");
    assert_eq!(net.path(1, 0).window, window(10, 10));
    assert_eq!(net.path(1, 1).window.cwnd, 20 * PMDCS);
}

#[test]
fn s7_2_4_r6_a_window_grows_before_it_is_cut() {
    let mut flow = full_window(20, quiet());
    flow.sack(0, &[(3, 3)]);
    flow.sack(0, &[(3, 4)]);
    assert_eq!(flow.cwnd(), 20);
    // Advances the cumulative TSN to 1, and is the third report for 2: 21 packets, then half of
    // them.
    assert_eq!(flow.sack(1, &[(2, 4)])[0], [2]);
    assert_eq!(flow.path().window.ssthresh, 21 * PMDCS / 2);
}

#[test]
fn s7_2_5_r1_a_peer_that_restarts_is_met_with_initial_windows() {
    let mut flow = full_window(10, quiet());
    for n in 1..=10 {
        flow.sack(n, &[]);
    }
    assert_eq!(flow.cwnd(), 20);
    let again = Hand { tag: 0x2222, tsn: 1, cookie: Vec::new(), ..flow.hand.clone() };
    again.open(&mut flow.net);
    assert!(flow.net.saw(1, &Event::Restarted));
    assert_eq!((flow.path().window.cwnd, flow.path().srtt), (10 * PMDCS, None));
}

#[test]
fn s7_3_r1_r2_each_destination_has_its_own_pmtu() {
    let (net, limits) = (pair(2, quiet().path_mtu_discovery(true).build().unwrap()), [1500, 1280]);
    let mut net = net;
    let over = move |p: &Sent| p.bytes.len() + 20 > limits[usize::from(p.net())];
    net.filter(move |p| if over(p) { Fate::Drop } else { Fate::Pass });
    net.establish();
    net.run(S(60));
    let found = [0, 1].map(|p| net.a(0).path_mtu(PathId(p)).unwrap().mtu);
    assert!(found[0] == 1500 && (1270..=1280).contains(&found[1]), "{found:?}");
}

#[test]
fn s7_3_r3_r4_messages_are_cut_for_the_smallest_pmdcs() {
    let mut net = pair(3, quiet().path_mtu_discovery(true).build().unwrap());
    let limits = [1500, 1250, 1400];
    let over = move |p: &Sent| p.bytes.len() + 20 > limits[usize::from(p.net())];
    net.filter(move |p| if over(p) { Fate::Drop } else { Fate::Pass });
    net.establish();
    net.run(S(60));
    let mark = net.log.len();
    net.send(0, 0, payload(1, 60_000)).unwrap();
    net.run(S(2));
    let chunks: Vec<DataSeen> = net.sent_since(0, mark).iter().flat_map(Sent::data).collect();
    assert!(chunks.len() > 40 && chunks.iter().all(|c| c.len + 16 <= 1250 - 20 - 12));
    assert!(net.sent_since(0, mark).iter().all(|p| p.net() == 0), "although they leave on path 0");
}
