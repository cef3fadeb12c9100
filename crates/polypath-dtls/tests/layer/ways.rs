//! Several paths, simultaneous handshakes, and hosts that start again.

use std::net::Ipv4Addr;
use std::time::Duration;

use polypath_dtls::Trust;
use polypath_proto::FourTuple;

use crate::{Host, Pair, older, way};

#[test]
fn each_way_has_its_own_connection_and_all_one_peer() {
    let mut pair = Pair::of_strangers();
    for (from, to) in [(1, 2), (3, 4), (1, 4)] {
        pair.send(true, way(from, to), &[from, to]);
        pair.settle();
    }
    assert_eq!(pair.there.packets(), [[1, 2], [3, 4], [1, 4]]);
    assert_eq!((pair.here.layer.ways(), pair.there.layer.ways()), (3, 3));
    let here = pair.here.layer.fingerprint();
    assert!(pair.there.received.iter().all(|(peer, _)| *peer == here));
    assert_eq!(pair.there.layer.peer(way(4, 1)), Some(here));
    assert_eq!(pair.there.layer.peer(way(4, 5)), None);
}

#[test]
fn records_of_one_way_are_nothing_on_another() {
    let mut pair = Pair::of_strangers();
    for to in [2, 4] {
        pair.send(true, way(1, to), b"first");
        pair.settle();
    }
    pair.send(true, way(1, 2), b"second");
    pair.settle();
    let (_, record) = pair.carried.pop().unwrap();
    pair.there.takes(pair.now, way(4, 1), &record);
    pair.there.takes(pair.now, way(9, 1), &record);
    assert_eq!(pair.there.received.len(), 3);
    assert_eq!(pair.there.layer.stats().strangers, 1);
}

#[test]
fn both_may_begin_at_once() {
    for _ in 0..8 {
        let mut pair = Pair::of_strangers();
        pair.send(true, way(1, 2), b"from here");
        pair.send(false, way(2, 1), b"from there");
        pair.pass(Duration::from_secs(5));
        assert_eq!(pair.there.packets(), [b"from here"]);
        assert_eq!(pair.here.packets(), [b"from there"]);
        assert_eq!((pair.here.layer.ways(), pair.there.layer.ways()), (1, 1));
        for host in [&pair.here, &pair.there] {
            assert_eq!((host.layer.stats().opened, host.layer.stats().dropped), (1, 0));
        }
    }
}

#[test]
fn who_begins_anew_replaces_what_was_once_it_is_complete() {
    let mut pair = Pair::of_strangers();
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    let old = std::mem::replace(&mut pair.here, Host::new(Trust::Anyone));
    let hello = pair.carried[0].1.clone();
    let second = pair.carried[2].1.clone();
    // Replayed ClientHellos change nothing.
    pair.there.takes(pair.now, way(2, 1), &hello);
    pair.there.takes(pair.now, way(2, 1), &second);
    while pair.there.layer.poll_transmit().is_some() {}
    assert_eq!(pair.there.layer.peer(way(2, 1)), Some(old.layer.fingerprint()));
    // A new handshake by another host does.
    pair.send(true, way(1, 2), b"second");
    pair.settle();
    assert_eq!(pair.there.packets(), [&b"first"[..], b"second"]);
    assert_eq!(pair.there.layer.peer(way(2, 1)), Some(pair.here.layer.fingerprint()));
    assert_eq!(pair.there.layer.ways(), 1);
}

#[test]
fn an_address_left_to_the_system_becomes_the_one_that_is_answered() {
    let mut pair = Pair::of_strangers();
    let any = FourTuple { local: (Ipv4Addr::UNSPECIFIED, 9899).into(), ..way(1, 2) };
    let mut out = Vec::new();
    assert_eq!(pair.here.layer.seal(pair.now, any, None, b"first", &mut out), None);
    // The system fills in the local address.
    let (sent, hello) = pair.here.layer.poll_transmit().unwrap();
    assert_eq!(sent, any);
    pair.there.takes(pair.now, way(2, 1), &hello);
    pair.settle();
    assert_eq!(pair.there.packets(), [b"first"]);
    assert_eq!(pair.here.layer.ways(), 1);
    assert_eq!(pair.here.layer.seal(pair.now, any, None, b"x", &mut out), Some(way(1, 2)));
}

#[test]
fn what_was_sent_is_known_by_its_beginning() {
    for mut pair in [Pair::of_strangers(), older::pair()] {
        let small = [1; 100];
        pair.send(true, way(1, 2), b"first");
        pair.settle();
        let from = pair.carried.len();
        for _ in 0..1100 {
            assert!(pair.send(true, way(1, 2), &[7; 1400]));
            pair.settle();
        }
        assert!(pair.send(true, way(1, 2), &small));
        pair.settle();
        let sent: Vec<_> = pair.carried[from..].iter().map(|(_, record)| record.clone()).collect();
        let knows =
            |remote: u8, quoted: &[u8]| pair.here.layer.has_sent(way(1, remote).remote, quoted);
        for record in &sent[1100 - 1024..1100] {
            assert!(knows(2, &record[..21]));
            assert!(!knows(3, record), "went elsewhere");
            assert!(!knows(2, &record[..20]), "too little to tell");
        }
        assert!(!knows(2, &sent[0]), "long ago");
        assert!(!knows(2, &sent[1100]), "too small to be too large");
        let mut wrong = sent[1099].clone();
        wrong[20] ^= 1;
        assert!(!knows(2, &wrong));
        assert!(!pair.there.layer.has_sent(way(2, 1).remote, &sent[1099]), "was received");
    }
}

