//! T3-rtx, and the other timers of the paths (RFC 9260 6.3.3, 8).

use super::Sender;
use crate::ids::PathId;
use crate::path::{Path, PathState};
use crate::policy::failover::PathErrorKind;
use crate::policy::retransmission::LossCause;
use crate::send::{Fate, Outstanding, WindowProbe};
use crate::time::Time;

/// SACKs that have arrived since T3-rtx last expired on a path, while the peer's window is too
/// small for the chunk that the peer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeAnswers {
    /// No SACK has arrived, or the window is open.
    None,
    /// SACKs have arrived over other paths only, and outstanding data there may have caused them.
    OnOtherPaths,
    /// SACKs have arrived that answer the data sent on this path.
    OnPath,
}

impl Sender<'_> {
    /// Handles the timers of the paths that have expired. True if a path's heartbeat period is
    /// over.
    pub(super) fn handle_path_timers(&mut self, now: Time) -> bool {
        let mut idle = false;
        for path in self.paths.ids() {
            self.handle_mtu_timer(now, path);
            // A probe precedes a T3-rtx that expires at the same time (RFC 8985 7.2).
            if self.paths[path].recovery.deadline.is_some_and(|t| t <= now) && !self.is_over() {
                self.handle_loss_deadline(now, path);
            }
            if self.paths[path].silence.deadline.is_some_and(|t| t <= now) && !self.is_over() {
                self.handle_silence(now, path);
            }
            if self.paths[path].t3().is_some_and(|t| t <= now) && !self.is_over() {
                self.handle_t3(now, path);
            }
            if self.paths[path].heartbeat_deadline().is_some_and(|t| t <= now) && !self.is_over() {
                self.model.procedures.handle_heartbeat_timeout(self, now, path);
            }
            if self.paths[path].heartbeat_due().is_some_and(|t| t <= now) && !self.is_over() {
                idle |= self.handle_heartbeat_timer(now, path);
            }
        }
        if !self.is_over() {
            self.handle_forward_timeout(now);
            self.abandon_hopeless(now);
        }
        idle
    }

    /// Whether the peer has answered the data sent on a path, if it closes its window.
    ///
    /// RFC 9260 6.1 A: "If the sender continues to receive SACK chunks from the peer while doing
    /// zero window probing, the unacknowledged window probes SHOULD NOT increment the error counter
    /// for the association or any destination transport address." The rule is for a probe that is
    /// alone: "no DATA chunks are in flight". While other paths have outstanding data, SACKs may
    /// answer that data, and do not show that this path works: if it has failed and carries the
    /// chunk that the peer waits for, only its error count moves the chunk to another path (6.4.1,
    /// 8.2).
    fn probe_answers(&self, path: PathId) -> ProbeAnswers {
        let p = &self.paths[path];
        if !self.sending.is_shut() || !p.is_since_timeout(self.sending.last_sack) {
            return ProbeAnswers::None;
        }
        // Data of which T3-rtx has expired at the same time is outstanding, but not in flight.
        let outstanding = |p: &Path| p.in_flight() + p.lost() > 0;
        let alone = !self.paths.iter().any(|other| other.id() != path && outstanding(other));
        if alone || p.has_sack_since_timeout() {
            ProbeAnswers::OnPath
        } else {
            ProbeAnswers::OnOtherPaths
        }
    }

    /// T3-rtx has expired on a path (RFC 9260 6.3.3).
    pub(super) fn handle_t3(&mut self, now: Time, path: PathId) {
        let answers = self.probe_answers(path);
        let probing = answers == ProbeAnswers::OnPath;
        self.paths[path].count_timeout(now);
        self.paths[path].count_loss();
        if let Some(search) = &mut self.paths[path].mtu_search {
            search.timed_out(now);
        }
        // E1: the window (7.2.3). RFC 9260 6.1 A: "Zero window probing does not affect the
        // calculation of cwnd."
        let unread = probing && matches!(self.sending.probe, WindowProbe::Sent(_));
        if !unread {
            self.begin_timeout_recovery(now, path);
            self.cut_window_after_timeout(now, path);
        }
        self.sending.cwnd_update.on_timeout(path);
        // E2: the RTO.
        self.paths[path].back_off(now);
        // E3: retransmit everything outstanding on this path; the lowest chunks, as many as fit one
        // packet, are sent at once. The timer restarts when they are (E4).
        self.paths[path].stop_t3();
        let srtt = self.paths[path].view().srtt.filter(|_| self.config.srtt_heuristic());
        // Iyengar 2004, IV.B: "TSNs which are sent within an RTT in the past are not marked for
        // retransmission."
        let recent = |chunk: &Outstanding| srtt.is_some_and(|srtt| now.since(chunk.sent) < srtt);
        // Chunks that wait for their fast retransmission are outstanding as well.
        self.sending.flight.give_up_waiting(path, recent);
        let times = self.times_of(now, path);
        let mut oldest = true;
        for sent in self.paths[path].take_sent_here() {
            let Some(chunk) = self.sending.flight.get(sent.tsn) else { continue };
            let here = chunk.path == path && chunk.transmissions == sent.transmissions;
            let (size, at) = (chunk.size(), chunk.sent);
            let in_flight = here && chunk.fate == Fate::InFlight;
            // RFC 8985 6.3: "RACK marks the first outstanding segment as lost".
            let first = oldest;
            oldest &= !in_flight;
            let survives =
                !first && self.sending.loss.survives_timeout(&chunk.as_sent(sent.tsn), &times);
            if here && (recent(chunk) || survives) {
                self.paths[path].still_here(sent);
                continue;
            }
            if here && self.sending.flight.mark_lost(sent.tsn, LossCause::Timeout) {
                self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(size);
                self.paths[path].data_lost(size);
                self.paths[path].drop_rtt_probe(sent.tsn);
                self.report_loss(now, path, at, size);
            }
        }
        if self.sending.flight.has_lost() {
            self.grant_send_credit(path);
            if self.sending.flight.ahead() > 0 {
                self.sending.probe_after_timeout();
            }
        }
        self.paths[path].set_timed_out(true);
        self.paths[path].marks.timed_out();
        self.pass_timeout_to_loss_detector(now, path);
        // T3-rtx runs for the chunks that the SRTT heuristic left in flight.
        self.paths[path].start_t3(now);
        match answers {
            ProbeAnswers::OnOtherPaths if self.paths[path].state() != PathState::Removed => {
                // The association is exempt (6.1 A), unless no active path is left that could
                // carry the chunk: then only its own error count ends it (8.1).
                let nowhere = !self.paths.any_is_active();
                self.count_path_error(now, path, PathErrorKind::DataTimeout, nowhere);
            }
            ProbeAnswers::OnOtherPaths | ProbeAnswers::OnPath => {}
            ProbeAnswers::None => self.count_error(now, path, PathErrorKind::DataTimeout),
        }
        if !self.is_over() && self.sending.flight.has_lost() {
            self.without_active_path(now);
        }
        if !self.is_over() {
            self.probe_after_timeout(now, path);
            self.search_after_timeout(now, path);
        }
    }
}
