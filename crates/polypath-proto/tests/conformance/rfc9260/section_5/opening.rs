//! Sections 5, 5.1, 5.1.1, 5.1.6, 5.3.1: the handshake.

use super::*;

#[test]
fn s5_r1_no_data_before_the_handshake() {
    let (mut net, hand) = calling();
    net.send(0, 0, payload(1, 10)).unwrap();
    // A peer sends DATA at once, with the tag of the INIT: it is not accepted.
    let mark = net.log.len();
    hand.data(&mut net, 1);
    net.run(MS(500));
    assert!(net.hosts[0].received.is_empty());
    assert!(net.sent_since(0, mark).iter().all(|p| !p.has("DATA") && !p.has("SACK")));
    // Without an INIT, DATA is not delivered.
    let stranger = Hand::new(1);
    stranger.say_with_tag(&mut net, 5, &|w| w.data(&stranger.chunk(1, b"x")).unwrap());
    assert!(net.hosts[1].received.is_empty());
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
}

#[test]
fn s5_1_r1_r4_each_side_gives_its_tag_and_uses_the_other_one() {
    let mut net = pair(1, Config::rfc9260());
    net.connect(0);
    net.run(MS(35));
    let (a, b) = (fields(&net.log[0]).0, fields(&net.log[1]).0);
    assert!(a != 0 && b != 0 && a != b);
    assert_eq!(net.script(), ["A INIT", "B INIT ACK", "A COOKIE ECHO", "B COOKIE ACK"]);
    assert_eq!(net.log.iter().map(|p| p.tag).collect::<Vec<_>>(), [0, a, b, a]);
}

#[test]
fn s5_1_r3_r5_the_init_ack_goes_to_the_source_of_the_init_with_a_cookie() {
    let mut net = pair(1, Config::rfc9260());
    for (host, udp) in [(20, 0), (21, 9899), (22, 40_000)] {
        let hand = Hand { ip: v4(0, host), ..Hand::new(1) };
        let packet = hand.packet(0, &|w| {
            w.init(&hand.fields(), |p| p.ipv4([10, 0, 0, 77].into())).unwrap();
        });
        let mark = net.log.len();
        net.inject((hand.ip, udp).into(), (v4(0, 1), 0).into(), &packet);
        let answers = net.sent_since(1, mark);
        assert_eq!(texts(&answers), ["INIT ACK"]);
        assert_eq!(answers[0].to, (hand.ip, udp).into());
        cookie_of(&answers[0]);
    }
}

#[test]
fn s5_1_r6_an_init_leaves_no_state() {
    let mut net = pair(1, Config::rfc9260());
    for tag in 1..=500 {
        let hand = Hand { tag, ip: v4(1, tag as usize % 200), ..Hand::new(1) };
        assert_eq!(texts(&hand.init(&mut net, &|_| {})), ["INIT ACK"]);
    }
    let endpoint = &mut net.hosts[1].endpoint;
    assert_eq!((endpoint.associations().count(), endpoint.poll_timeout()), (0, None));
    assert!(net.hosts[1].events.is_empty());
}

#[test]
fn s5_1_r7_until_the_cookie_ack_only_the_cookie_echo_leaves() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    net.send(0, 0, payload(1, 10_000)).unwrap();
    let mark = net.log.len();
    hand.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            p.address(hand.ip)?;
            p.ipv4([10, 0, 0, 77].into())?;
            p.state_cookie(b"a cookie of ours")
        })
        .unwrap();
    });
    hand.say(&mut net, &|w| w.heartbeat(b"asked too early").unwrap());
    hand.say(&mut net, &|w| w.typed_chunk(0xc7, 0, b"unknown").unwrap());
    net.run(S(30));
    let packets = net.sent_since(0, mark);
    assert!(packets.len() >= 4, "{}", net.tail(10));
    assert!(packets.iter().all(|p| p.chunks[0].name == "COOKIE ECHO"), "{:?}", texts(&packets));
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    assert!(net.sent_since(0, mark).iter().any(|p| p.has("DATA")));
}

#[test]
fn s5_1_r12_t1_init_and_t1_cookie_back_off_up_to_rto_max() {
    let expected = [0, 1, 3, 7, 15, 31, 63, 123, 183];
    for (chunk, start) in [("INIT", 0), ("COOKIE ECHO", 20)] {
        let mut net = pair(1, Config::rfc9260());
        net.drop_all(chunk);
        net.connect(0);
        net.run(S(1000));
        let seconds: Vec<u64> = net.times(0, chunk).iter().map(|ms| (ms - start) / 1000).collect();
        assert_eq!(seconds, expected, "{chunk}");
    }
    // RTO.Initial and RTO.Max of a configuration.
    let config = Config::rfc9260().to_builder().rto_initial(S(2)).rto_max(S(5)).build().unwrap();
    let mut net = pair(1, config);
    net.drop_all("INIT");
    net.connect(0);
    net.run(S(30));
    assert_eq!(net.times(0, "INIT")[..5], [0, 2000, 6000, 11_000, 16_000]);
}

