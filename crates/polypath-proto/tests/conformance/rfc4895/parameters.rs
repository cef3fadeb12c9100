//! Sections 3 to 6.1: parameters, error cause and chunk, and the keys.

use super::*;
use crate::bytes::{chunks, elements};
use polypath_proto::wire::cause_code;

/// The parameters of host 0's INIT and of host 1's INIT ACK.
fn both(types: &[u8]) -> [Vec<Raw>; 2] {
    let mut net = pair_with(types, &[]);
    net.connect(0);
    net.run(MS(15));
    let of = |h: usize, ty| parameters(&chunk(&net.sent(h)[0].bytes, ty));
    [of(0, INIT), of(1, INIT_ACK)]
}

fn only(list: &[Raw], ty: u16) -> Raw {
    let found: Vec<&Raw> = list.iter().filter(|p| p.ty == ty).collect();
    assert_eq!(found.len(), 1, "{ty:#x}");
    found[0].clone()
}

#[test]
fn s3_1_r1_r4_one_random_number_of_32_bytes_is_sent() {
    let [init, init_ack] = both(&[]);
    let numbers = [only(&init, RANDOM), only(&init_ack, RANDOM)];
    assert!(numbers.iter().all(|p| p.value.len() == 32 && p.padding.is_empty()));
    assert_ne!(numbers[0].value, numbers[1].value);
    // Another association has another number.
    let mut net = pair_with(&[], &[]);
    let random = |net: &mut Net, tag| {
        let hand = Hand { tag, ..Hand::new(1) };
        let answers = hand.init(net, &|p| offer(p, &[]));
        only(&parameters(&chunk(&answers[0].bytes, INIT_ACK)), RANDOM).value
    };
    assert_ne!(random(&mut net, 1), random(&mut net, 2));
}

#[test]
fn s3_2_r1_r2_r4_one_list_of_chunk_types_is_sent_with_zeros_behind_it() {
    for len in 1..=5 {
        let types = &[0, 3, 4, 6, 10][..len];
        for list in both(types) {
            let found = only(&list, CHUNKS);
            assert_eq!((&found.value[..], found.length), (types, 4 + len));
            assert_eq!(found.padding, vec![0; len.next_multiple_of(4) - len]);
        }
    }
}

#[test]
fn s3_2_r5_chunks_that_cannot_be_authenticated_are_not_listed() {
    for list in both(&[0, 1, 2, 14, 15, 3]) {
        assert_eq!(only(&list, CHUNKS).value, [0, 3]);
    }
    for list in both(&[1, 2, 14, 15]) {
        assert_eq!(parameter(&list, CHUNKS), None);
    }
}

/// The peer lists SHUTDOWN COMPLETE and AUTH chunks, besides DATA.
#[test]
fn s3_2_r6_chunks_that_cannot_be_authenticated_are_ignored_in_a_list() {
    let mut net = pair_with(&[], &[]);
    let peer = Peer::open(&mut net, &[1, 2, 14, 15, 0]);
    assert_eq!(net.a(1).peer_auth_chunks(), Some(ChunkTypes::authenticated(&[0])));
    net.send(1, 0, payload(1, 10)).unwrap();
    let sent = net.log.last().unwrap();
    assert_eq!(sent.chunks.iter().filter(|c| c.name == "AUTH").count(), 1);
    assert!(peer.verified(sent, b"").is_some());
    peer.hand.sack(&mut net, 1, &[]);
    net.shutdown(1);
    let answers = peer.hand.say(&mut net, &|w| w.shutdown_ack().unwrap());
    assert_eq!(answers[0].text(), "SHUTDOWN COMPLETE");
}

#[test]
fn s3_3_r1_the_first_known_algorithm_of_the_peer_s_list_is_used() {
    for (list, used) in [
        (&[SHA_1][..], SHA_1),
        (&[SHA_1, SHA_256], SHA_1),
        (&[SHA_256, SHA_1], SHA_256),
        (&[9, 2, SHA_256, SHA_1], SHA_256),
        (&[9, SHA_1], SHA_1),
    ] {
        let mut net = pair_with(&[], &[]);
        let peer = Peer::meet(&mut net, &|p| {
            p.random(&[7; 32]).unwrap();
            p.chunk_list(&[DATA]).unwrap();
            p.hmac_algorithms(list).unwrap();
        });
        peer.hand.echo(&mut net);
        net.send(1, 0, payload(1, 10)).unwrap();
        assert_eq!(peer.verified(net.log.last().unwrap(), b""), Some((0, used)), "{list:?}");
    }
}

#[test]
fn s3_3_r2_r5_r6_one_list_of_algorithms_with_sha_1_is_sent() {
    for types in [&[][..], &[DATA]] {
        for list in both(types) {
            let value = only(&list, HMAC_ALGO).value;
            let ids: Vec<u16> =
                value.chunks(2).map(|id| u16::from_be_bytes([id[0], id[1]])).collect();
            assert!(ids.contains(&SHA_1) && value.len().is_multiple_of(4), "{ids:?}");
        }
    }
    // SHA-1 is supported, too.
    let mut net = pair_with(&[DATA], &[]);
    let mut peer = Peer::open(&mut net, &[DATA]);
    peer.hmac = SHA_1;
    assert!(peer.data(&mut net, 1, b"sha-1")[0].has("SACK 1"));
}

