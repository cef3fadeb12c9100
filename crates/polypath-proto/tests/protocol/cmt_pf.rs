//! CMT-PF: concurrent multipath transfer that stops using a path after its first timeout (Natarajan
//! 2009).

use crate::common::*;
use polypath_proto::policy::{failover, probing, retransmission, scheduler};
use polypath_proto::*;

const ACTIVE: PathState = PathState::Active;
const PF: PathState = PathState::PotentiallyFailed;
const INACTIVE: PathState = PathState::Inactive;

fn profile(name: &str) -> ConfigBuilder {
    let config = Config::profile(name).unwrap().to_builder();
    config.association_max_retrans(100).initial_ssthresh(Some(20_000))
}

/// An association whose paths have carried data, so that both have windows and round-trip times.
fn open(paths: u8, config: ConfigBuilder) -> Net {
    let mut net = established(paths, config.build().unwrap());
    net.drive_until(S(5), Net::all_active);
    net.send(0, 0, payload(1, 200_000)).unwrap();
    net.run(S(5));
    assert_eq!(net.a(0).buffered(), 0);
    net
}

/// Times at which host 0 sent packets with a `what` chunk on `path` since `mark`, in milliseconds
/// since `start`.
fn left(net: &Net, what: &str, path: u8, start: Time, mark: usize) -> Vec<u64> {
    let all = net.sent_since(0, mark).into_iter();
    let own = all.filter(|p| p.has(what) && p.net() == path && p.at >= start);
    own.map(|p| p.at.since(start).as_millis() as u64).collect()
}

fn cwnd(net: &Net, path: u8) -> u32 {
    net.path(0, path).window.cwnd / net.path(0, path).max_chunk
}

/// 1: "After a single timeout on a path, a sender is unsure, and marks the corresponding
/// destination as PF. A PF destination is not used for data transmission or retransmission. Only
/// heartbeats are sent to the PF destination", 1, 2, 4 .. s apart, until PMR + 1 timeouts have made
/// it inactive.
#[test]
fn the_first_timeout_takes_all_data_from_a_path_and_its_heartbeats_find_out() {
    for (pmr, inactive_at) in [(5, 63_000), (1, 3_000), (0, 1_000)] {
        let mut net = open(2, profile("cmt-pf").path_max_retrans(pmr));
        net.cuts.insert(1);
        let (start, mark) = (net.now, net.log.len());
        net.send(0, 0, payload(1, 900_000)).unwrap();
        net.drive_until(S(10), |net| net.states(0)[1] != ACTIVE);
        let timed_out = net.now.since(start).as_millis() as u64;
        assert!((1000..1100).contains(&timed_out), "{timed_out}");
        assert_eq!(net.states(0)[1], if pmr == 0 { INACTIVE } else { PF });
        // Outstanding data is retransmitted on the other path, all of it before the next timeout.
        net.drive_until(MS(900), |net| net.a(0).buffered() == 0);
        let data = left(&net, "DATA", 1, start, mark);
        assert!(!data.is_empty() && data.iter().all(|at| *at < 1000), "{data:?}");
        net.run(S(64));
        assert!(left(&net, "DATA", 1, start, mark).len() == data.len());
        let to = |e: &Event| matches!(e, Event::PathState { path: PathId(1), to: INACTIVE, .. });
        let since = start.as_nanos() / 1_000_000 + timed_out - 1000;
        let inactive = net.events(0, to).first().map(|(at, _)| at - since);
        assert_eq!(inactive, Some(inactive_at), "PMR {pmr}");
        let asked = left(&net, "HEARTBEAT", 1, start, mark);
        let expected: Vec<u64> =
            (1..=u64::from(pmr)).map(|n| ((1 << n) - 1) * 1000 + timed_out - 1000).collect();
        assert_eq!(asked[..expected.len()], expected, "PMR {pmr}");
    }
    // CMT keeps sending data on the failed path.
    let mut net = open(2, profile("cmt"));
    net.cuts.insert(1);
    let (start, mark) = (net.now, net.log.len());
    for _ in 0..20 {
        // The send buffer may be full: the failed path blocks the receive buffer.
        let _ = net.send(0, 0, payload(1, 300_000));
        net.run(S(1));
    }
    assert_eq!(net.states(0)[1], ACTIVE);
    assert!(left(&net, "DATA", 1, start, mark).iter().any(|at| *at > 3000));
}

/// 1: "If a heartbeat-ack returns, the PF destination returns to active state"; 3.1: "slow starts
/// with initial cwnd=2 after receiving the heartbeat-ack". This also holds if idle paths get no
/// HEARTBEATs.
#[test]
fn an_answered_heartbeat_brings_a_path_back_with_a_window_of_its_own() {
    for packets in [1, 2, 3] {
        for interval in [None, Some(S(30))] {
            let config = profile("cmt-pf").potentially_failed_cwnd(packets);
            let mut net = open(2, config.heartbeat_interval(interval));
            net.cuts.insert(1);
            net.send(0, 0, payload(1, 300_000)).unwrap();
            net.drive_until(S(10), |net| net.states(0)[1] == PF);
            net.cuts.clear();
            net.drive_until(S(3), |net| net.states(0)[1] == ACTIVE);
            assert_eq!((cwnd(&net, 1), net.path(0, 1).error_count), (packets, 0));
            // The path is used for data again.
            let (now, mark) = (net.now, net.log.len());
            net.send(0, 0, payload(1, 300_000)).unwrap();
            net.run(S(2));
            assert!(!left(&net, "DATA", 1, now, mark).is_empty());
            assert_eq!(net.a(0).buffered(), 0);
        }
    }
}

