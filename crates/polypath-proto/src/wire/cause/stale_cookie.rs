//! Stale Cookie, RFC 9260 3.3.10.3.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |        Cause Code = 3         |       Cause Length = 8        |
//! +-------------------------------+-------------------------------+
//! |                 Measure of Staleness (usec.)                  |
//! +---------------------------------------------------------------+
//! ```

use super::super::codec::u32_at;
use super::{Cause, CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;

pub(super) fn parse(info: &[u8]) -> Option<Cause<'_>> {
    Some(Cause::StaleCookie { staleness_us: u32_at(info.first_chunk::<4>()?, 0) })
}

impl CauseWriter<'_> {
    /// Writes a Stale Cookie cause: microseconds between the cookie's expiry and its arrival.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn stale_cookie(&mut self, staleness_us: u32) -> Result<(), DoesNotFit> {
        self.typed(cause_code::STALE_COOKIE, &staleness_us.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;

    #[test]
    fn bytes() {
        let staleness_us = 1_000_000;
        check(
            |c| c.stale_cookie(staleness_us),
            Cause::StaleCookie { staleness_us },
            &[0, 3, 0, 8, 0, 0x0f, 0x42, 0x40],
        );
        check_malformed(&[0, 3, 0, 4]);
    }
}
