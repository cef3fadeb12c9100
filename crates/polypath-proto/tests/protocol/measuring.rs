//! RTT samples from retransmissions: the timestamp and retransmission flag extensions, agreed on in
//! the handshake (Caro 2006, retransmission policies, 4.2).

use std::time::Duration;

use crate::common::*;
use polypath_proto::policy::{Entry, RttSampling, retransmission, rtt_sampling};
use polypath_proto::wire::{Chunk, Parameter, ParameterWriter, Sack, Timestamp};
use polypath_proto::*;

type Sampling = &'static Entry<dyn RttSampling>;
const KARN: Sampling = &rtt_sampling::KARN;
const TIMESTAMPS: Sampling = &rtt_sampling::TIMESTAMPS;
const FLAG: Sampling = &rtt_sampling::RETRANSMISSION_FLAG;

fn config(sampling: Sampling) -> Config {
    Config::rfc9260().to_builder().rtt_sampling(sampling).heartbeat_interval(None).build().unwrap()
}

/// Two hosts with these policies and established paths.
fn hosts(paths: u8, samplings: [Sampling; 2]) -> Net {
    let mut net = Setup { paths, configs: samplings.map(config), ..Setup::default() }.build();
    net.establish();
    net
}

/// The TIMESTAMP chunk of a packet, which must precede SACK and DATA.
fn timestamp(packet: &Sent) -> Option<Timestamp> {
    let chunks = packet.parsed();
    let at = chunks.iter().position(|c| matches!(c, Chunk::Timestamp(_)))?;
    let later = chunks.iter().position(|c| matches!(c, Chunk::Data(_) | Chunk::Sack(_)));
    assert!(later.is_none_or(|later| at < later), "{}", packet.text());
    match chunks[at] {
        Chunk::Timestamp(t) => Some(t),
        _ => None,
    }
}

fn samples(net: &Net, h: usize, path: u8) -> u64 {
    net.a(h).path_stats(PathId(path)).unwrap().rtt_samples
}

/// R bits of the DATA chunks in a packet.
fn flagged(packet: &Sent) -> Vec<bool> {
    let chunks = packet.parsed();
    let flags = chunks.iter().map(|c| match c {
        Chunk::Data(d) => Some(d.retransmission),
        _ => None,
    });
    flags.flatten().collect()
}

fn sack_flags(packet: &Sent) -> Option<u8> {
    packet.parsed().iter().find_map(|c| match c {
        Chunk::Sack(s) => Some(s.flags),
        _ => None,
    })
}

/// Types of the extension parameters in the first INIT or INIT ACK of host `h`.
fn offers(net: &Net, h: usize) -> Vec<u16> {
    let sent = net.sent(h);
    let offer = |p: &Sent| {
        p.parsed().iter().find_map(|c| match c {
            Chunk::Init(init) | Chunk::InitAck(init) => {
                let types = init.parameters.iter().flatten().map(|p| p.ty());
                Some(types.filter(|ty| *ty >> 8 == 0xbe).collect::<Vec<_>>())
            }
            _ => None,
        })
    };
    sent.iter().find_map(offer).unwrap()
}

// The handshake.

