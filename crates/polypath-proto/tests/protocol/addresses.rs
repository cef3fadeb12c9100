//! Dynamic address reconfiguration: RFC 5061.

use std::net::IpAddr;

use crate::common::*;
use polypath_proto::wire::{AsconfParameter, AsconfWriter, Cause, Chunk, asconf_type, cause_code};
use polypath_proto::{
    AddressChange, AddressError, CloseReason, Config, ConfigBuilder, PathConfirmation, PathId,
    PathState,
};
use proptest::prelude::*;

fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder().authentication(true).dynamic_addresses(true)
}

fn joined(paths: u8) -> Net {
    established(paths, config().build().unwrap())
}

/// The requests and results in the ASCONFs and ASCONF-ACKs of these packets.
fn said(packets: &[Sent]) -> Vec<String> {
    let mut all = Vec::new();
    for packet in packets {
        for chunk in packet.parsed() {
            let list = match chunk {
                Chunk::Asconf(asconf) => asconf.parameters,
                Chunk::AsconfAck(ack) => ack.parameters,
                _ => continue,
            };
            let words = list.iter().map(|item| match item.unwrap().parameter {
                AsconfParameter::Add(ip) => format!("add {ip}"),
                AsconfParameter::Delete(ip) => format!("delete {ip}"),
                AsconfParameter::SetPrimary(ip) => format!("primary {ip}"),
                AsconfParameter::Success => "done".into(),
                AsconfParameter::Error(causes) => {
                    let cause = causes.iter().next().unwrap().unwrap();
                    match cause {
                        Cause::AddressRefused { refusal, .. } => format!("{refusal:?}"),
                        other => other.to_string(),
                    }
                }
                other => format!("{other:?}"),
            });
            all.push(words.collect::<Vec<_>>().join(", "));
        }
    }
    all
}

/// Addresses and states of the paths that are not removed.
fn pairs(net: &Net, h: usize) -> Vec<(IpAddr, IpAddr, PathState)> {
    let there = net.a(h).paths().filter(|p| p.state != PathState::Removed);
    there.map(|p| (p.local, p.remote, p.state)).collect()
}

const ACTIVE: PathState = PathState::Active;

/// A host moves from one network to another, as a laptop does, and the transfer continues.
#[test]
fn the_only_address_is_replaced_while_data_flows() {
    for udp in [false, true] {
        let config = config().build().unwrap();
        let configs = [config.clone(), config];
        let mut net = Setup { configs, udp, ..Setup::default() }.build();
        net.establish();
        net.send(0, 0, payload(1, 300_000)).unwrap();
        net.send(1, 0, payload(2, 300_000)).unwrap();
        net.run(MS(40));
        net.comes(0, v4(5, 0));
        net.run(MS(200));
        let mark = net.log.len();
        net.goes(0, v4(0, 0));
        net.run(S(5));
        assert_eq!(net.hosts[1].received[0].payload, payload(1, 300_000));
        assert_eq!(net.hosts[0].received[0].payload, payload(2, 300_000));
        // The INIT listed no address, so ASCONFs use the wildcard: the peer takes the source
        // address.
        assert_eq!(said(&net.sent(0)), ["add 0.0.0.0", "delete 0.0.0.0"]);
        assert_eq!(
            net.address_changes(0),
            [(AddressChange::Added, v4(5, 0), true), (AddressChange::Deleted, v4(0, 0), true)]
        );
        assert_eq!(pairs(&net, 0), [(v4(5, 0), v4(0, 1), ACTIVE)]);
        assert_eq!(pairs(&net, 1), [(v4(0, 1), v4(5, 0), ACTIVE)]);
        // Nothing more is sent from the old address.
        assert!(net.sent_since(0, mark).iter().all(|p| p.from.ip() == v4(5, 0)));
        net.shutdown(0);
        net.run(S(3));
        assert!(net.closed(0).unwrap().is_graceful() && net.closed(1).unwrap().is_graceful());
    }
}

/// For a while no local address reaches the peer's IPv6 address; a path is opened when one does.
#[test]
fn what_no_local_address_reaches_is_remembered() {
    let pair = |h: usize| (v6(0, h), v6(0, 1 - h), ACTIVE);
    for (h, listed) in [(0, true), (0, false), (1, true)] {
        let config = config().build().unwrap();
        let configs = [config.clone(), config];
        let mut net = Setup { configs, dual: true, ..Setup::default() }.build();
        if !listed {
            net.goes(0, v6(0, 0));
        }
        net.establish();
        if listed {
            net.run(S(1));
            net.goes(h, v6(0, h));
            net.run(S(1));
        }
        assert_eq!((pairs(&net, 0).len(), pairs(&net, 1).len()), (1, 1));
        net.comes(h, v6(0, h));
        net.run(S(3));
        assert!(pairs(&net, 0).contains(&pair(0)), "{:?}", pairs(&net, 0));
        assert!(pairs(&net, 1).contains(&pair(1)), "{:?}", pairs(&net, 1));
    }
    // An address that the peer has removed in the meantime gets no path.
    let config = config().build().unwrap();
    let mut net =
        Setup { configs: [config.clone(), config], dual: true, ..Setup::default() }.build();
    net.establish();
    net.run(S(1));
    net.goes(0, v6(0, 0));
    net.run(S(1));
    net.goes(1, v6(0, 1));
    net.run(S(1));
    assert_eq!(net.address_changes(1), [(AddressChange::Deleted, v6(0, 1), true)]);
    net.comes(0, v6(0, 0));
    net.run(S(3));
    assert!(pairs(&net, 0).iter().all(|(_, remote, _)| remote.is_ipv4()));
}

