//! When do fast retransmissions over a second path fill the receive buffer? Qiao 2008, 5.
//!
//! The sender has lost data on the primary path in slow start and retransmits it on the secondary
//! path. New data that arrives on the primary path meanwhile waits in the receive buffer for the
//! missing data. The buffer must not be full before the retransmissions arrive.

/// Two paths and a receive buffer, in the paper's symbols. Bandwidths are in bytes per second,
/// times in seconds, sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BlockingModel {
    /// B1, bandwidth of the primary path.
    pub(super) primary_bandwidth: f64,
    /// R1, round-trip time of the primary path with an empty queue.
    pub(super) primary_rtt: f64,
    /// Q1, queue of the primary path's bottleneck.
    pub(super) primary_queue: f64,
    /// B2, bandwidth of the secondary path.
    pub(super) secondary_bandwidth: f64,
    /// R2, round-trip time of the secondary path.
    pub(super) secondary_rtt: f64,
    /// A, receive buffer.
    pub(super) receive_buffer: f64,
    /// MTU.
    pub(super) mtu: f64,
}

impl BlockingModel {
    /// Equation (8): the buffer does not block if B2 > B1 (B1 R1 + Q1 + 2 MTU) / (2 A + B1 (2 R1 -
    /// R2)). Infinite if no bandwidth is enough, because the buffer is full before any data arrives
    /// on the secondary path.
    fn least_secondary_bandwidth(&self) -> f64 {
        let b1 = self.primary_bandwidth;
        let room = 2.0 * self.receive_buffer + b1 * (2.0 * self.primary_rtt - self.secondary_rtt);
        if room <= 0.0 {
            return f64::INFINITY;
        }
        b1 * (b1 * self.primary_rtt + self.primary_queue + 2.0 * self.mtu) / room
    }

    /// Whether equation (8) holds: a fast retransmission on the secondary path does not block the
    /// buffer.
    pub(super) fn secondary_is_fast_enough(&self) -> bool {
        self.secondary_bandwidth > self.least_secondary_bandwidth()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KBIT: f64 = 1000.0 / 8.0;

    /// The paper's two verifications (5.1).
    fn paper(primary: f64, secondary: f64) -> BlockingModel {
        BlockingModel {
            primary_bandwidth: primary * KBIT,
            primary_rtt: 0.1,
            primary_queue: 50.0 * 1500.0,
            secondary_bandwidth: secondary * KBIT,
            secondary_rtt: 0.6,
            receive_buffer: 1e6,
            mtu: 1500.0,
        }
    }

    #[test]
    fn the_papers_thresholds() {
        for (secondary, threshold, digit) in [(36.0, 801.6, 0.1), (384.0, 4860.0, 10.0)] {
            assert!(paper(threshold - digit, secondary).secondary_is_fast_enough());
            assert!(!paper(threshold + digit, secondary).secondary_is_fast_enough());
        }
    }

    #[test]
    fn a_second_path_too_far_away_is_never_fast_enough() {
        let model = BlockingModel { secondary_rtt: 60.0, ..paper(10_000.0, 1e9) };
        assert_eq!(model.least_secondary_bandwidth(), f64::INFINITY);
        assert!(!model.secondary_is_fast_enough());
    }
}
