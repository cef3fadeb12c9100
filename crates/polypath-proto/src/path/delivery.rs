//! A path's capacity: its highest recent delivery rate.
//!
//! Cardwell and others, "BBR: Congestion-Based Congestion Control" (2016): each round trip yields a
//! sample, the bytes acknowledged in it divided by its length, and the highest of ten round trips
//! is the bandwidth. So a sender that has to wait for something else does not mistake its own rate
//! for the path's.

use std::time::Duration;

use crate::time::Time;

/// Round trips for which samples are kept, and the least time, which is longer than a closed window
/// may last.
const ROUNDS: u32 = 10;
const LEAST_MEMORY: Duration = Duration::from_secs(1);
/// A shorter sample would measure how SACKs bunch, above all on a busy host.
const LEAST_SAMPLE: Duration = Duration::from_millis(100);
/// Longest delay of a queue.
const LONGEST: Duration = Duration::from_secs(10);

/// The delivery rate of one path, in bytes per second of DATA chunks with their headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliveryRate {
    /// Start of the current sample, and the bytes acknowledged since.
    sample: Option<(Time, u32)>,
    /// Start of the current period, of which the highest sample is kept.
    from: Option<Time>,
    /// The highest sample of the current period, and of the previous one.
    highest: Option<(f64, f64)>,
    /// When the path will have delivered everything sent, at this rate.
    clear: Option<Time>,
}

impl DeliveryRate {
    pub(crate) fn bytes_per_second(&self) -> Option<f64> {
        self.highest.map(|(now, before)| now.max(before))
    }

    /// Data is sent with nothing in flight: the pause before it does not measure the path.
    pub(crate) const fn resume(&mut self, now: Time) {
        self.sample = Some((now, 0));
    }

    /// `bytes` bytes are sent.
    pub(crate) fn sent(&mut self, now: Time, bytes: u32) {
        let Some(rate) = self.bytes_per_second().filter(|&rate| rate > 0.0) else { return };
        let begins = self.clear.map_or(now, |clear| clear.max(now));
        let takes = (f64::from(bytes) / rate).min(LONGEST.as_secs_f64());
        self.clear = Some((begins + Duration::from_secs_f64(takes)).min(now + LONGEST));
    }

    /// When the path will have delivered everything sent, as far as is known.
    pub(crate) const fn clear(&self) -> Option<Time> {
        self.clear
    }

    /// `bytes` bytes are newly acknowledged.
    pub(crate) fn acknowledged(&mut self, now: Time, bytes: u32, shortest: Option<Duration>) {
        let (since, acked) = self.sample.get_or_insert((now, 0));
        *acked = acked.saturating_add(bytes);
        let Some(shortest) = shortest else { return };
        let span = now.since(*since);
        if bytes == 0 || span < shortest.max(LEAST_SAMPLE) {
            return;
        }
        let rate = f64::from(*acked) / span.as_secs_f64();
        self.sample = Some((now, 0));
        let from = *self.from.get_or_insert(now);
        let (mut highest, mut before) = self.highest.unwrap_or_default();
        if now.since(from) > (shortest * ROUNDS).max(LEAST_MEMORY) {
            (highest, before) = (0.0, highest);
            self.from = Some(now);
        }
        self.highest = Some((highest.max(rate), before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(100));

    /// Acknowledges 3000 bytes every `every` milliseconds, from one instant to another.
    fn acks(rate: &mut DeliveryRate, from: u64, to: u64, every: usize) {
        for ms in (from..to).step_by(every) {
            rate.acknowledged(Time::from_nanos(ms * 1_000_000), 3000, RTT);
        }
    }

    #[test]
    fn the_highest_of_late_is_kept_for_a_second_or_two() {
        let mut rate = DeliveryRate::default();
        rate.resume(Time::ZERO);
        acks(&mut rate, 3, 1000, 3);
        let full = rate.bytes_per_second().unwrap();
        assert!((full / 1e6 - 1.0).abs() < 0.05, "{full}");
        // At a tenth of the rate, the old rate is still known after a second, and dropped after
        // three.
        acks(&mut rate, 1000, 2000, 30);
        assert_eq!(rate.bytes_per_second(), Some(full));
        acks(&mut rate, 2000, 4100, 30);
        let slow = rate.bytes_per_second().unwrap();
        assert!((slow / 1e5 - 1.0).abs() < 0.35, "{slow}");
    }

    #[test]
    fn sacks_that_come_together_are_no_rate() {
        let mut rate = DeliveryRate::default();
        rate.resume(Time::ZERO);
        // Fifty SACKs each round trip, a microsecond apart.
        for round in 1..20 {
            for sack in 0..50 {
                let at = Time::from_nanos(round * 100_000_000 + sack * 1000);
                rate.acknowledged(at, 3000, RTT);
            }
        }
        let known = rate.bytes_per_second().unwrap();
        assert!((known / 1.5e6 - 1.0).abs() < 0.05, "{known}");
    }

    #[test]
    fn a_pause_is_not_counted() {
        let mut rate = DeliveryRate::default();
        rate.resume(Time::ZERO);
        acks(&mut rate, 3, 1000, 3);
        rate.resume(Time::from_nanos(3_600_000_000_000));
        acks(&mut rate, 3_600_003, 3_600_200, 3);
        let known = rate.bytes_per_second().unwrap();
        assert!((known / 1e6 - 1.0).abs() < 0.05, "{known}");
    }
}
