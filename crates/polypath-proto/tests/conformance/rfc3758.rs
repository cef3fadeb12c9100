//! RFC 3758, Partial Reliability: the requirements with MUST.

use bytes::Bytes;

use crate::bytes::{chunk, chunks, elements, parameters};
use crate::common::*;
use polypath_proto::policy::Window;
use polypath_proto::wire::{Data, PacketWriter, ParameterWriter, SkippedStream, cause_code};
use polypath_proto::*;

/// User data of a DATA chunk that fills a packet; `PMDCS`: the bytes that this chunk counts.
const FULL: usize = 1452;
const PMDCS: u32 = 1468;
const FORWARD_TSN_SUPPORTED: [u8; 4] = [0xc0, 0, 0, 4];

fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder().partial_reliability(true).heartbeat_interval(None)
}

fn offers(p: &mut ParameterWriter<'_>) {
    p.forward_tsn_supported().unwrap();
}

/// Host 1 and a hand-built peer whose INIT has these parameters.
fn opened(config: ConfigBuilder, offers: fn(&mut ParameterWriter<'_>)) -> (Net, Hand) {
    let mut net = pair(1, config.build().unwrap());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &offers);
    hand.learn(&answers[0]);
    assert!(hand.echo(&mut net)[0].has("COOKIE ACK"));
    (net, hand)
}

/// Both sides offer partial reliability, and host 1 sends.
fn sender(config: ConfigBuilder) -> (Net, Hand) {
    opened(config, offers)
}

/// Both sides offer partial reliability, and host 1 receives; its first SACK is delayed.
fn receiver() -> (Net, Hand) {
    opened(config().first_sack_at_once(false), offers)
}

fn message(stream: u16, len: usize, reliability: Reliability) -> Message {
    Message { reliability, ..Message::new(StreamId(stream), payload(stream.into(), len)) }
}

const ONCE: Reliability = Reliability::Retransmissions(0);

/// The FORWARD TSN chunks in these packets.
fn forwards(packets: &[Sent]) -> Vec<&str> {
    let said = packets.iter().flat_map(|p| &p.chunks);
    said.filter(|c| c.name == "FORWARD TSN").map(|c| c.text.as_str()).collect()
}

/// Sends a FORWARD TSN up to the peer's `n`-th chunk; returns the answers.
fn forward(net: &mut Net, hand: &Hand, n: u32, streams: &[(u16, u16)]) -> Vec<Sent> {
    hand.say(net, &|w: &mut PacketWriter<'_>| {
        let list = streams.iter();
        let list =
            list.map(|&(stream, ssn)| SkippedStream { stream: StreamId(stream), ssn: Ssn(ssn) });
        w.forward_tsn(Tsn(hand.tsn.wrapping_add(n).wrapping_sub(1)), list).unwrap();
    })
}

/// Sends the peer's `n`-th chunk: a message, or a part of one.
fn say(
    net: &mut Net,
    hand: &Hand,
    n: u32,
    stream: u16,
    ssn: u16,
    parts: (bool, bool),
) -> Vec<Sent> {
    let payload = n.to_string();
    let data = Data {
        stream: StreamId(stream),
        ssn: Ssn(ssn),
        beginning: parts.0,
        end: parts.1,
        ..hand.chunk(n, payload.as_bytes())
    };
    hand.say(net, &|w| w.data(&data).unwrap())
}

const WHOLE: (bool, bool) = (true, true);

/// The messages that host 1 has delivered.
fn delivered(net: &Net) -> Vec<&str> {
    net.hosts[1].received.iter().map(|r| std::str::from_utf8(&r.payload).unwrap()).collect()
}

fn window(net: &Net) -> Window {
    net.path(1, 0).window
}

/// Host 1 reports a FORWARD TSN as an unknown chunk, and it skips nothing.
fn reports_forward_tsn(net: &mut Net, hand: &Hand) {
    let answers = forward(net, hand, 1, &[(0, 0)]);
    assert!(answers[0].has("ERROR"), "{}", net.tail(3));
    assert_eq!(answers[0].causes(), [cause_code::UNRECOGNIZED_CHUNK_TYPE]);
    assert!(hand.data(net, 1)[0].has("SACK 1"));
    assert_eq!(net.hosts[hand.host].received.len(), 1);
}

