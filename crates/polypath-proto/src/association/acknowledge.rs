//! Received SACKs: acknowledged and missing chunks, and the consequences (RFC 9260 6.2.1, 6.3,
//! 7.2).

use super::Association;
use crate::event::Event;
use crate::extension::Extension;
use crate::ids::{PathId, Tsn};
use crate::path::{Path, PathState};
use crate::paths::Paths;
use crate::policy::congestion::PathAck;
use crate::policy::cwnd_update::ScannedChunk;
use crate::policy::failover::Doubts;
use crate::policy::loss::{self, MissingChunk, SackView};
use crate::policy::retransmission::LossCause;
use crate::policy::rtt_sampling::{AckedChunk, SackCause};
use crate::send::{Fate, Outstanding, PathTally, Sending};
use crate::time::Time;
use crate::wire::{COMMON_HEADER_LEN, GapBlock, Sack};

/// The highest TSNs that a SACK newly acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct NewlyAcked {
    cumulatively: Option<Tsn>,
    by_gaps: Option<Tsn>,
    /// The cumulative ack acknowledges a chunk that had been fast retransmitted.
    fast_retransmitted: bool,
}

impl NewlyAcked {
    fn highest(self) -> Option<Tsn> {
        // Gap ack blocks are above the cumulative TSN ack.
        self.by_gaps.or(self.cumulatively)
    }
}

impl Association {
    /// Processes a SACK (RFC 9260 6.2.1). False if it was discarded or ended the association.
    pub(super) fn handle_sack(&mut self, now: Time, sack: &Sack<'_>) -> bool {
        self.stats.sacks_received += 1;
        self.ns2_allow_new_data();
        let cumulative = sack.cumulative_tsn_ack;
        let outstanding = self.sending.flight.next_tsn().offset_from(cumulative);
        // RFC 9260 6.2.1 (D i): "If Cumulative TSN Ack is less than the Cumulative TSN Ack Point,
        // then drop the SACK chunk": it is late.
        if cumulative.is_before(self.sending.flight.ack_point()) {
            self.stats.dropped += 1;
            return false;
        }
        let flight = &self.sending.flight;
        let unsent = |g: GapBlock| {
            u32::from(g.end) >= outstanding
                || flight.has_reserved_in(g.first(cumulative), g.last(cumulative))
        };
        if cumulative.is_after(flight.highest())
            || flight.has_reserved_in(flight.ack_point().next(), cumulative)
            || sack.all_gaps().any(|g| g.is_sound() && unsent(g))
        {
            if self.is_renumbered() {
                // It may have been sent before the reset, and be late.
                self.stats.dropped += 1;
            } else {
                self.violation("it acknowledged data that was never sent");
            }
            return false;
        }
        let counted = self.handshake.has(Extension::PacketCount);
        let packets = counted.then(|| sack.packets());
        // By ns-2's procedures a SACK without gap ack blocks revokes nothing that earlier ones
        // acknowledged. The module's receiver never drops data again; a receiver that did shows it
        // by a cumulative TSN ack just below that data.
        let silent = self.is_ns2()
            && !self.is_ns2_cmt()
            && sack.all_gaps().next().is_none()
            && self.sending.flight.get(cumulative.next()).is_none_or(|c| c.fate != Fate::Acked);
        self.acknowledge(now, cumulative, (!silent).then(|| sack.all_gaps()), packets);
        if self.is_closed() {
            return false;
        }
        if self.is_ns2_cmt() {
            self.ns2_cmt_set_window(sack.a_rwnd);
        } else {
            self.sending.set_window(sack.a_rwnd);
        }
        self.sending.heard = true;
        self.note_heard();
        self.resend_refused_probe();
        self.abandon_hopeless(now);
        self.repeat_forward(now);
        self.advance_shutdown(now);
        !self.is_closed()
    }

    /// Retransmits a window probe once the window has opened, which had no room for it: waiting for
    /// T3-rtx would be in vain. The loss is not a sign of congestion, so no window is cut.
    fn resend_refused_probe(&mut self) {
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
        self.grant_allowance(path);
        if self.is_ns2_cmt() {
            self.ns2_cmt_begin(true);
        } else if self.is_ns2() {
            self.ns2_after_sack(true);
        }
    }

