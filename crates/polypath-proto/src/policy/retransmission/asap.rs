//! RTX-ASAP: retransmissions on any path whose window has room, at random if there are several.
//!
//! Iyengar, Amer, Stewart, "Retransmission policies for concurrent multipath transfer using SCTP
//! multihoming" (2004), II: a "hot-potato" policy, "without regard to loss rate".

use super::{LostChunk, RetransmissionPolicy, random_best, same_unless_failed};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::rng::Rng;

/// See the [module](self).
pub static ASAP: Entry<dyn RetransmissionPolicy> = Entry::new(
    "asap",
    "every retransmission to a path whose window has room, at random if several have \
              (RTX-ASAP; Iyengar 2004)",
    |_| Box::new(Asap),
);

/// The lowest bit of a random number with which this policy chooses the later of two paths.
const EARLIER_IF_ODD: u32 = 0;

#[derive(Debug)]
struct Asap;

impl RetransmissionPolicy for Asap {
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, rng: &mut Rng) -> PathId {
        random_best(paths, rng, EARLIER_IF_ODD, |p| (p.has_room() || p.send_credit).then_some(()))
            .unwrap_or_else(|| same_unless_failed(chunk.last_path, paths))
    }
}
