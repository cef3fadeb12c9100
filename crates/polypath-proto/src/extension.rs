//! What two endpoints can agree on in their handshake beyond RFC 9260.
//!
//! Each side offers, by parameters of its INIT or INIT ACK, what its policies need of the peer. What
//! both offer is used; where a policy lacks what it needs, the standard's answer takes its place. The
//! types of the parameters make a peer that does not know them skip them silently (RFC 9260 3.2.1).

use std::fmt;

use crate::Config;
use crate::wire::{DoesNotFit, Parameter, ParameterWriter, TIMESTAMP_LEN, chunk_type};

/// Something that both sides have to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Extension {
    /// A TIMESTAMP chunk in every packet with DATA or SACK
    /// (Caro 2006, retransmission policies, 4.2).
    Timestamps,
    /// The R bit of DATA and SACK: a retransmission, caused by a retransmission (there).
    RetransmissionFlag,
    /// The count of packets in the flags of a SACK: delayed acknowledgements for CMT
    /// (Iyengar 2006, DAC).
    PacketCount,
    /// Partial reliability: FORWARD TSN chunks (RFC 3758).
    PartialReliability,
    /// User message interleaving: I-DATA chunks (RFC 8260 2).
    Interleaving,
    /// Partial reliability where messages are interleaved: I-FORWARD-TSN chunks (RFC 8260 2.3).
    InterleavedForwardTsn,
}

impl Extension {
    const ALL: [Self; 6] = [
        Self::Timestamps,
        Self::RetransmissionFlag,
        Self::PacketCount,
        Self::PartialReliability,
        Self::Interleaving,
        Self::InterleavedForwardTsn,
    ];

    /// The chunk type that offers it in Supported Extensions (RFC 5061 4.2.7), if one does.
    const fn chunk_type(self) -> Option<u8> {
        match self {
            // Beside its parameter: pion looks for it here alone.
            Self::PartialReliability => Some(chunk_type::FORWARD_TSN),
            Self::Interleaving => Some(chunk_type::I_DATA),
            Self::InterleavedForwardTsn => Some(chunk_type::I_FORWARD_TSN),
            _ => None,
        }
    }

    /// Writes the parameter that offers it, if it has one of its own.
    fn write(self, p: &mut ParameterWriter<'_>) -> Result<(), DoesNotFit> {
        match self {
            Self::Timestamps => p.timestamps(),
            Self::RetransmissionFlag => p.retransmission_flag(),
            Self::PacketCount => p.packet_count(),
            Self::PartialReliability => p.forward_tsn_supported(),
            Self::Interleaving | Self::InterleavedForwardTsn => Ok(()),
        }
    }

    /// Bytes that it takes in a packet with DATA.
    const fn overhead(self) -> usize {
        match self {
            Self::Timestamps => TIMESTAMP_LEN,
            _ => 0,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of extensions: what one side offers, or what both do.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Extensions(u8);

impl Extensions {
    /// What an endpoint with this configuration offers.
    pub(crate) fn offered(config: &Config) -> Self {
        let mut all = Self::default();
        let needs =
            [(config.rtt_sampling().make)(config).needs(), (config.ack().make)(config).needs()];
        needs.into_iter().flatten().for_each(|e| all.insert(e));
        if config.partial_reliability() {
            all.insert(Extension::PartialReliability);
        }
        if config.interleaving() {
            all.insert(Extension::Interleaving);
        }
        if config.partial_reliability() && config.interleaving() {
            all.insert(Extension::InterleavedForwardTsn);
        }
        all
    }

    /// What a parameter of the peer offers.
    pub(crate) fn of_parameter(parameter: &Parameter<'_>) -> Self {
        let mut offered = Self::default();
        match *parameter {
            Parameter::Timestamps => offered.insert(Extension::Timestamps),
            Parameter::RetransmissionFlag => offered.insert(Extension::RetransmissionFlag),
            Parameter::PacketCount => offered.insert(Extension::PacketCount),
            Parameter::ForwardTsnSupported => offered.insert(Extension::PartialReliability),
            Parameter::SupportedExtensions(types) => {
                let known = |e: &Extension| e.chunk_type().is_some_and(|ty| types.contains(&ty));
                Extension::ALL.into_iter().filter(known).for_each(|e| offered.insert(e));
            }
            _ => {}
        }
        offered
    }

    /// This one is in it.
    pub const fn contains(self, extension: Extension) -> bool {
        self.0 & extension.bit() != 0
    }

    /// There is nothing in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members.
    pub fn iter(self) -> impl Iterator<Item = Extension> {
        Extension::ALL.into_iter().filter(move |&e| self.contains(e))
    }

    pub(crate) const fn insert(&mut self, extension: Extension) {
        self.0 |= extension.bit();
    }

    /// What is in either.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What both sides offer, and so use. RFC 8260 2.3.1: "Only if both end points support the I-DATA chunk
    /// and the I-FORWARD-TSN chunk, the partial reliability extension can be used in combination with
    /// user message interleaving."
    pub(crate) const fn agreed(self, other: Self) -> Self {
        let mut both = Self(self.0 & other.0);
        let forward = both.contains(Extension::InterleavedForwardTsn);
        match both.contains(Extension::Interleaving) {
            true if !forward => both.remove(Extension::PartialReliability),
            false => both.remove(Extension::InterleavedForwardTsn),
            true => {}
        }
        both
    }

    const fn remove(&mut self, extension: Extension) {
        self.0 &= !extension.bit();
    }

    /// Writes the parameters that offer them.
    pub(crate) fn write(self, p: &mut ParameterWriter<'_>) -> Result<(), DoesNotFit> {
        self.iter().try_for_each(|e| e.write(p))?;
        let types: Vec<u8> = self.iter().filter_map(Extension::chunk_type).collect();
        if types.is_empty() { Ok(()) } else { p.supported_extensions(&types) }
    }

    /// Bytes that they take in a packet with DATA.
    pub(crate) fn overhead(self) -> usize {
        self.iter().map(Extension::overhead).sum()
    }

    /// As the state cookie keeps it; nothing if there is none.
    pub(crate) fn to_byte(self) -> Option<u8> {
        (!self.is_empty()).then_some(self.0)
    }

    /// What [`to_byte`](Self::to_byte) wrote.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        let known = Extension::ALL.iter().fold(0, |all, e| all | e.bit());
        (byte != 0 && byte & !known == 0).then_some(Self(byte))
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
    fn a_set_comes_back_from_its_byte() {
        let mut set = Extensions::default();
        assert_eq!((set.to_byte(), Extensions::from_byte(0)), (None, None));
        for (extension, overhead) in Extension::ALL.into_iter().zip([TIMESTAMP_LEN; 6]) {
            assert!(!set.contains(extension));
            set.insert(extension);
            assert!(set.contains(extension));
            assert_eq!(Extensions::from_byte(set.to_byte().unwrap()), Some(set));
            assert_eq!(set.overhead(), overhead);
        }
        assert_eq!(Extensions::from_byte(1 << 7), None);
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
        let odd = set(&[PartialReliability, InterleavedForwardTsn]);
        assert_eq!(all.agreed(odd), set(&[PartialReliability]));
    }
}
