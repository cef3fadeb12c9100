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
//! When every path is inactive (the dormant state, which the RFC leaves open), new data stays with the
//! path used last, retransmissions go from path to path, and the first path to answer takes over.

use super::phases::Phases;
use super::{FailoverPolicy, PathErrorKind};
use crate::PathId;
use crate::policy::{Answer, PathState, PathView, PathsView};

/// See the [module](self).
pub static STANDARD: Answer<dyn FailoverPolicy> = Answer {
    name: "standard",
    summary: "a path is inactive after Path.Max.Retrans errors, the primary is used again when it \
              answers (RFC 9260 8.2)",
    make: |config| Box::new(Standard(Phases::new(config))),
};

#[derive(Debug)]
struct Standard(Phases);

impl FailoverPolicy for Standard {
    fn after_error(
        &mut self,
        path: &PathView,
        _: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        self.0.after_error(path, paths)
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        self.0.current(paths, |_| paths.current())
    }
}
