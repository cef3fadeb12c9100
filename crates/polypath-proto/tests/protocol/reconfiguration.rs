//! Stream reconfiguration (RFC 6525), checked by the numbers in the packets sent.

use crate::common::*;
use polypath_proto::wire::{Chunk, Data, ReconfigParameter, U16List, reconfig_result as result};
use polypath_proto::{
    AcceptedRequests, Config, ConfigBuilder, Event, Message, PathState, ReconfigError,
    Reconfigured, Ssn, StreamId, StreamReset, Tsn,
};
use proptest::prelude::*;

fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder().stream_reconfiguration(true)
}

fn joined() -> Net {
    established(2, config().build().unwrap())
}

fn reset(net: &mut Net, h: usize, reset: StreamReset, streams: &[u16]) {
    let streams: Vec<StreamId> = streams.iter().map(|s| StreamId(*s)).collect();
    let now = net.now;
    net.am(h).reset_streams(now, reset, &streams).unwrap();
    net.settle();
}

fn reset_association(net: &mut Net, h: usize) {
    let now = net.now;
    net.am(h).reset_association(now).unwrap();
    net.settle();
}

/// The TSNs of the only event of this kind, which reports a success.
fn tsns_of_reset(net: &Net, h: usize) -> (Tsn, Tsn) {
    let reported = notices(net, h);
    let [Event::AssociationReset { outcome: Reconfigured::Performed, tsns }] = reported[..] else {
        panic!("{reported:?}")
    };
    tsns.unwrap()
}

/// Reconfiguration events of host `h`.
fn notices(net: &Net, h: usize) -> Vec<Event> {
    let ours = |e: &Event| {
        matches!(
            e,
            Event::StreamsReset { .. }
                | Event::AssociationReset { .. }
                | Event::StreamsAdded { .. }
        )
    };
    net.events(h, ours).into_iter().map(|(_, e)| e).collect()
}

fn streams_reset(incoming: bool, streams: &[u16], outcome: Reconfigured) -> Event {
    let streams = streams.iter().map(|s| StreamId(*s)).collect();
    Event::StreamsReset { incoming, streams, outcome }
}

/// Stream and SSN of all DATA chunks that host `h` sent since `mark`.
fn numbers(net: &Net, h: usize, mark: usize) -> Vec<(u16, u16)> {
    net.sent_since(h, mark).iter().flat_map(Sent::data).map(|d| (d.stream, d.ssn)).collect()
}

/// The kinds of parameters in the RE-CONFIG chunks of these packets.
fn parameters(packets: &[Sent]) -> Vec<String> {
    let mut all = Vec::new();
    for packet in packets {
        for chunk in packet.parsed() {
            let Chunk::ReConfig(chunk) = chunk else { continue };
            let list = chunk.parameters.iter().map(|p| match p.unwrap() {
                ReconfigParameter::OutgoingReset { .. } => "out".to_owned(),
                ReconfigParameter::IncomingReset { .. } => "in".to_owned(),
                ReconfigParameter::AssociationReset { .. } => "all".to_owned(),
                ReconfigParameter::AddOutgoing { streams, .. } => format!("add out {streams}"),
                ReconfigParameter::AddIncoming { streams, .. } => format!("add in {streams}"),
                ReconfigParameter::Response { result, .. } => format!("result {result}"),
                other => format!("{other:?}"),
            });
            all.push(list.collect::<Vec<_>>().join(" + "));
        }
    }
    all
}

fn send_some(net: &mut Net, h: usize, streams: &[u16]) {
    for stream in streams {
        net.send(h, *stream, payload(u64::from(*stream), 100)).unwrap();
    }
}

#[test]
fn outgoing_streams_begin_anew_and_their_messages_wait() {
    let mut net = joined();
    send_some(&mut net, 0, &[1, 1, 2]);
    net.run(S(1));
    let mark = net.log.len();
    reset(&mut net, 0, StreamReset::Outgoing, &[1]);
    // Messages wait for the response; other streams are not affected.
    send_some(&mut net, 0, &[1, 2]);
    assert_eq!(numbers(&net, 0, mark), [(2, 1)]);
    net.run(S(1));
    assert_eq!(numbers(&net, 0, mark), [(2, 1), (1, 0)]);
    assert_eq!(parameters(&net.sent_since(0, mark)), ["out"]);
    assert_eq!(parameters(&net.sent_since(1, mark)), ["result 1"]);
    assert_eq!(notices(&net, 0), [streams_reset(false, &[1], Reconfigured::Performed)]);
    assert_eq!(notices(&net, 1), [streams_reset(true, &[1], Reconfigured::Performed)]);
    assert_eq!(net.hosts[1].received.len(), 5);
}