/// A message that may be sent once is lost: it is retransmitted, and no FORWARD TSN is sent.
fn sends_reliably(net: &mut Net, host: usize) {
    net.send_message(host, message(3, 100, ONCE)).unwrap();
    net.run(S(4));
    let sent = net.sent(host);
    assert_eq!(sent.iter().filter(|p| p.has("DATA 1")).count(), 3, "{}", net.tail(9));
    assert_eq!(forwards(&sent), [""; 0]);
}

#[test]
fn s3_2_r2_r3_a_forward_tsn_lists_the_ordered_messages_alone() {
    let (mut net, _) = sender(config());
    for (stream, unordered) in [(5, false), (6, true), (5, false), (7, false)] {
        let message = Message { unordered, ..message(stream, 100, ONCE) };
        net.send_message(1, message).unwrap();
    }
    net.run(S(2));
    let sent = net.sent(1);
    let found = forwards(&sent);
    assert!(
        !found.is_empty() && found.iter().all(|f| *f == "FORWARD TSN 4 [5:1] [7:0]"),
        "{found:?}"
    );
}

/// Host 0 opens an association without the parameter; the peer's INIT ACK has it.
#[test]
fn s3_3_1_r1_without_the_parameter_in_its_init_an_endpoint_reports_forward_tsn() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    assert!(parameters(&chunk(&net.log[0].bytes, 1)).iter().all(|p| p.ty != 0xc000));
    hand.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            offers(p);
            p.state_cookie(b"a cookie of ours")
        })
        .unwrap();
    });
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    reports_forward_tsn(&mut net, &hand);
}

#[test]
fn s3_3_2_r1_an_init_ack_reports_the_unknown_parameter() {
    let mut net = pair(1, Config::rfc9260());
    let answers = Hand::new(1).init(&mut net, &offers);
    let list = parameters(&chunk(&answers[0].bytes, 2));
    assert!(list.iter().all(|p| p.ty != 0xc000));
    let reported = list.iter().find(|p| p.ty == 8).map(|p| p.value.clone());
    assert_eq!(reported.as_deref(), Some(&FORWARD_TSN_SUPPORTED[..]));
}

#[test]
fn s3_3_2_r2_an_error_with_the_cookie_echo_reports_the_unknown_parameter() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    let answers = hand.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            offers(p);
            p.state_cookie(b"a cookie of ours")
        })
        .unwrap();
    });
    assert_eq!(chunks(&answers[0].bytes).iter().map(|c| c.ty).collect::<Vec<_>>(), [10, 9]);
    let causes = elements(&chunk(&answers[0].bytes, 9).value);
    assert_eq!((causes[0].ty, &causes[0].value[..]), (8, &FORWARD_TSN_SUPPORTED[..]));
}

#[test]
fn s3_3_2_r3_without_the_parameter_in_its_init_ack_an_endpoint_reports_forward_tsn() {
    let (mut net, hand) = opened(Config::rfc9260().to_builder(), offers);
    reports_forward_tsn(&mut net, &hand);
}

#[test]
fn s3_3_2_r4_no_forward_tsn_goes_to_a_peer_whose_init_had_no_parameter() {
    let (mut net, _) = opened(config(), |_| {});
    sends_reliably(&mut net, 1);
}

/// Host 0 offers partial reliability, and the INIT ACK reports the parameter as unknown.
#[test]
fn s3_3_3_r1_r2_after_a_report_of_the_parameter_everything_is_reliable() {
    let mut net = pair(1, config().build().unwrap());
    let hand = Hand::new(0).be_called(&mut net);
    assert!(parameters(&chunk(&net.log[0].bytes, 1)).iter().any(|p| p.ty == 0xc000));
    let answers = hand.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            p.unrecognized_parameter(&FORWARD_TSN_SUPPORTED)?;
            p.state_cookie(b"a cookie of ours")
        })
        .unwrap();
    });
    assert!(answers[0].has("COOKIE ECHO"));
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    assert!(net.a(0).is_established());
    sends_reliably(&mut net, 0);
}

