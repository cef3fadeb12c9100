//! When is a path given up, and when taken back? Which path takes new data meanwhile?
//!
//! The phases are those of Caro 2006 (failover): in Phase I new data goes to the primary, in Phase II
//! to a stand-in, and Phase III is the dormant state, in which no path is left.

use std::fmt::Debug;

use super::{Answer, PathState, PathView, PathsView, retransmission};
use crate::{PathId, Rng};

pub mod cmt_potentially_failed;
pub mod dormant_hop;
pub mod dormant_last_dest;
pub mod dormant_primary;
pub mod full_model;
pub mod model;
pub mod permanent;
mod phases;
pub mod potentially_failed;
pub mod standard;
#[cfg(test)]
mod testing;
pub mod two_phase;

pub use cmt_potentially_failed::CMT_POTENTIALLY_FAILED;
pub use dormant_hop::DORMANT_HOP;
pub use dormant_last_dest::DORMANT_LAST_DEST;
pub use dormant_primary::DORMANT_PRIMARY;
pub use full_model::FULL_MODEL;
pub use model::MODEL;
pub use permanent::PERMANENT;
pub use potentially_failed::POTENTIALLY_FAILED;
pub use standard::STANDARD;
pub use two_phase::TWO_PHASE;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn FailoverPolicy>] = &[
    &STANDARD,
    &DORMANT_HOP,
    &DORMANT_PRIMARY,
    &DORMANT_LAST_DEST,
    &PERMANENT,
    &MODEL,
    &FULL_MODEL,
    &TWO_PHASE,
    &POTENTIALLY_FAILED,
    &CMT_POTENTIALLY_FAILED,
];

/// What happened on a path that counts as an error (RFC 9260 8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathErrorKind {
    /// T3-rtx expired.
    DataTimeout,
    /// A HEARTBEAT was not answered within the RTO.
    HeartbeatTimeout,
}

/// What there is to say against the acknowledgement of a chunk as a sign of life of the path that it was
/// last sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Doubts {
    /// It was sent to another path before, and may have arrived there.
    pub wandered: bool,
    /// T3-rtx has given it up, and it has not left again: it may have arrived long ago, and only the
    /// SACK for it was missing.
    pub given_up: bool,
    /// Every path is inactive.
    pub dormant: bool,
}

/// What an association does that has something to send while no path is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stranded {
    /// It sends where [`FailoverPolicy::current`] and [`FailoverPolicy::retransmission`] say.
    Sends,
    /// This path becomes active again, with a congestion window of one packet.
    TakesBack(PathId),
    /// It waits for the answer to a HEARTBEAT.
    Waits,
}

/// How many errors in a row change what: of an association by its configuration, and of single paths
/// while it runs ([`Association::set_thresholds`](crate::Association::set_thresholds)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Path.Max.Retrans (PMR): with more the path is inactive (RFC 9260 8.2).
    pub path_max_retrans: u32,
    /// PotentiallyFailed.Max.Retrans (PFMR): with more it is potentially failed (RFC 7829 3.2).
    pub potentially_failed_max_retrans: u32,
    /// The Change Primary Threshold (CPT): with more another path becomes the primary for good
    /// (Caro 2006, failover, IV; RFC 7829 5, Primary.Switchover.Max.Retrans). `None`: never.
    pub change_primary: Option<u32>,
}

/// Decides when a path is given up and taken back. Unconfirmed paths are not its business
/// (RFC 9260 5.4).
pub trait FailoverPolicy: Send + Debug {
    /// The state of `path` after an error; `path.error_count` counts it already.
    fn after_error(
        &mut self,
        path: &PathView,
        error: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState;

    /// The state of `path` after the peer acknowledged data or a HEARTBEAT sent to it.
    fn after_answer(&mut self, path: &PathView, paths: PathsView<'_>) -> PathState {
        let _ = (path, paths);
        PathState::Active
    }

    /// A chunk was acknowledged: does that clear the errors of the path that it was last sent to?
    ///
    /// RFC 9260 8.2: where it was sent to several, "this ambiguity does not seem to have significant
    /// consequences", but either doubt would hide the failure of a path. When every path has failed,
    /// any sign counts.
    fn believes(&self, doubts: Doubts) -> bool {
        !doubts.given_up && (doubts.dormant || !doubts.wandered)
    }

    /// The path for new data (for all of it, or as the scheduler's starting point). Asked after
    /// every change.
    fn current(&mut self, paths: PathsView<'_>) -> PathId;

    /// The primary after an error, once new data has its path: another one makes a failover
    /// permanent.
    fn primary(&mut self, paths: PathsView<'_>) -> PathId {
        paths.primary()
    }

    /// The primary after the answer of a path that had failed, before new data may return to it: another
    /// one than the path that answered makes its failover permanent.
    fn primary_after_answer(&mut self, paths: PathsView<'_>) -> PathId {
        paths.primary()
    }

    /// Where a chunk is sent again that was sent to `last` before, while no path is active; else the
    /// [retransmission policy](super::RetransmissionPolicy) says it. By default to the next one: it
    /// may be back.
    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        retransmission::alternate(last, paths)
    }

    /// Something is to be sent, and no path is active. Ties between paths are decided by `rng`.
    fn stranded(&self, paths: PathsView<'_>, rng: &mut Rng) -> Stranded {
        let _ = (paths, rng);
        Stranded::Sends
    }

    /// The congestion window, in PMDCS, of a potentially failed path that a HEARTBEAT ACK brings back;
    /// `None` leaves it as it is.
    fn cwnd_after_probe(&self) -> Option<u32> {
        None
    }

    /// An error was counted on `path`, which has its state already: is it probed at once, whatever
    /// HB.interval?
    fn probes_at_once(&self, path: &PathView) -> bool {
        let _ = path;
        false
    }
}
