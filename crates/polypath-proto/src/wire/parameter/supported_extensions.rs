//! Supported Extensions: the chunk types beyond RFC 9260 that the sender supports (RFC 5061 4.2.7).
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0x8008         |            Length             |
//! +---------------+---------------+---------------+---------------+
//! | Chunk Type 1  | Chunk Type 2  |      ...      | Chunk Type N  |
//! +---------------+---------------+---------------+---------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

impl ParameterWriter<'_> {
    /// Writes a Supported Extensions parameter with these chunk types.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn supported_extensions(&mut self, chunk_types: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::SUPPORTED_EXTENSIONS, chunk_types)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check};
    use crate::wire::Action;

    #[test]
    fn bytes() {
        let types = &[130, 64, 192];
        let parameter = Parameter::SupportedExtensions(types);
        check(|p| p.supported_extensions(types), parameter, &[0x80, 8, 0, 7, 130, 64, 192]);
        assert_eq!(parameter.action(), Action::Skip);
    }
}
