//! The fields of an IP packet that a link reads or changes.

use std::hash::{Hash, Hasher};

use polypath_proto::Ecn;

use crate::random::Fnv;
use crate::wire::{UDP_HEADER, fold, sum_words};

const PROTOCOL_UDP: u8 = 17;
/// Congestion experienced (RFC 3168), and the bits of the ECN field.
const CE: u8 = 3;

/// Offset of the part after the IP header and, in UDP, after the UDP header; the end of the packet
/// if it is shorter than its headers. IPv6 extension headers count as payload.
pub(super) fn payload_offset(packet: &[u8]) -> usize {
    let (header, protocol) = match packet.first().map_or(0, |first| first >> 4) {
        4 => (usize::from(packet[0] & 0xf) * 4, packet.get(9)),
        6 => (40, packet.get(6)),
        _ => (0, None),
    };
    let udp = if protocol == Some(&PROTOCOL_UDP) { UDP_HEADER as usize } else { 0 };
    (header + udp).min(packet.len())
}

/// The flow of a packet, as a number: its addresses, its protocol, and its ports if there is no
/// other header before them.
pub(super) fn flow(packet: &[u8]) -> u64 {
    let (protocol, addresses, ports) = match packet.first().map_or(0, |first| first >> 4) {
        4 => (9, 12..20, usize::from(packet[0] & 0xf) * 4),
        6 => (6, 8..40, 40),
        _ => return 0,
    };
    let mut flow = Fnv::default();
    (packet.get(protocol), packet.get(addresses), packet.get(ports..ports + 4)).hash(&mut flow);
    flow.finish()
}

/// Whether the sender allows the packet to be marked: ECT(0), ECT(1), or marked already.
pub(super) fn allows_mark(packet: &[u8]) -> bool {
    match packet {
        [first, traffic, ..] if first >> 4 == 4 => traffic & CE != 0,
        [first, traffic, ..] if first >> 4 == 6 => traffic & (CE << 4) != 0,
        _ => false,
    }
}

/// Sets the packet's ECN field, and corrects the checksum of an IPv4 header.
pub(super) fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    let ecn = ecn as u8;
    match packet {
        [first, traffic, ..] if *first >> 4 == 4 => {
            *traffic = *traffic & !CE | ecn;
            let header = usize::from(packet[0] & 0xf) * 4;
            if (20..=packet.len()).contains(&header) {
                packet[10..12].fill(0);
                let sum = !fold(sum_words(0, &packet[..header]));
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            }
        }
        [first, traffic, ..] if *first >> 4 == 6 => *traffic = *traffic & !(CE << 4) | ecn << 4,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::wire::write_headers;

    fn packet(from: &str, to: &str, ecn: Ecn) -> Vec<u8> {
        let (mut out, payload) = (Vec::new(), [7; 33]);
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        write_headers(&mut out, address(from), address(to), ecn, &payload);
        out.extend_from_slice(&payload);
        out
    }

    #[test]
    fn the_payload_follows_the_headers() {
        for (from, to, offset) in [
            ("10.0.0.1:1", "10.0.0.2:2", 28),
            ("10.0.0.1:0", "10.0.0.2:0", 20),
            ("[fd00::1]:1", "[fd00::2]:2", 48),
            ("[fd00::1]:0", "[fd00::2]:0", 40),
        ] {
            let packet = packet(from, to, Ecn::NotEct);
            assert_eq!(payload_offset(&packet), offset, "{from}");
            assert_eq!(packet.len() - offset, 33);
        }
    }

    #[test]
    fn packets_of_a_flow_have_its_addresses_and_ports() {
        let flow_of = |from, to| flow(&packet(from, to, Ecn::NotEct));
        let one = flow_of("10.0.0.1:1", "10.0.0.2:2");
        assert_eq!(one, flow(&packet("10.0.0.1:1", "10.0.0.2:2", Ecn::Ect0)));
        for (from, to) in [
            ("10.0.0.1:1", "10.0.0.2:3"),
            ("10.0.0.1:1", "10.0.0.3:2"),
            ("10.0.0.2:2", "10.0.0.1:1"),
            ("[fd00::1]:1", "[fd00::2]:2"),
            ("[fd00::1]:1", "[fd00::2]:3"),
        ] {
            assert_ne!(one, flow_of(from, to), "{from} {to}");
        }
        let six = flow_of("[fd00::1]:1", "[fd00::2]:2");
        assert_ne!(six, flow_of("[fd00::1]:1", "[fd00::2]:3"));
    }

    #[test]
    fn short_and_foreign_packets() {
        for bytes in [&[][..], &[0x45], &[0x4f, 0], &[0x60, 0, 0], &[0x12; 60]] {
            flow(bytes);
            assert!(payload_offset(bytes) <= bytes.len());
            let mut copy = bytes.to_vec();
            set_ecn(&mut copy, Ecn::Ce);
            assert!(!allows_mark(&[0x12; 60]));
        }
    }

    /// RFC 3168 5: the codepoints are 11 and 00, whatever they were, and the IPv4 header checksum
    /// still holds.
    #[test]
    fn a_mark_is_congestion_experienced() {
        for (from, to) in [("10.0.0.1:1", "10.0.0.2:2"), ("[fd00::1]:1", "[fd00::2]:2")] {
            assert!(!allows_mark(&packet(from, to, Ecn::NotEct)));
            let mut marked = packet(from, to, Ecn::Ect0);
            assert!(allows_mark(&marked));
            set_ecn(&mut marked, Ecn::Ce);
            assert_eq!(marked, packet(from, to, Ecn::Ce));
            set_ecn(&mut marked, Ecn::NotEct);
            assert_eq!(marked, packet(from, to, Ecn::NotEct));
        }
    }
}
