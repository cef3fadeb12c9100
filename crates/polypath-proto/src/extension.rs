//! What two endpoints can agree on in their handshake beyond RFC 9260.
//!
//! Each side offers, by a parameter of its INIT or INIT ACK, what its policy for samples of the
//! round-trip time needs of the peer. What both offer is used, and Karn's rule otherwise. The types
//! of the parameters make a peer that does not know them skip them silently (RFC 9260 3.2.1).

use crate::Config;
use crate::wire::{DoesNotFit, Parameter, ParameterWriter, TIMESTAMP_LEN};

/// A help for measuring round-trip times that both sides have to know
/// (Caro 2006, retransmission policies, 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Extension {
    /// A TIMESTAMP chunk in every packet with DATA or SACK.
    Timestamps,
    /// The R bit of DATA and SACK: a retransmission, caused by a retransmission.
    RetransmissionFlag,
}

impl Extension {
    /// What an endpoint with this configuration offers.
    pub(crate) fn offered(config: &Config) -> Option<Self> {
        (config.rtt_sampling().make)(config).needs()
    }

    /// What a parameter of the peer offers.
    pub(crate) const fn of_parameter(parameter: &Parameter<'_>) -> Option<Self> {
        match parameter {
            Parameter::Timestamps => Some(Self::Timestamps),
            Parameter::RetransmissionFlag => Some(Self::RetransmissionFlag),
            _ => None,
        }
    }

    /// Writes the parameter that offers it.
    pub(crate) fn write(self, p: &mut ParameterWriter<'_>) -> Result<(), DoesNotFit> {
        match self {
            Self::Timestamps => p.timestamps(),
            Self::RetransmissionFlag => p.retransmission_flag(),
        }
    }

    /// Bytes that it takes in a packet with DATA.
    pub(crate) const fn overhead(self) -> usize {
        match self {
            Self::Timestamps => TIMESTAMP_LEN,
            Self::RetransmissionFlag => 0,
        }
    }

    /// As the state cookie keeps it.
    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Self::Timestamps => 1,
            Self::RetransmissionFlag => 2,
        }
    }

    /// What [`to_byte`](Self::to_byte) wrote.
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Timestamps),
            2 => Some(Self::RetransmissionFlag),
            _ => None,
        }
    }
}
