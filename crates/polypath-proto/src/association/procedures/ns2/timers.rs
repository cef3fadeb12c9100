//! The timers: T3-rtx, the generator of HEARTBEATs, the decay of idle windows.

use std::time::Duration;

use super::tables::Expired;
use super::{Own, Retransmit};
use crate::association::Sender;
use crate::constants::PathConfirmation;
use crate::ids::{PathId, Tsn};
use crate::outbox::Control;
use crate::path::{Path, PathState};
use crate::policy::failover::PathErrorKind;
use crate::policy::probing;
use crate::policy::retransmission::LossCause;
use crate::send::{Fate, Outstanding};
use crate::time::Time;

impl Sender<'_> {
    /// T3-rtx has expired on a path (Timeout).
    fn ns2_handle_t3(&mut self, now: Time, path: PathId) {
        let last_sack = self.sending.last_sack;
        let answered = self.paths.iter().all(|p| p.is_since_timeout(last_sack));
        let probing = self.sending.announced == 0 && answered;
        self.paths[path].count_timeout(now);
        self.paths[path].count_loss();
        self.cut_window_after_timeout(now, path);
        let p = &mut self.paths[path];
        p.back_off(now);
        p.stop_t3();
        let srtt = p.view().srtt.filter(|_| self.config.srtt_heuristic());
        self.ns2_mark_all(now, path, srtt);
        self.paths[path].set_timed_out(false);
        // T3-rtx runs for the chunks that the SRTT heuristic left in flight.
        self.paths[path].start_t3(now);
        if !probing {
            self.count_error(now, path, PathErrorKind::DataTimeout);
        }
        if !self.is_over() && self.sending.flight.has_lost() {
            self.without_active_path(now);
        }
        if !self.is_over() {
            self.ns2_probe_after_timeout(now, path);
        }
    }

    /// T3-rtx has expired on a path: marks everything outstanding on it, except what was sent
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
        let (p, side) = (&mut self.paths[path], self.side.own().path(path));
        side.suspend_rtt_probe(p);
        side.stop_decay();
        p.take_sent_here();
        for tsn in outstanding {
            let size = self.sending.flight.get(tsn).map_or(0, Outstanding::size);
            if self.sending.flight.mark_lost(tsn, LossCause::Timeout) {
                self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(size);
                p.data_lost(size);
            }
        }
        self.side.own().answering = false;
        if self.sending.flight.has_lost() {
            if self.is_ns2_cmt() {
                self.ns2_cmt_begin(true);
            } else {
                self.ns2_begin(Retransmit::OnePacket);
            }
        }
    }

    /// Handles one timer, the one that was set first. The packets that it releases are sent before
    /// the next timer is handled, even if both expire at one instant.
    pub(super) fn ns2_handle_path_timers(&mut self, now: Time) {
        let sides = self.side.own().paths_of(self.paths.len());
        let both = self.paths.iter().zip(sides);
        let expired = both.filter_map(|(p, side)| Some((side.first_expired(p, now)?, p.id())));
        match expired.min() {
            _ if self.is_over() => {}
            Some(((_, Expired::T3), path)) => self.ns2_handle_t3(now, path),
            Some(((_, Expired::Decay), path)) => self.ns2_decay(now, path),
            Some(((_, Expired::Heartbeat), path)) => {
                self.model.procedures.handle_heartbeat_timeout(self, now, path);
            }
            None if self.side.own().tick.is_some_and(|t| t <= now) => self.ns2_handle_tick(now),
            None => {}
        }
    }

    /// Nothing was sent on a path for an RTO.
    fn ns2_decay(&mut self, now: Time, path: PathId) {
        let w = self.sending.congestion.on_idle(now, &self.paths[path].view(), false);
        let p = &mut self.paths[path];
        // After it has decayed, only data makes it grow again, and data starts the timer.
        if w == p.window() && p.in_flight() + p.lost() == 0 {
            self.side.own().path(path).stop_decay();
        } else {
            p.set_window(w);
            self.side.own().schedule_decay(self.paths, now, path);
        }
    }

    /// A tick of the generator of HEARTBEATs: probes the path that has been idle for the longest
    /// time, if it has been since the last tick.
    fn ns2_handle_tick(&mut self, now: Time) {
        let sides = self.side.own().paths_of(self.paths.len());
        let idle = self.paths.iter().zip(sides).map(|(p, side)| (side.idle_since(p), p.id()));
        let (since, path) = idle.min().unwrap_or((now, PathId(0)));
        // A potentially failed path has HEARTBEATs of its own, until one on another path takes the
        // timer that they share. Without data nothing would then notice that the peer has gone, so
        // the generator probes the path.
        let p = &self.paths[path];
        let own = p.heartbeat_deadline().is_some() || !self.sending.is_done();
        if since <= self.side.own().started && !(own && p.state() == PathState::PotentiallyFailed) {
            self.send_heartbeat(now, path);
        }
        self.ns2_start_heartbeats(now, path);
    }

    /// The generator ticks after HB.interval plus 50% to 150% of the RTO of `path`.
    fn ns2_start_heartbeats(&mut self, now: Time, path: PathId) {
        self.side.own().started = now;
        let period = self.heartbeat_period(path);
        self.side.own().tick = period.map(|period| now + period);
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
                    && self.config.retransmission().needs.pair_bandwidth
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
        self.side.own().allow_new_data();
        for path in self.paths.ids() {
            self.side.own().path(path).used(now);
        }
        self.ns2_start_heartbeats(now, self.paths.primary());
    }

    /// Whether all paths share one timer for the answers to HEARTBEATs: release 3.7, the first that
    /// confirms paths, has one for each path.
    fn ns2_shares_heartbeat_timer(&self) -> bool {
        self.config.path_confirmation() == PathConfirmation::Off
    }

    /// A HEARTBEAT is sent on a path: a shared timer stops watching those on other paths.
    pub(super) fn ns2_replace_heartbeat(&mut self, path: PathId) {
        if self.ns2_shares_heartbeat_timer() {
            let others = self.paths.iter_mut().filter(|other| other.id() != path);
            others.for_each(Path::cancel_heartbeat);
        }
    }

    /// A HEARTBEAT on a path was answered, which stops the timer.
    pub(super) fn ns2_heartbeat_answered(&mut self, path: PathId) {
        self.paths[path].cancel_heartbeat();
        self.ns2_replace_heartbeat(path);
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
                self.paths.apply_failover(now, path, PathErrorKind::HeartbeatTimeout, self.events);
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

    /// Whether all paths are inactive and Heartbeat After RTO probes `path`: the module asks for
    /// another destination (GetNextDest), active or not.
    fn ns2_leaves_dormant(&self, path: PathId) -> bool {
        let view = self.paths.view();
        self.config.probing().name == probing::AFTER_RTO.name
            && self.paths.iter().all(|p| p.state() == PathState::Inactive)
            && self.paths.failover.retransmission(path, view) != path
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
            self.paths.probes_after_timeout(path) || self.ns2_leaves_dormant(path)
        };
        if by_rule || self.paths.failover.probes_at_once(&self.paths[path].view()) {
            self.note_heartbeat(now, path);
            self.outbox.push_behind(path, Control::Heartbeat);
        }
    }
}
