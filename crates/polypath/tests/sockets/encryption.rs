//! DTLS below SCTP: over two paths, through a network that changes ports, and with untrusted hosts.

use std::sync::LazyLock;
use std::time::Duration;

use polypath::{
    CloseReason, Config, ConnectError, ConnectOptions, Encapsulation, Encryption, Endpoint,
    EndpointOptions, Identity, Message, PathState, Refusal, StreamId, Trust,
};

use crate::relay::Relay;
use crate::setup::{self, PATIENCE, PORT, Pair, brisk, goes_on_when_cut, ip, options, soon, until};

/// Identities of the server, of the client, and of a third party.
static IDENTITIES: LazyLock<[Identity; 3]> =
    LazyLock::new(|| std::array::from_fn(|_| Identity::generate().unwrap()));

fn encryption(who: usize, trust: Trust) -> Option<Encryption> {
    Some(Encryption::new(IDENTITIES[who].clone(), trust))
}

fn only(who: usize) -> Trust {
    Trust::Known(vec![IDENTITIES[who].fingerprint().into()])
}

fn server(addresses: &[&str], config: &Config, encryption: Option<Encryption>) -> Endpoint {
    let options = options(addresses, config);
    Endpoint::bind(EndpointOptions { port: PORT, listen: true, encryption, ..options }).unwrap()
}

fn client(addresses: &[&str], config: &Config, encryption: Option<Encryption>) -> Endpoint {
    Endpoint::bind(EndpointOptions { encryption, ..options(addresses, config) }).unwrap()
}

const LOCALS: [&str; 2] = ["127.3.0.1", "127.4.0.1"];
const REMOTES: [&str; 2] = ["127.3.0.2", "127.4.0.2"];

/// An association of two paths, each through a relay.
async fn relayed(config: &Config) -> (Pair, Vec<Relay>) {
    let client = client(&LOCALS, config, encryption(1, only(0)));
    setup::relayed(client, server(&REMOTES, config, encryption(0, Trust::Anyone))).await
}

async fn goes_both_ways(pair: &Pair) {
    for (from, to) in [(&pair.near, &pair.far), (&pair.far, &pair.near)] {
        from.send(Message::new(StreamId(0), "hello")).await.unwrap();
        assert_eq!(soon(to.recv()).await.unwrap().unwrap().payload, "hello");
    }
}

#[tokio::test]
async fn two_paths_one_peer_and_one_is_cut() {
    let (pair, relays) = relayed(&brisk()).await;
    assert_eq!(pair.near.peer(), Some(IDENTITIES[0].fingerprint()));
    assert_eq!(pair.far.peer(), Some(IDENTITIES[1].fingerprint()));
    goes_on_when_cut(&pair, &relays, 400, 5000).await;
    relays[0].cut(false);
    until(|| pair.near.paths()[0].view.state == PathState::Active).await;
    let (stats, intruders) = pair.near_stats();
    // The connection of this path has survived the cut. If it was silent for so long that a second
    // handshake began, and a ClientHello is the first datagram to get through again, the new
    // connection replaces it.
    assert!((2..=3).contains(&stats.opened), "{stats:?}");
    assert_eq!((stats.refused, intruders), (0, 0));
    assert_eq!(pair.near.peer(), Some(IDENTITIES[0].fingerprint()));
    assert_eq!(pair.far.peer(), Some(IDENTITIES[1].fingerprint()));
    goes_both_ways(&pair).await;
    soon(pair.near.shutdown()).await.unwrap();
}

impl Pair {
    fn near_stats(&self) -> (polypath::dtls::Stats, u64) {
        self.client.encryption_stats()
    }
}

#[tokio::test]
async fn packets_stay_as_large_as_the_path_takes() {
    let (pair, _relays) = relayed(&Config::rfc9260()).await;
    pair.near.send(Message::new(StreamId(0), vec![7; 200_000])).await.unwrap();
    let received = soon(pair.far.recv()).await.unwrap().unwrap();
    assert_eq!(received.payload.len(), 200_000);
    // 1500 bytes of IP: IPv4, UDP, DTLS record and SCTP headers, rounded down to a multiple of
    // four.
    let largest = 1500 - 20 - 8 - polypath::dtls::OVERHEAD - 12 - 16;
    let chunks = pair.near.paths()[0].stats.data_chunks_sent;
    assert_eq!(chunks, 200_000_u64.div_ceil(largest as u64 / 4 * 4));
}

#[tokio::test]
async fn a_network_that_changes_the_port_is_got_over() {
    let (pair, mut relays) = relayed(&brisk()).await;
    goes_both_ways(&pair).await;
    for relay in &mut relays {
        relay.change_port().await;
    }
    // The server has no connection with these ports, and the client detects that by itself.
    soon(goes_both_ways(&pair)).await;
    assert!(pair.near_stats().0.opened > 2);
}

