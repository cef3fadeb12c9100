//! Authenticated chunks: RFC 4895.

use crate::common::*;
use polypath_proto::wire::{
    Checksum, Chunk, CommonHeader, Packet, PacketWriter, cause_code, chunk_type, parameter_type,
};
use polypath_proto::{
    AuthKeys, ChunkTypes, Config, ConfigBuilder, Event, KeyError, PathMtuState, VerificationTag,
};

fn config(chunks: &[u8]) -> ConfigBuilder {
    Config::rfc9260()
        .to_builder()
        .authentication(true)
        .authenticated_chunks(ChunkTypes::authenticated(chunks))
}

fn pair_with(chunks: &[u8]) -> Net {
    pair(2, config(chunks).build().unwrap())
}

fn joined(chunks: &[u8]) -> Net {
    let mut net = pair_with(chunks);
    net.establish();
    net
}

/// The chunks before the AUTH chunk, and those after it.
fn parts(packet: &Sent) -> (Vec<&str>, Vec<&str>) {
    let names: Vec<&str> = packet.chunks.iter().map(|c| c.name.as_str()).collect();
    match names.iter().position(|name| *name == "AUTH") {
        Some(at) => (names[..at].to_vec(), names[at + 1..].to_vec()),
        None => (names, Vec::new()),
    }
}

#[test]
fn what_is_asked_for_stands_behind_an_auth_chunk_and_nothing_else_needs_one() {
    let mut net = joined(&[chunk_type::DATA, chunk_type::COOKIE_ECHO]);
    for h in 0..2 {
        net.send(h, 0, payload(1, 60_000)).unwrap();
    }
    net.run(S(5));
    net.shutdown(0);
    net.run(S(5));
    assert!(net.closed(0).unwrap().is_graceful() && net.closed(1).unwrap().is_graceful());
    assert_eq!(net.hosts[1].received.len() + net.hosts[0].received.len(), 2);
    let (mut with, mut without) = (0, 0);
    for packet in &net.log {
        let (before, behind) = parts(packet);
        assert!(!before.contains(&"DATA") && !before.contains(&"COOKIE ECHO"), "{}", packet.text());
        with += u32::from(!behind.is_empty());
        without += u32::from(behind.is_empty());
        assert!(packet.bytes.len() <= 1480, "{}", packet.bytes.len());
    }
    assert!(with > 80 && without > 20, "{with} {without}");
    assert_eq!((net.a(0).stats().bad_auth, net.a(1).stats().bad_auth), (0, 0));
}

#[test]
fn full_packets_are_full_and_no_longer() {
    for (chunks, size) in [(&[chunk_type::DATA][..], 1480), (&[chunk_type::COOKIE_ECHO], 1480)] {
        let mut net = joined(chunks);
        net.send(0, 0, payload(1, 60_000)).unwrap();
        net.run(S(5));
        let most = net.sent_with(0, "DATA").iter().map(|p| p.bytes.len()).max();
        assert_eq!(most, Some(size));
    }
}

#[test]
fn a_peer_without_it_gets_data_as_ever() {
    for sides in [[true, false], [false, true]] {
        let of = |on| if on { config(&[chunk_type::DATA]) } else { Config::rfc9260().to_builder() };
        let configs = sides.map(|on| of(on).build().unwrap());
        let mut net = Setup { configs, paths: 2, ..Setup::default() }.build();
        net.establish();
        for h in 0..2 {
            net.send(h, 0, payload(1, 6000)).unwrap();
        }
        net.run(S(2));
        assert_eq!(net.hosts[1].received.len() + net.hosts[0].received.len(), 2);
        assert!(net.log.iter().all(|p| !p.has("AUTH")));
        assert_eq!(net.a(0).peer_auth_chunks(), None);
    }
    // Without support for it, the INIT has no RANDOM parameter.
    let mut net = established(1, Config::rfc9260());
    net.run(S(1));
    let random = parameter_type::RANDOM.to_be_bytes();
    assert!(!net.log[0].bytes.windows(4).any(|w| w[..2] == random && w[2..] == [0, 36]));
}

