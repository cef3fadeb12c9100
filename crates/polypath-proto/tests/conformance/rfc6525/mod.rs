//! RFC 6525, stream reconfiguration: the requirements with MUST.

mod formats;
mod receiver;
mod sender;

use crate::bytes::{Raw, chunks, elements, u32_at};
use crate::common::*;
use polypath_proto::wire::{ReconfigParameter, U16List, reconfig_result as result};
use polypath_proto::*;

const RE_CONFIG: u16 = 130;
const OUTGOING: u16 = 13;
const INCOMING: u16 = 14;
const SSN_TSN: u16 = 15;
const RESPONSE: u16 = 16;
const ADD_OUTGOING: u16 = 17;
const ADD_INCOMING: u16 = 18;

fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder().stream_reconfiguration(true)
}

fn joined() -> Net {
    established(1, config().build().unwrap())
}

/// A host and a hand-built peer that both support the extension.
fn by_hand() -> (Net, Hand) {
    listing(&[RE_CONFIG as u8])
}

/// The same with a peer that lists these chunk types.
fn listing(types: &[u8]) -> (Net, Hand) {
    let mut net = pair(1, config().build().unwrap());
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.supported_extensions(types).unwrap());
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    assert!(net.a(1).is_established());
    (net, hand)
}

/// The parameters of each RE-CONFIG chunk in these packets.
fn re_configs(packets: &[Sent]) -> Vec<Vec<Raw>> {
    let list = packets.iter().flat_map(|p| chunks(&p.bytes)).filter(|c| c.ty == RE_CONFIG);
    list.map(|c| elements(&c.value)).collect()
}

/// The parameter types of each RE-CONFIG chunk in these packets.
fn types(packets: &[Sent]) -> Vec<Vec<u16>> {
    re_configs(packets).iter().map(|list| list.iter().map(|p| p.ty).collect()).collect()
}

/// The only parameter of the only RE-CONFIG chunk in these packets.
#[track_caller]
fn only(packets: &[Sent]) -> Raw {
    let list = re_configs(packets).concat();
    assert_eq!(list.len(), 1, "{list:?}");
    list[0].clone()
}

/// Response sequence numbers, counted from `first`, and results of all responses in these packets.
fn results(packets: &[Sent], first: u32) -> Vec<(u32, u32)> {
    let list = re_configs(packets).concat();
    let responses = list.iter().filter(|p| p.ty == RESPONSE);
    responses.map(|p| (u32_at(&p.value, 0).wrapping_sub(first), u32_at(&p.value, 4))).collect()
}

/// Sends the peer's RE-CONFIG chunk with these parameters; returns the answers.
fn say(net: &mut Net, hand: &Hand, list: &[ReconfigParameter<'_>]) -> Vec<Sent> {
    hand.say(net, &|w| w.re_config(|p| list.iter().try_for_each(|x| p.parameter(x))).unwrap())
}

/// Sends the peer's response to the `n`-th request of the host, counted from 0.
fn respond(net: &mut Net, hand: &Hand, n: u32, result: u32) -> Vec<Sent> {
    let response = hand.peer_tsn.wrapping_add(n);
    say(net, hand, &[ReconfigParameter::Response { response, result, next_tsns: None }])
}

/// The peer's `n`-th request, counted from 0: resets its streams after its `last`-th chunk.
fn outgoing<'a>(hand: &Hand, n: u32, last: u32, streams: &'a [u8]) -> ReconfigParameter<'a> {
    ReconfigParameter::OutgoingReset {
        request: hand.tsn.wrapping_add(n),
        response: hand.peer_tsn.wrapping_sub(1),
        last_tsn: Tsn(hand.tsn.wrapping_add(last).wrapping_sub(1)),
        streams: U16List::from_be_bytes(streams).unwrap(),
    }
}

fn incoming<'a>(hand: &Hand, n: u32, streams: &'a [u8]) -> ReconfigParameter<'a> {
    let streams = U16List::from_be_bytes(streams).unwrap();
    ReconfigParameter::IncomingReset { request: hand.tsn.wrapping_add(n), streams }
}

fn ssn_tsn(hand: &Hand, n: u32) -> ReconfigParameter<'static> {
    ReconfigParameter::AssociationReset { request: hand.tsn.wrapping_add(n) }
}

fn add_outgoing(hand: &Hand, n: u32, streams: u16) -> ReconfigParameter<'static> {
    ReconfigParameter::AddOutgoing { request: hand.tsn.wrapping_add(n), streams }
}

fn add_incoming(hand: &Hand, n: u32, streams: u16) -> ReconfigParameter<'static> {
    ReconfigParameter::AddIncoming { request: hand.tsn.wrapping_add(n), streams }
}

/// Host `h` requests a reset; returns the packets that it sends at once.
fn reset(net: &mut Net, h: usize, what: StreamReset, streams: &[u16]) -> Vec<Sent> {
    let streams: Vec<StreamId> = streams.iter().map(|s| StreamId(*s)).collect();
    let (now, mark) = (net.now, net.log.len());
    net.am(h).reset_streams(now, what, &streams).unwrap();
    net.settle();
    net.sent_since(h, mark)
}

fn reset_association(net: &mut Net, h: usize) -> Vec<Sent> {
    let (now, mark) = (net.now, net.log.len());
    net.am(h).reset_association(now).unwrap();
    net.settle();
    net.sent_since(h, mark)
}

fn add_streams(net: &mut Net, h: usize, outgoing: u16, incoming: u16) -> Vec<Sent> {
    let (now, mark) = (net.now, net.log.len());
    net.am(h).add_streams(now, outgoing, incoming).unwrap();
    net.settle();
    net.sent_since(h, mark)
}

/// Host `h` sends a small message on each of these streams.
fn send(net: &mut Net, h: usize, streams: &[u16]) {
    for stream in streams {
        net.send(h, *stream, payload((*stream).into(), 100)).unwrap();
    }
}

/// Number, stream and SSN of the DATA chunks in these packets.
fn data(packets: &[Sent]) -> Vec<(u32, u16, u16)> {
    packets.iter().flat_map(Sent::data).map(|d| (d.n, d.stream, d.ssn)).collect()
}

/// The payloads that host 1 has received.
fn received(net: &Net) -> Vec<&[u8]> {
    net.hosts[1].received.iter().map(|r| &r.payload[..]).collect()
}

/// The peer's `n`-th chunk: a message on this stream.
fn message<'a>(hand: &Hand, n: u32, stream: u16, ssn: u16, payload: &'a [u8]) -> wire::Data<'a> {
    wire::Data { stream: StreamId(stream), ssn: Ssn(ssn), ..hand.chunk(n, payload) }
}

fn be(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}
