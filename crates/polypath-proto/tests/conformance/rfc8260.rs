//! RFC 8260, Stream Schedulers and User Message Interleaving: the requirements with MUST.

use std::collections::BTreeMap;

use crate::bytes::{Raw, chunk, chunks, parameters, reseal, u32_at};
use crate::common::*;
use polypath_proto::policy::stream_scheduler;
use polypath_proto::wire::{IData, Mark, PacketWriter, cause_code};
use polypath_proto::*;

const I_DATA: u16 = 64;
const I_FORWARD_TSN: u16 = 194;
const BEGINS: Mark = Mark::Beginning(Ppid(3));

fn builder() -> ConfigBuilder {
    Config::rfc9260()
        .to_builder()
        .interleaving(true)
        .stream_scheduler(&stream_scheduler::ROUND_ROBIN)
}

fn config() -> Config {
    builder().build().unwrap()
}

fn reliable_or_not() -> Config {
    builder().partial_reliability(true).build().unwrap()
}

/// A hand-built peer that lists these chunk types and has an association with host 1.
fn opened(config: Config, types: &[u8]) -> (Net, Hand) {
    let mut net = pair(1, config);
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| {
        p.forward_tsn_supported().unwrap();
        p.supported_extensions(types).unwrap();
    });
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    (net, hand)
}

/// The peer's `n`-th chunk, on stream 5.
fn piece<'a>(hand: &Hand, n: u32, mid: u32, mark: Mark, end: bool, payload: &'a [u8]) -> IData<'a> {
    IData {
        tsn: Tsn(hand.tsn.wrapping_add(n).wrapping_sub(1)),
        stream: StreamId(5),
        mid: Mid(mid),
        mark,
        unordered: false,
        end,
        immediate: false,
        retransmission: false,
        payload,
    }
}

fn payloads(net: &Net) -> Vec<&[u8]> {
    net.hosts[1].received.iter().map(|r| &r.payload[..]).collect()
}

/// The I-DATA chunks in these packets.
fn pieces(packets: &[Sent]) -> Vec<Raw> {
    packets.iter().flat_map(|p| chunks(&p.bytes)).filter(|c| c.ty == I_DATA).collect()
}

fn stream_of(chunk: &Raw) -> u16 {
    u16::from_be_bytes([chunk.value[4], chunk.value[5]])
}

#[test]
fn s2_r1_associations_with_data_and_with_i_data_exist_side_by_side() {
    let (mut net, with) = opened(config(), &[I_DATA as u8]);
    let without = Hand { ip: v4(0, 50), tag: 50, ..Hand::new(1) }.open(&mut net);
    let endpoint = &mut net.hosts[1].endpoint;
    let ids: Vec<AssociationId> = endpoint.associations().collect();
    for id in ids {
        let association = endpoint.association_mut(id).unwrap();
        association.send(Time::ZERO, Message::new(StreamId(0), &b"to both"[..])).unwrap();
    }
    with.say(&mut net, &|w| w.i_data(&piece(&with, 1, 0, BEGINS, true, b"i")).unwrap());
    without.data(&mut net, 1);
    assert_eq!(payloads(&net), [&b"i"[..], b"data"]);
    let to = |hand: &Hand, name: &str| net.log.iter().any(|p| p.to.ip() == hand.ip && p.has(name));
    assert_eq!([to(&with, "I-DATA"), to(&with, "DATA")], [true, false]);
    assert_eq!([to(&without, "I-DATA"), to(&without, "DATA")], [false, true]);
}

#[test]
fn s2_1_r1_r2_reserved_bits_are_0_and_ignored() {
    let mut net = established(1, config());
    net.send(0, 1, payload(1, 5000)).unwrap();
    net.run(S(1));
    for chunk in pieces(&net.sent(0)) {
        assert_eq!((chunk.flags & 0xf0, &chunk.value[6..8]), (0, &[0, 0][..]));
    }
    let (mut net, hand) = opened(config(), &[I_DATA as u8]);
    let whole = piece(&hand, 1, 0, BEGINS, true, b"whole");
    let mut packet = hand.packet(hand.peer_tag, &|w| w.i_data(&whole).unwrap());
    packet[13] |= 0xf0;
    packet[22..24].fill(0xff);
    reseal(&mut packet);
    hand.raw(&mut net, &packet);
    assert_eq!(payloads(&net), [b"whole"]);
}

