//! RFC 7829, SCTP-PF, the potentially failed state: the requirements with MUST.

use crate::common::*;
use polypath_proto::policy::{failover, retransmission};
use polypath_proto::*;

const ACTIVE: PathState = PathState::Active;
const PF: PathState = PathState::PotentiallyFailed;
const INACTIVE: PathState = PathState::Inactive;

fn builder() -> ConfigBuilder {
    Config::rfc9260()
        .to_builder()
        .failover(&failover::POTENTIALLY_FAILED)
        .association_max_retrans(100)
}

fn open(config: ConfigBuilder) -> Net {
    established(2, config.build().unwrap())
}

/// State and error counter of each path of host 0.
fn paths(net: &Net) -> Vec<(PathState, u32)> {
    net.a(0).paths().map(|p| (p.state, p.error_count)).collect()
}

/// The networks of host 0's packets with this chunk since `mark`.
fn went(net: &Net, what: &str, mark: usize) -> Vec<u8> {
    net.sent_since(0, mark).iter().filter(|p| p.has(what)).map(Sent::net).collect()
}

#[test]
fn s3_2_r1_a_path_is_potentially_failed_when_its_errors_exceed_pfmr() {
    for pfmr in [0, 1, 3] {
        let config = builder().potentially_failed_max_retrans(pfmr).path_max_retrans(5);
        // T3-rtx expires: the retransmissions stay on the path.
        let mut net = open(config.retransmission(&retransmission::SAME));
        net.cuts.insert(0);
        net.send(0, 0, payload(1, 100)).unwrap();
        net.drive_until(S(100), |net| net.path(0, 0).error_count == pfmr + 1);
        assert_eq!(net.states(0), [PF, ACTIVE], "PFMR {pfmr}");
        let before = net.events(0, |e| matches!(e, Event::PathState { to: PF, .. }));
        assert_eq!(before.len(), 1);
        // HEARTBEATs of an idle path are not answered.
        let mut net = open(builder().potentially_failed_max_retrans(pfmr));
        net.cuts.insert(1);
        net.drive_until(S(400), |net| net.path(0, 1).error_count == pfmr);
        assert_eq!(net.states(0), [ACTIVE, ACTIVE], "PFMR {pfmr}");
        net.drive_until(S(400), |net| net.path(0, 1).error_count == pfmr + 1);
        assert_eq!(net.states(0), [ACTIVE, PF], "PFMR {pfmr}");
    }
}

/// Both paths are potentially failed, and data is waiting.
#[test]
fn s3_2_r2_r3_r4_a_potentially_failed_path_that_is_chosen_stays_as_it_is() {
    let mut net = open(builder().heartbeat_interval(None));
    net.cuts.extend([0, 1]);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(10), |net| net.states(0) == [PF, PF]);
    for _ in 0..3 {
        let (before, mark) = (paths(&net), net.log.len());
        net.drive_until(S(100), |net| !went(net, "DATA", mark).is_empty());
        let chosen = usize::from(went(&net, "DATA", mark)[0]);
        let after = paths(&net);
        assert_eq!(after[chosen].0, PF);
        // The timeout has increased the counter; choosing the path clears nothing.
        assert!(
            after[chosen].1 >= before[chosen].1 && before[chosen].1 > 0,
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn s3_2_r5_potentially_failed_paths_are_probed_once_per_rto_whatever_the_interval() {
    for interval in [S(5), S(3600)] {
        let mut net = open(builder().heartbeat_interval(Some(interval)));
        net.cuts.insert(0);
        let (start, mark) = (net.now, net.log.len());
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(S(40));
        let probes = net.sent_since(0, mark).into_iter();
        let probes = probes.filter(|p| p.has("HEARTBEAT") && p.net() == 0);
        let seconds: Vec<u64> = probes.map(|p| p.at.since(start).as_secs()).collect();
        assert_eq!(seconds, [1, 3, 7, 15, 31], "{interval:?}");
    }
}

#[test]
fn s3_2_r6_r7_without_heartbeats_a_potentially_failed_path_is_not_probed() {
    let mut net = open(builder().heartbeat_interval(None));
    net.cuts.insert(0);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(300));
    assert_eq!((net.states(0), went(&net, "HEARTBEAT", mark)), (vec![PF, ACTIVE], vec![]));
}

/// RFC 9260 7.2: the timeout has left a window of one packet, which slow start increases.
#[test]
fn s3_2_r8_a_path_that_is_active_again_begins_with_slow_start() {
    let mut net = open(builder());
    net.send(0, 0, payload(1, 200_000)).unwrap();
    net.run(S(3));
    let grown = net.path(0, 0).window.cwnd;
    net.cuts.insert(0);
    net.send(0, 0, payload(2, 3000)).unwrap();
    net.drive_until(S(10), |net| net.states(0) == [PF, ACTIVE]);
    net.cuts.clear();
    net.drive_until(S(10), |net| net.states(0) == [ACTIVE, ACTIVE]);
    assert_eq!(net.a(0).current_path(), PathId(0));
    let window = net.path(0, 0).window;
    assert!(window.cwnd < grown / 2 && window.cwnd < window.ssthresh, "{window:?}");
    let mark = net.log.len();
    net.send(0, 0, payload(3, 200_000)).unwrap();
    let burst = went(&net, "DATA", mark);
    let allowed = window.cwnd as usize / 1468 + 1;
    assert!((1..=allowed).contains(&burst.len()) && burst.iter().all(|net| *net == 0), "{burst:?}");
}

/// Unanswered HEARTBEATs have made both paths potentially failed; new data is sent to one of them.
#[test]
fn s3_2_r9_an_acknowledgement_of_data_sent_to_one_path_makes_it_active() {
    let mut net = open(builder().heartbeat_interval(None));
    net.cuts.extend([0, 1]);
    let now = net.now;
    for path in 0..2 {
        net.am(0).request_heartbeat(now, PathId(path)).unwrap();
    }
    net.drive_until(S(10), |net| paths(net) == [(PF, 1), (PF, 1)]);
    net.cuts.clear();
    let mark = net.log.len();
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(5), |net| net.a(0).buffered() == 0);
    let chosen = usize::from(went(&net, "DATA", mark)[0]);
    assert_eq!((paths(&net)[chosen], paths(&net)[1 - chosen]), ((ACTIVE, 0), (PF, 1)));
}

