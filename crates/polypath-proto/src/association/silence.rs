//! Paths that do not answer: watching for them, moving their data, and taking them back, with a
//! failover policy that does not wait for timeouts.

use super::Sender;
use crate::ids::PathId;
use crate::path::PathState;
use crate::policy::retransmission::LossCause;
use crate::send::{Fate, SackReport};
use crate::time::Time;

impl Sender<'_> {
    /// A SACK that arrived over `over`, or without one a SHUTDOWN, has acknowledged data: judges
    /// the silence of each path anew.
    pub(super) fn note_answers(&mut self, now: Time, report: &SackReport) {
        if !self.paths.watches_silence {
            return;
        }
        for (path, t) in self.paths.ids().zip(&report.paths) {
            if t.acked > 0 {
                self.paths[path].silence.acknowledged(now, t.newly_acked.last_sent);
                self.paths.failover.on_acknowledged(now, path);
            }
            self.watch(now, path);
        }
    }

    /// Whether the last SACK acknowledged data of this path that was given up for its silence.
    pub(super) fn acknowledges_suspect(&self, path: PathId) -> bool {
        let report = &self.sending.sack.report.paths;
        self.paths[path].silence.suspect.is_some()
            && report.get(path.index()).is_some_and(|t| t.evidence.kinds().any(|(_, up)| up))
    }

    /// Sets the instant at which the path is silent for too long, unless it answers before.
    pub(super) fn watch(&mut self, now: Time, path: PathId) {
        self.paths[path].silence.deadline = self.silent_at(path).map(|at| at.max(now));
    }

    /// A chunk has been sent on a path.
    pub(super) fn watch_sent(&mut self, now: Time, path: PathId) {
        if self.paths.watches_silence && self.paths[path].silence.deadline.is_none() {
            self.watch(now, path);
        }
    }

    /// When the path will have been silent for too long.
    fn silent_at(&mut self, path: PathId) -> Option<Time> {
        let p = &self.paths[path];
        // While the peer's window is closed, SACKs acknowledge nothing new.
        if p.state() != PathState::Active || p.chunks_in_flight() == 0 || self.sending.is_shut() {
            return None;
        }
        let patience = self.paths.failover.patience(&p.view())?;
        let sent = self.paths[path].oldest().and_then(|sent| self.sending.flight.get(sent.tsn))?;
        let old = sent.sent + patience.age;
        let quiet = self.paths[path].silence.last_answer.map(|last| last + patience.quiet);
        Some(quiet.map_or(old, |quiet| quiet.max(old)))
    }

    /// The silence of a path is to be judged.
    pub(super) fn handle_silence(&mut self, now: Time, path: PathId) {
        self.update_t3(now, path);
        match self.silent_at(path) {
            Some(at) if at <= now => {
                if self.paths.another_is_active(path) {
                    self.suspect(now, path);
                } else {
                    // Judged again when the others have had time to answer.
                    let patience = self.paths.failover.patience(&self.paths[path].view());
                    self.paths[path].silence.deadline = patience.map(|p| now + p.age);
                }
            }
            at => self.paths[path].silence.deadline = at,
        }
    }

    /// The host reports that it cannot send on a path: its data moves at once.
    pub(super) fn suspect_unreachable(&mut self, now: Time, path: PathId) {
        if self.paths.watches_silence
            && self.paths[path].state() == PathState::Active
            && self.paths.another_is_active(path)
        {
            self.suspect(now, path);
        }
    }

    /// Leaves a path that does not answer to its probes, and moves its data to other paths.
    fn suspect(&mut self, now: Time, path: PathId) {
        let state = self.paths.state_after_silence(path);
        if state == PathState::Active {
            return self.paths[path].silence.deadline = None;
        }
        self.new_burst();
        self.sending.flight.give_up_waiting(path, |_| false);
        let mut any = false;
        for sent in self.paths[path].take_sent_here() {
            let Some(chunk) = self.sending.flight.get(sent.tsn) else { continue };
            let here = chunk.path == path && chunk.transmissions == sent.transmissions;
            let size = chunk.size();
            if here && chunk.fate == Fate::InFlight {
                any |= self.sending.flight.mark_lost(sent.tsn, LossCause::Timeout);
                self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(size);
                self.paths[path].data_lost(size);
                self.paths[path].drop_rtt_probe(sent.tsn);
            } else if here && chunk.is_watched() {
                self.sending.flight.mark_lost(sent.tsn, LossCause::Timeout);
            }
        }
        let p = &mut self.paths[path];
        p.stop_t3();
        p.recovery.probe = false;
        p.send_credit = false;
        p.silence.deadline = None;
        p.silence.suspect = Some(now);
        p.stats.suspicions += 1;
        if self.sending.loss.watches_time() {
            let times = self.times_of(now, path);
            self.sending.loss.judge(None, &times);
            self.paths[path].recovery.deadline = self.sending.loss.deadline(path);
        }
        self.paths.set_state(now, path, state, self.events);
        if self.sending.flight.ahead() > 0 {
            self.sending.probe_after_timeout();
        }
        if any && let Some((tsn, chunk, cause)) = self.sending.flight.first_lost() {
            // One packet of the oldest data leaves at once, like a probe (RFC 9002 6.2.4).
            let lost = chunk.as_lost(tsn, cause);
            let to = self.path_for_lost(&lost);
            self.paths[to].send_credit |= self.paths.is_confirmed(to);
        }
        if self.probes_at_once(path) {
            self.send_heartbeat(now, path);
        }
        // The others may be silent too.
        for other in self.paths.ids() {
            self.watch(now, other);
        }
    }

    /// A SACK has arrived over a silent path and acknowledges its data: it was only slow.
    pub(super) fn undo_suspicion(&mut self, now: Time, path: PathId) {
        let Some(since) = self.paths[path].silence.suspect.take() else { return };
        if self.paths[path].state() != PathState::PotentiallyFailed {
            return;
        }
        let found = self.sending.flight.unmark(path, since);
        let back: u32 = found.iter().map(|(_, size)| size).sum();
        self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_sub(back);
        let p = &mut self.paths[path];
        p.data_found(found.into_iter());
        p.cancel_heartbeat();
        p.start_t3(now);
        p.stats.suspicions_undone += 1;
        self.paths.failover.on_spurious(now, path);
        self.paths.set_state(now, path, PathState::Active, self.events);
        self.watch(now, path);
    }

    /// A HEARTBEAT on a path was answered.
    pub(super) fn note_proof(&mut self, now: Time, path: PathId) {
        if !self.paths.watches_silence {
            return;
        }
        let p = &mut self.paths[path];
        p.silence.last_answer = Some(now);
        if p.state() == PathState::Active {
            p.silence.suspect = None;
        } else if self.probes_at_once(path) {
            // The policy asks for further proof.
            self.send_heartbeat(now, path);
        }
        // Another path may have waited for this one.
        for other in self.paths.ids() {
            self.watch(now, other);
        }
    }

    /// A HEARTBEAT on a suspect path was not answered: the path has failed, and its window is cut
    /// as by a timeout.
    pub(super) fn confirm_failure(&mut self, now: Time, path: PathId) {
        if self.paths[path].silence.suspect.take().is_some() {
            self.begin_timeout_recovery(now, path);
            self.cut_window_after_timeout(now, path);
            self.sending.cwnd_update.on_timeout(path);
        }
    }
}
