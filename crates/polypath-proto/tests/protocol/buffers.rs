//! Buffers that follow the bandwidth-delay product: they grow for an application that reads and a
//! window that opens, never for a peer that fills them, and give their memory back.

use crate::common::*;
use polypath_proto::wire::Data;
use polypath_proto::{Config, Event, Message, SendError, Ssn, StreamId, Time};

const MIB: usize = 1 << 20;
/// Payload of each chunk from the hand.
const PAYLOAD: [u8; 1400] = [7; 1400];

/// Host 1 has the profile `modern` and a hand as its peer.
fn peer() -> (Net, Hand) {
    let mut net = pair(1, Config::modern());
    let hand = Hand::new(1).open(&mut net);
    (net, hand)
}

/// The hand sends one whole message as its `n`-th chunk; returns the last SACK that it gets.
fn message(net: &mut Net, hand: &Hand, n: u32, ssn: u32) -> Option<SackSeen> {
    let chunk = Data { ssn: Ssn(ssn as u16), ..hand.chunk(n, &PAYLOAD) };
    let answers = hand.say(net, &|w| w.data(&chunk).unwrap());
    answers.iter().rev().find_map(Sent::sack)
}

/// The end of the window that a SACK announces, in bytes from the first TSN, with chunk headers.
fn right_edge(sack: &SackSeen) -> i64 {
    i64::from(sack.cumulative) * (PAYLOAD.len() as i64 + 16) + i64::from(sack.rwnd)
}

#[test]
fn the_receive_buffer_follows_what_is_read_in_a_round_trip() {
    let (mut net, hand) = peer();
    assert_eq!(net.a(1).receive_buffer(), MIB);
    let mut edge = 0;
    // A round trip to the hand takes no time and counts as 2 ms, in which it sends 1 MB.
    for n in 1..=20_000 {
        if n % 1500 == 0 {
            net.run(MS(4));
        }
        if let Some(sack) = message(&mut net, &hand, n, n - 1) {
            assert!(right_edge(&sack) >= edge, "{sack:?} after {edge}");
            edge = right_edge(&sack);
        }
    }
    let grown = net.a(1).receive_buffer();
    assert!((2 * MIB..=6 * MIB).contains(&grown), "{grown}");
    // A slow sender needs less, and the window shrinks as its data arrives.
    for n in 20_001..=25_500 {
        net.run(MS(10));
        if let Some(sack) = message(&mut net, &hand, n, n - 1) {
            assert!(right_edge(&sack) >= edge, "{sack:?} after {edge}");
            edge = right_edge(&sack);
        }
    }
    assert_eq!(net.a(1).receive_buffer(), MIB);
    let budget = net.hosts[1].endpoint.free_buffer_budget();
    assert_eq!(budget, Config::modern().buffer_budget() as usize);
}

#[test]
fn a_fixed_buffer_stays_as_it_is() {
    let config = Config::modern().to_builder().initial_receive_buffer(None);
    let mut net = pair(1, config.receive_buffer(1 << 20).build().unwrap());
    let hand = Hand::new(1).open(&mut net);
    for n in 1..=20_000 {
        message(&mut net, &hand, n, n - 1);
    }
    assert_eq!(net.a(1).receive_buffer(), MIB);
}

/// RFC 9260 6.2: the window is the room in the receive buffer. What the application has taken but
/// not used is still in it.
#[test]
fn what_the_application_has_not_read_takes_room_in_the_window() {
    let config = Config::rfc9260().to_builder().receive_buffer(50_000).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand::new(1).open(&mut net);
    net.am(1).count_unread();
    let mut sack = None;
    for n in 1..=40 {
        sack = message(&mut net, &hand, n, n - 1).or(sack);
    }
    // 35 messages of 1400 bytes fit; the application has taken all of them.
    assert_eq!(net.hosts[1].received.len(), 35);
    assert_eq!(sack.map(|sack| sack.rwnd), Some(0));
    assert_eq!(net.a(1).stats().dropped_no_buffer, 5);
    let mark = net.log.len();
    assert!(!net.am(1).has_read(100), "too little to tell the peer");
    assert!(net.am(1).has_read(20 * 1400 - 100));
    net.run(MS(1));
    let update = hand.answers(&net, mark).iter().rev().find_map(Sent::sack).unwrap();
    assert_eq!(update.rwnd, 50_000 - 15 * 1400);
    // More than there is.
    net.am(1).has_read(usize::MAX);
    message(&mut net, &hand, 36, 35);
    message(&mut net, &hand, 37, 36);
    assert_eq!(net.hosts[1].received.len(), 37);
}

