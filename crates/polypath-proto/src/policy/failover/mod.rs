//! When does a path fail, and when is it active again? Which path carries new data meanwhile?
//!
//! The phases are those of Caro 2006 (failover): in Phase I new data is sent on the primary, in
//! Phase II on an alternate, and Phase III is the dormant state, in which every path has failed.

use std::fmt::Debug;
use std::time::Duration;

use super::retransmission;
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::Entry;
use crate::rng::Rng;
use crate::time::Time;

pub mod cmt_potentially_failed;
pub mod dormant_hop;
pub mod dormant_last_dest;
pub mod dormant_primary;
pub mod full_model;
pub mod model;
pub mod permanent;
pub(crate) mod phases;
pub mod potentially_failed;
pub mod standard;
pub mod suspect;
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
pub use suspect::SUSPECT;
pub use two_phase::TWO_PHASE;

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn FailoverPolicy>] = &[
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
    &SUSPECT,
];

/// The events on a path that count as errors (RFC 9260 8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathErrorKind {
    /// T3-rtx expired.
    DataTimeout,
    /// A HEARTBEAT was not answered within the RTO.
    HeartbeatTimeout,
}

/// Reasons not to credit the acknowledgement of a chunk to the path it was last sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ambiguity {
    /// It was sent on another path before, and that copy may be the one that arrived.
    pub on_several_paths: bool,
    /// T3-rtx marked it lost, and it was not retransmitted yet: an early copy may have arrived, and
    /// only its SACK was late or lost.
    pub timed_out: bool,
    /// Every path is inactive.
    pub dormant: bool,
}

/// How an association sends while no path is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoActivePath {
    /// It sends on the paths that [`FailoverPolicy::current`] and
    /// [`FailoverPolicy::retransmission`] choose.
    Send,
    /// This path becomes active again, with a congestion window of one packet.
    Activate(PathId),
    /// It waits for a HEARTBEAT ACK.
    Wait,
}

pub use crate::constants::Thresholds;

/// How long a path may be silent before it is suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Since the oldest data in flight on it was sent.
    pub age: Duration,
    /// Since anything sent on it was last acknowledged.
    pub quiet: Duration,
    /// What a single packet in flight adds to both: the peer may delay its SACK.
    pub single: Duration,
}

impl Patience {
    /// With a single packet in flight, or with several.
    pub(crate) fn with(self, single: bool) -> Self {
        let more = if single { self.single } else { Duration::ZERO };
        Self { age: self.age + more, quiet: self.quiet + more, ..self }
    }
}

/// Decides when a path fails and when it is active again. Does not handle unconfirmed paths (RFC
/// 9260 5.4).
pub trait FailoverPolicy: Send + Debug {
    /// The state of `path` after an error; `path.error_count` includes it.
    fn after_error(
        &mut self,
        path: &PathView,
        error: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState;

    /// The state of `path` after the peer acknowledged data or a HEARTBEAT sent on it.
    fn after_answer(&mut self, path: &PathView, paths: PathsView<'_>) -> PathState {
        let _ = (path, paths);
        PathState::Active
    }

    /// Whether the acknowledgement of a chunk clears the errors of the path it was last sent on.
    ///
    /// RFC 9260 8.2: for a chunk sent on several paths, "this ambiguity does not seem to have
    /// significant consequences". But crediting such a chunk, or one that T3-rtx marked lost, could
    /// hide the failure of a path. When every path is inactive, a chunk sent on several paths
    /// counts as well.
    fn credits(&self, ambiguity: Ambiguity) -> bool {
        !ambiguity.timed_out && (ambiguity.dormant || !ambiguity.on_several_paths)
    }

    /// The path for new data (for all of it, or as the scheduler's starting point). Called after
    /// every change of a path's state or errors.
    fn current(&mut self, paths: PathsView<'_>) -> PathId;

    /// The primary after an error, called after [`current`](Self::current): a change makes the
    /// failover permanent.
    fn primary(&mut self, paths: PathsView<'_>) -> PathId {
        paths.primary()
    }

    /// The primary after a failed path has answered, called before new data may return to it: a
    /// change makes the failover permanent.
    fn primary_after_answer(&mut self, paths: PathsView<'_>) -> PathId {
        paths.primary()
    }

    /// The path for the retransmission of a chunk last sent on `last`, while no path is active;
    /// otherwise the [retransmission policy](super::RetransmissionPolicy) chooses it. By default
    /// the next path, which may work again.
    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        retransmission::alternate(last, paths)
    }

    /// Called when data waits to be sent and no path is active. `rng` breaks ties between paths.
    fn without_active_path(&self, paths: PathsView<'_>, rng: &mut Rng) -> NoActivePath {
        let _ = (paths, rng);
        NoActivePath::Send
    }

    /// The congestion window, in PMDCS, of a potentially failed path that a HEARTBEAT ACK
    /// reactivates; `None` leaves it unchanged.
    fn cwnd_after_probe(&self) -> Option<u32> {
        None
    }

    /// How long `path` may leave data unacknowledged before [`after_silence`](Self::after_silence)
    /// is called; `None` waits for its timers. Called only if the policy
    /// [needs](crate::policy::Needs::silence) it.
    fn patience(&self, path: &PathView, paths: PathsView<'_>) -> Option<Patience> {
        let _ = (path, paths);
        None
    }

    /// The state of `path`, which is active, after its patience is exhausted or the host has
    /// reported that it cannot send on it. Unless it stays active, the data in flight on it is
    /// sent again on other paths. Called only if another path is active.
    fn after_silence(&mut self, path: &PathView, paths: PathsView<'_>) -> PathState {
        let _ = paths;
        path.state
    }

    /// The share of its recent packets ([`LossEstimate::recent`](crate::LossEstimate::recent))
    /// that a path may lose before [`after_losses`](Self::after_losses) is called.
    fn most_losses(&self) -> f64 {
        1.0
    }

    /// The state of `path`, which is active and loses more than [`most_losses`](Self::most_losses).
    /// Unless it stays active, the data in flight on it is sent again on other paths. Called after
    /// each acknowledgement if the policy [needs](crate::policy::Needs::silence) it, and only if
    /// another path is active.
    fn after_losses(&mut self, now: Time, path: &PathView, paths: PathsView<'_>) -> PathState {
        let _ = (now, paths);
        path.state
    }

    /// A path that was silent has delivered its data after all: it is active again.
    fn on_spurious(&mut self, now: Time, path: PathId) {
        let _ = (now, path);
    }

    /// Data that was sent on `path` was acknowledged. Called only if the policy
    /// [needs](crate::policy::Needs::silence) it.
    fn on_acknowledged(&mut self, now: Time, path: PathId) {
        let _ = (now, path);
    }

    /// Longest time between HEARTBEATs on `path`, which is not active, while another path carries
    /// data; `None` leaves them to the RTO and HB.interval.
    fn probe_interval(&self, now: Time, path: &PathView) -> Option<Duration> {
        let _ = (now, path);
        None
    }

    /// Time between HEARTBEATs on `path` while no path answers, after a silence of `silent`; `None`
    /// leaves them to the RTO and HB.interval. At least the RTO without its back-off is waited.
    fn search_interval(&self, silent: Duration, path: &PathView) -> Option<Duration> {
        let _ = (silent, path);
        None
    }

    /// Whether to probe `path` at once after an error, regardless of HB.interval. `path` has its
    /// new state already.
    fn probes_at_once(&self, path: &PathView) -> bool {
        let _ = path;
        false
    }
}
