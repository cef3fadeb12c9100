//! Section 5.1: sending requests.

use super::*;

#[test]
fn s5_1_1_r1_init_and_init_ack_list_the_chunk_type() {
    let mut net = pair(1, config().build().unwrap());
    net.connect(0);
    net.run(MS(15));
    for (sent, ty) in net.log.iter().zip([1, 2]) {
        let list = crate::bytes::parameters(&crate::bytes::chunk(&sent.bytes, ty));
        let types = list.iter().find(|p| p.ty == 0x8008).expect("Supported Extensions");
        assert!(types.value.contains(&(RE_CONFIG as u8)));
    }
}

#[test]
fn s5_1_1_r2_r3_nothing_is_asked_of_a_peer_that_has_not_listed_the_chunk_type() {
    for listed in [&[][..], &[192, 129]] {
        let (mut net, hand) = listing(listed);
        let now = net.now;
        let host = net.am(1);
        let asked = [
            host.reset_streams(now, StreamReset::Outgoing, &[StreamId(1)]),
            host.reset_streams(now, StreamReset::Incoming, &[]),
            host.reset_association(now),
            host.add_streams(now, 1, 1),
        ];
        assert_eq!(asked, [const { Err(ReconfigError::NotAgreed) }; 4]);
        say(&mut net, &hand, &[incoming(&hand, 0, &[])]);
        net.run(S(20));
        assert!(net.sent_with(1, "RE-CONFIG").is_empty());
    }
}

#[test]
fn s5_1_1_r4_one_request_is_in_flight_at_a_time() {
    let (mut net, hand) = by_hand();
    assert_eq!(types(&reset(&mut net, 1, StreamReset::Outgoing, &[1])), [[OUTGOING]]);
    let now = net.now;
    assert_eq!(net.am(1).reset_association(now), Err(ReconfigError::InProgress));
    assert_eq!(net.am(1).add_streams(now, 1, 1), Err(ReconfigError::InProgress));
    // The peer requests changes for which the host needs a request of its own.
    for request in [incoming(&hand, 0, &[0, 2]), add_incoming(&hand, 0, 1)] {
        let answers = say(&mut net, &hand, &[request]);
        assert!(types(&answers).concat().iter().all(|ty| *ty == RESPONSE), "{answers:?}");
    }
    respond(&mut net, &hand, 0, result::PERFORMED);
    let now = net.now;
    assert_eq!(net.am(1).add_streams(now, 1, 0), Ok(()));
}

#[test]
fn s5_1_1_r6_r8_r9_a_request_is_repeated_by_the_rto_which_doubles_and_errors_count() {
    // Acknowledged heartbeats would clear the counters.
    let config = config().association_max_retrans(4).path_max_retrans(10).heartbeat_interval(None);
    let mut net = established(1, config.build().unwrap());
    send(&mut net, 0, &[1, 1, 1]);
    net.run(S(1));
    net.drop_all("RE-CONFIG");
    let (rto, start) = (net.path(0, 0).rto, net.now);
    let asked = reset(&mut net, 0, StreamReset::Outgoing, &[1]);
    assert!(types(&asked) == [[OUTGOING]] && net.path(0, 0).error_count == 0);
    for n in 1..=4 {
        let at = start + rto * ((1 << n) - 1);
        net.run_until(at);
        let repeated = net.sent_with(0, "RE-CONFIG");
        assert_eq!((repeated.len() as u32, repeated.last().unwrap().at), (n + 1, at));
        assert_eq!(re_configs(&repeated[n as usize..]), re_configs(&asked));
        assert_eq!((net.path(0, 0).error_count, net.closed(0)), (n, None));
    }
    net.run(rto * 16);
    assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
}

