//! User message interleaving (RFC 8260 2): I-DATA in place of DATA, if both sides offer it.

use crate::common::*;
use polypath_proto::policy::stream_scheduler;
use polypath_proto::wire::{IData, Mark, PacketWriter, SkippedMessage};
use polypath_proto::{CloseReason, Config, Event, Message, Mid, Ppid, Reliability, StreamId, Tsn};

fn config() -> Config {
    Config::rfc9260()
        .to_builder()
        .interleaving(true)
        .partial_reliability(true)
        .stream_scheduler(&stream_scheduler::ROUND_ROBIN)
        .build()
        .unwrap()
}

#[test]
fn a_short_message_does_not_wait_for_a_long_one() {
    let mut net = established(1, config());
    let now = net.now;
    net.am(0).send(now, Message::new(StreamId(1), payload(1, 300_000))).unwrap();
    net.am(0).send(now, Message::new(StreamId(2), payload(2, 3000))).unwrap();
    let far = Message { unordered: true, ..Message::new(StreamId(1), payload(3, 5000)) };
    net.am(0).send(now, far).unwrap();
    net.run(S(5));
    let got: Vec<usize> = net.hosts[1].received.iter().map(|r| r.payload.len()).collect();
    // On one stream, messages are sent one after the other.
    assert_eq!(got, [3000, 300_000, 5000]);
    for (received, kind) in net.hosts[1].received.iter().zip([2, 1, 3]) {
        assert!(received.payload == payload(kind, received.payload.len()));
    }
    assert!(net.sent_with(0, "DATA").is_empty() && net.sent_with(0, "I-DATA").len() > 100);
    net.shutdown(0);
    net.run(S(1));
    assert_eq!(net.closed(1), Some(CloseReason::Graceful));
}

/// Packets do not exceed the path's size, although the I-DATA header is larger.
#[test]
fn chunks_fill_packets_and_no_more() {
    let mut net = established(1, config());
    for len in [1448, 1449, 20_000] {
        net.send(0, 0, payload(1, len)).unwrap();
    }
    net.run(S(3));
    let largest = net.sent_with(0, "I-DATA").iter().map(|p| p.bytes.len()).max();
    assert_eq!(largest, Some(1480));
    assert_eq!(net.hosts[1].received.len(), 3);
}

#[test]
fn a_peer_without_it_gets_data() {
    let both = [[config(), Config::rfc9260()], [Config::rfc9260(), config()]];
    for configs in both {
        let mut net = Setup { configs, ..Setup::default() }.build();
        net.establish();
        net.send(0, 0, payload(1, 5000)).unwrap();
        net.send(1, 0, payload(2, 5000)).unwrap();
        net.run(S(2));
        assert_eq!((net.hosts[0].received.len(), net.hosts[1].received.len()), (1, 1));
        assert!(net.log.iter().all(|p| !p.has("I-DATA")));
    }
}

/// A hand that lists these chunk types; the host under test offers all of them.
fn hand(net: &mut Net, types: &[u8]) -> Hand {
    hand_with(net, types, 64)
}

fn hand_with(net: &mut Net, types: &[u8], streams: u16) -> Hand {
    let mut hand = Hand { streams: (streams, 64), ..Hand::new(1) };
    let answers = hand.init(net, &|p| {
        p.forward_tsn_supported().unwrap();
        p.supported_extensions(types).unwrap();
    });
    hand.learn(&answers[0]);
    hand.echo(net);
    hand
}

fn chunk<'a>(hand: &Hand, n: u32, mid: u32, mark: Mark, payload: &'a [u8]) -> IData<'a> {
    IData {
        tsn: Tsn(hand.tsn.wrapping_add(n).wrapping_sub(1)),
        stream: StreamId(5),
        mid: Mid(mid),
        mark,
        unordered: false,
        end: false,
        immediate: false,
        retransmission: false,
        payload,
    }
}

const BEGINS: Mark = Mark::Beginning(Ppid(3));

fn both() -> Net {
    Setup { configs: [config(), config()], ..Setup::default() }.build()
}

/// RFC 8260 2.2.1, 2.3.1: only the chunk types agreed on may be used.
#[test]
fn the_other_kind_of_chunk_is_a_violation() {
    for forwards in [false, true] {
        let mut net = both();
        let hand = hand(&mut net, &[64, 194]);
        let answers = if forwards {
            hand.say(&mut net, &|w| w.forward_tsn(Tsn(hand.tsn), [].into_iter()).unwrap())
        } else {
            hand.data(&mut net, 1)
        };
        assert_eq!(answers[0].causes(), [13]);
        assert!(net.a(1).is_closed());
    }
    let mut net = both();
    let hand = hand(&mut net, &[]);
    // A chunk type that is not in use is skipped and reported.
    let data = hand.chunk(1, b"heeded");
    let answers = hand.say(&mut net, &|w: &mut PacketWriter<'_>| {
        w.i_forward_tsn(Tsn(hand.tsn), [].into_iter()).unwrap();
        w.data(&data).unwrap();
    });
    assert_eq!(answers[0].causes(), [6]);
    assert!(answers.iter().any(|p| p.has("SACK 1")) && net.a(1).is_established());
    let data = IData { end: true, ..chunk(&hand, 2, 0, BEGINS, b"x") };
    let answers = hand.say(&mut net, &|w| w.i_data(&data).unwrap());
    assert_eq!(answers[0].causes(), [13]);
    assert!(net.a(1).is_closed());
}

