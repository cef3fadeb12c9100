//! Closing of associations and endpoints.

use polypath::{CloseReason, ClosedError, Config, ConnectError, Message, SendError, StreamId};

use crate::setup::{pair, server, soon, until};

#[tokio::test]
async fn shutdown_delivers_first() {
    let pair = pair(&Config::rfc9260()).await;
    for number in 0..100 {
        pair.near.send(Message::new(StreamId(0), vec![number; 3000])).await.unwrap();
    }
    let near = pair.near.clone();
    let shutdown = tokio::spawn(async move { near.shutdown().await });
    for number in 0..100 {
        let received = soon(pair.far.recv()).await.unwrap().unwrap();
        assert_eq!(received.payload[0], number);
    }
    assert_eq!(soon(pair.far.recv()).await, Ok(None));
    soon(shutdown).await.unwrap().unwrap();
    assert_eq!(soon(pair.near.closed()).await, CloseReason::Graceful);
    assert_eq!(soon(pair.far.closed()).await, CloseReason::Graceful);
    // Counters stay readable.
    assert_eq!(pair.near.stats().messages_sent, 100);
    assert_eq!(pair.far.stats().messages_received, 100);
    assert!(pair.near.paths()[0].stats.data_bytes_sent == 300_000);
}

#[tokio::test]
async fn nothing_is_sent_after_shutdown() {
    let pair = pair(&Config::rfc9260()).await;
    let message = || Message::new(StreamId(0), "late");
    // Something to deliver keeps the association open.
    pair.near.send(Message::new(StreamId(0), vec![0; 500_000])).await.unwrap();
    let near = pair.near.clone();
    tokio::spawn(async move { near.shutdown().await });
    tokio::task::yield_now().await;
    assert_eq!(pair.near.send(message()).await, Err(SendError::ShuttingDown));
    while soon(pair.far.recv()).await.unwrap().is_some() {}
    soon(pair.near.closed()).await;
    assert_eq!(pair.near.send(message()).await, Err(SendError::Closed(CloseReason::Graceful)));
}

#[tokio::test]
async fn both_sides_shut_down() {
    let pair = pair(&Config::rfc9260()).await;
    let (near, far) = tokio::join!(soon(pair.near.shutdown()), soon(pair.far.shutdown()));
    near.unwrap();
    far.unwrap();
}

#[tokio::test]
async fn abort_tells_the_peer_why() {
    let pair = pair(&Config::rfc9260()).await;
    pair.near.send(Message::new(StreamId(0), "last words")).await.unwrap();
    soon(pair.near.drained()).await.unwrap();
    pair.near.abort("out of paper");
    assert_eq!(soon(pair.near.closed()).await, CloseReason::LocalAbort);
    // Messages that had arrived can still be read; then the reason follows.
    let received = soon(pair.far.recv()).await.unwrap().unwrap();
    assert_eq!(received.payload, "last words");
    match soon(pair.far.recv()).await {
        Err(ClosedError(CloseReason::PeerAbort { cause })) => {
            assert!(cause.contains("out of paper"), "{cause}");
        }
        other => panic!("{other:?}"),
    }
    let refused = pair.far.send(Message::new(StreamId(0), "too late")).await;
    assert!(matches!(refused, Err(SendError::Closed(CloseReason::PeerAbort { .. }))));
}

#[tokio::test]
async fn dropping_the_last_handle_aborts() {
    let pair = pair(&Config::rfc9260()).await;
    let clone = pair.near.clone();
    let stream = pair.near.stream(StreamId(0));
    drop(pair.near);
    drop(clone);
    assert_eq!(pair.far.close_reason(), None);
    drop(stream);
    assert!(matches!(soon(pair.far.closed()).await, CloseReason::PeerAbort { .. }));
}

