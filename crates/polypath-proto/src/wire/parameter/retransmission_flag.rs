//! Retransmission Flag: the sender offers to set the R bit of DATA in retransmissions, and the R
//! bit of SACK in SACKs that a retransmission caused (Caro 2006, retransmission policies, 4.2). The
//! flag is used if both sides offer it; a peer that does not know the parameter skips it silently
//! (RFC 9260 3.2.1).
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0xbe02         |          Length = 4           |
//! +-------------------------------+-------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes a Retransmission Flag parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn retransmission_flag(&mut self) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::RETRANSMISSION_FLAG, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};
    use crate::wire::Action;

    #[test]
    fn bytes() {
        check(|p| p.retransmission_flag(), Parameter::RetransmissionFlag, &[0xbe, 2, 0, 4]);
        assert_eq!(Parameter::RetransmissionFlag.action(), Action::Skip);
    }
}
