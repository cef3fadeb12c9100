//! State Cookie and Cookie Preservative, RFC 9260 3.3.3.1.1 and 3.3.2.1.3.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |           Type = 7            |            Length             |
//! +-------------------------------+-------------------------------+
//! \                            Cookie                             \
//! +---------------------------------------------------------------+
//!
//! +-------------------------------+-------------------------------+
//! |           Type = 9            |          Length = 8           |
//! +-------------------------------+-------------------------------+
//! |         Suggested Cookie Life-Span Increment (msec.)          |
//! +---------------------------------------------------------------+
//! ```

use super::{Parameter, ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

pub(super) fn parse_preservative(value: &[u8]) -> Option<Parameter<'_>> {
    let ms: [u8; 4] = value.try_into().ok()?;
    Some(Parameter::CookiePreservative(u32::from_be_bytes(ms)))
}

impl ParameterWriter<'_> {
    /// Writes a State Cookie parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn state_cookie(&mut self, cookie: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::STATE_COOKIE, cookie)
    }

    /// Writes a Cookie Preservative parameter that requests an extension by `ms` milliseconds.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn cookie_preservative(&mut self, ms: u32) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::COOKIE_PRESERVATIVE, &ms.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;

    #[test]
    fn state_cookie() {
        let cookie = &[1, 2, 3];
        check(|p| p.state_cookie(cookie), Parameter::StateCookie(cookie), &[0, 7, 0, 7, 1, 2, 3]);
    }

    #[test]
    fn cookie_preservative() {
        check(
            |p| p.cookie_preservative(60_000),
            Parameter::CookiePreservative(60_000),
            &[0, 9, 0, 8, 0, 0, 0xea, 0x60],
        );
        check_malformed(&[0, 9, 0, 4]);
        check_malformed(&[0, 9, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1]);
    }
}
