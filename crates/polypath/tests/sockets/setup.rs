//! Helpers that set up endpoints for tests.

use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use polypath::{
    Association, Config, ConnectOptions, Encapsulation, Endpoint, EndpointOptions, Message,
    PathState, StreamId,
};

use crate::relay::Relay;

pub(crate) const PORT: u16 = 9260;

/// Longer than any condition in a test takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn options(addresses: &[&str], config: &Config) -> EndpointOptions {
    EndpointOptions {
        addresses: addresses.iter().map(|address| ip(address)).collect(),
        encapsulation: Encapsulation::Udp { port: 0 },
        config: config.clone(),
        ..EndpointOptions::plain()
    }
}

pub(crate) fn server(addresses: &[&str], config: &Config) -> Endpoint {
    let options = options(addresses, config);
    Endpoint::bind(EndpointOptions { port: PORT, listen: true, ..options }).unwrap()
}

pub(crate) fn client(addresses: &[&str], config: &Config) -> Endpoint {
    Endpoint::bind(options(addresses, config)).unwrap()
}

/// Two endpoints and both ends of an association between them.
pub(crate) struct Pair {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) near: Association,
    pub(crate) far: Association,
}

/// An association between endpoints with these addresses, one path for each pair of addresses.
pub(crate) async fn pair_between(locals: &[&str], remotes: &[&str], config: &Config) -> Pair {
    let server = server(remotes, config);
    let client = client(locals, config);
    let to = ConnectOptions::new(PORT, server.local_addresses().iter().copied());
    let near = soon(client.connect(to)).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    Pair { client, server, near, far }
}

pub(crate) async fn pair(config: &Config) -> Pair {
    pair_between(&["127.0.0.1"], &["127.0.0.1"], config).await
}

/// Awaits a future, with a time limit.
pub(crate) async fn soon<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Waits until the condition holds.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    soon(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// Gives up paths quickly, but not the association: a busy machine may delay a process by a few of
/// these timeouts.
pub(crate) fn brisk() -> Config {
    let config = impatient().to_builder().association_max_retrans(1000).max_init_retransmits(1000);
    config.build().unwrap()
}

/// A configuration that gives up quickly.
pub(crate) fn impatient() -> Config {
    let ms = Duration::from_millis;
    Config::builder()
        .rto_min(ms(20))
        .rto_initial(ms(50))
        .rto_max(ms(100))
        .path_max_retrans(2)
        .association_max_retrans(4)
        .max_init_retransmits(2)
        .heartbeat_interval(Some(ms(50)))
        .sack_delay(ms(10))
        .build()
        .unwrap()
}

/// Prints that a test is skipped; panics in CI, where no test may be skipped.
pub(crate) fn skip(why: impl Display) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "not in CI: {why}");
    eprintln!("skipped: {why}");
}

/// Waits until both paths are confirmed.
pub(crate) async fn both_active(pair: &Pair) {
    let active = |association: &Association| {
        let paths = association.paths();
        paths.len() == 2 && paths.iter().all(|path| path.view.state == PathState::Active)
    };
    until(|| active(&pair.near) && active(&pair.far)).await;
}

/// An association of two paths, each through a relay.
pub(crate) async fn relayed(client: Endpoint, server: Endpoint) -> (Pair, Vec<Relay>) {
    let mut relays = Vec::new();
    for (local, remote) in client.local_addresses().iter().zip(server.local_addresses()) {
        relays.push(Relay::new(local.ip(), remote).await);
    }
    let to = ConnectOptions::new(PORT, relays.iter().map(Relay::address));
    let near = soon(client.connect(to)).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    let pair = Pair { client, server, near, far };
    both_active(&pair).await;
    (pair, relays)
}

/// Checks that `count` messages of `size` bytes arrive in order although the first path is cut
/// among them.
pub(crate) async fn goes_on_when_cut(pair: &Pair, relays: &[Relay], count: u32, size: usize) {
    let near = pair.near.clone();
    let sender = tokio::spawn(async move {
        for number in 0..count {
            let mut payload = vec![0; size];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            near.send(Message::new(StreamId(0), payload)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        near.drained().await
    });
    for number in 0..count {
        if number == 100 {
            relays[0].cut(true);
        }
        let received = soon(pair.far.recv()).await.unwrap().unwrap();
        assert_eq!(received.payload[..4], number.to_be_bytes());
        assert_eq!(received.payload.len(), size);
    }
    soon(sender).await.unwrap().unwrap();
    until(|| pair.near.paths()[0].view.state == PathState::Inactive).await;
}
