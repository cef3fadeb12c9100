//! Messages, fragments, streams, bundling (RFC 9260 6.1, 6.5 to 6.10).

use crate::common::*;
use bytes::Bytes;
use polypath_proto::wire::{Data, cause_code};
use polypath_proto::*;

fn whole(received: &[Received]) -> Vec<Bytes> {
    assert!(received.iter().all(|r| r.beginning && r.end), "messages in one piece");
    received.iter().map(|r| r.payload.clone()).collect()
}

/// RFC 9260 6.9: messages are fragmented only if they do not fit one packet, and arrive whole.
#[test]
fn messages_of_every_size_arrive_whole() {
    for mtu in [576, 577, 579, 1280, 1500, 9000] {
        let config = Config::rfc9260().to_builder().path_mtu(mtu).build().unwrap();
        let mut net = established(1, config);
        let most = (usize::from(mtu) - 20) / 4 * 4 - 12 - 16;
        let mut sizes = vec![1, 2, 3, 4, 5, 100, 65_535, 65_536, 100_001];
        for n in [1, 2, 3, 10] {
            sizes.extend(n * most - 5..=n * most + 5);
        }
        let mark = net.log.len();
        for (i, size) in sizes.iter().enumerate() {
            let mut message = Message::new(StreamId(0), payload(i as u64, *size));
            message.ppid = Ppid(i as u32);
            net.send_message(0, message).unwrap();
            net.run(S(1));
        }
        let got = whole(&net.hosts[1].received);
        assert_eq!(got.len(), sizes.len());
        for (i, (size, got)) in sizes.iter().zip(&got).enumerate() {
            assert!(*got == payload(i as u64, *size), "{size} bytes with an MTU of {mtu}");
            assert_eq!(net.hosts[1].received[i].ppid, Ppid(i as u32));
        }
        let packets = net.sent_since(0, mark);
        assert!(packets.iter().all(|p| p.bytes.len() + 20 <= usize::from(mtu)));
        // 6.9 (1): fragments carry consecutive TSNs and one SSN, B on the first, E on the last.
        let chunks: Vec<DataSeen> = packets.iter().flat_map(Sent::data).collect();
        let mut at = 0;
        for (i, size) in sizes.iter().enumerate() {
            let end = at + chunks[at..].iter().position(|c| c.end).unwrap();
            let run = &chunks[at..=end];
            assert_eq!(run.iter().map(|c| c.len).sum::<usize>(), *size);
            assert_eq!(run.len() == 1, *size <= most, "{size} bytes with an MTU of {mtu}");
            assert!(run.iter().enumerate().all(|(k, c)| {
                usize::from(c.ssn) == i && c.beginning == (k == 0) && c.n == run[0].n + k as u32
            }));
            at = end + 1;
        }
    }
}

/// RFC 9260 6.10: small messages share a packet, up to the MTU.
#[test]
fn small_messages_share_packets() {
    let mut net = established(1, Config::rfc9260());
    let mark = net.log.len();
    let now = net.now;
    for i in 0..30 {
        net.am(0).send(now, Message::new(StreamId(0), payload(i, 101))).unwrap();
    }
    net.run(S(1));
    let packets = data_numbers(&net.sent_since(0, mark));
    // 16 + 101 bytes take 120; 12 of them and the common header take 1452.
    assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [12, 12, 6]);
    assert_eq!(packets.concat(), (1..=30).collect::<Vec<_>>());
    assert_eq!(whole(&net.hosts[1].received).len(), 30);
}

/// RFC 9260 6.10: control chunks precede DATA.
#[test]
fn a_sack_travels_before_the_data_of_its_packet() {
    let mut net =
        pair(1, Config::rfc9260().to_builder().first_sack_at_once(false).build().unwrap());
    let hand = Hand::new(1).open(&mut net);
    assert!(hand.data(&mut net, 1).is_empty());
    net.send(1, 0, payload(1, 10)).unwrap();
    assert_eq!(net.log.last().unwrap().text(), "SACK 1 + DATA 1");
    net.run(MS(300));
    assert_eq!(net.times(1, "SACK").len(), 1, "and not again");
}

