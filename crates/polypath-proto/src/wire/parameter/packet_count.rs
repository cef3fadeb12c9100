//! Packet Count: the sender offers to report, in the flags of each SACK, the number of packets with
//! DATA that it acknowledges (delayed acknowledgements for CMT; Iyengar, Amer, Stewart 2006, DAC).
//! The count is used if both sides offer it; a peer that does not know the parameter skips it
//! silently (RFC 9260 3.2.1).
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0xbe03         |          Length = 4           |
//! +-------------------------------+-------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes a Packet Count parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn packet_count(&mut self) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::PACKET_COUNT, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};
    use crate::wire::Action;

    #[test]
    fn bytes() {
        check(|p| p.packet_count(), Parameter::PacketCount, &[0xbe, 3, 0, 4]);
        assert_eq!(Parameter::PacketCount.action(), Action::Skip);
    }
}
