//! Copies of chunks in flight, on other paths or on the same one: which are to be sent, which were,
//! and the budget for them.
//!
//! A copy is the same chunk with the same TSN: the receiver discards what it has already. It does
//! not change the state of the chunk, whose first transmission is in flight, times out and is found
//! lost as if there were no copy. An acknowledgement does not show which of them has arrived. It
//! is credited to the path whose acknowledgement was due nearest to now, and measures no round-trip
//! time (Karn's rule, RFC 9260 6.3.1 C5). A duplicate report is no sign of a spurious
//! retransmission.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::in_flight::outstanding::Outstanding;
use crate::constants::Constants;
use crate::ids::{PathId, Tsn};
use crate::paths::Paths;
use crate::time::Time;

/// Chunks sent in copies that are remembered: later duplicates of older ones count as those of
/// retransmissions.
const MOST_REMEMBERED: usize = 4096;

/// Most copies that wait.
const MOST_WAITING: usize = 1024;

/// Time for which an unused budget adds up.
const SAVED: Duration = Duration::from_secs(1);

/// Bytes that the budget holds beyond that.
const LEAST_BUDGET: f64 = 65_536.0;

/// The copies of an association's chunks.
#[derive(Debug)]
pub(crate) struct Copies {
    /// Copies to send, and their paths.
    waiting: VecDeque<(Tsn, PathId)>,
    /// The chunks of which copies were sent: path and time of each copy.
    sent: BTreeMap<u32, Vec<(PathId, Time)>>,
    /// The same in the order of their first copies.
    order: VecDeque<Tsn>,
    /// When chunks of urgent messages are overdue.
    due: BTreeSet<(Time, u32)>,
    budget: Budget,
}

/// A transmission of a chunk that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) path: PathId,
    pub(super) sent: Time,
    /// Whether no transmission on another path can have been acknowledged so early.
    pub(super) certain: bool,
}

/// Bytes that copies may take: a token bucket.
#[derive(Debug)]
struct Budget {
    /// Bytes per second.
    rate: f64,
    /// Part of the new data.
    share: f64,
    tokens: f64,
    at: Time,
}

impl Budget {
    fn most(&self) -> f64 {
        self.rate * SAVED.as_secs_f64() + LEAST_BUDGET
    }

    fn fill(&mut self, now: Time) {
        let earned = now.since(self.at).as_secs_f64() * self.rate;
        self.tokens = (self.tokens + earned).min(self.most());
        self.at = now;
    }

    fn take(&mut self, now: Time, bytes: u32) -> bool {
        self.fill(now);
        let enough = self.tokens >= f64::from(bytes);
        if enough {
            self.tokens -= f64::from(bytes);
        }
        enough
    }
}

impl Copies {
    pub(crate) fn new(constants: &Constants) -> Self {
        let mut budget = Budget {
            rate: f64::from(constants.copy_rate()),
            share: f64::from(constants.copy_share()) / 100.0,
            tokens: 0.0,
            at: Time::ZERO,
        };
        // Nothing may be spent where nothing is granted.
        if budget.rate > 0.0 || budget.share > 0.0 {
            budget.tokens = budget.most();
        }
        Self {
            waiting: VecDeque::new(),
            sent: BTreeMap::new(),
            order: VecDeque::new(),
            due: BTreeSet::new(),
            budget,
        }
    }

