//! SCTP-PF: a potentially failed state between active and inactive (RFC 7829).
//!
//! RFC 7829 3.2. State machine of each path, and the order of preference for new data:
//!
//! ```text
//!            errors > PFMR                          errors > PMR
//!   active  --------------->  potentially failed  --------------->  inactive
//!      ^                            |                                  |
//!      +---- an answer: a HEARTBEAT ACK, or data that was sent there only
//!
//!   new data, in this order: the primary if it is active; the path in use if it is active; the
//!   next active path; the potentially failed path with the fewest errors; the inactive path with
//!   the fewest errors
//! ```
//!
//! - PFMR is `potentially_failed_max_retrans` (3.2 (1)). If it is not below Path.Max.Retrans, paths
//!   are never potentially failed.
//! - A potentially failed path gets a HEARTBEAT at once and then one each RTO, regardless of
//!   HB.interval, unless heartbeats are disabled (3.2 (5), (6)).
//! - It carries new data and retransmissions only when no path is active (3.2 (3)). The one with
//!   the fewest errors is used then, which changes neither its state nor its error count (3.2 (4)).
//! - An acknowledged chunk makes a path active again if it was sent on that path only, even if
//!   T3-rtx had marked it lost (3.2 (9), (10)).
//! - In the dormant state the inactive path with the fewest errors is used (4.1). Among equals,
//!   here as in 3.2 (4), the path that failed last is tried last.
//! - Primary path switchover: above Primary.Switchover.Max.Retrans errors, here
//!   `change_primary_threshold`, the path in use becomes the primary (5). A threshold below PFMR is
//!   rejected.
//! - [`Event::PathState`](crate::Event::PathState) and [`PathState`] report the state (7.1),
//!   [`Association::set_thresholds`](crate::Association::set_thresholds) sets the thresholds of
//!   single paths (7.2). The state is not hidden from applications (7.3): one that does not need it
//!   can treat it as active.
//!
//! HEARTBEATs and data may time out together, so Association.Max.Retrans is reached sooner than
//! without this state (4).

use super::permanent::above_change_primary;
use super::phases::TimedOut;
use super::{Ambiguity, FailoverPolicy, PathErrorKind};
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static POTENTIALLY_FAILED: Entry<dyn FailoverPolicy> = Entry::new(
    "potentially-failed",
    "after potentially_failed_max_retrans errors a path is avoided and probed, after \
              Path.Max.Retrans inactive (SCTP-PF; RFC 7829)",
    |setup| Box::new(PotentiallyFailed::new(setup.constants.heartbeat_interval().is_some())),
);

#[derive(Debug)]
pub(super) struct PotentiallyFailed {
    timed_out: TimedOut,
    /// Whether potentially failed paths are probed.
    probes: bool,
}

impl PotentiallyFailed {
    pub(super) const fn new(probes: bool) -> Self {
        Self { timed_out: TimedOut::new(), probes }
    }
}

/// Of the paths in this state, the one with the fewest errors; among equals the first from `first`
/// on.
fn fewest_errors(paths: PathsView<'_>, first: usize, state: PathState) -> Option<PathId> {
    let n = paths.count();
    let all = (0..n).map(|step| paths.path(PathId(((first + step) % n) as u8)));
    all.filter(|p| p.state == state).min_by_key(|p| p.error_count).map(|p| p.id)
}

fn least_failed(paths: PathsView<'_>, first: usize) -> Option<PathId> {
    fewest_errors(paths, first, PathState::PotentiallyFailed)
        .or_else(|| fewest_errors(paths, first, PathState::Inactive))
}

impl FailoverPolicy for PotentiallyFailed {
    fn after_error(
        &mut self,
        path: &PathView,
        _: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        self.timed_out.after_error(path, paths, path.thresholds.potentially_failed_max_retrans)
    }

    fn credits(&self, ambiguity: Ambiguity) -> bool {
        // RFC 7829 3.2 (10): "Acknowledgments for data chunks that have been transmitted to one
        // destination address only MUST clear the error counter", also after a spurious T3-rtx.
        // (9): for other chunks they "SHOULD NOT", in the dormant state either.
        !ambiguity.on_several_paths
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        let (primary, current) = (paths.primary(), paths.current());
        let timed_out = self.timed_out.take(paths);
        if paths.is_active(primary) {
            return primary;
        }
        if paths.is_active(current) {
            return current;
        }
        paths
            .next_after(current, |path| paths.is_active(path))
            // RFC 7829 3.2 (4), 4.1 (c): among equals, not the path that failed last.
            .or_else(|| least_failed(paths, current.index() + usize::from(timed_out)))
            .unwrap_or(current)
    }

