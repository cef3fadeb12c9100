//! Streams as sequences of bytes.

use polypath::{Config, Message, StreamId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setup::{pair, soon};

#[tokio::test]
async fn bytes_there_and_back() {
    let pair = pair(&Config::rfc9260()).await;
    let (mut read, mut write) = tokio::io::split(pair.near.stream(StreamId(5)));
    let far = pair.far.clone();
    let echo = tokio::spawn(async move {
        let (mut read, mut write) = tokio::io::split(far.stream(StreamId(5)));
        tokio::io::copy(&mut read, &mut write).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    let copy = sent.clone();
    let writer = tokio::spawn(async move {
        write.write_all(&copy).await.unwrap();
        write.shutdown().await.unwrap();
        // The direction is closed.
        assert!(write.write(b"more").await.is_err());
    });
    let mut back = Vec::new();
    soon(read.read_to_end(&mut back)).await.unwrap();
    assert_eq!(back, sent);
    soon(writer).await.unwrap();
    soon(echo).await.unwrap();
    // The end of a stream is not the end of the association, nor of other streams.
    pair.near.send(Message::new(StreamId(6), "still here")).await.unwrap();
    let received = soon(pair.far.recv()).await.unwrap().unwrap();
    assert_eq!((received.stream, &received.payload[..]), (StreamId(6), &b"still here"[..]));
}

#[tokio::test]
async fn the_graceful_end_is_end_of_file_and_any_other_is_an_error() {
    let first = pair(&Config::rfc9260()).await;
    let mut stream = first.far.stream(StreamId(0));
    first.near.stream(StreamId(0)).write_all(b"all").await.unwrap();
    soon(first.near.shutdown()).await.unwrap();
    let mut bytes = Vec::new();
    soon(stream.read_to_end(&mut bytes)).await.unwrap();
    assert_eq!(bytes, b"all");

    let second = pair(&Config::rfc9260()).await;
    let mut stream = second.far.stream(StreamId(0));
    second.near.abort("no");
    let error = soon(stream.read(&mut [0])).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let error = soon(stream.write(&[0])).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

/// Unread messages of one stream do not block the reader of another.
#[tokio::test]
async fn streams_are_read_independently() {
    let pair = pair(&Config::rfc9260()).await;
    pair.near.send(Message::new(StreamId(1), "nobody reads this")).await.unwrap();
    soon(pair.near.drained()).await.unwrap();
    let far = pair.far.clone();
    let reader = tokio::spawn(async move {
        let mut buffer = [0; 16];
        let count = far.stream(StreamId(2)).read(&mut buffer).await.unwrap();
        buffer[..count].to_vec()
    });
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    pair.near.send(Message::new(StreamId(2), "for you")).await.unwrap();
    assert_eq!(soon(reader).await.unwrap(), b"for you");
    let received = soon(pair.far.recv_from(StreamId(1))).await.unwrap().unwrap();
    assert_eq!(received.payload, "nobody reads this");
}

#[tokio::test]
async fn writes_are_cut_into_messages() {
    let pair = pair(&Config::rfc9260()).await;
    let mut stream = pair.near.stream(StreamId(0));
    stream.set_write_size(1000);
    assert_eq!(stream.write(&[1; 2500]).await.unwrap(), 1000);
    assert_eq!(stream.write(&[]).await.unwrap(), 0);
    stream.flush().await.unwrap();
    let received = soon(pair.far.recv()).await.unwrap().unwrap();
    assert_eq!(received.payload, vec![1; 1000]);
}
