//! Sources of background traffic: packets that no SCTP stack sees.
//!
//! Many on/off sources whose on and off times follow a Pareto distribution give self-similar
//! traffic: with shape a, 1 < a < 2, the Hurst parameter is (3 - a) / 2 (Taqqu, Willinger, Sherman
//! 1997). It is the cross-traffic of caro2006-retransmission 2.1 and natarajan2009 3.

use std::time::Duration;

use polypath_proto::Time;

use super::topology::LinkId;
use crate::random::Random;

/// A source, as the scenario describes it.
#[derive(Clone, Debug)]
pub(crate) struct TrafficPlan {
    /// Its name; it determines its dice.
    pub(crate) name: String,
    /// The links that its packets take, in this order; at least one.
    pub(crate) way: Vec<LinkId>,
    /// Bytes of a packet, headers included.
    pub(crate) size: u32,
    /// Nanoseconds from packet to packet while the source sends.
    pub(crate) interval: f64,
    /// When it begins.
    pub(crate) start: Time,
    pub(crate) pattern: Pattern,
}

/// When a source sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// Always.
    Constant,
    /// In bursts.
    Pareto(OnOff),
}

/// Bursts and the time between them, both Pareto-distributed: P(X > x) = (minimum / x)^shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OnOff {
    /// Above 1, so that there are means; below 2 the variance is infinite.
    pub(crate) shape: f64,
    /// Mean length of a burst.
    pub(crate) on: Duration,
    /// Mean time between bursts.
    pub(crate) off: Duration,
}

impl OnOff {
    /// Share of the time in which the source sends.
    pub(crate) fn duty(&self) -> f64 {
        let (on, off) = (self.on.as_nanos() as f64, self.off.as_nanos() as f64);
        on / (on + off)
    }

    /// A time with this mean, in nanoseconds: the inverse of the distribution function.
    fn period(&self, mean: Duration, dice: &mut Random) -> f64 {
        let minimum = mean.as_nanos() as f64 * (self.shape - 1.0) / self.shape;
        // From above 0 to 1. The same on every machine: libm computes it without the system's.
        let uniform = 1.0 - dice.unit();
        (minimum * libm::pow(uniform, -1.0 / self.shape)).min(LONGEST)
    }
}

/// The longest period, in nanoseconds: 31 years, beyond any run.
const LONGEST: f64 = 1e18;

/// A source at work.
///
/// Packets are `interval` apart in the time that is on; what is left of an interval at the end of a
/// burst goes on in the next one, so that the mean rate is exact however short the bursts are. (ns-2
/// rounds each burst to whole packets, at least one.) A source is on at its beginning with the
/// probability with which it is on later; ns-2's all begin with a pause.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) plan: TrafficPlan,
    dice: Random,
    /// What is left of the burst, in nanoseconds.
    burst: f64,
    /// Time on until the next packet, in nanoseconds.
    until_packet: f64,
    /// Part of a nanosecond that was left over: means stay exact.
    rest: f64,
}

impl Source {
    pub(crate) fn new(plan: TrafficPlan, seed: u64) -> Self {
        let mut dice = Random::named(seed, &format!("traffic:{}", plan.name));
        // Constant sources are not all in step.
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

    /// Time from the packet before, or from the beginning, to the next packet.
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
