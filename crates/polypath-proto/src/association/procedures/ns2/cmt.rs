//! Concurrent multipath transfer of ns-2's SCTP module (Agent/SCTP/CMT): its differences from the
//! [single-path procedures](super).
//!
//! - One event retransmits chunk by chunk, each on the path that the policy chooses for it, as long
//!   as that path's window allows; a chunk that may not be sent does not block those after it.
//!   Chunks that wait for retransmission do not fill a window for retransmissions (RtxMarkedChunks,
//!   SelectRtxDest), but do for new data, which is sent whatever waits (SendMuch).
//! - After a fast retransmission or T3-rtx, a path that suffered the last fast retransmission may
//!   send one packet regardless of its window (eRtxLimit).
//! - Windows grow by the pseudo-cumulative acks, also while a path recovers, after the chunks that
//!   the SACK finds lost have been taken out of flight, and before windows are cut; each path has
//!   its own recover point (AdjustCwnd, FastRtx).
//! - T3-rtx stops for a chunk that the cumulative ack removes only if no left edge of its path is
//!   beyond it.
//! - A SACK without gap ack blocks revokes what earlier gap ack blocks acknowledged.
//! - In the dormant state, where the module sends nothing or loops for ever, the failover policy
//!   chooses the path as it does for single-path transfer.
//! - With potentially failed paths (useCmtPF_), a chunk that a path has not given up is a sign of
//!   life if a gap ack block acknowledges it, or if it was sent once; one that was given up, only
//!   if a gap ack block acknowledges it, it was sent once, and the path is potentially failed.
//! - Max.Burst applies to each path, once a fast retransmitted chunk has been acknowledged.

use super::Own;
use super::acknowledge::PathTally;
use super::policy::{bar_from_fast_retransmission, counts_acknowledged};
use super::tables::first_on;
use crate::association::Sender;
use crate::config::Config;
use crate::constants::BurstRule;
use crate::ids::{PathId, Tsn};
use crate::path::{Path, PathState, Window};
use crate::policy::congestion::{Congestion, PathAck};
use crate::policy::failover::{CMT_POTENTIALLY_FAILED, NoActivePath};
use crate::policy::loss::SackView;
use crate::policy::retransmission::LossCause;
use crate::send::{Fate, Outstanding};
use crate::time::Time;
use crate::wire::PacketWriter;

/// State of these procedures.
#[derive(Debug, Default)]
pub(super) struct Notes {
    paths: Vec<PathNotes>,
    /// The current event retransmits chunks from this TSN on.
    from: Option<Tsn>,
    /// Max.Burst applies (eApplyMaxBurst).
    limited: bool,
    /// The current event is a SACK, whose window applies to all that it releases.
    by_sack: bool,
    /// The current event has reactivated a failed path.
    back: bool,
    /// The current event has looked at the potentially failed paths for its new data.
    asked: bool,
    /// The current event has taken back this potentially failed path, for the next chunk that it
    /// retransmits.
    pub(super) taken_back: Option<PathId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PathNotes {
    /// The last fast retransmission marked a chunk of this path (eRtxLimit).
    suffered: bool,
    /// The recover point (uiRecover).
    recover: Option<Tsn>,
    /// The highest TSN found outstanding on the path by any cut (uiHighestTsnSent).
    highest: Option<Tsn>,
    /// Packets that count towards Max.Burst.
    burst: u32,
    /// The lowest chunk outstanding on the path, as the current event's retransmissions see it.
    first: Option<Tsn>,
}

impl Notes {
    /// No packet that was sent so far counts towards Max.Burst.
    pub(super) fn forget_bursts(&mut self) {
        self.paths.iter_mut().for_each(|notes| notes.burst = 0);
    }
}

impl Sender<'_> {
    /// Whether several paths carry data at once.
    pub(super) fn is_ns2_cmt(&self) -> bool {
        self.sending.is_concurrent()
    }

