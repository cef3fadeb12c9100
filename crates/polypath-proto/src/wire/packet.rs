//! A received packet, RFC 9260 3.

use super::COMMON_HEADER_LEN;
use super::checksum::checksum;
use super::chunk::Chunks;
use super::codec::after;
use super::header::{Checksum, CommonHeader};

/// The datagram is not a valid SCTP packet and must be discarded silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The datagram is shorter than a common header.
    #[error("{len} bytes are too few for an SCTP packet, whose header alone has 12")]
    TooShort {
        /// Bytes of the datagram.
        len: usize,
    },
    /// The sender must pad each chunk to a multiple of four bytes (RFC 9260 3.2), so the length of
    /// every packet is a multiple of four.
    #[error("{len} bytes are not a multiple of 4 as every SCTP packet is")]
    NotPadded {
        /// Bytes of the datagram.
        len: usize,
    },
    /// The packet was corrupted in transit (RFC 9260 6.8).
    #[error("the checksum is {found:#010x} where {computed:#010x} was computed")]
    Checksum {
        /// The checksum in the packet.
        found: u32,
        /// The computed checksum.
        computed: u32,
    },
}

/// A received packet, borrowed from its datagram.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    header: CommonHeader,
    datagram: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks length and checksum of the packet in `datagram`.
    ///
    /// A packet without chunks is accepted; [`Packet::chunks`] is then empty.
    ///
    /// # Errors
    ///
    /// The datagram is too short, its length is not a multiple of four, or its checksum is wrong.
    #[inline]
    pub fn parse(datagram: &'a [u8], checksum: Checksum) -> Result<Self, PacketError> {
        let len = datagram.len();
        let Some(head) = datagram.first_chunk::<COMMON_HEADER_LEN>() else {
            return Err(PacketError::TooShort { len });
        };
        if !len.is_multiple_of(4) {
            return Err(PacketError::NotPadded { len });
        }
        let &[ports_and_tag @ .., c0, c1, c2, c3] = head;
        if checksum == Checksum::Verify {
            // RFC 9260 Appendix A: the CRC is transmitted with its lowest byte first.
            let found = u32::from_le_bytes([c0, c1, c2, c3]);
            let computed = self::checksum(datagram);
            if found != computed {
                return Err(PacketError::Checksum { found, computed });
            }
        }
        Ok(Self { header: CommonHeader::from_bytes(&ports_and_tag), datagram })
    }

    /// Ports and verification tag.
    #[inline]
    pub const fn header(&self) -> CommonHeader {
        self.header
    }

    /// The chunks of the packet, in order.
    #[inline]
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks::new(after(self.datagram, COMMON_HEADER_LEN))
    }

    /// All bytes of the packet.
    pub const fn datagram(&self) -> &'a [u8] {
        self.datagram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerificationTag;

    // A SHUTDOWN ACK; the checksum was computed bit by bit with an independent program.
    const PACKET: [u8; 16] =
        [0x13, 0x88, 0x13, 0x89, 0xde, 0xad, 0xbe, 0xef, 0xcf, 0x4a, 0xd8, 0x3a, 8, 0, 0, 4];

    #[test]
    fn header() {
        let packet = Packet::parse(&PACKET, Checksum::Verify).unwrap();
        let header = CommonHeader {
            source_port: 5000,
            destination_port: 5001,
            verification_tag: VerificationTag(0xdead_beef),
        };
        assert_eq!(packet.header(), header);
        assert_eq!(packet.datagram(), PACKET);
        assert_eq!(packet.chunks().count(), 1);
        assert_eq!(header.to_bytes()[..8], PACKET[..8]);
        assert_eq!(CommonHeader::peek(&PACKET[..8]), Some(header));
        assert_eq!(CommonHeader::peek(&PACKET[..7]), None);
    }

    #[test]
    fn wrong_as_a_whole() {
        for len in 0..12 {
            let error = Packet::parse(&PACKET[..len], Checksum::Ignore).unwrap_err();
            assert_eq!(error, PacketError::TooShort { len });
        }
        for len in 13..16 {
            let error = Packet::parse(&PACKET[..len], Checksum::Ignore).unwrap_err();
            assert_eq!(error, PacketError::NotPadded { len });
        }
        let bare = Packet::parse(&PACKET[..12], Checksum::Ignore).unwrap();
        assert_eq!(bare.chunks().count(), 0);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        for bit in 0..8 * PACKET.len() {
            let mut packet = PACKET;
            packet[bit / 8] ^= 1 << (bit % 8);
            let error = Packet::parse(&packet, Checksum::Verify).unwrap_err();
            assert!(matches!(error, PacketError::Checksum { .. }));
            assert!(Packet::parse(&packet, Checksum::Ignore).is_ok());
        }
    }

    #[test]
    fn the_error_shows_both_checksums() {
        let mut packet = PACKET;
        packet[8..12].fill(0);
        assert_eq!(
            Packet::parse(&packet, Checksum::Verify).unwrap_err().to_string(),
            "the checksum is 0x00000000 where 0x3ad84acf was computed"
        );
    }
}
