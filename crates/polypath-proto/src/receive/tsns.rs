//! Tracking of received TSNs: the cumulative TSN, gap blocks and duplicates (RFC 9260 3.3.4, 6.2).
//!
//! A TSN's place counts TSNs from the association's first one and does not wrap; structures sorted
//! by TSN use places as keys.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::allocation::tree;
use crate::ids::Tsn;
use crate::wire::GapBlock;

/// Memory of a run of TSNs above a gap.
pub(super) const GAP_RUN: usize = tree(16);

/// Most duplicate TSNs listed in a SACK; further ones are not reported.
const MAX_DUPLICATES: usize = 32;

/// Places that arrived last, which are reported even if not all gap blocks fit: several times, as
/// SACKs may be lost.
const MOST_RECENT: usize = 256;

/// The largest offset of a gap block in 16 bits (RFC 9260 3.3.4).
const NARROW: u32 = 0xffff;

/// The place of the TSN before the first one. Not 0, so that lower TSNs have a place.
const FIRST_PLACE: u64 = 1 << 32;

/// How a TSN relates to those received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// The TSN after the cumulative one.
    InSequence,
    /// New, above or within a gap.
    OutOfSequence,
    /// Received before.
    Duplicate,
}

#[derive(Debug)]
pub(crate) struct TsnTracker {
    initial: Tsn,
    cumulative: Tsn,
    /// The place of `cumulative`.
    place: u64,
    /// The first and the last place of contiguous runs of TSNs, with at least one TSN missing
    /// between neighbours and above `cumulative`.
    runs: BTreeMap<u64, u64>,
    /// Number of TSNs in `runs`.
    above: u64,
    duplicates: Vec<Tsn>,
    /// Largest offset of a gap block.
    reach: u32,
    /// Places above a gap that arrived last, the last one at the end.
    recent: VecDeque<u64>,
}

impl TsnTracker {
    pub(crate) const fn new(initial: Tsn) -> Self {
        Self {
            initial,
            cumulative: initial.prev(),
            place: FIRST_PLACE,
            runs: BTreeMap::new(),
            above: 0,
            duplicates: Vec::new(),
            reach: NARROW,
            recent: VecDeque::new(),
        }
    }

    /// Gap blocks have offsets of 32 bits if 16 do not reach.
    pub(crate) const fn reach_far(&mut self) {
        self.reach = u32::MAX;
    }

    /// Whether the highest gap block needs an offset of 32 bits that the peer reads.
    pub(crate) fn needs_wide_gaps(&self) -> bool {
        self.reach > NARROW && self.highest() - self.place > NARROW.into()
    }

    pub(crate) const fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    /// The place of the cumulative TSN.
    pub(crate) const fn place(&self) -> u64 {
        self.place
    }

    /// The place of a TSN less than half the circle away.
    pub(crate) const fn place_of(&self, tsn: Tsn) -> u64 {
        let offset = tsn.offset_from(self.cumulative).cast_signed();
        self.place.wrapping_add_signed(offset as i64)
    }

    pub(crate) fn tsn_at(&self, place: u64) -> Tsn {
        self.cumulative.plus(place.wrapping_sub(self.place) as u32)
    }

    /// Whether this is the peer's initial TSN.
    pub(crate) fn is_first(&self, tsn: Tsn) -> bool {
        tsn == self.initial
    }

    /// Notes the TSN before the peer's first one as a duplicate.
    pub(crate) fn note_before_first(&mut self) {
        self.note_duplicate(self.initial.prev());
    }

