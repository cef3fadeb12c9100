//! Fast retransmissions on the same path, timeout retransmissions on an alternate one.
//!
//! RFC 9260 6.4.1: when data that timed out is retransmitted to a multihomed peer, each pair of
//! source and destination address is considered and the most divergent one from the original is
//! attempted. Caro 2006 (retransmission policies) calls it FrSameRtoAlt.

use super::{LossCause, LostChunk, RetransmissionPolicy, alternate, same_unless_failed};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::rng::Rng;

/// See the [module](self).
pub static HYBRID: Entry<dyn RetransmissionPolicy> = Entry::new(
    "hybrid",
    "fast retransmissions to the same path, after a timeout to an alternate one \
              (RFC 9260 6.4.1; FrSameRtoAlt)",
    |_| Box::new(Hybrid),
);

#[derive(Debug)]
struct Hybrid;

impl RetransmissionPolicy for Hybrid {
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, _: &mut Rng) -> PathId {
        match chunk.cause {
            LossCause::FastRetransmit => same_unless_failed(chunk.last_path, paths),
            LossCause::Timeout => alternate(chunk.last_path, paths),
        }
    }
}
