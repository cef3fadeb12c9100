//! Section 4: the parameters.

use super::*;

#[test]
fn s4_1_r1_the_outgoing_reset_has_16_bytes_and_two_for_each_stream() {
    for streams in [&[][..], &[3], &[1, 2], &[1, 2, 9]] {
        let (mut net, hand) = by_hand();
        let parameter = only(&reset(&mut net, 1, StreamReset::Outgoing, streams));
        let before = hand.tsn.wrapping_sub(1);
        let numbers = [hand.peer_tsn, before, hand.peer_tsn.wrapping_sub(1)];
        let expected = [numbers.map(u32::to_be_bytes).concat(), be(streams)].concat();
        let found = (parameter.ty, parameter.length, parameter.value);
        assert_eq!(found, (OUTGOING, 16 + 2 * streams.len(), expected));
    }
}

#[test]
fn s4_2_r1_the_incoming_reset_has_8_bytes_and_two_for_each_stream() {
    for streams in [&[][..], &[3], &[1, 2], &[1, 2, 9]] {
        let (mut net, hand) = by_hand();
        let parameter = only(&reset(&mut net, 1, StreamReset::Incoming, streams));
        let expected = [hand.peer_tsn.to_be_bytes().to_vec(), be(streams)].concat();
        let found = (parameter.ty, parameter.length, parameter.value);
        assert_eq!(found, (INCOMING, 8 + 2 * streams.len(), expected));
    }
}

#[test]
fn s4_3_r1_the_ssn_tsn_reset_has_8_bytes() {
    let (mut net, hand) = by_hand();
    let parameter = only(&reset_association(&mut net, 1));
    let expected = hand.peer_tsn.to_be_bytes().to_vec();
    assert_eq!((parameter.ty, parameter.length, parameter.value), (SSN_TSN, 8, expected));
}

#[test]
fn s4_4_r1_r2_a_response_has_12_bytes_or_both_tsns_and_20() {
    let (mut net, hand) = by_hand();
    for (n, request, length) in [
        (0, outgoing(&hand, 0, 0, &[]), 12),
        (1, add_outgoing(&hand, 1, 2), 12),
        (2, add_outgoing(&hand, 2, 60_000), 12),
        (3, incoming(&hand, 3, &[0xff, 0xff]), 12),
        (4, ssn_tsn(&hand, 4), 20),
    ] {
        let parameter = only(&say(&mut net, &hand, &[request]));
        let found = (parameter.ty, parameter.length, u32_at(&parameter.value, 0));
        assert_eq!(found, (RESPONSE, length, hand.tsn.wrapping_add(n)));
    }
    // A response with only one of the two TSNs is ignored.
    let done = |net: &Net| {
        let done = Reconfigured::Performed;
        let is_done =
            |e: &Event| matches!(e, Event::AssociationReset { outcome, .. } if *outcome == done);
        net.events(1, is_done).len()
    };
    assert_eq!(done(&net), 1, "as the peer asked");
    let asked = reset_association(&mut net, 1);
    let number = u32_at(&only(&asked).value, 0);
    let value = [number, result::PERFORMED, 7].map(u32::to_be_bytes).concat();
    let bytes = [&[0, 16, 0, 16][..], &value].concat();
    hand.say(&mut net, &|w| w.typed_chunk(RE_CONFIG as u8, 0, &bytes).unwrap());
    assert_eq!(done(&net), 1);
}

#[test]
fn s4_5_r1_the_request_to_add_outgoing_streams_has_12_bytes() {
    let (mut net, hand) = by_hand();
    let parameter = only(&add_streams(&mut net, 1, 3, 0));
    let expected = [&hand.peer_tsn.to_be_bytes()[..], &[0, 3, 0, 0]].concat();
    assert_eq!((parameter.ty, parameter.length, parameter.value), (ADD_OUTGOING, 12, expected));
}

#[test]
fn s4_6_r1_the_request_to_add_incoming_streams_has_12_bytes() {
    let (mut net, hand) = by_hand();
    let parameter = only(&add_streams(&mut net, 1, 0, 3));
    let expected = [&hand.peer_tsn.to_be_bytes()[..], &[0, 3, 0, 0]].concat();
    assert_eq!((parameter.ty, parameter.length, parameter.value), (ADD_INCOMING, 12, expected));
}

/// Both hosts request everything.
fn everything() -> Net {
    let config = config().outbound_streams(5).inbound_streams(50).build().unwrap();
    let mut net = established(1, config);
    for h in 0..2 {
        send(&mut net, h, &[1, 2]);
        for what in [StreamReset::Outgoing, StreamReset::Incoming, StreamReset::Both] {
            for streams in [&[][..], &[1], &[1, 2]] {
                reset(&mut net, h, what, streams);
                net.run(S(5));
                send(&mut net, h, &[1, 2]);
            }
        }
        reset_association(&mut net, h);
        net.run(S(5));
        for (outgoing, incoming) in [(1, 0), (0, 1), (1, 1)] {
            add_streams(&mut net, h, outgoing, incoming);
            net.run(S(5));
        }
    }
    net.shutdown(0);
    net.run(S(5));
    assert!(net.closed(0).unwrap().is_graceful());
    net
}

#[test]
fn s4_1_r2_the_parameters_are_in_no_other_chunk() {
    let net = everything();
    for sent in &net.log {
        for chunk in chunks(&sent.bytes) {
            let list = match chunk.ty {
                1 | 2 => crate::bytes::parameters(&chunk),
                // The causes of ABORT and ERROR, the parameters of RE-CONFIG.
                6 | 9 => elements(&chunk.value),
                _ => continue,
            };
            assert!(list.iter().all(|p| !(OUTGOING..=ADD_INCOMING).contains(&p.ty)));
        }
    }
}

#[test]
fn s5_1_2_r9_only_the_allowed_combinations_share_a_chunk() {
    let allowed: [&[u16]; 10] = [
        &[OUTGOING],
        &[INCOMING],
        &[OUTGOING, INCOMING],
        &[SSN_TSN],
        &[ADD_OUTGOING],
        &[ADD_INCOMING],
        &[ADD_OUTGOING, ADD_INCOMING],
        &[RESPONSE],
        &[RESPONSE, OUTGOING],
        &[RESPONSE, RESPONSE],
    ];
    let seen = types(&everything().log);
    assert!(seen.iter().all(|list| allowed.contains(&&list[..])), "{seen:?}");
    let used = allowed.iter().filter(|list| seen.iter().any(|s| s == *list)).count();
    assert_eq!(used, 10, "{seen:?}");
}
