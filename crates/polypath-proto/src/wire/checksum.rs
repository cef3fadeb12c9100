//! The CRC32c checksum of a packet, RFC 9260 6.8 and Appendix A.
//!
//! All that the crate knows about how a CRC is computed stands in this file.

use super::COMMON_HEADER_LEN;

/// Where the checksum stands in the common header.
const FIELD: std::ops::Range<usize> = 8..COMMON_HEADER_LEN;

/// The CRC32c of a packet, with zero in the place of its checksum field whatever is there.
///
/// It goes into the packet in little-endian byte order (RFC 9260 Appendix A). Fewer bytes than
/// a common header are summed as they are.
#[inline]
pub fn checksum(packet: &[u8]) -> u32 {
    match (packet.get(..FIELD.start), packet.get(FIELD.end..)) {
        (Some(before), Some(after)) => {
            let crc = crc32c::crc32c(before);
            let crc = crc32c::crc32c_append(crc, &[0; FIELD.end - FIELD.start]);
            crc32c::crc32c_append(crc, after)
        }
        _ => crc32c::crc32c(packet),
    }
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
}
