//! Forwarded TCP connections over an association between two endpoints on loopback.

mod attacks;
mod setup;

use std::io::ErrorKind;
use std::time::Duration;

use polypath_apps::forward::client::Route;
use polypath_apps::forward::{Failure, Target, socks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use setup::{PATIENCE, all_free, echo, forwarded, pair, target};

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