/// Time and network of each transmission of a chunk, when the application has given two addresses
/// of the peer.
fn attempts(chunk: &'static str) -> Vec<(u64, u8)> {
    let mut net = pair(2, Config::rfc9260());
    net.drop_all(chunk);
    let remotes = net.remotes(1);
    net.hosts[0].endpoint.connect(net.now, PORT, &remotes).unwrap();
    net.run(S(100));
    net.sent_with(0, chunk).iter().map(|p| (p.ms(), p.net())).collect()
}

#[test]
fn s5_1_r13_every_address_has_a_timer_of_its_own() {
    let starts = |attempts: Vec<(u64, u8)>| -> Vec<(u64, u8)> {
        let first = attempts[0].0;
        attempts.iter().map(|(ms, net)| ((ms - first) / 1000, *net)).collect()
    };
    // The RTO of each address is doubled when its own timer expires (6.3.3 E2).
    let expected = [(0, 0), (1, 1), (2, 0), (4, 1), (6, 0), (10, 1)];
    assert_eq!(starts(attempts("INIT"))[..6], expected);
    assert_eq!(starts(attempts("COOKIE ECHO"))[..6], expected);
}

#[test]
fn s5_1_r14_retransmissions_use_all_addresses() {
    for chunk in ["INIT", "COOKIE ECHO"] {
        let networks: Vec<u8> = attempts(chunk).iter().map(|(_, net)| *net).collect();
        assert_eq!(networks[..4], [0, 1, 0, 1], "{chunk}");
    }
}

#[test]
fn s5_1_r15_r16_r17_an_association_that_cannot_be_is_aborted_with_its_cause_and_tag() {
    let refusal = |answers: &[Sent], tag: u32| {
        assert_eq!(answers.len(), 1);
        assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", tag));
        answers[0].causes()
    };
    // There is no room for another association: an INIT and a COOKIE ECHO are refused.
    let mut net = Setup { max_associations: 1, ..Setup::default() }.build();
    let mut late = Hand { ip: v4(0, 50), tag: 50, ..Hand::new(1) };
    let answers = late.init(&mut net, &|_| {});
    late.learn(&answers[0]);
    Hand::new(1).open(&mut net);
    assert_eq!(refusal(&late.init(&mut net, &|_| {}), 50), [cause_code::OUT_OF_RESOURCE]);
    assert_eq!(refusal(&late.echo(&mut net), 50), [cause_code::OUT_OF_RESOURCE]);
    // An INIT without streams.
    let mut net = pair(1, Config::rfc9260());
    let wrong = Hand { streams: (0, 1), tag: 51, ..Hand::new(1) };
    let answers = wrong.init(&mut net, &|_| {});
    assert_eq!(refusal(&answers, 51), [cause_code::INVALID_MANDATORY_PARAMETER]);
    // An INIT ACK without cookie.
    let (mut net, hand) = calling();
    let answers = hand.say(&mut net, &|w| w.init_ack(&hand.fields(), |_| Ok(())).unwrap());
    assert_eq!(refusal(&answers, hand.tag), [cause_code::MISSING_MANDATORY_PARAMETER]);
    let cause = elements(&chunk(&answers[0].bytes, 6).value).remove(0);
    assert_eq!(cause.value, [0, 0, 0, 1, 0, 7], "one type: State Cookie");
}

#[test]
fn s5_1_r18_r19_the_first_data_chunk_is_acknowledged_at_once_and_others_later() {
    let (mut net, hand) = opened();
    assert!(hand.data(&mut net, 1).iter().any(|p| p.has("SACK 1")));
    assert!(hand.data(&mut net, 2).is_empty());
    assert!(hand.data(&mut net, 3).iter().any(|p| p.has("SACK 3")), "every second packet");
    let mark = net.log.len();
    assert!(hand.data(&mut net, 4).is_empty());
    let from = net.now;
    net.run(MS(500));
    let sack = &hand.answers(&net, mark)[0];
    assert!(sack.has("SACK 4") && sack.at.since(from) <= MS(200));
}

/// Data before the initial TSN counts as acknowledged; data from it on does not.
#[test]
fn s5_1_r20_the_cumulative_tsn_ack_point_begins_before_the_initial_tsn() {
    for called in [false, true] {
        let (mut net, hand) = if called {
            let (mut net, hand) = calling();
            hand.init_ack(&mut net);
            hand.say(&mut net, &|w| w.cookie_ack().unwrap());
            (net, hand)
        } else {
            opened()
        };
        let h = hand.host;
        hand.sack_rwnd(&mut net, u32::MAX, &[], 2000);
        assert_eq!(net.a(h).peer_rwnd(), 1 << 20, "a SACK for the TSN before is old");
        hand.sack_rwnd(&mut net, 0, &[], 3000);
        assert_eq!(net.a(h).peer_rwnd(), 3000);
        net.send(h, 0, payload(1, 100)).unwrap();
        hand.sack(&mut net, 0, &[]);
        assert_eq!(net.a(h).buffered(), 100);
        hand.sack(&mut net, 1, &[]);
        assert_eq!(net.a(h).buffered(), 0);
    }
}

