//! When is a chunk lost?
//!
//! A detector finds losses in one of two ways. It counts missing reports: after each SACK it sees
//! every chunk in flight that the SACK does not acknowledge, by TSN. Or it watches time: for each
//! path it judges the chunk that was sent earliest, again after each loss, and sets a deadline at
//! which it is called even if no SACK arrives.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use crate::ids::{PathId, Tsn};
use crate::policy::entry::Entry;
use crate::policy::rtt_sampling::{AckedChunk, SackCause};
use crate::time::Time;

pub mod multiple_fast_retransmit;
pub mod rack;
pub mod split_fast_retransmit;
pub mod standard;

pub use multiple_fast_retransmit::MULTIPLE_FAST_RETRANSMIT;
pub use rack::RACK;
pub use split_fast_retransmit::{SPLIT_FAST_RETRANSMIT, SPLIT_MULTIPLE_FAST_RETRANSMIT};
pub use standard::STANDARD;

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn LossDetector>] = &[
    &STANDARD,
    &MULTIPLE_FAST_RETRANSMIT,
    &SPLIT_FAST_RETRANSMIT,
    &SPLIT_MULTIPLE_FAST_RETRANSMIT,
    &RACK,
];

/// The chunks last sent on one path that a SACK newly acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewlyAckedOn {
    /// The lowest TSN.
    pub lowest: Option<Tsn>,
    /// The highest TSN.
    pub highest: Option<Tsn>,
    /// When the most recently sent of them was sent. Chunks whose acknowledgement may belong to an
    /// earlier transmission do not count.
    pub last_sent: Option<Time>,
}

impl NewlyAckedOn {
    /// Records when an acknowledged chunk was last sent.
    pub(crate) fn note_sent(&mut self, sent: Time) {
        self.last_sent = self.last_sent.max(Some(sent));
    }

    pub(crate) fn note(&mut self, tsn: Tsn) {
        if self.lowest.is_none_or(|l| tsn.is_before(l)) {
            self.lowest = Some(tsn);
        }
        if self.highest.is_none_or(|h| tsn.is_after(h)) {
            self.highest = Some(tsn);
        }
    }
}

/// The contents and effects of a SACK, for loss detection and window rules.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SackView<'a> {
    /// When it arrived.
    pub now: Time,
    /// The chunks that it newly acknowledges, in the order of their TSNs.
    pub acked: &'a [AckedChunk],
    /// The TSNs that the peer reports as received more than once, in any order.
    pub duplicates: &'a [Tsn],
    /// The peer's report on the packet that caused it, if that extension was negotiated.
    pub cause: SackCause,
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

/// A chunk in flight, as a detector that watches time sees it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SentChunk {
    /// Its TSN.
    pub tsn: Tsn,
    /// When it was last sent.
    pub sent: Time,
    /// Number of its transmissions.
    pub transmissions: u32,
    /// Whether it was sent as the probe that the detector asked for.
    pub probe: bool,
}

/// What a path recovers from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovering {
    /// Nothing.
    #[default]
    No,
    /// A loss that the detector found, for which the window was cut (fast recovery).
    Loss,
    /// An expiry of T3-rtx.
    Timeout,
}

/// The state of a path, as a detector that watches time sees it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PathTimes {
    /// The current time.
    pub now: Time,
    /// The path.
    pub id: PathId,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Duration>,
    /// The shortest round-trip time, once there is a sample.
    pub min_rtt: Option<Duration>,
    /// When T3-rtx expires, if it runs.
    pub t3: Option<Time>,
    /// Bytes in flight, chunk headers included.
    pub in_flight: u32,
    /// Bytes of the largest chunk that fits a packet, chunk header included (PMDCS).
    pub max_chunk: u32,
    /// TSN of the association's next new chunk.
    pub next_tsn: Tsn,
    /// What the path recovers from.
    pub recovering: Recovering,
    /// The current SACK has shown that T3-rtx expired spuriously: it acknowledges the first
    /// transmissions of chunks that have been retransmitted since.
    pub spurious_timeout: bool,
}

/// What a detector asks for when its deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// [`LossDetector::judge`] is called.
    Judge,
    /// A probe of the path: new data if there is any and the peer has room for it, otherwise the
    /// chunk that was sent last, whatever the window. T3-rtx starts anew.
    Probe,
    /// No probe, but T3-rtx starts anew.
    NoProbe,
}

/// Decides when a chunk is lost.
pub trait LossDetector: Any + Send + Debug {
    // Both ways.

    /// A SACK has arrived; called before the other methods are called for it. `paths` has one entry
    /// for each path if the detector [watches time](Self::watches_time), otherwise it is empty.
    fn on_sack(&mut self, _sack: &SackView<'_>, _paths: &[PathTimes]) {}

    // Missing reports.

    /// Only chunks below this TSN can be reported missing.
    fn horizon(&self, sack: &SackView<'_>) -> Tsn {
        sack.highest_acked
    }

    /// Whether chunks that wait for retransmission are reported missing like those in flight.
    fn includes_lost(&self) -> bool {
        false
    }

    /// Number of missing reports that `sack` adds to `chunk`, which it does not acknowledge.
    fn reports(&mut self, _chunk: &MissingChunk, _sack: &SackView<'_>) -> u32 {
        0
    }

    /// Whether the chunk, whose `reports` include those of this SACK, is lost and is to be fast
    /// retransmitted.
    fn is_lost(&mut self, _chunk: &MissingChunk) -> bool {
        false
    }

    // Time.

    /// Whether the methods below are called. Recovery then has rules that need them as well:
    /// retransmissions are paced by acknowledgements (RFC 6937), spurious ones are undone, and any
    /// acknowledgement ends the back-off of the RTO.
    fn watches_time(&self) -> bool {
        false
    }

    /// A chunk was sent on a path, for the first time or again.
    fn on_sent(&mut self, _chunk: &SentChunk, _path: &PathTimes) {}

    /// Whether the chunk is lost that was sent earliest of those in flight on a path. Called after
    /// each SACK and deadline until it returns false, then with the next chunk; with `None` if
    /// nothing is in flight. The last call is the time to set the path's deadline.
    fn judge(&mut self, _oldest: Option<&SentChunk>, _path: &PathTimes) -> bool {
        false
    }

    /// Whether T3-rtx, which has expired on a path, leaves this chunk in flight. Not asked for the
    /// chunk that was sent earliest, which is always lost.
    fn survives_timeout(&self, _chunk: &SentChunk, _path: &PathTimes) -> bool {
        false
    }

    /// T3-rtx has expired on a path, and chunks have been marked lost.
    fn on_timeout(&mut self, _path: &PathTimes) {}

    /// When [`on_deadline`](Self::on_deadline) is to be called for a path. Read after each of the
    /// calls above.
    fn deadline(&self, _path: PathId) -> Option<Time> {
        None
    }

    /// The deadline of a path has passed.
    fn on_deadline(&mut self, _path: &PathTimes) -> Alarm {
        Alarm::NoProbe
    }

    /// The TSN of a lost chunk of a path that a probe has repaired: the window is cut for it. Asked
    /// once after each SACK.
    fn repaired(&mut self, _path: PathId) -> Option<Tsn> {
        None
    }
}
