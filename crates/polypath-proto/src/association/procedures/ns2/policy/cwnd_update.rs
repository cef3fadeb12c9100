//! One recover point for the association, valid until the next cut (ns-2's SCTP module).
//!
//! Windows grow when the cumulative ack advances to the recover point or beyond. The recover point
//! is the highest TSN that did not wait for retransmission when a window was last cut. The lowest
//! lost chunk above it cuts the window of its path and moves the recover point, mostly above all
//! other lost chunks, so that one window is cut per round trip over all paths. A timeout does not
//! move the point, but may mark chunks above it, and then another path's window is cut as well.
//! ns-2: uiRecover.

use std::any::Any;

use crate::ids::{PathId, Tsn};
use crate::policy::cwnd_update::{self, CwndUpdate, ScannedChunk, cuc};
use crate::policy::entry::Entry;
use crate::policy::loss::SackView;

/// See the module.
pub static CWND_UPDATE: Entry<dyn CwndUpdate> = Entry::new(
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

/// CUC as in the module (useCmtCwnd_): windows also grow during fast recovery.
pub(super) static CUC: Entry<dyn CwndUpdate> =
    Entry::new(cwnd_update::CUC.name, cwnd_update::CUC.summary, |_| {
        Box::new(PseudoCumulative(cuc::Cuc::new(1)))
    });

/// CUCv2, likewise.
pub(super) static CUC_V2: Entry<dyn CwndUpdate> =
    Entry::new(cwnd_update::CUC_V2.name, cwnd_update::CUC_V2.summary, |_| {
        Box::new(PseudoCumulative(cuc::Cuc::new(2)))
    });

/// The rule if it is one of these two.
pub(crate) fn pseudo_cumulative(rule: &dyn CwndUpdate) -> Option<&PseudoCumulative> {
    let rule: &dyn Any = rule;
    rule.downcast_ref()
}

/// CUC of a version.
#[derive(Debug)]
pub(crate) struct PseudoCumulative(cuc::Cuc);

impl PseudoCumulative {
    /// The lowest outstanding TSNs on the path, of chunks never retransmitted and of retransmitted
    /// ones, as far as the rule has found them.
    pub(crate) fn left_edges(&self, path: PathId) -> [Option<Tsn>; 2] {
        let d = self.0.paths.get(path.index());
        d.map_or([None; 2], |d| [d.pseudo_cumack, d.rtx_pseudo_cumack])
    }

    /// Whether a left edge of the path has advanced, by the calls for this SACK so far.
    pub(crate) fn has_moved(&self, path: PathId) -> bool {
        self.0.has_moved(path)
    }
}

impl CwndUpdate for PseudoCumulative {
    fn begin(&mut self, paths: usize) {
        self.0.begin(paths);
    }

    fn on_cumulatively_acked(&mut self, path: PathId) {
        self.0.on_cumulatively_acked(path);
    }

    fn scans(&self) -> bool {
        self.0.scans()
    }

    fn on_scan(&mut self, chunk: &ScannedChunk) {
        self.0.on_scan(chunk);
    }

    fn on_sack(&mut self, sack: &SackView<'_>) {
        self.0.on_sack(sack);
    }

    fn may_grow(&self, path: PathId, _: &SackView<'_>) -> bool {
        self.has_moved(path)
    }

    fn recover(&self, path: PathId) -> Option<Tsn> {
        self.0.recover(path)
    }

    fn on_retransmit(&mut self, from: PathId, to: PathId) {
        self.0.on_retransmit(from, to);
    }

    fn on_fast_retransmit(&mut self, path: PathId, lost: Tsn, highest: Tsn) -> bool {
        self.0.on_fast_retransmit(path, lost, highest)
    }

    fn on_spurious(&mut self, path: PathId) {
        self.0.on_spurious(path);
    }

    fn on_timeout(&mut self, path: PathId) {
        self.0.on_timeout(path);
    }
}
