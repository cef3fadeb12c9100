//! Loss recovery with a detector that watches time (RFC 8985).

use super::Sender;
use crate::ids::{PathId, Tsn};
use crate::path::{PathState, SentHere};
use crate::policy::congestion::Spurious;
use crate::policy::loss::{Alarm, PathTimes, Recovering, SackView, SentChunk};
use crate::policy::retransmission::LossCause;
use crate::send::{Fate, InFlight, SackReport};
use crate::time::Time;

/// A SACK with this number of gap ack blocks may have had no room for more.
const MANY_BLOCKS: usize = 100;

/// Whether an entry of a path's list of transmissions is in flight.
fn is_outstanding(flight: &InFlight, path: PathId, sent: &SentHere) -> bool {
    flight.get(sent.tsn).is_some_and(|c| {
        c.fate == Fate::InFlight && c.path == path && c.transmissions == sent.transmissions
    })
}

impl Sender<'_> {
    /// The state of a path for the loss detector.
    pub(super) fn times_of(&self, now: Time, path: PathId) -> PathTimes {
        let p = &self.paths[path];
        let recovering = if p.recovery.timed_out_at().is_some() {
            Recovering::Timeout
        } else if self.sending.cwnd_update.recover(path).is_some() {
            Recovering::Loss
        } else {
            Recovering::No
        };
        PathTimes {
            now,
            id: path,
            srtt: p.srtt(),
            min_rtt: p.shortest_rtt(),
            t3: p.t3(),
            in_flight: p.in_flight(),
            max_chunk: p.max_chunk(),
            next_tsn: self.sending.flight.next_tsn(),
            recovering,
            spurious_timeout: p.recovery.late,
        }
    }

    /// Passes a SACK to the loss detector.
    pub(super) fn pass_to_loss_detector(&mut self, now: Time, sack: &SackView<'_>) {
        let mut times = std::mem::take(&mut self.sending.sack.times);
        times.clear();
        if self.sending.loss.watches_time() {
            times.extend(self.paths.ids().map(|path| self.times_of(now, path)));
        }
        self.sending.loss.on_sack(sack, &times);
        self.sending.sack.times = times;
    }

    /// The window of a path is about to be cut for a loss.
    pub(super) fn begin_recovery(&mut self, path: PathId) {
        if self.sending.loss.watches_time() {
            let p = &mut self.paths[path];
            let (before, outstanding) = (p.window(), p.in_flight() + p.lost());
            p.recovery.begin(before, outstanding);
        }
    }

    /// The window of a path is about to be cut because T3-rtx has expired.
    pub(super) fn begin_timeout_recovery(&mut self, now: Time, path: PathId) {
        if self.sending.loss.watches_time() {
            // RFC 5682 3.1: "This algorithm SHOULD NOT be applied if the TCP sender is already in
            // loss recovery when a retransmission timeout occurs." Nor if SACKs had no room for all
            // gap ack blocks: data that they left out looks late when it is reported.
            let recovering = self.sending.cwnd_update.recover(path).is_some();
            let testable = !recovering && self.sending.flight.blocks() < MANY_BLOCKS;
            let p = &mut self.paths[path];
            let before = p.window();
            p.recovery.timed_out(now, before, testable);
        }
    }

    /// A SACK has been applied: ends recoveries, and undoes those that it shows to be spurious.
    pub(super) fn undo_spurious(&mut self, now: Time, report: &SackReport) {
        for c in &report.acked {
            self.paths[c.path].chunk_acknowledged(now.since(c.sent), c.transmissions == 1);
        }
        self.undo_timeouts(now, report);
        let early = report.acked.iter().filter(|c| c.transmissions == 2).filter(|c| {
            // RFC 8985 6.2, step 2: acknowledged sooner than in the shortest round-trip time, so
            // that the original has arrived. It is known a round trip before the duplicate.
            self.paths[c.path].shortest_rtt().is_some_and(|shortest| now.since(c.sent) < shortest)
        });
        let arrived: Vec<Tsn> =
            early.map(|c| c.tsn).chain(report.duplicates.iter().copied()).collect();
        for tsn in arrived {
            for path in self.paths.ids() {
                // RFC 3708 3: every retransmission of the recovery was unnecessary.
                let p = &mut self.paths[path];
                if p.recovery.is_spurious_by(tsn) && p.lost() == 0 {
                    self.restore_window(now, path, false);
                }
            }
        }
    }

    /// Ends recoveries, and undoes timeouts that a SACK shows to be spurious.
    fn undo_timeouts(&mut self, now: Time, report: &SackReport) {
        for (path, t) in self.paths.ids().zip(&report.paths) {
            let recovers = self.sending.cwnd_update.recover(path).is_some();
            let p = &mut self.paths[path];
            p.recovery.delivered = t.acked;
            if !recovers {
                p.recovery.end();
            }
            let timed_out = t.evidence.kinds().any(|(_, timed_out)| timed_out);
            if let Some(since) = p.recovery.testable_timeout()
                && timed_out
            {
                self.undo_timeout(now, path, since, report);
            }
            let p = &mut self.paths[path];
            let answered = p.recovery.timed_out_at().is_some_and(|at| {
                t.newly_acked.last_sent.is_some_and(|last| last >= at) || p.in_flight() == 0
            });
            if answered && p.lost() == 0 {
                p.recovery.end_timeout();
            }
        }
    }

    /// T3-rtx has expired on a path at `since`, and a SACK acknowledges a chunk that it marked lost
    /// and that was not retransmitted: the timeout was spurious (RFC 5682 3.1, step 3 b).
    fn undo_timeout(&mut self, now: Time, path: PathId, since: Time, report: &SackReport) {
        self.update_t3(now, path);
        let flight = &self.sending.flight;
        let oldest = self.paths[path].oldest().and_then(|sent| flight.get(sent.tsn));
        // RFC 5682 3.1, step 2 a: an acknowledgement of everything sent before the timeout shows
        // nothing.
        if self.paths[path].lost() == 0 && oldest.is_none_or(|chunk| chunk.sent >= since) {
            return;
        }
        if self.is_late_by_outage(now, path, report) {
            return;
        }
        let found = self.sending.flight.unmark(path, since);
        let p = &mut self.paths[path];
        p.data_found(found.into_iter());
        // RFC 4015 3.2: the RTO adapts to the delay that caused the timeout.
        let late = report.acked.iter().filter(|c| c.path == path && c.transmissions == 1);
        if let Some(sent) = late.map(|c| c.sent).filter(|&sent| sent < since).max() {
            p.sample_rtt(now.since(sent));
        }
        p.recovery.late = true;
        p.start_t3(now);
        self.restore_window(now, path, true);
    }

    /// Whether a SACK acknowledges data late because an outage has taken earlier SACKs: it was not
    /// on its way for that time, which is no round-trip time, and what was sent after that data may
    /// be lost.
    fn is_late_by_outage(&self, now: Time, path: PathId, report: &SackReport) -> bool {
        // Data on a path that has failed is to be sent on one that works.
        if self.paths[path].state() != PathState::Active && self.paths.another_is_active(path) {
            return true;
        }
        let repeated = self.paths[path].view().timeouts_in_a_row > 1;
        report.acked.iter().any(|c| {
            // The peer reports that it has received the retransmission of a chunk twice: the first
            // SACK for it was lost.
            let twice = report.duplicates.contains(&c.tsn);
            // The SACK arrives when one for the retransmission is due. RFC 5682 3.1, step 1, rules
            // out a spurious timeout once T3-rtx has expired again.
            let (age, p) = (now.since(c.sent), &self.paths[c.path]);
            let due = p.shortest_rtt().is_some_and(|rtt| age >= rtt) && age <= p.base_rto();
            twice || (repeated && c.transmissions > 1 && due)
        })
    }

    /// Restores the window from before a spurious recovery.
    fn restore_window(&mut self, now: Time, path: PathId, timeout: bool) {
        let p = &mut self.paths[path];
        if let Some(before) = p.recovery.undo() {
            p.stats.recoveries_undone += 1;
            let spurious = Spurious::new(timeout, before);
            self.control(now, path, |c, context| c.on_spurious(context, &spurious));
            self.sending.cwnd_update.on_spurious(path);
        }
    }

    /// A SACK has been processed: finds losses by time, and sets the deadlines.
    pub(super) fn recover_in_time(&mut self, now: Time, report: &SackReport) {
        for path in self.paths.ids() {
            let repaired = self.sending.loss.repaired(path);
            if let Some(tsn) = repaired {
                // RFC 8985 7.4.2: "The sender then SHOULD invoke a congestion control response
                // equivalent to a fast recovery."
                self.cut_for_loss(now, path, tsn);
            }
            let lost = self.judge(now, path) || repaired.is_some();
            self.reduce(path, report.advanced && !lost);
            let recovery = &mut self.paths[path].recovery;
            (recovery.delivered, recovery.late) = (0, false);
        }
    }

    /// Limits what may be sent on a path in fast recovery (RFC 6937).
    fn reduce(&mut self, path: PathId, safe: bool) {
        // A controller that models the path bounds the data in flight in recovery by itself, as in
        // draft-ietf-ccwg-bbr 5.6.4.4.
        if self.sending.needs.delivery_samples {
            return;
        }
        let p = &mut self.paths[path];
        let (pipe, ssthresh, mss) = (p.in_flight(), p.window().cwnd, p.max_chunk());
        p.recovery.reduce(pipe, ssthresh, mss, safe);
    }

    /// Marks the chunks that the detector finds lost, from the one that was sent earliest on. True
    /// if there are any.
    fn judge(&mut self, now: Time, path: PathId) -> bool {
        let mut any = false;
        let mut lost = std::mem::take(&mut self.sending.sack.missing);
        lost.clear();
        loop {
            self.update_t3(now, path);
            let oldest = self.paths[path].oldest().and_then(|sent| {
                let chunk = self.sending.flight.get(sent.tsn)?;
                Some((chunk.as_sent(sent.tsn), chunk.size()))
            });
            let times = self.times_of(now, path);
            if !self.sending.loss.judge(oldest.as_ref().map(|(chunk, _)| chunk), &times) {
                break;
            }
            let Some((chunk, size)) = oldest else { break };
            lost.clear();
            lost.push((chunk.tsn, path, size));
            self.mark_lost(now, &lost);
            any = true;
        }
        self.sending.sack.missing = lost;
        self.set_loss_deadline(path);
        any
    }

    fn set_loss_deadline(&mut self, path: PathId) {
        self.paths[path].recovery.deadline = self.sending.loss.deadline(path);
    }

    /// A chunk has been sent on a path, as a probe or not.
    pub(super) fn note_sent(&mut self, now: Time, path: PathId, tsn: Tsn, transmissions: u32) {
        if self.sending.loss.watches_time() {
            let probe = std::mem::take(&mut self.paths[path].recovery.probe);
            let chunk = SentChunk { tsn, sent: now, transmissions, probe };
            if probe {
                // RFC 8985 7.3: "Rearm RTO timer to fire at timeout = now + RTO".
                self.paths[path].restart_t3(now);
            }
            let times = self.times_of(now, path);
            self.sending.loss.on_sent(&chunk, &times);
            self.set_loss_deadline(path);
        }
    }

    /// The deadline of the loss detector has passed.
    pub(super) fn handle_loss_deadline(&mut self, now: Time, path: PathId) {
        let times = self.times_of(now, path);
        match self.sending.loss.on_deadline(&times) {
            Alarm::Judge => {
                if self.judge(now, path) {
                    self.reduce(path, false);
                }
            }
            Alarm::Probe => {
                self.paths[path].recovery.probe = true;
                self.paths[path].restart_t3(now);
            }
            Alarm::NoProbe => self.paths[path].restart_t3(now),
        }
        self.set_loss_deadline(path);
    }

    /// T3-rtx has expired on a path, and chunks have been marked lost.
    pub(super) fn pass_timeout_to_loss_detector(&mut self, now: Time, path: PathId) {
        if self.sending.loss.watches_time() {
            let times = PathTimes { recovering: Recovering::Timeout, ..self.times_of(now, path) };
            self.sending.loss.on_timeout(&times);
            self.set_loss_deadline(path);
        }
    }

    /// The path of a probe that is to be sent now, and the chunk to retransmit unless new data may
    /// be sent (RFC 8985 7.3).
    pub(super) fn next_tail_probe(&mut self) -> Option<(PathId, Option<Tsn>)> {
        let path = self.paths.ids().find(|&path| self.paths[path].recovery.probe)?;
        if self.sending.next_new_chunk_size(self.paths).is_some() && !self.sending.flight.has_lost()
        {
            return Some((path, None));
        }
        let flight = &self.sending.flight;
        let newest = self.paths[path].newest(|sent| is_outstanding(flight, path, sent));
        if newest.is_none() {
            self.paths[path].recovery.probe = false;
        }
        newest.map(|sent| (path, Some(sent.tsn)))
    }

    /// Marks the chunk that a probe retransmits as lost, so that it can be sent again.
    pub(super) fn mark_probed(&mut self, path: PathId, tsn: Tsn) -> bool {
        let Some(size) = self.sending.flight.get(tsn).map(crate::send::Outstanding::size) else {
            return false;
        };
        let marked = self.sending.flight.mark_lost(tsn, LossCause::FastRetransmit);
        if marked {
            let p = &mut self.paths[path];
            p.data_lost(size);
            p.drop_rtt_probe(tsn);
            self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(size);
        }
        marked
    }
}
