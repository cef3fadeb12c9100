//! Chunks that a SACK acknowledges or leaves missing.

use super::outstanding::{Fate, Outstanding};
use super::spans::{
    Span, covers, difference, difference_in_runs, intersection, reach_above, spans_of, union,
};
use super::{InFlight, SPARE_CHUNKS};
use crate::ids::Tsn;
use crate::wire::{GapBlock, Sack};

/// What a SACK shows about chunks outside of its gap blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// They have not arrived.
    Missing,
    /// Those below the last block have not arrived: there was no room for further blocks.
    MissingBelow,
    /// Nothing: blocks were left out.
    Unknown,
}

/// Most runs of non-renegable chunks whose payload is freed before the cumulative ack.
const MOST_KEPT: usize = 512;

impl InFlight {
    /// Removes every chunk up to `cumulative`; calls `each` with the chunk and its last fate.
    pub(crate) fn ack_cumulative(
        &mut self,
        cumulative: Tsn,
        mut each: impl FnMut(Tsn, &Outstanding, Fate),
    ) {
        let n = (cumulative.next().offset_from(self.first) as usize).min(self.ring.len());
        for chunk in self.ring.range(..n) {
            let (tsn, fate) = (self.first, chunk.fate);
            match fate {
                Fate::InFlight => self.bytes -= chunk.size(),
                Fate::Lost(_) => {
                    self.lost.remove(&self.first_place);
                }
                Fate::Acked | Fate::Abandoned => {}
                Fate::Reserved => self.reserved.remove(self.first_place, chunk.size()),
            }
            self.reserved.gone(chunk);
            if self.resets.front() == Some(&self.first_place) {
                self.resets.pop_front();
            }
            self.abandoned -= usize::from(chunk.is_abandoned());
            self.numbered -= usize::from(chunk.is_numbered());
            self.first = self.first.next();
            self.first_place += 1;
            each(tsn, chunk, fate);
        }
        self.ring.drain(..n);
        let (len, capacity) = (self.ring.len(), self.ring.capacity());
        if capacity > SPARE_CHUNKS && len < capacity / 4 {
            self.ring.shrink_to(capacity / 2);
        }
        self.advance_skippable();
        let first = self.first_place;
        for spans in [&mut self.acked, &mut self.kept] {
            let below = spans.partition_point(|s| s.1 < first);
            spans.drain(..below);
            if let Some(span) = spans.first_mut() {
                span.0 = span.0.max(first);
            }
        }
    }

    /// Processes the gap blocks of a SACK whose cumulative TSN ack is the ack point. Calls `acked`
    /// with each chunk that they newly acknowledge and its former fate, and `reneged` with each
    /// chunk that an earlier SACK acknowledged and this one does not. Blocks that do not ascend are
    /// ignored. What the SACK does not show stays as it is.
    pub(crate) fn ack_gaps(
        &mut self,
        gaps: impl Iterator<Item = GapBlock>,
        outside: Outside,
        mut acked: impl FnMut(Tsn, &mut Outstanding, Fate),
        mut reneged: impl FnMut(Tsn, &mut Outstanding),
    ) {
        let mut new = std::mem::take(&mut self.spare);
        spans_of(self.first_place, gaps, &mut new);
        if !self.kept.is_empty() {
            new = union(&new, &self.kept);
        }
        let old = std::mem::take(&mut self.acked);
        match (outside, new.last()) {
            (Outside::MissingBelow, Some(&(_, last))) => {
                let above = old.iter().filter(|s| s.1 > last);
                let above: Vec<Span> = above.map(|s| (s.0.max(last + 1), s.1)).collect();
                new = union(&new, &above);
            }
            (Outside::Unknown, _) => new = union(&new, &old),
            _ => {}
        }
        let mut looked = (old.len() + self.kept.len()) as u64;
        difference(&new, &old, |place| {
            let offset = (place - self.first_place) as usize;
            let chunk = &mut self.ring[offset];
            let fate = std::mem::replace(&mut chunk.fate, Fate::Acked);
            match fate {
                Fate::InFlight => self.bytes -= chunk.size(),
                Fate::Lost(_) => {
                    self.lost.remove(&place);
                }
                Fate::Acked | Fate::Abandoned => {}
                Fate::Reserved => self.reserved.remove(place, chunk.size()),
            }
            acked(self.first.plus(offset as u32), chunk, fate);
        });
        difference(&old, &new, |place| {
            looked += 1;
            let offset = (place - self.first_place) as usize;
            let chunk = &mut self.ring[offset];
            if chunk.is_abandoned() {
                chunk.fate = Fate::Abandoned;
            } else {
                chunk.fate = Fate::InFlight;
                self.bytes += chunk.size();
            }
            reneged(self.first.plus(offset as u32), chunk);
        });
        self.acked = new;
        self.spare = old;
        self.looked += looked;
    }

