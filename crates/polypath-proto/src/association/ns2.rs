//! The sender's procedures of ns-2's SCTP module (`Procedures::Ns2`), where the RFC or the papers
//! leave them open. The papers' figures depend on them.
//!
//! - Chunks that wait for retransmission count as outstanding: for the growth of windows and for
//!   T3-rtx.
//! - A SACK that finds losses, or T3-rtx, sends exactly one packet, regardless of the window; later
//!   SACKs send the rest, as that path's window allows. All retransmissions of one event use the
//!   path chosen for its first chunk. No new data is sent while anything waits for retransmission,
//!   and none except in response to a packet that arrives (FastRtx, TimeoutRtx, RtxMarkedChunks,
//!   SendMuch).
//! - Windows grow before they are cut.
//! - T3-rtx stops for every path that owns a chunk which the cumulative ack removes, or whose
//!   lowest chunk a gap ack block acknowledges, and restarts if anything is outstanding there. Its
//!   expiry marks everything outstanding on the path, including what was marked before.
//! - A measurement of the round-trip time is abandoned at a cut and at a timeout, but its chunk
//!   keeps its time.
//! - A SACK without gap ack blocks does not revoke what earlier gap ack blocks acknowledged.
//! - An acknowledgement credits the path that the chunk was last sent to (RFC 9260 8.2 leaves it
//!   open).
//! - One generator of HEARTBEATs serves all paths. A lost HEARTBEAT is repeated at once, and a path
//!   that becomes inactive by T3-rtx is probed at once.
//! - The association's error count rises only while the path is active.
//! - An idle window decays by a timer: an RTO after the last packet, whether data is in flight or
//!   not.
//! - Nothing is bundled.

use std::time::Duration;

use super::{Association, ns2_cmt};
use crate::constants::{BurstRule, PathConfirmation, Procedures};
use crate::ids::{PathId, Tsn};
use crate::outbox::Control;
use crate::path::{Expired, Path, PathState};
use crate::policy::failover::PathErrorKind;
use crate::policy::probing;
use crate::policy::retransmission::LossCause;
use crate::send::{Fate, InFlight};
use crate::time::Time;
use crate::wire::PacketWriter;

/// Retransmissions that the current event allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Retransmit {
    /// Nothing.
    #[default]
    Nothing,
    /// One packet, regardless of the window.
    OnePacket,
    /// As much as the window of the path allows.
    Window,
}

/// State of these procedures.
#[derive(Debug, Default)]
pub(super) struct Notes {
    retransmit: Retransmit,
    /// The path of the current event's retransmissions, once the first has been sent.
    destination: Option<PathId>,
    /// The lowest chunk outstanding on each path, as the current event's retransmissions see it.
    first: Vec<Option<Tsn>>,
    /// New data may be sent: a packet that allows it has arrived (eSendNewDataChunks).
    new_data: bool,
    /// The current event is a packet that arrived, or a message from the application.
    answering: bool,
    /// Max.Burst applies (eApplyMaxBurst), and the packets that count towards it.
    limited: bool,
    burst: u32,
    /// The last result of `highest_outstanding`.
    highest_outstanding: Option<Tsn>,
    /// The generator of HEARTBEATs: its next tick, and when it was started.
    tick: Option<Time>,
    started: Time,
    /// Number of timers set so far.
    order: u64,
    /// For concurrent multipath transfer.
    pub(super) cmt: ns2_cmt::Notes,
}

impl Notes {
    pub(super) const fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// The highest TSN that does not wait for retransmission, or an earlier, higher result: after
    /// T3-rtx, which marks everything outstanding on the path, it is lower than the highest TSN
    /// sent (uiHighestTsnSent, GetHighestOutstandingTsn).
    pub(super) fn highest_outstanding(&mut self, flight: &InFlight) -> Tsn {
        let now = flight.highest_not_lost();
        if let Some(tsn) = now
            && self.highest_outstanding.is_none_or(|before| tsn.is_after(before))
        {
            self.highest_outstanding = now;
        }
        self.highest_outstanding.unwrap_or_else(|| flight.ack_point())
    }

    /// The last result of `highest_outstanding`; `None` with other procedures.
    pub(super) const fn noted_highest(&self) -> Option<Tsn> {
        self.highest_outstanding
    }
}

impl Association {
    pub(super) fn is_ns2(&self) -> bool {
        self.config.procedures() == Procedures::Ns2
    }

    // Received packets.

    /// A packet has arrived over a path. A delayed SACK is sent to the source of the last packet,
    /// whatever it contained.
    pub(super) fn ns2_packet(&mut self, path: PathId) {
        self.ns2.answering = true;
        if self.is_ns2() {
            self.receiving.ack.last_path = path;
        }
    }

