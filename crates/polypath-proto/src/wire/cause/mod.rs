//! The error causes of ABORT and ERROR chunks, RFC 9260 3.3.10.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          Cause Code           |         Cause Length          |
//! +-------------------------------+-------------------------------+
//! \                  Cause-Specific Information                   \
//! +---------------------------------------------------------------+
//! ```

mod abort_reason;
mod address_refused;
mod bare;
mod display;
mod invalid_stream;
mod missing_parameter;
mod no_user_data;
mod restart;
mod stale_cookie;
mod unrecognized;
mod unresolvable_address;
mod unsupported_hmac;

pub use self::address_refused::AddressRefusal;

use std::fmt;

use crate::ids::{StreamId, Tsn};

use super::codec::{DoesNotFit, TlvWriter, U16List};
use super::parameter::Parameters;
use super::tlv::{Element, Elements, Tlv};

/// The cause codes of RFC 9260 3.3.10.
pub mod cause_code {
    /// Invalid Stream Identifier (3.3.10.1).
    pub const INVALID_STREAM_IDENTIFIER: u16 = 1;
    /// Missing Mandatory Parameter (3.3.10.2).
    pub const MISSING_MANDATORY_PARAMETER: u16 = 2;
    /// Stale Cookie (3.3.10.3).
    pub const STALE_COOKIE: u16 = 3;
    /// Out of Resource (3.3.10.4).
    pub const OUT_OF_RESOURCE: u16 = 4;
    /// Unresolvable Address (3.3.10.5).
    pub const UNRESOLVABLE_ADDRESS: u16 = 5;
    /// Unrecognized Chunk Type (3.3.10.6).
    pub const UNRECOGNIZED_CHUNK_TYPE: u16 = 6;
    /// Invalid Mandatory Parameter (3.3.10.7).
    pub const INVALID_MANDATORY_PARAMETER: u16 = 7;
    /// Unrecognized Parameters (3.3.10.8).
    pub const UNRECOGNIZED_PARAMETERS: u16 = 8;
    /// No User Data (3.3.10.9).
    pub const NO_USER_DATA: u16 = 9;
    /// Cookie Received While Shutting Down (3.3.10.10).
    pub const COOKIE_RECEIVED_WHILE_SHUTTING_DOWN: u16 = 10;
    /// Restart of an Association with New Addresses (3.3.10.11).
    pub const RESTART_WITH_NEW_ADDRESSES: u16 = 11;
    /// User-Initiated Abort (3.3.10.12).
    pub const USER_INITIATED_ABORT: u16 = 12;
    /// Protocol Violation (3.3.10.13).
    pub const PROTOCOL_VIOLATION: u16 = 13;
    /// Request to Delete Last Remaining IP Address (RFC 5061 4.3.1).
    pub const DELETE_LAST_ADDRESS: u16 = 0xa0;
    /// Operation Refused Due to Resource Shortage (RFC 5061 4.3.2).
    pub const RESOURCE_SHORTAGE: u16 = 0xa1;
    /// Request to Delete Source IP Address (RFC 5061 4.3.3).
    pub const DELETE_SOURCE_ADDRESS: u16 = 0xa2;
    /// Association Aborted due to illegal ASCONF-ACK (RFC 5061 4.3.4).
    pub const ILLEGAL_ASCONF_ACK: u16 = 0xa3;
    /// Request refused - no authorization (RFC 5061 4.3.5).
    pub const NO_AUTHORIZATION: u16 = 0xa4;
    /// Unsupported HMAC Identifier (RFC 4895 4.1).
    pub const UNSUPPORTED_HMAC_IDENTIFIER: u16 = 0x0105;

    /// The name of a cause code, as in its RFC.
    pub const fn name(code: u16) -> Option<&'static str> {
        Some(match code {
            INVALID_STREAM_IDENTIFIER => "Invalid Stream Identifier",
            MISSING_MANDATORY_PARAMETER => "Missing Mandatory Parameter",
            STALE_COOKIE => "Stale Cookie",
            OUT_OF_RESOURCE => "Out of Resource",
            UNRESOLVABLE_ADDRESS => "Unresolvable Address",
            UNRECOGNIZED_CHUNK_TYPE => "Unrecognized Chunk Type",
            INVALID_MANDATORY_PARAMETER => "Invalid Mandatory Parameter",
            UNRECOGNIZED_PARAMETERS => "Unrecognized Parameters",
            NO_USER_DATA => "No User Data",
            COOKIE_RECEIVED_WHILE_SHUTTING_DOWN => "Cookie Received While Shutting Down",
            RESTART_WITH_NEW_ADDRESSES => "Restart of an Association with New Addresses",
            USER_INITIATED_ABORT => "User-Initiated Abort",
            PROTOCOL_VIOLATION => "Protocol Violation",
            DELETE_LAST_ADDRESS => "Request to Delete Last Remaining IP Address",
            RESOURCE_SHORTAGE => "Operation Refused Due to Resource Shortage",
            DELETE_SOURCE_ADDRESS => "Request to Delete Source IP Address",
            ILLEGAL_ASCONF_ACK => "Association Aborted due to illegal ASCONF-ACK",
            NO_AUTHORIZATION => "Request refused - no authorization",
            UNSUPPORTED_HMAC_IDENTIFIER => "Unsupported HMAC Identifier",
            _ => return None,
        })
    }
}

