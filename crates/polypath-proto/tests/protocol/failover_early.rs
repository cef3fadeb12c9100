//! Redirecting data before a path has failed: the mechanism that Caro 2006 (failover), V,
//! advocates, and the potentially failed state of RFC 7829.

use crate::common::*;
use polypath_proto::policy::{Entry, FailoverPolicy, failover, retransmission};
use polypath_proto::*;

const ACTIVE: PathState = PathState::Active;
const PF: PathState = PathState::PotentiallyFailed;
const INACTIVE: PathState = PathState::Inactive;

fn config(answer: &'static Entry<dyn FailoverPolicy>) -> ConfigBuilder {
    Config::rfc9260().to_builder().failover(answer).association_max_retrans(100)
}

fn open(paths: u8, config: ConfigBuilder) -> Net {
    established(paths, config.build().unwrap())
}

/// Destination networks of host 0's packets with a `what` chunk since `mark`.
fn went(net: &Net, what: &str, mark: usize) -> Vec<u8> {
    net.sent_since(0, mark).iter().filter(|p| p.has(what)).map(Sent::net).collect()
}

/// Times at which `path` of host 0 changed to `state`, in milliseconds since `start`.
fn became(net: &Net, start: Time, path: u8, state: PathState) -> Vec<u64> {
    let what = |e: &Event| matches!(e, Event::PathState { path: p, to, .. } if p.0 == path && *to == state);
    let start = start.as_nanos() / 1_000_000;
    net.events(0, what).iter().filter_map(|(ms, _)| ms.checked_sub(start)).collect()
}

/// Fig. 13: the first timeout redirects new data, while PMR decides when the primary has failed: a
/// HEARTBEAT sent at once and its repetitions detect the failure, after the RTOs 1, 2, 4 .. 32 s.
/// With PMR alone, new data is redirected only then.
#[test]
fn the_first_timeout_redirects_and_failure_is_detected_in_the_background() {
    for answer in [&failover::TWO_PHASE, &failover::POTENTIALLY_FAILED] {
        let mut net = open(2, config(answer));
        net.cuts.insert(0);
        let (start, mark) = (net.now, net.log.len());
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(S(2));
        assert_eq!(became(&net, start, 0, PF), [1000], "{answer:?}");
        assert_eq!((net.states(0), net.a(0).current_path()), (vec![PF, ACTIVE], PathId(1)));
        assert_eq!(went(&net, "HEARTBEAT", mark), [0], "{answer:?}");
        let sent = net.log.len();
        net.send(0, 0, payload(2, 100)).unwrap();
        assert_eq!(went(&net, "DATA", sent), [1], "{answer:?}");
        net.run(S(62));
        assert_eq!(became(&net, start, 0, INACTIVE), [63_000], "{answer:?}");
        assert_eq!(net.path(0, 0).error_count, 6);
        let asked = net.sent_since(0, mark).into_iter();
        let asked = asked.filter(|p| p.has("HEARTBEAT") && p.net() == 0);
        let times: Vec<u64> = asked.map(|p| p.at.since(start).as_secs()).collect();
        assert_eq!(times[..5], [1, 3, 7, 15, 31], "{answer:?}");
        // From then on, the failed path gets a HEARTBEAT in each heartbeat period.
        net.cuts.clear();
        net.drive_until(S(130), |net| net.states(0)[0] == ACTIVE);
        assert_eq!(net.a(0).current_path(), PathId(0), "{answer:?}");
    }
    let mut net = open(2, config(&failover::STANDARD));
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(2));
    assert_eq!((net.states(0), net.a(0).current_path()), (vec![ACTIVE, ACTIVE], PathId(0)));
}

