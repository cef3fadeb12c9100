//! Re-configuration (RE-CONFIG), RFC 6525 3.1 and 4: requests to reset or add streams, and the
//! responses to them.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 130   |  Chunk Flags  |         Chunk Length          |
//! +---------------+---------------+-------------------------------+
//! \                  Re-configuration Parameter                   \
//! +---------------------------------------------------------------+
//! \            Re-configuration Parameter (optional)              \
//! +---------------------------------------------------------------+
//! ```

use std::fmt;

use crate::ids::Tsn;

use super::codec::{DoesNotFit, TlvWriter, U16List, after, u16_at, u32_at};
use super::parameter::ParameterError;
use super::tlv::{Element, Elements, Tlv};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, chunk_type};

/// The parameter types of RFC 6525 4.
pub mod reconfig_type {
    /// Outgoing SSN Reset Request (4.1).
    pub const OUTGOING_RESET: u16 = 13;
    /// Incoming SSN Reset Request (4.2).
    pub const INCOMING_RESET: u16 = 14;
    /// SSN/TSN Reset Request (4.3).
    pub const ASSOCIATION_RESET: u16 = 15;
    /// Re-configuration Response (4.4).
    pub const RESPONSE: u16 = 16;
    /// Add Outgoing Streams Request (4.5).
    pub const ADD_OUTGOING: u16 = 17;
    /// Add Incoming Streams Request (4.6).
    pub const ADD_INCOMING: u16 = 18;
}

/// The results of a Re-configuration Response (RFC 6525 4.4).
pub mod reconfig_result {
    /// Success - Nothing to do.
    pub const NOTHING_TO_DO: u32 = 0;
    /// Success - Performed.
    pub const PERFORMED: u32 = 1;
    /// Denied.
    pub const DENIED: u32 = 2;
    /// Error - Wrong SSN: there is no such stream.
    pub const WRONG_SSN: u32 = 3;
    /// Error - Request already in progress.
    pub const ALREADY_IN_PROGRESS: u32 = 4;
    /// Error - Bad Sequence Number.
    pub const BAD_SEQUENCE_NUMBER: u32 = 5;
    /// In progress: the request must be repeated.
    pub const IN_PROGRESS: u32 = 6;
}

/// A RE-CONFIG chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReConfig<'a> {
    /// One or two requests and responses, not yet checked.
    pub parameters: ReconfigParameters<'a>,
}

/// A request, or the response to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigParameter<'a> {
    /// The sender requests that the sequence numbers of its own streams restart.
    OutgoingReset {
        /// Re-configuration request sequence number.
        request: u32,
        /// The peer's request that this one answers, or otherwise the peer's last request.
        response: u32,
        /// The last TSN assigned before the reset.
        last_tsn: Tsn,
        /// The streams; empty for all.
        streams: U16List<'a>,
    },
    /// The sender requests that the receiver reset its own streams.
    IncomingReset {
        /// Re-configuration request sequence number.
        request: u32,
        /// The streams; empty for all.
        streams: U16List<'a>,
    },
    /// The sender requests that all stream sequence numbers and TSNs restart in both directions.
    AssociationReset {
        /// Re-configuration request sequence number.
        request: u32,
    },
    /// The response to a request.
    Response {
        /// The request's sequence number.
        response: u32,
        /// The result; see [`reconfig_result`].
        result: u32,
        /// For an SSN/TSN reset: the next TSN of this response's sender, and that of its receiver.
        next_tsns: Option<(Tsn, Tsn)>,
    },
    /// The sender requests more outgoing streams.
    AddOutgoing {
        /// Re-configuration request sequence number.
        request: u32,
        /// Number of streams to add.
        streams: u16,
    },
    /// The sender requests that the receiver add outgoing streams.
    AddIncoming {
        /// Re-configuration request sequence number.
        request: u32,
        /// Number of streams to add.
        streams: u16,
    },
    /// A parameter of another type. All of them request to stop processing (RFC 6525 4).
    Unknown {
        /// Parameter type.
        ty: u16,
        /// The complete parameter without padding.
        raw: &'a [u8],
    },
}

