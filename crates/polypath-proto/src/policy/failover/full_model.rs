//! Permanent failover by the throughput model with timeouts.
//!
//! Like [`super::model`], with the full formula that the paper simplifies (Padhye, Firoiu, Towsley,
//! Kurose 1998, (32)), in packets per second:
//!
//! ```text
//!                                 1
//!   ------------------------------------------------------------
//!   RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)
//! ```
//!
//! where b is the number of packets per acknowledgement, here two (RFC 9260 6.2), and T0 the RTO
//! without back-off. With an RTO.Min of one second, timeouts dominate as soon as p exceeds a few
//! percent, so this formula prefers less loss at a longer delay where the simplified one stays. The
//! limit by the receive buffer is left out because it is the same for all paths.
//!
//! Neither formula is better in every case (`docs/failover-model.md`): this one rightly moves from
//! 5 % at 90 ms to 1 % at 210 ms, but in simulations also to 2 and 3 %, where staying is better,
//! because timeouts are rarer than it predicts. Therefore `model` uses the formula that the paper
//! names.

use super::FailoverPolicy;
use super::model::{Model, Times};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static FULL_MODEL: Entry<dyn FailoverPolicy> = Entry::new(
    "full-model",
    "as model, by Padhye's formula with timeouts (Caro 2006, IV.2; Padhye et al. 1998)",
    |setup| Box::new(Model::new(setup, seconds_a_packet)),
);

fn seconds_a_packet(p: f64, path: Times, b: f64) -> f64 {
    let timeout = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0);
    path.rtt * (2.0 * b * p / 3.0).sqrt() + path.rto * timeout * p * (1.0 + 32.0 * p * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Caro 2006 (failover), Fig. 11: a primary of 90 ms with 5 % loss, an alternate of 210 ms. By
    /// this formula a move to 1 % is worthwhile, to 3 % and more it is not; the simplified model
    /// would not move to 1 % either.
    #[test]
    fn timeouts_weigh_more_than_the_delay() {
        let at = |p, rtt| seconds_a_packet(p, Times { rtt, rto: 1.0 }, 2.0);
        let stay = at(0.05, 0.09);
        assert!((1.0 / stay - 18.3).abs() < 0.1, "{}", 1.0 / stay);
        assert!((1.0 / at(0.01, 0.21) - 37.2).abs() < 0.1);
        assert!(at(0.01, 0.21) < stay && at(0.03, 0.21) > stay);
        let simplified = |p: f64, rtt| rtt / (3.0 / (4.0 * p)).sqrt();
        assert!(simplified(0.01, 0.21) > simplified(0.05, 0.09));
        // If all packets are lost, each costs 33 timeouts.
        assert!((at(1.0, 0.1) - 33.0).abs() < 0.2);
    }
}
