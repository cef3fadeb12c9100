//! When may an acknowledgement make a window grow, and when must it shrink?
//!
//! The window's arithmetic is the [`CongestionController`](super::CongestionController)'s; this seam
//! decides whether it is asked: fast recovery and the meaning of "the cumulative ack advanced".

use std::fmt::Debug;

use super::Answer;
use super::loss::SackView;
use crate::{PathId, Tsn};

pub mod standard;

pub use standard::STANDARD;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn CwndUpdate>] = &[&STANDARD];

/// Decides when windows grow and shrink.
pub trait CwndUpdate: Send + Debug {
    /// A SACK has arrived; called before the questions about it.
    fn on_sack(&mut self, sack: &SackView<'_>);

    /// What the SACK newly acknowledged on `path` may make that path's window grow.
    fn may_grow(&self, path: PathId, sack: &SackView<'_>) -> bool;

    /// `path` is in fast recovery.
    fn in_fast_recovery(&self, path: PathId) -> bool;

    /// Chunks last sent to `path` were found lost by missing reports; `highest` is the highest
    /// TSN outstanding. True if the path's window is to be cut for it.
    fn on_fast_retransmit(&mut self, path: PathId, highest: Tsn) -> bool;
}
