//! Permanent failover if the throughput model predicts an advantage.
//!
//! Caro 2006 (failover), IV.2: "With an estimated RTT and loss rate (p) for each path, a sender can
//! apply Padhye's simplified throughput model", sqrt(3 / (4 p)) / RTT, "to compare paths and
//! determine if a permanent failover would be advantageous". The paper leaves the loss rate of an
//! idle path to future work. This policy sends no extra traffic to measure it: the data of Phase II
//! measures the alternate, and so do the HEARTBEATs of an idle path.
//!
//! ```text
//!   Phase II  --- error; the model prefers the alternate ---------------+-->  Phase I, with the
//!             --- the primary answers; the model prefers the alternate -+     alternate as primary
//! ```
//!
//! All else is as in Fig. 7. An idle path's estimate may be outdated: it dates from the path's last
//! use. Failovers stay temporary until both paths have enough samples, which has a cost: with PMR 0
//! the primary answers a round trip after its timeout, and it takes two or three failovers to get
//! enough samples of the alternate.
//!
//! The paper names this formula; [`super::full_model`] adds timeouts.

use super::dormant_hop::DORMANT_HOP;
use super::{FailoverPolicy, PathErrorKind};
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::{Entry, Setup};

/// See the [module](self).
pub static MODEL: Entry<dyn FailoverPolicy> = Entry::new(
    "model",
    "as dormant-hop; the substitute becomes the primary if sqrt(3/(4p))/RTT is larger on it \
              (Caro 2006, IV.2)",
    |setup| Box::new(Model::new(setup, |p, path, _| path.rtt * (p * 4.0 / 3.0).sqrt())),
);

/// Least number of samples for an estimate of a path.
const KNOWN: u32 = 50;

/// A path's times in seconds, as inputs of a formula.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) rtt: f64,
    /// The retransmission timeout without back-off, which reflects only the current errors.
    pub(super) rto: f64,
}

/// Seconds per packet at loss rate `p`, with `packets_an_ack` packets per acknowledgement.
pub(super) type Formula = fn(p: f64, path: Times, packets_an_ack: f64) -> f64;

#[derive(Debug)]
pub(super) struct Model {
    phases: Box<dyn FailoverPolicy>,
    formula: Formula,
    rto: [f64; 2],
}

impl Model {
    pub(super) fn new(setup: &Setup<'_>, formula: Formula) -> Self {
        let rto =
            [setup.constants.rto_min(), setup.constants.rto_max()].map(|rto| rto.as_secs_f64());
        Self { phases: DORMANT_HOP.make(setup), formula, rto }
    }

    /// Seconds per packet by the formula; `None` while the path has too few samples.
    fn cost(&self, path: &PathView) -> Option<f64> {
        if path.loss.samples() < KNOWN {
            return None;
        }
        let (lost, sent) = path.loss.share();
        let rtt = path.srtt?.as_secs_f64();
        let [min, max] = self.rto;
        // RFC 9260 6.3.1 C3.
        let rto = (rtt + 4.0 * path.rttvar?.as_secs_f64()).clamp(min, max);
        Some((self.formula)(f64::from(lost) / f64::from(sent), Times { rtt, rto }, PACKETS_AN_ACK))
    }

    /// The primary, or the alternate in use if that is active and better.
    fn preferred(&self, paths: PathsView<'_>) -> PathId {
        let (primary, stand_in) = (paths.path(paths.primary()), paths.path(paths.current()));
        let pays = match (self.cost(&primary), self.cost(&stand_in)) {
            (Some(primary), Some(stand_in)) => stand_in < primary,
            _ => false,
        };
        if pays && stand_in.state == PathState::Active { stand_in.id } else { primary.id }
    }
}

/// RFC 9260 6.2: "at least every second packet".
const PACKETS_AN_ACK: f64 = 2.0;

impl FailoverPolicy for Model {
    fn after_error(
        &mut self,
        path: &PathView,
        error: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        self.phases.after_error(path, error, paths)
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        self.phases.current(paths)
    }

    fn primary(&mut self, paths: PathsView<'_>) -> PathId {
        self.preferred(paths)
    }

    fn primary_after_answer(&mut self, paths: PathsView<'_>) -> PathId {
        self.preferred(paths)
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        self.phases.retransmission(last, paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::failover::testing::Drill;
    use crate::{Time, Tsn};
    use std::time::Duration;

    /// Gives a path `samples` chunks sent, `losses` of them lost, and one round-trip time of `rtt`
    /// ms.
    fn known(drill: &mut Drill, path: u8, losses: u32, rtt: u64, samples: u32) {
        let path = drill.path(path);
        for n in 0..samples {
            path.data_sent(Time::ZERO, Tsn(n), 1, 100);
            path.data_gone(100);
        }
        (0..losses).for_each(|_| path.count_loss());
        path.sample_rtt(Duration::from_millis(rtt));
    }

    /// The primary after an error, and the one after the old primary's answer.
    fn moves(primary: (u32, u64), stand_in: (u32, u64), samples: [u32; 2]) -> [u8; 2] {
        let mut drill = Drill::new(&MODEL, 2, 0);
        known(&mut drill, 0, primary.0, primary.1, samples[0]);
        known(&mut drill, 1, stand_in.0, stand_in.1, samples[1]);
        let mut late = Drill::new(&MODEL, 2, 0);
        late.error(0);
        known(&mut late, 0, primary.0, primary.1, samples[0]);
        known(&mut late, 1, stand_in.0, stand_in.1, samples[1]);
        [drill.error(0).primary(), late.answer(0).primary()]
    }

    /// IV.2: sqrt(3/(4p))/RTT decides: twice the delay is worth a quarter of the loss.
    #[test]
    fn delay_and_loss_are_weighed() {
        let known = [200, 200];
        assert_eq!(moves((20, 90), (4, 90), known), [1, 1]);
        assert_eq!(moves((4, 90), (20, 90), known), [0, 0]);
        assert_eq!(moves((20, 90), (3, 180), known), [1, 1]);
        assert_eq!(moves((20, 90), (6, 180), known), [0, 0]);
        assert_eq!(moves((10, 210), (10, 90), known), [1, 1]);
    }

    /// A path with too few samples changes nothing.
    #[test]
    fn both_paths_must_be_known() {
        assert_eq!(moves((20, 90), (0, 90), [KNOWN, KNOWN]), [1, 1]);
        assert_eq!(moves((20, 90), (0, 90), [KNOWN, KNOWN - 1]), [0, 0]);
        assert_eq!(moves((20, 90), (0, 90), [KNOWN - 1, KNOWN]), [0, 0]);
    }
}
