//! Addresses are added and removed while data flows.

use polypath::{AddressChange, Config, ConnectOptions, Event, Message, PathState, StreamId};

use crate::setup::{PATIENCE, PORT, client, ip, pair_between, server, soon, until};

fn config() -> Config {
    Config::builder().authentication(true).dynamic_addresses(true).build().unwrap()
}

#[tokio::test]
async fn one_address_comes_and_the_other_goes() {
    let pair = pair_between(&["127.0.7.1"], &["127.0.7.9"], &config()).await;
    let mut events = pair.near.events();
    let port = pair.client.local_addresses()[0].port();
    let (near, far) = (pair.near.clone(), pair.far.clone());
    let received = tokio::spawn(async move {
        let mut bytes = 0;
        while let Some(received) = soon(far.recv()).await.unwrap() {
            bytes += received.payload.len();
        }
        bytes
    });
    for round in 0..40 {
        near.send(Message::new(StreamId(0), vec![7; 100_000])).await.unwrap();
        match round {
            5 => pair.client.add_local_address(ip("127.0.7.2")).unwrap(),
            10 => until(|| near.local_addresses() == [ip("127.0.7.1"), ip("127.0.7.2")]).await,
            15 => pair.client.remove_local_address(ip("127.0.7.1")),
            _ => {}
        }
    }
    soon(near.drained()).await.unwrap();
    until(|| near.local_addresses() == [ip("127.0.7.2")]).await;
    let there = |path: &polypath::Path| path.view.state != PathState::Removed;
    let remotes: Vec<_> = pair
        .far
        .paths()
        .into_iter()
        .filter(there)
        .map(|p| (p.view.remote, p.view.remote_port))
        .collect();
    assert_eq!(remotes, [(ip("127.0.7.2"), port)]);
    // The socket of the removed address is closed: the address and the port are free again.
    until(|| pair.client.local_addresses().len() == 1).await;
    std::net::UdpSocket::bind(("127.0.7.1", port)).unwrap();
    let mut changes = Vec::new();
    while changes.len() < 2 {
        let event = tokio::time::timeout(PATIENCE, events.next()).await.unwrap();
        if let Ok(Event::LocalAddress { address, change, granted: true }) = event {
            changes.push((address, change));
        }
    }
    let (came, went) = (AddressChange::Added, AddressChange::Deleted);
    assert_eq!(changes, [(ip("127.0.7.2"), came), (ip("127.0.7.1"), went)]);
    soon(near.shutdown()).await.unwrap();
    assert_eq!(received.await.unwrap(), 40 * 100_000);
}

/// Data in flight to an address when the peer removes it still arrives; then the socket is closed.
#[tokio::test]
async fn an_address_that_has_gone_receives_for_a_while() {
    let pair = pair_between(&["127.0.7.3"], &["127.0.7.9"], &config()).await;
    let port = pair.client.local_addresses()[0].port();
    pair.client.add_local_address(ip("127.0.7.4")).unwrap();
    until(|| pair.near.local_addresses().len() == 2).await;
    pair.client.remove_local_address(ip("127.0.7.3"));
    until(|| pair.near.local_addresses() == [ip("127.0.7.4")]).await;
    let before = pair.client.stats().malformed;
    let late = std::net::UdpSocket::bind("127.0.7.9:0").unwrap();
    late.send_to(b"late", ("127.0.7.3", port)).unwrap();
    until(|| pair.client.stats().malformed == before + 1).await;
    until(|| pair.client.local_addresses().len() == 1).await;
    std::net::UdpSocket::bind(("127.0.7.3", port)).unwrap();
}

#[tokio::test]
async fn an_address_that_is_not_ours_cannot_be_added() {
    let pair = pair_between(&["127.0.7.1"], &["127.0.7.9"], &config()).await;
    assert!(pair.client.add_local_address(ip("192.0.2.1")).is_err());
    assert!(pair.near.set_peer_primary(ip("192.0.2.1")).is_err());
    // The last address cannot be removed.
    pair.client.remove_local_address(ip("127.0.7.1"));
    pair.near.send(Message::new(StreamId(0), "still here")).await.unwrap();
    assert_eq!(soon(pair.far.recv()).await.unwrap().unwrap().payload, "still here");
    soon(pair.near.shutdown()).await.unwrap();
}

/// A side bound to all addresses receives data and the end of the association on any of them.
#[tokio::test]
async fn a_wildcard_learns_what_comes() {
    let server = server(&["0.0.0.0"], &config());
    let client = client(&["127.0.8.1"], &config());
    let port = server.local_addresses()[0].port();
    let to = |address: &str| format!("{address}:{port}").parse().unwrap();
    let to = ConnectOptions::new(PORT, [to("127.0.8.8"), to("127.0.8.9")]);
    let near = soon(client.connect(to)).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    client.add_local_address(ip("127.0.8.2")).unwrap();
    let new = |path: &polypath::Path| {
        path.view.remote == ip("127.0.8.2") && path.view.state == PathState::Active
    };
    until(|| far.paths().iter().any(new)).await;
    client.remove_local_address(ip("127.0.8.1"));
    until(|| near.local_addresses() == [ip("127.0.8.2")]).await;
    near.abort("enough");
    let reason = soon(far.closed()).await;
    assert!(reason.to_string().contains("enough"), "{reason}");
}