/// RFC 9260 8.4 (8), RFC 9653 5.3: the server restarts without state at the same address. The first
/// retransmission, after 1 s, detects it: packets of the old association have no checksum.
#[tokio::test]
async fn a_receiver_that_has_restarted_is_noticed_at_once() {
    let config = Config::rfc9260();
    let old = server(&["127.0.0.1"], &config, encryption(0, Trust::Anyone));
    let address = old.local_addresses()[0];
    let relay = Relay::new(ip("127.0.0.1"), address).await;
    let client = client(&["127.0.0.1"], &config, encryption(1, only(0)));
    let near = soon(client.connect(ConnectOptions::new(PORT, [relay.address()]))).await.unwrap();
    let far = soon(old.accept()).await.unwrap();
    // The server closes without sending anything.
    relay.cut(true);
    drop((far, old));
    let again = || {
        let options = options(&["127.0.0.1"], &config);
        Endpoint::bind(EndpointOptions {
            port: PORT,
            listen: true,
            encryption: encryption(0, Trust::Anyone),
            encapsulation: Encapsulation::Udp { port: address.port() },
            ..options
        })
    };
    let mut server = None;
    until(|| {
        server = again().ok();
        server.is_some()
    })
    .await;
    relay.cut(false);
    near.send(Message::new(StreamId(0), "anybody there?")).await.unwrap();
    let reason = soon(near.closed()).await;
    // This is long before Association.Max.Retrans is reached.
    assert!(matches!(reason, CloseReason::PeerAbort { .. }), "{reason:?}");
}

#[tokio::test]
async fn another_certificate_is_refused_at_once() {
    let server = server(&["127.0.0.1"], &Config::rfc9260(), encryption(0, Trust::Anyone));
    let client = client(&["127.0.0.1"], &Config::rfc9260(), encryption(1, only(2)));
    let to = || ConnectOptions::new(PORT, server.local_addresses().iter().copied());
    let found = IDENTITIES[0].fingerprint();
    let error = soon(client.connect(to())).await.unwrap_err();
    assert_eq!(error, ConnectError::Refused(Refusal::Certificate { found }));
    assert_eq!(client.refusal(ip("127.0.0.1")), Some(Refusal::Certificate { found }));
    // The server refuses the client's certificate.
    let strict = self::server(&["127.0.0.1"], &Config::rfc9260(), encryption(0, only(2)));
    let to = ConnectOptions::new(PORT, strict.local_addresses().iter().copied());
    let client = self::client(&["127.0.0.1"], &Config::rfc9260(), encryption(1, Trust::Anyone));
    let error = soon(client.connect(to)).await.unwrap_err();
    assert_eq!(error, ConnectError::Refused(Refusal::ByPeer));
}

#[tokio::test]
async fn plain_and_encrypted_tell_each_other() {
    let config = Config::rfc9260();
    let plain = server(&["127.0.0.1"], &config, None);
    let encrypted = client(&["127.0.0.1"], &config, encryption(1, Trust::Anyone));
    let to = ConnectOptions::new(PORT, plain.local_addresses().iter().copied());
    let error = soon(encrypted.connect(to)).await.unwrap_err();
    assert_eq!(error, ConnectError::Refused(Refusal::Plain));

    let encrypted = server(&["127.0.0.1"], &config, encryption(0, Trust::Anyone));
    let plain = client(&["127.0.0.1"], &config, None);
    let to = ConnectOptions::new(PORT, encrypted.local_addresses().iter().copied());
    match soon(plain.connect(to)).await.unwrap_err() {
        ConnectError::Closed(CloseReason::PeerAbort { cause }) => {
            assert!(cause.contains(polypath::ENCRYPTED_ONLY), "{cause}");
        }
        error => panic!("{error}"),
    }
}

