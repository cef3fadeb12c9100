//! Section 5.2: receiving requests, and the responses.

use super::*;

#[test]
fn s5_2_1_r1_the_parameters_that_answer_a_chunk_are_in_one_chunk() {
    let (mut net, hand) = by_hand();
    let answers = say(&mut net, &hand, &[add_outgoing(&hand, 0, 1), add_outgoing(&hand, 1, 1)]);
    assert_eq!(types(&answers), [[RESPONSE, RESPONSE]]);
    assert_eq!(results(&answers, hand.tsn), [(0, 1), (1, 1)]);
    let both = [outgoing(&hand, 2, 0, &[0, 1]), incoming(&hand, 3, &[0, 1])];
    assert_eq!(types(&say(&mut net, &hand, &both)), [[RESPONSE, OUTGOING]]);
}

#[test]
fn s5_2_1_r2_a_repeated_request_gets_the_same_chunk_in_response() {
    let (_, hand) = by_hand();
    let none = [0xff, 0xff];
    for list in [
        vec![outgoing(&hand, 0, 0, &[0, 1])],
        vec![incoming(&hand, 0, &[0, 1])],
        vec![incoming(&hand, 0, &none)],
        vec![outgoing(&hand, 0, 0, &[]), incoming(&hand, 1, &[])],
        vec![outgoing(&hand, 0, 0, &none), incoming(&hand, 1, &none)],
        vec![ssn_tsn(&hand, 0)],
        vec![add_outgoing(&hand, 0, 3)],
        vec![add_outgoing(&hand, 0, 3), add_outgoing(&hand, 1, 60_000)],
    ] {
        let (mut net, hand) = by_hand();
        let first = re_configs(&say(&mut net, &hand, &list));
        assert_eq!(first.len(), 1, "{list:?}");
        for _ in 0..2 {
            net.run(MS(100));
            assert_eq!(re_configs(&say(&mut net, &hand, &list)), first, "{list:?}");
        }
    }
}

#[test]
fn s5_2_1_r3_what_is_not_granted_is_denied_in_a_response() {
    let (mut net, hand) = by_hand();
    let none =
        AcceptedRequests { reset_streams: false, reset_association: false, add_streams: false };
    net.am(1).accept_requests(none).unwrap();
    for (n, request) in [
        (0, outgoing(&hand, 0, 0, &[])),
        (1, incoming(&hand, 1, &[])),
        (2, ssn_tsn(&hand, 2)),
        (3, add_outgoing(&hand, 3, 1)),
        (4, add_incoming(&hand, 4, 1)),
    ] {
        let answers = say(&mut net, &hand, &[request]);
        assert_eq!(results(&answers, hand.tsn), [(n, result::DENIED)]);
        assert_eq!(types(&answers).len(), 1);
    }
}

/// The peer's request to reset its streams in response to the host's request `response`.
fn in_answer<'a>(hand: &Hand, n: u32, response: u32, streams: &'a [u8]) -> ReconfigParameter<'a> {
    ReconfigParameter::OutgoingReset {
        request: hand.tsn.wrapping_add(n),
        response: hand.peer_tsn.wrapping_add(response),
        last_tsn: Tsn(hand.tsn.wrapping_sub(1)),
        streams: U16List::from_be_bytes(streams).unwrap(),
    }
}

#[test]
fn s5_2_2_r1_r2_an_outgoing_reset_acknowledges_the_request_for_it() {
    let (mut net, hand) = by_hand();
    reset(&mut net, 1, StreamReset::Incoming, &[1]);
    let mark = net.log.len();
    say(&mut net, &hand, &[in_answer(&hand, 0, 0, &[0, 1])]);
    net.run(S(20));
    assert_eq!(types(&net.sent_since(1, mark)), [[RESPONSE]], "the timer was stopped");
    // Of two requests, the peer has answered only one.
    reset(&mut net, 1, StreamReset::Both, &[1]);
    let mark = net.log.len();
    say(&mut net, &hand, &[in_answer(&hand, 1, 2, &[0, 1])]);
    net.run(S(2));
    assert!(types(&net.sent_since(1, mark))[1..].contains(&vec![OUTGOING, INCOMING]));
    respond(&mut net, &hand, 1, result::PERFORMED);
    let mark = net.log.len();
    net.run(S(20));
    assert!(types(&net.sent_since(1, mark)).is_empty());
}

