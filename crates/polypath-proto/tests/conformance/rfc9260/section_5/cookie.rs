//! Sections 5.1.3 to 5.1.5: the State Cookie.

use super::*;

#[test]
fn s5_1_3_r1_r2_every_bit_of_the_cookie_is_protected() {
    let (mut net, hand) = with_cookie(Config::rfc9260());
    for at in 0..hand.cookie.len() {
        for bit in 0..8 {
            let mut forged = hand.clone();
            forged.cookie[at] ^= 1 << bit;
            assert!(forged.echo(&mut net).is_empty(), "bit {bit} of byte {at}");
        }
    }
    for len in 0..hand.cookie.len() {
        let short = Hand { cookie: hand.cookie[..len].to_vec(), ..hand.clone() };
        assert!(short.echo(&mut net).is_empty(), "{len} bytes");
    }
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
    // The cookie contains the tags.
    assert!(holds(&hand.cookie, hand.tag) && holds(&hand.cookie, hand.peer_tag));
    assert_eq!(texts(&hand.echo(&mut net)), ["COOKIE ACK"]);
}

/// The key is derived from the seed: endpoints that differ only in it refuse each other's cookies.
#[test]
fn s5_1_3_r3_every_endpoint_has_a_random_key() {
    let (_, hand) = with_cookie(Config::rfc9260());
    for seed in 2..20 {
        let mut net = Setup { seed, ..Setup::default() }.build();
        assert!(hand.echo(&mut net).is_empty());
    }
    let mut same = pair(1, Config::rfc9260());
    assert_eq!(texts(&hand.echo(&mut same)), ["COOKIE ACK"]);
}

/// Once the key has changed, a cookie is no longer recognised as stale.
#[test]
fn s5_1_3_r4_the_key_is_changed_every_hour_or_two() {
    let (mut net, hand) = with_cookie(Config::rfc9260());
    net.run(S(600));
    assert_eq!(texts(&hand.echo(&mut net)), ["ERROR (Stale Cookie)"]);
    net.run(S(7200));
    assert!(hand.echo(&mut net).is_empty());
}

#[test]
fn s5_1_3_r5_the_cookie_holds_no_secret() {
    let secret = b"a key that both sides share";
    let mut keys = AuthKeys::default();
    keys.set(1, secret).unwrap();
    let config = Config::rfc9260().to_builder().authentication(true).build().unwrap();
    let setup = Setup {
        auth_keys: [keys.clone(), keys],
        configs: [config.clone(), config],
        ..Setup::default()
    };
    let mut net = setup.build();
    net.connect(0);
    net.run(MS(15));
    let cookie = cookie_of(&net.log[1]);
    for len in [4, 8] {
        let parts: BTreeSet<&[u8]> = secret.windows(len).collect();
        assert!(cookie.windows(len).all(|w| !parts.contains(w)));
    }
}

#[test]
fn s5_1_4_r1_an_init_ack_is_answered_at_once_by_a_cookie_echo() {
    let (mut net, hand) = calling();
    net.run(MS(300));
    let answers = hand.init_ack(&mut net);
    assert_eq!((texts(&answers), answers[0].ms()), (vec!["COOKIE ECHO".to_owned()], 300));
    assert_eq!(chunk(&answers[0].bytes, 10).value, b"a cookie of ours");
}

#[test]
fn s5_1_4_r2_r3_the_cookie_echo_is_repeated_while_t1_cookie_expires() {
    let (mut net, hand) = echoed();
    net.run(S(8));
    assert_eq!(net.times(0, "COOKIE ECHO"), [0, 1000, 3000, 7000]);
    let cookies: BTreeSet<Vec<u8>> =
        net.sent_with(0, "COOKIE ECHO").iter().map(|p| chunk(&p.bytes, 10).value).collect();
    assert_eq!(cookies.len(), 1);
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    net.run(S(20));
    assert_eq!(net.times(0, "COOKIE ECHO").len(), 4);
}

