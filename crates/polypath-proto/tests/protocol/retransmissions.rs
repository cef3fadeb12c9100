//! The path of a retransmission, repeated fast retransmissions, and probes after a timeout: the
//! policies and extensions of Caro 2006 (retransmission policies).

use crate::common::*;
use polypath_proto::Registry;
use polypath_proto::policy::{loss, probing};
use polypath_proto::*;

/// Two hosts, this number of paths, and no periodic HEARTBEATs once all paths are confirmed.
fn quiet(paths: u8, config: ConfigBuilder) -> Net {
    let config = config.heartbeat_interval(None).build().unwrap();
    let mut net = established(paths, config);
    net.log.clear();
    net
}

/// Networks over which host 0 sent this DATA chunk, in order.
fn ways(net: &Net, n: u32) -> Vec<u8> {
    net.sent_with(0, &format!("DATA {n}")).iter().map(Sent::net).collect()
}

fn with(policy: &str) -> ConfigBuilder {
    let answer = policy::find(Registry::standard().retransmission(), policy).unwrap();
    Config::rfc9260().to_builder().retransmission(answer)
}

/// Paper, 2.1 and 3: AllRtxAlt sends a fast retransmission to the alternate, AllRtxSame and
/// FrSameRtoAlt to the path where it was lost.
#[test]
fn a_fast_retransmission_goes_where_the_policy_says() {
    for (policy, to) in [("alternate", 1), ("same", 0), ("hybrid", 0)] {
        let mut net = quiet(2, with(policy));
        net.drop_once(&["DATA 2"]);
        for n in 0..5 {
            net.send(0, 0, payload(n, 1000)).unwrap();
            net.run(MS(1));
        }
        net.run(MS(300));
        assert_eq!(ways(&net, 2), [0, to], "{policy}");
        let counts: Vec<u64> =
            (0..2).map(|p| net.a(0).path_stats(PathId(p)).unwrap().fast_retransmissions).collect();
        assert_eq!(counts[usize::from(to)], 1, "{policy}: {counts:?}");
        assert_eq!(net.hosts[1].received.len(), 5, "{policy}");
    }
}

/// Paper, 4.1: a chunk that times out on an alternate is retransmitted "to yet another alternate
/// destination (if one exists; otherwise, the primary)".
#[test]
fn timeout_retransmissions_take_the_paths_in_turn() {
    for (policy, ways_of_it) in
        [("alternate", [0, 1, 2, 0, 1]), ("hybrid", [0, 1, 2, 0, 1]), ("same", [0; 5])]
    {
        let mut net = quiet(3, with(policy).rto_max(S(2)));
        net.nth("DATA", &[1, 2, 3, 4], Fate::Drop);
        net.send(0, 0, payload(1, 1000)).unwrap();
        net.run(S(10));
        assert_eq!(ways(&net, 1), ways_of_it, "{policy}");
        assert_eq!(net.hosts[1].received.len(), 1, "{policy}");
    }
}

/// RFC 9260 6.4: "an active destination"; every policy skips a failed path.
#[test]
fn a_failed_path_is_passed_over() {
    for (policy, ways_of_it) in
        [("alternate", [0, 2, 0, 2]), ("hybrid", [0, 2, 0, 2]), ("same", [0; 4])]
    {
        let config = with(policy).rto_max(S(2)).path_max_retrans(3);
        let mut net = quiet(3, config);
        net.cuts.insert(1);
        let probe = |net: &mut Net| {
            let now = net.now;
            net.am(0).request_heartbeat(now, PathId(1)).unwrap();
            net.run(S(3));
        };
        for _ in 0..4 {
            probe(&mut net);
        }
        assert_eq!(net.path(0, 1).state, PathState::Inactive);
        net.nth("DATA", &[1, 2, 3], Fate::Drop);
        net.send(0, 0, payload(1, 1000)).unwrap();
        net.run(S(10));
        assert_eq!(ways(&net, 1), ways_of_it, "{policy}");
    }
}

