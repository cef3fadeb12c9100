//! Failed paths, their alternates, their recovery, and HEARTBEATs (RFC 9260 6.4, 8.1 to 8.3).

use crate::common::*;
use polypath_proto::policy::retransmission;
use polypath_proto::*;

fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder()
}

fn quiet() -> ConfigBuilder {
    config().heartbeat_interval(None)
}

fn same() -> ConfigBuilder {
    quiet().retransmission(&retransmission::SAME)
}

fn open(paths: u8, config: ConfigBuilder) -> Net {
    established(paths, config.build().unwrap())
}

/// Times at which path `path` of host 0 changed to this state, in milliseconds.
fn became(net: &Net, path: u8, state: PathState) -> Vec<u64> {
    let what = |e: &Event| matches!(e, Event::PathState { path: p, to, .. } if p.0 == path && *to == state);
    net.events(0, what).iter().map(|(ms, _)| *ms).collect()
}

fn currents(net: &Net) -> Vec<u8> {
    let paths = net.hosts[0].events.iter().filter_map(|(_, e)| match e {
        Event::CurrentPath { path, .. } => Some(path.0),
        _ => None,
    });
    paths.collect()
}

/// Times and networks of the packets with DATA that host 0 sent since `mark`.
fn data(net: &Net, mark: usize) -> Vec<(u64, u8)> {
    let packets = net.sent_since(0, mark).into_iter().filter(|p| p.has("DATA"));
    packets.map(|p| (p.ms(), p.net())).collect()
}

/// RFC 9260 8.2, 6.3.3 E2: a path becomes inactive with the error that exceeds Path.Max.Retrans,
/// after 1 + 2 + 4 + 8 + 16 + 32 s.
#[test]
fn a_path_is_inactive_after_path_max_retrans_errors_and_one_more() {
    let mut net = open(2, same());
    net.cuts.insert(0);
    let (start, mark) = (net.now.as_nanos() / 1_000_000, net.log.len());
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(S(62));
    assert_eq!((net.path(0, 0).state, net.path(0, 0).error_count), (PathState::Active, 5));
    net.run(S(10));
    let seconds = |s: u64| start + s * 1000;
    assert_eq!(became(&net, 0, PathState::Inactive), [seconds(63)]);
    let on_0 = [0, 1, 3, 7, 15, 31].map(|s| (seconds(s), 0));
    assert_eq!(data(&net, mark), [&on_0[..], &[(seconds(63), 1)]].concat());
    assert_eq!((currents(&net), net.hosts[1].received.len()), (vec![1], 1));
}

/// RFC 9260 6.4.1: data that times out is retransmitted to another address.
#[test]
fn a_timeout_retransmission_takes_the_alternate_path() {
    let mut net = open(2, quiet());
    net.cuts.insert(0);
    let (start, mark) = (net.now.as_nanos() / 1_000_000, net.log.len());
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(S(5));
    assert_eq!(data(&net, mark), [(start, 0), (start + 1000, 1)]);
    assert_eq!(net.hosts[1].received.len(), 1);
    // There is one error, and new data is still sent on the primary.
    assert_eq!((net.path(0, 0).error_count, net.a(0).current_path()), (1, PathId(0)));
    let mark = net.log.len();
    net.send(0, 0, payload(1, 1000)).unwrap();
    assert_eq!(data(&net, mark)[0].1, 0);
}

/// RFC 9260 8.2: if every retransmission is sent on the alternate path, the primary's errors add up
/// although the association's do not.
#[test]
fn errors_of_the_primary_add_up_while_the_alternate_answers() {
    let mut net = open(2, quiet());
    net.cuts.insert(0);
    let start = net.now;
    for i in 0..100 {
        net.send(0, 0, payload(i, 3000)).unwrap();
    }
    net.drive_until(S(100), |net| net.path(0, 0).state == PathState::Inactive);
    let taken = net.now.since(start);
    assert!(taken >= S(63) && taken < MS(63_500), "{taken:?}");
    assert_eq!(net.a(0).path_stats(PathId(0)).unwrap().timeouts, 6);
    assert_eq!(net.a(0).path_stats(PathId(0)).unwrap().failures, 1);
    let mark = net.log.len();
    net.drive_until(S(5), |net| net.a(0).buffered() == 0);
    assert!(data(&net, mark).iter().all(|(_, path)| *path == 1));
}

