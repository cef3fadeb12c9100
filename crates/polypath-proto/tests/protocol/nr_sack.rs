//! Non-renegable acknowledgements (draft-natarajan-tsvwg-sctp-nrsack).

use crate::common::*;
use polypath_proto::wire::{GapBlock, chunk_type};
use polypath_proto::*;
use proptest::prelude::*;

fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder().nr_sack(true)
}

/// Host 1, which supports NR-SACK, and a hand that does so if `knows`.
fn open(config: Config, knows: bool) -> (Net, Hand) {
    let mut net = pair(1, config);
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| {
        if knows {
            p.supported_extensions(&[chunk_type::NR_SACK]).unwrap();
        }
    });
    hand.learn(&answers[0]);
    assert!(hand.echo(&mut net)[0].has("COOKIE ACK"));
    (net, hand)
}

/// The same, with this number of 1000-byte chunks from host 1 in flight.
fn sender(knows: bool, chunks: u64) -> (Net, Hand) {
    let (mut net, hand) = open(config().initial_cwnd(20).build().unwrap(), knows);
    for i in 0..chunks {
        net.send(1, 0, payload(i, 1000)).unwrap();
    }
    net.settle();
    (net, hand)
}

fn nr_sack(
    net: &mut Net,
    hand: &Hand,
    n: u32,
    gaps: &[(u16, u16)],
    kept: &[(u16, u16)],
) -> Vec<Sent> {
    let cumulative = Tsn(hand.peer_tsn.wrapping_add(n).wrapping_sub(1));
    let blocks = |list: &[(u16, u16)]| -> Vec<GapBlock> {
        list.iter().map(|&(start, end)| GapBlock { start: start.into(), end: end.into() }).collect()
    };
    let (gaps, kept) = (blocks(gaps), blocks(kept));
    hand.say(net, &|w| {
        let (gaps, kept) = (gaps.iter().copied(), kept.iter().copied());
        w.nr_sack(cumulative, 1 << 20, 0, gaps, kept, [].into_iter()).unwrap();
    })
}

#[test]
fn what_has_arrived_is_reported_as_kept_if_both_offer_it() {
    for (knows, expected) in [(true, "NR-SACK 1 {2-3} {5-5}"), (false, "SACK 1 [2-3] [5-5]")] {
        let (mut net, hand) = open(config().build().unwrap(), knows);
        hand.data(&mut net, 1);
        for n in [3, 4] {
            hand.data(&mut net, n);
        }
        assert_eq!(hand.data(&mut net, 6)[0].text(), expected);
    }
    // Host 1 does not support it: its INIT ACK does not list the chunk.
    let (net, hand) = open(Config::rfc9260(), true);
    let init_ack = net.sent_with(1, "INIT ACK").pop().unwrap();
    assert!(!hand.cookie.is_empty() && !init_ack.bytes.windows(2).any(|b| b == [0x80, 0x08]));
}

#[test]
fn what_is_kept_leaves_the_send_buffer_and_never_returns() {
    let (mut net, hand) = sender(true, 6);
    assert_eq!(net.a(1).buffered(), 6000);
    nr_sack(&mut net, &hand, 0, &[(4, 4)], &[(2, 3)]);
    assert_eq!(net.a(1).buffered(), 4000, "what may still be dropped is held");
    nr_sack(&mut net, &hand, 0, &[], &[(2, 4)]);
    assert_eq!(net.a(1).buffered(), 3000);
    // A SACK without these blocks: the chunks stay acknowledged. After T3-rtx only the others are
    // retransmitted.
    let mark = net.log.len();
    hand.sack(&mut net, 0, &[]);
    net.run(S(2));
    // RFC 9260 7.2.3: only one packet is sent until it is acknowledged.
    hand.sack(&mut net, 4, &[]);
    let again: Vec<u32> = data_numbers(&hand.answers(&net, mark)).concat();
    assert_eq!(again, [1, 5, 6], "{:?}", net.script_since(mark));
    hand.sack(&mut net, 6, &[]);
    assert_eq!((net.a(1).buffered(), net.path(1, 0).in_flight), (0, 0));
}

#[test]
fn a_send_buffer_that_was_full_takes_more() {
    let (mut net, hand) = open(config().send_buffer(4000).build().unwrap(), true);
    for i in 0..4 {
        net.send(1, 0, payload(i, 1000)).unwrap();
    }
    assert_eq!(net.send(1, 0, payload(4, 1000)), Err(SendError::WouldBlock));
    net.settle();
    nr_sack(&mut net, &hand, 0, &[], &[(2, 3)]);
    assert!(net.saw(1, &Event::Writable));
    net.send(1, 0, payload(4, 1000)).unwrap();
}

/// A chunk that arrives while there is room for the missing ones is kept; later ones are dropped if
/// these need their room.
#[test]
fn a_full_receive_buffer_keeps_what_it_has_promised() {
    let (mut net, hand) = open(config().receive_buffer(5000).build().unwrap(), true);
    let large = vec![7; 984];
    let say = |net: &mut Net, n: u32| hand.say(net, &|w| w.data(&hand.chunk(n, &large)).unwrap());
    let seen: Vec<String> = (2..=7).map(|n| say(&mut net, n)[0].text()).collect();
    let expected = ["{2-2}", "{2-3}", "{2-4}", "{2-5}", "[6-6] {2-5}", "[6-6] {2-5}"];
    // All 5000 bytes are used: the last chunk is dropped.
    assert_eq!(seen, expected.map(|gaps| format!("NR-SACK 0 {gaps}")));
    assert_eq!(say(&mut net, 1)[0].text(), "NR-SACK 5");
    assert_eq!(net.hosts[1].received.len(), 5);
}

