//! A chunk that has a TSN and is not yet cumulatively acknowledged, and its states.

use crate::ids::{PathId, Ssn, Tsn};
use crate::policy::loss::{MissingChunk, SentChunk};
use crate::policy::retransmission::{LossCause, LostChunk};
use crate::send::partial::Partial;
use crate::send::queue::NewChunk;
use crate::time::Time;
use crate::wire::{
    DATA_HEADER_LEN, Data, DoesNotFit, I_DATA_HEADER_LEN, IData, Mark, PacketWriter,
};

/// State of an outstanding chunk, as the sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Sent and not yet acknowledged.
    InFlight,
    /// Acknowledged by a gap block; the receiver may still renege.
    Acked,
    /// Waits for retransmission.
    Lost(LossCause),
    /// Abandoned (RFC 3758 3.4): neither in flight nor to be retransmitted.
    Abandoned,
    /// Has a TSN but has not been sent yet: slower paths sent higher TSNs first.
    Reserved,
}

/// Whether a chunk's message was abandoned (RFC 3758 3.4). That stays so when a gap block
/// acknowledges the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abandonment {
    /// It was not.
    None,
    /// It was while the chunk was in flight: missing reports still show the chunk's loss (RFC 3758
    /// 3.5 F5).
    InFlight,
    /// It was, and no further loss counts.
    Settled,
}

/// The fast retransmissions of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FastRetransmission {
    /// It was never marked for one.
    Never,
    /// It was marked for one, which is not its last transmission.
    Once,
    /// Its last transmission was one.
    Last,
}

/// The paths that a chunk was sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// One path only.
    OnePath,
    /// More than one.
    SeveralPaths,
}

/// When a chunk was first sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// After all chunks with lower TSNs.
    InOrder,
    /// Before some chunks with lower TSNs.
    Ahead,
}

#[derive(Debug)]
pub(crate) struct Outstanding {
    /// What it consists of. The payload is emptied when the chunk is abandoned or the peer reports
    /// it as non-renegable.
    pub(crate) content: NewChunk,
    /// Original length of the payload in bytes.
    pub(super) payload_len: u32,
    /// Bytes of padding that count towards windows.
    padding: u8,
    pub(crate) fate: Fate,
    pub(super) abandonment: Abandonment,
    pub(super) fast: FastRetransmission,
    pub(super) route: Route,
    pub(super) turn: Turn,
    /// The path it was last sent on.
    pub(crate) path: PathId,
    pub(crate) transmissions: u32,
    /// Copies sent in addition, while it was in flight.
    pub(crate) copies: u8,
    /// When it was last sent.
    pub(crate) sent: Time,
    /// Recover point of this chunk: the highest TSN sent when it was last fast retransmitted. For a
    /// chunk first sent after higher TSNs on its path, the highest of those.
    pub(crate) own_recover: Option<Tsn>,
    /// Number of missing reports.
    pub(crate) reports: u32,
}

impl Outstanding {
    pub(super) fn new(content: NewChunk, path: PathId, padded: bool) -> Self {
        // Both headers are multiples of four.
        let padding = if padded { content.payload.len().wrapping_neg() % 4 } else { 0 };
        Self {
            padding: padding as u8,
            payload_len: content.payload.len() as u32,
            content,
            fate: Fate::InFlight,
            abandonment: Abandonment::None,
            fast: FastRetransmission::Never,
            route: Route::OnePath,
            turn: Turn::InOrder,
            path,
            transmissions: 1,
            copies: 0,
            sent: Time::ZERO,
            own_recover: None,
            reports: 0,
        }
    }

    /// Bytes that it counts towards windows: chunk header, payload and padding.
    pub(crate) fn size(&self) -> u32 {
        let header = if self.content.fsn.is_some() { I_DATA_HEADER_LEN } else { DATA_HEADER_LEN };
        header as u32 + self.payload_len + u32::from(self.padding)
    }

    pub(super) fn is_of(&self, message: &Partial) -> bool {
        self.content.partial.as_ref().is_some_and(|p| p.number == message.number)
    }

    /// Whether it begins an ordered message that has a stream sequence number.
    pub(crate) const fn is_numbered(&self) -> bool {
        let c = &self.content;
        c.beginning && !c.unordered && c.fsn.is_none()
    }

    /// Whether its message was abandoned.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandonment != Abandonment::None
    }

    /// Whether it was abandoned in flight, so that its loss still counts (RFC 3758 3.5 F5).
    pub(crate) fn is_watched(&self) -> bool {
        self.fate == Fate::Abandoned && self.abandonment == Abandonment::InFlight
    }

    /// Whether it was sent on more than one path.
    pub(crate) fn has_moved(&self) -> bool {
        self.route == Route::SeveralPaths
    }

    /// Whether it was ever marked for fast retransmission.
    pub(crate) fn was_fast_retransmitted(&self) -> bool {
        self.fast != FastRetransmission::Never
    }

    /// Records that it was marked for fast retransmission.
    pub(crate) fn note_fast_retransmission(&mut self) {
        if self.fast == FastRetransmission::Never {
            self.fast = FastRetransmission::Once;
        }
    }

    /// This chunk as a retransmission policy sees it.
    pub(crate) const fn as_lost(&self, tsn: Tsn, cause: LossCause) -> LostChunk {
        LostChunk { tsn, cause, last_path: self.path, transmissions: self.transmissions }
    }

    /// This chunk as a loss detector sees it; `recover` is the recover point of the association or
    /// of the path.
    pub(crate) fn as_missing(&self, tsn: Tsn, recover: Option<Tsn>) -> MissingChunk {
        MissingChunk {
            tsn,
            path: self.path,
            reports: self.reports,
            fast_retransmitted: self.fast == FastRetransmission::Last,
            own_recover: self.own_recover,
            transmissions: self.transmissions,
            sent: self.sent,
            recover,
        }
    }

    /// This chunk as a loss detector that watches time sees it.
    pub(crate) fn as_sent(&self, tsn: Tsn) -> SentChunk {
        let (sent, transmissions) = (self.sent, self.transmissions);
        SentChunk { tsn, sent, transmissions, probe: false }
    }

    /// Writes it as DATA or I-DATA. `immediate` sets the I bit even if the application did not ask
    /// for it.
    pub(crate) fn write(
        &self,
        tsn: Tsn,
        immediate: bool,
        retransmission: bool,
        w: &mut PacketWriter<'_>,
    ) -> Result<(), DoesNotFit> {
        let content = &self.content;
        let (stream, unordered, end) = (content.stream, content.unordered, content.end);
        let (immediate, payload) = (immediate || content.immediate, &content.payload[..]);
        let Some(fsn) = content.fsn else {
            return w.data(&Data {
                tsn,
                stream,
                // RFC 9260 3.3.1: 16 bits, without meaning in an unordered chunk.
                ssn: Ssn(if unordered { 0 } else { content.mid.0 as u16 }),
                ppid: content.ppid,
                unordered,
                beginning: content.beginning,
                end,
                immediate,
                retransmission,
                payload,
            });
        };
        w.i_data(&IData {
            tsn,
            stream,
            mid: content.mid,
            mark: if content.beginning {
                Mark::Beginning(content.ppid)
            } else {
                Mark::Fragment(fsn)
            },
            unordered,
            end,
            immediate,
            retransmission,
            payload,
        })
    }
}
