//! Delay-aware concurrent multipath transfer: sends data out of order so that it arrives in order.
//!
//! If paths differ in delay, chunks sent in TSN order arrive out of order, and the receive buffer
//! holds the data of the faster paths until that of the slower one arrives. Sarwar, Boreli, Lochin,
//! Mifdaoui, Smith, "Mitigating Receiver's Buffer Blocking by Delay Aware Packet Scheduling in
//! Multipath Data Transfer" (2013), and Kuhn and others, "DAPS: Intelligent Delay-Aware Packet
//! Scheduling For Multipath Transport" (2014), for CMT-SCTP: a slower path carries the data that
//! the faster ones would send about when its packet arrives. It skips the bytes that they carry
//! during the difference of the delays, and sends the next chunk after these.
//!
//! A path's delay is its shortest round-trip time plus the time in its queue, which holds the bytes
//! sent less those the path has carried since. The smoothed round-trip time shows a queue only
//! seconds later: data sent in a burst until then arrives late, fills the window, and opens it for
//! the next burst. SACKs for all paths mostly return over the fastest path, so that differences of
//! round-trip times are differences of one-way delays. Data is left only to paths that are clearly
//! faster by the smoothed round-trip time. A path whose packet would arrive after all waiting data
//! carries none, unless the application has more. Rates are the highest recent ones (as in BBR), so
//! that waiting for the window does not make a path look slower.
//!
//! Each path may have in flight its share of the peer's window, in proportion to the
//! bandwidth-delay products ("pipes") of the paths. If delays differ, it is limited to that share
//! of an eighth of the window, or to twice its pipe if that is more: a longer queue overflows
//! eventually, and until data lost on the slowest path has arrived, the window has to hold the data
//! of all others.

use super::{NewData, Scheduler, Turn};
use crate::few;
use crate::ids::PathId;
use crate::path::{PathView, PathsView};
use crate::policy::entry::{Entry, Needs};
use crate::time::Time;

/// See the [module](self).
pub static DELAY_AWARE: Entry<dyn Scheduler> = Entry::<dyn Scheduler>::new(
    "delay-aware",
    "new data to every active path, from so far behind that it arrives in order \
              (DAPS; Sarwar 2013, Kuhn 2014)",
    |_| Box::new(DelayAware::default()),
)
.with_needs(Needs::NONE.concurrency().delivery_rate());

/// Bytes that a path may have in flight, as a multiple of its bandwidth-delay product.
const PIPES: f64 = 2.0;
/// Part of the peer's window that the paths may share beyond that.
const SHARE: f64 = 0.125;
/// Ratio of two round-trip times from which on delays count as different.
const UNEQUAL: f64 = 1.5;
/// Least number of packets to skip; below that, data is sent in order.
const LEAST_AHEAD: f64 = 2.0;

#[derive(Debug, Default)]
pub(super) struct DelayAware {
    /// The active paths, fastest first; a field only to reuse its memory.
    ready: Vec<Candidate>,
}

/// An active path. Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: PathId,
    in_flight: f64,
    /// Its largest chunk.
    chunk: f64,
    /// Time until data sent now is acknowledged, in seconds; 0 if unknown.
    delay: f64,
    /// Smoothed round-trip time in seconds; 0 if unknown.
    smoothed: f64,
    /// The shortest round-trip time in seconds.
    shortest: f64,
    /// Its rate in bytes per second.
    rate: f64,
    /// Its bandwidth-delay product in bytes.
    pipe: f64,
}

