//! RFC 8261, SCTP over DTLS: the requirements with MUST on SCTP. `polypath-dtls` tests those on
//! DTLS.

use crate::bytes::chunks;
use crate::common::*;
use polypath_proto::*;

/// Two hosts that discover the path MTU, on a network that drops longer packets without an ICMP
/// message.
fn narrow(mtu: usize) -> Net {
    let config = Config::rfc9260().to_builder().path_mtu_discovery(true).build().unwrap();
    let configs = [config.clone(), config];
    let mut net = Setup { configs, udp: true, ..Setup::default() }.build();
    net.filter(move |p| {
        let too_large = p.bytes.len() + 28 > mtu && p.fragmentation != Fragmentation::Allowed;
        if too_large { Fate::Drop } else { Fate::Pass }
    });
    net.establish();
    net.run(S(60));
    net
}

#[test]
fn s4_r1_the_path_mtu_is_found_without_icmp() {
    for mtu in [1280, 1400, 1500] {
        let mut net = narrow(mtu);
        let found = net.a(0).path_mtu(PathId(0)).unwrap().mtu as usize;
        assert!(found <= mtu && found + 28 > mtu, "{found} of {mtu}");
        let mark = net.log.len();
        net.send(0, 0, payload(1, 30_000)).unwrap();
        net.run(S(2));
        assert_eq!(net.hosts[1].received.len(), 1);
        assert!(net.sent_since(0, mark).iter().filter(|p| p.has("DATA")).all(|p| p.delivered));
    }
}

#[test]
fn s6_2_r1_probes_are_heartbeats_with_padding() {
    let net = narrow(1400);
    let full = |p: &&Sent| p.bytes.len() > 1200 && p.has("HEARTBEAT");
    let (sent, answered) = (net.sent(0), net.sent_with(1, "HEARTBEAT ACK").len());
    let probes: Vec<&Sent> = sent.iter().filter(full).collect();
    assert!(probes.len() > 2 && answered > 2);
    for probe in probes {
        let types: Vec<u16> = chunks(&probe.bytes).iter().map(|c| c.ty).collect();
        assert_eq!((types, probe.fragmentation), (vec![4, 0x84], Fragmentation::Never));
    }
}