/// An added address that the peer cannot reach yet is accepted, and used once the peer can.
#[test]
fn both_sides_may_get_another_family_one_after_the_other() {
    for first in 0..2 {
        let config = config().build().unwrap();
        let configs = [config.clone(), config];
        let mut net = Setup { configs, ..Setup::default() }.build();
        net.establish();
        for h in [first, 1 - first] {
            net.comes(h, v6(0, h));
            net.run(S(3));
        }
        for h in 0..2 {
            let pair = (v6(0, h), v6(0, 1 - h), ACTIVE);
            assert!(pairs(&net, h).contains(&pair), "{first} {h}: {:?}", pairs(&net, h));
        }
    }
}

/// Without heartbeats, a path that did not answer at first is probed again when all others are
/// removed.
#[test]
fn the_last_path_is_asked_although_it_never_answered() {
    for back in [true, false] {
        let config = config().heartbeat_interval(None).path_max_retrans(0).build().unwrap();
        let configs = [config.clone(), config];
        let mut net = Setup { configs, paths: 2, ..Setup::default() }.build();
        net.cuts.insert(1);
        net.connect(0);
        net.run(S(5));
        assert_eq!(net.path(0, 1).state, PathState::Unconfirmed);
        net.cuts.clear();
        if !back {
            net.drop_all("HEARTBEAT ACK");
        }
        net.goes(1, v4(0, 1));
        net.run(MS(30));
        net.send(0, 0, payload(1, 3000)).unwrap();
        net.run(S(900));
        assert_eq!(net.hosts[1].received.len(), usize::from(back), "{}", net.tail(20));
        assert_eq!(net.closed(0).is_none(), back);
    }
}

/// The listener removes an address between its INIT ACK and the COOKIE ECHO.
#[test]
fn addresses_may_go_between_the_init_ack_and_the_cookie() {
    for paths in [2, 3] {
        let config = config().build().unwrap();
        let configs = [config.clone(), config];
        let mut net = Setup { configs, paths, ..Setup::default() }.build();
        net.connect(0);
        net.run(MS(15));
        net.goes(1, v4(0, 1));
        net.send(0, 0, payload(1, 3000)).unwrap();
        net.run(S(20));
        assert_eq!(net.hosts[1].received.len(), 1, "{}", net.tail(20));
        assert!(pairs(&net, 0).iter().all(|(_, remote, _)| *remote != v4(0, 1)));
    }
}

/// No ASCONF can be sent during the shutdown, but the peer knows another address of the host.
#[test]
fn an_address_may_go_while_the_association_ends() {
    let config = config().build().unwrap();
    let configs = [config.clone(), config];
    let own_paths = [Some(1), Some(2)];
    let mut net = Setup { configs, own_paths, ..Setup::default() }.build();
    net.establish();
    net.run(S(1));
    net.drop_once(&["SHUTDOWN ACK"]);
    net.shutdown(0);
    net.run(MS(15));
    net.goes(1, v4(0, 1));
    net.run(S(5));
    for h in 0..2 {
        assert!(net.closed(h).unwrap().is_graceful(), "{h}: {}", net.tail(20));
    }
}

/// The old address is removed first: the peer sees packets from the new address only, and one
/// ASCONF both adds the new address and deletes the old one.
#[test]
fn the_old_address_may_go_before_the_new_one_comes() {
    let mut net = joined(1);
    net.send(0, 0, payload(1, 300_000)).unwrap();
    net.send(1, 0, payload(2, 300_000)).unwrap();
    net.run(MS(40));
    net.goes(0, v4(0, 0));
    net.run(S(4));
    assert!(said(&net.sent(0)).is_empty(), "the last address stays");
    net.comes(0, v4(5, 0));
    net.run(S(20));
    assert_eq!(said(&net.sent(0)), ["add 0.0.0.0, delete 0.0.0.0"]);
    assert_eq!(net.hosts[1].received[0].payload, payload(1, 300_000));
    assert_eq!(net.hosts[0].received[0].payload, payload(2, 300_000));
    assert_eq!(pairs(&net, 1), [(v4(0, 1), v4(5, 0), ACTIVE)]);
}

