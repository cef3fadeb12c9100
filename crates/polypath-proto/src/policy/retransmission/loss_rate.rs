//! RTX-LOSSRATE: retransmissions on the path with the lowest loss rate, at random among equals.
//!
//! Iyengar, Amer, Stewart, "Retransmission policies for concurrent multipath transfer using SCTP
//! multihoming" (2004), II: an ideal case, in which "an oracle" knows the loss rates. In the
//! simulator the links set them
//! ([`Association::set_loss_rate`](crate::Association::set_loss_rate)); real networks use each
//! path's estimate instead.

use std::cmp::Reverse;

use super::{LATER_IF_ODD, LostChunk, RetransmissionPolicy, random_best};
use crate::ids::PathId;
use crate::path::{PathView, PathsView};
use crate::policy::entry::Entry;
use crate::rng::Rng;

/// See the [module](self).
pub static LOSS_RATE: Entry<dyn RetransmissionPolicy> = Entry::new(
    "loss-rate",
    "every retransmission to the path with the lowest loss rate, as the \
              simulator tells or else as estimated (RTX-LOSSRATE; Iyengar 2004)",
    |_| Box::new(LossRate),
);

#[derive(Debug)]
struct LossRate;

impl RetransmissionPolicy for LossRate {
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, rng: &mut Rng) -> PathId {
        random_best(paths, rng, LATER_IF_ODD, |p| Some(Reverse(per_billion(p))))
            .unwrap_or(chunk.last_path)
    }
}

fn per_billion(path: &PathView) -> u64 {
    let (lost, sent) = path.loss.share();
    let estimate = || u64::from(lost) * 1_000_000_000 / u64::from(sent);
    path.known_loss.map_or_else(estimate, u64::from)
}