/// One error cause.
///
/// Its `Display` describes the reported error in plain words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause<'a> {
    /// A DATA chunk arrived for a stream that does not exist.
    InvalidStreamIdentifier(StreamId),
    /// An INIT or INIT ACK lacks parameters of these types.
    MissingMandatoryParameter(U16List<'a>),
    /// A state cookie arrived after its lifespan.
    StaleCookie {
        /// Microseconds since the end of the lifespan; zero if the sender does not report them.
        staleness_us: u32,
    },
    /// The sender lacks memory or other resources.
    OutOfResource,
    /// An address parameter (type, length and value) cannot be used.
    UnresolvableAddress(&'a [u8]),
    /// A chunk (type, flags, length and value) was not recognized.
    UnrecognizedChunk(&'a [u8]),
    /// A mandatory parameter has an invalid value.
    InvalidMandatoryParameter,
    /// Parameters of an INIT ACK were not recognized.
    UnrecognizedParameters(Parameters<'a>),
    /// The DATA chunk with this TSN had no user data.
    NoUserData(Tsn),
    /// A COOKIE ECHO arrived while the association was shutting down.
    CookieReceivedWhileShuttingDown,
    /// An INIT for an existing association listed addresses that the association does not have.
    RestartWithNewAddresses(Parameters<'a>),
    /// The peer's application aborted the association; the reason is usually text.
    UserInitiatedAbort(&'a [u8]),
    /// A protocol violation that no other cause describes; the information is usually text.
    ProtocolViolation(&'a [u8]),
    /// A change of addresses is refused.
    AddressRefused {
        /// The reason.
        refusal: AddressRefusal,
        /// The complete parameter with the request.
        request: &'a [u8],
    },
    /// An AUTH chunk used an HMAC that its receiver has not listed.
    UnsupportedHmac(u16),
    /// A cause with an unknown code.
    Unknown {
        /// Cause code.
        code: u16,
        /// The complete cause: code, length and information, without padding.
        raw: &'a [u8],
    },
}

impl<'a> Element<'a> for Cause<'a> {
    type Error = CauseError;

    fn parse(tlv: Tlv<'a>) -> Result<Self, CauseError> {
        let info = tlv.value();
        match tlv.ty() {
            cause_code::INVALID_STREAM_IDENTIFIER => invalid_stream::parse(info),
            cause_code::MISSING_MANDATORY_PARAMETER => missing_parameter::parse(info),
            cause_code::STALE_COOKIE => stale_cookie::parse(info),
            cause_code::OUT_OF_RESOURCE => Some(Self::OutOfResource),
            cause_code::UNRESOLVABLE_ADDRESS => Some(Self::UnresolvableAddress(info)),
            cause_code::UNRECOGNIZED_CHUNK_TYPE => Some(Self::UnrecognizedChunk(info)),
            cause_code::INVALID_MANDATORY_PARAMETER => Some(Self::InvalidMandatoryParameter),
            cause_code::UNRECOGNIZED_PARAMETERS => {
                Some(Self::UnrecognizedParameters(Parameters::new(info)))
            }
            cause_code::NO_USER_DATA => no_user_data::parse(info),
            cause_code::COOKIE_RECEIVED_WHILE_SHUTTING_DOWN => {
                Some(Self::CookieReceivedWhileShuttingDown)
            }
            cause_code::RESTART_WITH_NEW_ADDRESSES => {
                Some(Self::RestartWithNewAddresses(Parameters::new(info)))
            }
            cause_code::USER_INITIATED_ABORT => Some(Self::UserInitiatedAbort(info)),
            cause_code::PROTOCOL_VIOLATION => Some(Self::ProtocolViolation(info)),
            cause_code::UNSUPPORTED_HMAC_IDENTIFIER => unsupported_hmac::parse(info),
            code => Some(match AddressRefusal::of_code(code) {
                Some(refusal) => Self::AddressRefused { refusal, request: info },
                None => Self::Unknown { code, raw: tlv.raw },
            }),
        }
        .ok_or_else(|| CauseError::Malformed { code: tlv.ty(), len: tlv.raw.len() })
    }

    fn bad_length(_: &'a [u8]) -> CauseError {
        CauseError::Length
    }
}

impl Cause<'_> {
    /// The cause code (see [`cause_code`]).
    pub const fn code(&self) -> u16 {
        match *self {
            Self::InvalidStreamIdentifier(_) => cause_code::INVALID_STREAM_IDENTIFIER,
            Self::MissingMandatoryParameter(_) => cause_code::MISSING_MANDATORY_PARAMETER,
            Self::StaleCookie { .. } => cause_code::STALE_COOKIE,
            Self::OutOfResource => cause_code::OUT_OF_RESOURCE,
            Self::UnresolvableAddress(_) => cause_code::UNRESOLVABLE_ADDRESS,
            Self::UnrecognizedChunk(_) => cause_code::UNRECOGNIZED_CHUNK_TYPE,
            Self::InvalidMandatoryParameter => cause_code::INVALID_MANDATORY_PARAMETER,
            Self::UnrecognizedParameters(_) => cause_code::UNRECOGNIZED_PARAMETERS,
            Self::NoUserData(_) => cause_code::NO_USER_DATA,
            Self::CookieReceivedWhileShuttingDown => {
                cause_code::COOKIE_RECEIVED_WHILE_SHUTTING_DOWN
            }
            Self::RestartWithNewAddresses(_) => cause_code::RESTART_WITH_NEW_ADDRESSES,
            Self::UserInitiatedAbort(_) => cause_code::USER_INITIATED_ABORT,
            Self::ProtocolViolation(_) => cause_code::PROTOCOL_VIOLATION,
            Self::AddressRefused { refusal, .. } => refusal.code(),
            Self::UnsupportedHmac(_) => cause_code::UNSUPPORTED_HMAC_IDENTIFIER,
            Self::Unknown { code, .. } => code,
        }
    }
}

/// The error in one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CauseError {
    /// The cause length is less than four or exceeds the rest of the chunk. The start of the next
    /// cause is unknown, so this is the last item of [`Causes`].
    #[error("an error cause has a length that does not fit into its chunk")]
    Length,
    /// The information is too short for its code. Other causes are not affected.
    #[error("an error cause of code {code} cannot have a length of {len} bytes")]
    Malformed {
        /// Cause code.
        code: u16,
        /// Bytes of the cause, including code and length.
        len: usize,
    },
}

/// A list of causes, borrowed from a packet; iterate it to parse them one by one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Causes<'a>(&'a [u8]);

impl<'a> Causes<'a> {
    /// The causes in `bytes`, not yet checked.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The causes, in order.
    pub const fn iter(&self) -> CauseIter<'a> {
        CauseIter::new(self.0)
    }

    /// Whether every cause has a length that fits into the chunk.
    pub fn is_complete(&self) -> bool {
        self.iter().all(|cause| cause != Err(CauseError::Length))
    }

    /// Whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of the list.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> IntoIterator for Causes<'a> {
    type Item = Result<Cause<'a>, CauseError>;
    type IntoIter = CauseIter<'a>;

    fn into_iter(self) -> CauseIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The causes of a list, in order.
///
/// A malformed cause with a valid length is an `Err`, and the next item is the cause after it.
/// After [`CauseError::Length`] there is no further item.
pub type CauseIter<'a> = Elements<'a, Cause<'a>>;

/// Writes causes into an ABORT or ERROR chunk; see
/// [`PacketWriter::abort`](super::PacketWriter::abort).
///
/// A cause that does not fit leaves the list unchanged. The method for each cause is in the cause's
/// file.
#[derive(Debug)]
pub struct CauseWriter<'b> {
    tlv: TlvWriter<'b>,
}

impl<'b> CauseWriter<'b> {
    /// Writes a list into `space` and returns its length.
    pub(super) fn fill(
        space: &'b mut [u8],
        causes: impl FnOnce(&mut Self) -> Result<(), DoesNotFit>,
    ) -> Result<usize, DoesNotFit> {
        let mut writer = Self { tlv: TlvWriter::new(space) };
        causes(&mut writer)?;
        Ok(writer.tlv.len())
    }

    /// Maximum length of the information of one more cause, in bytes.
    pub fn remaining(&self) -> usize {
        self.tlv.remaining()
    }

    /// Writes any cause.
    ///
    /// # Errors
    ///
    /// The cause does not fit, or its `raw` bytes are not exactly one cause.
    pub fn cause(&mut self, cause: &Cause<'_>) -> Result<(), DoesNotFit> {
        match *cause {
            Cause::InvalidStreamIdentifier(stream) => self.invalid_stream_identifier(stream),
            Cause::MissingMandatoryParameter(types) => self.missing_parameter_list(types.iter()),
            Cause::StaleCookie { staleness_us } => self.stale_cookie(staleness_us),
            Cause::OutOfResource => self.out_of_resource(),
            Cause::UnresolvableAddress(raw) => self.unresolvable_address(raw),
            Cause::UnrecognizedChunk(raw) => self.unrecognized_chunk(raw),
            Cause::InvalidMandatoryParameter => self.invalid_mandatory_parameter(),
            Cause::UnrecognizedParameters(list) => self.unrecognized_parameters(|p| p.append(list)),
            Cause::NoUserData(tsn) => self.no_user_data(tsn),
            Cause::CookieReceivedWhileShuttingDown => self.cookie_received_while_shutting_down(),
            Cause::RestartWithNewAddresses(list) => {
                self.restart_with_new_addresses(|p| p.append(list))
            }
            Cause::UserInitiatedAbort(reason) => self.user_initiated_abort(reason),
            Cause::ProtocolViolation(info) => self.protocol_violation(info),
            Cause::AddressRefused { refusal, request } => self.address_refused(refusal, request),
            Cause::UnsupportedHmac(identifier) => self.unsupported_hmac(identifier),
            Cause::Unknown { raw, .. } => self.raw(raw),
        }
    }

    /// Writes an encoded cause: code, length and information, without padding.
    ///
    /// # Errors
    ///
    /// The cause does not fit, or its length field differs from the number of bytes.
    pub fn raw(&mut self, raw: &[u8]) -> Result<(), DoesNotFit> {
        self.tlv.raw(raw)
    }

    /// Writes a cause of any code and information.
    ///
    /// # Errors
    ///
    /// The cause does not fit.
    pub fn typed(&mut self, code: u16, info: &[u8]) -> Result<(), DoesNotFit> {
        self.tlv.element(code, &[info])
    }

    /// Writes an encoded list of causes.
    ///
    /// # Errors
    ///
    /// The list does not fit.
    pub fn append(&mut self, causes: Causes<'_>) -> Result<(), DoesNotFit> {
        self.tlv.append(causes.as_bytes())
    }
}

/// Test helper: writes a cause, compares its bytes, and parses it again.
#[cfg(test)]
fn check(
    write: impl Fn(&mut CauseWriter<'_>) -> Result<(), DoesNotFit>,
    cause: Cause<'_>,
    bytes: &[u8],
) {
    for room in 0..bytes.len() {
        assert_eq!(CauseWriter::fill(&mut vec![0; room], &write), Err(DoesNotFit));
    }
    let mut buf = vec![0xff; bytes.len()];
    assert_eq!(CauseWriter::fill(&mut buf, &write), Ok(bytes.len()));
    assert_eq!(buf, bytes);
    buf.fill(0xff);
    assert_eq!(CauseWriter::fill(&mut buf, |c| c.cause(&cause)), Ok(bytes.len()));
    assert_eq!(buf, bytes);
    assert!(Causes::new(bytes).iter().eq([Ok(cause)]));
    assert_eq!(cause.code().to_be_bytes(), bytes[..2]);
}

/// Test helper: checks that `bytes` is malformed and that the cause after it is found.
#[cfg(test)]
fn check_malformed(bytes: &[u8]) {
    let mut list = bytes.to_vec();
    list.resize(super::codec::padded(bytes.len()), 0);
    list.extend([0, 4, 0, 4]);
    let error =
        CauseError::Malformed { code: u16::from_be_bytes([bytes[0], bytes[1]]), len: bytes.len() };
    assert!(Causes::new(&list).iter().eq([Err(error), Ok(Cause::OutOfResource)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown() {
        let raw = &[0, 99, 0, 5, 9];
        let cause = Cause::Unknown { code: 99, raw };
        check(|c| c.raw(raw), cause, raw);
        check(|c| c.typed(99, &[9]), cause, raw);
        check(|c| c.append(Causes::new(raw)), cause, raw);
        for raw in [&[][..], &[0, 99, 0], &[0, 99, 0, 3], &[0, 99, 0, 5], &[0, 99, 0, 4, 0]] {
            assert_eq!(CauseWriter::fill(&mut [0; 16], |c| c.raw(raw)), Err(DoesNotFit));
        }
    }

    #[test]
    fn a_bad_length_ends_the_list() {
        let causes = Causes::new(&[0, 4, 0, 4, 0, 12, 0, 9, 0, 4, 0, 4]);
        assert!(causes.into_iter().eq([Ok(Cause::OutOfResource), Err(CauseError::Length)]));
    }

    #[test]
    fn every_code_has_a_name() {
        for code in 1..=13 {
            assert!(cause_code::name(code).is_some());
        }
        assert_eq!(cause_code::name(0), None);
        assert_eq!(cause_code::name(14), None);
    }

    #[test]
    fn shows_its_causes() {
        let causes = Causes::new(&[0, 4, 0, 4, 0, 3, 0, 4]);
        assert_eq!(
            format!("{causes:?}"),
            "[Ok(OutOfResource), Err(Malformed { code: 3, len: 4 })]"
        );
    }
}
