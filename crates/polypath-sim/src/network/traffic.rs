//! Sources of background traffic: packets that no SCTP stack sees.
//!
//! Many on/off sources whose on and off times follow a Pareto distribution give self-similar
//! traffic: with shape a, 1 < a < 2, the Hurst parameter is (3 - a) / 2 (Taqqu, Willinger, Sherman
//! 1997). caro2006-retransmission 2.1 and natarajan2009 3 use such cross-traffic.

use std::time::Duration;

use polypath_proto::Time;

use super::topology::LinkId;
use crate::random::Random;

/// A source, as the scenario describes it.
#[derive(Clone, Debug)]
pub(crate) struct TrafficPlan {
    /// Name of the source; it determines the source's random stream.
    pub(crate) name: String,
    /// Links of the packets' route, in order; at least one.
    pub(crate) way: Vec<LinkId>,
    /// Bytes of a packet, headers included.
    pub(crate) size: u32,
    /// Nanoseconds from packet to packet while the source sends.
    pub(crate) interval: f64,
    /// Start of the source.
    pub(crate) start: Time,
    pub(crate) pattern: Pattern,
}

/// Sending pattern of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// The source always sends.
    Constant,
    /// The source sends in bursts.
    Pareto(OnOff),
}

/// Bursts and the time between them, both Pareto-distributed: P(X > x) = (minimum / x)^shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OnOff {
    /// Above 1, so that the means exist; below 2 the variance is infinite.
    pub(crate) shape: f64,
    /// Mean length of a burst.
    pub(crate) on: Duration,
    /// Mean time between bursts.
    pub(crate) off: Duration,
}

impl OnOff {
    /// Share of the time during which the source sends.
    pub(crate) fn duty(&self) -> f64 {
        let (on, off) = (self.on.as_nanos() as f64, self.off.as_nanos() as f64);
        on / (on + off)
    }

    /// Draws a period with this mean, in nanoseconds, by inverting the distribution function.
    fn period(&self, mean: Duration, dice: &mut Random) -> f64 {
        let minimum = mean.as_nanos() as f64 * (self.shape - 1.0) / self.shape;
        // In (0, 1]. `libm` computes the power, rather than the system, so it is the same on every
        // machine.
        let uniform = 1.0 - dice.unit();
        (minimum * libm::pow(uniform, -1.0 / self.shape)).min(LONGEST)
    }
}

/// The longest period, in nanoseconds: 31 years, beyond any run.
const LONGEST: f64 = 1e18;

/// A source with its state.
///
/// Packets are `interval` apart in on-time. An interval that the end of a burst interrupts
/// continues in the next burst, so that the mean rate is exact however short the bursts are. (ns-2
/// rounds each burst to whole packets, at least one.) At its start, a source is on with the same
/// probability as later; all ns-2 sources begin with a pause.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) plan: TrafficPlan,
    dice: Random,
    /// Rest of the current burst, in nanoseconds.
    burst: f64,
    /// On-time until the next packet, in nanoseconds.
    until_packet: f64,
    /// Fraction of a nanosecond carried over to the next gap, so that means stay exact.
    rest: f64,
}

impl Source {
    pub(crate) fn new(plan: TrafficPlan, seed: u64) -> Self {
        let mut dice = Random::named(seed, &format!("traffic:{}", plan.name));
        // A random phase, so that constant sources do not all send at once.
        let until_packet = plan.interval * dice.unit();
        let burst = match &plan.pattern {
            Pattern::Constant => f64::INFINITY,
            Pattern::Pareto(on_off) if dice.chance(on_off.duty()) => {
                on_off.period(on_off.on, &mut dice)
            }
            Pattern::Pareto(_) => 0.0,
        };
        Self { plan, dice, burst, until_packet, rest: 0.0 }
    }

    /// Time from the previous packet, or from the source's start, to the next packet.
    pub(crate) fn next_gap(&mut self) -> Duration {
        let mut gap = self.rest;
        if let Pattern::Pareto(on_off) = self.plan.pattern {
            while self.burst < self.until_packet {
                gap += self.burst + on_off.period(on_off.off, &mut self.dice);
                self.until_packet -= self.burst;
                self.burst = on_off.period(on_off.on, &mut self.dice);
            }
        }
        gap += self.until_packet;
        self.burst -= self.until_packet;
        self.until_packet = self.plan.interval;
        let whole = gap.min(LONGEST) as u64;
        self.rest = (gap - whole as f64).clamp(0.0, 1.0);
        Duration::from_nanos(whole)
    }
}

#[cfg(test)]
mod tests;
