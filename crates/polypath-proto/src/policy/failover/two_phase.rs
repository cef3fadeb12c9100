//! Redirects new data on the first timeout and detects failure in the background, as the paper
//! advocates.
//!
//! Caro 2006 (failover), V, Fig. 13:
//!
//! ```text
//!              one timeout of the primary                 errors of the primary > PMR
//!   Phase I  ------------------------------>  Phase II  -----------------------------> Phase III
//!   new data <------------------------------  new data     +--+ timeout on their path: new data
//!   on the       the primary answers          on others    |  | the next path that     on others,
//!   primary                                   <------------+  | has not failed         the primary
//!      ^                                                                               is inactive
//!      +--------------------------------------------------------------------------------+
//!                                     the primary answers
//! ```
//!
//! A path with an error is potentially failed. It is probed by a HEARTBEAT at once, and again after
//! each lost HEARTBEAT, until it answers or exceeds Path.Max.Retrans: redirecting early does not
//! make failure detection less accurate. Once every path has failed, each timeout moves new data to
//! the next path, as in Fig. 7.

use super::phases::{TimedOut, hop};
use super::{FailoverPolicy, PathErrorKind};
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static TWO_PHASE: Entry<dyn FailoverPolicy> = Entry::new(
    "two-phase",
    "each timeout redirects new data, a path is inactive after Path.Max.Retrans errors \
              (Caro 2006, V, Fig. 13)",
    |setup| {
        Box::new(TwoPhase {
            timed_out: TimedOut::new(),
            probes: setup.constants.heartbeat_interval().is_some(),
        })
    },
);

#[derive(Debug)]
struct TwoPhase {
    timed_out: TimedOut,
    /// Whether potentially failed paths are probed: not if heartbeats are disabled.
    probes: bool,
}

fn has_not_failed(state: PathState) -> bool {
    matches!(state, PathState::Active | PathState::PotentiallyFailed)
}

impl FailoverPolicy for TwoPhase {
    fn after_error(
        &mut self,
        path: &PathView,
        _: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        self.timed_out.after_error(path, paths, 0)
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        let (primary, current) = (paths.primary(), paths.current());
        let timed_out = self.timed_out.take(paths);
        if paths.is_active(primary) {
            return primary;
        }
        if !timed_out && has_not_failed(paths.state(current)) {
            return current;
        }
        match paths.next_after(current, |path| has_not_failed(paths.state(path))) {
            Some(path) => path,
            None if timed_out => hop(current, paths),
            None => current,
        }
    }

    fn probes_at_once(&self, path: &PathView) -> bool {
        self.probes && path.state == PathState::PotentiallyFailed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::failover::testing::{A, Drill, I, P};

    /// Fig. 13, Phase II: each timeout redirects new data, even to a path with errors, until the
    /// primary answers.
    #[test]
    fn each_timeout_redirects() {
        let mut drill = Drill::new(&TWO_PHASE, 3, 5);
        assert_eq!(drill.error(0).current(), 1);
        assert_eq!((drill.states(), drill.probed()), (vec![P, A, A], vec![0]));
        assert_eq!(drill.error(1).current(), 2);
        assert_eq!(drill.error(2).current(), 0);
        assert_eq!(drill.error(0).current(), 1);
        // A lost HEARTBEAT on another path moves nothing.
        assert_eq!(drill.error(2).current(), 1);
        assert_eq!((drill.answer(0).current(), drill.states()), (0, vec![A, P, P]));
    }

    /// Fig. 13, Phase III: above PMR the primary has failed; failed paths are skipped, and the
    /// primary remains the primary.
    #[test]
    fn failure_is_pmr_errors_as_ever() {
        let mut drill = Drill::new(&TWO_PHASE, 3, 1);
        drill.errors(&[0, 0]);
        assert_eq!((drill.states(), drill.current(), drill.primary()), (vec![I, A, A], 1, 0));
        assert_eq!(drill.probed(), []);
        assert_eq!(drill.error(1).current(), 2);
        assert_eq!(drill.error(2).current(), 1);
        assert_eq!(drill.answer(0).current(), 0);
    }

    /// When every path has failed, the policy acts like Dormant Hop.
    #[test]
    fn dormant_it_hops() {
        let mut drill = Drill::new(&TWO_PHASE, 3, 0);
        assert_eq!(drill.errors(&[0, 1]).current(), 2);
        assert_eq!(drill.error(2).current(), 0);
        assert_eq!(drill.error(0).current(), 1);
    }
}