fn streams(outbound: u16, inbound: u16) -> Config {
    Config::rfc9260()
        .to_builder()
        .outbound_streams(outbound)
        .inbound_streams(inbound)
        .build()
        .unwrap()
}

#[test]
fn s5_1_1_r1_both_sides_say_how_many_streams_they_want_and_take() {
    let configs = [streams(11, 12), streams(9, 14)];
    let mut net = Setup { configs, ..Setup::default() }.build();
    net.connect(0);
    net.run(MS(15));
    let of = |sent: &Sent| (fields(sent).2, fields(sent).3);
    assert_eq!((of(&net.log[0]), of(&net.log[1])), ((11, 12), (9, 14)));
}

#[test]
fn s5_1_1_r2_r3_no_more_streams_are_used_than_the_peer_takes() {
    let configs = [streams(100, 10), streams(20, 30)];
    let mut net = Setup { configs, ..Setup::default() }.build();
    net.establish();
    let agreed = |h| (net.a(h).outbound_streams(), net.a(h).inbound_streams());
    assert_eq!((agreed(0), agreed(1)), ((30, 10), (10, 30)));
}

#[test]
fn s5_1_1_r4_streams_are_numbered_from_0_to_the_agreed_number_less_1() {
    let configs = [streams(100, 10), streams(20, 30)];
    let mut net = Setup { configs, ..Setup::default() }.build();
    net.establish();
    for (h, last) in [(0, 29), (1, 9)] {
        for stream in [0, last] {
            net.send(h, stream, payload(1, 1)).unwrap();
        }
        let refused = SendError::NoSuchStream { stream: StreamId(last + 1), streams: last + 1 };
        assert_eq!(net.send(h, last + 1, payload(1, 1)), Err(refused));
    }
    net.run(S(1));
    let got = |h: usize| net.hosts[h].received.iter().map(|r| r.stream.0).collect::<Vec<_>>();
    assert_eq!((got(0), got(1)), (vec![0, 9], vec![0, 29]));
    // DATA on a higher stream is not delivered.
    let mut net = pair(1, streams(20, 30));
    let hand = Hand::new(1).open(&mut net);
    let mut chunk = hand.chunk(1, b"x");
    chunk.stream = StreamId(30);
    let answers = hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    assert!(answers.iter().any(|p| p.causes() == [cause_code::INVALID_STREAM_IDENTIFIER]));
    assert!(net.hosts[1].received.is_empty());
}

#[test]
fn s5_3_1_r1_tags_are_random_and_not_0() {
    let mut tags = Vec::new();
    for seed in 1..=50 {
        let mut net = Setup { seed, ..Setup::default() }.build();
        net.connect(0);
        net.run(MS(15));
        tags.extend(net.log.iter().map(|p| fields(p).0));
    }
    assert_eq!(tags.iter().collect::<BTreeSet<_>>().len(), 100);
    let (and, or) = tags.iter().fold((u32::MAX, 0), |(and, or), tag| (and & tag, or | tag));
    assert_eq!((and, or, tags.contains(&0)), (0, u32::MAX, false));
}

#[test]
fn s5_3_1_r2_the_tags_of_an_association_do_not_change() {
    let mut net = pair(2, Config::rfc9260());
    net.nth("INIT", &[1, 2], Fate::Drop);
    net.nth("COOKIE ECHO", &[1], Fate::Drop);
    net.connect(0);
    net.drive_until(S(20), Net::all_active);
    let inits: BTreeSet<u32> = net.sent_with(0, "INIT").iter().map(|p| fields(p).0).collect();
    assert_eq!((net.times(0, "INIT").len(), inits.len()), (3, 1));
    for i in 0..30 {
        net.send(i % 2, 0, payload(i as u64, 3000)).unwrap();
        net.run(S(10));
    }
    net.shutdown(0);
    net.run(S(5));
    for h in 0..2 {
        let tags: BTreeSet<u32> =
            net.sent(h).iter().filter(|p| !p.has("INIT")).map(|p| p.tag).collect();
        assert_eq!(tags.len(), 1, "host {h}");
    }
}

#[test]
fn s5_3_1_r3_the_next_association_with_the_same_peer_has_new_tags() {
    let mut net = pair(1, Config::rfc9260());
    let mut seen = BTreeSet::new();
    for round in 1..=20 {
        let mark = net.log.len();
        net.connect(0);
        net.drive_until(S(5), Net::all_active);
        let handshake = &net.log[mark..mark + 2];
        seen.extend(handshake.iter().map(|p| fields(p).0));
        assert_eq!(seen.len(), 2 * round);
        net.abort(0, b"");
        net.run(S(1));
    }
}
