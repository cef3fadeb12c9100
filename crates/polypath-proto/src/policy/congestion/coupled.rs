//! Coupled congestion control: the windows of all paths that carry data grow together, so that on a
//! shared bottleneck they take as much as a single path would (RFC 6356 3, adapted to SCTP's
//! windows as in draft-tuexen-tsvwg-sctp-multipath, "MPTCP-like").
//!
//! Where congestion avoidance would add one packet to the window w_i of path i, it adds this share
//! of a packet:
//!
//! ```text
//! min(1, alpha * w_i / sum(w_j)),   alpha = sum(w_j) * max(w_j / rtt_j^2) / sum(w_j / rtt_j)^2
//! ```
//!
//! After a loss each path reduces its window independently (RFC 6356 3). RFC 6356 does not couple
//! slow start either. This policy shares its growth by the rates of the paths, as in CMT/RPv2 (the
//! draft couples it as well): several paths that double their windows at the same time would
//! displace competing flows for tens of seconds. A path without a round-trip time sample grows
//! independently and does not count for the others; a path without data does not count either.

use super::rfc9260::RFC9260;
use super::{Congestion, CongestionController, Context, NewPath, PathAck};
use crate::path::{PathState, PathView, PathsView, Window};
use crate::policy::entry::Entry;
use crate::time::Time;

/// See the [module](self).
pub static COUPLED: Entry<dyn CongestionController> = Entry::new(
    "coupled",
    "the windows of all paths grow together as much as one would alone (RFC 6356: linked increases)",
    |setup| over(RFC9260.make(setup)),
);

/// Couples the growth of the windows of `alone`.
pub(crate) fn over(alone: Box<dyn CongestionController>) -> Box<dyn CongestionController> {
    Box::new(Coupled { alone })
}

#[derive(Debug)]
struct Coupled {
    /// The controller whose growth is scaled.
    alone: Box<dyn CongestionController>,
}

/// A path that carries data: its window in bytes, its smoothed round-trip time in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrier {
    pub(super) cwnd: f64,
    pub(super) rtt: f64,
}

impl Carrier {
    /// `None` without a sample of the round-trip time.
    pub(super) fn of(path: &PathView) -> Option<Self> {
        // Avoids a division by zero; clocks have a resolution of a nanosecond.
        let rtt = path.srtt?.as_secs_f64().max(1e-9);
        Some(Self { cwnd: f64::from(path.window.cwnd), rtt })
    }

    /// Every path that carries data, `path` among them.
    pub(super) fn all(path: &PathView, paths: &PathsView<'_>) -> impl Iterator<Item = Self> {
        let id = path.id;
        let carries = move |p: &PathView| {
            p.id == id || (p.state == PathState::Active && (p.in_flight > 0 || p.lost > 0))
        };
        paths.iter().filter(carries).filter_map(|p| Self::of(&p))
    }
}

/// The part of one packet by which the window of `own` grows, from 0 to 1 (RFC 6356 3). `all` are
/// all paths that carry data, `own` among them.
fn share(own: Carrier, all: impl Iterator<Item = Carrier>) -> f64 {
    let (mut best, mut sum) = (0.0f64, 0.0);
    for path in all {
        best = best.max(path.cwnd / (path.rtt * path.rtt));
        sum += path.cwnd / path.rtt;
    }
    // alpha * w_i / sum(w_j), in which sum(w_j) cancels out.
    (own.cwnd * best / (sum * sum)).min(1.0)
}

/// The sum of the rates of paths, in bytes per second.
pub(super) fn rates(all: impl Iterator<Item = Carrier>) -> f64 {
    all.map(|path| path.cwnd / path.rtt).sum()
}

/// The share of `own` in the sum of all rates; `all` includes `own`.
pub(super) fn rate_share(own: Carrier, all: impl Iterator<Item = Carrier>) -> f64 {
    (own.cwnd / own.rtt / rates(all)).min(1.0)
}