#[test]
fn s5_1_1_r7_a_response_is_not_repeated() {
    let (mut net, hand) = by_hand();
    for (n, request) in [outgoing(&hand, 0, 0, &[]), add_outgoing(&hand, 1, 1), ssn_tsn(&hand, 2)]
        .into_iter()
        .enumerate()
    {
        assert_eq!(results(&say(&mut net, &hand, &[request]), hand.tsn), [(n as u32, 1)]);
    }
    net.run(S(20));
    assert_eq!(net.sent_with(1, "RE-CONFIG").len(), 3);
    assert!(net.a(1).is_established());
}

#[test]
fn s5_1_2_r1_messages_on_the_streams_that_are_reset_wait() {
    for (listed, waiting) in [(&[1][..], vec![1, 1]), (&[], vec![1, 2, 1])] {
        let (mut net, hand) = by_hand();
        send(&mut net, 1, &[1, 2]);
        hand.sack(&mut net, 2, &[]);
        reset(&mut net, 1, StreamReset::Outgoing, listed);
        let mark = net.log.len();
        send(&mut net, 1, &[1, 2, 1]);
        let expected = if listed.is_empty() { vec![] } else { vec![(3, 2, 1)] };
        assert_eq!(data(&net.sent_since(1, mark)), expected);
        hand.sack(&mut net, 2 + expected.len() as u32, &[]);
        let mark = net.log.len();
        respond(&mut net, &hand, 0, result::PERFORMED);
        let streams: Vec<u16> = data(&net.sent_since(1, mark)).iter().map(|d| d.1).collect();
        assert_eq!(streams, waiting);
    }
}

#[test]
fn s5_1_2_r2_r3_each_request_takes_the_next_number() {
    let (mut net, hand) = by_hand();
    for n in 0..3 {
        let number = u32_at(&only(&reset(&mut net, 1, StreamReset::Outgoing, &[1])).value, 0);
        assert_eq!(number, hand.peer_tsn.wrapping_add(n));
        respond(&mut net, &hand, n, result::PERFORMED);
    }
}

#[test]
fn s5_1_2_r4_the_last_assigned_tsn_is_the_next_one_minus_1() {
    let (mut net, hand) = by_hand();
    for n in 0..3u32 {
        let before = 2 * n;
        let last = u32_at(&only(&reset(&mut net, 1, StreamReset::Outgoing, &[1])).value, 8);
        assert_eq!(last, hand.peer_tsn.wrapping_add(before).wrapping_sub(1));
        respond(&mut net, &hand, n, result::PERFORMED);
        // Whether the data has been acknowledged or not.
        let mark = net.log.len();
        send(&mut net, 1, &[1, 2]);
        let numbers: Vec<u32> = data(&net.sent_since(1, mark)).iter().map(|d| d.0).collect();
        assert_eq!(numbers, [before + 1, before + 2]);
        if n == 0 {
            hand.sack(&mut net, 2, &[]);
        }
    }
}

#[test]
fn s5_1_2_r5_r6_the_answer_to_an_incoming_reset_copies_streams_and_number() {
    for streams in [&[][..], &[7], &[3, 5]] {
        let (mut net, hand) = by_hand();
        say(&mut net, &hand, &[add_outgoing(&hand, 0, 1)]);
        let list = be(streams);
        let parameter = only(&say(&mut net, &hand, &[incoming(&hand, 1, &list)]));
        assert_eq!((parameter.ty, &parameter.value[12..]), (OUTGOING, &list[..]));
        assert_eq!(u32_at(&parameter.value, 4), hand.tsn.wrapping_add(1));
    }
}

#[test]
fn s5_1_2_r7_r8_an_outgoing_reset_lists_its_streams_in_a_re_config_chunk() {
    for streams in [&[3][..], &[1, 2, 9]] {
        let (mut net, _) = by_hand();
        let parameter = only(&reset(&mut net, 1, StreamReset::Outgoing, streams));
        assert_eq!((parameter.ty, &parameter.value[12..]), (OUTGOING, &be(streams)[..]));
    }
}

