//! Path.Max.Retrans, alternates in round robin, back to the primary on its first answer.
//!
//! RFC 9260 6.4, 8.2; Caro 2006 (failover), Fig. 1:
//!
//! ```text
//!              errors of the primary > PMR
//!   Phase I  ------------------------------->  Phase II   <---+ errors of the stand-in > PMR:
//!   new data <-------------------------------  new data       | the next active path
//!   to the       the primary answers           to a stand-in -+ in round robin
//!   primary
//! ```
//!
//! When every path is inactive (the dormant state), new data stays with the path used last and the
//! first path to answer takes over.

use super::{FailoverPolicy, PathErrorKind};
use crate::PathId;
use crate::policy::{Answer, PathState, PathView, PathsView};

/// See the [module](self).
pub static STANDARD: Answer<dyn FailoverPolicy> = Answer {
    name: "standard",
    summary: "a path is inactive after Path.Max.Retrans errors, the primary is used again when it \
              answers (RFC 9260 8.2)",
    make: |_| Box::new(Standard),
};

#[derive(Debug)]
struct Standard;

impl FailoverPolicy for Standard {
    fn after_error(
        &mut self,
        path: &PathView,
        _: PathErrorKind,
        path_max_retrans: u32,
        _: PathsView<'_>,
    ) -> PathState {
        // RFC 9260 8.2: "When the value of this counter exceeds the protocol parameter
        // 'Path.Max.Retrans' of that destination address, the endpoint SHOULD mark the destination
        // transport address as inactive".
        if path.error_count > path_max_retrans { PathState::Inactive } else { path.state }
    }

    fn after_answer(&mut self, _: &PathView, _: PathsView<'_>) -> PathState {
        PathState::Active
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        let active = |p: &PathView| p.state == PathState::Active;
        if active(&paths.path(paths.primary())) {
            return paths.primary();
        }
        if active(&paths.path(paths.current())) {
            return paths.current();
        }
        paths.next_after(paths.current(), active).unwrap_or_else(|| paths.current())
    }
}
