//! IP protocol 132 without UDP; needs CAP_NET_RAW.

use polypath::{
    BindError, Config, ConnectOptions, Encapsulation, Endpoint, EndpointOptions, Message, StreamId,
};

use crate::setup::{options, skip, soon};

/// `None` if the process lacks the privilege.
fn raw(address: &str, port: u16, listen: bool) -> Option<Endpoint> {
    let options = EndpointOptions {
        encapsulation: Encapsulation::RawIp,
        port,
        listen,
        ..options(&[address], &Config::rfc9260())
    };
    match Endpoint::bind(options) {
        Ok(endpoint) => Some(endpoint),
        Err(error @ (BindError::RawNotPermitted | BindError::RawNotSupported)) => {
            skip(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// One of ten ports for this process: a raw socket receives the packets of all tests, including
/// those of parallel test runs.
fn port(number: u16) -> u16 {
    20_000 + (std::process::id() % 4_000) as u16 * 10 + number
}

async fn transfer(client: &str, server: &str) {
    let port = port(if client == server { 0 } else { 2 });
    let Some(server) = raw(server, port, true) else { return };
    let client = raw(client, port + 1, false).unwrap();
    let to = ConnectOptions::new(port, [server.local_addresses()[0]]);
    let near = soon(client.connect(to)).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    for _ in 0..50 {
        near.send(Message::new(StreamId(0), vec![132; 20_000])).await.unwrap();
        assert_eq!(soon(far.recv()).await.unwrap().unwrap().payload, vec![132; 20_000]);
    }
    assert_eq!(near.paths()[0].view.remote_port, 0);
    soon(near.shutdown()).await.unwrap();
}

#[tokio::test]
async fn ipv4() {
    transfer("127.0.6.1", "127.0.6.2").await;
}

#[tokio::test]
async fn ipv4_wildcard() {
    let Some(server) = raw("0.0.0.0", port(4), true) else { return };
    let client = raw("0.0.0.0", port(5), false).unwrap();
    let to = ConnectOptions::new(port(4), ["127.0.6.3:0".parse().unwrap()]);
    let near = soon(client.connect(to)).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    near.send(Message::new(StreamId(0), "raw")).await.unwrap();
    assert_eq!(soon(far.recv()).await.unwrap().unwrap().payload, "raw");
    soon(near.shutdown()).await.unwrap();
}

#[tokio::test]
async fn ipv6() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return skip("this host has no IPv6");
    }
    transfer("::1", "::1").await;
}

/// A raw socket receives the packets of every SCTP port; those for other ports must not be
/// answered.
#[tokio::test]
async fn others_are_left_alone() {
    let Some(server) = raw("127.0.6.4", port(6), true) else { return };
    let bystander = raw("127.0.6.4", port(7), true).unwrap();
    let client = raw("127.0.6.5", port(8), false).unwrap();
    let to = ConnectOptions::new(port(6), [server.local_addresses()[0]]);
    let near = soon(client.connect(to)).await.unwrap();
    near.send(Message::new(StreamId(0), "not for you")).await.unwrap();
    soon(near.shutdown()).await.unwrap();
    assert_eq!(bystander.stats().out_of_the_blue, 0);
    assert_eq!(bystander.stats().datagrams_received, 0);
}
