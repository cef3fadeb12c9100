//! Attempts to take over an association: which addresses get an INIT ACK with the local tag, and
//! which addresses belong to the peer after a collision or a restart (RFC 9260 5.1.2, 5.2, 5.4; RFC
//! 5062).

use std::net::{IpAddr, SocketAddr};

use crate::common::*;
use polypath_proto::wire::{Chunk, Parameter, ParameterWriter, cause_code};
use polypath_proto::*;

const THIEF: fn() -> Hand = || Hand { ip: v4(0, 55), tag: 4711, ..Hand::new(0) };

/// Writes the address parameters of an INIT or INIT ACK.
fn list(p: &mut ParameterWriter<'_>, addresses: &[IpAddr]) {
    addresses.iter().for_each(|ip| p.address(*ip).unwrap());
}

fn inits_to(net: &Net, mark: usize) -> Vec<SocketAddr> {
    net.log[mark..].iter().filter(|p| p.has("INIT ACK")).map(|p| p.to).collect()
}

/// The peer's addresses to which host `h` has paths.
fn remotes(net: &Net, h: usize) -> Vec<(IpAddr, PathState)> {
    let there = net.a(h).paths().filter(|p| p.state != PathState::Removed);
    there.map(|p| (p.remote, p.state)).collect()
}

/// Opens an association with host 1 that lists these addresses.
fn open_listing(mut hand: Hand, net: &mut Net, addresses: &[IpAddr]) -> Hand {
    let answers = hand.init(net, &|p| list(p, addresses));
    assert!(answers[0].has("INIT ACK"), "{}", net.tail(3));
    hand.learn(&answers[0]);
    assert!(hand.echo(net)[0].has("COOKIE ACK"), "{}", net.tail(3));
    hand
}

/// RFC 9260 5.2.1 (1): "The packet containing the INIT ACK chunk MUST only be sent to an address
/// passed by the upper layer in the request to initialize the association". Its initiate tag would
/// allow a third party to open the association in the peer's place.
#[test]
fn in_cookie_wait_an_init_ack_goes_only_to_an_address_that_was_named() {
    for udp in [false, true] {
        let mut net = Setup { udp, ..Setup::default() }.build();
        let victim = Hand::new(0);
        let port = if udp { 9899 } else { 0 };
        let named = SocketAddr::new(victim.ip, port);
        let now = net.now;
        let remote = Remote { address: named, local: None };
        net.hosts[0].endpoint.connect(now, PORT, &[remote]).unwrap();
        net.settle();
        let mark = net.log.len();
        assert!(THIEF().init(&mut net, &|p| list(p, &[victim.ip])).is_empty());
        assert_eq!(inits_to(&net, mark), [named], "udp {udp}");
        // The application passed none of the addresses that this INIT lists.
        let mark = net.log.len();
        THIEF().init(&mut net, &|p| list(p, &[v4(0, 56)]));
        assert_eq!(inits_to(&net, mark), []);
    }
}

/// RFC 9260 5.2.1 (1), RFC 6951: with UDP encapsulation, the port is part of the address that the
/// application passed. Another program on the peer's host, or another host behind its NAT, gets no
/// INIT ACK with the local tag.
#[test]
fn while_opening_an_init_ack_goes_to_no_other_udp_port_of_the_peer() {
    for echoed in [false, true] {
        let mut net = Setup { udp: true, ..Setup::default() }.build();
        let hand = Hand::new(0);
        let now = net.now;
        let remote = Remote { address: (hand.ip, 9899).into(), local: None };
        net.hosts[0].endpoint.connect(now, PORT, &[remote]).unwrap();
        net.settle();
        let to = SocketAddr::new(net.hosts[0].addresses[0], 9899);
        if echoed {
            let mut hand = hand.clone();
            let first = net.log.last().unwrap().clone();
            hand.learn(&first);
            let ack = hand.packet(hand.peer_tag, &|w| {
                w.init_ack(&hand.fields(), |p| p.state_cookie(b"a cookie")).unwrap();
            });
            net.inject((hand.ip, 9899).into(), to, &ack);
            assert!(net.log.last().unwrap().has("COOKIE ECHO"));
        }
        let mark = net.log.len();
        let other = Hand { tag: 4711, ..hand };
        let init = other.packet(0, &|w| w.init(&other.fields(), |_| Ok(())).unwrap());
        net.inject((other.ip, 4000).into(), to, &init);
        assert_eq!(inits_to(&net, mark), [SocketAddr::new(other.ip, 9899)], "echoed {echoed}");
    }
}

