//! Heartbeat After RTO (HAR): like [`IDLE`], and probes a path at once when T3-rtx expires on it.
//!
//! Caro 2006 (retransmission policies), 4.1: "the Heartbeat After RTO (HAR) mechanism sends a
//! heartbeat immediately to the destination on which a timeout occurred", in addition to the
//! retransmission on another path. Its HEARTBEAT ACK is a sample that reduces the doubled RTO
//! again. Without it, an alternate path that carries only retransmissions gets no samples by Karn's
//! rule, and its RTO grows. A lost HEARTBEAT counts as an error and doubles the RTO as usual. It is
//! sent regardless of HB.interval.

use super::ProbingPolicy;
use super::idle::IDLE;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static AFTER_RTO: Entry<dyn ProbingPolicy> = Entry::new(
    "after-rto",
    "besides, a path whose T3-rtx has expired, if another one is active \
              (Heartbeat After RTO; Caro 2006, 4.1)",
    |setup| Box::new(AfterRto { idle: IDLE.make(setup) }),
);

#[derive(Debug)]
struct AfterRto {
    idle: Box<dyn ProbingPolicy>,
}

impl ProbingPolicy for AfterRto {
    fn after_period(&mut self, path: &PathView, idle: bool, paths: PathsView<'_>) -> bool {
        self.idle.after_period(path, idle, paths)
    }

    fn after_timeout(&mut self, path: &PathView, paths: PathsView<'_>) -> bool {
        paths.iter().any(|other| other.id != path.id && other.state == PathState::Active)
    }
}
