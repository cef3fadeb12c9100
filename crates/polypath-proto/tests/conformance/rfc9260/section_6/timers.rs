//! RFC 9260, section 6.3: Management of Retransmission Timer.

use super::super::setup::{FULL, Flow, NONE, quiet};
use crate::common::*;
use polypath_proto::*;

fn samples(flow: &Flow) -> u64 {
    flow.net.a(1).path_stats(PathId(0)).unwrap().rtt_samples
}

#[test]
fn s6_3_1_r1_each_round_trip_is_measured() {
    let mut flow = Flow::new(quiet());
    for round in 1..=10 {
        flow.give(1, FULL);
        flow.wait(100);
        flow.sack(round, &[]);
        assert_eq!(samples(&flow), u64::from(round));
    }
    assert_eq!(flow.path().srtt, Some(MS(100)));
}

#[test]
fn s6_3_1_r2_a_round_trip_is_measured_once() {
    let mut flow = Flow::new(quiet().initial_cwnd(20).max_burst(20));
    for round in 0..5 {
        flow.give(10, FULL);
        flow.wait(100);
        for n in 1..=10 {
            flow.sack(10 * round + n, &[]);
        }
        assert_eq!(samples(&flow), u64::from(round) + 1);
    }
}

#[test]
fn s6_3_1_r4_a_retransmitted_chunk_is_not_measured() {
    let mut flow = Flow::new(quiet());
    flow.give(1, FULL);
    assert_eq!(flow.wait(1001), [[1]]);
    flow.wait(50);
    flow.sack(1, &[]);
    assert_eq!((samples(&flow), flow.path().srtt), (0, None));
    // The same with a fast retransmission.
    let mut flow = Flow::new(quiet().initial_cwnd(10).max_burst(10));
    flow.give(4, FULL);
    flow.wait(50);
    let sent: Vec<_> = (2..=4).flat_map(|last| flow.sack(0, &[(2, last)])).collect();
    assert_eq!(sent, [[1]]);
    flow.wait(50);
    flow.sack(4, &[]);
    assert_eq!(samples(&flow), 0);
}

#[test]
fn s6_3_1_r5_nothing_is_measured_across_a_retransmission() {
    let mut flow = Flow::new(quiet().initial_cwnd(10).max_burst(10));
    flow.give(1, FULL);
    flow.wait(100);
    flow.sack(1, &[]);
    assert_eq!(samples(&flow), 1);
    flow.give(5, FULL);
    flow.wait(100);
    flow.sack(2, &[]);
    assert_eq!((samples(&flow), flow.give(1, FULL)), (2, vec![vec![7]]));
    // The RTT of 7 is being measured; then 3, which was sent before it, is found lost.
    let sent: Vec<_> = (2..=4).flat_map(|last| flow.sack(2, &[(2, last)])).collect();
    assert_eq!(sent, [[3]]);
    flow.wait(100);
    flow.sack(7, &[]);
    assert_eq!(samples(&flow), 2);
}

/// Two paths: the RTO of path 1 is 600 ms because of a HEARTBEAT, that of path 0 is RTO.Initial.
#[test]
fn s6_3_3_r1_the_timer_takes_the_rto_of_the_path_of_the_retransmission() {
    let config = quiet().rto_min(MS(100)).build().unwrap();
    let mut net = Setup { paths: 2, configs: [config.clone(), config], ..Setup::default() }.build();
    net.delays.insert((0, 1), MS(100));
    net.delays.insert((1, 1), MS(100));
    net.establish();
    assert_eq!((net.path(0, 0).rto, net.path(0, 1).rto), (S(1), MS(600)));
    net.cuts.extend([0, 1]);
    let (start, mark) = (net.now, net.log.len());
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(MS(1700));
    let sent: Vec<(u8, u64)> = net
        .sent_since(0, mark)
        .iter()
        .map(|p| (p.net(), p.at.since(start).as_millis() as u64))
        .collect();
    assert_eq!(sent, [(0, 0), (1, 1000), (0, 1600)]);
}

#[test]
fn s6_3_3_r2_what_does_not_fit_one_packet_waits_for_cwnd() {
    let mut flow = Flow::new(quiet());
    assert_eq!(flow.give(3, FULL), [[1], [2], [3]]);
    assert_eq!(flow.wait(1001), [[1]]);
    assert_eq!(flow.wait(900), NONE, "one packet is in flight, and cwnd is one PMDCS");
    assert_eq!(flow.sack(1, &[]).concat(), [2, 3]);
}
