//! Forwarded TCP connections over an association between two endpoints on loopback.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use polypath::{Config, ConnectOptions, Endpoint, EndpointOptions};
use polypath_apps::forward;
use polypath_apps::forward::client::{Route, local};
use polypath_apps::forward::mux::{Mux, Side};
use polypath_apps::forward::port::listen;
use polypath_apps::forward::server::{Rules, serve};
use polypath_apps::forward::{Failure, Target, socks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio::time::timeout;

/// Longer than any condition takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client and a server; returns the client's side and the server's.
async fn pair(rules: &[&str]) -> (Mux, Mux) {
    let config = forward::config(&Config::rfc9260()).unwrap();
    let bind = |listen, port| {
        Endpoint::bind(EndpointOptions {
            addresses: vec!["127.0.0.1".parse().unwrap()],
            config: config.clone(),
            listen,
            port,
            ..EndpointOptions::plain()
        })
        .unwrap()
    };
    let (there, here) = (bind(true, 9260), bind(false, 0));
    let to = ConnectOptions::new(9260, [there.local_addresses()[0]]);
    let (client, server) = tokio::join!(here.connect(to), there.accept());
    let (server, requests) = Mux::start(server.unwrap(), Side::Server);
    let reach = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let rules = Arc::new(Rules { reach, listen: Vec::new() });
    tokio::spawn(serve(server.clone(), requests, rules, None, |_| {}));
    let (client, requests) = Mux::start(client.unwrap(), Side::Client);
    // The server requests nothing.
    std::mem::forget(requests);
    (client, server)
}

/// A local port that leads to `target`.
async fn forwarded(mux: &Mux, route: Route) -> std::net::SocketAddr {
    let listener = listen(&["127.0.0.1:0".parse().unwrap()]).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(local(mux.clone(), listener, route, |_| {}));
    address
}

fn target(address: std::net::SocketAddr) -> Target {
    Target { host: address.ip().to_string(), port: address.port() }
}

/// A server that sends back what it receives, up to the end.
async fn echo() -> std::net::SocketAddr {
    let listener = listen(&["127.0.0.1:0".parse().unwrap()]).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = socket.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    address
}

/// Waits until no stream is in use on either side.
async fn all_free(muxes: [&Mux; 2]) {
    let free = async {
        while muxes.iter().any(|mux| mux.connections() > 0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(PATIENCE, free).await.is_ok(), "{:?}", muxes.map(Mux::connections));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_arrives_and_each_direction_ends_by_itself() {
    let (client, server) = pair(&["127.0.0.1:*"]).await;
    let port = forwarded(&client, Route::To(target(echo().await))).await;
    let content: Vec<u8> =
        (0..5_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut socket = TcpStream::connect(port).await.unwrap();
    let (mut reader, mut writer) = socket.split();
    let sending = async {
        writer.write_all(&content).await.unwrap();
        // The reply comes after the end of the request.
        writer.shutdown().await.unwrap();
    };
    let mut found = Vec::new();
    let (_, received) = tokio::join!(sending, timeout(PATIENCE, reader.read_to_end(&mut found)));
    received.unwrap().unwrap();
    assert!(found == content, "{} of {} bytes", found.len(), content.len());
    all_free([&client, &server]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_those_of_the_socket_interface() {
    let (client, server) = pair(&["127.0.0.1:*", "nothing.invalid:*"]).await;
    // Bound, so that no other test gets the port, and not listening.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = bound.local_addr().unwrap();
    assert_eq!(client.connect(target(closed)).await.unwrap_err(), Failure::Refused);
    let other = Target { host: "127.0.0.2".into(), port: 1 };
    assert_eq!(client.connect(other).await.unwrap_err(), Failure::NotAllowed);
    let unknown = Target { host: "nothing.invalid".into(), port: 1 };
    assert_eq!(client.connect(unknown).await.unwrap_err(), Failure::UnknownHost);
    // Through a port, they are a reset, which may arrive before `connect` returns.
    let port = forwarded(&client, Route::To(target(closed))).await;
    let read = async { TcpStream::connect(port).await?.read_u8().await };
    let error = timeout(PATIENCE, read).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    all_free([&client, &server]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_reaches_the_other_end() {
    let (client, server) = pair(&["127.0.0.1:*"]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = forwarded(&client, Route::To(target(listener.local_addr().unwrap()))).await;
    for resets_first in [true, false] {
        let mut near = TcpStream::connect(port).await.unwrap();
        let (mut far, _) = listener.accept().await.unwrap();
        near.write_all(b"x").await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), b'x');
        let (first, mut second) = if resets_first { (near, far) } else { (far, near) };
        first.set_zero_linger().unwrap();
        drop(first);
        let error = timeout(PATIENCE, second.read_u8()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        all_free([&client, &server]).await;
    }
}

/// A reset after one direction has ended still ends the other one.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_after_half_a_close() {
    let (client, server) = pair(&["127.0.0.1:*"]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = forwarded(&client, Route::To(target(listener.local_addr().unwrap()))).await;
    let mut near = TcpStream::connect(port).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    far.shutdown().await.unwrap();
    assert_eq!(timeout(PATIENCE, near.read(&mut [0; 8])).await.unwrap().unwrap(), 0);
    near.write_all(b"x").await.unwrap();
    assert_eq!(far.read_u8().await.unwrap(), b'x');
    far.set_zero_linger().unwrap();
    drop(far);
    // The next bytes find no reader: the connection ends, and the stream is free.
    let writing = async {
        while near.write_all(&[0; 1000]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(PATIENCE, writing).await.is_ok(), "it can still be written");
    all_free([&client, &server]).await;
}

/// A program that reads nothing holds up its own connection, with bounded memory, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_delays_no_other() {
    let (client, _server) = pair(&["127.0.0.1:*"]).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stuck = forwarded(&client, Route::To(target(silent.local_addr().unwrap()))).await;
    let mut writer = TcpStream::connect(stuck).await.unwrap();
    let (_unread, _) = silent.accept().await.unwrap();
    let mut written = 0;
    while let Ok(count) = timeout(Duration::from_millis(500), writer.write(&[0; 65_536])).await {
        written += count.unwrap();
        // The windows of two TCP connections, and that of the association's connection.
        assert!(written < 40_000_000, "nothing stops the sender");
    }
    let port = forwarded(&client, Route::To(target(echo().await))).await;
    let mut other = TcpStream::connect(port).await.unwrap();
    other.write_all(b"hello").await.unwrap();
    let mut reply = [0; 5];
    timeout(Duration::from_secs(3), other.read_exact(&mut reply)).await.unwrap().unwrap();
    assert_eq!(&reply, b"hello");
}

/// Connections that are open at the same time, and how often.
const WORKERS: usize = 1000;
const ROUNDS: usize = 10;

/// One connection through `port`; `all_open` returns when every worker has one.
async fn exchange(port: std::net::SocketAddr, content: &[u8], all_open: &Barrier) {
    let mut socket = TcpStream::connect(port).await.unwrap();
    let (mut reader, mut writer) = socket.split();
    let writing = async {
        let (begin, rest) = content.split_at(content.len() / 2);
        writer.write_all(begin).await.unwrap();
        all_open.wait().await;
        writer.write_all(rest).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut found = Vec::new();
    let (_, read) = tokio::join!(writing, reader.read_to_end(&mut found));
    read.unwrap();
    assert!(found == content, "{} of {} bytes", found.len(), content.len());
}

/// Allows as many open files as the system grants: a connection here has four sockets.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// Sockets that this process has open.
fn open_sockets() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    files.filter(|file| is_socket(&file.as_ref().unwrap().path())).count()
}

fn is_socket(file: &std::path::Path) -> bool {
    std::fs::read_link(file).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
}

/// 10,000 connections, 1,000 of which are open at the same time: streams are used again, every byte
/// is right, and nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn many_connections() {
    raise_open_files();
    let (client, server) = pair(&["127.0.0.1:*"]).await;
    let port = forwarded(&client, Route::To(target(echo().await))).await;
    let mut tasks = tokio::task::JoinSet::new();
    let all_open = Arc::new(Barrier::new(WORKERS));
    for worker in 0..WORKERS {
        let all_open = all_open.clone();
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                let content: Vec<u8> =
                    (0..3000 + 10 * round).map(|i| (i * 7 + worker + round) as u8).collect();
                exchange(port, &content, &all_open).await;
            }
        });
    }
    let all = async {
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    };
    assert!(timeout(10 * PATIENCE, all).await.is_ok(), "{} left", client.connections());
    all_free([&client, &server]).await;
    // Other tests of this process have some sockets too.
    let free = async {
        while open_sockets() > 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(PATIENCE, free).await.is_ok(), "{} sockets are open", open_sockets());
}

#[tokio::test(flavor = "multi_thread")]
async fn socks_requests_choose_the_target() {
    let (client, _server) = pair(&["127.0.0.1:*"]).await;
    let port = forwarded(&client, Route::Socks).await;
    let echo = echo().await;
    let mut request = b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01".to_vec();
    request.extend(echo.port().to_be_bytes());
    let mut socket = TcpStream::connect(port).await.unwrap();
    socket.write_all(&request).await.unwrap();
    let mut reply = [0; 12];
    socket.read_exact(&mut reply).await.unwrap();
    assert_eq!(reply[..4], [5, 0, 5, 0]);
    socket.write_all(b"x").await.unwrap();
    assert_eq!(socket.read_u8().await.unwrap(), b'x');
    // RFC 1928 6: 02 is "connection not allowed by ruleset".
    let mut socket = TcpStream::connect(port).await.unwrap();
    socket.write_all(b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x02\x00\x01").await.unwrap();
    socket.read_exact(&mut reply).await.unwrap();
    assert_eq!(reply[..4], [5, 0, 5, 2]);
    let _ = socks::answer(&mut socket, Ok(())).await;
}

/// The end of the association ends every connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_association_resets_its_connections() {
    let (client, server) = pair(&["127.0.0.1:*"]).await;
    let port = forwarded(&client, Route::To(target(echo().await))).await;
    let mut socket = TcpStream::connect(port).await.unwrap();
    socket.write_all(b"x").await.unwrap();
    assert_eq!(socket.read_u8().await.unwrap(), b'x');
    server.association().abort("gone");
    let error = timeout(PATIENCE, socket.read_u8()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    all_free([&client, &server]).await;
}