#[test]
fn both_sides_may_open_at_once() {
    let config = config(&[chunk_type::DATA, chunk_type::COOKIE_ECHO, chunk_type::COOKIE_ACK]);
    let configs = [config.clone().build().unwrap(), config.build().unwrap()];
    let mut net = Setup { configs, listens: [true; 2], ..Setup::default() }.build();
    net.connect(0);
    net.connect(1);
    net.drive_until(S(10), Net::all_active);
    for h in 0..2 {
        net.send(h, 0, payload(1, 6000)).unwrap();
    }
    net.run(S(2));
    assert_eq!(net.hosts[1].received.len() + net.hosts[0].received.len(), 2);
    assert_eq!((net.a(0).stats().bad_auth, net.a(1).stats().bad_auth), (0, 0));
    assert_eq!(net.a(0).peer_auth_chunks(), net.a(1).local_auth_chunks());
}

/// The size of a probe includes the AUTH chunk if HEARTBEATs need one.
#[test]
fn the_path_mtu_is_found() {
    for chunks in [&[chunk_type::HEARTBEAT][..], &[chunk_type::PAD], &[chunk_type::DATA]] {
        let config = config(chunks).path_mtu_discovery(true).build().unwrap();
        let mut net = pair(1, config);
        net.filter(|p| if p.bytes.len() > 1300 - 20 { Fate::Drop } else { Fate::Pass });
        net.connect(0);
        net.run(S(60));
        let mtu = net.a(0).path_mtu(polypath_proto::PathId(0)).unwrap();
        assert_eq!(mtu.state, PathMtuState::SearchComplete);
        assert!((1269..=1300).contains(&mtu.mtu), "{chunks:?} {mtu:?}");
        net.send(0, 0, payload(1, 30_000)).unwrap();
        net.run(S(5));
        assert_eq!(net.hosts[1].received.len(), 1);
        assert!(net.sent_with(0, "DATA").iter().all(|p| p.delivered));
    }
}

#[test]
fn lost_chunks_are_authenticated_anew() {
    let mut net = joined(&[chunk_type::DATA, chunk_type::SACK]);
    net.nth("DATA", &[3, 4, 9], Fate::Drop);
    net.nth("SACK", &[2, 3], Fate::Drop);
    net.send(0, 0, payload(1, 60_000)).unwrap();
    net.run(S(10));
    assert_eq!(net.hosts[1].received.len(), 1);
    for packet in net.log.iter().filter(|p| p.has("SACK") || p.has("DATA")) {
        assert_eq!(parts(packet).0, [""; 0]);
    }
}

/// Changes a packet and recomputes its checksum.
fn forged(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes);
    bytes[8..12].fill(0);
    let crc = polypath_proto::wire::checksum(&bytes).to_le_bytes();
    bytes[8..12].copy_from_slice(&crc);
    bytes
}

#[test]
fn a_changed_packet_is_dropped_and_counted() {
    let mut net = joined(&[chunk_type::DATA]);
    let mut count = 0;
    net.filter(move |p| {
        count += u32::from(p.has("DATA"));
        match (p.has("DATA"), count) {
            // Change the payload, the HMAC, the key id.
            (true, 1) => Fate::Changed(forged(&p.bytes, |b| *b.last_mut().unwrap() ^= 1)),
            (true, 2) => Fate::Changed(forged(&p.bytes, |b| b[30] ^= 1)),
            (true, 3) => Fate::Changed(forged(&p.bytes, |b| b[17] ^= 1)),
            _ => Fate::Pass,
        }
    });
    net.send(0, 0, payload(1, 10_000)).unwrap();
    net.run(S(20));
    assert_eq!(net.a(1).stats().bad_auth, 3);
    assert_eq!(net.hosts[1].received[0].payload, payload(1, 10_000));
}

