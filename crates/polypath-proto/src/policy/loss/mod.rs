//! When is a chunk lost?

use std::fmt::Debug;

use super::Answer;
use crate::{PathId, Time, Tsn};

pub mod multiple_fast_retransmit;
pub mod ns2;
pub mod split_fast_retransmit;
pub mod standard;

pub use multiple_fast_retransmit::MULTIPLE_FAST_RETRANSMIT;
pub use ns2::NS2;
pub use split_fast_retransmit::{SPLIT_FAST_RETRANSMIT, SPLIT_MULTIPLE_FAST_RETRANSMIT};
pub use standard::STANDARD;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn LossDetector>] = &[
    &STANDARD,
    &MULTIPLE_FAST_RETRANSMIT,
    &SPLIT_FAST_RETRANSMIT,
    &SPLIT_MULTIPLE_FAST_RETRANSMIT,
    &NS2,
];

/// What a SACK acknowledges for the first time on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewlyAckedOn {
    /// The lowest TSN.
    pub lowest: Option<Tsn>,
    /// The highest TSN.
    pub highest: Option<Tsn>,
    /// The highest TSN in gap blocks.
    pub highest_by_gaps: Option<Tsn>,
    /// When the last of them to leave was sent. Chunks whose acknowledgement may be one of an earlier
    /// transmission do not count.
    pub last_sent: Option<Time>,
}

impl NewlyAckedOn {
    /// A chunk that was sent then, and for the last time, has been acknowledged.
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

/// What a SACK said, for the rules that judge by it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SackView<'a> {
    /// Its cumulative TSN ack.
    pub cumulative: Tsn,
    /// It moved the cumulative TSN ack point.
    pub advanced: bool,
    /// Highest TSN that it acknowledges for the first time, if any.
    pub highest_newly_acked: Option<Tsn>,
    /// Of these, the highest that its cumulative TSN ack covers, and the highest in gap blocks.
    pub newly_acked_cumulatively: Option<Tsn>,
    /// See there.
    pub newly_acked_by_gaps: Option<Tsn>,
    /// The same for each path, by the path that a chunk was last sent to.
    pub newly_acked_on: &'a [NewlyAckedOn],
    /// When the last chunk to leave of those that it acknowledges for the first time was sent; see
    /// [`NewlyAckedOn::last_sent`].
    pub last_sent: Option<Time>,
    /// How many packets with DATA it answers, if that was agreed on (DAC).
    pub packets: Option<u32>,
    /// Highest TSN that it acknowledges at all.
    pub highest_acked: Tsn,
}

impl SackView<'_> {
    /// It has gap blocks.
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
    /// The path that it was last sent to.
    pub path: PathId,
    /// Missing reports so far.
    pub reports: u32,
    /// It has been fast retransmitted since it was last sent by timeout or for the first time.
    pub fast_retransmitted: bool,
    /// It has been marked for fast retransmission before, whatever came after.
    pub ever_fast_retransmitted: bool,
    /// Recover point of its own: the highest TSN that had been sent when it was last fast
    /// retransmitted, if it ever was, or when it first left after higher ones.
    pub own_recover: Option<Tsn>,
    /// How often it has been sent.
    pub transmissions: u32,
    /// When it was last sent.
    pub sent: Time,
    /// The recover point of the association (or of the chunk's path, in CMT); see
    /// [`CwndUpdate::recover`](super::CwndUpdate::recover).
    pub recover: Option<Tsn>,
}

impl MissingChunk {
    /// Chunks of which the last was sent at `last_sent` have been acknowledged: whether that may report
    /// this one missing.
    ///
    /// RFC 9260 7.2.4 takes TSNs for the order in which chunks left. A retransmission leaves after chunks
    /// with higher TSNs, so it is missing only by what left after it, in the time order of RFC 8985 3.1.
    /// Otherwise a SACK that reports old chunks for the first time, since earlier SACKs had no room for
    /// their gap blocks, would report every retransmission on its way.
    pub fn may_be_reported_by(&self, last_sent: Option<Time>) -> bool {
        self.transmissions == 1 || last_sent.is_some_and(|last| last >= self.sent)
    }
}

/// Decides when a chunk is lost.
pub trait LossDetector: Send + Debug {
    /// A SACK has arrived; called before the questions about it.
    fn on_sack(&mut self, _: &SackView<'_>) {}

    /// Only chunks below this TSN are looked at.
    fn horizon(&self, sack: &SackView<'_>) -> Tsn {
        sack.highest_acked
    }

    /// Chunks that wait for their retransmission are looked at like those in flight.
    fn looks_at_lost(&self) -> bool {
        false
    }

    /// How many missing reports `sack` adds to `chunk`, which it does not acknowledge.
    fn reports(&mut self, chunk: &MissingChunk, sack: &SackView<'_>) -> u32;

    /// The chunk, with its reports counted, is lost and is to be fast retransmitted.
    fn is_lost(&self, chunk: &MissingChunk) -> bool;
}
