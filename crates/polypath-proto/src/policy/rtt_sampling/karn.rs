//! Karn's rule: a chunk that was retransmitted measures nothing (RFC 9260 6.3.1, C5).

use super::RttSampling;
use crate::policy::Answer;

/// See the [module](self).
pub static KARN: Answer<dyn RttSampling> = Answer {
    name: "karn",
    summary: "one chunk each round trip, never one that was retransmitted (RFC 9260 6.3.1 C4, C5)",
    make: |_| Box::new(Karn),
};

#[derive(Debug)]
struct Karn;

impl RttSampling for Karn {
    fn may_start(&self, transmissions: u32) -> bool {
        transmissions == 1
    }

    fn counts(&self, transmissions: u32) -> bool {
        transmissions == 1
    }
}
