//! When is an acknowledgement sent, and where?

use std::fmt::Debug;
use std::time::Duration;

use super::{Answer, PathsView};
use crate::{Extension, PathId};

pub mod delayed;
pub mod delayed_cmt;
pub mod ns2;

pub use delayed::DELAYED;
pub use delayed_cmt::DELAYED_CMT;
pub use ns2::NS2;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn AckPolicy>] = &[&DELAYED, &DELAYED_CMT, &NS2];

/// A packet with DATA that has arrived.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// The path that it came over.
    pub path: PathId,
    /// Packets with DATA since the last SACK, this one included.
    pub packets: u32,
    /// It brought the first DATA chunk of the association (RFC 9260 5.1), perhaps once more.
    pub first: bool,
    /// TSNs are missing below the highest one received.
    pub gap: bool,
    /// It carried a TSN received before.
    pub duplicate: bool,
    /// The sender asked for an answer at once (the I bit, RFC 9260 3.3.1).
    pub immediate: bool,
    /// Data had to be dropped for want of buffer space.
    pub dropped: bool,
}

/// When the SACK is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckTime {
    /// At once.
    Now,
    /// At once, and what else waits is not answered by it: within this time there is another one.
    NowAndWithin(Duration),
    /// At once, and another one within this time from the first packet since the last one, unless
    /// another packet begins the count anew.
    NowAndAgainWithin(Duration),
    /// At once, without counting the packet; what else waits is not answered by it.
    NowUncounted,
    /// After this time at the latest, counted from the first packet that waits for it.
    Within(Duration),
}

/// Decides when a SACK is sent, and where.
pub trait AckPolicy: Send + Debug {
    /// What both sides have to offer in the handshake. Where they did not, [`DELAYED`] takes over.
    fn needs(&self) -> Option<Extension> {
        None
    }

    /// When the packet is to be acknowledged.
    fn when(&mut self, arrival: &Arrival) -> AckTime;

    /// Which path carries the SACK; `last` is where the last DATA came from.
    fn path(&self, last: PathId, paths: PathsView<'_>) -> PathId;
}
