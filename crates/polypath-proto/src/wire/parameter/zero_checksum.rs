//! Zero Checksum Acceptable: the sender accepts packets with a checksum of zero, because another
//! method detects errors (RFC 9653 4).
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0x8001         |          Length = 8           |
//! +-------------------------------+-------------------------------+
//! |           Error Detection Method Identifier (EDMID)           |
//! +---------------------------------------------------------------+
//! ```

use super::{Parameter, ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

/// Error detection method: SCTP over DTLS (RFC 9653 10.2).
pub(crate) const SCTP_OVER_DTLS: u32 = 1;

pub(super) fn parse<'a>(value: &[u8]) -> Option<Parameter<'a>> {
    let method = value.try_into().ok()?;
    Some(Parameter::ZeroChecksumAcceptable(u32::from_be_bytes(method)))
}

impl ParameterWriter<'_> {
    /// Writes a Zero Checksum Acceptable parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn zero_checksum_acceptable(&mut self, method: u32) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::ZERO_CHECKSUM_ACCEPTABLE, &method.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;
    use crate::wire::Action;

    #[test]
    fn bytes() {
        let parameter = Parameter::ZeroChecksumAcceptable(0x0102_0304);
        let raw = &[0x80, 1, 0, 8, 1, 2, 3, 4];
        check(|p| p.zero_checksum_acceptable(0x0102_0304), parameter, raw);
        check_malformed(&[0x80, 1, 0, 7, 1, 2, 3]);
        assert_eq!(parameter.action(), Action::Skip);
    }
}
