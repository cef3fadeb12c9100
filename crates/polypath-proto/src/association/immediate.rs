//! Requesting a SACK without delay: the I bit (RFC 7053, RFC 9260 3.3.1).
//!
//! Besides the application, the sender requests one where it would stall until the peer's timer for
//! delayed acknowledgements expires (RFC 7053 5: in SHUTDOWN-PENDING, and when a chunk fills the
//! congestion window or the receiver's). A receiver acknowledges every second packet anyway (RFC
//! 9260 6.2), so windows matter only if the current packet is the only one in flight: a request in
//! every full window would double the SACKs of a bulk transfer without benefit.

use super::Sender;
use crate::ids::PathId;

impl Sender<'_> {
    /// Called when a packet is begun.
    pub(super) fn note_alone(&mut self) {
        let asks = self.model.rules.asks_for_sacks;
        self.sending.alone = asks && self.sending.flight.bytes() == 0;
    }

    /// Whether this side stalls after sending a chunk of `size` bytes on `path`, until it is
    /// acknowledged. The chunk belongs to the current packet; it does not count as in flight yet,
    /// and is no longer queued.
    pub(super) fn stalls_after(&self, path: PathId, size: u32) -> bool {
        let waits = !self.sending.is_idle();
        if !waits && self.phase.shutdown_pending {
            // RFC 9260 9.2: SHUTDOWN waits for the acknowledgement.
            return self.model.rules.asks_for_sacks;
        }
        if !self.sending.alone {
            return false;
        }
        if !waits {
            // The application waits for room in the send buffer.
            return self.sending.room_beside(self.events) == 0;
        }
        let path = &self.paths[path];
        let left = self.sending.peer_rwnd.saturating_sub(size);
        path.in_flight() + size >= path.window().cwnd || left < path.max_chunk()
    }
}
