//! RFC 9260, sections 6.8 to 6.10: checksum, fragmentation, bundling.

use super::super::setup::{FULL, Flow, State, quiet, receiver, small_receiver, texts};
use crate::common::*;
use polypath_proto::wire::Data;
use polypath_proto::*;

/// CRC32c, bit by bit (RFC 9260 Appendix A), of a packet with zeros as its checksum field.
fn crc32c(packet: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for (at, byte) in packet.iter().enumerate() {
        crc ^= u32::from(if (8..12).contains(&at) { 0 } else { *byte });
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

fn seal(packet: &mut [u8]) {
    let crc = crc32c(packet);
    packet[8..12].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn s6_8_r1_r2_every_packet_holds_its_crc32c_and_tag() {
    // RFC 3720 B.4: 32 bytes of zeros.
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    let mut net = established(2, quiet().build().unwrap());
    net.send(0, 0, payload(1, 20_000)).unwrap();
    net.send(1, 0, payload(1, 77)).unwrap();
    net.run(S(1));
    net.shutdown(0);
    net.run(S(5));
    net.inject(
        net.log[0].from,
        net.log[0].to,
        &Hand::new(1).packet(9, &|w| w.heartbeat(b"x").unwrap()),
    );
    assert!(net.log.len() > 20);
    for packet in &net.log {
        assert_eq!(packet.bytes[8..12], crc32c(&packet.bytes).to_le_bytes(), "{}", packet.text());
    }
    let tags: std::collections::BTreeSet<u32> =
        net.sent_with(0, "DATA").iter().map(|p| p.tag).collect();
    assert_eq!(tags.len(), 1, "8.5/1 shows which one");
}

#[test]
fn s6_8_r3_r4_a_packet_with_a_wrong_checksum_is_discarded_silently() {
    let (mut net, hand) = receiver(quiet());
    let chunk = hand.chunk(1, b"payload");
    let good = hand.packet(hand.peer_tag, &|w| w.data(&chunk).unwrap());
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(hand.raw(&mut net, &bad).is_empty(), "bit {bit}");
    }
    // Neither 0 nor the checksum in the other byte order is accepted.
    for field in [[0; 4], crc32c(&good).to_be_bytes()] {
        let mut bad = good.clone();
        bad[8..12].copy_from_slice(&field);
        assert!(hand.raw(&mut net, &bad).is_empty());
    }
    net.run(S(1));
    assert!(net.hosts[1].received.is_empty() && net.times(1, "SACK").is_empty());
    hand.raw(&mut net, &good);
    assert_eq!(net.hosts[1].received.len(), 1);
}

#[test]
fn s6_9_r1_r14_fragments_are_reassembled_by_their_b_and_e_bits() {
    // Two messages of three and two fragments with a whole one between them, in several orders.
    let pieces = [
        ("a", 0, 1, 0),
        ("b", 0, 0, 0),
        ("c", 0, 0, 1),
        ("d", 1, 1, 1),
        ("e", 2, 1, 0),
        ("f", 2, 0, 1),
    ];
    for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [1, 4, 0, 3, 5, 2], [2, 0, 5, 1, 3, 4]] {
        for unordered in [false, true] {
            let (mut net, hand) = receiver(quiet());
            for at in order {
                let (text, ssn, beginning, end) = pieces[at];
                let (beginning, end) = (beginning == 1, end == 1);
                let plain = hand.chunk(at as u32 + 1, text.as_bytes());
                let chunk = Data { ssn: Ssn(ssn), beginning, end, unordered, ..plain };
                hand.say(&mut net, &|w| w.data(&chunk).unwrap());
            }
            let mut got: Vec<_> =
                net.hosts[1].received.iter().map(|r| r.payload.to_vec()).collect();
            if unordered {
                got.sort();
            }
            assert_eq!(got, [&b"abc"[..], b"d", b"ef"], "{order:?}");
        }
    }
}

#[test]
fn s6_9_r2_r7_messages_are_fragmented_only_if_they_exceed_the_packet() {
    for mtu in [576u16, 1500, 9000] {
        // IP header, common header, DATA chunk header.
        let most = usize::from(mtu) - 20 - 12 - 16;
        for (len, pieces) in
            [(most - 1, 1), (most, 1), (most + 1, 2), (2 * most, 2), (2 * most + 1, 3)]
        {
            let mut flow = Flow::new(quiet().path_mtu(mtu).initial_cwnd(4));
            flow.give(1, len);
            let sent: Vec<DataSeen> = flow.net.sent(1).iter().flat_map(Sent::data).collect();
            assert_eq!(sent.len(), pieces, "{len} bytes over {mtu}");
            assert!(flow.net.sent(1).iter().all(|p| p.bytes.len() + 20 <= usize::from(mtu)));
        }
    }
}

#[test]
fn s6_9_r6_fragments_that_became_too_large_are_left_to_ip() {
    let mut net = pair(1, quiet().path_mtu_discovery(true).build().unwrap());
    let limit = std::rc::Rc::new(std::cell::Cell::new(1500));
    let now = limit.clone();
    net.filter(move |p| {
        let large = p.bytes.len() + 20 > now.get() && p.fragmentation != Fragmentation::Allowed;
        if large { Fate::Drop } else { Fate::Pass }
    });
    net.establish();
    net.run(S(5));
    limit.set(1300);
    net.send(0, 0, payload(1, 20_000)).unwrap();
    net.drive_until(S(100), |net| net.a(0).buffered() == 0);
    // Fragments for 1500 bytes cannot be fragmented again.
    let large: Vec<Sent> =
        net.sent_with(0, "DATA").into_iter().filter(|p| p.bytes.len() > 1280).collect();
    let through: Vec<&Sent> = large.iter().filter(|p| p.delivered).collect();
    assert!(!through.is_empty());
    assert!(through.iter().all(|p| p.fragmentation == Fragmentation::Allowed));
    assert_eq!(net.hosts[1].received[0].payload, payload(1, 20_000));
}

#[test]
fn s6_9_r8_a_sack_beside_data_stays_within_the_packet() {
    let (mut net, hand) = receiver(quiet());
    let mut n = 0;
    for len in FULL - 60..=FULL + 4 {
        // The number of gaps grows, and each SACK with it.
        n += 2;
        hand.data(&mut net, n);
        let mark = net.log.len();
        net.send(1, 0, payload(1, len)).unwrap();
        hand.data(&mut net, n);
        let sent = net.sent(1).iter().flat_map(Sent::data).count() as u32;
        hand.sack(&mut net, sent, &[]);
        net.run(MS(300));
        assert!(net.sent_since(1, mark).iter().all(|p| p.bytes.len() + 20 <= 1500), "{len}");
        let sent = net.sent(1).iter().flat_map(Sent::data).count() as u32;
        hand.sack(&mut net, sent, &[]);
    }
}

#[test]
fn s6_9_r9_r11_r12_r13_fragments_hold_tsns_in_sequence_and_their_bits() {
    for unordered in [false, true] {
        let mut net = established(1, quiet().build().unwrap());
        let message = Message { unordered, ..Message::new(StreamId(5), payload(1, 5 * FULL - 9)) };
        net.send_message(0, message).unwrap();
        net.run(S(1));
        let sent: Vec<DataSeen> = net.sent(0).iter().flat_map(Sent::data).collect();
        assert_eq!(sent.iter().map(|d| d.n).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(
            sent.iter().all(|d| d.unordered == unordered && d.stream == 5 && d.ssn == sent[0].ssn)
        );
        let bits: Vec<(bool, bool)> = sent.iter().map(|d| (d.beginning, d.end)).collect();
        assert_eq!(
            bits,
            [(true, false), (false, false), (false, false), (false, false), (false, true)]
        );
    }
}

#[test]
fn s6_9_r15_a_message_larger_than_the_buffer_is_delivered_in_parts() {
    let (mut net, hand) = small_receiver(8000);
    let text = [4; 1000];
    let mut bytes = 0;
    for n in 1..=40 {
        let chunk = Data { beginning: n == 1, end: n == 40, ssn: Ssn(0), ..hand.chunk(n, &text) };
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
        bytes += net.read(1).iter().map(|r| r.payload.len()).sum::<usize>();
    }
    assert_eq!((bytes, net.a(1).stats().dropped_no_buffer), (40_000, 0));
}

#[test]
fn s6_10_r1_no_packet_exceeds_the_path_mtu() {
    for mtu in [576u16, 1500] {
        let config = quiet().path_mtu(mtu).build().unwrap();
        let mut net = established(2, config);
        net.nth("DATA", &[3, 9, 20], Fate::Drop);
        for len in (1..3000).step_by(97) {
            net.send(0, 0, payload(1, len)).unwrap();
            net.send(1, 0, payload(1, 3000 - len)).unwrap();
            net.run(MS(7));
        }
        let now = net.now;
        for n in 0..40 {
            net.am(0).send(now, Message::new(StreamId(1), payload(n, 30))).unwrap();
        }
        net.run(S(5));
        assert!(net.log.iter().all(|p| p.bytes.len() + 20 <= usize::from(mtu)));
        assert!(net.sent(0).iter().any(|p| p.chunks.len() > 2), "bundled");
        assert!((0..2).all(|h| net.hosts[h].received.len() >= 31));
    }
}

#[test]
fn s6_10_r3_r4_control_chunks_first_and_data_in_order() {
    let mut net = established(1, quiet().build().unwrap());
    net.nth("DATA", &[2, 5, 6, 11], Fate::Drop);
    for len in (50..2000).step_by(97) {
        net.send(0, 0, payload(1, len)).unwrap();
        net.send(1, 0, payload(1, 2000 - len)).unwrap();
        let now = net.now;
        net.am(0).request_heartbeat(now, PathId(0)).unwrap();
        // A SACK is delayed at the other side when it sends next.
        net.run(MS(51));
        let now = net.now;
        for stream in 1..5 {
            net.am(0).send(now, Message::new(StreamId(stream), payload(1, 10))).unwrap();
        }
        net.settle();
        net.run(MS(11));
        net.send(1, 1, payload(1, 10)).unwrap();
        net.run(MS(100));
    }
    net.run(S(10));
    let (mut mixed, mut several) = (0, 0);
    for packet in &net.log {
        let names: Vec<bool> = packet.chunks.iter().map(|c| c.name == "DATA").collect();
        assert!(names.is_sorted(), "{}", packet.text());
        let numbers: Vec<u32> = packet.data().iter().map(|d| d.n).collect();
        assert!(numbers.windows(2).all(|w| w[0] < w[1]), "{}", packet.text());
        mixed += u32::from(names.contains(&false) && names.contains(&true));
        several += u32::from(numbers.len() > 1);
    }
    assert!(mixed > 3 && several > 3, "{mixed} {several}");
}

#[test]
fn s6_10_r5_no_partial_chunk_is_sent() {
    let mut net = established(1, quiet().path_mtu(576).build().unwrap());
    for len in 1..200 {
        net.send(0, 0, payload(1, 7 * len)).unwrap();
        net.run(MS(3));
    }
    net.run(S(2));
    for packet in &net.log {
        let mut at = 12;
        while at < packet.bytes.len() {
            let length =
                usize::from(u16::from_be_bytes([packet.bytes[at + 2], packet.bytes[at + 3]]));
            at += length.next_multiple_of(4);
        }
        assert_eq!(at, packet.bytes.len(), "{}", packet.text());
    }
}

#[test]
fn s6_10_r6_chunks_are_processed_in_their_order() {
    // DATA before the ABORT is delivered, DATA after it is not.
    let (mut net, hand) = receiver(quiet());
    let (one, two) = (hand.chunk(1, b"before"), hand.chunk(2, b"behind"));
    hand.say(&mut net, &|w| {
        w.data(&one).unwrap();
        w.abort(false, |_| Ok(())).unwrap();
        w.data(&two).unwrap();
    });
    assert_eq!(net.read(1).len() + net.hosts[1].received.len(), 1);
    // COOKIE ACK before a SACK: data sent with the COOKIE ECHO is acknowledged.
    let (mut net, hand) = State::Established.reach();
    let answers = hand.say(&mut net, &|w| {
        w.heartbeat(b"first").unwrap();
        w.heartbeat(b"second").unwrap();
    });
    let texts = texts(&answers).join(" + ");
    assert_eq!(texts, "HEARTBEAT ACK + HEARTBEAT ACK");
    let bytes: Vec<u8> = answers.iter().flat_map(|p| p.bytes.clone()).collect();
    let at = |what: &[u8]| bytes.windows(what.len()).position(|w| w == what).unwrap();
    assert!(at(b"first") < at(b"second"));
}

#[test]
fn s6_10_r7_a_partial_chunk_is_dropped() {
    for cut in (4..28).step_by(4) {
        let (mut net, hand) = receiver(quiet());
        let (one, two) = (hand.chunk(1, b"whole"), hand.chunk(2, b"not all of it"));
        let mut packet = hand.packet(hand.peer_tag, &|w| {
            w.data(&one).unwrap();
            w.data(&two).unwrap();
        });
        packet.truncate(packet.len() - cut);
        seal(&mut packet);
        hand.raw(&mut net, &packet);
        net.run(S(1));
        assert_eq!(net.hosts[1].received.len(), 1, "{cut} bytes are missing");
        assert!(net.sent(1).iter().all(|p| !p.has("SACK 2")));
        assert!(net.a(1).is_established());
    }
}

#[test]
fn s6_10_r8_three_chunks_stand_alone() {
    let mut net = pair(1, quiet().build().unwrap());
    net.drop_once(&["INIT", "INIT ACK", "COOKIE ECHO", "SHUTDOWN COMPLETE"]);
    net.connect(0);
    net.send(0, 0, payload(1, 10)).unwrap();
    net.run(S(20));
    net.send(1, 0, payload(1, 10)).unwrap();
    net.shutdown(1);
    net.run(S(20));
    for alone in ["INIT", "INIT ACK", "SHUTDOWN COMPLETE"] {
        let sent: Vec<&Sent> = net.log.iter().filter(|p| p.has(alone)).collect();
        assert!(!sent.is_empty() && sent.iter().all(|p| p.chunks.len() == 1), "{alone}");
    }
    assert!(net.closed(0).is_some() && net.closed(1).is_some());
}