#[test]
fn what_is_not_authenticated_is_as_if_it_had_not_come() {
    let list = [chunk_type::DATA, chunk_type::ABORT, chunk_type::SACK];
    let mut net = joined(&list);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(1));
    let tag = net.sent_with(0, "DATA")[0].tag;
    let (from, to) = ((v4(0, 0), 0).into(), (v4(0, 1), 0).into());
    let mut say = |chunks: &dyn Fn(&mut PacketWriter<'_>), tag: u32| {
        let header = CommonHeader {
            source_port: PORT,
            destination_port: PORT,
            verification_tag: VerificationTag(tag),
        };
        let mut buf = vec![0; 1500];
        let mut w = PacketWriter::new(&mut buf, header);
        chunks(&mut w);
        let len = w.finish(Checksum::Verify);
        let mark = net.log.len();
        net.inject(from, to, &buf[..len]);
        net.script_since(mark + 1)
    };
    // A host that knows the tag cannot abort the association or inject data.
    assert!(say(&|w| w.abort(false, |_| Ok(())).unwrap(), tag).is_empty());
    let data = Hand::new(1).chunk(2, b"mine");
    assert!(say(&|w| w.data(&data).unwrap(), tag).is_empty());
    // A DATA chunk without data would abort the association.
    assert!(say(&|w| w.typed_chunk(chunk_type::DATA, 3, &[0; 12]).unwrap(), tag).is_empty());
    let code = |w: &mut PacketWriter<'_>, id: u16| {
        let auth = polypath_proto::wire::Auth { key_id: 0, hmac_id: id, hmac: &[0; 32] };
        w.chunk(&Chunk::Auth(auth)).unwrap();
    };
    let behind_a_wrong_code = |w: &mut PacketWriter<'_>| {
        code(w, 3);
        w.heartbeat(b"?").unwrap();
    };
    assert!(say(&behind_a_wrong_code, tag).is_empty());
    // RFC 4895 6.3: an HMAC that was not listed.
    let answer = say(&|w| code(w, 2), tag);
    assert_eq!(answer, ["B ERROR (Unsupported HMAC Identifier)"]);
    // Chunks that need no authentication are accepted.
    assert_eq!(say(&|w| w.heartbeat(b"?").unwrap(), tag), ["B HEARTBEAT ACK"]);
    // An ABORT with the reflected tag cannot be authenticated.
    let peer = net.sent_with(1, "SACK")[0].tag;
    let mut say = |chunks: &dyn Fn(&mut PacketWriter<'_>), tag: u32| {
        let hand = Hand { ip: v4(0, 0), ..Hand::new(1) };
        let packet = hand.packet(tag, chunks);
        net.inject(from, to, &packet);
    };
    say(&|w| w.abort(true, |_| Ok(())).unwrap(), peer);
    assert!(net.a(1).is_established());
    let stats = net.a(1).stats();
    assert_eq!((stats.unauthenticated, stats.bad_auth), (4, 2));
    assert_eq!(cause_code::UNSUPPORTED_HMAC_IDENTIFIER, 0x0105);
    net.send(0, 0, payload(2, 100)).unwrap();
    net.run(S(1));
    assert_eq!(net.hosts[1].received.len(), 2);
}

/// RFC 4895 6.3: chunks after AUTH and COOKIE ECHO are authenticated too; without a valid HMAC
/// there is no association.
#[test]
fn a_cookie_has_to_be_authenticated_if_that_is_asked_for() {
    let mut net = pair_with(&[chunk_type::COOKIE_ECHO]);
    net.connect(0);
    net.send(0, 0, payload(1, 100)).unwrap();
    let strip = |p: &Sent| match parts(p).1.first() {
        Some(&"COOKIE ECHO") => Fate::Changed(forged(&p.bytes, |b| {
            b.drain(12..52);
        })),
        _ => Fate::Pass,
    };
    net.filter(strip);
    net.run(S(2));
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
    assert!(net.hosts[1].endpoint.stats().bad_cookies > 0);
    net.no_filters();
    net.run(S(10));
    assert!(net.a(1).is_established());
    assert_eq!(net.hosts[1].received.len(), 1);

    // A host without AUTH gets no association either.
    let configs = [Config::rfc9260(), config(&[chunk_type::COOKIE_ECHO]).build().unwrap()];
    let mut net = Setup { configs, ..Setup::default() }.build();
    net.connect(0);
    net.run(S(30));
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
}

