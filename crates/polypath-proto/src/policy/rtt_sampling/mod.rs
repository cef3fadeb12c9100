//! What is a sample of the round-trip time?

use std::fmt::Debug;
use std::time::Duration;

use super::{Answer, PathsView};
use crate::{Extension, PathId, Time};

pub mod karn;
pub mod retransmission_flag;
pub mod timestamps;

pub use karn::KARN;
pub use retransmission_flag::RETRANSMISSION_FLAG;
pub use timestamps::TIMESTAMPS;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn RttSampling>] = &[&KARN, &TIMESTAMPS, &RETRANSMISSION_FLAG];

/// A chunk that a SACK acknowledges for the first time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AckedChunk {
    /// The path that it was last sent to.
    pub path: PathId,
    /// When it was last sent.
    pub sent: Time,
    /// How often it has been sent.
    pub transmissions: u32,
    /// It is the one under measurement on its path since it was last sent (RFC 9260 6.3.1 C4: one
    /// each round trip).
    pub measured: bool,
}

/// What the peer says of the packet that made it send a SACK, as far as that was agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SackCause {
    /// When that packet was sent.
    pub sent: Option<SentTime>,
    /// It held retransmissions.
    pub retransmission: bool,
}

/// When a packet was sent, as a TIMESTAMP chunk tells: microseconds from an origin of the
/// association's own, in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentTime {
    pub(crate) origin: u32,
    pub(crate) stamp: u32,
}

impl SentTime {
    /// It is this instant.
    pub fn is(self, time: Time) -> bool {
        self.stamp == Self::stamp_of(self.origin, time)
    }

    pub(crate) fn stamp_of(origin: u32, time: Time) -> u32 {
        ((time.as_nanos() / 1000) as u32).wrapping_add(origin)
    }
}

/// Decides which chunks measure the round-trip time.
pub trait RttSampling: Send + Debug {
    /// What both sides have to offer in the handshake. Where they did not, [`KARN`] takes over.
    fn needs(&self) -> Option<Extension> {
        None
    }

    /// A chunk that is sent for the `transmissions`-th time may be put under measurement.
    fn may_start(&self, transmissions: u32) -> bool;

    /// The samples that a SACK gives which arrives at `now`: for each the path and the round-trip
    /// time, added to `samples`. `acked` is what it acknowledges for the first time.
    fn samples(
        &mut self,
        now: Time,
        cause: &SackCause,
        acked: &[AckedChunk],
        paths: PathsView<'_>,
        samples: &mut Vec<(PathId, Duration)>,
    );
}
