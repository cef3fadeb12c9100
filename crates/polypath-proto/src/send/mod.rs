//! From messages to DATA chunks in flight: the send buffer, fragments, the ring, the peer's window.

mod ahead;
mod held;
mod in_flight;
mod partial;
mod queue;

use crate::budget;
use crate::policy::StreamScheduler;
use crate::{Time, Tsn};
pub(crate) use held::Streams;
pub(crate) use in_flight::{Fate, InFlight, Outstanding};
pub(crate) use partial::{Abandonments, Limit, Partial};
pub(crate) use queue::NewChunk;
use queue::SendQueue;

/// Sizes, for the account of memory.
pub(crate) const QUEUED_SIZE: usize = size_of::<queue::Queued>();
pub(crate) const OUTSTANDING_SIZE: usize = size_of::<Outstanding>();
pub(crate) const PARTIAL_SIZE: usize = size_of::<Partial>();

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
    /// The largest window that the peer has announced: its receive buffer, as far as it shows.
    pub(crate) largest_window: u32,
    /// Payload bytes that are not yet cumulatively acknowledged: waiting, in flight or lost.
    pub(crate) buffered: usize,
    /// Payload of the largest message that was ever taken.
    pub(crate) largest_message: usize,
    /// A send was refused for want of room; the application wants to hear when there is some.
    pub(crate) starved: bool,
    /// A SACK has come since T3-rtx last expired.
    pub(crate) heard: bool,
    pub(crate) probe: WindowProbe,
    /// A message that may be given up was sent.
    pub(crate) unreliable: bool,
    pub(crate) abandonments: Abandonments,
}

/// Asking a peer whose window is closed whether it still is (RFC 9260 6.1 A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowProbe {
    /// The window is open, or something is in flight that will be answered.
    Idle,
    /// The window is closed: one chunk may leave then.
    At(Time),
    /// One chunk may leave now.
    Allowed,
    /// It has left, and T3-rtx runs for it.
    Sent(Tsn),
}

impl Sender {
    pub(crate) fn new(initial: Tsn, scheduler: Box<dyn StreamScheduler>) -> Self {
        Self {
            queue: SendQueue::new(scheduler),
            flight: InFlight::new(initial),
            peer_rwnd: 0,
            announced: 0,
            largest_window: 0,
            buffered: 0,
            largest_message: 0,
            starved: false,
            heard: true,
            probe: WindowProbe::Idle,
            unreliable: false,
            abandonments: Abandonments::default(),
        }
    }

    /// Bytes of memory in use. Chunks whose payload the receiver keeps still take their place.
    pub(crate) fn memory(&self) -> usize {
        let (waiting, outstanding) = (self.queue.messages(), self.flight.len());
        let partial = if self.unreliable { budget::PARTIAL } else { 0 };
        self.buffered
            + waiting * (budget::QUEUED + partial)
            + outstanding * (budget::OUTSTANDING + partial)
    }

    /// Bytes that a send buffer of this size still takes, which counts payload, and bookkeeping as far as
    /// that is more than half the buffer.
    pub(crate) fn room(&self, buffer: usize) -> usize {
        let memory = budget::send_limit(buffer).saturating_sub(self.memory());
        buffer.saturating_sub(self.buffered).min(memory)
    }