#[test]
fn the_request_leaves_behind_what_was_sent_before_it() {
    let mut net = joined();
    // More than a window: most of it is queued when the reset is requested.
    for _ in 0..3 {
        net.send(0, 1, payload(1, 30_000)).unwrap();
    }
    reset(&mut net, 0, StreamReset::Outgoing, &[]);
    send_some(&mut net, 0, &[1]);
    assert!(net.sent_with(0, "RE-CONFIG").is_empty());
    net.run(S(3));
    let packets = net.sent(0);
    let at = packets.iter().position(|p| p.has("RE-CONFIG")).unwrap();
    let ssns = |packets: &[Sent]| -> Vec<u16> {
        packets.iter().flat_map(Sent::data).filter(|d| d.end).map(|d| d.ssn).collect()
    };
    assert_eq!((ssns(&packets[..at]), ssns(&packets[at..])), (vec![0, 1, 2], vec![0]));
    assert_eq!(net.hosts[1].received.len(), 4);
}

#[test]
fn a_reset_that_overtakes_lost_data_waits_for_it() {
    let mut net = joined();
    net.nth("DATA", &[1], Fate::Drop);
    send_some(&mut net, 0, &[1]);
    let mark = net.log.len();
    reset(&mut net, 0, StreamReset::Outgoing, &[1]);
    send_some(&mut net, 0, &[1]);
    net.run(S(5));
    // "In progress", and performed as soon as the retransmission has arrived.
    let answers = net.sent_since(1, mark);
    let kinds = parameters(&answers);
    assert_eq!((kinds[0].as_str(), kinds.last().unwrap().as_str()), ("result 6", "result 1"));
    let arrived = net.times(0, "DATA")[1] + 10;
    assert_eq!(answers.iter().rfind(|p| p.has("RE-CONFIG")).unwrap().ms(), arrived);
    assert_eq!(net.path(0, 0).error_count, 0);
    assert_eq!(numbers(&net, 0, mark), [(1, 0), (1, 0)]);
    assert_eq!(net.hosts[1].received.len(), 2);
    assert_eq!(notices(&net, 0), [streams_reset(false, &[1], Reconfigured::Performed)]);
}

#[test]
fn lost_requests_and_answers_are_repeated_and_done_once() {
    for (who, what) in [(0, "request"), (1, "answer")] {
        let mut net = joined();
        send_some(&mut net, 0, &[1, 1]);
        net.run(S(1));
        let lost = net.hosts[who].addresses.clone();
        let mut count = 0;
        net.filter(move |p| {
            let hit = p.has("RE-CONFIG") && lost.contains(&p.from.ip());
            count += u32::from(hit);
            if hit && count <= 2 { Fate::Drop } else { Fate::Pass }
        });
        let mark = net.log.len();
        reset(&mut net, 0, StreamReset::Outgoing, &[1]);
        send_some(&mut net, 0, &[1]);
        net.run(S(20));
        let asked: Vec<Vec<u8>> = net.sent_with(0, "RE-CONFIG").iter().map(re_config).collect();
        assert_eq!(asked.len(), 3, "{what}");
        assert!(asked.iter().all(|a| *a == asked[0]), "RFC 6525 5.1.1: the same again");
        // Each retransmission uses another path.
        let nets: Vec<u8> = net.sent_with(0, "RE-CONFIG").iter().map(Sent::net).collect();
        assert_eq!(nets, [0, 1, 0]);
        assert_eq!(numbers(&net, 0, mark), [(1, 0)], "{what}");
        assert_eq!(notices(&net, 1), [streams_reset(true, &[1], Reconfigured::Performed)]);
        assert_eq!(net.hosts[1].received.len(), 3);
        assert!(net.states(0).iter().all(|s| *s == PathState::Active));
    }
}