#[test]
fn extensions_are_used_where_both_sides_offer_the_same() {
    for (samplings, offered, timestamps, flags) in [
        ([TIMESTAMPS, TIMESTAMPS], [vec![0xbe01], vec![0xbe01]], true, false),
        ([FLAG, FLAG], [vec![0xbe02], vec![0xbe02]], false, true),
        ([TIMESTAMPS, KARN], [vec![0xbe01], vec![]], false, false),
        ([KARN, TIMESTAMPS], [vec![], vec![]], false, false),
        ([FLAG, KARN], [vec![0xbe02], vec![]], false, false),
        ([KARN, FLAG], [vec![], vec![]], false, false),
        ([TIMESTAMPS, FLAG], [vec![0xbe01], vec![]], false, false),
        ([KARN, KARN], [vec![], vec![]], false, false),
    ] {
        let what = format!("{samplings:?}");
        let mut net = hosts(1, samplings);
        assert_eq!([offers(&net, 0), offers(&net, 1)], offered, "{what}");
        net.nth("DATA", &[1], Fate::Drop);
        for h in 0..2 {
            net.send(h, 0, payload(1, 3000)).unwrap();
        }
        net.run(S(3));
        let seen = |h: usize, what: &str| net.sent_with(h, what);
        for h in 0..2 {
            assert_eq!(net.hosts[h].received.len(), 1, "{what}");
            for packet in seen(h, "DATA").iter().chain(&seen(h, "SACK")) {
                assert_eq!(timestamp(packet).is_some(), timestamps, "{what}: {}", packet.text());
            }
            // A TIMESTAMP is sent only with DATA or a SACK.
            for packet in seen(h, "TIMESTAMP") {
                assert!(packet.has("DATA") || packet.has("SACK"), "{}", packet.text());
            }
            let any = seen(h, "DATA").iter().any(|p| flagged(p).contains(&true));
            assert_eq!(any, flags && h == 0, "{what}");
            let any = seen(h, "SACK").iter().any(|p| sack_flags(p) != Some(0));
            assert_eq!(any, flags && h == 1, "{what}");
        }
    }
}

/// RFC 9260 3.2, 3.2.1: a peer silently skips what it does not know; Karn's rule applies then.
#[test]
fn a_peer_that_does_not_know_them_does_without() {
    for sampling in [TIMESTAMPS, FLAG] {
        // Neither the hand's INIT ACK nor its INIT offers an extension.
        for calls in [false, true] {
            let mut net = pair(1, config(sampling));
            let hand = Hand::new(1);
            let hand = if calls { hand.open(&mut net) } else { hand.accept(&mut net) };
            assert_eq!(offers(&net, 1).is_empty(), calls, "an INIT ACK answers what was offered");
            let before = samples(&net, 1, 0);
            net.send(1, 0, payload(1, 1452)).unwrap();
            net.run(MS(2500));
            let sent = net.sent_with(1, "DATA 1");
            assert_eq!(sent.len(), 2, "{}", net.tail(9));
            assert!(sent.iter().all(|p| p.bytes.len() == 1480 && timestamp(p).is_none()));
            assert_eq!([flagged(&sent[0]), flagged(&sent[1])], [[false], [false]]);
            hand.sack(&mut net, 1, &[]);
            assert_eq!(samples(&net, 1, 0), before, "Karn's rule");
        }
    }
}

/// A host that did not agree drops the chunk and ignores the bit.
#[test]
fn who_did_not_agree_skips_timestamps_and_ignores_the_flag() {
    let karn = config(KARN).to_builder().first_sack_at_once(false).build().unwrap();
    let mut net = pair(1, karn);
    let hand = Hand::new(1).open(&mut net);
    let dropped = net.a(1).stats().dropped;
    let chunk = wire::Data { retransmission: true, ..hand.chunk(1, b"data") };
    let answers = hand.say(&mut net, &|w| {
        w.timestamp(Timestamp { sent: 7, echo: Some(9) }).unwrap();
        w.data(&chunk).unwrap();
    });
    assert_eq!(answers.len(), 0, "a delayed SACK, for one packet: {}", net.tail(3));
    net.run(MS(300));
    let sack = net.sent_with(1, "SACK 1").remove(0);
    assert_eq!((timestamp(&sack), sack_flags(&sack)), (None, Some(0)));
    assert_eq!(net.a(1).stats().dropped, dropped + 1);
    assert_eq!(net.a(1).stats().bad_echoes, 0);
}

