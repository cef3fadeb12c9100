//! The parameters of INIT and INIT ACK chunks, RFC 9260 3.2.1.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |        Parameter Type         |       Parameter Length        |
//! +-------------------------------+-------------------------------+
//! \                        Parameter Value                        \
//! +---------------------------------------------------------------+
//! ```

mod adaptation_layer;
mod address;
mod authentication;
mod cookie;
mod ecn_capable;
mod forward_tsn_supported;
mod heartbeat_info;
mod host_name;
mod packet_count;
mod partial_sacks;
mod retransmission_flag;
mod supported_address_types;
mod supported_extensions;
mod timestamps;
mod unrecognized;
mod wide_sacks;
mod zero_checksum;

pub(crate) use self::zero_checksum::SCTP_OVER_DTLS;

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::Action;
use super::codec::{DoesNotFit, TlvWriter, U16List};
use super::tlv::{Element, Elements, Tlv};

/// The parameter types of RFC 9260 3.2.1 and 3.3, and those of extensions.
pub mod parameter_type {
    /// Heartbeat Info (3.3.5).
    pub const HEARTBEAT_INFO: u16 = 1;
    /// IPv4 Address (3.3.2.1.1).
    pub const IPV4: u16 = 5;
    /// IPv6 Address (3.3.2.1.2).
    pub const IPV6: u16 = 6;
    /// State Cookie (3.3.3.1.1).
    pub const STATE_COOKIE: u16 = 7;
    /// Unrecognized Parameter (3.3.3.1.2).
    pub const UNRECOGNIZED_PARAMETER: u16 = 8;
    /// Cookie Preservative (3.3.2.1.3).
    pub const COOKIE_PRESERVATIVE: u16 = 9;
    /// Host Name Address (3.3.2.1.4; deprecated).
    pub const HOST_NAME: u16 = 11;
    /// Supported Address Types (3.3.2.1.5).
    pub const SUPPORTED_ADDRESS_TYPES: u16 = 12;
    /// ECN Capable (reserved; RFC 4960 Appendix A).
    pub const ECN_CAPABLE: u16 = 0x8000;
    /// Zero Checksum Acceptable (RFC 9653 4).
    pub const ZERO_CHECKSUM_ACCEPTABLE: u16 = 0x8001;
    /// Random (RFC 4895 3.1).
    pub const RANDOM: u16 = 0x8002;
    /// Chunk List (RFC 4895 3.2).
    pub const CHUNK_LIST: u16 = 0x8003;
    /// Requested HMAC Algorithm (RFC 4895 3.3).
    pub const HMAC_ALGORITHMS: u16 = 0x8004;
    /// Supported Extensions (RFC 5061 4.2.7).
    pub const SUPPORTED_EXTENSIONS: u16 = 0x8008;
    /// Timestamps (Caro 2006; not assigned by a registry).
    pub const TIMESTAMPS: u16 = 0xbe01;
    /// Retransmission Flag (Caro 2006; not assigned by a registry).
    pub const RETRANSMISSION_FLAG: u16 = 0xbe02;
    /// Packet Count (Iyengar 2006; not assigned by a registry).
    pub const PACKET_COUNT: u16 = 0xbe03;
    /// SACKs that leave out gap ack blocks.
    pub const PARTIAL_SACKS: u16 = 0xbe04;
    /// SACKs whose gap ack blocks have offsets of 32 bits.
    pub const WIDE_SACKS: u16 = 0xbe05;
    /// Forward-TSN-Supported (RFC 3758 3.1).
    pub const FORWARD_TSN_SUPPORTED: u16 = 0xc000;
    /// Adaptation Layer Indication (RFC 5061 4.2.6).
    pub const ADAPTATION_LAYER: u16 = 0xc006;