/// RFC 9260 5.2.1 (1) to (3), 5.1.2 D: both sides open the association at once, each over an
/// address that the other side's application did not pass.
#[test]
fn both_sides_open_at_once_over_different_addresses() {
    let mut net = Setup { paths: 2, listens: [true, true], ..Setup::default() }.build();
    net.drop_once(&["INIT"]);
    net.connect(0);
    let now = net.now;
    let second = net.remotes(0)[1];
    net.hosts[1].endpoint.connect(now, PORT, &[second]).unwrap();
    net.drive_until(S(3), Net::all_active);
    for h in 0..2 {
        assert_eq!(net.hosts[h].endpoint.associations().count(), 1);
        net.send(h, 0, payload(h as u64, 3000)).unwrap();
    }
    net.run(S(1));
    assert!((0..2).all(|h| net.hosts[h].received.len() == 1));
}

/// RFC 9260 5.2.2: "If new addresses are added to the association, the endpoint MUST respond with
/// an ABORT", even if the association has `max_paths` paths. An address that the peer has listed is
/// not new, whether it has a path or not.
#[test]
fn a_restart_brings_no_new_address_however_many_paths_there_are() {
    let mut net = pair(1, Config::rfc9260().to_builder().max_paths(2).build().unwrap());
    let listed = [Hand::new(1).ip, v4(0, 77), v4(0, 78)];
    let hand = open_listing(Hand::new(1), &mut net, &listed);
    assert_eq!(remotes(&net, 1).len(), 2);
    let thief = Hand { host: 1, ..THIEF() };
    let answers = thief.init(&mut net, &|p| list(p, &[hand.ip]));
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].causes(), [cause_code::RESTART_WITH_NEW_ADDRESSES]);
    assert_eq!(answers[0].tag, thief.tag);
    // A restart may begin at each address that the peer has listed, even one without a path.
    for ip in listed {
        let again = Hand { tag: 99, ip, ..hand.clone() };
        assert!(again.init(&mut net, &|p| list(p, &listed))[0].has("INIT ACK"), "{ip}");
    }
    hand.data(&mut net, 1);
    assert_eq!(net.hosts[1].received.len(), 1);
}

/// RFC 9260 5.1.2, 5.2.2: an address that no local address reaches still belongs to the peer.
#[test]
fn a_peer_with_an_address_of_another_family_may_restart() {
    let mut net = pair(1, Config::rfc9260());
    let listed = [Hand::new(1).ip, v6(0, 98)];
    let hand = open_listing(Hand::new(1), &mut net, &listed);
    let again = open_listing(Hand { tag: 99, ..hand }, &mut net, &listed);
    assert!(net.saw(1, &Event::Restarted));
    again.data(&mut net, 1);
    assert_eq!(net.hosts[1].received.len(), 1);
}

