//! Supported Address Types, RFC 9260 3.3.2.1.5.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |           Type = 12           |            Length             |
//! +-------------------------------+-------------------------------+
//! |        Address Type #1        |        Address Type #2        |
//! +-------------------------------+-------------------------------+
//! \                              ...                              \
//! +---------------------------------------------------------------+
//! ```

use super::{Parameter, ParameterWriter, parameter_type};
use crate::wire::codec::{DoesNotFit, U16List};

pub(super) fn parse(value: &[u8]) -> Option<Parameter<'_>> {
    U16List::from_be_bytes(value).map(Parameter::SupportedAddressTypes)
}

impl ParameterWriter<'_> {
    /// Writes a Supported Address Types parameter.
    ///
    /// The types are those of the address parameters: [`parameter_type::IPV4`] and
    /// [`parameter_type::IPV6`].
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn supported_address_types(&mut self, types: &[u16]) -> Result<(), DoesNotFit> {
        self.tlv.element_with(parameter_type::SUPPORTED_ADDRESS_TYPES, |space| {
            U16List::write(types.iter().copied(), space)
        })
    }

    pub(super) fn supported_address_type_list(
        &mut self,
        types: U16List<'_>,
    ) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::SUPPORTED_ADDRESS_TYPES, types.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;

    #[test]
    fn bytes() {
        let types = [parameter_type::IPV4, parameter_type::IPV6];
        let list = U16List::from_be_bytes(&[0, 5, 0, 6]).unwrap();
        check(
            |p| p.supported_address_types(&types),
            Parameter::SupportedAddressTypes(list),
            &[0, 12, 0, 8, 0, 5, 0, 6],
        );
        let list = U16List::from_be_bytes(&[0, 5]).unwrap();
        check(
            |p| p.supported_address_types(&types[..1]),
            Parameter::SupportedAddressTypes(list),
            &[0, 12, 0, 6, 0, 5],
        );
        check_malformed(&[0, 12, 0, 7, 0, 5, 0]);
    }
}
