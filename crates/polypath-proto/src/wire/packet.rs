//! The packet and its common header, RFC 9260 3 and 3.1.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          Source Port          |       Destination Port        |
//! +-------------------------------+-------------------------------+
//! |                       Verification Tag                        |
//! +---------------------------------------------------------------+
//! |                           Checksum                            |
//! +---------------------------------------------------------------+
//! ```

use crate::VerificationTag;

use super::codec::{after, u16_at, u32_at};
use super::{COMMON_HEADER_LEN, Chunks, checksum};

/// Ports and verification tag of a packet (RFC 9260 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommonHeader {
    /// The port of the sender.
    pub source_port: u16,
    /// The port of the receiver.
    pub destination_port: u16,
    /// The tag that shows the receiver that the packet belongs to the association.
    pub verification_tag: VerificationTag,
}

impl CommonHeader {
    /// Reads the header at the start of `bytes`, which must have at least eight bytes.
    ///
    /// For packets quoted in ICMP messages (RFC 9260 10), of which nothing else can be checked.
    /// Received packets are parsed by [`Packet::parse`].
    pub fn peek(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk::<8>().map(Self::from_bytes)
    }

    #[inline]
    const fn from_bytes(bytes: &[u8; 8]) -> Self {
        Self {
            source_port: u16_at(bytes, 0),
            destination_port: u16_at(bytes, 2),
            verification_tag: VerificationTag(u32_at(bytes, 4)),
        }
    }

    /// The encoded header, with a checksum of zero.
    #[inline]
    pub(super) const fn to_bytes(self) -> [u8; COMMON_HEADER_LEN] {
        let [s0, s1] = self.source_port.to_be_bytes();
        let [d0, d1] = self.destination_port.to_be_bytes();
        let [v0, v1, v2, v3] = self.verification_tag.0.to_be_bytes();
        [s0, s1, d0, d1, v0, v1, v2, v3, 0, 0, 0, 0]
    }
}

/// How the checksum of a packet is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// A parsed packet must have a correct checksum, a written packet receives one (RFC 9260 6.8).
    #[default]
    Verify,
    /// A parsed packet may have any checksum, a written packet receives zero. For links without bit
    /// errors, such as simulated ones.
    Ignore,
}

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
