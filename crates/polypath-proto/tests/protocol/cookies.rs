//! State cookies: their keys, their lifespan, and the addresses in them (RFC 9260 5.1.3, 5.1.5,
//! 5.2.6).

use crate::common::*;
use polypath_proto::wire::{Chunk, Parameter};
use polypath_proto::*;

/// RFC 9260 5.1.3: "The secret key SHOULD be changed reasonably frequently (e.g., hourly)"; 5.1.5
/// (1): "If [...] the secret key to use is not available anymore, the packet [...] MUST be silently
/// discarded".
#[test]
fn a_cookie_outlives_the_change_of_the_key_but_not_for_ever() {
    for (after, answer) in
        [(20, "COOKIE ACK"), (61, "ERROR (Stale Cookie)"), (3000, "ERROR (Stale Cookie)")]
    {
        let mut net = pair(1, Config::rfc9260());
        net.run(S(3590));
        let mut hand = Hand::new(1);
        let answers = hand.init(&mut net, &|_| {});
        hand.learn(&answers[0]);
        net.run(S(after));
        assert_eq!(hand.echo(&mut net)[0].text(), answer, "after {after} s");
    }
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|_| {});
    hand.learn(&answers[0]);
    net.run(S(3 * 3600));
    assert!(hand.echo(&mut net).is_empty());
    assert_eq!(net.hosts[1].endpoint.stats().bad_cookies, 1);
}

fn preservative(sent: &Sent) -> Option<u32> {
    match sent.parsed()[0] {
        Chunk::Init(init) => init.parameters.iter().flatten().find_map(|p| match p {
            Parameter::CookiePreservative(ms) => Some(ms),
            _ => None,
        }),
        _ => None,
    }
}

/// RFC 9260 5.2.6 (3): the increment "SHOULD use the RTT information measured based on the previous
/// COOKIE ECHO/ERROR chunk exchange and SHOULD add no more than 1 second beyond the measured RTT",
/// whatever staleness the peer reports.
#[test]
fn a_cookie_is_to_live_longer_by_the_round_trip_and_a_second_at_most() {
    for staleness in [0, 50_000_000, u32::MAX] {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(0).be_called(&mut net);
        hand.init_ack(&mut net);
        net.run(MS(700));
        let answers = hand.say(&mut net, &|w| w.error(|c| c.stale_cookie(staleness)).unwrap());
        assert!((700..=1700).contains(&preservative(&answers[0]).unwrap()), "{staleness}");
    }
}

/// RFC 9260 3.3.2.1.3: the receiver of an INIT limits the increment: the lifespan at most doubles.
#[test]
fn a_cookie_lives_twice_as_long_at_most() {
    for (after, answer) in [(119, "COOKIE ACK"), (121, "ERROR (Stale Cookie)")] {
        let mut net = pair(1, Config::rfc9260());
        let mut hand = Hand::new(1);
        let answers = hand.init(&mut net, &|p| p.cookie_preservative(u32::MAX).unwrap());
        hand.learn(&answers[0]);
        net.run(S(after));
        assert_eq!(hand.echo(&mut net)[0].text(), answer, "after {after} s");
    }
}

/// The server's address is removed between INIT ACK and COOKIE ECHO, or before the COOKIE ACK
/// arrives: a COOKIE ECHO that arrives at its other address is answered from there.
#[test]
fn a_cookie_echo_to_another_address_is_answered_from_there() {
    for (dynamic, paths, lost) in [
        (false, 1, "COOKIE ECHO"),
        (false, 2, "COOKIE ECHO"),
        (true, 1, "COOKIE ECHO"),
        (true, 2, "COOKIE ECHO"),
        (false, 1, "COOKIE ACK"),
        (true, 1, "COOKIE ACK"),
    ] {
        let config =
            Config::rfc9260().to_builder().authentication(dynamic).dynamic_addresses(dynamic);
        let config = config.build().unwrap();
        let configs = [config.clone(), config];
        let own_paths = [Some(paths), Some(2)];
        let mut net = Setup { paths: 2, own_paths, configs, ..Setup::default() }.build();
        net.drop_once(&[lost]);
        net.connect(0);
        net.run(MS(35));
        net.goes(1, v4(0, 1));
        let what = format!("dynamic {dynamic}, {paths} paths, {lost}");
        net.run(S(3));
        assert!(net.a(0).is_established(), "{what}\n{}", net.tail(20));
        for h in 0..2 {
            net.send(h, 0, payload(h as u64, 3000)).unwrap();
        }
        net.run(S(30));
        for h in 0..2 {
            assert_eq!(net.hosts[h].received.len(), 1, "{what}, host {h}\n{}", net.tail(20));
        }
    }
}
