//! Forward-TSN-Supported, RFC 3758 3.1: the sender accepts FORWARD TSN chunks, and may send them.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0xc000         |          Length = 4           |
//! +-------------------------------+-------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes a Forward-TSN-Supported parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn forward_tsn_supported(&mut self) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::FORWARD_TSN_SUPPORTED, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};
    use crate::wire::Action;

    #[test]
    fn bytes() {
        let parameter = Parameter::ForwardTsnSupported;
        check(|p| p.forward_tsn_supported(), parameter, &[0xc0, 0, 0, 4]);
        assert_eq!(parameter.action(), Action::SkipAndReport);
    }
}
