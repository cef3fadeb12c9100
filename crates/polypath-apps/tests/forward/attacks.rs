//! Peers and local programs that keep to no rule: each is stopped, and others are served.

use std::time::Duration;

use polypath::{Association, Message, Ppid, StreamId};
use polypath_apps::forward::client::{Route, remote};
use polypath_apps::forward::mux::{Mux, Side};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::setup::{PATIENCE, associated, echo, forwarded, pair, served, target};

/// Types of messages.
const OPEN: u32 = 0x7077_0001;
const OPENED: u32 = 0x7077_0002;
const FAILED: u32 = 0x7077_0003;
const DATA: u32 = 0x7077_0004;
const WINDOW: u32 = 0x7077_0005;
const END: u32 = 0x7077_0006;
const RESET: u32 = 0x7077_0007;
const LISTEN: u32 = 0x7077_0008;
const LISTENING: u32 = 0x7077_0009;

/// A message as it is.
async fn say(association: &Association, stream: u16, ppid: u32, payload: impl Into<Vec<u8>>) {
    let message = Message { ppid: Ppid(ppid), ..Message::new(StreamId(stream), payload.into()) };
    // The peer may have ended the association already.
    let _ = association.send(message).await;
}

/// The type and the text of the next message.
async fn heard(association: &Association) -> (u32, String) {
    let received = timeout(PATIENCE, association.recv()).await.unwrap().unwrap().unwrap();
    (received.ppid.0, String::from_utf8_lossy(&received.payload).into_owned())
}

/// Checks that the peer ends the association for this reason.
async fn ended(association: &Association, reason: &str) {
    let closed = timeout(PATIENCE, async {
        while let Ok(Some(_)) = association.recv().await {}
        association.closed().await.to_string()
    });
    let closed = closed.await.unwrap_or_else(|_| panic!("it is not ended: {reason}"));
    assert!(closed.contains(reason), "{closed:?} has not {reason:?}");
}

fn open(port: u16) -> String {
    format!(r#"{{"serial":0,"to":{{"target":{{"host":"127.0.0.1","port":{port}}}}}}}"#)
}

fn grant(serial: u64, bytes: u64) -> Vec<u8> {
    [serial.to_be_bytes(), bytes.to_be_bytes()].concat()
}

/// Messages with their streams and types, and the reason that they bring.
type Attack<'a> = (&'a [(u16, u32, Vec<u8>)], &'a str);

/// Messages that the protocol does not allow end the client's association, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_breaks_the_protocol() {
    // Its connections are accepted by the system alone, and stay open.
    let idle = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = idle.local_addr().unwrap().port();
    let opened = (2, OPEN, open(port).into_bytes());
    let attacks: [Attack<'_>; 13] = [
        (&[(0, DATA, b"x".to_vec())], "mixes up its streams"),
        (&[(2, DATA, b"x".to_vec())], "refers to no connection"),
        (&[(2, OPENED, vec![0])], "refers to no connection"),
        (&[(3, OPEN, open(port).into_bytes())], "refers to no connection"),
        (&[opened.clone(), opened.clone()], "opens a connection twice"),
        (&[opened.clone(), (2, OPENED, vec![0])], "opens a connection twice"),
        (&[opened.clone(), (2, DATA, vec![0; (32 << 10) + 1])], "sends more than its window"),
        (&[opened.clone(), (2, END, vec![0]), (2, DATA, vec![0])], "goes on after the end"),
        (&[opened.clone(), (2, WINDOW, grant(0, u64::MAX))], "grants too large a window"),
        (&[(2, OPEN, b"{}".to_vec())], "a message cannot be read"),
        (&[(2, OPEN, vec![b' '; 33 << 10])], "a message is too large"),
        (&[(2, RESET, vec![0xff; 100])], "a message cannot be read"),
        (&[(2, 0x7077_000a, vec![0])], "unexpected message"),
    ];
    for (messages, reason) in attacks {
        let (client, server) = associated().await;
        let _server = served(server, &["127.0.0.1:*"]);
        for (stream, ppid, payload) in messages {
            say(&client, *stream, *ppid, payload.clone()).await;
        }
        ended(&client, reason).await;
    }
    let (client, _server) = pair(&["127.0.0.1:*"]).await;
    let port = forwarded(&client, Route::To(target(echo().await))).await;
    let mut socket = TcpStream::connect(port).await.unwrap();
    socket.write_all(b"x").await.unwrap();
    assert_eq!(socket.read_u8().await.unwrap(), b'x');
}

