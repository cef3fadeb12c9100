//! Sends as [`delay-aware`](super::delay_aware), but of the paths that share a bottleneck only one
//! carries new data.
//!
//! Several paths that each send like one flow take several flows' shares of a common bottleneck.
//! RFC 8382 detects one by comparing statistics of the paths' delays: packets that wait in the same
//! queue see the same delay. RFC 8382 groups flows by skewness, variability and oscillation,
//! because a receiver that summarises delays cannot compare them sample by sample. A sender sees
//! both paths' round-trip times at the same moments, and compares them directly:
//!
//! - Over intervals of the longer smoothed round-trip time, the shortest round-trip times of two
//!   busy paths are taken, and how they change from one interval to the next, `SAMPLES` pairs of
//!   changes. If they change by the same queue, the variance of their difference is small compared
//!   with the sum of their variances; if they are independent, both are equal. The paths share a
//!   bottleneck if the ratio is below `SAME` twice in a row (a correlation above 0.6 of equal
//!   amplitudes).
//! - Means, instead of the shortest times, would also rise together where the host handles packets
//!   late. The times themselves, instead of their changes, would be alike over separate queues that
//!   fill slowly: those of two windows of CUBIC that began together.
//! - Both have to wait in a queue for a `QUEUED` part of the shortest round-trip time on average.
//!   Where BBR has a link for itself its queue is mostly empty, and two such paths that began
//!   together also probe together, which looks like one bottleneck. Where others compete, a queue
//!   remains.
//! - Then the slower path rests: the faster one, with its own congestion controller, takes the
//!   share of one flow, whatever the algorithm. The resting path is probed as any idle path, and
//!   carries data at once when the other one is not active.
//! - After `REST` both are used and compared again, since routes change; the time doubles, up to
//!   eight times, whenever they share a bottleneck still.

use std::time::Duration;

use super::delay_aware::DelayAware;
use super::{NewData, Scheduler, Turn};
use crate::ids::PathId;
use crate::path::{PathView, PathsView};
use crate::policy::entry::{Entry, Needs};
use crate::time::Time;

/// See the [module](self).
pub static BOTTLENECK_AWARE: Entry<dyn Scheduler> = Entry::<dyn Scheduler>::new(
    "bottleneck-aware",
    "delay-aware, but of paths that share a bottleneck one carries new data (after RFC 8382)",
    |_| Box::new(BottleneckAware::default()),
)
.with_needs(Needs::NONE.concurrency().delivery_rate());

/// Pairs of changes that are compared.
const SAMPLES: u32 = 32;
/// Largest ratio of the variance of differences to the sum of variances.
const SAME: f64 = 0.4;
/// Least mean time in the queue, as a part of the shortest round-trip time.
const QUEUED: f64 = 0.25;
/// Shortest interval between pairs.
const LEAST_INTERVAL: Duration = Duration::from_millis(40);
/// Changes of less, as a standard deviation in seconds, show no common queue.
const LEAST_DEVIATION: f64 = 5e-4;
/// Paths are not compared for this time, and [`WARM_UP_ROUNDS`] round trips, after both begin to
/// send: slow starts that begin together look alike.
const WARM_UP: Duration = Duration::from_secs(2);
const WARM_UP_ROUNDS: u32 = 12;
/// How long a path rests at first.
const REST: Duration = Duration::from_secs(20);
/// Most doublings of that time.
const MOST_DOUBLINGS: u32 = 3;

#[derive(Debug, Default)]
struct BottleneckAware {
    scheduler: DelayAware,
    pairs: Vec<Pair>,
    /// The active paths, if there are several; a field only to reuse its memory.
    active: Vec<Active>,
}

/// What is read of an active path. This runs before every packet, and copies of whole views would
/// cost more than the comparison.
#[derive(Clone, Copy, Debug)]
struct Active {
    id: PathId,
    /// Whether more than a packet is in flight.
    busy: bool,
    last_rtt: Option<Duration>,
    srtt: Option<Duration>,
    shortest_rtt: Option<Duration>,
    delivery_rate: Option<f64>,
}

impl Active {
    fn new(view: &PathView) -> Self {
        Self {
            id: view.id,
            busy: view.in_flight > view.max_chunk,
            last_rtt: view.last_rtt,
            srtt: view.srtt,
            shortest_rtt: view.rtt_range.map(|range| range.min),
            delivery_rate: view.delivery_rate,
        }
    }
}

