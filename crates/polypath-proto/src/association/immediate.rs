//! Asking the peer for a SACK without delay: the I bit (RFC 7053, RFC 9260 3.3.1).
//!
//! Besides the application, the sender asks where it would stand still until the peer's timer for
//! delayed acknowledgements expires (RFC 7053 5: in SHUTDOWN-PENDING, and when a chunk fills the
//! congestion window or the receiver's). A receiver acknowledges every second packet anyway
//! (RFC 9260 6.2), so windows matter only where the packet at hand is the only one in flight: asking
//! in every full window would double the SACKs of a bulk transfer for nothing.

use super::Association;
use super::state::State;
use crate::PathId;

impl Association {
    /// A packet is begun.
    pub(super) fn note_alone(&mut self) {
        self.alone = self.sender.flight.bytes() == 0 && !self.is_ns2();
    }

    /// The chunk of `size` bytes that is about to leave on `path`, in the packet at hand, is one after
    /// which this side stands still until it is acknowledged. It is not counted in flight yet, and no
    /// longer waits.
    pub(super) fn stands_still_after(&self, path: PathId, size: u32) -> bool {
        let waits = !self.sender.is_idle();
        if !waits && matches!(self.state, State::ShutdownPending) {
            // RFC 9260 9.2: SHUTDOWN waits for the acknowledgement.
            return !self.is_ns2();
        }
        if !self.alone {
            return false;
        }
        if !waits {
            // An application that waits for room in the send buffer.
            return self.send_room() == 0;
        }
        let path = &self.paths[path.index()];
        let left = self.sender.peer_rwnd.saturating_sub(size);
        path.in_flight() + size >= path.window().cwnd || left < path.max_chunk()
    }
}