    /// Frees the payload of the chunks in these non-renegable gap blocks of the last SACK. Returns
    /// the bytes freed.
    pub(crate) fn release(&mut self, gaps: impl Iterator<Item = GapBlock>) -> usize {
        let mut named = Vec::new();
        spans_of(self.first_place, gaps, &mut named);
        if named.is_empty() {
            return 0;
        }
        self.looked += (self.acked.len() + self.kept.len()) as u64;
        let new = union(&intersection(&named, &self.acked), &self.kept);
        if new.len() > MOST_KEPT {
            // Every later SACK is compared with all of these runs: payload beyond the limit is kept
            // until it is cumulatively acknowledged.
            return 0;
        }
        let mut bytes = 0;
        difference(&new, &self.kept, |place| {
            let chunk = &mut self.ring[(place - self.first_place) as usize];
            bytes += std::mem::take(&mut chunk.content.payload).len();
        });
        self.kept = new;
        bytes
    }

    /// Whether this SACK is outdated: it lacks chunks that an earlier one reported as
    /// non-renegable.
    pub(crate) fn reports_more(&self, sack: &Sack<'_>) -> bool {
        if sack.cumulative_tsn_ack != self.ack_point() || self.kept.is_empty() {
            return false;
        }
        let mut named = Vec::new();
        spans_of(self.first_place, sack.all_gaps(), &mut named);
        let mut more = false;
        difference(&self.kept, &named, |_| more = true);
        more
    }

    /// Whether these acknowledgements of a SACK are nothing new, and leave out chunks that an
    /// earlier SACK acknowledged: the earlier one has overtaken it, or the receiver has reneged.
    pub(crate) fn reports_more_than(
        &self,
        cumulative: Tsn,
        gaps: impl Iterator<Item = GapBlock> + Clone,
    ) -> bool {
        let Some(&(_, highest)) = self.acked.last() else { return false };
        if cumulative != self.ack_point() || reach_above(highest, self.first_place, gaps.clone()) {
            return false;
        }
        let mut named = Vec::new();
        spans_of(self.first_place, gaps, &mut named);
        covers(&self.acked, &named) && !covers(&named, &self.acked)
    }

    /// The highest TSN that gap blocks acknowledge, or the ack point.
    pub(crate) fn highest_acked(&self) -> Tsn {
        self.acked.last().map_or_else(|| self.ack_point(), |s| self.tsn_at(s.1))
    }

    /// Calls `each` with every chunk in flight below `horizon` that the last SACK does not
    /// acknowledge, even above its highest gap block. Includes chunks abandoned in flight, and with
    /// `lost` those that wait for retransmission.
    pub(crate) fn for_each_missing(
        &mut self,
        horizon: Tsn,
        lost: bool,
        mut each: impl FnMut(Tsn, &mut Outstanding),
    ) {
        if horizon.is_before(self.first) {
            return;
        }
        let end = self.first_place
            + u64::from(horizon.offset_from(self.first)).min(self.ring.len() as u64);
        let mut place = self.first_place;
        let beyond = (end, end);
        let mut looked = 0;
        for (first, last) in self.acked.iter().copied().chain([beyond]) {
            for p in place..first.min(end) {
                looked += 1;
                let offset = (p - self.first_place) as usize;
                let chunk = &mut self.ring[offset];
                let may_leave = !chunk.is_abandoned() && chunk.fate != Fate::Reserved;
                if chunk.fate == Fate::InFlight || chunk.is_watched() || (lost && may_leave) {
                    each(self.first.plus(offset as u32), chunk);
                }
            }
            place = last + 1;
        }
        self.looked += looked;
    }

    /// Calls `each`, in TSN order, with every chunk up to the highest acknowledged one that was not
    /// yet acknowledged before the last SACK. With `next_too`, the range ends one chunk later.
    pub(crate) fn for_each_scanned(
        &mut self,
        next_too: bool,
        mut each: impl FnMut(Tsn, &mut Outstanding),
    ) {
        let Some(&(_, highest)) = self.acked.last() else { return };
        let last =
            (highest + u64::from(next_too)).min(self.first_place + self.ring.len() as u64 - 1);
        let Self { first, first_place, ring, spare, looked, .. } = self;
        // `spare` holds the runs acknowledged before the last SACK.
        difference_in_runs(&[(*first_place, last)], spare, |place, stop| {
            *looked += stop - place;
            let (from, to) = ((place - *first_place) as usize, (stop - *first_place) as usize);
            let mut tsn = first.plus(from as u32);
            ring.range_mut(from..to).for_each(|chunk| {
                if !chunk.is_abandoned() && chunk.fate != Fate::Reserved {
                    each(tsn, chunk);
                }
                tsn = tsn.next();
            });
        });
    }
}
