//! What a path can carry: the highest rate at which it has delivered of late.
//!
//! Cardwell and others, "BBR: Congestion-Based Congestion Control" (2016): each round trip gives a sample,
//! what was acknowledged in it by its length, and the highest of ten round trips is the bandwidth: a sender
//! that has to wait for something else does not take its own rate for the path's.

use std::time::Duration;

use crate::Time;

/// Samples are remembered so long, but never shorter than a closed window may last.
const ROUNDS: u32 = 10;
const LEAST_MEMORY: Duration = Duration::from_secs(1);
/// A shorter sample would measure how SACKs bunch.
const LEAST_SAMPLE: Duration = Duration::from_millis(10);

/// The rate of one path, in bytes a second of DATA chunks with their headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliveryRate {
    /// When the sample at hand began, and what has been acknowledged since.
    sample: Option<(Time, u32)>,
    /// When the highest samples of now began to be taken.
    from: Option<Time>,
    /// The highest of now, and of the time as long before.
    highest: Option<(f64, f64)>,
}

impl DeliveryRate {
    pub(crate) fn bytes_per_second(&self) -> Option<f64> {
        self.highest.map(|(now, before)| now.max(before))
    }

    /// Data leaves with nothing in flight: the pause before it says nothing about the path.
    pub(crate) const fn resume(&mut self, now: Time) {
        self.sample = Some((now, 0));
    }

    /// So many bytes are newly acknowledged.
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

    /// Acknowledgements of 3000 bytes, `every` so many milliseconds, from one instant to another.
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
        // A tenth of it: still known after a second, forgotten after three.
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
        // Fifty of them each round trip, a microsecond apart.
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
