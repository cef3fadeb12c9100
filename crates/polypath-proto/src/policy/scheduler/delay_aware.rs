//! Delay-aware concurrent multipath transfer: data leaves out of order, to arrive in order.
//!
//! Where paths differ in delay, chunks that leave in the order of their TSNs arrive out of order, and the
//! receive buffer holds what the faster paths bring while a slower one is on its way. Sarwar, Boreli,
//! Lochin, Mifdaoui, Smith, "Mitigating Receiver's Buffer Blocking by Delay Aware Packet Scheduling in
//! Multipath Data Transfer" (2013), and Kuhn and others, "DAPS: Intelligent Delay-Aware Packet Scheduling
//! For Multipath Transport" (2014), for CMT-SCTP: a slower path takes what the faster ones would otherwise
//! send once its packet is about to arrive. That is, the bytes that they carry in the difference of the
//! delays are left to them, and the chunk behind these leaves.
//!
//! A delay is the shortest round-trip time and what waits in the path's queue: what has left less what the
//! path has carried since. The smoothed round-trip time says so seconds later; what leaves in a burst
//! meanwhile arrives after its turn, the window fills, and opens to the next burst. SACKs for all paths come
//! back over whichever is fastest, mostly, so that the differences are those of the ways there. Nothing is
//! left to a path that is not clearly faster, by its smoothed round-trip time. A path whose packet would
//! arrive after all that waits takes none, unless the application has more. Rates are the highest of late
//! (BBR's): a path that has to wait for the window is not slower for that.
//!
//! No path has more in flight than its share of the peer's window, by what the paths hold without a queue
//! (their pipes). Where delays differ, that is a share of an eighth of the window, or a queue as long as the
//! pipe if that is more: a longer one overflows in the end, and until what was lost on the slowest path has
//! arrived, the window has to hold what all others bring.

use super::concurrent::Concurrent;
use super::{NewData, Scheduler, Turn};
use crate::policy::{Answer, PathState, PathView, PathsView};
use crate::{Config, PathId, Procedures, Time};

/// See the [module](self).
pub static DELAY_AWARE: Answer<dyn Scheduler> = Answer {
    name: "delay-aware",
    summary: "new data to every active path, from so far behind that it arrives in order \
              (DAPS; Sarwar 2013, Kuhn 2014)",
    make,
};

fn make(config: &Config) -> Box<dyn Scheduler> {
    if config.procedures() == Procedures::Ns2 {
        // TSNs leave in order there.
        return Box::new(Concurrent::default());
    }
    Box::new(DelayAware::default())
}

/// A path may have in flight so many times what it holds without a queue.
const PIPES: f64 = 2.0;
/// And more, where this part of the peer's window has room for it.
const SHARE: f64 = 0.125;
/// A round trip that is so many times another: delays differ.
const UNEQUAL: f64 = 1.5;
/// Fewer packets than this are not worth leaving out.
const LEAST_AHEAD: f64 = 2.0;

#[derive(Debug, Default)]
struct DelayAware {
    /// The active paths, the fastest first; kept for its memory.
    ready: Vec<Candidate>,
}

/// An active path.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    view: PathView,
    /// Until what leaves now is acknowledged, in seconds; 0 where it is not known.
    delay: f64,
    /// Smoothed round-trip time in seconds; 0 where it is not known.
    smoothed: f64,
    /// The shortest round-trip time in seconds.
    shortest: f64,
    /// What it can carry, in bytes a second.
    rate: f64,
    /// What it has in flight without a queue, in bytes.
    pipe: f64,
}

impl Candidate {
    fn new(view: PathView, now: Time) -> Self {
        let smoothed = view.srtt.map_or(0.0, |srtt| srtt.as_secs_f64());
        let shortest = view.rtt_range.map_or(smoothed, |range| range.min.as_secs_f64());
        let window = f64::from(view.window.cwnd);
        let by_window = if shortest > 0.0 { window / shortest } else { 0.0 };
        let rate = view.delivery_rate.map_or(by_window, |rate| rate.min(by_window));
        let pipe = (rate * shortest).max(f64::from(2 * view.max_chunk));
        let queue = view.delivery_rate.filter(|&rate| rate > 0.0).map_or(0.0, |carries| {
            let until_clear = view.clear.map_or(0.0, |clear| clear.since(now).as_secs_f64());
            let in_flight = f64::from(view.in_flight) / carries;
            until_clear.max(in_flight - shortest).min(in_flight)
        });
        Self { view, delay: shortest + queue, smoothed, shortest, rate, pipe }
    }

    fn chunk(&self) -> f64 {
        f64::from(self.view.max_chunk)
    }
}

/// How many times its pipe each path may have in flight, if the peer's window is `window` bytes.
fn most_pipes(paths: &[Candidate], window: f64) -> f64 {
    let shortest = || paths.iter().map(|c| c.shortest).filter(|&rtt| rtt > 0.0);
    let (least, most) = (shortest().fold(f64::INFINITY, f64::min), shortest().fold(0.0, f64::max));
    let windows = window / paths.iter().map(|c| c.pipe).sum::<f64>();
    if most < UNEQUAL * least {
        return windows;
    }
    (SHARE * windows).max(PIPES.min(windows))
}

impl Scheduler for DelayAware {
    fn is_concurrent(&self) -> bool {
        true
    }

    fn measures_delivery(&self) -> bool {
        true
    }

    fn next(
        &mut self,
        paths: PathsView<'_>,
        data: &NewData,
        has_room: &dyn Fn(PathId) -> bool,
    ) -> Option<Turn> {
        let ready = &mut self.ready;
        ready.clear();
        let candidate = |view| Candidate::new(view, data.now);
        ready.extend(paths.iter().filter(|p| p.state == PathState::Active).map(candidate));
        if ready.is_empty() {
            let alone = Some(paths.current()).filter(|path| has_room(*path));
            return alone.map(Turn::in_order);
        }
        ready.sort_by(|a, b| a.delay.total_cmp(&b.delay));
        let window = f64::from(data.peer_rwnd) + f64::from(data.in_flight);
        let pipes = most_pipes(ready, window);
        for (i, c) in ready.iter().enumerate() {
            let in_flight = f64::from(c.view.in_flight);
            let full = in_flight > 0.0 && in_flight + c.chunk() > pipes * c.pipe;
            if full || !has_room(c.view.id) {
                continue;
            }
            let faster = || ready[..i].iter().filter(|f| f.smoothed * UNEQUAL < c.smoothed);
            let ahead: f64 = faster().map(|f| f.rate * (c.delay - f.delay)).sum();
            if ahead < LEAST_AHEAD * c.chunk() {
                return Some(Turn::in_order(c.view.id));
            }
            let enough = data.more || ahead < data.waiting as f64;
            // What the faster paths carry meanwhile keeps its room, and a quarter in any case.
            let buffer = f64::from(data.receive_buffer);
            let others = faster().map(|f| f.pipe).sum::<f64>().max(buffer / 4.0);
            let fits = f64::from(data.ahead) + c.chunk() + others <= buffer;
            if enough && fits {
                return Some(Turn { path: c.view.id, ahead: ahead as usize });
            }
        }
        None
    }
}