/// Three chunks fill the window; a more important message replaces them in the send buffer.
fn gives_way(config: ConfigBuilder) -> (Net, Hand, Vec<DataSeen>) {
    let (mut net, hand) = sender(config.send_buffer(6500));
    for _ in 0..3 {
        net.send_message(1, message(1, FULL, Reliability::Priority(5))).unwrap();
    }
    assert_eq!(net.path(1, 0).in_flight, 3 * PMDCS);
    let mark = net.log.len();
    net.send_message(1, message(2, 6000, Reliability::Priority(1))).unwrap();
    let sent = net.sent_since(1, mark);
    assert_eq!(forwards(&sent), ["FORWARD TSN 3 [1:2]"]);
    let data = sent.iter().flat_map(Sent::data).collect();
    (net, hand, data)
}

/// Nothing has been acknowledged, and new data is sent.
#[test]
fn s3_5_r1_abandoned_chunks_are_not_outstanding() {
    let (net, _, data) = gives_way(config());
    assert!(data.len() >= 3 && data[0].n == 4);
    let bytes: usize = data.iter().map(|d| (d.len + 16).next_multiple_of(4)).sum();
    assert_eq!(net.path(1, 0).in_flight as usize, bytes);
}

/// Acknowledging abandoned chunks does not change the window, in slow start and in congestion
/// avoidance.
#[test]
fn s3_5_r2_abandoned_chunks_move_no_window() {
    for ssthresh in [None, Some(2 * PMDCS)] {
        let (mut net, hand, _) = gives_way(config().initial_ssthresh(ssthresh));
        let before = window(&net);
        hand.sack(&mut net, 3, &[]);
        assert_eq!(window(&net), before);
        hand.sack(&mut net, 5, &[]);
        assert_ne!(window(&net), before);
    }
}

/// The second of four fragments is lost; the others arrive.
#[test]
fn s3_5_r3_all_fragments_of_a_message_are_abandoned() {
    let config = config().initial_cwnd(10).max_burst(10).build().unwrap();
    let mut net = established(1, config);
    net.nth("DATA 2", &[1], Fate::Drop);
    net.send_message(0, message(1, 5000, ONCE)).unwrap();
    net.run(S(3));
    let numbers: Vec<u32> = net.sent(0).iter().flat_map(Sent::data).map(|d| d.n).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(forwards(&net.sent(0)), ["FORWARD TSN 4 [1:0]"]);
    assert_eq!((net.a(0).buffered(), net.hosts[1].received.len()), (0, 0));
}

/// Chunks 2 and 3 may be sent once; the peer reports 1 and 5 to 7: the example of 3.5, C2.
fn two_of_seven_abandoned() -> (Net, Hand, Vec<Sent>) {
    let (mut net, hand) = sender(config().initial_cwnd(10).max_burst(10));
    for n in 1..=7 {
        let reliability = if n == 2 || n == 3 { ONCE } else { Reliability::Reliable };
        net.send_message(1, message(2, FULL, reliability)).unwrap();
    }
    for last in [4, 5] {
        let answers = hand.sack(&mut net, 1, &[(4, last)]);
        assert_eq!(forwards(&answers), [""; 0]);
    }
    let answers = hand.sack(&mut net, 1, &[(4, 6)]);
    (net, hand, answers)
}

