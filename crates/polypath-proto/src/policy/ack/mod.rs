//! When is a SACK sent, and on which path?

use std::fmt::Debug;
use std::time::Duration;

use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::time::Time;

pub mod alternating;
pub mod delayed;
pub mod delayed_cmt;
pub mod rate;

pub use alternating::ALTERNATING;
pub use delayed::DELAYED;
pub use delayed_cmt::DELAYED_CMT;
pub use rate::RATE;

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn AckPolicy>] =
    &[&DELAYED, &DELAYED_CMT, &RATE, &ALTERNATING];

/// A packet with DATA that arrived.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Arrival {
    /// When it arrived.
    pub now: Time,
    /// The path it arrived on.
    pub path: PathId,
    /// Packets with DATA since the last SACK, this one included.
    pub packets: u32,
    /// Whether it carried the association's first DATA chunk (RFC 9260 5.1), even as a duplicate.
    pub first: bool,
    /// Whether TSNs are missing below the highest one received.
    pub gap: bool,
    /// Whether a TSN is missing below it that no earlier packet showed to be missing.
    pub new_gap: bool,
    /// Round-trip time of the path, once it was measured: smoothed, or that of the handshake.
    pub rtt: Option<Duration>,
    /// Whether it carried a TSN received before.
    pub duplicate: bool,
    /// Whether the peer requested an immediate SACK (the I bit, RFC 9260 3.3.1).
    pub immediate: bool,
    /// Whether data was dropped for lack of buffer space.
    pub dropped: bool,
}

/// When to send the SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckTime {
    /// At once.
    Now,
    /// At once, in addition to the delayed SACK for earlier packets: another one follows within
    /// this time.
    NowAndWithin(Duration),
    /// At once, and another one within this time, counted from the first packet since the last
    /// SACK, unless another packet restarts the count.
    NowAndAgainWithin(Duration),
    /// At once, without counting the packet; the delayed SACK for earlier packets is still sent.
    NowUncounted,
    /// Within this time, counted from the first unacknowledged packet.
    Within(Duration),
}

/// Decides when a SACK is sent, and on which path.
pub trait AckPolicy: Send + Debug {
    /// When to acknowledge the packet.
    fn when(&mut self, arrival: &Arrival) -> AckTime;

    /// The path for the SACK; `last` is the path on which the last DATA arrived.
    fn path(&self, last: PathId, paths: PathsView<'_>) -> PathId;
}
