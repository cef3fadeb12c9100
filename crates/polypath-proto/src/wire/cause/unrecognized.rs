//! Unrecognized Chunk Type and Unrecognized Parameters, RFC 9260 3.3.10.6 and 3.3.10.8.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |        Cause Code = 6         |         Cause Length          |
//! +-------------------------------+-------------------------------+
//! \       Unrecognized Chunk: type, flags, length and value       \
//! +---------------------------------------------------------------+
//!
//! +-------------------------------+-------------------------------+
//! |        Cause Code = 8         |         Cause Length          |
//! +-------------------------------+-------------------------------+
//! \                   Unrecognized Parameters                     \
//! +---------------------------------------------------------------+
//! ```

use super::{CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;
use crate::wire::parameter::ParameterWriter;

impl CauseWriter<'_> {
    /// Writes an Unrecognized Chunk Type cause with the complete chunk, without padding.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn unrecognized_chunk(&mut self, raw: &[u8]) -> Result<(), DoesNotFit> {
        self.typed(cause_code::UNRECOGNIZED_CHUNK_TYPE, raw)
    }

    /// Writes an Unrecognized Parameters cause with the parameters that `parameters` writes,
    /// usually with [`ParameterWriter::raw`].
    ///
    /// # Errors
    ///
    /// The cause does not fit, or `parameters` returned an error.
    pub fn unrecognized_parameters(
        &mut self,
        parameters: impl FnOnce(&mut ParameterWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        self.tlv.element_with(cause_code::UNRECOGNIZED_PARAMETERS, |space| {
            ParameterWriter::fill(space, parameters)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, Parameters, check};

    #[test]
    fn chunk() {
        let raw = &[0xc1, 0, 0, 5, 7];
        let bytes = [0, 6, 0, 9, 0xc1, 0, 0, 5, 7];
        check(|c| c.unrecognized_chunk(raw), Cause::UnrecognizedChunk(raw), &bytes);
    }

    #[test]
    fn parameters() {
        let bytes = [0, 8, 0, 17, 0xc0, 1, 0, 5, 1, 0, 0, 0, 0xc0, 2, 0, 5, 2];
        check(
            |c| {
                c.unrecognized_parameters(|p| {
                    p.raw(&[0xc0, 1, 0, 5, 1])?;
                    p.raw(&[0xc0, 2, 0, 5, 2])
                })
            },
            Cause::UnrecognizedParameters(Parameters::new(&bytes[4..])),
            &bytes,
        );
    }
}
