//! Received SACKs (ProcessSackChunk, ProcessGapAckBlocks).

use super::Own;
use super::policy::pseudo_cumulative;
use super::tables::{PathSide, first_on};
use crate::association::Sender;
use crate::ids::Tsn;
use crate::paths::Paths;
use crate::policy::CwndUpdate;
use crate::policy::congestion::PathAck;
use crate::policy::cwnd_update::ScannedChunk;
use crate::policy::loss::{self, NewlyAckedOn, SackView};
use crate::policy::retransmission::LossCause;
use crate::policy::rtt_sampling::AckedChunk;
use crate::send::in_flight::acked::Outside;
use crate::send::{Fate, InFlight, Outstanding, Sending};
use crate::time::Time;
use crate::wire::Sack;

/// Effects of a SACK on one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathTally {
    pub(super) acked: u32,
    pub(super) acked_by_gaps: u32,
    /// Newly acknowledged bytes that may count towards partial_bytes_acked, with CMT.
    pub(super) counted: u32,
    /// Bytes outstanding before the SACK, those that wait for retransmission included.
    pub(super) in_flight_before: u32,
    newly_acked: NewlyAckedOn,
    /// An acknowledgement has shown that the path works.
    answered: bool,
    /// A chunk was acknowledged that stops T3-rtx.
    pub(super) stops_t3: bool,
}

impl PathTally {
    /// Notes a newly acknowledged TSN. Only gap ack blocks raise the highest one of a path.
    fn note(&mut self, tsn: Tsn, by_gaps: bool) {
        let highest = self.newly_acked.highest;
        self.newly_acked.note(tsn);
        if !by_gaps {
            self.newly_acked.highest = highest;
        }
    }
}

/// The highest TSNs that a SACK newly acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct NewlyAcked {
    cumulatively: Option<Tsn>,
    by_gaps: Option<Tsn>,
    /// The cumulative ack acknowledges a chunk that had been fast retransmitted.
    fast_retransmitted: bool,
}