impl<'a> Element<'a> for ReconfigParameter<'a> {
    type Error = ParameterError;

    fn parse(tlv: Tlv<'a>) -> Result<Self, ParameterError> {
        let ty = tlv.ty();
        Self::of(ty, tlv.value(), tlv.raw)
            .ok_or(ParameterError::Malformed { ty, len: tlv.raw.len() })
    }

    fn bad_length(_: &'a [u8]) -> ParameterError {
        ParameterError::Length
    }
}

impl<'a> ReconfigParameter<'a> {
    fn of(ty: u16, value: &'a [u8], raw: &'a [u8]) -> Option<Self> {
        Some(match ty {
            reconfig_type::OUTGOING_RESET => {
                let head = value.first_chunk::<12>()?;
                Self::OutgoingReset {
                    request: u32_at(head, 0),
                    response: u32_at(head, 4),
                    last_tsn: Tsn(u32_at(head, 8)),
                    streams: U16List::from_be_bytes(after(value, 12))?,
                }
            }
            reconfig_type::INCOMING_RESET => Self::IncomingReset {
                request: u32_at(value.first_chunk::<4>()?, 0),
                streams: U16List::from_be_bytes(after(value, 4))?,
            },
            reconfig_type::ASSOCIATION_RESET => {
                Self::AssociationReset { request: u32::from_be_bytes(value.try_into().ok()?) }
            }
            reconfig_type::RESPONSE => {
                let head = value.first_chunk::<8>()?;
                let next_tsns = match <&[u8; 16]>::try_from(value).ok() {
                    Some(all) => Some((Tsn(u32_at(all, 8)), Tsn(u32_at(all, 12)))),
                    None if value.len() == 8 => None,
                    None => return None,
                };
                Self::Response { response: u32_at(head, 0), result: u32_at(head, 4), next_tsns }
            }
            reconfig_type::ADD_OUTGOING => {
                let fixed: &[u8; 8] = value.try_into().ok()?;
                Self::AddOutgoing { request: u32_at(fixed, 0), streams: u16_at(fixed, 4) }
            }
            reconfig_type::ADD_INCOMING => {
                let fixed: &[u8; 8] = value.try_into().ok()?;
                Self::AddIncoming { request: u32_at(fixed, 0), streams: u16_at(fixed, 4) }
            }
            _ => Self::Unknown { ty, raw },
        })
    }

    /// The request sequence number, if this is a request.
    pub const fn request(&self) -> Option<u32> {
        match *self {
            Self::OutgoingReset { request, .. }
            | Self::IncomingReset { request, .. }
            | Self::AssociationReset { request }
            | Self::AddOutgoing { request, .. }
            | Self::AddIncoming { request, .. } => Some(request),
            Self::Response { .. } | Self::Unknown { .. } => None,
        }
    }
}

/// The parameters of a RE-CONFIG chunk; iterate them to parse them one by one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReconfigParameters<'a>(&'a [u8]);

impl<'a> ReconfigParameters<'a> {
    /// The parameters in `bytes`, not yet checked.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The parameters, in order.
    pub const fn iter(&self) -> ReconfigIter<'a> {
        ReconfigIter::new(self.0)
    }

    /// The bytes of the list.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for ReconfigParameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The parameters of a RE-CONFIG chunk, in order. After [`ParameterError::Length`] there is no
/// further item.
pub type ReconfigIter<'a> = Elements<'a, ReconfigParameter<'a>>;

impl<'a> ReConfig<'a> {
    pub(super) fn parse(raw: &'a [u8]) -> Self {
        Self { parameters: ReconfigParameters::new(after(raw, CHUNK_HEADER_LEN)) }
    }
}

/// Writes the parameters of a RE-CONFIG chunk. A parameter that does not fit leaves the list
/// unchanged.
#[derive(Debug)]
pub struct ReconfigWriter<'b> {
    tlv: TlvWriter<'b>,
}

