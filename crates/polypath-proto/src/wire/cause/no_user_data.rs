//! No User Data, RFC 9260 3.3.10.9.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |        Cause Code = 9         |       Cause Length = 8        |
//! +-------------------------------+-------------------------------+
//! |                              TSN                              |
//! +---------------------------------------------------------------+
//! ```

use crate::ids::Tsn;

use super::super::codec::u32_at;
use super::{Cause, CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;

pub(super) fn parse(info: &[u8]) -> Option<Cause<'_>> {
    Some(Cause::NoUserData(Tsn(u32_at(info.first_chunk::<4>()?, 0))))
}

impl CauseWriter<'_> {
    /// Writes a No User Data cause with the TSN of the DATA chunk.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn no_user_data(&mut self, tsn: Tsn) -> Result<(), DoesNotFit> {
        self.typed(cause_code::NO_USER_DATA, &tsn.0.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;

    #[test]
    fn bytes() {
        let tsn = Tsn(0x0102_0304);
        let bytes = [0, 9, 0, 8, 1, 2, 3, 4];
        check(|c| c.no_user_data(tsn), Cause::NoUserData(tsn), &bytes);
        check_malformed(&[0, 9, 0, 7, 1, 2, 3]);
    }
}
