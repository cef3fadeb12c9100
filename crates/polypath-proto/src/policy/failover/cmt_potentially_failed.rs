//! CMT-PF: concurrent multipath transfer that stops sending on a path at its first timeout.
//!
//! Natarajan, Ekiz, Amer, Iyengar, Stewart, "Concurrent multipath transfer using SCTP multihoming:
//! introducing the potentially-failed destination state" (2009), 1 and 3.1, and for the details its
//! reference 9, TR 2007/338. Chunks lost on a failing path keep the data after them in the receive
//! buffer until it is full, which stops all other paths; CMT-PF sends no data on such a path until
//! it answers. The states and thresholds are those of [RFC 7829](super::potentially_failed), which
//! adopted this state; a star marks the additions of CMT-PF:
//!
//! ```text
//!            a timeout                              timeouts > PMR
//!   active  ---------->  potentially failed (PF)  ------------------>  inactive
//!     ^ ^                     |         |                                 |
//!     | +--* no path is active: the PF path with the fewest timeouts in   |
//!     |      a row, of several the latest; cwnd = 1 packet                |
//!     +---- an answer; * to a HEARTBEAT on a PF path: cwnd = 2 packets ---+
//! ```
//!
//! - With Path.Max.Retrans 0 the first timeout makes a path inactive; with
//!   `potentially_failed_max_retrans` above 0 it takes more than one timeout to make it potentially
//!   failed.
//! - A potentially failed path gets a HEARTBEAT at once, and another at each of its timeouts, with
//!   the RTO doubled. This holds even if idle paths get none (HB.interval off), since otherwise the
//!   path would never be active again.
//! - Data outstanding on it is retransmitted on active paths, which also carry the new data. A path
//!   chosen from several potentially failed ones is active like any other until its next timeout.
//! - `potentially_failed_cwnd` is the window in packets after a HEARTBEAT ACK: 2, which makes up
//!   for the round trip of the probe (3.1), or 1.

use std::cmp::{Ordering, Reverse};

use super::potentially_failed::PotentiallyFailed;
use super::{Ambiguity, FailoverPolicy, NoActivePath, PathErrorKind};
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::{Entry, Setup};
use crate::policy::retransmission::LATER_IF_ODD;
use crate::rng::Rng;
use crate::time::Time;

/// See the [module](self).
pub static CMT_POTENTIALLY_FAILED: Entry<dyn FailoverPolicy> = Entry::new(
    "cmt-potentially-failed",
    "as potentially-failed; if every path is, the one with the fewest timeouts is taken back, and \
              an answered probe gives potentially_failed_cwnd (CMT-PF; Natarajan 2009)",
    boxed,
);

/// The policy of the paper, whatever the sender.
pub(crate) fn boxed(setup: &Setup<'_>) -> Box<dyn FailoverPolicy> {
    Box::new(CmtPotentiallyFailed::new(setup))
}

#[derive(Debug)]
struct CmtPotentiallyFailed {
    states: PotentiallyFailed,
    cwnd_after_probe: u32,
}

impl CmtPotentiallyFailed {
    fn new(setup: &Setup<'_>) -> Self {
        Self {
            states: PotentiallyFailed::new(true),
            cwnd_after_probe: setup.constants.potentially_failed_cwnd(),
        }
    }
}

/// The failed path with the fewest consecutive timeouts; among equals the one that
/// failed latest, so that worked most recently; among those that failed at the same instant a
/// random one.
pub(crate) fn least_failed(
    failed: impl Iterator<Item = PathView>,
    rng: &mut Rng,
) -> Option<PathId> {
    let mut best: Option<((u32, Reverse<Time>), PathId)> = None;
    let mut equals = 1;
    for path in failed {
        let rank = (path.error_count, Reverse(path.state_since));
        let order = best.map_or(Ordering::Less, |(least, _)| rank.cmp(&least));
        equals = if order == Ordering::Equal { equals + 1 } else { 1 };
        if order.is_lt() || (order.is_eq() && rng.takes_over(equals, LATER_IF_ODD)) {
            best = Some((rank, path.id));
        }
    }
    best.map(|(_, id)| id)
}

impl FailoverPolicy for CmtPotentiallyFailed {
    fn after_error(
        &mut self,
        path: &PathView,
        error: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        self.states.after_error(path, error, paths)
    }

    fn credits(&self, ambiguity: Ambiguity) -> bool {
        self.states.credits(ambiguity)
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        self.states.current(paths)
    }

    fn primary(&mut self, paths: PathsView<'_>) -> PathId {
        self.states.primary(paths)
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        self.states.retransmission(last, paths)
    }

