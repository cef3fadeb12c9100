//! Why a change of addresses is refused, RFC 5061 4.3; each cause repeats the request.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |  Cause Code = 0xA0 to 0xA4    |         Cause Length          |
//! +-------------------------------+-------------------------------+
//! \                    the request, whole                         \
//! +---------------------------------------------------------------+
//! ```

use super::{CauseWriter, cause_code};
use crate::wire::codec::DoesNotFit;

/// Why a change of addresses is refused (RFC 5061 4.3.1 to 4.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressRefusal {
    /// Request to Delete Last Remaining IP Address.
    LastAddress,
    /// Operation Refused Due to Resource Shortage.
    ResourceShortage,
    /// Request to Delete Source IP Address.
    SourceAddress,
    /// Association Aborted due to illegal ASCONF-ACK.
    IllegalAck,
    /// Request refused - no authorization.
    NoAuthorization,
}

impl AddressRefusal {
    const ALL: [Self; 5] = [
        Self::LastAddress,
        Self::ResourceShortage,
        Self::SourceAddress,
        Self::IllegalAck,
        Self::NoAuthorization,
    ];

    /// The cause code.
    pub const fn code(self) -> u16 {
        match self {
            Self::LastAddress => cause_code::DELETE_LAST_ADDRESS,
            Self::ResourceShortage => cause_code::RESOURCE_SHORTAGE,
            Self::SourceAddress => cause_code::DELETE_SOURCE_ADDRESS,
            Self::IllegalAck => cause_code::ILLEGAL_ASCONF_ACK,
            Self::NoAuthorization => cause_code::NO_AUTHORIZATION,
        }
    }

    /// The refusal with this cause code.
    pub fn of_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.code() == code)
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::LastAddress => "the last address cannot be deleted",
            Self::ResourceShortage => "there is no room for another address",
            Self::SourceAddress => "an address cannot be deleted from itself",
            Self::IllegalAck => "an ASCONF-ACK answered nothing",
            Self::NoAuthorization => "addresses may not be changed",
        }
    }
}

impl CauseWriter<'_> {
    /// Writes the cause of a refusal; `request` is the complete parameter with the request, without
    /// padding.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn address_refused(
        &mut self,
        refusal: AddressRefusal,
        request: &[u8],
    ) -> Result<(), DoesNotFit> {
        self.typed(refusal.code(), request)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, check};
    use super::*;

    #[test]
    fn bytes() {
        for (i, refusal) in AddressRefusal::ALL.into_iter().enumerate() {
            let raw = [0, 0xa0 + i as u8, 0, 6, 1, 2];
            let cause = Cause::AddressRefused { refusal, request: &[1, 2] };
            check(|c| c.address_refused(refusal, &[1, 2]), cause, &raw);
            assert_eq!(AddressRefusal::of_code(cause.code()), Some(refusal));
        }
        assert_eq!(AddressRefusal::of_code(0xa5), None);
    }
}
