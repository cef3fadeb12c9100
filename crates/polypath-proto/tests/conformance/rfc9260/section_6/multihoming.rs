//! RFC 9260, section 6.4: Multi-Homed SCTP Endpoints.

use super::super::setup::quiet;
use crate::common::*;
use polypath_proto::*;

/// The networks over which host 0 sent this chunk, in order.
fn ways(net: &Net, chunk: &str) -> Vec<u8> {
    net.sent_with(0, chunk).iter().map(Sent::net).collect()
}

fn three_paths() -> Net {
    let mut net = established(3, quiet().build().unwrap());
    net.log.clear();
    net
}

#[test]
fn s6_4_r1_data_goes_to_the_primary_path() {
    let mut net = three_paths();
    for primary in [0, 2, 1] {
        let (now, mark) = (net.now, net.log.len());
        net.am(0).set_primary(now, PathId(primary)).unwrap();
        net.send(0, 0, payload(1, 20_000)).unwrap();
        net.run(S(1));
        let sent = net.sent_since(0, mark);
        assert!(!sent.is_empty() && sent.iter().all(|p| p.net() == primary));
    }
}

#[test]
fn s6_4_r2_replies_go_to_where_the_request_came_from() {
    let mut net = pair(2, quiet().build().unwrap());
    let other = v4(1, 98);
    let mut hand = Hand::new(1);
    let answer = hand.init(&mut net, &|p| p.ipv4([10, 1, 0, 99].into()).unwrap());
    assert_eq!((answer[0].text(), answer[0].to.ip()), ("INIT ACK".into(), hand.ip));
    hand.learn(&answer[0]);
    assert_eq!(
        (hand.echo(&mut net)[0].text(), other),
        ("COOKIE ACK".into(), "10.1.0.99".parse().unwrap())
    );
    for ip in [other, hand.ip, other] {
        let hand = Hand { ip, ..hand.clone() };
        let answers = hand.say(&mut net, &|w| w.heartbeat(b"who is there?").unwrap());
        assert!(answers.iter().any(|p| p.has("HEARTBEAT ACK") && p.to.ip() == ip), "{ip}");
    }
}

#[test]
fn s6_4_r3_sacks_for_one_source_go_to_one_destination() {
    let mut net = three_paths();
    for _ in 0..30 {
        net.send(0, 0, payload(1, 3000)).unwrap();
        net.run(MS(150));
    }
    let sacks = net.sent_with(1, "SACK");
    assert!(sacks.len() > 20 && sacks.iter().all(|p| p.net() == 0));
}

#[test]
fn s6_4_r4_timed_out_data_goes_to_another_active_path() {
    let mut net = three_paths();
    // Path 1 has failed already.
    net.cuts.insert(1);
    for _ in 0..6 {
        let now = net.now;
        net.am(0).request_heartbeat(now, PathId(1)).unwrap();
        net.run(S(61));
    }
    assert_eq!(net.path(0, 1).state, PathState::Inactive);
    net.nth("DATA", &[1, 2, 3], Fate::Drop);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(20));
    let ways = ways(&net, "DATA 1");
    assert_eq!(ways[0], 0);
    assert!(ways.windows(2).all(|w| w[0] != w[1]) && !ways.contains(&1), "{ways:?}");
}

#[test]
fn s6_4_r5_a_fast_retransmission_goes_to_the_same_path() {
    let mut net = three_paths();
    net.drop_once(&["DATA 2"]);
    for n in 0..6 {
        net.send(0, 0, payload(n, 1000)).unwrap();
        net.run(MS(1));
    }
    net.run(MS(500));
    assert_eq!(ways(&net, "DATA 2"), [0, 0]);
    assert_eq!(net.hosts[1].received.len(), 6);
}

#[test]
fn s6_4_1_r1_data_leaves_an_inactive_primary() {
    let mut net = three_paths();
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 5000)).unwrap();
    net.drive_until(S(200), |net| {
        // Data keeps the path busy until the path is inactive.
        net.path(0, 0).state == PathState::Inactive || net.a(0).buffered() == 0
    });
    while net.path(0, 0).state != PathState::Inactive {
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(S(61));
    }
    let mark = net.log.len();
    net.send(0, 0, payload(2, 100)).unwrap();
    net.run(MS(100));
    let data: Vec<Sent> = net.sent_since(0, mark).into_iter().filter(|p| p.has("DATA")).collect();
    assert!(data.len() == 1 && data[0].net() != 0, "at once, to an active path");
    // The same if the application selects the failed path.
    let now = net.now;
    let _ = net.am(0).set_primary(now, PathId(0));
    net.send(0, 0, payload(3, 100)).unwrap();
    net.run(MS(100));
    assert_eq!(net.a(0).buffered(), 0);
}

#[test]
fn s6_4_1_r2_a_timed_out_chunk_changes_both_addresses() {
    for full_mesh in [false, true] {
        let mut net = established(2, quiet().full_mesh(full_mesh).build().unwrap());
        net.log.clear();
        net.nth("DATA", &[1], Fate::Drop);
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(S(5));
        let pairs: Vec<_> =
            net.sent_with(0, "DATA 1").iter().map(|p| (p.from.ip(), p.to.ip())).collect();
        assert_eq!(pairs, [(v4(0, 0), v4(0, 1)), (v4(1, 0), v4(1, 1))], "full mesh: {full_mesh}");
    }
}
