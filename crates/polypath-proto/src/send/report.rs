//! What a SACK has acknowledged: the facts on which policies decide.

use std::time::Duration;

use crate::ids::{PathId, Tsn};
use crate::policy::loss::{NewlyAckedOn, PathTimes, SackView};
use crate::policy::rtt_sampling::{AckedChunk, SackCause};
use crate::time::Time;

/// Effects of a SACK on one path. Bytes include chunk headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathReport {
    /// Bytes newly acknowledged.
    pub(crate) acked: u32,
    /// Those of them that gap blocks acknowledge.
    pub(crate) acked_by_gaps: u32,
    /// Bytes in flight before the SACK.
    pub(crate) in_flight_before: u32,
    pub(crate) newly_acked: NewlyAckedOn,
    /// The cumulative ack acknowledges a chunk that no gap block had acknowledged.
    pub(crate) cumulatively: bool,
    /// The cumulative ack acknowledges data that was in flight.
    pub(crate) earliest: bool,
    pub(crate) evidence: Evidence,
    /// The SACK acknowledges data that has certainly arrived over this path.
    pub(crate) answered: bool,
}

/// The kinds of chunks that a SACK acknowledges on one path, as far as they matter for the path's
/// errors (RFC 9260 8.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence(u8);

impl Evidence {
    /// A chunk was acknowledged: `on_several_paths` if it was sent on several paths, `timed_out` if
    /// T3-rtx had marked it lost.
    pub(crate) const fn note(&mut self, on_several_paths: bool, timed_out: bool) {
        self.0 |= 1 << (on_several_paths as u8 | (timed_out as u8) << 1);
    }

    /// Each kind once: whether it was sent on several paths, and whether T3-rtx had marked it lost.
    pub(crate) fn kinds(self) -> impl Iterator<Item = (bool, bool)> {
        (0..4u8).filter(move |kind| self.0 >> kind & 1 == 1).map(|k| (k & 1 == 1, k & 2 == 2))
    }
}

/// A chunk that an earlier SACK acknowledged and the current one does not (RFC 9260 6.2.1 D iii).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reneged {
    pub(crate) tsn: Tsn,
    /// The path it was last sent on.
    pub(crate) path: PathId,
    pub(crate) transmissions: u32,
    /// Bytes, chunk header included.
    pub(crate) size: u32,
}

/// What a SACK, or the cumulative TSN ack of a SHUTDOWN, has acknowledged.
#[derive(Debug, Default)]
pub(crate) struct SackReport {
    /// When it arrived.
    pub(crate) now: Time,
    pub(crate) cumulative: Tsn,
    /// Whether it advanced the cumulative TSN ack point.
    pub(crate) advanced: bool,
    /// Whether it came with gap ack blocks, or could have: false for a SHUTDOWN.
    pub(crate) selective: bool,
    /// Highest TSN that its cumulative TSN ack newly acknowledges.
    pub(crate) highest_cumulatively: Option<Tsn>,
    /// Highest TSN that its gap blocks newly acknowledge.
    pub(crate) highest_by_gaps: Option<Tsn>,
    /// Highest TSN that it acknowledges, newly or again.
    pub(crate) highest_acked: Tsn,
    /// The cumulative ack acknowledges a chunk that had been fast retransmitted.
    pub(crate) fast_retransmitted: bool,
    /// Number of packets with DATA that it answers, if it reports that.
    pub(crate) packets: Option<u32>,
    pub(crate) paths: Vec<PathReport>,
    /// The same of each path, for [`SackView`].
    pub(crate) newly_acked_on: Vec<NewlyAckedOn>,
    /// The newly acknowledged chunks, in the order of their TSNs.
    pub(crate) acked: Vec<AckedChunk>,
    pub(crate) reneged: Vec<Reneged>,
    /// The TSNs that the peer received more than once.
    pub(crate) duplicates: Vec<Tsn>,
    /// The peer's report on the packet that caused it.
    pub(crate) cause: SackCause,
}

impl SackReport {
    /// Highest TSN newly acknowledged.
    pub(crate) fn highest_newly_acked(&self) -> Option<Tsn> {
        // Gap ack blocks are above the cumulative TSN ack.
        self.highest_by_gaps.or(self.highest_cumulatively)
    }

    /// The SACK as policies see it.
    pub(crate) fn view(&self) -> SackView<'_> {
        SackView {
            now: self.now,
            acked: &self.acked,
            duplicates: &self.duplicates,
            cause: self.cause,
            cumulative: self.cumulative,
            advanced: self.advanced,
            highest_newly_acked: self.highest_newly_acked(),
            newly_acked_cumulatively: self.highest_cumulatively,
            newly_acked_by_gaps: self.highest_by_gaps,
            newly_acked_on: &self.newly_acked_on,
            last_sent: self.newly_acked_on.iter().filter_map(|on| on.last_sent).max(),
            packets: self.packets,
            highest_acked: self.highest_acked,
        }
    }

    /// Clears it for a SACK to an association with these bytes in flight on its paths.
    pub(super) fn begin(&mut self, now: Time, in_flight: impl Iterator<Item = u32>) {
        let Self {
            now: at,
            cumulative,
            advanced,
            selective,
            highest_cumulatively,
            highest_by_gaps,
            highest_acked,
            fast_retransmitted,
            packets,
            paths,
            newly_acked_on,
            acked,
            reneged,
            duplicates,
            cause,
        } = self;
        *at = now;
        (*cumulative, *highest_acked) = (Tsn(0), Tsn(0));
        (*advanced, *selective, *fast_retransmitted) = (false, false, false);
        (*highest_cumulatively, *highest_by_gaps, *packets) = (None, None, None);
        *cause = SackCause::default();
        paths.clear();
        paths.extend(
            in_flight.map(|in_flight_before| PathReport { in_flight_before, ..Default::default() }),
        );
        newly_acked_on.clear();
        acked.clear();
        reneged.clear();
        duplicates.clear();
    }
}

/// Memory for what one SACK reports, reused for the next.
#[derive(Debug, Default)]
pub(crate) struct SackMemory {
    /// `None` while a SACK is processed.
    pub(crate) report: Option<Box<SackReport>>,
    pub(crate) missing: Vec<(Tsn, PathId, u32)>,
    pub(crate) cause: SackCause,
    pub(crate) samples: Vec<(PathId, Duration)>,
    /// The state of the paths for a loss detector that watches time.
    pub(crate) times: Vec<PathTimes>,
}