/// RFC 9260 6.4.1: fast retransmissions stay on their path.
#[test]
fn a_fast_retransmission_stays_on_its_path() {
    let mut net = open(2, quiet());
    net.send(0, 0, payload(1, 50_000)).unwrap();
    net.run(S(1));
    net.nth("DATA", &[2], Fate::Drop);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 50_000)).unwrap();
    net.run(S(1));
    assert_eq!(net.a(0).path_stats(PathId(0)).unwrap().fast_retransmissions, 1);
    assert!(data(&net, mark).iter().all(|(_, path)| *path == 0));
}

/// RFC 9260 8.3, 6.4: the inactive path gets HEARTBEATs, and the first HEARTBEAT ACK returns data
/// to it.
#[test]
fn the_primary_is_used_again_when_it_answers() {
    let mut net = open(2, config().path_max_retrans(2));
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 20_000)).unwrap();
    net.drive_until(S(60), |net| net.path(0, 0).state == PathState::Inactive);
    net.drive_until(S(60), |net| net.a(0).buffered() == 0);
    net.run(S(200));
    let down = became(&net, 0, PathState::Inactive)[0];
    let asked = net.sent_with(0, "HEARTBEAT").into_iter().filter(|p| p.net() == 0 && p.ms() > down);
    assert!(asked.count() >= 2);
    net.cuts.clear();
    net.drive_until(S(130), |net| net.path(0, 0).state == PathState::Active);
    assert_eq!((net.path(0, 0).error_count, currents(&net)), (0, vec![1, 0]));
    let mark = net.log.len();
    net.send(0, 0, payload(1, 1000)).unwrap();
    assert_eq!(data(&net, mark)[0].1, 0);
}

/// RFC 9260 8.2: an acknowledgement of data clears the errors, as a HEARTBEAT ACK does.
#[test]
fn errors_are_forgotten_with_the_first_answer() {
    let mut net = open(1, quiet());
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(8));
    assert_eq!(net.path(0, 0).error_count, 3);
    net.cuts.clear();
    net.run(S(8));
    assert_eq!((net.path(0, 0).error_count, net.a(0).buffered()), (0, 0));

    net.cuts.insert(0);
    net.send(0, 0, payload(1, 100)).unwrap();
    // The RTO is still that of the fourth attempt (6.3.1 C5).
    net.drive_until(S(20), |net| net.path(0, 0).error_count > 0);
    net.cuts.clear();
    net.drop_all("DATA");
    let now = net.now;
    net.am(0).request_heartbeat(now, PathId(0)).unwrap();
    net.settle();
    net.run(MS(100));
    assert_eq!(net.path(0, 0).error_count, 0, "by the heartbeat");
}

/// RFC 9260 8.1: consecutive errors count, over all paths.
#[test]
fn too_many_errors_in_a_row_end_the_association() {
    for most in [0, 1, 3, 10] {
        let mut net = open(1, quiet().association_max_retrans(most));
        net.cuts.insert(0);
        let start = net.now;
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(S(1000));
        assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
        assert_eq!(net.a(0).path_stats(PathId(0)).unwrap().timeouts, u64::from(most) + 1);
        let at = net.events(0, |e| matches!(e, Event::Closed(_)))[0].0;
        let taken: u64 = (0..=most).map(|i| (1000 << i).min(60_000)).sum();
        assert_eq!(at - start.as_nanos() / 1_000_000, taken);
    }
    // HEARTBEATs are off: errors of those on paths without data would not count.
    for mut net in [open(2, quiet()), open(3, same())] {
        net.cuts.extend([0, 1, 2]);
        net.send(0, 0, payload(1, 50_000)).unwrap();
        net.run(S(2000));
        assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
        let errors = |path| {
            let s = net.a(0).path_stats(PathId(path)).unwrap();
            s.timeouts + s.heartbeats_lost
        };
        let paths = net.a(0).paths().count() as u8;
        assert_eq!((0..paths).map(errors).sum::<u64>(), 11);
    }
}

