//! Cwnd Update for CMT (CUC): each path's window grows by the order of its own TSNs.
//!
//! The cumulative ack does not advance while a TSN of any path is missing, which with several paths
//! is nearly always the case. CUC tracks for each path the lowest TSN outstanding on it, the
//! pseudo-cumulative ack, and lets the window grow whenever that advances. CUC: Iyengar, Amer,
//! Stewart, "Concurrent Multipath Transfer Using SCTP Multihoming Over Independent End-to-End
//! Paths" (2006), IV.B. CUCv2: Iyengar, Amer, Stewart, "Retransmission policies for concurrent
//! multipath transfer using SCTP multihoming" (2004), Fig. 3, whose lines the code cites: two left
//! edges, one of chunks never retransmitted and one of retransmitted chunks, since a retransmission
//! may take another path than the original.
//!
//! Fast recovery is per path too: a path's window is cut once for all losses among the data sent
//! before the cut, and does not grow until none of that data is outstanding on the path.

use super::{CwndUpdate, ScannedChunk};
use crate::ids::{PathId, Tsn};
use crate::policy::entry::Entry;
use crate::policy::loss::SackView;

/// See the [module](self).
pub static CUC: Entry<dyn CwndUpdate> = Entry::new(
    "cuc",
    "growth when the lowest TSN outstanding on the path is acknowledged, a fast recovery for \
              each path (CUC; Iyengar 2006)",
    |_| Box::new(Cuc::new(1)),
);

/// See the [module](self).
pub static CUC_V2: Entry<dyn CwndUpdate> = Entry::new(
    "cuc-v2",
    "the same with a left edge of its own for what was retransmitted (CUCv2; Iyengar 2004, \
              Fig. 3)",
    |_| Box::new(Cuc::new(2)),
);

/// The rule, of either version.
#[derive(Debug)]
pub(crate) struct Cuc {
    version: u8,
    /// The state of each destination d.
    pub(crate) paths: Vec<Destination>,
}

impl Cuc {
    pub(crate) const fn new(version: u8) -> Self {
        Self { version, paths: Vec::new() }
    }

    /// Whether a left edge of the path has advanced, by the calls for this SACK so far.
    pub(crate) fn has_moved(&self, path: PathId) -> bool {
        self.paths
            .get(path.index())
            .is_some_and(|d| d.new_pseudo_cumack || (self.version == 2 && d.new_rtx_pseudo_cumack))
    }
}

/// The variables of Fig. 3, under their names in the paper.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) pseudo_cumack: Option<Tsn>,
    find_pseudo_cumack: bool,
    new_pseudo_cumack: bool,
    pub(crate) rtx_pseudo_cumack: Option<Tsn>,
    find_rtx_pseudo_cumack: bool,
    new_rtx_pseudo_cumack: bool,
    /// Highest TSN outstanding when the window was last cut, in fast recovery.
    exit: Option<Tsn>,
    /// Whether the current SACK leaves a TSN up to `exit` missing on the path.
    recovering: bool,
}

impl Destination {
    /// "At beginning of an association".
    const fn new() -> Self {
        Self {
            pseudo_cumack: None,
            find_pseudo_cumack: true,
            new_pseudo_cumack: false,
            rtx_pseudo_cumack: None,
            find_rtx_pseudo_cumack: true,
            new_rtx_pseudo_cumack: false,
            exit: None,
            recovering: false,
        }
    }
}

impl CwndUpdate for Cuc {
    fn begin(&mut self, paths: usize) {
        self.paths.resize_with(paths.max(self.paths.len()), Destination::new);
        for d in &mut self.paths {
            // 1)
            d.new_pseudo_cumack = false;
            d.new_rtx_pseudo_cumack = false;
            d.recovering = false;
        }
    }

    fn on_cumulatively_acked(&mut self, path: PathId) {
        // 2) (i)
        let d = &mut self.paths[path.index()];
        // (ii), (iii)
        d.find_pseudo_cumack = true;
        d.new_pseudo_cumack = true;
        // (iv), (v)
        d.find_rtx_pseudo_cumack = true;
        d.new_rtx_pseudo_cumack = true;
    }

    fn scans(&self) -> bool {
        true
    }

    fn on_scan(&mut self, t: &ScannedChunk) {
        // 3) (i); "t was not acked in the past" holds for all that is scanned.
        let d = &mut self.paths[t.path.index()];
        d.recovering |= !t.newly_acked && d.exit.is_some_and(|exit| !t.tsn.is_after(exit));
        // (ii); the first version of CUC lacks "and t was not retransmitted".
        if d.find_pseudo_cumack && (self.version == 1 || !t.retransmitted) {
            d.pseudo_cumack = Some(t.tsn);
            d.find_pseudo_cumack = false;
        }
        // (iii)
        if t.newly_acked && d.pseudo_cumack == Some(t.tsn) {
            d.new_pseudo_cumack = true;
            d.find_pseudo_cumack = true;
        }
        // (iv)
        if d.find_rtx_pseudo_cumack && t.retransmitted {
            d.rtx_pseudo_cumack = Some(t.tsn);
            d.find_rtx_pseudo_cumack = false;
        }
        // (v)
        if t.newly_acked && d.rtx_pseudo_cumack == Some(t.tsn) {
            d.new_rtx_pseudo_cumack = true;
            d.find_rtx_pseudo_cumack = true;
        }
    }

    fn on_sack(&mut self, sack: &SackView<'_>) {
        for d in &mut self.paths {
            // RFC 9260 7.2.4 (5) for the path alone.
            let beyond = d.exit.is_some_and(|exit| !exit.is_after(sack.highest_acked));
            if beyond && !d.recovering {
                d.exit = None;
            }
        }
    }

    fn may_grow(&self, path: PathId, _: &SackView<'_>) -> bool {
        // 4)
        self.has_moved(path) && self.recover(path).is_none()
    }

    fn recover(&self, path: PathId) -> Option<Tsn> {
        self.paths.get(path.index()).and_then(|d| d.exit)
    }

    fn on_retransmit(&mut self, from: PathId, to: PathId) {
        // The chunk at the left edge may now be on another path.
        if from != to
            && let Some(d) = self.paths.get_mut(from.index())
        {
            d.find_pseudo_cumack = true;
            d.find_rtx_pseudo_cumack = true;
        }
    }

    fn on_fast_retransmit(&mut self, path: PathId, _: Tsn, highest: Tsn) -> bool {
        let Some(d) = self.paths.get_mut(path.index()) else { return false };
        let cut = d.exit.is_none();
        if cut {
            d.exit = Some(highest);
        }
        cut
    }

    fn on_spurious(&mut self, path: PathId) {
        self.on_timeout(path);
    }

    fn on_timeout(&mut self, path: PathId) {
        // RFC 9260 7.2.3: slow start, which 7.2.1 allows outside fast recovery only.
        if let Some(d) = self.paths.get_mut(path.index()) {
            d.exit = None;
        }
    }
}
