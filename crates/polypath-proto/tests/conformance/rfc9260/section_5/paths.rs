//! Section 5.4: path verification.

use super::*;

/// The peer lists these addresses in its INIT, and does not answer on them.
fn listing(addresses: &[IpAddr]) -> (Net, Hand) {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| {
        addresses.iter().for_each(|ip| p.address(*ip).unwrap());
    });
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    (net, hand)
}

/// HB.Max.Burst is 1 (RFC 9260 16).
#[test]
fn s5_4_r1_one_unconfirmed_address_is_probed_at_a_time() {
    let victims: Vec<IpAddr> = (1..=12).map(|i| v4(1, i)).collect();
    let (mut net, hand) = listing(&victims);
    net.run(S(30));
    let probes = net.sent_with(1, "HEARTBEAT");
    let probes: Vec<&Sent> = probes.iter().filter(|p| p.to.ip() != hand.ip).collect();
    // One probe per RTO, which is initially one second.
    for (i, probe) in probes.iter().enumerate() {
        let within = probes[i..].iter().filter(|p| p.at.since(probe.at) < S(1)).count();
        assert_eq!(within, 1, "at {}", probe.at);
    }
    let asked: BTreeSet<IpAddr> = probes.iter().map(|p| p.to.ip()).collect();
    assert!(asked.len() >= 6, "{} of 12", asked.len());
}

#[test]
fn s5_4_r2_an_unconfirmed_address_gets_heartbeats_alone() {
    let silent = Hand { ip: v4(1, 5), ..Hand::new(1) };
    let (mut net, hand) = listing(&[silent.ip]);
    let silent = Hand { ip: silent.ip, ..hand.clone() };
    // Chunks that request an answer arrive from the unconfirmed address.
    silent.data(&mut net, 1);
    silent.data(&mut net, 2);
    silent.say(&mut net, &|w| w.typed_chunk(0xc7, 0, b"unknown").unwrap());
    silent.say(&mut net, &|w| w.heartbeat(b"?").unwrap());
    let mut wrong = silent.chunk(3, b"x");
    wrong.stream = StreamId(9999);
    silent.say(&mut net, &|w| w.data(&wrong).unwrap());
    for i in 0..10 {
        net.send(1, 0, payload(i, 3000)).unwrap();
    }
    net.run(S(5));
    net.shutdown(1);
    net.run(S(100));
    let packets = net.sent(1).into_iter().filter(|p| p.to.ip() == silent.ip);
    for packet in packets {
        let allowed = packet.chunks.iter().all(|c| c.name.starts_with("HEARTBEAT"));
        assert!(allowed, "{}", packet.text());
    }
}

/// The COOKIE ECHO arrives from another address than the INIT; the INIT ACK was sent to the INIT's
/// source.
#[test]
fn s5_4_r3_a_cookie_ack_to_an_unconfirmed_address_has_a_heartbeat_with_it() {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    let second = v4(1, 5);
    let answers = hand.init(&mut net, &|p| p.address(second).unwrap());
    hand.learn(&answers[0]);
    let other = Hand { ip: second, ..hand.clone() };
    let mark = net.log.len();
    other.echo(&mut net);
    let acks: Vec<Sent> =
        net.sent_since(1, mark).into_iter().filter(|p| p.has("COOKIE ACK")).collect();
    assert!(!acks.is_empty());
    for ack in acks.iter().filter(|p| p.to.ip() == second) {
        assert_eq!(ack.text(), "COOKIE ACK + HEARTBEAT");
        let info = chunk(&ack.bytes, 4).value;
        other.say(&mut net, &|w| w.typed_chunk(5, 0, &info).unwrap());
        assert!(net.a(1).paths().any(|p| p.remote == second && p.state == PathState::Active));
    }
}

/// The INIT ACK lists an address that the upper layer has not given; T1-cookie expires several
/// times.
fn echoes_with(cookie: usize) -> Vec<Sent> {
    let (mut net, hand) = calling();
    let cookie = payload(1, cookie);
    hand.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            p.address(v4(1, 5))?;
            p.state_cookie(&cookie)
        })
        .unwrap();
    });
    net.run(S(20));
    let echoes = net.sent_with(0, "COOKIE ECHO");
    assert!(echoes.len() >= 4, "{}", net.tail(9));
    assert!(net.sent(0).iter().all(|p| p.has("COOKIE ECHO") || p.has("INIT")));
    echoes
}

#[test]
fn s5_4_r5_a_cookie_echo_to_an_unconfirmed_address_has_a_heartbeat_with_it() {
    for cookie in [10, 1200, 1440] {
        let echoes = echoes_with(cookie);
        for echo in echoes.iter().filter(|p| p.to.ip() == v4(1, 5)) {
            assert_eq!(echo.text(), "COOKIE ECHO + HEARTBEAT");
            assert!(echo.bytes.len() <= 1480, "{} bytes", echo.bytes.len());
        }
    }
}

#[test]
fn s5_4_r6_a_cookie_echo_that_is_too_large_for_that_goes_to_no_unconfirmed_address() {
    for cookie in [1441, 1464, 3000] {
        assert!(echoes_with(cookie).iter().all(|p| p.to.ip() != v4(1, 5)), "{cookie} bytes");
    }
}
