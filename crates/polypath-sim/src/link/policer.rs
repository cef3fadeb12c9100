//! The token bucket of a policer.

use polypath_proto::Time;

use super::config::Policer;

/// The state of a token bucket, which is full at first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// When the bucket will be full again.
    full_at: Time,
}

impl Bucket {
    /// Whether a packet of `size` bytes passes; its bytes are taken out of the bucket if it does.
    pub(super) fn takes(&mut self, now: Time, size: u32, policer: &Policer) -> bool {
        let full_at = self.full_at.max(now) + policer.rate.time_for(size.into());
        let passes = full_at.since(now) <= policer.rate.time_for(policer.burst.0);
        if passes {
            self.full_at = full_at;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Rate, Size};

    /// Ten packets fit the bucket; after that one packet passes for each that the rate allows.
    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let policer = Policer { rate: Rate(8_000_000), burst: Size(10_000) };
        let mut bucket = Bucket::default();
        let at = Time::from_millis;
        let passed = |bucket: &mut Bucket, now| {
            (0..20).filter(|_| bucket.takes(now, 1000, &policer)).count()
        };
        assert_eq!(passed(&mut bucket, at(1000)), 10);
        // 1000 bytes take a millisecond.
        assert_eq!(passed(&mut bucket, at(1001)), 1);
        assert_eq!(passed(&mut bucket, at(1004)), 3);
        assert_eq!(passed(&mut bucket, at(5000)), 10, "no more than the bucket holds");
        assert!(!Bucket::default().takes(at(1), 10_001, &policer));
    }
}
