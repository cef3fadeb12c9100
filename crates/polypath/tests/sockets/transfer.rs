//! Messages arrive once, whole, and in order.

use std::time::Duration;

use bytes::Bytes;
use polypath::proto::policy::congestion::{
    Congestion, CongestionController, Context, NewPath, PathAck,
};
use polypath::proto::policy::{Entry, Needs, Window};
use polypath::{Config, Encapsulation, Endpoint, EndpointOptions, Message, Ppid, StreamId};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::setup::{ip, options, pair, soon};

/// Pseudo-random bytes.
fn noise(seed: u64, len: usize) -> Bytes {
    let mut state = seed | 1;
    let bytes = (0..len).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    });
    bytes.collect()
}

#[tokio::test]
async fn echo_on_many_streams() {
    const STREAMS: u16 = 50;
    const MESSAGES: u16 = 40;
    let pair = pair(&Config::rfc9260()).await;
    let far = pair.far.clone();
    tokio::spawn(async move {
        while let Ok(Some(received)) = far.recv().await {
            let message = Message {
                ppid: received.ppid,
                unordered: received.unordered,
                ..Message::new(received.stream, received.payload)
            };
            far.send(message).await.unwrap();
        }
    });
    let message = |stream: u16, number: u16| {
        let seed = u64::from(stream) * 1000 + u64::from(number);
        let payload = noise(seed, 1 + (seed as usize * 37) % 4000);
        Message { ppid: Ppid(number.into()), ..Message::new(StreamId(stream), payload) }
    };
    let near = pair.near.clone();
    let sender = tokio::spawn(async move {
        for number in 0..MESSAGES {
            for stream in 0..STREAMS {
                near.send(message(stream, number)).await.unwrap();
            }
        }
    });
    let mut next = [0; STREAMS as usize];
    for _ in 0..STREAMS * MESSAGES {
        let echo = soon(pair.near.recv()).await.unwrap().unwrap();
        let number = &mut next[usize::from(echo.stream.0)];
        let expected = message(echo.stream.0, *number);
        assert_eq!((echo.ppid, &echo.payload), (expected.ppid, &expected.payload));
        assert!(echo.beginning && echo.end && !echo.unordered);
        *number += 1;
    }
    assert_eq!(next, [MESSAGES; STREAMS as usize]);
    sender.await.unwrap();
    soon(pair.near.shutdown()).await.unwrap();
}

/// Sends 10 MB and compares digests.
async fn ten_megabytes(config: &Config, unordered: bool) {
    let pair = pair(config).await;
    let message = noise(7, 100_000);
    let near = pair.near.clone();
    let sent = message.clone();
    let sender = tokio::spawn(async move {
        for _ in 0..100 {
            let message = Message { unordered, ..Message::new(StreamId(1), sent.clone()) };
            near.send(message).await.unwrap();
        }
        near.shutdown().await
    });
    let mut digest = Sha256::new();
    let mut bytes = 0;
    while let Some(received) = soon(pair.far.recv()).await.unwrap() {
        digest.update(&received.payload);
        bytes += received.payload.len();
    }
    assert_eq!(bytes, 10_000_000);
    let mut expected = Sha256::new();
    (0..100).for_each(|_| expected.update(&message));
    assert_eq!(digest.finalize(), expected.finalize());
    sender.await.unwrap().unwrap();
}

