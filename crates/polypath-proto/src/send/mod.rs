//! The sending half of an association: send buffer, fragmentation, outstanding chunks, peer's
//! window.

mod ahead;
mod apply;
mod burst;
mod copies;
mod forward;
mod held;
pub(crate) mod in_flight;
mod partial;
mod queue;
mod queued;
mod report;
mod stamps;
mod tuning;
mod undelivered;

use std::sync::Arc;

use crate::allocation::LEAST;
use crate::config::Config;
use crate::event::Event;
use crate::events::Events;
use crate::extension::{Extension, Extensions};
use crate::ids::Tsn;
use crate::path::Path;
use crate::paths::Paths;
use crate::policy::entry::Needs;
use crate::policy::scheduler::{EARLIEST, NewData};
use crate::policy::{
    CongestionController, CwndUpdate, LossDetector, RetransmissionPolicy, RttSampling, Scheduler,
};
use crate::pool::Pool;
use crate::time::Time;
use crate::wire::{DATA_HEADER_LEN, I_DATA_HEADER_LEN};
pub(crate) use apply::Acknowledgement;
use burst::Burst;
pub(crate) use copies::Copies;
pub(crate) use forward::Forward;
pub(crate) use in_flight::InFlight;
use in_flight::OUTSTANDING;
pub(crate) use in_flight::outstanding::{Fate, Outstanding};
use partial::PARTIAL;
pub(crate) use partial::{Abandonments, Limit, Partial};
pub(crate) use queue::NewChunk;
use queue::SendQueue;
use queued::QUEUED;
use report::SackMemory;
pub(crate) use report::{PathReport, SackReport};
pub(crate) use stamps::Stamps;
use tuning::Tuning;
pub(crate) use undelivered::{Kept, Parts};

/// Limit on the memory of data to send, up to which messages are accepted.
const fn most_memory(send_buffer: usize) -> usize {
    send_buffer + send_buffer / 2 + LEAST
}

/// The application does not write again for less room than this in a buffer that tunes itself.
const LEAST_ROOM: usize = 1 << 16;

/// The sending half of an association.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) queue: SendQueue,
    pub(crate) flight: InFlight,
    /// The peer's remaining window in bytes: last a_rwnd less the data in flight (RFC 9260 6.2.1).
    pub(crate) peer_rwnd: u32,
    /// The a_rwnd of the peer's last SACK, in bytes.
    pub(crate) announced: u32,
    /// The largest window that the peer has announced: the best estimate of its receive buffer.
    pub(crate) largest_window: u32,
    /// Payload bytes that the send buffer holds: queued, in flight or lost.
    pub(crate) buffered: usize,
    /// Size of the send buffer.
    pub(crate) tuning: Tuning,
    /// Payload bytes of the largest message ever accepted.
    pub(crate) largest_message: usize,
    /// Whether the send buffer rejected a message: the application waits for a writable event.
    pub(crate) starved: bool,
    /// When the last SACK arrived, over any path.
    pub(crate) last_sack: Option<Time>,
    pub(crate) probe: WindowProbe,
    /// Whether any message that may be abandoned was sent.
    pub(crate) unreliable: bool,
    pub(crate) abandonments: Abandonments,
    /// Expiry of the first message of which a chunk is lost.
    pub(crate) lost_until: Option<Time>,
    pub(crate) forward: Option<Forward>,
    /// Lost and abandoned messages, if the application asked to keep them.
    pub(crate) undelivered: Option<Kept>,
    pub(crate) stamps: Stamps,
    pub(crate) copies: Copies,
    /// The flags of SACKs show whether gap blocks were left out.
    pub(crate) partial_sacks: bool,
    /// The flags of SACKs show whether the offsets of gap blocks have 32 bits.
    pub(crate) wide_sacks: bool,
    pub(crate) burst: Burst,
    /// Nothing was in flight when the current packet was begun.
    pub(crate) alone: bool,
    /// Payload bytes of the largest DATA chunk that fits every path.
    pub(crate) largest_payload: usize,
    /// Payload limit that the application has set.
    pub(crate) most_payload: usize,
    /// Payload limit derived from the peer's first window.
    pub(crate) window_payload: usize,
    /// Bytes of the response to a reset that precedes the data of every packet (RFC 6525 5.2.4).
    pub(crate) response_len: usize,
    /// Since when new data waits for nothing but the peer's receive buffer.
    pub(crate) blocked_since: Option<Time>,
    pub(crate) sack: SackMemory,
    /// Largest number of operations beyond the budget of a packet.
    pub(crate) overwork: u64,
    pub(crate) retransmission: Box<dyn RetransmissionPolicy>,
    pub(crate) loss: Box<dyn LossDetector>,
    pub(crate) congestion: Box<dyn CongestionController>,
    /// What `congestion` needs.
    pub(crate) needs: Needs,
    pub(crate) cwnd_update: Box<dyn CwndUpdate>,
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// That of messages that are to arrive as early as possible.
    pub(crate) urgent: Box<dyn Scheduler>,
    concurrent: bool,
    pub(crate) rtt_sampling: Box<dyn RttSampling>,
}

