//! RFC 5061, dynamic address reconfiguration: the requirements with MUST.

mod changes;
mod chunks;
mod formats;
mod handshake;

use std::net::IpAddr;

use crate::bytes::{self, Raw, elements, u32_at};
use crate::common::*;
use polypath_proto::wire::{AsconfWriter, asconf_type};
use polypath_proto::*;

const ASCONF: u16 = 0xc1;
const ASCONF_ACK: u16 = 0x80;
const AUTH: u16 = 15;
const ADD: u16 = 0xc001;
const DELETE: u16 = 0xc002;
const ERROR: u16 = 0xc003;
const SET_PRIMARY: u16 = 0xc004;
const SUCCESS: u16 = 0xc005;

// Cause codes.
const UNRESOLVABLE: u16 = 5;
const UNRECOGNIZED: u16 = 8;
const LAST_ADDRESS: u16 = 0xa0;
const SHORTAGE: u16 = 0xa1;
const SOURCE_ADDRESS: u16 = 0xa2;

const ACTIVE: PathState = PathState::Active;
const UNCONFIRMED: PathState = PathState::Unconfirmed;

/// Both sides authenticate their ASCONFs.
fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder().authentication(true).dynamic_addresses(true)
}

fn joined(paths: u8) -> Net {
    established(paths, config().build().unwrap())
}

fn open() -> ConfigBuilder {
    Config::rfc9260().to_builder().dynamic_addresses(true).unauthenticated_addresses(true)
}

/// A host with two addresses that accepts ASCONFs without AUTH, and a hand-built peer with one
/// address.
fn by_hand() -> (Net, Hand) {
    with(open())
}

fn with(config: ConfigBuilder) -> (Net, Hand) {
    let config = config.build().unwrap();
    let configs = [config.clone(), config];
    let mut net = Setup { configs, paths: 2, ..Setup::default() }.build();
    let mut hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| p.supported_extensions(&[193, 128]).unwrap());
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    assert!(net.a(1).is_established());
    (net, hand)
}

type Requests<'f> = &'f dyn Fn(&mut AsconfWriter<'_>);

/// Sends the peer's `n`-th ASCONF, counted from 0; returns the answers to its source.
fn ask(net: &mut Net, hand: &Hand, n: u32, requests: Requests<'_>) -> Vec<Sent> {
    ask_as(net, hand, hand.ip, n, requests)
}

/// As [`ask`], with another lookup address.
fn ask_as(net: &mut Net, hand: &Hand, lookup: IpAddr, n: u32, requests: Requests<'_>) -> Vec<Sent> {
    let serial = hand.tsn.wrapping_add(n);
    hand.say(net, &|w| {
        w.asconf(serial, lookup, |p| {
            requests(p);
            Ok(())
        })
        .unwrap();
    })
}

fn add(p: &mut AsconfWriter<'_>, id: u32, ip: IpAddr) {
    p.request(asconf_type::ADD_ADDRESS, id, ip).unwrap();
}

fn delete(p: &mut AsconfWriter<'_>, id: u32, ip: IpAddr) {
    p.request(asconf_type::DELETE_ADDRESS, id, ip).unwrap();
}

/// An ASCONF or ASCONF-ACK chunk: its sequence number, its lookup address and its other parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Read {
    serial: u32,
    lookup: Option<Raw>,
    list: Vec<Raw>,
}

fn read(packets: &[Sent], ty: u16) -> Vec<Read> {
    let list = packets.iter().flat_map(|p| bytes::chunks(&p.bytes)).filter(|c| c.ty == ty);
    list.map(|c| {
        let mut list = elements(&c.value[4..]);
        let lookup = (ty == ASCONF).then(|| list.remove(0));
        Read { serial: u32_at(&c.value, 0), lookup, list }
    })
    .collect()
}

/// The responses to the peer's `n`-th ASCONF: type, correlation ID and cause of each.
#[track_caller]
fn responses(packets: &[Sent], hand: &Hand, n: u32) -> Vec<(u16, u32, u16)> {
    let list = read(packets, ASCONF_ACK);
    assert_eq!(list.len(), 1, "{packets:?}");
    assert_eq!(list[0].serial, hand.tsn.wrapping_add(n));
    let one = |p: &Raw| {
        let cause = elements(&p.value[4..]).first().map_or(0, |c| c.ty);
        (p.ty, u32_at(&p.value, 0), cause)
    };
    list[0].list.iter().map(one).collect()
}

/// Type, correlation ID and address of a request.
fn request(p: &Raw) -> (u16, u32, Vec<u8>) {
    (p.ty, u32_at(&p.value, 0), elements(&p.value[4..])[0].value.clone())
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Acknowledges the host's `n`-th ASCONF.
fn acknowledge(net: &mut Net, hand: &Hand, n: u32, responses: Requests<'_>) -> Vec<Sent> {
    let serial = hand.peer_tsn.wrapping_add(n);
    hand.say(net, &|w| {
        w.asconf_ack(serial, |p| {
            responses(p);
            Ok(())
        })
        .unwrap();
    })
}

/// Writes an Error Cause Indication: the type of this request is unknown.
fn not_understood(p: &mut AsconfWriter<'_>, id: u32) {
    p.refusal(id, |c| c.unrecognized_parameters(|_| Ok(()))).unwrap();
}

/// Remote addresses and states of host 1's paths, except removed ones.
fn remotes(net: &Net) -> Vec<(IpAddr, PathState)> {
    let there = net.a(1).paths().filter(|p| p.state != PathState::Removed);
    there.map(|p| (p.remote, p.state)).collect()
}