#[test]
fn s5_2_2_r3_r5_a_reset_waits_for_the_last_assigned_tsn() {
    let (mut net, hand) = by_hand();
    hand.data(&mut net, 2);
    let answers = say(&mut net, &hand, &[outgoing(&hand, 0, 3, &[0, 0])]);
    assert_eq!(results(&answers, hand.tsn), [(0, result::IN_PROGRESS)]);
    assert!(re_configs(&hand.data(&mut net, 3)).is_empty());
    // Streams that are not reset are not affected.
    hand.say(&mut net, &|w| w.data(&message(&hand, 4, 9, 0, b"other")).unwrap());
    assert_eq!(received(&net), [b"other"]);
    assert_eq!(results(&hand.data(&mut net, 1), hand.tsn), [(0, result::PERFORMED)]);
    assert_eq!(received(&net), [&b"other"[..], b"data", b"data", b"data"]);
}

/// The second request cannot be processed before the first one. It is not out of sequence: the peer
/// repeats the chunk.
#[test]
fn s5_2_2_r5_the_request_behind_one_that_is_in_progress_is_in_progress() {
    let (mut net, hand) = by_hand();
    let both = [outgoing(&hand, 0, 1, &[]), incoming(&hand, 1, &[])];
    for _ in 0..2 {
        let answers = say(&mut net, &hand, &both);
        let expected = [(0, result::IN_PROGRESS), (1, result::IN_PROGRESS)];
        assert_eq!(results(&answers, hand.tsn), expected);
    }
    assert_eq!(results(&hand.data(&mut net, 1), hand.tsn), [(0, result::PERFORMED)]);
    assert_eq!(types(&say(&mut net, &hand, &both)), [[RESPONSE, OUTGOING]]);
    // The same with an incoming reset in progress (5.2.3).
    let (mut net, hand) = by_hand();
    reset(&mut net, 1, StreamReset::Outgoing, &[1]);
    let both = [incoming(&hand, 0, &[0, 2]), outgoing(&hand, 1, 0, &[])];
    let answers = say(&mut net, &hand, &both);
    let expected = [(0, result::IN_PROGRESS), (1, result::IN_PROGRESS)];
    assert_eq!(results(&answers, hand.tsn), expected);
    respond(&mut net, &hand, 0, result::PERFORMED);
    assert_eq!(types(&say(&mut net, &hand, &both)).concat(), [OUTGOING, RESPONSE]);
}

#[test]
fn s5_2_2_r6_r7_the_listed_streams_begin_at_ssn_0_or_all_of_them() {
    for (listed, anew) in [(&[][..], [true, true]), (&[1], [true, false]), (&[2], [false, true])] {
        let (mut net, hand) = by_hand();
        hand.say(&mut net, &|w| w.data(&message(&hand, 1, 1, 0, b"1")).unwrap());
        hand.say(&mut net, &|w| w.data(&message(&hand, 2, 2, 0, b"2")).unwrap());
        let answers = say(&mut net, &hand, &[outgoing(&hand, 0, 2, &be(listed))]);
        assert_eq!(results(&answers, hand.tsn), [(0, result::PERFORMED)]);
        for (n, stream) in [(3, 1u16), (4, 2)] {
            let ssn = u16::from(!anew[usize::from(stream) - 1]);
            let next = message(&hand, n, stream, ssn, b"next");
            hand.say(&mut net, &|w| w.data(&next).unwrap());
        }
        assert_eq!(received(&net), [&b"1"[..], b"2", b"next", b"next"]);
        assert!(net.a(1).is_established());
    }
}

#[test]
fn s5_2_2_r9_r10_success_is_told_when_the_whole_chunk_has_been_processed() {
    let (mut net, hand) = by_hand();
    hand.data(&mut net, 1);
    let list = [outgoing(&hand, 0, 1, &[]), incoming(&hand, 1, &[0, 5])];
    let answers = re_configs(&say(&mut net, &hand, &list)).concat();
    // The response to the second parameter is sent together with the response to the first.
    assert_eq!((answers[0].ty, u32_at(&answers[0].value, 4)), (RESPONSE, result::PERFORMED));
    assert_eq!((answers[1].ty, &answers[1].value[12..]), (OUTGOING, &[0, 5][..]));
}

#[test]
fn s5_2_3_r1_r2_the_answer_to_an_incoming_reset_is_an_outgoing_one() {
    let (mut net, hand) = by_hand();
    send(&mut net, 1, &[3, 4]);
    let answers = say(&mut net, &hand, &[incoming(&hand, 0, &[0, 3])]);
    let parameter = only(&answers);
    assert_eq!((parameter.ty, &parameter.value[12..]), (OUTGOING, &[0, 3][..]));
    assert_eq!(u32_at(&parameter.value, 8), hand.peer_tsn.wrapping_add(1));
    respond(&mut net, &hand, 0, result::PERFORMED);
    let mark = net.log.len();
    send(&mut net, 1, &[3, 4]);
    assert_eq!(data(&net.sent_since(1, mark)), [(3, 3, 0), (4, 4, 1)]);
}

