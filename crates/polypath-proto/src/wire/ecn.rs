//! Explicit Congestion Notification Echo (ECNE) and Congestion Window Reduced (CWR).
//!
//! RFC 9260 3.2 reserves the chunk types; the chunks are those of RFC 4960 Appendix A.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! | Type = 12, 13 |  Chunk Flags  |          Length = 8           |
//! +---------------+---------------+-------------------------------+
//! |                       Lowest TSN Number                       |
//! +---------------------------------------------------------------+
//! ```

use crate::ids::Tsn;

use super::chunk_error::ChunkError;
use super::chunk_type;
use super::codec::{DoesNotFit, u32_at};
use super::writer::PacketWriter;

const LEN: usize = 8;

/// An ECNE chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ecne {
    /// The lowest TSN of the marked packet.
    pub lowest_tsn: Tsn,
}

/// A CWR chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cwr {
    /// The lowest TSN of the acknowledged ECNE.
    pub lowest_tsn: Tsn,
}

fn lowest_tsn(raw: &[u8], ty: u8) -> Result<Tsn, ChunkError<'_>> {
    match raw.first_chunk::<LEN>() {
        Some(head) => Ok(Tsn(u32_at(head, 4))),
        None => Err(ChunkError::TooShort { ty, minimum: LEN, raw }),
    }
}

impl Ecne {
    pub(super) fn parse(raw: &[u8]) -> Result<Self, ChunkError<'_>> {
        Ok(Self { lowest_tsn: lowest_tsn(raw, chunk_type::ECNE)? })
    }
}

impl Cwr {
    pub(super) fn parse(raw: &[u8]) -> Result<Self, ChunkError<'_>> {
        Ok(Self { lowest_tsn: lowest_tsn(raw, chunk_type::CWR)? })
    }
}

impl PacketWriter<'_> {
    /// Writes an ECNE chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn ecne(&mut self, lowest_tsn: Tsn) -> Result<(), DoesNotFit> {
        self.typed_chunk(chunk_type::ECNE, 0, &lowest_tsn.0.to_be_bytes())
    }

    /// Writes a CWR chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn cwr(&mut self, lowest_tsn: Tsn) -> Result<(), DoesNotFit> {
        self.typed_chunk(chunk_type::CWR, 0, &lowest_tsn.0.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::*;

    #[test]
    fn bytes() {
        let lowest_tsn = Tsn(0x0a0b_0c0d);
        let ecne = [12, 0, 0, 8, 10, 11, 12, 13];
        assert_eq!(chunk_bytes(|w| w.ecne(lowest_tsn)), ecne);
        assert_eq!(only_chunk(&ecne), Ok(Chunk::Ecne(Ecne { lowest_tsn })));
        let cwr = [13, 0, 0, 8, 10, 11, 12, 13];
        assert_eq!(chunk_bytes(|w| w.cwr(lowest_tsn)), cwr);
        assert_eq!(only_chunk(&cwr), Ok(Chunk::Cwr(Cwr { lowest_tsn })));
        assert!(!writes(7, |w| w.ecne(lowest_tsn)));
        assert!(!writes(7, |w| w.cwr(lowest_tsn)));
        for ty in [12, 13] {
            let raw = &[ty, 0, 0, 4];
            assert_eq!(only_chunk(raw), Err(ChunkError::TooShort { ty, minimum: 8, raw }));
        }
    }
}