/// State of zero window probing (RFC 9260 6.1 A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowProbe {
    /// The window is open, or data in flight will cause a SACK.
    Idle,
    /// The window is closed: one chunk may be sent at this time.
    At(Time),
    /// One chunk may be sent now.
    Allowed,
    /// The probe was sent, and T3-rtx runs for it.
    Sent(Tsn),
}

impl Sending {
    pub(crate) fn new(initial: Tsn, config: &Config, pool: &Arc<Pool>) -> Self {
        let setup = &config.setup();
        let congestion = config.congestion().make(setup);
        let mut queue = SendQueue::new(config.stream_scheduler().make(setup));
        queue.set_delivery(None, Some(config.delivery()));
        Self {
            queue,
            flight: InFlight::new(initial),
            peer_rwnd: 0,
            announced: 0,
            largest_window: 0,
            buffered: 0,
            tuning: Tuning::new(config, pool),
            largest_message: 0,
            starved: false,
            last_sack: None,
            probe: WindowProbe::Idle,
            unreliable: false,
            abandonments: Abandonments::default(),
            lost_until: None,
            forward: None,
            undelivered: None,
            stamps: Stamps::default(),
            copies: Copies::new(config.constants()),
            partial_sacks: false,
            wide_sacks: false,
            burst: Burst::new(),
            alone: false,
            largest_payload: usize::MAX,
            most_payload: usize::MAX,
            window_payload: usize::MAX,
            response_len: 0,
            blocked_since: None,
            sack: SackMemory::default(),
            overwork: 0,
            retransmission: config.retransmission().make(setup),
            loss: config.loss().make(setup),
            needs: config.congestion().needs,
            congestion,
            cwnd_update: config.cwnd_update().make(setup),
            scheduler: config.scheduler().make(setup),
            urgent: EARLIEST.make(setup),
            concurrent: config.is_concurrent(),
            rtt_sampling: config.rtt_sampling().make(setup),
        }
    }

    /// Whether new data is sent on several paths at a time (CMT).
    pub(crate) const fn is_concurrent(&self) -> bool {
        self.concurrent
    }

    /// Bytes of memory in use. Non-renegable chunks count too: only their payload is freed.
    pub(crate) fn memory(&self) -> usize {
        let (waiting, outstanding) = (self.queue.messages(), self.flight.len());
        let partial = if self.unreliable { PARTIAL } else { 0 };
        self.buffered + waiting * (QUEUED + partial) + outstanding * (OUTSTANDING + partial)
    }

    /// Free bytes in the send buffer. Payload counts; bookkeeping counts only where it exceeds
    /// about half the buffer.
    pub(crate) fn room(&self) -> usize {
        let buffer = self.tuning.size();
        let memory = most_memory(buffer).saturating_sub(self.memory());
        buffer.saturating_sub(self.buffered).min(memory)
    }

    /// Payload bytes that the send buffer still accepts. Events that wait to be polled take up
    /// memory too.
    pub(crate) fn room_beside(&self, events: &Events) -> usize {
        self.room().saturating_sub(events.memory())
    }

    /// Reports to the application that it may write again, if it waits for that.
    pub(crate) fn report_room(&mut self, events: &mut Events) {
        if self.starved && self.room_beside(events) >= self.writable_room() {
            self.starved = false;
            events.push_always(Event::Writable);
        }
    }