/// The bytes of the RE-CONFIG chunk.
fn re_config(packet: &Sent) -> Vec<u8> {
    let parsed = packet.parsed();
    let chunk = parsed.iter().find_map(|c| match c {
        Chunk::ReConfig(r) => Some(r.parameters.as_bytes().to_vec()),
        _ => None,
    });
    chunk.unwrap()
}

#[test]
fn incoming_streams_are_reset_by_the_peer() {
    let mut net = joined();
    send_some(&mut net, 1, &[3, 3, 4]);
    net.run(S(1));
    let mark = net.log.len();
    reset(&mut net, 0, StreamReset::Incoming, &[3]);
    net.run(S(1));
    send_some(&mut net, 1, &[3, 4]);
    net.run(S(1));
    assert_eq!(parameters(&net.sent_since(0, mark)), ["in", "result 1"]);
    assert_eq!(parameters(&net.sent_since(1, mark)), ["out"]);
    assert_eq!(numbers(&net, 1, mark), [(3, 0), (4, 1)]);
    assert_eq!(notices(&net, 0), [streams_reset(true, &[3], Reconfigured::Performed)]);
    assert_eq!(notices(&net, 1), [streams_reset(false, &[3], Reconfigured::Performed)]);
    // The request has been answered, so another one may follow.
    reset(&mut net, 0, StreamReset::Both, &[]);
    net.run(S(1));
    assert_eq!(parameters(&net.sent_with(0, "RE-CONFIG"))[2], "out + in");
    assert_eq!((notices(&net, 0).len(), notices(&net, 1).len()), (3, 3));
}

#[test]
fn an_incoming_reset_waits_for_what_the_peer_has_queued() {
    let mut net = joined();
    net.send(1, 3, payload(1, 60_000)).unwrap();
    let mark = net.log.len();
    reset(&mut net, 0, StreamReset::Incoming, &[3]);
    net.run(S(10));
    send_some(&mut net, 1, &[3]);
    net.run(S(1));
    let answers = parameters(&net.sent_since(1, mark));
    assert_eq!((answers[0].as_str(), answers.last().unwrap().as_str()), ("result 6", "out"));
    assert_eq!(net.hosts[0].received.len(), 2);
    assert_eq!(net.path(0, 0).error_count, 0);
}

#[test]
fn the_association_begins_anew_in_both_directions() {
    let mut net = joined();
    send_some(&mut net, 0, &[1, 1]);
    send_some(&mut net, 1, &[2, 2, 2]);
    let mark = net.log.len();
    // Both sides have data in flight.
    reset_association(&mut net, 0);
    send_some(&mut net, 0, &[1]);
    send_some(&mut net, 1, &[2]);
    net.run(S(10));
    let [(ours, theirs), (other, same)] = [0, 1].map(|h| tsns_of_reset(&net, h));
    assert_eq!((ours, theirs), (same, other));
    assert_eq!((net.hosts[1].received.len(), net.hosts[0].received.len()), (3, 4));
    // RFC 6525 5.2.4 G1, G2: the requester's TSN advances by 2^31, the responder's TSN continues.
    let last = |h: usize| net.sent_since(h, mark).iter().flat_map(Sent::data).last().unwrap();
    assert_eq!((last(0).n, last(0).ssn), (3u32.wrapping_add(1 << 31), 0));
    assert_eq!((last(1).n, last(1).ssn), (4, 3), "sent before the reset");
    send_some(&mut net, 1, &[2]);
    send_some(&mut net, 0, &[1, 5]);
    net.run(S(1));
    let seen: Vec<_> = net.sent_since(1, mark).iter().flat_map(Sent::data).collect();
    assert_eq!((seen.last().unwrap().n, seen.last().unwrap().ssn), (5, 0));
    assert_eq!((net.hosts[1].received.len(), net.hosts[0].received.len()), (5, 5));
    // A second reset, requested by the other side.
    reset_association(&mut net, 1);
    net.run(S(1));
    send_some(&mut net, 0, &[1]);
    send_some(&mut net, 1, &[1]);
    net.run(S(1));
    assert_eq!((net.hosts[1].received.len(), net.hosts[0].received.len()), (6, 6));
}

