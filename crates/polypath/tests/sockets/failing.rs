//! Failures are reported clearly and soon.

use std::time::Duration;

use polypath::{
    BindError, CloseReason, Config, ConnectError, ConnectOptions, Encapsulation, Endpoint,
    EndpointOptions, Message, SendError, StreamId,
};

use crate::relay::Relay;
use crate::setup::{PORT, brisk, client, impatient, ip, options, pair, server, soon};

/// The first INIT is not retransmitted while a test runs, even on a busy machine.
fn slow_to_repeat() -> Config {
    let long = Duration::from_secs(30);
    Config::builder().rto_initial(long).rto_max(long * 2).build().unwrap()
}

#[tokio::test]
async fn nothing_listens_on_the_udp_port() {
    let config = slow_to_repeat();
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = client(&["127.0.0.1"], &config);
    let error = soon(client.connect(ConnectOptions::new(PORT, [closed]))).await.unwrap_err();
    assert_eq!(client.socket_stats()[0].datagrams_sent, 1);
    assert!(matches!(error, ConnectError::Closed(CloseReason::Unreachable { .. })), "{error:?}");
    assert_eq!(error.to_string(), "the peer cannot be reached: nothing listens on that UDP port");
    assert!(client.socket_stats()[0].icmp_errors > 0);
    // The endpoint stays usable.
    let server = server(&["127.0.0.1"], &config);
    let to = ConnectOptions::new(PORT, [server.local_addresses()[0]]);
    soon(client.connect(to)).await.unwrap();
}

#[tokio::test]
async fn the_peer_does_not_listen() {
    let config = slow_to_repeat();
    let (client, other) = (client(&["127.0.0.1"], &config), client(&["127.0.0.1"], &config));
    let to = ConnectOptions::new(other.port(), [other.local_addresses()[0]]);
    let error = soon(client.connect(to)).await.unwrap_err();
    assert_eq!(client.socket_stats()[0].datagrams_sent, 1);
    assert!(matches!(error, ConnectError::Closed(CloseReason::PeerAbort { .. })), "{error:?}");
    assert_eq!(other.stats().refused, 1);
}

#[tokio::test]
async fn no_answer() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = client(&["127.0.0.1"], &impatient());
    let to = ConnectOptions::new(PORT, [silent.local_addr().unwrap()]);
    let error = soon(client.connect(to)).await.unwrap_err();
    assert_eq!(error, ConnectError::Closed(CloseReason::NoAnswer));
}

#[tokio::test]
async fn connect_options_are_checked() {
    let client = client(&["127.0.0.1"], &Config::rfc9260());
    let error = soon(client.connect(ConnectOptions::new(PORT, []))).await.unwrap_err();
    assert_eq!(error, ConnectError::Start(polypath::proto::ConnectError::NoAddress));
    let other = "[::1]:9".parse().unwrap();
    let error = soon(client.connect(ConnectOptions::new(PORT, [other]))).await.unwrap_err();
    assert_eq!(error, ConnectError::Start(polypath::proto::ConnectError::NoPath));
    let mut pinned = ConnectOptions::new(PORT, ["127.0.0.1:9".parse().unwrap()]);
    pinned.remotes[0].1 = Some(ip("127.0.0.7"));
    let error = soon(client.connect(pinned)).await.unwrap_err();
    assert_eq!(error, ConnectError::NotBound { local: ip("127.0.0.7") });
}

#[tokio::test]
async fn messages_are_checked() {
    let config = Config::builder().outbound_streams(4).max_message_size(1000).build().unwrap();
    let pair = pair(&config).await;
    let send = |stream, size| pair.near.try_send(Message::new(StreamId(stream), vec![0; size]));
    assert_eq!(send(0, 0), Err(SendError::Empty));
    assert_eq!(send(0, 1001), Err(SendError::TooLarge { size: 1001, max: 1000 }));
    let stream = StreamId(4);
    assert_eq!(send(4, 1), Err(SendError::NoSuchStream { stream, streams: 4 }));
    assert_eq!(send(3, 1000), Ok(()));
}

#[tokio::test]
async fn the_peer_vanishes() {
    let config = brisk();
    let server = server(&["127.0.0.1"], &config);
    let relay = Relay::new(ip("127.0.0.1"), server.local_addresses()[0]).await;
    let client = client(&["127.0.0.1"], &config);
    let to = ConnectOptions::new(PORT, [relay.address()]);
    let near = soon(client.connect(to)).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    near.send(Message::new(StreamId(0), "hello")).await.unwrap();
    assert_eq!(soon(far.recv()).await.unwrap().unwrap().payload, "hello");
    relay.cut(true);
    near.set_association_max_retrans(4);
    far.set_association_max_retrans(4);
    // A sender detects the failure by its data, a receiver by its heartbeats.
    near.send(Message::new(StreamId(0), "is anybody there?")).await.unwrap();
    assert_eq!(soon(near.closed()).await, CloseReason::PeerUnreachable);
    assert_eq!(soon(far.closed()).await, CloseReason::PeerUnreachable);
    assert!(soon(near.recv()).await.is_err());
    assert!(soon(near.shutdown()).await.is_err());
}

fn bind(address: &str, port: u16) -> Result<Endpoint, BindError> {
    Endpoint::bind(EndpointOptions {
        encapsulation: Encapsulation::Udp { port },
        ..options(&[address], &Config::rfc9260())
    })
}

#[tokio::test]
async fn ports_in_use_and_foreign_addresses() {
    let first = bind("127.0.0.1", 0).unwrap();
    let taken = first.local_addresses()[0];
    let error = bind("127.0.0.1", taken.port()).unwrap_err();
    assert!(matches!(error, BindError::InUse { address } if address == taken), "{error:?}");
    assert_eq!(error.to_string(), format!("UDP {taken} is in use"));
    // The same port at another address is free.
    bind("127.0.0.2", taken.port()).unwrap();
    let error = bind("192.0.2.1", 0).unwrap_err();
    assert_eq!(error.to_string(), "192.0.2.1:0 is not an address of this host");
    let nothing = EndpointOptions { addresses: vec![], ..EndpointOptions::plain() };
    assert!(matches!(Endpoint::bind(nothing), Err(BindError::NoAddress)));
}

#[test]
fn endpoints_need_a_runtime() {
    assert!(matches!(bind("127.0.0.1", 0), Err(BindError::NoRuntime)));
}
