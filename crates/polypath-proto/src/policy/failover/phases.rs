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

use super::{FailoverPolicy, PathErrorKind};
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};

/// Phases I and II, and errors on the path for new data since it was chosen.
#[derive(Debug, Default)]
struct Phases {
    /// The path for new data, if it has had an error.
    left: Option<PathId>,
}

impl Phases {
    /// The state of a path after an error.
    fn after_error(&mut self, path: &PathView, paths: PathsView<'_>) -> PathState {
        if path.id == paths.current() {
            self.left = Some(path.id);
        }
        inactive_above_pmr(path)
    }

    /// The path for new data. `dormant` chooses it in the dormant state; its argument is whether
    /// the path had an error.
    fn current(&mut self, paths: PathsView<'_>, dormant: impl FnOnce(bool) -> PathId) -> PathId {
        let (primary, current) = (paths.primary(), paths.current());
        let left = self.left.take() == Some(current);
        if paths.is_active(primary) {
            return primary;
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
pub(crate) struct Dormant {
    /// The path for new data; `timeout` is whether the last one had a timeout.
    pub(crate) data: fn(timeout: bool, PathsView<'_>) -> PathId,
    /// The path for the retransmission of a chunk that was last sent on `last`.
    pub(crate) retransmission: fn(last: PathId, PathsView<'_>) -> PathId,
}

impl Phased {
    pub(super) fn boxed(dormant: Dormant) -> Box<dyn FailoverPolicy> {
        Box::new(Self { phases: Phases::default(), dormant })
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
pub(crate) fn inactive_above_pmr(path: &PathView) -> PathState {
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
