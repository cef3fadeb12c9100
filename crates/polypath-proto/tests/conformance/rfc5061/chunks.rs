//! Sections 5.1 and 5.2: how ASCONF chunks are sent and received.

use super::*;

#[test]
fn s5_1_r2_a_chunk_has_all_requests_each_with_a_number_of_its_own() {
    let (mut net, hand) = by_hand();
    // Addresses that are added while the first ASCONF is outstanding are announced in the next one.
    net.comes(1, v4(3, 1));
    net.comes(1, v4(4, 1));
    net.comes(1, v4(5, 1));
    acknowledge(&mut net, &hand, 0, &|_| ());
    let list = read(&net.sent(1), ASCONF);
    let requests: Vec<_> = list.iter().flat_map(|a| a.list.iter().map(request)).collect();
    let expected = [(3, 1), (4, 1), (5, 1)].map(|(net, h)| (ADD, octets(v4(net, h))));
    let found: Vec<_> = requests.iter().map(|(ty, _, ip)| (*ty, ip.clone())).collect();
    assert_eq!((list.len(), &found[..]), (2, &expected[..]));
    let mut ids: Vec<u32> = requests.iter().map(|r| r.1).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[test]
fn s5_1_r3_r4_r5_sequence_numbers_begin_at_the_initial_tsn_and_grow_by_one() {
    let (mut net, hand) = by_hand();
    for n in 0..4u8 {
        net.comes(1, v4(3 + n, 1));
        let last = read(&net.sent(1), ASCONF).pop().unwrap();
        assert_eq!(last.serial, hand.peer_tsn.wrapping_add(n.into()));
        acknowledge(&mut net, &hand, n.into(), &|_| ());
    }
}

#[test]
fn s5_1_r6_r10_r11_t4_repeats_the_same_chunk_over_another_path_and_counts_errors() {
    let mut net = joined(2);
    net.send(0, 0, payload(1, 3000)).unwrap();
    net.run(S(1));
    net.drop_all("ASCONF");
    let (mark, start) = (net.log.len(), net.now);
    let rtos = [net.path(0, 0).rto, net.path(0, 1).rto];
    net.comes(0, v4(7, 0));
    let of = |net: &Net| -> Vec<Sent> {
        net.sent_since(0, mark).into_iter().filter(|p| p.has("ASCONF")).collect()
    };
    net.drive_until(S(20), |net| of(net).len() == 3);
    let (sent, list) = (of(&net), read(&of(&net), ASCONF));
    assert!(list.iter().all(|a| *a == list[0]) && list[0].list.len() == 1);
    let paths: Vec<u8> = sent.iter().map(Sent::net).collect();
    assert!(paths[0] != paths[1], "{paths:?}");
    assert_eq!(sent[1].at, start + rtos[usize::from(paths[0])]);
    let path = |net: &Net, n: usize| net.path(0, paths[n]);
    assert!(path(&net, 0).error_count > 0);
    assert!(path(&net, 0).rto >= rtos[usize::from(paths[0])] * 2, "backed off");
    // No other chunk is lost: the association ends because of its own counter.
    let config = config().association_max_retrans(3).heartbeat_interval(None).build().unwrap();
    let mut net = established(1, config);
    net.drop_all("ASCONF");
    net.comes(0, v4(7, 0));
    net.run(S(100));
    assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
    assert_eq!(net.sent_with(0, "ASCONF").len(), 4);
}

#[test]
fn s5_1_r7_the_acknowledgement_stops_t4_and_clears_the_error_counters() {
    let mut net = established(2, config().heartbeat_interval(None).build().unwrap());
    net.nth("ASCONF", &[1, 2], Fate::Drop);
    net.comes(0, v4(7, 0));
    net.run(S(8));
    let sent = net.sent_with(0, "ASCONF");
    assert_eq!((sent.len(), sent[0].net()), (3, sent[2].net()));
    assert_eq!(net.path(0, sent[2].net()).error_count, 0);
    net.run(S(60));
    assert_eq!(net.sent_with(0, "ASCONF").len(), 3);
}

#[test]
fn s5_1_r8_every_response_in_an_asconf_ack_counts() {
    let (mut net, hand) = by_hand();
    net.comes(1, v4(3, 1));
    for n in 4..8 {
        net.comes(1, v4(n, 1));
    }
    acknowledge(&mut net, &hand, 0, &|_| ());
    let ids: Vec<u32> = read(&net.sent(1), ASCONF)[1].list.iter().map(|p| request(p).1).collect();
    assert_eq!(ids.len(), 4);
    acknowledge(&mut net, &hand, 1, &|p| {
        p.refusal(ids[1], |c| c.address_refused(wire::AddressRefusal::ResourceShortage, &[]))
            .unwrap();
        p.success(ids[2]).unwrap();
        p.refusal(ids[3], |c| c.address_refused(wire::AddressRefusal::ResourceShortage, &[]))
            .unwrap();
    });
    let granted: Vec<_> =
        net.address_changes(1).iter().map(|(_, ip, granted)| (*ip, *granted)).collect();
    let expected = [(3, true), (4, true), (5, false), (6, true), (7, false)];
    assert_eq!(granted, expected.map(|(n, granted)| (v4(n, 1), granted)));
}

#[test]
fn s5_1_r9_a_peer_that_does_not_know_asconf_gets_no_more() {
    let (mut net, hand) = by_hand();
    net.comes(1, v4(3, 1));
    let chunk = bytes::chunk(&net.sent_with(1, "ASCONF")[0].bytes, ASCONF);
    let raw = [&[0xc1, 0][..], &(chunk.length as u16).to_be_bytes(), &chunk.value].concat();
    hand.say(&mut net, &|w| w.error(|c| c.unrecognized_chunk(&raw)).unwrap());
    net.run(S(20));
    net.comes(1, v4(4, 1));
    net.run(S(20));
    assert_eq!(net.sent_with(1, "ASCONF").len(), 1);
    assert!(net.a(1).is_established());
}

#[test]
fn s5_1_1_r2_the_next_asconf_waits_for_the_acknowledgement() {
    let (mut net, hand) = by_hand();
    net.comes(1, v4(3, 1));
    net.comes(1, v4(4, 1));
    net.run(S(4));
    let list = read(&net.sent(1), ASCONF);
    assert!(list.len() > 1 && list.iter().all(|a| *a == list[0]), "repeated alone");
    let mark = net.log.len();
    acknowledge(&mut net, &hand, 0, &|_| ());
    let next = read(&net.sent_since(1, mark), ASCONF);
    assert_eq!(next[0].serial, hand.peer_tsn.wrapping_add(1));
}

#[test]
fn s5_1_1_r5_asconf_and_its_answer_leave_in_the_allowed_states_alone() {
    // COOKIE-WAIT and COOKIE-ECHOED.
    for lost in ["INIT ACK", "COOKIE ACK"] {
        let mut net = pair(1, config().build().unwrap());
        net.drop_all(lost);
        net.connect(0);
        net.comes(0, v4(7, 0));
        net.run(S(4));
        assert!(net.sent_with(0, "ASCONF").is_empty());
    }
    // SHUTDOWN-ACK-SENT: neither is sent.
    let (mut net, hand) = by_hand();
    assert!(hand.shutdown(&mut net, 0)[0].has("SHUTDOWN ACK"));
    net.comes(1, v4(3, 1));
    let answers = ask(&mut net, &hand, 0, &|p| add(p, 1, v4(5, 8)));
    assert!(read(&answers, ASCONF_ACK).is_empty());
    assert!(net.sent_with(1, "ASCONF").is_empty());
    // SHUTDOWN-SENT and SHUTDOWN-RECEIVED: an answer may be sent.
    let (mut net, hand) = by_hand();
    net.shutdown(1);
    assert_eq!(ask(&mut net, &hand, 0, &|p| add(p, 1, v4(5, 8))).len(), 1);
    net.run(S(1));
    assert!(net.sent_with(1, "ASCONF").is_empty());
}

#[test]
fn s5_2_r1_r2_without_auth_the_chunk_and_the_rest_of_the_packet_are_discarded() {
    for wrong_auth in [false, true] {
        let mut net = joined(1);
        let tag = net.sent_with(0, "COOKIE ECHO")[0].tag;
        let init = net.sent_with(0, "INIT").remove(0);
        let first = u32_at(&bytes::chunk(&init.bytes, 1).value, 12);
        let hand = Hand { ip: v4(0, 0), tsn: first, ..Hand::new(1) };
        let packet = hand.packet(tag, &|w| {
            if wrong_auth {
                let value = [&[0, 0, 0, 1][..], &[7; 20]].concat();
                w.typed_chunk(AUTH as u8, 0, &value).unwrap();
            }
            w.asconf(first, v4(0, 0), |p| p.request(ADD, 1, v4(6, 6))).unwrap();
            w.data(&hand.chunk(1, b"rest")).unwrap();
        });
        let answers = hand.raw(&mut net, &packet);
        net.run(S(1));
        assert!(answers.iter().all(|p| !p.has("ABORT") && !p.has("ERROR")));
        assert_eq!(remotes(&net), [(v4(0, 0), ACTIVE)]);
        assert!(net.hosts[1].received.is_empty(), "with a wrong AUTH: {wrong_auth}");
    }
}

#[test]
fn s5_2_r3_r4_r5_requests_are_processed_in_their_order() {
    let (mut net, hand) = by_hand();
    let x = v4(6, 8);
    let answers = ask(&mut net, &hand, 0, &|p| {
        add(p, 1, x);
        delete(p, 2, x);
        add(p, 3, v4(7, 8));
    });
    assert!(responses(&answers, &hand, 0).is_empty());
    assert_eq!(remotes(&net), [(hand.ip, ACTIVE), (v4(7, 8), UNCONFIRMED)]);
    let answers = ask(&mut net, &hand, 1, &|p| {
        delete(p, 1, x);
        add(p, 2, x);
    });
    assert_eq!(responses(&answers, &hand, 1)[0], (ERROR, 1, UNRESOLVABLE));
    // A primary address that the same ASCONF has added before is accepted.
    let answers = ask(&mut net, &hand, 2, &|p| {
        add(p, 1, v4(5, 8));
        p.request(SET_PRIMARY, 2, v4(5, 8)).unwrap();
    });
    assert!(responses(&answers, &hand, 2).is_empty());
    let answers = ask(&mut net, &hand, 3, &|p| {
        p.request(SET_PRIMARY, 1, v4(4, 8)).unwrap();
        add(p, 2, v4(4, 8));
    });
    assert_eq!(responses(&answers, &hand, 3)[0], (ERROR, 1, UNRESOLVABLE));
}

#[test]
fn s5_2_r6_responses_have_the_correlation_ids_of_the_requests() {
    let (mut net, hand) = by_hand();
    let ids = [0, 0xffff_ffff, 0xdead_beef, 7];
    for (n, id) in (0..).zip(ids) {
        let answers = ask(&mut net, &hand, n, &|p| delete(p, id, v4(9, 9)));
        assert_eq!(responses(&answers, &hand, n), [(ERROR, id, UNRESOLVABLE)]);
    }
    let answers = ask(&mut net, &hand, 4, &|p| {
        p.request(SET_PRIMARY, 100, v4(9, 9)).unwrap();
        add(p, 0x8000_0001, v4(5, 8));
        p.raw(&[0xc0, 99, 0, 8, 0, 0, 0, 5]).unwrap();
    });
    let expected =
        [(ERROR, 100, UNRESOLVABLE), (SUCCESS, 0x8000_0001, 0), (ERROR, 5, UNRECOGNIZED)];
    assert_eq!(responses(&answers, &hand, 4), expected);
}

#[test]
fn s5_2_r7_the_answer_leaves_when_the_whole_packet_has_been_processed() {
    let (mut net, hand) = by_hand();
    let answers = hand.say(&mut net, &|w| {
        w.asconf(hand.tsn, hand.ip, |p| p.request(ADD, 1, v4(5, 8))).unwrap();
        w.data(&hand.chunk(1, b"behind")).unwrap();
        w.data(&hand.chunk(2, b"behind")).unwrap();
    });
    assert_eq!((read(&answers, ASCONF_ACK).len(), net.hosts[1].received.len()), (1, 2));
    // An ABORT after it ends the association first.
    let (mut net, hand) = by_hand();
    let answers = hand.say(&mut net, &|w| {
        w.asconf(hand.tsn, hand.ip, |_| Ok(())).unwrap();
        w.abort(false, |_| Ok(())).unwrap();
    });
    assert!(net.a(1).is_closed() && answers.len() <= 1);
}

#[test]
fn s5_2_r8_the_answer_goes_to_where_the_asconf_came_from() {
    let (mut net, hand) = by_hand();
    ask(&mut net, &hand, 0, &|p| add(p, 1, v4(6, 8)));
    for (n, source) in [(1, v4(6, 8)), (2, hand.ip), (3, v4(9, 8))] {
        let from = Hand { ip: source, ..hand.clone() };
        let mark = net.log.len();
        ask_as(&mut net, &from, hand.ip, n, &|_| ());
        let list: Vec<IpAddr> = net.sent_since(1, mark).iter().map(|p| p.to.ip()).collect();
        assert_eq!(list, [source]);
        // The same for a repeated ASCONF.
        let answers = ask_as(&mut net, &from, hand.ip, n, &|_| ());
        assert_eq!(read(&answers, ASCONF_ACK).len(), 1);
    }
}

#[test]
fn s5_2_r9_all_asconfs_of_a_packet_are_processed_in_answers_that_fit_the_path() {
    let (mut net, hand) = by_hand();
    let answers = hand.say(&mut net, &|w| {
        for n in 0..4u8 {
            w.asconf(hand.tsn.wrapping_add(n.into()), hand.ip, |p| {
                // These are refused, each with its cause.
                (0..12).try_for_each(|id| p.request(DELETE, id, v4(9, 9)))?;
                p.request(ADD, 99, v4(n + 1, 8))
            })
            .unwrap();
        }
    });
    assert!(answers.iter().all(|p| p.bytes.len() + 20 <= 1280));
    let answered: Vec<u32> = read(&answers, ASCONF_ACK).iter().map(|a| a.serial).collect();
    let expected: Vec<u32> = (0..4).map(|n| hand.tsn.wrapping_add(n)).collect();
    assert_eq!(answered, expected);
    // At least the last answer is kept for a retransmitted ASCONF.
    let again = ask(&mut net, &hand, 3, &|_| ());
    assert_eq!(read(&again, ASCONF_ACK), read(&answers, ASCONF_ACK)[3..]);
}
