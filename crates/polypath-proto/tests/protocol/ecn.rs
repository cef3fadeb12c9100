//! Explicit congestion notification: RFC 4960 Appendix A, for each path separately.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::*;
use polypath_proto::wire::Chunk;
use polypath_proto::{Config, ConfigBuilder, Ecn, PathId, Tsn, policy};
use proptest::prelude::*;

fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder().ecn(true)
}

/// Marks every n-th packet with DATA on network 0; the returned cell holds n, and 0 marks none.
fn marks(net: &mut Net) -> Rc<Cell<u32>> {
    let every = Rc::new(Cell::new(0));
    let (each, mut count) = (every.clone(), 0u32);
    net.filter(move |p| {
        count += u32::from(p.has("DATA"));
        let hit = p.has("DATA") && p.net() == 0 && each.get() > 0 && count % each.get() == 0;
        if hit { Fate::Marked } else { Fate::Pass }
    });
    every
}

fn notified(net: &Net, h: usize, path: u8) -> u64 {
    net.a(h).path_stats(PathId(path)).unwrap().congestion_notified
}

#[test]
fn a_mark_halves_the_window_once_and_nothing_is_sent_again() {
    let mut net = established(1, config().build().unwrap());
    let every = marks(&mut net);
    net.send(0, 0, payload(1, 500_000)).unwrap();
    net.run(MS(60));
    let before = net.path(0, 0).window.cwnd;
    assert!(before > 12_000);
    // Mark all packets of one round trip.
    every.set(1);
    net.run(MS(20));
    every.set(0);
    net.drive_until(S(1), |net| notified(net, 0, 0) > 0);
    let window = net.path(0, 0).window;
    assert!(window.ssthresh < before && window.cwnd < before, "{before} {window:?}");
    net.run(S(20));
    assert_eq!((net.a(0).buffered(), notified(&net, 0, 0)), (0, 1));
    assert!(net.a(1).path_stats(PathId(0)).unwrap().congestion_experienced > 1);
    let stats = net.a(0).path_stats(PathId(0)).unwrap();
    assert_eq!((stats.fast_retransmissions, stats.timeouts), (0, 0));
    // The ECNE is repeated only until a CWR has answered it.
    assert!(!net.sent_with(0, "CWR").is_empty());
    let last = net.times(1, "ECNE").into_iter().max().unwrap();
    assert!(last < net.times(1, "SACK").into_iter().max().unwrap() - 50);
}

#[test]
fn only_new_data_may_be_marked() {
    let mut net = established(1, config().build().unwrap());
    net.nth("DATA", &[3], Fate::Drop);
    net.send(0, 0, payload(1, 30_000)).unwrap();
    net.run(S(5));
    let again: Vec<Sent> = net.sent(0).into_iter().filter(|p| p.has("DATA 3")).collect();
    assert_eq!((again[0].ecn, again[1].ecn), (Ecn::Ect0, Ecn::NotEct));
    assert!(net.log.iter().all(|p| p.has("DATA") || p.ecn == Ecn::NotEct));
}

/// New data is sent as ECN-capable whatever else is in its packet, and in packets sent with it.
#[test]
fn new_data_behind_an_answer_may_be_marked() {
    let mut net = established(1, config().build().unwrap());
    let (mut data, mut answers) = (0, 0);
    net.filter(move |p| {
        data += u32::from(p.has("DATA"));
        answers += u32::from(p.has("CWR"));
        match () {
            // The second answer comes when the reduced window is open again.
            () if p.has("CWR") && answers == 1 => Fate::Drop,
            () if p.has("DATA") && data == 40 => Fate::Marked,
            () => Fate::Pass,
        }
    });
    // Two such messages leave room for a CWR in their packet.
    (0..400).for_each(|n| net.send(0, 0, payload(n, 700)).unwrap());
    net.run(S(20));
    let answers: Vec<Sent> =
        net.sent(0).into_iter().filter(|p| p.has("CWR") && p.has("DATA")).collect();
    assert!(!answers.is_empty());
    assert!(net.sent(0).iter().all(|p| !p.has("DATA") || p.ecn == Ecn::Ect0));
}