impl Candidate {
    fn new(view: &PathView, now: Time) -> Self {
        let smoothed = view.srtt.map_or(0.0, |srtt| srtt.as_secs_f64());
        let shortest = view.rtt_range.map_or(smoothed, |range| range.min.as_secs_f64());
        let window = f64::from(view.window.cwnd);
        let by_window = if shortest > 0.0 { window / shortest } else { 0.0 };
        let rate = view.delivery_rate.map_or(by_window, |rate| rate.min(by_window));
        let (id, chunk) = (view.id, f64::from(view.max_chunk));
        let in_flight = f64::from(view.in_flight);
        let pipe = (rate * shortest).max(2.0 * chunk);
        let queue = view.delivery_rate.filter(|&rate| rate > 0.0).map_or(0.0, |carries| {
            let until_clear = view.clear.map_or(0.0, |clear| clear.since(now).as_secs_f64());
            let until_acked = in_flight / carries;
            until_clear.max(until_acked - shortest).min(until_acked)
        });
        Self { id, in_flight, chunk, delay: shortest + queue, smoothed, shortest, rate, pipe }
    }
}

/// Limit of each path's flight size as a multiple of its pipe, for a window of `window` bytes.
fn most_pipes(paths: &[Candidate], window: f64) -> f64 {
    let shortest = || paths.iter().map(|c| c.shortest).filter(|&rtt| rtt > 0.0);
    let (least, most) = (shortest().fold(f64::INFINITY, f64::min), shortest().fold(0.0, f64::max));
    let windows = window / paths.iter().map(|c| c.pipe).sum::<f64>();
    if most < UNEQUAL * least {
        return windows;
    }
    (SHARE * windows).max(PIPES.min(windows))
}

impl DelayAware {
    /// As [`Scheduler::next`], over those active paths that `may_use` allows.
    pub(super) fn choose(
        &mut self,
        paths: PathsView<'_>,
        data: &NewData,
        has_room: &dyn Fn(PathId) -> bool,
        may_use: impl Fn(PathId) -> bool,
    ) -> Option<Turn> {
        let usable = || paths.active().filter(|&path| may_use(path));
        let mut first_two = usable();
        match (first_two.next(), first_two.next()) {
            (None, _) => {
                let alone = Some(paths.current()).filter(|path| has_room(*path));
                return alone.map(Turn::in_order);
            }
            // No other path can be faster, and its share of the peer's window is all of it.
            (Some(only), None) => {
                let window = u64::from(data.peer_rwnd) + u64::from(data.in_flight);
                let (own, chunk) = (paths.in_flight(only), paths.max_chunk(only));
                let full = own > 0 && u64::from(own) + u64::from(chunk) > window;
                return Some(only).filter(|path| !full && has_room(*path)).map(Turn::in_order);
            }
            _ => {}
        }
        let ready = &mut self.ready;
        ready.clear();
        ready.extend(usable().map(|path| Candidate::new(&paths.path(path), data.now)));
        few::sort(ready, |a, b| a.delay.total_cmp(&b.delay));
        let window = f64::from(data.peer_rwnd) + f64::from(data.in_flight);
        let pipes = most_pipes(ready, window);
        for (i, c) in ready.iter().enumerate() {
            let full = c.in_flight > 0.0 && c.in_flight + c.chunk > pipes * c.pipe;
            if full || !has_room(c.id) {
                continue;
            }
            let faster = || ready[..i].iter().filter(|f| f.smoothed * UNEQUAL < c.smoothed);
            let ahead: f64 = faster().map(|f| f.rate * (c.delay - f.delay)).sum();
            if ahead < LEAST_AHEAD * c.chunk {
                return Some(Turn::in_order(c.id));
            }
            let enough = data.more || ahead < data.waiting as f64;
            // Keep room for the data of the faster paths, at least a quarter of the buffer.
            let buffer = f64::from(data.receive_buffer);
            let others = faster().map(|f| f.pipe).sum::<f64>().max(buffer / 4.0);
            let fits = f64::from(data.ahead) + c.chunk + others <= buffer;
            if enough && fits {
                return Some(Turn { path: c.id, ahead: ahead as usize });
            }
        }
        None
    }
}

impl Scheduler for DelayAware {
    fn next(
        &mut self,
        paths: PathsView<'_>,
        data: &NewData,
        has_room: &dyn Fn(PathId) -> bool,
    ) -> Option<Turn> {
        self.choose(paths, data, has_room, |_| true)
    }
}