/// RFC 9260 8.2: a Path.Max.Retrans of zero.
#[test]
fn the_first_error_may_be_enough() {
    let mut net = open(2, quiet().path_max_retrans(0));
    net.cuts.insert(0);
    let start = net.now.as_nanos() / 1_000_000;
    net.send(0, 0, payload(1, 5000)).unwrap();
    net.run(S(5));
    assert_eq!(became(&net, 0, PathState::Inactive), [start + 1000]);
    assert_eq!(net.hosts[1].received.len(), 1);
}

/// RFC 9260 8.3: idle paths get a HEARTBEAT every RTO + HB.interval, +/- 50 % of the RTO.
#[test]
fn idle_paths_are_asked_once_each_heartbeat_period() {
    let mut net = open(2, config());
    net.run(S(1000));
    for path in 0..2 {
        let sent = net.sent_with(0, "HEARTBEAT").into_iter().filter(|p| p.net() == path);
        let times: Vec<u64> = sent.map(|p| p.ms()).collect();
        let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.len() >= 30, "path {path}: {gaps:?}");
        assert!(gaps.iter().all(|g| (30_500..=31_500).contains(g)), "path {path}: {gaps:?}");
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(most - least > 500, "path {path}: hardly any jitter: {gaps:?}");
    }
    assert!((0..2).all(|p| net.path(0, p).error_count == 0));
}

/// RFC 9260 8.3: the interval is a parameter; without one only unconfirmed paths get HEARTBEATs.
#[test]
fn the_heartbeat_interval_can_be_chosen() {
    let mut net = open(2, config().heartbeat_interval(Some(S(5))));
    let before = net.times(0, "HEARTBEAT").len();
    net.run(S(120));
    let count = net.times(0, "HEARTBEAT").len() - before;
    assert!((36..=44).contains(&count), "{count} over two paths");
    let mut net = open(2, quiet());
    let before = net.times(0, "HEARTBEAT").len();
    assert_eq!(before, 1, "to confirm the second path");
    net.run(S(1000));
    assert_eq!(net.times(0, "HEARTBEAT").len(), before);
}

/// RFC 9260 8.3: a path with data on it is not idle.
#[test]
fn busy_paths_are_not_asked() {
    let mut net = open(2, config());
    let mark = net.log.len();
    for i in 0..200 {
        net.send(0, 0, payload(i, 100)).unwrap();
        net.run(S(1));
    }
    let asked: Vec<u8> =
        net.sent_since(0, mark).iter().filter(|p| p.has("HEARTBEAT")).map(Sent::net).collect();
    assert!(!asked.contains(&0) && asked.len() >= 5, "{asked:?}");
}

/// RFC 9260 8.3, 8.2: unanswered HEARTBEATs make an idle path fail.
#[test]
fn an_idle_path_fails_by_its_heartbeats() {
    let mut net = open(2, config());
    net.cuts.insert(1);
    net.drive_until(S(600), |net| net.path(0, 1).state == PathState::Inactive);
    assert_eq!(net.a(0).path_stats(PathId(1)).unwrap().heartbeats_lost, 6);
    assert_eq!(net.a(0).current_path(), PathId(0));
    // The association stays up, as the other path answers. The failed one keeps getting HEARTBEATs.
    let mark = net.log.len();
    net.run(S(3600));
    assert!(net.a(0).is_established());
    let asked = net.sent_since(0, mark).into_iter().filter(|p| p.has("HEARTBEAT") && p.net() == 1);
    let times: Vec<u64> = asked.map(|p| p.ms()).collect();
    let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps[3..].iter().all(|g| (60_000..=120_000).contains(g)), "{gaps:?}");
    net.cuts.clear();
    net.drive_until(S(130), |net| net.path(0, 1).state == PathState::Active);
}

/// RFC 9260 8.3: one HEARTBEAT each heartbeat period, even if the interval is shorter than the RTO.
#[test]
fn a_dead_path_is_asked_once_each_heartbeat_period() {
    let mut net = open(2, config().heartbeat_interval(Some(S(1))));
    net.cuts.insert(1);
    net.drive_until(S(600), |net| net.path(0, 1).rto == S(60));
    net.run(S(100));
    let mark = net.log.len();
    net.run(S(3600));
    let asked = net.sent_since(0, mark).into_iter().filter(|p| p.has("HEARTBEAT") && p.net() == 1);
    let times: Vec<u64> = asked.map(|p| p.ms()).collect();
    let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.iter().all(|g| (31_000..=91_000).contains(g)), "{gaps:?}");
}

