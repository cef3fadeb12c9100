//! The wire format: parses and writes byte slices as RFC 9260 section 3 defines them.
//!
//! A packet is a common header and a sequence of chunks. [`Packet::parse`] checks the packet as a
//! whole, [`Packet::chunks`] iterates its chunks, and [`PacketWriter`] writes a packet into a
//! buffer of the caller. Parsing borrows from the datagram; neither parsing nor writing allocates,
//! and no input makes either of them panic.
//!
//! Rules that depend on an association (whether a chunk is allowed in this state, whether a tag is
//! correct, whether an Initiate Tag may be zero) are not checked here: such values parse, and the
//! state machine rejects them.
//!
//! Unknown chunks, parameters and causes are returned as `Unknown`, with the bytes for reporting
//! them and the [`Action`] that their type requires.

mod abort;
mod asconf;
mod auth;
mod cause;
mod checksum;
mod chunk;
mod chunk_error;
pub mod chunk_type;
mod codec;
mod cookie;
mod data;
mod ecn;
mod error;
mod forward_tsn;
mod header;
mod heartbeat;
mod i_data;
mod i_forward_tsn;
mod init;
mod nr_sack;
mod packet;
mod pad;
mod parameter;
mod reconfig;
mod sack;
mod shutdown;
mod timestamp;
mod tlv;
mod writer;

#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;

pub use self::abort::Abort;
pub use self::asconf::{
    Asconf, AsconfAck, AsconfItem, AsconfIter, AsconfParameter, AsconfParameters, AsconfWriter,
    asconf_type,
};
pub(crate) use self::auth::AUTH_HEADER_LEN;
pub use self::auth::{Auth, hmac_id};
pub use self::cause::{
    AddressRefusal, Cause, CauseError, CauseIter, CauseWriter, Causes, cause_code,
};
pub use self::checksum::checksum;
pub use self::chunk::{Chunk, Chunks, UnknownChunk};
pub use self::chunk_error::ChunkError;
pub use self::codec::{DoesNotFit, U16List};
pub use self::cookie::CookieEcho;
pub use self::data::Data;
pub use self::ecn::{Cwr, Ecne};
pub use self::error::ErrorChunk;
pub(crate) use self::forward_tsn::{FORWARD_TSN_HEADER_LEN, SKIPPED_STREAM_LEN};
pub use self::forward_tsn::{ForwardTsn, SkippedStream};
pub use self::header::{Checksum, CommonHeader};
pub use self::heartbeat::HeartbeatInfo;
pub use self::i_data::{IData, Mark};
pub(crate) use self::i_forward_tsn::SKIPPED_MESSAGE_LEN;
pub use self::i_forward_tsn::{IForwardTsn, SkippedMessage};
pub use self::init::{Init, InitFields};
pub use self::packet::{Packet, PacketError};
pub use self::pad::Pad;
pub(crate) use self::parameter::SCTP_OVER_DTLS;
pub use self::parameter::{
    Parameter, ParameterError, ParameterIter, ParameterWriter, Parameters, parameter_type,
};
pub use self::reconfig::{
    ReConfig, ReconfigIter, ReconfigParameter, ReconfigParameters, ReconfigWriter, reconfig_result,
    reconfig_type,
};
pub use self::sack::{GapBlock, Sack};
pub use self::shutdown::{Shutdown, ShutdownComplete};
pub use self::timestamp::Timestamp;
pub use self::tlv::Elements;
pub use self::writer::PacketWriter;
pub(crate) use self::writer::seal;

/// Bytes of the common header at the start of each packet (RFC 9260 3.1).
pub const COMMON_HEADER_LEN: usize = 12;

/// Bytes of type, flags and length at the start of each chunk (RFC 9260 3.2).
pub const CHUNK_HEADER_LEN: usize = 4;

/// Bytes of a DATA chunk before its user data, the chunk header included (RFC 9260 3.3.1).
pub const DATA_HEADER_LEN: usize = 16;

/// Bytes of an I-DATA chunk before its user data, the chunk header included (RFC 8260 2.1).
pub const I_DATA_HEADER_LEN: usize = 20;

/// Bytes of a SACK chunk without gap ack blocks and duplicates, the chunk header included
/// (RFC 9260 3.3.4).
pub const SACK_HEADER_LEN: usize = 16;

/// Bytes of a TIMESTAMP chunk, the chunk header included.
pub const TIMESTAMP_LEN: usize = 12;

/// The action that the two highest bits of an unknown chunk type (RFC 9260 3.2) or parameter type
/// (RFC 9260 3.2.1) require of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// `00`: stop processing the packet (for a chunk) or the chunk (for a parameter).
    Stop,
    /// `01`: as [`Action::Stop`], and report the unrecognized item.
    StopAndReport,
    /// `10`: skip it and continue.
    Skip,
    /// `11`: skip it, continue, and report the unrecognized item.
    SkipAndReport,
}

impl Action {
    /// The action that an unknown chunk type requires.
    pub const fn of_chunk(ty: u8) -> Self {
        Self::of_high_bits(ty >> 6)
    }

    /// The action that an unknown parameter type requires.
    pub const fn of_parameter(ty: u16) -> Self {
        Self::of_high_bits((ty >> 14) as u8)
    }

    const fn of_high_bits(bits: u8) -> Self {
        match bits {
            0b00 => Self::Stop,
            0b01 => Self::StopAndReport,
            0b10 => Self::Skip,
            _ => Self::SkipAndReport,
        }
    }

    /// Whether to stop processing.
    pub const fn stops(self) -> bool {
        matches!(self, Self::Stop | Self::StopAndReport)
    }

    /// Whether to report the item to the peer: with an Unrecognized Chunk Type cause for a chunk,
    /// with an Unrecognized Parameter in the INIT ACK or an Unrecognized Parameters cause for a
    /// parameter.
    pub const fn reports(self) -> bool {
        matches!(self, Self::StopAndReport | Self::SkipAndReport)
    }
}
