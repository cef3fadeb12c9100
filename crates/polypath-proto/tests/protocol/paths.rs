//! Paths for the peer's addresses, and their verification before they carry data (RFC 9260 5.1.2,
//! 5.4; RFC 6951 5.4).

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::common::*;
use polypath_proto::wire::{Chunk, Parameter};
use polypath_proto::*;

/// RFC 9260 5.4: the other paths are probed as soon as the association is established.
#[test]
fn heartbeats_confirm_the_other_paths() {
    let mut net = pair(3, Config::rfc9260());
    net.connect(0);
    net.drive_until(S(1), Net::all_active);
    for h in 0..2 {
        let asked = net.sent_with(h, "HEARTBEAT");
        assert_eq!(asked.iter().map(Sent::net).collect::<Vec<_>>(), [1, 2]);
        let first = net.path(h, 0);
        assert_eq!((first.state, net.a(h).primary()), (PathState::Active, PathId(0)));
        assert!(net.path(h, 1).srtt == Some(MS(20)), "a HEARTBEAT measures the RTT too (6.3.1)");
    }
}

/// RFC 9260 8.3: a HEARTBEAT ACK is sent on the path of its HEARTBEAT.
#[test]
fn heartbeat_acks_return_on_the_path_of_the_heartbeat() {
    let net = established(3, Config::rfc9260());
    let answers = net.sent_with(1, "HEARTBEAT ACK");
    assert_eq!(answers.iter().map(Sent::net).collect::<Vec<_>>(), [1, 2]);
}

/// RFC 9260 5.4: "an endpoint MUST NOT send any chunks to an UNCONFIRMED address, unless it is
/// sending a probe": no DATA, not even if the primary has failed.
#[test]
fn an_unconfirmed_path_carries_heartbeats_and_nothing_else() {
    let mut net = pair(2, Config::rfc9260());
    net.drop_all("HEARTBEAT ACK");
    net.connect(0);
    net.drive_until(S(1), |net| (0..2).all(|h| net.a(h).is_established()));
    for _ in 0..20 {
        net.send(0, 0, payload(1, 5000)).unwrap();
        net.send(1, 0, payload(2, 5000)).unwrap();
    }
    net.run(S(1));
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 50_000)).unwrap();
    net.run(S(1000));
    for h in 0..2 {
        assert_eq!(net.states(h)[1], PathState::Unconfirmed);
        let other = net.sent(h).into_iter().filter(|p| p.net() == 1);
        let text: BTreeSet<String> = other.map(|p| p.text()).collect();
        // Once one side has closed, HEARTBEATs from the other side are out of the blue.
        let known = |t: &String| t.starts_with("HEARTBEAT") || t == "ABORT T";
        assert!(text.iter().all(known), "{text:?}");
    }
    assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
}

/// RFC 9260 5.4: one probe each RTO, Path.Max.Retrans times, then one each heartbeat interval; the
/// association's error count does not change.
#[test]
fn an_unconfirmed_path_is_probed_quickly_at_first() {
    let mut net = pair(2, Config::rfc9260());
    net.cuts.insert(1);
    net.connect(0);
    net.run(S(1000));
    let times: Vec<u64> =
        net.sent_with(0, "HEARTBEAT").iter().filter(|p| p.net() == 1).map(Sent::ms).collect();
    let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
    for (i, gap) in gaps.iter().take(5).enumerate() {
        // The RTO, and the jitter of one that has backed off.
        let rto = 1000 << i;
        assert!((rto..=rto + rto * 3).contains(gap), "{gaps:?}");
    }
    // 8.3: "RTO of that destination address plus HB.interval, with jittering of +/- 50% of the
    // RTO".
    assert!(gaps[6..].iter().all(|g| (60_000..=120_000).contains(g)), "{gaps:?}");
    assert!(net.a(0).is_established());
    net.cuts.clear();
    net.drive_until(S(130), Net::all_active);
}

