//! When may an acknowledgement make a window grow, and when must the window shrink?
//!
//! The [`CongestionController`](super::CongestionController) computes windows; this trait decides
//! when it does: fast recovery and the meaning of "the cumulative ack advanced".

use std::any::Any;
use std::fmt::Debug;

use super::loss::SackView;
use crate::ids::{PathId, Tsn};
use crate::policy::entry::Entry;

pub mod cuc;
pub mod standard;

pub use cuc::{CUC, CUC_V2};
pub use standard::STANDARD;

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn CwndUpdate>] = &[&STANDARD, &CUC, &CUC_V2];

/// A chunk that no SACK before the current one had acknowledged.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ScannedChunk {
    /// Its TSN.
    pub tsn: Tsn,
    /// The path it was last sent on.
    pub path: PathId,
    /// Whether it was sent more than once.
    pub retransmitted: bool,
    /// Whether a gap block of the current SACK acknowledges it.
    pub newly_acked: bool,
}

/// Decides when windows grow and shrink.
pub trait CwndUpdate: Any + Send + Debug {
    /// Called before a SACK is processed, with the number of paths.
    fn begin(&mut self, _paths: usize) {}

    /// The SACK's cumulative ack newly acknowledges a chunk last sent on `path`.
    fn on_cumulatively_acked(&mut self, _path: PathId) {}

    /// Whether [`on_scan`](Self::on_scan) is called for the chunks of a SACK with gap blocks.
    fn scans(&self) -> bool {
        false
    }

    /// Called, in TSN order, for chunks above the cumulative ack up to the highest TSN
    /// acknowledged.
    fn on_scan(&mut self, _chunk: &ScannedChunk) {}

    /// A SACK has arrived; called before the window methods are called for it.
    fn on_sack(&mut self, sack: &SackView<'_>);

    /// Whether the data that the SACK newly acknowledged on `path` may make that path's window
    /// grow.
    fn may_grow(&self, path: PathId, sack: &SackView<'_>) -> bool;

    /// The fast recovery exit point of `path`: the highest TSN outstanding when a window was cut.
    /// `None` outside fast recovery, for rules that leave it.
    fn recover(&self, path: PathId) -> Option<Tsn>;

    /// A chunk that was last sent on `from` is retransmitted on `to`.
    fn on_retransmit(&mut self, _from: PathId, _to: PathId) {}

    /// Missing reports showed that the chunk `lost`, last sent on `path`, is lost; `highest` is the
    /// highest TSN outstanding. Returns whether to cut the path's window.
    fn on_fast_retransmit(&mut self, path: PathId, lost: Tsn, highest: Tsn) -> bool;

    /// The loss for which the window of `path` was cut last was none: the window is restored.
    fn on_spurious(&mut self, _path: PathId) {}

    /// T3-rtx expired on `path`, whose window is now one packet.
    fn on_timeout(&mut self, _path: PathId) {}
}