#[test]
fn s3_5_r4_r5_r6_after_a_sack_the_point_moves_over_what_is_abandoned() {
    let (mut net, hand, answers) = two_of_seven_abandoned();
    assert_eq!(forwards(&answers), ["FORWARD TSN 3 [2:2]"]);
    assert_eq!((data_numbers(&answers), net.path(1, 0).in_flight), (vec![vec![4]], PMDCS));
    // The SACK reaches the advanced peer ack point; there is nothing to skip.
    assert_eq!(forwards(&hand.sack(&mut net, 3, &[(2, 4)])), [""; 0]);
    hand.sack(&mut net, 7, &[]);
    assert_eq!(net.a(1).buffered(), 0);
    net.run(S(5));
    assert_eq!(forwards(&net.sent(1)).len(), 1);
    // A reliable chunk holds the advanced peer ack point until it is acknowledged.
    let (mut net, hand) = sender(config().initial_cwnd(10).max_burst(10));
    for n in 1..=5 {
        let reliability = if n == 2 { ONCE } else { Reliability::Reliable };
        net.send_message(1, message(2, FULL, reliability)).unwrap();
    }
    for last in 3..=5 {
        assert_eq!(forwards(&hand.sack(&mut net, 0, &[(3, last)])), [""; 0]);
    }
    assert_eq!(forwards(&hand.sack(&mut net, 1, &[(2, 4)])), ["FORWARD TSN 2 [2:1]"]);
}

/// The peer has listed a second address and does not answer there.
#[test]
fn s3_5_r7_a_forward_tsn_goes_to_confirmed_addresses_alone() {
    let mut net =
        pair(2, Config::rfc9260().to_builder().partial_reliability(true).build().unwrap());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| {
        p.ipv4([10, 1, 0, 99].into()).unwrap();
        offers(p);
    });
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    net.send_message(1, message(1, 100, ONCE)).unwrap();
    net.run(S(40));
    let sent = net.sent_with(1, "FORWARD TSN");
    assert!(sent.len() >= 3 && sent.iter().all(|p| p.to.ip() == hand.ip), "{}", net.tail(20));
}

/// Nothing is in flight, and no FORWARD TSN is acknowledged.
#[test]
fn s3_5_r10_a_timer_runs_after_a_forward_tsn() {
    let (mut net, hand) = sender(config());
    net.send_message(1, message(1, 100, ONCE)).unwrap();
    for count in 1..=4 {
        net.drive_until(S(70), |net| forwards(&net.sent(1)).len() == count);
        assert_eq!(net.path(1, 0).in_flight, 0);
        let timer = net.hosts[1].endpoint.poll_timeout().expect("a timer runs");
        assert!(timer <= net.now + net.path(1, 0).rto);
    }
    hand.sack(&mut net, 1, &[]);
    net.run(S(100));
    assert_eq!(forwards(&net.sent(1)).len(), 4);
}

/// Chunks are lost, but none is abandoned.
#[test]
fn s3_5_r11_without_abandoned_chunks_there_is_no_forward_tsn() {
    let mut net = established(1, config().build().unwrap());
    net.nth("DATA", &[2, 5, 6, 17], Fate::Drop);
    for n in 0..30 {
        let reliability = match n % 3 {
            0 => Reliability::Reliable,
            1 => Reliability::Retransmissions(9),
            _ => Reliability::Lifetime(S(60)),
        };
        net.send_message(0, message(n, FULL, reliability)).unwrap();
    }
    net.run(S(30));
    assert_eq!((net.hosts[1].received.len(), forwards(&net.sent(0)).len()), (30, 0));
    assert!(net.sent_with(0, "DATA").len() > 30);
}

#[test]
fn s3_5_r12_a_forward_tsn_leaves_when_its_message_is_abandoned() {
    let (mut net, _) = sender(config());
    net.send_message(1, message(1, 100, ONCE)).unwrap();
    net.run(S(10));
    let failed = net.events(1, |e| matches!(e, Event::SendFailed { sent: true, .. }));
    let delay = net.times(1, "FORWARD TSN")[0] - failed[0].0;
    assert!(delay <= 200, "{delay} ms");
}

/// The advanced peer ack point is 3, and the peer's cumulative TSN ack stays 1.
#[test]
fn s3_5_r14_a_sack_below_the_point_is_not_out_of_order() {
    let (mut net, hand, _) = two_of_seven_abandoned();
    assert_eq!(net.path(1, 0).in_flight, PMDCS);
    hand.sack_rwnd(&mut net, 1, &[(3, 6)], 50_000);
    assert_eq!((net.path(1, 0).in_flight, net.a(1).peer_rwnd()), (0, 50_000));
    // A SACK below the previous one is.
    hand.sack_rwnd(&mut net, 0, &[], 70_000);
    assert_eq!((net.path(1, 0).in_flight, net.a(1).peer_rwnd()), (0, 50_000));
}

