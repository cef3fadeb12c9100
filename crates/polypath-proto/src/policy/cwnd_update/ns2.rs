//! One recover point for the association, which stays until the next cut (ns-2's SCTP module).
//!
//! Windows grow when the cumulative ack advances to the recover point or beyond: the highest TSN
//! that did not wait for retransmission when a window was last cut. Of all that waits, the lowest chunk
//! above the recover point has its path's window cut, which mostly leaves none above it, so one window
//! a round trip for all paths together; a timeout does not move the point, but what it marks may lie
//! above, and then another path's window is cut as well. ns-2: uiRecover.

use super::CwndUpdate;
use crate::policy::Answer;
use crate::policy::loss::SackView;
use crate::{PathId, Tsn};

/// See the [module](self).
pub static NS2: Answer<dyn CwndUpdate> = Answer {
    name: "ns2",
    summary: "growth from the recover point on, one cut a round trip for all paths (ns-2's SCTP \
              module)",
    make: |_| Box::new(Ns2::default()),
};

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
