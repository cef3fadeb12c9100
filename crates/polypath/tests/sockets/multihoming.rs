//! Multihoming: several paths, failover, changes of ports.

use polypath::proto::policy::failover;
use polypath::{
    Config, ConnectOptions, Event, Message, PathId, PathState, RouteTable, StreamId, SystemRoutes,
    Thresholds,
};

use crate::relay::Relay;
use crate::setup::{
    self, PORT, Pair, both_active, brisk, client, goes_on_when_cut, ip, pair_between, server, soon,
    until,
};

const LOCALS: [&str; 2] = ["127.1.0.1", "127.2.0.1"];
const REMOTES: [&str; 2] = ["127.1.0.2", "127.2.0.2"];

#[tokio::test]
async fn every_address_is_a_path() {
    let pair = pair_between(&LOCALS, &REMOTES, &Config::rfc9260()).await;
    both_active(&pair).await;
    for (index, path) in pair.near.paths().iter().enumerate() {
        assert_eq!(path.view.local, ip(LOCALS[index]));
        assert_eq!(path.view.remote, ip(REMOTES[index]));
        assert_eq!(path.view.remote_port, pair.server.local_addresses()[index].port());
    }
    let ports: Vec<u16> = pair.client.local_addresses().iter().map(|a| a.port()).collect();
    assert_eq!(ports[0], ports[1]);
}

#[tokio::test]
async fn the_primary_can_be_changed() {
    let pair = pair_between(&LOCALS, &REMOTES, &Config::rfc9260()).await;
    both_active(&pair).await;
    let mut events = pair.near.events();
    pair.near.set_primary(PathId(1)).unwrap();
    assert_eq!(pair.near.primary(), PathId(1));
    let before: Vec<u64> =
        pair.near.paths().iter().map(|path| path.stats.data_bytes_sent).collect();
    pair.near.send(Message::new(StreamId(0), vec![0; 10_000])).await.unwrap();
    soon(pair.near.drained()).await.unwrap();
    let after: Vec<u64> = pair.near.paths().iter().map(|path| path.stats.data_bytes_sent).collect();
    assert_eq!((after[0] - before[0], after[1] - before[1]), (0, 10_000));
    assert!(matches!(
        soon(events.next()).await,
        Ok(Event::PrimaryChanged { path: PathId(1) })
            | Ok(Event::CurrentPath { path: PathId(1), .. })
    ));
    assert!(pair.near.set_primary(PathId(7)).is_err());
    pair.near.request_heartbeat(PathId(0)).unwrap();
    let acked = || pair.near.paths()[0].stats.heartbeats_acked;
    let before = acked();
    pair.near.request_heartbeat(PathId(0)).unwrap();
    until(|| acked() > before).await;
}

/// An association of two paths, each through a relay.
async fn relayed(config: &Config) -> (Pair, Vec<Relay>) {
    setup::relayed(client(&LOCALS, config), server(&REMOTES, config)).await
}

#[tokio::test]
async fn when_the_path_in_use_is_cut_the_other_takes_over() {
    let (pair, relays) = relayed(&brisk()).await;
    let mut events = pair.near.events();
    goes_on_when_cut(&pair, &relays, 600, 2000).await;
    until(|| pair.near.paths()[1].view.state == PathState::Active).await;
    until(|| pair.near.current_path() == PathId(1)).await;
    // Once repaired, the path is the current one again.
    relays[0].cut(false);
    until(|| pair.near.paths()[0].view.state == PathState::Active).await;
    until(|| pair.near.current_path() == PathId(0)).await;
    let mut states = Vec::new();
    soon(pair.near.shutdown()).await.unwrap();
    while let Ok(event) = soon(events.next()).await {
        if let Event::PathState { path: PathId(0), to, .. } = event {
            states.push(to);
        }
    }
    assert!(states.contains(&PathState::Inactive), "{states:?}");
    assert_eq!(states.last(), Some(&PathState::Active));
}

/// Caro 2006 (failover), IV, with thresholds set after the association has begun.
#[tokio::test]
async fn a_failover_can_be_made_permanent() {
    let config = brisk().to_builder().path_max_retrans(100).failover(&failover::PERMANENT);
    let (pair, relays) = relayed(&config.build().unwrap()).await;
    let mut events = pair.near.events();
    let patient = pair.near.paths()[0].view.thresholds;
    let hasty = Thresholds { path_max_retrans: 0, change_primary: Some(0), ..patient };
    pair.near.set_thresholds(Some(PathId(0)), hasty).unwrap();
    assert!(pair.near.set_thresholds(Some(PathId(2)), hasty).is_err());
    relays[0].cut(true);
    pair.near.send(Message::new(StreamId(0), vec![0; 1000])).await.unwrap();
    soon(pair.near.drained()).await.unwrap();
    until(|| pair.near.primary() == PathId(1)).await;
    relays[0].cut(false);
    until(|| pair.near.paths()[0].view.state == PathState::Active).await;
    assert_eq!(pair.near.current_path(), PathId(1));
    let mut changed = false;
    soon(pair.near.shutdown()).await.unwrap();
    while let Ok(event) = soon(events.next()).await {
        changed |= event == Event::PrimaryChanged { path: PathId(1) };
    }
    assert!(changed);
}

#[tokio::test]
async fn the_port_of_a_peer_may_change() {
    let config = brisk();
    let server = server(&["127.0.0.1"], &config);
    let mut relay = Relay::new(ip("127.0.0.1"), server.local_addresses()[0]).await;
    let client = client(&["127.0.0.1"], &config);
    let near = soon(client.connect(ConnectOptions::new(PORT, [relay.address()]))).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    let mut ports = vec![far.paths()[0].view.remote_port];
    for round in 0..3 {
        relay.change_port().await;
        near.send(Message::new(StreamId(0), vec![round; 5000])).await.unwrap();
        let received = soon(far.recv()).await.unwrap().unwrap();
        far.send(Message::new(StreamId(0), received.payload)).await.unwrap();
        assert_eq!(soon(near.recv()).await.unwrap().unwrap().payload, vec![round; 5000]);
        ports.push(far.paths()[0].view.remote_port);
    }
    ports.dedup();
    assert_eq!(ports.len(), 4, "{ports:?}");
}

#[tokio::test]
async fn pairs_can_be_chosen() {
    let config = Config::rfc9260();
    let server = server(&REMOTES, &config);
    let client = client(&LOCALS, &config);
    let mut to = ConnectOptions::new(PORT, server.local_addresses().iter().copied());
    to.remotes[0].1 = Some(ip(LOCALS[1]));
    to.remotes[1].1 = Some(ip(LOCALS[0]));
    let near = soon(client.connect(to)).await.unwrap();
    let pairs: Vec<_> =
        near.paths().iter().map(|path| (path.view.local, path.view.remote)).collect();
    assert_eq!(pairs[0], (ip(LOCALS[1]), ip(REMOTES[0])));
    assert_eq!(pairs[1], (ip(LOCALS[0]), ip(REMOTES[1])));
}

#[test]
fn without_a_route_the_prefix_decides() {
    let locals = LOCALS.map(ip);
    // The kernel would send from 127.0.0.1, which is not bound.
    assert_eq!(SystemRoutes.local_for(ip("127.2.0.9"), 0, &locals), Some(locals[1]));
}
