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

use super::abort::Abort;
use super::asconf::{Asconf, AsconfAck};
use super::auth::Auth;
use super::chunk_error::ChunkError;
use super::codec::{DoesNotFit, after};
use super::cookie::CookieEcho;
use super::data::Data;
use super::ecn::{Cwr, Ecne};
use super::error::ErrorChunk;
use super::forward_tsn::ForwardTsn;
use super::heartbeat::HeartbeatInfo;
use super::i_data::IData;
use super::i_forward_tsn::IForwardTsn;
use super::init::{Init, InitFields};
use super::pad::Pad;
use super::reconfig::ReConfig;
use super::sack::Sack;
use super::shutdown::{Shutdown, ShutdownComplete};
use super::timestamp::Timestamp;
use super::tlv::{Element, Elements, Tlv};
use super::writer::PacketWriter;
use super::{Action, CHUNK_HEADER_LEN, chunk_type};

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

/// The chunks of a packet, in order; see [`Packet::chunks`](super::Packet::chunks).
///
/// A malformed chunk with a valid length is an `Err`, and the next item is the chunk after it.
/// After an error that [ends the packet](ChunkError::ends_packet) there is no further item.
pub type Chunks<'a> = Elements<'a, Chunk<'a>>;

impl PacketWriter<'_> {
    /// Writes any chunk, parsed or constructed.
    ///
    /// # Errors
    ///
    /// The chunk does not fit, or it is a [`Chunk::Unknown`] with invalid bytes (see
    /// [`PacketWriter::raw_chunk`]).
    pub fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<(), DoesNotFit> {
        match *chunk {
            Chunk::Data(ref data) => self.data(data),
            Chunk::Init(ref init) => {
                self.init(&InitFields::from(init), |p| p.append(init.parameters))
            }
            Chunk::InitAck(ref init) => {
                self.init_ack(&InitFields::from(init), |p| p.append(init.parameters))
            }
            Chunk::Sack(sack) => {
                let (cumulative, a_rwnd) = (sack.cumulative_tsn_ack, sack.a_rwnd);
                let write = if sack.wide { Self::wide_sack } else { Self::sack };
                write(self, cumulative, a_rwnd, sack.flags, sack.gaps(), sack.duplicates())
            }
            Chunk::NrSack(sack) => self.nr_sack(
                sack.cumulative_tsn_ack,
                sack.a_rwnd,
                sack.flags,
                sack.gaps(),
                sack.nr_gaps(),
                sack.duplicates(),
            ),
            Chunk::Heartbeat(heartbeat) => {
                self.typed_chunk(chunk_type::HEARTBEAT, 0, heartbeat.parameters)
            }
            Chunk::HeartbeatAck(heartbeat) => {
                self.typed_chunk(chunk_type::HEARTBEAT_ACK, 0, heartbeat.parameters)
            }
            Chunk::Abort(abort) => self.abort(abort.t_bit, |c| c.append(abort.causes)),
            Chunk::Shutdown(shutdown) => self.shutdown(shutdown.cumulative_tsn_ack),
            Chunk::ShutdownAck => self.shutdown_ack(),
            Chunk::Error(error) => self.error(|c| c.append(error.causes)),
            Chunk::CookieEcho(echo) => self.cookie_echo(echo.cookie),
            Chunk::CookieAck => self.cookie_ack(),
            Chunk::Ecne(ecne) => self.ecne(ecne.lowest_tsn),
            Chunk::Cwr(cwr) => self.cwr(cwr.lowest_tsn),
            Chunk::ShutdownComplete(complete) => self.shutdown_complete(complete.t_bit),
            Chunk::Pad(pad) => self.typed_chunk(chunk_type::PAD, 0, pad.padding),
            Chunk::Auth(auth) => self.typed_chunk(chunk_type::AUTH, 0, &auth.value()),
            Chunk::Asconf(asconf) => self.raw_chunk(asconf.raw),
            Chunk::AsconfAck(ref ack) => self.parsed_asconf_ack(ack),
            Chunk::ReConfig(re_config) => self.re_config(|p| p.append(re_config.parameters)),
            Chunk::Timestamp(timestamp) => self.timestamp(timestamp),
            Chunk::ForwardTsn(forward) => self.raw_chunk(forward.raw),
            Chunk::IData(ref data) => self.i_data(data),
            Chunk::IForwardTsn(forward) => self.raw_chunk(forward.raw),
            Chunk::Unknown(unknown) => self.raw_chunk(unknown.raw),
        }
    }
}

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
