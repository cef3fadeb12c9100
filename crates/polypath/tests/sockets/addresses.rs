//! Wildcards and IPv6.

use polypath::{Announce, Config, ConnectOptions, Endpoint, EndpointOptions, Message, StreamId};

use crate::setup::{PORT, client, ip, options, pair_between, server, skip, soon};

/// Replies come from the address that was contacted, although the socket is not bound to it.
#[tokio::test]
async fn a_wildcard_answers_from_the_address_that_was_asked() {
    let config = Config::rfc9260();
    let server = server(&["0.0.0.0"], &config);
    let port = server.local_addresses()[0].port();
    for address in ["127.0.0.1", "127.0.3.7"] {
        let client = client(&["127.0.9.9"], &config);
        let to = ConnectOptions::new(PORT, [format!("{address}:{port}").parse().unwrap()]);
        let near = soon(client.connect(to)).await.unwrap();
        let far = soon(server.accept()).await.unwrap();
        near.send(Message::new(StreamId(0), "ping")).await.unwrap();
        assert_eq!(soon(far.recv()).await.unwrap().unwrap().payload, "ping");
        far.send(Message::new(StreamId(0), "pong")).await.unwrap();
        assert_eq!(soon(near.recv()).await.unwrap().unwrap().payload, "pong");
        assert_eq!(near.paths()[0].view.remote, ip(address));
        assert_eq!(far.paths()[0].view.local, ip(address));
        soon(near.shutdown()).await.unwrap();
    }
}

#[tokio::test]
async fn a_wildcard_connects() {
    let config = Config::rfc9260();
    let pair = pair_between(&["0.0.0.0"], &["127.0.4.2"], &config).await;
    pair.near.send(Message::new(StreamId(0), "ping")).await.unwrap();
    assert_eq!(soon(pair.far.recv()).await.unwrap().unwrap().payload, "ping");
    soon(pair.near.shutdown()).await.unwrap();
}

fn has_ipv6() -> bool {
    let works = std::net::UdpSocket::bind("[::1]:0").is_ok();
    if !works {
        skip("this host has no IPv6");
    }
    works
}

#[tokio::test]
async fn ipv6() {
    if !has_ipv6() {
        return;
    }
    let config = Config::rfc9260();
    for locals in ["::1", "::"] {
        let pair = pair_between(&[locals], &["::1"], &config).await;
        pair.near.send(Message::new(StreamId(0), vec![6; 100_000])).await.unwrap();
        let received = soon(pair.far.recv()).await.unwrap().unwrap();
        assert_eq!(received.payload, vec![6; 100_000]);
        soon(pair.near.shutdown()).await.unwrap();
    }
}

#[tokio::test]
async fn both_families_at_once() {
    if !has_ipv6() {
        return;
    }
    let config = Config::rfc9260();
    let pair = pair_between(&["127.0.5.1", "::1"], &["127.0.5.2", "::1"], &config).await;
    let remotes: Vec<_> = pair.near.paths().iter().map(|path| path.view.remote).collect();
    assert_eq!(remotes, [ip("127.0.5.2"), ip("::1")]);
    soon(pair.near.shutdown()).await.unwrap();
}

#[tokio::test]
async fn the_wildcard_address_announces_those_in_scope() {
    let wildcard =
        |options: EndpointOptions| EndpointOptions { announce: Announce::All, ..options };
    let any = options(&["0.0.0.0"], &Config::default());
    let server =
        Endpoint::bind(EndpointOptions { port: PORT, listen: true, ..wildcard(any.clone()) });
    let server = server.unwrap();
    let client = Endpoint::bind(wildcard(any)).unwrap();
    let local = std::net::SocketAddr::new(ip("127.0.0.1"), server.local_addresses()[0].port());
    let near = soon(client.connect(ConnectOptions::new(PORT, [local]))).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    // All addresses of the host, since the peer is on the same one.
    let host: Vec<_> = polypath::host_addresses().unwrap();
    for ip in host.into_iter().filter(|ip| ip.is_ipv4()).chain([ip("127.0.0.1")]).take(15) {
        for association in [&near, &far] {
            assert!(association.local_addresses().contains(&ip), "{ip}");
            assert!(association.paths().iter().any(|path| path.view.remote == ip), "{ip}");
        }
    }
}