/// The answer to an ASCONF confirms the path that it has come over, although the peer has yet to
/// learn that path's own address. RFC 9260 8.3: the path is watched from then on.
#[test]
fn a_path_that_is_confirmed_before_its_address_is_known_has_heartbeats() {
    let config = config().heartbeat_interval(Some(S(1))).build().unwrap();
    let configs = [config.clone(), config];
    let mut net = Setup { configs, paths: 2, ..Setup::default() }.build();
    net.establish();
    net.run(S(1));
    // Nothing that adds the first new address arrives, and then only a second one is left.
    net.drop_all("ASCONF");
    net.comes(0, v4(5, 0));
    net.run(MS(100));
    net.no_filters();
    for gone in [v4(0, 0), v4(1, 0), v4(5, 0)] {
        net.goes(0, gone);
    }
    net.comes(0, v4(6, 0));
    net.run(S(10));
    let path = (v4(6, 0), v4(0, 1), ACTIVE);
    assert!(pairs(&net, 0).contains(&path), "{:?}", pairs(&net, 0));
    let since = net.now;
    net.run(S(20));
    let heartbeats = net.sent_with(0, "HEARTBEAT");
    let to = |p: &&Sent| p.at > since && p.to.ip() == v4(0, 1);
    assert!(heartbeats.iter().filter(to).count() > 5, "{}", net.tail(30));
}

/// RFC 5061 5.3 F6: a packet that still arrives at an address being removed does not make that
/// address a source again, although the new path is not confirmed yet.
#[test]
fn what_comes_to_an_address_that_goes_is_not_the_way_back() {
    let mut net = joined(1);
    net.send(1, 0, payload(2, 300_000)).unwrap();
    net.run(MS(40));
    // The ASCONF-ACK, and DATA after it, arrive at the old address.
    net.drop_once(&["ASCONF-ACK"]);
    net.comes(0, v4(5, 0));
    let now = net.now;
    net.hosts[0].endpoint.remove_local_address(now, v4(0, 0));
    net.run(MS(15));
    let packet = |what| net.sent_with(1, what).pop().unwrap();
    let (answer, data) = (packet("ASCONF-ACK"), packet("DATA"));
    let mark = net.log.len();
    net.inject_all(answer.from, data.to, &[&answer.bytes, &data.bytes]);
    assert_eq!(data.to.ip(), v4(0, 0));
    assert_eq!(said(&net.sent_since(0, mark)), ["delete 0.0.0.0"]);
    net.run(S(5));
    let later = net.sent_since(0, mark);
    assert!(later.iter().all(|p| p.from.ip() == v4(5, 0)), "{}", net.tail(60));
    assert_eq!(net.hosts[0].received[0].payload, payload(2, 300_000));
}

/// A host that is bound to all addresses announces those that its routes use, and not an address
/// that it had from the beginning and does not use.
#[test]
fn of_all_addresses_those_in_use_are_told() {
    fn has(net: &mut Net, there: &[IpAddr]) {
        net.hosts[1].addresses = there.to_vec();
        net.hosts[1].endpoint.set_host_addresses(net.now, there.to_vec());
        net.run(S(3));
    }
    let configs = [config().build().unwrap(), config().build().unwrap()];
    let mut net = Setup { configs, ..Setup::default() }.build();
    let (first, second) = (v4(0, 1), v4(5, 1));
    let bridge: IpAddr = "172.17.0.1".parse().unwrap();
    has(&mut net, &[first, bridge]);
    net.establish();
    has(&mut net, &[first, bridge, second]);
    assert!(said(&net.sent(1)).is_empty(), "the first one still leads there");
    net.send(1, 0, payload(1, 300_000)).unwrap();
    has(&mut net, &[bridge, second]);
    let (came, went) = (AddressChange::Added, AddressChange::Deleted);
    assert_eq!(net.address_changes(1), [(came, second, true), (went, first, true)]);
    assert_eq!(pairs(&net, 0), [(v4(0, 0), second, ACTIVE)]);
    // For a moment the bridge is the only address; then the first address returns.
    has(&mut net, &[bridge]);
    has(&mut net, &[bridge, first]);
    assert_eq!(net.address_changes(1)[2..], [(came, first, true), (went, second, true)]);
    net.run(S(20));
    assert_eq!(net.hosts[0].received[0].payload, payload(1, 300_000));
    assert_eq!(pairs(&net, 0), [(v4(0, 0), first, ACTIVE)]);
}

