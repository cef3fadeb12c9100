//! Redirect on the first timeout, detect failure in the background: what the paper advocates.
//!
//! Caro 2006 (failover), V, Fig. 13:
//!
//! ```text
//!              one timeout of the primary                    errors of the primary > PMR
//!   Phase I  ------------------------------>  Phase II  --------------------------------->  Phase III
//!   new data <------------------------------  new data     +--+ timeout where new data      new data
//!   to the       the primary answers          to others    |  | goes: on to the next path   to others,
//!   primary                                   <------------+  | that has not failed         the primary
//!      ^                                                                                    is inactive
//!      +------------------------------------------------------------------------------------+
//!                                     the primary answers
//! ```
//!
//! A path with an error is potentially failed and asked by a HEARTBEAT at once and after each one that
//! is lost, until it answers or Path.Max.Retrans is exceeded: redirecting early takes nothing from the
//! accuracy of detection. Once every path has failed, data goes to the next one with each timeout, as
//! in Fig. 7.

use super::phases::{active, hop, inactive_above_pmr};
use super::{FailoverPolicy, PathErrorKind};
use crate::PathId;
use crate::policy::{Answer, PathState, PathView, PathsView};

/// See the [module](self).
pub static TWO_PHASE: Answer<dyn FailoverPolicy> = Answer {
    name: "two-phase",
    summary: "each timeout redirects new data, a path is inactive after Path.Max.Retrans errors \
              (Caro 2006, V, Fig. 13)",
    make: |_| Box::new(TwoPhase { timed_out: None }),
};

#[derive(Debug)]
struct TwoPhase {
    /// The path for new data has had an error since it was chosen.
    timed_out: Option<PathId>,
}

fn has_not_failed(path: &PathView) -> bool {
    matches!(path.state, PathState::Active | PathState::PotentiallyFailed)
}

impl FailoverPolicy for TwoPhase {
    fn after_error(
        &mut self,
        path: &PathView,
        _: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        if path.id == paths.current() {
            self.timed_out = Some(path.id);
        }
        match inactive_above_pmr(path) {
            PathState::Active => PathState::PotentiallyFailed,
            state => state,
        }
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        let (primary, current) = (paths.primary(), paths.current());
        let timed_out = self.timed_out.take() == Some(current);
        if active(&paths.path(primary)) {
            return primary;
        }
        if !timed_out && has_not_failed(&paths.path(current)) {
            return current;
        }
        match paths.next_after(current, has_not_failed) {
            Some(path) => path,
            None if timed_out => hop(current, paths),
            None => current,
        }
    }

    fn probes_at_once(&self, path: &PathView) -> bool {
        path.state == PathState::PotentiallyFailed
    }
}
