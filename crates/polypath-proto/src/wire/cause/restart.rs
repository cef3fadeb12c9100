//! Restart of an Association with New Addresses, RFC 9260 3.3.10.11.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |        Cause Code = 11        |    Cause Length = variable    |
//! +-------------------------------+-------------------------------+
//! \           New Address TLVs: address parameters                \
//! +---------------------------------------------------------------+
//! ```

use super::{CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;
use crate::wire::parameter::ParameterWriter;

impl CauseWriter<'_> {
    /// Writes a Restart of an Association with New Addresses cause with the address parameters that
    /// `addresses` writes.
    ///
    /// # Errors
    ///
    /// The cause does not fit, or `addresses` returned an error.
    pub fn restart_with_new_addresses(
        &mut self,
        addresses: impl FnOnce(&mut ParameterWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        self.tlv.element_with(cause_code::RESTART_WITH_NEW_ADDRESSES, |space| {
            ParameterWriter::fill(space, addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, Parameters, check};

    #[test]
    fn bytes() {
        let bytes = [0, 11, 0, 20, 0, 5, 0, 8, 10, 0, 0, 1, 0, 5, 0, 8, 10, 0, 0, 2];
        check(
            |c| {
                c.restart_with_new_addresses(|p| {
                    p.ipv4([10, 0, 0, 1].into())?;
                    p.ipv4([10, 0, 0, 2].into())
                })
            },
            Cause::RestartWithNewAddresses(Parameters::new(&bytes[4..])),
            &bytes,
        );
    }
}