impl Sender<'_> {
    pub(super) fn ns2_acknowledge(
        &mut self,
        now: Time,
        cumulative: Tsn,
        sack: Option<&Sack<'_>>,
        packets: Option<u32>,
    ) {
        let was_done = self.sending.is_done();
        let cmt = self.is_ns2_cmt();
        // A SACK without gap ack blocks revokes nothing that earlier ones acknowledged. The
        // module's receiver never drops data again; a receiver that did shows it by a cumulative
        // TSN ack just below that data.
        let revokes = |sack: &&Sack<'_>| {
            let next = self.sending.flight.get(cumulative.next());
            cmt || sack.all_gaps().next().is_some() || next.is_some_and(|c| c.fate == Fate::Acked)
        };
        let sack = sack.filter(revokes);
        let advanced = cumulative.is_after(self.sending.flight.ack_point());
        let outstanding = self.paths.iter().map(|p| p.in_flight() + p.lost());
        let (mut tally, mut newly_acked_on) = std::mem::take(&mut self.side.own().tally);
        tally.clear();
        tally.extend(
            outstanding
                .map(|in_flight_before| PathTally { in_flight_before, ..PathTally::default() }),
        );
        let newly = self.ns2_take_acknowledged(now, cumulative, sack, &mut tally);
        newly_acked_on.clear();
        newly_acked_on.extend(tally.iter().map(|t| t.newly_acked));
        let view = SackView {
            now,
            acked: &[],
            duplicates: &[],
            cause: self.sending.sack.cause,
            cumulative,
            advanced,
            // Gap ack blocks are above the cumulative TSN ack.
            highest_newly_acked: newly.by_gaps.or(newly.cumulatively),
            newly_acked_cumulatively: newly.cumulatively,
            newly_acked_by_gaps: newly.by_gaps,
            newly_acked_on: &newly_acked_on,
            last_sent: newly_acked_on.iter().filter_map(|on| on.last_sent).max(),
            packets,
            highest_acked: match sack {
                Some(_) => self.sending.flight.highest_acked(),
                None => cumulative,
            },
        };
        if view.highest_newly_acked.is_some() {
            self.paths.clear_association_errors();
        }
        self.sending.cwnd_update.on_sack(&view);
        self.sending.loss.on_sack(&view, &[]);
        if newly.fast_retransmitted {
            self.ns2_limit_burst();
        }
        if cmt {
            let found = self.ns2_count_missing_reports(&view);
            self.ns2_cmt_after_sack(now, &view, &tally, found);
        } else {
            self.ns2_update_windows(now, &view, &tally);
            let found = self.ns2_count_missing_reports(&view);
            if found {
                self.ns2_cut(now);
            }
            self.ns2_after_sack(found);
        }
        for (path, t) in self.paths.ids().zip(&tally) {
            if !cmt {
                self.ns2_update_t3(now, path, t.stops_t3);
            }
            self.paths[path].acknowledged(now, t.acked);
            if t.acked > 0 {
                self.paths[path].set_timed_out(false);
            }
            if t.answered {
                self.paths.answered(now, path, self.events);
            }
            let (rule, p) = (self.config.burst_rule(), &self.paths[path]);
            self.sending.burst.acknowledged(rule, p, t.in_flight_before, false);
        }
        self.side.own().tally = (tally, newly_acked_on);
        self.sending.report_room(self.events);
        self.sending.report_drained(was_done, self.events);
    }

    /// Removes acknowledged chunks from flight.
    fn ns2_take_acknowledged(
        &mut self,
        now: Time,
        cumulative: Tsn,
        sack: Option<&Sack<'_>>,
        tally: &mut [PathTally],
    ) -> NewlyAcked {
        let multiple = self.config.loss().name == loss::MULTIPLE_FAST_RETRANSMIT.name;
        let cmt = self.is_ns2_cmt();
        let Self { paths, sending, stats, config, side, .. } = self;
        let side = side.own();
        let Sending { cwnd_update, flight, buffered, sack: memory, .. } = sending;
        let mut report = memory.report.take().unwrap_or_default();
        let acked = &mut report.acked;
        let update = &mut **cwnd_update;
        update.begin(paths.len());
        acked.clear();
        let mut result = NewlyAcked::default();
        let mut newly = |paths: &mut Paths,
                         sides: &mut [PathSide],
                         tsn: Tsn,
                         chunk: &Outstanding,
                         fate,
                         by_gaps| {
            let (path, side) = (&mut paths[chunk.path], &mut sides[chunk.path.index()]);
            let t = &mut tally[chunk.path.index()];
            t.acked += chunk.size();
            t.acked_by_gaps += if by_gaps { chunk.size() } else { 0 };
            t.answered |= Self::ns2_credits(config, path, chunk, fate, by_gaps);
            t.note(tsn, by_gaps);
            // RFC 8985 6.2 (2): an acknowledgement that arrives sooner than the shortest round trip
            // is for an earlier transmission.
            let age = now.since(chunk.sent);
            if chunk.transmissions == 1 || path.shortest_rtt().is_some_and(|rtt| age >= rtt) {
                t.newly_acked.note_sent(chunk.sent);
            }
            match fate {
                Fate::InFlight => path.data_gone(chunk.size()),
                Fate::Lost(_) => path.lost_gone(chunk.size()),
                Fate::Acked | Fate::Abandoned | Fate::Reserved => {}
            }
            let given_up = fate == Fate::Lost(LossCause::Timeout);
            acked.push(AckedChunk {
                tsn,
                bytes: chunk.size(),
                path: chunk.path,
                sent: chunk.sent,
                transmissions: chunk.transmissions,
                measured: side.end_rtt_probe(path, tsn, by_gaps) && !given_up,
            });
        };
        let mut stops_t3 = Vec::new();
        let sides = side.paths_of(paths.len());
        flight.ack_cumulative(cumulative, |tsn, chunk, fate| {
            *buffered -= chunk.content.payload.len();
            result.fast_retransmitted |= chunk.was_fast_retransmitted();
            if fate == Fate::Acked {
                sides[chunk.path.index()].clear_rtt_probe(tsn);
            }
            let p = &paths[chunk.path];
            let edges = pseudo_cumulative(update).map_or([None; 2], |cuc| cuc.left_edges(p.id()));
            let stops = !cmt || Self::ns2_cmt_stops_t3(edges, p.t3().is_some(), tsn);
            if stops && stops_t3.last() != Some(&chunk.path) {
                stops_t3.push(chunk.path);
            }
            if fate != Fate::Acked {
                update.on_cumulatively_acked(chunk.path);
                result.cumulatively = Some(tsn);
                newly(paths, sides, tsn, chunk, fate, false);
            }
        });
        side.clear_counted(cumulative);
        if let Some(sack) = sack {
            let first = first_on(flight, paths.len());
            if multiple {
                side.highest_outstanding(flight);
            }
            let mut reneged = Vec::new();
            let sides = side.paths_of(paths.len());
            flight.ack_gaps(
                sack.all_gaps(),
                Outside::Missing,
                |tsn, chunk, fate| {
                    if first[chunk.path.index()] == Some(tsn) {
                        stops_t3.push(chunk.path);
                    }
                    result.by_gaps = Some(tsn);
                    newly(paths, sides, tsn, chunk, fate, true);
                },
                |tsn, chunk| {
                    reneged.push((tsn, chunk.path, chunk.transmissions, chunk.size()));
                },
            );
            if update.scans() {
                Self::ns2_scan(update, flight, side.counts(cmt), paths, tally);
            }
            for (tsn, path, transmissions, size) in reneged {
                stats.reneged += 1;
                paths[path].data_back(tsn, transmissions, size);
                paths[path].start_t3(now);
            }
        }
        for path in stops_t3 {
            tally[path.index()].stops_t3 = true;
        }
        self.sample_round_trips(now, &report.acked);
        self.sending.sack.report = Some(report);
        result
    }

    /// Reports the chunks that no earlier SACK had acknowledged to the rule for windows. With CMT,
    /// `counts` decides whether an acknowledged one counts towards partial_bytes_acked.
    fn ns2_scan(
        update: &mut dyn CwndUpdate,
        flight: &mut InFlight,
        mut counts: Option<impl FnMut(Tsn) -> bool>,
        paths: &Paths,
        tally: &mut [PathTally],
    ) {
        flight.for_each_scanned(counts.is_some(), |tsn, chunk| {
            let newly_acked = chunk.fate == Fate::Acked;
            update.on_scan(&ScannedChunk {
                tsn,
                path: chunk.path,
                retransmitted: chunk.transmissions > 1,
                newly_acked,
            });
            let window = paths[chunk.path].window();
            if let Some(counts) = &mut counts
                && newly_acked
                && window.cwnd > window.ssthresh
                && pseudo_cumulative(update).is_some_and(|cuc| cuc.has_moved(chunk.path))
                && counts(tsn)
            {
                tally[chunk.path.index()].counted += chunk.size();
            }
        });
    }

    /// Counts missing reports, and marks the chunks that they find lost. True if there are any.
    fn ns2_count_missing_reports(&mut self, view: &SackView<'_>) -> bool {
        let Sending { flight, loss, cwnd_update, sack, .. } = &mut self.sending;
        let missing = &mut sack.missing;
        missing.clear();
        let highest = self.side.notes().noted_highest().unwrap_or_else(|| flight.highest());
        let (horizon, lost) = (loss.horizon(view), loss.includes_lost());
        flight.for_each_missing(horizon, lost, |tsn, chunk| {
            let mut c = chunk.as_missing(tsn, cwnd_update.recover(chunk.path));
            c.reports += loss.reports(&c, view);
            chunk.reports = c.reports;
            if loss.is_lost(&c) {
                // Set it now, because the chunk may be marked again before it is sent.
                chunk.own_recover = Some(highest);
                missing.push((tsn, chunk.path, chunk.size()));
            }
        });
        for &(tsn, path, size) in &*missing {
            if flight.mark_lost(tsn, LossCause::FastRetransmit) {
                let p = &mut self.paths[path];
                p.data_lost(size);
                p.count_loss();
            }
        }
        !missing.is_empty()
    }

    /// Grows the windows of paths with acknowledged data.
    fn ns2_update_windows(&mut self, now: Time, view: &SackView<'_>, tally: &[PathTally]) {
        for (path, t) in self.paths.ids().zip(tally) {
            if t.acked == 0 {
                continue;
            }
            let ack = PathAck {
                acked: t.acked,
                acked_by_gaps: t.acked_by_gaps,
                advanced: view.advanced,
                in_flight_before: t.in_flight_before,
                paced: false,
                may_grow: self.sending.cwnd_update.may_grow(path, view),
                recovering: false,
                rtt: None,
                delivery: None,
            };
            self.apply_ack(now, path, &ack);
        }
    }
}
