//! Received SACKs: acknowledged and missing chunks, and the consequences (RFC 9260 6.2.1, 6.3,
//! 7.2).

use super::Sender;
use crate::ids::{PathId, Tsn};
use crate::path::{Path, PathState};
use crate::policy::cwnd_update::ScannedChunk;
use crate::policy::failover::Ambiguity;
use crate::policy::retransmission::LossCause;
use crate::policy::rtt_sampling::{AckedChunk, SackCause};
use crate::send::{Acknowledgement, Fate, SackReport, Sending};
use crate::time::Time;
use crate::wire::Sack;

impl Sending {
    /// Whether a SACK with the same cumulative TSN ack has overtaken this one, which would look as
    /// if the receiver had reneged (RFC 9260 6.2.1 D iii): what it leaves out would be found lost
    /// by time at once, and count as delivered again with the next SACK. After a round trip without
    /// SACKs none can be that late. A receiver that does renege shows it with the next SACK that
    /// acknowledges more.
    pub(super) fn is_overtaken(&self, now: Time, path: &Path, sack: &Sack<'_>) -> bool {
        self.loss.watches_time()
            && !(self.partial_sacks && sack.is_partial())
            && path.srtt().zip(self.last_sack).is_some_and(|(srtt, last)| {
                let (cumulative, gaps) = (sack.cumulative_tsn_ack, sack.all_gaps());
                now < last + srtt && self.flight.reports_more_than(cumulative, gaps)
            })
    }
}

