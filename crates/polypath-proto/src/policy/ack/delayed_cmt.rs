//! Delayed Ack for CMT (DAC): a gap causes no immediate SACK, since data sent on several paths
//! regularly arrives out of order.
//!
//! Iyengar, Amer, Stewart, "Concurrent Multipath Transfer Using SCTP Multihoming Over Independent
//! End-to-End Paths" (2006), DAC: a SACK for every second packet even if TSNs are missing, with the
//! number of packets that it acknowledges in its flags. The sender counts that many missing reports
//! where the loss rule allows it
//! ([`SplitFastRetransmit`](crate::policy::loss::split_fast_retransmit)). Both sides must support
//! it.

use std::time::Duration;

use super::delayed::Replies;
use super::{AckPolicy, AckTime, Arrival};
use crate::extension::Extension;
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::{Entry, Needs};

/// See the [module](self).
pub static DELAYED_CMT: Entry<dyn AckPolicy> = Entry::<dyn AckPolicy>::new(
    "delayed-cmt",
    "a SACK for every second packet or after SACK.Delay, gaps or not, with the number of \
              packets in it (DAC; Iyengar 2006)",
    |setup| {
        Box::new(DelayedCmt {
            every: setup.constants.sack_every(),
            delay: setup.constants.sack_delay(),
            first_at_once: setup.constants.first_sack_at_once(),
            replies: Replies::default(),
        })
    },
)
.with_needs(Needs::NONE.extension(Extension::PacketCount));

#[derive(Debug)]
struct DelayedCmt {
    every: u32,
    delay: Duration,
    first_at_once: bool,
    replies: Replies,
}

impl AckPolicy for DelayedCmt {
    fn when(&mut self, arrival: &Arrival) -> AckTime {
        // RFC 9260 6.2 requires an immediate SACK for a duplicate.
        let urgent = arrival.duplicate || arrival.immediate || arrival.dropped;
        let full = arrival.packets >= self.every || self.delay.is_zero();
        self.replies.arrived(arrival);
        if urgent || full || (arrival.first && self.first_at_once) {
            AckTime::Now
        } else {
            AckTime::Within(self.delay)
        }
    }

    fn path(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        self.replies.path(last, paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn arrival(packets: u32) -> Arrival {
        Arrival { packets, gap: true, ..Arrival::default() }
    }

    #[test]
    fn a_gap_is_no_reason_to_hurry() {
        let config = Config::rfc9260();
        let mut dac = DELAYED_CMT.make(&config.setup());
        assert_eq!(dac.when(&arrival(1)), AckTime::Within(config.sack_delay()));
        assert_eq!(dac.when(&arrival(2)), AckTime::Now);
        for urgent in [
            Arrival { duplicate: true, ..arrival(1) },
            Arrival { immediate: true, ..arrival(1) },
            Arrival { dropped: true, ..arrival(1) },
            Arrival { first: true, ..arrival(1) },
        ] {
            assert_eq!(dac.when(&urgent), AckTime::Now, "{urgent:?}");
        }
    }
}
