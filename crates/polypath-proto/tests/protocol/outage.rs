//! Outages of every path: data whose T3-rtx has been backed off is sent again when a path answers,
//! and paths are probed more often than once per HB.interval meanwhile.

use crate::common::*;
use polypath_proto::*;

/// Host 0 has sent 300 kB over `paths` paths of 20 ms, which have been cut for `outage` while most
/// of it was in flight.
fn cut_off(paths: u8, config: Config, outage: std::time::Duration) -> Net {
    let mut net = established(paths, config);
    net.run(S(1));
    net.send(0, 0, payload(1, 300_000)).unwrap();
    net.run(MS(30));
    assert!(net.path(0, 0).in_flight > 0 && net.hosts[1].received.is_empty());
    net.cuts.extend(0..paths);
    net.run(outage);
    net
}

fn modern_without_heartbeats() -> Config {
    Config::modern().to_builder().heartbeat_interval(None).build().unwrap()
}

/// RFC 9260 8.3: a HEARTBEAT ACK shows that the path works, and its round-trip time is a sample.
/// The data that waits for T3-rtx leaves at once, one packet as RFC 9260 7.2.3 permits after a
/// timeout, instead of up to 25 s later.
#[test]
fn the_only_path_answers_and_the_oldest_data_is_sent_again() {
    let mut net = cut_off(1, modern_without_heartbeats(), S(14));
    let backed_off = net.path(0, 0).rto;
    assert!(backed_off > S(10) && net.path(0, 0).in_flight > 0, "{backed_off:?}");
    net.cuts.clear();
    let mark = net.log.len();
    let now = net.now;
    net.am(0).request_heartbeat(now, PathId(0)).unwrap();
    net.run(MS(20));
    let sent: Vec<Sent> = net.sent_since(0, mark).into_iter().filter(|p| p.has("DATA")).collect();
    let oldest = net
        .sent_since(0, 0)
        .iter()
        .filter(|p| !p.delivered && p.has("DATA"))
        .map(|p| p.data()[0].n)
        .min();
    assert_eq!(sent.len(), 1, "{}", net.tail(10));
    assert_eq!(Some(sent[0].data()[0].n), oldest);
    assert!(net.path(0, 0).rto < MS(400), "{:?}", net.path(0, 0).rto);
    assert_eq!((net.path(0, 0).error_count, net.states(0)[0]), (0, PathState::Active));
    net.drive_until(S(2), |net| !net.hosts[1].received.is_empty());
}

/// RFC 9260 has no such rule: its profile waits for T3-rtx.
#[test]
fn the_profile_of_the_rfc_waits_for_the_timer() {
    let config = Config::rfc9260().to_builder().heartbeat_interval(None).build().unwrap();
    let mut net = cut_off(1, config, S(16));
    net.cuts.clear();
    let mark = net.log.len();
    let now = net.now;
    net.am(0).request_heartbeat(now, PathId(0)).unwrap();
    net.run(S(2));
    assert!(!net.sent_since(0, mark).iter().any(|p| p.has("DATA")));
}

/// The last packet was sent again on path 0 after every path had failed. Path 1 answers first: it
/// carries that packet too, although T3-rtx of path 0 would wait for longer.
#[test]
fn data_on_a_path_that_stays_down_leaves_it_when_another_one_answers() {
    for alive in [0, 1] {
        let mut net = cut_off(2, modern_without_heartbeats(), S(30));
        assert!(!net.states(0).contains(&PathState::Active), "{:?}", net.states(0));
        net.cuts.remove(&alive);
        let now = net.now;
        net.am(0).request_heartbeat(now, PathId(alive)).unwrap();
        net.drive_until(S(2), |net| !net.hosts[1].received.is_empty());
        assert_eq!(net.states(0)[usize::from(alive)], PathState::Active);
    }
}

/// Times in milliseconds after `since` at which host `h` sent a HEARTBEAT on network `path`.
fn probes(net: &Net, h: usize, path: u8, since: u64) -> Vec<u64> {
    let sent = net.sent_with(h, "HEARTBEAT");
    let after = sent.iter().filter(|p| p.net() == path && p.ms() > since);
    after.map(|p| p.ms() - since).collect()
}

/// The sender probes a path that is silent after the RTO without its back-off, then after a quarter
/// of the silence and at least every 3 s.
#[test]
fn a_sender_probes_while_nothing_answers() {
    for paths in [1, 2] {
        let mut net = cut_off(paths, Config::modern(), MS(0));
        let start = net.now.as_nanos() / 1_000_000;
        net.run(S(30));
        for path in 0..paths {
            let sent = probes(&net, 0, path, start);
            assert!(sent.len() <= 45, "{sent:?}");
            // Others are those of paths that have failed, until all have (RFC 7829 3.2).
            let least = if paths == 1 { 200 } else { 0 };
            let apart = sent.windows(2).map(|two| two[1] - two[0]);
            assert!(apart.into_iter().all(|ms| (least..=3000).contains(&ms)), "{path}: {sent:?}");
            assert!(*sent.last().unwrap() > 26_000, "{sent:?}");
        }
        net.cuts.clear();
        net.drive_until(S(4), |net| !net.hosts[1].received.is_empty());
    }
}