#[test]
fn streams_are_added() {
    let few = config().outbound_streams(2).inbound_streams(6).build().unwrap();
    let mut net = established(1, few);
    assert_eq!(
        net.send(0, 2, payload(1, 10)),
        Err(polypath_proto::SendError::NoSuchStream { stream: StreamId(2), streams: 2 })
    );
    let now = net.now;
    net.am(0).add_streams(now, 1, 2).unwrap();
    net.run(S(1));
    assert_eq!((net.a(0).outbound_streams(), net.a(0).inbound_streams()), (3, 4));
    assert_eq!((net.a(1).outbound_streams(), net.a(1).inbound_streams()), (4, 3));
    let added = |incoming, streams| Event::StreamsAdded {
        incoming,
        streams,
        outcome: Reconfigured::Performed,
    };
    assert_eq!(notices(&net, 0), [added(false, 3), added(true, 4)]);
    assert_eq!(notices(&net, 1), [added(true, 3), added(false, 4)]);
    send_some(&mut net, 0, &[2]);
    send_some(&mut net, 1, &[3]);
    net.run(S(1));
    assert_eq!((net.hosts[0].received.len(), net.hosts[1].received.len()), (1, 1));
    // Request more streams than `inbound_streams` allows.
    let now = net.now;
    net.am(0).add_streams(now, 4, 0).unwrap();
    net.run(S(1));
    let denied = Event::StreamsAdded { incoming: false, streams: 3, outcome: Reconfigured::Denied };
    assert_eq!(notices(&net, 0).last(), Some(&denied));
    assert_eq!((net.a(0).outbound_streams(), net.a(1).inbound_streams()), (3, 3));
}

#[test]
fn what_the_application_does_not_grant_is_denied() {
    let mut net = joined();
    let none =
        AcceptedRequests { reset_streams: false, reset_association: false, add_streams: false };
    net.am(1).accept_requests(none).unwrap();
    send_some(&mut net, 0, &[1]);
    net.run(S(1));
    let mark = net.log.len();
    reset(&mut net, 0, StreamReset::Both, &[1]);
    net.run(S(1));
    reset_association(&mut net, 0);
    net.run(S(1));
    let now = net.now;
    net.am(0).add_streams(now, 1, 1).unwrap();
    net.run(S(1));
    let both = "result 2 + result 2";
    assert_eq!(parameters(&net.sent_since(1, mark)), [both, "result 2", both]);
    assert_eq!(notices(&net, 0).len(), 5);
    assert!(notices(&net, 1).is_empty());
    // The streams continue as before.
    send_some(&mut net, 0, &[1]);
    net.run(S(1));
    assert_eq!(numbers(&net, 0, mark), [(1, 1)]);
    assert_eq!(net.hosts[1].received.len(), 2);
}

#[test]
fn one_request_at_a_time_and_none_that_makes_no_sense() {
    let mut net = joined();
    let now = net.now;
    let a = net.am(0);
    let streams = a.outbound_streams();
    let beyond = [StreamId(1), StreamId(streams)];
    let error = ReconfigError::NoSuchStream { stream: beyond[1], streams };
    assert_eq!(a.reset_streams(now, StreamReset::Both, &beyond), Err(error));
    let error = ReconfigError::NotSoMany { added: 0, streams };
    assert_eq!(a.add_streams(now, 0, 0), Err(error));
    let error = ReconfigError::NotSoMany { added: u16::MAX, streams };
    assert_eq!(a.add_streams(now, u16::MAX, 0), Err(error));
    assert_eq!(a.reset_streams(now, StreamReset::Outgoing, &[]), Ok(()));
    assert_eq!(a.reset_association(now), Err(ReconfigError::InProgress));
    net.run(S(1));
    let now = net.now;
    assert_eq!(net.am(0).reset_association(now), Ok(()));
    net.run(S(1));
    net.shutdown(0);
    let now = net.now;
    assert_eq!(net.am(0).add_streams(now, 1, 0), Err(ReconfigError::NotEstablished));

    let configs = [config().build().unwrap(), Config::rfc9260()];
    let mut net = Setup { configs, ..Setup::default() }.build();
    net.establish();
    let now = net.now;
    assert_eq!(net.am(0).reset_association(now), Err(ReconfigError::NotAgreed));
    assert_eq!(net.am(1).add_streams(now, 1, 1), Err(ReconfigError::NotAgreed));
}

