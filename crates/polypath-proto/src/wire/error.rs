//! Operation Error (ERROR), RFC 9260 3.3.10. Each cause has its own file.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 9    |  Chunk Flags  |            Length             |
//! +---------------+---------------+-------------------------------+
//! \                   one or more Error Causes                    \
//! +---------------------------------------------------------------+
//! ```

use super::cause::{CauseWriter, Causes};
use super::codec::{DoesNotFit, after};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, chunk_type};

/// An ERROR chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorChunk<'a> {
    /// The reported errors. RFC 9260 requires at least one cause; an empty list is accepted.
    pub causes: Causes<'a>,
}

impl<'a> ErrorChunk<'a> {
    pub(super) fn parse(raw: &'a [u8]) -> Self {
        Self { causes: Causes::new(after(raw, CHUNK_HEADER_LEN)) }
    }
}

impl PacketWriter<'_> {
    /// Writes an ERROR chunk with the causes written by `causes`, at least one.
    ///
    /// # Errors
    ///
    /// The chunk does not fit, or `causes` returned an error. If `causes` ignores the error of a
    /// cause that does not fit, that cause is omitted.
    pub fn error(
        &mut self,
        causes: impl FnOnce(&mut CauseWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        self.list(chunk_type::ERROR, 0, [], |space| CauseWriter::fill(space, causes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::super::{Cause, Chunk};
    use super::*;
    use crate::StreamId;

    fn write(c: &mut CauseWriter<'_>) -> Result<(), DoesNotFit> {
        c.unrecognized_chunk(&[0xc1, 0, 0, 5, 1])?;
        c.invalid_stream_identifier(StreamId(3))
    }

    #[test]
    fn bytes() {
        let bytes = [
            9, 0, 0, 24, 0, 6, 0, 9, 0xc1, 0, 0, 5, 1, 0, 0, 0, // padded between the causes
            0, 1, 0, 8, 0, 3, 0, 0,
        ];
        assert_eq!(chunk_bytes(|w| w.error(write)), bytes);
        let Ok(Chunk::Error(error)) = only_chunk(&bytes) else { panic!("no ERROR") };
        assert!(error.causes.iter().eq([
            Ok(Cause::UnrecognizedChunk(&[0xc1, 0, 0, 5, 1])),
            Ok(Cause::InvalidStreamIdentifier(StreamId(3))),
        ]));
    }

    #[test]
    fn fits_exactly_or_not_at_all() {
        assert!(writes(24, |w| w.error(write)));
        assert!(!writes(23, |w| w.error(write)));
        assert!(!writes(16, |w| w.error(write)));
    }
}
