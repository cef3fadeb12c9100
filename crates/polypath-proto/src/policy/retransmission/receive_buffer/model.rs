//! When do fast retransmissions over a second path fill the receive buffer? Qiao 2008, 5.
//!
//! The sender has lost data on the primary path in slow start and retransmits it on the secondary
//! path. New data that arrives on the primary path meanwhile waits in the receive buffer for the
//! missing data. The buffer must not be full before the retransmissions arrive.

/// Two paths and a receive buffer, in the paper's symbols. Bandwidths are in bytes per second,
/// times in seconds, sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockingModel {
    /// B1, bandwidth of the primary path.
    pub primary_bandwidth: f64,
    /// R1, round-trip time of the primary path with an empty queue.
    pub primary_rtt: f64,
    /// Q1, queue of the primary path's bottleneck.
    pub primary_queue: f64,
    /// B2, bandwidth of the secondary path.
    pub secondary_bandwidth: f64,
    /// R2, round-trip time of the secondary path.
    pub secondary_rtt: f64,
    /// A, receive buffer.
    pub receive_buffer: f64,
    /// MTU.
    pub mtu: f64,
}

impl BlockingModel {
    /// Equation (1), W/V2 + R2/2 <= A/V1 + D1 + R1/2: whether the retransmissions arrive before new
    /// data fills the buffer.
    pub fn avoids_blocking(&self) -> bool {
        self.released_by() <= self.filled_by()
    }

    /// The left side of (1): when all data that waited for the retransmissions is delivered, in
    /// seconds from the first fast retransmission.
    pub fn released_by(&self) -> f64 {
        self.sent_before() / self.release_rate() + self.secondary_rtt / 2.0
    }

    /// The right side of (1): when new data would fill the buffer, in seconds from the same time.
    pub fn filled_by(&self) -> f64 {
        self.receive_buffer / self.arrival_rate() + self.wait() + self.primary_rtt / 2.0
    }

    /// cwnd1_Final by equation (2), 3/2 of cwnd1_Previous: with delayed acknowledgements slow start
    /// grows the window by half each round trip.
    pub fn final_cwnd(&self) -> f64 {
        1.5 * self.previous_cwnd()
    }

    /// cwnd1_Previous, at most B1 R1 + Q1 by equation (3): the capacity of the path and its queue.
    pub fn previous_cwnd(&self) -> f64 {
        self.primary_bandwidth * self.primary_rtt + self.primary_queue
    }

    /// W, at most cwnd1_Final + 3 MTU by equation (4): the data sent when fast retransmission
    /// begins, since each of the first three missing reports allows a packet.
    pub fn sent_before(&self) -> f64 {
        self.final_cwnd() + 3.0 * self.mtu
    }

    /// V2 = 3 B2 by equation (5): one of three packets of the last round trip was lost, so each
    /// retransmission that arrives releases three.
    pub fn release_rate(&self) -> f64 {
        3.0 * self.secondary_bandwidth
    }

    /// V1, at most min(cwnd1_Final / 2 / R1, B1) by equation (6): the window is halved.
    pub fn arrival_rate(&self) -> f64 {
        (self.final_cwnd() / 2.0 / self.primary_rtt).min(self.primary_bandwidth)
    }

    /// D1, at least R1/2 by equation (7): no new data is sent until half the window is
    /// acknowledged.
    pub fn wait(&self) -> f64 {
        self.primary_rtt / 2.0
    }

    /// Equation (8): the buffer does not block if B2 > B1 (B1 R1 + Q1 + 2 MTU) / (2 A + B1 (2 R1 -
    /// R2)). It is (1) with (4), (5), (7) and V1 = B1. Infinite if no bandwidth is enough, because
    /// the buffer is full before any data arrives on the secondary path.
    pub fn least_secondary_bandwidth(&self) -> f64 {
        let b1 = self.primary_bandwidth;
        let room = 2.0 * self.receive_buffer + b1 * (2.0 * self.primary_rtt - self.secondary_rtt);
        if room <= 0.0 {
            return f64::INFINITY;
        }
        b1 * (self.previous_cwnd() + 2.0 * self.mtu) / room
    }

    /// Whether equation (8) holds: a fast retransmission on the secondary path does not block the
    /// buffer.
    pub fn secondary_is_fast_enough(&self) -> bool {
        self.secondary_bandwidth > self.least_secondary_bandwidth()
    }

    /// Equation (8) solved for B1, regardless of `primary_bandwidth`: the largest bandwidth of the
    /// primary path for which the secondary path is fast enough.
    pub fn largest_primary_bandwidth(&self) -> f64 {
        // R1 B1^2 + (Q1 + 2 MTU - B2 (2 R1 - R2)) B1 - 2 A B2 = 0, whose other root is negative.
        let b2 = self.secondary_bandwidth;
        let a = self.primary_rtt;
        let b = self.primary_queue + 2.0 * self.mtu
            - b2 * (2.0 * self.primary_rtt - self.secondary_rtt);
        let c = 2.0 * self.receive_buffer * b2;
        (f64::sqrt(b * b + 4.0 * a * c) - b) / (2.0 * a)
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
            let largest = paper(1000.0, secondary).largest_primary_bandwidth() / KBIT;
            assert!((largest - threshold).abs() < digit, "{largest}");
            assert!(paper(largest - 0.01, secondary).secondary_is_fast_enough());
            assert!(!paper(largest + 0.01, secondary).secondary_is_fast_enough());
        }
    }

    /// If the halved window still fills the path, (8) is (1) with its terms inserted.
    #[test]
    fn equation_8_is_equation_1() {
        for primary in [36.0, 500.0, 801.0, 802.0, 4860.0, 5000.0] {
            for secondary in [36.0, 384.0, 1000.0] {
                let model = paper(primary, secondary);
                assert_eq!(model.arrival_rate(), model.primary_bandwidth);
                assert_eq!(model.avoids_blocking(), model.secondary_is_fast_enough());
            }
        }
    }

    #[test]
    fn a_second_path_too_far_away_is_never_fast_enough() {
        let model = BlockingModel { secondary_rtt: 60.0, ..paper(10_000.0, 1e9) };
        assert_eq!(model.least_secondary_bandwidth(), f64::INFINITY);
        assert!(!model.secondary_is_fast_enough());
    }
}
