//! The dormant state, and permanent failovers (Caro 2006, failover, III.6 and IV).

use crate::common::*;
use polypath_proto::policy::{Entry, FailoverPolicy, failover, retransmission};
use polypath_proto::*;

/// An association without HEARTBEATs whose paths fail after one error.
fn open(paths: u8, answer: &'static Entry<dyn FailoverPolicy>, more: Builder) -> Net {
    let config = Config::rfc9260()
        .to_builder()
        .heartbeat_interval(None)
        .path_max_retrans(0)
        .association_max_retrans(100)
        .retransmission(&retransmission::SAME)
        .failover(answer);
    established(paths, more(config).build().unwrap())
}

type Builder = fn(ConfigBuilder) -> ConfigBuilder;

/// Destination networks of host 0's packets with DATA since `mark`.
fn data(net: &Net, mark: usize) -> Vec<u8> {
    net.sent_since(0, mark).iter().filter(|p| p.has("DATA")).map(Sent::net).collect()
}

/// Cuts every path and sends one message. Returns the path of each transmission, after timeouts of
/// 1 s on a path the first time, then 2 s, ..., and the paths chosen for new data.
fn dormant(paths: u8, answer: &'static Entry<dyn FailoverPolicy>) -> (Vec<u8>, Vec<u8>) {
    let mut net = open(paths, answer, |c| c);
    net.cuts.extend(0..paths);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(40));
    let sent = data(&net, mark);
    let currents = net.hosts[0].events.iter().filter_map(|(_, e)| match e {
        Event::CurrentPath { path, .. } => Some(path.0),
        _ => None,
    });
    (sent, currents.collect())
}

/// III.6: the three behaviours send to different destinations.
#[test]
fn the_dormant_behaviours_send_to_different_paths() {
    // Phase II begins with the first timeout, the dormant state with the second on two paths, and
    // with the third on three.
    let (sent, new) = dormant(2, &failover::DORMANT_LAST_DEST);
    assert_eq!((&sent[..], &new[..]), (&[0, 1, 1, 1, 1, 1, 1][..], &[1][..]));
    let (sent, new) = dormant(2, &failover::DORMANT_PRIMARY);
    assert_eq!((&sent[..5], &new[..]), (&[0, 1, 0, 0, 0][..], &[1, 0][..]));
    let (sent, new) = dormant(2, &failover::DORMANT_HOP);
    assert_eq!((&sent[..6], &new[..6]), (&[0, 1, 0, 1, 0, 1][..], &[1, 0, 1, 0, 1, 0][..]));
    let (sent, new) = dormant(2, &failover::STANDARD);
    assert_eq!((&sent[..6], &new[..]), (&[0, 1, 0, 1, 0, 1][..], &[1][..]));

    let (sent, new) = dormant(3, &failover::DORMANT_LAST_DEST);
    assert_eq!((&sent[..5], &new[..]), (&[0, 1, 2, 2, 2][..], &[1, 2][..]));
    let (sent, new) = dormant(3, &failover::DORMANT_PRIMARY);
    assert_eq!((&sent[..5], &new[..]), (&[0, 1, 2, 0, 0][..], &[1, 2, 0][..]));
    let (sent, new) = dormant(3, &failover::DORMANT_HOP);
    assert_eq!((&sent[..7], &new[..6]), (&[0, 1, 2, 0, 1, 2, 0][..], &[1, 2, 0, 1, 2, 0][..]));
}

/// III.6: "If the primary destination replies, the dormant state is exited, and the association
/// returns to Phase I. If an alternate destination replies, the association returns to Phase II".
#[test]
fn the_first_path_to_answer_ends_the_dormant_state() {
    for answer in [
        &failover::STANDARD,
        &failover::DORMANT_LAST_DEST,
        &failover::DORMANT_PRIMARY,
        &failover::DORMANT_HOP,
        &failover::PERMANENT,
    ] {
        for back in [0, 2] {
            let mut net = open(3, answer, |c| c);
            net.cuts.extend(0..3);
            net.send(0, 0, payload(1, 100)).unwrap();
            net.run(S(20));
            assert!(net.states(0).iter().all(|s| *s == PathState::Inactive), "{answer:?}");
            net.cuts.remove(&back);
            let now = net.now;
            net.am(0).request_heartbeat(now, PathId(back)).unwrap();
            net.settle();
            net.run(MS(500));
            assert_eq!(net.a(0).current_path(), PathId(back), "{answer:?}");
            net.send(0, 0, payload(2, 100)).unwrap();
            net.drive_until(S(130), |net| net.a(0).buffered() == 0);
            assert_eq!(net.hosts[1].received.len(), 2, "{answer:?}");
        }
    }
}