#[test]
fn a_shutdown_waits_for_what_a_reset_holds_back() {
    let mut net = joined();
    net.drop_once(&["RE-CONFIG"]);
    reset(&mut net, 0, StreamReset::Outgoing, &[1]);
    send_some(&mut net, 0, &[1]);
    net.shutdown(0);
    net.run(S(30));
    assert!(net.closed(0).unwrap().is_graceful() && net.closed(1).unwrap().is_graceful());
    assert_eq!(net.hosts[1].received.len(), 1);
}

#[test]
fn a_peer_that_never_answers_ends_the_association() {
    let mut net = established(1, config().association_max_retrans(3).build().unwrap());
    net.drop_all("RE-CONFIG");
    reset(&mut net, 0, StreamReset::Outgoing, &[1]);
    net.run(S(60));
    assert_eq!(net.closed(0), Some(polypath_proto::CloseReason::PeerUnreachable));
}

#[test]
fn both_sides_may_ask_at_the_same_time() {
    let mut net = joined();
    send_some(&mut net, 0, &[1]);
    send_some(&mut net, 1, &[1]);
    net.run(S(1));
    reset(&mut net, 0, StreamReset::Outgoing, &[]);
    reset(&mut net, 1, StreamReset::Outgoing, &[]);
    net.run(S(1));
    let done = |incoming| streams_reset(incoming, &[], Reconfigured::Performed);
    assert_eq!(notices(&net, 0), [done(true), done(false)]);
    assert_eq!(notices(&net, 1), [done(true), done(false)]);
    // Only one of the two requests could be performed: both fail, and either side may try again.
    reset_association(&mut net, 0);
    reset_association(&mut net, 1);
    net.run(S(5));
    let failed = Event::AssociationReset { outcome: Reconfigured::Failed, tsns: None };
    assert_eq!((notices(&net, 0).last(), notices(&net, 1).last()), (Some(&failed), Some(&failed)));
    let mark = net.log.len();
    send_some(&mut net, 0, &[1]);
    send_some(&mut net, 1, &[1]);
    net.run(S(1));
    assert_eq!((numbers(&net, 0, mark), numbers(&net, 1, mark)), (vec![(1, 0)], vec![(1, 0)]));
}

#[test]
fn the_peer_restarts_while_a_reset_is_on_its_way() {
    let mut net = joined();
    net.drop_all("RE-CONFIG");
    reset(&mut net, 0, StreamReset::Outgoing, &[1]);
    send_some(&mut net, 0, &[1]);
    // Another incarnation of host 1 opens an association.
    let host =
        Setup { paths: 2, seed: 9, ..Setup::default() }.host(1, &config().build().unwrap(), true);
    net.hosts[1] = host;
    net.connect(1);
    net.run(S(5));
    assert!(net.saw(0, &Event::Restarted));
    assert_eq!(net.hosts[1].received.len(), 1, "{}", net.tail(20));
    net.no_filters();
    let now = net.now;
    net.am(0).reset_association(now).unwrap();
    net.run(S(2));
    send_some(&mut net, 0, &[1]);
    net.run(S(1));
    assert_eq!(net.hosts[1].received.len(), 2);
}

// Requests and responses built by hand.

fn asked(net: &mut Net, hand: &Hand, asks: &[ReconfigParameter<'_>]) -> Vec<String> {
    let answers = hand.say(net, &|w| {
        w.re_config(|p| asks.iter().try_for_each(|x| p.parameter(x))).unwrap();
    });
    parameters(&answers)
}

fn by_hand() -> (Net, Hand) {
    let mut net = pair(1, config().build().unwrap());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.supported_extensions(&[130]).unwrap());
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    (net, hand)
}

