//! Sections 5.2.1 to 5.2.3, 5.2.5 and 5.2.6: unexpected INIT, INIT ACK, COOKIE ACK and Stale
//! Cookie.

use super::*;

/// A host that has sent an INIT to a hand-built peer with the addresses `hand.ip` and 10.0.0.76.
fn calling_two() -> (Net, Hand) {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(0);
    let second = Remote { address: (v4(0, 76), 0).into(), local: None };
    net.hosts[0].endpoint.connect(net.now, PORT, &[hand.remote(), second]).unwrap();
    net.settle();
    hand.learn(&hand.answers(&net, 0)[0]);
    (net, hand)
}

#[test]
fn s5_2_1_r1_r10_an_init_in_cookie_wait_is_answered_with_the_parameters_of_the_own_init() {
    let (mut net, hand) = calling();
    let other = Hand { tag: 77, ..hand.clone() };
    let answers = other.init(&mut net, &|_| {});
    assert_eq!((texts(&answers), answers[0].tag), (vec!["INIT ACK".to_owned()], 77));
    assert_eq!(fields(&answers[0]), fields(&net.sent_with(0, "INIT")[0]));
    cookie_of(&answers[0]);
}

/// An attacker lists the address to which the INIT was sent as one of its own.
#[test]
fn s5_2_1_r2_r3_the_init_ack_goes_only_to_an_address_of_the_upper_layer() {
    let (mut net, hand) = calling();
    let attacker = Hand { ip: v4(0, 66), tag: 66, ..hand.clone() };
    let IpAddr::V4(called) = hand.ip else { unreachable!() };
    let mark = net.log.len();
    attacker.init(&mut net, &|p| p.ipv4(called).unwrap());
    let acks: Vec<Sent> =
        net.sent_since(0, mark).into_iter().filter(|p| p.has("INIT ACK")).collect();
    assert!(acks.iter().all(|p| p.to.ip() == hand.ip), "{}", net.tail(5));
    // The attempt is not disturbed.
    assert_eq!(texts(&hand.init_ack(&mut net)), ["COOKIE ECHO"]);
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    assert!(net.a(0).is_established());
    works(&mut net, &hand, 1);
}

#[test]
fn s5_2_1_r4_r5_the_init_ack_goes_to_the_source_of_the_init() {
    let (mut net, hand) = calling_two();
    for ip in [hand.ip, v4(0, 76)] {
        let peer = Hand { ip, tag: 77, ..hand.clone() };
        let mark = net.log.len();
        // The source of the INIT is one of the two addresses that the application has given.
        peer.init(&mut net, &|_| {});
        let acks = net.sent_since(0, mark);
        assert_eq!((texts(&acks), acks[0].to.ip()), (vec!["INIT ACK".to_owned()], ip));
    }
}

#[test]
fn s5_2_1_r6_an_init_in_cookie_echoed_is_answered_with_the_parameters_of_the_own_init() {
    let (mut net, hand) = echoed();
    let other = Hand { tag: 77, ..hand.clone() };
    let answers = other.init(&mut net, &|_| {});
    assert_eq!((texts(&answers), answers[0].tag), (vec!["INIT ACK".to_owned()], 77));
    assert_eq!(fields(&answers[0]), fields(&net.sent_with(0, "INIT")[0]));
}

#[test]
fn s5_2_1_r7_r8_r9_an_init_in_cookie_echoed_with_a_new_address_is_aborted() {
    let (mut net, hand) = echoed();
    let other = Hand { tag: 77, ..hand.clone() };
    let answers = other.init(&mut net, &|p| p.ipv4([10, 7, 7, 7].into()).unwrap());
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", 77));
    let cause = elements(&chunk(&answers[0].bytes, 6).value).remove(0);
    assert_eq!(cause.ty, cause_code::RESTART_WITH_NEW_ADDRESSES);
    assert_eq!(cause.value, [0, 5, 0, 8, 10, 7, 7, 7]);
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    assert_eq!(remotes(&net, 0), [hand.ip].into());
    works(&mut net, &hand, 1);
}

#[test]
fn s5_2_1_r11_an_init_in_cookie_wait_changes_nothing() {
    let (mut net, hand) = calling();
    net.run(MS(700));
    Hand { tag: 77, ..hand.clone() }.init(&mut net, &|_| {});
    net.run(MS(1000));
    assert_eq!(net.times(0, "INIT"), [0, 1000], "T1-init was left running");
    assert_eq!(texts(&hand.init_ack(&mut net)), ["COOKIE ECHO"]);
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    works(&mut net, &hand, 1);
}

/// The cookies for the same INIT at the same time differ only in the tie tags and in the MAC.
#[test]
fn s5_2_1_r12_the_cookie_of_cookie_echoed_has_tie_tags() {
    let cookie = |(mut net, hand): (Net, Hand)| {
        let answers = Hand { tag: NEW, ..hand }.init(&mut net, &|_| {});
        let cookie = cookie_of(&answers[0]);
        cookie[..cookie.len() - 32].to_vec()
    };
    let (wait, echoed) = (cookie(calling()), cookie(echoed()));
    assert_eq!(wait.len(), echoed.len());
    let differ: Vec<usize> = (0..wait.len()).filter(|at| wait[*at] != echoed[*at]).collect();
    assert!((5..=8).contains(&differ.len()), "{differ:?}");
    assert!(differ[differ.len() - 1] - differ[0] < 8, "two words beside each other");
    assert!(differ.iter().all(|at| wait[*at] == 0));
}