    /// Processes a SHUTDOWN's cumulative TSN ack, which comes without gap ack blocks (RFC 9260
    /// 9.2). A TSN that was never sent acknowledges nothing: pion up to 1.8 puts its own ack point
    /// there.
    pub(super) fn handle_shutdown_ack_point(&mut self, now: Time, cumulative: Tsn) {
        let flight = &self.sending.flight;
        if cumulative.is_before(flight.ack_point())
            || cumulative.is_after(flight.highest())
            || flight.has_reserved_in(flight.ack_point().next(), cumulative)
        {
            return;
        }
        self.sending.sack.cause = SackCause::default();
        self.acknowledge(now, cumulative, None::<std::iter::Empty<GapBlock>>, None);
    }

    /// `packets` is the number of packets with DATA that the SACK answers, if it reports that.
    fn acknowledge(
        &mut self,
        now: Time,
        cumulative: Tsn,
        gaps: Option<impl Iterator<Item = GapBlock>>,
        packets: Option<u32>,
    ) {
        let was_done = self.sending.is_done();
        let (ns2, cmt) = (self.is_ns2(), self.is_ns2_cmt());
        let advanced = cumulative.is_after(self.sending.flight.ack_point());
        let mut tally = std::mem::take(&mut self.sending.sack.tally);
        tally.paths.clear();
        tally.paths.extend(self.paths.iter().map(|p| {
            let lost = if ns2 { p.lost() } else { 0 };
            PathTally { in_flight_before: p.in_flight() + lost, ..Default::default() }
        }));
        let silent = gaps.is_none();
        let newly = self.take_acknowledged(now, cumulative, gaps, &mut tally.paths);
        tally.newly_acked_on.clear();
        tally.newly_acked_on.extend(tally.paths.iter().map(|p| p.newly_acked));
        let view = SackView {
            cumulative,
            advanced,
            highest_newly_acked: newly.highest(),
            newly_acked_cumulatively: newly.cumulatively,
            newly_acked_by_gaps: newly.by_gaps,
            newly_acked_on: &tally.newly_acked_on,
            last_sent: tally.newly_acked_on.iter().filter_map(|on| on.last_sent).max(),
            packets,
            highest_acked: if silent { cumulative } else { self.sending.flight.highest_acked() },
        };
        if newly.highest().is_some() {
            // RFC 9260 8.1: any DATA chunk acknowledged.
            self.paths.clear_association_errors();
        }
        self.sending.cwnd_update.on_sack(&view);
        self.sending.loss.on_sack(&view);
        if ns2 {
            if newly.fast_retransmitted {
                self.ns2_limit_burst();
            }
            if cmt {
                let found = self.count_missing_reports(now, &view, &mut tally.paths);
                self.ns2_cmt_after_sack(now, &view, &tally.paths, found);
            } else {
                self.update_windows(&view, &tally.paths);
                let found = self.count_missing_reports(now, &view, &mut tally.paths);
                self.ns2_after_sack(found);
            }
        } else {
            // RFC 9260 7.2.4: "if the received SACK chunk also acknowledges new DATA chunks and
            // advances the Cumulative TSN Ack Point, the cwnd adjustment rules defined in Sections
            // 7.2.1 and 7.2.2 MUST be applied first."
            self.update_windows(&view, &tally.paths);
            self.count_missing_reports(now, &view, &mut tally.paths);
        }
        for (path, t) in self.paths.ids().zip(&tally.paths) {
            if cmt {
                // Updated together with the windows.
            } else if ns2 {
                self.ns2_update_t3(now, path, t.stops_t3);
            } else {
                self.update_t3(now, path);
                if t.earliest {
                    // RFC 9260 6.3.2 (R3): "the DATA chunk with the earliest outstanding TSN for
                    // that address" is acknowledged, because all below it are as well.
                    self.paths[path].restart_t3(now);
                }
            }
            self.paths[path].acknowledged(now, t.acked);
            if t.acked > 0 {
                self.paths[path].set_timed_out(false);
            }
            if t.answered {
                self.paths.answered(now, path, &mut self.events);
                if !ns2 {
                    self.paths[path].end_back_off(now);
                }
            }
            let (rule, limited) = (self.config.burst_rule(), newly.fast_retransmitted && !ns2);
            let p = &self.paths[path];
            self.sending.burst.acknowledged(rule, p, t.in_flight_before, limited);
        }
        self.sending.sack.tally = tally;
        self.tell_if_writable();
        self.tell_if_drained(was_done);
    }