#[test]
fn sequence_numbers_tell_new_requests_from_old_ones() {
    let (mut net, hand) = by_hand();
    let first = hand.tsn;
    let add =
        |n: u32| ReconfigParameter::AddOutgoing { request: first.wrapping_add(n), streams: 1 };
    assert_eq!(asked(&mut net, &hand, &[add(1)]), ["result 5"], "of the future");
    assert_eq!(asked(&mut net, &hand, &[add(0)]), ["result 1"]);
    assert_eq!(asked(&mut net, &hand, &[add(0)]), ["result 1"], "repeated");
    assert_eq!(net.a(1).inbound_streams(), 65, "but done once");
    assert_eq!(asked(&mut net, &hand, &[add(1), add(2)]), ["result 1 + result 1"]);
    assert_eq!(asked(&mut net, &hand, &[add(1)]), ["result 1"]);
    assert_eq!(asked(&mut net, &hand, &[add(0)]), ["result 5"], "too old");
    assert_eq!(net.a(1).inbound_streams(), 67);
}

#[test]
fn streams_that_do_not_exist_are_refused() {
    let (mut net, hand) = by_hand();
    let streams = U16List::from_be_bytes(&[0, 1, 0x10, 0]).unwrap();
    let outgoing = ReconfigParameter::OutgoingReset {
        request: hand.tsn,
        response: 0,
        last_tsn: Tsn(hand.tsn.wrapping_sub(1)),
        streams,
    };
    assert_eq!(asked(&mut net, &hand, &[outgoing]), ["result 3"]);
    let request = hand.tsn.wrapping_add(1);
    let incoming = ReconfigParameter::IncomingReset { request, streams };
    assert_eq!(asked(&mut net, &hand, &[incoming]), ["result 3"]);
    assert!(notices(&net, 1).is_empty());
}

#[test]
fn data_on_a_stream_that_is_being_reset_is_not_taken() {
    let (mut net, hand) = by_hand();
    // Chunk 1 is missing; the stream is to be reset after it; chunk 2 arrives too early.
    let last_tsn = Tsn(hand.tsn);
    let reset = ReconfigParameter::OutgoingReset {
        request: hand.tsn,
        response: 0,
        last_tsn,
        streams: U16List::from_be_bytes(&[0, 0]).unwrap(),
    };
    assert_eq!(asked(&mut net, &hand, &[reset]), ["result 6"]);
    let early = Data { ssn: Ssn(0), ..hand.chunk(2, b"early") };
    let answers = hand.say(&mut net, &|w| w.data(&early).unwrap());
    assert!(answers.iter().all(|p| p.sack().is_none_or(|s| s.gaps.is_empty())));
    let answers = hand.data(&mut net, 1);
    assert_eq!(parameters(&answers), ["result 1"]);
    hand.say(&mut net, &|w| w.data(&early).unwrap());
    let got: Vec<_> = net.hosts[1].received.iter().map(|r| r.payload.to_vec()).collect();
    assert_eq!(got, [b"data".to_vec(), b"early".to_vec()]);
}

/// A response without a request, responses without TSNs, unknown and malformed parameters, and
/// thousands of requests.
#[test]
fn what_makes_no_sense_is_dropped() {
    let (mut net, hand) = by_hand();
    let response = |response, next_tsns| ReconfigParameter::Response {
        response,
        result: result::PERFORMED,
        next_tsns,
    };
    assert!(asked(&mut net, &hand, &[response(7, None)]).is_empty());
    let raw = &[0, 99, 0, 4];
    let unknown = ReconfigParameter::Unknown { ty: 99, raw };
    let add = ReconfigParameter::AddOutgoing { request: hand.tsn, streams: 1 };
    assert!(asked(&mut net, &hand, &[unknown, add]).is_empty(), "an unknown type stops");
    assert!(hand.say(&mut net, &|w| w.typed_chunk(130, 0, &[0, 15, 0, 9, 1]).unwrap()).is_empty());
    assert!(hand.say(&mut net, &|w| w.typed_chunk(130, 0, &[]).unwrap()).is_empty());
    // The response to the host's request lacks the TSNs.
    let number = hand.peer_tsn;
    reset_association(&mut net, 1);
    asked(&mut net, &hand, &[response(number, None)]);
    let failed = Event::AssociationReset { outcome: Reconfigured::Failed, tsns: None };
    assert_eq!(notices(&net, 1), [failed]);
    for n in 0..3000u32 {
        let request = hand.tsn.wrapping_add(n);
        asked(&mut net, &hand, &[ReconfigParameter::AddOutgoing { request, streams: 0 }]);
    }
    assert!(net.a(1).is_established());
}