/// A single path is its own alternate.
#[test]
fn without_an_alternate_the_same_path_serves() {
    let mut net = quiet(1, with("alternate"));
    net.drop_once(&["DATA 1"]);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(S(3));
    assert_eq!(ways(&net, 1), [0, 0]);
}

/// Host 1 sends chunks of 1000 bytes to a hand, one per packet, with a window of at least 20
/// chunks.
fn flow(config: ConfigBuilder) -> (Net, Hand) {
    let config = config.path_mtu(1060).initial_ssthresh(Some(30_000)).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand { rwnd: 1 << 24, ..Hand::new(1) }.open(&mut net);
    for n in 0..200 {
        net.send(1, 0, payload(n, 1000)).unwrap();
    }
    let mut acked = 0;
    while net.path(1, 0).window.cwnd < 20 * 1016 {
        acked += 1;
        hand.sack(&mut net, acked, &[]);
    }
    // Acknowledge up to 100, so that the lost chunk is 101.
    while acked < 100 {
        acked += 1;
        hand.sack(&mut net, acked, &[]);
    }
    (net, hand)
}

/// Number of times chunk 101 has been sent.
fn sendings(net: &Net) -> usize {
    net.sent_with(1, "DATA 101").len()
}

/// The highest TSN sent before chunk 101 was last sent.
fn highest_before_resending(net: &Net) -> u32 {
    let sent = net.sent(1);
    let last = sent.iter().rposition(|p| p.has("DATA 101")).unwrap();
    data_numbers(&sent[..last]).concat().into_iter().max().unwrap()
}

/// Paper, 4.3: "If the retransmission of x is also lost, the sender can detect the loss with
/// another four missing reports. However, this time only sacks for packets greater than n can
/// serve".
#[test]
fn a_lost_fast_retransmission_is_fast_retransmitted_again() {
    for multiple in [false, true] {
        let answer = if multiple { &loss::MULTIPLE_FAST_RETRANSMIT } else { &loss::STANDARD };
        let (mut net, hand) = flow(Config::rfc9260().to_builder().loss(answer));
        let gap = |net: &mut Net, to: u32| {
            hand.sack(net, 100, &[(2, (to - 100) as u16)]);
        };
        gap(&mut net, 102);
        gap(&mut net, 103);
        assert_eq!(sendings(&net), 1);
        gap(&mut net, 104);
        assert_eq!(sendings(&net), 2, "three missing reports");
        // Chunks in flight at the fast retransmission are no missing reports for it.
        let n = highest_before_resending(&net);
        assert!(n > 110, "{n}");
        for to in 105..=n {
            gap(&mut net, to);
        }
        assert_eq!(sendings(&net), 2, "the packets up to {n} were in flight already");
        // Chunks sent after it are; the third report finds it lost again, if the policy allows
        // that.
        gap(&mut net, n + 1);
        gap(&mut net, n + 2);
        assert_eq!(sendings(&net), 2, "two reports");
        gap(&mut net, n + 3);
        assert_eq!(sendings(&net), if multiple { 3 } else { 2 }, "multiple: {multiple}");
        if multiple {
            // The count starts again, with a new recover point.
            let again = highest_before_resending(&net);
            assert!(again > n + 3, "{again}");
            for to in n + 4..=again {
                gap(&mut net, to);
            }
            assert_eq!(sendings(&net), 3, "up to {again}");
        }
        // T3-rtx would have expired much later.
        assert_eq!(net.a(1).path_stats(PathId(0)).unwrap().timeouts, 0);
    }
}

/// Two paths with this probing policy; one chunk is lost on the primary.
fn after_a_timeout(probing: &'static policy::Entry<dyn policy::ProbingPolicy>) -> Net {
    let mut net = quiet(2, Config::rfc9260().to_builder().probing(probing));
    net.drop_once(&["DATA 1"]);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net
}

