//! Wide SACKs: the sender of the parameter accepts SACKs whose gap ack blocks have offsets of 32
//! bits. RFC 9260 3.3.4 has 16, so that no more than 2^16 TSNs can be acknowledged above the
//! cumulative TSN ack: 95 MB in packets of 1500 bytes, less than two round trips at 1 Gbit/s and
//! 600 ms. Such SACKs are sent if both sides offer it; a peer that does not know the parameter
//! skips it silently (RFC 9260 3.2.1).
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0xbe05         |          Length = 4           |
//! +-------------------------------+-------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes a Wide SACKs parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn wide_sacks(&mut self) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::WIDE_SACKS, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};
    use crate::wire::Action;

    #[test]
    fn bytes() {
        check(|p| p.wide_sacks(), Parameter::WideSacks, &[0xbe, 5, 0, 4]);
        assert_eq!(Parameter::WideSacks.action(), Action::Skip);
    }
}