/// Both sides connect at once, and a restarted endpoint connects again (RFC 9260 5.2).
#[test]
fn collisions_and_restarts_agree_anew() {
    let setup = Setup {
        listens: [true; 2],
        configs: [config(TIMESTAMPS), config(TIMESTAMPS)],
        ..Setup::default()
    };
    let mut net = setup.build();
    net.connect(0);
    net.connect(1);
    net.drive_until(S(10), Net::all_active);
    for h in 0..2 {
        net.send(h, 0, payload(1, 10_000)).unwrap();
    }
    net.run(S(1));
    for h in 0..2 {
        assert_eq!(net.hosts[h].received.len(), 1);
        assert!(net.sent_with(h, "DATA").iter().all(|p| timestamp(p).is_some()));
    }
    // Host 0 restarts without timestamps.
    let plain = Setup { seed: 2, ..Setup::default() };
    net.hosts[0] = plain.host(0, &config(KARN), true);
    net.log.clear();
    net.connect(0);
    net.drive_until(S(10), Net::all_active);
    assert!(net.saw(1, &Event::Restarted));
    for h in 0..2 {
        net.send(h, 0, payload(2, 10_000)).unwrap();
    }
    net.run(S(1));
    assert_eq!(net.log.iter().filter(|p| p.has("TIMESTAMP")).count(), 0);
    assert_eq!(net.path(1, 0).max_chunk, 1468);
}

// Timestamps.

/// Paper, 4.3.2: "TS adds a 12-byte overhead into each packet": 1440 bytes of data in 1500.
#[test]
fn a_packet_with_a_timestamp_fits_the_path() {
    for (sampling, data) in [(TIMESTAMPS, 1440), (KARN, 1452), (FLAG, 1452)] {
        let mut net = hosts(1, [sampling; 2]);
        assert_eq!(net.path(0, 0).max_chunk, data + 16);
        net.log.clear();
        net.send(0, 0, payload(1, 100_000)).unwrap();
        net.run(S(3));
        let sent = net.sent_with(0, "DATA");
        // The IPv4 header takes 20 bytes.
        assert!(sent.iter().all(|p| p.bytes.len() <= 1480), "{sampling:?}");
        let full = sent.iter().filter(|p| p.bytes.len() == 1480).count();
        assert_eq!(full, 100_000 / data as usize, "{sampling:?}");
        let extra = if data == 1440 { 12 } else { 0 };
        // A SACK without gap ack blocks: common header, SACK.
        assert!(net.sent_with(1, "SACK").iter().all(|p| p.bytes.len() == 28 + extra));
    }
}

/// PMDCS is smaller from the first packet on, on paths known before the handshake and on those
/// learned in it.
#[test]
fn windows_are_of_the_smaller_chunks() {
    let net = hosts(3, [TIMESTAMPS; 2]);
    for h in 0..2 {
        for p in 0..3 {
            let path = net.path(h, p);
            // RFC 9260 7.2.1: min(4 * PMDCS, max(2 * PMDCS, 4404)).
            assert_eq!((path.max_chunk, path.window.cwnd), (1456, 4404));
        }
    }
}

/// Paper, 4.2: "successful retransmissions can be used to update the RTT estimate and maintain a
/// more accurate RTO value".
#[test]
fn a_retransmission_that_is_answered_measures() {
    for (sampling, measures) in [(KARN, false), (TIMESTAMPS, true), (FLAG, true)] {
        let mut net = hosts(1, [sampling; 2]);
        let (rto, before) = (net.path(0, 0).rto, samples(&net, 0, 0));
        net.drop_once(&["DATA 1"]);
        net.send(0, 0, payload(1, 1000)).unwrap();
        net.drive_until(S(2), |net| net.a(0).path_stats(PathId(0)).unwrap().timeouts == 1);
        assert_eq!(net.path(0, 0).rto, rto * 2);
        net.run(MS(500));
        assert_eq!(samples(&net, 0, 0) - before, u64::from(measures), "{sampling:?}");
        let expected = if measures { rto } else { rto * 2 };
        assert_eq!(net.path(0, 0).rto, expected, "{sampling:?}");
    }
}

/// A late original is not mistaken for its retransmission.
#[test]
fn a_spurious_retransmission_measures_nothing_wrong() {
    for sampling in [TIMESTAMPS, FLAG] {
        let config = config(sampling).to_builder().sack_every(1).build().unwrap();
        let mut net = established(1, config);
        let before = samples(&net, 0, 0);
        let srtt = net.path(0, 0).srtt;
        // The original takes longer than the RTO; the retransmission is sent 5 ms before it
        // arrives.
        net.nth("DATA", &[1], Fate::Late(MS(995)));
        net.send(0, 0, payload(1, 1000)).unwrap();
        net.run(S(3));
        assert_eq!(net.sent_with(0, "DATA 1").len(), 2);
        assert_eq!(samples(&net, 0, 0), before, "{sampling:?}");
        assert_eq!(net.path(0, 0).srtt, srtt, "{sampling:?}");
    }
}