/// An association of a hand-built peer in each state of 5.2.2.
fn states() -> Vec<(&'static str, Net, Hand)> {
    let mut list = vec![("ESTABLISHED", opened())];
    for name in ["SHUTDOWN-PENDING", "SHUTDOWN-SENT", "SHUTDOWN-RECEIVED"] {
        let (mut net, hand) = opened();
        if name != "SHUTDOWN-SENT" {
            net.send(1, 0, payload(1, 100)).unwrap();
        }
        match name {
            "SHUTDOWN-RECEIVED" => drop(hand.shutdown(&mut net, 0)),
            _ => net.shutdown(1),
        }
        list.push((name, (net, hand)));
    }
    list.into_iter().map(|(name, (net, hand))| (name, net, hand)).collect()
}

const NEW: u32 = 0x7777_1234;

#[test]
fn s5_2_2_r1_r5_r6_an_unexpected_init_is_answered_with_a_new_tag_and_a_cookie() {
    for (name, mut net, hand) in states() {
        let again = Hand { tag: NEW, ..hand.clone() };
        let mut tags = BTreeSet::from([hand.peer_tag]);
        for _ in 0..3 {
            let answers = again.init(&mut net, &|p| p.address(hand.ip).unwrap());
            assert_eq!(
                (texts(&answers), answers[0].tag),
                (vec!["INIT ACK".to_owned()], NEW),
                "{name}"
            );
            cookie_of(&answers[0]);
            assert!(tags.insert(fields(&answers[0]).0), "{name}: a new tag");
        }
    }
}

#[test]
fn s5_2_2_r2_r3_an_unexpected_init_with_new_addresses_is_aborted() {
    for (name, mut net, hand) in states() {
        let again = Hand { tag: NEW, ..hand.clone() };
        let answers = again.init(&mut net, &|p| {
            p.address(hand.ip).unwrap();
            p.ipv4([10, 7, 7, 7].into()).unwrap();
            p.ipv4([10, 7, 7, 8].into()).unwrap();
        });
        assert_eq!(answers.len(), 1, "{name}");
        assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", NEW));
        let cause = elements(&chunk(&answers[0].bytes, 6).value).remove(0);
        assert_eq!(cause.ty, cause_code::RESTART_WITH_NEW_ADDRESSES);
        assert_eq!(cause.value, [0, 5, 0, 8, 10, 7, 7, 7, 0, 5, 0, 8, 10, 7, 7, 8]);
    }
}

/// Also if no more paths are possible, and from an address that the association does not know.
#[test]
fn s5_2_2_r2_new_addresses_are_refused_when_all_paths_are_taken() {
    let config = Config::rfc9260().to_builder().max_paths(1).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand::new(1).open(&mut net);
    let IpAddr::V4(known) = hand.ip else { unreachable!() };
    for (ip, listed) in [(hand.ip, [10, 7, 7, 7].into()), (v4(0, 66), known)] {
        let again = Hand { ip, tag: NEW, ..hand.clone() };
        let answers = again.init(&mut net, &|p| p.ipv4(listed).unwrap());
        assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", NEW));
    }
    works(&mut net, &hand, 1);
}

#[test]
fn s5_2_2_r4_the_cookie_for_an_unexpected_init_has_the_tie_tags_of_the_association() {
    for (name, mut net, hand) in states() {
        let mut again = Hand { tag: NEW, ..hand.clone() };
        let answers = again.init(&mut net, &|_| {});
        again.learn(&answers[0]);
        assert!(holds(&again.cookie, again.tag) && holds(&again.cookie, again.peer_tag));
        // Tags that do not match, and tie tags that do, are a restart (table 12, action A).
        assert!(again.echo(&mut net).iter().any(|p| p.has("COOKIE ACK")), "{name}");
        assert!(net.saw(1, &Event::Restarted), "{name}");
    }
}

/// The association's configuration differs from the endpoint's, as if that had been changed since.
#[test]
fn s5_2_2_r7_other_parameters_are_those_of_the_association() {
    let mut net = pair(1, Config::rfc9260());
    let config =
        Config::rfc9260().to_builder().outbound_streams(5).inbound_streams(6).build().unwrap();
    let mut hand = Hand::new(0);
    let now = net.now;
    net.hosts[0].endpoint.connect_with(now, PORT, &[hand.remote()], config).unwrap();
    net.settle();
    hand.learn(&hand.answers(&net, 0)[0]);
    hand.init_ack(&mut net);
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    let mut again = Hand { tag: NEW, ..hand.clone() };
    let answers = again.init(&mut net, &|_| {});
    let (_, _, outbound, inbound, _) = fields(&answers[0]);
    assert_eq!((outbound, inbound), (5, 6));
    again.learn(&answers[0]);
    again.echo(&mut net);
    assert_eq!((net.a(0).outbound_streams(), net.a(0).inbound_streams()), (5, 6));
}

