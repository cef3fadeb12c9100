//! ICMP messages about packets that an endpoint has sent (RFC 9260 10, RFC 6951 5.5). Anyone can
//! send them: only those that quote a packet of the association count.

use crate::common::*;
use polypath_proto::wire::{CommonHeader, chunk_type};
use polypath_proto::*;

const ALL: [Unreachable; 5] = [
    Unreachable::Port,
    Unreachable::Protocol,
    Unreachable::Host,
    Unreachable::Network,
    Unreachable::TooBig { mtu: 1200 },
];

/// The quotation in an ICMP message about this packet.
fn quoted(packet: &Sent) -> Option<Quoted> {
    Quoted::parse(&packet.bytes[..packet.bytes.len().min(20)])
}

/// Delivers an ICMP message to host 0: a packet to this address was not delivered.
fn report(net: &mut Net, remote: std::net::IpAddr, what: Unreachable, quoted: Option<Quoted>) {
    let udp =
        if net.hosts[0].endpoint.config().encapsulation == Encapsulation::RawIp { 0 } else { 9899 };
    let local = (v4(0, 0), udp).into();
    let tuple = FourTuple { local, remote: (remote, udp).into() };
    net.hosts[0].endpoint.handle_unreachable(net.now, tuple, what, quoted);
    net.settle();
}

fn opening(paths: u8, udp: bool) -> Net {
    let mut net = Setup { paths, udp, ..Setup::default() }.build();
    net.drop_all("INIT");
    let remotes = net.remotes(1);
    net.hosts[0].endpoint.connect(net.now, PORT, &remotes).unwrap();
    net.settle();
    net
}

/// An association over UDP or raw IP, and a packet of host 0 with the peer's verification tag.
fn open(paths: u8, udp: bool) -> (Net, Sent) {
    let mut net = Setup { paths, udp, ..Setup::default() }.build();
    net.establish();
    let packet = net.sent_with(0, "COOKIE ECHO")[0].clone();
    (net, packet)
}

/// ICMP6: "If the Verification Tag is not 0 and does not match, discard the ICMP message. If it is
/// 0 and ... the Initiate Tag matches ..., continue. If the ICMP message is too short or the chunk
/// type or the Initiate Tag does not match, silently discard the packet."
#[test]
fn a_forged_icmp_message_does_not_end_a_connect() {
    for udp in [false, true] {
        let mut net = opening(1, udp);
        let init = net.sent_with(0, "INIT")[0].clone();
        let right = quoted(&init).unwrap();
        let tag = right.init.unwrap().0;
        let with = |verification_tag, init: Option<u32>| Quoted {
            header: CommonHeader {
                verification_tag: VerificationTag(verification_tag),
                ..right.header
            },
            init: init.map(VerificationTag),
        };
        let ports = |source_port, destination_port| Quoted {
            header: CommonHeader { source_port, destination_port, ..right.header },
            ..right
        };
        let forged = [
            with(0, Some(tag ^ 1)),
            with(0, Some(0)),
            with(0, None),
            with(tag, None),
            with(tag, Some(tag)),
            ports(PORT + 1, PORT),
            ports(PORT, PORT + 1),
        ];
        for quoted in forged {
            for what in ALL {
                report(&mut net, v4(0, 1), what, Some(quoted));
                assert_eq!(net.closed(0), None, "{what:?}, {quoted:?}, UDP: {udp}");
            }
        }
        assert_eq!(net.times(0, "INIT").len(), 1, "nor does it make the next attempt come early");
        for len in 0..20 {
            let quoted = Quoted::parse(&init.bytes[..len]);
            assert!(quoted.is_none_or(|q| q.init.is_none()), "{len} bytes");
        }
        report(&mut net, v4(0, 5), Unreachable::Protocol, quoted(&init));
        assert_eq!(net.closed(0), None, "about another address");
        net.no_filters();
        net.drive_until(S(2), Net::all_active);
    }
}

/// ICMP8: "If it does contain an INIT chunk and the association is in the COOKIE-WAIT state, handle
/// the ICMP message like an ABORT chunk."
#[test]
fn a_quoted_init_ends_a_connect_at_once() {
    for what in [Unreachable::Protocol, Unreachable::Host, Unreachable::Network] {
        let mut net = opening(1, false);
        let init = net.sent_with(0, "INIT")[0].clone();
        report(&mut net, v4(0, 1), what, quoted(&init));
        assert!(matches!(net.closed(0), Some(CloseReason::Unreachable { .. })), "{what:?}");
    }
}

/// ICMP3: "An implementation SHOULD ignore any ICMP messages where the code indicates Port
/// Unreachable". RFC 6951 5.5: over UDP, it is treated as "Protocol Unreachable".
#[test]
fn port_unreachable_counts_over_udp_alone() {
    for udp in [false, true] {
        let mut net = opening(1, udp);
        let init = net.sent_with(0, "INIT")[0].clone();
        report(&mut net, v4(0, 1), Unreachable::Port, quoted(&init));
        assert_eq!(net.closed(0).is_some(), udp);
        let (mut net, packet) = open(1, udp);
        report(&mut net, v4(0, 1), Unreachable::Port, quoted(&packet));
        assert_eq!(net.closed(0).is_some(), udp);
    }
}

/// The next address is tried at once; the attempt ends when all of them have been refused.
#[test]
fn each_address_has_its_turn() {
    let mut net = opening(3, true);
    for host in 0..3u8 {
        assert_eq!(net.closed(0), None);
        let inits = net.sent_with(0, "INIT");
        let last = inits.last().unwrap().clone();
        assert_eq!((inits.len(), last.net()), (usize::from(host) + 1, host));
        report(&mut net, v4(host, 1), Unreachable::Port, quoted(&last));
    }
    assert!(matches!(net.closed(0), Some(CloseReason::Unreachable { .. })));
    assert_eq!(net.now.as_nanos(), 0);
}