/// Every path is inactive, with or without a potentially failed state before.
#[test]
fn s4_r1_the_dormant_state_does_not_depend_on_pfmr() {
    let sent = |pfmr| {
        let config = builder()
            .heartbeat_interval(None)
            .path_max_retrans(1)
            .potentially_failed_max_retrans(pfmr);
        let mut net = open(config);
        net.cuts.extend([0, 1]);
        net.send(0, 0, payload(1, 100)).unwrap();
        net.drive_until(S(60), |net| net.states(0) == [INACTIVE, INACTIVE]);
        let mark = net.log.len();
        net.run(S(300));
        (went(&net, "DATA", mark), net.closed(0))
    };
    let (networks, closed) = sent(0);
    assert!(networks.len() >= 5 && closed.is_none(), "{networks:?}");
    assert_eq!(sent(1), (networks, closed));
}

#[test]
fn s4_1_r1_r2_in_the_dormant_state_data_is_sent_and_changes_no_path() {
    let mut net = open(builder().heartbeat_interval(None).path_max_retrans(1));
    net.cuts.extend([0, 1]);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(60), |net| net.states(0) == [INACTIVE, INACTIVE]);
    for _ in 0..4 {
        let (before, mark) = (paths(&net), net.log.len());
        net.drive_until(S(200), |net| !went(net, "DATA", mark).is_empty());
        let after = paths(&net);
        assert!(after.iter().all(|(state, _)| *state == INACTIVE));
        assert!(before.iter().zip(&after).all(|(before, after)| after.1 >= before.1));
    }
}

#[test]
fn s5_r1_r3_a_psmr_below_pfmr_is_rejected() {
    let config = |psmr| {
        let config = builder().path_max_retrans(5).potentially_failed_max_retrans(2);
        config.change_primary_threshold(psmr).build()
    };
    assert!(config(Some(0)).is_err() && config(Some(1)).is_err());
    assert!(config(Some(2)).is_ok() && config(Some(9)).is_ok() && config(None).is_ok());
    // If the failover policy has no switchover, every value is rejected.
    let standard = Config::rfc9260().to_builder().failover(&failover::STANDARD);
    assert!(standard.change_primary_threshold(Some(5)).build().is_err());
    // The same while the association runs.
    let mut net = open(builder());
    let known = net.path(0, 0).thresholds;
    let wanted = Thresholds { potentially_failed_max_retrans: 2, change_primary: Some(1), ..known };
    assert!(net.am(0).set_thresholds(None, wanted).is_err());
    assert_eq!(net.path(0, 0).thresholds, known);
}

#[test]
fn s5_r4_r5_r6_above_psmr_the_path_in_use_becomes_the_primary() {
    // PSMR = PFMR, and above.
    for psmr in [0, 2] {
        let mut net = open(builder().change_primary_threshold(Some(psmr)));
        net.cuts.insert(0);
        net.send(0, 0, payload(1, 100)).unwrap();
        if psmr > 0 {
            net.drive_until(S(60), |net| net.path(0, 0).error_count == psmr);
            assert_eq!(net.a(0).primary(), PathId(0));
        }
        net.drive_until(S(60), |net| net.path(0, 0).error_count == psmr + 1);
        assert_eq!((net.a(0).primary(), net.a(0).current_path()), (PathId(1), PathId(1)));
        assert!(net.saw(0, &Event::PrimaryChanged { path: PathId(1) }));
        // No switchback when the old primary answers.
        net.cuts.clear();
        net.drive_until(S(60), |net| net.states(0) == [ACTIVE, ACTIVE]);
        assert_eq!((net.a(0).primary(), net.a(0).current_path()), (PathId(1), PathId(1)));
    }
}

#[test]
fn s5_r8_without_switchover_the_primary_is_used_again() {
    let mut net = open(builder().change_primary_threshold(None));
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(100), |net| net.states(0) == [INACTIVE, ACTIVE]);
    assert_eq!((net.a(0).primary(), net.a(0).current_path()), (PathId(0), PathId(1)));
    net.cuts.clear();
    net.drive_until(S(100), |net| net.states(0) == [ACTIVE, ACTIVE]);
    assert_eq!((net.a(0).primary(), net.a(0).current_path()), (PathId(0), PathId(0)));
}
