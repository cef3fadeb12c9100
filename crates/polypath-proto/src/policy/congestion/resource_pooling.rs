//! Resource pooling: the paths that carry data together grow and halve like one path, in proportion
//! to their rates (CMT/RPv2; Becke, Dreibholz, Adhari, Rathgeb: On the fairness of transport
//! protocols in a multi-path environment, ICC 2012; draft-tuexen-tsvwg-sctp-multipath).
//!
//! With the rate w_j / rtt_j of each path,
//! - growth of the window of path i, in slow start too, is scaled by the path's share of the sum of
//!   all rates;
//! - a loss on path i reduces its window by the window for half of that sum, rtt_i * sum(w_j /
//!   rtt_j) / 2, but not below one packet.
//!
//! So a loss on a path with at most half of the total rate reduces its window to one packet.

use super::coupled::{Carrier, rate_share, rates, scaled};
use super::rfc9260::RFC9260;
use super::{Congestion, CongestionController, Context, NewPath, PathAck};
use crate::path::{PathView, Window};
use crate::policy::entry::Entry;
use crate::time::Time;

/// See the [module](self).
pub static RESOURCE_POOLING: Entry<dyn CongestionController> = Entry::new(
    "resource-pooling",
    "growth and halving shared by all paths by their rates (CMT/RPv2; draft-tuexen-tsvwg-sctp-multipath)",
    |setup| over(RFC9260.make(setup)),
);

/// Shares the growth and the halving of the windows of `alone`.
pub(crate) fn over(alone: Box<dyn CongestionController>) -> Box<dyn CongestionController> {
    Box::new(ResourcePooling { alone })
}

#[derive(Debug)]
struct ResourcePooling {
    alone: Box<dyn CongestionController>,
}

/// The window of `own` after a loss, in bytes; not less than one packet of `max_chunk`.
fn cut(own: Carrier, all: impl Iterator<Item = Carrier>, max_chunk: u32) -> u32 {
    let half = own.rtt * rates(all) / 2.0;
    ((own.cwnd - half) as u32).max(max_chunk)
}

impl CongestionController for ResourcePooling {
    fn initial(&mut self, path: &NewPath) -> Window {
        self.alone.initial(path)
    }

    fn on_ack(&mut self, context: &Context<'_>, ack: &PathAck) -> Window {
        let alone = self.alone.on_ack(context, ack);
        let Context { path, paths, .. } = context;
        match Carrier::of(path) {
            Some(own) => scaled(path, alone, rate_share(own, Carrier::all(path, paths))),
            None => alone,
        }
    }

    fn on_congestion(&mut self, context: &Context<'_>, congestion: Congestion) -> Window {
        let alone = self.alone.on_congestion(context, congestion);
        let Context { path, paths, .. } = context;
        let Some(own) = Carrier::of(path) else { return alone };
        let cwnd = cut(own, Carrier::all(path, paths), path.max_chunk);
        Window { cwnd, ssthresh: cwnd, ..alone }
    }

    fn on_timeout(&mut self, context: &Context<'_>) -> Window {
        let alone = self.alone.on_timeout(context);
        let Context { path, paths, .. } = context;
        let Some(own) = Carrier::of(path) else { return alone };
        Window { ssthresh: cut(own, Carrier::all(path, paths), path.max_chunk), ..alone }
    }

    fn on_idle(&mut self, now: Time, path: &PathView, first: bool) -> Window {
        self.alone.on_idle(now, path, first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: u32 = 1468;

    fn carrier(packets: u32, millis: u32) -> Carrier {
        Carrier { cwnd: f64::from(packets * PACKET), rtt: f64::from(millis) / 1e3 }
    }

    #[test]
    fn one_path_is_halved_and_grows_alone() {
        let path = carrier(20, 90);
        assert_eq!(cut(path, std::iter::once(path), PACKET), 10 * PACKET);
        assert!((rate_share(path, std::iter::once(path)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_worked_example_of_unequal_paths() {
        // Rates of 100 and 200 packets per second: half their sum is 15 packets at 100 ms, 30 at
        // 200.
        let paths = [carrier(10, 100), carrier(40, 200)];
        let all = || paths.iter().copied();
        assert!((rate_share(paths[0], all()) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(cut(paths[0], all(), PACKET), PACKET);
        assert_eq!(cut(paths[1], all(), PACKET), 10 * PACKET);
    }

    proptest! {
        #[test]
        fn all_together_grow_and_fall_like_one(
            paths in prop::collection::vec((1u32..10_000, 1u32..2_000), 1..6),
        ) {
            let paths: Vec<_> = paths.iter().map(|&(w, rtt)| carrier(w, rtt)).collect();
            let all = || paths.iter().copied();
            let together: f64 = paths.iter().map(|&own| rate_share(own, all())).sum();
            prop_assert!((together - 1.0).abs() < 1e-9);
            for &own in &paths {
                let cut = cut(own, all(), PACKET);
                prop_assert!(cut >= PACKET && f64::from(cut) <= own.cwnd.max(f64::from(PACKET)));
                // No loss reduces the total rate by more than half.
                let lost = (own.cwnd - f64::from(cut)) / own.rtt;
                prop_assert!(lost <= rates(all()) / 2.0 + 1.0 / own.rtt);
            }
        }
    }
}