#[test]
fn s5_1_3_r1_r2_r3_r4_an_incoming_reset_has_the_next_number_and_its_streams() {
    let (mut net, hand) = by_hand();
    for (n, streams) in (0..).zip([&[3][..], &[1, 2, 9]]) {
        let parameter = only(&reset(&mut net, 1, StreamReset::Incoming, streams));
        assert_eq!((parameter.ty, &parameter.value[4..]), (INCOMING, &be(streams)[..]));
        assert_eq!(u32_at(&parameter.value, 0), hand.peer_tsn.wrapping_add(n));
        respond(&mut net, &hand, n, result::NOTHING_TO_DO);
    }
    // Two requests in a chunk have two numbers.
    let both = re_configs(&reset(&mut net, 1, StreamReset::Both, &[])).concat();
    let numbers: Vec<u32> =
        both.iter().map(|p| u32_at(&p.value, 0).wrapping_sub(hand.peer_tsn)).collect();
    assert_eq!(numbers, [2, 3]);
}

#[test]
fn s5_1_4_r1_r2_r4_r5_an_ssn_tsn_reset_has_the_next_number_and_a_chunk_to_itself() {
    let (mut net, hand) = by_hand();
    for n in 0..3 {
        let asked = reset_association(&mut net, 1);
        let number = u32_at(&only(&asked).value, 0);
        assert_eq!((types(&asked), number), (vec![vec![SSN_TSN]], hand.peer_tsn.wrapping_add(n)));
        respond(&mut net, &hand, n, result::DENIED);
    }
}

#[test]
fn s5_1_4_r3_user_data_waits_for_the_end_of_an_ssn_tsn_reset() {
    for done in [false, true] {
        let (mut net, hand) = by_hand();
        send(&mut net, 1, &[1]);
        hand.sack(&mut net, 1, &[]);
        reset_association(&mut net, 1);
        let mark = net.log.len();
        send(&mut net, 1, &[1, 2]);
        net.run(S(2));
        assert!(data(&net.sent_since(1, mark)).is_empty());
        let next_tsns = done.then(|| (Tsn(hand.tsn), Tsn(hand.peer_tsn.wrapping_add(999))));
        let (response, result) = (hand.peer_tsn, if done { 1 } else { 2 });
        let mark = net.log.len();
        say(&mut net, &hand, &[ReconfigParameter::Response { response, result, next_tsns }]);
        let expected = if done { [(1000, 1, 0), (1001, 2, 0)] } else { [(2, 1, 1), (3, 2, 0)] };
        assert_eq!(data(&net.sent_since(1, mark)), expected);
    }
}

#[test]
fn s5_1_5_r1_r2_added_streams_are_used_after_the_answer_from_ssn_0_on() {
    for (code, granted) in [(0, true), (1, true), (2, false), (4, false), (5, false)] {
        let (mut net, hand) = by_hand();
        let streams = net.a(1).outbound_streams();
        add_streams(&mut net, 1, 2, 0);
        let refused = |net: &mut Net| {
            let error = SendError::NoSuchStream { stream: StreamId(streams), streams };
            assert_eq!(net.send(1, streams, payload(1, 10)), Err(error));
        };
        refused(&mut net);
        respond(&mut net, &hand, 0, result::IN_PROGRESS);
        refused(&mut net);
        respond(&mut net, &hand, 0, code);
        if granted {
            let mark = net.log.len();
            send(&mut net, 1, &[streams + 1, streams, streams]);
            let expected = [(1, streams + 1, 0), (2, streams, 0), (3, streams, 1)];
            assert_eq!(data(&net.sent_since(1, mark)), expected);
        } else {
            refused(&mut net);
        }
    }
}

#[test]
fn s5_1_6_r1_streams_that_the_peer_asked_for_begin_at_ssn_0() {
    let (mut net, hand) = by_hand();
    let streams = net.a(1).outbound_streams();
    send(&mut net, 1, &[streams - 1]);
    say(&mut net, &hand, &[add_incoming(&hand, 0, 2)]);
    respond(&mut net, &hand, 0, result::PERFORMED);
    let mark = net.log.len();
    send(&mut net, 1, &[streams - 1, streams, streams + 1]);
    let expected = [(2, streams - 1, 1), (3, streams, 0), (4, streams + 1, 0)];
    assert_eq!(data(&net.sent_since(1, mark)), expected);
}

