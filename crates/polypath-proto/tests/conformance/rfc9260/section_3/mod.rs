//! RFC 9260, section 3: SCTP Packet Format.

mod chunks;
mod data;
mod init;
mod init_ack;

use std::collections::BTreeSet;

use crate::bytes::{Raw, chunk, chunks, parameters, reseal, u32_at};
use crate::common::*;
use polypath_proto::wire::{self, Chunk, cause_code, parameter_type};
use polypath_proto::*;

/// A listening host, and a hand-built peer that has an association with it.
fn opened() -> (Net, Hand) {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    (net, hand)
}

/// Two hosts with two paths. They send every chunk type of RFC 9260: messages of all lengths modulo
/// four, with losses, an unknown chunk, a graceful shutdown, and an aborted association.
fn conversation() -> Net {
    let mut net = pair(2, Config::rfc9260());
    net.connect(0);
    net.send(0, 3, payload(1, 3001)).unwrap();
    net.drive_until(S(5), Net::all_active);
    net.nth("DATA", &[4, 9], Fate::Drop);
    net.nth("DATA", &[7], Fate::Twice);
    for len in (1..20).chain([2999, 3000]) {
        for h in 0..2 {
            net.send(h, (len % 5) as u16, payload(len as u64, len)).unwrap();
            let message = Message::new(StreamId(7), payload(len as u64, len + 1500));
            net.send_message(h, Message { unordered: true, ..message }).unwrap();
        }
    }
    net.run(S(60));
    net.shutdown(0);
    net.run(S(1));
    assert_eq!((net.closed(0), net.closed(1)), (Some(CloseReason::Graceful), net.closed(0)));
    let hand = Hand::new(1).open(&mut net);
    hand.say(&mut net, &|w| w.typed_chunk(0xc7, 0, b"?").unwrap());
    net.abort(1, b"a reason of an odd length..");
    let names = ["INIT", "INIT ACK", "COOKIE ECHO", "COOKIE ACK", "DATA", "SACK", "HEARTBEAT"];
    let others =
        ["HEARTBEAT ACK", "SHUTDOWN", "SHUTDOWN ACK", "SHUTDOWN COMPLETE", "ERROR", "ABORT"];
    for name in names.into_iter().chain(others) {
        assert!(net.log.iter().any(|p| p.has(name)), "no {name}");
    }
    net
}

/// The packets that the hosts sent in a conversation.
fn packets() -> Vec<Sent> {
    let net = conversation();
    (0..2).flat_map(|h| net.sent(h)).collect()
}

/// The verification tag that the sender of this INIT or INIT ACK requires in packets to it.
fn initiate_tag(sent: &Sent) -> u32 {
    u32_at(&chunks(&sent.bytes)[0].value, 0)
}

#[test]
fn s3_r1_init_init_ack_and_shutdown_complete_travel_alone() {
    for packet in packets() {
        let alone = ["INIT", "INIT ACK", "SHUTDOWN COMPLETE"].iter().any(|name| packet.has(name));
        assert!(!alone || packet.chunks.len() == 1, "{}", packet.text());
    }
    // A SHUTDOWN COMPLETE is due while a HEARTBEAT ACK waits to be sent.
    let (mut net, hand) = opened();
    net.shutdown(1);
    let answers = hand.say(&mut net, &|w| {
        w.heartbeat(b"info").unwrap();
        w.shutdown_ack().unwrap();
    });
    let complete = answers.iter().find(|p| p.has("SHUTDOWN COMPLETE")).expect("it ends");
    assert_eq!(complete.text(), "SHUTDOWN COMPLETE");
}

#[test]
fn s3_r2_integers_are_in_network_byte_order() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let mut init = vec![0x24, 0x2c, 0x24, 0x2c, 0, 0, 0, 0, 0, 0, 0, 0];
    init.extend([1, 0, 0, 20, 0xaa, 0xbb, 0xcc, 0xdd, 0, 1, 0, 2, 0, 3, 0, 4, 0, 0, 1, 0]);
    reseal(&mut init);
    let answers = hand.raw(&mut net, &init);
    let ack = &answers[0].bytes;
    // The ports (9260), and the tag of the INIT.
    assert_eq!(ack[..8], [0x24, 0x2c, 0x24, 0x2c, 0xaa, 0xbb, 0xcc, 0xdd]);
    let chunk = chunk(ack, 2);
    assert_eq!(chunk.length + chunk.padding.len() + 12, ack.len());
    // a_rwnd of 1 MiB; 4 outbound streams, as the INIT allows, and 2048 inbound ones.
    assert_eq!(chunk.value[4..12], [0, 0x10, 0, 0, 0, 4, 8, 0]);
    let cookie = &parameters(&chunk)[0];
    assert_eq!((cookie.ty, cookie.length), (7, cookie.value.len() + 4));
    let mut same = Hand { tag: 0xaabb_ccdd, tsn: 0x100, streams: (3, 4), ..hand };
    same.learn(&answers[0]);
    same.echo(&mut net);
    assert_eq!(net.a(1).peer_rwnd(), 0x0001_0002);
    assert_eq!((net.a(1).outbound_streams(), net.a(1).inbound_streams()), (4, 3));
    same.data(&mut net, 1);
    assert_eq!(u32_at(&chunk_of_last(&net, 3).value, 0), 0x100, "the SACK acknowledges TSN 256");
}

