//! How does a congestion window grow and shrink?

use std::fmt::Debug;
use std::net::IpAddr;

use super::Answer;
use crate::path::{PathView, PathsView, Window};

pub mod coupled;
pub mod ns2;
pub mod resource_pooling;
pub mod rfc9260;

pub use coupled::COUPLED;
pub use ns2::NS2;
pub use resource_pooling::RESOURCE_POOLING;
pub use rfc9260::RFC9260;

/// Every policy.
pub static ANSWERS: &[&Answer<dyn CongestionController>] =
    &[&RFC9260, &NS2, &COUPLED, &RESOURCE_POOLING];

/// The data that a SACK newly acknowledged on one path, in bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PathAck {
    /// Bytes of chunks newly acknowledged, cumulatively or by gap blocks, headers included.
    pub acked: u32,
    /// Those of `acked` that gap blocks acknowledged.
    pub acked_by_gaps: u32,
    /// Those of `acked` that count towards partial_bytes_acked in CMT by ns-2's procedures; `None`
    /// lets the controller decide.
    pub counted: Option<u32>,
    /// Bytes in flight on the path before the SACK; by ns-2's procedures, those of chunks that wait
    /// for retransmission too.
    pub in_flight_before: u32,
    /// Whether the SACK advanced the cumulative TSN ack point.
    pub advanced: bool,
    /// Whether the [`CwndUpdate`](super::CwndUpdate) policy lets the window grow.
    pub may_grow: bool,
}

/// Computes congestion windows. Each method gets the current state of a path and returns its new
/// window.
pub trait CongestionController: Send + Debug {
    /// The window of a new path to `remote` whose largest chunk is `max_chunk` bytes.
    fn initial(&self, max_chunk: u32, ssthresh: u32, remote: IpAddr) -> Window;

    /// A SACK newly acknowledged data on `path` (`path.in_flight` is what remains).
    fn on_ack(&mut self, path: &PathView, ack: &PathAck, paths: PathsView<'_>) -> Window;

    /// Missing reports detected losses, for the first time in this fast recovery.
    fn on_fast_retransmit(&mut self, path: &PathView, paths: PathsView<'_>) -> Window;

    /// T3-rtx expired.
    fn on_timeout(&mut self, path: &PathView, paths: PathsView<'_>) -> Window;

    /// Nothing was sent on the path for one more RTO, or for the `first` one.
    fn on_idle(&mut self, path: &PathView, first: bool) -> Window;
}
