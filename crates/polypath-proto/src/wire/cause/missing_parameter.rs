//! Missing Mandatory Parameter, RFC 9260 3.3.10.2.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |        Cause Code = 2         |   Cause Length = 8 + N * 2    |
//! +-------------------------------+-------------------------------+
//! |               Number of missing parameters = N                |
//! +-------------------------------+-------------------------------+
//! |     Missing Param Type #1     |     Missing Param Type #2     |
//! +-------------------------------+-------------------------------+
//! \                              ...                              \
//! +---------------------------------------------------------------+
//! ```

use super::super::codec::u32_at;
use super::{Cause, CauseWriter, cause_code};
use crate::wire::codec::{DoesNotFit, U16List};

pub(super) fn parse(info: &[u8]) -> Option<Cause<'_>> {
    let (fixed, types) = info.split_first_chunk::<4>()?;
    let len = usize::try_from(u32_at(fixed, 0)).ok()?.checked_mul(2)?;
    U16List::from_be_bytes(types.get(..len)?).map(Cause::MissingMandatoryParameter)
}

impl CauseWriter<'_> {
    /// Writes a Missing Mandatory Parameter cause with the types of the parameters (see
    /// [`parameter_type`](crate::wire::parameter_type)).
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn missing_mandatory_parameter(&mut self, types: &[u16]) -> Result<(), DoesNotFit> {
        self.missing_parameter_list(types.iter().copied())
    }

    pub(super) fn missing_parameter_list(
        &mut self,
        types: impl ExactSizeIterator<Item = u16>,
    ) -> Result<(), DoesNotFit> {
        self.tlv.element_with(cause_code::MISSING_MANDATORY_PARAMETER, |space| {
            let (count, list) = space.split_first_chunk_mut::<4>().ok_or(DoesNotFit)?;
            *count = u32::try_from(types.len()).map_err(|_| DoesNotFit)?.to_be_bytes();
            Ok(count.len() + U16List::write(types, list)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, check_malformed};
    use super::*;

    #[test]
    fn bytes() {
        let types = U16List::from_be_bytes(&[0, 7, 0, 5, 0, 6]).unwrap();
        check(
            |c| c.missing_mandatory_parameter(&[7, 5, 6]),
            Cause::MissingMandatoryParameter(types),
            &[0, 2, 0, 14, 0, 0, 0, 3, 0, 7, 0, 5, 0, 6],
        );
    }

    #[test]
    fn a_number_that_lies() {
        check_malformed(&[0, 2, 0, 4]);
        check_malformed(&[0, 2, 0, 10, 0, 0, 0, 2, 0, 7]);
        check_malformed(&[0, 2, 0, 10, 0xff, 0xff, 0xff, 0xff, 0, 7]);
        check_malformed(&[0, 2, 0, 10, 0x80, 0, 0, 1, 0, 7]);
    }
}
