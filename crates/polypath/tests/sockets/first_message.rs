//! A message that is sent with the handshake (RFC 9260 5.1 C).

use polypath::{Config, ConnectError, ConnectOptions, Message, SendError, StreamId};

use crate::relay::Relay;
use crate::setup::{PORT, client, server, soon};

/// It arrives after a round trip and a half: the client has received an INIT ACK and nothing else.
#[tokio::test]
async fn it_arrives_before_the_client_is_connected() {
    let server = server(&["127.0.0.1"], &Config::modern());
    let client = client(&["127.0.0.1"], &Config::modern());
    let relay = Relay::new(client.local_addresses()[0].ip(), server.local_addresses()[0]).await;
    relay.allow_answers(1);
    let to = ConnectOptions::new(PORT, [relay.address()]);
    let connecting = tokio::spawn(async move {
        let near = client.connect_with(to, Message::new(StreamId(0), "first")).await;
        (client, near)
    });
    let far = soon(server.accept()).await.unwrap();
    assert_eq!(&soon(far.recv()).await.unwrap().unwrap().payload[..], b"first");
    assert!(!connecting.is_finished());
    relay.allow_answers(usize::MAX);
    let (_client, near) = soon(connecting).await.unwrap();
    let near = near.unwrap();
    soon(near.drained()).await.unwrap();
    near.send(Message::new(StreamId(0), "second")).await.unwrap();
    assert_eq!(&soon(far.recv()).await.unwrap().unwrap().payload[..], b"second");
}

#[tokio::test]
async fn one_that_cannot_be_sent_is_refused() {
    let client = client(&["127.0.0.1"], &Config::modern());
    let to = || ConnectOptions::new(PORT, ["127.0.0.1:9".parse().unwrap()]);
    let error = soon(client.connect_with(to(), Message::new(StreamId(0), ""))).await.unwrap_err();
    assert_eq!(error, ConnectError::First(SendError::Empty));
    // The attempt is over.
    soon(client.close()).await;
}