    /// Reports to the application that everything sent was acknowledged, if it was not before.
    pub(crate) fn report_drained(&self, was_done: bool, events: &mut Events) {
        if !was_done && self.is_done() {
            events.push_always(Event::Drained);
        }
    }

    /// Length of the header of a chunk of user data.
    pub(crate) const fn data_header(&self) -> usize {
        if self.queue.interleaves() { I_DATA_HEADER_LEN } else { DATA_HEADER_LEN }
    }

    /// Whether messages may be abandoned: one was sent with a limit, and the peer supports FORWARD
    /// TSN.
    pub(crate) const fn may_abandon(&self, agreed: Extensions) -> bool {
        self.unreliable && agreed.contains(Extension::PartialReliability)
    }

    /// The size of the next new chunk in a packet of its own, if TSNs are left, data may be sent,
    /// and the peer has room for it.
    #[inline]
    pub(crate) fn next_new_chunk_size(&self, paths: &Paths) -> Option<u32> {
        let size = self.next_new_size(self.largest_payload)? + self.data_header();
        let size = self.flight.counted(size);
        let full = self.flight.is_full() && self.flight.first_reserved().is_none();
        let waits = paths.awaited || full || !self.peer_has_room(size);
        (!waits).then_some(size)
    }

    /// When the timer of a FORWARD TSN expires.
    pub(crate) fn forward_timer(&self) -> Option<Time> {
        self.forward.map(|f| f.timer)
    }

    /// When the next queued message expires.
    pub(crate) fn next_abandonment(&self, agreed: Extensions) -> Option<Time> {
        if self.may_abandon(agreed) { self.queue.next_expiry() } else { None }
    }

    /// Updates the largest payload that fits every path and the peer's window.
    pub(crate) fn fit(&mut self, paths: &Paths) {
        let header = self.data_header() + self.response_len;
        let fits = |p: &Path| (p.max_chunk() as usize - header) / 4 * 4;
        let smallest = paths.present().map(fits).min().unwrap_or(usize::MAX);
        self.largest_payload = smallest.min(self.window_payload).min(self.most_payload);
    }

    /// Room that makes the application write again, in bytes. With a size that follows the
    /// congestion windows, more than a window of unsent data is left then, unless data that waits
    /// for a retransmission fills the buffer: as much room as there is unsent data makes the
    /// application write in time. A fixed one is half full.
    pub(crate) fn writable_room(&self) -> usize {
        let size = self.tuning.size();
        if self.tuning.is_fixed() {
            return size.div_ceil(2);
        }
        self.queue.bytes().max(LEAST_ROOM).min(size.div_ceil(8))
    }

    /// Adapts the size of the send buffer to `windows` bytes of congestion windows.
    pub(crate) fn tune(&mut self, windows: usize) {
        let unsent = self.queue.bytes();
        self.tuning.adapt(windows, self.buffered - unsent, unsent, self.starved);
    }

    /// Returns the memory of a buffer that has been idle.
    pub(crate) fn give_back(&mut self) {
        if self.buffered == 0 {
            self.tuning.shrink_to(0);
        }
    }

    /// What a scheduler sees of the data to send.
    pub(crate) fn new_data(&self, now: Time) -> NewData {
        NewData {
            now,
            waiting: self.waiting(),
            more: self.starved,
            peer_rwnd: self.peer_rwnd,
            in_flight: self.flight.bytes(),
            receive_buffer: self.largest_window,
            ahead: self.flight.ahead(),
        }
    }

    /// Whether the next new chunk is to arrive as early as possible.
    pub(crate) fn is_urgent(&self) -> bool {
        self.queue.any_urgent()
            && self.concurrent
            && self.flight.first_reserved().is_none()
            && self.queue.next_delivery().is_urgent()
    }