/// RFC 9260 6.6: a missing chunk delays its own stream, but no other stream and no unordered
/// message.
#[test]
fn a_gap_holds_up_its_own_stream_only() {
    let mut net = established(1, Config::rfc9260());
    net.nth("DATA", &[1], Fate::Drop);
    for (stream, unordered) in [(1, false), (1, false), (2, false), (1, true)] {
        let kind = net.a(0).stats().messages_sent;
        let message = Message { unordered, ..Message::new(StreamId(stream), payload(kind, 1000)) };
        net.send_message(0, message).unwrap();
    }
    net.run(MS(15));
    let seen = |net: &Net| {
        let got = net.hosts[1].received.iter();
        got.map(|r| (r.stream.0, r.unordered, r.payload.clone())).collect::<Vec<_>>()
    };
    let early = [(2, false, payload(2, 1000)), (1, true, payload(3, 1000))];
    assert_eq!(seen(&net), early);
    net.run(S(2));
    let late = [(1, false, payload(0, 1000)), (1, false, payload(1, 1000))];
    assert_eq!(seen(&net), [early, late].concat());
}

/// RFC 9260 6.5, 6.6: each stream has its own sequence numbers; unordered messages use none.
#[test]
fn every_stream_counts_its_messages() {
    let config = Config::rfc9260()
        .to_builder()
        .outbound_streams(65_535)
        .inbound_streams(65_535)
        .build()
        .unwrap();
    let mut net = established(1, config);
    let streams = [0u16, 1, 999, 65_534];
    for round in 0..3 {
        for stream in streams {
            net.send(0, stream, payload(round, 10)).unwrap();
        }
        let unordered = Message { unordered: true, ..Message::new(StreamId(1), payload(9, 10)) };
        net.send_message(0, unordered).unwrap();
    }
    net.run(S(2));
    for stream in streams {
        let of_stream = |d: &DataSeen| d.stream == stream && !d.unordered;
        let sent: Vec<u16> =
            net.sent(0).iter().flat_map(Sent::data).filter(of_stream).map(|d| d.ssn).collect();
        assert_eq!(sent, [0, 1, 2]);
    }
    assert_eq!(whole(&net.hosts[1].received).len(), 15);
    assert!(net.send(0, 65_535, payload(1, 1)).is_err());
}

/// RFC 9260 6.5: sequence number 65535 is followed by 0.
#[test]
fn stream_sequence_numbers_wrap() {
    let mut net = established(1, Config::rfc9260());
    let mut sent = 0u32;
    while sent < 66_000 {
        let now = net.now;
        for _ in 0..1000 {
            let message = Message::new(StreamId(7), sent.to_be_bytes().to_vec());
            net.am(0).send(now, message).unwrap();
            sent += 1;
        }
        net.drive_until(S(20), |net| net.a(0).buffered() == 0);
    }
    let got = whole(&net.hosts[1].received);
    assert!(got.iter().enumerate().all(|(i, p)| p[..] == (i as u32).to_be_bytes()));
    assert_eq!(got.len(), 66_000);
}

/// RFC 9260 6.9: TSNs wrap in the middle of a message.
#[test]
fn a_message_may_span_the_wrap_of_tsns() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let text: Vec<u8> = (0..40).collect();
    for n in (1..=40).rev() {
        let chunk = Data {
            beginning: n == 1,
            end: n == 40,
            ssn: Ssn(0),
            ..hand.chunk(n, &text[n as usize - 1..n as usize])
        };
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    assert_eq!(whole(&net.hosts[1].received), [Bytes::from(text)]);
}

/// RFC 9260 6.5, 3.3.10.1: the data is acknowledged, reported and discarded.
#[test]
fn data_for_a_stream_that_does_not_exist_is_reported() {
    let config = Config::rfc9260().to_builder().inbound_streams(10).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand::new(1).open(&mut net);
    let stray = Data { stream: StreamId(10), ..hand.chunk(1, b"stray") };
    let answers = hand.say(&mut net, &|w| w.data(&stray).unwrap());
    assert_eq!(answers[0].causes(), [cause_code::INVALID_STREAM_IDENTIFIER]);
    let last = Data { stream: StreamId(9), ssn: Ssn(0), ..hand.chunk(2, b"in range") };
    hand.say(&mut net, &|w| w.data(&last).unwrap());
    net.run(MS(200));
    assert!(net.log.last().unwrap().has("SACK 2"));
    assert_eq!(whole(&net.hosts[1].received), [&b"in range"[..]]);
}

/// RFC 9260 6.2, 3.3.10.9.
#[test]
fn data_without_user_data_aborts_the_association() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let empty = hand.chunk(1, b"");
    let answers = hand.say(&mut net, &|w| w.data(&empty).unwrap());
    assert_eq!(answers[0].text(), "ABORT (No User Data)");
    assert!(matches!(net.closed(1), Some(CloseReason::ProtocolViolation { .. })));
}

