//! Which path carries new data?

use std::fmt::Debug;

use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::time::Time;

pub mod bottleneck_aware;
pub mod concurrent;
pub mod delay_aware;
pub mod earliest;
pub mod primary;

pub use bottleneck_aware::BOTTLENECK_AWARE;
pub use concurrent::CONCURRENT;
pub use delay_aware::DELAY_AWARE;
pub use earliest::EARLIEST;
pub use primary::PRIMARY;

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn Scheduler>] =
    &[&PRIMARY, &CONCURRENT, &DELAY_AWARE, &BOTTLENECK_AWARE, &EARLIEST];

/// The inputs of a scheduling decision other than the paths; sizes in bytes, chunk headers
/// included.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NewData {
    /// The current time.
    pub now: Time,
    /// Data in the send buffer that has not been sent.
    pub waiting: usize,
    /// Whether the application has more data than the send buffer has room for.
    pub more: bool,
    /// The peer's window less the data in flight (RFC 9260 6.2.1).
    pub peer_rwnd: u32,
    /// Data in flight on all paths.
    pub in_flight: u32,
    /// The peer's receive buffer: the largest window that it has announced.
    pub receive_buffer: u32,
    /// Data that was sent before chunks with lower TSNs and is not cumulatively acknowledged.
    pub ahead: u32,
}

/// The path for a packet of new data, and which data it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its path.
    pub path: PathId,
    /// Bytes of unsent data to skip: they keep their lower TSNs and are left to other paths.
    pub ahead: usize,
}

impl Turn {
    /// Sends the next data in order on `path`.
    pub const fn in_order(path: PathId) -> Self {
        Self { path, ahead: 0 }
    }
}

/// Whether a path's window and burst limit allow a packet.
pub type HasRoom<'a> = &'a dyn Fn(PathId) -> bool;

/// Decides which path carries the next packet of new data.
pub trait Scheduler: Send + Debug {
    /// Called when nothing more may be sent for now.
    fn turn_over(&mut self) {}

    /// The path for the next packet of new data; `None` if it has to wait.
    fn next(&mut self, paths: PathsView<'_>, data: &NewData, has_room: HasRoom<'_>)
    -> Option<Turn>;
}
