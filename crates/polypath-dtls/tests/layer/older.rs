//! DTLS 1.2, where it is allowed. Two layers use 1.3 with each other unless an attacker on the path
//! hides that they offer it. DTLS 1.2 has no protection against that, so the tests do the same to
//! get it.

use std::time::Duration;

use polypath_dtls::{Event, Identity, OVERHEAD_12, Options, Refusal, Trust, Version};

use crate::{Host, Pair, rekeys, way, what_gets_lost_of_the_handshake_comes_again};

/// Changes the type of the supported_versions extension to an unknown one.
pub(crate) fn hide(datagram: &mut [u8]) {
    // The length of the list, DTLS 1.3, and 1.2 if it is offered.
    for versions in [&[0, 43, 0, 5, 4, 0xfe, 0xfc, 0xfe, 0xfd][..], &[0, 43, 0, 3, 2, 0xfe, 0xfc]] {
        if datagram.first() == Some(&22)
            && let Some(at) = datagram.windows(versions.len()).position(|bytes| bytes == versions)
        {
            datagram[at] = 0xfa;
        }
    }
}

fn host(minimum: Version) -> Host {
    let options = Options::new(Identity::generate().unwrap(), Trust::Anyone);
    Host::with(options.at_least(minimum))
}

/// Two hosts that use DTLS 1.2 with each other.
pub(crate) fn pair() -> Pair {
    let mut pair = Pair::new(host(Version::Dtls12), host(Version::Dtls12));
    pair.hide = true;
    pair
}

fn refused(host: &Host, why: Refusal) -> bool {
    host.events
        .iter()
        .any(|event| matches!(event, Event::Refused { why: found, .. } if *found == why))
}

/// The first byte of a record with data: 23 in DTLS 1.2; DTLS 1.3 hides that type (RFC 9147 4).
fn data_begins_with(pair: &mut Pair) -> u8 {
    assert!(pair.send(true, way(1, 2), b"data"));
    pair.settle();
    pair.carried.last().unwrap().1[0]
}

#[test]
fn packets_go_both_ways_each_in_a_record() {
    let mut pair = pair();
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    for len in [1, 100, 1400, 9000] {
        assert!(pair.send(false, way(2, 1), &vec![7; len]));
        assert!(pair.send(true, way(1, 2), &vec![8; len]));
        pair.settle();
        for (_, datagram) in &pair.carried[pair.carried.len() - 2..] {
            // ChaCha20-Poly1305 sends no nonce (RFC 7905 2).
            assert_eq!(datagram.len(), len + OVERHEAD_12 - 8);
            assert_eq!(datagram[0], 23);
        }
    }
    assert_eq!(pair.here.layer.overhead(), OVERHEAD_12);
    assert_eq!((pair.here.packets().len(), pair.there.packets().len()), (4, 5));
    let (here, there) = (pair.here.layer.fingerprint(), pair.there.layer.fingerprint());
    assert!(pair.here.received.iter().all(|(peer, _)| *peer == there));
    assert!(pair.there.received.iter().all(|(peer, _)| *peer == here));
}

#[test]
fn whatever_gets_lost_of_the_handshake_comes_again() {
    what_gets_lost_of_the_handshake_comes_again(pair);
}

#[test]
fn the_newest_that_both_have_is_spoken() {
    for (here, there) in [
        (Version::Dtls12, Version::Dtls12),
        (Version::Dtls12, Version::Dtls13),
        (Version::Dtls13, Version::Dtls12),
    ] {
        let mut pair = Pair::new(host(here), host(there));
        pair.send(true, way(1, 2), b"first");
        pair.settle();
        assert_eq!(pair.there.packets(), [b"first"], "{here} and {there}");
        assert_ne!(data_begins_with(&mut pair), 23, "{here} and {there}");
    }
}

#[test]
fn without_leave_the_older_version_is_refused_by_either_side() {
    // A server that requires 1.3 refuses, and keeps no state.
    let mut pair = Pair::new(host(Version::Dtls13), host(Version::Dtls13));
    pair.hide = true;
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    assert!(refused(&pair.here, Refusal::Version), "{:?}", pair.here.events);
    assert_eq!((pair.here.layer.ways(), pair.there.layer.ways()), (0, 0));
    assert_eq!(pair.there.layer.stats().outdated, 1);
    // A server that supports nothing in such a ClientHello refuses as well.
    let mut pair = Pair::new(host(Version::Dtls13), host(Version::Dtls12));
    pair.hide = true;
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    assert!(refused(&pair.here, Refusal::Version), "{:?}", pair.here.events);
    assert_eq!((pair.here.layer.ways(), pair.there.layer.ways()), (0, 0));
    // A client that requires 1.3 refuses a cookie request of DTLS 1.2.
    let mut older = self::pair();
    older.send(true, way(1, 2), b"first");
    older.settle();
    let request = older.carried[1].1.clone();
    let mut here = host(Version::Dtls13);
    here.layer.seal(older.now, way(1, 2), None, b"first", &mut Vec::new());
    here.takes(older.now, way(1, 2), &request);
    assert!(refused(&here, Refusal::Version), "{:?}", here.events);
    assert_eq!(here.layer.ways(), 0);
}

#[test]
fn a_certificate_that_is_not_expected_is_refused() {
    let known = Trust::Known(vec![Identity::generate().unwrap().fingerprint().into()]);
    for picky_here in [true, false] {
        let picky = Options::new(Identity::generate().unwrap(), known.clone());
        let picky = Host::with(picky.at_least(Version::Dtls12));
        let other = host(Version::Dtls12);
        let found = other.layer.fingerprint();
        let mut pair = if picky_here { Pair::new(picky, other) } else { Pair::new(other, picky) };
        pair.hide = true;
        pair.send(true, way(1, 2), b"secret");
        pair.settle();
        let (picky, other) =
            if picky_here { (&pair.here, &pair.there) } else { (&pair.there, &pair.here) };
        assert!(refused(picky, Refusal::Certificate { found }), "{:?}", picky.events);
        assert!(refused(other, Refusal::ByPeer), "{:?}", other.events);
        assert_eq!(pair.there.packets(), [] as [&[u8]; 0]);
    }
}

#[test]
fn keys_change_while_packets_go() {
    let mut pair = Pair::new(Host::often_rekeyed(), Host::often_rekeyed());
    pair.hide = true;
    rekeys(&mut pair);
    assert_eq!(data_begins_with(&mut pair), 23);
}

#[test]
fn both_may_begin_at_once() {
    for _ in 0..4 {
        let mut pair = pair();
        pair.send(true, way(1, 2), b"from here");
        pair.send(false, way(2, 1), b"from there");
        pair.pass(Duration::from_secs(5));
        assert_eq!(pair.there.packets(), [b"from here"]);
        assert_eq!(pair.here.packets(), [b"from there"]);
        assert_eq!(pair.here.layer.stats().opened, 1);
    }
}

#[test]
fn noise_for_an_answer_does_not_end_a_hello() {
    let mut pair = pair();
    pair.send(true, way(1, 2), b"first");
    for noise in [&b"noise"[..], &[22; 60], &[23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 9]] {
        pair.here.takes(pair.now, way(1, 2), noise);
    }
    pair.settle();
    assert_eq!(pair.there.packets(), [b"first"]);
}