/// The peer, which refused it, would refuse it each time and repeat its own request for ever.
#[test]
fn s5_2_3_r1_an_outgoing_reset_that_was_refused_is_not_sent_again() {
    for code in [result::DENIED, result::BAD_SEQUENCE_NUMBER, result::WRONG_SSN] {
        let (mut net, hand) = by_hand();
        let asked = say(&mut net, &hand, &[incoming(&hand, 0, &[0, 3])]);
        assert_eq!(types(&asked), [[OUTGOING]]);
        respond(&mut net, &hand, 0, code);
        for _ in 0..2 {
            let answers = say(&mut net, &hand, &[incoming(&hand, 0, &[0, 3])]);
            assert_eq!(results(&answers, hand.tsn), [(0, result::DENIED)]);
            assert_eq!(types(&answers), [[RESPONSE]]);
        }
    }
}

#[test]
fn s5_2_3_r3_an_incoming_reset_of_what_is_just_being_reset_has_nothing_to_do() {
    for (ours, theirs) in [(&[1, 2][..], &[1][..]), (&[1, 2], &[1, 2]), (&[], &[7]), (&[], &[])] {
        let (mut net, hand) = by_hand();
        reset(&mut net, 1, StreamReset::Outgoing, ours);
        let answers = say(&mut net, &hand, &[incoming(&hand, 0, &be(theirs))]);
        assert_eq!(results(&answers, hand.tsn), [(0, result::NOTHING_TO_DO)]);
        respond(&mut net, &hand, 0, result::PERFORMED);
        let done =
            |e: &Event| matches!(e, Event::StreamsReset { outcome: Reconfigured::Performed, .. });
        assert_eq!(net.events(1, done).len(), 1);
    }
}

/// One request is in flight at a time (5.1.1): the other one waits for its response.
#[test]
fn s5_2_3_r4_an_incoming_reset_that_overlaps_in_part_is_processed_normally() {
    for (ours, theirs) in [(&[1, 2][..], &[2, 3][..]), (&[1], &[]), (&[1], &[3])] {
        let (mut net, hand) = by_hand();
        reset(&mut net, 1, StreamReset::Outgoing, ours);
        let list = be(theirs);
        let answers = say(&mut net, &hand, &[incoming(&hand, 0, &list)]);
        assert_eq!(results(&answers, hand.tsn), [(0, result::IN_PROGRESS)]);
        respond(&mut net, &hand, 0, result::PERFORMED);
        let asked = only(&say(&mut net, &hand, &[incoming(&hand, 0, &list)]));
        assert_eq!((asked.ty, &asked.value[12..]), (OUTGOING, &list[..]));
        assert_eq!(u32_at(&asked.value, 4), hand.tsn);
    }
    // Both sides are polypath.
    let mut net = joined();
    send(&mut net, 0, &[1, 2, 3]);
    net.run(S(1));
    reset(&mut net, 0, StreamReset::Outgoing, &[1, 2]);
    reset(&mut net, 1, StreamReset::Incoming, &[2, 3]);
    net.run(S(10));
    let mark = net.log.len();
    send(&mut net, 0, &[1, 2, 3]);
    assert_eq!(data(&net.sent_since(0, mark)), [(4, 1, 0), (5, 2, 0), (6, 3, 0)]);
    net.run(S(1));
    assert_eq!(net.hosts[1].received.len(), 6);
}

/// polypath waits until its data has been acknowledged, and so has nothing left that G3 would
/// acknowledge.
#[test]
fn s5_2_4_r1_after_an_ssn_tsn_reset_nothing_before_the_next_tsn_is_outstanding() {
    let (mut net, hand) = by_hand();
    send(&mut net, 1, &[1, 1]);
    let answers = say(&mut net, &hand, &[ssn_tsn(&hand, 0)]);
    assert_eq!(results(&answers, hand.tsn), [(0, result::IN_PROGRESS)]);
    hand.sack(&mut net, 2, &[]);
    let response = only(&say(&mut net, &hand, &[ssn_tsn(&hand, 0)]));
    assert_eq!(u32_at(&response.value, 4), result::PERFORMED);
    assert_eq!(u32_at(&response.value, 8), hand.peer_tsn.wrapping_add(2));
    assert_eq!(net.a(1).buffered(), 0);
    let mark = net.log.len();
    net.run(S(20));
    assert!(data(&net.sent_since(1, mark)).is_empty());
}

