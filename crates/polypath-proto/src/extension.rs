//! Extensions of RFC 9260 that two endpoints agree on in their handshake.
//!
//! Each side offers, with parameters of its INIT or INIT ACK, the extensions that its policies need
//! from the peer. Extensions offered by both sides are used; a policy whose extension was not
//! agreed on is replaced by the standard's policy. A peer that does not know these parameter types
//! skips them silently (RFC 9260 3.2.1).
//!
//! Extensions with chunk types of their own are offered by listing these in the Supported
//! Extensions parameter (RFC 5061 4.2.7). FORWARD TSN also has an older parameter of its own
//! (RFC 3758 3.1); either one suffices.

use std::fmt;

use crate::wire::{
    DoesNotFit, Parameter, ParameterWriter, SCTP_OVER_DTLS, TIMESTAMP_LEN, chunk_type,
};

/// An extension that both sides must support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Extension {
    /// A TIMESTAMP chunk in every packet with DATA or SACK
    /// (Caro 2006, retransmission policies, 4.2).
    Timestamps,
    /// The R bit of DATA and SACK: a retransmission, caused by a retransmission (Caro 2006, as
    /// above).
    RetransmissionFlag,
    /// The count of packets in the flags of a SACK: delayed acknowledgements for CMT
    /// (Iyengar 2006, DAC).
    PacketCount,
    /// RE-CONFIG chunks: streams can be reset and added (RFC 6525).
    StreamReconfiguration,
    /// Congestion marks by routers instead of losses (RFC 4960 Appendix A).
    Ecn,
    /// Packets without a checksum, if the layer below detects errors (RFC 9653).
    ZeroChecksum,
    /// FORWARD TSN chunks: messages may be abandoned (RFC 3758).
    PartialReliability,
    /// User message interleaving: I-DATA chunks (RFC 8260 2).
    Interleaving,
    /// Partial reliability for interleaved messages: I-FORWARD-TSN chunks (RFC 8260 2.3).
    InterleavedForwardTsn,
    /// NR-SACK chunks: the receiver reports the data that it will not renege on
    /// (draft-natarajan-tsvwg-sctp-nrsack).
    NrSack,
    /// AUTH chunks, which authenticate other chunks (RFC 4895).
    Authentication,
    /// ASCONF chunks: addresses can be added and deleted (RFC 5061).
    DynamicAddresses,
    /// SACKs that leave out gap blocks between others if not all fit.
    PartialSacks,
    /// SACKs whose gap blocks have offsets of 32 bits if 16 do not reach.
    WideSacks,
}

impl Extension {
    const ALL: [Self; 14] = [
        Self::Timestamps,
        Self::RetransmissionFlag,
        Self::PacketCount,
        Self::StreamReconfiguration,
        Self::Ecn,
        Self::ZeroChecksum,
        Self::PartialReliability,
        Self::Interleaving,
        Self::InterleavedForwardTsn,
        Self::NrSack,
        Self::Authentication,
        Self::DynamicAddresses,
        Self::PartialSacks,
        Self::WideSacks,
    ];

    /// The extension that `parameter` itself offers.
    const fn of_parameter(parameter: &Parameter<'_>) -> Option<Self> {
        match parameter {
            Parameter::Timestamps => Some(Self::Timestamps),
            Parameter::RetransmissionFlag => Some(Self::RetransmissionFlag),
            Parameter::PacketCount => Some(Self::PacketCount),
            Parameter::PartialSacks => Some(Self::PartialSacks),
            Parameter::WideSacks => Some(Self::WideSacks),
            Parameter::EcnCapable => Some(Self::Ecn),
            Parameter::ZeroChecksumAcceptable(SCTP_OVER_DTLS) => Some(Self::ZeroChecksum),
            Parameter::ForwardTsnSupported => Some(Self::PartialReliability),
            _ => None,
        }
    }