#[tokio::test]
async fn ten_megabytes_in_one_thread() {
    ten_megabytes(&Config::rfc9260(), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_megabytes_in_two_threads() {
    ten_megabytes(&Config::rfc9260(), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_megabytes_through_small_buffers() {
    let config = Config::builder().receive_buffer(20_000).send_buffer(20_000).build().unwrap();
    ten_megabytes(&config, false).await;
}

#[tokio::test]
async fn unordered_messages_arrive_whole() {
    ten_megabytes(&Config::rfc9260(), true).await;
}

/// Datagrams wait for room in the socket and are not lost: the kernel grants little more than one
/// batch of segments.
#[tokio::test]
async fn sockets_with_tiny_buffers() {
    let config = Config::builder().rto_min(Duration::from_millis(50)).build().unwrap();
    let bind = |port, listen| {
        let options = EndpointOptions {
            socket_buffer: Some(4096),
            port,
            listen,
            encapsulation: Encapsulation::Udp { port: 0 },
            ..options(&["127.0.0.1"], &config)
        };
        Endpoint::bind(options).unwrap()
    };
    let (server, client) = (bind(9260, true), bind(0, false));
    let to = polypath::ConnectOptions::new(9260, [server.local_addresses()[0]]);
    let near = soon(client.connect(to)).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    let payload = noise(3, 50_000);
    let sent = payload.clone();
    let sender = tokio::spawn(async move {
        for _ in 0..20 {
            near.send(Message::new(StreamId(0), sent.clone())).await.unwrap();
        }
        near.shutdown().await
    });
    let mut bytes = Vec::new();
    while let Some(received) = soon(far.recv()).await.unwrap() {
        bytes.extend_from_slice(&received.payload);
    }
    assert_eq!(bytes.len(), 1_000_000);
    assert!(bytes.chunks(50_000).all(|message| message == payload));
    sender.await.unwrap().unwrap();
}

#[tokio::test]
async fn two_associations_do_not_mix() {
    let config = Config::rfc9260();
    let server = crate::setup::server(&["127.0.0.1"], &config);
    let address = server.local_addresses()[0];
    let mut ends = Vec::new();
    for number in 0..10_u8 {
        let client = crate::setup::client(&["127.0.0.1"], &config);
        let to = polypath::ConnectOptions::new(server.port(), [address]);
        let near = soon(client.connect(to)).await.unwrap();
        near.send(Message::new(StreamId(0), vec![number; 10])).await.unwrap();
        ends.push((client, near));
    }
    let mut seen = Vec::new();
    for _ in 0..10 {
        let far = soon(server.accept()).await.unwrap();
        let received = soon(far.recv()).await.unwrap().unwrap();
        assert!(received.payload.iter().all(|byte| *byte == received.payload[0]));
        seen.push(received.payload[0]);
        far.abort("enough");
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    assert_eq!(server.local_addresses()[0].ip(), ip("127.0.0.1"));
}

/// Paces at 5.6 MB/s.
#[derive(Debug)]
struct Slow;

static SLOW: Entry<dyn CongestionController> =
    Entry::<dyn CongestionController>::new("slow", "paces at 5.6 MB/s", |_| Box::new(Slow))
        .with_needs(Needs::NONE.pacing());

impl CongestionController for Slow {
    fn initial(&mut self, path: &NewPath) -> Window {
        let pacing_rate = Some(5_600_000);
        Window { pacing_rate, ..Window::unpaced(20 * path.max_chunk, u32::MAX) }
    }

    fn on_ack(&mut self, context: &Context<'_>, _: &PathAck) -> Window {
        context.path.window
    }

    fn on_congestion(&mut self, context: &Context<'_>, _: Congestion) -> Window {
        context.path.window
    }

    fn on_timeout(&mut self, context: &Context<'_>) -> Window {
        context.path.window
    }
}

/// Each message comes when the one before is delivered: nothing is in flight, and the message waits
/// for the pacer alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_message_after_the_other() {
    let config = Config::default().to_builder().congestion(&SLOW).build().unwrap();
    let pair = pair(&config).await;
    // Four packets, which are acknowledged at once and use up the batch of a millisecond.
    let message = noise(9, 5600);
    for _ in 0..200 {
        pair.near.send(Message::new(StreamId(0), message.clone())).await.unwrap();
        // Less than the 30 s after which a HEARTBEAT would wake the driver.
        let delivered = timeout(Duration::from_secs(10), pair.near.drained()).await;
        delivered.expect("a message waits without a timer").unwrap();
        soon(pair.far.recv()).await.unwrap();
    }
}