/// A delayed request is performed while the requester still receives data sent before it; the
/// peer's next data overtakes the response, and must not be taken for earlier data.
#[test]
fn what_overtakes_the_answer_to_a_reset_of_the_association_comes_again() {
    let mut net = joined();
    let mut counts = [0; 2];
    net.filter(move |p| {
        let host = usize::from(p.from.ip() == v4(0, 1) || p.from.ip() == v4(1, 1));
        counts[host] += u32::from(p.has("RE-CONFIG"));
        match (p.has("RE-CONFIG"), host, counts[host]) {
            (true, 1, 2) => Fate::Late(MS(800)),
            (true, 0, 1) => Fate::Late(MS(990)),
            (true, 0, 2) => Fate::Late(MS(600)),
            _ => Fate::Pass,
        }
    });
    reset_association(&mut net, 1);
    net.run(MS(5));
    send_some(&mut net, 0, &[1]);
    net.run(MS(10));
    send_some(&mut net, 0, &[2]);
    net.run(S(4));
    tsns_of_reset(&net, 0);
    let mark = net.log.len();
    send_some(&mut net, 0, &[2, 1]);
    net.run(S(10));
    tsns_of_reset(&net, 1);
    assert_eq!(numbers(&net, 0, mark)[..2], [(2, 1), (1, 0)]);
    let streams: Vec<u16> = net.hosts[1].received.iter().map(|r| r.stream.0).collect();
    assert_eq!(streams, [1, 2, 2, 1], "{}", net.tail(40));
}

/// SACKs and DATA from before an association reset are ignored.
#[test]
fn old_numbers_after_a_reset_are_dropped() {
    let (mut net, hand) = by_hand();
    hand.data(&mut net, 1);
    net.send(1, 0, payload(1, 100)).unwrap();
    hand.sack(&mut net, 1, &[]);
    let number = hand.peer_tsn;
    reset_association(&mut net, 1);
    let next = Tsn(hand.peer_tsn.wrapping_add(1 + (1 << 31)));
    let mine = Tsn(hand.tsn.wrapping_add(1));
    let done = ReconfigParameter::Response {
        response: number,
        result: result::PERFORMED,
        next_tsns: Some((mine, next)),
    };
    asked(&mut net, &hand, &[done]);
    for _ in 0..3 {
        net.send(1, 0, payload(1, 100)).unwrap();
    }
    let new = Hand { peer_tsn: next.0, ..hand.clone() };
    new.sack(&mut net, 3, &[]);
    hand.sack(&mut net, 1, &[]);
    hand.data(&mut net, 1);
    assert!(net.a(1).is_established() && net.a(1).buffered() == 0);
    let chunk = Data { ssn: Ssn(0), ..hand.chunk(2, b"anew") };
    hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    assert_eq!(net.hosts[1].received.len(), 2);
}

