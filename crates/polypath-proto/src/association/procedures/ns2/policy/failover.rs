//! Failover as in ns-2's SCTP module.
//!
//! The path for new data changes only when it becomes inactive and when the primary answers: it
//! stays in the dormant state, even if an alternate answers.

use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::{Entry, Setup};
use crate::policy::failover::cmt_potentially_failed::least_failed;
use crate::policy::failover::phases::{Dormant, inactive_above_pmr};
use crate::policy::failover::{
    self, Ambiguity, FailoverPolicy, NoActivePath, PathErrorKind, dormant_hop, dormant_last_dest,
    dormant_primary, standard,
};
use crate::rng::Rng;

/// The dormant state of the RFC's failover.
pub(super) static STANDARD: Entry<dyn FailoverPolicy> =
    Entry::new(failover::STANDARD.name, failover::STANDARD.summary, |_| {
        Phased::boxed(standard::DORMANT)
    });

/// dormantAction_ 0.
pub(super) static DORMANT_HOP: Entry<dyn FailoverPolicy> =
    Entry::new(failover::DORMANT_HOP.name, failover::DORMANT_HOP.summary, |_| {
        Phased::boxed(dormant_hop::DORMANT)
    });

/// dormantAction_ 1.
pub(super) static DORMANT_PRIMARY: Entry<dyn FailoverPolicy> =
    Entry::new(failover::DORMANT_PRIMARY.name, failover::DORMANT_PRIMARY.summary, |_| {
        Phased::boxed(dormant_primary::DORMANT)
    });

/// dormantAction_ 2.
pub(super) static DORMANT_LAST_DEST: Entry<dyn FailoverPolicy> =
    Entry::new(failover::DORMANT_LAST_DEST.name, failover::DORMANT_LAST_DEST.summary, |_| {
        Phased::boxed(dormant_last_dest::DORMANT)
    });

/// CMT-PF (useCmtPF_): a path that is taken back stays active until Path.Max.Retrans is exceeded or
/// an answer has cleared its errors. While any path is inactive none is taken back, and no data is
/// sent: SctpCMTAgent::Timeout, SelectFromPFDests.
pub(super) static CMT_POTENTIALLY_FAILED: Entry<dyn FailoverPolicy> = Entry::new(
    failover::CMT_POTENTIALLY_FAILED.name,
    failover::CMT_POTENTIALLY_FAILED.summary,
    |setup| Box::new(CmtPotentiallyFailed::new(setup)),
);

/// A policy that differs from others only in the dormant state.
#[derive(Debug)]
struct Phased {
    /// The path for new data, if an error has made it inactive.
    left: Option<PathId>,
    dormant: Dormant,
}

impl Phased {
    fn boxed(dormant: Dormant) -> Box<dyn FailoverPolicy> {
        Box::new(Self { left: None, dormant })
    }
}

impl FailoverPolicy for Phased {
    fn after_error(
        &mut self,
        path: &PathView,
        _: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        let state = inactive_above_pmr(path);
        let fails = state == PathState::Inactive && path.state != PathState::Inactive;
        if path.id == paths.current() && fails {
            self.left = Some(path.id);
        }
        state
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        let (primary, current) = (paths.primary(), paths.current());
        let left = self.left.take() == Some(current);
        if paths.is_active(primary) {
            return primary;
        }
        if !left {
            return current;
        }
        let usable = |path| paths.state(path) != PathState::Inactive;
        paths.next_after(current, usable).unwrap_or_else(|| (self.dormant.data)(true, paths))
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        (self.dormant.retransmission)(last, paths)
    }
}

#[derive(Debug)]
struct CmtPotentiallyFailed {
    /// The policy of the paper.
    paper: Box<dyn FailoverPolicy>,
    /// Whether inactive paths are probed too (HB.interval is on).
    heartbeats: bool,
}

impl CmtPotentiallyFailed {
    fn new(setup: &Setup<'_>) -> Self {
        Self {
            paper: failover::cmt_potentially_failed::boxed(setup),
            heartbeats: setup.constants.heartbeat_interval().is_some(),
        }
    }
}

impl FailoverPolicy for CmtPotentiallyFailed {
    fn after_error(
        &mut self,
        path: &PathView,
        error: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        let state = self.paper.after_error(path, error, paths);
        let becomes = state == PathState::PotentiallyFailed && path.state != state;
        let again = path.error_count > path.thresholds.potentially_failed_max_retrans + 1;
        if becomes && again { path.state } else { state }
    }

    fn credits(&self, ambiguity: Ambiguity) -> bool {
        self.paper.credits(ambiguity)
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        self.paper.current(paths)
    }

    fn primary(&mut self, paths: PathsView<'_>) -> PathId {
        self.paper.primary(paths)
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        self.paper.retransmission(last, paths)
    }

    /// Called also while a path is active: the module compares the paths before the first that is
    /// not potentially failed, as if one of them were to be taken back, and draws for their ties.
    fn without_active_path(&self, paths: PathsView<'_>, rng: &mut Rng) -> NoActivePath {
        if paths.iter().any(|p| p.state == PathState::Active) {
            let failed = paths.iter().take_while(|p| p.state == PathState::PotentiallyFailed);
            least_failed(failed, rng);
            return NoActivePath::Send;
        }
        let failed = paths.iter().filter(|p| p.state == PathState::PotentiallyFailed).count();
        if self.heartbeats && failed < paths.count() {
            return NoActivePath::Wait;
        }
        self.paper.without_active_path(paths, rng)
    }

    fn cwnd_after_probe(&self) -> Option<u32> {
        self.paper.cwnd_after_probe()
    }

    fn probes_at_once(&self, path: &PathView) -> bool {
        self.paper.probes_at_once(path)
    }
}
