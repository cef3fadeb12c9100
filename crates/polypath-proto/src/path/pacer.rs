//! Spreads the packets of a path over time.
//!
//! Data leaves in batches of about a millisecond at the pacing rate, so that a batch is worth one
//! system call and segmentation offload works (draft-ietf-ccwg-bbr 5.6.3, `C.send_quantum`). The
//! next batch may leave when the previous one would have left at the pacing rate (5.6.2,
//! `C.next_send_time`). An idle path gathers credit for no more than one batch: RFC 9002 7.7.

use std::time::Duration;

use crate::time::Time;

/// Time that a batch takes at the pacing rate, unless it would be too small or too large.
const BATCH: Duration = Duration::from_millis(1);
/// Largest batch in bytes: what segmentation offload accepts.
const MOST: u64 = 64 * 1024;
/// Smallest batch in packets.
const LEAST_PACKETS: u32 = 2;
/// A timer that is late by up to this is made up for, if data waited for it.
const LATE: Duration = Duration::from_millis(4);

/// The next release of a path's data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    /// When everything sent so far would have left at the pacing rate.
    clear: Time,
    /// Bytes left of the current batch.
    batch: u64,
    /// When sending last stopped, data waited for the next release.
    waiting: bool,
}

/// The largest batch at `rate` bytes per second, in bytes.
pub(crate) fn batch(rate: u64, max_chunk: u32) -> u64 {
    let span = rate / (1_000_000_000 / BATCH.as_nanos() as u64);
    span.min(MOST).max(u64::from(LEAST_PACKETS * max_chunk))
}

/// The time that `bytes` bytes take at `rate` bytes per second.
fn span(bytes: u64, rate: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1))
}

impl Pacer {
    /// Whether a packet may leave now.
    pub(crate) fn is_open(&self, now: Time) -> bool {
        self.clear <= now || self.batch > 0
    }

    /// When the next batch may leave.
    pub(crate) const fn next(&self) -> Time {
        self.clear
    }

    /// A chunk of `size` bytes is sent at `rate` bytes per second. At least one packet of
    /// `max_chunk` bytes leaves each second.
    pub(crate) fn sent(&mut self, now: Time, size: u32, rate: u64, max_chunk: u32) {
        let rate = rate.max(max_chunk.into());
        if self.clear <= now {
            let from = if self.waiting { now - LATE } else { now };
            self.clear = self.clear.max(from);
            self.batch = batch(rate, max_chunk);
        }
        self.batch = self.batch.saturating_sub(size.into());
        self.clear = self.clear + span(size.into(), rate);
    }

    /// Whether data waits for the next release only.
    pub(crate) const fn is_awaited(&self) -> bool {
        self.waiting
    }

    /// Sending has stopped; `waiting` if data waits for the next release only.
    pub(crate) const fn pause(&mut self, waiting: bool) {
        self.waiting = waiting;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNK: u32 = 1000;
    const MS: fn(u64) -> Time = Time::from_millis;

    /// Packets that leave at `now` until the pacer closes.
    fn burst(pacer: &mut Pacer, now: Time, rate: u64) -> u32 {
        let mut packets = 0;
        while pacer.is_open(now) {
            pacer.sent(now, CHUNK, rate, CHUNK);
            packets += 1;
        }
        packets
    }

    /// draft-ietf-ccwg-bbr 5.6.3: a millisecond, at least two packets, at most 64 KiB.
    #[test]
    fn a_batch_lasts_a_millisecond() {
        for (rate, bytes) in
            [(10_000_000, 10_000), (100_000, 2000), (1_000_000_000, 65_536), (3_000_000, 3000)]
        {
            assert_eq!(batch(rate, CHUNK), bytes, "{rate} bytes per second");
        }
    }

    #[test]
    fn batches_leave_at_the_rate() {
        let mut pacer = Pacer::default();
        for ms in 100..200 {
            assert_eq!(burst(&mut pacer, MS(ms), 10_000_000), 10);
            assert_eq!(pacer.next(), MS(ms + 1));
            assert_eq!(burst(&mut pacer, MS(ms) + Duration::from_micros(900), 10_000_000), 0);
        }
    }

    #[test]
    fn a_pause_saves_up_nothing() {
        let mut pacer = Pacer::default();
        burst(&mut pacer, MS(100), 10_000_000);
        pacer.pause(false);
        assert_eq!(burst(&mut pacer, MS(5000), 10_000_000), 10);
        assert_eq!(pacer.next(), MS(5001));
    }

    #[test]
    fn a_late_timer_is_made_up_for_by_at_most_four_milliseconds() {
        for (late, packets) in [(0, 10), (1, 20), (3, 40), (4, 50), (100, 50)] {
            let mut pacer = Pacer::default();
            burst(&mut pacer, MS(100), 10_000_000);
            pacer.pause(true);
            assert_eq!(burst(&mut pacer, MS(101 + late), 10_000_000), packets, "{late} ms late");
            assert_eq!(pacer.next(), MS(102 + late));
        }
    }

    proptest! {
        /// In any interval, no more leaves than the rate allows, a batch and what a late timer
        /// missed.
        #[test]
        fn no_more_leaves_than_the_rate_allows(
            rate in 1000u64..2_000_000_000, steps in prop::collection::vec(0u64..20_000_000, 1..50),
            waits in any::<bool>(),
        ) {
            let mut pacer = Pacer::default();
            let (begun, mut now, mut sent) = (MS(1000), MS(1000), 0u64);
            for nanos in steps {
                now = now + Duration::from_nanos(nanos);
                sent += u64::from(burst(&mut pacer, now, rate)) * u64::from(CHUNK);
                pacer.pause(waits);
                let allowed = rate as f64 * (now.since(begun) + LATE).as_secs_f64();
                let most = allowed as u64 + batch(rate, CHUNK) + u64::from(CHUNK);
                prop_assert!(sent <= most, "{} of {} bytes", sent, most);
                // The next batch leaves when this one would have.
                let span = span(batch(rate, CHUNK) + u64::from(CHUNK), rate);
                prop_assert!(pacer.next() > now && pacer.next() <= now + span);
            }
        }
    }
}