/// RFC 9260 5.4: only the correct nonce confirms a path.
#[test]
fn a_forged_heartbeat_ack_confirms_nothing() {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    let answer = hand.init(&mut net, &|p| p.ipv4([10, 0, 0, 77].into()).unwrap());
    hand.learn(&answer[0]);
    let mark = net.log.len();
    hand.echo(&mut net);
    net.run(MS(1));
    let asked = net.sent_since(1, mark).into_iter().find(|p| p.has("HEARTBEAT")).expect("asks");
    assert_eq!(asked.to.ip(), IpAddr::from([10, 0, 0, 77]));
    let Chunk::Heartbeat(h) = asked.parsed()[0] else { unreachable!() };
    let info = h.info.to_vec();
    for at in 0..info.len() {
        let mut forged = info.clone();
        forged[at] ^= 4;
        hand.say(&mut net, &|w| w.heartbeat_ack(&forged).unwrap());
    }
    hand.say(&mut net, &|w| w.heartbeat_ack(&info[..8]).unwrap());
    hand.say(&mut net, &|w| w.heartbeat_ack(b"").unwrap());
    assert_eq!(net.states(1), [PathState::Active, PathState::Unconfirmed]);
    hand.say(&mut net, &|w| w.heartbeat_ack(&info).unwrap());
    assert_eq!(net.states(1), [PathState::Active, PathState::Active]);
    // A repeated HEARTBEAT ACK gives no further RTT sample.
    let samples = net.a(1).path_stats(PathId(1)).unwrap().rtt_samples;
    hand.say(&mut net, &|w| w.heartbeat_ack(&info).unwrap());
    assert_eq!(net.a(1).path_stats(PathId(1)).unwrap().rtt_samples, samples);
}

/// A HEARTBEAT padded to a packet size shows whether packets of this size get through.
#[test]
fn a_probe_makes_packets_of_its_size() {
    let mut net = established(1, Config::rfc9260());
    net.filter(|p| if p.bytes.len() > 1380 { Fate::Drop } else { Fate::Pass });
    let id = net.a(0).id();
    let mut answered = net.a(0).path_stats(PathId(0)).unwrap().heartbeats_acked;
    // An IPv4 header is 20 bytes; SCTP packets are multiples of 4.
    for (asked, size, passes) in
        [(1500, 1480, false), (1400, 1380, true), (9000, 1480, false), (1, 64, true)]
    {
        let now = net.now;
        net.hosts[0].endpoint.association_mut(id).unwrap().probe(now, PathId(0), asked).unwrap();
        let mark = net.log.len();
        net.run(S(2));
        let sent = net.sent_since(0, mark);
        assert_eq!(sent.iter().find(|p| p.has("HEARTBEAT")).unwrap().bytes.len(), size);
        let now_answered = net.a(0).path_stats(PathId(0)).unwrap().heartbeats_acked;
        assert_eq!(now_answered > answered, passes, "{asked}");
        answered = now_answered;
    }
}

/// A peer that has listed no addresses may be behind a NAT: its HEARTBEATs show its addresses as
/// seen from outside, and a path is used once it has answered.
#[test]
fn a_peer_without_a_list_shows_its_addresses_by_heartbeats() {
    let elsewhere = |hand: &Hand| Hand { ip: [192, 0, 2, 7].into(), ..hand.clone() };
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let other = elsewhere(&hand);
    assert!(other.say(&mut net, &|w| w.shutdown_ack().unwrap()).is_empty());
    assert_eq!(net.states(1).len(), 1, "only a HEARTBEAT shows one");
    let answers = other.say(&mut net, &|w| w.heartbeat(b"who?").unwrap());
    assert!(answers.iter().any(|p| p.has("HEARTBEAT ACK")), "{answers:?}");
    assert_eq!(net.states(1), [PathState::Active, PathState::Unconfirmed]);
    let mark = net.log.len();
    net.run(MS(1));
    let asked = other.answers(&net, mark).into_iter().find(|p| p.has("HEARTBEAT")).expect("asks");
    let parsed = asked.parsed();
    let info = parsed.iter().find_map(|c| match c {
        Chunk::Heartbeat(h) => Some(h.info.to_vec()),
        _ => None,
    });
    other.say(&mut net, &|w| w.heartbeat_ack(&info.clone().unwrap()).unwrap());
    assert_eq!(net.states(1), [PathState::Active, PathState::Active]);

    // A peer that lists its addresses has no others.
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    let answer = hand.init(&mut net, &|p| p.ipv4([10, 0, 0, 77].into()).unwrap());
    hand.learn(&answer[0]);
    hand.echo(&mut net);
    let answers = elsewhere(&hand).say(&mut net, &|w| w.heartbeat(b"who?").unwrap());
    assert!(answers.is_empty());
    assert_eq!(net.states(1).len(), 2);
}

