//! RFC 9260, section 4: SCTP Association State Diagram.

use crate::common::*;
use polypath_proto::*;

fn opened() -> (Net, Hand) {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    (net, hand)
}

/// A hand-built peer that has the cookie of a listening host.
fn with_cookie(cookie_life: u64) -> (Net, Hand) {
    let config = Config::rfc9260().to_builder().cookie_life(S(cookie_life)).build().unwrap();
    let mut net = pair(1, config);
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|_| {});
    hand.learn(&answers[0]);
    (net, hand)
}

#[test]
fn s4_r1_a_cookie_that_fails_the_integrity_check_is_silently_discarded() {
    let (mut net, hand) = with_cookie(60);
    let mut forged = hand.clone();
    forged.cookie[20] ^= 1;
    assert!(forged.echo(&mut net).is_empty());
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
    assert_eq!(hand.echo(&mut net)[0].text(), "COOKIE ACK");
}

#[test]
fn s4_r2_an_expired_cookie_is_answered_by_an_error() {
    let (mut net, hand) = with_cookie(5);
    net.run(S(6));
    let answers = hand.echo(&mut net);
    assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["ERROR (Stale Cookie)"]);
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
}

/// Times of these chunks and of the association's end, if all of them are lost.
fn given_up(chunk: &'static str, most: u32) -> (Vec<u64>, Vec<(u64, Event)>) {
    let config = Config::rfc9260().to_builder().max_init_retransmits(most).build().unwrap();
    let mut net = pair(1, config);
    net.drop_all(chunk);
    net.connect(0);
    net.run(S(1000));
    (net.times(0, chunk), net.events(0, |e| matches!(e, Event::Closed(_))))
}

#[test]
fn s4_r3_r4_r5_the_init_is_repeated_max_init_retransmits_times() {
    let no_answer = Event::Closed(CloseReason::NoAnswer);
    assert_eq!(given_up("INIT", 0), (vec![0], vec![(1000, no_answer.clone())]));
    assert_eq!(given_up("INIT", 1), (vec![0, 1000], vec![(3000, no_answer.clone())]));
    let (times, end) = given_up("INIT", 8);
    assert_eq!((times.len(), end.len(), &end[0].1), (9, 1, &no_answer));
}

#[test]
fn s4_r6_r7_r8_the_cookie_echo_is_repeated_max_init_retransmits_times() {
    let no_answer = Event::Closed(CloseReason::NoAnswer);
    assert_eq!(given_up("COOKIE ECHO", 0), (vec![20], vec![(1020, no_answer.clone())]));
    assert_eq!(given_up("COOKIE ECHO", 1), (vec![20, 1020], vec![(3020, no_answer.clone())]));
    let (times, end) = given_up("COOKIE ECHO", 8);
    assert_eq!((times.len(), end.len(), &end[0].1), (9, 1, &no_answer));
}

#[test]
fn s4_r9_data_in_shutdown_sent_is_acknowledged_without_delay() {
    let (mut net, hand) = opened();
    hand.data(&mut net, 1);
    net.run(S(1));
    net.shutdown(1);
    assert!(net.log.last().unwrap().has("SHUTDOWN"));
    for n in 2..=4 {
        let answers = hand.data(&mut net, n);
        assert!(answers.iter().any(|p| p.has(&format!("SACK {n}"))), "at the same instant");
        assert_eq!(net.hosts[1].received.len(), n as usize);
    }
}

#[test]
fn s4_r10_r11_what_waits_is_sent_in_shutdown_received_and_nothing_new() {
    let (mut net, hand) = opened();
    // More than the initial window allows.
    for i in 0..8 {
        net.send(1, 0, payload(i, 1400)).unwrap();
    }
    hand.shutdown(&mut net, 0);
    assert_eq!(net.send(1, 0, payload(9, 10)), Err(SendError::Closed));
    let mark = net.log.len();
    hand.shutdown(&mut net, 2);
    hand.sack(&mut net, 2, &[]);
    assert!(net.sent_since(1, mark).iter().any(|p| p.has("DATA")), "new transmissions");
    net.run(S(4));
    let sent = data_numbers(&net.sent_since(1, mark));
    assert!(sent.contains(&vec![3]), "retransmissions: {sent:?}");
    assert!(net.times(1, "SHUTDOWN ACK").is_empty());
    for n in 3..=8 {
        assert!(net.times(1, "SHUTDOWN ACK").is_empty());
        hand.sack(&mut net, n, &[]);
        net.run(S(3));
    }
    assert_eq!(net.send(1, 0, payload(9, 10)), Err(SendError::Closed));
    assert!(!net.times(1, "SHUTDOWN ACK").is_empty());
    let all: std::collections::BTreeSet<u32> =
        data_numbers(&net.sent(1)).concat().into_iter().collect();
    assert_eq!(all, (1..=8).collect());
}

#[test]
fn s4_r12_nothing_new_is_accepted_in_shutdown_ack_sent() {
    let (mut net, hand) = opened();
    assert_eq!(hand.shutdown(&mut net, 0)[0].text(), "SHUTDOWN ACK");
    assert_eq!(net.send(1, 0, payload(1, 10)), Err(SendError::Closed));
    net.run(S(10));
    assert!(net.times(1, "DATA").is_empty());
}
