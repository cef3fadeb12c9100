//! SCTP-PF: a potentially failed state between active and inactive (RFC 7829).
//!
//! RFC 7829 3.2; the first state machine is each path's own:
//!
//! ```text
//!            errors > PFMR                          errors > PMR
//!   active  --------------->  potentially failed  --------------->  inactive
//!      ^                            |                                  |
//!      +---- an answer: a HEARTBEAT ACK, or data that was sent there only
//!
//!   new data, in this order: the primary if it is active; the path in use if it is; the next active
//!   one; the potentially failed one with the fewest errors; the inactive one with the fewest errors
//! ```
//!
//! - PFMR is `potentially_failed_max_retrans` (3.2 (1)); with one that is not below Path.Max.Retrans there
//!   is no such state.
//! - A potentially failed path gets a HEARTBEAT at once and then one each RTO, whatever HB.interval, if
//!   there are heartbeats at all (3.2 (5), (6)).
//! - New data goes to it, and retransmissions leave an active path for it, only when no path is active
//!   (3.2 (3)); then to the one with the fewest errors, which changes neither its state nor its error
//!   count (3.2 (4)).
//! - An acknowledged chunk brings a path back if it was sent there only, even one that T3-rtx had
//!   given up (3.2 (9), (10)).
//! - In the dormant state data goes to the inactive path with the fewest errors; of several, to another
//!   one than failed last (4.1).
//! - Primary path switchover: after more errors than Primary.Switchover.Max.Retrans, here
//!   `change_primary_threshold`, the path in use becomes the primary (5). A threshold below PFMR is
//!   refused.
//! - [`Event::PathState`](crate::Event::PathState) and [`PathState`] tell the state (7.1),
//!   [`Association::set_thresholds`](crate::Association::set_thresholds) sets them for single paths (7.2).
//!   Nothing hides the state from an application (7.3): one that does not care takes it for active.
//!
//! As heartbeats and data may time out together, Association.Max.Retrans is reached sooner than without
//! it (4).

use super::permanent::above_change_primary;
use super::phases::{active, inactive_above_pmr};
use super::{Doubts, FailoverPolicy, PathErrorKind};
use crate::PathId;
use crate::policy::{Answer, PathState, PathView, PathsView};

/// See the [module](self).
pub static POTENTIALLY_FAILED: Answer<dyn FailoverPolicy> = Answer {
    name: "potentially-failed",
    summary: "after potentially_failed_max_retrans errors a path is avoided and probed, after \
              Path.Max.Retrans inactive (SCTP-PF; RFC 7829)",
    make: |_| Box::new(PotentiallyFailed),
};

#[derive(Debug)]
struct PotentiallyFailed;

/// Of the paths in this state, the first with the fewest errors, in round robin from `first` on.
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
    fn after_error(&mut self, path: &PathView, _: PathErrorKind, _: PathsView<'_>) -> PathState {
        match inactive_above_pmr(path) {
            PathState::Active
                if path.error_count > path.thresholds.potentially_failed_max_retrans =>
            {
                PathState::PotentiallyFailed
            }
            state => state,
        }
    }

    fn believes(&self, doubts: Doubts) -> bool {
        // RFC 7829 3.2 (10): "Acknowledgments for data chunks that have been transmitted to one
        // destination address only MUST clear the error counter", also after a spurious T3-rtx. (9): of
        // others they "SHOULD NOT", in the dormant state neither.
        !doubts.wandered
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        let (primary, current) = (paths.primary(), paths.current());
        if active(&paths.path(primary)) {
            return primary;
        }
        if active(&paths.path(current)) {
            return current;
        }
        paths
            .next_after(current, active)
            .or_else(|| least_failed(paths, current.index()))
            .unwrap_or(current)
    }

    fn primary(&mut self, paths: PathsView<'_>) -> PathId {
        above_change_primary(paths)
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        least_failed(paths, last.index() + 1).unwrap_or(last)
    }

    fn probes_at_once(&self, path: &PathView) -> bool {
        path.state == PathState::PotentiallyFailed
    }
}
