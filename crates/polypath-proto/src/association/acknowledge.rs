//! Received SACKs: acknowledged and missing chunks, and the consequences (RFC 9260 6.2.1, 6.3,
//! 7.2).

use super::Association;
use crate::event::Event;
use crate::extension::Extension;
use crate::ids::{PathId, Tsn};
use crate::path::PathState;
use crate::paths::Paths;
use crate::policy::congestion::PathAck;
use crate::policy::cwnd_update::ScannedChunk;
use crate::policy::failover::Doubts;
use crate::policy::loss::SackView;
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
        self.procedures.on_sack(self);
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
        self.procedures.acknowledge(self, now, cumulative, Some(sack), packets);
        if self.is_closed() {
            return false;
        }
        self.procedures.set_window(self, sack.a_rwnd);
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
        self.procedures.on_probe_refused(self);
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
        self.procedures.acknowledge(self, now, cumulative, None, None);
    }

    /// Processes the acknowledgements of a SACK, or, without one, of a SHUTDOWN. `packets` is the
    /// number of packets with DATA that the SACK answers, if it reports that.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        cumulative: Tsn,
        sack: Option<&Sack<'_>>,
        packets: Option<u32>,
    ) {
        let was_done = self.sending.is_done();
        let advanced = cumulative.is_after(self.sending.flight.ack_point());
        let mut tally = std::mem::take(&mut self.sending.sack.tally);
        tally.paths.clear();
        tally.paths.extend(
            self.paths
                .iter()
                .map(|p| PathTally { in_flight_before: p.in_flight(), ..Default::default() }),
        );
        let newly = self.take_acknowledged(now, cumulative, sack, &mut tally.paths);
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
            highest_acked: match sack {
                Some(_) => self.sending.flight.highest_acked(),
                None => cumulative,
            },
        };
        if newly.highest().is_some() {
            // RFC 9260 8.1: any DATA chunk acknowledged.
            self.paths.clear_association_errors();
        }
        self.sending.cwnd_update.on_sack(&view);
        self.sending.loss.on_sack(&view);
        // RFC 9260 7.2.4: "if the received SACK chunk also acknowledges new DATA chunks and
        // advances the Cumulative TSN Ack Point, the cwnd adjustment rules defined in Sections
        // 7.2.1 and 7.2.2 MUST be applied first."
        self.update_windows(&view, &tally.paths);
        self.count_missing_reports(now, &view, &mut tally.paths);
        for (path, t) in self.paths.ids().zip(&tally.paths) {
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
            if t.answered {
                self.paths.answered(now, path, &mut self.events);
                self.paths[path].end_back_off(now);
            }
            let (rule, p) = (self.config.burst_rule(), &self.paths[path]);
            let limited = newly.fast_retransmitted;
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
        sack: Option<&Sack<'_>>,
        tally: &mut [PathTally],
    ) -> NewlyAcked {
        let Self { paths, sending, stats, .. } = self;
        let Sending { cwnd_update, flight, buffered, sack: memory, .. } = sending;
        let acked = &mut memory.acked;
        let update = &mut **cwnd_update;
        update.begin(paths.len());
        acked.clear();
        let mut result = NewlyAcked::default();
        let dormant = paths.iter().all(|p| p.state() == PathState::Inactive);
        let mut newly = |paths: &mut Paths, tsn: Tsn, chunk: &Outstanding, fate, by_gaps| {
            // RFC 9260 8.2 leaves open which path an acknowledgement credits.
            let given_up = fate == Fate::Lost(LossCause::Timeout);
            let believed =
                paths.failover.believes(Doubts { wandered: chunk.wandered, given_up, dormant });
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
            acked.push(AckedChunk {
                path: chunk.path,
                sent: chunk.sent,
                transmissions: chunk.transmissions,
                measured: path.end_rtt_probe(tsn),
            });
        };
        flight.ack_cumulative(cumulative, |tsn, chunk, fate| {
            *buffered -= chunk.payload.len();
            result.fast_retransmitted |= chunk.ever_fast_retransmitted;
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
        if let Some(sack) = sack {
            let mut reneged = Vec::new();
            flight.ack_gaps(
                sack.all_gaps(),
                |tsn, chunk, fate| {
                    if fate != Fate::Abandoned {
                        result.by_gaps = Some(tsn);
                        newly(paths, tsn, chunk, fate, true);
                    }
                },
                |tsn, chunk| {
                    chunk.reports = 0;
                    if !chunk.abandoned {
                        reneged.push((tsn, chunk.path, chunk.transmissions, chunk.size()));
                    }
                },
            );
            if update.scans() {
                flight.for_each_scanned(false, |tsn, chunk| {
                    update.on_scan(&ScannedChunk {
                        tsn,
                        path: chunk.path,
                        retransmitted: chunk.transmissions > 1,
                        newly_acked: chunk.fate == Fate::Acked,
                    });
                });
            }
            // RFC 9260 6.2.1 (D iii): a chunk that is no longer acknowledged is outstanding again;
            // T3-rtx runs for it (R4).
            for (tsn, path, transmissions, size) in reneged {
                stats.reneged += 1;
                // "Count one miss indication towards Fast Retransmit", unless this SACK reports it
                // anyway.
                if result.highest().is_none_or(|highest| !tsn.is_before(highest))
                    && let Some(chunk) = flight.get_mut(tsn)
                {
                    chunk.reports = 1;
                }
                paths[path].data_back(tsn, transmissions, size);
                paths[path].start_t3(now);
            }
        }
        self.sample_round_trips(now);
        result
    }

    /// Takes the round-trip samples of the current SACK (RFC 9260 6.3.1).
    pub(super) fn sample_round_trips(&mut self, now: Time) {
        let Sending { rtt_sampling, sack, .. } = &mut self.sending;
        rtt_sampling.samples(now, &sack.cause, &sack.acked, self.paths.view(), &mut sack.samples);
        for (path, rtt) in sack.samples.drain(..) {
            self.paths[path].sample_rtt(rtt);
        }
    }

    /// Counts missing reports, and marks the chunks that they find lost for fast retransmission
    /// (RFC 9260 7.2.4).
    fn count_missing_reports(&mut self, now: Time, view: &SackView<'_>, tally: &mut [PathTally]) {
        let Sending { flight, loss, cwnd_update, sack, .. } = &mut self.sending;
        let missing = &mut sack.missing;
        missing.clear();
        let highest = flight.highest();
        let (horizon, lost) = (loss.horizon(view), loss.looks_at_lost());
        flight.for_each_missing(horizon, lost, |tsn, chunk| {
            let mut c = chunk.as_missing(tsn, cwnd_update.recover(chunk.path));
            c.reports += loss.reports(&c, view);
            chunk.reports = c.reports;
            if loss.is_lost(&c) {
                missing.push((tsn, chunk.path, chunk.size()));
            }
        });
        if missing.is_empty() {
            return;
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