    /// Removes acknowledged chunks from flight; returns the highest newly acknowledged TSNs.
    fn take_acknowledged(
        &mut self,
        now: Time,
        cumulative: Tsn,
        gaps: Option<impl Iterator<Item = GapBlock>>,
        tally: &mut [PathTally],
    ) -> NewlyAcked {
        let ns2 = self.is_ns2();
        let multiple = ns2 && self.config.loss().name == loss::MULTIPLE_FAST_RETRANSMIT.name;
        let cmt = self.is_ns2_cmt();
        let Self { paths, sending, stats, config, ns2: notes, .. } = self;
        let Sending { cwnd_update, flight, buffered, sack, .. } = sending;
        let acked = &mut sack.acked;
        let update = &mut **cwnd_update;
        update.begin(paths.len());
        acked.clear();
        let mut result = NewlyAcked::default();
        let failed = |p: &Path| p.state() == PathState::Inactive;
        let dormant = paths.iter().all(failed);
        let mut newly = |paths: &mut Paths, tsn: Tsn, chunk: &Outstanding, fate, by_gaps| {
            // RFC 9260 8.2 leaves open which path an acknowledgement credits.
            let given_up = fate == Fate::Lost(LossCause::Timeout);
            let believed = if ns2 {
                Self::ns2_believes(config, &paths[chunk.path], chunk, fate, by_gaps)
            } else {
                paths.failover.believes(Doubts { wandered: chunk.wandered, given_up, dormant })
            };
            let path = &mut paths[chunk.path];
            let t = &mut tally[chunk.path.index()];
            if let Some(search) = &mut path.mtu_search {
                search.acknowledged(chunk.size() as usize + COMMON_HEADER_LEN);
            }
            t.acked += chunk.size();
            t.acked_by_gaps += if by_gaps { chunk.size() } else { 0 };
            t.answered |= believed;
            t.newly_acked.note(tsn, by_gaps);
            // RFC 8985 6.2 (2): an acknowledgement that arrives sooner than the shortest round trip
            // is for an earlier transmission.
            let age = now.since(chunk.sent);
            if chunk.transmissions == 1 || path.shortest_rtt().is_some_and(|rtt| age >= rtt) {
                t.newly_acked.note_sent(chunk.sent);
            }
            t.earliest |= fate == Fate::InFlight && !by_gaps;
            match fate {
                Fate::InFlight => path.data_gone(chunk.size()),
                Fate::Lost(_) => path.lost_gone(chunk.size()),
                Fate::Acked | Fate::Abandoned | Fate::Reserved => {}
            }
            let measured = if ns2 {
                path.end_any_rtt_probe(tsn, by_gaps) && !given_up
            } else {
                path.end_rtt_probe(tsn)
            };
            acked.push(AckedChunk {
                path: chunk.path,
                sent: chunk.sent,
                transmissions: chunk.transmissions,
                measured,
            });
        };
        let mut stops_t3 = Vec::new();
        flight.ack_cumulative(cumulative, |tsn, chunk, fate| {
            *buffered -= chunk.payload.len();
            result.fast_retransmitted |= chunk.ever_fast_retransmitted;
            if ns2 {
                if fate == Fate::Acked {
                    paths[chunk.path].forget_rtt_probe(tsn);
                }
                let p = &paths[chunk.path];
                let stops = !cmt
                    || Self::ns2_cmt_stops_t3(update.left_edges(p.id()), p.t3().is_some(), tsn);
                if stops && stops_t3.last() != Some(&chunk.path) {
                    stops_t3.push(chunk.path);
                }
            }
            if fate != Fate::Acked {
                update.on_cumulatively_acked(chunk.path);
            }
            // RFC 3758 3.5 A2: an abandoned chunk was counted as acknowledged at once, and not for
            // the window.
            if !matches!(fate, Fate::Acked | Fate::Abandoned) {
                result.cumulatively = Some(tsn);
                newly(paths, tsn, &chunk, fate, false);
            }
        });
        if let Some(gaps) = gaps {
            let first = if ns2 { flight.first_on(paths.len()) } else { Vec::new() };
            if multiple {
                notes.highest_outstanding(flight);
            }
            let mut reneged = Vec::new();
            flight.ack_gaps(
                gaps,
                |tsn, chunk, fate| {
                    if ns2 && first[chunk.path.index()] == Some(tsn) {
                        stops_t3.push(chunk.path);
                    }
                    if fate != Fate::Abandoned {
                        result.by_gaps = Some(tsn);
                        newly(paths, tsn, chunk, fate, true);
                    }
                },
                |tsn, chunk| {
                    if !ns2 {
                        chunk.reports = 0;
                    }
                    if !chunk.abandoned {
                        reneged.push((tsn, chunk.path, chunk.transmissions, chunk.size()));
                    }
                },
            );
            if update.scans() {
                flight.for_each_scanned(cmt, |tsn, chunk| {
                    let newly_acked = chunk.fate == Fate::Acked;
                    update.on_scan(&ScannedChunk {
                        tsn,
                        path: chunk.path,
                        retransmitted: chunk.transmissions > 1,
                        newly_acked,
                    });
                    let window = paths[chunk.path].window();
                    if cmt
                        && newly_acked
                        && window.cwnd > window.ssthresh
                        && update.has_moved(chunk.path)
                        && !std::mem::replace(&mut chunk.counted, true)
                    {
                        tally[chunk.path.index()].counted += chunk.size();
                    }
                });
            }
            // RFC 9260 6.2.1 (D iii): a chunk that is no longer acknowledged is outstanding again;
            // T3-rtx runs for it (R4).
            for (tsn, path, transmissions, size) in reneged {
                stats.reneged += 1;
                // "Count one miss indication towards Fast Retransmit", unless this SACK reports it
                // anyway.
                if !ns2
                    && result.highest().is_none_or(|highest| !tsn.is_before(highest))
                    && let Some(chunk) = flight.get_mut(tsn)
                {
                    chunk.reports = 1;
                }
                paths[path].data_back(tsn, transmissions, size);
                paths[path].start_t3(now);
            }
        }
        for path in stops_t3 {
            tally[path.index()].stops_t3 = true;
        }
        self.sample_round_trips(now);
        result
    }