/// Fig. 13, RFC 7829 3.2: the HEARTBEAT ACK returns new data to the path at once.
#[test]
fn a_path_that_answers_its_first_heartbeat_is_used_again() {
    for answer in [&failover::TWO_PHASE, &failover::POTENTIALLY_FAILED] {
        let mut net = open(2, config(answer));
        net.drop_once(&["DATA"]);
        let start = net.now;
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(S(2));
        assert_eq!(became(&net, start, 0, ACTIVE).last(), Some(&1020), "{answer:?}");
        assert_eq!(net.a(0).current_path(), PathId(0), "{answer:?}");
        assert_eq!(net.a(0).path_stats(PathId(0)).unwrap().failures, 0, "{answer:?}");
    }
}

/// Fig. 13: "each timeout redirects new data to a different destination", even to one with an
/// error. RFC 7829 3.2 (4) prefers the path with the fewest errors, and of equals not the one that
/// failed last.
#[test]
fn a_timeout_of_the_stand_in_redirects_again() {
    let run = |answer| {
        let mut net = open(2, config(answer).retransmission(&retransmission::SAME));
        net.cuts.extend([0, 1]);
        let mark = net.log.len();
        net.send(0, 0, payload(1, 100)).unwrap();
        // The primary gets HEARTBEATs at 1 and 3 s; the alternate path times out at 2 s.
        net.run(MS(2500));
        assert_eq!(net.states(0), [PF, PF], "{answer:?}");
        assert_eq!(went(&net, "DATA", mark)[..2], [0, 1], "{answer:?}");
        let now = net.a(0).current_path().0;
        net.run(MS(2000));
        (now, net.a(0).current_path().0)
    };
    // Both have one error, the alternate's being the later one; at 3 s the primary has two.
    assert_eq!(run(&failover::TWO_PHASE).0, 0);
    assert_eq!(run(&failover::POTENTIALLY_FAILED), (0, 1));
}

/// Fig. 13: "skipping failed destinations".
#[test]
fn failed_paths_are_skipped() {
    let mut net = open(3, config(&failover::TWO_PHASE));
    let hasty = Thresholds { path_max_retrans: 0, ..net.path(0, 1).thresholds };
    net.am(0).set_thresholds(Some(PathId(1)), hasty).unwrap();
    net.cuts.extend([0, 1]);
    let mark = net.log.len();
    let now = net.now;
    net.am(0).request_heartbeat(now, PathId(1)).unwrap();
    net.settle();
    net.drive_until(S(10), |net| net.states(0)[1] == INACTIVE);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(10), |net| net.a(0).buffered() == 0);
    assert_eq!((went(&net, "DATA", mark), net.a(0).current_path()), (vec![0, 2], PathId(2)));
}

/// RFC 7829 3.2: the state begins when the errors exceed PFMR; with a PFMR of PMR it never does.
#[test]
fn the_potentially_failed_threshold_can_be_chosen() {
    for (pfmr, states) in [(1, vec![PF, INACTIVE]), (3, vec![INACTIVE])] {
        let config = config(&failover::POTENTIALLY_FAILED)
            .path_max_retrans(3)
            .potentially_failed_max_retrans(pfmr)
            .retransmission(&retransmission::SAME);
        let mut net = open(2, config);
        net.cuts.insert(0);
        net.send(0, 0, payload(1, 100)).unwrap();
        net.drive_until(S(100), |net| net.states(0)[0] == INACTIVE);
        let seen = net.events(0, |e| matches!(e, Event::PathState { path: PathId(0), .. }));
        let seen = seen.iter().filter_map(|(_, e)| match e {
            Event::PathState { to, from: ACTIVE | PF, .. } => Some(*to),
            _ => None,
        });
        assert_eq!(seen.collect::<Vec<_>>(), states);
    }
}

/// RFC 7829 3.2: "... MUST honor whether the Path Heartbeat function is enabled".
#[test]
fn without_heartbeats_a_potentially_failed_path_is_not_asked() {
    let mut net = open(2, config(&failover::POTENTIALLY_FAILED).heartbeat_interval(None));
    net.cuts.insert(0);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(100));
    assert_eq!(net.states(0), [PF, ACTIVE]);
    assert_eq!(went(&net, "HEARTBEAT", mark), []);
}