/// The window after the first of six full packets is lost and found by T3-rtx or by three missing
/// reports.
fn window_after_loss(reliability: Reliability, timeout: bool) -> Window {
    let (mut net, hand) = sender(config().initial_cwnd(20).max_burst(20));
    for n in 0..6 {
        let reliability = if n == 0 { reliability } else { Reliability::Reliable };
        net.send_message(1, message(2, FULL, reliability)).unwrap();
    }
    net.run(MS(20));
    if timeout {
        hand.sack(&mut net, 0, &[(2, 6)]);
        net.run(S(2));
    } else {
        (2..=4).for_each(|last| drop(hand.sack(&mut net, 0, &[(2, last)])));
    }
    let again = net.sent(1).iter().filter(|p| p.has("DATA 1")).count() > 1;
    assert_eq!(again, reliability == Reliability::Reliable);
    assert_eq!(forwards(&net.sent(1)).is_empty(), again);
    window(&net)
}

#[test]
fn s3_5_r15_the_loss_of_an_abandoned_chunk_cuts_the_window() {
    for timeout in [false, true] {
        let expected = window_after_loss(Reliability::Reliable, timeout);
        let most = if timeout { PMDCS } else { 10 * PMDCS };
        assert!(expected.cwnd <= most, "{expected:?}");
        for reliability in [ONCE, Reliability::Lifetime(MS(10))] {
            assert_eq!(window_after_loss(reliability, timeout), expected, "{reliability:?}");
        }
    }
}

/// The first chunk is abandoned while it is in flight; then three SACKs report it missing.
#[test]
fn s3_5_r15_missing_reports_for_a_chunk_abandoned_in_flight_cut_the_window() {
    let (mut net, hand) = sender(config().initial_cwnd(20).max_burst(20).send_buffer(9500));
    net.send_message(1, message(2, FULL, Reliability::Priority(5))).unwrap();
    for _ in 0..5 {
        net.send_message(1, message(2, FULL, Reliability::Reliable)).unwrap();
    }
    net.send_message(1, message(3, 1000, Reliability::Priority(1))).unwrap();
    assert_eq!(forwards(&net.sent(1)), ["FORWARD TSN 1 [2:0]"]);
    for last in 2..=4 {
        assert_eq!(window(&net).cwnd, 20 * PMDCS);
        hand.sack(&mut net, 0, &[(2, last)]);
    }
    assert_eq!(window(&net).cwnd, 10 * PMDCS);
}