/// A stack that finds associations by address answers a HEARTBEAT from an unknown one with an ABORT
/// (RFC 9260 8.4 (8)). Such an ABORT concerns this address alone.
#[test]
fn a_peer_that_does_not_know_an_address_ends_that_path_alone() {
    let mut net = pair(2, Config::rfc9260());
    net.drop_all("HEARTBEAT ACK");
    net.connect(0);
    net.run(S(1));
    assert_eq!(net.states(0), [PathState::Active, PathState::Unconfirmed]);
    let tag = net.sent_with(0, "HEARTBEAT")[0].tag;
    for path in [1, 0] {
        assert!(net.a(0).is_established());
        let peer = Hand { ip: v4(path, 1), ..Hand::new(0) };
        peer.say_with_tag(&mut net, tag, &|w| w.abort(true, |_| Ok(())).unwrap());
        assert!(net.saw(0, &Event::PathRefused { path: PathId(1) }));
    }
    assert_eq!(net.closed(0), Some(CloseReason::PeerAbort { cause: String::new() }));
}

/// HEARTBEATs from new addresses create no more than `max_paths` paths.
#[test]
fn heartbeats_do_not_make_paths_without_end() {
    let mut net = pair(1, Config::rfc9260().to_builder().max_paths(4).build().unwrap());
    let hand = Hand::new(1).open(&mut net);
    for last in 0..100 {
        let other = Hand { ip: [192, 0, 2, last].into(), ..hand.clone() };
        other.say(&mut net, &|w| w.heartbeat(b"who?").unwrap());
    }
    assert_eq!(net.states(1).len(), 4);
}

fn listed(sent: &Sent) -> Vec<IpAddr> {
    let parsed = sent.parsed();
    let (Chunk::Init(i) | Chunk::InitAck(i)) = parsed[0] else { panic!("{}", sent.text()) };
    i.parameters
        .iter()
        .flatten()
        .filter_map(|p| match p {
            Parameter::Ipv4(ip) => Some(ip.into()),
            Parameter::Ipv6(ip) => Some(ip.into()),
            _ => None,
        })
        .collect()
}

/// RFC 9260 5.1.2: an INIT or INIT ACK lists all addresses, or none if its source is the only one.
#[test]
fn addresses_are_listed_if_there_are_several() {
    let net = established(1, Config::rfc9260());
    assert_eq!((listed(&net.log[0]), listed(&net.log[1])), (vec![], vec![]));
    let net = established(3, Config::rfc9260());
    assert_eq!(listed(&net.log[0]), [v4(0, 0), v4(1, 0), v4(2, 0)]);
    assert_eq!(listed(&net.log[1]), [v4(0, 1), v4(1, 1), v4(2, 1)]);
}

/// RFC 9260 5.1.2: one side has more addresses than the other.
#[test]
fn sides_may_have_different_numbers_of_addresses() {
    for own in [[1, 3], [3, 1], [2, 3]] {
        let own_paths = own.map(Some);
        let mut net = Setup { paths: 3, own_paths, ..Setup::default() }.build();
        net.establish();
        for h in 0..2 {
            let theirs = usize::from(own[1 - h]);
            assert_eq!(net.a(h).paths().count(), theirs, "{own:?}");
            let remotes: BTreeSet<IpAddr> = net.a(h).paths().map(|p| p.remote).collect();
            assert_eq!(remotes.len(), theirs, "one path for each address of the peer");
        }
    }
}