/// RFC 9260 6.2: dropped, because they do not fit the window that was announced.
#[test]
fn gaps_do_not_enlarge_the_receive_buffer() {
    let (mut net, hand) = peer();
    for n in 1..=5_000 {
        message(&mut net, &hand, 2 * n, n);
    }
    assert_eq!(net.a(1).receive_buffer(), MIB);
    assert!(net.a(1).stats().dropped_no_buffer > 3_000);
    let budget = net.hosts[1].endpoint.free_buffer_budget();
    assert_eq!(budget, Config::modern().buffer_budget() as usize);
}

#[test]
fn an_application_that_does_not_read_keeps_a_small_buffer() {
    let (mut net, hand) = peer();
    net.hosts[1].reads = false;
    for n in 1..=5_000 {
        message(&mut net, &hand, n, n - 1);
    }
    assert_eq!(net.a(1).receive_buffer(), MIB);
    assert!(net.a(1).stats().dropped_no_buffer > 3_000);
}

/// RFC 9260 6.9 delivers a message in part only if the buffer is too small for it.
#[test]
fn a_large_message_enlarges_the_receive_buffer_within_the_budget() {
    for (budget, whole) in [(1 << 29, true), (2 << 20, false)] {
        let config = Config::modern().to_builder().buffer_budget(budget).build().unwrap();
        let mut net = pair(1, config);
        let hand = Hand::new(1).open(&mut net);
        let chunks = 6_000;
        for n in 1..=chunks {
            let (beginning, end) = (n == 1, n == chunks);
            let chunk = Data { beginning, end, ssn: Ssn(0), ..hand.chunk(n, &PAYLOAD) };
            hand.say(&mut net, &|w| w.data(&chunk).unwrap());
            let spare = net.hosts[1].endpoint.free_buffer_budget();
            assert!(net.a(1).receive_buffer() + spare <= MIB + budget as usize);
        }
        let received = &net.hosts[1].received;
        let bytes: usize = received.iter().map(|piece| piece.payload.len()).sum();
        assert_eq!(bytes, chunks as usize * PAYLOAD.len());
        assert_eq!(received.len() == 1, whole, "{} pieces", received.len());
    }
}

/// A sender that always has data, and a receiver that reads it, until `until`.
fn transfer(net: &mut Net, until: Time) {
    let mut waits = false;
    while net.now < until {
        let writable = |(_, event): &(Time, Event)| matches!(event, Event::Writable);
        if net.hosts[0].events.iter().any(writable) {
            // The path never drains: there is more to send when the application is to write.
            assert!(net.a(0).unsent() > 0, "{} bytes are buffered", net.a(0).buffered());
            waits = false;
        }
        net.hosts[0].events.clear();
        let now = net.now;
        while !waits {
            let sent = net.am(0).send(now, Message::new(StreamId(0), vec![1; 16_384]));
            waits = sent == Err(SendError::WouldBlock);
        }
        net.hosts[1].received.clear();
        net.run(MS(1));
    }
}

#[test]
fn both_buffers_grow_in_a_transfer_and_give_their_memory_back() {
    const LEAST: usize = 128 << 10;
    let config = Config::modern()
        .to_builder()
        .initial_receive_buffer(Some(LEAST as u32))
        .initial_send_buffer(Some(LEAST as u32))
        .receive_buffer(16 << 20)
        .send_buffer(16 << 20)
        .build()
        .unwrap();
    let setup = Setup { delay: MS(50), configs: [config.clone(), config], ..Setup::default() };
    let mut net = setup.build();
    net.establish();
    let budget = net.hosts[0].endpoint.free_buffer_budget();
    let sizes = (net.a(0).send_buffer(), net.a(1).receive_buffer());
    assert_eq!((sizes, budget), ((LEAST, LEAST), 1 << 29));
    let now = net.now;
    transfer(&mut net, now + MS(700));
    let (send, receive) = (net.a(0).send_buffer(), net.a(1).receive_buffer());
    assert!(send > 8 * LEAST && receive > 8 * LEAST, "{send} and {receive}");
    let claimed = [0, 1].map(|h| budget - net.hosts[h].endpoint.free_buffer_budget());
    assert_eq!(claimed, [send - LEAST, receive - LEAST]);
    // The heartbeats of an idle path give the memory back.
    net.run(S(80));
    assert_eq!(net.a(0).buffered(), 0);
    assert_eq!([0, 1].map(|h| net.hosts[h].endpoint.free_buffer_budget()), [budget; 2]);
    assert_eq!(net.a(0).send_buffer(), LEAST);
    // The announced window stays open, and its memory is claimed again when data arrives.
    assert!(net.a(1).receive_buffer() > 8 * LEAST, "{}", net.a(1).receive_buffer());
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(S(1));
    let receive = net.a(1).receive_buffer();
    assert!(receive > 8 * LEAST, "{receive}");
    assert_eq!(budget - net.hosts[1].endpoint.free_buffer_budget(), receive - LEAST);
}
