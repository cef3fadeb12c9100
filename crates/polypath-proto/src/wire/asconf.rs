//! Address Configuration Change (ASCONF) and its acknowledgement, RFC 5061 4.1 and 4.2.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! | 0xC1 or 0x80  |  Chunk Flags  |         Chunk Length          |
//! +---------------+---------------+-------------------------------+
//! |                       Sequence Number                         |
//! +---------------------------------------------------------------+
//! \          Address Parameter (ASCONF only)                      \
//! +---------------------------------------------------------------+
//! \  Parameters: type, length, Correlation ID, then an address,   \
//! \  error causes, or nothing                                     \
//! +---------------------------------------------------------------+
//! ```

use std::fmt;
use std::net::IpAddr;

use super::cause::{CauseWriter, Causes};
use super::chunk_error::ChunkError;
use super::codec::{DoesNotFit, TlvWriter, after, u32_at};
use super::parameter::{ParameterError, ParameterWriter, Parameters};
use super::tlv::{Element, Elements, Tlv};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, chunk_type};

/// The parameter types of RFC 5061 4.2.
pub mod asconf_type {
    /// Add IP Address (4.2.1).
    pub const ADD_ADDRESS: u16 = 0xc001;
    /// Delete IP Address (4.2.2).
    pub const DELETE_ADDRESS: u16 = 0xc002;
    /// Error Cause Indication (4.2.3).
    pub const ERROR_CAUSE: u16 = 0xc003;
    /// Set Primary IP Address (4.2.4).
    pub const SET_PRIMARY: u16 = 0xc004;
    /// Success Indication (4.2.5).
    pub const SUCCESS: u16 = 0xc005;
}

/// Bytes of type, flags, length and sequence number.
const FIXED_LEN: usize = CHUNK_HEADER_LEN + 4;

/// An ASCONF chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asconf<'a> {
    /// Sequence Number.
    pub serial: u32,
    /// An address of the sender that the receiver already knows, for finding the association.
    /// `None` if it is malformed or missing.
    pub lookup: Option<IpAddr>,
    /// The requests.
    pub parameters: AsconfParameters<'a>,
    /// The complete chunk without padding.
    pub(crate) raw: &'a [u8],
}

/// An ASCONF-ACK chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsconfAck<'a> {
    /// Sequence Number of the acknowledged ASCONF.
    pub serial: u32,
    /// Responses to requests; a request without a response has been granted.
    pub parameters: AsconfParameters<'a>,
}

/// A request, or the response to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AsconfParameter<'a> {
    /// Add this address; if unspecified, the source address of the packet.
    Add(IpAddr),
    /// Delete this address; if unspecified, all except the source address of the packet.
    Delete(IpAddr),
    /// Use this address as primary destination; if unspecified, the source address of the packet.
    SetPrimary(IpAddr),
    /// The request was refused.
    Error(Causes<'a>),
    /// The request was granted.
    Success,
    /// A parameter of another type.
    Unknown,
}

/// A parameter with its common fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsconfItem<'a> {
    /// ASCONF-Request Correlation ID: pairs a response with its request.
    pub correlation: u32,
    /// The request or response.
    pub parameter: AsconfParameter<'a>,
    /// Parameter type.
    pub ty: u16,
    /// The complete parameter without padding.
    pub raw: &'a [u8],
}

impl<'a> Element<'a> for AsconfItem<'a> {
    type Error = ParameterError;

    fn parse(tlv: Tlv<'a>) -> Result<Self, ParameterError> {
        Self::of(tlv).ok_or_else(|| ParameterError::Malformed { ty: tlv.ty(), len: tlv.raw.len() })
    }

    fn bad_length(_: &'a [u8]) -> ParameterError {
        ParameterError::Length
    }
}