/// RFC 9260 5.2 C, 5.3.1, 3.3.2: an INIT with the peer's own tag is a late copy of the one that
/// opened the association. It "MUST NOT change the state of any existing association", even if the
/// peer has removed addresses since.
#[test]
fn a_late_copy_of_the_peers_init_ends_nothing() {
    let config = Config::rfc9260()
        .to_builder()
        .authentication(true)
        .dynamic_addresses(true)
        .build()
        .unwrap();
    let mut net = established(2, config);
    let init = net.log[0].clone();
    assert!(init.has("INIT"));
    net.goes(0, v4(1, 0));
    net.run(S(1));
    assert_eq!(remotes(&net, 1), [(v4(0, 0), PathState::Active)]);
    let mark = net.log.len();
    net.inject(init.from, init.to, &init.bytes);
    net.run(S(1));
    assert!(net.sent_since(1, mark).iter().all(|p| !p.has("ABORT")), "{}", net.tail(5));
    assert!(net.a(0).is_established() && net.a(1).is_established());
}

/// A peer with two addresses, both confirmed: the hand at its first and at its second address.
fn two_addresses(net: &mut Net) -> (Hand, Hand) {
    let second = v4(1, 98);
    let hand = open_listing(Hand::new(1), net, &[Hand::new(1).ip, second]);
    let elsewhere = Hand { ip: second, ..hand.clone() };
    net.run(MS(1));
    let log = net.log.clone();
    elsewhere.answer_heartbeats(net, &log);
    let active = PathState::Active;
    assert_eq!(remotes(net, 1), [(hand.ip, active), (second, active)]);
    (hand, elsewhere)
}

/// RFC 9260 5.2.4 A, 5.1.2: after a restart the peer has only the addresses of the new INIT. A host
/// that uses one of the others by now gets nothing, and cannot end the association.
#[test]
fn after_a_restart_an_address_that_is_not_listed_is_the_peers_no_more() {
    let mut net = pair(2, Config::rfc9260());
    let (hand, elsewhere) = two_addresses(&mut net);
    let again = open_listing(Hand { tag: 99, ..hand }, &mut net, &[]);
    assert!(net.saw(1, &Event::Restarted));
    assert_eq!(remotes(&net, 1), [(again.ip, PathState::Active)]);
    let mark = net.log.len();
    net.send(1, 0, payload(1, 30_000)).unwrap();
    net.run(S(100));
    assert!(net.log[mark..].iter().all(|p| p.to.ip() != elsewhere.ip), "{}", net.tail(20));
    // Another peer may use the address.
    let id = net.id(1);
    open_listing(Hand { tag: 5, ..elsewhere }, &mut net, &[]);
    assert_eq!(net.hosts[1].endpoint.associations().count(), 2);
    assert!(net.hosts[1].endpoint.association(id).is_some());
}

/// RFC 9260 5.2.4 A: "treated the same as if it received an ABORT chunk followed by a new COOKIE
/// ECHO"; 5.4 (2): "the only CONFIRMED address is the address to which the packet containing the
/// INIT ACK chunk was sent", whichever address the COOKIE ECHO was sent from.
#[test]
fn a_restart_confirms_only_the_address_that_got_the_init_ack() {
    for echo_from_second in [false, true] {
        let mut net = pair(2, Config::rfc9260());
        let (hand, elsewhere) = two_addresses(&mut net);
        let mut again = Hand { tag: 99, ..hand.clone() };
        let answers = again.init(&mut net, &|p| list(p, &[hand.ip, elsewhere.ip]));
        again.learn(&answers[0]);
        let sender = if echo_from_second { elsewhere.ip } else { hand.ip };
        Hand { ip: sender, ..again.clone() }.echo(&mut net);
        assert!(net.saw(1, &Event::Restarted));
        let (active, unconfirmed) = (PathState::Active, PathState::Unconfirmed);
        assert_eq!(remotes(&net, 1), [(hand.ip, active), (elsewhere.ip, unconfirmed)]);
        // The unconfirmed address gets a HEARTBEAT and answers it.
        net.run(MS(1));
        let log = net.log.clone();
        Hand { ip: elsewhere.ip, ..again }.answer_heartbeats(&mut net, &log);
        assert_eq!(remotes(&net, 1)[1].1, active);
    }
}