/// RFC 5061 5.3 F1, F14: only ASCONF is sent from an address that the peer does not know; only
/// HEARTBEATs and ASCONF-ACKs are sent to an unconfirmed address.
#[test]
fn new_addresses_are_quiet_until_they_are_known_and_confirmed() {
    let mut net = joined(2);
    net.send(0, 0, payload(1, 200_000)).unwrap();
    net.send(1, 0, payload(2, 200_000)).unwrap();
    net.run(MS(50));
    let mark = net.log.len();
    net.drop_once(&["ASCONF"]);
    net.comes(0, v4(7, 0));
    net.run(S(5));
    let (new, log) = (v4(7, 0), &net.log[mark..]);
    let acked = log.iter().position(|p| p.has("ASCONF-ACK")).unwrap();
    assert!(log[..acked].iter().all(|p| p.from.ip() != new || p.text() == "AUTH + ASCONF"));
    let confirmed = log.iter().position(|p| p.from.ip() == new && p.has("HEARTBEAT ACK"));
    let to_new = log[..confirmed.unwrap()].iter().filter(|p| p.to.ip() == new);
    for p in to_new {
        let quiet = p.chunks.iter().all(|c| {
            ["HEARTBEAT", "HEARTBEAT ACK", "AUTH", "ASCONF-ACK"].contains(&c.name.as_str())
        });
        assert!(quiet, "{}", p.text());
    }
    // Both sides had listed their addresses, so the ASCONF lists the new one. It was lost once and
    // retransmitted unchanged.
    assert_eq!(said(&net.sent(0)), ["add 10.7.0.1", "add 10.7.0.1"]);
    assert_eq!(net.a(0).paths().filter(|p| p.state == ACTIVE).count(), 3);
    assert_eq!(net.a(1).paths().filter(|p| p.state == ACTIVE).count(), 3);
    assert_eq!(net.a(0).local_addresses(), [v4(0, 0), v4(1, 0), v4(7, 0)]);
    assert_eq!((net.hosts[1].received.len(), net.hosts[0].received.len()), (1, 1));
}

#[test]
fn an_address_in_use_goes_and_what_was_in_flight_is_sent_elsewhere() {
    let mut net = joined(2);
    for h in 0..2 {
        net.send(h, 0, payload(h as u64, 400_000)).unwrap();
    }
    net.run(MS(65));
    assert!(net.path(1, 0).in_flight > 0);
    net.goes(0, v4(0, 0));
    net.run(S(10));
    assert_eq!(said(&net.sent(0)), ["delete 10.0.0.1"]);
    assert_eq!((net.hosts[1].received.len(), net.hosts[0].received.len()), (1, 1));
    // The peer's first address may be reached from the second local one only.
    assert!(pairs(&net, 0).iter().all(|(local, ..)| *local == v4(1, 0)));
    assert_eq!(pairs(&net, 1).len(), 1);
    assert_eq!(net.a(1).primary(), PathId(1));
    // An address added later reuses the path id.
    net.comes(0, v4(3, 0));
    net.run(S(3));
    assert_eq!(net.a(1).path(PathId(0)).map(|p| (p.remote, p.state)), Some((v4(3, 0), ACTIVE)));
}

#[test]
fn the_peer_is_asked_for_another_primary() {
    let mut net = joined(2);
    let now = net.now;
    net.am(0).set_peer_primary(now, v4(1, 0)).unwrap();
    let refused = net.am(0).set_peer_primary(now, v4(9, 0));
    assert_eq!(refused, Err(AddressError::NoSuchAddress(v4(9, 0))));
    net.run(S(1));
    assert_eq!(net.a(1).primary(), PathId(1));
    assert_eq!(net.address_changes(0), [(AddressChange::Primary, v4(1, 0), true)]);
    // The request may be for an address being added; it takes effect once that is confirmed.
    net.hosts[0].addresses.push(v4(6, 0));
    let now = net.now;
    net.hosts[0].endpoint.add_local_address(now, v4(6, 0));
    net.am(0).set_peer_primary(now, v4(6, 0)).unwrap();
    net.run(S(2));
    assert_eq!(net.path(1, net.a(1).primary().0).remote, v4(6, 0));
}

#[test]
fn without_an_agreement_nothing_is_told() {
    let plain = Config::rfc9260();
    let open = config().build().unwrap();
    let bare =
        Config::rfc9260().to_builder().dynamic_addresses(true).unauthenticated_addresses(true);
    let bare = bare.build().unwrap();
    for configs in
        [[plain.clone(), open.clone()], [open.clone(), plain.clone()], [bare.clone(), plain]]
    {
        let mut net = Setup { configs, paths: 2, ..Setup::default() }.build();
        net.establish();
        net.comes(0, v4(5, 0));
        net.send(0, 0, payload(1, 1000)).unwrap();
        net.run(S(2));
        assert!(said(&net.log).is_empty());
        assert_eq!(net.hosts[1].received.len(), 1);
    }
    assert!(
        Config::rfc9260().to_builder().dynamic_addresses(true).build().is_err(),
        "RFC 5061 4.1"
    );
    // Both sides may use ASCONF without AUTH if both are configured to.
    let mut net = Setup { configs: [bare.clone(), bare.clone()], ..Setup::default() }.build();
    net.establish();
    net.comes(0, v4(5, 0));
    net.goes(0, v4(0, 0));
    net.run(S(3));
    assert_eq!(pairs(&net, 1), [(v4(0, 1), v4(5, 0), ACTIVE)]);
    assert!(net.log.iter().all(|p| !p.has("AUTH")));
    // An endpoint that requires AUTH rejects the association (RFC 5061 6).
    for configs in [[bare.clone(), open.clone()], [open, bare]] {
        let mut net = Setup { configs, ..Setup::default() }.build();
        net.connect(0);
        net.run(S(2));
        assert!(net.closed(0).is_some() && net.hosts[1].endpoint.associations().count() == 0);
    }
}

