//! Permanent failover where the throughput model says that it pays.
//!
//! Caro 2006 (failover), IV.2: "With an estimated RTT and loss rate (p) for each path, a sender can apply
//! Padhye's simplified throughput model", sqrt(3 / (4 p)) / RTT, "to compare paths and determine if a
//! permanent failover would be advantageous". How to know an idle path's loss rate the paper leaves as
//! future work. Here nothing is sent for it: Phase II is the measurement, for its data goes over the
//! stand-in, and so are the HEARTBEATs of an idle path.
//!
//! ```text
//!   Phase II   --- error; the model prefers the stand-in --->  Phase I with the stand-in as primary
//! ```
//!
//! with Fig. 7 for all else. An idle path's estimate may be old: it is as good as its last use. Until
//! a path has carried a few chunks its failovers are temporary, which is what this costs.

use super::{DORMANT_HOP, FailoverPolicy, PathErrorKind};
use crate::PathId;
use crate::policy::{Answer, PathState, PathView, PathsView};

/// See the [module](self).
pub static MODEL: Answer<dyn FailoverPolicy> = Answer {
    name: "model",
    summary: "as dormant-hop; the stand-in becomes the primary if sqrt(3/(4p))/RTT is larger there \
              (Caro 2006, IV.2)",
    make: |config| Box::new(Model((DORMANT_HOP.make)(config))),
};

/// A path with fewer samples is not known.
const KNOWN: u32 = 50;

#[derive(Debug)]
struct Model(Box<dyn FailoverPolicy>);

/// p RTT^2, which falls as the model's throughput rises; `None` while it is not known.
fn cost(path: &PathView) -> Option<u128> {
    let (lost, sent) = path.loss.share();
    let rtt = path.srtt?.as_micros();
    (path.loss.samples() >= KNOWN).then(|| rtt * rtt * u128::from(lost) * SCALE / u128::from(sent))
}

/// Digits of a share.
const SCALE: u128 = 1 << 20;

impl FailoverPolicy for Model {
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
        let (primary, stand_in) = (paths.path(paths.primary()), paths.path(paths.current()));
        let pays = match (cost(&primary), cost(&stand_in)) {
            (Some(primary), Some(stand_in)) => stand_in < primary,
            _ => false,
        };
        if pays && stand_in.state == PathState::Active { stand_in.id } else { primary.id }
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        self.0.retransmission(last, paths)
    }
}
