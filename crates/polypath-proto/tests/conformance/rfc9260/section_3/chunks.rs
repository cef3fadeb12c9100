//! Sections 3.3.4 to 3.3.13: SACK, HEARTBEAT, ABORT and the others.

use super::*;

#[test]
fn s3_3_4_r1_the_fields_of_a_sack() {
    let (mut net, hand) = opened();
    hand.data(&mut net, 1);
    hand.data(&mut net, 3);
    hand.data(&mut net, 3);
    let sack = chunk_of_last(&net, 3);
    let mut expected = hand.tsn.to_be_bytes().to_vec();
    expected.extend([0, 0x10, 0, 0]);
    let Some(SackSeen { rwnd, .. }) = net.log.last().unwrap().sack() else { panic!("no SACK") };
    expected[4..8].copy_from_slice(&rwnd.to_be_bytes());
    // The number of gap ack blocks and of duplicate TSNs, the block, the duplicate.
    expected.extend([0, 1, 0, 1, 0, 2, 0, 2]);
    expected.extend(hand.tsn.wrapping_add(2).to_be_bytes());
    assert_eq!((sack.value, sack.length), (expected, 24));
    assert!((1 << 20) - rwnd < 1000, "what is not read takes some of it: {rwnd}");
}

#[test]
fn s3_3_4_r2_gap_blocks_are_isolated() {
    let (mut net, hand) = opened();
    let mut order: Vec<u32> = (2..=40).filter(|n| n % 5 != 1).collect();
    order.rotate_left(17);
    order[..20].reverse();
    for n in order {
        hand.data(&mut net, n);
    }
    let gaps = net.log.last().unwrap().sack().unwrap().gaps;
    assert_eq!(gaps, (0..8).map(|i| (2 + 5 * i, 5 + 5 * i)).collect::<Vec<_>>());
}

/// The example of the RFC: 10 to 12, 14, 15 and 17 have arrived.
#[test]
fn s3_3_4_r3_the_example() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand { tsn: 10, ..Hand::new(1) }.open(&mut net);
    for tsn in [10, 11, 12, 14, 15, 17] {
        hand.data(&mut net, tsn - 9);
    }
    let sack = chunk_of_last(&net, 3).value;
    assert_eq!(sack[..4], [0, 0, 0, 12]);
    assert_eq!(sack[8..], [0, 2, 0, 0, 0, 2, 0, 3, 0, 5, 0, 5]);
}

#[test]
fn s3_3_5_r1_idle_addresses_are_probed() {
    let mut net = established(2, Config::rfc9260());
    let mark = net.log.len();
    net.run(S(70));
    for path in 0..2 {
        let probes = net
            .sent_since(0, mark)
            .iter()
            .filter(|p| p.has("HEARTBEAT") && p.net() == path)
            .count();
        assert!(probes >= 2, "path {path}: {probes}");
    }
}

/// A hand-built peer with two addresses, and the contents of the host's HEARTBEATs to the second
/// one.
fn probed(seed: u64) -> (Net, Hand, Hand, Vec<Vec<u8>>) {
    let mut net = Setup { seed, ..Setup::default() }.build();
    let mut hand = Hand::new(1);
    let second = Hand { ip: v4(0, 77), ..hand.clone() };
    let answers = hand.init(&mut net, &|p| {
        p.address(hand.ip).unwrap();
        p.address(second.ip).unwrap();
    });
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    net.run(MS(300));
    let packets = hand.answers(&net, 0);
    hand.answer_heartbeats(&mut net, &packets);
    let asked = net.sent(1).into_iter().filter(|p| p.to.ip() == second.ip && p.has("HEARTBEAT"));
    let infos = asked.map(|p| crate::bytes::elements(&chunk(&p.bytes, 4).value).remove(0));
    let infos = infos.map(|info| info.value).collect();
    (net, hand.clone(), Hand { ip: second.ip, ..hand }, infos)
}

/// The state and the round-trip time of the path to the peer's second address.
fn second_path(net: &Net) -> (PathState, Option<std::time::Duration>) {
    let path = net.a(1).paths().find(|p| p.remote == v4(0, 77)).expect("a path");
    (path.state, path.srtt)
}

