//! Padding (PAD), RFC 4820 3: extends a packet to a size that its sender chooses. A receiver skips
//! it, even one that does not know its type.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 0x84  |   Flags = 0   |             Length            |
//! +---------------+---------------+-------------------------------+
//! \                         Padding Data                          \
//! +---------------------------------------------------------------+
//! ```

use super::codec::{DoesNotFit, after};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, chunk_type};

/// A PAD chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pad<'a> {
    /// Meaningless bytes.
    pub padding: &'a [u8],
}

impl<'a> Pad<'a> {
    pub(super) fn parse(raw: &'a [u8]) -> Self {
        Self { padding: after(raw, CHUNK_HEADER_LEN) }
    }
}

impl PacketWriter<'_> {
    /// Writes a PAD chunk with `bytes` bytes of padding.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn pad(&mut self, bytes: usize) -> Result<(), DoesNotFit> {
        self.reserve(chunk_type::PAD, 0, bytes)?.fill(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::super::{Action, Chunk};
    use super::*;

    #[test]
    fn bytes() {
        let raw = [0x84, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(chunk_bytes(|w| w.pad(5)), raw);
        assert_eq!(only_chunk(&raw), Ok(Chunk::Pad(Pad { padding: &[0; 5] })));
        assert_eq!(chunk_bytes(|w| w.pad(0)), [0x84, 0, 0, 4]);
        assert!(!writes(11, |w| w.pad(5)));
        assert_eq!(Action::of_chunk(0x84), Action::Skip);
    }
}
