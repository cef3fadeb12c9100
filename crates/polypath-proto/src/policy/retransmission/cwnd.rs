//! RTX-CWND: retransmissions on the path with the largest cwnd, at random among equals.
//!
//! Iyengar, Amer, Stewart, "Retransmission policies for concurrent multipath transfer using SCTP
//! multihoming" (2004), II: moves retransmissions "onto the path with the lowest loss rate", which
//! has the largest window.

use super::{LATER_IF_ODD, LostChunk, RetransmissionPolicy, random_best};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::rng::Rng;

/// See the [module](self).
pub static CWND: Entry<dyn RetransmissionPolicy> = Entry::new(
    "cwnd",
    "every retransmission to the path with the largest cwnd (RTX-CWND; Iyengar 2004)",
    |_| Box::new(Cwnd),
);

#[derive(Debug)]
struct Cwnd;

impl RetransmissionPolicy for Cwnd {
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, rng: &mut Rng) -> PathId {
        random_best(paths, rng, LATER_IF_ODD, |p| Some(p.window.cwnd)).unwrap_or(chunk.last_path)
    }
}