impl Sender<'_> {
    /// Retransmits a window probe once the window has opened, which had no room for it: waiting for
    /// T3-rtx would be in vain. The loss is not a sign of congestion, so no window is cut.
    pub(super) fn resend_refused_probe(&mut self) {
        let Some(tsn) = self.sending.refused_probe() else { return };
        let Some((path, size)) = self.sending.flight.get(tsn).map(|c| (c.path, c.size())) else {
            return;
        };
        self.sending.flight.mark_lost(tsn, LossCause::FastRetransmit);
        let p = &mut self.paths[path];
        p.data_lost(size);
        p.drop_rtt_probe(tsn);
        if p.chunks_in_flight() == 0 {
            p.stop_t3();
        }
        self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(size);
        self.grant_send_credit(path);
        self.model.procedures.on_probe_refused(self, tsn);
    }

    /// Processes a SHUTDOWN's cumulative TSN ack, which comes without gap ack blocks (RFC 9260
    /// 9.2). A TSN that was never sent acknowledges nothing: pion up to 1.8 puts its own ack point
    /// there.
    pub(super) fn handle_shutdown_ack_point(&mut self, now: Time, cumulative: Tsn) {
        let late = cumulative.is_before(self.sending.flight.ack_point());
        if late || self.sending.cumulative_is_unsent(cumulative) {
            return;
        }
        self.sending.sack.cause = SackCause::default();
        self.model.procedures.acknowledge(self, now, cumulative, None, None);
    }

    /// Processes the acknowledgements of a SACK, or, without one, of a SHUTDOWN: [`Sending::apply`]
    /// finds the facts, and the decisions read its report. `packets` is the number of packets with
    /// DATA that the SACK answers, if it reports that.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        cumulative: Tsn,
        sack: Option<&Sack<'_>>,
        packets: Option<u32>,
    ) {
        let was_done = self.sending.is_done();
        let dormant = self.paths.iter().all(|p| p.state() == PathState::Inactive);
        let mut report = self.sending.sack.report.take().unwrap_or_default();
        let ack = Acknowledgement { cumulative, sack, packets };
        self.sending.apply(now, ack, self.paths, &mut report);
        self.stats.reneged += report.reneged.len() as u64;
        for reneged in &report.reneged {
            // RFC 9260 6.3.2 (R4): T3-rtx runs for what is outstanding again.
            self.paths[reneged.path].start_t3(now);
        }
        self.sample_round_trips(now, &report.acked);
        for p in self.paths.iter_mut() {
            let id = p.id();
            let here = report.acked.iter().filter(|chunk| chunk.path == id);
            p.marks.acknowledged(here.map(|chunk| (chunk.tsn, chunk.transmissions)));
        }
        let view = report.view();
        if view.highest_newly_acked.is_some() {
            // RFC 9260 8.1: any DATA chunk acknowledged.
            self.paths.clear_association_errors();
        }
        self.pass_to_window_rules(&report);
        self.sending.cwnd_update.on_sack(&view);
        if self.sending.loss.watches_time() {
            self.undo_spurious(now, &report);
        }
        self.pass_to_loss_detector(now, &view);
        self.end_recoveries(now, cumulative);
        // RFC 9260 7.2.4: "if the received SACK chunk also acknowledges new DATA chunks and
        // advances the Cumulative TSN Ack Point, the cwnd adjustment rules defined in Sections
        // 7.2.1 and 7.2.2 MUST be applied first."
        self.update_windows(now, &view, &report.paths);
        self.count_missing_reports(now, &view);
        self.credit_paths(now, &report, dormant);
        if self.sending.loss.watches_time() {
            self.recover_in_time(now, &report);
        }
        self.note_answers(now, &report);
        self.settle_urgent();
        self.sending.sack.report = Some(report);
        self.tune_send_buffer();
        self.sending.report_room(self.events);
        self.sending.report_drained(was_done, self.events);
    }

    /// Updates T3-rtx, error counts and bursts of the paths after a SACK; `dormant` if every path
    /// was inactive before it.
    fn credit_paths(&mut self, now: Time, report: &SackReport, dormant: bool) {
        for (path, t) in self.paths.ids().zip(&report.paths) {
            self.update_t3(now, path);
            if t.earliest {
                // RFC 9260 6.3.2 (R3): "the DATA chunk with the earliest outstanding TSN for that
                // address" is acknowledged, because all below it are as well.
                self.paths[path].restart_t3(now);
            }
            self.paths[path].acknowledged(now, t.acked);
            if t.acked > 0 {
                self.paths[path].set_timed_out(false);
            }
            let failover = &self.paths.failover;
            // RFC 9260 8.2 leaves open which path an acknowledgement credits.
            if t.evidence.kinds().any(|(on_several_paths, timed_out)| {
                failover.credits(Ambiguity { on_several_paths, timed_out, dormant })
            }) {
                let was = self.paths[path].state();
                self.paths.answered(now, path, self.events);
                self.paths[path].end_back_off(now);
                if was != PathState::Active {
                    self.send_again(now, path);
                }
            }
            let (rule, p) = (self.config.burst_rule(), &self.paths[path]);
            let limited = report.fast_retransmitted;
            self.sending.burst.acknowledged(rule, p, t.in_flight_before, limited);
        }
    }

    /// Shows the chunks of a SACK to the rule for windows, as far as it asks for them.
    fn pass_to_window_rules(&mut self, report: &SackReport) {
        let Sending { cwnd_update: update, flight, .. } = &mut self.sending;
        update.begin(report.paths.len());
        for (path, t) in self.paths.ids().zip(&report.paths) {
            if t.cumulatively {
                update.on_cumulatively_acked(path);
            }
        }
        if report.selective && update.scans() {
            flight.for_each_scanned(false, |tsn, chunk| {
                update.on_scan(&ScannedChunk {
                    tsn,
                    path: chunk.path,
                    retransmitted: chunk.transmissions > 1,
                    newly_acked: chunk.fate == Fate::Acked,
                });
            });
        }
    }

    /// Takes the round-trip samples of the current SACK (RFC 9260 6.3.1).
    pub(super) fn sample_round_trips(&mut self, now: Time, acked: &[AckedChunk]) {
        let Sending { rtt_sampling, sack, .. } = &mut self.sending;
        rtt_sampling.samples(now, &sack.cause, acked, self.paths.view(), &mut sack.samples);
        for (path, rtt) in sack.samples.drain(..) {
            self.paths[path].sample_rtt(rtt);
        }
    }

    /// RFC 9260 6.3.2: R2 stops T3-rtx when nothing is outstanding on the path. In the spirit of
    /// R3, T3-rtx restarts when the chunk that was outstanding for the longest time no longer is,
    /// whatever its TSN.
    pub(super) fn update_t3(&mut self, now: Time, path: PathId) {
        let flight = &self.sending.flight;
        let timely = self.sending.loss.watches_time();
        let p = &mut self.paths[path];
        let gone = p.oldest_is_gone(|s| {
            flight.get(s.tsn).is_some_and(|c| {
                let counts = c.fate == Fate::InFlight || (timely && c.is_watched());
                counts && c.path == path && c.transmissions == s.transmissions
            })
        });
        if gone {
            p.restart_t3(now);
        }
        p.drop_old_records(|tsn| flight.get(tsn).map(|chunk| chunk.sent));
    }

    /// Adapts the size of the send buffer to the congestion windows: to all of them if data is sent
    /// on several paths at a time.
    fn tune_send_buffer(&mut self) {
        if self.sending.tuning.is_fixed() {
            return;
        }
        let active = self.paths.iter().filter(|p| p.state() == PathState::Active);
        let windows = active.map(|p| p.window().cwnd as usize);
        let concurrent = self.sending.is_concurrent();
        self.sending.tune(if concurrent { windows.sum() } else { windows.max().unwrap_or(0) });
    }
}