/// RFC 7829 3.2: the acknowledgement of a retransmission does not show which path works.
#[test]
fn an_answer_to_a_retransmission_leaves_the_potentially_failed_state() {
    let mut net = open(2, config(&failover::POTENTIALLY_FAILED).heartbeat_interval(None));
    net.drop_once(&["DATA"]);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(10), |net| net.a(0).buffered() == 0);
    assert_eq!((net.states(0), net.a(0).current_path()), (vec![PF, ACTIVE], PathId(1)));
}

/// RFC 7829 4.1 (c): data is sent to the inactive path with the fewest errors, and choosing a path
/// does not clear its errors; Dormant Hop cycles through the paths whatever their errors.
#[test]
fn in_the_dormant_state_the_path_with_the_fewest_errors_is_tried() {
    let run = |answer| {
        let config = config(answer).path_max_retrans(0).heartbeat_interval(None);
        let mut net = open(3, config);
        net.cuts.extend([0, 1, 2]);
        // Path 2 has two errors already.
        for _ in 0..2 {
            let now = net.now;
            net.am(0).request_heartbeat(now, PathId(2)).unwrap();
            net.settle();
            net.run(S(3));
        }
        assert_eq!(net.path(0, 2).error_count, 2);
        let mark = net.log.len();
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(S(20));
        assert!(net.states(0).iter().all(|s| *s == INACTIVE));
        went(&net, "DATA", mark)[..5].to_vec()
    };
    assert_eq!(run(&failover::POTENTIALLY_FAILED), [0, 1, 0, 1, 2]);
    assert_eq!(run(&failover::DORMANT_HOP), [0, 1, 2, 0, 1]);
}

/// RFC 7829 5: the path in use becomes the primary when the primary's errors exceed PSMR.
#[test]
fn the_primary_switches_over_when_its_errors_exceed_the_threshold() {
    for threshold in [Some(0), Some(2), None] {
        let config = config(&failover::POTENTIALLY_FAILED).change_primary_threshold(threshold);
        let mut net = open(2, config);
        net.cuts.insert(0);
        net.send(0, 0, payload(1, 100)).unwrap();
        let errors = threshold.map_or(4, |t| t + 1);
        net.drive_until(S(60), |net| net.path(0, 0).error_count == errors);
        let primary = PathId(u8::from(threshold.is_some()));
        assert_eq!(net.a(0).primary(), primary, "{threshold:?}");
        net.cuts.clear();
        net.drive_until(S(60), |net| net.states(0)[0] == ACTIVE);
        assert_eq!(net.a(0).current_path(), primary, "{threshold:?}");
    }
}

/// RFC 7829 3.2: "the sender SHOULD choose an alternate destination transport address in active
/// state": a chunk stays on its path if the other one is potentially failed.
#[test]
fn a_retransmission_does_not_go_from_an_active_to_a_potentially_failed_path() {
    let config = config(&failover::POTENTIALLY_FAILED)
        .heartbeat_interval(None)
        .retransmission(&retransmission::ALTERNATE);
    let mut net = open(2, config);
    net.cuts.insert(1);
    let now = net.now;
    net.am(0).request_heartbeat(now, PathId(1)).unwrap();
    net.settle();
    net.run(S(2));
    assert_eq!(net.states(0), [ACTIVE, PF]);
    net.send(0, 0, payload(1, 50_000)).unwrap();
    net.run(S(1));
    net.nth("DATA", &[2], Fate::Drop);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 50_000)).unwrap();
    net.run(S(1));
    assert_eq!(net.a(0).path_stats(PathId(0)).unwrap().fast_retransmissions, 1);
    assert!(went(&net, "DATA", mark).iter().all(|path| *path == 0));
}

