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
}

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

    pub(crate) const fn count_sent(&mut self) {
        if self.sent >= WINDOW {
            self.sent /= 2;
            self.lost /= 2;
        }
        self.sent += 1;
    }

    pub(crate) const fn count_lost(&mut self) {
        if self.lost < self.sent {
            self.lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
