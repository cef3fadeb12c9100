//! When is a path probed? With a HEARTBEAT, which also measures its round-trip time.
//!
//! Beyond what this seam decides, every path is probed that has to be confirmed (RFC 9260 5.4), and
//! one that the application asks about (11.1.8).

use std::fmt::Debug;

use super::{Answer, PathView, PathsView};

pub mod after_rto;
pub mod idle;

pub use after_rto::AFTER_RTO;
pub use idle::IDLE;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn ProbingPolicy>] = &[&IDLE, &AFTER_RTO];

/// Decides when a path is probed.
pub trait ProbingPolicy: Send + Debug {
    /// The heartbeat period of `path` is over, during which nothing was sent there that measures the
    /// round-trip time if it was `idle`: is it probed now?
    fn after_period(&mut self, path: &PathView, idle: bool, paths: PathsView<'_>) -> bool;

    /// T3-rtx has expired on `path`, with everything that follows from it (RTO, errors, state): is it
    /// probed once the retransmission has left?
    fn after_timeout(&mut self, path: &PathView, paths: PathsView<'_>) -> bool;
}