/// The profiles that follow ns-2 can use these policies as well: the first timeout sends a
/// HEARTBEAT.
#[cfg(feature = "ns2")]
#[test]
fn by_ns2s_procedures_the_first_timeout_redirects_too() {
    for answer in [&failover::TWO_PHASE, &failover::POTENTIALLY_FAILED] {
        let config = Config::profile("ns2-2.35").unwrap().to_builder().failover(answer);
        let mut net = pair(2, config.build().unwrap());
        net.connect(0);
        net.drive_until(S(20), Net::all_active);
        net.run(S(1));
        net.drop_once(&["DATA"]);
        let mark = net.log.len();
        net.send(0, 0, payload(1, 100)).unwrap();
        net.drive_until(S(10), |net| net.states(0)[0] == PF);
        assert_eq!(net.a(0).current_path(), PathId(1), "{answer:?}");
        net.run(S(2));
        assert_eq!(went(&net, "HEARTBEAT", mark), [0], "{answer:?}");
        assert_eq!((net.states(0)[0], net.a(0).current_path()), (ACTIVE, PathId(0)), "{answer:?}");
    }
}

/// RFC 7829 3.2 (10): the acknowledgement of a chunk that was sent to one path only "MUST
/// transition a destination address in PF state back to active state", also "due to the occurrence
/// of a spurious T3-rtx timer".
#[test]
fn a_spurious_timeout_is_taken_back_by_what_was_not_sent_again() {
    for (answer, back) in [(&failover::POTENTIALLY_FAILED, true), (&failover::TWO_PHASE, false)] {
        let mut net = open(2, config(answer).heartbeat_interval(None));
        net.send(0, 0, payload(1, 60_000)).unwrap();
        net.drive_until(S(1), |net| net.a(0).buffered() == 0);
        // Max.Burst is four packets; the other path's window has room for three of their
        // retransmissions.
        assert_eq!(net.path(0, 1).window.cwnd / net.path(0, 1).max_chunk, 3);
        net.filter(|p| if p.has("SACK") && p.net() == 0 { Fate::Drop } else { Fate::Pass });
        net.send(0, 0, payload(1, 20_000)).unwrap();
        net.drive_until(S(2), |net| net.a(0).path_stats(PathId(0)).unwrap().timeouts == 1);
        assert_eq!(net.states(0)[0], PF);
        net.run(MS(25));
        assert!(
            net.a(0).buffered() < 20_000,
            "all four have been acknowledged over the other path"
        );
        assert_eq!(net.states(0)[0], if back { ACTIVE } else { PF }, "{answer:?}");
        assert_eq!(net.path(0, 0).error_count, u32::from(!back));
    }
}

/// RFC 7829 3.2 (9): "Acknowledgments for chunks that have been transmitted to multiple
/// destinations SHOULD NOT clear the error count for an inactive destination address", not even in
/// the dormant state; a chunk that was sent once clears it.
#[test]
fn in_the_dormant_state_only_a_chunk_that_was_sent_to_one_path_is_believed() {
    for (answer, believed) in
        [(&failover::POTENTIALLY_FAILED, false), (&failover::DORMANT_HOP, true)]
    {
        let mut net = open(2, config(answer).path_max_retrans(0).heartbeat_interval(None));
        net.cuts.extend([0, 1]);
        net.send(0, 0, payload(1, 100)).unwrap();
        net.drive_until(S(20), |net| net.states(0) == [INACTIVE, INACTIVE]);
        net.cuts.clear();
        net.drive_until(S(20), |net| net.a(0).buffered() == 0);
        assert_eq!(net.states(0).contains(&ACTIVE), believed, "{answer:?}");
        net.send(0, 0, payload(2, 100)).unwrap();
        net.drive_until(S(20), |net| net.a(0).buffered() == 0);
        assert!(net.states(0).contains(&ACTIVE), "{answer:?}");
    }
}