/// ns-2 (ns2.md): Dormant Hop rotates retransmissions only, an alternate's answer does not redirect
/// new data to it, and the other two policies redirect new data as their names state.
#[cfg(feature = "ns2")]
#[test]
fn by_ns2s_procedures_new_data_is_redirected_only_when_its_path_fails() {
    use polypath_proto::procedures::ns2::PROCEDURES;
    let ns2: Builder = |c| c.procedures(PROCEDURES).path_confirmation(PathConfirmation::Off);
    let run = |answer| {
        let mut net = open(2, answer, ns2);
        net.cuts.extend(0..2);
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(S(40));
        let currents = net.events(0, |e| matches!(e, Event::CurrentPath { .. })).len();
        net.cuts.remove(&1);
        let now = net.now;
        net.am(0).request_heartbeat(now, PathId(1)).unwrap();
        net.settle();
        net.run(S(1));
        assert_eq!(net.states(0)[1], PathState::Active, "{answer:?}");
        (currents, net.a(0).current_path().0)
    };
    // Hop: from the primary to the alternate, then back to the primary, where new data stays.
    assert_eq!(run(&failover::DORMANT_HOP), (2, 0));
    assert_eq!(run(&failover::DORMANT_PRIMARY), (2, 0));
    assert_eq!(run(&failover::DORMANT_LAST_DEST), (1, 1));
}

/// Fig. 9, Phase II: the alternate becomes the primary once the primary's errors exceed CPT, and
/// new data does not return to the old one.
#[test]
fn a_failover_is_permanent_above_the_change_primary_threshold() {
    let config = || {
        Config::rfc9260()
            .to_builder()
            .path_max_retrans(1)
            .heartbeat_interval(Some(S(1)))
            .retransmission(&retransmission::SAME)
    };
    for (answer, threshold, changes) in [
        (&failover::PERMANENT, Some(0), true),
        (&failover::PERMANENT, Some(3), true),
        (&failover::PERMANENT, None, false),
        (&failover::DORMANT_HOP, None, false),
    ] {
        let config = config().failover(answer).change_primary_threshold(threshold);
        let mut net = established(2, config.build().unwrap());
        net.cuts.insert(0);
        net.send(0, 0, payload(1, 100)).unwrap();
        let errors = threshold.unwrap_or(3).max(1) + 1;
        net.drive_until(S(200), |net| net.path(0, 0).error_count == errors - 1);
        assert_eq!(net.a(0).primary(), PathId(0));
        net.drive_until(S(200), |net| net.path(0, 0).error_count == errors);
        assert_eq!(net.a(0).primary(), PathId(u8::from(changes)), "{answer:?} {threshold:?}");
        assert_eq!(net.saw(0, &Event::PrimaryChanged { path: PathId(1) }), changes);
        net.cuts.clear();
        net.drive_until(S(200), |net| net.states(0)[0] == PathState::Active);
        assert_eq!(net.a(0).current_path(), PathId(u8::from(changes)));
    }
}

/// Fig. 9, Phase III: changing the primary changes no path's state.
#[test]
fn in_the_dormant_state_the_primary_changes_and_the_state_stays() {
    let mut net = open(3, &failover::PERMANENT, |c| c.change_primary_threshold(Some(1)));
    net.cuts.extend(0..3);
    net.send(0, 0, payload(1, 100)).unwrap();
    // Each path has one error, and then the primary has a second: data moves from path 0 to path 1.
    net.drive_until(S(30), |net| net.path(0, 0).error_count == 2);
    assert_eq!(net.states(0), [PathState::Inactive; 3]);
    assert_eq!((net.a(0).primary(), net.a(0).current_path()), (PathId(1), PathId(1)));
}

/// A threshold may differ from path to path and change while the association runs.
#[test]
fn thresholds_can_be_set_while_the_association_runs() {
    let mut net = open(3, &failover::PERMANENT, |c| c.path_max_retrans(5));
    let patient = net.path(0, 0).thresholds;
    assert_eq!(patient, Thresholds { path_max_retrans: 5, ..patient });
    let hasty = Thresholds { path_max_retrans: 1, change_primary: Some(1), ..patient };
    net.am(0).set_thresholds(Some(PathId(1)), hasty).unwrap();
    let now = net.now;
    net.am(0).set_primary(now, PathId(1)).unwrap();
    net.cuts.insert(1);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(10), |net| net.states(0)[1] == PathState::Inactive);
    assert_eq!((net.path(0, 1).error_count, net.a(0).primary()), (2, PathId(2)));
    // Set the thresholds of all paths.
    net.am(0).set_thresholds(None, Thresholds { path_max_retrans: 0, ..patient }).unwrap();
    net.cuts.insert(2);
    net.send(0, 0, payload(2, 100)).unwrap();
    net.drive_until(S(10), |net| net.states(0)[2] == PathState::Inactive);
    assert_eq!(net.path(0, 2).error_count, 1);
    let none = net.am(0).set_thresholds(Some(PathId(3)), patient);
    assert_eq!(none, Err(PathError::NoSuchPath(PathId(3))));
    // Thresholds that RFC 7829 5 forbids or that the policy would ignore are refused.
    for (answer, change_primary, refused) in [
        (&failover::DORMANT_HOP, Some(7), true),
        (&failover::POTENTIALLY_FAILED, Some(1), true),
        (&failover::POTENTIALLY_FAILED, Some(2), false),
    ] {
        let mut other = open(2, answer, |c| c);
        let wanted = Thresholds { potentially_failed_max_retrans: 2, change_primary, ..patient };
        let result = other.am(0).set_thresholds(None, wanted);
        assert_eq!(result.is_err(), refused, "{result:?}");
        assert_eq!(other.path(0, 1).thresholds == wanted, !refused);
    }
    // Set the association's threshold.
    net.am(0).set_association_max_retrans(0);
    net.cuts.insert(0);
    net.send(0, 0, payload(3, 100)).unwrap();
    net.run(S(100));
    assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
}
