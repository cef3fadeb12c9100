//! The common header of a packet, RFC 9260 3.1.
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

use super::COMMON_HEADER_LEN;
use super::codec::{u16_at, u32_at};
use crate::ids::VerificationTag;

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
    /// Received packets are parsed by [`Packet::parse`](super::Packet::parse).
    pub fn peek(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk::<8>().map(Self::from_bytes)
    }

    #[inline]
    pub(super) const fn from_bytes(bytes: &[u8; 8]) -> Self {
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
