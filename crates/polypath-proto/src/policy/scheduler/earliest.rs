//! New data on the path that is expected to deliver it first, for messages that are to arrive as
//! early as possible.
//!
//! A path delivers a packet after half of its shortest round-trip time and the time in its queue,
//! which the difference between the shortest and the present round-trip time shows, or the data in
//! flight if that takes longer to deliver. A packet that may be lost counts with the time until it
//! is sent again. If the best path has no room, a packet waits for it rather than leaving on
//! another one that would deliver it later: Lim, Nahum, Towsley, Gibbens, "ECF: An MPTCP Path
//! Scheduler to Manage Heterogeneous Paths" (2017). Shi and others, "STMS: Improving MPTCP
//! Throughput Under Heterogeneous Networks" (2018), and Ferlin and others, "BLEST" (2016), estimate
//! as well when a slower path would deliver, but to fill all paths; so does
//! [`delay-aware`](super::delay_aware).

use super::{NewData, Scheduler, Turn};
use crate::ids::PathId;
use crate::path::{PathView, PathsView};
use crate::policy::entry::{Entry, Needs};

/// See the [module](self).
pub static EARLIEST: Entry<dyn Scheduler> = Entry::<dyn Scheduler>::new(
    "earliest",
    "new data to the active path that is expected to deliver it first, even if it has to wait for \
              room there (after ECF; Lim 2017)",
    |_| Box::new(Earliest),
)
.with_needs(Needs::NONE.concurrency().delivery_rate());

#[derive(Debug)]
struct Earliest;

/// Bytes per second that a path carries at least.
fn rate(path: &PathView, srtt: f64) -> f64 {
    // While the application sends little, what was delivered shows little.
    let by_window = f64::from(path.window.cwnd) / srtt.max(1e-6);
    path.delivery_rate.unwrap_or_default().max(by_window).max(1.0)
}

/// Expected seconds until a packet that is sent now is delivered; `None` if the round-trip time is
/// unknown.
pub(crate) fn delivery(path: &PathView) -> Option<f64> {
    let rtt = path.srtt?.as_secs_f64();
    let shortest = path.rtt_range.map_or(rtt, |range| range.min.as_secs_f64());
    let own = f64::from(path.in_flight) / rate(path, rtt) - shortest;
    let queue = (rtt - shortest).max(own).max(0.0);
    // Without Laplace's rule: a path on which little was sent is no worse than others.
    let (lost, sent) = path.loss.share();
    let loss = f64::from(lost - 1) / f64::from(sent - 2).max(1.0);
    let loss = loss.max(path.loss.recent()).min(0.5);
    Some(shortest / 2.0 + queue + 1.25 * rtt * loss / (1.0 - loss))
}

/// Expected seconds until a path without room has room for a packet.
pub(crate) fn wait(path: &PathView) -> f64 {
    let srtt = path.srtt.unwrap_or_default().as_secs_f64();
    let excess = f64::from(path.in_flight.saturating_sub(path.limit) + path.max_chunk);
    excess / rate(path, srtt)
}

impl Scheduler for Earliest {
    fn next(
        &mut self,
        paths: PathsView<'_>,
        _: &NewData,
        has_room: &dyn Fn(PathId) -> bool,
    ) -> Option<Turn> {
        let timed = paths.active().filter_map(|id| {
            let path = paths.path(id);
            let room = has_room(id);
            let time = delivery(&path)? + if room { 0.0 } else { wait(&path) };
            Some((time, room, id))
        });
        match timed.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((_, true, id)) => Some(Turn::in_order(id)),
            Some((_, false, _)) => None,
            // Nothing is known of any path.
            None => Some(paths.current()).filter(|path| has_room(*path)).map(Turn::in_order),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::path::PathState;
    use crate::policy::testing::{TestPaths, new_data};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn choose(paths: &TestPaths, full: &[u8]) -> Option<u8> {
        let room = |path: PathId| !full.contains(&path.0);
        Earliest.next(paths.view(), &new_data(1000), &room).map(|turn| turn.path.0)
    }

    #[test]
    fn the_shorter_path_carries_everything() {
        let mut paths = TestPaths::new(2);
        assert_eq!(choose(&paths, &[]), Some(0), "nothing is known");
        paths.measure(0, MS(100));
        paths.measure(1, MS(20));
        assert_eq!(choose(&paths, &[]), Some(1));
        paths.set_state(1, PathState::PotentiallyFailed);
        assert_eq!(choose(&paths, &[]), Some(0));
    }

    /// Lim 2017: the slower path is used only if it delivers before the faster one has room.
    #[test]
    fn a_packet_waits_for_the_faster_path_if_that_is_earlier() {
        let mut paths = TestPaths::new(2);
        paths.measure(0, MS(20));
        paths.measure(1, MS(200));
        paths.set_window(0, 14_600, u32::MAX);
        paths.send(0, 14_600);
        assert_eq!(choose(&paths, &[0]), None);
        paths.measure(1, MS(20));
        let mut near = TestPaths::new(2);
        near.measure(0, MS(20));
        near.measure(1, MS(21));
        near.set_window(0, 1_460, u32::MAX);
        near.send(0, 1_460);
        assert_eq!(choose(&near, &[0]), Some(1));
    }

    /// A queue that others fill shows in the round-trip time.
    #[test]
    fn a_queue_makes_a_path_late() {
        let mut paths = TestPaths::new(2);
        paths.measure(0, MS(20));
        paths.measure(1, MS(40));
        assert_eq!(choose(&paths, &[]), Some(0));
        for _ in 0..20 {
            paths.measure(0, MS(500));
        }
        assert_eq!(choose(&paths, &[]), Some(1));
    }
}
