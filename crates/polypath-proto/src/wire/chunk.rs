//! The chunks of a packet, RFC 9260 3.2.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Chunk Type   |  Chunk Flags  |         Chunk Length          |
//! +---------------+---------------+-------------------------------+
//! \                          Chunk Value                          \
//! +---------------------------------------------------------------+
//! ```

use crate::Tsn;

use super::codec::after;
use super::tlv::{Element, Elements, Tlv};
use super::{
    Abort, Action, Asconf, AsconfAck, Auth, CHUNK_HEADER_LEN, CookieEcho, Cwr, Data, Ecne,
    ErrorChunk, ForwardTsn, HeartbeatInfo, IData, IForwardTsn, Init, Pad, ReConfig, Sack, Shutdown,
    ShutdownComplete, Timestamp,
};

/// The chunk types of RFC 9260 3.2, and those of extensions.
pub mod chunk_type {
    /// Payload data (3.3.1).
    pub const DATA: u8 = 0;
    /// Initiation (3.3.2).
    pub const INIT: u8 = 1;
    /// Initiation acknowledgement (3.3.3).
    pub const INIT_ACK: u8 = 2;
    /// Selective acknowledgement (3.3.4).
    pub const SACK: u8 = 3;
    /// Heartbeat request (3.3.5).
    pub const HEARTBEAT: u8 = 4;
    /// Heartbeat acknowledgement (3.3.6).
    pub const HEARTBEAT_ACK: u8 = 5;
    /// Abort association (3.3.7).
    pub const ABORT: u8 = 6;
    /// Shutdown association (3.3.8).
    pub const SHUTDOWN: u8 = 7;
    /// Shutdown acknowledgement (3.3.9).
    pub const SHUTDOWN_ACK: u8 = 8;
    /// Operation error (3.3.10).
    pub const ERROR: u8 = 9;
    /// State cookie (3.3.11).
    pub const COOKIE_ECHO: u8 = 10;
    /// Cookie acknowledgement (3.3.12).
    pub const COOKIE_ACK: u8 = 11;
    /// Explicit congestion notification echo (reserved; RFC 4960 Appendix A).
    pub const ECNE: u8 = 12;
    /// Congestion window reduced (reserved; RFC 4960 Appendix A).
    pub const CWR: u8 = 13;
    /// Shutdown complete (3.3.13).
    pub const SHUTDOWN_COMPLETE: u8 = 14;
    /// Non-renegable selective acknowledgement (draft-natarajan-tsvwg-sctp-nrsack).
    pub const NR_SACK: u8 = 16;
    /// Authentication (RFC 4895 4.1).
    pub const AUTH: u8 = 15;
    /// Address Configuration Acknowledgement (RFC 5061 4.1.2).
    pub const ASCONF_ACK: u8 = 128;
    /// Re-configuration (RFC 6525 3.1).
    pub const RE_CONFIG: u8 = 130;
    /// Padding (RFC 4820 3).
    pub const PAD: u8 = 132;
    /// Time of sending of the packet (Caro 2006; not assigned by a registry).
    pub const TIMESTAMP: u8 = 190;
    /// Forward cumulative TSN (RFC 3758 3.2).
    pub const FORWARD_TSN: u8 = 192;
    /// Payload data that may be interleaved (RFC 8260 2.1).
    pub const I_DATA: u8 = 64;
    /// Forward cumulative TSN with interleaving (RFC 8260 2.3.1).
    pub const I_FORWARD_TSN: u8 = 194;
    /// Address Configuration Change (RFC 5061 4.1.1).
    pub const ASCONF: u8 = 193;

