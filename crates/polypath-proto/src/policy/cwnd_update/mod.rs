//! When may an acknowledgement make a window grow, and when must it shrink?
//!
//! The window's arithmetic is the [`CongestionController`](super::CongestionController)'s; this seam
//! decides whether it is asked: fast recovery and the meaning of "the cumulative ack advanced".

use std::fmt::Debug;

use super::Answer;
use super::loss::SackView;
use crate::{PathId, Tsn};

pub mod ns2;
pub mod standard;

pub use ns2::NS2;
pub use standard::STANDARD;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn CwndUpdate>] = &[&STANDARD, &NS2];

/// Decides when windows grow and shrink.
pub trait CwndUpdate: Send + Debug {
    /// A SACK has arrived; called before the questions about it.
    fn on_sack(&mut self, sack: &SackView<'_>);

    /// What the SACK newly acknowledged on `path` may make that path's window grow.
    fn may_grow(&self, path: PathId, sack: &SackView<'_>) -> bool;

    /// The fast recovery exit point that holds for `path`: the highest TSN outstanding when a window
    /// was cut. `None` outside fast recovery, if the rule leaves it.
    fn recover(&self, path: PathId) -> Option<Tsn>;

    /// The chunk `lost`, last sent to `path`, was found lost by missing reports; `highest` is the
    /// highest TSN outstanding. True if the path's window is to be cut for it.
    fn on_fast_retransmit(&mut self, path: PathId, lost: Tsn, highest: Tsn) -> bool;
}