impl ReconfigWriter<'_> {
    /// Writes a parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit, or is [`ReconfigParameter::Unknown`] with bytes that are not
    /// exactly one parameter.
    pub fn parameter(&mut self, parameter: &ReconfigParameter<'_>) -> Result<(), DoesNotFit> {
        let tlv = &mut self.tlv;
        match *parameter {
            ReconfigParameter::OutgoingReset { request, response, last_tsn, streams } => tlv
                .element(
                    reconfig_type::OUTGOING_RESET,
                    &[
                        &request.to_be_bytes(),
                        &response.to_be_bytes(),
                        &last_tsn.0.to_be_bytes(),
                        streams.as_bytes(),
                    ],
                ),
            ReconfigParameter::IncomingReset { request, streams } => tlv.element(
                reconfig_type::INCOMING_RESET,
                &[&request.to_be_bytes(), streams.as_bytes()],
            ),
            ReconfigParameter::AssociationReset { request } => {
                tlv.element(reconfig_type::ASSOCIATION_RESET, &[&request.to_be_bytes()])
            }
            ReconfigParameter::Response { response, result, next_tsns } => {
                let (response, result) = (response.to_be_bytes(), result.to_be_bytes());
                match next_tsns {
                    Some((sender, receiver)) => tlv.element(
                        reconfig_type::RESPONSE,
                        &[&response, &result, &sender.0.to_be_bytes(), &receiver.0.to_be_bytes()],
                    ),
                    None => tlv.element(reconfig_type::RESPONSE, &[&response, &result]),
                }
            }
            ReconfigParameter::AddOutgoing { request, streams } => tlv.element(
                reconfig_type::ADD_OUTGOING,
                &[&request.to_be_bytes(), &streams.to_be_bytes(), &[0; 2]],
            ),
            ReconfigParameter::AddIncoming { request, streams } => tlv.element(
                reconfig_type::ADD_INCOMING,
                &[&request.to_be_bytes(), &streams.to_be_bytes(), &[0; 2]],
            ),
            ReconfigParameter::Unknown { raw, .. } => tlv.raw(raw),
        }
    }

    /// Writes an encoded list of parameters.
    ///
    /// # Errors
    ///
    /// The list does not fit.
    pub fn append(&mut self, parameters: ReconfigParameters<'_>) -> Result<(), DoesNotFit> {
        self.tlv.append(parameters.as_bytes())
    }
}

