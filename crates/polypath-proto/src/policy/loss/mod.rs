//! When is a chunk lost?

use std::fmt::Debug;

use super::Answer;
use crate::ids::{PathId, Tsn};
use crate::time::Time;

pub mod multiple_fast_retransmit;
pub mod ns2;
pub mod split_fast_retransmit;
pub mod standard;

pub use multiple_fast_retransmit::MULTIPLE_FAST_RETRANSMIT;
pub use ns2::NS2;
pub use split_fast_retransmit::{SPLIT_FAST_RETRANSMIT, SPLIT_MULTIPLE_FAST_RETRANSMIT};
pub use standard::STANDARD;

/// Every policy.
pub static ANSWERS: &[&Answer<dyn LossDetector>] = &[
    &STANDARD,
    &MULTIPLE_FAST_RETRANSMIT,
    &SPLIT_FAST_RETRANSMIT,
    &SPLIT_MULTIPLE_FAST_RETRANSMIT,
    &NS2,
];

/// The chunks last sent on one path that a SACK newly acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewlyAckedOn {
    /// The lowest TSN.
    pub lowest: Option<Tsn>,
    /// The highest TSN.
    pub highest: Option<Tsn>,
    /// The highest TSN in gap blocks.
    pub highest_by_gaps: Option<Tsn>,
    /// When the most recently sent of them was sent. Chunks whose acknowledgement may belong to an
    /// earlier transmission do not count.
    pub last_sent: Option<Time>,
}

impl NewlyAckedOn {
    /// Records when an acknowledged chunk was last sent.
    pub(crate) fn note_sent(&mut self, sent: Time) {
        self.last_sent = self.last_sent.max(Some(sent));
    }

    pub(crate) fn note(&mut self, tsn: Tsn, by_gaps: bool) {
        if self.lowest.is_none_or(|l| tsn.is_before(l)) {
            self.lowest = Some(tsn);
        }
        if self.highest.is_none_or(|h| tsn.is_after(h)) {
            self.highest = Some(tsn);
        }
        if by_gaps && self.highest_by_gaps.is_none_or(|h| tsn.is_after(h)) {
            self.highest_by_gaps = Some(tsn);
        }
    }
}

/// The contents and effects of a SACK, for loss detection and window rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SackView<'a> {
    /// Its cumulative TSN ack.
    pub cumulative: Tsn,
    /// Whether it advanced the cumulative TSN ack point.
    pub advanced: bool,
    /// Highest TSN that it newly acknowledges, if any.
    pub highest_newly_acked: Option<Tsn>,
    /// Highest TSN that its cumulative TSN ack newly acknowledges.
    pub newly_acked_cumulatively: Option<Tsn>,
    /// Highest TSN that its gap blocks newly acknowledge.
    pub newly_acked_by_gaps: Option<Tsn>,
    /// The newly acknowledged TSNs of each path, by the path that a chunk was last sent on.
    pub newly_acked_on: &'a [NewlyAckedOn],
    /// When the most recently sent of the newly acknowledged chunks was sent; see
    /// [`NewlyAckedOn::last_sent`].
    pub last_sent: Option<Time>,
    /// Number of packets with DATA that it acknowledges, if both sides support DAC.
    pub packets: Option<u32>,
    /// Highest TSN that it acknowledges, newly or again.
    pub highest_acked: Tsn,
}

impl SackView<'_> {
    /// Whether it has gap blocks.
    pub fn has_gaps(&self) -> bool {
        self.highest_acked != self.cumulative
    }
}

/// A chunk that a SACK reports missing.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MissingChunk {
    /// Its TSN.
    pub tsn: Tsn,
    /// The path it was last sent on.
    pub path: PathId,
    /// Number of missing reports so far.
    pub reports: u32,
    /// Whether its last transmission was a fast retransmission.
    pub fast_retransmitted: bool,
    /// Whether it was ever marked for fast retransmission.
    pub ever_fast_retransmitted: bool,
    /// Recover point of this chunk: the highest TSN sent when it was last fast retransmitted. For a
    /// chunk first sent after higher TSNs on its path, the highest of those.
    pub own_recover: Option<Tsn>,
    /// Number of its transmissions.
    pub transmissions: u32,
    /// When it was last sent.
    pub sent: Time,
    /// The recover point of the association (or of the chunk's path, in CMT); see
    /// [`CwndUpdate::recover`](super::CwndUpdate::recover).
    pub recover: Option<Tsn>,
}

impl MissingChunk {
    /// Whether a SACK may report this chunk missing, if the most recent chunk that it newly
    /// acknowledges was sent at `last_sent`.
    ///
    /// RFC 9260 7.2.4 assumes that chunks are sent in TSN order. A retransmission is sent after
    /// chunks with higher TSNs, so only chunks sent after it can report it missing, in the time
    /// order of RFC 8985 3.1. Otherwise a SACK that acknowledges old chunks only now, because
    /// earlier SACKs had no room for their gap blocks, would report every retransmission in flight.
    pub fn may_be_reported_by(&self, last_sent: Option<Time>) -> bool {
        self.transmissions == 1 || last_sent.is_some_and(|last| last >= self.sent)
    }
}

/// Decides when a chunk is lost.
pub trait LossDetector: Send + Debug {
    /// A SACK has arrived; called before the other methods are called for it.
    fn on_sack(&mut self, _: &SackView<'_>) {}

    /// Only chunks below this TSN can be reported missing.
    fn horizon(&self, sack: &SackView<'_>) -> Tsn {
        sack.highest_acked
    }

    /// Whether chunks that wait for retransmission are reported missing like those in flight.
    fn looks_at_lost(&self) -> bool {
        false
    }

    /// Number of missing reports that `sack` adds to `chunk`, which it does not acknowledge.
    fn reports(&mut self, chunk: &MissingChunk, sack: &SackView<'_>) -> u32;

    /// Whether the chunk, whose `reports` include those of this SACK, is lost and is to be fast
    /// retransmitted.
    fn is_lost(&self, chunk: &MissingChunk) -> bool;
}
