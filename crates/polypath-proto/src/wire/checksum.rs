//! The CRC32c checksum of a packet, RFC 9260 6.8 and Appendix A.
//!
//! This file is the only one that depends on the CRC implementation.

use crc_fast::{CrcAlgorithm, Digest};

use super::COMMON_HEADER_LEN;

/// Offset of the checksum, the last field of the common header.
const FIELD: usize = 8;

/// The CRC32c of a packet, with the checksum field taken as zero.
///
/// A packet contains it in little-endian byte order (RFC 9260 Appendix A). If there are fewer bytes
/// than a common header, the CRC covers them unchanged.
#[inline]
pub fn checksum(packet: &[u8]) -> u32 {
    let mut crc = Digest::new(CrcAlgorithm::Crc32Iscsi);
    if let Some((header, chunks)) = packet.split_first_chunk::<COMMON_HEADER_LEN>() {
        let mut header = *header;
        header[FIELD..].fill(0);
        crc.update(&header);
        crc.update(chunks);
    } else {
        crc.update(packet);
    }
    crc.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // RFC 3720 B.4: 32 bytes of zeros.
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn the_field_counts_as_zero() {
        let mut packet = [0; 32];
        packet[8..12].fill(0xff);
        assert_eq!(checksum(&packet), 0x8a91_36aa);
    }

    /// The definition in RFC 9260 Appendix A, bit by bit, with the polynomial reflected.
    fn by_definition(packet: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for (i, byte) in packet.iter().enumerate() {
            let counts = packet.len() < 12 || !(8..12).contains(&i);
            crc ^= u32::from(if counts { *byte } else { 0 });
            for _ in 0..8 {
                crc = if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0x82f6_3b78 };
            }
        }
        !crc
    }

    #[test]
    fn every_length_and_alignment() {
        let bytes: Vec<u8> =
            (0..9100u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for len in (0..1600).chain([2047, 2048, 2049, 4096, 8191, 9000]) {
            let packet = &bytes[len % 67..][..len];
            assert_eq!(checksum(packet), by_definition(packet), "{len} bytes");
        }
    }
}