/// A retransmission of data that had arrived, but whose SACK was lost, gives a sample too: the
/// second SACK answers it.
#[test]
fn a_retransmission_after_a_lost_sack_measures() {
    for (sampling, more) in [(KARN, 0), (TIMESTAMPS, 1), (FLAG, 1)] {
        let mut net = hosts(1, [sampling; 2]);
        let before = samples(&net, 0, 0);
        net.drop_once(&["SACK"]);
        net.send(0, 0, payload(1, 1000)).unwrap();
        net.run(S(3));
        assert_eq!(net.sent_with(0, "DATA 1").len(), 2);
        assert_eq!(samples(&net, 0, 0) - before, more, "{sampling:?}");
        let srtt = net.path(0, 0).srtt;
        assert!(srtt.is_none_or(|srtt| srtt == MS(20)), "{srtt:?}");
    }
}

/// A SACK echoes the first packet since the last SACK, so its delay is part of the sample.
#[test]
fn the_echo_is_of_the_first_packet_that_waits_for_the_sack() {
    let mut net = hosts(1, [TIMESTAMPS; 2]);
    // The first chunk is acknowledged at once.
    net.send(0, 0, payload(9, 1000)).unwrap();
    net.run(MS(300));
    net.log.clear();
    for n in 0..3 {
        net.send(0, 0, payload(n, 1000)).unwrap();
        net.run(MS(3));
    }
    net.run(MS(500));
    let stamps: Vec<u32> =
        net.sent_with(0, "DATA").iter().map(|p| timestamp(p).unwrap().sent).collect();
    assert_eq!([stamps[1] - stamps[0], stamps[2] - stamps[1]], [3000, 3000], "microseconds");
    let echoes: Vec<u32> =
        net.sent_with(1, "SACK").iter().map(|p| timestamp(p).unwrap().echo.unwrap()).collect();
    assert_eq!(echoes, [stamps[0], stamps[2]]);
}

/// Every chunk sent at the echoed instant gives a sample, several per round trip (ns-2 does so
/// too).
#[test]
fn all_chunks_of_an_instant_measure() {
    let mut net = hosts(1, [TIMESTAMPS; 2]);
    let before = samples(&net, 0, 0);
    net.send(0, 0, payload(1, 3000)).unwrap();
    net.run(MS(500));
    // Three chunks are sent at once; the first SACK acknowledges two, the second one the third.
    assert_eq!(samples(&net, 0, 0) - before, 3);
}

// Peers that send wrong values.

/// Host 1 with an association to a hand that agreed to this extension.
fn agreed(sampling: Sampling) -> (Net, Hand) {
    let mut net = pair(1, config(sampling));
    let mut hand = Hand::new(1);
    let offer: &dyn Fn(&mut ParameterWriter<'_>) = match sampling.name {
        "timestamps" => &|p| p.timestamps().unwrap(),
        _ => &|p| p.retransmission_flag().unwrap(),
    };
    let answers = hand.init(&mut net, offer);
    hand.learn(&answers[0]);
    assert!(hand.echo(&mut net)[0].has("COOKIE ACK"));
    (net, hand)
}

/// Sends a SACK bundled with a TIMESTAMP.
fn stamped_sack(net: &mut Net, hand: &Hand, cumulative: u32, echo: Option<u32>) {
    let cumulative = Tsn(hand.peer_tsn.wrapping_add(cumulative).wrapping_sub(1));
    hand.say(net, &|w| {
        w.timestamp(Timestamp { sent: 1, echo }).unwrap();
        w.sack(cumulative, 1 << 20, 0, [].into_iter(), [].into_iter()).unwrap();
    });
}