/// Targets and ports that no rule allows, however they are written.
#[tokio::test(flavor = "multi_thread")]
async fn targets_and_ports_that_no_rule_allows() {
    let (client, server) = associated().await;
    let _server = served(server, &["127.0.0.1:7", "localhost:8", "10.0.0.0/8:*"]);
    let long = "x".repeat(30_000);
    let targets = [
        ("127.0.0.1", 8),
        ("127.1", 8),
        ("0x7f000001", 8),
        ("::ffff:127.0.0.1", 8),
        ("0.0.0.0", 7),
        ("127.0.0.2", 7),
        ("::1", 7),
        ("localhost", 9),
        ("localhost.", 8),
        ("", 7),
        (&*long, 7),
        ("169.254.169.254", 80),
    ];
    for (index, (host, port)) in targets.iter().enumerate() {
        let open = format!(r#"{{"serial":0,"to":{{"target":{{"host":"{host}","port":{port}}}}}}}"#);
        say(&client, 2 * (index as u16 + 1), OPEN, open).await;
        let (ppid, why) = heard(&client).await;
        let denied = [r#""not-allowed""#, r#""unknown-host""#].contains(&&*why);
        assert!(ppid == FAILED && denied, "{host}:{port}: {ppid:x} {why}");
    }
    // A port for -R: on another address, and more of them than are served.
    say(&client, 0, LISTEN, r#"{"listener":0,"bind":"0.0.0.0","port":0}"#).await;
    let (ppid, reply) = heard(&client).await;
    assert!(ppid == LISTENING && reply.contains("Err"), "{reply}");
    let mut opened = 0;
    for number in 0..70 {
        let listen = format!(r#"{{"listener":{number},"bind":"127.0.0.1","port":0}}"#);
        say(&client, 0, LISTEN, listen).await;
        let (_, reply) = heard(&client).await;
        opened += usize::from(reply.contains("Ok"));
        assert!(reply.contains("Ok") || reply.contains("too many ports"), "{reply}");
    }
    assert_eq!(opened, 64);
}

/// A server reaches nothing on the client's side but the targets of the ports that it asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_connects_back() {
    let inside = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = inside.local_addr().unwrap().port();
    let (client, server) = associated().await;
    let (_client, requests) = Mux::start(client, Side::Client);
    let (replies, _replied) = mpsc::channel(1);
    let targets = [(0, target(inside.local_addr().unwrap()))].into();
    tokio::spawn(remote(requests, targets, replies));
    say(&server, 1, OPEN, open(port)).await;
    assert_eq!(heard(&server).await, (FAILED, r#""not-allowed""#.to_owned()));
    say(&server, 3, OPEN, r#"{"serial":1,"to":{"listener":7}}"#).await;
    assert_eq!(heard(&server).await, (FAILED, r#""not-allowed""#.to_owned()));
    say(&server, 0, LISTEN, r#"{"listener":0,"bind":"127.0.0.1","port":0}"#).await;
    // The port that was asked for; nothing has connected before, and LISTEN has no reply.
    say(&server, 5, OPEN, r#"{"serial":2,"to":{"listener":0}}"#).await;
    assert_eq!(heard(&server).await.0, OPENED);
    inside.accept().await.unwrap();
    assert!(timeout(Duration::from_millis(50), inside.accept()).await.is_err());
}

/// Programs at a SOCKS port that are silent, slow, or speak another protocol delay no other, and
/// are dropped.
#[tokio::test(flavor = "multi_thread")]
async fn programs_at_a_socks_port() {
    let (client, _server) = pair(&["127.0.0.1:*"]).await;
    let port = forwarded(&client, Route::Socks).await;
    let begun = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(port).await.unwrap());
    }
    let mut slow = TcpStream::connect(port).await.unwrap();
    slow.write_all(b"\x05\xff\x00").await.unwrap();
    // The reply and the end that each of them gets.
    let long = [b"\x05\x01\x00\x05\x01\x00\x03\xff".as_slice(), &[b'x'; 255], &[0, 7]].concat();
    let bad = b"\x05\x01\x00\x05\x01\x00\x03\x02\xff\xfe\x00\x07".as_slice();
    let attacks: [(&[u8], &[u8]); 11] = [
        (b"GET / HTTP/1.1\r\n\r\n", b""),
        (b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", b""),
        (b"\x05\x00", b"\x05\xff"),
        (b"\x05\x01\x02", b"\x05\xff"),
        (b"\x05\x01\x00\x04\x01\x00\x01", b"\x05\x00"),
        (b"\x05\x01\x00\x05\x01\x00\x09\x7f\x00\x00\x01\x00\x07", b"\x05\x00\x05\x08"),
        (b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x07", b"\x05\x00\x05\x07"),
        (b"\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x07", b"\x05\x00\x05\x07"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x07", b"\x05\x00\x05"),
        (&long, b"\x05\x00\x05"),
        (bad, b"\x05\x00"),
    ];
    for (request, reply) in attacks {
        let mut socket = TcpStream::connect(port).await.unwrap();
        socket.write_all(request).await.unwrap();
        let mut found = Vec::new();
        // It may be reset, with bytes that were not read.
        let _ = timeout(PATIENCE, socket.read_to_end(&mut found)).await.unwrap();
        let shown = request.escape_ascii();
        assert!(found.starts_with(reply) && found.len() <= 12, "{shown}: {found:?}");
        assert!(found.get(3) != Some(&0), "{shown}: {found:?}");
    }
    let mut request = b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01".to_vec();
    request.extend(echo().await.port().to_be_bytes());
    let mut socket = TcpStream::connect(port).await.unwrap();
    socket.write_all(&request).await.unwrap();
    let mut reply = [0; 12];
    timeout(Duration::from_secs(5), socket.read_exact(&mut reply)).await.unwrap().unwrap();
    assert_eq!(reply[..4], [5, 0, 5, 0]);
    for socket in silent.iter_mut().chain([&mut slow]) {
        let read = timeout(PATIENCE, socket.read(&mut [0; 8])).await;
        assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?} after {:?}", begun.elapsed());
    }
}
