//! Heartbeat After RTO (HAR): besides, a path at once when T3-rtx has expired on it.
//!
//! Caro 2006 (retransmission policies), 4.1: "the Heartbeat After RTO (HAR) mechanism sends a
//! heartbeat immediately to the destination on which a timeout occurred", in addition to the
//! retransmission, which goes elsewhere. Its answer is a sample that brings the doubled RTO down
//! again; left alone, an alternate path that carries retransmissions only has none by Karn's rule,
//! and its RTO grows. If it is lost, that counts and doubles the RTO like that of any HEARTBEAT. It is
//! sent whatever HB.interval. ns-2: Agent/SCTP/HbAfterRto, which sends it only if another
//! destination is active: the retransmission probes this one otherwise.

use super::{IDLE, ProbingPolicy};
use crate::policy::{Answer, PathState, PathView, PathsView};

/// See the [module](self).
pub static AFTER_RTO: Answer<dyn ProbingPolicy> = Answer {
    name: "after-rto",
    summary: "besides, a path whose T3-rtx has expired, if another one is active \
              (Heartbeat After RTO; Caro 2006, 4.1)",
    make: |config| Box::new(AfterRto { idle: (IDLE.make)(config) }),
};

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
