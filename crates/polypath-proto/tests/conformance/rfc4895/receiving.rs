//! Section 6.3: receiving authenticated chunks.

use super::*;
use polypath_proto::wire::{asconf_type, cause_code};

/// Nothing was answered, and nothing was delivered.
fn silent(net: &Net, answers: &[Sent]) -> bool {
    answers.is_empty() && net.hosts[1].received.is_empty() && net.a(1).is_established()
}

#[test]
fn s6_3_r1_listed_chunks_that_are_not_behind_an_auth_chunk_are_discarded() {
    let mut net = pair_with(&[DATA, 6], &[]);
    let peer = Peer::open(&mut net, &[]);
    let data = peer.hand.chunk(1, b"data");
    let answers = peer.hand.data(&mut net, 1);
    assert!(silent(&net, &answers));
    let answers = peer.hand.say(&mut net, &|w| w.abort(false, |_| Ok(())).unwrap());
    assert!(silent(&net, &answers));
    // DATA before the AUTH chunk is discarded; the HEARTBEAT after it is processed.
    let packet = peer.sealed(&|w| w.data(&data).unwrap(), &|w| w.heartbeat(b"?").unwrap());
    let answers = peer.hand.raw(&mut net, &packet);
    assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["HEARTBEAT ACK"]);
    net.run(S(1));
    assert!(silent(&net, &[]));
    // Unlisted chunks are processed before the AUTH chunk, and DATA after it.
    let packet = peer.sealed(&|w| w.heartbeat(b"?").unwrap(), &|w| w.data(&data).unwrap());
    let answers = peer.hand.raw(&mut net, &packet);
    assert!(answers.iter().any(|p| p.has("HEARTBEAT ACK")));
    assert!(answers.iter().any(|p| p.has("SACK 1")));
    peer.say(&mut net, &|w| w.abort(false, |_| Ok(())).unwrap());
    assert!(net.a(1).is_closed());
}