    /// A SACK has arrived, late or not, or the application has passed data.
    pub(super) const fn ns2_allow_new_data(&mut self) {
        self.ns2.answering = true;
        self.ns2.new_data = true;
    }

    /// A SACK has been processed; `found` if it found losses.
    pub(super) fn ns2_after_sack(&mut self, found: bool) {
        if found {
            self.ns2_begin(Retransmit::OnePacket);
        } else if self.sending.flight.has_lost() {
            self.ns2_begin(Retransmit::Window);
        }
    }

    fn ns2_begin(&mut self, retransmit: Retransmit) {
        self.ns2.retransmit = retransmit;
        self.ns2.destination = None;
        self.ns2.burst = 0;
        self.ns2.first = self.sending.flight.first_on(self.paths.len());
    }

    /// The cumulative ack has acknowledged a chunk that had been fast retransmitted.
    pub(super) fn ns2_limit_burst(&mut self) {
        if self.is_ns2_cmt() {
            return self.ns2_cmt_limit_burst();
        }
        self.ns2.limited = self.heeds_max_burst();
    }

    /// Cuts the window of the path of the lowest chunk marked above the recover point, and
    /// continues from the new recover point; each path's window is cut once.
    pub(super) fn ns2_cut(&mut self) {
        let mut cut = vec![false; self.paths.len()];
        let mut from = self.sending.flight.ack_point().next();
        while let Some((tsn, chunk, _)) = self.sending.flight.lost_from(from) {
            from = tsn.next();
            let path = chunk.path;
            let recover = self.sending.cwnd_update.recover(path);
            if cut[path.index()] || recover.is_some_and(|recover| !tsn.is_after(recover)) {
                continue;
            }
            let highest = self.ns2.highest_outstanding(&self.sending.flight);
            if !self.sending.cwnd_update.on_fast_retransmit(path, tsn, highest) {
                continue;
            }
            cut[path.index()] = true;
            let paths = self.paths.view();
            let w = self.sending.congestion.on_fast_retransmit(&paths.path(path), paths);
            self.paths[path].set_window(w);
            self.paths[path].suspend_rtt_probe();
        }
    }

    /// Updates T3-rtx after a SACK; `stopped` if it acknowledged a chunk that stops the timer.
    pub(super) fn ns2_update_t3(&mut self, now: Time, path: PathId, stopped: bool) {
        let p = &mut self.paths[path];
        if p.in_flight() + p.lost() == 0 {
            p.stop_t3();
        } else if stopped || p.t3().is_none() {
            p.force_t3(now, self.ns2.next_order());
        }
    }

    /// T3-rtx has expired on a path: marks everything outstanding there, except what was sent
    /// within the last `recent` (the SRTT heuristic of Iyengar 2004, IV.B, which no release of the
    /// module has).
    pub(super) fn ns2_mark_all(&mut self, now: Time, path: PathId, recent: Option<Duration>) {
        let outstanding: Vec<Tsn> = self
            .sending
            .flight
            .iter()
            .filter(|(_, chunk)| chunk.path == path && chunk.fate != Fate::Acked)
            .filter(|(_, chunk)| recent.is_none_or(|recent| now.since(chunk.sent) >= recent))
            .map(|(tsn, _)| tsn)
            .collect();
        let p = &mut self.paths[path];
        p.suspend_rtt_probe();
        p.stop_decay();
        p.take_sent_here();
        for tsn in outstanding {
            let size = self.sending.flight.get(tsn).map_or(0, crate::send::Outstanding::size);
            if self.sending.flight.mark_lost(tsn, LossCause::Timeout) {
                self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(size);
                p.data_lost(size);
            }
        }
        self.ns2.answering = false;
        if self.sending.flight.has_lost() {
            if self.is_ns2_cmt() {
                self.ns2_cmt_begin(true);
            } else {
                self.ns2_begin(Retransmit::OnePacket);
            }
        }
    }

    // Sent packets.

    /// The lowest lost chunk and its path, if it may be sent now.
    pub(super) fn ns2_next_retransmission(&mut self, now: Time) -> Option<(PathId, Tsn)> {
        if self.is_ns2_cmt() {
            return self.ns2_cmt_next_retransmission(now);
        }
        if self.ns2.retransmit == Retransmit::Nothing {
            return None;
        }
        let (tsn, chunk, cause) = self.sending.flight.first_lost()?;
        let lost = chunk.as_lost(tsn, cause);
        let path = match self.ns2.destination {
            Some(path) => path,
            None => self.path_for_lost(&lost),
        };
        let allowed = match self.ns2.retransmit {
            Retransmit::OnePacket => true,
            _ => self.paths[path].has_room(),
        };
        allowed.then_some((path, tsn))
    }

