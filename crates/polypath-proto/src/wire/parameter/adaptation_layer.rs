//! Adaptation Layer Indication, RFC 5061 4.2.6: a number that the layer above defines.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |         Type = 0xC006         |          Length = 8           |
//! +-------------------------------+-------------------------------+
//! |                  Adaptation Code point                        |
//! +---------------------------------------------------------------+
//! ```

use super::{Parameter, ParameterWriter, parameter_type};
use crate::wire::codec::DoesNotFit;

pub(super) fn parse<'a>(value: &[u8]) -> Option<Parameter<'a>> {
    Some(Parameter::AdaptationLayer(u32::from_be_bytes(value.try_into().ok()?)))
}

impl ParameterWriter<'_> {
    /// Writes an Adaptation Layer Indication.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn adaptation_layer(&mut self, code: u32) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::ADAPTATION_LAYER, &code.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;

    #[test]
    fn bytes() {
        let parameter = Parameter::AdaptationLayer(0x0102_0304);
        check(|p| p.adaptation_layer(0x0102_0304), parameter, &[0xc0, 6, 0, 8, 1, 2, 3, 4]);
        check_malformed(&[0xc0, 6, 0, 7, 1, 2, 3]);
    }
}
