//! Attacks: replayed, damaged and unsolicited datagrams.

use std::sync::OnceLock;
use std::time::Duration;

use polypath_dtls::{Identity, Options, Trust, Version};
use polypath_proto::FourTuple;
use proptest::prelude::*;

use crate::{Host, Pair, back, way};

/// Generates a key only once: this takes long in a build without optimisation.
fn host() -> Host {
    host_at_least(Version::Dtls13)
}

fn host_at_least(minimum: Version) -> Host {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    let identity = IDENTITY.get_or_init(|| Identity::generate().unwrap());
    let options = Options::new(identity.clone(), Trust::Anyone);
    Host::with(options.at_least(minimum))
}

fn connected() -> Pair {
    connected_by(Version::Dtls13)
}

fn connected_by(version: Version) -> Pair {
    let mut pair = Pair::new(host_at_least(version), host_at_least(version));
    pair.hide = version == Version::Dtls12;
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    pair.there.received.clear();
    pair
}

#[test]
fn a_record_counts_once() {
    let mut pair = connected();
    for number in 0..100u8 {
        pair.send(true, way(1, 2), &[number]);
    }
    pair.settle();
    for (from, datagram) in pair.carried.clone() {
        if from == way(1, 2) {
            pair.there.takes(pair.now, way(2, 1), &datagram);
        }
    }
    assert_eq!(pair.there.received.len(), 100);
    assert!(pair.send(true, way(1, 2), b"last"));
    pair.settle();
    assert_eq!(pair.there.received.len(), 101);
}

#[test]
fn hellos_from_anywhere_cost_nothing_and_gain_nothing() {
    let mut client = host();
    let mut server = host();
    let now = Pair::of_strangers().now;
    client.layer.seal(now, way(1, 2), None, b"first", &mut Vec::new());
    let (_, hello) = client.layer.poll_transmit().unwrap();
    for port in 1..=2000 {
        let from = FourTuple { remote: ([198, 51, 100, 7], port).into(), ..way(2, 1) };
        server.takes(now, from, &hello);
        let (to, answer) = server.layer.poll_transmit().unwrap();
        assert_eq!(to, from);
        assert!(answer.len() < hello.len(), "{} for {}", answer.len(), hello.len());
        assert_eq!(server.layer.poll_transmit(), None);
    }
    // The answers are not polled: their number is bounded as well.
    for port in 1..=2000 {
        let from = FourTuple { remote: ([198, 51, 100, 8], port).into(), ..way(2, 1) };
        server.takes(now, from, &hello);
    }
    assert_eq!(server.layer.ways(), 0);
    assert_eq!(server.layer.poll_timeout(), None);
    let mut waiting = 0;
    while server.layer.poll_transmit().is_some() {
        waiting += 1;
    }
    assert!(waiting <= 1024, "{waiting}");
}

#[test]
fn a_cookie_is_for_one_address_and_for_a_while() {
    let mut pair = Pair::new(host(), host());
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    // First hello, request, second hello.
    let second = pair.carried[2].1.clone();
    let mut server = host();
    for from in [way(2, 3), way(9, 1)] {
        server.takes(pair.now, from, &second);
        assert_eq!(server.layer.poll_transmit(), None);
    }
    server.takes(pair.now + Duration::from_secs(121), way(2, 1), &second);
    assert_eq!(server.layer.stats().bad_cookies, 3);
    assert_eq!(server.layer.ways(), 0);
    // From the right address and in time, the same ClientHello is accepted.
    server.takes(pair.now, way(2, 1), &second);
    assert_eq!(server.layer.ways(), 1);
}

#[test]
fn half_a_handshake_does_not_fill_the_memory() {
    let mut client = host();
    let mut server = host();
    let now = Pair::of_strangers().now;
    for number in 1..=280u16 {
        let [high, low] = number.to_be_bytes();
        let out = FourTuple { local: ([10, 0, high, low], 9899).into(), ..way(1, 2) };
        client.layer.seal(now, out, None, b"first", &mut Vec::new());
        let (_, hello) = client.layer.poll_transmit().unwrap();
        server.takes(now, back(out), &hello);
        let (_, request) = server.layer.poll_transmit().unwrap();
        client.takes(now, out, &request);
        let (_, second) = client.layer.poll_transmit().unwrap();
        server.takes(now, back(out), &second);
        while server.layer.poll_transmit().is_some() {}
    }
    assert_eq!(server.layer.ways(), 256);
    assert_eq!(server.layer.stats().evicted, 24);
    // Handshakes that do not continue are dropped.
    server.layer.handle_timeout(now + Duration::from_secs(30));
    for seconds in 31..60 {
        server.layer.handle_timeout(now + Duration::from_secs(seconds));
    }
    assert_eq!(server.layer.ways(), 0);
}

/// Connections queue their datagrams in a bounded queue, even if they are never polled.
#[test]
fn handshakes_that_are_not_polled_do_not_fill_the_memory() {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    let identity = IDENTITY.get_or_init(|| Identity::generate().unwrap());
    let mut options = Options::new(identity.clone(), Trust::Anyone);
    options.max_connections = 4;
    let now = Pair::of_strangers().now;
    let mut client = Host::with(options);
    let to = |number: u16| {
        let [high, low] = number.to_be_bytes();
        FourTuple { remote: ([10, 0, high, low], 9899).into(), ..way(1, 2) }
    };
    for number in 0..1100 {
        client.layer.seal(now, to(number), None, b"first", &mut Vec::new());
    }
    let waiting: Vec<_> = std::iter::from_fn(|| client.layer.poll_transmit()).collect();
    assert_eq!(waiting.len(), 1024 + 2 * 4);
    // The next handshake finds room.
    client.layer.seal(now, to(2000), None, b"first", &mut Vec::new());
    assert_eq!(client.layer.poll_transmit().map(|(way, _)| way), Some(to(2000)));
}

