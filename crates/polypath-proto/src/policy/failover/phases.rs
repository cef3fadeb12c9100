//! Phases I and II, for the policies that differ only in the dormant state.
//!
//! Caro 2006 (failover), Fig. 1:
//!
//! ```text
//!              errors of the primary > PMR
//!   Phase I  ------------------------------->  Phase II   <---+ errors of the alternate > PMR:
//!   new data <-------------------------------  new data on    | the next active path
//!   on the       the primary answers           an alternate  -+ in round robin
//!   primary
//! ```
//!
//! By ns-2's procedures the path for new data changes only when it becomes inactive and when the
//! primary answers: it stays in the dormant state, even if an alternate answers.

use super::{FailoverPolicy, PathErrorKind};
use crate::constants::Procedures;
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::Setup;

/// Phases I and II, and errors on the path for new data since it was chosen.
#[derive(Debug)]
struct Phases {
    ns2: bool,
    /// The path for new data, if it has had an error; by ns-2's procedures one that made it
    /// inactive.
    left: Option<PathId>,
}

impl Phases {
    fn new(setup: &Setup<'_>) -> Self {
        Self { ns2: setup.constants.procedures() == Procedures::Ns2, left: None }
    }

    /// The state of a path after an error.
    fn after_error(&mut self, path: &PathView, paths: PathsView<'_>) -> PathState {
        let state = inactive_above_pmr(path);
        let fails = state == PathState::Inactive && path.state != PathState::Inactive;
        if path.id == paths.current() && (fails || !self.ns2) {
            self.left = Some(path.id);
        }
        state
    }

    /// The path for new data. `dormant` chooses it in the dormant state; its argument is whether
    /// the path had an error.
    fn current(&mut self, paths: PathsView<'_>, dormant: impl FnOnce(bool) -> PathId) -> PathId {
        let (primary, current) = (paths.primary(), paths.current());
        let left = self.left.take() == Some(current);
        if paths.is_active(primary) {
            return primary;
        }
        if self.ns2 {
            let usable = |path| paths.state(path) != PathState::Inactive;
            return match paths.next_after(current, usable) {
                _ if !left => current,
                Some(path) => path,
                None => dormant(true),
            };
        }
        if paths.is_active(current) {
            return current;
        }
        paths.next_after(current, |path| paths.is_active(path)).unwrap_or_else(|| dormant(left))
    }
}

/// A policy that differs from others only in the dormant state.
#[derive(Debug)]
pub(super) struct Phased {
    phases: Phases,
    dormant: Dormant,
}

/// The rules of the dormant state, in which every path has failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dormant {
    /// The path for new data; `timeout` is whether the last one had a timeout.
    pub(super) data: fn(timeout: bool, PathsView<'_>) -> PathId,
    /// The path for the retransmission of a chunk that was last sent on `last`.
    pub(super) retransmission: fn(last: PathId, PathsView<'_>) -> PathId,
}

impl Phased {
    pub(super) fn boxed(setup: &Setup<'_>, dormant: Dormant) -> Box<dyn FailoverPolicy> {
        Box::new(Self { phases: Phases::new(setup), dormant })
    }
}

impl FailoverPolicy for Phased {
    fn after_error(
        &mut self,
        path: &PathView,
        _: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        self.phases.after_error(path, paths)
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        self.phases.current(paths, |timeout| (self.dormant.data)(timeout, paths))
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        (self.dormant.retransmission)(last, paths)
    }
}

/// The state of a path after an error, by Path.Max.Retrans alone.
pub(super) fn inactive_above_pmr(path: &PathView) -> PathState {
    // RFC 9260 8.2: "When the value of this counter exceeds the protocol parameter
    // 'Path.Max.Retrans' of that destination address, the endpoint SHOULD mark the destination
    // transport address as inactive".
    if path.error_count > path.thresholds.path_max_retrans {
        PathState::Inactive
    } else {
        path.state
    }
}

/// The path for new data, if it has had an error since it was chosen; for policies with a
/// potentially failed state.
#[derive(Debug)]
pub(super) struct TimedOut(Option<PathId>);

impl TimedOut {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    /// The state of a path after an error: potentially failed above `potentially_failed_above`
    /// errors, inactive above Path.Max.Retrans.
    pub(super) fn after_error(
        &mut self,
        path: &PathView,
        paths: PathsView<'_>,
        potentially_failed_above: u32,
    ) -> PathState {
        if path.id == paths.current() {
            self.0 = Some(path.id);
        }
        match inactive_above_pmr(path) {
            PathState::Active if path.error_count > potentially_failed_above => {
                PathState::PotentiallyFailed
            }
            state => state,
        }
    }

    /// Returns whether the path for new data has had an error, and clears that.
    pub(super) fn take(&mut self, paths: PathsView<'_>) -> bool {
        self.0.take() == Some(paths.current())
    }
}

/// The next path in round robin in any state but unconfirmed.
pub(super) fn hop(from: PathId, paths: PathsView<'_>) -> PathId {
    paths.next_after(from, |path| paths.state(path) != PathState::Unconfirmed).unwrap_or(from)
}