#[test]
fn s2_2_1_r1_r2_i_data_is_used_if_and_only_if_it_was_negotiated() {
    let plain = Config::rfc9260;
    for (configs, negotiated) in [
        ([config(), config()], true),
        ([config(), plain()], false),
        ([plain(), config()], false),
        ([plain(), plain()], false),
    ] {
        let mut net = Setup { configs, ..Setup::default() }.build();
        net.establish();
        for h in 0..2 {
            net.send(h, 0, payload(1, 4000)).unwrap();
            net.send(h, 1, payload(2, 40)).unwrap();
        }
        net.run(S(2));
        let used = |name: &str| net.log.iter().any(|p| p.has(name));
        assert_eq!((used("I-DATA"), used("DATA")), (negotiated, !negotiated));
        assert_eq!((net.hosts[0].received.len(), net.hosts[1].received.len()), (2, 2));
    }
}

#[test]
fn s2_2_1_r3_interleaving_is_offered_only_on_request() {
    for (config, offered) in [(Config::rfc9260(), false), (config(), true)] {
        let mut net = pair(1, config);
        net.connect(0);
        net.run(MS(15));
        for (sent, ty) in net.log.iter().zip([1, 2]) {
            let list = parameters(&chunk(&sent.bytes, ty));
            let types = list.iter().find(|p| p.ty == 0x8008).map(|p| p.value.clone());
            assert_eq!(types.unwrap_or_default().contains(&(I_DATA as u8)), offered);
        }
    }
}

#[test]
fn s2_2_2_r1_r2_r3_the_first_fragment_has_the_b_bit_and_the_last_one_the_e_bit() {
    for (len, expected) in [(100, vec![3]), (2000, vec![2, 1]), (5000, vec![2, 0, 0, 1])] {
        for unordered in [false, true] {
            let mut net = established(1, config());
            let message = Message::new(StreamId(1), payload(1, len));
            net.send_message(0, Message { unordered, ..message }).unwrap();
            net.run(S(1));
            let list = pieces(&net.sent(0));
            assert_eq!(list.iter().map(|c| c.flags & 3).collect::<Vec<_>>(), expected);
            // Fragments after the first one are numbered from 1 on.
            for (fsn, chunk) in list.iter().enumerate().skip(1) {
                assert_eq!(u32_at(&chunk.value, 12) as usize, fsn);
            }
        }
    }
}

#[test]
fn s2_2_2_r4_the_congestion_window_and_the_receiver_window_limit_i_data() {
    let (mut net, hand) = opened(config(), &[I_DATA as u8]);
    net.send(1, 0, payload(1, 100_000)).unwrap();
    // The initial window of RFC 9260 7.2.1 is three packets: MIN(4 * 1472, MAX(2 * 1472, 4404)).
    let sent = pieces(&net.sent(1));
    assert!((3..=4).contains(&sent.len()), "{}", sent.len());
    hand.sack_rwnd(&mut net, sent.len() as u32, &[], 2000);
    assert_eq!(pieces(&net.sent(1)).len(), sent.len() + 1, "no more than the window takes");
}