    /// Whether new data may be sent now, as far as the windows allow.
    pub(super) fn ns2_may_send_new(&mut self) -> bool {
        if self.sending.flight.is_empty() {
            // No packet would arrive that allows it.
            return true;
        }
        if self.ns2_limits_burst() && self.ns2.burst >= self.config.max_burst() {
            self.ns2.limited = false;
            self.ns2.new_data = false;
            self.ns2.burst = 0;
        }
        self.ns2.new_data && self.ns2.answering
    }

    /// Everything that the current event allows has been sent.
    pub(super) fn ns2_burst_over(&mut self) {
        self.ns2.retransmit = Retransmit::Nothing;
        let cmt = self.is_ns2_cmt();
        if cmt {
            self.ns2_cmt_burst_over();
        }
        let waits = self.config.new_data_waits() && self.sending.flight.has_lost();
        if self.ns2.answering && self.ns2.new_data && (cmt || !waits) {
            self.ns2.new_data = false;
            self.ns2.burst = 0;
        }
        self.ns2.answering = false;
    }

    /// Writes the lowest lost chunks, as many as fit one packet.
    pub(super) fn ns2_write_retransmissions(
        &mut self,
        now: Time,
        path: PathId,
        w: &mut PacketWriter<'_>,
    ) {
        let mut written = false;
        let mut from = self.sending.flight.ack_point().next();
        while let Some((tsn, chunk, cause)) = self.sending.flight.lost_from(from) {
            from = tsn.next();
            let (size, old) = (chunk.size(), chunk.path);
            if w.remaining() < size as usize {
                break;
            }
            written = true;
            self.ns2.destination = Some(path);
            let p = &mut self.paths[old];
            p.void_rtt_probe(tsn);
            if self.ns2.first[old.index()] == Some(tsn) && p.in_flight() > 0 {
                p.force_t3(now, self.ns2.next_order());
            }
            if self.ns2.first[path.index()].is_none_or(|lowest| tsn.is_before(lowest)) {
                self.ns2.first[path.index()] = Some(tsn);
                self.paths[path].force_t3(now, self.ns2.next_order());
            }
            self.write_again(now, path, tsn, cause, w);
        }
        if !written {
            return;
        }
        self.paths[path].schedule_decay(now, self.ns2.next_order());
        if self.ns2.retransmit == Retransmit::OnePacket {
            self.ns2.retransmit = Retransmit::Nothing;
        }
        if self.ns2_limits_burst() {
            if self.ns2.burst >= self.config.max_burst() {
                self.ns2.limited = false;
                self.ns2.retransmit = Retransmit::Nothing;
            }
            self.ns2.burst += 1;
        }
    }

    /// A chunk has been sent: T3-rtx runs.
    pub(super) fn ns2_start_t3(&mut self, now: Time, path: PathId) {
        if self.paths[path].t3().is_none() {
            let order = self.ns2.next_order();
            self.paths[path].force_t3(now, order);
        }
    }

    /// A HEARTBEAT has been sent.
    pub(super) fn ns2_heartbeat_left(&mut self, path: PathId) {
        let order = self.ns2.next_order();
        self.paths[path].set_heartbeat_order(order);
    }

    /// A packet of new data has been written.
    pub(super) fn ns2_new_data_left(&mut self, now: Time, path: PathId) {
        self.paths[path].schedule_decay(now, self.ns2.next_order());
        self.paths[path].used(now);
        if self.is_ns2_cmt() {
            return self.ns2_cmt_new_data_left(path);
        }
        if self.ns2_limits_burst() {
            self.ns2.burst += 1;
        }
    }

    /// Whether Max.Burst applies to the current event.
    fn ns2_limits_burst(&self) -> bool {
        self.ns2.limited || self.config.burst_rule() == BurstRule::PacketCount
    }

    fn heeds_max_burst(&self) -> bool {
        self.config.burst_rule() == BurstRule::AfterRetransmission
    }

    // Timers.

    /// When the generator of HEARTBEATs ticks.
    pub(super) const fn ns2_next_timeout(&self) -> Option<Time> {
        self.ns2.tick
    }

    /// Handles one timer, the one that was set first. The packets that it releases are sent before
    /// the next timer is handled, even if both expire at one instant.
    pub(super) fn ns2_handle_timeout(&mut self, now: Time) {
        let expired = self.paths.iter().filter_map(|p| Some((p.first_expired(now)?, p.id())));
        match expired.min() {
            _ if self.is_closed() => {}
            Some(((_, Expired::T3), path)) => self.handle_t3(now, path),
            Some(((_, Expired::Decay), path)) => self.ns2_decay(now, path),
            Some(((_, Expired::Heartbeat), path)) => self.handle_heartbeat_timeout(now, path),
            None if self.ns2.tick.is_some_and(|t| t <= now) => self.ns2_handle_tick(now),
            None => {}
        }
    }

