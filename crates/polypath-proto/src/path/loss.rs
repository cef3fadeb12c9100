//! Estimates the share of a path's packets that is lost, without extra packets.

/// Number of chunks and HEARTBEATs after which the counts are halved.
const WINDOW: u32 = 1024;

/// Counts the transmissions on a path and their losses.
///
/// A loss is a chunk that missing reports marked lost, an expiry of T3-rtx (whatever it marks: the
/// rest may have arrived) or a HEARTBEAT without an answer. Losses of SACKs count only where they
/// cost a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossEstimate {
    sent: u32,
    lost: u32,
    /// The share of the last transmissions that was lost, in units of 2^-20.
    recent: u32,
}

/// The last transmissions are about 2 to the power of this.
const RECENT: u32 = 5;

impl LossEstimate {
    /// Number of chunks and HEARTBEATs that the estimate is based on; old ones count less.
    pub const fn samples(self) -> u32 {
        self.sent
    }

    /// The estimate as (numerator, denominator): (lost + 1) / (sent + 2), by Laplace's rule of
    /// succession never 0.
    pub const fn share(self) -> (u32, u32) {
        (self.lost + 1, self.sent + 2)
    }

    /// The share of about the last 32 transmissions that was lost: it follows a path that becomes
    /// worse, while [`share`](Self::share) is the mean of a thousand.
    pub const fn recent(self) -> f64 {
        self.recent as f64 / (1 << 20) as f64
    }

    pub(crate) const fn count_sent(&mut self) {
        self.recent -= self.recent >> RECENT;
        if self.sent >= WINDOW {
            self.sent /= 2;
            self.lost /= 2;
        }
        self.sent += 1;
    }

    pub(crate) const fn count_lost(&mut self) {
        self.recent += ((1 << 20) - self.recent) >> RECENT;
        if self.lost < self.sent {
            self.lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recent_share_follows_within_a_few_dozen_packets() {
        let mut estimate = LossEstimate::default();
        let mut run = |packets, every: u32| {
            for n in 0..packets {
                estimate.count_sent();
                if n % every == 0 {
                    estimate.count_lost();
                }
            }
            estimate.recent()
        };
        assert!(run(1000, 2000) < 0.001);
        let half = run(64, 2);
        assert!((0.3..0.55).contains(&half), "{half}");
        assert!(run(100, 1000) < 0.05);
    }

    #[test]
    fn the_share_follows_what_is_lost_now() {
        let mut estimate = LossEstimate::default();
        assert_eq!(estimate.share(), (1, 2));
        let mut run = |every: Option<u32>| {
            for n in 1..=5000 {
                estimate.count_sent();
                if every.is_some_and(|every| n % every == 0) {
                    estimate.count_lost();
                }
            }
            let (lost, sent) = estimate.share();
            f64::from(lost) / f64::from(sent)
        };
        assert!((run(Some(20)) - 0.05).abs() < 0.005);
        assert!(run(None) < 0.005);
        assert!(run(Some(1)) > 0.99);
    }
}