    /// The name of a parameter type, as in its RFC.
    pub const fn name(ty: u16) -> Option<&'static str> {
        Some(match ty {
            HEARTBEAT_INFO => "Heartbeat Info",
            IPV4 => "IPv4 Address",
            IPV6 => "IPv6 Address",
            STATE_COOKIE => "State Cookie",
            UNRECOGNIZED_PARAMETER => "Unrecognized Parameter",
            COOKIE_PRESERVATIVE => "Cookie Preservative",
            HOST_NAME => "Host Name Address",
            SUPPORTED_ADDRESS_TYPES => "Supported Address Types",
            ECN_CAPABLE => "ECN Capable",
            ZERO_CHECKSUM_ACCEPTABLE => "Zero Checksum Acceptable",
            RANDOM => "Random",
            CHUNK_LIST => "Chunk List",
            HMAC_ALGORITHMS => "Requested HMAC Algorithm",
            SUPPORTED_EXTENSIONS => "Supported Extensions",
            TIMESTAMPS => "Timestamps",
            RETRANSMISSION_FLAG => "Retransmission Flag",
            PACKET_COUNT => "Packet Count",
            PARTIAL_SACKS => "Partial SACKs",
            WIDE_SACKS => "Wide SACKs",
            FORWARD_TSN_SUPPORTED => "Forward-TSN-Supported",
            ADAPTATION_LAYER => "Adaptation Layer Indication",
            _ => return None,
        })
    }
}

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parameter<'a> {
    /// The information of a HEARTBEAT. It is not valid in an INIT or INIT ACK.
    HeartbeatInfo(&'a [u8]),
    /// An IPv4 address of the sender.
    Ipv4(Ipv4Addr),
    /// An IPv6 address of the sender.
    Ipv6(Ipv6Addr),
    /// The state cookie of an INIT ACK.
    StateCookie(&'a [u8]),
    /// In an INIT ACK, an unrecognized parameter of the INIT: its type, length and value.
    UnrecognizedParameter(&'a [u8]),
    /// Requested extension of the state cookie's life, in milliseconds.
    CookiePreservative(u32),
    /// A host name: deprecated, and answered with an ABORT, to which an Unresolvable Address cause
    /// may be added (RFC 9260 3.3.2.1.4). The bytes are the complete parameter (type, length and
    /// name), as repeated by that cause.
    HostName(&'a [u8]),
    /// The types of address parameters that the sender supports.
    SupportedAddressTypes(U16List<'a>),
    /// The sender supports explicit congestion notification.
    EcnCapable,
    /// The sender accepts packets without a checksum, with this error detection method.
    ZeroChecksumAcceptable(u32),
    /// Random bytes for deriving the keys.
    Random(&'a [u8]),
    /// The chunk types that the sender accepts only if authenticated.
    ChunkList(&'a [u8]),
    /// The HMACs that the sender verifies, preferred first.
    HmacAlgorithms(U16List<'a>),
    /// A number that the layer above defines.
    AdaptationLayer(u32),
    /// The chunk types beyond RFC 9260 that the sender supports.
    SupportedExtensions(&'a [u8]),
    /// The sender offers TIMESTAMP chunks.
    Timestamps,
    /// The sender offers the flag that distinguishes retransmissions from originals.
    RetransmissionFlag,
    /// The sender offers the count of packets in the flags of its SACKs.
    PacketCount,
    /// The sender accepts SACKs that leave out gap ack blocks between others.
    PartialSacks,
    /// The sender accepts SACKs whose gap ack blocks have offsets of 32 bits.
    WideSacks,
    /// The sender accepts FORWARD TSN chunks.
    ForwardTsnSupported,
    /// A parameter of unknown type.
    Unknown {
        /// Parameter type.
        ty: u16,
        /// The complete parameter: type, length and value, without padding, as reported to the
        /// peer.
        raw: &'a [u8],
    },
}

impl<'a> Element<'a> for Parameter<'a> {
    type Error = ParameterError;

    fn parse(tlv: Tlv<'a>) -> Result<Self, ParameterError> {
        let value = tlv.value();
        match tlv.ty() {
            parameter_type::HEARTBEAT_INFO => Some(Self::HeartbeatInfo(value)),
            parameter_type::IPV4 => address::parse_ipv4(value),
            parameter_type::IPV6 => address::parse_ipv6(value),
            parameter_type::STATE_COOKIE => Some(Self::StateCookie(value)),
            parameter_type::UNRECOGNIZED_PARAMETER => Some(Self::UnrecognizedParameter(value)),
            parameter_type::COOKIE_PRESERVATIVE => cookie::parse_preservative(value),
            parameter_type::HOST_NAME => Some(Self::HostName(tlv.raw)),
            parameter_type::SUPPORTED_ADDRESS_TYPES => supported_address_types::parse(value),
            parameter_type::ECN_CAPABLE => Some(Self::EcnCapable),
            parameter_type::ZERO_CHECKSUM_ACCEPTABLE => zero_checksum::parse(value),
            parameter_type::RANDOM => Some(Self::Random(value)),
            parameter_type::CHUNK_LIST => Some(Self::ChunkList(value)),
            parameter_type::HMAC_ALGORITHMS => {
                U16List::from_be_bytes(value).map(Self::HmacAlgorithms)
            }
            parameter_type::ADAPTATION_LAYER => adaptation_layer::parse(value),
            parameter_type::SUPPORTED_EXTENSIONS => Some(Self::SupportedExtensions(value)),
            parameter_type::TIMESTAMPS => Some(Self::Timestamps),
            parameter_type::RETRANSMISSION_FLAG => Some(Self::RetransmissionFlag),
            parameter_type::PACKET_COUNT => Some(Self::PacketCount),
            parameter_type::PARTIAL_SACKS => Some(Self::PartialSacks),
            parameter_type::WIDE_SACKS => Some(Self::WideSacks),
            parameter_type::FORWARD_TSN_SUPPORTED => Some(Self::ForwardTsnSupported),
            ty => Some(Self::Unknown { ty, raw: tlv.raw }),
        }
        .ok_or_else(|| ParameterError::Malformed { ty: tlv.ty(), len: tlv.raw.len() })
    }

    fn bad_length(_: &'a [u8]) -> ParameterError {
        ParameterError::Length
    }
}

impl Parameter<'_> {
    /// The parameter type (see [`parameter_type`]).
    pub const fn ty(&self) -> u16 {
        match *self {
            Self::HeartbeatInfo(_) => parameter_type::HEARTBEAT_INFO,
            Self::Ipv4(_) => parameter_type::IPV4,
            Self::Ipv6(_) => parameter_type::IPV6,
            Self::StateCookie(_) => parameter_type::STATE_COOKIE,
            Self::UnrecognizedParameter(_) => parameter_type::UNRECOGNIZED_PARAMETER,
            Self::CookiePreservative(_) => parameter_type::COOKIE_PRESERVATIVE,
            Self::HostName(_) => parameter_type::HOST_NAME,
            Self::SupportedAddressTypes(_) => parameter_type::SUPPORTED_ADDRESS_TYPES,
            Self::EcnCapable => parameter_type::ECN_CAPABLE,
            Self::ZeroChecksumAcceptable(_) => parameter_type::ZERO_CHECKSUM_ACCEPTABLE,
            Self::Random(_) => parameter_type::RANDOM,
            Self::ChunkList(_) => parameter_type::CHUNK_LIST,
            Self::HmacAlgorithms(_) => parameter_type::HMAC_ALGORITHMS,
            Self::AdaptationLayer(_) => parameter_type::ADAPTATION_LAYER,
            Self::SupportedExtensions(_) => parameter_type::SUPPORTED_EXTENSIONS,
            Self::Timestamps => parameter_type::TIMESTAMPS,
            Self::RetransmissionFlag => parameter_type::RETRANSMISSION_FLAG,
            Self::PacketCount => parameter_type::PACKET_COUNT,
            Self::PartialSacks => parameter_type::PARTIAL_SACKS,
            Self::WideSacks => parameter_type::WIDE_SACKS,
            Self::ForwardTsnSupported => parameter_type::FORWARD_TSN_SUPPORTED,
            Self::Unknown { ty, .. } => ty,
        }
    }

    /// The action that the type requires if it is unknown (RFC 9260 3.2.1).
    pub const fn action(&self) -> Action {
        Action::of_parameter(self.ty())
    }
}

/// The error in one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The parameter length is less than four or exceeds the rest of the chunk. The start of the
    /// next parameter is unknown, so this is the last item of [`Parameters`].
    #[error("a parameter has a length that does not fit into its chunk")]
    Length,
    /// The length of the value does not match its type. Other parameters are not affected.
    #[error("a parameter of type {ty} cannot have a length of {len} bytes")]
    Malformed {
        /// Parameter type.
        ty: u16,
        /// Bytes of the parameter, including type and length.
        len: usize,
    },
}

/// A list of parameters, borrowed from a packet; iterate it to parse them one by one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Parameters<'a>(&'a [u8]);

impl<'a> Parameters<'a> {
    /// The parameters in `bytes`, not yet checked.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The parameters, in order.
    pub const fn iter(&self) -> ParameterIter<'a> {
        ParameterIter::new(self.0)
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

impl<'a> IntoIterator for Parameters<'a> {
    type Item = Result<Parameter<'a>, ParameterError>;
    type IntoIter = ParameterIter<'a>;

    fn into_iter(self) -> ParameterIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Parameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The parameters of a list, in order.
///
/// A malformed parameter with a valid length is an `Err`, and the next item is the parameter after
/// it. After [`ParameterError::Length`] there is no further item.
pub type ParameterIter<'a> = Elements<'a, Parameter<'a>>;

/// Writes parameters into a chunk or cause; see [`PacketWriter::init`](super::PacketWriter::init).
///
/// A parameter that does not fit leaves the list unchanged. The method for each parameter is in the
/// parameter's file.
#[derive(Debug)]
pub struct ParameterWriter<'b> {
    tlv: TlvWriter<'b>,
}

impl<'b> ParameterWriter<'b> {
    /// Writes a list into `space` and returns its length.
    pub(super) fn fill(
        space: &'b mut [u8],
        parameters: impl FnOnce(&mut Self) -> Result<(), DoesNotFit>,
    ) -> Result<usize, DoesNotFit> {
        let mut writer = Self { tlv: TlvWriter::new(space) };
        parameters(&mut writer)?;
        Ok(writer.tlv.len())
    }

    /// Maximum length of the value of one more parameter, in bytes.
    pub fn remaining(&self) -> usize {
        self.tlv.remaining()
    }

    /// Writes any parameter.
    ///
    /// # Errors
    ///
    /// The parameter does not fit, or its `raw` bytes are not exactly one parameter.
    pub fn parameter(&mut self, parameter: &Parameter<'_>) -> Result<(), DoesNotFit> {
        match *parameter {
            Parameter::HeartbeatInfo(info) => self.heartbeat_info(info),
            Parameter::Ipv4(address) => self.ipv4(address),
            Parameter::Ipv6(address) => self.ipv6(address),
            Parameter::StateCookie(cookie) => self.state_cookie(cookie),
            Parameter::UnrecognizedParameter(raw) => self.unrecognized_parameter(raw),
            Parameter::CookiePreservative(ms) => self.cookie_preservative(ms),
            Parameter::SupportedAddressTypes(types) => self.supported_address_type_list(types),
            Parameter::EcnCapable => self.ecn_capable(),
            Parameter::ZeroChecksumAcceptable(method) => self.zero_checksum_acceptable(method),
            Parameter::Random(random) => self.random(random),
            Parameter::ChunkList(types) => self.chunk_list(types),
            Parameter::HmacAlgorithms(list) => self.hmac_algorithm_list(list),
            Parameter::AdaptationLayer(code) => self.adaptation_layer(code),
            Parameter::SupportedExtensions(types) => self.supported_extensions(types),
            Parameter::Timestamps => self.timestamps(),
            Parameter::RetransmissionFlag => self.retransmission_flag(),
            Parameter::PacketCount => self.packet_count(),
            Parameter::PartialSacks => self.partial_sacks(),
            Parameter::WideSacks => self.wide_sacks(),
            Parameter::ForwardTsnSupported => self.forward_tsn_supported(),
            Parameter::HostName(raw) | Parameter::Unknown { raw, .. } => self.raw(raw),
        }
    }

    /// Writes an encoded parameter: type, length and value, without padding.
    ///
    /// # Errors
    ///
    /// The parameter does not fit, or its length field differs from the number of bytes.
    pub fn raw(&mut self, raw: &[u8]) -> Result<(), DoesNotFit> {
        self.tlv.raw(raw)
    }

    /// Writes a parameter of any type and value.
    ///
    /// # Errors
    ///
    /// The parameter does not fit.
    pub fn typed(&mut self, ty: u16, value: &[u8]) -> Result<(), DoesNotFit> {
        self.tlv.element(ty, &[value])
    }

    /// Writes an encoded list of parameters.
    ///
    /// # Errors
    ///
    /// The list does not fit.
    pub fn append(&mut self, parameters: Parameters<'_>) -> Result<(), DoesNotFit> {
        self.tlv.append(parameters.as_bytes())
    }
}

/// Test helper: writes a parameter, compares its bytes, and parses it again.
#[cfg(test)]
fn check(
    write: impl Fn(&mut ParameterWriter<'_>) -> Result<(), DoesNotFit>,
    parameter: Parameter<'_>,
    bytes: &[u8],
) {
    for room in 0..bytes.len() {
        assert_eq!(ParameterWriter::fill(&mut vec![0; room], &write), Err(DoesNotFit));
    }
    let mut buf = vec![0xff; bytes.len()];
    assert_eq!(ParameterWriter::fill(&mut buf, &write), Ok(bytes.len()));
    assert_eq!(buf, bytes);
    buf.fill(0xff);
    assert_eq!(ParameterWriter::fill(&mut buf, |p| p.parameter(&parameter)), Ok(bytes.len()));
    assert_eq!(buf, bytes);
    assert!(Parameters::new(bytes).iter().eq([Ok(parameter)]));
    assert_eq!(parameter.ty().to_be_bytes(), bytes[..2]);
}

/// Test helper: checks that `bytes` is malformed and that the parameter after it is found.
#[cfg(test)]
fn check_malformed(bytes: &[u8]) {
    let mut list = bytes.to_vec();
    list.resize(super::codec::padded(bytes.len()), 0);
    list.extend([0x80, 0, 0, 4]);
    let error = ParameterError::Malformed {
        ty: u16::from_be_bytes([bytes[0], bytes[1]]),
        len: bytes.len(),
    };
    assert!(Parameters::new(&list).iter().eq([Err(error), Ok(Parameter::EcnCapable)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown() {
        let raw = &[0xc0, 1, 0, 5, 9];
        let parameter = Parameter::Unknown { ty: 0xc001, raw };
        assert_eq!(parameter.action(), Action::SkipAndReport);
        check(|p| p.raw(raw), parameter, raw);
        check(|p| p.typed(0xc001, &[9]), parameter, raw);
        check(|p| p.append(Parameters::new(raw)), parameter, raw);
    }

    #[test]
    fn raw_parameters_must_be_parameters() {
        for raw in [&[][..], &[1, 2, 0], &[1, 2, 0, 3], &[1, 2, 0, 5], &[1, 2, 0, 4, 0]] {
            assert_eq!(ParameterWriter::fill(&mut [0; 16], |p| p.raw(raw)), Err(DoesNotFit));
        }
    }

    #[test]
    fn a_bad_length_ends_the_list() {
        let mut parameters =
            Parameters::new(&[0x80, 0, 0, 4, 0, 7, 0, 9, 0x80, 0, 0, 4]).into_iter();
        assert_eq!(parameters.next(), Some(Ok(Parameter::EcnCapable)));
        assert_eq!(parameters.next(), Some(Err(ParameterError::Length)));
        assert_eq!(parameters.next(), None);
    }

    #[test]
    fn shows_its_parameters() {
        let parameters = Parameters::new(&[0, 5, 0, 8, 10, 0, 0, 1, 0, 9, 0, 5, 0]);
        assert_eq!(
            format!("{parameters:?}"),
            "[Ok(Ipv4(10.0.0.1)), Err(Malformed { ty: 9, len: 5 })]"
        );
    }
}
