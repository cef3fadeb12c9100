//! Which path takes new data?

use std::fmt::Debug;

use super::{Answer, PathsView};
use crate::{PathId, Time};

pub mod concurrent;
pub mod delay_aware;
pub mod primary;

pub use concurrent::CONCURRENT;
pub use delay_aware::DELAY_AWARE;
pub use primary::PRIMARY;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn Scheduler>] = &[&PRIMARY, &CONCURRENT, &DELAY_AWARE];

/// What the next packet of new data depends on beside the paths; in bytes, chunk headers included.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NewData {
    /// When it would leave.
    pub now: Time,
    /// In the send buffer and not sent yet.
    pub waiting: usize,
    /// The application has more, for which the send buffer has no room.
    pub more: bool,
    /// What the peer's receive buffer still takes beside what is in flight (RFC 9260 6.2.1).
    pub peer_rwnd: u32,
    /// In flight on all paths.
    pub in_flight: u32,
    /// The peer's receive buffer: the largest window that it has announced.
    pub receive_buffer: u32,
    /// Sent before others with a lower TSN, and not cumulatively acknowledged.
    pub ahead: u32,
}

/// Where a packet of new data goes, and which data that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its path.
    pub path: PathId,
    /// What lies behind so many bytes of what has not been sent: these are left to other paths,
    /// and keep their lower TSNs.
    pub ahead: usize,
}

impl Turn {
    /// The next data goes to `path`.
    pub const fn in_order(path: PathId) -> Self {
        Self { path, ahead: 0 }
    }
}

/// Decides which path takes the next packet of new data.
pub trait Scheduler: Send + Debug {
    /// New data goes to several paths at a time (CMT). Then a chunk that waits for its retransmission
    /// holds up no other path than its own, and each loss lets one packet leave on the path that
    /// suffered it (Iyengar 2004, II and V.B).
    fn is_concurrent(&self) -> bool {
        false
    }

    /// It looks at [`delivery_rate`](super::PathView::delivery_rate) or [`clear`](super::PathView::clear), which
    /// are measured for it alone.
    fn measures_delivery(&self) -> bool {
        false
    }

    /// All that may leave for now has left.
    fn turn_over(&mut self) {}

    /// The path for the next packet of new data; `None` if it has to wait. `has_room` says that a path's
    /// window and its burst leave room for a packet.
    fn next(
        &mut self,
        paths: PathsView<'_>,
        data: &NewData,
        has_room: &dyn Fn(PathId) -> bool,
    ) -> Option<Turn>;
}
