//! Partial SACKs: the sender of the parameter accepts SACKs that leave out gap ack blocks between
//! others if not all fit, and has their flags show that. Such SACKs are sent if both sides offer
//! it; a peer that does not know the parameter skips it silently (RFC 9260 3.2.1).
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0xbe04         |          Length = 4           |
//! +-------------------------------+-------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes a Partial SACKs parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn partial_sacks(&mut self) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::PARTIAL_SACKS, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};
    use crate::wire::Action;

    #[test]
    fn bytes() {
        check(|p| p.partial_sacks(), Parameter::PartialSacks, &[0xbe, 4, 0, 4]);
        assert_eq!(Parameter::PartialSacks.action(), Action::Skip);
    }
}
