//! Shutdown Association (SHUTDOWN), Shutdown Acknowledgement (SHUTDOWN ACK) and Shutdown Complete
//! (SHUTDOWN COMPLETE), RFC 9260 3.3.8, 3.3.9 and 3.3.13.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 7    |  Chunk Flags  |          Length = 8           |
//! +---------------+---------------+-------------------------------+
//! |                      Cumulative TSN Ack                       |
//! +---------------------------------------------------------------+
//!
//! +---------------+---------------+-------------------------------+
//! |   Type = 8    |  Chunk Flags  |          Length = 4           |
//! +---------------+---------------+-------------------------------+
//!
//! +---------------+-------------+-+-------------------------------+
//! |   Type = 14   |  Reserved   |T|          Length = 4           |
//! +---------------+-------------+-+-------------------------------+
//! ```

use crate::ids::Tsn;

use super::abort::T_BIT;
use super::chunk_error::ChunkError;
use super::chunk_type;
use super::codec::{DoesNotFit, u32_at};
use super::writer::PacketWriter;

const SHUTDOWN_LEN: usize = 8;

/// A SHUTDOWN chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shutdown {
    /// The last TSN before the first gap, as in a SACK without gap ack blocks.
    pub cumulative_tsn_ack: Tsn,
}

impl Shutdown {
    pub(super) fn parse(raw: &[u8]) -> Result<Self, ChunkError<'_>> {
        let Some(head) = raw.first_chunk::<SHUTDOWN_LEN>() else {
            let ty = chunk_type::SHUTDOWN;
            return Err(ChunkError::TooShort { ty, minimum: SHUTDOWN_LEN, raw });
        };
        Ok(Self { cumulative_tsn_ack: Tsn(u32_at(head, 4)) })
    }
}

/// A SHUTDOWN COMPLETE chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShutdownComplete {
    /// T bit: the verification tag is the one that the sender of this chunk received, because it
    /// knows no better one (RFC 9260 8.5.1).
    pub t_bit: bool,
}

impl ShutdownComplete {
    pub(super) const fn parse(flags: u8) -> Self {
        Self { t_bit: flags & T_BIT != 0 }
    }
}

impl PacketWriter<'_> {
    /// Writes a SHUTDOWN chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn shutdown(&mut self, cumulative_tsn_ack: Tsn) -> Result<(), DoesNotFit> {
        self.typed_chunk(chunk_type::SHUTDOWN, 0, &cumulative_tsn_ack.0.to_be_bytes())
    }

    /// Writes a SHUTDOWN ACK chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn shutdown_ack(&mut self) -> Result<(), DoesNotFit> {
        self.typed_chunk(chunk_type::SHUTDOWN_ACK, 0, &[])
    }

    /// Writes a SHUTDOWN COMPLETE chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn shutdown_complete(&mut self, t_bit: bool) -> Result<(), DoesNotFit> {
        self.typed_chunk(chunk_type::SHUTDOWN_COMPLETE, u8::from(t_bit) * T_BIT, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::*;

    #[test]
    fn shutdown() {
        let bytes = [7, 0, 0, 8, 0x89, 0xab, 0xcd, 0xef];
        let cumulative_tsn_ack = Tsn(0x89ab_cdef);
        assert_eq!(chunk_bytes(|w| w.shutdown(cumulative_tsn_ack)), bytes);
        assert_eq!(only_chunk(&bytes), Ok(Chunk::Shutdown(Shutdown { cumulative_tsn_ack })));
        assert!(!writes(7, |w| w.shutdown(cumulative_tsn_ack)));
        let raw = &[7, 0, 0, 4];
        assert_eq!(only_chunk(raw), Err(ChunkError::TooShort { ty: 7, minimum: 8, raw }));
    }

    #[test]
    fn shutdown_ack() {
        assert_eq!(chunk_bytes(|w| w.shutdown_ack()), [8, 0, 0, 4]);
        assert_eq!(only_chunk(&[8, 0, 0, 4]), Ok(Chunk::ShutdownAck));
        assert!(!writes(3, |w| w.shutdown_ack()));
    }

    #[test]
    fn shutdown_complete() {
        for (t_bit, flags) in [(false, 0), (true, 1)] {
            let bytes = [14, flags, 0, 4];
            let complete = ShutdownComplete { t_bit };
            assert_eq!(chunk_bytes(|w| w.shutdown_complete(t_bit)), bytes);
            assert_eq!(only_chunk(&bytes), Ok(Chunk::ShutdownComplete(complete)));
        }
        assert!(!writes(3, |w| w.shutdown_complete(true)));
    }
}