#[test]
fn s5_2_4_r2_an_ssn_tsn_reset_skips_what_is_missing() {
    let (mut net, hand) = by_hand();
    let part =
        wire::Data { end: false, stream: StreamId(3), ssn: Ssn(0), ..hand.chunk(4, b"part") };
    // Chunk 1 is missing, message 0 of stream 2 too; the message on stream 3 has no end.
    for data in [message(&hand, 2, 2, 1, b"waits"), message(&hand, 3, 1, 0, b"complete"), part] {
        hand.say(&mut net, &|w| w.data(&data).unwrap());
    }
    assert_eq!(received(&net), [b"complete"]);
    let response = only(&say(&mut net, &hand, &[ssn_tsn(&hand, 0)]));
    // A FORWARD TSN makes available what waited for the messages that it skips.
    assert_eq!(received(&net), [&b"complete"[..], b"waits"]);
    let new = Hand { tsn: u32_at(&response.value, 12), ..hand.clone() };
    for (n, stream) in [(1, 2), (2, 3), (3, 1)] {
        new.say(&mut net, &|w| w.data(&message(&new, n, stream, 0, b"new")).unwrap());
    }
    assert_eq!(received(&net)[2..], [b"new"; 3]);
    net.run(S(1));
    let sack = net.sent_with(1, "SACK").pop().unwrap();
    let cumulative = u32_at(&crate::bytes::chunk(&sack.bytes, 3).value, 0);
    assert_eq!(cumulative, new.tsn.wrapping_add(2));
    assert!(sack.sack().unwrap().gaps.is_empty());
}

#[test]
fn s5_2_4_r3_r4_r5_an_ssn_tsn_reset_lets_all_ssns_begin_at_0() {
    let (mut net, hand) = by_hand();
    for (n, stream) in [(1, 1), (2, 2)] {
        hand.say(&mut net, &|w| w.data(&message(&hand, n, stream, 0, b"old")).unwrap());
    }
    send(&mut net, 1, &[1, 1, 2]);
    hand.sack(&mut net, 3, &[]);
    let answers = say(&mut net, &hand, &[ssn_tsn(&hand, 0)]);
    assert_eq!(results(&answers, hand.tsn), [(0, result::PERFORMED)]);
    let new = Hand { tsn: u32_at(&only(&answers).value, 12), ..hand.clone() };
    for (n, stream) in [(1, 1), (2, 2), (3, 5)] {
        new.say(&mut net, &|w| w.data(&message(&new, n, stream, 0, b"new")).unwrap());
    }
    assert_eq!(received(&net), [&b"old"[..], b"old", b"new", b"new", b"new"]);
    let mark = net.log.len();
    send(&mut net, 1, &[1, 2, 1]);
    assert_eq!(data(&net.sent_since(1, mark)), [(4, 1, 0), (5, 2, 0), (6, 1, 1)]);
}

#[test]
fn s5_2_5_r1_r2_streams_of_the_peer_are_added_or_denied() {
    let (mut net, hand) = by_hand();
    let streams = net.a(1).inbound_streams();
    let answers = say(&mut net, &hand, &[add_outgoing(&hand, 0, 2)]);
    assert_eq!(results(&answers, hand.tsn), [(0, result::PERFORMED)]);
    let new = [message(&hand, 1, streams, 0, b"first"), message(&hand, 2, streams + 1, 0, b"too")];
    for data in new {
        hand.say(&mut net, &|w| w.data(&data).unwrap());
    }
    assert_eq!(received(&net), [&b"first"[..], b"too"]);
    let answers = say(&mut net, &hand, &[add_outgoing(&hand, 1, 60_000)]);
    assert_eq!(results(&answers, hand.tsn), [(1, result::DENIED)]);
    assert_eq!(net.a(1).inbound_streams(), streams + 2);
}

#[test]
fn s5_2_6_r1_streams_for_the_peer_are_asked_for_or_denied() {
    let (mut net, hand) = by_hand();
    let answers = re_configs(&say(&mut net, &hand, &[add_incoming(&hand, 0, 3)])).concat();
    let asked = answers.last().unwrap();
    let expected = [&hand.peer_tsn.to_be_bytes()[..], &[0, 3, 0, 0]].concat();
    assert_eq!((asked.ty, &asked.value), (ADD_OUTGOING, &expected));
    respond(&mut net, &hand, 0, result::PERFORMED);
    let answers = say(&mut net, &hand, &[add_incoming(&hand, 1, 65_535)]);
    assert_eq!(results(&answers, hand.tsn), [(1, result::DENIED)]);
}

