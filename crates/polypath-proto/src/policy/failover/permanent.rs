//! Permanent failover: a primary that has failed for long enough is not the primary any more.
//!
//! Caro 2006 (failover), IV, Fig. 9: Fig. 7 with two more transitions, so that the way back to a
//! recovered primary, and its slow start, is spared:
//!
//! ```text
//!   Phase II   --- errors of the primary > CPT --->  Phase I with the stand-in as primary
//!   Phase III  --- errors of the primary > CPT --->  Phase III with the path in use as primary
//! ```
//!
//! CPT is `change_primary_threshold`; "off" is infinity, which leaves Dormant Hop. It is compared with
//! the primary's error count, as RFC 7829 5 (Primary.Switchover.Max.Retrans) and ns-2
//! (changePrimaryThresh_) do. By the paper's text CPT counts the heartbeats lost since the failover; its
//! figures come from ns-2, where with PMR 0 CPT 0 is exceeded by the failover itself.

use super::{DORMANT_HOP, FailoverPolicy, PathErrorKind};
use crate::PathId;
use crate::policy::{Answer, PathState, PathView, PathsView};

/// See the [module](self).
pub static PERMANENT: Answer<dyn FailoverPolicy> = Answer {
    name: "permanent",
    summary: "as dormant-hop; after change_primary_threshold errors the stand-in becomes the primary \
              (permanent failover; Caro 2006, IV)",
    make: |config| Box::new(Permanent((DORMANT_HOP.make)(config))),
};

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