    /// Takes the round-trip samples of the current SACK (RFC 9260 6.3.1).
    fn sample_round_trips(&mut self, now: Time) {
        let Sending { rtt_sampling, sack, .. } = &mut self.sending;
        rtt_sampling.samples(now, &sack.cause, &sack.acked, self.paths.view(), &mut sack.samples);
        for (path, rtt) in sack.samples.drain(..) {
            self.paths[path].sample_rtt(rtt);
        }
    }

    /// Counts missing reports, and marks the chunks that they find lost for fast retransmission
    /// (RFC 9260 7.2.4). True if there are any.
    fn count_missing_reports(
        &mut self,
        now: Time,
        view: &SackView<'_>,
        tally: &mut [PathTally],
    ) -> bool {
        let ns2 = self.is_ns2();
        let Sending { flight, loss, cwnd_update, sack, .. } = &mut self.sending;
        let missing = &mut sack.missing;
        missing.clear();
        let highest = self.ns2.noted_highest().unwrap_or_else(|| flight.highest());
        let (horizon, lost) = (loss.horizon(view), loss.looks_at_lost());
        flight.for_each_missing(horizon, lost, |tsn, chunk| {
            let mut c = MissingChunk {
                tsn,
                path: chunk.path,
                reports: chunk.reports,
                fast_retransmitted: chunk.fast_retransmitted,
                ever_fast_retransmitted: chunk.ever_fast_retransmitted,
                own_recover: chunk.own_recover,
                transmissions: chunk.transmissions,
                sent: chunk.sent,
                recover: cwnd_update.recover(chunk.path),
            };
            c.reports += loss.reports(&c, view);
            chunk.reports = c.reports;
            if loss.is_lost(&c) {
                if ns2 {
                    // Set it now, because the chunk may be marked again before it is sent.
                    chunk.own_recover = Some(highest);
                }
                missing.push((tsn, chunk.path, chunk.size()));
            }
        });
        if missing.is_empty() {
            return false;
        }
        let lost = std::mem::take(missing);
        let concurrent = self.sending.scheduler.is_concurrent();
        for &(tsn, path, size) in &lost {
            let sent = self.sending.flight.get(tsn).map_or(now, |chunk| chunk.sent);
            let was_in_flight = self.sending.flight.mark_lost(tsn, LossCause::FastRetransmit);
            let p = &mut self.paths[path];
            if was_in_flight {
                p.data_lost(size);
                p.count_loss();
            }
            if ns2 {
                continue;
            }
            p.drop_rtt_probe(tsn);
            // RFC 3758 3.5 F5: "the appropriate congestion adjustment MUST be made" for a chunk
            // that was abandoned in flight as well.
            //
            // A chunk sent before T3-rtx expired belongs to the flight for which the timeout has
            // cut the window (RFC 6675 5.1: no new recovery for it).
            let cut_for = p.last_timeout().is_some_and(|timeout| sent < timeout);
            if !tally[path.index()].lost && !cut_for {
                tally[path.index()].lost = true;
                // In CMT each path recovers by itself.
                let own = if concurrent { p.highest_sent() } else { None };
                let exit = own.unwrap_or(highest);
                let cut = self.sending.cwnd_update.on_fast_retransmit(path, tsn, exit);
                if cut {
                    // RFC 9260 7.2.4 (2): the windows of those paths are cut once per window.
                    let view = self.paths.view();
                    let w = self.sending.congestion.on_fast_retransmit(&view.path(path), view);
                    self.paths[path].set_window(w);
                    // RFC 9260 7.2.4 (3): the first packet is sent regardless of the window.
                    self.grant_allowance(path);
                }
            }
        }
        self.sending.sack.missing = lost;
        if ns2 && !self.is_ns2_cmt() {
            self.ns2_cut();
        }
        true
    }