#[test]
fn a_packet_that_waited_for_the_handshake_is_known_by_its_beginning() {
    for mut pair in [Pair::of_strangers(), older::pair()] {
        pair.send(true, way(1, 2), &[7; 1400]);
        pair.send(true, way(1, 2), &[8; 1400]);
        pair.settle();
        assert_eq!(pair.there.packets(), [[7; 1400], [8; 1400]]);
        let large: Vec<_> =
            pair.carried.iter().filter(|(_, datagram)| datagram.len() > 1400).collect();
        assert_eq!(large.len(), 2);
        for (_, record) in large {
            assert!(pair.here.layer.has_sent(way(1, 2).remote, &record[..21]));
        }
    }
}

#[test]
fn packets_that_waited_for_the_handshake_count_for_the_next_keys() {
    let mut pair = Pair::new(Host::often_rekeyed(), Host::often_rekeyed());
    for _ in 0..8 {
        pair.send(true, way(1, 2), b"waits");
    }
    pair.settle();
    for _ in 8..40 {
        assert_eq!(pair.here.layer.stats().opened, 1);
        assert!(pair.send(true, way(1, 2), b"packet"));
        pair.settle();
    }
    assert_eq!(pair.here.layer.stats().opened, 2);
    assert_eq!(pair.there.packets().len(), 40);
}

/// An ICMP message about the first datagram of a handshake: the random number of the ClientHello
/// shows that it was sent.
#[test]
fn a_hello_is_known_by_its_random_number() {
    for mut pair in [Pair::of_strangers(), older::pair()] {
        pair.here.layer.seal(pair.now, way(1, 2), None, b"first", &mut Vec::new());
        let (_, hello) = pair.here.layer.poll_transmit().unwrap();
        let knows =
            |remote: u8, quoted: &[u8]| pair.here.layer.has_sent(way(1, remote).remote, quoted);
        assert!(knows(2, &hello) && knows(2, &hello[..59]));
        assert!(!knows(2, &hello[..58]), "too little to tell");
        assert!(!knows(3, &hello), "went elsewhere");
        for at in 27..59 {
            let mut wrong = hello.clone();
            wrong[at] ^= 1;
            assert!(!knows(2, &wrong));
        }
        assert!(!knows(2, &[0; 64]) && !knows(2, &[]));
    }
}

/// Sends a packet every half second until one arrives, and returns the number of seconds.
fn seconds_until_heard(pair: &mut Pair) -> u64 {
    for half in 0..60 {
        pair.send(true, way(1, 2), b"anybody?");
        pair.pass(Duration::from_millis(500));
        if !pair.there.received.is_empty() {
            return half / 2;
        }
    }
    panic!("it is never heard");
}

#[test]
fn who_has_forgotten_everything_is_told_again() {
    let mut pair = Pair::of_strangers();
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    pair.send(false, way(2, 1), b"answer");
    pair.pass(Duration::from_secs(20));
    pair.there = Host::new(Trust::Anyone);
    // Within SCTP's first retransmission (RTO.Min is 1 s).
    assert!(seconds_until_heard(&mut pair) < 2);
    assert_eq!(pair.here.layer.peer(way(1, 2)), Some(pair.there.layer.fingerprint()));
    assert_eq!(pair.here.layer.ways(), 1);
}

#[test]
fn a_packet_that_waited_for_the_handshake_shows_that_the_peer_is_mute() {
    let mut pair = Pair::of_strangers();
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    pair.there = Host::new(Trust::Anyone);
    pair.pass(Duration::from_secs(1));
    // The second packet starts a handshake with the host that has started again.
    pair.send(true, way(1, 2), b"second");
    pair.settle();
    assert_eq!(pair.here.layer.peer(way(1, 2)), Some(pair.there.layer.fingerprint()));
}

#[test]
fn silence_alone_changes_nothing() {
    let mut pair = Pair::of_strangers();
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    let carried = pair.carried.len();
    pair.there.received.clear();
    // All datagrams of a minute are lost; then one arrives.
    pair.lose = 0..usize::MAX;
    for _ in 0..60 {
        assert!(pair.send(true, way(1, 2), b"anybody?"));
        pair.pass(Duration::from_secs(1));
    }
    assert_eq!(pair.carried.len(), carried);
    pair.lose = 0..0;
    assert!(pair.send(true, way(1, 2), b"still here"));
    pair.settle();
    // If a handshake is due, the packet is sent over the old connection and over the new one: SCTP
    // drops the duplicate.
    let mut packets = pair.there.packets();
    packets.dedup();
    assert_eq!(packets, [b"still here"]);
}

/// The handshake that was started in the silence is given up when the peer answers over the old
/// connection.
#[test]
fn a_connection_that_is_heard_again_is_kept() {
    let mut pair = Pair::of_strangers();
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    pair.send(false, way(2, 1), b"answer");
    pair.settle();
    pair.lose = 0..usize::MAX;
    for _ in 0..2 {
        pair.send(true, way(1, 2), b"anybody?");
        // The second packet starts a handshake, whose ClientHello is retransmitted 1 s later.
        pair.pass(Duration::from_millis(950));
    }
    pair.lose = 0..0;
    pair.send(true, way(1, 2), b"anybody?");
    pair.send(false, way(2, 1), b"I am");
    pair.pass(Duration::from_secs(8));
    assert_eq!(pair.here.packets(), [&b"answer"[..], b"I am"]);
    assert_eq!(pair.there.packets(), [&b"first"[..], b"anybody?"]);
    for host in [&pair.here, &pair.there] {
        let stats = host.layer.stats();
        // The packet that waited for the handshake was sent over the connection as well.
        assert_eq!((stats.opened, stats.failed, stats.dropped), (1, 0, 0));
    }
}