/// A hand with an association that accepts unauthenticated ASCONFs.
fn hand_in(net: &mut Net) -> Hand {
    let mut hand = Hand::new(1);
    let answers = hand.init(net, &|p| p.supported_extensions(&[193, 128]).unwrap());
    hand.learn(&answers[0]);
    hand.echo(net);
    hand
}

fn open_house() -> (Net, Hand) {
    let config =
        Config::rfc9260().to_builder().dynamic_addresses(true).unauthenticated_addresses(true);
    let config = config.max_paths(4).build().unwrap();
    let configs = [config.clone(), config];
    let mut net = Setup { configs, paths: 2, ..Setup::default() }.build();
    let hand = hand_in(&mut net);
    (net, hand)
}

type Requests<'f> = &'f dyn Fn(&mut AsconfWriter<'_>);

/// Sends the hand's `n`-th ASCONF, counted from 0; returns the results.
fn ask(net: &mut Net, hand: &Hand, n: u32, requests: Requests<'_>) -> Vec<String> {
    let serial = hand.tsn.wrapping_add(n);
    let answers = hand.say(net, &|w| {
        w.asconf(serial, hand.ip, |p| {
            requests(p);
            Ok(())
        })
        .unwrap();
    });
    said(&answers)
}

fn add(p: &mut AsconfWriter<'_>, id: u32, ip: IpAddr) {
    p.request(asconf_type::ADD_ADDRESS, id, ip).unwrap();
}

fn delete(p: &mut AsconfWriter<'_>, id: u32, ip: IpAddr) {
    p.request(asconf_type::DELETE_ADDRESS, id, ip).unwrap();
}

/// RFC 5061 5.3 F5 to F11.
#[test]
fn what_cannot_be_is_refused() {
    let (mut net, hand) = open_house();
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let (own, any) = (hand.ip, ip("0.0.0.0"));
    let answer = ask(&mut net, &hand, 0, &|p| delete(p, 1, own));
    assert_eq!(answer, ["LastAddress"]);
    assert_eq!(
        ask(&mut net, &hand, 1, &|p| delete(p, 1, v4(3, 3)))[0],
        "an address cannot be resolved: 10.3.0.4"
    );
    let answer = ask(&mut net, &hand, 2, &|p| {
        add(p, 1, ip("fd00::1"));
        add(p, 2, v4(4, 8));
        add(p, 3, ip("127.0.0.1"));
        add(p, 4, v4(4, 9));
    });
    let words = "an address cannot be resolved";
    assert_eq!(answer, [format!("{words}: 127.0.0.1, ResourceShortage")]);
    let answer = ask(&mut net, &hand, 3, &|p| {
        delete(p, 1, ip("fd00::1"));
        delete(p, 2, ip("fd00::1"));
    });
    assert_eq!(answer, [format!("{words}: fd00::1")], "known until it goes");
    let answer = ask(&mut net, &hand, 4, &|p| {
        delete(p, 1, v4(4, 8));
        delete(p, 2, own);
        delete(p, 3, any);
    });
    assert_eq!(answer, ["LastAddress, ResourceShortage"], "the only one that is left");
    // Paths are added up to `max_paths`; after the first refusal, all later requests are refused
    // too.
    let answer = ask(&mut net, &hand, 5, &|p| {
        (1..9).for_each(|n| add(p, n.into(), v4(n, 8)));
        delete(p, 99, v4(1, 8));
    });
    let refused = ["ResourceShortage"; 6].join(", ");
    assert_eq!(answer, [refused]);
    assert_eq!(pairs(&net, 1).len(), 4);
    assert_eq!(ask(&mut net, &hand, 6, &|p| delete(p, 1, any)), [""]);
    assert_eq!(pairs(&net, 1), [(v4(0, 1), own, ACTIVE)]);
    let answer = ask(&mut net, &hand, 7, &|p| {
        p.raw(&[0xc0, 9, 0, 8, 0, 0, 0, 5]).unwrap();
        add(p, 6, v4(1, 8));
        p.raw(&[0x00, 99, 0, 8, 0, 0, 0, 7]).unwrap();
        add(p, 8, v4(2, 8));
    });
    let words = "parameters are of types that are not known";
    assert_eq!(answer, [format!("{words}: 0xc009, done, {words}: 0x0063")]);
    assert_eq!(pairs(&net, 1).len(), 2);
    net.run(S(60));
    // None of the added addresses has answered, and each got nothing but HEARTBEATs.
    for packet in net.sent(1).iter().filter(|p| p.to.ip() != own) {
        assert!(packet.text() == "HEARTBEAT" && packet.bytes.len() < 100, "{}", packet.text());
    }
}

/// Data lost with the removed address is not retransmitted, because the peer restarts.
#[test]
fn a_peer_may_begin_anew_while_an_address_goes() {
    let (mut net, mut hand) = open_house();
    net.send(1, 0, payload(1, 300)).unwrap();
    net.goes(1, v4(0, 1));
    hand.tag += 1;
    let answers = hand.init(&mut net, &|p| p.supported_extensions(&[193, 128]).unwrap());
    hand.learn(&answers[0]);
    assert!(hand.echo(&mut net)[0].has("COOKIE ACK"), "{}", net.tail(9));
    assert_eq!(pairs(&net, 1), [(v4(1, 1), hand.ip, ACTIVE)]);
    net.send(1, 0, payload(2, 400)).unwrap();
    // These packets were sent from the remaining address.
    let sent = net.sent(1);
    let data: Vec<usize> = sent.iter().flat_map(Sent::data).map(|d| d.len).collect();
    assert_eq!((data, net.a(1).buffered()), (vec![400], 400));
}

/// RFC 5061 5.2: serial numbers are accepted in order, the last one again gets the same answer, all
/// others get none; they wrap around.
#[test]
fn numbers_are_kept_in_order() {
    let (mut net, hand) = open_house();
    // The hand's first TSN, and so its first serial number, is 16 below 2^32.
    for n in 0..40u8 {
        let next = if n % 2 == 0 { "add" } else { "delete" };
        let requests = move |p: &mut AsconfWriter<'_>| match next {
            "add" => add(p, n.into(), v4(8, 8)),
            _ => delete(p, n.into(), v4(8, 8)),
        };
        assert_eq!(ask(&mut net, &hand, n.into(), &requests), [""]);
        assert_eq!(pairs(&net, 1).len(), 2 - usize::from(n % 2));
        assert_eq!(ask(&mut net, &hand, n.into(), &requests), [""], "the same again");
        assert_eq!(pairs(&net, 1).len(), 2 - usize::from(n % 2));
        for wrong in [u32::from(n).wrapping_sub(1), u32::from(n) + 2, 1 << 31] {
            assert!(ask(&mut net, &hand, wrong, &|p| add(p, 1, v4(3, 8))).is_empty());
        }
    }
    // The lookup address is not the peer's.
    let serial = hand.tsn.wrapping_add(40);
    let stranger = |lookup: IpAddr, net: &mut Net| {
        hand.say(net, &|w| w.asconf(serial, lookup, |_| Ok(())).unwrap()).len()
    };
    assert_eq!((stranger(v4(9, 9), &mut net), stranger(v4(9, 8), &mut net)), (0, 0));
    assert_eq!(stranger("0.0.0.0".parse().unwrap(), &mut net), 1);
}

