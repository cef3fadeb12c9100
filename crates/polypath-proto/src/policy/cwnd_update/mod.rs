//! When may an acknowledgement make a window grow, and when must it shrink?
//!
//! The window's arithmetic is the [`CongestionController`](super::CongestionController)'s; this seam
//! decides whether it is asked: fast recovery and the meaning of "the cumulative ack advanced".

use std::fmt::Debug;

use super::Answer;
use super::loss::SackView;
use crate::{PathId, Tsn};

pub mod cuc;
pub mod ns2;
pub mod standard;

pub use cuc::{CUC, CUC_V2};
pub use ns2::NS2;
pub use standard::STANDARD;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn CwndUpdate>] = &[&STANDARD, &CUC, &CUC_V2, &NS2];

/// A chunk that no SACK had acknowledged before the one at hand.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ScannedChunk {
    /// Its TSN.
    pub tsn: Tsn,
    /// The path that it was last sent to.
    pub path: PathId,
    /// It has been sent more than once.
    pub retransmitted: bool,
    /// A gap block of the SACK at hand acknowledges it.
    pub newly_acked: bool,
}

/// Decides when windows grow and shrink.
pub trait CwndUpdate: Send + Debug {
    /// A SACK is about to be processed; there are so many paths.
    fn begin(&mut self, _paths: usize) {}

    /// Its cumulative ack acknowledges a chunk, last sent to `path`, for the first time.
    fn on_cumulatively_acked(&mut self, _path: PathId) {}

    /// It wants to see, of a SACK with gap blocks, every chunk in turn.
    fn scans(&self) -> bool {
        false
    }

    /// A chunk above the cumulative ack and up to the highest TSN acknowledged, in the order of TSNs.
    fn on_scan(&mut self, _chunk: &ScannedChunk) {}

    /// A left edge of the path has moved by what was seen so far.
    fn has_moved(&self, _path: PathId) -> bool {
        false
    }

    /// The left edges of what is outstanding on the path, never and once retransmitted, as the rule
    /// knows them.
    fn left_edges(&self, _path: PathId) -> [Option<Tsn>; 2] {
        [None; 2]
    }

    /// A SACK has arrived; called before the questions about it.
    fn on_sack(&mut self, sack: &SackView<'_>);

    /// What the SACK newly acknowledged on `path` may make that path's window grow.
    fn may_grow(&self, path: PathId, sack: &SackView<'_>) -> bool;

    /// The fast recovery exit point that holds for `path`: the highest TSN outstanding when a window
    /// was cut. `None` outside fast recovery, if the rule leaves it.
    fn recover(&self, path: PathId) -> Option<Tsn>;

    /// A chunk that was last sent to `from` leaves again on `to`.
    fn on_retransmit(&mut self, _from: PathId, _to: PathId) {}

    /// The chunk `lost`, last sent to `path`, was found lost by missing reports; `highest` is the
    /// highest TSN outstanding. True if the path's window is to be cut for it.
    fn on_fast_retransmit(&mut self, path: PathId, lost: Tsn, highest: Tsn) -> bool;

    /// T3-rtx has expired on `path`, whose window is one packet now. Not called by ns-2's procedures.
    fn on_timeout(&mut self, _path: PathId) {}
}