/// The SACKs are the same with and without the extension.
#[test]
fn s3_6_r1_data_is_received_as_in_the_base_protocol() {
    let sacks = |offered: bool| -> Vec<(u64, SackSeen)> {
        let none: fn(&mut ParameterWriter<'_>) = |_| {};
        let (mut net, hand) = opened(config(), if offered { offers } else { none });
        for n in [1, 2, 3, 5, 5, 8, 4, 1, 7, 6, 9, 11, 10, 10, 12, 13] {
            hand.data(&mut net, n);
            net.run(MS(30));
        }
        net.run(S(1));
        assert_eq!(net.hosts[1].received.len(), 13);
        let sent = net.sent_with(1, "SACK");
        sent.iter().map(|p| (p.ms(), p.sack().unwrap())).collect()
    };
    assert_eq!(sacks(true), sacks(false));
    assert!(sacks(true).iter().any(|(_, s)| !s.duplicates.is_empty()));
}

/// The example of 3.6, where 102 is chunk 2.
#[test]
fn s3_6_r2_r3_r4_a_forward_tsn_moves_the_cumulative_point_and_then_what_follows() {
    let (mut net, hand) = receiver();
    for n in [1, 2, 4, 5, 7] {
        say(&mut net, &hand, n, n as u16, 0, WHOLE);
    }
    assert!(net.log.last().unwrap().has("SACK 2 [2-3] [5-5]"));
    forward(&mut net, &hand, 3, &[]);
    net.run(MS(200));
    assert!(net.log.last().unwrap().has("SACK 5 [2-2]"), "{}", net.tail(3));
    // At the cumulative TSN or below, a FORWARD TSN is out of date.
    for n in [5, 3, 1] {
        forward(&mut net, &hand, n, &[]);
        net.run(MS(200));
        assert!(net.log.last().unwrap().has("SACK 5 [2-2]"), "{}", net.tail(3));
    }
    assert!(say(&mut net, &hand, 8, 8, 0, WHOLE)[0].has("SACK 5 [2-3]"));
    say(&mut net, &hand, 6, 6, 0, WHOLE);
    net.run(MS(200));
    assert!(net.log.last().unwrap().has("SACK 8"));
}

#[test]
fn s3_6_r5_a_forward_tsn_is_acknowledged_as_data_is() {
    // The second packet is acknowledged at once.
    let (mut net, hand) = receiver();
    assert!(hand.data(&mut net, 1).is_empty());
    assert!(forward(&mut net, &hand, 2, &[])[0].has("SACK 2"));
    // A single one is acknowledged after 200 ms.
    let mark = net.log.len();
    assert!(forward(&mut net, &hand, 3, &[]).is_empty());
    net.run(MS(199));
    assert!(hand.answers(&net, mark).is_empty());
    net.run(MS(1));
    assert!(hand.answers(&net, mark)[0].has("SACK 3"));
    // With a gap above it, a SACK is sent at once.
    say(&mut net, &hand, 6, 0, 9, WHOLE);
    assert!(forward(&mut net, &hand, 4, &[])[0].has("SACK 4 [2-2]"));
}

/// Chunks 1, 3, 5 and 7 are skipped; they block messages of three streams.
#[test]
fn s3_6_r6_messages_that_wait_for_skipped_ones_are_delivered() {
    let (mut net, hand) = receiver();
    for (n, stream, ssn) in [(2, 5, 1), (4, 6, 1), (6, 7, 1), (8, 7, 3), (9, 8, 1)] {
        say(&mut net, &hand, n, stream, ssn, WHOLE);
    }
    assert_eq!(delivered(&net), [""; 0]);
    forward(&mut net, &hand, 7, &[(5, 0), (6, 0), (7, 2)]);
    let mut got = delivered(&net);
    got.sort_unstable();
    // Stream 8 was not listed.
    assert_eq!(got, ["2", "4", "6", "8"]);
    let place = |what| delivered(&net).iter().position(|d| *d == what);
    assert!(place("6") < place("8"));
}

/// Chunks 2 to 4 are one message, 6 and 7 another one.
#[test]
fn s3_6_r7_r8_a_message_with_a_skipped_fragment_is_removed_and_no_other() {
    let (mut net, hand) = receiver();
    net.hosts[1].reads = false;
    hand.data(&mut net, 1);
    let whole = net.a(1).config().receive_buffer();
    say(&mut net, &hand, 3, 0, 1, (false, false));
    say(&mut net, &hand, 4, 0, 1, (false, true));
    say(&mut net, &hand, 6, 0, 3, (true, false));
    let before = net.log.last().unwrap().sack().unwrap().rwnd;
    // The message of chunk 5 is skipped as well.
    forward(&mut net, &hand, 5, &[(0, 2)]);
    say(&mut net, &hand, 2, 0, 1, (true, false));
    let sack = net.log.last().unwrap().sack().unwrap();
    assert_eq!((sack.cumulative, sack.duplicates), (6, vec![2]));
    assert!(sack.rwnd > before && sack.rwnd < whole, "{before} {}", sack.rwnd);
    say(&mut net, &hand, 7, 0, 3, (false, true));
    let got: Vec<Bytes> = net.read(1).into_iter().map(|r| r.payload).collect();
    assert_eq!(got.concat(), b"data67");
    net.run(S(1));
    assert_eq!(hand.data(&mut net, 7)[0].sack().unwrap().rwnd, whole);
}

/// The peer does not offer partial reliability.
#[test]
fn s4_1_r1_in_the_base_protocol_a_message_that_was_sent_is_reliable() {
    let (mut net, hand) = opened(config(), |_| {});
    net.send_message(1, message(0, 100, Reliability::Lifetime(MS(50)))).unwrap();
    net.run(S(4));
    assert_eq!(net.sent_with(1, "DATA 1").len(), 3);
    hand.sack(&mut net, 1, &[]);
    assert_eq!(net.a(1).buffered(), 0);
    assert!(net.events(1, |e| matches!(e, Event::SendFailed { .. })).is_empty());
}

#[test]
fn s4_1_r2_a_message_within_its_lifetime_is_reliable() {
    let (mut net, _) = sender(config());
    net.send_message(1, message(0, 100, Reliability::Lifetime(S(5)))).unwrap();
    net.run(MS(4900));
    assert_eq!(net.times(1, "DATA 1"), [0, 1000, 3000]);
    assert_eq!(forwards(&net.sent(1)), [""; 0]);
}

/// The message waits because the congestion window is full.
#[test]
fn s4_1_r3_r4_a_message_that_has_outlived_its_time_gets_no_tsn() {
    let (mut net, hand) = sender(config());
    for _ in 0..3 {
        net.send(1, 0, payload(0, FULL)).unwrap();
    }
    net.send_message(1, message(4, 700, Reliability::Lifetime(MS(300)))).unwrap();
    net.run(MS(400));
    let failed = net.events(1, |e| matches!(e, Event::SendFailed { .. }));
    assert!(matches!(failed[..], [(_, Event::SendFailed { sent: false, bytes: 700, .. })]));
    assert_eq!(data_numbers(&hand.sack(&mut net, 3, &[])), [[0; 0]; 0]);
    net.send(1, 4, payload(0, 50)).unwrap();
    let data = net.log.last().unwrap().data();
    assert_eq!((data[0].n, data[0].ssn, data[0].len), (4, 0, 50));
    hand.sack(&mut net, 4, &[]);
    net.run(S(5));
    assert_eq!(forwards(&net.sent(1)), [""; 0]);
}

#[test]
fn s4_1_r5_r6_a_message_that_has_outlived_its_time_is_not_sent_again() {
    // The message is lost, and its lifetime ends before or after T3-rtx expires.
    for (lifetime, transmissions) in [(500, 1), (1500, 2)] {
        let (mut net, _) = sender(config());
        net.send_message(1, message(4, 100, Reliability::Lifetime(MS(lifetime)))).unwrap();
        net.run(MS(3500));
        assert_eq!(net.sent_with(1, "DATA 1").len(), transmissions);
        assert_eq!(forwards(&net.sent(1))[0], "FORWARD TSN 1 [4:0]");
        assert_eq!(net.a(1).buffered(), 0);
    }
}

/// With every policy, FORWARD TSN is sent until the peer acknowledges it.
#[test]
fn s4_3_r2_every_policy_leads_to_a_forward_tsn() {
    for reliability in [ONCE, Reliability::Lifetime(MS(500)), Reliability::Priority(2)] {
        let (mut net, hand) = sender(config().send_buffer(4000));
        net.send_message(1, message(4, 3000, reliability)).unwrap();
        if let Reliability::Priority(_) = reliability {
            net.send_message(1, message(5, 3500, Reliability::Priority(1))).unwrap();
        }
        net.run(S(9));
        assert!(forwards(&net.sent(1)).len() > 1, "{reliability:?}");
        assert!(forwards(&net.sent(1)).iter().all(|f| *f == "FORWARD TSN 3 [4:0]"));
        let mark = net.log.len();
        hand.sack(&mut net, 3, &[]);
        net.run(S(20));
        assert_eq!(forwards(&net.sent_since(1, mark)), [""; 0]);
    }
}