/// RFC 9260 5.1.2 C: "The receiver SHOULD use only these transport addresses": an address that the
/// application passed and the peer does not list is not the peer's, whether the list is in an INIT
/// ACK or in an INIT of a collision.
#[test]
fn an_address_that_the_peer_does_not_list_is_left() {
    for collision in [false, true] {
        let mut net = pair(2, Config::rfc9260());
        let (hand, wrong, second) = (Hand::new(0), v4(1, 44), v4(1, 98));
        let now = net.now;
        let remote = |ip: IpAddr| Remote { address: (ip, 0).into(), local: None };
        let named = [remote(wrong), remote(hand.ip)];
        net.hosts[0].endpoint.connect(now, PORT, &named).unwrap();
        net.settle();
        let mut hand = hand;
        let first = net.log.last().unwrap().clone();
        hand.learn(&first);
        let listed = [hand.ip, second];
        if collision {
            let mut other = Hand { tag: 77, tsn: 500, ..hand.clone() };
            let answers = other.init(&mut net, &|p| list(p, &listed));
            other.learn(&answers[0]);
            assert!(other.echo(&mut net)[0].has("COOKIE ACK"));
        } else {
            let answers = hand.say(&mut net, &|w| {
                w.init_ack(&hand.fields(), |p| {
                    list(p, &listed);
                    p.state_cookie(b"a cookie")
                })
                .unwrap();
            });
            assert!(answers[0].has("COOKIE ECHO"));
            hand.say(&mut net, &|w| w.cookie_ack().unwrap());
        }
        assert!(net.a(0).is_established());
        let mut known: Vec<IpAddr> = remotes(&net, 0).iter().map(|(ip, _)| *ip).collect();
        known.sort();
        assert_eq!(known, listed, "collision {collision}");
        let mark = net.log.len();
        net.send(0, 0, payload(1, 30_000)).unwrap();
        net.run(S(100));
        assert!(net.log[mark..].iter().all(|p| p.to.ip() != wrong), "{}", net.tail(20));
    }
}

/// RFC 9260 5.2.2: the tie tags are "populated with a random value"; RFC 5062 3.3: a cookie for a
/// restart does not reveal the association's tags to its receiver.
#[test]
fn a_cookie_does_not_show_the_tags_of_the_association() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let answers = Hand { tag: 4711, ..hand.clone() }.init(&mut net, &|_| {});
    let parsed = answers[0].parsed();
    let Chunk::InitAck(ack) = parsed[0] else { panic!("{}", answers[0].text()) };
    let cookie = ack.parameters.iter().flatten().find_map(|p| match p {
        Parameter::StateCookie(cookie) => Some(cookie),
        _ => None,
    });
    let shows = |tag: u32| cookie.unwrap().windows(4).any(|w| w == tag.to_be_bytes());
    assert!(shows(4711), "its own tag, which its sender knows");
    assert!(!shows(hand.peer_tag) && !shows(hand.tag));
}

/// RFC 9260 5.1.2 D: an INIT ACK from an address that the application did not pass belongs to the
/// association if it lists one that the application passed. The COOKIE ECHO is sent to that one.
#[test]
fn an_init_ack_may_come_from_another_address_of_the_peer() {
    for lists in [true, false] {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(0).be_called(&mut net);
        let elsewhere = Hand { ip: v4(0, 77), ..hand.clone() };
        let mark = net.log.len();
        elsewhere.say(&mut net, &|w| {
            w.init_ack(&elsewhere.fields(), |p| {
                list(p, if lists { std::slice::from_ref(&hand.ip) } else { &[] });
                p.state_cookie(b"a cookie")
            })
            .unwrap();
        });
        let echoes: Vec<IpAddr> = net
            .sent_since(0, mark)
            .iter()
            .filter(|p| p.has("COOKIE ECHO"))
            .map(|p| p.to.ip())
            .collect();
        assert_eq!(echoes, if lists { vec![hand.ip] } else { vec![] });
    }
}