impl<'a> AsconfItem<'a> {
    fn of(tlv: Tlv<'a>) -> Option<Self> {
        let value = tlv.value();
        let correlation = u32_at(value.first_chunk::<4>()?, 0);
        let value = after(value, 4);
        // RFC 5061 4.2.1, 4.2.2, 4.2.4: the value ends with one address parameter.
        let address = || {
            let mut list = Parameters::new(value).iter();
            match (list.next()?, list.next()) {
                (Ok(parameter), None) => parameter.address(),
                _ => None,
            }
        };
        let ty = tlv.ty();
        let parameter = match ty {
            asconf_type::ADD_ADDRESS => AsconfParameter::Add(address()?),
            asconf_type::DELETE_ADDRESS => AsconfParameter::Delete(address()?),
            asconf_type::SET_PRIMARY => AsconfParameter::SetPrimary(address()?),
            asconf_type::ERROR_CAUSE => AsconfParameter::Error(Causes::new(value)),
            asconf_type::SUCCESS => AsconfParameter::Success,
            _ => AsconfParameter::Unknown,
        };
        Some(Self { correlation, parameter, ty, raw: tlv.raw })
    }
}

/// The parameters of an ASCONF or ASCONF-ACK chunk; iterate them to parse them one by one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AsconfParameters<'a>(&'a [u8]);

impl<'a> AsconfParameters<'a> {
    /// The parameters, in order.
    pub const fn iter(&self) -> AsconfIter<'a> {
        AsconfIter::new(self.0)
    }

    /// The bytes of the list.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for AsconfParameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The parameters, in order. After [`ParameterError::Length`] there is no further item.
pub type AsconfIter<'a> = Elements<'a, AsconfItem<'a>>;

impl<'a> Asconf<'a> {
    pub(super) fn parse(raw: &'a [u8]) -> Result<Self, ChunkError<'a>> {
        let (serial, rest) = serial_of(raw, chunk_type::ASCONF)?;
        let mut rest = Parameters::new(rest).iter();
        let lookup = match rest.next() {
            Some(Ok(parameter)) => parameter.address(),
            _ => None,
        };
        Ok(Self { serial, lookup, parameters: AsconfParameters(rest.as_bytes()), raw })
    }
}

impl<'a> AsconfAck<'a> {
    pub(super) fn parse(raw: &'a [u8]) -> Result<Self, ChunkError<'a>> {
        let (serial, rest) = serial_of(raw, chunk_type::ASCONF_ACK)?;
        Ok(Self { serial, parameters: AsconfParameters(rest) })
    }
}

fn serial_of(raw: &[u8], ty: u8) -> Result<(u32, &[u8]), ChunkError<'_>> {
    let Some(head) = raw.first_chunk::<FIXED_LEN>() else {
        return Err(ChunkError::TooShort { ty, minimum: FIXED_LEN, raw });
    };
    Ok((u32_at(head, 4), after(raw, FIXED_LEN)))
}

/// Writes the parameters of an ASCONF or ASCONF-ACK chunk. A parameter that does not fit leaves the
/// list unchanged.
#[derive(Debug)]
pub struct AsconfWriter<'b> {
    tlv: TlvWriter<'b>,
}

impl AsconfWriter<'_> {
    /// Writes a request with an address; see [`asconf_type`].
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn request(&mut self, ty: u16, correlation: u32, ip: IpAddr) -> Result<(), DoesNotFit> {
        let mut address = [0; 20];
        let len = ParameterWriter::fill(&mut address, |p| p.address(ip))?;
        self.tlv.element(ty, &[&correlation.to_be_bytes(), &address[..len]])
    }

    /// Writes the refusal of a request, with the causes written by `causes`.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn refusal(
        &mut self,
        correlation: u32,
        causes: impl FnOnce(&mut CauseWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        self.tlv.element_with(asconf_type::ERROR_CAUSE, |space| {
            let (head, rest) = space.split_first_chunk_mut::<4>().ok_or(DoesNotFit)?;
            *head = correlation.to_be_bytes();
            Ok(head.len() + CauseWriter::fill(rest, causes)?)
        })
    }

    /// Writes a Success Indication.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn success(&mut self, correlation: u32) -> Result<(), DoesNotFit> {
        self.tlv.element(asconf_type::SUCCESS, &[&correlation.to_be_bytes()])
    }

    /// Writes an encoded parameter: type, length and value, without padding.
    ///
    /// # Errors
    ///
    /// The parameter does not fit, or its length field differs from the number of bytes.
    pub fn raw(&mut self, raw: &[u8]) -> Result<(), DoesNotFit> {
        self.tlv.raw(raw)
    }

    fn append(&mut self, parameters: AsconfParameters<'_>) -> Result<(), DoesNotFit> {
        self.tlv.append(parameters.0)
    }
}

