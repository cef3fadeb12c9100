//! Errors in single chunks.

use super::chunk_type;
use crate::ids::Tsn;

/// The error in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkError<'a> {
    /// The chunk length is less than a chunk header or exceeds the rest of the packet. The start of
    /// the next chunk is unknown, so this is the last item of [`Chunks`](super::Chunks). RFC 9260
    /// 6.10: a partial chunk must be dropped.
    #[error(
        "a chunk of type {ty} claims a length of {length} bytes where the packet has {}",
        .rest.len()
    )]
    Length {
        /// Chunk type.
        ty: u8,
        /// The chunk length field.
        length: u16,
        /// The rest of the packet from the first byte of the chunk.
        rest: &'a [u8],
    },
    /// The chunk is too short for the fixed part of its type. Other chunks are not affected.
    #[error("a chunk of type {ty} needs {minimum} bytes and has {}", .raw.len())]
    TooShort {
        /// Chunk type.
        ty: u8,
        /// The minimum length of a chunk of this type, in bytes.
        minimum: usize,
        /// The complete chunk without padding.
        raw: &'a [u8],
    },
    /// A DATA or I-DATA chunk without user data, to which the response is an ABORT with the No
    /// User Data cause (RFC 9260 6.2).
    #[error("the chunk of type {ty} with TSN {tsn} has no user data")]
    NoUserData {
        /// Chunk type.
        ty: u8,
        /// The TSN of the chunk.
        tsn: Tsn,
    },
    /// A SACK chunk that is too short for its numbers of gap ack blocks and duplicates.
    #[error(
        "a SACK chunk of {} bytes cannot hold {gaps} gap ack blocks and {duplicates} duplicates",
        .raw.len()
    )]
    SackCounts {
        /// Number of gap ack blocks in the chunk header.
        gaps: u16,
        /// Number of duplicate TSNs in the chunk header.
        duplicates: u16,
        /// The complete chunk without padding.
        raw: &'a [u8],
    },
    /// An NR-SACK chunk that is too short for its numbers of gap ack blocks, NR gap ack blocks and
    /// duplicates.
    #[error(
        "an NR-SACK chunk of {} bytes cannot hold {} gap ack blocks, {} NR gap ack blocks and {} \
         duplicates",
        .raw.len(), .counts[0], .counts[1], .counts[2]
    )]
    NrSackCounts {
        /// These numbers, from the chunk header.
        counts: [u16; 3],
        /// The complete chunk without padding.
        raw: &'a [u8],
    },
    /// A HEARTBEAT or HEARTBEAT ACK chunk that does not start with a Heartbeat Info parameter
    /// (RFC 9260 3.3.5).
    #[error("a chunk of type {ty} has no Heartbeat Info parameter")]
    NoHeartbeatInfo {
        /// Chunk type.
        ty: u8,
        /// The complete chunk without padding.
        raw: &'a [u8],
    },
}

impl ChunkError<'_> {
    /// The type of the chunk.
    pub const fn ty(&self) -> u8 {
        match *self {
            Self::Length { ty, .. }
            | Self::TooShort { ty, .. }
            | Self::NoUserData { ty, .. }
            | Self::NoHeartbeatInfo { ty, .. } => ty,
            Self::SackCounts { .. } => chunk_type::SACK,
            Self::NrSackCounts { .. } => chunk_type::NR_SACK,
        }
    }

    /// Whether the rest of the packet is unreadable.
    pub const fn ends_packet(&self) -> bool {
        matches!(self, Self::Length { .. })
    }
}