/// Partial reliability needs a chunk type of its own (RFC 8260 2.3.1).
#[test]
fn partial_reliability_needs_i_forward_tsn() {
    for (types, given_up) in [(&[64, 194][..], true), (&[64], false)] {
        let mut net = both();
        let hand = hand(&mut net, types);
        let message = Message::new(StreamId(0), payload(1, 100));
        let message = Message { reliability: Reliability::Retransmissions(0), ..message };
        net.send_message(1, message).unwrap();
        net.run(S(2));
        assert_eq!(net.events(1, |e| matches!(e, Event::SendFailed { .. })).len() == 1, given_up);
        let forward = hand.answers(&net, 0).iter().any(|p| p.has("I-FORWARD-TSN 1 [0:0]"));
        assert_eq!(forward, given_up, "{}", net.tail(9));
    }
}

/// Fragments that contradict each other.
#[test]
fn contradicting_fragments_are_a_violation() {
    type Pair = [IData<'static>; 2];
    let cases: [&dyn Fn(&Hand) -> Pair; 5] = [
        &|h| [chunk(h, 1, 0, BEGINS, b"a"), chunk(h, 2, 0, BEGINS, b"b")],
        &|h| [chunk(h, 1, 0, Mark::Fragment(2), b"a"), chunk(h, 2, 0, Mark::Fragment(2), b"b")],
        &|h| {
            let end = IData { end: true, ..chunk(h, 1, 0, Mark::Fragment(2), b"a") };
            [end, chunk(h, 2, 0, Mark::Fragment(3), b"b")]
        },
        &|h| {
            let end = IData { end: true, ..chunk(h, 2, 0, Mark::Fragment(2), b"b") };
            [chunk(h, 1, 0, Mark::Fragment(3), b"a"), end]
        },
        &|h| [chunk(h, 1, 0, BEGINS, b"a"), chunk(h, 2, 1, Mark::Fragment(0), b"b")],
    ];
    for case in cases {
        let mut net = both();
        let hand = hand(&mut net, &[64, 194]);
        for data in case(&hand) {
            hand.say(&mut net, &|w| w.i_data(&data).unwrap());
        }
        assert!(matches!(net.closed(1), Some(CloseReason::ProtocolViolation { .. })));
    }
}

/// Fragments of three messages in turn; one message is abandoned, and its later fragments are
/// discarded.
#[test]
fn an_i_forward_tsn_drops_what_it_names() {
    let mut net = both();
    let hand = hand(&mut net, &[64, 194]);
    let say = |net: &mut Net, data: IData<'_>| hand.say(net, &|w| w.i_data(&data).unwrap());
    let unordered = |data| IData { unordered: true, ..data };
    say(&mut net, chunk(&hand, 1, 0, BEGINS, b"first "));
    say(&mut net, unordered(chunk(&hand, 2, 0, BEGINS, b"lost ")));
    say(&mut net, IData { end: true, ..chunk(&hand, 4, 1, BEGINS, b"second") });
    // TSN 3 would have ended the first message; TSN 5 continues the unordered one.
    let skipped = [(false, 0), (true, 0)].map(|(unordered, mid)| SkippedMessage {
        stream: StreamId(5),
        unordered,
        mid: Mid(mid),
    });
    let to = Tsn(hand.tsn.wrapping_add(2));
    let forward =
        |net: &mut Net| hand.say(net, &|w| w.i_forward_tsn(to, skipped.into_iter()).unwrap());
    forward(&mut net);
    assert!(forward(&mut net)[0].has("SACK 4"), "out of date");
    say(&mut net, unordered(chunk(&hand, 5, 0, Mark::Fragment(1), b"of no use")));
    say(&mut net, unordered(IData { end: true, ..chunk(&hand, 6, 1, BEGINS, b"third") }));
    let got: Vec<&[u8]> = net.hosts[1].received.iter().map(|r| &r.payload[..]).collect();
    assert_eq!(got, [&b"second"[..], b"third"]);
    // Only the third message, which was still unread, uses receive buffer.
    net.run(S(1));
    assert_eq!(net.sent_with(1, "SACK").last().unwrap().sack().unwrap().rwnd, (1 << 20) - 21);
}

/// The MID of a message that has been delivered or abandoned cannot be used again.
#[test]
fn the_number_of_a_message_is_not_used_twice() {
    let end = |data| IData { end: true, ..data };
    let mut net = both();
    let hand = hand(&mut net, &[64, 194]);
    let say = |net: &mut Net, data: IData<'_>| hand.say(net, &|w| w.i_data(&data).unwrap());
    say(&mut net, end(chunk(&hand, 1, 0, BEGINS, b"a")));
    let skipped = [SkippedMessage { stream: StreamId(5), unordered: false, mid: Mid(3) }];
    let to = Tsn(hand.tsn.wrapping_add(1));
    hand.say(&mut net, &|w| w.i_forward_tsn(to, skipped.into_iter()).unwrap());
    say(&mut net, end(chunk(&hand, 3, 3, BEGINS, b"given up")));
    say(&mut net, end(chunk(&hand, 4, 4, BEGINS, b"b")));
    assert_eq!(net.hosts[1].received.len(), 2);
    say(&mut net, chunk(&hand, 5, 4, Mark::Fragment(1), b"c"));
    assert!(matches!(net.closed(1), Some(CloseReason::ProtocolViolation { .. })));
}

/// Messages larger than the receive buffer are delivered in pieces, those of several streams in
/// turn.
#[test]
fn large_messages_are_delivered_in_part() {
    let small = config().to_builder().receive_buffer(20_000).build().unwrap();
    let mut net = Setup { configs: [config(), small], ..Setup::default() }.build();
    net.establish();
    for stream in 0..3 {
        net.send(0, stream, payload(stream.into(), 100_000)).unwrap();
    }
    net.run(S(60));
    for stream in 0..3 {
        let pieces: Vec<_> =
            net.hosts[1].received.iter().filter(|r| r.stream.0 == stream).collect();
        assert!(pieces[0].beginning && pieces.last().unwrap().end);
        let whole: Vec<u8> = pieces.iter().flat_map(|r| r.payload.to_vec()).collect();
        assert!(whole == payload(stream.into(), 100_000), "{} bytes", whole.len());
    }
}

/// RFC 9260 6.9: "If the receiver runs out of buffer space while still waiting for more fragments
/// to complete the reassembly of the message, it should dispatch part of its inbound message
/// through a partial delivery API, freeing some of its receive buffer space so that the rest of the
/// message may be received." Here many messages, ordered and unordered, have begun, and each is
/// small compared with the buffer.
#[test]
fn a_buffer_full_of_first_fragments_does_not_keep_the_others_out() {
    for (streams, len, per_message) in [(59, 500, 3), (200, 20, 40), (2000, 100, 3)] {
        let config = config().to_builder().receive_buffer(20_000).inbound_streams(streams);
        let mut net =
            Setup { configs: [self::config(), config.build().unwrap()], ..Setup::default() }
                .build();
        let hand = hand_with(&mut net, &[64, 194], streams);
        let payload = payload(1, len);
        let mut n = 0;
        for fsn in 0..per_message {
            for stream in 0..streams {
                n += 1;
                let mark = if fsn == 0 { BEGINS } else { Mark::Fragment(fsn) };
                let data = IData {
                    stream: StreamId(stream),
                    unordered: stream % 3 == 0,
                    end: fsn + 1 == per_message,
                    ..chunk(&hand, n, 0, mark, &payload)
                };
                hand.say(&mut net, &|w| w.i_data(&data).unwrap());
                let stats = net.am(1).stats();
                assert_eq!(stats.dropped_no_buffer, 0, "chunk {n} of {len} bytes");
            }
        }
        for stream in 0..streams {
            let pieces = net.hosts[1].received.iter().filter(|r| r.stream.0 == stream);
            let whole: Vec<u8> = pieces.flat_map(|r| r.payload.to_vec()).collect();
            assert!(whole == payload.repeat(per_message as usize), "{} bytes", whole.len());
        }
    }
}

/// The buffer fills up with the first fragments of many messages while a complete message waits to
/// be read. Once the application has read that, it gets the fragments, and the window opens again.
#[test]
fn a_buffer_full_of_first_fragments_is_emptied_by_reading() {
    const STREAMS: u16 = 40;
    let config = config().to_builder().receive_buffer(20_000).inbound_streams(STREAMS);
    let mut net =
        Setup { configs: [self::config(), config.build().unwrap()], ..Setup::default() }.build();
    let hand = hand_with(&mut net, &[64, 194], STREAMS);
    net.hosts[1].reads = false;
    let say = |net: &mut Net, n: u32, stream: u16, end: bool, payload: &[u8]| {
        let data = IData { stream: StreamId(stream), end, ..chunk(&hand, n, 0, BEGINS, payload) };
        hand.say(net, &|w| w.i_data(&data).unwrap());
    };
    say(&mut net, 1, 0, true, b"whole");
    for stream in 1..STREAMS {
        say(&mut net, u32::from(stream) + 1, stream, false, &payload(1, 1000));
    }
    // The application reads one stream, then all others.
    let now = net.now;
    let first = net.am(1).stream(StreamId(0)).recv(now).unwrap();
    assert_eq!(first.payload, "whole");
    let event = std::iter::from_fn(|| net.hosts[1].endpoint.poll_event()).last();
    assert!(matches!(event, Some((_, Event::Readable))), "{event:?}");
    let pieces = net.read(1);
    let bytes: usize = pieces.iter().map(|piece| piece.payload.len()).sum();
    assert!(bytes >= 9000, "{bytes} bytes");
    assert!(pieces.iter().all(|piece| piece.beginning && !piece.end));
}