impl PacketWriter<'_> {
    /// Writes an ASCONF chunk with the parameters that `parameters` writes.
    ///
    /// # Errors
    ///
    /// The chunk does not fit, or `parameters` returned an error.
    pub fn asconf(
        &mut self,
        serial: u32,
        lookup: IpAddr,
        parameters: impl FnOnce(&mut AsconfWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        self.list(chunk_type::ASCONF, 0, serial.to_be_bytes(), |space| {
            let len = ParameterWriter::fill(space, |p| p.address(lookup))?;
            let rest = space.get_mut(len..).ok_or(DoesNotFit)?;
            let mut writer = AsconfWriter { tlv: TlvWriter::new(rest) };
            parameters(&mut writer)?;
            Ok(len + writer.tlv.len())
        })
    }

    /// Writes an ASCONF-ACK chunk with the parameters that `parameters` writes.
    ///
    /// # Errors
    ///
    /// The chunk does not fit, or `parameters` returned an error.
    pub fn asconf_ack(
        &mut self,
        serial: u32,
        parameters: impl FnOnce(&mut AsconfWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        self.list(chunk_type::ASCONF_ACK, 0, serial.to_be_bytes(), |space| {
            let mut writer = AsconfWriter { tlv: TlvWriter::new(space) };
            parameters(&mut writer)?;
            Ok(writer.tlv.len())
        })
    }

    pub(super) fn parsed_asconf_ack(&mut self, ack: &AsconfAck<'_>) -> Result<(), DoesNotFit> {
        self.asconf_ack(ack.serial, |p| p.append(ack.parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::super::{Cause, Chunk};
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn write(p: &mut AsconfWriter<'_>) -> Result<(), DoesNotFit> {
        p.request(asconf_type::ADD_ADDRESS, 1, ip("10.0.0.2"))?;
        p.request(asconf_type::DELETE_ADDRESS, 2, ip("0.0.0.0"))?;
        p.request(asconf_type::SET_PRIMARY, 3, ip("::1"))
    }

    #[test]
    fn requests() {
        let bytes = [
            &[0xc1, 0, 0, 76, 1, 2, 3, 4, 0, 5, 0, 8, 10, 0, 0, 1][..],
            &[0xc0, 1, 0, 16, 0, 0, 0, 1, 0, 5, 0, 8, 10, 0, 0, 2],
            &[0xc0, 2, 0, 16, 0, 0, 0, 2, 0, 5, 0, 8, 0, 0, 0, 0],
            &[0xc0, 4, 0, 28, 0, 0, 0, 3, 0, 6, 0, 20],
            &[0; 15],
            &[1],
        ]
        .concat();
        assert_eq!(chunk_bytes(|w| w.asconf(0x0102_0304, ip("10.0.0.1"), write)), bytes);
        assert!(!writes(bytes.len() - 1, |w| w.asconf(1, ip("10.0.0.1"), write)));
        let Ok(Chunk::Asconf(asconf)) = only_chunk(&bytes) else { panic!("no ASCONF") };
        assert_eq!((asconf.serial, asconf.lookup), (0x0102_0304, Some(ip("10.0.0.1"))));
        let seen: Vec<_> = asconf
            .parameters
            .iter()
            .map(|p| (p.unwrap().correlation, p.unwrap().parameter))
            .collect();
        let asked = [
            (1, AsconfParameter::Add(ip("10.0.0.2"))),
            (2, AsconfParameter::Delete(ip("0.0.0.0"))),
            (3, AsconfParameter::SetPrimary(ip("::1"))),
        ];
        assert_eq!(seen, asked);
        assert_eq!(chunk_bytes(|w| w.chunk(&Chunk::Asconf(asconf))), bytes);
    }

    #[test]
    fn answers() {
        let raw = &[0xc0, 2, 0, 16, 0, 0, 0, 9, 0, 5, 0, 8, 10, 0, 0, 1];
        let bytes = [
            &[0x80, 0, 0, 44, 0, 0, 0, 7, 0xc0, 3, 0, 28, 0, 0, 0, 9, 0, 0xa0, 0, 20][..],
            raw,
            &[0xc0, 5, 0, 8, 0, 0, 0, 8],
        ]
        .concat();
        let refusal = super::super::AddressRefusal::LastAddress;
        let write = |p: &mut AsconfWriter<'_>| {
            p.refusal(9, |c| c.address_refused(refusal, raw))?;
            p.success(8)
        };
        assert_eq!(chunk_bytes(|w| w.asconf_ack(7, write)), bytes);
        let Ok(Chunk::AsconfAck(ack)) = only_chunk(&bytes) else { panic!("no ASCONF-ACK") };
        let seen: Vec<_> = ack.parameters.iter().map(Result::unwrap).collect();
        assert_eq!((ack.serial, seen.len(), seen[1].correlation), (7, 2, 8));
        assert_eq!(seen[1].parameter, AsconfParameter::Success);
        let AsconfParameter::Error(causes) = seen[0].parameter else { panic!("no refusal") };
        assert!(causes.iter().eq([Ok(Cause::AddressRefused { refusal, request: raw })]));
        assert_eq!(chunk_bytes(|w| w.chunk(&Chunk::AsconfAck(ack))), bytes);
    }

    #[test]
    fn what_is_cut_or_crooked_is_malformed() {
        for (ty, raw) in [(0xc1, &[0xc1, 0, 0, 7, 0, 0, 0, 0][..]), (0x80, &[0x80, 0, 0, 4])] {
            let error = only_chunk(raw).unwrap_err();
            assert!(matches!(error, ChunkError::TooShort { ty: t, minimum: 8, .. } if t == ty));
        }
        // Invalid lookup addresses.
        for list in [&[][..], &[0, 5, 0, 9], &[0, 5, 0, 6, 0, 0, 0, 0], &[0, 11, 0, 8, 1, 2, 3, 4]]
        {
            let raw = [&[0xc1, 0, 0, 8 + list.len() as u8, 0, 0, 0, 1], list].concat();
            let Ok(Chunk::Asconf(asconf)) = only_chunk(&raw) else { panic!("no ASCONF") };
            assert_eq!(asconf.lookup, None);
        }
        for value in [&[][..], &[0, 0, 0, 1], &[0, 0, 0, 1, 0, 5, 0, 8], &[0, 0, 0, 1, 0, 11, 0, 4]]
        {
            let raw = [&[0xc0, 1, 0, 4 + value.len() as u8], value].concat();
            let error = ParameterError::Malformed { ty: 0xc001, len: raw.len() };
            assert!(AsconfParameters(&raw).iter().eq([Err(error)]), "{raw:?}");
        }
        // RFC 5061 4.2.1: one address parameter, and nothing after it.
        let ipv4 = [0, 0, 0, 1, 0, 5, 0, 8, 10, 0, 0, 1];
        let trailing: [&[u8]; 4] =
            [&[0], &[0; 4], &[0, 5, 0, 8, 10, 0, 0, 2], &[0, 7, 0, 5, 1, 0, 0, 0]];
        for (ty, trailing) in [1, 2, 4].into_iter().flat_map(|ty| trailing.map(|t| (ty, t))) {
            let len = 4 + ipv4.len() + trailing.len();
            let raw = [&[0xc0, ty, 0, len as u8], &ipv4[..], trailing].concat();
            let error = ParameterError::Malformed { ty: 0xc000 | u16::from(ty), len };
            assert!(AsconfParameters(&raw).iter().eq([Err(error)]), "{raw:?}");
        }
        let unknown =
            AsconfParameters(&[0xc0, 9, 0, 8, 0, 0, 0, 1]).iter().next().unwrap().unwrap();
        assert_eq!((unknown.parameter, unknown.ty), (AsconfParameter::Unknown, 0xc009));
    }
}