/// RFC 9260 5.1.2, 3.3.2.1: addresses that cannot belong to the peer are ignored.
#[test]
fn strange_addresses_are_left_aside() {
    let config = Config::rfc9260().to_builder().max_paths(4).build().unwrap();
    let mut net = pair(1, config);
    let mut hand = Hand::new(1);
    let answer = hand.init(&mut net, &|p| {
        for ip in [[224, 0, 0, 1], [255, 255, 255, 255], [0, 0, 0, 0], [127, 0, 0, 1]] {
            p.ipv4(ip.into()).unwrap();
        }
        p.ipv6("ff02::1".parse().unwrap()).unwrap();
        p.ipv6("::".parse().unwrap()).unwrap();
        p.ipv6("fd00::9".parse().unwrap()).unwrap();
        for i in [1, 1, 2, 3, 4, 5, 6, 7, 8, 9] {
            p.ipv4([10, 0, 9, i].into()).unwrap();
        }
    });
    hand.learn(&answer[0]);
    hand.echo(&mut net);
    let remotes: Vec<IpAddr> = net.a(1).paths().map(|p| p.remote).collect();
    assert_eq!(remotes[0], hand.ip, "the source is one of them, listed or not");
    let plain = |ip: &IpAddr| matches!(ip, IpAddr::V4(ip) if ip.octets()[..3] == [10, 0, 9]);
    assert!(remotes[1..].iter().all(plain), "{remotes:?}");
    assert!((2..=4).contains(&remotes.len()));
    assert_eq!(remotes.iter().collect::<BTreeSet<_>>().len(), remotes.len());
}

/// RFC 9260 3.3.2.1.2: paths over IPv6 alone, and over both families.
#[test]
fn ipv6_and_ipv4_make_paths_of_their_own() {
    let mut net = Setup { v6: true, ..Setup::default() }.build();
    net.establish();
    net.send(0, 0, payload(1, 5000)).unwrap();
    net.run(S(1));
    assert_eq!(net.hosts[1].received[0].payload, payload(1, 5000));
    assert!(net.sent(0).iter().all(|p| p.bytes.len() <= 1460), "the header of IPv6 is larger");

    let mut net = Setup { dual: true, ..Setup::default() }.build();
    net.establish();
    let remotes: Vec<IpAddr> = net.a(0).paths().map(|p| p.remote).collect();
    assert_eq!(remotes, [v4(0, 1), v6(0, 1)]);
    let families = |p: PathView| p.local.is_ipv4() == p.remote.is_ipv4();
    assert!((0..2).all(|h| net.a(h).paths().all(families)));
    net.drop_all("DATA");
    net.send(0, 0, payload(1, 5000)).unwrap();
    net.run(S(2));
    net.no_filters();
    net.drive_until(S(10), |net| !net.hosts[1].received.is_empty());
    assert!(net.sent_with(0, "DATA").iter().any(|p| p.to.is_ipv6()), "the alternate path");
}

/// RFC 9260 6.4: a full mesh has a path for every pair of a local and a remote address.
#[test]
fn a_full_mesh_has_a_path_for_every_pair() {
    let config = Config::rfc9260().to_builder().full_mesh(true).build().unwrap();
    let net = established(2, config);
    for h in 0..2 {
        let pairs: BTreeSet<(IpAddr, IpAddr)> =
            net.a(h).paths().map(|p| (p.local, p.remote)).collect();
        assert_eq!(pairs.len(), 4);
        assert_eq!(net.a(h).paths().count(), 4);
    }
    let config = Config::rfc9260().to_builder().full_mesh(true).max_paths(3).build().unwrap();
    assert_eq!(established(2, config).a(0).paths().count(), 3);
}

