//! Delayed acknowledgement as ns-2's SCTP module does it.
//!
//! As [`delayed`](super::delayed), except that a duplicate without a gap, or the first chunk of the
//! association however often it comes, leaves the count of packets and the timer as they are, and that a SACK goes to where the last packet came from, whatever the
//! state of that path. ns-2: ProcessChunk, SackGenTimerExpiration.

use std::time::Duration;

use super::{AckPolicy, AckTime, Arrival};
use crate::PathId;
use crate::policy::{Answer, PathsView};

/// See the [module](self).
pub static NS2: Answer<dyn AckPolicy> = Answer {
    name: "ns2",
    summary: "a SACK for every second packet or after SACK.Delay, at once on a gap or duplicate, as \
              ns-2's SCTP module counts packets",
    make: |config| {
        Box::new(Ns2 {
            every: config.sack_every(),
            delay: config.sack_delay(),
            first_at_once: config.first_sack_at_once(),
        })
    },
};

#[derive(Debug)]
struct Ns2 {
    every: u32,
    delay: Duration,
    first_at_once: bool,
}

/// The module's order of the reasons; `gap` is one for an answer at once.
pub(super) fn when(
    arrival: &Arrival,
    gap: bool,
    full: bool,
    first_at_once: bool,
    delay: Duration,
) -> AckTime {
    if gap {
        AckTime::Now
    } else if arrival.first && first_at_once {
        // RFC 4960 5.1.
        AckTime::NowUncounted
    } else if full {
        AckTime::Now
    } else if arrival.duplicate {
        AckTime::NowAndWithin(delay)
    } else {
        AckTime::Within(delay)
    }
}

impl AckPolicy for Ns2 {
    fn when(&mut self, arrival: &Arrival) -> AckTime {
        let full = arrival.packets >= self.every;
        let gap = arrival.gap || self.delay.is_zero();
        when(arrival, gap, full, self.first_at_once, self.delay)
    }

    fn path(&self, last: PathId, _: PathsView<'_>) -> PathId {
        last
    }
}
