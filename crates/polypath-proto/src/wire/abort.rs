//! Abort Association (ABORT), RFC 9260 3.3.7.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-------------+-+-------------------------------+
//! |   Type = 6    |  Reserved   |T|            Length             |
//! +---------------+-------------+-+-------------------------------+
//! \                   zero or more Error Causes                   \
//! +---------------------------------------------------------------+
//! ```

use super::cause::{CauseWriter, Causes};
use super::codec::{DoesNotFit, after};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, chunk_type};

/// The T bit of ABORT and SHUTDOWN COMPLETE.
pub(super) const T_BIT: u8 = 0x01;

/// An ABORT chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abort<'a> {
    /// T bit: the verification tag is the one that the sender of this chunk received, because it
    /// knows no better one (RFC 9260 8.5.1).
    pub t_bit: bool,
    /// The reasons; may be empty.
    pub causes: Causes<'a>,
}

impl<'a> Abort<'a> {
    pub(super) fn parse(raw: &'a [u8], flags: u8) -> Self {
        Self { t_bit: flags & T_BIT != 0, causes: Causes::new(after(raw, CHUNK_HEADER_LEN)) }
    }
}

impl PacketWriter<'_> {
    /// Writes an ABORT chunk with the causes that `causes` writes.
    ///
    /// # Errors
    ///
    /// The chunk does not fit, or `causes` returned an error. If `causes` ignores the error of a
    /// cause that does not fit, that cause is omitted.
    pub fn abort(
        &mut self,
        t_bit: bool,
        causes: impl FnOnce(&mut CauseWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        let flags = u8::from(t_bit) * T_BIT;
        self.list(chunk_type::ABORT, flags, [], |space| CauseWriter::fill(space, causes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::super::{Cause, Chunk};

    #[test]
    fn bytes() {
        let bytes = [6, 1, 0, 10, 0, 12, 0, 6, b'n', b'o', 0, 0];
        assert_eq!(chunk_bytes(|w| w.abort(true, |c| c.user_initiated_abort(b"no"))), bytes);
        let Ok(Chunk::Abort(abort)) = only_chunk(&bytes) else { panic!("no ABORT") };
        assert!(abort.t_bit);
        assert!(abort.causes.iter().eq([Ok(Cause::UserInitiatedAbort(b"no"))]));
    }

    #[test]
    fn without_cause() {
        let bytes = [6, 0, 0, 4];
        assert_eq!(chunk_bytes(|w| w.abort(false, |_| Ok(()))), bytes);
        let Ok(Chunk::Abort(abort)) = only_chunk(&bytes) else { panic!("no ABORT") };
        assert!(!abort.t_bit && abort.causes.is_empty());
    }

    #[test]
    fn fits_exactly_or_not_at_all() {
        assert!(writes(12, |w| w.abort(true, |c| c.user_initiated_abort(b"no"))));
        assert!(!writes(11, |w| w.abort(true, |c| c.user_initiated_abort(b"no"))));
        assert!(!writes(3, |w| w.abort(true, |_| Ok(()))));
    }
}