    /// A SACK's acknowledgements have been processed; `found` if it found losses.
    pub(super) fn ns2_cmt_after_sack(
        &mut self,
        now: Time,
        view: &SackView<'_>,
        tally: &[PathTally],
        found: bool,
    ) {
        for (path, t) in self.paths.ids().zip(tally) {
            self.ns2_cmt_adjust_window(now, view, path, t);
            let p = &mut self.paths[path];
            if p.in_flight() == 0 {
                let window = p.window();
                p.set_window(Window { partial_bytes_acked: 0, ..window });
                p.stop_t3();
            } else if t.stops_t3 || p.t3().is_none() {
                self.side.own().start_t3(self.paths, now, path);
            }
        }
        if found {
            self.ns2_cmt_cut(now);
        }
        if self.sending.flight.has_lost() {
            self.ns2_cmt_begin(found);
        }
        self.side.own().cmt.by_sack = true;
    }

    /// Whether an acknowledged chunk is a sign of life of its path.
    pub(super) fn ns2_credits(
        config: &Config,
        path: &Path,
        chunk: &Outstanding,
        fate: Fate,
        by_gaps: bool,
    ) -> bool {
        let given_up = fate == Fate::Lost(LossCause::Timeout);
        if config.failover().name != CMT_POTENTIALLY_FAILED.name {
            return !given_up;
        }
        let once = chunk.transmissions == 1;
        let failed = path.state() == PathState::PotentiallyFailed;
        if by_gaps { !given_up || (failed && once) } else { !given_up && once }
    }

    /// Whether a chunk that the cumulative ack removes stops T3-rtx of its path, which has these
    /// left edges.
    pub(super) fn ns2_cmt_stops_t3(edges: [Option<Tsn>; 2], running: bool, tsn: Tsn) -> bool {
        let reached = |edge: Option<Tsn>| edge.is_none_or(|edge| !edge.is_after(tsn));
        (running && reached(edges[0])) || reached(edges[1])
    }

    /// AdjustCwnd, and the bytes that count towards partial_bytes_acked before it.
    fn ns2_cmt_adjust_window(
        &mut self,
        now: Time,
        view: &SackView<'_>,
        path: PathId,
        t: &PathTally,
    ) {
        if t.acked == 0 {
            return;
        }
        let counts = counts_acknowledged(self.config.congestion());
        let p = &mut self.paths[path];
        let mut w = p.window();
        if counts && w.cwnd > w.ssthresh {
            let full = t.in_flight_before >= w.cwnd;
            let cumulative = if full { t.acked - t.acked_by_gaps } else { 0 };
            let acked = cumulative + t.counted;
            w.partial_bytes_acked = w.partial_bytes_acked.saturating_add(acked);
            p.set_window(w);
        }
        let ack = PathAck {
            acked: t.acked,
            acked_by_gaps: t.acked_by_gaps,
            advanced: view.advanced,
            // Chunks that wait for retransmission after the SACK are not outstanding for this.
            in_flight_before: t.in_flight_before.saturating_sub(p.lost()),
            paced: false,
            may_grow: self.sending.cwnd_update.may_grow(path, view),
            recovering: false,
            rtt: None,
            delivery: None,
        };
        self.apply_ack(now, path, &ack);
    }

    /// FastRtx: for each path, the lowest marked chunk above its recover point cuts the window.
    fn ns2_cmt_cut(&mut self, now: Time) {
        self.side.own().cmt.paths.resize(self.paths.len(), PathNotes::default());
        for notes in &mut self.side.own().cmt.paths {
            notes.suffered = false;
        }
        let mut cut = vec![false; self.paths.len()];
        let mut from = self.sending.flight.ack_point().next();
        while let Some((tsn, chunk, cause)) = self.sending.flight.lost_from(from) {
            from = tsn.next();
            let path = chunk.path;
            let notes = self.side.own().cmt.paths[path.index()];
            if !cut[path.index()] && notes.recover.is_none_or(|recover| tsn.is_after(recover)) {
                cut[path.index()] = true;
                self.cut_window(now, path, Congestion::Loss);
                self.side.own().path(path).suspend_rtt_probe(&mut self.paths[path]);
                // The highest TSN on the path that is not marked; none if it is lower than at the
                // last cut (GetHighestOutstandingTsn).
                let unmarked = self.sending.flight.highest_unmarked(path);
                let notes = &mut self.side.own().cmt.paths[path.index()];
                let lower = match (unmarked, notes.highest) {
                    (Some(now), Some(before)) => now.is_before(before),
                    (None, Some(_)) => true,
                    _ => false,
                };
                if lower {
                    notes.recover = None;
                } else {
                    notes.recover = unmarked;
                    notes.highest = unmarked;
                }
            }
            let fast = cause == LossCause::FastRetransmit;
            self.side.own().cmt.paths[path.index()].suffered |= fast;
        }
    }