/// 3.1: "To ensure that CMT-PF performs well even if all destinations get marked PF, CMT-PF
/// transitions the destination with the smallest number of consecutive timeouts back to the active
/// state".
#[test]
fn of_two_potentially_failed_paths_the_one_with_fewer_timeouts_takes_data() {
    let mut net = open(2, profile("cmt-pf"));
    net.cuts.insert(1);
    net.send(0, 0, payload(1, 300_000)).unwrap();
    net.drive_until(S(10), |net| net.path(0, 1).error_count == 2);
    net.run(S(2));
    assert_eq!((net.states(0), net.a(0).buffered()), (vec![ACTIVE, PF], 0));
    // Now the other path fails, too, with one timeout less.
    net.cuts.insert(0);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 300_000)).unwrap();
    net.drive_until(S(10), |net| net.path(0, 0).error_count == 1);
    assert_eq!((net.states(0), cwnd(&net, 0)), (vec![ACTIVE, PF], 1));
    let now = net.now;
    assert_eq!(left(&net, "DATA", 0, now, mark).iter().filter(|at| **at == 0).count(), 1);
    // The other path's HEARTBEATs time out as well; if the counts are equal, the path that timed
    // out last is used.
    let errors = |net: &Net| [0, 1].map(|p| net.path(0, p).error_count);
    for expected in [[2, 3], [3, 3]] {
        net.drive_until(S(20), |net| errors(net)[0] == expected[0]);
        assert_eq!((errors(&net), net.states(0)), (expected, vec![ACTIVE, PF]));
    }
    net.cuts.clear();
    net.drive_until(S(20), |net| net.a(0).buffered() == 0);
    assert_eq!(net.states(0), [ACTIVE, ACTIVE]);
}

/// 1: "CMT-PF retransmission policies are applied only for timeout based loss recoveries. One of
/// CMT's current retransmission policies [...] is applied for TPDU losses detected by" missing
/// reports.
#[test]
fn fast_retransmissions_follow_the_policy_whatever_the_state() {
    for (policy, to) in [(&retransmission::CWND, 1), (&retransmission::SAME, 0)] {
        let mut net = open(2, profile("cmt-pf").retransmission(policy));
        // The path of the lost chunk has the smaller window after the loss is found.
        net.nth("DATA", &[1], Fate::Drop);
        let mark = net.log.len();
        net.send(0, 0, payload(1, 100_000)).unwrap();
        net.run(S(1));
        assert_eq!(net.a(0).buffered(), 0);
        let lost = net.sent_since(0, mark).into_iter().find(|p| p.has("DATA")).unwrap();
        let from = lost.net();
        let n = lost.data()[0].n;
        let ways: Vec<u8> = net.sent_with(0, &format!("DATA {n}")).iter().map(Sent::net).collect();
        let expected = if to == 0 { from } else { 1 - from };
        assert_eq!(ways, [from, expected], "{policy:?}");
        assert_eq!(net.states(0), [ACTIVE, ACTIVE]);
    }
}

/// RFC 7829's thresholds apply to CMT-PF as well: both use the same state.
#[test]
fn the_thresholds_of_rfc_7829_hold() {
    let mut net = open(2, profile("cmt-pf").potentially_failed_max_retrans(1).path_max_retrans(2));
    net.cuts.insert(1);
    net.send(0, 0, payload(1, 300_000)).unwrap();
    let mut seen = Vec::new();
    for errors in 1..=3 {
        net.drive_until(S(30), |net| net.path(0, 1).error_count == errors);
        seen.push(net.states(0)[1]);
        net.send(0, 0, payload(1, 300_000)).unwrap();
    }
    assert_eq!(seen, [ACTIVE, PF, INACTIVE]);
}

/// 1: data outstanding on a failing path fills the receive buffer and stops the other path at each
/// timeout; with CMT-PF this happens once.
#[test]
fn a_failing_path_blocks_the_receive_buffer_once_instead_of_again_and_again() {
    let mut blocked = Vec::new();
    for name in ["cmt", "cmt-pf"] {
        let mut net = open(2, profile(name).receive_buffer(1 << 16).send_buffer(1 << 24));
        net.cuts.insert(1);
        let before = net.a(0).stats().nanoseconds_blocked;
        for _ in 0..12 {
            net.send(0, 0, payload(1, 1_000_000)).unwrap();
        }
        net.run(S(16));
        let ns = net.a(0).stats().nanoseconds_blocked - before;
        blocked.push(ns as f64 / 1e9);
    }
    // Timeouts after 1, 3, 7 and 15 s.
    assert!(blocked[0] > 8.0 && blocked[1] < 1.1, "{blocked:?} s");
}

/// A potentially failed path gets a HEARTBEAT at once, also with Heartbeat After RTO, which
/// requires another active path: without one, nothing else would detect that the path works again.
#[test]
fn all_paths_fail_with_heartbeat_after_rto_and_come_back() {
    for name in ["cmt-pf", "ns2-2.35"] {
        if name == "ns2-2.35" && cfg!(not(feature = "ns2")) {
            continue;
        }
        let config = profile(name)
            .failover(&failover::CMT_POTENTIALLY_FAILED)
            .scheduler(&scheduler::CONCURRENT)
            .retransmission(&retransmission::SSTHRESH)
            .probing(&probing::AFTER_RTO)
            .path_max_retrans(20);
        let mut net = open(2, config);
        net.cuts.extend([0, 1]);
        net.send(0, 0, payload(1, 3000)).unwrap();
        net.run(S(20));
        let received = net.hosts[1].received.len();
        net.cuts.clear();
        net.drive_until(S(200), |net| net.hosts[1].received.len() > received);
    }
}
