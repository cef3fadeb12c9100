//! Random early detection: a queue drops or marks packets before it is full, the more the longer it
//! has been on average (S. Floyd and V. Jacobson, "Random early detection gateways for congestion
//! avoidance", IEEE/ACM Transactions on Networking 1(4), 1993).
//!
//! - The average is taken in packets, at each arrival. An idle link counts as if it had found an
//!   empty queue with every packet that it could have sent meanwhile.
//! - Above `max` it is "gentle" (S. Floyd, "Recommendation on using the gentle variant of RED",
//!   2000): the probability rises to 1 at twice `max`, instead of at once.
//! - RFC 3168 7: between `min` and `max`, a packet that may be marked is marked instead. Above, it
//!   is dropped: marks no longer help.

use super::config::Red;

/// What random early detection does to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    /// Mark it, or drop it if it must not be marked.
    Mark,
    Drop,
}

/// The state of a queue's random early detection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Detector {
    /// Average length of the queue, in packets.
    average: f64,
    /// Packets that have passed above `min` since one was chosen, or since the average rose above
    /// it.
    passed: u32,
}

impl Detector {
    /// A packet finds `waiting` packets in the queue, or a link that could have sent `idle` packets
    /// since it became idle. `draw` is uniform in [0, 1).
    pub(super) fn offer(&mut self, red: &Red, waiting: usize, idle: u64, draw: f64) -> Fate {
        let keep = 1.0 - red.weight;
        self.average = if idle > 0 {
            power(keep, idle) * self.average
        } else {
            keep * self.average + red.weight * waiting as f64
        };
        let (min, max, most) = (f64::from(red.min), f64::from(red.max), red.probability.get());
        if self.average < min {
            self.passed = 0;
            return Fate::Pass;
        }
        let above = self.average >= max;
        let share = if above {
            most + (1.0 - most) * (self.average - max) / max
        } else {
            most * (self.average - min) / (max - min)
        };
        // The paper's p_a: the gaps between chosen packets are uniform, from 1 to 1/p_b, instead of
        // geometric.
        let left = 1.0 - f64::from(self.passed) * share;
        if left > 0.0 && draw >= share / left {
            self.passed = self.passed.saturating_add(1);
            return Fate::Pass;
        }
        self.passed = 0;
        if above { Fate::Drop } else { Fate::Mark }
    }
}

/// `base` to the power of `n`, with the same roundings on every machine.
fn power(base: f64, mut n: u64) -> f64 {
    let (mut square, mut product) = (base, 1.0);
    while n > 0 {
        if n & 1 == 1 {
            product *= square;
        }
        square *= square;
        n >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Probability;

    fn red() -> Red {
        Red { min: 5, max: 15, probability: Probability::percent(10), weight: 0.002 }
    }

    fn averaging(average: f64) -> Detector {
        Detector { average, passed: 0 }
    }

    /// The paper, "An upper bound for w_q": after L
    /// arrivals that find queues of 1, 2, ... L packets, the average
    /// is L + 1 + ((1 - w)^(L + 1) - 1) / w. With w = 0.001 it is 4.88 after 100 of them.
    #[test]
    fn the_average_follows_a_burst_as_in_the_paper() {
        let red = Red { weight: 0.001, ..red() };
        let mut detector = Detector::default();
        for waiting in 1..=100 {
            detector.offer(&red, waiting, 0, 0.999);
        }
        let w: f64 = 0.001;
        let formula = 100.0 + ((1.0 - w).powi(101) - (1.0 - w)) / w;
        assert!((detector.average - formula).abs() < 1e-9, "{} {formula}", detector.average);
        assert!((detector.average - 4.88).abs() < 0.01, "{}", detector.average);
    }

    #[test]
    fn an_idle_link_forgets() {
        let mut detector = averaging(10.0);
        detector.offer(&red(), 0, 346, 0.0);
        // 0.998^346 is one half.
        assert!((detector.average - 5.0).abs() < 0.01, "{}", detector.average);
        detector.offer(&red(), 0, u64::MAX, 0.0);
        assert!(detector.average < 1e-9);
    }

    /// The paper, "Calculating the packet-marking probability", method 2: the gaps between chosen
    /// packets are uniform from 1 to 1/p.
    #[test]
    fn gaps_are_uniform() {
        let fixed = Red { weight: 0.0, ..red() };
        let mut detector = averaging(10.0);
        // p is 5 %: without luck, the twentieth packet is chosen for certain.
        for _ in 0..19 {
            assert_eq!(detector.offer(&fixed, 10, 0, 0.999_999), Fate::Pass);
        }
        assert_eq!(detector.offer(&fixed, 10, 0, 0.999_999), Fate::Mark);
        let mut counts = [0u32; 21];
        let mut gap = 0;
        let mut state = 1;
        for _ in 0..200_000 {
            gap += 1;
            let draw = (crate::random::split_mix(&mut state) >> 11) as f64 / (1u64 << 53) as f64;
            if detector.offer(&fixed, 10, 0, draw) != Fate::Pass {
                counts[gap] += 1;
                gap = 0;
            }
        }
        let all: u32 = counts.iter().sum();
        for count in &counts[1..] {
            let share = f64::from(*count) / f64::from(all);
            assert!((share - 0.05).abs() < 0.01, "{counts:?}");
        }
    }

    #[test]
    fn above_max_packets_are_dropped_and_above_twice_max_all_of_them() {
        let fixed = Red { weight: 0.0, ..red() };
        // 10 % at 15 packets, 55 % at 22.5.
        assert_eq!(averaging(22.5).offer(&fixed, 0, 0, 0.54), Fate::Drop);
        assert_eq!(averaging(22.5).offer(&fixed, 0, 0, 0.56), Fate::Pass);
        assert_eq!(averaging(30.0).offer(&fixed, 0, 0, 0.999_999), Fate::Drop);
        assert_eq!(averaging(4.9).offer(&fixed, 50, 0, 0.0), Fate::Pass);
    }
}
