//! Messages that are lost with their association (RFC 9260 11.1.14, 11.1.15).

use super::Association;
use crate::event::{Message, Undelivered};
use crate::send::{Parts, Sending};

impl Association {
    /// Keeps the messages that the peer has not acknowledged when the association ends or the peer
    /// restarts, and those that [`Event::SendFailed`](crate::Event::SendFailed) reports, for
    /// [`take_undelivered`](Self::take_undelivered). Otherwise they are dropped.
    pub fn keep_undelivered(&mut self) {
        self.sending.undelivered.get_or_insert_default();
    }

    /// Takes the messages that were abandoned since the last call, the oldest ones of which are
    /// dropped if they exceed the send buffer or are more than 1024. After the end of the
    /// association they are followed by the messages that were lost: those sent, in the order of
    /// their TSNs, then those that were not, in the order in which they were given to
    /// [`send`](Self::send). The peer may have received messages that were sent. A message that was
    /// acknowledged in part is represented by the other parts.
    pub fn take_undelivered(&mut self) -> Vec<Undelivered> {
        let kept = self.sending.undelivered.as_mut();
        kept.map(crate::send::Kept::take).unwrap_or_default()
    }

    /// Everything that the peer has not acknowledged is lost.
    pub(super) fn keep_lost(&mut self) {
        self.keep(|_| true);
    }

    /// The peer has restarted: messages that were begun are lost, the others are sent to it.
    pub(super) fn keep_lost_by_restart(&mut self) {
        self.keep(|offset| offset > 0);
    }

    /// Keeps what was sent, and the messages that wait if `is_lost` for the number of bytes of them
    /// that were sent.
    fn keep(&mut self, is_lost: impl Fn(usize) -> bool) {
        if self.sending.undelivered.is_some() {
            let mut lost = in_flight(&self.sending);
            for (message, offset) in self.sending.queue.waiting() {
                if is_lost(offset) {
                    lost.add_rest(message, offset);
                }
            }
            self.sending.undelivered.get_or_insert_default().lose(lost);
        }
    }

    /// The peer does not allow the message's stream.
    pub(super) fn keep_refused(&mut self, message: &Message) {
        if let Some(kept) = &mut self.sending.undelivered {
            let mut refused = Parts::default();
            refused.add_rest(message, 0);
            kept.lose(refused);
        }
    }
}

/// The messages that were sent. A chunk that a gap block acknowledges counts: the peer may still
/// drop it, unless it has promised not to, when the payload is not here any more.
fn in_flight(sending: &Sending) -> Parts {
    let mut lost = Parts::default();
    for (_, chunk) in sending.flight.iter().filter(|(_, chunk)| !chunk.is_abandoned()) {
        lost.add_chunk(chunk, chunk.fate);
    }
    lost
}