/// Each address of either side gets a path, if the routes reach the peer from it, and no pair of
/// addresses more than that takes.
#[test]
fn every_address_that_reaches_the_peer_gets_a_path() {
    for (near, far, expected) in [(2, 1, 2), (1, 2, 2), (2, 2, 2), (3, 1, 3), (3, 2, 3)] {
        let mut net = Setup {
            own_paths: [Some(near), Some(far)],
            routed_everywhere: true,
            ..Setup::default()
        }
        .build();
        net.establish();
        for h in 0..2 {
            let pairs: BTreeSet<(IpAddr, IpAddr)> =
                net.a(h).paths().map(|p| (p.local, p.remote)).collect();
            assert_eq!(pairs.len(), expected, "{near} and {far} addresses, host {h}: {pairs:?}");
            let locals: BTreeSet<IpAddr> = pairs.iter().map(|pair| pair.0).collect();
            let remotes: BTreeSet<IpAddr> = pairs.iter().map(|pair| pair.1).collect();
            assert_eq!(locals.len(), usize::from(if h == 0 { near } else { far }), "{pairs:?}");
            assert_eq!(remotes.len(), usize::from(if h == 0 { far } else { near }), "{pairs:?}");
            assert!(net.a(h).paths().all(|p| p.state == PathState::Active), "{pairs:?}");
        }
    }
}

/// Without a route from the second address, it stays without a path.
#[test]
fn an_address_without_a_route_to_the_peer_gets_no_path() {
    let mut net = Setup { own_paths: [Some(2), Some(1)], ..Setup::default() }.build();
    net.establish();
    assert_eq!(net.a(0).paths().map(|p| p.local).collect::<Vec<_>>(), [v4(0, 0)]);
}

/// RFC 9260 11.1.5, SETPRIMARY; 6.4: new data is sent on the primary.
#[test]
fn the_primary_can_be_chosen() {
    let mut net = established(2, Config::rfc9260());
    let now = net.now;
    assert_eq!(net.am(0).set_primary(now, PathId(9)), Err(PathError::NoSuchPath(PathId(9))));
    net.am(0).set_primary(now, PathId(1)).unwrap();
    net.send(0, 0, payload(1, 100)).unwrap();
    assert_eq!(net.sent_with(0, "DATA").last().unwrap().net(), 1);
    assert!(net.saw(0, &Event::PrimaryChanged { path: PathId(1) }));

    let mut net = pair(2, Config::rfc9260());
    net.cuts.insert(1);
    net.connect(0);
    net.run(S(1));
    let now = net.now;
    assert_eq!(net.am(0).set_primary(now, PathId(1)), Err(PathError::Unconfirmed(PathId(1))));
}

/// RFC 9260 11.1.8, REQUESTHEARTBEAT.
#[test]
fn a_heartbeat_can_be_asked_for() {
    let mut net = established(2, Config::rfc9260());
    let now = net.now;
    let mark = net.log.len();
    assert_eq!(net.am(0).request_heartbeat(now, PathId(7)), Err(PathError::NoSuchPath(PathId(7))));
    net.am(0).request_heartbeat(now, PathId(1)).unwrap();
    net.settle();
    assert_eq!(net.script_since(mark), ["A HEARTBEAT"]);
    assert_eq!(net.log[mark].net(), 1);
}

/// RFC 9260 8.1: "Unacknowledged HEARTBEAT chunks observed on paths different from the path
/// currently used for data transfer SHOULD NOT increment the association error counter".
#[test]
fn heartbeats_lost_on_unused_paths_do_not_end_the_association() {
    let config = Config::rfc9260()
        .to_builder()
        .association_max_retrans(0)
        .path_max_retrans(1)
        .heartbeat_interval(Some(S(5)))
        .build()
        .unwrap();
    let mut net = established(3, config);
    net.cuts.extend([1, 2]);
    net.run(S(1000));
    assert_eq!(net.states(0), [PathState::Active, PathState::Inactive, PathState::Inactive]);
    assert_eq!((net.closed(0), net.closed(1)), (None, None));
    assert!(net.a(0).path_stats(PathId(1)).unwrap().heartbeats_lost > 5);
    // Errors on the path used for data count, even if no data is sent.
    net.cuts.insert(0);
    net.run(S(30));
    assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
}
