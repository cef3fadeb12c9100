//! Applies a SACK to the sender's state (RFC 9260 6.2.1): facts, no decisions.

use super::Sending;
use super::copies::Delivered;
use super::in_flight::acked::Outside;
use super::in_flight::outstanding::{Fate, Outstanding};
use super::report::{PathReport, Reneged, SackReport};
use crate::ids::Tsn;
use crate::path::Earlier;
use crate::paths::Paths;
use crate::policy::retransmission::LossCause;
use crate::policy::rtt_sampling::AckedChunk;
use crate::time::Time;
use crate::wire::{COMMON_HEADER_LEN, GapBlock, Sack};

/// A SACK that is at most this many bytes shorter than a packet may have had no room for another
/// gap ack block: chunks of other extensions, and a layer below SCTP, take some.
const FULL_SLACK: usize = 100;

/// The acknowledgements of a SACK or of a SHUTDOWN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    /// The cumulative TSN ack.
    pub(crate) cumulative: Tsn,
    /// The gap ack blocks; none in a SHUTDOWN.
    pub(crate) sack: Option<&'a Sack<'a>>,
    /// Number of packets with DATA that it answers, if it reports that.
    pub(crate) packets: Option<u32>,
}

impl Sending {
    /// Whether a SACK acknowledges data that was never sent.
    pub(crate) fn acknowledges_unsent(&self, sack: &Sack<'_>) -> bool {
        let (flight, cumulative) = (&self.flight, sack.cumulative_tsn_ack);
        let outstanding = flight.next_tsn().offset_from(cumulative);
        let unsent = |g: GapBlock| {
            g.end >= outstanding || flight.has_reserved_in(g.first(cumulative), g.last(cumulative))
        };
        self.cumulative_is_unsent(cumulative) || sack.all_gaps().any(|g| g.is_sound() && unsent(g))
    }

    /// Whether a cumulative TSN ack acknowledges data that was never sent.
    pub(crate) fn cumulative_is_unsent(&self, cumulative: Tsn) -> bool {
        cumulative.is_after(self.flight.highest())
            || self.flight.has_reserved_in(self.flight.ack_point().next(), cumulative)
    }

    /// Applies an acknowledgement, which is neither late nor for data never sent. Removes what it
    /// acknowledges from flight, returns what the receiver has reneged on to it, and fills in
    /// `report`.
    pub(crate) fn apply(
        &mut self,
        now: Time,
        ack: Acknowledgement<'_>,
        paths: &mut Paths,
        report: &mut SackReport,
    ) {
        report.begin(now, paths.iter().map(|p| p.in_flight()));
        report.cumulative = ack.cumulative;
        report.advanced = ack.cumulative.is_after(self.flight.ack_point());
        report.selective = ack.sack.is_some();
        report.packets = ack.packets;
        report.cause = self.sack.cause;
        self.apply_cumulative(now, ack.cumulative, paths, report);
        report.highest_acked = ack.cumulative;
        if let Some(sack) = ack.sack {
            self.apply_gaps(now, sack, paths, report);
            report.highest_acked = self.flight.highest_acked();
            // Of a chunk that was sent in copies, a duplicate shows nothing about retransmissions.
            report.duplicates.extend(sack.duplicates().filter(|tsn| !self.copies.include(*tsn)));
        }
        report.newly_acked_on.extend(report.paths.iter().map(|p| p.newly_acked));
    }

    fn apply_cumulative(
        &mut self,
        now: Time,
        cumulative: Tsn,
        paths: &mut Paths,
        report: &mut SackReport,
    ) {
        let (buffered, copies) = (&mut self.buffered, &self.copies);
        self.flight.ack_cumulative(cumulative, |tsn, chunk, fate| {
            *buffered -= chunk.content.payload.len();
            report.fast_retransmitted |= chunk.was_fast_retransmitted();
            if fate != Fate::Acked {
                report.paths[chunk.path.index()].cumulatively = true;
            }
            // RFC 3758 3.5 A2: an abandoned chunk was counted as acknowledged at once, and not for
            // the window.
            if !matches!(fate, Fate::Acked | Fate::Abandoned) {
                report.highest_cumulatively = Some(tsn);
                report.paths[chunk.path.index()].earliest |= fate == Fate::InFlight;
                let by = copies.delivered(now, paths, tsn, chunk);
                let tally = &mut report.paths;
                report.acked.push(newly_acked(now, paths, tally, (tsn, chunk), fate, (by, false)));
            }
        });
    }