#[test]
fn an_echo_that_is_none_gives_no_sample() {
    // Microseconds between the echo and the time at which the chunk was sent; the number of bad
    // echoes counted, or `None` if the echo is valid.
    for (offset, bad) in [
        (0i64, None),
        (1, Some(1)),
        (20_000, Some(1)),
        (1 << 31, Some(1)),
        (-1, Some(0)),
        (-10_000_000, Some(1)),
    ] {
        let (mut net, hand) = agreed(TIMESTAMPS);
        // Send a packet first, so that an echo before the second packet may still be after the
        // first.
        for n in 1..=2 {
            net.send(1, 0, payload(n, 100)).unwrap();
            net.run(MS(40));
            let sent = timestamp(net.sent_with(1, "DATA").last().unwrap()).unwrap().sent;
            let echo = if n == 1 { sent } else { sent.wrapping_add(offset as u32) };
            stamped_sack(&mut net, &hand, n as u32, Some(echo));
        }
        let expected = if bad.is_none() { 2 } else { 1 };
        assert_eq!(samples(&net, 1, 0), expected, "{offset}");
        assert_eq!(net.a(1).stats().bad_echoes, bad.unwrap_or(0), "{offset}");
        assert!(net.path(1, 0).srtt.unwrap() <= MS(40));
        assert_eq!(net.path(1, 0).in_flight, 0);
    }
}

#[test]
fn a_sack_without_its_echo_gives_no_sample() {
    let (mut net, hand) = agreed(TIMESTAMPS);
    net.send(1, 0, payload(1, 100)).unwrap();
    stamped_sack(&mut net, &hand, 1, None);
    net.send(1, 0, payload(2, 100)).unwrap();
    hand.sack(&mut net, 2, &[]);
    assert_eq!((samples(&net, 1, 0), net.a(1).stats().bad_echoes), (0, 0));
    // An echo of a packet other than the acknowledged one.
    let old = timestamp(&net.sent_with(1, "DATA")[0]).unwrap().sent;
    net.run(MS(10));
    net.send(1, 0, payload(3, 100)).unwrap();
    stamped_sack(&mut net, &hand, 3, Some(old));
    assert_eq!((samples(&net, 1, 0), net.a(1).stats().bad_echoes), (0, 0));
}

/// Only the packet's first TIMESTAMP counts, and one that is too short is skipped.
#[test]
fn odd_timestamps_do_no_harm() {
    let (mut net, hand) = agreed(TIMESTAMPS);
    net.send(1, 0, payload(1, 100)).unwrap();
    net.run(MS(20));
    let sent = timestamp(&net.sent_with(1, "DATA")[0]).unwrap().sent;
    let cumulative = Tsn(hand.peer_tsn);
    hand.say(&mut net, &|w| {
        w.raw_chunk(&[190, 1, 0, 8, 0, 0, 0, 0]).unwrap();
        w.timestamp(Timestamp { sent: 1, echo: Some(sent) }).unwrap();
        w.timestamp(Timestamp { sent: 1, echo: Some(sent.wrapping_add(7)) }).unwrap();
        w.sack(cumulative, 1 << 20, 0, [].into_iter(), [].into_iter()).unwrap();
    });
    assert_eq!((samples(&net, 1, 0), net.a(1).stats().bad_echoes), (1, 0));
    assert_eq!(net.path(1, 0).srtt, Some(MS(20)));
}

// The retransmission flag.

/// A packet with a retransmission is acknowledged at once, with the flag; the next SACK has no
/// flag.
#[test]
fn a_retransmission_is_answered_at_once_with_the_flag() {
    let (mut net, hand) = agreed(FLAG);
    let sack = |net: &mut Net, n: u32, retransmission: bool| {
        let chunk = wire::Data { retransmission, ..hand.chunk(n, b"data") };
        hand.say(net, &|w| w.data(&chunk).unwrap()).first().and_then(sack_flags)
    };
    assert_eq!(sack(&mut net, 1, false), Some(0), "the first");
    assert_eq!(sack(&mut net, 2, false), None, "delayed");
    assert_eq!(sack(&mut net, 3, true), Some(Sack::RETRANSMISSION));
    assert_eq!(sack(&mut net, 4, false), None, "delayed");
    assert_eq!(sack(&mut net, 5, false), Some(0), "every second packet");
}