    /// The chunk types that offer the extension in Supported Extensions.
    const fn chunk_types(self) -> &'static [u8] {
        match self {
            Self::StreamReconfiguration => &[chunk_type::RE_CONFIG],
            // In addition to its parameter: pion looks for it only in Supported Extensions.
            Self::PartialReliability => &[chunk_type::FORWARD_TSN],
            Self::Interleaving => &[chunk_type::I_DATA],
            Self::InterleavedForwardTsn => &[chunk_type::I_FORWARD_TSN],
            Self::NrSack => &[chunk_type::NR_SACK],
            Self::Authentication => &[chunk_type::AUTH],
            Self::DynamicAddresses => &[chunk_type::ASCONF, chunk_type::ASCONF_ACK],
            Self::Timestamps
            | Self::RetransmissionFlag
            | Self::PacketCount
            | Self::PartialSacks
            | Self::WideSacks
            | Self::Ecn
            | Self::ZeroChecksum => &[],
        }
    }

    /// Writes the parameter of the extension, if it has its own.
    fn write(self, p: &mut ParameterWriter<'_>) -> Result<(), DoesNotFit> {
        match self {
            Self::Timestamps => p.timestamps(),
            Self::RetransmissionFlag => p.retransmission_flag(),
            Self::PacketCount => p.packet_count(),
            Self::PartialSacks => p.partial_sacks(),
            Self::WideSacks => p.wide_sacks(),
            Self::Ecn => p.ecn_capable(),
            Self::ZeroChecksum => p.zero_checksum_acceptable(SCTP_OVER_DTLS),
            Self::PartialReliability => p.forward_tsn_supported(),
            // Offered in Supported Extensions only; the association writes the parameters of AUTH.
            Self::StreamReconfiguration
            | Self::Interleaving
            | Self::InterleavedForwardTsn
            | Self::NrSack
            | Self::Authentication
            | Self::DynamicAddresses => Ok(()),
        }
    }

    /// Bytes that the extension adds to a packet with DATA.
    const fn overhead(self) -> usize {
        match self {
            Self::Timestamps => TIMESTAMP_LEN,
            Self::RetransmissionFlag
            | Self::PacketCount
            | Self::PartialSacks
            | Self::WideSacks
            | Self::StreamReconfiguration
            | Self::Ecn
            | Self::ZeroChecksum
            | Self::PartialReliability
            | Self::Interleaving
            | Self::InterleavedForwardTsn
            | Self::NrSack
            | Self::Authentication
            | Self::DynamicAddresses => 0,
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// A set of extensions: those that one side offers, or those agreed on.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Extensions(u16);

impl Extensions {
    /// Bytes of the set in a state cookie.
    pub(crate) const LEN: usize = 2;

    /// Whether the set contains `extension`.
    pub const fn contains(self, extension: Extension) -> bool {
        self.0 & extension.bit() != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members of the set.
    pub fn iter(self) -> impl Iterator<Item = Extension> {
        Extension::ALL.into_iter().filter(move |&e| self.contains(e))
    }

    pub(crate) const fn insert(&mut self, extension: Extension) {
        self.0 |= extension.bit();
    }

    /// Adds the extensions that a parameter of the peer offers.
    pub(crate) fn learn(&mut self, parameter: &Parameter<'_>) {
        if let Some(extension) = Extension::of_parameter(parameter) {
            self.insert(extension);
        }
        if let Parameter::SupportedExtensions(types) = parameter {
            // AUTH is offered by its own parameters (RFC 4895 3).
            for extension in Extension::ALL.into_iter().filter(|e| *e != Extension::Authentication)
            {
                let needs = extension.chunk_types();
                if !needs.is_empty() && needs.iter().all(|ty| types.contains(ty)) {
                    self.insert(extension);
                }
            }
        }
    }

    /// The extensions that both sides offer and therefore use. RFC 8260 2.3.1: "Only if both end
    /// points support the I-DATA chunk and the I-FORWARD-TSN chunk, the partial reliability
    /// extension can be used in combination with user message interleaving."
    pub(crate) const fn agreed(self, other: Self) -> Self {
        let mut both = Self(self.0 & other.0);
        let forward = both.contains(Extension::InterleavedForwardTsn);
        match both.contains(Extension::Interleaving) {
            true if !forward => both.remove(Extension::PartialReliability),
            false => both.remove(Extension::InterleavedForwardTsn),
            true => {}
        }
        if both.contains(Extension::NrSack) {
            // The blocks of NR-SACKs have offsets of 16 bits.
            both.remove(Extension::WideSacks);
        }
        both
    }

    pub(crate) const fn remove(&mut self, extension: Extension) {
        self.0 &= !extension.bit();
    }

    /// Writes the parameters that offer the extensions.
    pub(crate) fn write(self, p: &mut ParameterWriter<'_>) -> Result<(), DoesNotFit> {
        self.iter().try_for_each(|e| e.write(p))?;
        let types: Vec<u8> = self.iter().flat_map(Extension::chunk_types).copied().collect();
        if types.is_empty() { Ok(()) } else { p.supported_extensions(&types) }
    }

    /// Bytes that the extensions add to a packet with DATA.
    pub(crate) fn overhead(self) -> usize {
        self.iter().map(Extension::overhead).sum()
    }

    /// Representation in the state cookie; `None` for an empty set.
    pub(crate) fn to_bytes(self) -> Option<[u8; Self::LEN]> {
        (!self.is_empty()).then_some(self.0.to_be_bytes())
    }

    /// Inverse of [`to_bytes`](Self::to_bytes).
    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> Option<Self> {
        let known = Extension::ALL.iter().fold(0, |all, e| all | e.bit());
        let bits = u16::from_be_bytes(bytes);
        (bits != 0 && bits & !known == 0).then_some(Self(bits))
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_comes_back_from_its_bytes() {
        let mut set = Extensions::default();
        assert_eq!((set.to_bytes(), Extensions::from_bytes([0, 0])), (None, None));
        for extension in Extension::ALL {
            assert!(!set.contains(extension));
            set.insert(extension);
            assert!(set.contains(extension));
            assert_eq!(Extensions::from_bytes(set.to_bytes().unwrap()), Some(set));
            assert_eq!(set.overhead(), TIMESTAMP_LEN, "of the timestamps, which are the first");
        }
        assert_eq!(Extensions::from_bytes([1 << 7, 0]), None);
    }

    /// One parameter lists all chunk types; an extension is offered only if all its types are
    /// listed.
    #[test]
    fn chunk_types_are_offered_in_supported_extensions() {
        let mut set = Extensions::default();
        set.learn(&Parameter::SupportedExtensions(&[1, 2, 3]));
        assert!(set.is_empty());
        set.learn(&Parameter::SupportedExtensions(&[9, chunk_type::RE_CONFIG]));
        assert!(set.contains(Extension::StreamReconfiguration));
        let mut other = Extensions::default();
        other.learn(&Parameter::SupportedExtensions(&[chunk_type::FORWARD_TSN]));
        assert!(other.contains(Extension::PartialReliability));
        other.learn(&Parameter::ForwardTsnSupported);
        assert_eq!(other.iter().count(), 1);
        set.insert(Extension::PacketCount);
        let mut buf = [0; 64];
        let mut w = crate::wire::PacketWriter::new(
            &mut buf,
            crate::wire::CommonHeader {
                source_port: 1,
                destination_port: 2,
                verification_tag: crate::VerificationTag(0),
            },
        );
        let fields = crate::wire::InitFields {
            initiate_tag: crate::VerificationTag(1),
            a_rwnd: 1500,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: crate::Tsn(1),
        };
        w.init(&fields, |p| set.write(p)).unwrap();
        let len = w.finish(crate::wire::Checksum::Ignore);
        assert_eq!(buf[32..len], [0xbe, 3, 0, 4, 0x80, 8, 0, 5, chunk_type::RE_CONFIG, 0, 0, 0]);
    }

    #[test]
    fn partial_reliability_needs_its_chunk_for_interleaving() {
        let set = |list: &[Extension]| {
            let mut set = Extensions::default();
            list.iter().for_each(|e| set.insert(*e));
            set
        };
        use Extension::{InterleavedForwardTsn, Interleaving, PartialReliability};
        let all = set(&[PartialReliability, Interleaving, InterleavedForwardTsn]);
        assert_eq!(all.agreed(all), all);
        let without = set(&[PartialReliability, Interleaving]);
        assert_eq!(all.agreed(without), set(&[Interleaving]));
        assert_eq!(all.agreed(set(&[PartialReliability])), set(&[PartialReliability]));
        // The blocks of NR-SACKs have 16 bits.
        let both = set(&[Extension::NrSack, Extension::WideSacks]);
        assert_eq!(both.agreed(both), set(&[Extension::NrSack]));
        assert_eq!(both.agreed(set(&[Extension::WideSacks])), set(&[Extension::WideSacks]));
        let odd = set(&[PartialReliability, InterleavedForwardTsn]);
        assert_eq!(all.agreed(odd), set(&[PartialReliability]));
    }
}