/// RFC 9260 3.2: the highest bits of an unknown chunk's type select its treatment.
#[test]
fn unknown_chunks_are_treated_as_their_type_asks() {
    for (ty, reports, goes_on) in
        [(0x3f, false, false), (0x7f, true, false), (0xbf, false, true), (0xff, true, true)]
    {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(1).open(&mut net);
        let chunk = hand.chunk(1, b"after");
        let answers = hand.say(&mut net, &|w| {
            w.typed_chunk(ty, 0, b"what is this?").unwrap();
            w.data(&chunk).unwrap();
        });
        let reported = answers.iter().any(|p| p.causes() == [cause_code::UNRECOGNIZED_CHUNK_TYPE]);
        assert_eq!((reported, net.hosts[1].received.len() == 1), (reports, goes_on), "{ty:#x}");
    }
}

/// RFC 9260 6.10: a truncated chunk is dropped, the chunks before it are not.
#[test]
fn a_partial_chunk_is_dropped() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let (first, second) = (hand.chunk(1, b"first"), hand.chunk(2, b"the second one"));
    let mut packet = hand.packet(hand.peer_tag, &|w| {
        w.data(&first).unwrap();
        w.data(&second).unwrap();
    });
    packet.truncate(packet.len() - 8);
    let crc = wire::checksum(&packet);
    packet[8..12].copy_from_slice(&crc.to_le_bytes());
    hand.raw(&mut net, &packet);
    assert_eq!(whole(&net.hosts[1].received), [&b"first"[..]]);
    assert!(net.a(1).is_established());
}

/// RFC 9260 6.9: fragments in every order, with other messages between them.
#[test]
fn fragments_may_arrive_in_any_order() {
    // Six chunks: a message of three fragments, a whole one, a message of two fragments.
    let pieces: [(&[u8], bool, bool, u16); 6] = [
        (b"ab", true, false, 0),
        (b"cd", false, false, 0),
        (b"ef", false, true, 0),
        (b"gh", true, true, 1),
        (b"ij", true, false, 2),
        (b"kl", false, true, 2),
    ];
    for order in permutations(6) {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(1).open(&mut net);
        for i in order {
            let (payload, beginning, end, ssn) = pieces[i];
            let chunk = Data { beginning, end, ssn: Ssn(ssn), ..hand.chunk(i as u32 + 1, payload) };
            hand.say(&mut net, &|w| w.data(&chunk).unwrap());
        }
        assert_eq!(whole(&net.hosts[1].received), [&b"abcdef"[..], b"gh", b"ijkl"]);
    }
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for rest in permutations(n - 1) {
        for at in 0..n {
            let mut p = rest.clone();
            p.insert(at, n - 1);
            all.push(p);
        }
    }
    all
}

/// RFC 9260 6.9: a message larger than the receive buffer is delivered in pieces, in order.
#[test]
fn a_message_larger_than_the_receive_buffer_comes_in_pieces() {
    for unordered in [false, true] {
        for buffer in [3000, 10_000, 65_536] {
            let config = Config::rfc9260().to_builder().receive_buffer(buffer).build().unwrap();
            let mut net = established(1, config);
            net.nth("DATA", &[3, 9], Fate::Drop);
            let sizes = [10, 200_000, 20, 150_000];
            for (i, size) in sizes.iter().enumerate() {
                let payload = payload(i as u64, *size);
                let message = Message { unordered, ..Message::new(StreamId(2), payload) };
                net.send_message(0, message).unwrap();
            }
            net.drive_until(S(600), |net| net.a(0).buffered() == 0);
            let mut messages = Vec::new();
            for r in &net.hosts[1].received {
                assert_eq!((r.stream, r.unordered), (StreamId(2), unordered));
                if r.beginning {
                    messages.push((Vec::new(), false));
                }
                let (bytes, done) = messages.last_mut().expect("begins with a beginning");
                assert!(!*done, "a piece after the end");
                bytes.extend_from_slice(&r.payload);
                *done = r.end;
            }
            let mut sorted: Vec<Vec<u8>> = messages.into_iter().map(|(bytes, _)| bytes).collect();
            if unordered {
                sorted.sort_by_key(|m| sizes.iter().position(|s| *s == m.len()));
            }
            let sent: Vec<Bytes> =
                sizes.iter().enumerate().map(|(i, s)| payload(i as u64, *s)).collect();
            assert!(sorted == sent, "unordered {unordered}, a buffer of {buffer} bytes");
        }
    }
}