#[test]
fn the_other_path_keeps_its_window() {
    let config = config().scheduler(&policy::scheduler::CONCURRENT).build().unwrap();
    let mut net = established(2, config);
    let every = marks(&mut net);
    every.set(10);
    net.send(0, 0, payload(1, 900_000)).unwrap();
    net.run(S(20));
    assert!(notified(&net, 0, 0) > 1, "{}", notified(&net, 0, 0));
    assert_eq!((notified(&net, 0, 1), net.a(0).buffered()), (0, 0));
}

#[test]
fn without_the_peer_or_the_wish_nothing_is_marked() {
    for (ours, theirs) in [(true, false), (false, true), (false, false)] {
        let make = |on| Config::rfc9260().to_builder().ecn(on).build().unwrap();
        let configs = [make(ours), make(theirs)];
        let mut net = Setup { configs, ..Setup::default() }.build();
        net.establish();
        marks(&mut net).set(2);
        net.send(0, 0, payload(1, 30_000)).unwrap();
        net.run(S(5));
        assert!(net.log.iter().all(|p| p.ecn == Ecn::NotEct && !p.has("ECNE")));
    }
}

/// Lost ECNEs and CWRs: the ECNE is repeated until a CWR answers it, and reduces the window once.
#[test]
fn echoes_and_answers_may_get_lost() {
    let mut net = established(1, config().build().unwrap());
    let every = marks(&mut net);
    net.nth("ECNE", &[1, 2], Fate::Drop);
    net.nth("CWR", &[1, 3], Fate::Drop);
    every.set(40);
    net.send(0, 0, payload(1, 200_000)).unwrap();
    net.run(S(20));
    assert_eq!(net.a(0).buffered(), 0);
    assert!((1..6).contains(&notified(&net, 0, 0)), "{}", notified(&net, 0, 0));
}

/// RFC 9000 13.4.2.1: on a path that drops ECN-capable packets, data is sent without the codepoint.
#[test]
fn a_path_that_drops_capable_packets_gets_others() {
    for config in [config(), Config::modern().to_builder()] {
        let mut net = established(1, config.build().unwrap());
        net.filter(|p| if p.ecn == Ecn::Ect0 { Fate::Drop } else { Fate::Pass });
        net.send(0, 0, payload(1, 100_000)).unwrap();
        net.run(S(10));
        assert_eq!(net.a(0).buffered(), 0, "{}", net.tail(10));
        let mark = net.log.len();
        net.send(0, 0, payload(2, 100_000)).unwrap();
        net.run(S(10));
        assert_eq!(net.a(0).buffered(), 0, "{}", net.tail(10));
        assert!(net.sent_since(0, mark).iter().all(|p| p.ecn == Ecn::NotEct));
    }
}

/// A path that marks everything is no more congested than one that marks nothing.
#[test]
fn a_path_that_marks_every_packet_gets_none_that_it_can_mark() {
    let mut net = established(1, config().build().unwrap());
    marks(&mut net).set(1);
    net.send(0, 0, payload(1, 300_000)).unwrap();
    net.run(S(20));
    assert_eq!(net.a(0).buffered(), 0);
    let capable = net.sent(0).iter().filter(|p| p.ecn == Ecn::Ect0).count();
    assert!((10..100).contains(&capable), "{capable} packets");
    assert_eq!(net.sent_with(0, "DATA").last().unwrap().ecn, Ecn::NotEct);
    // A path that has delivered packets without a mark stays capable.
    let mut net = established(1, config().build().unwrap());
    let every = marks(&mut net);
    net.send(0, 0, payload(1, 300_000)).unwrap();
    net.run(MS(100));
    every.set(1);
    net.run(S(20));
    assert!(net.sent_with(0, "DATA").iter().all(|p| p.ecn == Ecn::Ect0));
}