#[test]
fn s5_1_7_r1_r2_a_response_has_the_number_of_the_request_and_its_result() {
    let (mut net, hand) = by_hand();
    let first = hand.tsn;
    let mut ask = |request| results(&say(&mut net, &hand, &[request]), first);
    assert_eq!(ask(outgoing(&hand, 0, 0, &[])), [(0, result::PERFORMED)]);
    assert_eq!(ask(outgoing(&hand, 1, 0, &[0xff, 0xff])), [(1, result::WRONG_SSN)]);
    assert_eq!(ask(add_outgoing(&hand, 9, 1)), [(9, result::BAD_SEQUENCE_NUMBER)]);
    assert_eq!(ask(add_outgoing(&hand, 2, 65_535)), [(2, result::DENIED)]);
    assert_eq!(ask(ssn_tsn(&hand, 3)), [(3, result::PERFORMED)]);
    // The host itself waits for a response.
    reset(&mut net, 1, StreamReset::Incoming, &[]);
    let answers = say(&mut net, &hand, &[ssn_tsn(&hand, 4)]);
    assert_eq!(results(&answers, first), [(4, result::ALREADY_IN_PROGRESS)]);
    // Data that the request covers is still in flight: the first TSN after the reset is 2^31
    // higher.
    let last = (1u32 << 31).wrapping_add(1);
    let answers = say(&mut net, &hand, &[outgoing(&hand, 5, last, &[])]);
    assert_eq!(results(&answers, first), [(5, result::IN_PROGRESS)]);
}

/// The response to each request for an SSN/TSN reset has both TSNs, whatever its result.
#[test]
fn s5_1_7_r3_r5_the_response_to_an_ssn_tsn_reset_has_the_next_tsns() {
    for code in [result::PERFORMED, result::DENIED, 4, 5, result::IN_PROGRESS] {
        let (mut net, hand) = by_hand();
        send(&mut net, 1, &[1, 1, 1]);
        if code != result::IN_PROGRESS {
            hand.sack(&mut net, 3, &[]);
        }
        hand.data(&mut net, 1);
        hand.data(&mut net, 2);
        match code {
            result::DENIED => {
                let none = AcceptedRequests { reset_association: false, ..AcceptedRequests::ALL };
                net.am(1).accept_requests(none).unwrap();
            }
            4 => drop(reset(&mut net, 1, StreamReset::Incoming, &[])),
            _ => {}
        }
        let asked = ssn_tsn(&hand, if code == 5 { 7 } else { 0 });
        let response = only(&say(&mut net, &hand, &[asked]));
        assert_eq!((response.length, u32_at(&response.value, 4)), (20, code));
        assert_eq!(u32_at(&response.value, 8), hand.peer_tsn.wrapping_add(3));
        // DATA with smaller TSNs can be discarded.
        let next = u32_at(&response.value, 12).wrapping_sub(hand.tsn);
        assert_eq!(next, if code == result::PERFORMED { 2 + (1 << 31) } else { 2 });
    }
}

#[test]
fn s5_1_7_r4_r6_other_responses_have_no_tsns() {
    let (mut net, hand) = by_hand();
    for request in [
        outgoing(&hand, 0, 0, &[]),
        outgoing(&hand, 1, 0, &[0xff, 0xff]),
        incoming(&hand, 2, &[0xff, 0xff]),
        add_outgoing(&hand, 3, 1),
        add_outgoing(&hand, 4, 65_535),
        add_outgoing(&hand, 9, 1),
    ] {
        assert_eq!(only(&say(&mut net, &hand, &[request])).length, 12);
    }
}