/// An unknown host may have a certificate as well, and any number of addresses.
#[test]
fn strangers_close_no_connection_that_is_in_use() {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    let identity = IDENTITY.get_or_init(|| Identity::generate().unwrap());
    let mut options = Options::new(identity.clone(), Trust::Anyone);
    options.max_connections = 4;
    let now = Pair::of_strangers().now;
    let (mut server, mut client) = (Host::with(options), host());
    let mut number = 0u8;
    let mut connect = |server: &mut Host, second: u64| {
        number += 1;
        let now = now + Duration::from_secs(second);
        let out = FourTuple { local: ([10, 0, 0, number], 9899).into(), ..way(1, 2) };
        client.layer.seal(now, out, None, b"first", &mut Vec::new());
        for _ in 0..20 {
            while let Some((way, datagram)) = client.layer.poll_transmit() {
                server.takes(now, back(way), &datagram);
            }
            while let Some((way, datagram)) = server.layer.poll_transmit() {
                client.takes(now, back(way), &datagram);
            }
        }
        back(out)
    };
    let peers: Vec<FourTuple> = (0..3).map(|_| connect(&mut server, 0)).collect();
    let keep = |server: &mut Host, way: FourTuple| {
        let peer = server.layer.peer(way).expect("connected");
        server.in_use.insert((way.remote, peer));
    };
    peers.iter().for_each(|way| keep(&mut server, *way));
    // The peers are silent; the unknown hosts connect one after the other.
    let mut last = None;
    for second in 1..20 {
        let stranger = connect(&mut server, second);
        assert!(server.layer.peer(stranger).is_some(), "there is one place for them");
        assert!(last.is_none_or(|last| server.layer.peer(last).is_none()));
        last = Some(stranger);
        assert!(peers.iter().all(|way| server.layer.peer(*way).is_some()));
    }
    assert_eq!((server.layer.ways(), server.layer.stats().evicted), (4, 18));
    // Every connection is in use: the next handshake is refused.
    keep(&mut server, last.unwrap());
    let late = connect(&mut server, 20);
    assert!(server.layer.peer(late).is_none());
    assert!(peers.iter().all(|way| server.layer.peer(*way).is_some()));
    assert!(server.layer.stats().turned_away > 0);
    // An association that has ended leaves room.
    server.in_use.retain(|(remote, _)| *remote != peers[0].remote);
    let next = connect(&mut server, 21);
    assert!(server.layer.peer(next).is_some() && server.layer.peer(peers[0]).is_none());
    assert!(peers[1..].iter().all(|way| server.layer.peer(*way).is_some()));
}

/// Noise, or a datagram of a pair's handshake or data that is changed, cut off or joined with
/// another one.
#[derive(Clone, Debug)]
enum Harm {
    Noise(Vec<u8>),
    Flip { which: usize, at: usize, bit: u8 },
    Cut { which: usize, keep: usize },
    Join { which: usize, other: usize },
}

fn harm() -> impl Strategy<Value = Harm> {
    let which = 0usize..16;
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..120).prop_map(Harm::Noise),
        (which.clone(), 0usize..1200, 0u8..8).prop_map(|(which, at, bit)| Harm::Flip {
            which,
            at,
            bit
        }),
        (which.clone(), 0usize..600).prop_map(|(which, keep)| Harm::Cut { which, keep }),
        (which.clone(), which).prop_map(|(which, other)| Harm::Join { which, other }),
    ]
}

fn done(harm: &Harm, carried: &[(FourTuple, Vec<u8>)]) -> Vec<u8> {
    let pick = |which: usize| carried[which % carried.len()].1.clone();
    match *harm {
        Harm::Noise(ref noise) => noise.clone(),
        Harm::Flip { which, at, bit } => {
            let mut datagram = pick(which);
            let at = at % datagram.len();
            datagram[at] ^= 1 << bit;
            datagram
        }
        Harm::Cut { which, keep } => {
            let mut datagram = pick(which);
            datagram.truncate(keep % datagram.len());
            datagram
        }
        Harm::Join { which, other } => [pick(which), pick(other)].concat(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Only sent packets are delivered, and the connection keeps working, whatever else is
    /// received.
    #[test]
    fn an_open_connection_bears_everything(
        harms in prop::collection::vec(harm(), 1..40),
        older: bool,
    ) {
        let version = if older { Version::Dtls12 } else { Version::Dtls13 };
        let mut pair = connected_by(version);
        pair.send(true, way(1, 2), b"second");
        pair.settle();
        pair.there.received.clear();
        for harm in harms {
            let datagram = done(&harm, &pair.carried);
            pair.there.takes(pair.now, way(2, 1), &datagram);
            pair.here.takes(pair.now, way(1, 2), &datagram);
        }
        while pair.there.layer.poll_transmit().is_some() {}
        while pair.here.layer.poll_transmit().is_some() {}
        prop_assert!(pair.there.received.is_empty());
        prop_assert!(pair.send(true, way(1, 2), b"third"));
        pair.settle();
        prop_assert_eq!(pair.there.packets(), [b"third"]);
    }

    /// Datagrams of another connection deliver no packets, and open at most one connection.
    #[test]
    fn a_stranger_gets_nowhere(
        harms in prop::collection::vec(harm(), 1..40),
        older: bool,
    ) {
        let version = if older { Version::Dtls12 } else { Version::Dtls13 };
        let pair = connected_by(version);
        let mut server = host_at_least(version);
        for harm in harms {
            server.takes(pair.now, way(2, 1), &done(&harm, &pair.carried));
        }
        prop_assert!(server.received.is_empty());
        prop_assert!(server.layer.ways() <= 1);
    }
}
