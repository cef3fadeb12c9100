//! The share of packets that the path loses whatever the sender does.
//!
//! The draft lowers its short-term bounds after every round trip with a loss, so that a path that
//! loses a share p at random leaves (1 - p)^63 of the rate at the end of a cycle (draft 5.3.3.5.1),
//! and 2 % of losses in a round trip end every probe. This estimate separates such losses from
//! those of a full queue: it counts the losses of round trips in which the queue was empty at some
//! moment, because a sample was close to the shortest round-trip time. The draft's thresholds apply
//! to what exceeds it. On a path without such losses it is zero, and nothing differs from the
//! draft.

use std::time::Duration;

/// Most losses that are taken for the path's own. A policer loses packets without a queue, too.
const MOST: f64 = 0.05;
/// A round trip was without a queue if a sample exceeds the shortest by no more than one part in
/// this many.
const NEAR: u32 = 8;
/// A shorter excess is noise of the hosts.
const LEAST_NEAR: Duration = Duration::from_millis(1);
/// Packets after which the counts are halved.
const MEMORY: u64 = 4096;
/// Packets below which the estimate is not used.
const LEAST: u64 = 100;
/// Standard deviations by which the losses of a round trip may exceed the estimate.
const DEVIATIONS: f64 = 4.0;

/// The estimate of one path; bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ambient {
    lost: u64,
    delivered: u64,
    /// The same in the current round trip, and its shortest sample.
    round_lost: u64,
    round_delivered: u64,
    round_rtt: Option<Duration>,
}

impl Ambient {
    pub(super) const fn note_lost(&mut self, bytes: u64) {
        self.round_lost = self.round_lost.saturating_add(bytes);
    }

    pub(super) fn note_acked(&mut self, bytes: u64, rtt: Option<Duration>) {
        self.round_delivered = self.round_delivered.saturating_add(bytes);
        self.round_rtt = [self.round_rtt, rtt].into_iter().flatten().min();
    }

    /// A round trip is over, on a path with this shortest round-trip time.
    pub(super) fn end_round(&mut self, min_rtt: Option<Duration>, smss: u64) {
        let near = min_rtt.map(|least| least + (least / NEAR).max(LEAST_NEAR));
        let queued = match (self.round_rtt.take(), near) {
            (Some(rtt), Some(near)) => rtt > near,
            _ => true,
        };
        let lost = std::mem::take(&mut self.round_lost);
        let delivered = std::mem::take(&mut self.round_delivered);
        if queued {
            return;
        }
        self.lost = self.lost.saturating_add(lost);
        self.delivered = self.delivered.saturating_add(delivered);
        if (self.lost + self.delivered) / smss > MEMORY {
            self.lost /= 2;
            self.delivered /= 2;
        }
    }

    /// The share of lost packets.
    pub(super) fn share(&self, smss: u64) -> f64 {
        let all = self.lost.saturating_add(self.delivered);
        if all / smss < LEAST {
            return 0.0;
        }
        (self.lost as f64 / all as f64).min(MOST)
    }

    /// The most bytes that the current round trip may lose without another cause.
    pub(super) fn expected(&self, smss: u64) -> f64 {
        let mean = self.share(smss) * (self.round_delivered.saturating_add(self.round_lost)) as f64;
        mean + DEVIATIONS * (mean * smss as f64).sqrt()
    }

    /// Whether the current round trip has lost more than that.
    pub(super) fn is_exceeded(&self, smss: u64) -> bool {
        self.round_lost as f64 > self.expected(smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    /// Rounds of 200 packets of 1000 bytes, of which `lost` are lost.
    fn rounds(ambient: &mut Ambient, n: usize, lost: u64, rtt: Duration) {
        for _ in 0..n {
            ambient.note_lost(1000 * lost);
            ambient.note_acked(1000 * (200 - lost), Some(rtt));
            ambient.end_round(Some(RTT), 1000);
        }
    }

    #[test]
    fn losses_without_a_queue_are_the_paths() {
        let mut ambient = Ambient::default();
        rounds(&mut ambient, 20, 4, RTT + Duration::from_millis(2));
        assert!((ambient.share(1000) - 0.02).abs() < 1e-9);
        // Four packets are expected, with a deviation of two.
        ambient.note_acked(188_000, Some(RTT));
        ambient.note_lost(12_000);
        assert!(!ambient.is_exceeded(1000));
        ambient.note_lost(1000);
        assert!(ambient.is_exceeded(1000));
    }

    #[test]
    fn losses_of_a_queue_are_not() {
        let mut ambient = Ambient::default();
        rounds(&mut ambient, 20, 4, RTT + Duration::from_millis(3));
        assert_eq!(ambient.share(1000), 0.0);
        ambient.note_lost(1000);
        assert!(ambient.is_exceeded(1000), "any loss, as in the draft");
    }

    #[test]
    fn at_most_five_percent_are_and_they_are_forgotten() {
        let mut ambient = Ambient::default();
        rounds(&mut ambient, 20, 100, RTT);
        assert_eq!(ambient.share(1000), 0.05);
        rounds(&mut ambient, 100, 0, RTT);
        assert!(ambient.share(1000) < 0.01);
    }
}
