//! Delayed acknowledgement as ns-2's SCTP module does it.
//!
//! Like [`delayed`](crate::policy::ack::delayed), with two differences. A duplicate without a gap,
//! or the first chunk of the association even if it is repeated, changes neither the packet count
//! nor the timer. A SACK is sent on the path of the last packet, whatever the state of that path.
//! ns-2: ProcessChunk, SackGenTimerExpiration.

use std::time::Duration;

use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::ack::{self, AckPolicy, AckTime, Arrival};
use crate::policy::entry::Entry;

/// See the module.
pub static ACK: Entry<dyn AckPolicy> = Entry::new(
    "ns2",
    "a SACK for every second packet or after SACK.Delay, at once on a gap or duplicate, as \
              ns-2's SCTP module counts packets",
    |setup| {
        Box::new(Ns2 {
            every: setup.constants.sack_every(),
            delay: setup.constants.sack_delay(),
            // Agent/SCTP/CMT does not do this.
            first_at_once: setup.constants.first_sack_at_once() && !setup.concurrent,
        })
    },
);

#[derive(Debug)]
struct Ns2 {
    every: u32,
    delay: Duration,
    first_at_once: bool,
}

impl AckPolicy for Ns2 {
    fn when(&mut self, arrival: &Arrival) -> AckTime {
        if arrival.gap || self.delay.is_zero() {
            AckTime::Now
        } else if arrival.first && self.first_at_once {
            // RFC 4960 5.1.
            AckTime::NowUncounted
        } else if arrival.packets >= self.every {
            AckTime::Now
        } else if arrival.duplicate {
            AckTime::NowAndWithin(self.delay)
        } else {
            AckTime::Within(self.delay)
        }
    }

    fn path(&self, last: PathId, _: PathsView<'_>) -> PathId {
        last
    }
}

/// Delayed Ack for CMT as in the module (useCmtDelAck_): neither the association's first chunk nor
/// the I bit hurries a SACK.
pub(super) static DELAYED_CMT: Entry<dyn AckPolicy> =
    Entry::new(ack::DELAYED_CMT.name, ack::DELAYED_CMT.summary, |setup| {
        Box::new(DelayedCmt {
            every: setup.constants.sack_every(),
            delay: setup.constants.sack_delay(),
        })
    });

#[derive(Debug)]
struct DelayedCmt {
    every: u32,
    delay: Duration,
}

impl AckPolicy for DelayedCmt {
    fn when(&mut self, arrival: &Arrival) -> AckTime {
        if arrival.packets >= self.every || self.delay.is_zero() {
            AckTime::Now
        } else if arrival.duplicate {
            // The SACK for a duplicate restarts the count and leaves the timer running.
            AckTime::NowAndAgainWithin(self.delay)
        } else {
            AckTime::Within(self.delay)
        }
    }

    fn path(&self, last: PathId, _: PathsView<'_>) -> PathId {
        last
    }
}
