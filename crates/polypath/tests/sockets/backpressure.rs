//! A slow reader stops the sender, and memory stays within the configured buffers.

use std::net::UdpSocket;
use std::time::Duration;

use polypath::{Config, Message, SendError, StreamId};

use crate::setup::{pair, server, soon, until};

const BUFFER: u32 = 100_000;
const MESSAGE: usize = 5_000;

fn small() -> Config {
    Config::builder().receive_buffer(BUFFER).send_buffer(BUFFER).build().unwrap()
}

fn message(number: u32) -> Message {
    let mut payload = vec![0; MESSAGE];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    Message::new(StreamId(0), payload)
}

#[tokio::test]
async fn a_reader_that_does_not_read_stops_the_sender() {
    let pair = pair(&small()).await;
    let mut sent = 0;
    // Fill both buffers, and wait for data in flight.
    loop {
        match pair.near.try_send(message(sent)) {
            Ok(()) => sent += 1,
            Err(SendError::WouldBlock) => {
                let waiting =
                    tokio::time::timeout(Duration::from_millis(300), pair.near.send(message(sent)));
                match waiting.await {
                    Ok(result) => {
                        result.unwrap();
                        sent += 1;
                    }
                    // The reader's buffer is full; before that, the machine is just busy.
                    Err(_) if sent as usize * MESSAGE > BUFFER as usize => break,
                    Err(_) => {}
                }
            }
            Err(error) => panic!("{error}"),
        }
        assert!(pair.near.buffered() < BUFFER as usize + MESSAGE);
    }
    let taken = sent as usize * MESSAGE;
    assert!(taken > BUFFER as usize, "{taken}");
    assert!(taken <= 2 * BUFFER as usize + MESSAGE, "{taken}");
    // Sending continues as soon as the reader reads.
    let near = pair.near.clone();
    let sender = tokio::spawn(async move {
        for number in sent..sent + 200 {
            near.send(message(number)).await.unwrap();
        }
        near.shutdown().await
    });
    let mut bytes = Vec::new();
    while let Some(received) = soon(pair.far.recv()).await.unwrap() {
        bytes.extend_from_slice(&received.payload);
    }
    sender.await.unwrap().unwrap();
    let numbers: Vec<u32> = bytes
        .chunks(MESSAGE)
        .map(|message| u32::from_be_bytes(message[..4].try_into().unwrap()))
        .collect();
    assert_eq!(numbers, (0..sent + 200).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_senders_all_get_their_turn() {
    let pair = pair(&small()).await;
    let mut senders = Vec::new();
    for sender in 0..8 {
        let near = pair.near.clone();
        senders.push(tokio::spawn(async move {
            for number in 0..50 {
                near.send(Message { stream: StreamId(sender), ..message(number) }).await.unwrap();
            }
        }));
    }
    let mut next = [0; 8];
    for _ in 0..400 {
        let received = soon(pair.far.recv()).await.unwrap().unwrap();
        let number = u32::from_be_bytes(received.payload[..4].try_into().unwrap());
        let expected = &mut next[usize::from(received.stream.0)];
        assert_eq!(number, *expected);
        *expected += 1;
    }
    for sender in senders {
        sender.await.unwrap();
    }
    until(|| pair.near.buffered() == 0).await;
    soon(pair.near.drained()).await.unwrap();
}

/// The future passed to `block_on` is not a task: a task that wakes itself again and again would
/// delay it by dozens of polls.
#[tokio::test]
async fn a_busy_endpoint_leaves_turns_to_the_runtimes_own_future() {
    const DATAGRAMS: u64 = 480;
    let server = server(&["127.0.0.1"], &Config::default());
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..DATAGRAMS {
        stranger.send_to(b"?", server.local_addresses()[0]).unwrap();
    }
    let mut turns = 0;
    soon(async {
        while server.socket_stats()[0].datagrams_received < DATAGRAMS {
            turns += 1;
            tokio::task::yield_now().await;
        }
    })
    .await;
    // One system call receives 32 datagrams.
    assert!(turns >= 12, "{turns}");
}

#[tokio::test]
async fn events_of_a_reader_that_lags_are_bounded() {
    let pair = pair(&small()).await;
    let mut events = pair.near.events();
    for _ in 0..400 {
        // Changes would need two paths; setting the same primary may or may not produce an event.
        let _ = pair.near.set_primary(pair.near.primary());
    }
    soon(pair.near.shutdown()).await.unwrap();
    let mut count = 0;
    let last = loop {
        match soon(events.next()).await {
            Ok(event) => {
                count += 1;
                if let polypath::Event::Closed(reason) = event {
                    break reason;
                }
            }
            Err(polypath::EventsError::Lagged { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert!(last.is_graceful());
    assert!(count <= 256, "{count}");
    assert_eq!(soon(events.next()).await, Err(polypath::EventsError::Ended));
    // Created after the end: there are no more events.
    assert_eq!(soon(pair.near.events().next()).await, Err(polypath::EventsError::Ended));
}
