//! Every retransmission on the path of the last transmission, while that is active.
//!
//! Caro 2006 (retransmission policies), 2.1: AllRtxSame.

use super::{LostChunk, RetransmissionPolicy, same_unless_failed};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::rng::Rng;

/// See the [module](self).
pub static SAME: Entry<dyn RetransmissionPolicy> = Entry::new(
    "same",
    "every retransmission to the path that it was sent to before (AllRtxSame)",
    |_| Box::new(Same),
);

#[derive(Debug)]
struct Same;

impl RetransmissionPolicy for Same {
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, _: &mut Rng) -> PathId {
        same_unless_failed(chunk.last_path, paths)
    }
}