    /// The name of a chunk type, as in its RFC.
    pub const fn name(ty: u8) -> Option<&'static str> {
        Some(match ty {
            DATA => "DATA",
            INIT => "INIT",
            INIT_ACK => "INIT ACK",
            SACK => "SACK",
            HEARTBEAT => "HEARTBEAT",
            HEARTBEAT_ACK => "HEARTBEAT ACK",
            ABORT => "ABORT",
            SHUTDOWN => "SHUTDOWN",
            SHUTDOWN_ACK => "SHUTDOWN ACK",
            ERROR => "ERROR",
            COOKIE_ECHO => "COOKIE ECHO",
            COOKIE_ACK => "COOKIE ACK",
            ECNE => "ECNE",
            CWR => "CWR",
            SHUTDOWN_COMPLETE => "SHUTDOWN COMPLETE",
            NR_SACK => "NR-SACK",
            AUTH => "AUTH",
            ASCONF_ACK => "ASCONF-ACK",
            RE_CONFIG => "RE-CONFIG",
            PAD => "PAD",
            TIMESTAMP => "TIMESTAMP",
            FORWARD_TSN => "FORWARD TSN",
            I_DATA => "I-DATA",
            I_FORWARD_TSN => "I-FORWARD-TSN",
            ASCONF => "ASCONF",
            _ => return None,
        })
    }
}

