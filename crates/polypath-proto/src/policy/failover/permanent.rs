//! Permanent failover: a primary that has failed for long enough is replaced.
//!
//! Caro 2006 (failover), IV, Fig. 9: Fig. 7 with two more transitions, which avoid the return to a
//! recovered primary and its slow start:
//!
//! ```text
//!   Phase II   --- errors of the primary > CPT --->  Phase I with the alternate as primary
//!   Phase III  --- errors of the primary > CPT --->  Phase III with the path in use as primary
//! ```
//!
//! CPT is `change_primary_threshold`; "off" means infinity, which is Dormant Hop. It is compared
//! with the primary's error count, as in RFC 7829 5 (Primary.Switchover.Max.Retrans). In the
//! paper's text CPT counts the HEARTBEATs lost since the failover, but in the simulator of its
//! figures, with PMR 0, the failover itself exceeds CPT 0.

use super::dormant_hop::DORMANT_HOP;
use super::{FailoverPolicy, PathErrorKind};
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static PERMANENT: Entry<dyn FailoverPolicy> = Entry::new(
    "permanent",
    "as dormant-hop; after change_primary_threshold errors the substitute becomes the primary \
              (permanent failover; Caro 2006, IV)",
    |setup| Box::new(Permanent(DORMANT_HOP.make(setup))),
);

#[derive(Debug)]
struct Permanent(Box<dyn FailoverPolicy>);

impl FailoverPolicy for Permanent {
    fn after_error(
        &mut self,
        path: &PathView,
        error: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        self.0.after_error(path, error, paths)
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        self.0.current(paths)
    }

    fn primary(&mut self, paths: PathsView<'_>) -> PathId {
        above_change_primary(paths)
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        self.0.retransmission(last, paths)
    }
}

/// The primary, or the path for new data once the primary's errors exceed its threshold.
pub(super) fn above_change_primary(paths: PathsView<'_>) -> PathId {
    let primary = paths.path(paths.primary());
    match primary.thresholds.change_primary {
        Some(threshold) if primary.error_count > threshold => paths.current(),
        _ => primary.id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Thresholds;
    use crate::policy::failover::testing::{Drill, I};

    fn thresholds(path_max_retrans: u32, change_primary: Option<u32>) -> Thresholds {
        Thresholds { path_max_retrans, potentially_failed_max_retrans: 0, change_primary }
    }

    /// Fig. 9, Phase II: above CPT the alternate is the primary, and the former primary's answer
    /// changes nothing.
    #[test]
    fn above_cpt_the_stand_in_becomes_the_primary() {
        for cpt in [1, 2, 4] {
            let mut drill = Drill::with(&PERMANENT, 3, thresholds(1, Some(cpt)));
            drill.errors(&vec![0; cpt as usize]);
            assert_eq!((drill.primary(), drill.current()), (0, u8::from(cpt > 1)));
            drill.error(0);
            assert_eq!((drill.primary(), drill.current()), (1, 1));
            assert_eq!((drill.answer(0).primary(), drill.current()), (1, 1));
        }
    }

    /// A failover exceeds a threshold below PMR; without a threshold, the primary is always used
    /// again.
    #[test]
    fn it_takes_a_failover_to_make_one_permanent() {
        let mut drill = Drill::with(&PERMANENT, 2, thresholds(3, Some(0)));
        assert_eq!(drill.errors(&[0, 0, 0]).primary(), 0);
        assert_eq!(drill.error(0).primary(), 1);
        let mut drill = Drill::with(&PERMANENT, 2, thresholds(0, None));
        assert_eq!(drill.errors(&[0; 50]).primary(), 0);
        assert_eq!(drill.answer(0).current(), 0);
    }

    /// Fig. 9, Phase III.
    #[test]
    fn dormant_the_path_in_use_becomes_the_primary() {
        let mut drill = Drill::with(&PERMANENT, 2, thresholds(0, Some(1)));
        assert_eq!(drill.errors(&[0, 1]).current(), 0);
        drill.error(0);
        assert_eq!((drill.primary(), drill.states()), (1, vec![I, I]));
    }
}