impl PacketWriter<'_> {
    /// Writes a RE-CONFIG chunk with the parameters that `parameters` writes.
    ///
    /// # Errors
    ///
    /// The chunk does not fit, or `parameters` returned an error.
    pub fn re_config(
        &mut self,
        parameters: impl FnOnce(&mut ReconfigWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        self.list(chunk_type::RE_CONFIG, 0, [], |space| {
            let mut writer = ReconfigWriter { tlv: TlvWriter::new(space) };
            parameters(&mut writer)?;
            Ok(writer.tlv.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Chunk;
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::*;

    fn check(parameter: ReconfigParameter<'_>, bytes: &[u8]) {
        let mut chunk = vec![130, 0, 0, 4 + bytes.len() as u8];
        chunk.extend(bytes);
        chunk.resize(chunk.len().next_multiple_of(4), 0);
        assert_eq!(chunk_bytes(|w| w.re_config(|p| p.parameter(&parameter))), chunk);
        let Ok(Chunk::ReConfig(parsed)) = only_chunk(&chunk) else { panic!("no RE-CONFIG") };
        assert!(parsed.parameters.iter().eq([Ok(parameter)]), "{parsed:?}");
        assert!(!writes(chunk.len() - 1, |w| w.re_config(|p| p.parameter(&parameter))));
        let shorter = &bytes[..bytes.len() - 1];
        let error = ReconfigParameters::new(shorter).iter().next();
        assert_eq!(error, Some(Err(ParameterError::Length)), "what is cut off is missed");
    }

    #[test]
    fn bytes() {
        let streams = U16List::from_be_bytes(&[0, 1, 0, 9]).unwrap();
        check(
            ReconfigParameter::OutgoingReset {
                request: 1,
                response: 2,
                last_tsn: Tsn(0x0a0b_0c0d),
                streams,
            },
            &[0, 13, 0, 20, 0, 0, 0, 1, 0, 0, 0, 2, 10, 11, 12, 13, 0, 1, 0, 9],
        );
        let streams = U16List::from_be_bytes(&[0, 3]).unwrap();
        check(
            ReconfigParameter::IncomingReset { request: 7, streams },
            &[0, 14, 0, 10, 0, 0, 0, 7, 0, 3],
        );
        check(ReconfigParameter::AssociationReset { request: 8 }, &[0, 15, 0, 8, 0, 0, 0, 8]);
        check(
            ReconfigParameter::Response { response: 9, result: 6, next_tsns: None },
            &[0, 16, 0, 12, 0, 0, 0, 9, 0, 0, 0, 6],
        );
        check(
            ReconfigParameter::Response {
                response: 9,
                result: 1,
                next_tsns: Some((Tsn(3), Tsn(4))),
            },
            &[0, 16, 0, 20, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 4],
        );
        check(
            ReconfigParameter::AddOutgoing { request: 1, streams: 258 },
            &[0, 17, 0, 12, 0, 0, 0, 1, 1, 2, 0, 0],
        );
        check(
            ReconfigParameter::AddIncoming { request: 1, streams: 258 },
            &[0, 18, 0, 12, 0, 0, 0, 1, 1, 2, 0, 0],
        );
        let raw = &[0, 99, 0, 6, 1, 2];
        check(ReconfigParameter::Unknown { ty: 99, raw }, raw);
    }

    #[test]
    fn values_of_the_wrong_length_are_malformed() {
        for (ty, len) in [(13, 10), (13, 13), (14, 3), (14, 5), (15, 3), (15, 8), (16, 4)]
            .into_iter()
            .chain([(16, 12), (16, 20), (17, 4), (17, 12), (18, 6)])
        {
            let mut raw = vec![0, ty, 0, 4 + len];
            raw.resize(raw.len() + usize::from(len), 0);
            let error = ParameterError::Malformed { ty: ty.into(), len: raw.len() };
            assert!(ReconfigParameters::new(&raw).iter().eq([Err(error)]), "{raw:?}");
        }
    }

    fn parameter() -> impl Strategy<Value = (u8, [u32; 3], Vec<[u8; 2]>)> {
        (0u8..7, any::<[u32; 3]>(), proptest::collection::vec(any::<[u8; 2]>(), 0..20))
    }

    proptest! {
        #[test]
        fn what_is_written_parses_to_the_same(list in proptest::collection::vec(parameter(), 0..4)) {
            let streams: Vec<Vec<u8>> = list.iter().map(|(.., s)| s.concat()).collect();
            let list: Vec<_> = list.iter().zip(&streams).map(|((kind, [a, b, c], _), streams)| {
                let (request, response, number) = (*a, *b, *c as u16);
                let streams = U16List::from_be_bytes(streams).unwrap();
                match kind {
                    0 => ReconfigParameter::OutgoingReset { request, response, last_tsn: Tsn(*c), streams },
                    1 => ReconfigParameter::IncomingReset { request, streams },
                    2 => ReconfigParameter::AssociationReset { request },
                    3 => ReconfigParameter::Response { response, result: *a, next_tsns: None },
                    4 => ReconfigParameter::Response { response, result: *a, next_tsns: Some((Tsn(*c), Tsn(*a))) },
                    5 => ReconfigParameter::AddOutgoing { request, streams: number },
                    _ => ReconfigParameter::AddIncoming { request, streams: number },
                }
            }).collect();
            let raw = chunk_bytes(|w| w.re_config(|p| list.iter().try_for_each(|x| p.parameter(x))));
            let Ok(Chunk::ReConfig(parsed)) = only_chunk(&raw) else { panic!("no RE-CONFIG") };
            prop_assert!(parsed.parameters.iter().eq(list.iter().copied().map(Ok)));
            prop_assert_eq!(chunk_bytes(|w| w.chunk(&Chunk::ReConfig(parsed))), raw);
        }

        #[test]
        fn any_bytes_come_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let found = ReconfigParameters::new(&bytes).iter().count();
            prop_assert!(found <= bytes.len().div_ceil(4));
        }
    }
}
