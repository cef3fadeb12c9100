//! Every retransmission on an alternate path, in round robin if there are several.
//!
//! RFC 2960 6.4: when its peer is multihomed, an endpoint "SHOULD try to retransmit" data "to an
//! active destination transport address that is different from the last destination address" to
//! which it was sent. Caro 2006 (retransmission policies), 2.1: AllRtxAlt; 4.1: a retransmission
//! that times out is sent "to yet another alternate destination (if one exists; otherwise, the
//! primary)".

use super::{LostChunk, RetransmissionPolicy, alternate};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::rng::Rng;

/// See the [module](self).
pub static ALTERNATE: Entry<dyn RetransmissionPolicy> = Entry::new(
    "alternate",
    "every retransmission to the next active path after the one that it was sent to before \
              (RFC 2960 6.4; AllRtxAlt)",
    |_| Box::new(Alternate),
);

#[derive(Debug)]
struct Alternate;

impl RetransmissionPolicy for Alternate {
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, _: &mut Rng) -> PathId {
        alternate(chunk.last_path, paths)
    }
}