#[test]
fn s3_3_5_r2_a_heartbeat_says_when_it_was_sent_and_where() {
    let (mut net, hand, _, infos) = probed(1);
    assert_eq!(second_path(&net), (PathState::Unconfirmed, None));
    // The answer arrives from the first address, 300 ms after the HEARTBEAT was sent.
    hand.say(&mut net, &|w| w.heartbeat_ack(&infos[0]).unwrap());
    assert_eq!(second_path(&net), (PathState::Active, Some(MS(300))));
}

#[test]
fn s3_3_5_r3_a_heartbeat_has_a_nonce_of_64_bits() {
    let (mut net, _, second, infos) = probed(1);
    let info = &infos[0];
    // With another seed, the HEARTBEAT of the same time and path differs in at least 64 bits.
    let others: Vec<Vec<u8>> = (2..12).map(|seed| probed(seed).3.remove(0)).collect();
    let varies = |at: &usize| others.iter().any(|other| other[*at] != info[*at]);
    let nonce: Vec<usize> = (0..info.len()).filter(varies).collect();
    assert!(nonce.len() >= 8, "{nonce:?}");
    for at in nonce {
        for bit in 0..8 {
            let mut forged = info.clone();
            forged[at] ^= 1 << bit;
            second.say(&mut net, &|w| w.heartbeat_ack(&forged).unwrap());
            assert_eq!(second_path(&net).0, PathState::Unconfirmed, "bit {bit} of byte {at}");
        }
    }
    second.say(&mut net, &|w| w.heartbeat_ack(info).unwrap());
    assert_eq!(second_path(&net).0, PathState::Active);
}

#[test]
fn s3_3_6_r1_r2_a_heartbeat_is_answered_with_its_information() {
    let (mut net, hand) = opened();
    for len in [0, 1, 7, 64, 1200] {
        let info = payload(len as u64, len);
        let answers = hand.say(&mut net, &|w| w.heartbeat(&info).unwrap());
        assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["HEARTBEAT ACK"]);
        let mut parameter = vec![0, 1, 0, 0];
        parameter[2..].copy_from_slice(&(len as u16 + 4).to_be_bytes());
        parameter.extend(info);
        assert_eq!(chunk(&answers[0].bytes, 5).value, parameter);
    }
}

/// A HEARTBEAT has been received and user data is waiting when the application aborts.
#[test]
fn s3_3_7_r1_r2_an_abort_has_no_data_beside_it_and_stands_last() {
    let (mut net, hand) = opened();
    let heartbeat = hand.packet(hand.peer_tag, &|w| w.heartbeat(b"?").unwrap());
    let four_tuple = FourTuple { local: (v4(0, 1), 0).into(), remote: (hand.ip, 0).into() };
    let (now, mark) = (net.now, net.log.len());
    net.hosts[1].endpoint.handle_datagram(now, four_tuple, Ecn::NotEct, &heartbeat);
    net.am(1).send(now, Message::new(StreamId(0), payload(1, 10))).unwrap();
    net.abort(1, b"enough");
    let packets = net.sent_since(1, mark);
    let abort = packets.iter().find(|p| p.has("ABORT")).expect("an ABORT");
    assert!(!abort.has("DATA") && abort.chunks.last().unwrap().name == "ABORT");
    // Chunks after the peer's ABORT are ignored.
    let (mut net, hand) = opened();
    let answers = hand.say(&mut net, &|w| {
        w.abort(false, |_| Ok(())).unwrap();
        w.heartbeat(b"?").unwrap();
        w.data(&hand.chunk(1, b"x")).unwrap();
    });
    assert!(answers.is_empty() && net.hosts[1].received.is_empty() && net.a(1).is_closed());
}

