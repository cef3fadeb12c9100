//! ECN Capable: a parameter type that RFC 9260 reserves; RFC 4960 Appendix A.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0x8000         |          Length = 4           |
//! +-------------------------------+-------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes an ECN Capable parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn ecn_capable(&mut self) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::ECN_CAPABLE, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};

    #[test]
    fn bytes() {
        check(|p| p.ecn_capable(), Parameter::EcnCapable, &[0x80, 0, 0, 4]);
    }
}
