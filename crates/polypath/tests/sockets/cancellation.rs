//! Futures that are dropped before they are ready leave no trace.

use std::time::Duration;

use polypath::{Config, ConnectOptions, Message, StreamId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setup::{PORT, client, pair, server, soon};

/// Short waits of changing length, so that futures are dropped at many points.
struct Waits(u64);

impl Waits {
    async fn next(&mut self) {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match self.0 >> 61 {
            0 => tokio::time::sleep(Duration::from_millis(1)).await,
            n => {
                for _ in 0..n {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

fn small() -> Config {
    Config::builder().receive_buffer(30_000).send_buffer(20_000).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_and_recv() {
    const MESSAGES: u32 = 2_000;
    let pair = pair(&small()).await;
    let near = pair.near.clone();
    let sender = tokio::spawn(async move {
        let mut waits = Waits(1);
        let mut dropped = 0;
        let mut number = 0_u32;
        while number < MESSAGES {
            let mut payload = vec![0x5a; 1000];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            tokio::select! {
                biased;
                result = near.send(Message::new(StreamId(0), payload)) => {
                    result.unwrap();
                    number += 1;
                }
                () = waits.next() => dropped += 1,
            }
        }
        near.shutdown().await.unwrap();
        dropped
    });
    let mut waits = Waits(2);
    let (mut dropped, mut next) = (0, 0);
    loop {
        tokio::select! {
            biased;
            received = pair.far.recv() => match received.unwrap() {
                Some(received) => {
                    let number = u32::from_be_bytes(received.payload[..4].try_into().unwrap());
                    assert_eq!(number, next);
                    next += 1;
                    if next % 8 == 0 {
                        // A slow reader, so that the sender has to wait.
                        waits.next().await;
                    }
                }
                None => break,
            },
            () = waits.next() => dropped += 1,
        }
    }
    assert_eq!(next, MESSAGES);
    assert!(soon(sender).await.unwrap() > 0, "no send was dropped");
    assert!(dropped > 0, "no recv was dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_read_and_write() {
    const BYTES: usize = 2_000_000;
    let pair = pair(&small()).await;
    let mut writer = pair.near.stream(StreamId(3));
    let mut reader = pair.far.stream(StreamId(3));
    let task = tokio::spawn(async move {
        let mut waits = Waits(3);
        let mut written = 0;
        while written < BYTES {
            let piece: Vec<u8> =
                (written..BYTES.min(written + 3000)).map(|n| (n % 251) as u8).collect();
            tokio::select! {
                biased;
                count = writer.write(&piece) => written += count.unwrap(),
                () = waits.next() => {}
            }
        }
        writer.shutdown().await.unwrap();
        writer
    });
    let mut waits = Waits(4);
    let mut read = 0;
    let mut buffer = [0; 700];
    loop {
        tokio::select! {
            biased;
            count = reader.read(&mut buffer) => {
                let count = count.unwrap();
                if count == 0 {
                    break;
                }
                assert!(buffer[..count].iter().enumerate().all(|(i, b)| {
                    usize::from(*b) == (read + i) % 251
                }));
                read += count;
            }
            () = waits.next() => {}
        }
    }
    assert_eq!(read, BYTES);
    soon(task).await.unwrap();
}

#[tokio::test]
async fn connect_and_accept() {
    let config = Config::rfc9260();
    let server = server(&["127.0.0.1"], &config);
    let client = client(&["127.0.0.1"], &config);
    let to = ConnectOptions::new(PORT, [server.local_addresses()[0]]);
    // Dropped after the first packet has been sent: this aborts the attempt.
    for _ in 0..20 {
        tokio::select! {
            biased;
            connected = client.connect(to.clone()) => panic!("{connected:?}"),
            () = std::future::ready(()) => {}
        }
    }
    let mut waits = Waits(5);
    let accepting = tokio::spawn(async move {
        loop {
            tokio::select! {
                biased;
                accepted = server.accept() => {
                    let accepted = accepted.unwrap();
                    // It may be an aborted attempt whose packets were already in flight.
                    if accepted.recv().await.is_ok_and(|received| received.is_some()) {
                        return;
                    }
                }
                () = waits.next() => {}
            }
        }
    });
    let association = soon(client.connect(to)).await.unwrap();
    association.send(Message::new(StreamId(0), "here")).await.unwrap();
    soon(accepting).await.unwrap();
}

#[tokio::test]
async fn shutdown_goes_on() {
    let pair = pair(&Config::rfc9260()).await;
    pair.near.send(Message::new(StreamId(0), vec![1; 50_000])).await.unwrap();
    tokio::select! {
        biased;
        ended = pair.near.shutdown() => panic!("{ended:?}"),
        () = std::future::ready(()) => {}
    }
    drop(pair.near);
    let received = soon(pair.far.recv()).await.unwrap().unwrap();
    assert_eq!(received.payload.len(), 50_000);
    assert_eq!(soon(pair.far.recv()).await, Ok(None));
    assert!(soon(pair.far.closed()).await.is_graceful());
}
