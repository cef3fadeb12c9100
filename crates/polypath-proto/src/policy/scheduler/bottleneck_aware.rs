//! Sends as [`delay-aware`](super::delay_aware), but of the paths that share a bottleneck only one
//! carries new data.
//!
//! Several paths that each send like one flow take several flows' shares of a common bottleneck.
//! RFC 8382 detects one by comparing statistics of the paths' delays: packets that wait in the same
//! queue see the same delay. RFC 8382 groups flows by skewness, variability and oscillation,
//! because a receiver that summarises delays cannot compare them sample by sample. A sender sees
//! both paths' round-trip times at the same moments, and compares them directly:
//!
//! - Over intervals of the longer smoothed round-trip time, the means of the round-trip times of
//!   two busy paths are taken, `SAMPLES` pairs of them. If they change by the same queue, the
//!   variance of their difference is small compared with the sum of their variances; if they are
//!   independent, both are equal. The paths share a bottleneck if the ratio is below `SAME` twice
//!   in a row (a correlation above 0.6 of equal amplitudes).
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

/// Pairs of mean round-trip times that are compared.
const SAMPLES: u32 = 32;
/// Largest ratio of the variance of differences to the sum of variances.
const SAME: f64 = 0.4;
/// Least mean time in the queue, as a part of the shortest round-trip time.
const QUEUED: f64 = 0.25;
/// Shortest interval between pairs.
const LEAST_INTERVAL: Duration = Duration::from_millis(40);
/// Round-trip times that vary by less, as a standard deviation in seconds, show no queue.
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
    /// The views of the active paths, if there are several; a field only to reuse its memory.
    active: Vec<PathView>,
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
    Comparing { interval: Interval, moments: Option<Moments> },
    /// Only this path carries new data.
    Resting { kept: PathId },
}

/// The sums of the round-trip times, in seconds, and their number in the current interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    sums: [f64; 2],
    count: u32,
}

/// Sums over pairs of samples, in seconds, less the first pair.
#[derive(Clone, Copy, Debug)]
struct Moments {
    first: [f64; 2],
    count: u32,
    sums: [f64; 2],
    squares: [f64; 2],
    products: f64,
}

impl Moments {
    const fn new(first: [f64; 2]) -> Self {
        Self { first, count: 0, sums: [0.0; 2], squares: [0.0; 2], products: 0.0 }
    }

    fn add(&mut self, sample: [f64; 2]) {
        let [a, b] = [sample[0] - self.first[0], sample[1] - self.first[1]];
        self.count += 1;
        self.sums = [self.sums[0] + a, self.sums[1] + b];
        self.squares = [self.squares[0] + a * a, self.squares[1] + b * b];
        self.products += a * b;
    }

    /// The mean round-trip time of each path, in seconds.
    fn means(&self) -> [f64; 2] {
        let n = f64::from(self.count);
        [self.first[0] + self.sums[0] / n, self.first[1] + self.sums[1] / n]
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
    fn new(now: Time, [a, b]: [&PathView; 2]) -> Self {
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
    fn rests(&self, path: PathId, active: &[PathView]) -> bool {
        let Stage::Resting { kept } = self.stage else { return false };
        self.ids.contains(&path) && path != kept && active.iter().any(|p| p.id == kept)
    }

    fn watch(&mut self, now: Time, views: [&PathView; 2]) {
        let between = interval(views);
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
        let busy = views.iter().all(|v| v.in_flight > v.max_chunk);
        let rtts = views.map(|v| v.last_rtt.map(|rtt| rtt.as_secs_f64()));
        let ([Some(a), Some(b)], true) = (rtts, busy) else {
            return self.warm_up(now, between);
        };
        let Stage::Comparing { interval, moments } = &mut self.stage else {
            self.stage = Stage::Comparing { interval: Interval::default(), moments: None };
            self.at = now + between;
            return;
        };
        interval.sums = [interval.sums[0] + a, interval.sums[1] + b];
        interval.count += 1;
        if self.at > now {
            return;
        }
        self.at = now + between;
        let Interval { sums, count } = std::mem::take(interval);
        let means = sums.map(|sum| sum / f64::from(count));
        let moments = moments.get_or_insert_with(|| Moments::new(means));
        moments.add(means);
        if moments.count < SAMPLES {
            return;
        }
        let queued = views.iter().zip(moments.means()).all(|(v, mean)| {
            let shortest = v.rtt_range.map(|range| range.min.as_secs_f64());
            shortest.is_some_and(|shortest| mean > (1.0 + QUEUED) * shortest)
        });
        let same = queued && moments.are_same();
        let before = std::mem::replace(&mut self.looked_same, same);
        if !same || !before {
            self.doublings = if same { self.doublings } else { self.doublings.saturating_sub(1) };
            self.stage = Stage::Comparing { interval: Interval::default(), moments: None };
            return;
        }
        let rate = |v: &PathView| v.delivery_rate.unwrap_or(0.0);
        let kept = if rate(views[1]) > rate(views[0]) { views[1] } else { views[0] };
        self.stage = Stage::Resting { kept: kept.id };
        self.at = now + REST * (1 << self.doublings);
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }
}

/// Time between samples of two paths.
fn interval(views: [&PathView; 2]) -> Duration {
    let longer = views.iter().filter_map(|v| v.srtt).max();
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
        active.extend(paths.active().map(|id| paths.path(id)));
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

    /// Whether paths with these queues, in milliseconds, look as if they shared one.
    fn same(queues: impl Fn(&mut Rng) -> [u64; 2]) -> bool {
        let mut rng = Rng::new(&Seed::from_u64(3));
        let mut moments = Moments::new([0.05, 0.09]);
        for _ in 0..SAMPLES {
            let [a, b] = queues(&mut rng).map(|ms| ms as f64 / 1e3);
            moments.add([0.05 + a, 0.09 + b]);
        }
        moments.are_same()
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

    #[test]
    fn the_same_course_at_another_scale_is_another_queue() {
        assert!(!same(|rng| {
            let queue = rng.below(10);
            [queue, 8 * queue]
        }));
    }
}
