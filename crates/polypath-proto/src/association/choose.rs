//! Chooses the data of the next packet: which chunks, on which path, and how many (RFC 9260 6.1).

use super::Sender;
use crate::constants::BurstRule;
use crate::extension::Extension;
use crate::ids::{PathId, Tsn};
use crate::path::Path;
use crate::policy::retransmission::LossCause;
use crate::policy::scheduler::Turn;
use crate::send::Sending;
use crate::time::Time;

/// The data of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The chunk with this TSN, and further lost chunks that fit.
    Retransmission(Tsn),
    /// New data beyond the first `n` queued bytes.
    NewData(usize),
    /// New data, or again the chunk with this TSN, whatever the window (RFC 8985 7.3).
    Probe(Option<Tsn>),
    /// Copies of chunks in flight that wait for this path.
    Copies,
    /// Lost chunks that fit behind the control chunks or the SACK that the packet is sent for.
    BundledRetransmissions,
}

impl Sender<'_> {
    /// The data that is bundled with control chunks or a SACK on `path`.
    pub(super) fn bundled_data(&mut self, now: Time, path: PathId) -> Option<Content> {
        if self.sending.flight.has_lost() {
            return Some(Content::BundledRetransmissions);
        }
        let turn =
            self.model.procedures.next_new_data(self, now).filter(|turn| turn.path == path)?;
        Some(Content::NewData(turn.ahead))
    }

    /// The path of the next packet with data, and its data; `None` if no data may be sent now.
    pub(super) fn next_data(&mut self, now: Time) -> Option<(PathId, Content)> {
        let waits = self.model.procedures.before_sending(self, now);
        if let Some((path, tsn)) = self.next_tail_probe() {
            return Some((path, Content::Probe(tsn)));
        }
        if let Some(path) = self.next_copy(now) {
            return Some((path, Content::Copies));
        }
        if !waits {
            return None;
        }
        // RFC 9260 6.1 C: retransmissions before new data.
        let lost = self.sending.flight.has_lost();
        if lost
            && self.new_data_precedes_lost()
            && let Some(turn) = self.model.procedures.next_new_data(self, now)
        {
            return Some((turn.path, Content::NewData(turn.ahead)));
        }
        if lost && let Some((path, tsn)) = self.model.procedures.next_retransmission(self, now) {
            return Some((path, Content::Retransmission(tsn)));
        }
        // In CMT, a chunk that waits for its path's window does not block other paths.
        let concurrent = self.sending.is_concurrent();
        if (!lost || concurrent || !self.config.new_data_waits())
            && let Some(turn) = self.model.procedures.next_new_data(self, now)
            && self.may_overtake(turn.path)
        {
            return Some((turn.path, Content::NewData(turn.ahead)));
        }
        None
    }

    /// Whether new data is sent before lost chunks.
    ///
    /// RFC 9260 6.1 C has retransmissions first, where TSNs are sent in order. A chunk that was
    /// left to a faster path has a lower TSN than what was lost, and the peer waits for it: if that
    /// path has failed, retransmissions of all that it had in flight would hold it back.
    fn new_data_precedes_lost(&self) -> bool {
        let lower = || {
            let reserved = self.sending.flight.first_reserved()?.0;
            Some(reserved.is_before(self.sending.flight.first_lost()?.0))
        };
        self.sending.is_overdue() || (self.paths.watches_silence && lower().unwrap_or(false))
    }

    /// The lowest lost chunk and its path, if it may be sent now; in CMT the lowest that may.
    #[inline(never)]
    pub(super) fn next_retransmission(&mut self, now: Time) -> Option<(PathId, Tsn)> {
        let concurrent = self.sending.is_concurrent();
        if concurrent && !self.paths.iter().any(|p| p.send_credit || p.has_room()) {
            return None;
        }
        // Paths whose chunks wait, after a fast retransmission and after a timeout: the policy
        // would choose the same path for their next chunk.
        let mut waiting = [0u64; 2];
        let mut from = self.sending.flight.ack_point().next();
        loop {
            let next = self.sending.flight.lost_where(from, |chunk, cause| {
                let waiting = waiting[usize::from(cause == LossCause::Timeout)];
                waiting & 1 << chunk.path.index() == 0
            });
            let (tsn, chunk, cause) = next?;
            from = tsn.next();
            let bit = 1 << chunk.path.index();
            let size = chunk.size();
            let lost = chunk.as_lost(tsn, cause);
            let path = self.path_for_lost(&lost);
            if !self.paths.may_carry(path) {
                if !concurrent {
                    return None;
                }
                continue;
            }
            if self.paths[path].send_credit {
                return Some((path, tsn));
            }
            let congestion = &mut self.sending.congestion;
            self.paths[path].decay_if_idle(now, |view, first| congestion.on_idle(now, view, first));
            // RFC 9260 6.3.3 E3: after a timeout, retransmit regardless of the peer's window, in
            // CMT even on a path without send credit.
            let owed = concurrent && cause == LossCause::Timeout;
            let waits = self.paths[path].awaits_delivery();
            if self.may_burst(now, path)
                && !waits
                && (owed || self.sending.peer_has_room_for(tsn, size))
            {
                return Some((path, tsn));
            }
            if !concurrent {
                return None;
            }
            waiting[usize::from(cause == LossCause::Timeout)] |= bit;
        }
    }

    /// The path for the next packet of new data, and which data, if it may be sent now.
    pub(super) fn next_new_data(&mut self, now: Time) -> Option<Turn> {
        let size = self.sending.next_new_chunk_size(self.paths)?;
        let congestion = &mut self.sending.congestion;
        for path in self.paths.iter_mut() {
            path.decay_if_idle(now, |view, first| congestion.on_idle(now, view, first));
        }
        let (share, full) = (self.path_share(), self.burst_is_full());
        let data = self.sending.new_data(now);
        let urgent = self.sending.is_urgent();
        let Sending { scheduler, urgent: earliest, burst, .. } = &mut *self.sending;
        let scheduler = if urgent { earliest } else { scheduler };
        let (view, max_burst) = (self.paths.view(), self.config.max_burst());
        let room = |path: PathId| {
            let p = &view.paths[path.index()];
            p.in_flight() < share
                && burst.has_room(p, max_burst, now)
                && (!full || p.is_paced())
                && !p.awaits_delivery()
        };
        let mut turn = scheduler.next(view, &data, &room)?;
        // A probe of the peer's window must be the chunk that the peer waits for, and data that may
        // be abandoned gets no TSN before it is sent.
        let probe = data.in_flight == 0 || size > data.peer_rwnd;
        if probe || self.has(Extension::PartialReliability) {
            turn.ahead = 0;
        }
        Some(turn)
    }

    /// Grants send credit after a loss on `path`: one packet of retransmissions may be sent
    /// regardless of the window (RFC 9260 6.3.3 E3, 7.2.4 (3)), on any path, or in CMT on the path
    /// that suffered the loss (Iyengar 2004, V.B).
    pub(super) fn grant_send_credit(&mut self, path: PathId) {
        let concurrent = self.sending.is_concurrent();
        for p in self.paths.iter_mut() {
            p.send_credit |= !concurrent || p.id() == path;
        }
    }

    /// Whether new data may be sent on `path` although a lost chunk may wait for its window.
    #[inline]
    pub(super) fn may_overtake(&mut self, path: PathId) -> bool {
        let free = !self.sending.flight.has_lost() || self.sending.is_concurrent();
        free || self.may_pass_lost(path)
    }

    /// Whether new data may be sent on `path` while a lost chunk waits for the window of another
    /// path. The peer's buffer must have room for the lost chunks too.
    fn may_pass_lost(&mut self, path: PathId) -> bool {
        let Some((tsn, chunk, cause)) = self.sending.flight.first_lost() else { return true };
        let lost = chunk.as_lost(tsn, cause);
        let held_back: u32 = self.paths.iter().map(Path::lost).sum();
        let next = self
            .sending
            .queue
            .next_size(self.sending.largest_payload, self.sending.largest_payload);
        let size =
            self.sending.flight.counted(next.unwrap_or_default() + self.sending.data_header());
        self.path_for_lost(&lost) != path
            && self.sending.peer_has_room(held_back.saturating_add(size))
    }

    pub(super) fn may_burst(&self, now: Time, path: PathId) -> bool {
        let p = &self.paths[path];
        self.sending.burst.has_room(p, self.config.max_burst(), now)
            && (p.is_paced() || !self.burst_is_full())
    }

    /// Whether Max.Burst packets have been sent in response to the current event, if packets are
    /// counted.
    fn burst_is_full(&self) -> bool {
        self.model.rules.counts_bursts
            && self.config.burst_rule() == BurstRule::PacketCount
            && self.sending.burst.is_full(self.config.max_burst())
    }

    /// Begins a burst after an event that may release packets: it is counted from the bytes in
    /// flight now, unless the burst of an earlier event is not over yet.
    pub(super) fn new_burst(&mut self) {
        self.sending.burst.begin(self.config.burst_rule(), self.paths);
    }
}
