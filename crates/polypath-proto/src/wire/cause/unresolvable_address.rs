//! Unresolvable Address, RFC 9260 3.3.10.5.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |        Cause Code = 5         |         Cause Length          |
//! +-------------------------------+-------------------------------+
//! \     Unresolvable Address: type, length and value              \
//! +---------------------------------------------------------------+
//! ```

use super::{CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;

impl CauseWriter<'_> {
    /// Writes an Unresolvable Address cause with the complete address parameter, without padding.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn unresolvable_address(&mut self, raw: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(cause_code::UNRESOLVABLE_ADDRESS, raw)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, check};

    #[test]
    fn bytes() {
        let raw = &[0, 11, 0, 6, b'a', 0];
        let bytes = [0, 5, 0, 10, 0, 11, 0, 6, b'a', 0];
        check(|c| c.unresolvable_address(raw), Cause::UnresolvableAddress(raw), &bytes);
    }
}
