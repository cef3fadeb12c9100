//! From messages to DATA chunks in flight: the send buffer, fragments, the ring, the peer's window.

mod in_flight;
mod queue;

use crate::Tsn;
pub(crate) use in_flight::{Fate, InFlight, Outstanding};
use queue::SendQueue;

/// The sending half of an association.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) queue: SendQueue,
    pub(crate) flight: InFlight,
    /// What the peer's receive buffer still takes, by its last word and what has left since
    /// (RFC 9260 6.2.1).
    pub(crate) peer_rwnd: u32,
    /// The window of the peer's last SACK.
    pub(crate) announced: u32,
    /// Payload bytes that are not yet cumulatively acknowledged: waiting, in flight or lost.
    pub(crate) buffered: usize,
    /// A send was refused for want of room; the application wants to hear when there is some.
    pub(crate) starved: bool,
    /// The next retransmission leaves whatever the window (RFC 9260 6.3.3 E3, 7.2.4 (3)).
    pub(crate) forced: bool,
    /// A SACK has come since T3-rtx last expired.
    pub(crate) heard: bool,
}

impl Sender {
    pub(crate) fn new(initial: Tsn) -> Self {
        Self {
            queue: SendQueue::default(),
            flight: InFlight::new(initial),
            peer_rwnd: 0,
            announced: 0,
            buffered: 0,
            starved: false,
            forced: false,
            heard: true,
        }
    }

    /// Nothing waits and nothing is unacknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.flight.is_empty()
    }

    /// The peer's window after a SACK: what it announces less what is in flight (RFC 9260 6.2.1).
    pub(crate) const fn set_window(&mut self, a_rwnd: u32) {
        self.announced = a_rwnd;
        self.peer_rwnd = a_rwnd.saturating_sub(self.flight.bytes());
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.flight.check()?;
        let held: usize = self.flight.iter().map(|(_, c)| c.payload.len()).sum();
        if held + self.queue.bytes() != self.buffered {
            return Err(format!(
                "send buffer: {held} bytes in flight and {} waiting, but {} counted",
                self.queue.bytes(),
                self.buffered
            ));
        }
        Ok(())
    }
}