/// RFC 5061 5.3 F0.
#[test]
fn an_acknowledgement_of_nothing_ends_the_association() {
    for (ahead, ends) in [(0u32, true), (5, true), (0u32.wrapping_sub(1), false)] {
        let (mut net, hand) = open_house();
        let serial = hand.peer_tsn.wrapping_add(ahead);
        let answers = hand.say(&mut net, &|w| w.asconf_ack(serial, |_| Ok(())).unwrap());
        let causes = answers.first().map(Sent::causes).unwrap_or_default();
        assert_eq!(causes == [cause_code::ILLEGAL_ASCONF_ACK], ends);
        assert_eq!(net.a(1).is_closed(), ends);
    }
}

/// ASCONFs from a host that did not see the handshake or lacks the key change nothing.
#[test]
fn strangers_change_nothing() {
    let mut net = joined(2);
    let tag = net.sent_with(0, "HEARTBEAT")[0].tag;
    let (paths, states) = (pairs(&net, 1), net.states(1));
    for source in [v4(0, 0), v4(6, 6)] {
        for forged in [false, true] {
            let hand = Hand { ip: source, ..Hand::new(1) };
            let packet = hand.packet(tag, &|w| {
                if forged {
                    w.typed_chunk(15, 0, &[0, 0, 0, 3, 1, 2, 3, 4]).unwrap();
                }
                w.asconf(1, v4(0, 0), |p| p.request(asconf_type::ADD_ADDRESS, 1, v4(6, 6)))
                    .unwrap();
            });
            let mark = net.log.len();
            net.inject((source, 0).into(), (v4(0, 1), 0).into(), &packet);
            assert_eq!(net.log.len(), mark + 1, "no answer");
        }
    }
    assert_eq!((pairs(&net, 1), net.states(1)), (paths, states));
    let stats = net.a(1).stats();
    assert_eq!((stats.unauthenticated, stats.bad_auth), (2, 2));
}