    /// Grows the windows of paths with acknowledged data (RFC 9260 7.2.1, 7.2.2).
    fn update_windows(&mut self, view: &SackView<'_>, tally: &[PathTally]) {
        for (path, t) in self.paths.ids().zip(tally) {
            if t.acked == 0 {
                continue;
            }
            let ack = PathAck {
                acked: t.acked,
                acked_by_gaps: t.acked_by_gaps,
                advanced: view.advanced,
                counted: None,
                in_flight_before: t.in_flight_before,
                may_grow: self.sending.cwnd_update.may_grow(path, view),
            };
            let paths = self.paths.view();
            let window = self.sending.congestion.on_ack(&paths.path(path), &ack, paths);
            self.paths[path].set_window(window);
        }
    }

    /// RFC 9260 6.3.2: R2 stops T3-rtx when nothing is outstanding on the path. In the spirit of
    /// R3, T3-rtx restarts when the chunk that was outstanding for the longest time no longer is,
    /// whatever its TSN.
    pub(super) fn update_t3(&mut self, now: Time, path: PathId) {
        let flight = &self.sending.flight;
        let p = &mut self.paths[path];
        let gone = p.oldest_is_gone(|s| {
            flight.get(s.tsn).is_some_and(|c| {
                c.fate == Fate::InFlight && c.path == path && c.transmissions == s.transmissions
            })
        });
        if gone {
            p.restart_t3(now);
        }
    }

    pub(super) fn tell_if_writable(&mut self) {
        if self.sending.starved && self.send_room() * 2 >= self.config.send_buffer() as usize {
            self.sending.starved = false;
            self.events.push_always(Event::Writable);
        }
    }
}
