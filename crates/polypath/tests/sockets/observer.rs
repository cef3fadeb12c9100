//! Observers see all associations of an endpoint, and keep none of them open.

use polypath::{Config, Event, Message, StreamId};

use crate::setup::{Pair, pair, soon, until};

#[tokio::test]
async fn snapshots_have_the_counters_of_the_paths() {
    let Pair { client, near, far, .. } = pair(&Config::rfc9260()).await;
    let observer = client.observe();
    near.send(Message::new(StreamId(0), vec![7; 10_000])).await.unwrap();
    soon(far.recv()).await.unwrap();
    soon(near.drained()).await.unwrap();
    let seen = observer.snapshot().unwrap();
    assert_eq!(seen.locals, client.local_addresses());
    let [one] = &seen.associations[..] else { panic!("{seen:?}") };
    assert!(one.established);
    assert_eq!((one.buffered, one.stats.messages_sent), (0, 1));
    assert_eq!(one.paths[0].stats.data_bytes_sent, 10_000);
    assert_eq!(one.current, near.current_path());
}

#[tokio::test]
async fn the_last_event_has_the_last_counters() {
    let Pair { client, server, near, far } = pair(&Config::rfc9260()).await;
    let mut observer = server.observe();
    near.send(Message::new(StreamId(0), "hello")).await.unwrap();
    soon(near.shutdown()).await.unwrap();
    assert!(soon(far.recv()).await.unwrap().is_some());
    soon(far.closed()).await;
    let (events, missed) = observer.events();
    assert_eq!(missed, 0);
    let last = events.last().unwrap();
    assert!(matches!(&last.event, Event::Closed(reason) if reason.is_graceful()), "{last:?}");
    assert_eq!(last.last.as_ref().unwrap().paths[0].stats.data_bytes_received, 5);
    // Those before were reported before: an observer sees events from its beginning on.
    assert!(events.iter().all(|one| !matches!(one.event, Event::Established { .. })), "{events:?}");
    assert_eq!(observer.events().0.len(), 0);
    drop(client);
}

#[tokio::test]
async fn an_observer_keeps_nothing_open() {
    let Pair { client, server, near, far } = pair(&Config::rfc9260()).await;
    let mut observer = server.observe();
    drop(far);
    soon(near.closed()).await;
    until(|| observer.snapshot().is_some_and(|seen| seen.associations.is_empty())).await;
    assert!(matches!(observer.events().0.last().unwrap().event, Event::Closed(_)));
    soon(server.close()).await;
    drop(server);
    until(|| observer.snapshot().is_none()).await;
    drop(client);
}