    /// Begins RtxMarkedChunks; `one_packet` after a fast retransmission or T3-rtx.
    pub(super) fn ns2_cmt_begin(&mut self, one_packet: bool) {
        let first = first_on(&self.sending.flight, self.paths.len());
        self.side.own().cmt.paths.resize(self.paths.len(), PathNotes::default());
        let notes = self.side.own().cmt.paths.iter_mut();
        for ((notes, p), first) in notes.zip(self.paths.iter_mut()).zip(first) {
            notes.burst = 0;
            notes.first = first;
            p.send_credit = one_packet && notes.suffered;
        }
        self.side.own().cmt.from = Some(self.sending.flight.ack_point().next());
        self.side.own().cmt.by_sack = false;
    }

    pub(super) fn ns2_cmt_limit_burst(&mut self) {
        self.side.own().cmt.limited = self.config.burst_rule() == BurstRule::AfterRetransmission;
    }

    /// The next chunk that may be retransmitted, and its path.
    pub(super) fn ns2_cmt_next_retransmission(&mut self, now: Time) -> Option<(PathId, Tsn)> {
        let mut from = self.side.own().cmt.from?;
        if self.without_active_path(now) == Some(NoActivePath::Wait) {
            self.ns2_cmt_end_retransmissions();
            return None;
        }
        if from.is_before(self.sending.flight.ack_point()) {
            from = self.sending.flight.ack_point().next();
        }
        while let Some((tsn, chunk, cause)) = self.sending.flight.lost_from(from) {
            let lost = chunk.as_lost(tsn, cause);
            from = tsn.next();
            let taken_back = self.side.own().cmt.taken_back.take();
            let path = taken_back.unwrap_or_else(|| {
                self.ns2_cmt_ask_failed();
                self.path_for_lost(&lost)
            });
            let p = &self.paths[path];
            if p.send_credit || p.has_room() {
                self.side.own().cmt.from = Some(tsn);
                return Some((path, tsn));
            }
        }
        self.ns2_cmt_end_retransmissions();
        None
    }

    /// Before each choice the module looks for a potentially failed path to take back, which exists
    /// only if all are. It draws for ties until it finds another path (SelectFromPFDests), and what
    /// it has drawn counts for the ties that follow.
    fn ns2_cmt_ask_failed(&mut self) {
        if self.paths.any_is_active() {
            let view = self.paths.view();
            let _ = self.paths.failover.without_active_path(view, self.rng);
        }
    }

    fn ns2_cmt_end_retransmissions(&mut self) {
        self.side.own().cmt.from = None;
        self.paths.clear_send_credit();
    }

    /// Writes one packet of retransmissions that begins with `first`.
    pub(super) fn ns2_cmt_write_retransmissions(
        &mut self,
        now: Time,
        path: PathId,
        first: Tsn,
        w: &mut PacketWriter<'_>,
    ) {
        let mut from = first;
        let mut written = false;
        while let Some((tsn, chunk, cause)) = self.sending.flight.lost_from(from) {
            let (size, old) = (chunk.size(), chunk.path);
            self.side.own().cmt.from = Some(tsn);
            if w.remaining() < size as usize {
                // The module changes its state before it finds that the chunk does not fit.
                self.sending.cwnd_update.on_retransmit(old, path);
                self.ns2_cmt_bar(tsn);
                break;
            }
            from = tsn.next();
            self.side.own().cmt.from = Some(from);
            written = true;
            self.side.own().path(old).void_rtt_probe(&mut self.paths[old], tsn);
            let lowest = self.side.own().cmt.paths[old.index()].first == Some(tsn);
            if lowest && self.paths[old].in_flight() > 0 {
                self.side.own().start_t3(self.paths, now, old);
            }
            let notes = &mut self.side.own().cmt.paths[path.index()];
            if notes.first.is_none_or(|lowest| tsn.is_before(lowest)) {
                notes.first = Some(tsn);
                self.side.own().start_t3(self.paths, now, path);
            }
            self.ns2_cmt_bar(tsn);
            let window = self.sending.peer_rwnd;
            self.ns2_retransmit(now, path, tsn, cause, w);
            if self.side.own().cmt.by_sack {
                // The window of the SACK already counts the chunks that wait.
                self.sending.peer_rwnd = window;
            }
        }
        if !written {
            return;
        }
        self.paths[path].send_credit = false;
        self.side.own().schedule_decay(self.paths, now, path);
        if self.side.own().cmt.limited {
            let notes = &mut self.side.own().cmt.paths[path.index()];
            notes.burst += 1;
            if notes.burst > self.config.max_burst() {
                self.ns2_cmt_end_retransmissions();
            }
        }
    }