/// Two paths.
#[derive(Debug)]
struct Pair {
    ids: [PathId; 2],
    stage: Stage,
    /// When the interval or the stage ends.
    at: Time,
    /// Rests in a row.
    doublings: u32,
    /// Whether the paths looked the same in the last comparison.
    looked_same: bool,
}

#[derive(Debug)]
enum Stage {
    /// Not compared yet.
    WarmUp,
    /// Samples are taken.
    Comparing(Comparison),
    /// Only this path carries new data.
    Resting { kept: PathId },
}

/// Times of two paths, in seconds.
type Times = [f64; 2];

/// The samples of a comparison.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    /// The shortest round-trip times in the current interval.
    least: Times,
    /// Those of the interval before.
    last: Option<Times>,
    /// Sum of those of all intervals with a change.
    total: Times,
    changes: Moments,
}

impl Comparison {
    const NEW: Self =
        Self { least: [f64::INFINITY; 2], last: None, total: [0.0; 2], changes: Moments::NONE };

    const fn add(&mut self, [a, b]: Times) {
        self.least = [self.least[0].min(a), self.least[1].min(b)];
    }

    /// Ends an interval.
    fn next_interval(&mut self) {
        let least = std::mem::replace(&mut self.least, Self::NEW.least);
        if let Some(last) = self.last.replace(least) {
            self.total = [self.total[0] + least[0], self.total[1] + least[1]];
            self.changes.add([least[0] - last[0], least[1] - last[1]]);
        }
    }

    /// The mean of the shortest round-trip times.
    fn means(&self) -> Times {
        self.total.map(|sum| sum / f64::from(self.changes.count.max(1)))
    }
}

/// Sums over pairs of samples, in seconds.
#[derive(Clone, Copy, Debug)]
struct Moments {
    count: u32,
    sums: Times,
    squares: Times,
    products: f64,
}

impl Moments {
    const NONE: Self = Self { count: 0, sums: [0.0; 2], squares: [0.0; 2], products: 0.0 };

    fn add(&mut self, [a, b]: Times) {
        self.count += 1;
        self.sums = [self.sums[0] + a, self.sums[1] + b];
        self.squares = [self.squares[0] + a * a, self.squares[1] + b * b];
        self.products += a * b;
    }

    /// Whether both paths' delays change by the same queue.
    fn are_same(&self) -> bool {
        let n = f64::from(self.count);
        let [mean_a, mean_b] = self.sums.map(|sum| sum / n);
        let both = (self.squares[0] + self.squares[1]) / n - mean_a * mean_a - mean_b * mean_b;
        let covariance = self.products / n - mean_a * mean_b;
        both > 2.0 * LEAST_DEVIATION * LEAST_DEVIATION && both - 2.0 * covariance < SAME * both
    }
}

impl Pair {
    fn new(now: Time, [a, b]: [&Active; 2]) -> Self {
        let (ids, stage) = ([a.id, b.id], Stage::WarmUp);
        let mut pair = Self { ids, stage, at: now, doublings: 0, looked_same: false };
        pair.warm_up(now, interval([a, b]));
        pair
    }

    fn warm_up(&mut self, now: Time, interval: Duration) {
        self.stage = Stage::WarmUp;
        self.looked_same = false;
        self.at = now + WARM_UP + interval * WARM_UP_ROUNDS;
    }

    /// Whether `path` rests while the other one is among the `active` paths.
    fn rests(&self, path: PathId, active: &[Active]) -> bool {
        let Stage::Resting { kept } = self.stage else { return false };
        self.ids.contains(&path) && path != kept && active.iter().any(|p| p.id == kept)
    }