#[test]
fn a_secret_keeps_strangers_out() {
    let key = |secret: &[u8]| {
        let mut keys = AuthKeys::default();
        keys.set(1, secret).unwrap();
        keys.activate(1).unwrap();
        keys.delete(0).unwrap();
        keys
    };
    for (theirs, open) in [(&b"secret"[..], true), (b"Secret", false)] {
        let config = config(&[chunk_type::COOKIE_ECHO, chunk_type::DATA]).build().unwrap();
        let setup = Setup {
            configs: [config.clone(), config],
            auth_keys: [key(b"secret"), key(theirs)],
            ..Setup::default()
        };
        let mut net = setup.build();
        net.connect(0);
        net.run(S(20));
        assert_eq!(net.hosts[1].endpoint.associations().count() > 0, open);
    }
}

#[test]
fn keys_are_changed_while_it_runs() {
    let mut net = joined(&[chunk_type::DATA]);
    for h in [1, 0] {
        net.am(h).change_auth_keys(|keys| keys.set(9, b"later")).unwrap();
    }
    let mark = net.log.len();
    net.am(0).change_auth_keys(|keys| keys.activate(9)).unwrap();
    net.send(0, 0, payload(1, 1000)).unwrap();
    // RFC 6458 6.1.8: the peer's application learns when a key is used for the first time.
    let used = Event::AuthKeyUsed { key: 9 };
    assert!(!net.saw(1, &used));
    net.run(S(1));
    assert!(net.saw(1, &used) && !net.saw(0, &used));
    assert_eq!(net.hosts[1].received.len(), 1);
    let packet = net.log[mark..].iter().find(|p| p.has("DATA")).unwrap();
    let parsed = Packet::parse(&packet.bytes, Checksum::Verify).unwrap();
    assert!(parsed.chunks().any(|c| matches!(c, Ok(Chunk::Auth(auth)) if auth.key_id == 9)));
    // The other side has deleted the key: no data is accepted until it has the key again.
    net.am(1).change_auth_keys(|keys| keys.delete(9)).unwrap();
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(S(3));
    assert_eq!(net.hosts[1].received.len(), 1);
    assert!(net.a(1).stats().bad_auth > 0);
    net.am(1).change_auth_keys(|keys| keys.set(9, b"later")).unwrap();
    net.run(S(10));
    assert_eq!(net.hosts[1].received.len(), 2);
    let refused = net.am(0).change_auth_keys(|keys| keys.delete(9));
    assert_eq!(refused, Err(KeyError::Active(9)));
}

/// RFC 4895 6.1.
#[test]
fn a_random_number_of_another_length_is_a_violation() {
    let mut net = pair_with(&[]);
    let hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| {
        p.random(&[1; 31]).unwrap();
        p.hmac_algorithms(&[3, 1]).unwrap();
    });
    assert_eq!(answers[0].causes(), [cause_code::PROTOCOL_VIOLATION]);
    // An incomplete offer counts as none, as does one without a known HMAC or with too many of
    // them.
    for hmacs in [None, Some(&[2, 4][..]), Some(&[1; 17])] {
        let answers = hand.init(&mut net, &|p| {
            p.random(&[1; 32]).unwrap();
            if let Some(hmacs) = hmacs {
                p.hmac_algorithms(hmacs).unwrap();
            }
        });
        assert!(answers[0].has("INIT ACK"));
        assert!(!answers[0].bytes.windows(4).any(|w| w == [0x80, 2, 0, 36]));
    }
    let answers = hand.init(&mut net, &|p| {
        p.random(&[1; 32]).unwrap();
        p.hmac_algorithms(&[1]).unwrap();
    });
    assert!(answers[0].bytes.windows(4).any(|w| w == [0x80, 2, 0, 36]));
}

#[test]
fn the_peer_restarts_with_other_numbers() {
    let mut net = joined(&[chunk_type::DATA]);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(S(1));
    let config = config(&[chunk_type::DATA]).build().unwrap();
    let setup = Setup { paths: 2, seed: 9, ..Setup::default() };
    net.hosts[0] = setup.host(0, &config, false);
    net.connect(0);
    net.run(S(5));
    assert!(net.saw(1, &Event::Restarted));
    net.send(0, 0, payload(2, 1000)).unwrap();
    net.send(1, 0, payload(2, 1000)).unwrap();
    net.run(S(2));
    assert_eq!((net.hosts[0].received.len(), net.hosts[1].received.len()), (1, 2));
}
