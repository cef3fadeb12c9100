//! Explicit congestion notification: the codepoints of IP on real sockets, in clear and encrypted.

use polypath::{
    Association, Config, ConnectOptions, Encryption, Endpoint, EndpointOptions, Message, Path,
    StreamId,
};

use crate::relay::Relay;
use crate::setup::{PORT, options, pair, soon, until};

/// Both ends of an association through a relay.
async fn joined(encrypted: bool) -> (Endpoint, Endpoint, Association, Association, Relay) {
    let options = || EndpointOptions {
        encryption: encrypted.then(Encryption::default),
        ..options(&["127.0.0.1"], &Config::modern())
    };
    let server = Endpoint::bind(EndpointOptions { port: PORT, listen: true, ..options() }).unwrap();
    let client = Endpoint::bind(options()).unwrap();
    let relay = Relay::new(client.local_addresses()[0].ip(), server.local_addresses()[0]).await;
    let near = soon(client.connect(ConnectOptions::new(PORT, [relay.address()]))).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    (server, client, near, far, relay)
}

fn path(association: &Association) -> Path {
    association.paths().remove(0)
}

/// Sends messages, and waits until they have arrived.
async fn exchange(near: &Association, far: &Association, count: usize) {
    let sender = near.clone();
    let sending = tokio::spawn(async move {
        for _ in 0..count {
            sender.send(Message::new(StreamId(0), vec![7; 1000])).await.unwrap();
        }
    });
    for _ in 0..count {
        soon(far.recv()).await.unwrap().unwrap();
    }
    soon(sending).await.unwrap();
    soon(near.drained()).await.unwrap();
}

#[tokio::test]
async fn marks_are_read_and_reported() {
    for encrypted in [false, true] {
        let (_server, _client, near, far, relay) = joined(encrypted).await;
        // The relay clears the codepoints, as some networks do: no mark arrives, and all data.
        exchange(&near, &far, 100).await;
        assert_eq!(path(&far).stats.congestion_experienced, 0);
        assert_eq!(path(&near).stats.congestion_notified, 0);
        relay.mark(true);
        exchange(&near, &far, 100).await;
        relay.mark(false);
        assert!(path(&far).stats.congestion_experienced > 0, "encrypted: {encrypted}");
        // The echo is in the next SACK.
        until(|| path(&near).stats.congestion_notified > 0).await;
        exchange(&near, &far, 100).await;
        let before = path(&far).stats.congestion_experienced;
        exchange(&near, &far, 100).await;
        assert_eq!(path(&far).stats.congestion_experienced, before, "no mark is left");
    }
}

/// RFC 3168 6.1.1 sets the codepoint on packets with data only. The kernel hands it over with each
/// datagram: without a router nothing is marked.
#[tokio::test]
async fn nothing_is_marked_without_a_router() {
    let pair = pair(&Config::modern()).await;
    exchange(&pair.near, &pair.far, 200).await;
    assert_eq!(path(&pair.far).stats.congestion_experienced, 0);
    assert_eq!(path(&pair.near).stats.congestion_notified, 0);
}
