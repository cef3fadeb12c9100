//! Supported Extensions, RFC 5061 4.2.7: types of chunks beyond RFC 9260 that the sender knows. Where a
//! type has no parameter of its own, this one offers it (RFC 8260 2.2.1).
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0x8008         |            Length             |
//! +---------------+---------------+---------------+---------------+
//! |  Chunk Type 1 |  Chunk Type 2 |              ...              |
//! +---------------+---------------+-------------------------------+
//! ```

use super::{DoesNotFit, ParameterWriter, parameter_type};

impl ParameterWriter<'_> {
    /// Writes a Supported Extensions parameter with these chunk types.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn supported_extensions(&mut self, types: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::SUPPORTED_EXTENSIONS, types)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};
    use crate::wire::Action;

    #[test]
    fn bytes() {
        let parameter = Parameter::SupportedExtensions(&[64, 194]);
        check(|p| p.supported_extensions(&[64, 194]), parameter, &[0x80, 8, 0, 6, 64, 194]);
        assert_eq!(parameter.action(), Action::Skip);
    }
}
