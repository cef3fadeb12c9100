//! Which path takes new data?

use std::fmt::Debug;

use super::{Answer, PathView, PathsView};
use crate::PathId;

pub mod concurrent;
pub mod primary;

pub use concurrent::CONCURRENT;
pub use primary::PRIMARY;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn Scheduler>] = &[&PRIMARY, &CONCURRENT];

/// Decides which path takes the next packet of new data.
pub trait Scheduler: Send + Debug {
    /// New data goes to several paths at a time (CMT). Then a chunk that waits for its retransmission
    /// holds up no other path than its own, and each loss lets one packet leave on the path that
    /// suffered it (Iyengar 2004, II and V.B).
    fn is_concurrent(&self) -> bool {
        false
    }

    /// All that may leave for now has left.
    fn turn_over(&mut self) {}

    /// The path for the next packet of new data; `None` if it has to wait. `has_room` says that a path's
    /// window and its burst leave room for a packet.
    fn path(
        &mut self,
        paths: PathsView<'_>,
        has_room: &dyn Fn(&PathView) -> bool,
    ) -> Option<PathId>;
}