    fn apply_gaps(
        &mut self,
        now: Time,
        sack: &Sack<'_>,
        paths: &mut Paths,
        report: &mut SackReport,
    ) {
        // RFC 9260 6.2: "as many Gap Ack Blocks as can fit in a single SACK chunk": one that fills
        // a packet shows nothing about chunks above its last block.
        let most = paths.iter().map(|p| p.max_packet()).min().unwrap_or_default();
        let full = self.loss.watches_time() && sack.chunk_len() + FULL_SLACK >= most;
        let outside = match full {
            _ if self.partial_sacks && sack.is_partial() => Outside::Unknown,
            true => Outside::MissingBelow,
            false => Outside::Missing,
        };
        for path in paths.iter_mut() {
            if let Some(sampler) = path.sampler() {
                sampler.set_blind(outside == Outside::MissingBelow);
            }
        }
        let SackReport { paths: tally, acked, reneged, highest_by_gaps, .. } = report;
        let copies = &self.copies;
        self.flight.ack_gaps(
            sack.all_gaps(),
            outside,
            |tsn, chunk, fate| {
                if fate != Fate::Abandoned {
                    *highest_by_gaps = Some(tsn);
                    let by = copies.delivered(now, paths, tsn, chunk);
                    acked.push(newly_acked(now, paths, tally, (tsn, chunk), fate, (by, true)));
                }
            },
            |tsn, chunk| {
                chunk.reports = 0;
                if !chunk.is_abandoned() {
                    let (path, transmissions, size) =
                        (chunk.path, chunk.transmissions, chunk.size());
                    reneged.push(Reneged { tsn, path, transmissions, size });
                }
            },
        );
        // RFC 9260 6.2.1 (D iii): a chunk that is no longer acknowledged is outstanding again.
        let highest = report.highest_newly_acked();
        for r in &report.reneged {
            // "Count one miss indication towards Fast Retransmit", unless this SACK reports it
            // anyway.
            if highest.is_none_or(|highest| !r.tsn.is_before(highest))
                && let Some(chunk) = self.flight.get_mut(r.tsn)
            {
                chunk.reports = 1;
            }
            paths[r.path].data_back(r.tsn, r.transmissions, r.size);
        }
    }
}

/// Accounts for a newly acknowledged chunk, which had this fate, on the path that it was last sent
/// on. The acknowledgement is credited to the path of the transmission `by`, perhaps of a copy.
fn newly_acked(
    now: Time,
    paths: &mut Paths,
    tally: &mut [PathReport],
    (tsn, chunk): (Tsn, &Outstanding),
    fate: Fate,
    (by, by_gaps): (Delivered, bool),
) -> AckedChunk {
    let Delivered { path: credited, sent, certain } = by;
    let transmissions = chunk.transmissions + u32::from(chunk.copies);
    let size = chunk.size();
    let t = &mut tally[credited.index()];
    t.acked += size;
    t.acked_by_gaps += if by_gaps { size } else { 0 };
    t.evidence.note(chunk.has_moved(), fate == Fate::Lost(LossCause::Timeout));
    t.answered |= certain;
    t.newly_acked.note(tsn);
    // RFC 8985 6.2 (2): an acknowledgement that arrives sooner than the shortest round trip is for
    // an earlier transmission.
    let age = now.since(sent);
    if transmissions == 1 || paths[credited].shortest_rtt().is_some_and(|rtt| age >= rtt) {
        t.newly_acked.note_sent(sent);
    }
    let path = &mut paths[chunk.path];
    if credited == chunk.path {
        if let Some(search) = &mut path.mtu_search {
            search.acknowledged(size as usize + COMMON_HEADER_LEN);
        }
        if let Some(sampler) = path.sampler() {
            let earlier = match transmissions {
                0 | 1 => Earlier::None,
                _ if chunk.has_moved() => Earlier::Elsewhere,
                _ => Earlier::Here,
            };
            sampler.acknowledged(now, chunk.sent, size, earlier);
        }
    }
    match fate {
        Fate::InFlight => path.data_gone(size),
        Fate::Lost(_) => path.lost_gone(size),
        Fate::Acked | Fate::Abandoned | Fate::Reserved => {}
    }
    let measured = path.end_rtt_probe(tsn);
    AckedChunk { tsn, bytes: size, path: credited, sent, transmissions, measured }
}
