//! Which TSNs have arrived: the cumulative TSN, the gap blocks and the duplicates
//! (RFC 9260 3.3.4, 6.2).

use crate::Tsn;
use crate::wire::GapBlock;

/// Duplicates remembered between two SACKs; more are acknowledged but not listed.
const MAX_DUPLICATES: usize = 32;

/// What the tracker makes of a TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// The next one expected.
    InSequence,
    /// A new one above a gap or within one.
    OutOfSequence,
    /// Received before.
    Duplicate,
}

/// A contiguous run of TSNs above the cumulative one, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: Tsn,
    last: Tsn,
}

#[derive(Debug)]
pub(crate) struct TsnTracker {
    initial: Tsn,
    cumulative: Tsn,
    /// Ascending, with at least one TSN missing between neighbours and above `cumulative`.
    runs: Vec<Run>,
    duplicates: Vec<Tsn>,
}

impl TsnTracker {
    pub(crate) const fn new(initial: Tsn) -> Self {
        Self { initial, cumulative: initial.prev(), runs: Vec::new(), duplicates: Vec::new() }
    }

    pub(crate) const fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    /// The first TSN that the peer may use.
    pub(crate) fn is_first(&self, tsn: Tsn) -> bool {
        tsn == self.initial
    }

    pub(crate) const fn has_gap(&self) -> bool {
        !self.runs.is_empty()
    }

    /// What `tsn` would be, without noting it.
    pub(crate) fn judge(&self, tsn: Tsn) -> Arrived {
        if !tsn.is_after(self.cumulative) {
            return Arrived::Duplicate;
        }
        if tsn == self.cumulative.next() {
            return Arrived::InSequence;
        }
        let at = self.runs.partition_point(|r| r.last.is_before(tsn));
        match self.runs.get(at) {
            Some(r) if !r.first.is_after(tsn) => Arrived::Duplicate,
            _ => Arrived::OutOfSequence,
        }
    }

    pub(crate) fn note_duplicate(&mut self, tsn: Tsn) {
        if self.duplicates.len() < MAX_DUPLICATES {
            self.duplicates.push(tsn);
        }
    }

    /// Notes a TSN that [`judge`](Self::judge) called new.
    pub(crate) fn note(&mut self, tsn: Tsn) {
        if tsn == self.cumulative.next() {
            self.cumulative = tsn;
            if self.runs.first().is_some_and(|r| r.first == tsn.next()) {
                self.cumulative = self.runs.remove(0).last;
            }
            return;
        }
        let at = self.runs.partition_point(|r| r.last.is_before(tsn));
        let joins_below = at > 0 && self.runs[at - 1].last.next() == tsn;
        let joins_above = self.runs.get(at).is_some_and(|r| r.first == tsn.next());
        match (joins_below, joins_above) {
            (true, true) => {
                self.runs[at - 1].last = self.runs[at].last;
                self.runs.remove(at);
            }
            (true, false) => self.runs[at - 1].last = tsn,
            (false, true) => self.runs[at].first = tsn,
            (false, false) => self.runs.insert(at, Run { first: tsn, last: tsn }),
        }
    }

    /// Whatever is missing up to `to`, which lies above the cumulative TSN, is not missed any more
    /// (RFC 3758 3.6).
    pub(crate) fn forward(&mut self, to: Tsn) {
        let above = self.runs.partition_point(|r| !r.last.is_after(to));
        self.runs.drain(..above);
        self.cumulative = to;
        if self.runs.first().is_some_and(|r| !r.first.is_after(to.next())) {
            self.cumulative = self.runs.remove(0).last;
        }
    }

    /// Forgets TSNs above the cumulative one that have arrived, both ends included, to make room for
    /// lower ones (RFC 9260 6.2: reneging).
    pub(crate) fn forget(&mut self, first: Tsn, last: Tsn) {
        let at = self.runs.partition_point(|r| r.last.is_before(first));
        let Some(run) = self.runs.get_mut(at).filter(|r| !r.first.is_after(first)) else { return };
        let above = (run.last != last).then(|| Run { first: last.next(), last: run.last });
        let below = (run.first != first).then(|| Run { first: run.first, last: first.prev() });
        self.runs.splice(at..=at, below.into_iter().chain(above));
    }

    /// The highest TSN that has come.
    pub(crate) fn highest(&self) -> Tsn {
        self.runs.last().map_or(self.cumulative, |r| r.last)
    }

    /// How many TSNs below it have not.
    pub(crate) fn missing(&self) -> u32 {
        let come: u32 = self.runs.iter().map(|r| r.last.offset_from(r.first) + 1).sum();
        self.highest().offset_from(self.cumulative) - come
    }

    /// The gap blocks for a SACK; those that are too far above for 16 bits are left out.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = GapBlock> + '_ {
        self.runs.iter().map_while(|r| self.block(r.first, r.last))
    }

    /// Of these, what lies up to this TSN.
    pub(crate) fn gaps_up_to(&self, kept: Tsn) -> impl Iterator<Item = GapBlock> + '_ {
        let below = self.runs.iter().take_while(move |r| !r.first.is_after(kept));
        below.map_while(move |r| {
            self.block(r.first, if r.last.is_after(kept) { kept } else { r.last })
        })
    }

    /// What lies above it.
    pub(crate) fn gaps_above(&self, kept: Tsn) -> impl Iterator<Item = GapBlock> + '_ {
        let above = self.runs.iter().skip_while(move |r| !r.last.is_after(kept));
        above.map_while(move |r| {
            self.block(if r.first.is_after(kept) { r.first } else { kept.next() }, r.last)
        })
    }

    fn block(&self, first: Tsn, last: Tsn) -> Option<GapBlock> {
        Some(GapBlock {
            start: u16::try_from(first.offset_from(self.cumulative)).ok()?,
            end: u16::try_from(last.offset_from(self.cumulative)).ok()?,
        })
    }

    pub(crate) fn duplicates(&self) -> impl Iterator<Item = Tsn> + '_ {
        self.duplicates.iter().copied()
    }

    /// A SACK has reported the duplicates.
    pub(crate) fn duplicates_reported(&mut self) {
        self.duplicates.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn gaps(t: &TsnTracker) -> Vec<(u16, u16)> {
        t.gaps().map(|g| (g.start, g.end)).collect()
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
                    t.forget(Tsn(start).plus(n), Tsn(start).plus(last));
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
                    .flat_map(|g| (u32::from(g.start)..=u32::from(g.end)).map(|o| cumulative.wrapping_sub(1).wrapping_add(o)))
                    .collect();
                prop_assert_eq!(&listed, &set);
            }
        }
    }
}