#[test]
fn s2_2_2_r5_r6_messages_of_a_stream_leave_one_after_the_other() {
    let mut net = established(1, config());
    for i in 0..12 {
        let message = Message::new(StreamId(i % 3), payload(i.into(), 6000));
        net.send_message(0, Message { unordered: i % 2 == 1, ..message }).unwrap();
    }
    net.run(S(5));
    assert_eq!(net.hosts[1].received.len(), 12);
    let mut open: BTreeMap<u16, (bool, u32, u32)> = BTreeMap::new();
    let mut turns = 0;
    let list = pieces(&net.sent(0));
    for pair in list.windows(2) {
        turns += usize::from(stream_of(&pair[0]) != stream_of(&pair[1]));
        let tsns = [u32_at(&pair[0].value, 0), u32_at(&pair[1].value, 0)];
        assert_eq!(tsns[1], tsns[0].wrapping_add(1));
    }
    assert!(turns > 20, "messages of different streams are interleaved");
    for chunk in &list {
        let (stream, unordered) = (stream_of(chunk), chunk.flags & 4 != 0);
        let mid = u32_at(&chunk.value, 8);
        let fsn = if chunk.flags & 2 != 0 { 0 } else { u32_at(&chunk.value, 12) };
        // TSNs increase with the fragment sequence numbers, so that the receiver can deliver.
        let next = open.remove(&stream).unwrap_or((unordered, mid, 0));
        assert_eq!(next, (unordered, mid, fsn), "stream {stream}");
        if chunk.flags & 1 == 0 {
            open.insert(stream, (unordered, mid, fsn + 1));
        }
    }
}

/// Fragments of an ordered and of an unordered message with the same MID, and of two streams; the
/// order of their TSNs carries no information.
#[test]
fn s2_2_3_r1_r2_messages_are_put_together_by_stream_mid_and_fsn() {
    let (mut net, hand) = opened(config(), &[I_DATA as u8]);
    let say = |net: &mut Net, data: IData<'_>| hand.say(net, &|w| w.i_data(&data).unwrap());
    let unordered = |data| IData { unordered: true, ..data };
    let other = |data| IData { stream: StreamId(6), ..data };
    say(&mut net, piece(&hand, 1, 0, Mark::Fragment(2), true, b"ered"));
    say(&mut net, unordered(piece(&hand, 2, 0, Mark::Fragment(1), true, b"ordered")));
    say(&mut net, other(piece(&hand, 3, 0, Mark::Fragment(1), true, b" stream")));
    say(&mut net, piece(&hand, 7, 0, BEGINS, false, b"o"));
    say(&mut net, other(piece(&hand, 6, 0, BEGINS, false, b"other")));
    say(&mut net, piece(&hand, 5, 0, Mark::Fragment(1), false, b"rd"));
    say(&mut net, unordered(piece(&hand, 4, 0, BEGINS, false, b"un")));
    let mut got = payloads(&net);
    got.sort_unstable();
    assert_eq!(got, [&b"ordered"[..], b"other stream", b"unordered"]);
}

fn violation(answers: &[Sent]) -> bool {
    answers.len() == 1 && answers[0].causes() == [cause_code::PROTOCOL_VIOLATION]
}

#[test]
fn s2_2_3_r3_data_where_i_data_was_negotiated_is_aborted() {
    let (mut net, hand) = opened(config(), &[I_DATA as u8]);
    let answers = hand.data(&mut net, 1);
    assert!(violation(&answers) && answers[0].has("ABORT"));
    assert!(net.a(1).is_closed() && payloads(&net).is_empty());
}

/// A message is abandoned after its first transmission, and reported by FORWARD TSN or
/// I-FORWARD-TSN.
fn given_up(types: &[u8], unordered: bool) -> (Net, Hand) {
    let (mut net, hand) = opened(reliable_or_not(), types);
    let message = Message::new(StreamId(7), payload(1, 100));
    let reliability = Reliability::Retransmissions(0);
    net.send_message(1, Message { reliability, unordered, ..message }).unwrap();
    net.run(S(2));
    (net, hand)
}

#[test]
fn s2_3_1_r1_r4_r5_i_forward_tsn_goes_with_i_data_and_forward_tsn_with_data() {
    let types = [I_DATA as u8, I_FORWARD_TSN as u8, 192];
    for (types, names) in
        [(&types[..], ["I-DATA", "I-FORWARD-TSN"]), (&[192], ["DATA", "FORWARD TSN"])]
    {
        let (net, _) = given_up(types, false);
        for name in ["I-DATA", "I-FORWARD-TSN", "DATA", "FORWARD TSN"] {
            assert_eq!(net.log.iter().any(|p| p.has(name)), names.contains(&name), "{name}");
        }
    }
}