/// A refused address does not affect the others and is not announced again.
#[test]
fn a_refused_address_is_not_used() {
    let full = config().max_paths(2).build().unwrap();
    let configs = [config().build().unwrap(), full];
    let mut net = Setup { configs, paths: 2, ..Setup::default() }.build();
    net.establish();
    net.comes(0, v4(5, 0));
    net.run(S(20));
    assert_eq!(said(&net.log), ["add 10.5.0.1", "ResourceShortage"]);
    assert_eq!(net.address_changes(0), [(AddressChange::Added, v4(5, 0), false)]);
    assert!(net.sent(0).iter().all(|p| p.from.ip() != v4(5, 0)));
    // It is removed along with another one, and then added again.
    net.goes(0, v4(5, 0));
    net.goes(0, v4(1, 0));
    net.run(S(2));
    net.comes(0, v4(5, 0));
    net.run(S(2));
    assert_eq!(net.a(1).paths().filter(|p| p.state == ACTIVE).count(), 2);
    assert_eq!(net.address_changes(0).last(), Some(&(AddressChange::Added, v4(5, 0), true)));
}

/// The peer refuses to replace the removed address, so nothing can reach it any more.
#[test]
fn an_association_ends_whose_only_address_is_refused() {
    for interval in [None, Some(S(30))] {
        let bare = config().heartbeat_interval(interval);
        let configs = [bare.clone().build().unwrap(), bare.max_paths(1).build().unwrap()];
        let mut net = Setup { configs, ..Setup::default() }.build();
        net.establish();
        net.goes(0, v4(0, 0));
        net.send(0, 0, payload(1, 3000)).unwrap();
        net.comes(0, v4(5, 0));
        net.run(S(700));
        assert_eq!(net.address_changes(0)[0], (AddressChange::Added, v4(5, 0), false));
        assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable), "{}", net.tail(20));
    }
}

/// RFC 5061 5.1 A9: the peer reports that it does not know ASCONF after the only address that it
/// knows has been removed. Nothing may be sent from the new address (5.3 F1).
#[test]
fn an_association_ends_that_can_announce_its_only_address_no_more() {
    let config =
        Config::rfc9260().to_builder().dynamic_addresses(true).unauthenticated_addresses(true);
    let config = config.heartbeat_interval(None).build().unwrap();
    let configs = [config.clone(), config];
    let mut net = Setup { configs, ..Setup::default() }.build();
    let hand = hand_in(&mut net);
    net.run(S(1));
    net.goes(1, v4(0, 1));
    net.send(1, 0, payload(1, 3000)).unwrap();
    net.comes(1, v4(5, 1));
    assert_eq!(said(&net.sent(1)), ["add 0.0.0.0, delete 0.0.0.0"]);
    hand.say(&mut net, &|w| {
        w.error(|c| c.unrecognized_chunk(&[193, 0, 0, 4])).unwrap();
    });
    net.run(S(700));
    assert_eq!(net.closed(1), Some(CloseReason::PeerUnreachable));
}

/// Data waits until every path has answered, and one of them is removed instead.
#[test]
fn data_does_not_wait_for_a_path_that_has_gone() {
    let config = config().heartbeat_interval(None).path_confirmation(PathConfirmation::BeforeData);
    let config = config.build().unwrap();
    let configs = [config.clone(), config];
    let mut net = Setup { configs, paths: 3, ..Setup::default() }.build();
    net.cuts.insert(2);
    net.connect(0);
    net.run(MS(500));
    net.send(0, 0, payload(1, 3000)).unwrap();
    net.run(MS(10));
    assert!(net.hosts[1].received.is_empty());
    net.goes(1, v4(2, 1));
    net.run(MS(200));
    assert_eq!(pairs(&net, 0).len(), 2);
    assert_eq!(net.hosts[1].received.len(), 1, "{}", net.tail(30));
}

/// Without answers the association ends when its error counter exceeds the limit, not before.
#[test]
fn an_asconf_that_nobody_answers_ends_the_association() {
    let mut net = joined(1);
    net.drop_all("ASCONF-ACK");
    net.comes(0, v4(5, 0));
    net.goes(0, v4(0, 0));
    let end = net.now + S(600);
    while net.closed(0).is_none() && net.now < end {
        net.run(S(1));
    }
    assert!(net.closed(0).is_some());
    // The peer's error counter may end it sooner.
    let asked = net.sent_with(0, "ASCONF").len();
    assert!((7..=11).contains(&asked), "{asked}");
}