/// A chunk without user data is of the type that its header has, DATA or I-DATA.
#[test]
fn s6_3_r1_the_type_of_a_chunk_without_user_data_counts_too() {
    let data: &[u8] = &[DATA, 3, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let i_data: &[u8] = &[I_DATA, 3, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (listed, chunk) in [(DATA, data), (DATA, i_data), (I_DATA, data), (I_DATA, i_data)] {
        let mut net = pair_with(&[listed], &[]);
        let peer = Peer::open(&mut net, &[]);
        let mut packet = peer.hand.packet(peer.hand.peer_tag, &|_| ());
        packet.extend_from_slice(chunk);
        reseal(&mut packet);
        let answers = peer.hand.raw(&mut net, &packet);
        // 6.2 of RFC 9260: an ABORT, unless the chunk had to be authenticated.
        assert_eq!(silent(&net, &answers), listed == chunk[0], "{listed} {chunk:?}");
        assert_eq!(net.a(1).is_closed(), listed != chunk[0]);
    }
}

#[test]
fn s6_3_r2_each_packet_names_its_algorithm() {
    let mut net = pair_with(&[DATA], &[]);
    let mut peer = Peer::open(&mut net, &[]);
    for (n, hmac) in [(1, SHA_256), (2, SHA_1), (3, SHA_1), (4, SHA_256)] {
        peer.hmac = hmac;
        peer.data(&mut net, n, b"x");
        assert_eq!(payloads(&net).len(), n as usize);
    }
}

#[test]
fn s6_3_r3_an_algorithm_that_was_not_listed_is_reported_and_what_follows_discarded() {
    for id in [0, 2, 4, 0xffff] {
        let mut net = pair_with(&[DATA], &[]);
        let mut peer = Peer::open(&mut net, &[]);
        peer.hmac = id;
        let data = peer.hand.chunk(1, b"data");
        let answers = peer.say(&mut net, &|w| {
            w.heartbeat(b"?").unwrap();
            w.data(&data).unwrap();
        });
        assert_eq!((answers.len(), answers[0].chunks.len()), (1, 1));
        assert_eq!(answers[0].causes(), [cause_code::UNSUPPORTED_HMAC_IDENTIFIER]);
        assert!(silent(&net, &[]));
    }
}

#[test]
fn s6_3_r4_without_a_shared_key_another_key_identifier_than_0_is_discarded() {
    let mut net = pair_with(&[DATA], &[]);
    let mut peer = Peer::open(&mut net, &[]);
    for id in [1, 7, 0xffff] {
        peer.key = (id, Vec::new());
        let answers = peer.data(&mut net, 1, b"data");
        assert!(silent(&net, &answers), "{id}");
    }
}

#[test]
fn s6_3_r5_r6_the_key_with_the_identifier_is_used() {
    let mut net = pair_with(&[DATA], &[(3, b"three"), (8, b"eight")]);
    let mut peer = Peer::open(&mut net, &[]);
    for (key, right) in [
        ((3, &b"three"[..]), true),
        ((8, b"eight"), true),
        ((8, b"three"), false),
        ((3, b"eight"), false),
        ((4, b"three"), false),
        ((4, b""), false),
    ] {
        let before = payloads(&net).len();
        peer.key = (key.0, key.1.to_vec());
        let answers = peer.data(&mut net, before as u32 + 1, b"data");
        net.run(S(1));
        assert_eq!(payloads(&net).len() - before, usize::from(right), "{key:?}");
        assert!(right || answers.is_empty());
    }
}

/// The code is wrong, too short or too long, or made for other chunks.
#[test]
fn s6_3_r7_what_follows_a_wrong_code_is_discarded() {
    let mut net = pair_with(&[DATA], &[]);
    let peer = Peer::open(&mut net, &[]);
    let data = peer.hand.chunk(1, b"data");
    let packet = peer.sealed(&|_| {}, &|w| {
        w.heartbeat(b"?").unwrap();
        w.data(&data).unwrap();
    });
    // Every byte after the AUTH chunk's length, except its HMAC identifier.
    for at in (16..packet.len()).filter(|at| !(18..20).contains(at)) {
        let mut changed = packet.clone();
        changed[at] ^= 1;
        reseal(&mut changed);
        let answers = peer.hand.raw(&mut net, &changed);
        assert!(silent(&net, &answers), "byte {at}: {}", net.tail(2));
    }
    for len in [0, 4, 16, 28, 36] {
        let auth = Auth { key_id: 0, hmac_id: SHA_256, hmac: &[0; 36][..len] };
        let answers = peer.hand.say(&mut net, &|w| {
            w.chunk(&Chunk::Auth(auth)).unwrap();
            w.data(&data).unwrap();
        });
        assert!(silent(&net, &answers), "{len}");
    }
    assert!(peer.hand.raw(&mut net, &packet).iter().any(|p| p.has("SACK 1")));
}

#[test]
fn s6_3_r8_r9_a_cookie_echo_behind_an_auth_chunk_is_authenticated_by_its_cookie() {
    for secret in [None, Some(&b"secret"[..])] {
        let key: Option<(u16, &[u8])> = secret.map(|secret| (6, secret));
        let right = secret.unwrap_or_default().to_vec();
        let id = key.map_or(0, |key| key.0);
        for (key_of_peer, opens) in [(right, true), (b"guess".to_vec(), false)] {
            let mut net = pair_with(&[DATA, 10], key.as_slice());
            let mut peer = Peer::meet(&mut net, &|p| offer(p, &[]));
            // The first COOKIE ECHO has no AUTH chunk.
            assert!(peer.hand.echo(&mut net).is_empty());
            peer.key = (id, key_of_peer);
            let data = peer.hand.chunk(1, b"data");
            let answers = peer.say(&mut net, &|w| {
                w.cookie_echo(&peer.hand.cookie).unwrap();
                w.data(&data).unwrap();
            });
            assert_eq!(answers.iter().any(|p| p.has("COOKIE ACK")), opens, "{}", net.tail(3));
            assert_eq!(answers.iter().any(|p| p.has("SACK 1")), opens);
            assert_eq!(payloads(&net).len(), usize::from(opens));
            assert_eq!(net.hosts[1].endpoint.associations().count(), usize::from(opens));
        }
    }
}

/// The same cookie again, and the cookie of a restart: the association's key authenticates both.
#[test]
fn s6_3_r10_with_an_association_its_key_authenticates_a_cookie_echo() {
    let mut net = pair_with(&[DATA, 10], &[]);
    let peer = Peer::open(&mut net, &[]);
    let echo = |w: &mut PacketWriter<'_>| w.cookie_echo(&peer.hand.cookie).unwrap();
    assert!(peer.hand.say(&mut net, &echo).is_empty());
    let wrong = Peer {
        key: (0, b"wrong".to_vec()),
        hand: peer.hand.clone(),
        vectors: peer.vectors.clone(),
        ..peer
    };
    assert!(wrong.say(&mut net, &echo).is_empty());
    let data = peer.hand.chunk(1, b"data");
    let answers = peer.say(&mut net, &|w| {
        echo(w);
        w.data(&data).unwrap();
    });
    assert!(answers.iter().any(|p| p.has("COOKIE ACK")));
    assert_eq!(payloads(&net), [b"data"]);
    // The peer restarts, with another Random Number.
    let hand = Hand { tag: 4711, tsn: 1, ..Hand::new(1) };
    let again = Peer::meet_as(&mut net, hand, &|p| {
        p.random(&[8; 32]).unwrap();
        p.hmac_algorithms(&[SHA_256]).unwrap();
    });
    let echo = |w: &mut PacketWriter<'_>| w.cookie_echo(&again.hand.cookie).unwrap();
    assert_ne!(again.vectors, peer.vectors);
    assert!(again.say(&mut net, &echo).is_empty());
    assert!(!net.saw(1, &Event::Restarted));
    let old = Peer {
        hand: again.hand.clone(),
        vectors: peer.vectors.clone(),
        key: (0, Vec::new()),
        hmac: SHA_256,
    };
    assert!(old.say(&mut net, &echo)[0].has("COOKIE ACK"));
    assert!(net.saw(1, &Event::Restarted));
    // From now on the new key applies.
    assert!(again.data(&mut net, 1, b"restarted").iter().any(|p| p.has("SACK 1")));
}

/// An ASCONF chunk after an AUTH chunk, from an address that the association does not have.
#[test]
fn s6_3_r11_r14_chunks_behind_the_auth_chunk_find_the_association() {
    let config = config(&[]).dynamic_addresses(true).build().unwrap();
    let mut net = pair(2, config);
    let peer = Peer::meet(&mut net, &|p| {
        offer(p, &[0xc1, 0x80]);
        p.supported_extensions(&[0xc1, 0x80, AUTH]).unwrap();
    });
    assert!(peer.hand.echo(&mut net)[0].has("COOKIE ACK"));
    let other = Hand { ip: v4(1, 98), ..peer.hand.clone() };
    for right in [false, true] {
        let mut packet = peer.sealed(&|_| {}, &|w| {
            w.asconf(peer.hand.tsn, peer.hand.ip, |p| {
                p.request(asconf_type::ADD_ADDRESS, 1, other.ip)
            })
            .unwrap();
        });
        packet[30] ^= u8::from(!right);
        reseal(&mut packet);
        let answers = other.raw(&mut net, &packet);
        assert_eq!(answers.iter().any(|p| p.has("ASCONF-ACK")), right, "{}", net.tail(4));
        assert_eq!(net.a(1).paths().any(|p| p.remote == other.ip), right);
    }
}

#[test]
fn s6_3_r12_r13_out_of_the_blue_the_auth_chunk_does_not_count() {
    let mut net = pair_with(&[DATA], &[]);
    let hand = Hand { peer_tag: 77, ..Hand::new(1) };
    let data = hand.chunk(1, b"data");
    let cases: [(Chunks<'_>, &str); 5] = [
        (&|w| w.data(&data).unwrap(), "ABORT T"),
        (&|w| w.heartbeat(b"?").unwrap(), "ABORT T"),
        (&|w| w.shutdown_ack().unwrap(), "SHUTDOWN COMPLETE T"),
        (&|w| w.abort(false, |_| Ok(())).unwrap(), ""),
        (&|w| w.cookie_ack().unwrap(), ""),
    ];
    for (chunks, expected) in cases {
        let texts =
            |answers: Vec<Sent>| answers.iter().map(|p| (p.text(), p.tag)).collect::<Vec<_>>();
        let plain = texts(hand.say(&mut net, chunks));
        assert_eq!(plain.first().map_or("", |p| p.0.as_str()), expected);
        let behind = texts(hand.say(&mut net, &|w| {
            let auth = Auth { key_id: 0, hmac_id: SHA_256, hmac: &[0; 32] };
            w.chunk(&Chunk::Auth(auth)).unwrap();
            chunks(w);
        }));
        assert_eq!(behind, plain);
    }
}

#[test]
fn s6_3_r15_a_cookie_has_no_shared_key() {
    let secret = b"an endpoint pair shared key";
    let mut net = pair_with(&[DATA, 10], &[(3, secret)]);
    let answers = Hand::new(1).init(&mut net, &|p| offer(p, &[DATA]));
    assert!(answers[0].has("INIT ACK"));
    assert!(!answers[0].bytes.windows(8).any(|w| secret.windows(8).any(|s| s == w)));
}