/// One chunk of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunk<'a> {
    /// User data.
    Data(Data<'a>),
    /// Opens an association.
    Init(Init<'a>),
    /// Answers an INIT, with the state cookie.
    InitAck(Init<'a>),
    /// Acknowledges DATA chunks.
    Sack(Sack<'a>),
    /// Acknowledges DATA chunks, and reports those that the receiver will not renege on.
    NrSack(Sack<'a>),
    /// Tests whether a path works.
    Heartbeat(HeartbeatInfo<'a>),
    /// Acknowledges a HEARTBEAT with the same information.
    HeartbeatAck(HeartbeatInfo<'a>),
    /// Ends the association at once.
    Abort(Abort<'a>),
    /// Starts the graceful shutdown of the association.
    Shutdown(Shutdown),
    /// Acknowledges a SHUTDOWN.
    ShutdownAck,
    /// Reports an error in a received packet.
    Error(ErrorChunk<'a>),
    /// Returns the state cookie.
    CookieEcho(CookieEcho<'a>),
    /// Acknowledges a COOKIE ECHO.
    CookieAck,
    /// Echoes a congestion experienced mark.
    Ecne(Ecne),
    /// Reports that the congestion window was reduced after an ECNE.
    Cwr(Cwr),
    /// Acknowledges a SHUTDOWN ACK.
    ShutdownComplete(ShutdownComplete),
    /// Authenticates the chunks that follow.
    Auth(Auth<'a>),
    /// Requests to add or delete addresses.
    Asconf(Asconf<'a>),
    /// Acknowledges an ASCONF.
    AsconfAck(AsconfAck<'a>),
    /// Requests to reset or add streams, or responds to such requests.
    ReConfig(ReConfig<'a>),
    /// Pads a packet.
    Pad(Pad<'a>),
    /// Time of sending of the packet, and the echoed timestamp of the packet that its SACK
    /// acknowledges.
    Timestamp(Timestamp),
    /// Makes the receiver skip abandoned chunks.
    ForwardTsn(ForwardTsn<'a>),
    /// User data that may be interleaved with that of other messages.
    IData(IData<'a>),
    /// A FORWARD TSN for interleaved messages.
    IForwardTsn(IForwardTsn<'a>),
    /// A chunk of unknown type.
    Unknown(UnknownChunk<'a>),
}

impl<'a> Element<'a> for Chunk<'a> {
    type Error = ChunkError<'a>;

    #[inline]
    fn parse(tlv: Tlv<'a>) -> Result<Self, ChunkError<'a>> {
        let Tlv { head: [ty, flags, ..], raw } = tlv;
        Ok(match ty {
            chunk_type::DATA => Self::Data(Data::parse(raw, flags)?),
            chunk_type::SACK => Self::Sack(Sack::parse(raw, flags)?),
            chunk_type::NR_SACK => Self::NrSack(Sack::parse_nr(raw, flags)?),
            chunk_type::INIT => Self::Init(Init::parse(raw, ty)?),
            chunk_type::INIT_ACK => Self::InitAck(Init::parse(raw, ty)?),
            chunk_type::HEARTBEAT => Self::Heartbeat(HeartbeatInfo::parse(raw, ty)?),
            chunk_type::HEARTBEAT_ACK => Self::HeartbeatAck(HeartbeatInfo::parse(raw, ty)?),
            chunk_type::ABORT => Self::Abort(Abort::parse(raw, flags)),
            chunk_type::SHUTDOWN => Self::Shutdown(Shutdown::parse(raw)?),
            chunk_type::SHUTDOWN_ACK => Self::ShutdownAck,
            chunk_type::ERROR => Self::Error(ErrorChunk::parse(raw)),
            chunk_type::COOKIE_ECHO => Self::CookieEcho(CookieEcho::parse(raw)),
            chunk_type::COOKIE_ACK => Self::CookieAck,
            chunk_type::ECNE => Self::Ecne(Ecne::parse(raw)?),
            chunk_type::CWR => Self::Cwr(Cwr::parse(raw)?),
            chunk_type::SHUTDOWN_COMPLETE => Self::ShutdownComplete(ShutdownComplete::parse(flags)),
            chunk_type::AUTH => Self::Auth(Auth::parse(raw)?),
            chunk_type::ASCONF => Self::Asconf(Asconf::parse(raw)?),
            chunk_type::ASCONF_ACK => Self::AsconfAck(AsconfAck::parse(raw)?),
            chunk_type::RE_CONFIG => Self::ReConfig(ReConfig::parse(raw)),
            chunk_type::PAD => Self::Pad(Pad::parse(raw)),
            chunk_type::TIMESTAMP => Self::Timestamp(Timestamp::parse(raw, flags)?),
            chunk_type::FORWARD_TSN => Self::ForwardTsn(ForwardTsn::parse(raw)?),
            chunk_type::I_DATA => Self::IData(IData::parse(raw, flags)?),
            chunk_type::I_FORWARD_TSN => Self::IForwardTsn(IForwardTsn::parse(raw)?),
            _ => Self::Unknown(UnknownChunk { ty, flags, raw }),
        })
    }

    #[cold]
    fn bad_length(rest: &'a [u8]) -> ChunkError<'a> {
        // The length of a packet is a multiple of four, so no header is cut off.
        let [ty, _, l0, l1] = rest.first_chunk::<CHUNK_HEADER_LEN>().copied().unwrap_or_default();
        ChunkError::Length { ty, length: u16::from_be_bytes([l0, l1]), rest }
    }
}

impl Chunk<'_> {
    /// The chunk type (see [`chunk_type`]).
    pub const fn ty(&self) -> u8 {
        match self {
            Self::Data(_) => chunk_type::DATA,
            Self::Init(_) => chunk_type::INIT,
            Self::InitAck(_) => chunk_type::INIT_ACK,
            Self::Sack(_) => chunk_type::SACK,
            Self::NrSack(_) => chunk_type::NR_SACK,
            Self::Heartbeat(_) => chunk_type::HEARTBEAT,
            Self::HeartbeatAck(_) => chunk_type::HEARTBEAT_ACK,
            Self::Abort(_) => chunk_type::ABORT,
            Self::Shutdown(_) => chunk_type::SHUTDOWN,
            Self::ShutdownAck => chunk_type::SHUTDOWN_ACK,
            Self::Error(_) => chunk_type::ERROR,
            Self::CookieEcho(_) => chunk_type::COOKIE_ECHO,
            Self::CookieAck => chunk_type::COOKIE_ACK,
            Self::Ecne(_) => chunk_type::ECNE,
            Self::Cwr(_) => chunk_type::CWR,
            Self::ShutdownComplete(_) => chunk_type::SHUTDOWN_COMPLETE,
            Self::Auth(_) => chunk_type::AUTH,
            Self::Asconf(_) => chunk_type::ASCONF,
            Self::AsconfAck(_) => chunk_type::ASCONF_ACK,
            Self::ReConfig(_) => chunk_type::RE_CONFIG,
            Self::Pad(_) => chunk_type::PAD,
            Self::Timestamp(_) => chunk_type::TIMESTAMP,
            Self::ForwardTsn(_) => chunk_type::FORWARD_TSN,
            Self::IData(_) => chunk_type::I_DATA,
            Self::IForwardTsn(_) => chunk_type::I_FORWARD_TSN,
            Self::Unknown(unknown) => unknown.ty,
        }
    }
}

/// A chunk of unknown type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnknownChunk<'a> {
    /// Chunk type.
    pub ty: u8,
    /// Chunk flags.
    pub flags: u8,
    /// The complete chunk: type, flags, length and value, without padding, as repeated by the
    /// Unrecognized Chunk Type cause (RFC 9260 3.3.10.6).
    pub raw: &'a [u8],
}

impl<'a> UnknownChunk<'a> {
    /// The bytes after type, flags and length.
    pub fn value(&self) -> &'a [u8] {
        after(self.raw, CHUNK_HEADER_LEN)
    }

    /// The action that the chunk type requires if it is unknown (RFC 9260 3.2).
    pub const fn action(&self) -> Action {
        Action::of_chunk(self.ty)
    }
}

/// The error in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkError<'a> {
    /// The chunk length is less than a chunk header or exceeds the rest of the packet. The start of
    /// the next chunk is unknown, so this is the last item of [`Chunks`]. RFC 9260 6.10: a partial
    /// chunk must be dropped.
    #[error(
        "a chunk of type {ty} claims a length of {length} bytes where the packet has {}",
        .rest.len()
    )]
    Length {
        /// Chunk type.
        ty: u8,
        /// The chunk length field.
        length: u16,
        /// The rest of the packet from the first byte of the chunk.
        rest: &'a [u8],
    },
    /// The chunk is too short for the fixed part of its type. Other chunks are not affected.
    #[error("a chunk of type {ty} needs {minimum} bytes and has {}", .raw.len())]
    TooShort {
        /// Chunk type.
        ty: u8,
        /// The minimum length of a chunk of this type, in bytes.
        minimum: usize,
        /// The complete chunk without padding.
        raw: &'a [u8],
    },
    /// A DATA or I-DATA chunk without user data, to which the response is an ABORT with the No
    /// User Data cause (RFC 9260 6.2).
    #[error("the chunk of type {ty} with TSN {tsn} has no user data")]
    NoUserData {
        /// Chunk type.
        ty: u8,
        /// The TSN of the chunk.
        tsn: Tsn,
    },
    /// A SACK chunk that is too short for its numbers of gap ack blocks and duplicates.
    #[error(
        "a SACK chunk of {} bytes cannot hold {gaps} gap ack blocks and {duplicates} duplicates",
        .raw.len()
    )]
    SackCounts {
        /// Number of gap ack blocks in the chunk header.
        gaps: u16,
        /// Number of duplicate TSNs in the chunk header.
        duplicates: u16,
        /// The complete chunk without padding.
        raw: &'a [u8],
    },
    /// An NR-SACK chunk that is too short for its numbers of gap ack blocks, NR gap ack blocks and
    /// duplicates.
    #[error(
        "an NR-SACK chunk of {} bytes cannot hold {} gap ack blocks, {} NR gap ack blocks and {} \
         duplicates",
        .raw.len(), .counts[0], .counts[1], .counts[2]
    )]
    NrSackCounts {
        /// These numbers, from the chunk header.
        counts: [u16; 3],
        /// The complete chunk without padding.
        raw: &'a [u8],
    },
    /// A HEARTBEAT or HEARTBEAT ACK chunk that does not start with a Heartbeat Info parameter
    /// (RFC 9260 3.3.5).
    #[error("a chunk of type {ty} has no Heartbeat Info parameter")]
    NoHeartbeatInfo {
        /// Chunk type.
        ty: u8,
        /// The complete chunk without padding.
        raw: &'a [u8],
    },
}

impl ChunkError<'_> {
    /// The type of the chunk.
    pub const fn ty(&self) -> u8 {
        match *self {
            Self::Length { ty, .. }
            | Self::TooShort { ty, .. }
            | Self::NoUserData { ty, .. }
            | Self::NoHeartbeatInfo { ty, .. } => ty,
            Self::SackCounts { .. } => chunk_type::SACK,
            Self::NrSackCounts { .. } => chunk_type::NR_SACK,
        }
    }

    /// Whether the rest of the packet is unreadable.
    pub const fn ends_packet(&self) -> bool {
        matches!(self, Self::Length { .. })
    }
}

/// The chunks of a packet, in order; see [`Packet::chunks`](super::Packet::chunks).
///
/// A malformed chunk with a valid length is an `Err`, and the next item is the chunk after it.
/// After an error that [ends the packet](ChunkError::ends_packet) there is no further item.
pub type Chunks<'a> = Elements<'a, Chunk<'a>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_chunk() {
        let mut chunks = Chunks::new(&[0xc3, 7, 0, 6, 0xaa, 0xbb, 0, 0, 11, 0, 0, 4]);
        let Some(Ok(Chunk::Unknown(unknown))) = chunks.next() else { panic!("no unknown chunk") };
        assert_eq!((unknown.ty, unknown.flags), (0xc3, 7));
        assert_eq!(unknown.raw, [0xc3, 7, 0, 6, 0xaa, 0xbb]);
        assert_eq!(unknown.value(), [0xaa, 0xbb]);
        assert_eq!(unknown.action(), Action::SkipAndReport);
        assert_eq!(chunks.as_bytes(), [11, 0, 0, 4]);
        assert_eq!(chunks.next(), Some(Ok(Chunk::CookieAck)));
        assert_eq!(chunks.next(), None);
    }

    #[test]
    fn actions() {
        let of = |ty| {
            let action = Action::of_chunk(ty);
            (action.stops(), action.reports())
        };
        assert_eq!(of(0x3f), (true, false));
        assert_eq!(of(0x40), (true, true));
        assert_eq!(of(0xbf), (false, false));
        assert_eq!(of(0xc0), (false, true));
        assert_eq!(Action::of_parameter(0x3fff), Action::Stop);
        assert_eq!(Action::of_parameter(0x4000), Action::StopAndReport);
        assert_eq!(Action::of_parameter(0x8001), Action::Skip);
        assert_eq!(Action::of_parameter(0xc002), Action::SkipAndReport);
    }

    #[test]
    fn a_malformed_chunk_does_not_hide_the_next() {
        let mut chunks = Chunks::new(&[7, 0, 0, 6, 0, 0, 0, 0, 8, 0, 0, 4]);
        assert_eq!(
            chunks.next(),
            Some(Err(ChunkError::TooShort { ty: 7, minimum: 8, raw: &[7, 0, 0, 6, 0, 0] }))
        );
        assert_eq!(chunks.next(), Some(Ok(Chunk::ShutdownAck)));
        assert_eq!(chunks.next(), None);
    }

    #[test]
    fn a_bad_length_ends_the_packet() {
        for bytes in [[8, 0, 0, 3, 8, 0, 0, 4], [8, 0, 0, 0, 8, 0, 0, 4], [8, 0, 0, 9, 8, 0, 0, 4]]
        {
            let mut chunks = Chunks::new(&bytes);
            let error = chunks.next().unwrap().unwrap_err();
            assert!(error.ends_packet());
            assert_eq!(error, ChunkError::Length { ty: 8, length: bytes[3].into(), rest: &bytes });
            assert_eq!(chunks.next(), None);
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let raw = [7, 0, 0, 6, 0, 0];
        assert_eq!(
            ChunkError::TooShort { ty: 7, minimum: 8, raw: &raw }.to_string(),
            "a chunk of type 7 needs 8 bytes and has 6"
        );
        assert_eq!(chunk_type::name(7), Some("SHUTDOWN"));
        assert_eq!(chunk_type::name(0x41), None);
    }
}