    /// Number of runs above a missing TSN.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    pub(crate) fn has_gap(&self) -> bool {
        !self.runs.is_empty()
    }

    /// The run that holds this place, or ends below it.
    fn run_at_or_below(&self, place: u64) -> Option<(u64, u64)> {
        self.runs.range(..=place).next_back().map(|(&first, &last)| (first, last))
    }

    /// Whether the TSN at this place has arrived or was skipped.
    pub(crate) fn has(&self, place: u64) -> bool {
        place <= self.place || self.run_at_or_below(place).is_some_and(|(_, last)| last >= place)
    }

    /// Classifies `tsn` without recording it.
    pub(crate) fn judge(&self, tsn: Tsn) -> Arrived {
        if !tsn.is_after(self.cumulative) {
            return Arrived::Duplicate;
        }
        if tsn == self.cumulative.next() {
            return Arrived::InSequence;
        }
        if self.has(self.place_of(tsn)) { Arrived::Duplicate } else { Arrived::OutOfSequence }
    }

    pub(crate) fn note_duplicate(&mut self, tsn: Tsn) {
        if self.duplicates.len() < MAX_DUPLICATES {
            self.duplicates.push(tsn);
        }
    }

    /// Advances the cumulative TSN to this place, and on over the run that follows.
    fn advance(&mut self, place: u64) {
        let mut place = place;
        if !self.runs.is_empty() {
            while let Some(run) = self.runs.first_entry().filter(|run| *run.key() <= place + 1) {
                self.above -= run.get() - run.key() + 1;
                place = place.max(run.remove());
            }
        }
        self.cumulative = self.tsn_at(place);
        self.place = place;
        if self.runs.is_empty() {
            self.recent.clear();
        }
    }

    /// Records a TSN that [`judge`](Self::judge) found new.
    pub(crate) fn note(&mut self, tsn: Tsn) {
        let place = self.place_of(tsn);
        if place == self.place + 1 {
            return self.advance(place);
        }
        let last = self.runs.remove(&(place + 1)).unwrap_or(place);
        let below = self.runs.range_mut(..place).next_back();
        match below.filter(|(_, end)| **end + 1 == place) {
            Some((_, end)) => *end = last,
            None => {
                self.runs.insert(place, last);
            }
        }
        self.above += 1;
        if self.recent.len() == MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(place);
    }

    /// Skips the TSNs missing up to `to`, which is above the cumulative TSN (RFC 3758 3.6).
    pub(crate) fn forward(&mut self, to: Tsn) {
        self.advance(self.place_of(to));
    }

    /// Marks received places above the cumulative TSN as missing again, both ends included: their
    /// chunks were dropped (RFC 9260 6.2: reneging).
    pub(crate) fn forget(&mut self, first: u64, last: u64) {
        let Some((from, to)) = self.run_at_or_below(first).filter(|run| run.1 >= last) else {
            return;
        };
        if from == first {
            self.runs.remove(&from);
        } else {
            self.runs.insert(from, first - 1);
        }
        if to > last {
            self.runs.insert(last + 1, to);
        }
        self.above -= last - first + 1;
    }

    /// The place of the highest TSN received.
    pub(crate) fn highest(&self) -> u64 {
        self.runs.last_key_value().map_or(self.place, |(_, &last)| last)
    }

    /// Number of TSNs missing below the highest one received.
    pub(crate) fn missing(&self) -> u64 {
        self.highest() - self.place - self.above
    }

    /// Bytes of memory that the runs take.
    pub(crate) fn memory(&self) -> usize {
        self.runs.len() * GAP_RUN
    }

    /// The gap blocks for a SACK, as far as they reach.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = GapBlock> + '_ {
        self.runs.iter().map_while(|(&first, &last)| self.block(first, last))
    }

    /// `most` of the gap blocks, of which there are more: those with the TSNs that arrived last, of
    /// which the sender may not know yet, in at most half of the room, and otherwise the lowest and
    /// the highest ones.
    pub(crate) fn selected_gaps(&self, most: usize) -> Vec<GapBlock> {
        let mut chosen = BTreeSet::new();
        for &place in self.recent.iter().rev() {
            if chosen.len() >= most.div_ceil(2) {
                break;
            }
            chosen
                .extend(self.run_at_or_below(place).filter(|run| run.1 >= place).map(|run| run.0));
        }
        let half = (most - chosen.len()).div_ceil(2);
        let low: Vec<u64> =
            self.runs.keys().copied().filter(|run| !chosen.contains(run)).take(half).collect();
        chosen.extend(low);
        for run in self.runs.keys().rev() {
            if chosen.len() >= most {
                break;
            }
            chosen.insert(*run);
        }
        let blocks = chosen.iter().map_while(|first| self.block(*first, self.runs[first]));
        blocks.collect()
    }

    /// The parts of the gap blocks up to this place.
    pub(crate) fn gaps_up_to(&self, kept: u64) -> impl Iterator<Item = GapBlock> + '_ {
        let below = self.runs.range(..=kept);
        below.map_while(move |(&first, &last)| self.block(first, last.min(kept)))
    }

    /// The parts of the gap blocks above this place.
    pub(crate) fn gaps_above(&self, kept: u64) -> impl Iterator<Item = GapBlock> + '_ {
        let from =
            self.run_at_or_below(kept).filter(|run| run.1 > kept).map_or(kept + 1, |run| run.0);
        let above = self.runs.range(from..);
        above.map_while(move |(&first, &last)| self.block(first.max(kept + 1), last))
    }

    fn block(&self, first: u64, last: u64) -> Option<GapBlock> {
        Some(GapBlock {
            start: u32::try_from(first - self.place).ok().filter(|start| *start <= self.reach)?,
            end: u32::try_from(last - self.place).unwrap_or(u32::MAX).min(self.reach),
        })
    }

    pub(crate) fn duplicates(&self) -> impl ExactSizeIterator<Item = Tsn> + '_ {
        self.duplicates.iter().copied()
    }

    /// Clears the duplicates after a SACK has reported them.
    pub(crate) fn duplicates_reported(&mut self) {
        self.duplicates.clear();
    }

    /// Checks the runs and their count.
    pub(crate) fn check(&self) -> Result<(), String> {
        let above: u64 = self.runs.iter().map(|(first, last)| last - first + 1).sum();
        let ends = self.runs.iter().map(|run| run.1);
        let apart = std::iter::once(&self.place).chain(ends).zip(self.runs.keys());
        let sound = apart.clone().all(|(end, first)| *first > end + 1);
        if above == self.above && sound && self.runs.iter().all(|(first, last)| first <= last) {
            return Ok(());
        }
        Err(format!(
            "TSNs above {}: {above} in {:?}, counted {}",
            self.place, self.runs, self.above
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn gaps(t: &TsnTracker) -> Vec<(u32, u32)> {
        t.gaps().map(|g| (g.start, g.end)).collect()
    }

    /// RFC 9260 3.3.4: offsets have 16 bits.
    /// The latest arrivals, then the lowest and the highest blocks, in ascending order.
    #[test]
    fn the_most_useful_blocks_are_selected() {
        let mut t = TsnTracker::new(Tsn(1));
        (2..80).step_by(2).for_each(|tsn| t.note(Tsn(tsn)));
        t.recent.clear();
        t.note(Tsn(31));
        let listed = |t: &TsnTracker, most| -> Vec<(u32, u32)> {
            t.selected_gaps(most).iter().map(|g| (g.start, g.end)).collect()
        };
        assert_eq!(listed(&t, 4), [(2, 2), (4, 4), (30, 32), (78, 78)]);
        assert_eq!(listed(&t, 1), [(30, 32)]);
        assert_eq!(listed(&t, 0), []);
        // What arrives in sequence is no gap block any more.
        t.note(Tsn(33));
        t.note(Tsn(1));
        assert_eq!(listed(&t, 3), [(2, 2), (28, 32), (76, 76)]);
    }

    proptest! {
        /// A sender that adds up what partial SACKs report knows of all arrivals if no more than
        /// half as many blocks as fit have changed since the last SACK, and of nothing else.
        #[test]
        fn partial_sacks_report_all_that_arrives(
            order in prop::collection::vec(1u32..600, 1..500), most in 2usize..12,
        ) {
            let mut t = TsnTracker::new(Tsn(1));
            let mut known = BTreeSet::new();
            let mut arrived = BTreeSet::new();
            for tsns in order.chunks(most / 2) {
                for &tsn in tsns {
                    if t.judge(Tsn(tsn)) != Arrived::Duplicate {
                        t.note(Tsn(tsn));
                        arrived.insert(tsn);
                    }
                }
                let cumulative = t.cumulative().0;
                known.extend(1..=cumulative);
                let blocks = if t.runs() > most {
                    let blocks = t.selected_gaps(most);
                    prop_assert_eq!(blocks.len(), most);
                    prop_assert!(blocks.windows(2).all(|b| b[0].end + 1 < b[1].start));
                    blocks
                } else {
                    t.gaps().collect()
                };
                for block in blocks {
                    known.extend((block.start..=block.end).map(|n| cumulative + n));
                }
                prop_assert_eq!(&known, &arrived);
            }
        }
    }

    #[test]
    fn a_run_is_reported_as_far_as_gap_blocks_reach() {
        let mut t = TsnTracker::new(Tsn(1));
        for tsn in (2..=5).chain(60_000..=70_000).chain(80_000..=80_001) {
            t.note(Tsn(tsn));
        }
        assert_eq!(gaps(&t), [(2, 5), (60_000, 65_535)]);
        assert!(!t.needs_wide_gaps());
        t.reach_far();
        assert!(t.needs_wide_gaps());
        assert_eq!(gaps(&t), [(2, 5), (60_000, 70_000), (80_000, 80_001)]);
    }

    #[test]
    fn runs_join_across_the_wrap() {
        let mut t = TsnTracker::new(Tsn(u32::MAX - 1));
        for tsn in [0u32, 2, u32::MAX] {
            assert_eq!(t.judge(Tsn(tsn)), Arrived::OutOfSequence);
            t.note(Tsn(tsn));
        }
        assert_eq!(gaps(&t), [(2, 3), (5, 5)]);
        t.note(Tsn(1));
        assert_eq!(gaps(&t), [(2, 5)]);
        assert_eq!(t.judge(Tsn(0)), Arrived::Duplicate);
        t.note(Tsn(u32::MAX - 1));
        assert_eq!((t.cumulative(), t.has_gap()), (Tsn(2), false));
        assert_eq!(t.judge(Tsn(1)), Arrived::Duplicate);
    }

    proptest! {
        /// The tracker agrees with a set of numbers, reneging included.
        #[test]
        fn agrees_with_a_set(start in any::<u32>(), steps in prop::collection::vec((0u32..40, any::<bool>(), prop::bool::weighted(0.05)), 1..120)) {
            let mut t = TsnTracker::new(Tsn(start));
            let mut set = BTreeSet::new();
            let mut cumulative = 0u32; // number of TSNs acknowledged cumulatively
            for (ahead, renege, forward) in steps {
                if forward {
                    t.forward(Tsn(start).plus(cumulative + ahead));
                    cumulative += ahead + 1;
                    set.retain(|n| *n >= cumulative);
                    while set.remove(&cumulative) {
                        cumulative += 1;
                    }
                    prop_assert_eq!(t.cumulative(), Tsn(start).plus(cumulative).prev());
                    continue;
                }
                if renege && ahead < 8 {
                    let Some(&n) = set.iter().nth(ahead as usize) else { continue };
                    let last = if set.contains(&(n + 1)) { n + 1 } else { n };
                    t.forget(t.place_of(Tsn(start).plus(n)), t.place_of(Tsn(start).plus(last)));
                    set.retain(|m| *m < n || *m > last);
                    continue;
                }
                let n = cumulative.saturating_sub(3) + ahead;
                let tsn = Tsn(start).plus(n);
                let expected = if n < cumulative || set.contains(&n) {
                    Arrived::Duplicate
                } else if n == cumulative {
                    Arrived::InSequence
                } else {
                    Arrived::OutOfSequence
                };
                prop_assert_eq!(t.judge(tsn), expected);
                if expected != Arrived::Duplicate {
                    t.note(tsn);
                    set.insert(n);
                    while set.remove(&cumulative) {
                        cumulative += 1;
                    }
                }
                prop_assert_eq!(t.cumulative(), Tsn(start).plus(cumulative).prev());
                let listed: BTreeSet<u32> = t
                    .gaps()
                    .flat_map(|g| (g.start..=g.end).map(|o| cumulative.wrapping_sub(1).wrapping_add(o)))
                    .collect();
                prop_assert_eq!(&listed, &set);
                prop_assert_eq!(t.check(), Ok(()));
                let highest = set.last().map_or(0, |n| n + 1 - cumulative);
                prop_assert_eq!(t.missing(), u64::from(highest) - set.len() as u64);
            }
        }
    }
}
