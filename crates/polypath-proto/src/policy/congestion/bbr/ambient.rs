//! The share of packets that the path loses whatever the sender does.
//!
//! The draft lowers its short-term bounds after every round trip with a loss, so that a path that
//! loses a share p at random leaves (1 - p)^63 of the rate at the end of a cycle (draft 5.3.3.5.1),
//! and 2 % of losses in a round trip end every probe, and Startup. This estimate separates such
//! losses from those of a full queue: it counts the losses of round trips in which most round-trip
//! times were close to the shortest one, so that the queue was empty, and that did not probe for
//! bandwidth. The draft's thresholds apply to what exceeds it. On a path without such losses it is
//! zero, and nothing differs from the draft, except that Startup does not end for losses without a
//! queue that may be the path's.
//!
//! Losses at random have a variance: a round trip exceeds the estimate if it has lost more than
//! chance explains. The variance is measured as well, because a path may lose packets in bursts.

use std::time::Duration;

/// Most losses that are taken for the path's own. A policer loses packets without a queue, too.
const MOST: f64 = 0.05;
/// A sample shows an empty queue if it exceeds the shortest by no more than one part in this many.
const NEAR: u32 = 8;
/// A shorter excess is noise of the hosts.
const LEAST_NEAR: Duration = Duration::from_millis(1);
/// Packets after which the counts are halved.
const MEMORY: u64 = 4096;
/// Packets below which the estimate is not used.
const LEAST: u64 = 100;
/// Standard deviations by which losses may exceed the estimate.
const DEVIATIONS: f64 = 4.0;
/// Packets that may be lost besides: small numbers of losses have a Poisson distribution, which
/// exceeds four standard deviations more often than a normal one.
const FEW: f64 = 3.0;
/// Largest ratio of the variance to that of losses that do not depend on each other.
const MOST_DISPERSED: f64 = 8.0;
/// Round trips of independent losses that the measured variance begins with.
const PRIOR: f64 = 10.0;

/// The estimate of one path; bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ambient {
    lost: u64,
    delivered: u64,
    /// Sums over round trips, in packets: squared differences between the losses and those
    /// expected, and the losses expected.
    squares: f64,
    expected: f64,
    /// Losses and deliveries of the current round trip, and the part of the latter whose round-trip
    /// time shows an empty queue.
    round_lost: u64,
    round_delivered: u64,
    round_near: u64,
}

impl Ambient {
    pub(super) const fn note_lost(&mut self, bytes: u64) {
        self.round_lost = self.round_lost.saturating_add(bytes);
    }

    /// Bytes were acknowledged, with a sample of the round-trip time, on a path with this shortest
    /// one.
    pub(super) fn note_acked(
        &mut self,
        bytes: u64,
        rtt: Option<Duration>,
        min_rtt: Option<Duration>,
    ) {
        self.round_delivered = self.round_delivered.saturating_add(bytes);
        let near = |least: Duration| least + (least / NEAR).max(LEAST_NEAR);
        if rtt.zip(min_rtt).is_some_and(|(rtt, least)| rtt <= near(least)) {
            self.round_near = self.round_near.saturating_add(bytes);
        }
    }

    /// Whether the queue was empty for most of the current round trip.
    pub(super) const fn is_unqueued(&self) -> bool {
        self.round_near > 0 && self.round_near >= self.round_delivered / 2
    }