fn chunk_of_last(net: &Net, ty: u16) -> Raw {
    chunk(&net.log.last().expect("a packet").bytes, ty)
}

#[test]
fn s3_1_r1_r2_port_0_is_not_used() {
    let mut net = Setup { listens: [true, true], ..Setup::default() }.build();
    let remotes = net.remotes(1);
    let _ = net.hosts[0].endpoint.connect(net.now, 0, &remotes);
    net.run(S(5));
    assert_eq!(net.script(), [""; 0], "nothing is sent to port 0");
    // Neither an INIT nor anything else from port 0 is answered.
    let hand = Hand { port: 0, ..Hand::new(1) };
    assert!(hand.init(&mut net, &|_| {}).is_empty());
    assert!(hand.say_with_tag(&mut net, 7, &|w| w.shutdown_ack().unwrap()).is_empty());
    let mut to_zero = Hand::new(1).packet(7, &|w| w.heartbeat(b"?").unwrap());
    to_zero[2..4].fill(0);
    reseal(&mut to_zero);
    assert!(hand.raw(&mut net, &to_zero).is_empty());
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
}

#[test]
fn s3_1_r3_r4_every_packet_has_the_tag_of_its_receiver() {
    let net = conversation();
    let two_hosts: Vec<&Sent> = net.log.iter().filter(|p| p.from.ip() != Hand::new(1).ip).collect();
    let (init, ack) = (initiate_tag(two_hosts[0]), initiate_tag(two_hosts[1]));
    let mut counts = [0; 3];
    for packet in two_hosts.iter().filter(|p| p.to.ip() != Hand::new(1).ip) {
        let from_first = net.hosts[0].addresses.contains(&packet.from.ip());
        let expected = match (packet.has("INIT"), from_first) {
            (true, _) => (0, 0),
            (false, true) => (1, ack),
            (false, false) => (2, init),
        };
        counts[expected.0] += 1;
        assert_eq!(u32_at(&packet.bytes, 4), expected.1, "{}", packet.text());
    }
    assert!(counts[0] == 1 && counts[1] > 20 && counts[2] > 20, "{counts:?}");
}

#[test]
fn s3_1_r5_a_shutdown_complete_with_the_t_bit_has_the_tag_of_the_shutdown_ack() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    for tag in [1, 0x1234_5678, u32::MAX] {
        let answers = hand.say_with_tag(&mut net, tag, &|w| w.shutdown_ack().unwrap());
        assert_eq!((answers[0].text().as_str(), answers[0].tag), ("SHUTDOWN COMPLETE T", tag));
    }
}

#[test]
fn s3_2_r1_r2_r3_chunks_are_padded_to_four_bytes_with_zeros() {
    let mut rests = BTreeSet::new();
    for packet in packets() {
        assert_eq!(packet.bytes.len() % 4, 0);
        // More than three bytes of padding would be parsed as a chunk of type 0 and length 0.
        for chunk in chunks(&packet.bytes) {
            assert_eq!((chunk.length + chunk.padding.len()) % 4, 0);
            assert!(chunk.padding.iter().all(|b| *b == 0), "{}", packet.text());
            rests.insert((chunk.ty, chunk.length % 4));
        }
    }
    assert!((0..4).all(|rest| rests.contains(&(0, rest))), "DATA chunks of all lengths");
    assert!(rests.iter().filter(|(ty, rest)| *ty > 0 && *rest > 0).count() >= 2, "{rests:?}");
}

#[test]
fn s3_2_r4_the_padding_of_chunks_is_ignored() {
    let (mut net, hand) = opened();
    let mut packet = hand.packet(hand.peer_tag, &|w| {
        w.data(&hand.chunk(1, b"a")).unwrap();
        w.typed_chunk(0xc7, 0, b"?").unwrap();
        w.data(&hand.chunk(2, b"bc")).unwrap();
    });
    for at in [29, 30, 31, 37, 38, 39, 58, 59] {
        assert_eq!(packet[at], 0);
        packet[at] = 0xff;
    }
    reseal(&mut packet);
    let answers = hand.raw(&mut net, &packet);
    let payloads: Vec<&[u8]> = net.hosts[1].received.iter().map(|r| &r.payload[..]).collect();
    assert_eq!(payloads, [&b"a"[..], b"bc"]);
    let error = answers.iter().find(|p| p.has("ERROR")).expect("a report");
    assert_eq!(chunk(&error.bytes, 9).value, [0, 6, 0, 9, 0xc7, 0, 0, 5, b'?'], "without padding");
}

/// All extensions, and addresses of both families: an INIT with every known parameter.
fn rich() -> Setup {
    let config = Config::rfc9260()
        .to_builder()
        .partial_reliability(true)
        .stream_reconfiguration(true)
        .interleaving(true)
        .authentication(true)
        .dynamic_addresses(true)
        .adaptation_layer(Some(7))
        .ecn(true)
        .nr_sack(true)
        .build()
        .unwrap();
    Setup { paths: 2, dual: true, configs: [config.clone(), config], ..Setup::default() }
}