/// RFC 9260 6.2.1: SACKs may be late, and one from before a reset acknowledges TSNs that are half
/// the number space behind their sender's current ones (RFC 6525 5.2.4 G1). They are dropped,
/// however many resets of either side happened in between.
#[test]
fn a_sack_from_before_any_reset_is_dropped() {
    for askers in [[0, 1, 1, 0, 1], [0, 0, 0, 1, 0], [1, 0, 1, 0, 0]] {
        let mut net = joined();
        let (mut late, mut mark) = (Vec::new(), 0);
        for asker in askers {
            send_some(&mut net, 0, &[1, 2, 1]);
            send_some(&mut net, 1, &[2, 1]);
            net.run(S(1));
            late.extend([0, 1].into_iter().flat_map(|h| net.sent_since(h, mark)));
            late.retain(|packet| packet.has("SACK"));
            reset_association(&mut net, asker);
            net.run(S(1));
            for packet in &late {
                net.inject(packet.from, packet.to, &packet.bytes);
                assert!(net.a(0).is_established(), "{:?}\n{}", net.closed(0), net.tail(5));
                assert!(net.a(1).is_established(), "{:?}\n{}", net.closed(1), net.tail(5));
            }
            net.run(S(1));
            mark = net.log.len();
        }
        assert_eq!((net.hosts[1].received.len(), net.hosts[0].received.len()), (15, 10));
        assert_eq!((net.a(0).buffered(), net.a(1).buffered()), (0, 0));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send { host: usize, stream: u16, len: u16, unordered: bool },
    Reset { host: usize, reset: u8, streams: Vec<u16> },
    Association { host: usize },
    Add { host: usize, outgoing: u16, incoming: u16 },
    Run(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let host = 0usize..2;
    prop_oneof![
        8 => (host.clone(), 0u16..4, 1u16..6000, prop::bool::weighted(0.2))
            .prop_map(|(host, stream, len, unordered)| Step::Send { host, stream, len, unordered }),
        3 => (host.clone(), 0u8..3, prop::collection::vec(0u16..4, 0..3))
            .prop_map(|(host, reset, streams)| Step::Reset { host, reset, streams }),
        2 => host.clone().prop_map(|host| Step::Association { host }),
        1 => (host, 0u16..3, 0u16..3)
            .prop_map(|(host, outgoing, incoming)| Step::Add { host, outgoing, incoming }),
        3 => (0u16..3000).prop_map(Step::Run),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() })]

    /// With any resets and additions, over a network that drops, duplicates and delays packets,
    /// every message arrives once and in the order of its stream.
    #[test]
    fn no_message_is_lost_or_disordered(seed in any::<u64>(), loss in 0u64..30, steps in prop::collection::vec(step(), 1..40)) {
        let mut net = established(2, config().association_max_retrans(100).build().unwrap());
        let mut dice = polypath_proto::Rng::new(&polypath_proto::Seed::from_u64(seed));
        net.filter(move |_| match dice.below(100) {
            n if n < loss => Fate::Drop,
            n if n < loss + 5 => Fate::Twice,
            n if n < loss + 10 => Fate::Late(MS(dice.below(300))),
            // Reordered across several resets.
            n if n < loss + 13 => Fate::Late(MS(dice.below(8000))),
            _ => Fate::Pass,
        });
        let mut sent: [Vec<Vec<u32>>; 2] = [vec![Vec::new(); 8], vec![Vec::new(); 8]];
        let mut count = 0u32;
        for step in steps {
            let now = net.now;
            match step {
                Step::Send { host, stream, len, unordered } => {
                    count += 1;
                    let mut bytes = payload(u64::from(count), usize::from(len).max(5)).to_vec();
                    bytes[..4].copy_from_slice(&count.to_be_bytes());
                    bytes[4] = unordered.into();
                    let message = Message { unordered, ..Message::new(StreamId(stream), bytes) };
                    if net.send_message(host, message).is_ok() {
                        sent[host][usize::from(stream) * 2 + usize::from(unordered)].push(count);
                    }
                }
                Step::Reset { host, reset, streams } => {
                    let reset = [StreamReset::Outgoing, StreamReset::Incoming, StreamReset::Both][usize::from(reset)];
                    let streams: Vec<StreamId> = streams.into_iter().map(StreamId).collect();
                    let _ = net.am(host).reset_streams(now, reset, &streams);
                }
                Step::Association { host } => { let _ = net.am(host).reset_association(now); }
                Step::Add { host, outgoing, incoming } => { let _ = net.am(host).add_streams(now, outgoing, incoming); }
                Step::Run(ms) => net.run(MS(ms.into())),
            }
        }
        net.run(S(300));
        net.no_filters();
        net.run(S(300));
        for (h, sent) in sent.iter_mut().enumerate() {
            prop_assert!(net.a(h).is_established(), "{:?}\n{}", net.closed(h), net.tail(30));
            prop_assert_eq!(net.a(h).buffered(), 0, "{}", net.tail(30));
            let mut got = vec![Vec::new(); 8];
            for r in &net.hosts[1 - h].received {
                prop_assert!(r.beginning && r.end);
                let number = u32::from_be_bytes(r.payload[..4].try_into().unwrap());
                got[usize::from(r.stream.0) * 2 + usize::from(r.unordered)].push(number);
            }
            for list in got.iter_mut().chain(&mut *sent).skip(1).step_by(2) {
                list.sort_unstable();
            }
            prop_assert_eq!(&got, sent, "{}", net.tail(30));
        }
        // Both sides agree on the numbers of streams.
        prop_assert_eq!(net.a(0).outbound_streams(), net.a(1).inbound_streams());
        prop_assert_eq!(net.a(1).outbound_streams(), net.a(0).inbound_streams());
    }
}
