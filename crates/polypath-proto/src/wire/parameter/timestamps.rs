//! Timestamps: the sender offers to add TIMESTAMP chunks to its packets and to echo the peer's
//! (Caro 2006, retransmission policies, 4.2). They are used if both sides offer them; a peer that
//! does not know the parameter skips it silently (RFC 9260 3.2.1).
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0xbe01         |          Length = 4           |
//! +-------------------------------+-------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes a Timestamps parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn timestamps(&mut self) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::TIMESTAMPS, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};
    use crate::wire::Action;

    #[test]
    fn bytes() {
        check(|p| p.timestamps(), Parameter::Timestamps, &[0xbe, 1, 0, 4]);
        assert_eq!(Parameter::Timestamps.action(), Action::Skip);
    }
}