    /// Whether all messages are sent and acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.queue.is_through() && self.flight.is_empty()
    }

    /// Whether no chunk waits for its transmission or retransmission.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.flight.has_lost() && self.flight.reserved_bytes() == 0
    }

    /// Sets the peer's window after a SACK: a_rwnd less the bytes in flight (RFC 9260 6.2.1).
    pub(crate) const fn set_window(&mut self, a_rwnd: u32) {
        self.announced = a_rwnd;
        if a_rwnd > self.largest_window {
            self.largest_window = a_rwnd;
        }
        self.peer_rwnd = a_rwnd.saturating_sub(self.flight.bytes());
    }

    /// Whether a new chunk of `size` bytes may be sent: it fits the peer's window, or it is time to
    /// probe the window (RFC 9260 6.1 A).
    pub(crate) fn peer_has_room(&self, size: u32) -> bool {
        size <= self.peer_rwnd || (self.nothing_helps() && self.probe == WindowProbe::Allowed)
    }

    /// Like [`peer_has_room`](Self::peer_has_room) for a chunk with a TSN: only the one that the
    /// peer waits for can probe its window.
    pub(crate) fn peer_has_room_for(&self, tsn: Tsn, size: u32) -> bool {
        let awaited = tsn == self.flight.ack_point().next() || self.flight.bytes() == 0;
        size <= self.peer_rwnd || (awaited && self.peer_has_room(size))
    }

    /// Whether it is time to probe with a reserved chunk that the peer waits for. It takes
    /// precedence over retransmissions, for which the peer has no room.
    pub(crate) fn is_overdue(&self) -> bool {
        let next = self.flight.ack_point().next();
        self.probe == WindowProbe::Allowed
            && self.flight.first_reserved().is_some_and(|(tsn, _)| tsn == next)
    }

    /// T3-rtx expired: allows a probe if no data in flight can open the peer's window.
    pub(crate) fn probe_after_timeout(&mut self) {
        if self.nothing_helps() && matches!(self.probe, WindowProbe::Idle | WindowProbe::At(_)) {
            self.probe = WindowProbe::Allowed;
        }
    }

    /// Whether the window in the peer's last SACK is smaller than the chunk that the peer waits for
    /// (RFC 9260 6.1 A: "rwnd is smaller than the size of the next DATA chunk").
    pub(crate) fn is_shut(&self) -> bool {
        let next = self.flight.get(self.flight.ack_point().next());
        next.is_some_and(|chunk| chunk.size() > self.announced)
    }

    /// Whether no data in flight can open the peer's window: nothing is in flight, or the chunk
    /// that the peer waits for is not while chunks sent ahead of others fill the window.
    fn nothing_helps(&self) -> bool {
        let next = self.flight.ack_point().next();
        let awaited = |c: &Outstanding| c.fate != Fate::InFlight;
        self.flight.bytes() == 0
            || (self.flight.ahead() > 0 && self.flight.get(next).is_some_and(awaited))
    }

    /// Reduces the peer's window by a chunk of `size` bytes that is sent, and records a probe.
    pub(crate) fn charge_window(&mut self, tsn: Tsn, size: u32) {
        let awaited = tsn == self.flight.ack_point().next();
        if size > self.peer_rwnd && self.probe == WindowProbe::Allowed && awaited {
            self.probe = WindowProbe::Sent(tsn);
        }
        self.peer_rwnd = self.peer_rwnd.saturating_sub(size);
    }

    /// Called when nothing more may be sent: schedules a probe if the peer's closed window is the
    /// reason.
    pub(crate) fn watch_window(&mut self, probe_at: Time) {
        // Abandoned chunks wait for the answer to a FORWARD TSN, which has a timer of its own.
        let unacked =
            self.flight.has_lost() || (!self.flight.is_empty() && !self.flight.has_abandoned());
        let stuck = self.nothing_helps() && (!self.queue.is_empty() || unacked);
        // No SACK answers the probe if a SHUTDOWN acknowledges it, or if a detector that watches
        // time finds it lost before T3-rtx expires. Without anything in flight no timer runs.
        let over = |tsn| self.flight.get(tsn).is_none_or(|probe| probe.fate != Fate::InFlight);
        match self.probe {
            WindowProbe::Idle if stuck => self.probe = WindowProbe::At(probe_at),
            WindowProbe::Sent(tsn) if stuck && over(tsn) => self.probe = WindowProbe::At(probe_at),
            WindowProbe::At(_) | WindowProbe::Allowed if !stuck => self.probe = WindowProbe::Idle,
            _ => {}
        }
    }

    /// The window probe that the peer dropped: the last SACK opens the window and does not
    /// acknowledge it.
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
        let held: usize = self.flight.iter().map(|(_, c)| c.content.payload.len()).sum();
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