#[test]
fn s2_3_1_r2_r3_reserved_bits_of_an_i_forward_tsn_are_0_and_ignored() {
    let types = [I_DATA as u8, I_FORWARD_TSN as u8];
    for unordered in [false, true] {
        let (net, hand) = given_up(&types, unordered);
        let packet = net.sent_with(1, "I-FORWARD-TSN").remove(0);
        let chunk = chunk(&packet.bytes, I_FORWARD_TSN);
        let mut expected = hand.peer_tsn.to_be_bytes().to_vec();
        expected.extend([0, 7, 0, u8::from(unordered), 0, 0, 0, 0]);
        assert_eq!((chunk.flags, chunk.value), (0, expected));
    }
    let (mut net, hand) = opened(reliable_or_not(), &types);
    let mut packet = hand.packet(hand.peer_tag, &|w: &mut PacketWriter<'_>| {
        let skipped = wire::SkippedMessage { stream: StreamId(5), unordered: false, mid: Mid(0) };
        w.i_forward_tsn(Tsn(hand.tsn), [skipped].into_iter()).unwrap();
    });
    packet[13] = 0xff;
    packet[22..24].copy_from_slice(&[0xff, 0xfe]);
    reseal(&mut packet);
    hand.raw(&mut net, &packet);
    hand.say(&mut net, &|w| w.i_data(&piece(&hand, 2, 1, BEGINS, true, b"next")).unwrap());
    assert_eq!(payloads(&net), [b"next"], "message 0 of the ordered ones was skipped");
}

#[test]
fn s2_3_1_r6_forward_tsn_where_i_forward_tsn_was_negotiated_is_aborted() {
    let (mut net, hand) = opened(reliable_or_not(), &[I_DATA as u8, I_FORWARD_TSN as u8]);
    let answers = hand.say(&mut net, &|w| w.forward_tsn(Tsn(hand.tsn), [].into_iter()).unwrap());
    assert!(violation(&answers) && net.a(1).is_closed());
}

#[test]
fn s2_3_2_r1_a_stream_reset_resets_both_counters_of_messages() {
    let config = builder().stream_reconfiguration(true).build().unwrap();
    let mut net = established(1, config);
    let send = |net: &mut Net| {
        for i in 0..6 {
            let message = Message::new(StreamId(3), payload(i, 10));
            net.send_message(0, Message { unordered: i % 2 == 1, ..message }).unwrap();
        }
        net.run(S(1));
    };
    send(&mut net);
    let mark = net.log.len();
    let now = net.now;
    net.am(0).reset_streams(now, StreamReset::Outgoing, &[StreamId(3)]).unwrap();
    net.run(S(1));
    send(&mut net);
    let mids = |chunks: Vec<Raw>| -> Vec<(bool, u32)> {
        chunks.iter().map(|c| (c.flags & 4 != 0, u32_at(&c.value, 8))).collect()
    };
    let expected = [(false, 0), (true, 0), (false, 1), (true, 1), (false, 2), (true, 2)];
    assert_eq!(mids(pieces(&net.sent_since(0, mark))), expected);
    assert_eq!(net.hosts[1].received.len(), 12);
    let got = net.hosts[1].received[6..].iter().map(|r| (r.unordered, r.mid.0));
    assert_eq!(got.collect::<Vec<_>>(), expected);
}

#[test]
fn s3_r1_weighted_fair_queueing_is_there() {
    let config = builder()
        .stream_scheduler(&stream_scheduler::WEIGHTED_FAIR_QUEUEING)
        .initial_cwnd(200)
        .max_burst(200)
        .build()
        .unwrap();
    let mut net = established(1, config);
    let now = net.now;
    for (stream, weight) in [(1, 1), (2, 3)] {
        net.am(0).set_stream_value(StreamId(stream), weight).unwrap();
        net.am(0).send(now, Message::new(StreamId(stream), payload(1, 100_000))).unwrap();
    }
    net.run(S(1));
    let first: Vec<u16> = pieces(&net.sent(0)).iter().take(40).map(stream_of).collect();
    let share = first.iter().filter(|stream| **stream == 2).count();
    assert!((28..=32).contains(&share), "{share} of 40: {first:?}");
}