/// The missing chunk is larger than those received: it is accepted beyond the buffer's limit.
#[test]
fn what_is_missing_is_taken_although_nothing_may_be_dropped() {
    let (mut net, hand) = open(config().receive_buffer(2000).build().unwrap(), true);
    let whole = vec![7; 984];
    for n in [2, 3] {
        hand.say(&mut net, &|w| w.data(&hand.chunk(n, &whole)).unwrap());
    }
    let long = vec![7; 1200];
    let answers = hand.say(&mut net, &|w| w.data(&hand.chunk(1, &long)).unwrap());
    assert_eq!(answers[0].text(), "NR-SACK 2");
    net.a(1).check_invariants().unwrap();
}

/// RFC 9260 3.2: a chunk of a type that was not agreed on ends the processing of its packet.
#[test]
fn out_of_place_it_is_not_looked_at() {
    let (mut net, hand) = sender(false, 3);
    nr_sack(&mut net, &hand, 0, &[], &[(1, 3)]);
    assert_eq!(net.a(1).buffered(), 3000);
    let mut net = pair(1, config().build().unwrap());
    let hand = Hand::new(1);
    assert!(nr_sack(&mut net, &hand, 0, &[], &[(1, 3)]).iter().all(|p| p.has("ABORT")));
}

#[test]
fn what_was_never_sent_cannot_be_kept() {
    for (gaps, kept) in [(&[][..], &[(2, 4)][..]), (&[(2, 9)], &[(2, 2)])] {
        let (mut net, hand) = sender(true, 3);
        assert!(nr_sack(&mut net, &hand, 0, gaps, kept)[0].has("ABORT"), "{}", net.tail(3));
    }
}

/// Chunks reported as kept must not be dropped; chunks that complete no message still fill the
/// buffer up to its limit only.
#[test]
fn promises_do_not_lift_the_limit_of_the_buffer() {
    let (mut net, hand) = open(config().build().unwrap(), true);
    net.hosts[1].reads = false;
    let text = [7; 1400];
    // Messages that wait for the first one of their stream, above a gap: reported as kept on
    // arrival.
    for n in 4..=600 {
        let chunk = wire::Data { ssn: Ssn(n as u16), ..hand.chunk(n, &text) };
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    // The gap is filled with fragments of messages that are not their stream's next; the last never
    // ends.
    for n in [1, 2, 3].into_iter().chain(601..3000) {
        let chunk = wire::Data {
            ssn: Ssn(5000),
            beginning: n == 1 || n == 601,
            end: n == 3,
            ..hand.chunk(n, &text)
        };
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    let budget = net.a(1).budget();
    assert!(budget.received <= 2 << 20, "{} bytes", budget.received);
    assert!(net.a(1).stats().dropped_no_buffer > 0);
    assert!(net.a(1).is_established());
}

/// A peer keeps every chunk but never acknowledges the first: the bookkeeping for the others still
/// counts against the send buffer.
#[test]
fn chunks_that_the_receiver_keeps_still_fill_the_send_buffer() {
    let (mut net, hand) = open(config().send_buffer(100_000).build().unwrap(), true);
    let (mut last, mut quiet) = (0, 0);
    while quiet < 3 {
        while net.a(1).send_room() > 0 {
            net.send(1, 0, payload(1, 100)).unwrap();
        }
        let highest = net.sent(1).iter().flat_map(|p| p.data()).map(|d| d.n).max().unwrap_or(last);
        quiet = if highest > last { 0 } else { quiet + 1 };
        last = highest.max(last);
        net.log.clear();
        nr_sack(&mut net, &hand, 0, &[], &[(2, last as u16)]);
        let budget = net.a(1).budget();
        assert!(budget.sent <= 200_000, "{} bytes", budget.sent);
    }
    assert!((200..2000).contains(&last), "{last} chunks were sent");
    assert!(net.a(1).is_established());
}

proptest! {
    /// Lists in any order, overlapping, repeated or late do no harm, and freed data is never needed
    /// again.
    #[test]
    fn any_lists_do_no_harm(sacks in prop::collection::vec(
        (0u32..8, prop::collection::vec((0u16..12, 0u16..12), 0..5), prop::collection::vec((0u16..12, 0u16..12), 0..5)),
        1..12,
    )) {
        let (mut net, hand) = sender(true, 8);
        for (n, gaps, kept) in sacks {
            let fits = |list: Vec<(u16, u16)>| -> Vec<(u16, u16)> {
                list.into_iter().filter(|g| u32::from(g.1) + n <= 8).collect()
            };
            nr_sack(&mut net, &hand, n, &fits(gaps), &fits(kept));
            if net.closed(1).is_some() {
                return Ok(());
            }
            net.a(1).check_invariants().unwrap();
        }
        net.run(S(3));
        net.a(1).check_invariants().unwrap();
        hand.sack(&mut net, 8, &[]);
        prop_assert_eq!(net.a(1).buffered(), 0);
    }
}
