//! Invalid Stream Identifier, RFC 9260 3.3.10.1.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |        Cause Code = 1         |       Cause Length = 8        |
//! +-------------------------------+-------------------------------+
//! |       Stream Identifier       |          (Reserved)           |
//! +-------------------------------+-------------------------------+
//! ```

use crate::ids::StreamId;

use super::super::codec::u16_at;
use super::{Cause, CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;

pub(super) fn parse(info: &[u8]) -> Option<Cause<'_>> {
    let fixed = info.first_chunk::<4>()?;
    Some(Cause::InvalidStreamIdentifier(StreamId(u16_at(fixed, 0))))
}

impl CauseWriter<'_> {
    /// Writes an Invalid Stream Identifier cause.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn invalid_stream_identifier(&mut self, stream: StreamId) -> Result<(), DoesNotFit> {
        let [s0, s1] = stream.0.to_be_bytes();
        self.typed(cause_code::INVALID_STREAM_IDENTIFIER, &[s0, s1, 0, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;

    #[test]
    fn bytes() {
        let stream = StreamId(0x0102);
        check(
            |c| c.invalid_stream_identifier(stream),
            Cause::InvalidStreamIdentifier(stream),
            &[0, 1, 0, 8, 1, 2, 0, 0],
        );
        check_malformed(&[0, 1, 0, 6, 1, 2]);
    }
}
