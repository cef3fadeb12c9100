//! The spread of a path's round-trip times, which shows how much its bottleneck can queue.
//!
//! Qiao 2008, 5.2: "Suppose the minimum RTT is the transmission time for a null system and the
//! maximum RTT is the transmission time for a full-loaded system, the estimated queue length is the
//! product of the primary path bandwidth and the difference of the maximum and minimum RTT."
//!
//! The samples are those of RFC 9260 6.3.1. A sample of a chunk whose SACK was delayed is too long
//! by up to SACK.Delay; the queue then seems longer than it is.

use std::time::Duration;

/// The shortest and the longest round-trip time of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttRange {
    /// Round-trip time of an empty path, if there was a sample of one.
    pub min: Duration,
    /// Round-trip time of a path whose queue is full, if it has ever been.
    pub max: Duration,
}

impl RttRange {
    /// The queue of the bottleneck in bytes, for a bandwidth in bytes per second.
    pub fn queue(&self, bandwidth: f64) -> f64 {
        bandwidth * (self.max - self.min).as_secs_f64()
    }

    /// Adds a sample.
    pub(crate) fn widened(known: Option<Self>, sample: Duration) -> Self {
        let known = known.unwrap_or(Self { min: sample, max: sample });
        Self { min: known.min.min(sample), max: known.max.max(sample) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 Mbit/s, 50 ms in each direction, 50 packets of 1500 bytes: a packet that finds n packets
    /// queued waits for them.
    #[test]
    fn the_queue_of_a_link_that_was_empty_and_full() {
        let bandwidth = 10e6 / 8.0;
        let mut range = None;
        for waiting in [0, 12, 49, 30] {
            let waits = Duration::from_secs_f64(f64::from(waiting + 1) * 1500.0 / bandwidth);
            range = Some(RttRange::widened(range, Duration::from_millis(100) + waits));
        }
        let queue = range.unwrap().queue(bandwidth);
        assert!((queue - 49.0 * 1500.0).abs() < 1.0, "{queue}");
    }

    #[test]
    fn one_sample_knows_no_queue() {
        let range = RttRange::widened(None, Duration::from_millis(100));
        assert_eq!(range.queue(1e6), 0.0);
    }
}