    fn primary(&mut self, paths: PathsView<'_>) -> PathId {
        above_change_primary(paths)
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        least_failed(paths, last.index() + 1).unwrap_or(last)
    }

    fn probes_at_once(&self, path: &PathView) -> bool {
        // RFC 7829 3.2 (5): not if heartbeats are disabled.
        self.probes && path.state == PathState::PotentiallyFailed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Thresholds;
    use crate::policy::failover::testing::{A, Drill, I, P};

    fn thresholds(pmr: u32, pfmr: u32, change_primary: Option<u32>) -> Thresholds {
        Thresholds { path_max_retrans: pmr, potentially_failed_max_retrans: pfmr, change_primary }
    }

    /// RFC 7829 3.2 (1), (2), (8): active, potentially failed, inactive, by two thresholds.
    #[test]
    fn the_states_follow_the_thresholds() {
        for (pmr, pfmr, expected) in
            [(2, 0, [P, P, I]), (2, 1, [A, P, I]), (2, 2, [A, A, I]), (2, 9, [A, A, I])]
        {
            let mut drill = Drill::with(&POTENTIALLY_FAILED, 2, thresholds(pmr, pfmr, None));
            let states = [0; 3].map(|path| drill.error(path).states()[0]);
            assert_eq!(states, expected, "PMR {pmr}, PFMR {pfmr}");
            assert_eq!(drill.answer(0).states(), [A, A]);
        }
    }

    /// 3.2 (3), (5), (7): an active path is preferred; the potentially failed one is probed, and
    /// active again when it answers.
    #[test]
    fn a_potentially_failed_path_is_avoided_and_probed() {
        let mut drill = Drill::new(&POTENTIALLY_FAILED, 3, 5);
        assert_eq!((drill.error(0).current(), drill.probed()), (1, vec![0]));
        assert_eq!(drill.error(0).current(), 1);
        assert_eq!((drill.error(1).current(), drill.probed()), (2, vec![0, 1]));
        assert_eq!((drill.answer(0).current(), drill.probed()), (0, vec![1]));
    }

    /// 3.2 (4): without an active path, the potentially failed path with the fewest errors is used.
    #[test]
    fn without_an_active_path_the_fewest_errors_decide() {
        let mut drill = Drill::new(&POTENTIALLY_FAILED, 3, 2);
        drill.errors(&[0, 0, 1, 2]);
        // Paths 1 and 2 have one each, and 2 has just failed.
        assert_eq!((drill.states(), drill.current()), (vec![P, P, P], 1));
        assert_eq!(drill.error(1).current(), 2);
        assert_eq!(drill.errors(&[1, 0]).current(), 2);
        assert_eq!((drill.states(), drill.retransmission(0)), (vec![I, I, P], 2));
    }

    /// 4.1: in the dormant state the inactive path with the fewest errors is used, and stays
    /// inactive.
    #[test]
    fn dormant_the_fewest_errors_decide() {
        let mut drill = Drill::new(&POTENTIALLY_FAILED, 3, 0);
        drill.errors(&[0, 1, 2, 2]);
        assert_eq!((drill.states(), drill.current()), (vec![I, I, I], 0));
        assert_eq!(drill.error(0).current(), 1);
        assert_eq!(drill.retransmission(1), 1);
        assert_eq!(drill.error(1).current(), 2);
        assert_eq!(drill.states(), [I, I, I]);
        assert_eq!(drill.probed(), []);
    }

    /// 3.2 (9), (10).
    #[test]
    fn only_what_was_sent_to_one_path_tells() {
        let policy = POTENTIALLY_FAILED.make(&crate::Config::rfc9260().setup());
        for bits in 0..8u8 {
            let [on_several_paths, timed_out, dormant] = [1, 2, 4].map(|bit| bits & bit != 0);
            let credited = policy.credits(Ambiguity { on_several_paths, timed_out, dormant });
            assert_eq!(credited, !on_several_paths, "{bits:b}");
        }
    }

    /// 5: above PSMR the path in use becomes the primary.
    #[test]
    fn the_primary_switches_over() {
        let mut drill = Drill::with(&POTENTIALLY_FAILED, 2, thresholds(5, 0, Some(1)));
        assert_eq!((drill.error(0).primary(), drill.current()), (0, 1));
        assert_eq!(drill.error(0).primary(), 1);
        assert_eq!((drill.answer(0).current(), drill.primary()), (1, 1));
    }
}