    fn without_active_path(&self, paths: PathsView<'_>, rng: &mut Rng) -> NoActivePath {
        let failed = paths.iter().filter(|p| p.state == PathState::PotentiallyFailed);
        least_failed(failed, rng).map_or(NoActivePath::Send, NoActivePath::Activate)
    }

    fn cwnd_after_probe(&self) -> Option<u32> {
        Some(self.cwnd_after_probe)
    }

    fn probes_at_once(&self, path: &PathView) -> bool {
        self.states.probes_at_once(path)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::failover::testing::{A, Drill, I, P};

    fn drill(paths: u8, pmr: u32) -> Drill {
        Drill::new(&CMT_POTENTIALLY_FAILED, paths, pmr)
    }

    /// 1, 2: potentially failed after one timeout, inactive after PMR + 1.
    #[test]
    fn the_states_follow_the_timeouts() {
        for (pmr, expected) in [(0, vec![I]), (1, vec![P, I]), (3, vec![P, P, P, I])] {
            let mut drill = drill(2, pmr);
            let states: Vec<_> = (0..expected.len()).map(|_| drill.error(1).states()[1]).collect();
            assert_eq!(states, expected, "PMR {pmr}");
            assert_eq!(drill.answer(1).states(), [A, A]);
        }
    }

    /// 3.1: "the destination with the smallest number of consecutive timeouts"; among equals, the
    /// latest.
    #[test]
    fn of_paths_that_are_all_potentially_failed_one_is_taken_back() {
        let mut three = drill(3, 5);
        three.errors(&[2, 0, 1]);
        assert_eq!(three.strand(), NoActivePath::Activate(PathId(1)), "the latest of equals");
        assert_eq!(three.states(), [P, A, P]);
        three.errors(&[1]);
        assert_eq!(three.states(), [P, P, P], "its next timeout");
        assert_eq!(
            three.strand(),
            NoActivePath::Activate(PathId(0)),
            "fewer, and later than path 2"
        );
        // Inactive paths are not candidates.
        let mut two = drill(2, 1);
        two.errors(&[0, 0, 1]);
        assert_eq!((two.states(), two.strand()), (vec![I, P], NoActivePath::Activate(PathId(1))));
        two.errors(&[1]);
        assert_eq!((two.states(), two.strand()), (vec![I, I], NoActivePath::Send));
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Error(u8),
        Entry(u8),
        Strand,
    }

    proptest! {
        /// Compares the states with a model that keeps only consecutive errors and times of
        /// failure.
        #[test]
        fn states_agree_with_a_model(
            paths in 1u8..5,
            pmr in 0u32..5,
            steps in prop::collection::vec(
                prop_oneof![
                    4 => (0u8..5).prop_map(Step::Error),
                    1 => (0u8..5).prop_map(Step::Entry),
                    2 => Just(Step::Strand),
                ],
                1..80,
            ),
        ) {
            let mut drill = drill(paths, pmr);
            // Consecutive errors, the time of the last change to PF, and whether the path is
            // active.
            let mut model: Vec<(u32, usize, bool)> = vec![(0, 0, true); usize::from(paths)];
            for (time, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Error(path) => {
                        let path = path % paths;
                        drill.error(path);
                        let (errors, since, active) = &mut model[usize::from(path)];
                        *errors += 1;
                        if std::mem::take(active) {
                            *since = time;
                        }
                    }
                    Step::Entry(path) => {
                        drill.answer(path % paths);
                        model[usize::from(path % paths)] = (0, 0, true);
                    }
                    Step::Strand if model.iter().all(|m| !m.2) => {
                        let failed = (0..paths).filter(|p| model[usize::from(*p)].0 <= pmr);
                        let best = failed.min_by_key(|p| {
                            let (errors, since, _) = model[usize::from(*p)];
                            (errors, Reverse(since))
                        });
                        let expected = best.map_or(NoActivePath::Send, |p| {
                            model[usize::from(p)].2 = true;
                            NoActivePath::Activate(PathId(p))
                        });
                        prop_assert_eq!(drill.strand(), expected);
                    }
                    Step::Strand => {}
                }
                let expected: Vec<_> = model
                    .iter()
                    .map(|(errors, _, active)| match errors {
                        _ if *active => A,
                        n if *n > pmr => I,
                        _ => P,
                    })
                    .collect();
                prop_assert_eq!(drill.states(), expected);
                let probed: Vec<u8> = (0..paths).filter(|p| drill.states()[usize::from(*p)] == P).collect();
                prop_assert_eq!(drill.probed(), probed);
            }
        }
    }
}