    /// TSNs are renumbered, or nothing in flight will be acknowledged.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.sent.clear();
        self.order.clear();
        self.due.clear();
    }

    /// New data of `bytes` bytes was sent.
    pub(crate) fn earn(&mut self, bytes: u32) {
        let budget = &mut self.budget;
        budget.tokens = (budget.tokens + budget.share * f64::from(bytes)).min(budget.most());
    }

    /// Requests a copy of `size` bytes on `path`, if the budget allows it.
    pub(crate) fn request(&mut self, now: Time, tsn: Tsn, path: PathId, size: u32) -> bool {
        let allowed = self.waiting.len() < MOST_WAITING && self.budget.take(now, size);
        if allowed {
            self.waiting.push_back((tsn, path));
        }
        allowed
    }

    /// Whether copies wait.
    pub(crate) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Drops the copies that `keeps` rejects, and returns the path of the first that `may_leave`.
    pub(crate) fn next(
        &mut self,
        keeps: impl Fn(Tsn, PathId) -> bool,
        mut may_leave: impl FnMut(PathId) -> bool,
    ) -> Option<PathId> {
        self.waiting.retain(|&(tsn, path)| keeps(tsn, path));
        self.waiting.iter().map(|&(_, path)| path).find(|&path| may_leave(path))
    }

    /// Takes the next copy for `path`, of a chunk that `unless` does not exclude.
    pub(crate) fn take(&mut self, path: PathId, unless: impl Fn(Tsn) -> bool) -> Option<Tsn> {
        let found = |&(tsn, to): &(Tsn, PathId)| to == path && !unless(tsn);
        let at = self.waiting.iter().position(found)?;
        self.waiting.remove(at).map(|(tsn, _)| tsn)
    }

    /// A copy was sent.
    pub(crate) fn sent(&mut self, now: Time, tsn: Tsn, path: PathId) {
        let copies = self.sent.entry(tsn.0).or_default();
        if copies.is_empty() {
            self.order.push_back(tsn);
        }
        copies.push((path, now));
        if self.order.len() > MOST_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.sent.remove(&oldest.0);
        }
    }

    /// Whether copies of this chunk were sent.
    pub(crate) fn include(&self, tsn: Tsn) -> bool {
        self.sent.contains_key(&tsn.0)
    }

    /// The transmission of a newly acknowledged chunk that has most probably arrived: that whose
    /// acknowledgement was due nearest to now.
    pub(super) fn delivered(
        &self,
        now: Time,
        paths: &Paths,
        tsn: Tsn,
        chunk: &Outstanding,
    ) -> Delivered {
        let own = (chunk.path, chunk.sent);
        let Some(copies) = (chunk.copies > 0).then(|| self.sent.get(&tsn.0)).flatten() else {
            return Delivered { path: chunk.path, sent: chunk.sent, certain: true };
        };
        let all = || std::iter::once(own).chain(copies.iter().copied());
        let distance = |&(path, sent): &(PathId, Time)| {
            let due = paths.get(path).and_then(|p| p.srtt()).map(|srtt| sent + srtt);
            due.map_or(Duration::MAX, |due| due.since(now).max(now.since(due)))
        };
        let (path, sent) = all().min_by_key(distance).unwrap_or(own);
        let too_early = |(other, sent)| {
            let shortest = paths.get(other).and_then(|p| p.shortest_rtt());
            other == path || shortest.is_some_and(|rtt| now.since(sent) < rtt)
        };
        Delivered { path, sent, certain: all().all(too_early) }
    }

    /// An urgent chunk was sent, and is overdue at `at`.
    pub(crate) fn watch(&mut self, at: Time, tsn: Tsn) {
        self.due.insert((at, tsn.0));
    }

    /// When the next chunk is overdue.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.due.first().map(|&(at, _)| at)
    }

    /// A chunk that is overdue.
    pub(crate) fn overdue(&mut self, now: Time) -> Option<Tsn> {
        let &(at, tsn) = self.due.first()?;
        (at <= now).then(|| self.due.pop_first())?;
        Some(Tsn(tsn))
    }

    /// Drops the deadlines of chunks that `waits` rejects, the first ones only.
    pub(crate) fn forget(&mut self, waits: impl Fn(Tsn) -> bool) {
        while self.due.first().is_some_and(|&(_, tsn)| !waits(Tsn(tsn))) {
            self.due.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn copies(rate: &str, share: u32) -> Copies {
        let mut config = Config::modern();
        let registry = crate::Registry::standard();
        crate::Parameter::find("copy_rate").unwrap().set(&mut config, rate, &registry).unwrap();
        let share = share.to_string();
        crate::Parameter::find("copy_share").unwrap().set(&mut config, &share, &registry).unwrap();
        Copies::new(config.constants())
    }

    /// Bytes that are granted at once, in copies of 1000.
    fn granted(copies: &mut Copies, now: Time) -> u32 {
        let mut one = |n| copies.request(now, Tsn(n), PathId(0), 1000);
        (0..10_000).map_while(|n| one(n).then_some(1000)).sum()
    }

    #[test]
    fn copies_keep_their_budget() {
        let mut c = copies("100 kB", 0);
        assert_eq!(granted(&mut c, Time::from_secs(1)), 165_000);
        assert_eq!(granted(&mut c, Time::from_millis(1100)), 10_000);
        c.waiting.clear();
        assert_eq!(granted(&mut c, Time::from_secs(100)), 165_000);
        c.earn(1_000_000);
        assert_eq!(granted(&mut c, Time::from_secs(100)), 0);
        let mut c = copies("0 B", 10);
        granted(&mut c, Time::ZERO);
        c.earn(100_000);
        assert!((9_000..=10_000).contains(&granted(&mut c, Time::from_secs(5))));
        let mut c = copies("0 B", 0);
        assert_eq!(granted(&mut c, Time::from_secs(5)), 0);
    }

    #[test]
    fn old_copies_are_forgotten() {
        let mut c = copies("100 kB", 0);
        for n in 0..2 * MOST_REMEMBERED as u32 {
            c.sent(Time::ZERO, Tsn(u32::MAX - 9).plus(n), PathId(1));
        }
        assert!(!c.include(Tsn(u32::MAX - 9)) && c.include(Tsn(2 * MOST_REMEMBERED as u32 - 11)));
        assert_eq!((c.sent.len(), c.order.len()), (MOST_REMEMBERED, MOST_REMEMBERED));
    }
}