/// These probes are no errors: RFC 9260 8.1 counts as many expirations of T3-rtx as without them.
#[test]
fn probes_do_not_end_the_association_sooner() {
    let lifetime = |config: Config| {
        let mut net = cut_off(1, config, MS(0));
        let start = net.now;
        net.drive_until(S(900), |net| net.closed(0).is_some());
        net.now.since(start).as_secs()
    };
    let without = lifetime(modern_without_heartbeats());
    let with =
        lifetime(Config::modern().to_builder().heartbeat_interval(Some(S(3600))).build().unwrap());
    assert!(without > 200 && with >= without, "{with} {without}");
}

/// A receiver of a stream of data that ends without a word asks whether the path works: once if it
/// does, with the sender's intervals if it does not.
#[test]
fn a_receiver_asks_when_data_stops_arriving() {
    for down in [false, true] {
        let mut net = established(1, Config::modern());
        net.run(S(1));
        net.send(0, 0, payload(1, 300_000)).unwrap();
        net.drive_until(S(2), |net| !net.hosts[1].received.is_empty());
        let start = net.now.as_nanos() / 1_000_000;
        if down {
            net.cuts.insert(0);
        }
        net.run(S(20));
        let sent = probes(&net, 1, 0, start);
        assert!((900..1300).contains(&sent[0]), "{sent:?}");
        if down {
            assert!(
                (8..30).contains(&sent.len()) && sent.windows(2).all(|two| two[1] - two[0] <= 3000),
                "{sent:?}"
            );
            net.cuts.clear();
            let mark = net.log.len();
            net.run(S(4));
            assert!(net.sent_since(0, mark).iter().any(|p| p.has("HEARTBEAT ACK")));
        } else {
            assert_eq!(sent.len(), 1, "{sent:?}");
        }
        let before = probes(&net, 1, 0, start).len();
        net.run(S(5));
        assert_eq!(probes(&net, 1, 0, start).len(), before, "the path has answered");
    }
}

/// A few messages are no stream of data: nothing is asked after each of them.
#[test]
fn a_receiver_of_single_messages_asks_nothing() {
    let mut net = established(1, Config::modern());
    net.run(S(1));
    let start = net.now.as_nanos() / 1_000_000;
    for _ in 0..5 {
        net.send(0, 0, payload(1, 2000)).unwrap();
        net.run(S(3));
    }
    assert_eq!(probes(&net, 1, 0, start), [0; 0]);
}

/// Without heartbeats, there are none of these either.
#[test]
fn heartbeats_that_are_off_stay_off() {
    let mut net = cut_off(1, modern_without_heartbeats(), S(20));
    assert_eq!(net.times(0, "HEARTBEAT").iter().filter(|ms| **ms > 1000).count(), 0);
    net.cuts.clear();
    net.run(S(60));
    assert_eq!(net.times(1, "HEARTBEAT").iter().filter(|ms| **ms > 1000).count(), 0);
}

/// The only path fails, and SACKs for data that has arrived over it are lost. Another path is
/// confirmed just after a retransmission on the old one, and a SACK over it acknowledges that data.
/// RFC 9260 8.2: that is no acknowledgement of something that has arrived over the old path since.
/// What waits on the old path is sent again on the new one, and is data of the new one then.
#[test]
fn a_sack_over_another_path_does_not_revive_the_old_one() {
    let mut revived = 0;
    for ms in [0, 5, 30, 100, 150] {
        let mut net = pair(2, modern_without_heartbeats());
        net.cuts.insert(1);
        net.connect(0);
        net.run(S(2));
        net.send(0, 0, payload(1, 300_000)).unwrap();
        net.run(MS(30));
        net.cuts.insert(0);
        net.run(S(14));
        assert_eq!(net.states(0), [PathState::Inactive, PathState::Unconfirmed]);
        let mark = net.log.len();
        net.drive_until(S(30), |net| net.sent_since(0, mark).iter().any(|p| p.has("DATA")));
        net.run(MS(ms));
        let number = |p: &Sent| p.data().first().map(|data| data.n);
        let again = net.sent_since(0, mark).iter().rev().find_map(number);
        let arrived = |p: &Sent| p.delivered && p.net() == 0 && number(p) == again;
        revived += usize::from(net.sent(0).iter().any(arrived));
        net.cuts.remove(&1);
        let now = net.now;
        net.am(0).request_heartbeat(now, PathId(1)).unwrap();
        net.drive_until(S(2), |net| !net.hosts[1].received.is_empty());
        let became_active = |event: &Event| {
            matches!(event, Event::PathState { path: PathId(0), to: PathState::Active, .. })
        };
        let after = now.as_nanos() / 1_000_000;
        let events = net.events(0, became_active);
        assert!(events.iter().all(|(at, _)| *at < after), "{ms} ms: {events:?}");
        assert!(net.path(0, 0).error_count > 0, "{ms} ms");
    }
    assert!(revived > 0, "no retransmission of something that had arrived");
}