    /// Nothing was sent on a path for an RTO.
    fn ns2_decay(&mut self, now: Time, path: PathId) {
        let w = self.sending.congestion.on_idle(&self.paths[path].view(), false);
        let p = &mut self.paths[path];
        // After it has decayed, only data makes it grow again, and data starts the timer.
        if w == p.window() && p.in_flight() + p.lost() == 0 {
            p.stop_decay();
        } else {
            p.set_window(w);
            p.schedule_decay(now, self.ns2.next_order());
        }
    }

    /// A tick of the generator of HEARTBEATs: probes the path that has been idle for the longest
    /// time, if it has been since the last tick.
    fn ns2_handle_tick(&mut self, now: Time) {
        let longest = self.paths.iter().min_by_key(|p| p.idle_since());
        let path = longest.map_or(PathId(0), Path::id);
        let p = &self.paths[path];
        // A potentially failed path has heartbeats of its own.
        if p.idle_since() <= self.ns2.started && p.state() != PathState::PotentiallyFailed {
            self.send_heartbeat(now, path);
        }
        self.ns2_start_heartbeats(now, path);
    }

    /// The generator ticks after HB.interval plus 50% to 150% of the RTO of `path`.
    fn ns2_start_heartbeats(&mut self, now: Time, path: PathId) {
        self.ns2.started = now;
        let period = self.heartbeat_period(path);
        self.ns2.tick = period.map(|period| now + period);
    }

    /// The association is established. Only the side that opened it probes the paths before it
    /// sends data.
    pub(super) fn ns2_start_path_management(&mut self, now: Time, inbound: bool) {
        let confirm = !inbound && self.config.path_confirmation() != PathConfirmation::Off;
        self.paths.awaited = confirm;
        for path in self.paths.ids() {
            if confirm {
                self.send_heartbeat(now, path);
            } else {
                self.confirm(now, path);
                if !inbound
                    && path != self.paths.primary()
                    && self.sending.retransmission.needs_bandwidth()
                {
                    self.send_heartbeat(now, path);
                }
            }
        }
        if !confirm {
            self.ns2_begin_data(now);
        }
    }

    /// Every path has answered, or none is probed: data may be sent.
    pub(super) fn ns2_begin_data(&mut self, now: Time) {
        self.ns2_allow_new_data();
        for path in self.paths.iter_mut() {
            path.used(now);
        }
        self.ns2_start_heartbeats(now, self.paths.primary());
    }

    /// A HEARTBEAT was not answered within the RTO: repeats it at once.
    pub(super) fn ns2_handle_heartbeat_timeout(&mut self, now: Time, path: PathId) {
        let p = &mut self.paths[path];
        p.heartbeat_lost();
        p.back_off(now);
        let unconfirmed = p.state() == PathState::Unconfirmed;
        if unconfirmed {
            p.count_error();
            // ns-2's module holds data back as long as any path has not answered. This stack sends
            // data once such a path has failed, and new data leaves the path like any other that
            // fails.
            if p.error_count() > p.path_max_retrans() {
                self.paths.apply_failover(
                    now,
                    path,
                    PathErrorKind::HeartbeatTimeout,
                    &mut self.events,
                );
            }
        } else {
            self.count_error(now, path, PathErrorKind::HeartbeatTimeout);
        }
        let awaited = unconfirmed || self.paths.awaited;
        let view = self.paths[path].view();
        if awaited
            || self.config.heartbeat_interval().is_some()
            || self.paths.failover.probes_at_once(&view)
        {
            self.send_heartbeat(now, path);
        }
    }

    /// T3-rtx has expired on a path: probes it behind the retransmission if it is inactive, except
    /// with Heartbeat After RTO, which has its own rule. Replaces a HEARTBEAT that is outstanding.
    pub(super) fn ns2_probe_after_timeout(&mut self, now: Time, path: PathId) {
        let by_rule = if self.config.probing().name == probing::IDLE.name {
            self.paths[path].state() == PathState::Inactive
                && self.config.heartbeat_interval().is_some()
        } else {
            // The module's classes have either Heartbeat After RTO or potentially failed paths,
            // which are probed at once (Natarajan 2009, 1).
            self.paths.probes_after_timeout(path)
        };
        if by_rule || self.paths.failover.probes_at_once(&self.paths[path].view()) {
            self.paths[path].heartbeat_sent(now);
            self.outbox.push_behind(path, Control::Heartbeat);
        }
    }
}