#[test]
fn s3_3_7_r3_an_abort_with_a_format_error_or_without_association_is_discarded() {
    let mut net = pair(1, Config::rfc9260());
    let stranger = Hand::new(1);
    let abort = |t_bit| stranger.packet(7, &|w| w.abort(t_bit, |_| Ok(())).unwrap());
    assert!(stranger.raw(&mut net, &abort(true)).is_empty());
    assert!(stranger.raw(&mut net, &abort(false)).is_empty());
    // Chunk lengths of 3 and 12, cause lengths of 3 and 9 in a chunk of 12 bytes.
    let wrong: [&[u8]; 4] = [
        &[6, 0, 0, 3],
        &[6, 0, 0, 12],
        &[6, 0, 0, 12, 0, 12, 0, 3, 0, 0, 0, 0],
        &[6, 0, 0, 12, 0, 12, 0, 9, 0, 0, 0, 0],
    ];
    for bytes in wrong {
        let (mut net, hand) = opened();
        let mut packet = hand.packet(hand.peer_tag, &|_| {});
        packet.extend(bytes);
        reseal(&mut packet);
        assert!(hand.raw(&mut net, &packet).is_empty());
        assert!(net.a(1).is_established(), "{bytes:?}");
        // The same with the tag reflected.
        packet[4..8].copy_from_slice(&hand.tag.to_be_bytes());
        packet[13] = 1;
        reseal(&mut packet);
        assert!(hand.raw(&mut net, &packet).is_empty());
        assert!(net.a(1).is_established(), "{bytes:?}");
    }
}

#[test]
fn s3_3_7_r4_no_abort_is_answered_by_an_abort() {
    for t_bit in [false, true] {
        let (mut net, hand) = opened();
        for tag in [hand.peer_tag ^ 1, hand.tag, hand.peer_tag, 0, 7] {
            for with_data in [false, true] {
                let answers = hand.say_with_tag(&mut net, tag, &|w| {
                    w.abort(t_bit, |c| c.out_of_resource()).unwrap();
                    if with_data {
                        w.data(&hand.chunk(1, b"x")).unwrap();
                    }
                });
                assert!(answers.is_empty(), "tag {tag:#x}: {}", answers[0].text());
            }
        }
        assert!(net.a(1).is_closed());
    }
}

#[test]
fn s3_3_7_r5_an_abort_with_a_reflected_tag_has_the_t_bit() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let answers = hand.say_with_tag(&mut net, 4711, &|w| w.data(&hand.chunk(1, b"x")).unwrap());
    assert_eq!((chunks(&answers[0].bytes)[0].flags, answers[0].tag), (1, 4711));
    // With the peer's own tag, the bit is 0.
    let (mut net, hand) = opened();
    net.abort(1, b"");
    let abort = net.sent_with(1, "ABORT").remove(0);
    assert_eq!((chunks(&abort.bytes)[0].flags, abort.tag), (0, hand.tag));
}

#[test]
fn s3_3_8_r1_a_graceful_end_begins_with_a_shutdown() {
    let (mut net, hand) = opened();
    hand.data(&mut net, 1);
    net.shutdown(1);
    let shutdown = chunk_of_last(&net, 7);
    assert_eq!((shutdown.flags, shutdown.value), (0, hand.tsn.to_be_bytes().to_vec()));
}

#[test]
fn s3_3_8_r2_the_lack_of_gap_blocks_in_a_shutdown_is_no_renege() {
    let (mut net, hand) = opened();
    for i in 0..3 {
        net.send(1, 0, payload(i, 1000)).unwrap();
    }
    hand.sack(&mut net, 0, &[(2, 3)]);
    let mark = net.log.len();
    hand.shutdown(&mut net, 0);
    net.run(MS(3500));
    assert_eq!(net.a(1).stats().reneged, 0);
    let numbers = data_numbers(&net.sent_since(1, mark));
    assert!(!numbers.is_empty() && numbers.iter().all(|n| n == &[1]), "{numbers:?}");
    hand.sack(&mut net, 1, &[(1, 2)]);
    hand.sack(&mut net, 3, &[]);
    assert_eq!(net.log.last().unwrap().text(), "SHUTDOWN ACK");
}