/// The host sends chunk 1, times out and retransmits it; the hand acknowledges it after `wait`,
/// with these flags. Returns the number of samples and the RTO.
fn answered_after(net: &mut Net, hand: &Hand, wait: Duration, flags: u8) -> (u64, Duration) {
    net.send(1, 0, payload(1, 100)).unwrap();
    net.drive_until(S(2), |net| net.a(1).path_stats(PathId(0)).unwrap().timeouts == 1);
    net.run(wait);
    let cumulative = Tsn(hand.peer_tsn);
    hand.say(net, &|w| {
        w.sack(cumulative, 1 << 20, flags, [].into_iter(), [].into_iter()).unwrap();
    });
    (samples(net, 1, 0), net.path(1, 0).rto)
}

#[test]
fn only_a_sack_with_the_flag_measures_a_retransmission() {
    for (flags, sampled) in [(Sack::RETRANSMISSION, 1), (0, 0), (!Sack::RETRANSMISSION, 0)] {
        let (mut net, hand) = agreed(FLAG);
        let (samples, rto) = answered_after(&mut net, &hand, MS(100), flags);
        assert_eq!(samples, sampled, "flags {flags:#x}");
        assert_eq!(rto, if sampled == 1 { S(1) } else { S(2) }, "flags {flags:#x}");
    }
}

/// Without agreement the bit in a SACK is ignored.
#[test]
fn the_flag_of_a_peer_that_did_not_agree_says_nothing() {
    let mut net = pair(1, config(FLAG));
    let hand = Hand::new(1).open(&mut net);
    let answered = answered_after(&mut net, &hand, MS(100), Sack::RETRANSMISSION);
    assert_eq!(answered, (0, S(2)));
}

/// A parameter of a known type counts as an offer even if it has a value.
#[test]
fn parameters_of_the_wrong_length_offer_nothing_less() {
    let mut net = pair(1, config(TIMESTAMPS));
    let mut hand = Hand::new(1);
    // A value where none is expected, and an offer of the other extension.
    let answers = hand.init(&mut net, &|p| {
        p.retransmission_flag().unwrap();
        p.typed(Parameter::Timestamps.ty(), &[1, 2, 3]).unwrap();
        p.timestamps().unwrap();
    });
    hand.learn(&answers[0]);
    assert_eq!(offers(&net, 1), [0xbe01]);
    assert!(hand.echo(&mut net)[0].has("COOKIE ACK"));
}

/// Pairs of full HEARTBEATs measure the bandwidth (Qiao 2008, 5.2). If a path does not answer them,
/// they may be what fills it: it is then probed with small ones (RFC 9260 8.3), and pairs become
/// rare.
#[test]
fn a_path_that_does_not_answer_gets_small_heartbeats() {
    let config = Config::rfc9260()
        .to_builder()
        .retransmission(&retransmission::RECEIVE_BUFFER)
        .heartbeat_interval(Some(MS(50)))
        .rto_max(S(2))
        .association_max_retrans(1000)
        .build()
        .unwrap();
    let mut net = established(2, config);
    net.run(S(5));
    let full = |p: &Sent| p.net() == 1 && p.has("HEARTBEAT") && p.bytes.len() > 1400;
    let small = |p: &Sent| p.net() == 1 && p.has("HEARTBEAT") && p.bytes.len() < 100;
    assert!(net.sent(0).iter().filter(|p| full(p)).count() >= 2);
    net.cuts.insert(1);
    let mark = net.log.len();
    net.run(S(100));
    let sent = net.sent_since(0, mark);
    assert!(sent.iter().filter(|p| full(p)).count() <= 2, "the one that shows it");
    assert!(sent.iter().filter(|p| small(p)).count() > 20);
    // The path works again and is measured again.
    net.cuts.clear();
    let mark = net.log.len();
    net.run(S(10));
    assert_eq!(net.states(0)[1], PathState::Active);
    assert!(net.sent_since(0, mark).iter().filter(|p| full(p)).count() >= 2);
}
