//! Size of the receive buffer: it follows what the application reads in a round-trip time.
//!
//! Linux does the same for TCP ("dynamic right-sizing": Fisk, Feng 2001; `tcp_rcv_space_adjust`).
//! With a buffer of twice the bandwidth-delay product, the window never limits a sender whose data
//! the application reads at once. Slow start doubles the window each round-trip time, a
//! measurement is as old, and a queue or losses hold back as much again: the buffer is four times
//! what was read. Data that waits for lost data cannot be read, and what arrives meanwhile counts
//! instead, if the application has read all it could. Data that the application does not read never
//! makes the buffer grow, except for a message too large for it
//! ([`Receiving::grow_for_message`](super::Receiving)).

use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::pool::{Claim, Pool};
use crate::time::Time;

/// Size of the buffer, as a multiple of what the application reads in a round-trip time.
const FACTOR: u64 = 4;

/// Shortest time over which reading is measured: applications read in bursts.
const SHORTEST_ROUND: Duration = Duration::from_millis(10);

/// Shortest round-trip time: for this long a busy host may leave an application waiting.
const SHORTEST_RTT: Duration = Duration::from_millis(2);

/// Time for which a measurement counts, unless a few round-trip times are longer.
const PERIOD: Duration = Duration::from_secs(10);

/// Steps in which the size changes, in bytes.
const STEP: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Tuning {
    /// The smallest and the largest size, in bytes. Equal if the size is fixed.
    least: usize,
    most: usize,
    /// Memory claimed beyond `least`.
    claim: Claim,
    /// Bytes read since the last measurement, headers included.
    unmeasured: usize,
    /// Bytes that have arrived since then while the application had nothing to read.
    unmeasured_arrivals: usize,
    round: Round,
    /// Largest need measured in this period and in the one before, in bytes.
    peaks: [usize; 2],
    period_began: Time,
}

/// A measurement of what is read and of what arrives in one round-trip time.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Time,
    rtt: Duration,
    bytes: usize,
    arrived: usize,
}

impl Tuning {
    pub(super) fn new(config: &Config, pool: &Arc<Pool>) -> Self {
        Self {
            least: config.constants().first_receive_buffer() as usize,
            most: config.receive_buffer() as usize,
            claim: Claim::new(Arc::clone(pool)),
            unmeasured: 0,
            unmeasured_arrivals: 0,
            round: Round { began: Time::ZERO, rtt: Duration::ZERO, bytes: 0, arrived: 0 },
            peaks: [0; 2],
            period_began: Time::ZERO,
        }
    }

    pub(super) const fn is_fixed(&self) -> bool {
        self.least == self.most
    }

    /// The application has read `bytes` bytes.
    pub(super) const fn read(&mut self, bytes: usize) {
        self.unmeasured += bytes;
    }

    /// Bytes have arrived, and the application has nothing to read.
    pub(super) const fn arrived(&mut self, bytes: usize) {
        self.unmeasured_arrivals += bytes;
    }

    /// Counts what has been read and what has arrived since the last call. Returns the size that
    /// the buffer should have.
    pub(super) fn measure(&mut self, now: Time, rtt: impl FnOnce() -> Duration) -> usize {
        let over = self.round.rtt.max(SHORTEST_ROUND);
        if now >= self.round.began + over {
            self.round = Round { began: now, rtt: rtt(), bytes: 0, arrived: 0 };
        }
        let rtt = self.round.rtt;
        let period = PERIOD.max(8 * rtt);
        if now >= self.period_began + period {
            let long = now >= self.period_began + 2 * period;
            self.peaks = [0, if long { 0 } else { self.peaks[0] }];
            self.period_began = now;
        }
        self.round.bytes += std::mem::take(&mut self.unmeasured);
        self.round.arrived += std::mem::take(&mut self.unmeasured_arrivals);
        let bytes = self.round.bytes.max(self.round.arrived);
        let (rtt, over) = (rtt.max(SHORTEST_RTT), rtt.max(SHORTEST_ROUND));
        let need = bytes as u64 * FACTOR * rtt.as_micros() as u64;
        let need = need / over.as_micros() as u64;
        self.peaks[0] = self.peaks[0].max(usize::try_from(need).unwrap_or(usize::MAX));
        self.size_for(self.peaks[0].max(self.peaks[1]))
    }

    /// The size for a need of `bytes` bytes.
    pub(super) fn size_for(&self, bytes: usize) -> usize {
        bytes.checked_next_multiple_of(STEP).unwrap_or(self.most).clamp(self.least, self.most)
    }

    /// Whether nothing has been read for a period.
    pub(super) fn is_idle(&self, now: Time) -> bool {
        self.unmeasured == 0 && now >= self.round.began + PERIOD.max(8 * self.round.rtt)
    }

    /// Bytes for which there is memory.
    pub(super) const fn backed(&self) -> usize {
        self.least + self.claim.bytes()
    }

    /// Claims memory for up to `size` bytes.
    pub(super) fn back(&mut self, size: usize) {
        self.claim.grow(size.saturating_sub(self.backed()));
    }

    /// Returns the memory for more than `size` bytes.
    pub(super) fn give_back(&mut self, size: usize) {
        self.claim.shrink_to(size.saturating_sub(self.least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In one round trip of 100 ms, the application reads the first value, and the second one
    /// arrives behind a gap: four times the larger one is needed.
    #[test]
    fn what_arrives_behind_a_gap_counts_like_what_is_read() {
        let table =
            [(2_000_000, 0, 8_000_000), (0, 3_000_000, 12_000_000), (500_000, 0, 2_000_000)];
        for (read, arrived, need) in table {
            let mut tuning = Tuning::new(&Config::modern(), &Pool::new(1 << 30));
            tuning.measure(Time::from_secs(1), || Duration::from_millis(100));
            tuning.read(read);
            tuning.arrived(arrived);
            let size = tuning.measure(Time::from_millis(1050), || Duration::from_millis(100));
            assert_eq!(size, usize::next_multiple_of(need, STEP));
        }
    }
}