#[test]
fn s5_2_2_r8_an_unexpected_init_changes_nothing() {
    for (name, mut net, hand) in states() {
        let paths = remotes(&net, 1);
        for new_address in [false, true] {
            Hand { tag: NEW, ..hand.clone() }.init(&mut net, &|p| {
                if new_address {
                    p.ipv4([10, 7, 7, 7].into()).unwrap();
                }
            });
        }
        assert_eq!((remotes(&net, 1), net.closed(1)), (paths, None), "{name}");
        assert!(!net.saw(1, &Event::Restarted));
        // The shutdown in progress is completed, with the tags of the association.
        let mark = net.log.len();
        match name {
            "ESTABLISHED" => works(&mut net, &hand, 1),
            "SHUTDOWN-PENDING" => {
                assert!(hand.sack(&mut net, 1, &[]).iter().any(|p| p.has("SHUTDOWN")));
            }
            "SHUTDOWN-RECEIVED" => {
                assert!(hand.sack(&mut net, 1, &[]).iter().any(|p| p.has("SHUTDOWN ACK")));
            }
            _ => {
                let answers = hand.say(&mut net, &|w| w.shutdown_ack().unwrap());
                assert_eq!(texts(&answers), ["SHUTDOWN COMPLETE"]);
            }
        }
        assert!(net.sent_since(1, mark).iter().all(|p| p.tag == hand.tag), "{name}");
    }
}

/// Both INITs are received when there is no association. With tie tags, the second one's cookie
/// would restart the association that the first one's cookie has established.
#[test]
fn s5_2_2_r9_the_tie_tags_are_0_where_there_was_no_association() {
    let mut net = pair(1, Config::rfc9260());
    let mut hands = [Hand::new(1), Hand { tag: NEW, ..Hand::new(1) }];
    for hand in &mut hands {
        let answers = hand.init(&mut net, &|_| {});
        hand.learn(&answers[0]);
    }
    assert_eq!(texts(&hands[0].echo(&mut net)), ["COOKIE ACK"]);
    assert!(hands[1].echo(&mut net).is_empty());
    assert!(!net.saw(1, &Event::Restarted));
    works(&mut net, &hands[0], 1);
}

#[test]
fn s5_2_3_r1_an_unexpected_init_ack_is_discarded() {
    let (mut net, hand) = echoed();
    let other = Hand { tag: NEW, ..hand.clone() };
    assert!(other.init_ack(&mut net).is_empty(), "in COOKIE-ECHOED");
    net.run(MS(1500));
    assert_eq!(net.times(0, "COOKIE ECHO").len(), 2);
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    works(&mut net, &hand, 1);
    for (name, mut net, hand) in states() {
        assert!(Hand { tag: NEW, ..hand.clone() }.init_ack(&mut net).is_empty(), "{name}");
        assert_eq!(net.closed(1), None, "{name}");
    }
}

#[test]
fn s5_2_5_r1_an_unexpected_cookie_ack_is_silently_discarded() {
    let (mut net, hand) = calling();
    assert!(hand.say(&mut net, &|w| w.cookie_ack().unwrap()).is_empty(), "in COOKIE-WAIT");
    assert!(!net.a(0).is_established());
    for (name, mut net, hand) in states() {
        assert!(hand.say(&mut net, &|w| w.cookie_ack().unwrap()).is_empty(), "{name}");
        let up = net.events(1, |e| matches!(e, Event::Established { .. }));
        assert_eq!((up.len(), net.closed(1)), (1, None), "{name}");
    }
}

#[test]
fn s5_2_6_r1_r2_a_stale_cookie_error_counts_in_cookie_echoed_only() {
    let stale =
        |hand: &Hand, net: &mut Net| hand.say(net, &|w| w.error(|c| c.stale_cookie(9)).unwrap());
    let (mut net, hand) = calling();
    assert!(stale(&hand, &mut net).is_empty(), "in COOKIE-WAIT");
    hand.init_ack(&mut net);
    assert_eq!(texts(&stale(&hand, &mut net)), ["INIT"]);
    for (name, mut net, hand) in states() {
        assert!(stale(&hand, &mut net).is_empty(), "{name}");
        let told = net.events(1, |e| matches!(e, Event::PeerError { .. }));
        assert_eq!((net.closed(1), told.len()), (None, 0), "{name}");
    }
}

#[test]
fn s5_2_6_r3_the_new_init_asks_for_the_round_trip_time_and_a_second_at_most() {
    let (mut net, hand) = echoed();
    net.run(MS(400));
    let answers = hand.say(&mut net, &|w| w.error(|c| c.stale_cookie(123_456)).unwrap());
    let list = parameters(&chunk(&answers[0].bytes, 1));
    let preservative = list.iter().find(|p| p.ty == 9).expect("a Cookie Preservative");
    let ms = u32_at(&preservative.value, 0);
    assert!((400..=1400).contains(&ms), "{ms} ms");
}
