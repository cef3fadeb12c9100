//! Which peers are accepted.

use polypath_dtls::{Event, Identity, KnownFingerprint, REFUSAL, Refusal, Trust};

use crate::{Host, Pair, back, way};

fn refusals(host: &Host) -> Vec<Refusal> {
    let why = |event: &Event| match event {
        Event::Refused { why, .. } => Some(*why),
        _ => None,
    };
    host.events.iter().filter_map(why).collect()
}

#[test]
fn a_known_certificate_is_taken_and_another_is_not() {
    for right in [true, false] {
        let there = Host::new(Trust::Anyone);
        let known = if right {
            there.layer.fingerprint()
        } else {
            Identity::generate().unwrap().fingerprint()
        };
        let known: KnownFingerprint = known.short().parse().unwrap();
        let found = there.layer.fingerprint();
        let mut pair = Pair::new(Host::new(Trust::Known(vec![known])), there);
        pair.send(true, way(1, 2), b"secret");
        pair.settle();
        if right {
            assert_eq!(pair.there.packets(), [b"secret"]);
            assert_eq!(refusals(&pair.here), []);
            assert_eq!(pair.here.layer.stats().dropped, 0);
        } else {
            assert_eq!(pair.there.packets(), [] as [&[u8]; 0]);
            assert_eq!(refusals(&pair.here), [Refusal::Certificate { found }]);
            assert_eq!(pair.here.layer.stats().dropped, 1);
            // Both have dropped the connection.
            assert_eq!((pair.here.layer.ways(), pair.there.layer.ways()), (0, 0));
        }
    }
}

#[test]
fn who_is_refused_learns_it() {
    let known = Identity::generate().unwrap().fingerprint().into();
    let mut pair = Pair::new(Host::new(Trust::Anyone), Host::new(Trust::Known(vec![known])));
    pair.send(true, way(1, 2), b"secret");
    pair.settle();
    assert_eq!(refusals(&pair.here), [Refusal::ByPeer]);
    let found = pair.here.layer.fingerprint();
    assert_eq!(refusals(&pair.there), [Refusal::Certificate { found }]);
    assert_eq!(pair.there.packets(), [] as [&[u8]; 0]);
}

#[test]
fn nobody_else_gets_what_is_for_one() {
    let mut pair = Pair::of_strangers();
    let other = Identity::generate().unwrap().fingerprint();
    // While the handshake runs, and after it.
    pair.send_to(true, way(1, 2), Some(other), b"secret");
    pair.settle();
    assert!(!pair.send_to(true, way(1, 2), Some(other), b"secret"));
    pair.settle();
    assert_eq!(pair.there.packets(), [] as [&[u8]; 0]);
    assert_eq!(pair.here.layer.stats().other_certificate, 2);
    let right = pair.there.layer.fingerprint();
    assert!(pair.send_to(true, way(1, 2), Some(right), b"secret"));
    pair.settle();
    assert_eq!(pair.there.packets(), [b"secret"]);
}

#[test]
fn who_does_not_encrypt_says_so() {
    let mut host = Host::new(Trust::Anyone);
    let mut pair = Pair::of_strangers();
    host.layer.seal(pair.now, way(1, 2), None, b"secret", &mut Vec::new());
    let (_, hello) = host.layer.poll_transmit().unwrap();
    assert!(polypath_dtls::is_client_hello(&hello));
    assert!(REFUSAL.len() < hello.len());
    host.takes(pair.now, way(1, 2), &REFUSAL);
    assert_eq!(refusals(&host), [Refusal::Plain]);
    // On an established connection, the refusal has no effect.
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    for (host, way) in [(&mut pair.here, way(1, 2)), (&mut pair.there, back(way(1, 2)))] {
        host.takes(pair.now, way, &REFUSAL);
        assert_eq!(refusals(host), []);
    }
    assert!(pair.send(true, way(1, 2), b"second"));
    pair.settle();
    assert_eq!(pair.there.packets(), [&b"first"[..], b"second"]);
}
