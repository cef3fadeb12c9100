//! Paths that do not answer: watching for them, moving their data, and taking them back, with a
//! failover policy that does not wait for timeouts.

use super::Sender;
use crate::ids::PathId;
use crate::path::{Path, PathState};
use crate::policy::failover::Patience;
use crate::policy::retransmission::LossCause;
use crate::send::{Fate, SackReport};
use crate::time::Time;

/// Most chunks among which the second packet in flight is searched for.
const MOST_SEARCHED: usize = 64;

/// Packets in flight on a path that fill a queue, if there is one.
const QUEUE_OF_ITS_OWN: u32 = 64;

/// Data in flight whose SACK is due.
struct Awaited {
    /// When the second packet was sent, or the first if there is no other.
    since: Time,
    /// There is no other.
    single: bool,
}

impl Sender<'_> {
    /// A SACK, or without one a SHUTDOWN, has acknowledged data: judges the silence of each path
    /// anew.
    pub(super) fn note_answers(&mut self, now: Time, report: &SackReport) {
        if !self.paths.watches_silence {
            return;
        }
        for (path, t) in self.paths.ids().zip(&report.paths) {
            if t.answered {
                self.paths[path].silence.acknowledged(now, t.newly_acked.last_sent);
                self.paths.failover.on_acknowledged(now, path);
            }
        }
        if report.paths.iter().any(|t| t.answered) {
            self.paths.iter_mut().for_each(|p| p.silence.resume(now));
        }
        let most = self.paths.failover.most_losses();
        for path in self.paths.ids() {
            self.watch(now, path);
            if self.paths[path].recent_loss() >= most {
                self.judge_losses(now, path);
            }
        }
    }

    /// A path loses more than the failover policy takes for granted.
    #[cold]
    fn judge_losses(&mut self, now: Time, path: PathId) {
        let active = self.paths[path].state() == PathState::Active;
        if active && self.paths.another_is_active(path) {
            let state = self.paths.state_after_losses(now, path);
            self.leave(now, path, state);
        }
    }

    /// Whether the last SACK acknowledged data of this path that was given up for its silence.
    pub(super) fn acknowledges_suspect(&self, path: PathId) -> bool {
        let report = self.sending.sack.report.as_ref();
        self.paths[path].silence.suspect.is_some()
            && report
                .and_then(|r| r.paths.get(path.index()))
                .is_some_and(|t| t.evidence.kinds().any(|(_, up)| up))
    }

    /// Sets the instant at which the path is silent for too long, unless it answers before.
    pub(super) fn watch(&mut self, now: Time, path: PathId) {
        self.paths[path].silence.deadline = self.silent_at(path).map(|(at, _)| at.max(now));
    }

    /// A chunk has been sent on a path.
    pub(super) fn watch_sent(&mut self, now: Time, path: PathId) {
        let silence = &self.paths[path].silence;
        if self.paths.watches_silence && silence.deadline.is_none() && !silence.waits {
            self.watch(now, path);
            for other in self.paths.ids() {
                self.hasten_probe(now, other);
            }
        }
    }

    /// When the path will have been silent for too long, and what is too long.
    fn silent_at(&self, path: PathId) -> Option<(Time, Patience)> {
        let p = &self.paths[path];
        // While the peer's window is closed, SACKs acknowledge nothing new.
        if p.state() != PathState::Active || p.chunks_in_flight() == 0 || self.sending.is_shut() {
            return None;
        }
        let awaited = self.awaited(p)?;
        let patience = self.patience(p, &awaited)?.with(awaited.single);
        let old = awaited.since + patience.age;
        let at = p.silence.quiet_since().map_or(old, |quiet| old.max(quiet + patience.quiet));
        Some((at, patience))
    }

    /// How long the path may be silent, with the round-trip time that the awaited data should have.
    ///
    /// If the path sent nothing for a while before that data, as while the peer's window is closed,
    /// the queue of its packets that the last round-trip time shows has become shorter by that
    /// time. With few packets in flight, the last round-trip time shows the way and the delay of a
    /// single SACK instead.
    fn patience(&self, p: &Path, awaited: &Awaited) -> Option<Patience> {
        let paths = self.paths.view();
        let mut view = p.view();
        if p.in_flight() >= QUEUE_OF_ITS_OWN * p.max_chunk() {
            let pause = p.silence.last_sent.map(|last| awaited.since.since(last));
            view.last_rtt = view.last_rtt.map(|rtt| rtt.saturating_sub(pause.unwrap_or_default()));
        }
        self.paths.failover.patience(&view, paths)
    }

    /// The data in flight on a path that has waited longest for its SACK.
    ///
    /// RFC 9260 6.2: "an acknowledgement SHOULD be generated for at least every second packet", so
    /// that the last packet of a flight may be acknowledged only after the first one of the next.
    fn awaited(&self, p: &Path) -> Option<Awaited> {
        let mut in_flight = p.sent_here().take(MOST_SEARCHED).filter_map(|sent| {
            let chunk = self.sending.flight.get(sent.tsn)?;
            let there = chunk.fate == Fate::InFlight && chunk.path == p.id();
            (there && chunk.transmissions == sent.transmissions).then_some(chunk)
        });
        let first = in_flight.next()?;
        let mut bytes = first.size();
        // What left together is one packet, up to its size.
        let second = in_flight.find(|chunk| {
            bytes += chunk.size();
            chunk.sent != first.sent || bytes > p.max_chunk()
        });
        Some(Awaited { since: second.unwrap_or(first).sent, single: second.is_none() })
    }

    /// The silence of a path is to be judged.
    pub(super) fn handle_silence(&mut self, now: Time, path: PathId) {
        self.update_t3(now, path);
        match self.silent_at(path) {
            Some((at, patience)) if at <= now => {
                if !self.paths.another_is_active(path) {
                    // Judged again when the others have had time to answer.
                    self.paths[path].silence.deadline = Some(now + patience.age);
                } else if self.another_answers(now, path, at - patience.quiet) {
                    self.suspect(now, path);
                } else {
                    let silence = &mut self.paths[path].silence;
                    (silence.deadline, silence.waits) = (None, true);
                    self.probe_late(path);
                }
            }
            _ => self.watch(now, path),
        }
    }

    /// Every active path is late, at last this one: asks each of them. The peer may have sent all
    /// SACKs over one that has failed, but HEARTBEATs are answered on the path that they arrive on
    /// (RFC 9260 8.3).
    fn probe_late(&mut self, last: PathId) {
        for path in self.paths.ids() {
            let p = &self.paths[path];
            let busy = p.state() == PathState::Active && p.chunks_in_flight() > 0;
            if busy && (path == last || !p.silence.waits) {
                self.send_further_heartbeat(path);
            }
        }
    }

    /// Whether another active path has answered after `since`, or has nothing that it should have
    /// answered by now. If every path is late, the hosts are busy or share the failure, and no path
    /// is better than another.
    fn another_answers(&self, now: Time, path: PathId, since: Time) -> bool {
        let others = self.paths.iter().filter(|p| p.id() != path && p.state() == PathState::Active);
        others.into_iter().any(|p| {
            let heard = p.silence.last_answer.is_some_and(|heard| heard >= since);
            let due = || {
                let awaited = self.awaited(p)?;
                let patience = self.patience(p, &awaited)?;
                Some(awaited.since + (patience.age - patience.quiet))
            };
            heard || p.chunks_in_flight() == 0 || due().is_none_or(|due| due > now)
        })
    }

    /// The host reports that it cannot send on a path: its data moves at once.
    pub(super) fn suspect_unreachable(&mut self, now: Time, path: PathId) {
        if self.paths.watches_silence
            && self.paths[path].state() == PathState::Active
            && self.paths.another_is_active(path)
        {
            let moves = self.paths[path].chunks_in_flight() > 0;
            self.suspect(now, path);
            if moves && let Some((tsn, chunk, cause)) = self.sending.flight.first_lost() {
                // One packet of the oldest data leaves at once, like a probe (RFC 9002 6.2.4).
                let lost = chunk.as_lost(tsn, cause);
                let to = self.path_for_lost(&lost);
                self.paths[to].send_credit |= self.paths.is_confirmed(to);
            }
        }
    }

    /// Leaves a path that does not answer.
    fn suspect(&mut self, now: Time, path: PathId) {
        let state = self.paths.state_after_silence(path);
        self.paths[path].silence.deadline = None;
        if state != PathState::Active {
            self.paths[path].silence.suspect = Some(now);
            self.leave(now, path, state);
        }
    }

    /// Leaves a path to its probes, unless it stays active, and moves its data to other paths.
    fn leave(&mut self, now: Time, path: PathId, state: PathState) {
        if state == PathState::Active {
            return;
        }
        self.new_burst();
        self.sending.flight.give_up_waiting(path, |_| false);
        for sent in self.paths[path].take_sent_here() {
            let Some(chunk) = self.sending.flight.get(sent.tsn) else { continue };
            let here = chunk.path == path && chunk.transmissions == sent.transmissions;
            let size = chunk.size();
            if here && chunk.fate == Fate::InFlight {
                self.sending.flight.mark_lost(sent.tsn, LossCause::Timeout);
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
        p.stats.suspicions += 1;
        if self.sending.loss.watches_time() {
            let times = self.times_of(now, path);
            self.sending.loss.judge(None, &times);
            self.paths[path].recovery.deadline = self.sending.loss.deadline(path);
        }
        self.paths.set_state(now, path, state, self.events);
        for other in self.paths.ids() {
            if self.paths[other].state() == PathState::Active {
                self.control(now, other, |controller, context| controller.on_path_left(context));
            }
        }
        if self.sending.flight.ahead() > 0 {
            self.sending.probe_after_timeout();
        }
        if self.probes_at_once(path) {
            self.send_heartbeat(now, path);
        }
        self.hasten_probe(now, path);
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
        self.paths.iter_mut().for_each(|p| p.silence.resume(now));
        let p = &mut self.paths[path];
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