    /// Forbids another fast retransmission of a chunk, also of one that has timed out, when it is
    /// about to be retransmitted (eIneligibleForFastRtx).
    fn ns2_cmt_bar(&mut self, tsn: Tsn) {
        if let Some(chunk) = self.sending.flight.get_mut(tsn) {
            chunk.note_fast_retransmission();
        }
        bar_from_fast_retransmission(&mut *self.sending.loss, tsn);
    }

    /// A packet of new data has been sent.
    pub(super) fn ns2_cmt_new_data_sent(&mut self, path: PathId) {
        if self.side.own().cmt.limited
            && let Some(notes) = self.side.own().cmt.paths.get_mut(path.index())
        {
            notes.burst += 1;
        }
    }

    /// Whether a path may send new data.
    pub(super) fn ns2_cmt_has_room(notes: &Notes, max_burst: u32, dormant: bool, p: &Path) -> bool {
        let burst = notes.paths.get(p.id().index()).map_or(0, |notes| notes.burst);
        (dormant || p.state() == PathState::Active)
            && p.in_flight() + p.lost() < p.window().cwnd
            && (!notes.limited || burst < max_burst)
    }

    /// Everything that the current event allows has been sent. What it has retransmitted counts
    /// towards Max.Burst of the next event, unless it could send new data as well (SendMuch) or the
    /// next is a SACK.
    pub(super) fn ns2_cmt_burst_over(&mut self) {
        self.ns2_cmt_end_retransmissions();
        let own = self.side.own();
        own.cmt.by_sack = false;
        own.cmt.back = false;
        own.cmt.asked = false;
        own.cmt.taken_back = None;
        if own.answering && own.new_data {
            own.cmt.forget_bursts();
        }
    }

    /// Sets the peer's window, less the chunks that wait for retransmission.
    pub(super) fn ns2_cmt_set_window(&mut self, a_rwnd: u32) {
        let waiting: u32 = self.paths.iter().map(Path::lost).sum();
        self.sending.set_window(a_rwnd);
        self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_sub(waiting);
    }

    /// A HEARTBEAT ACK has reactivated a failed path: retransmits what is outstanding on it; if
    /// nothing waits then, new data is sent.
    pub(super) fn ns2_cmt_path_is_back(&mut self, now: Time, path: PathId) {
        self.ns2_mark_all(now, path, None);
        self.side.own().cmt.back = true;
    }

    /// All retransmissions of the current event have been sent.
    pub(super) fn ns2_cmt_before_new_data(&mut self) {
        if std::mem::take(&mut self.side.own().cmt.back) && !self.sending.flight.has_lost() {
            let announced = self.sending.announced;
            self.ns2_cmt_set_window(announced);
            self.side.own().allow_new_data();
        }
        let own = self.side.own();
        if own.new_data && own.answering && !std::mem::replace(&mut own.cmt.asked, true) {
            self.ns2_cmt_ask_failed();
        }
    }
}

impl crate::send::InFlight {
    /// The highest chunk last sent to `path` that does not wait for retransmission.
    fn highest_unmarked(&self, path: PathId) -> Option<Tsn> {
        let unmarked = |c: &Outstanding| c.path == path && !matches!(c.fate, Fate::Lost(_));
        self.iter().rev().find(|(_, c)| unmarked(c)).map(|(tsn, _)| tsn)
    }
}