    fn watch(&mut self, now: Time, paths: [&Active; 2]) {
        let between = interval(paths);
        if let Stage::Resting { .. } = self.stage {
            if self.at <= now {
                self.warm_up(now, between);
            }
            return;
        }
        if self.at > now && matches!(self.stage, Stage::WarmUp) {
            return;
        }
        // Only delays of used paths matter: an idle path measures none.
        let busy = paths.iter().all(|p| p.busy);
        let rtts = paths.map(|p| p.last_rtt.map(|rtt| rtt.as_secs_f64()));
        let ([Some(a), Some(b)], true) = (rtts, busy) else {
            return self.warm_up(now, between);
        };
        let Stage::Comparing(comparison) = &mut self.stage else {
            self.stage = Stage::Comparing(Comparison::NEW);
            self.at = now + between;
            return;
        };
        comparison.add([a, b]);
        if self.at > now {
            return;
        }
        self.at = now + between;
        comparison.next_interval();
        if comparison.changes.count < SAMPLES {
            return;
        }
        let queued = paths.iter().zip(comparison.means()).all(|(p, mean)| {
            let shortest = p.shortest_rtt.map(|rtt| rtt.as_secs_f64());
            shortest.is_some_and(|shortest| mean > (1.0 + QUEUED) * shortest)
        });
        let same = queued && comparison.changes.are_same();
        let before = std::mem::replace(&mut self.looked_same, same);
        if !same || !before {
            self.doublings = if same { self.doublings } else { self.doublings.saturating_sub(1) };
            self.stage = Stage::Comparing(Comparison::NEW);
            return;
        }
        let rate = |p: &Active| p.delivery_rate.unwrap_or(0.0);
        let kept = if rate(paths[1]) > rate(paths[0]) { paths[1] } else { paths[0] };
        self.stage = Stage::Resting { kept: kept.id };
        self.at = now + REST * (1 << self.doublings);
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }
}

/// Time between samples of two paths.
fn interval(paths: [&Active; 2]) -> Duration {
    let longer = paths.iter().filter_map(|p| p.srtt).max();
    longer.unwrap_or_default().max(LEAST_INTERVAL)
}

impl BottleneckAware {
    /// Compares the active paths with each other.
    fn compare(&mut self, now: Time, paths: PathsView<'_>) {
        let Self { active, pairs, .. } = self;
        active.clear();
        if paths.active().nth(1).is_none() {
            return;
        }
        active.extend(paths.active().map(|id| Active::new(&paths.path(id))));
        for (i, a) in active.iter().enumerate() {
            for b in &active[i + 1..] {
                match pairs.iter_mut().find(|pair| pair.ids == [a.id, b.id]) {
                    Some(pair) => pair.watch(now, [a, b]),
                    None => pairs.push(Pair::new(now, [a, b])),
                }
            }
        }
    }
}

impl Scheduler for BottleneckAware {
    fn next(
        &mut self,
        paths: PathsView<'_>,
        data: &NewData,
        has_room: &dyn Fn(PathId) -> bool,
    ) -> Option<Turn> {
        self.compare(data.now, paths);
        let Self { scheduler, pairs, active } = self;
        let rests = |path| pairs.iter().any(|pair| pair.rests(path, active));
        scheduler.choose(paths, data, has_room, |path| !rests(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, Seed};

    /// Whether paths with these queues, in milliseconds, look as if they shared one. Packets wait
    /// for up to `late` ms more at the host, those of both paths for the same time.
    fn same_late(late: u64, mut queues: impl FnMut(&mut Rng) -> [u64; 2]) -> bool {
        let mut rng = Rng::new(&Seed::from_u64(3));
        let mut comparison = Comparison::NEW;
        for _ in 0..=SAMPLES {
            let [a, b] = queues(&mut rng).map(|ms| ms as f64 / 1e3);
            for _ in 0..20 {
                let late = rng.below(late + 1) as f64 / 1e3;
                comparison.add([0.05 + a + late, 0.09 + b + late]);
            }
            comparison.next_interval();
        }
        comparison.changes.are_same()
    }

    fn same(queues: impl FnMut(&mut Rng) -> [u64; 2]) -> bool {
        same_late(0, queues)
    }

    #[test]
    fn delays_of_one_queue_are_the_same() {
        assert!(same(|rng| {
            let queue = rng.below(40);
            [queue + rng.below(5), queue + rng.below(5)]
        }));
    }

    #[test]
    fn delays_of_two_queues_are_not() {
        assert!(!same(|rng| [rng.below(40), rng.below(40)]));
        // One of them is empty, or both are.
        assert!(!same(|rng| [rng.below(40), 0]));
        assert!(!same(|_| [0, 0]));
    }

    /// A host that is busy handles acknowledgements late, and those of both paths.
    #[test]
    fn delays_of_the_host_are_no_queue() {
        assert!(!same_late(20, |rng| [rng.below(3), rng.below(3)]));
    }

    /// The windows of CUBIC over two separate links that began together.
    #[test]
    fn queues_that_fill_at_the_same_rate_are_two() {
        let mut time = 0;
        assert!(!same(|_| {
            time += 1;
            [10 + time, 12 + time]
        }));
    }

    #[test]
    fn the_same_course_at_another_scale_is_another_queue() {
        assert!(!same(|rng| {
            let queue = rng.below(10);
            [queue, 8 * queue]
        }));
    }
}