/// A lost INIT proves nothing about its address: one address that refuses twice does not end the
/// attempt.
#[test]
fn an_address_that_has_not_refused_is_tried_again() {
    let mut net = opening(2, true);
    for _ in 0..2 {
        let last = net.sent_with(0, "INIT").last().unwrap().clone();
        assert_eq!(last.net(), 0);
        report(&mut net, v4(0, 1), Unreachable::Port, quoted(&last));
        assert_eq!(net.closed(0), None);
        let before = net.sent_with(0, "INIT").len();
        net.drive_until(S(10), |net| net.sent_with(0, "INIT").len() > before);
    }
    net.no_filters();
    net.cuts.insert(0);
    net.drive_until(S(60), |net| net.a(0).is_established());
}

/// ICMP6 and ICMP8 in the COOKIE-ECHOED state.
#[test]
fn in_cookie_echoed_no_report_ends_the_attempt() {
    let open = || {
        let mut net = pair(1, Config::rfc9260());
        net.drop_all("COOKIE ECHO");
        net.connect(0);
        net.run(MS(100));
        net
    };
    let mut net = open();
    let (init, echo) =
        (net.sent_with(0, "INIT")[0].clone(), net.sent_with(0, "COOKIE ECHO")[0].clone());
    // "if it does not contain an INIT chunk": a late report about the INIT.
    report(&mut net, v4(0, 1), Unreachable::Protocol, quoted(&init));
    let right = quoted(&echo).unwrap();
    let header = CommonHeader {
        verification_tag: VerificationTag(right.header.verification_tag.0 ^ 1),
        ..right.header
    };
    report(&mut net, v4(0, 1), Unreachable::Protocol, Some(Quoted { header, init: None }));
    for what in [Unreachable::Host, Unreachable::Network] {
        report(&mut net, v4(0, 1), what, Some(right));
    }
    assert_eq!(net.closed(0), None);
    // The peer has answered before: its raw socket may have been full.
    report(&mut net, v4(0, 1), Unreachable::Protocol, Some(right));
    assert_eq!(net.closed(0), None);
}

/// ICMP8 would end an established association here. A host whose SCTP runs in user space reports
/// "protocol unreachable" whenever the buffer of its raw socket is full.
#[test]
fn no_report_ends_an_established_association_over_ip() {
    let (mut net, packet) = open(1, false);
    let right = quoted(&packet).unwrap();
    for tag in [0, right.header.verification_tag.0 ^ 1, net.sent_with(1, "COOKIE ACK")[0].tag] {
        let header = CommonHeader { verification_tag: VerificationTag(tag), ..right.header };
        for what in ALL {
            report(&mut net, v4(0, 1), what, Some(Quoted { header, init: None }));
        }
    }
    let init = net.sent_with(0, "INIT")[0].clone();
    for what in ALL {
        report(&mut net, v4(0, 1), what, quoted(&init));
    }
    // ICMP9: the network may recover.
    for what in [Unreachable::Host, Unreachable::Network] {
        report(&mut net, v4(0, 1), what, Some(right));
    }
    report(&mut net, v4(0, 1), Unreachable::Protocol, Some(right));
    net.run(S(1));
    assert_eq!(net.closed(0), None);
}

/// A firewall that rejects the packets on one path makes that path inactive; the association
/// continues.
#[test]
fn one_rejected_path_does_not_end_an_association_over_udp() {
    let (mut net, packet) = open(2, true);
    report(&mut net, v4(0, 1), Unreachable::Port, quoted(&packet));
    assert_eq!(net.closed(0), None);
    assert_eq!(net.states(0), [PathState::Inactive, PathState::Active]);
    assert_eq!(net.events(0, |e| matches!(e, Event::PathRefused { .. })).len(), 1);
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 5000)).unwrap();
    net.run(S(1));
    assert_eq!(net.hosts[1].received.len(), 1);
    report(&mut net, v4(1, 1), Unreachable::Port, quoted(&packet));
    assert!(matches!(net.closed(0), Some(CloseReason::Unreachable { .. })));
}

/// RFC 4895 6.3: if an ABORT has to be authenticated, an ICMP message cannot replace one.
#[test]
fn where_an_abort_is_authenticated_icmp_ends_nothing() {
    let aborts = ChunkTypes::authenticated(&[chunk_type::ABORT]);
    let config = Config::rfc9260()
        .to_builder()
        .authentication(true)
        .authenticated_chunks(aborts)
        .build()
        .unwrap();
    let mut net = established(1, config);
    let packet = net.sent_with(0, "COOKIE ECHO")[0].clone();
    report(&mut net, v4(0, 1), Unreachable::Protocol, quoted(&packet));
    assert_eq!(net.closed(0), None);
}

/// Reports of the local host quote no packet: they count only until the peer has answered.
#[test]
fn this_hosts_own_report_ends_an_attempt_and_nothing_else() {
    let mut net = opening(1, false);
    report(&mut net, v4(0, 5), Unreachable::Network, None);
    assert_eq!(net.closed(0), None);
    report(&mut net, v4(0, 1), Unreachable::Network, None);
    assert!(matches!(net.closed(0), Some(CloseReason::Unreachable { .. })));
    let (mut net, _) = open(1, false);
    for what in ALL {
        report(&mut net, v4(0, 1), what, None);
    }
    net.run(S(1));
    assert_eq!(net.closed(0), None);
}
