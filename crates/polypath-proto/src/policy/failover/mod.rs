//! When is a path given up, and when taken back? Which path takes new data meanwhile?

use std::fmt::Debug;

use super::{Answer, PathState, PathView, PathsView};
use crate::PathId;

pub mod standard;

pub use standard::STANDARD;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn FailoverPolicy>] = &[&STANDARD];

/// What happened on a path that counts as an error (RFC 9260 8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathErrorKind {
    /// T3-rtx expired.
    DataTimeout,
    /// A HEARTBEAT was not answered within the RTO.
    HeartbeatTimeout,
}

/// Decides when a path is given up and taken back. Unconfirmed paths are not its business
/// (RFC 9260 5.4).
pub trait FailoverPolicy: Send + Debug {
    /// The state of `path` after an error; `path.error_count` counts it already, and
    /// `path_max_retrans` is the path's threshold.
    fn after_error(
        &mut self,
        path: &PathView,
        error: PathErrorKind,
        path_max_retrans: u32,
        paths: PathsView<'_>,
    ) -> PathState;

    /// The state of `path` after the peer acknowledged data or a HEARTBEAT sent to it.
    fn after_answer(&mut self, path: &PathView, paths: PathsView<'_>) -> PathState;

    /// The path for new data (for all of it, or as the scheduler's starting point). Asked after
    /// every change.
    fn current(&mut self, paths: PathsView<'_>) -> PathId;
}