    /// Nothing waits and nothing is unacknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.queue.is_through() && self.flight.is_empty()
    }

    /// Nothing waits to be sent, for the first time or again.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.flight.has_lost() && self.flight.reserved_bytes() == 0
    }

    /// The peer's window after a SACK: what it announces less what is in flight (RFC 9260 6.2.1).
    pub(crate) const fn set_window(&mut self, a_rwnd: u32) {
        self.announced = a_rwnd;
        if a_rwnd > self.largest_window {
            self.largest_window = a_rwnd;
        }
        self.peer_rwnd = a_rwnd.saturating_sub(self.flight.bytes());
    }

    /// RFC 9260 6.1 A: the peer's window has room for `size` bytes, or nothing is in flight and it is
    /// time to probe.
    pub(crate) fn peer_has_room(&self, size: u32) -> bool {
        size <= self.peer_rwnd || (self.nothing_helps() && self.probe == WindowProbe::Allowed)
    }

    /// The same for a chunk that has a TSN: it is no use as a probe if it is not what the peer waits for.
    pub(crate) fn peer_has_room_for(&self, tsn: Tsn, size: u32) -> bool {
        let awaited = tsn == self.flight.ack_point().next() || self.flight.bytes() == 0;
        size <= self.peer_rwnd || (awaited && self.peer_has_room(size))
    }

    /// The chunk that the peer waits for has not left, and it is time to probe: before what is sent again,
    /// which the peer has no use for.
    pub(crate) fn is_overdue(&self) -> bool {
        let next = self.flight.ack_point().next();
        self.probe == WindowProbe::Allowed
            && self.flight.first_reserved().is_some_and(|(tsn, _)| tsn == next)
    }

    /// T3-rtx has expired: what was in flight was no use.
    pub(crate) fn probe_after_timeout(&mut self) {
        if self.nothing_helps() && matches!(self.probe, WindowProbe::Idle | WindowProbe::At(_)) {
            self.probe = WindowProbe::Allowed;
        }
    }

    /// By the peer's last SACK, its window is smaller than the chunk that it waits for (RFC 9260 6.1 A: "rwnd
    /// is smaller than the size of the next DATA chunk").
    pub(crate) fn is_shut(&self) -> bool {
        let next = self.flight.get(self.flight.ack_point().next());
        next.is_some_and(|chunk| chunk.size() > self.announced)
    }

    /// What is in flight will not make the peer read: nothing is, or what it waits for is not, while chunks
    /// that left ahead of others take its room.
    fn nothing_helps(&self) -> bool {
        let next = self.flight.ack_point().next();
        let awaited = |c: &Outstanding| c.fate != Fate::InFlight;
        self.flight.bytes() == 0
            || (self.flight.ahead() > 0 && self.flight.get(next).is_some_and(awaited))
    }

    /// A chunk of `size` bytes leaves.
    pub(crate) fn charge_window(&mut self, tsn: Tsn, size: u32) {
        let awaited = tsn == self.flight.ack_point().next();
        if size > self.peer_rwnd && self.probe == WindowProbe::Allowed && awaited {
            self.probe = WindowProbe::Sent(tsn);
        }
        self.peer_rwnd = self.peer_rwnd.saturating_sub(size);
    }

    /// Nothing more may leave now: is it the peer's closed window that holds everything up?
    pub(crate) fn watch_window(&mut self, probe_at: Time) {
        // What was given up waits for the answer to a FORWARD TSN, which has a timer of its own.
        let unacked =
            self.flight.has_lost() || (!self.flight.is_empty() && !self.flight.has_abandoned());
        let stuck = self.nothing_helps() && (!self.queue.is_empty() || unacked);
        match self.probe {
            WindowProbe::Idle if stuck => self.probe = WindowProbe::At(probe_at),
            WindowProbe::At(_) | WindowProbe::Allowed if !stuck => self.probe = WindowProbe::Idle,
            _ => {}
        }
    }

    /// The probe that the last SACK shows to have come too early: the window is open now, and the
    /// peer does not have it.
    pub(crate) fn refused_probe(&mut self) -> Option<Tsn> {
        let WindowProbe::Sent(tsn) = self.probe else { return None };
        match self.flight.get(tsn).filter(|c| c.fate == Fate::InFlight) {
            Some(chunk) if chunk.size() <= self.announced => {
                self.probe = WindowProbe::Idle;
                Some(tsn)
            }
            Some(_) => None,
            None => {
                self.probe = WindowProbe::Idle;
                None
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.flight.check()?;
        self.queue.check()?;
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
