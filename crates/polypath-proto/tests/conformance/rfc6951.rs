//! RFC 6951, UDP encapsulation: the requirements with MUST. Sockets are not tested here: a packet's
//! UDP source port is that of the socket that sends it.

use crate::bytes::{chunk, parameters};
use crate::common::*;
use polypath_proto::wire::{CommonHeader, checksum};
use polypath_proto::*;

fn over_udp(paths: u8, v6: bool) -> Net {
    Setup { paths, v6, udp: true, ..Setup::default() }.build()
}

#[test]
fn s3_2_r1_a_single_address_is_not_listed() {
    for v6 in [false, true] {
        let mut net = over_udp(1, v6);
        net.establish();
        for (sent, ty) in net.log.iter().zip([1, 2]) {
            let list = parameters(&chunk(&sent.bytes, ty));
            assert!(list.iter().all(|p| p.ty != 5 && p.ty != 6), "{list:?}");
        }
    }
}

/// A NAT changes the port of one of host 0's two addresses. Returns the length of the log after the
/// handshake.
fn behind_a_nat() -> (Net, usize) {
    let mut net = over_udp(2, false);
    net.nat = Some((v4(0, 0), 40_001));
    net.establish();
    let mark = net.log.len();
    for h in 0..2 {
        net.send(h, 0, payload(h as u64, 20_000)).unwrap();
    }
    net.run(S(90));
    (net, mark)
}

#[test]
fn s5_1_r1_each_destination_address_has_a_port_of_its_own() {
    let (net, _) = behind_a_nat();
    assert_eq!([0, 1].map(|path| net.path(1, path).remote_port), [40_001, 9899]);
    assert_eq!([0, 1].map(|path| net.path(0, path).remote_port), [9899; 2]);
}

#[test]
fn s5_3_r1_packets_go_to_the_port_of_their_destination() {
    let (net, mark) = behind_a_nat();
    let mut seen = [0; 2];
    for sent in net.sent_since(1, mark) {
        seen[usize::from(sent.net())] += 1;
        assert_eq!(sent.to.port(), [40_001, 9899][usize::from(sent.net())]);
    }
    assert!(seen[0] > 5 && seen[1] > 2, "{seen:?}");
    assert_eq!((net.hosts[0].received.len(), net.hosts[1].received.len()), (1, 1));
}

#[test]
fn s5_3_r3_the_sctp_checksum_is_there() {
    for v6 in [false, true] {
        let mut net = over_udp(1, v6);
        net.establish();
        net.send(0, 0, payload(1, 20_000)).unwrap();
        net.run(S(1));
        assert!(net.log.len() > 10);
        for sent in &net.log {
            assert_eq!(sent.bytes[8..12], checksum(&sent.bytes).to_le_bytes());
        }
    }
}

#[test]
fn s5_4_r1_the_port_is_that_of_the_last_packet_with_the_right_tag() {
    let mut net = over_udp(1, false);
    net.nat = Some((v4(0, 0), 40_001));
    net.establish();
    assert_eq!(net.path(1, 0).remote_port, 40_001);
    for port in [40_002, 9899, 1] {
        net.nat = Some((v4(0, 0), port));
        net.send(0, 0, payload(1, 3000)).unwrap();
        net.run(S(5));
        assert_eq!(net.path(1, 0).remote_port, port);
        net.send(1, 0, payload(2, 3000)).unwrap();
        net.run(S(1));
        assert_eq!(net.sent_with(1, "DATA").pop().unwrap().to.port(), port);
    }
    assert_eq!((net.hosts[0].received.len(), net.hosts[1].received.len()), (3, 3));
    let stranger = Hand { ip: v4(0, 0), ..Hand::new(1) };
    let packet = stranger.packet(12_345, &|w| w.heartbeat(b"x").unwrap());
    net.inject((v4(0, 0), 666).into(), (v4(0, 1), 9899).into(), &packet);
    assert_eq!(net.path(1, 0).remote_port, 1);
}

#[test]
fn s5_5_r1_an_icmp_message_without_the_right_tag_is_discarded() {
    let all = [
        Unreachable::Port,
        Unreachable::Protocol,
        Unreachable::Host,
        Unreachable::Network,
        Unreachable::TooBig { mtu: 1200 },
    ];
    let tuple = FourTuple { local: (v4(0, 0), 9899).into(), remote: (v4(0, 1), 9899).into() };
    for opening in [false, true] {
        let mut net = over_udp(1, false);
        if opening {
            net.drop_all("INIT");
            net.connect(0);
        } else {
            net.establish();
        }
        let sent = net.sent(0).pop().unwrap();
        let right = Quoted::parse(&sent.bytes[..20]).unwrap();
        let header = |verification_tag, source_port, destination_port| CommonHeader {
            verification_tag: VerificationTag(verification_tag),
            source_port,
            destination_port,
        };
        let wrong = [
            Quoted { header: header(sent.tag ^ 1, PORT, PORT), init: None },
            Quoted { header: header(0, PORT, PORT), init: None },
            Quoted { header: header(0, PORT, PORT), init: Some(VerificationTag(77)) },
            Quoted { header: header(sent.tag, PORT + 1, PORT), ..right },
        ];
        let (mark, states) = (net.log.len(), net.states(0));
        for quoted in wrong {
            for what in all {
                net.hosts[0].endpoint.handle_unreachable(net.now, tuple, what, Some(quoted));
                net.settle();
            }
        }
        assert_eq!((net.closed(0), net.states(0), net.log.len()), (None, states, mark));
    }
}

#[test]
fn s5_5_r2_without_icmp_narrow_and_dead_paths_are_found_out() {
    let config = Config::rfc9260().to_builder().path_mtu_discovery(true).build().unwrap();
    let configs = [config.clone(), config];
    let mut net = Setup { configs, udp: true, ..Setup::default() }.build();
    net.filter(|p| {
        let too_large = p.bytes.len() + 28 > 1300 && p.fragmentation != Fragmentation::Allowed;
        if too_large { Fate::Drop } else { Fate::Pass }
    });
    net.establish();
    net.run(S(60));
    assert!((1273..=1300).contains(&net.a(0).path_mtu(PathId(0)).unwrap().mtu));
    net.send(0, 0, payload(1, 50_000)).unwrap();
    net.run(S(5));
    assert_eq!(net.hosts[1].received.len(), 1);
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(S(900));
    assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
}

#[test]
fn s5_6_r1_packets_over_udp_are_shorter_by_its_header() {
    let largest = |udp| {
        let mut net = Setup { udp, ..Setup::default() }.build();
        net.establish();
        net.send(0, 0, payload(1, 30_000)).unwrap();
        net.run(S(1));
        net.sent_with(0, "DATA").iter().map(|p| p.bytes.len()).max().unwrap()
    };
    assert_eq!(largest(false), largest(true) + 8);
}
