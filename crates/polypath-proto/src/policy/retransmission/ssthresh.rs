//! RTX-SSTHRESH: retransmissions on the path with the largest ssthresh, at random among equals.
//!
//! Iyengar, Amer, Stewart, "Retransmission policies for concurrent multipath transfer using SCTP
//! multihoming" (2004), II: "ssthresh is a slower moving variable than cwnd" and "may better
//! reflect the conditions of the respective paths".

use super::{LATER_IF_ODD, LostChunk, RetransmissionPolicy, random_best};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::rng::Rng;

/// See the [module](self).
pub static SSTHRESH: Entry<dyn RetransmissionPolicy> = Entry::new(
    "ssthresh",
    "every retransmission to the path with the largest ssthresh (RTX-SSTHRESH; Iyengar 2004)",
    |_| Box::new(Ssthresh),
);

#[derive(Debug)]
struct Ssthresh;

impl RetransmissionPolicy for Ssthresh {
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, rng: &mut Rng) -> PathId {
        random_best(paths, rng, LATER_IF_ODD, |p| Some(p.window.ssthresh))
            .unwrap_or(chunk.last_path)
    }
}