#[tokio::test]
async fn dropping_during_shutdown_lets_it_finish() {
    let pair = pair(&Config::rfc9260()).await;
    pair.near.send(Message::new(StreamId(0), "all of it")).await.unwrap();
    let near = pair.near;
    tokio::select! {
        biased;
        _ = near.shutdown() => panic!("too fast"),
        () = std::future::ready(()) => drop(near.clone()),
    }
    drop(near);
    assert_eq!(soon(pair.far.recv()).await.unwrap().unwrap().payload, "all of it");
    assert_eq!(soon(pair.far.closed()).await, CloseReason::Graceful);
}

#[tokio::test]
async fn close_waits_for_all_associations_and_frees_the_port() {
    let config = Config::rfc9260();
    let pair = pair(&config).await;
    pair.near.send(Message::new(StreamId(0), vec![0; 300_000])).await.unwrap();
    let reader = {
        let far = pair.far.clone();
        tokio::spawn(async move {
            let mut bytes = 0;
            while let Some(received) = far.recv().await.unwrap() {
                bytes += received.payload.len();
            }
            bytes
        })
    };
    soon(pair.client.close()).await;
    assert_eq!(soon(reader).await.unwrap(), 300_000);
    assert_eq!(pair.near.close_reason(), Some(CloseReason::Graceful));
    let to = polypath::ConnectOptions::new(9260, [pair.server.local_addresses()[0]]);
    assert_eq!(soon(pair.client.connect(to)).await.unwrap_err(), ConnectError::EndpointClosed);
    assert!(soon(pair.client.accept()).await.is_none());
    let address = pair.client.local_addresses()[0];
    std::net::UdpSocket::bind(address).unwrap();
}

#[tokio::test]
async fn closing_a_server_ends_accept_and_refuses_others() {
    let pair = pair(&Config::rfc9260()).await;
    let server = pair.server.clone();
    let accepting = tokio::spawn(async move { server.accept().await.is_none() });
    let closing = pair.server.clone();
    let closing = tokio::spawn(async move { closing.close().await });
    assert!(soon(accepting).await.unwrap());
    soon(closing).await.unwrap();
    assert_eq!(soon(pair.near.closed()).await, CloseReason::Graceful);
    assert_eq!(soon(pair.far.recv()).await, Ok(None));
}

#[tokio::test]
async fn associations_that_nobody_accepts_are_aborted() {
    let config = Config::rfc9260();
    let server = server(&["127.0.0.1"], &config);
    let client = crate::setup::client(&["127.0.0.1"], &config);
    let to = polypath::ConnectOptions::new(9260, [server.local_addresses()[0]]);
    let near = soon(client.connect(to)).await.unwrap();
    drop(server);
    assert!(matches!(soon(near.closed()).await, CloseReason::PeerAbort { .. }));
}

#[tokio::test]
async fn what_came_before_accept_is_kept() {
    let config = Config::rfc9260();
    let server = server(&["127.0.0.1"], &config);
    let client = crate::setup::client(&["127.0.0.1"], &config);
    let to = polypath::ConnectOptions::new(9260, [server.local_addresses()[0]]);
    let near = soon(client.connect(to)).await.unwrap();
    near.send(Message::new(StreamId(0), "early")).await.unwrap();
    soon(near.shutdown()).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    assert_eq!(soon(far.recv()).await.unwrap().unwrap().payload, "early");
    assert_eq!(soon(far.recv()).await, Ok(None));
}

#[test]
fn the_end_of_the_runtime_is_noticed() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let pair = first.block_on(pair(&Config::rfc9260()));
    drop(first);
    assert_eq!(pair.near.close_reason(), Some(CloseReason::LocalAbort));
    runtime().block_on(async {
        assert!(soon(pair.near.recv()).await.is_err());
        assert!(soon(pair.server.accept()).await.is_none());
        soon(pair.client.close()).await;
        until(|| pair.near.try_send(Message::new(StreamId(0), vec![0; 1 << 20])).is_err()).await;
        assert!(soon(pair.near.send(Message::new(StreamId(0), "x"))).await.is_err());
    });
}