#[test]
fn s3_3_9_r1_a_shutdown_is_acknowledged_by_a_shutdown_ack() {
    let (mut net, hand) = opened();
    let answers = hand.shutdown(&mut net, 0);
    assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["SHUTDOWN ACK"]);
    let chunk = chunk(&answers[0].bytes, 8);
    assert_eq!((chunk.flags, chunk.length, answers[0].tag), (0, 4, hand.tag));
}

#[test]
fn s3_3_11_r1_no_data_leaves_before_the_cookie_echo() {
    let mut net = pair(1, Config::rfc9260());
    net.connect(0);
    net.send(0, 0, payload(1, 5000)).unwrap();
    net.drive_until(S(5), |net| !net.hosts[1].received.is_empty());
    let packets = net.sent(0);
    let first = |name: &str| packets.iter().position(|p| p.has(name)).expect("such a packet");
    assert!(first("COOKIE ECHO") < first("DATA"));
}

#[test]
fn s3_3_11_r2_the_cookie_comes_back_exactly() {
    for len in [1, 2, 3, 4, 5, 200, 1401] {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(0).be_called(&mut net);
        let cookie = payload(1, len);
        let answers = hand.say(&mut net, &|w| {
            w.init_ack(&hand.fields(), |p| p.state_cookie(&cookie)).unwrap();
        });
        assert_eq!(chunk(&answers[0].bytes, 10).value, cookie);
    }
}

#[test]
fn s3_3_11_r3_the_cookie_is_small() {
    let cookie = |addresses: u8| {
        let mut net = pair(1, Config::rfc9260());
        let mut hand = Hand::new(1);
        let answers = hand.init(&mut net, &|p| {
            (0..addresses).for_each(|i| p.ipv4([10, 0, 1, i].into()).unwrap());
        });
        hand.learn(&answers[0]);
        hand.cookie.len()
    };
    // Two times, seven words, four halves, the INIT's addresses and the MAC take 116 bytes.
    assert!(cookie(0) <= 128, "{}", cookie(0));
    assert_eq!(cookie(9) - cookie(8), 5, "an address and its type");
    assert!(cookie(255) <= 1460, "it fits a packet however many addresses the INIT lists");
}

#[test]
fn s3_3_12_r1_no_data_and_no_sack_leaves_before_the_cookie_ack() {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|_| {});
    hand.learn(&answers[0]);
    let answers = hand.say(&mut net, &|w| {
        w.cookie_echo(&hand.cookie).unwrap();
        w.data(&hand.chunk(1, b"x")).unwrap();
    });
    assert_eq!(answers[0].chunks[0].name, "COOKIE ACK");
    assert!(answers.iter().any(|p| p.has("SACK 1")));
    net.send(1, 0, payload(1, 10)).unwrap();
    let names: Vec<String> = hand.answers(&net, 2).iter().map(Sent::text).collect();
    let first = |name: &str| names.iter().position(|n| n.contains(name)).expect("such a packet");
    assert!(first("COOKIE ACK") <= first("SACK") && first("COOKIE ACK") < first("DATA"));
}

#[test]
fn s3_3_13_r1_a_shutdown_ack_is_acknowledged_by_a_shutdown_complete() {
    let (mut net, hand) = opened();
    net.shutdown(1);
    let answers = hand.say(&mut net, &|w| w.shutdown_ack().unwrap());
    assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["SHUTDOWN COMPLETE"]);
    assert_eq!(answers[0].tag, hand.tag);
    assert_eq!(net.closed(1), Some(CloseReason::Graceful));
}

#[test]
fn s3_3_13_r2_a_shutdown_complete_with_a_reflected_tag_has_the_t_bit() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let answers = hand.say_with_tag(&mut net, 4711, &|w| w.shutdown_ack().unwrap());
    assert_eq!((chunks(&answers[0].bytes)[0].flags, answers[0].tag), (1, 4711));
    // With the peer's own tag, the bit is 0.
    let (mut net, hand) = opened();
    net.shutdown(1);
    let answers = hand.say(&mut net, &|w| w.shutdown_ack().unwrap());
    assert_eq!((chunks(&answers[0].bytes)[0].flags, answers[0].tag), (0, hand.tag));
}