/// The attacker has the peer's address and ports and sends an INIT that restarts the association
/// (RFC 9260 5.2.4 A). In clear, that takes the association over.
#[tokio::test]
async fn somebody_else_cannot_take_an_association_over() {
    for encrypted in [true, false] {
        let config = Config::rfc9260();
        let of = |who| if encrypted { encryption(who, Trust::Anyone) } else { None };
        let server = server(&["127.0.0.1"], &config, of(0));
        let bind = |who| {
            let options = EndpointOptions {
                port: 7000,
                encryption: of(who),
                encapsulation: Encapsulation::Udp { port: 0 },
                ..options(&["127.0.0.1"], &config)
            };
            Endpoint::bind(options).unwrap()
        };
        let (client, intruder) = (bind(1), bind(2));
        let to = || ConnectOptions::new(PORT, server.local_addresses().iter().copied());
        let near = soon(client.connect(to())).await.unwrap();
        let far = soon(server.accept()).await.unwrap();
        let patience = if encrypted { Duration::from_secs(2) } else { PATIENCE };
        let taken = tokio::time::timeout(patience, intruder.connect(to())).await;
        assert_eq!(taken.is_err(), encrypted, "{taken:?}");
        if encrypted {
            assert!(server.encryption_stats().1 > 0);
            assert_eq!(far.peer(), Some(IDENTITIES[1].fingerprint()));
            near.send(Message::new(StreamId(0), "still mine")).await.unwrap();
            assert_eq!(soon(far.recv()).await.unwrap().unwrap().payload, "still mine");
        }
    }
}

#[tokio::test]
async fn the_raw_wire_is_not_encrypted() {
    let options = EndpointOptions {
        encapsulation: Encapsulation::RawIp,
        encryption: encryption(0, Trust::Anyone),
        ..options(&["127.0.0.1"], &Config::rfc9260())
    };
    let error = Endpoint::bind(options).unwrap_err().to_string();
    assert_eq!(error, "IP protocol 132 carries no DTLS");
}

/// Anyone can make a certificate and connect from any number of ports. That closes no connection of
/// an open association, however idle.
#[tokio::test]
async fn strangers_do_not_take_the_place_of_an_idle_peer() {
    let config = Config::builder().heartbeat_interval(None).build().unwrap();
    let few = encryption(0, Trust::Anyone).map(|e| Encryption { max_connections: 2, ..e });
    let server = server(&["127.0.0.1"], &config, few);
    let to = ConnectOptions::new(PORT, [server.local_addresses()[0]]);
    let peer = client(&["127.0.0.1"], &config, encryption(1, only(0)));
    let near = soon(peer.connect(to.clone())).await.unwrap();
    let far = soon(server.accept()).await.unwrap();
    // Their connections stay open after their associations have ended.
    let mut strangers = Vec::new();
    for _ in 0..5 {
        let stranger = client(&["127.0.0.1"], &config, encryption(2, Trust::Anyone));
        let near = soon(stranger.connect(to.clone())).await.unwrap();
        let far = soon(server.accept()).await.unwrap();
        near.abort("bye");
        soon(far.closed()).await;
        strangers.push(stranger);
    }
    far.send(Message::new(StreamId(0), "hello")).await.unwrap();
    assert_eq!(soon(near.recv()).await.unwrap().unwrap().payload, "hello");
    assert_eq!(peer.encryption_stats().0.opened, 1);
    assert_eq!(server.encryption_stats().0.evicted, 4);
}

/// Without any option, an association is encrypted, and each side has an identity of its own.
#[tokio::test]
async fn encryption_is_the_default() {
    let bind = |listen| {
        let addresses = vec!["127.0.0.1".parse().unwrap()];
        let options = EndpointOptions { addresses, listen, port: PORT, ..Default::default() };
        Endpoint::bind(options).unwrap()
    };
    let (here, there) = (bind(false), bind(true));
    let to = ConnectOptions::new(PORT, there.local_addresses());
    let near = soon(here.connect(to)).await.unwrap();
    let far = soon(there.accept()).await.unwrap();
    assert_ne!(here.fingerprint(), there.fingerprint());
    assert_eq!((near.peer(), far.peer()), (there.fingerprint(), here.fingerprint()));
    assert!(near.peer().is_some());
}

/// Packets of the peer may arrive when the association is aborted already, but its ABORT not sent.
#[tokio::test]
async fn a_packet_for_an_aborted_association_does_not_delay_the_end() {
    for turns in 0..8 {
        let server = server(&["127.0.0.1"], &Config::default(), encryption(0, Trust::Anyone));
        let client = client(&["127.0.0.1"], &Config::default(), encryption(1, only(0)));
        let to = ConnectOptions::new(PORT, server.local_addresses());
        let near = soon(client.connect(to)).await.unwrap();
        near.send(Message::new(StreamId(0), "first")).await.unwrap();
        soon(near.drained()).await.unwrap();
        near.send(Message::new(StreamId(0), "second")).await.unwrap();
        // The client's task sends the message in one of these turns. The server's task sees the
        // packet and the abort at once.
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        let closing = tokio::time::timeout(Duration::from_secs(10), server.close());
        closing.await.unwrap_or_else(|_| panic!("after {turns} turns, it does not end"));
        assert!(matches!(soon(near.closed()).await, CloseReason::PeerAbort { .. }));
    }
}
