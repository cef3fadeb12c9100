//! A path's bandwidth from two packets sent back to back: the bottleneck spaces them.
//!
//! Qiao 2008, 5.2, proposes packet pairs for the bandwidth of the secondary path, which carries no
//! data. This stack sends pairs of HEARTBEATs as large as the path's packets; their answers are as
//! large, so that the slower direction is measured. Cross traffic between a pair makes the path
//! seem slower, a queue in front of the answers makes it seem faster: the median of the last pairs
//! counts.

use std::time::Duration;

use crate::few;
use crate::time::Time;

/// Number of pairs that are kept.
const MEMORY: usize = 5;

/// Largest share of the bandwidth for pairs.
const SHARE: f64 = 0.05;

/// Pause after an unanswered pair, which doubles with each further one.
const UNANSWERED: Duration = Duration::from_secs(1);
const MOST_PAUSE: Duration = Duration::from_secs(600);

/// The second of a pair carries an instant this much later than the first; nothing else is sent
/// then.
const MARK: Duration = Duration::from_nanos(1);

/// Which HEARTBEAT has been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// A single HEARTBEAT, or the first of a pair.
    First,
    /// The second of a pair: it was queued behind the first, so its round-trip time does not count.
    Second,
}

/// The estimate of one path, in bytes per second of whole IP packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketPair {
    /// The outstanding pair: when it was sent, and when the first answer arrived.
    out: Option<(Time, Option<Time>)>,
    /// The samples of the last pairs, a ring.
    samples: [f64; MEMORY],
    count: usize,
    /// When the last pair was sent, and how many before it were not answered, in a row.
    last: Option<Time>,
    unanswered: u32,
}

impl PacketPair {
    /// The median of the last pairs.
    pub(crate) fn bytes_per_second(&self) -> Option<f64> {
        let mut known = self.samples;
        let known = &mut known[..self.count.min(MEMORY)];
        few::sort(known, f64::total_cmp);
        known.get(known.len() / 2).copied()
    }

    /// The instant that the second HEARTBEAT of a pair sent at `now` carries.
    pub(crate) fn mark(now: Time) -> Time {
        now + MARK
    }

    pub(crate) const fn sent(&mut self, now: Time) {
        self.unanswered = if self.out.is_some() { self.unanswered + 1 } else { 0 };
        self.out = Some((now, None));
        self.last = Some(now);
    }

    /// Whether another pair of packets of `size` bytes may be sent: pairs use a small part of the
    /// bandwidth, and ever less while they are not answered, because they may be the cause of that.
    pub(crate) fn is_due(&self, now: Time, size: u32) -> bool {
        let Some(last) = self.last else { return true };
        let each = self.bytes_per_second().map_or(0.0, |rate| 2.0 * f64::from(size) / rate);
        let share = Duration::from_secs_f64((each / SHARE).min(MOST_PAUSE.as_secs_f64()));
        let pause = match self.out {
            Some(_) => UNANSWERED.saturating_mul(1 << self.unanswered.min(16)).min(MOST_PAUSE),
            None => Duration::ZERO,
        };
        now >= last + share.max(pause)
    }

    /// A HEARTBEAT that carried `sent` has been answered. The packets have `size` bytes.
    pub(crate) fn answered(&mut self, now: Time, sent: Time, size: u32) -> Answered {
        let Some((pair, first)) = self.out else { return Answered::First };
        if sent == pair {
            self.out = Some((pair, first.or(Some(now))));
            return Answered::First;
        }
        if sent != Self::mark(pair) {
            return Answered::First;
        }
        self.out = None;
        if let Some(first) = first.filter(|first| *first < now) {
            self.samples[self.count % MEMORY] = f64::from(size) / now.since(first).as_secs_f64();
            self.count += 1;
        }
        Answered::Second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u32 = 1500;

    fn at(seconds: f64) -> Time {
        Time::from_nanos((seconds * 1e9) as u64)
    }

    /// A pair over a link of `rate` bytes per second, with `between` bytes of other traffic in
    /// between.
    fn pair(estimate: &mut PacketPair, begins: f64, rate: f64, between: f64) {
        let sent = at(begins);
        estimate.sent(sent);
        let first = begins + 0.6 + f64::from(SIZE) / rate;
        let second = first + (f64::from(SIZE) + between) / rate;
        assert_eq!(estimate.answered(at(first), sent, SIZE), Answered::First);
        let mark = PacketPair::mark(sent);
        assert_eq!(estimate.answered(at(second), mark, SIZE), Answered::Second);
    }

    #[test]
    fn the_rate_of_the_link() {
        for rate in [4500.0, 48e3, 1.25e6, 1.25e9] {
            let mut estimate = PacketPair::default();
            assert_eq!(estimate.bytes_per_second(), None);
            pair(&mut estimate, 1.0, rate, 0.0);
            let measured = estimate.bytes_per_second().unwrap();
            assert!((measured / rate - 1.0).abs() < 0.002, "{rate}: {measured}");
        }
    }

    #[test]
    fn one_pair_among_others_that_was_torn_apart_does_not_count() {
        let mut estimate = PacketPair::default();
        for (n, between) in [0.0, 9000.0, 0.0, 0.0, 4000.0, 0.0].into_iter().enumerate() {
            pair(&mut estimate, 30.0 * n as f64, 48e3, between);
        }
        let measured = estimate.bytes_per_second().unwrap();
        assert!((measured / 48e3 - 1.0).abs() < 0.001, "{measured}");
    }

    #[test]
    fn a_pair_of_which_one_is_lost_measures_nothing() {
        let mut estimate = PacketPair::default();
        estimate.sent(at(1.0));
        assert_eq!(estimate.answered(at(2.0), PacketPair::mark(at(1.0)), SIZE), Answered::Second);
        assert_eq!(estimate.bytes_per_second(), None);
        estimate.sent(at(3.0));
        assert_eq!(estimate.answered(at(4.0), at(3.0), SIZE), Answered::First);
        estimate.sent(at(5.0));
        // Late, repeated, or of an earlier pair.
        for sent in [3.0, 1.0] {
            estimate.answered(at(6.0), PacketPair::mark(at(sent)), SIZE);
        }
        assert_eq!(estimate.bytes_per_second(), None);
    }

    #[test]
    fn pairs_take_a_twentieth_of_the_bandwidth() {
        let mut estimate = PacketPair::default();
        assert!(estimate.is_due(at(1.0), SIZE));
        // 3000 bytes at 4500 bytes per second.
        pair(&mut estimate, 1.0, 4500.0, 0.0);
        assert!(!estimate.is_due(at(14.3), SIZE) && estimate.is_due(at(14.4), SIZE));
    }

    #[test]
    fn pairs_that_are_not_answered_become_rare() {
        let mut estimate = PacketPair::default();
        let mut times = vec![0];
        estimate.sent(at(0.0));
        for second in 1..=2000 {
            if estimate.is_due(at(f64::from(second)), SIZE) {
                estimate.sent(at(f64::from(second)));
                times.push(second);
            }
        }
        assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1623]);
    }
}