/// RFC 9260 8.3, 6.3.1: a HEARTBEAT ACK gives an RTT sample, and ends the backoff.
#[test]
fn an_answered_heartbeat_measures_the_path() {
    let mut net = open(2, config());
    net.cuts.insert(1);
    net.run(S(100));
    assert!(net.path(0, 1).rto > S(1) && net.path(0, 1).error_count > 0);
    net.cuts.clear();
    net.run(S(100));
    assert_eq!((net.path(0, 1).rto, net.path(0, 1).error_count), (S(1), 0));
}

/// RFC 9260 6.4: the next active path is used, and the one after it if that fails.
#[test]
fn three_paths_stand_in_one_after_the_other() {
    let mut net = open(3, same().path_max_retrans(1));
    net.cuts.extend([0, 1]);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.drive_until(S(60), |net| net.a(0).buffered() == 0);
    assert_eq!(currents(&net), [1, 2]);
    let inactive = PathState::Inactive;
    assert_eq!(net.states(0), [inactive, inactive, PathState::Active]);
    // The path in use fails, too, after the first alternate has recovered.
    net.cuts.clear();
    let now = net.now;
    net.am(0).request_heartbeat(now, PathId(1)).unwrap();
    net.settle();
    net.run(S(1));
    assert_eq!((net.states(0)[1], net.a(0).current_path()), (PathState::Active, PathId(2)));
    net.cuts.extend([0, 2]);
    net.send(0, 0, payload(2, 1000)).unwrap();
    net.drive_until(S(60), |net| net.a(0).buffered() == 0);
    assert_eq!(currents(&net), [1, 2, 1]);
    // The primary recovers last and is used again at once.
    net.cuts.clear();
    let now = net.now;
    net.am(0).request_heartbeat(now, PathId(0)).unwrap();
    net.settle();
    net.run(S(1));
    assert_eq!(currents(&net), [1, 2, 1, 0]);
}

/// RFC 9260 6.4.1: a chunk lost on the alternate path is retransmitted on the next one.
#[test]
fn a_chunk_goes_round_the_paths_until_it_arrives() {
    let mut net = open(3, quiet());
    net.cuts.extend([0, 1]);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.drive_until(S(60), |net| net.a(0).buffered() == 0);
    let paths: Vec<u8> = data(&net, mark).iter().map(|d| d.1).collect();
    assert_eq!(paths, [0, 1, 2]);
}

/// Every path fails for a while: the transfer continues on the first path that recovers.
#[test]
fn a_transfer_survives_the_failure_of_every_path() {
    for policy in [config(), config().retransmission(&retransmission::SAME)] {
        let mut net = open(2, policy.path_max_retrans(1).association_max_retrans(100));
        for i in 0..20 {
            net.send(0, 0, payload(i, 5000)).unwrap();
        }
        net.run(MS(30));
        net.cuts.extend([0, 1]);
        net.run(S(300));
        assert!(net.states(0).iter().all(|s| *s == PathState::Inactive));
        net.cuts.remove(&1);
        net.drive_until(S(200), |net| net.a(0).buffered() == 0);
        assert_eq!(net.hosts[1].received.len(), 20);
        assert_eq!(net.states(0), [PathState::Inactive, PathState::Active]);
        assert_eq!(net.a(0).current_path(), PathId(1));
    }
}

/// RFC 9260 6.4: the receiver sends its SACKs over a path that works.
#[test]
fn sacks_find_their_way_when_the_reverse_path_fails() {
    let mut net = open(2, config());
    net.filter(|p| {
        let back = p.has("SACK") && p.net() == 0;
        if back { Fate::Drop } else { Fate::Pass }
    });
    for i in 0..10 {
        net.send(0, 0, payload(i, 5000)).unwrap();
    }
    net.drive_until(S(200), |net| net.a(0).buffered() == 0);
    assert_eq!(net.hosts[1].received.len(), 10);
}