/// RFC 9260 11.1.5, SEND: messages that are rejected at once.
#[test]
fn messages_that_cannot_be_sent_are_refused() {
    let config =
        Config::rfc9260().to_builder().max_message_size(1000).send_buffer(3000).build().unwrap();
    let mut net = established(1, config);
    net.cuts.insert(0);
    assert_eq!(net.send(0, 0, Bytes::new()), Err(SendError::Empty));
    let large = SendError::TooLarge { size: 1001, max: 1000 };
    assert_eq!(net.send(0, 0, payload(1, 1001)), Err(large));
    let streams = net.a(0).outbound_streams();
    let nowhere = SendError::NoSuchStream { stream: StreamId(streams), streams };
    assert_eq!(net.send(0, streams, payload(1, 1)), Err(nowhere));
    let mut taken = 0;
    while net.send(0, 0, payload(1, 999)).is_ok() {
        taken += 1;
    }
    assert!((3..=4).contains(&taken));
    assert_eq!(net.send(0, 0, payload(1, 1)), Err(SendError::WouldBlock));
    assert!(!net.saw(0, &Event::Writable));
    net.cuts.clear();
    net.run(S(5));
    assert!(net.saw(0, &Event::Writable) && net.saw(0, &Event::Drained));
    assert_eq!((net.a(0).buffered(), net.hosts[1].received.len()), (0, taken));
}

/// Streams can be read one by one.
#[test]
fn a_stream_is_read_by_itself() {
    let mut net = established(1, Config::rfc9260());
    net.hosts[1].reads = false;
    for stream in [4, 5, 4] {
        net.send(0, stream, payload(stream.into(), 10)).unwrap();
    }
    net.run(S(1));
    let now = net.now;
    let mut four = net.am(1).stream(StreamId(4));
    assert!(four.recv(now).is_some() && four.recv(now).is_some() && four.recv(now).is_none());
    assert_eq!(net.read(1)[0].stream, StreamId(5));
}

/// RFC 9260 6.1, 6.5 to 6.9 together: despite losses, duplicates and delays, everything arrives
/// once.
#[test]
fn everything_arrives_once_and_in_order_over_a_bad_network() {
    for seed in 0..20u64 {
        let config =
            Config::rfc9260().to_builder().receive_buffer(30_000).rto_min(MS(100)).build().unwrap();
        let mut net =
            Setup { paths: 2, configs: [config.clone(), config], seed, ..Setup::default() }.build();
        let mut dice = Rng::new(&Seed::from_u64(seed));
        net.filter(move |_| match dice.below(20) {
            0 | 1 => Fate::Drop,
            2 => Fate::Twice,
            3 => Fate::Late(MS(35)),
            _ => Fate::Pass,
        });
        net.connect(0);
        net.drive_until(S(200), |net| {
            (0..2).all(|h| {
                net.hosts[h].endpoint.associations().count() == 1 && net.a(h).is_established()
            })
        });
        let mut dice = Rng::new(&Seed::from_u64(seed + 100));
        for i in 0..60u32 {
            for h in 0..2 {
                let size = 4 + dice.below(5000) as usize;
                let mut bytes = i.to_be_bytes().to_vec();
                bytes.extend(payload(i.into(), size));
                let stream = StreamId(dice.below(4) as u16);
                let message =
                    Message { unordered: dice.below(4) == 0, ..Message::new(stream, bytes) };
                net.send_message(h, message).unwrap();
            }
        }
        net.drive_until(S(2000), |net| (0..2).all(|h| net.a(h).buffered() == 0));
        for h in 0..2 {
            let mut last = [None; 4];
            let mut seen = std::collections::BTreeSet::new();
            for r in &net.hosts[h].received {
                let i = u32::from_be_bytes(r.payload[..4].try_into().unwrap());
                assert!(r.payload[4..] == payload(i.into(), r.payload.len() - 4), "intact");
                assert!(seen.insert(i), "once");
                if !r.unordered {
                    let last = &mut last[usize::from(r.stream.0)];
                    assert!(*last < Some(i), "in order");
                    *last = Some(i);
                }
            }
            assert_eq!(seen.len(), 60, "seed {seed}");
        }
    }
}

/// rcv_tsn and rcv_cumtsn of RFC 6458 5.3.5.
#[test]
fn messages_have_the_tsn_of_their_first_chunk() {
    let mut net = established(1, Config::rfc9260());
    assert!(net.sent_with(0, "DATA").is_empty());
    for len in [100, 5000, 100] {
        net.send(0, 0, payload(1, len)).unwrap();
    }
    net.run(S(2));
    let received = &net.hosts[1].received;
    let chunks = net.sent_with(0, "DATA");
    let last = chunks.iter().flat_map(|packet| packet.data()).map(|data| data.n).max().unwrap();
    let base = received[0].tsn.0;
    // The numbers begin with 1.
    let firsts = [0, 1, last - 1].map(|n| base.wrapping_add(n));
    assert_eq!(received.iter().map(|r| r.tsn.0).collect::<Vec<_>>(), firsts);
    assert_eq!(received[2].cumulative_tsn.0, firsts[2]);
}
