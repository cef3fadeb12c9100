//! Delayed acknowledgement: a SACK for every second packet or after 200 ms, at once if TSNs are
//! missing.
//!
//! RFC 9260 6.2, 6.7.

use std::time::Duration;

use super::{AckPolicy, AckTime, Arrival};
use crate::ids::PathId;
use crate::path::{PathState, PathsView};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static DELAYED: Entry<dyn AckPolicy> = Entry::new(
    "delayed",
    "a SACK for every second packet or after SACK.Delay, at once on a gap or duplicate \
              (RFC 9260 6.2)",
    |setup| {
        Box::new(Delayed {
            every: setup.constants.sack_every(),
            delay: setup.constants.sack_delay(),
            first_at_once: setup.constants.first_sack_at_once(),
            replies: Replies::default(),
        })
    },
);

#[derive(Debug)]
struct Delayed {
    every: u32,
    delay: Duration,
    first_at_once: bool,
    replies: Replies,
}

impl AckPolicy for Delayed {
    fn when(&mut self, arrival: &Arrival) -> AckTime {
        self.replies.arrived(arrival);
        // RFC 9260 5.1: "After the reception of the first DATA chunk in an association, the
        // endpoint MUST immediately respond with a SACK chunk". 6.7: "Upon the reception of a new
        // DATA chunk ... if there is one or more missing DATA chunks ... the endpoint SHOULD send a
        // SACK chunk immediately"; 6.2: "When a packet arrives with duplicate DATA chunk(s) ... the
        // endpoint MUST immediately send a SACK chunk with no delay" (the RFC requires it only
        // without new DATA; this policy does it in either case).
        if arrival.gap
            || arrival.duplicate
            || arrival.immediate
            || arrival.dropped
            || (arrival.first && self.first_at_once)
            || arrival.packets >= self.every
            || self.delay.is_zero()
        {
            AckTime::Now
        } else {
            AckTime::Within(self.delay)
        }
    }

    fn path(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        self.replies.path(last, paths)
    }
}

/// Chooses the path of SACKs (RFC 9260 6.4).
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// A bit for each path: whether SACKs for its packets are sent on it even if it is inactive.
    direct: u64,
}

impl Replies {
    /// "When a receiver of a duplicate DATA chunk sends a SACK chunk to a multi-homed endpoint, it
    /// MAY be beneficial to vary the destination address and not use the source address of the DATA
    /// chunk." Done for inactive paths: another duplicate means that the last SACK did not arrive
    /// on the path used.
    pub(super) fn arrived(&mut self, arrival: &Arrival) {
        if arrival.duplicate {
            self.direct ^= 1_u64.rotate_left(arrival.path.0.into());
        }
    }

    /// Reply chunks are sent "to the same destination transport address from which it received the
    /// DATA or control chunk". A path that is inactive on this side may still carry the peer's
    /// data, but an active one is more likely to deliver the SACK. Unconfirmed paths carry
    /// HEARTBEATs only (5.4).
    pub(super) fn path(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        let elsewhere = match paths.state(last) {
            PathState::Unconfirmed => true,
            PathState::Inactive => self.direct & 1_u64.rotate_left(last.0.into()) == 0,
            _ => false,
        };
        let other = elsewhere.then(|| paths.next_after(last, |path| paths.is_active(path)));
        other.flatten().unwrap_or(last)
    }
}