    /// A round trip is over. `probed` if data may have been sent faster than the path delivers it.
    pub(super) fn end_round(&mut self, smss: u64, probed: bool) {
        let unqueued = self.is_unqueued() && !probed;
        let lost = std::mem::take(&mut self.round_lost);
        let delivered = std::mem::take(&mut self.round_delivered);
        self.round_near = 0;
        let all = lost.saturating_add(delivered);
        if !unqueued || lost as f64 > self.most_own(all, smss) {
            return;
        }
        let mean = self.share(smss) * all as f64 / smss as f64;
        if mean > 0.0 {
            self.squares += (lost as f64 / smss as f64 - mean).powi(2);
            self.expected += mean;
        }
        self.lost = self.lost.saturating_add(lost);
        self.delivered = self.delivered.saturating_add(delivered);
        if (self.lost + self.delivered) / smss > MEMORY {
            self.lost /= 2;
            self.delivered /= 2;
            self.squares /= 2.0;
            self.expected /= 2.0;
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

    /// The most of `bytes` bytes that chance explains, if the path loses this share.
    fn explained(&self, share: f64, bytes: u64, smss: u64) -> f64 {
        if share <= 0.0 {
            return 0.0;
        }
        let (mean, smss) = (share * bytes as f64, smss as f64);
        let dispersion = (self.squares + PRIOR) / (self.expected + PRIOR);
        let variance = mean * smss * dispersion.clamp(1.0, MOST_DISPERSED);
        mean + DEVIATIONS * variance.sqrt() + FEW * smss
    }

    /// The most of `bytes` bytes that may be lost without another cause.
    pub(super) fn own(&self, bytes: u64, smss: u64) -> f64 {
        self.explained(self.share(smss), bytes, smss)
    }

    /// The most of `bytes` bytes that any path may lose without another cause.
    pub(super) fn most_own(&self, bytes: u64, smss: u64) -> f64 {
        self.explained(MOST, bytes, smss)
    }

    /// Whether the current round trip has lost more than the path does by itself.
    pub(super) fn is_exceeded(&self, smss: u64) -> bool {
        let all = self.round_delivered.saturating_add(self.round_lost);
        self.round_lost as f64 > self.own(all, smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    /// A round of 200 packets of 1000 bytes, of which `lost` are lost.
    fn round(ambient: &mut Ambient, lost: u64, rtt: Duration, probed: bool) {
        ambient.note_lost(1000 * lost);
        ambient.note_acked(1000 * (200 - lost), Some(rtt), Some(RTT));
        ambient.end_round(1000, probed);
    }

    fn rounds(ambient: &mut Ambient, n: usize, lost: u64, rtt: Duration) {
        (0..n).for_each(|_| round(ambient, lost, rtt, false));
    }

    #[test]
    fn losses_without_a_queue_are_the_paths() {
        let mut ambient = Ambient::default();
        rounds(&mut ambient, 20, 4, RTT + Duration::from_millis(2));
        assert!((ambient.share(1000) - 0.02).abs() < 1e-9);
        // Four packets are expected, with a deviation of two, and three more.
        ambient.note_acked(185_000, Some(RTT), Some(RTT));
        ambient.note_lost(15_000);
        assert!(!ambient.is_exceeded(1000));
        ambient.note_lost(1000);
        assert!(ambient.is_exceeded(1000));
    }

    #[test]
    fn losses_of_a_queue_or_of_a_probe_are_not() {
        let mut ambient = Ambient::default();
        rounds(&mut ambient, 20, 4, RTT + Duration::from_millis(3));
        (0..20).for_each(|_| round(&mut ambient, 4, RTT, true));
        assert_eq!(ambient.share(1000), 0.0);
        ambient.note_lost(1000);
        assert!(ambient.is_exceeded(1000), "any loss, as in the draft");
    }

    /// Half of the samples must show an empty queue.
    #[test]
    fn a_queue_for_most_of_a_round_is_a_queue() {
        for (queued, counts) in [(90, true), (110, false)] {
            let mut ambient = Ambient::default();
            for _ in 0..10 {
                ambient.note_lost(4000);
                ambient.note_acked(1000 * queued, Some(RTT * 2), Some(RTT));
                ambient.note_acked(1000 * (196 - queued), Some(RTT), Some(RTT));
                ambient.end_round(1000, false);
            }
            assert_eq!(ambient.share(1000) > 0.0, counts);
        }
    }

    #[test]
    fn at_most_five_percent_are_and_they_are_forgotten() {
        let mut ambient = Ambient::default();
        rounds(&mut ambient, 20, 20, RTT);
        assert_eq!(ambient.share(1000), 0.05);
        rounds(&mut ambient, 100, 0, RTT);
        assert!(ambient.share(1000) < 0.01);
        // Half of the packets: not even chance explains it.
        rounds(&mut ambient, 20, 100, RTT);
        assert!(ambient.share(1000) < 0.01);
    }

    /// The same share in bursts of five: a fifth of the round trips loses ten packets instead of
    /// two.
    #[test]
    fn bursts_have_a_larger_variance() {
        let (mut even, mut bursts) = (Ambient::default(), Ambient::default());
        for n in 0..20 {
            round(&mut even, 2, RTT, false);
            round(&mut bursts, if n % 5 == 0 { 10 } else { 0 }, RTT, false);
        }
        assert!((even.share(1000) - bursts.share(1000)).abs() < 1e-9);
        let most = |a: &Ambient| a.own(200_000, 1000) / 1000.0;
        // 2 + 4 * sqrt(2) + 3.
        assert!((10.0..10.7).contains(&most(&even)), "{}", most(&even));
        // The variance of the latter is 16: 2 + 4 * sqrt(16) + 3.
        assert!((15.0..=21.0).contains(&most(&bursts)), "{}", most(&bursts));
    }

    #[test]
    fn few_packets_are_no_estimate() {
        let mut ambient = Ambient::default();
        ambient.note_lost(3000);
        ambient.note_acked(90_000, Some(RTT), Some(RTT));
        ambient.end_round(1000, false);
        assert_eq!(ambient.share(1000), 0.0);
    }
}
