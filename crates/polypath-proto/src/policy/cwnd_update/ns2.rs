//! One recover point for the association, valid until the next cut (ns-2's SCTP module).
//!
//! Windows grow when the cumulative ack advances to the recover point or beyond. The recover point
//! is the highest TSN that did not wait for retransmission when a window was last cut. The lowest
//! lost chunk above it cuts the window of its path and moves the recover point, mostly above all
//! other lost chunks, so that one window is cut per round trip over all paths. A timeout does not
//! move the point, but may mark chunks above it, and then another path's window is cut as well.
//! ns-2: uiRecover.

use super::CwndUpdate;
use crate::ids::{PathId, Tsn};
use crate::policy::entry::Entry;
use crate::policy::loss::SackView;

/// See the [module](self).
pub static NS2: Entry<dyn CwndUpdate> = Entry::new(
    "ns2",
    "growth from the recover point on, one cut a round trip for all paths (ns-2's SCTP \
              module)",
    |_| Box::new(Ns2::default()),
);

#[derive(Debug, Default)]
struct Ns2 {
    recover: Option<Tsn>,
}

impl CwndUpdate for Ns2 {
    fn on_sack(&mut self, _: &SackView<'_>) {}

    fn may_grow(&self, _: PathId, sack: &SackView<'_>) -> bool {
        sack.advanced && self.recover.is_none_or(|recover| !recover.is_after(sack.cumulative))
    }

    fn recover(&self, _: PathId) -> Option<Tsn> {
        self.recover
    }

    fn on_fast_retransmit(&mut self, _: PathId, lost: Tsn, highest: Tsn) -> bool {
        let cut = self.recover.is_none_or(|recover| lost.is_after(recover));
        if cut {
            self.recover = Some(highest);
        }
        cut
    }
}
