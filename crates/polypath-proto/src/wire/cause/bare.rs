//! The causes without information: Out of Resource, Invalid Mandatory Parameter, and Cookie
//! Received While Shutting Down, RFC 9260 3.3.10.4, 3.3.10.7 and 3.3.10.10.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |     Cause Code = 4, 7, 10     |       Cause Length = 4        |
//! +-------------------------------+-------------------------------+
//! ```

use super::{CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;

impl CauseWriter<'_> {
    /// Writes an Out of Resource cause.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn out_of_resource(&mut self) -> Result<(), DoesNotFit> {
        self.typed(cause_code::OUT_OF_RESOURCE, &[])
    }

    /// Writes an Invalid Mandatory Parameter cause.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn invalid_mandatory_parameter(&mut self) -> Result<(), DoesNotFit> {
        self.typed(cause_code::INVALID_MANDATORY_PARAMETER, &[])
    }

    /// Writes a Cookie Received While Shutting Down cause.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn cookie_received_while_shutting_down(&mut self) -> Result<(), DoesNotFit> {
        self.typed(cause_code::COOKIE_RECEIVED_WHILE_SHUTTING_DOWN, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, Causes, check};

    #[test]
    fn bytes() {
        check(|c| c.out_of_resource(), Cause::OutOfResource, &[0, 4, 0, 4]);
        check(|c| c.invalid_mandatory_parameter(), Cause::InvalidMandatoryParameter, &[0, 7, 0, 4]);
        check(
            |c| c.cookie_received_while_shutting_down(),
            Cause::CookieReceivedWhileShuttingDown,
            &[0, 10, 0, 4],
        );
    }

    #[test]
    fn information_is_ignored() {
        assert!(Causes::new(&[0, 4, 0, 5, 1, 0, 0, 0]).iter().eq([Ok(Cause::OutOfResource)]));
    }
}
