//! User-Initiated Abort and Protocol Violation, RFC 9260 3.3.10.12 and 3.3.10.13.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |     Cause Code = 12, 13       |         Cause Length          |
//! +-------------------------------+-------------------------------+
//! \        Upper Layer Abort Reason / Additional Information      \
//! +---------------------------------------------------------------+
//! ```

use super::{CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;

impl CauseWriter<'_> {
    /// Writes a User-Initiated Abort cause.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn user_initiated_abort(&mut self, reason: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(cause_code::USER_INITIATED_ABORT, reason)
    }

    /// Writes a Protocol Violation cause.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn protocol_violation(&mut self, info: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(cause_code::PROTOCOL_VIOLATION, info)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, check};

    #[test]
    fn user_initiated_abort() {
        let bytes = [0, 12, 0, 7, b'b', b'y', b'e'];
        check(|c| c.user_initiated_abort(b"bye"), Cause::UserInitiatedAbort(b"bye"), &bytes);
        check(|c| c.user_initiated_abort(b""), Cause::UserInitiatedAbort(b""), &[0, 12, 0, 4]);
    }

    #[test]
    fn protocol_violation() {
        let bytes = [0, 13, 0, 6, 1, 2];
        check(|c| c.protocol_violation(&[1, 2]), Cause::ProtocolViolation(&[1, 2]), &bytes);
    }
}