/// After a timeout the path may be another one.
#[test]
fn a_timeout_tests_the_path_again() {
    let mut net = established(1, config().build().unwrap());
    net.send(0, 0, payload(1, 300_000)).unwrap();
    net.run(S(2));
    assert_eq!(net.a(0).buffered(), 0);
    net.filter(|p| if p.ecn == Ecn::Ect0 { Fate::Drop } else { Fate::Pass });
    net.send(0, 0, payload(2, 300_000)).unwrap();
    net.run(S(40));
    assert_eq!(net.a(0).buffered(), 0, "{}", net.tail(10));
    let mark = net.log.len();
    net.send(0, 0, payload(3, 30_000)).unwrap();
    net.run(S(10));
    assert!(net.sent_since(0, mark).iter().all(|p| p.ecn == Ecn::NotEct));
}

/// RFC 3168 5.2 makes data packets capable, and no control packets: a COOKIE ECHO is none even with
/// data behind it.
#[test]
fn a_cookie_echo_with_data_is_not_capable() {
    let setup = Setup { configs: [Config::modern(), Config::modern()], ..Setup::default() };
    let mut net = setup.build();
    net.connect(0);
    net.send(0, 0, payload(1, 4_000)).unwrap();
    net.run(S(1));
    let (first, rest): (Vec<_>, Vec<_>) =
        net.sent_with(0, "DATA").into_iter().partition(|p| p.has("COOKIE ECHO"));
    assert_eq!((first.len(), first[0].ecn), (1, Ecn::NotEct));
    assert!(!rest.is_empty() && rest.iter().all(|p| p.ecn == Ecn::Ect0), "{}", net.tail(20));
}

/// A peer that reports a mark on a TSN never sent, repeats an ECNE, or sends a CWR without an ECNE
/// only makes the windows for its own data smaller.
#[test]
fn senseless_echoes_are_dropped() {
    let mut net = pair(1, config().build().unwrap());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.ecn_capable().unwrap());
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    assert!(
        hand.say(&mut net, &|w| w.ecne(Tsn(hand.peer_tsn.wrapping_add(5))).unwrap()).is_empty()
    );
    hand.say(&mut net, &|w| w.cwr(Tsn(7)).unwrap());
    net.send(1, 0, payload(1, 1000)).unwrap();
    let answers = hand.say(&mut net, &|w| {
        (0..300).for_each(|_| w.ecne(Tsn(hand.peer_tsn)).unwrap());
    });
    let answered = answers.iter().flat_map(Sent::parsed).filter(|c| matches!(c, Chunk::Cwr(_)));
    assert_eq!(answered.count(), 1);
    assert_eq!(notified(&net, 1, 0), 1);
    // Without the ECN parameter ECNEs are ignored.
    let mut net = pair(1, config().build().unwrap());
    let hand = Hand::new(1).open(&mut net);
    net.send(1, 0, payload(1, 1000)).unwrap();
    assert!(hand.say(&mut net, &|w| w.ecne(Tsn(hand.peer_tsn)).unwrap()).is_empty());
}

/// ECNEs of one event get one CWR, which answers the latest mark, whatever else is queued: a peer
/// repeats an ECNE that no CWR has reached.
#[test]
fn one_answer_for_all_that_came_together() {
    let mut net = pair(1, config().build().unwrap());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.ecn_capable().unwrap());
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    net.send(1, 0, payload(1, 4000)).unwrap();
    net.run(MS(1));
    let first = hand.peer_tsn;
    let answers = hand.say(&mut net, &|w| {
        w.heartbeat(b"this waits before it").unwrap();
        for later in [0, 2, 1] {
            w.ecne(Tsn(first.wrapping_add(later))).unwrap();
        }
    });
    let answered: Vec<Tsn> = answers
        .iter()
        .flat_map(Sent::parsed)
        .filter_map(|chunk| match chunk {
            Chunk::Cwr(cwr) => Some(cwr.lowest_tsn),
            _ => None,
        })
        .collect();
    assert_eq!(answered, [Tsn(first.wrapping_add(2))]);
}