#[test]
fn both_sides_may_move_at_once() {
    let mut net = joined(1);
    for h in 0..2 {
        net.send(h, 0, payload(h as u64, 200_000)).unwrap();
    }
    net.run(MS(50));
    for h in 0..2 {
        net.comes(h, v4(4, h));
    }
    net.run(S(2));
    for h in 0..2 {
        net.goes(h, v4(0, h));
    }
    net.run(S(20));
    assert_eq!((net.hosts[1].received.len(), net.hosts[0].received.len()), (1, 1));
    assert_eq!(pairs(&net, 0), [(v4(4, 0), v4(4, 1), ACTIVE)]);
    assert_eq!(pairs(&net, 1), [(v4(4, 1), v4(4, 0), ACTIVE)]);
}

/// RFC 5061 5.3.1: to the peer, a packet in flight from a deleted address is out of the blue, and
/// an ABORT answers it.
#[test]
fn an_abort_for_an_address_that_went_ends_nothing() {
    let mut net = joined(2);
    let abort = |net: &mut Net, path: u8| {
        let hand = Hand { ip: v4(path, 1), ..Hand::new(0) };
        // The tag reflected from the packet that it answers, which is the peer's own.
        let tag = net.sent_with(0, "HEARTBEAT")[0].tag;
        let packet = hand.packet(tag, &|w| w.abort(true, |_| Ok(())).unwrap());
        let to = (v4(path, 0), 0).into();
        net.inject((v4(path, 1), 0).into(), to, &packet);
    };
    abort(&mut net, 0);
    assert!(net.a(0).is_established(), "the other path works");
    assert_eq!(net.path(0, 0).state, PathState::Inactive);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(S(1));
    assert_eq!(net.hosts[1].received.len(), 1);
    abort(&mut net, 1);
    assert!(net.closed(0).is_some(), "nobody knows it there either");
    // An ABORT that arrives at an address being removed.
    let mut net = joined(2);
    net.drop_all("ASCONF-ACK");
    net.goes(0, v4(0, 0));
    net.hosts[0].addresses.push(v4(0, 0));
    abort(&mut net, 0);
    abort(&mut net, 0);
    assert!(net.a(0).is_established());
}

#[test]
fn an_old_answer_confirms_no_new_path() {
    // An address of the hand gets a HEARTBEAT and is deleted; another host's address then reuses
    // its path id.
    let (mut net, hand) = open_house();
    let (other, victim) = (v4(0, 8), v4(0, 9));
    let mark = net.log.len();
    ask(&mut net, &hand, 0, &|p| add(p, 1, other));
    net.run(MS(1));
    let asked = net.log[mark..].iter().find(|p| p.to.ip() == other).unwrap().clone();
    net.run(MS(10));
    ask(&mut net, &hand, 1, &|p| delete(p, 1, other));
    ask(&mut net, &hand, 2, &|p| add(p, 1, victim));
    for chunk in asked.parsed() {
        let Chunk::Heartbeat(h) = chunk else { continue };
        hand.say(&mut net, &|w| w.heartbeat_ack(h.info).unwrap());
    }
    assert_eq!(pairs(&net, 1)[1], (v4(0, 1), victim, PathState::Unconfirmed));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Addresses are added and removed at random and packets are lost: all data arrives as long as
    /// each host keeps one address.
    #[test]
    fn data_arrives_whatever_comes_and_goes(
        changes in proptest::collection::vec((0..2usize, 1..6u8, any::<bool>(), 0..400u64), 1..24),
        lost in proptest::collection::vec(0..100u32, 400),
        mesh in any::<bool>(),
        listed in any::<bool>(),
    ) {
        let config = config().full_mesh(mesh).max_paths(40).build().unwrap();
        let paths = if listed { 2 } else { 1 };
        let mut net = Setup { configs: [config.clone(), config], paths, ..Setup::default() }.build();
        net.establish();
        let mut count = 0;
        net.filter(move |_| {
            count += 1;
            if lost[count % lost.len()] > 96 { Fate::Drop } else { Fate::Pass }
        });
        for h in 0..2 {
            net.send(h, 0, payload(h as u64, 300_000)).unwrap();
        }
        for (h, n, comes, after) in changes {
            let ip = v4(n, h);
            match (comes, net.hosts[h].addresses.contains(&ip)) {
                (true, false) => net.comes(h, ip),
                (false, true) => net.goes(h, ip),
                _ => {}
            }
            net.run(MS(after));
        }
        net.run(S(240));
        for h in 0..2 {
            prop_assert!(net.closed(h).is_none(), "{:?}\n{}", net.closed(h), net.tail(40));
            prop_assert_eq!(net.hosts[h].received.len(), 1, "{}", net.tail(40));
            let mut known = net.a(h).local_addresses();
            let mut there = net.hosts[h].addresses.clone();
            known.sort();
            there.sort();
            prop_assert_eq!(known, there, "{}", net.tail(60));
        }
    }
}