#[test]
fn s3_2_1_r1_r2_parameters_are_padded_to_four_bytes() {
    let mut net = rich().build();
    net.connect(0);
    net.run(MS(15));
    let hand = Hand::new(1);
    hand.init(&mut net, &|p| {
        p.typed(0xc0f0, b"1").unwrap();
        p.typed(0xc0f1, b"12").unwrap();
        p.typed(0xc0f2, b"123").unwrap();
    });
    let mut odd = 0;
    for packet in net.sent(0).iter().chain(&net.sent(1)) {
        let init = &chunks(&packet.bytes)[0];
        let list = parameters(init);
        let (last, others) = list.split_last().expect("parameters");
        assert!(last.padding.is_empty(), "the last one's padding is the chunk's");
        assert_eq!((last.length + init.padding.len()) % 4, 0);
        for parameter in others {
            assert_eq!((parameter.length + parameter.padding.len()) % 4, 0);
            assert!(parameter.padding.iter().all(|b| *b == 0));
            odd += usize::from(parameter.length % 4 != 0);
        }
        // More than three bytes of padding would be parsed as a parameter of type 0.
        assert!(list.iter().all(|parameter| parameter.ty != 0));
    }
    assert!(odd >= 4, "{odd}");
}

#[test]
fn s3_2_1_r3_the_padding_of_parameters_is_ignored() {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    let mut packet = hand.packet(0, &|w| {
        w.init(&hand.fields(), |p| {
            p.typed(0x8042, b"a")?;
            p.ipv4([10, 0, 0, 77].into())
        })
        .unwrap();
    });
    packet[37..40].fill(0xff);
    reseal(&mut packet);
    let answers = hand.raw(&mut net, &packet);
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    let remotes: Vec<_> = net.a(1).paths().map(|p| p.remote).collect();
    assert!(remotes.contains(&"10.0.0.77".parse().unwrap()), "{remotes:?}");
}

/// The parameter in an INIT, in an error cause and in an ASCONF (RFC 5061 4.2).
#[test]
fn s3_2_1_r5_type_5_is_an_ipv4_address_in_every_chunk() {
    let (mut net, hand) = opened();
    let again = Hand { tag: 77, ..hand };
    let answers = again.init(&mut net, &|p| p.ipv4([10, 0, 0, 77].into()).unwrap());
    let causes = crate::bytes::elements(&chunk(&answers[0].bytes, 6).value);
    assert_eq!(causes[0].ty, cause_code::RESTART_WITH_NEW_ADDRESSES);
    let address = [0, 5, 0, 8, 10, 0, 0, 77];
    assert_eq!(causes[0].value, address);
    let mut net = rich().build();
    net.establish();
    net.comes(0, v4(2, 0));
    net.run(S(1));
    let asconfs = net.sent_with(0, "ASCONF");
    assert_eq!(asconfs.len(), 1, "{}", net.tail(30));
    assert!(asconfs[0].bytes.windows(8).any(|w| w == [0, 5, 0, 8, 10, 2, 0, 1]));
    assert_eq!(parameter_type::IPV4, 5);
}

#[test]
fn s3_2_2_r1_unrecognized_parameters_of_an_init_are_reported_in_the_init_ack() {
    let mut net = pair(1, Config::rfc9260());
    let answers = Hand::new(1).init(&mut net, &|p| {
        p.typed(0xc0f0, b"report").unwrap();
        p.typed(0x80f0, b"do not report").unwrap();
        p.typed(0x40f0, b"report, stop").unwrap();
        p.typed(0xc0f1, b"after the stop").unwrap();
    });
    let list = parameters(&chunk(&answers[0].bytes, 2));
    let reports: Vec<&[u8]> = list.iter().filter(|p| p.ty == 8).map(|p| &p.value[..]).collect();
    let whole = [&b"\xc0\xf0\0\x0areport"[..], b"\x40\xf0\0\x10report, stop"];
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(reports.iter().zip(whole).all(|(report, whole)| report.starts_with(whole)));
}

#[test]
fn s3_2_2_r2_r3_unrecognized_parameters_of_an_init_ack_are_reported_behind_the_cookie_echo() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    let answers = hand.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            p.typed(0xc0f0, b"?!")?;
            p.state_cookie(b"cookie")
        })
        .unwrap();
    });
    assert_eq!(answers[0].text(), "COOKIE ECHO + ERROR (Unrecognized Parameters)");
    let causes = crate::bytes::elements(&chunk(&answers[0].bytes, 9).value);
    assert!(causes[0].value.starts_with(b"\xc0\xf0\0\x06?!"), "{causes:?}");
    // It is the first chunk of its packet in every retransmission, whatever else is waiting.
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(20));
    let echoes = net.sent_with(0, "COOKIE ECHO");
    assert!(echoes.len() > 3 && echoes.iter().all(|p| p.chunks[0].name == "COOKIE ECHO"));
}
