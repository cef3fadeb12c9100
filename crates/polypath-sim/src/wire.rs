//! Sizes and bytes of the headers around an SCTP packet, for link times and captures.

use std::net::{IpAddr, SocketAddr};

use polypath_proto::Ecn;

/// Bytes of a UDP header.
pub(crate) const UDP_HEADER: u32 = 8;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_SCTP: u8 = 132;
const HOP_LIMIT: u8 = 64;

/// Bytes of the IP header in front of a packet to this address.
pub(crate) const fn ip_header_size(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
    }
}

/// Appends to `out` the IP header of a packet with this payload, and a UDP header if the ports are
/// not 0.
pub(crate) fn write_headers(
    out: &mut Vec<u8>,
    source: SocketAddr,
    destination: SocketAddr,
    ecn: Ecn,
    payload: &[u8],
) {
    let udp = destination.port() != 0;
    let length = payload.len() as u32 + if udp { UDP_HEADER } else { 0 };
    let protocol = if udp { PROTOCOL_UDP } else { PROTOCOL_SCTP };
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let total = (20 + length) as u16;
            let start = out.len();
            // Version 4, five words; identification 0 with "don't fragment" (RFC 6864 4.1).
            out.extend_from_slice(&[0x45, ecn as u8]);
            out.extend_from_slice(&total.to_be_bytes());
            out.extend_from_slice(&[0, 0, 0x40, 0, HOP_LIMIT, protocol, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let sum = !fold(sum_words(0, &out[start..]));
            out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        }
        (from, to) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            out.extend_from_slice(&[0x60, (ecn as u8) << 4, 0, 0]);
            out.extend_from_slice(&(length as u16).to_be_bytes());
            out.extend_from_slice(&[protocol, HOP_LIMIT]);
            out.extend_from_slice(&octets(from));
            out.extend_from_slice(&octets(to));
        }
    }
    if udp {
        write_udp_header(out, source, destination, payload, length);
    }
}

fn write_udp_header(
    out: &mut Vec<u8>,
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
    length: u32,
) {
    let mut header = [0u8; UDP_HEADER as usize];
    header[..2].copy_from_slice(&source.port().to_be_bytes());
    header[2..4].copy_from_slice(&destination.port().to_be_bytes());
    header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    let mut sum = u64::from(PROTOCOL_UDP) + u64::from(length);
    for ip in [source.ip(), destination.ip()] {
        sum = match ip {
            IpAddr::V4(ip) => sum_words(sum, &ip.octets()),
            IpAddr::V6(ip) => sum_words(sum, &ip.octets()),
        };
    }
    let checksum = match !fold(sum_words(sum_words(sum, &header), payload)) {
        0 => 0xffff, // RFC 768: an all-zero checksum means "none"
        checksum => checksum,
    };
    header[6..].copy_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&header);
}

/// Adds big-endian 16-bit words (RFC 1071), the last one padded with a zero byte.
pub(crate) fn sum_words(start: u64, bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let sum =
        words.by_ref().fold(start, |sum, w| sum + u64::from(u16::from_be_bytes([w[0], w[1]])));
    sum + words.remainder().first().map_or(0, |&b| u64::from(b) << 8)
}

/// Folds a sum of [`sum_words`] into sixteen bits.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_header_sums_to_all_ones() {
        let mut out = Vec::new();
        let (a, b) = ("10.0.0.1:0".parse().unwrap(), "10.0.0.2:0".parse().unwrap());
        write_headers(&mut out, a, b, Ecn::Ect0, &[7; 33]);
        assert_eq!(out.len(), 20);
        assert_eq!(fold(sum_words(0, &out)), 0xffff);
        assert_eq!(u16::from_be_bytes([out[2], out[3]]), 53);
        assert_eq!((out[1], out[9]), (2, 132));
    }

    #[test]
    fn ipv6_and_udp() {
        let mut out = Vec::new();
        let (a, b) = ("[fd00::1]:9899".parse().unwrap(), "[fd00::2]:9900".parse().unwrap());
        write_headers(&mut out, a, b, Ecn::NotEct, &[7; 33]);
        assert_eq!(out.len(), 48);
        assert_eq!((out[6], u16::from_be_bytes([out[4], out[5]])), (17, 41));
    }
}
