//! When is a path probed? A probe is a HEARTBEAT, which also measures the path's round-trip time.
//!
//! Independently of this policy, paths are probed to confirm them (RFC 9260 5.4), and when the
//! application requests a HEARTBEAT (11.1.10).

use std::fmt::Debug;

use crate::path::{PathView, PathsView};
use crate::policy::entry::Entry;

pub mod after_rto;
pub mod idle;

pub use after_rto::AFTER_RTO;
pub use idle::IDLE;

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn ProbingPolicy>] = &[&IDLE, &AFTER_RTO];

/// Decides when a path is probed.
pub trait ProbingPolicy: Send + Debug {
    /// Whether to probe `path` at the end of its heartbeat period. `idle`: no chunk that measures
    /// the round-trip time was sent on it in this period.
    fn after_period(&mut self, path: &PathView, idle: bool, paths: PathsView<'_>) -> bool;

    /// Whether to probe `path` after T3-rtx expired on it, once the retransmission is sent. The
    /// path's RTO, errors and state are updated already.
    fn after_timeout(&mut self, path: &PathView, paths: PathsView<'_>) -> bool;
}