/// Paper, 4.1: "a heartbeat immediately to the destination on which a timeout occurred ... in
/// addition to the normal data retransmission behavior"; its answer "help[s] reduce its recently
/// doubled RTO".
#[test]
fn a_heartbeat_follows_a_timeout_and_brings_the_rto_down() {
    let mut net = after_a_timeout(&probing::AFTER_RTO);
    let before = net.path(0, 0).rto;
    let mark = net.log.len();
    net.drive_until(S(2), |net| net.a(0).path_stats(PathId(0)).unwrap().timeouts == 1);
    assert_eq!(net.path(0, 0).rto, before * 2);
    let sent: Vec<(String, u8)> =
        net.sent_since(0, mark).iter().map(|p| (p.text(), p.net())).collect();
    assert_eq!(sent, [("DATA 1".to_owned(), 1), ("HEARTBEAT".to_owned(), 0)]);
    net.run(MS(100));
    assert_eq!(net.path(0, 0).rto, before);

    let mut net = after_a_timeout(&probing::IDLE);
    net.run(S(2));
    assert_eq!(ways(&net, 1), [0, 1]);
    assert_eq!(net.sent_with(0, "HEARTBEAT").len(), 0);
    assert_eq!(net.path(0, 0).rto, before * 2, "stale");
}

/// Paper, 6.1: "Each timeout (for data or heartbeats) on a particular destination increments an
/// error count"; RFC 9260 8.3, 6.3.3 (E2).
#[test]
fn a_lost_heartbeat_after_a_timeout_counts_and_doubles() {
    let mut net = after_a_timeout(&probing::AFTER_RTO);
    let before = net.path(0, 0).rto;
    net.drop_all("HEARTBEAT");
    net.drive_until(S(2), |net| net.a(0).path_stats(PathId(0)).unwrap().timeouts == 1);
    let errors = net.path(0, 0).error_count;
    net.drive_until(S(4), |net| net.a(0).path_stats(PathId(0)).unwrap().heartbeats_lost == 1);
    assert_eq!(net.path(0, 0).error_count, errors + 1);
    assert_eq!(net.path(0, 0).rto, before * 4);
    // Heartbeat After RTO sends no other one (RFC 9260 8.3: a heartbeat interval would; it is off).
    net.run(S(60));
    assert_eq!(net.sent_with(0, "HEARTBEAT").len(), 1);
}

/// ns-2's rule: if no other path is active, the retransmission itself probes the path.
#[test]
fn no_heartbeat_follows_a_timeout_without_an_active_alternate() {
    for paths in [1, 2] {
        let config =
            Config::rfc9260().to_builder().probing(&probing::AFTER_RTO).path_max_retrans(0);
        let mut net = quiet(paths, config);
        if paths == 2 {
            net.cuts.insert(1);
            let now = net.now;
            net.am(0).request_heartbeat(now, PathId(1)).unwrap();
            net.run(S(3));
            assert_eq!(net.path(0, 1).state, PathState::Inactive);
        }
        net.log.clear();
        net.drop_once(&["DATA 1"]);
        net.send(0, 0, payload(1, 1000)).unwrap();
        net.drive_until(S(2), |net| net.a(0).path_stats(PathId(0)).unwrap().timeouts == 1);
        let heartbeats = net.sent_with(0, "HEARTBEAT");
        assert!(heartbeats.iter().all(|p| p.net() != 0), "{paths} paths: {}", net.tail(10));
    }
}

/// Each expiry of T3-rtx sends a HEARTBEAT on the path that timed out.
#[test]
fn the_heartbeat_goes_to_the_path_that_timed_out() {
    let config = with("alternate").probing(&probing::AFTER_RTO);
    let mut net = quiet(3, config);
    net.nth("DATA", &[1, 2], Fate::Drop);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(S(5));
    assert_eq!(ways(&net, 1), [0, 1, 2]);
    let heartbeats: Vec<u8> = net.sent_with(0, "HEARTBEAT").iter().map(Sent::net).collect();
    assert_eq!(heartbeats, [0, 1]);
}