/// Scales the growth from `before` to `alone` by `share`, to at least one byte.
pub(super) fn scaled(before: &PathView, alone: Window, share: f64) -> Window {
    let Some(grown) = alone.cwnd.checked_sub(before.window.cwnd).filter(|&grown| grown > 0) else {
        return alone;
    };
    let grown = ((f64::from(grown) * share) as u32).max(1);
    Window { cwnd: before.window.cwnd.saturating_add(grown), ..alone }
}

impl CongestionController for Coupled {
    fn initial(&mut self, path: &NewPath) -> Window {
        self.alone.initial(path)
    }

    fn on_ack(&mut self, context: &Context<'_>, ack: &PathAck) -> Window {
        let alone = self.alone.on_ack(context, ack);
        let path = context.path;
        let Some(own) = Carrier::of(path) else { return alone };
        let all = Carrier::all(path, &context.paths);
        let slow_start = path.window.cwnd <= path.window.ssthresh;
        scaled(path, alone, if slow_start { rate_share(own, all) } else { share(own, all) })
    }

    fn on_congestion(&mut self, context: &Context<'_>, congestion: Congestion) -> Window {
        self.alone.on_congestion(context, congestion)
    }

    fn on_timeout(&mut self, context: &Context<'_>) -> Window {
        self.alone.on_timeout(context)
    }

    fn on_idle(&mut self, now: Time, path: &PathView, first: bool) -> Window {
        self.alone.on_idle(now, path, first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shares(paths: &[Carrier]) -> Vec<f64> {
        paths.iter().map(|&own| share(own, paths.iter().copied())).collect()
    }

    fn carrier(packets: u32, millis: u32) -> Carrier {
        Carrier { cwnd: f64::from(packets) * 1468.0, rtt: f64::from(millis) / 1e3 }
    }

    #[test]
    fn equal_paths_grow_by_one_packet_together_over_their_number_squared() {
        // alpha = 1/n, w_i / sum = 1/n.
        for n in 1..5u32 {
            let paths = vec![carrier(20, 90); n as usize];
            for share in shares(&paths) {
                assert!((share - 1.0 / f64::from(n * n)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_worked_example_of_unequal_paths() {
        // w = 10 and 40, rtt = 100 ms and 200 ms: max(w/rtt^2) = 1000, sum(w/rtt) = 300.
        let [short, long] = shares(&[carrier(10, 100), carrier(40, 200)])[..] else { panic!() };
        assert!((short - 10.0 * 1000.0 / 90_000.0).abs() < 1e-12);
        assert!((long - 40.0 * 1000.0 / 90_000.0).abs() < 1e-12);
    }

    proptest! {
        /// RFC 6356 3: no path is more aggressive than a single path alone; on one bottleneck
        /// (equal round-trip times) all together grow by at most one packet per round trip.
        #[test]
        fn no_more_than_one_path_alone(
            paths in prop::collection::vec((1u32..10_000, 1u32..2_000), 1..6),
            rtt in 1u32..2_000,
        ) {
            let any: Vec<_> = paths.iter().map(|&(w, rtt)| carrier(w, rtt)).collect();
            prop_assert!(shares(&any).iter().all(|&share| share > 0.0 && share <= 1.0));
            let alike: Vec<_> = paths.iter().map(|&(w, _)| carrier(w, rtt)).collect();
            prop_assert!(shares(&alike).iter().sum::<f64>() <= 1.0 + 1e-9);
            prop_assert!((shares(&alike[..1])[0] - 1.0).abs() < 1e-12);
        }

        /// At equal windows every acknowledged packet adds the same, regardless of round-trip
        /// times.
        #[test]
        fn growth_for_each_packet_is_alike(
            rtts in prop::collection::vec(1u32..1_000, 2..5), window in 2u32..1_000,
        ) {
            // share_i / w_i = max(w / rtt^2) / sum(w / rtt)^2.
            let paths: Vec<_> = rtts.iter().map(|&rtt| carrier(window, rtt)).collect();
            let each = shares(&paths);
            prop_assert!(each.iter().all(|share| (share - each[0]).abs() < 1e-12));
            prop_assert!(each[0] < 1.0);
        }
    }
}