/// RFC 4960 Appendix A: a receiver repeats the ECNE with each SACK until a CWR arrives. A sender
/// that answered each one would send more CWRs than data in the round trip after a mark; one that
/// answered the first only would leave the peer without an answer if it is lost.
#[test]
fn a_repeated_echo_is_answered_once_unless_the_answer_was_lost() {
    for lost in 0..=1 {
        let mut net = established(1, config().build().unwrap());
        let (mut data, mut answers) = (0u32, 0);
        net.filter(move |p| {
            data += u32::from(p.has("DATA"));
            answers += u32::from(p.has("CWR"));
            match () {
                () if p.has("CWR") && answers <= lost => Fate::Drop,
                () if p.has("DATA") && data == 40 => Fate::Marked,
                () => Fate::Pass,
            }
        });
        let mark = net.log.len();
        net.send(0, 0, payload(1, 400_000)).unwrap();
        net.run(S(5));
        assert_eq!(net.a(0).buffered(), 0);
        assert_eq!(notified(&net, 0, 0), 1);
        let sent = net.sent_since(0, mark).iter().filter(|p| p.has("CWR")).count();
        assert_eq!(sent, 1 + lost as usize, "{lost} lost");
        let echoes = net.sent_since(1, mark).iter().filter(|p| p.has("ECNE")).count();
        assert!(echoes > 2 * sent, "{echoes}");
    }
}

/// A peer that treats an ECNE as malformed drops the chunks after it (usrsctp): no chunk follows an
/// ECNE until a CWR has shown that the peer reads them.
#[test]
fn nothing_stands_behind_an_echo_that_may_not_be_read() {
    for reads in [false, true] {
        let mut net = established(1, config().build().unwrap());
        let mut count = 0u32;
        net.filter(move |p| {
            count += u32::from(p.has("DATA"));
            match () {
                () if p.has("CWR") && !reads => Fate::Drop,
                () if p.has("DATA") && count.is_multiple_of(20) => Fate::Marked,
                () => Fate::Pass,
            }
        });
        for h in 0..2 {
            net.send(h, 0, payload(h as u64, 200_000)).unwrap();
        }
        net.run(S(20));
        let (mut echoes, mut before_data) = (0, 0);
        for packet in net.sent(0) {
            let kinds: Vec<&str> = packet
                .parsed()
                .iter()
                .filter_map(|chunk| match chunk {
                    Chunk::Sack(_) => Some("SACK"),
                    Chunk::Ecne(_) => Some("ECNE"),
                    Chunk::Data(_) => Some("DATA"),
                    _ => None,
                })
                .collect();
            if let Some(at) = kinds.iter().position(|kind| *kind == "ECNE") {
                echoes += 1;
                assert_eq!(kinds[..at], ["SACK"]);
                before_data += u32::from(kinds.len() > at + 1);
            }
        }
        assert!(echoes > 10);
        assert_eq!(before_data > 0, reads, "{before_data} of {echoes}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 40, ..ProptestConfig::default() })]

    /// With marks and losses in any mixture, all data arrives.
    #[test]
    fn data_arrives_with_any_marks(seed in any::<u64>(), loss in 0u64..15, mark in 0u64..100, sizes in prop::collection::vec(1usize..30_000, 1..6)) {
        let mut net = established(2, config().association_max_retrans(100).build().unwrap());
        let mut dice = polypath_proto::Rng::new(&polypath_proto::Seed::from_u64(seed));
        net.filter(move |_| match dice.below(100) {
            n if n < loss => Fate::Drop,
            n if n < loss + mark => Fate::Marked,
            _ => Fate::Pass,
        });
        let mut total = 0;
        for (i, size) in sizes.iter().enumerate() {
            net.send(i % 2, 0, payload(1, *size)).unwrap();
            total += size;
            net.run(MS(200));
        }
        net.run(S(600));
        let got: usize = net.hosts.iter().flat_map(|h| &h.received).map(|r| r.payload.len()).sum();
        prop_assert_eq!(got, total, "{}", net.tail(20));
    }
}
