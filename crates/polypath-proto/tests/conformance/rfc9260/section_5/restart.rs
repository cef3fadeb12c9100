//! Section 5.2.4: a COOKIE ECHO when an association exists.

use super::*;

const NEW: u32 = 0x7777_1234;

/// The peer restarts: it gets a cookie with new tags.
fn again(net: &mut Net, hand: &Hand) -> Hand {
    let mut again = Hand { tag: NEW, tsn: 5000, ..hand.clone() };
    let answers = again.init(net, &|_| {});
    again.learn(&answers[0]);
    again
}

#[test]
fn s5_2_4_r1_r2_a_stale_cookie_with_other_tags_is_discarded_and_reported() {
    let (mut net, hand) = opened();
    let again = again(&mut net, &hand);
    net.run(S(61));
    let answers = again.say(&mut net, &|w| {
        w.cookie_echo(&again.cookie).unwrap();
        w.data(&again.chunk(1, b"of the new one")).unwrap();
    });
    assert_eq!((texts(&answers), answers[0].tag), (vec!["ERROR (Stale Cookie)".into()], NEW));
    assert!(net.hosts[1].received.is_empty() && !net.saw(1, &Event::Restarted));
    works(&mut net, &hand, 1);
}

/// The tags do not match, and the tie tags are of another incarnation.
#[test]
fn s5_2_4_r3_a_cookie_that_matches_no_case_is_silently_discarded() {
    let (mut net, hand) = opened();
    let first = again(&mut net, &hand);
    let mut second = Hand { tag: NEW + 1, ..hand.clone() };
    let answers = second.init(&mut net, &|_| {});
    second.learn(&answers[0]);
    assert_eq!(texts(&second.echo(&mut net)), ["COOKIE ACK"]);
    assert!(first.echo(&mut net).is_empty());
    works(&mut net, &second, 1);
}

#[test]
fn s5_2_4_r4_a_restart_is_told_and_is_no_loss_of_communication() {
    let (mut net, hand) = opened();
    let id = net.id(1);
    let again = again(&mut net, &hand);
    assert_eq!(texts(&again.echo(&mut net)), ["COOKIE ACK"]);
    assert_eq!(net.events(1, |e| *e == Event::Restarted).len(), 1);
    assert!(net.events(1, |e| matches!(e, Event::Closed(_))).is_empty());
    assert_eq!((net.id(1), net.hosts[1].endpoint.associations().count()), (id, 1));
    works(&mut net, &again, 1);
}

#[test]
fn s5_2_4_r5_a_restart_resets_the_congestion_control() {
    let (mut net, hand) = opened();
    let initial = net.path(1, 0).window;
    let rto = net.path(1, 0).rto;
    for n in 1..=20 {
        net.send(1, 0, payload(n.into(), 1452 * 3)).unwrap();
        net.run(MS(100));
        hand.sack(&mut net, 3 * n, &[]);
    }
    net.send(1, 0, payload(0, 1000)).unwrap();
    net.run(S(10));
    let before = net.path(1, 0);
    assert!(before.window.ssthresh != initial.ssthresh && before.window.cwnd != initial.cwnd);
    assert!(before.rto != rto && before.error_count > 0);
    let again = again(&mut net, &hand);
    again.echo(&mut net);
    let after = net.path(1, 0);
    assert_eq!((after.window, after.rto, after.error_count), (initial, rto, 0));
    assert_eq!((after.in_flight, after.srtt), (0, None));
}

#[test]
fn s5_2_4_r6_there_is_no_restart_in_shutdown_ack_sent() {
    let (mut net, hand) = opened();
    let again = again(&mut net, &hand);
    hand.shutdown(&mut net, 0);
    let answers = again.echo(&mut net);
    let all: Vec<String> = answers.iter().flat_map(|p| &p.chunks).map(|c| c.text.clone()).collect();
    assert_eq!(all, ["SHUTDOWN ACK", "ERROR (Cookie Received While Shutting Down)"]);
    assert!(!net.saw(1, &Event::Restarted));
    hand.say(&mut net, &|w| w.shutdown_complete(false).unwrap());
    assert_eq!(net.closed(1), Some(CloseReason::Graceful));
}

/// Action B: the peer's tag in the cookie of a collision differs from that of its INIT ACK.
#[test]
fn s5_2_4_r7_the_peers_tag_of_a_collision_is_that_of_the_cookie() {
    for in_echoed in [false, true] {
        let (mut net, hand) = calling();
        let mut colliding = Hand { tag: 77, tsn: 500, ..hand.clone() };
        let answers = colliding.init(&mut net, &|_| {});
        colliding.learn(&answers[0]);
        if in_echoed {
            hand.init_ack(&mut net);
        }
        let answers = colliding.echo(&mut net);
        assert_eq!((texts(&answers), answers[0].tag), (vec!["COOKIE ACK".to_owned()], 77));
        assert!(net.a(0).is_established());
        works(&mut net, &colliding, 1);
        let mark = net.log.len();
        colliding.sack(&mut net, 1, &[]);
        net.run(S(10));
        let later = net.sent_since(0, mark);
        assert!(later.iter().all(|p| !p.has("INIT") && !p.has("COOKIE ECHO")), "T1 was stopped");
    }
}

/// Action C: the cookie is from an earlier attempt, when the host had another tag.
#[test]
fn s5_2_4_r8_r9_a_late_cookie_with_the_same_peers_tag_changes_nothing() {
    let mut net = pair(1, Config::rfc9260());
    let mut early = Hand::new(1);
    let answers = early.init(&mut net, &|_| {});
    early.learn(&answers[0]);
    let hand = Hand::new(1).be_called(&mut net);
    assert_eq!(texts(&hand.init_ack(&mut net)), ["COOKIE ECHO"]);
    net.run(MS(600));
    assert!(early.echo(&mut net).is_empty());
    assert!(!net.a(1).is_established());
    net.run(MS(500));
    assert_eq!(net.times(1, "COOKIE ECHO"), [0, 1000], "T1-cookie was left running");
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    works(&mut net, &hand, 1);
}

/// Action D: both tags match.
#[test]
fn s5_2_4_r10_r11_a_cookie_with_both_tags_establishes_and_is_acknowledged() {
    let (mut net, hand) = echoed();
    let answers = hand.init(&mut net, &|_| {});
    let mut same = hand.clone();
    same.learn(&answers[0]);
    assert_eq!(same.peer_tag, hand.peer_tag);
    let mark = net.log.len();
    let answers = same.echo(&mut net);
    assert_eq!((texts(&answers), answers[0].tag), (vec!["COOKIE ACK".to_owned()], hand.tag));
    assert!(net.a(0).is_established());
    net.run(S(10));
    assert!(net.sent_since(0, mark).iter().all(|p| !p.has("COOKIE ECHO")), "T1-cookie was stopped");
    // In ESTABLISHED it is acknowledged again, without another effect.
    assert!(same.echo(&mut net)[0].has("COOKIE ACK"));
    assert_eq!(net.events(0, |e| matches!(e, Event::Established { .. })).len(), 1);
    works(&mut net, &hand, 1);
}
