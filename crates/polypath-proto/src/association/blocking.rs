//! Measures how long the peer's receive buffer holds up the sender: receive-buffer blocking.
//!
//! Natarajan 2009, 1: "Even though the congestion window would allow new data transmission, rbuf
//! blocking (i.e., flow control) stalls the sender". A window that is smaller than the paths'
//! bandwidth-delay product holds up every transfer, for parts of a round trip; this counts only the
//! time in which a path is idle.

use super::Sender;
use crate::path::PathState;
use crate::time::Time;

impl Sender<'_> {
    /// Called when everything that may be sent now has been sent.
    pub(super) fn note_blocking(&mut self, now: Time) {
        match (self.sending.blocked_since, self.is_blocked()) {
            (None, true) => self.sending.blocked_since = Some(now),
            (Some(since), false) => {
                self.sending.blocked_since = None;
                self.stats.nanoseconds_blocked += now.since(since).as_nanos() as u64;
            }
            _ => {}
        }
    }

    fn is_blocked(&self) -> bool {
        let largest = self.sending.largest_payload;
        let Some(size) = self.sending.next_new_size(largest) else { return false };
        let idle = |p: &crate::path::Path| {
            p.state() == PathState::Active && p.in_flight() == 0 && p.lost() == 0
        };
        self.phase.may_send_data
            && !self
                .sending
                .peer_has_room(self.sending.flight.counted(size + self.sending.data_header()))
            && self.paths.iter().any(idle)
    }
}
