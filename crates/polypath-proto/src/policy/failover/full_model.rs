//! Permanent failover by the throughput model with timeouts.
//!
//! As [`super::model`], by the formula that the paper's simplified one is a part of (Padhye, Firoiu, Towsley,
//! Kurose 1998, (32)), in packets a second:
//!
//! ```text
//!                                 1
//!   ------------------------------------------------------------
//!   RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)
//! ```
//!
//! with b packets an acknowledgement, two here (RFC 9260 6.2), and T0 the RTO before it is backed off. With
//! an RTO.Min of a second timeouts cost more than the rest as soon as p exceeds some percent, so this one
//! goes for less loss over a longer delay where the simplified one stays. The bound by the receive
//! buffer is left out: the buffer is the same whatever the path.
//!
//! Neither formula is the better one everywhere (`docs/failover-model.md`): from 5 % at 90 ms to 1 % at 210 ms
//! this one rightly goes, but also to 3 %, where staying is better: timeouts are rarer than it says. So the
//! one that the paper names is `model`.

use super::FailoverPolicy;
use super::model::{Model, Times};
use crate::policy::Answer;

/// See the [module](self).
pub static FULL_MODEL: Answer<dyn FailoverPolicy> = Answer {
    name: "full-model",
    summary: "as model, by Padhye's formula with timeouts (Caro 2006, IV.2; Padhye et al. 1998)",
    make: |config| Box::new(Model::new(config, seconds_a_packet)),
};

fn seconds_a_packet(p: f64, path: Times, b: f64) -> f64 {
    let timeout = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0);
    path.rtt * (2.0 * b * p / 3.0).sqrt() + path.rto * timeout * p * (1.0 + 32.0 * p * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Caro 2006 (failover), Fig. 11: a primary of 90 ms with 5 % loss, an alternate of 210 ms. To move to
    /// 1 % pays by this formula, to 3 % and more it does not; the simplified model would not even move to 1 %.
    #[test]
    fn timeouts_weigh_more_than_the_delay() {
        let at = |p, rtt| seconds_a_packet(p, Times { rtt, rto: 1.0 }, 2.0);
        let stay = at(0.05, 0.09);
        assert!((1.0 / stay - 18.3).abs() < 0.1, "{}", 1.0 / stay);
        assert!((1.0 / at(0.01, 0.21) - 37.2).abs() < 0.1);
        assert!(at(0.01, 0.21) < stay && at(0.03, 0.21) > stay);
        let simplified = |p: f64, rtt| rtt / (3.0 / (4.0 * p)).sqrt();
        assert!(simplified(0.01, 0.21) > simplified(0.05, 0.09));
        // With all packets lost it is a timeout for each, thirty-three times.
        assert!((at(1.0, 0.1) - 33.0).abs() < 0.2);
    }
}
