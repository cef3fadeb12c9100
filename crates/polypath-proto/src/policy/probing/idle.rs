//! Probes paths that are idle or not active (RFC 9260 8.3).

use super::ProbingPolicy;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static IDLE: Entry<dyn ProbingPolicy> = Entry::new(
    "idle",
    "each heartbeat period, a path that is idle or not active (RFC 9260 8.3)",
    |_| Box::new(Idle),
);

#[derive(Debug)]
struct Idle;

impl ProbingPolicy for Idle {
    fn after_period(&mut self, path: &PathView, idle: bool, _: PathsView<'_>) -> bool {
        // RFC 9260 8.3: a path is idle "if no new chunk that can be used for updating path RTT ...
        // and no HEARTBEAT chunk has been sent to it within the current heartbeat period". A path
        // that is not active is probed even if it is not idle.
        idle || path.state != PathState::Active
    }

    fn after_timeout(&mut self, _: &PathView, _: PathsView<'_>) -> bool {
        false
    }
}