#[test]
fn s5_2_7_r1_r2_the_timer_stops_when_every_request_has_its_answer() {
    for code in 0..6 {
        let (mut net, hand) = by_hand();
        reset(&mut net, 1, StreamReset::Outgoing, &[1]);
        respond(&mut net, &hand, 0, code);
        net.run(S(20));
        assert_eq!(net.sent_with(1, "RE-CONFIG").len(), 1);
        assert_eq!(net.path(1, 0).error_count, 0);
    }
    let (mut net, hand) = by_hand();
    add_streams(&mut net, 1, 1, 1);
    respond(&mut net, &hand, 0, result::PERFORMED);
    net.run(S(2));
    assert_eq!(types(&net.sent(1)), [[ADD_OUTGOING, ADD_INCOMING]; 2]);
    respond(&mut net, &hand, 1, result::DENIED);
    net.run(S(20));
    assert_eq!(types(&net.sent(1)).len(), 2);
}

#[test]
fn s5_2_7_r3_a_request_that_is_in_progress_is_repeated_without_counting_errors() {
    let config = config().association_max_retrans(2).heartbeat_interval(None).build().unwrap();
    let mut net = pair(1, config);
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.supported_extensions(&[130]).unwrap());
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    let asked = reset(&mut net, 1, StreamReset::Outgoing, &[1]);
    for n in 1..8 {
        respond(&mut net, &hand, 0, result::IN_PROGRESS);
        net.drive_until(S(70), |net| net.sent_with(1, "RE-CONFIG").len() > n);
        let repeated = net.sent_with(1, "RE-CONFIG").pop().unwrap();
        assert_eq!(re_configs(&[repeated]), re_configs(&asked));
        assert_eq!(net.path(1, 0).error_count, 0);
    }
    respond(&mut net, &hand, 0, result::PERFORMED);
    assert!(net.a(1).is_established());
}

#[test]
fn s5_2_7_r4_the_streams_are_reset_when_the_answer_arrives() {
    let (mut net, hand) = by_hand();
    send(&mut net, 1, &[1, 1, 2]);
    hand.sack(&mut net, 3, &[]);
    reset(&mut net, 1, StreamReset::Outgoing, &[1]);
    send(&mut net, 1, &[1, 1]);
    let mark = net.log.len();
    respond(&mut net, &hand, 0, result::PERFORMED);
    assert_eq!(data(&net.sent_since(1, mark)), [(4, 1, 0), (5, 1, 1)]);
}

#[test]
fn s5_2_7_r5_r6_after_an_ssn_tsn_reset_all_begins_at_the_given_tsns_and_ssn_0() {
    let (mut net, hand) = by_hand();
    send(&mut net, 1, &[1, 2]);
    hand.sack(&mut net, 2, &[]);
    hand.data(&mut net, 1);
    hand.data(&mut net, 2);
    reset_association(&mut net, 1);
    send(&mut net, 1, &[1, 2, 3]);
    let (ours, theirs) = (hand.tsn.wrapping_add(2), hand.peer_tsn.wrapping_add(0x4000_0000));
    let mark = net.log.len();
    let done = ReconfigParameter::Response {
        response: hand.peer_tsn,
        result: result::PERFORMED,
        next_tsns: Some((Tsn(ours), Tsn(theirs))),
    };
    say(&mut net, &hand, &[done]);
    let numbers = [0x4000_0001, 0x4000_0002, 0x4000_0003];
    let expected: Vec<_> = numbers.into_iter().zip(1..).map(|(n, s)| (n, s, 0)).collect();
    assert_eq!(data(&net.sent_since(1, mark)), expected);
    for (n, stream) in [(3, 0), (4, 7)] {
        hand.say(&mut net, &|w| w.data(&message(&hand, n, stream, 0, b"new")).unwrap());
    }
    assert_eq!(received(&net), [&b"data"[..], b"data", b"new", b"new"]);
}

#[test]
fn s5_2_7_r7_r8_outgoing_streams_are_added_when_the_answer_arrives() {
    let (mut net, hand) = by_hand();
    let streams = net.a(1).outbound_streams();
    add_streams(&mut net, 1, 3, 0);
    assert_eq!(net.a(1).outbound_streams(), streams);
    assert!(net.send(1, streams, payload(1, 10)).is_err());
    respond(&mut net, &hand, 0, result::PERFORMED);
    assert_eq!(net.a(1).outbound_streams(), streams + 3);
    send(&mut net, 1, &[streams, streams + 1, streams + 2]);
    assert_eq!(data(&net.sent(1)).len(), 3);
}