#[test]
fn s4_1_r1_r2_r3_the_error_cause_has_two_bytes_and_padding_of_zeros() {
    let mut net = pair_with(&[DATA], &[]);
    let mut peer = Peer::open(&mut net, &[]);
    peer.hmac = 2;
    let answers = peer.data(&mut net, 1, b"data");
    let error = chunk(&answers[0].bytes, 9);
    let bytes = [&error.value[..], &error.padding].concat();
    assert_eq!(bytes, [1, 5, 0, 6, 0, 2, 0, 0]);
    assert_eq!(elements(&error.value)[0].ty, cause_code::UNSUPPORTED_HMAC_IDENTIFIER);
}

#[test]
fn s4_1_r4_the_padding_of_the_error_cause_is_ignored() {
    for padding in [0, 0xff] {
        let mut net = pair_with(&[], &[]);
        let peer = Peer::open(&mut net, &[]);
        let cause = [1, 5, 0, 6, 0, 2, padding, padding];
        let answers = peer.hand.say(&mut net, &|w| w.typed_chunk(9, 0, &cause).unwrap());
        assert!(answers.is_empty() && net.a(1).is_established());
    }
}

#[test]
fn s5_1_r1_r5_a_packet_has_at_most_one_auth_chunk() {
    let types: Vec<u8> = (0..=255).collect();
    let mut net = pair_with(&types, &[]);
    net.establish();
    for h in 0..2 {
        net.send(h, 0, payload(1, 20_000)).unwrap();
    }
    net.run(S(2));
    net.shutdown(0);
    net.run(S(2));
    assert!(net.closed(0).unwrap().is_graceful());
    let counts = net.log.iter().map(|p| chunks(&p.bytes).iter().filter(|c| c.ty == 15).count());
    let counts: Vec<usize> = counts.collect();
    assert!(counts.contains(&1) && counts.iter().all(|n| *n <= 1));
}

#[test]
fn s5_1_r2_flags_of_an_auth_chunk_are_ignored() {
    let mut net = pair_with(&[DATA], &[]);
    let peer = Peer::open(&mut net, &[]);
    let data = peer.hand.chunk(1, b"flags");
    let mut packet = peer.sealed(&|_| {}, &|w| w.data(&data).unwrap());
    packet[13] = 0xff;
    peer.seal(&mut packet);
    assert!(peer.hand.raw(&mut net, &packet)[0].has("SACK 1"));
}

#[test]
fn s6_1_r3_a_random_number_of_another_length_is_aborted() {
    for len in [0, 1, 31, 33, 64] {
        let wrong = |p: &mut ParameterWriter<'_>| {
            p.random(&[1; 64][..len]).unwrap();
            p.hmac_algorithms(&[SHA_1]).unwrap();
        };
        let mut net = pair_with(&[], &[]);
        let answers = Hand::new(1).init(&mut net, &wrong);
        assert!(answers[0].has("ABORT"), "{len}");
        assert_eq!(answers[0].causes(), [cause_code::PROTOCOL_VIOLATION]);
        // The same in an INIT ACK.
        let mut net = pair_with(&[], &[]);
        let hand = Hand::new(0).be_called(&mut net);
        let answers = hand.say(&mut net, &|w| {
            w.init_ack(&hand.fields(), |p| {
                wrong(p);
                p.state_cookie(b"a cookie of ours")
            })
            .unwrap();
        });
        assert!(answers[0].has("ABORT") && !answers[0].has("COOKIE ECHO"), "{len}");
    }
}

#[test]
fn s6_1_r6_the_list_of_algorithms_stays_the_same() {
    let mut net = pair_with(&[DATA], &[(4, b"secret")]);
    let mut lists = Vec::new();
    for tag in 1..4 {
        let hand = Hand { tag, port: 5000 + tag as u16, ..Hand::new(1) };
        let peer = Peer::meet_as(&mut net, hand, &|p| offer(p, &[DATA]));
        let answer = net.sent(1).pop().unwrap();
        lists.push(only(&parameters(&chunk(&answer.bytes, INIT_ACK)), HMAC_ALGO));
        peer.hand.echo(&mut net);
        net.run(S(1));
    }
    net.connect(1);
    let init = net.sent_with(1, "INIT").pop().unwrap();
    lists.push(only(&parameters(&chunk(&init.bytes, INIT)), HMAC_ALGO));
    assert!(lists.iter().all(|list| list.value == lists[0].value));
}

/// The peer's lists have padding that is not zero.
#[test]
fn s6_1_r7_padding_is_no_part_of_the_keys() {
    for types in [&[DATA][..], &[DATA, 3], &[DATA, 3, 4]] {
        let mut net = pair_with(&[DATA], &[]);
        let mut hand = Hand::new(1);
        let mut init = hand.packet(0, &|w| {
            w.init(&hand.fields(), |p| {
                p.random(&[9; 32])?;
                p.chunk_list(types)?;
                p.hmac_algorithms(&[SHA_1])
            })
            .unwrap();
        });
        // Chunk header and fields are 20 bytes, Random is 36.
        let end = 12 + 20 + 36 + 4 + types.len();
        init[end..12 + 20 + 36 + 8].fill(0xaa);
        let last = init.len();
        init[last - 2..].fill(0xbb);
        reseal(&mut init);
        let mut peer = Peer::meet_with(&mut net, &mut hand, &init);
        peer.hmac = SHA_1;
        assert!(
            peer.say(&mut net, &|w| w.cookie_echo(&peer.hand.cookie).unwrap())[0].has("COOKIE ACK")
        );
        assert!(peer.data(&mut net, 1, b"in")[0].has("SACK 1"));
        net.send(1, 0, payload(1, 10)).unwrap();
        assert_eq!(peer.verified(net.log.last().unwrap(), b""), Some((0, SHA_1)));
        assert_eq!(net.a(1).peer_auth_chunks(), Some(ChunkTypes::authenticated(types)));
    }
}
