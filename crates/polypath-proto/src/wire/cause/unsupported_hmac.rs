//! Unsupported HMAC Identifier, RFC 4895 4.1.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |       Cause Code = 0x0105     |       Cause Length = 6        |
//! +-------------------------------+-------------------------------+
//! |         HMAC Identifier       |
//! +-------------------------------+
//! ```

use super::{Cause, CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;

pub(super) fn parse(info: &[u8]) -> Option<Cause<'_>> {
    Some(Cause::UnsupportedHmac(u16::from_be_bytes(*info.first_chunk()?)))
}

impl CauseWriter<'_> {
    /// Writes an Unsupported HMAC Identifier cause.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn unsupported_hmac(&mut self, identifier: u16) -> Result<(), DoesNotFit> {
        self.typed(cause_code::UNSUPPORTED_HMAC_IDENTIFIER, &identifier.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;

    #[test]
    fn bytes() {
        check(|c| c.unsupported_hmac(9), Cause::UnsupportedHmac(9), &[1, 5, 0, 6, 0, 9]);
        check_malformed(&[1, 5, 0, 5, 0]);
    }
}
