//! Random, Chunk List and Requested HMAC Algorithm, RFC 4895 3.1 to 3.3: the parameters with which
//! an endpoint offers AUTH in its INIT or INIT ACK.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |  0x8002, 0x8003 or 0x8004     |            Length             |
//! +-------------------------------+-------------------------------+
//! \     random bytes, chunk types or HMAC identifiers             \
//! +---------------------------------------------------------------+
//! ```

use super::{ParameterWriter, parameter_type};
use crate::wire::codec::{DoesNotFit, U16List};

impl ParameterWriter<'_> {
    /// Writes a Random parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn random(&mut self, random: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::RANDOM, random)
    }

    /// Writes a Chunk List parameter: the chunk types that the sender accepts only if
    /// authenticated.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn chunk_list(&mut self, chunk_types: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::CHUNK_LIST, chunk_types)
    }

    /// Writes a Requested HMAC Algorithm parameter: the HMACs that the sender verifies, preferred
    /// first.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn hmac_algorithms(&mut self, identifiers: &[u16]) -> Result<(), DoesNotFit> {
        self.tlv.element_with(parameter_type::HMAC_ALGORITHMS, |space| {
            U16List::write(identifiers.iter().copied(), space)
        })
    }

    pub(super) fn hmac_algorithm_list(&mut self, list: U16List<'_>) -> Result<(), DoesNotFit> {
        self.typed(parameter_type::HMAC_ALGORITHMS, list.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check, check_malformed};
    use super::*;
    use crate::wire::Action;

    #[test]
    fn bytes() {
        let parameter = Parameter::Random(&[1, 2, 3]);
        check(|p| p.random(&[1, 2, 3]), parameter, &[0x80, 2, 0, 7, 1, 2, 3]);
        assert_eq!(parameter.action(), Action::Skip);
        let raw = &[0x80, 3, 0, 6, 0xc1, 0x80];
        check(|p| p.chunk_list(&[0xc1, 0x80]), Parameter::ChunkList(&[0xc1, 0x80]), raw);
        let list = U16List::from_be_bytes(&[0, 3, 0, 1]).unwrap();
        let raw = &[0x80, 4, 0, 8, 0, 3, 0, 1];
        check(|p| p.hmac_algorithms(&[3, 1]), Parameter::HmacAlgorithms(list), raw);
        check_malformed(&[0x80, 4, 0, 5, 0]);
    }
}
