//! Unrecognized Parameter, RFC 9260 3.2.2, 3.3.3.1.2: an INIT ACK returns the parameters of the
//! INIT that its receiver did not recognize and whose types request a report.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |           Type = 8            |            Length             |
//! +-------------------------------+-------------------------------+
//! \       Unrecognized Parameter: type, length and value          \
//! +---------------------------------------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes an Unrecognized Parameter parameter with the bytes of a complete parameter, without
    /// padding.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn unrecognized_parameter(&mut self, raw: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::UNRECOGNIZED_PARAMETER, raw)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};

    #[test]
    fn bytes() {
        let raw = &[0xc0, 1, 0, 5, 9];
        check(
            |p| p.unrecognized_parameter(raw),
            Parameter::UnrecognizedParameter(raw),
            &[0, 8, 0, 9, 0xc0, 1, 0, 5, 9],
        );
    }
}