/// An endpoint that changes its key no longer has the key of this cookie.
#[test]
fn s5_1_5_r1_a_cookie_whose_key_is_gone_is_silently_discarded() {
    let (mut net, hand) = with_cookie(Config::rfc9260());
    net.run(S(86_400));
    let answers = hand.say(&mut net, &|w| {
        w.cookie_echo(&hand.cookie).unwrap();
        w.data(&hand.chunk(1, b"x")).unwrap();
    });
    assert!(answers.is_empty(), "{:?}", texts(&answers));
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
}

#[test]
fn s5_1_5_r2_a_forged_cookie_is_discarded_with_the_data_behind_it() {
    let (mut net, hand) = with_cookie(Config::rfc9260());
    let mut forged = hand.cookie.clone();
    forged[30] ^= 4;
    let answers = hand.say(&mut net, &|w| {
        w.cookie_echo(&forged).unwrap();
        w.data(&hand.chunk(1, b"x")).unwrap();
    });
    assert!(answers.is_empty() && net.hosts[1].received.is_empty());
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
}

#[test]
fn s5_1_5_r3_ports_and_tag_must_be_those_of_the_cookie() {
    let (mut net, hand) = with_cookie(Config::rfc9260());
    for tag in [hand.peer_tag ^ 1, hand.tag, 0] {
        let answers = hand.say_with_tag(&mut net, tag, &|w| w.cookie_echo(&hand.cookie).unwrap());
        assert!(answers.is_empty(), "tag {tag:#x}");
    }
    assert!(Hand { port: 4711, ..hand.clone() }.echo(&mut net).is_empty());
    let mut packet = hand.packet(hand.peer_tag, &|w| w.cookie_echo(&hand.cookie).unwrap());
    packet[2..4].copy_from_slice(&4711u16.to_be_bytes());
    reseal(&mut packet);
    let answers = hand.raw(&mut net, &packet);
    assert!(answers.iter().all(|p| !p.has("COOKIE ACK")), "another destination port");
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
    assert_eq!(texts(&hand.echo(&mut net)), ["COOKIE ACK"]);
}

#[test]
fn s5_1_5_r4_a_stale_cookie_is_discarded_and_reported_with_its_staleness() {
    let config = Config::rfc9260().to_builder().cookie_life(S(5)).build().unwrap();
    let (mut net, hand) = with_cookie(config);
    net.run(MS(5250));
    let answers = hand.say(&mut net, &|w| {
        w.cookie_echo(&hand.cookie).unwrap();
        w.data(&hand.chunk(1, b"x")).unwrap();
    });
    assert_eq!((texts(&answers), answers[0].tag), (vec!["ERROR (Stale Cookie)".into()], hand.tag));
    let cause = elements(&chunk(&answers[0].bytes, 9).value).remove(0);
    assert_eq!(cause.value, 250_000_u32.to_be_bytes(), "in microseconds");
    assert!(net.hosts[1].received.is_empty());
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
}

#[test]
fn s5_1_5_r5_r6_r7_data_behind_the_cookie_is_acknowledged_at_once_behind_the_cookie_ack() {
    let (mut net, hand) = with_cookie(Config::rfc9260());
    let answers = hand.say(&mut net, &|w| {
        w.cookie_echo(&hand.cookie).unwrap();
        w.data(&hand.chunk(1, b"x")).unwrap();
    });
    assert_eq!(net.hosts[1].received.len(), 1);
    let chunks: Vec<String> =
        answers.iter().flat_map(|p| &p.chunks).map(|c| c.text.clone()).collect();
    assert_eq!(chunks[0], "COOKIE ACK");
    assert!(chunks.contains(&"SACK 1".to_owned()), "{chunks:?}");
    for packet in answers.iter().filter(|p| p.has("COOKIE ACK")) {
        assert_eq!(packet.chunks[0].name, "COOKIE ACK");
    }
}
