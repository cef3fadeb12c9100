//! Which chunks measure the round-trip time?

use std::fmt::Debug;
use std::time::Duration;

use crate::ids::{PathId, Tsn};
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::time::Time;

pub mod karn;
pub mod retransmission_flag;
pub mod timestamps;

pub use karn::KARN;
pub use retransmission_flag::RETRANSMISSION_FLAG;
pub use timestamps::TIMESTAMPS;

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn RttSampling>] = &[&KARN, &TIMESTAMPS, &RETRANSMISSION_FLAG];

/// A chunk that a SACK newly acknowledges.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AckedChunk {
    /// Its TSN.
    pub tsn: Tsn,
    /// Its bytes, chunk header included.
    pub bytes: u32,
    /// The path it was last sent on.
    pub path: PathId,
    /// When it was last sent.
    pub sent: Time,
    /// Number of its transmissions.
    pub transmissions: u32,
    /// Whether it was chosen for the measurement on its path when it was last sent (RFC 9260 6.3.1
    /// C4: one each round trip).
    pub measured: bool,
}

/// The peer's report on the packet that caused a SACK, as far as the negotiated extensions provide
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SackCause {
    /// When that packet was sent.
    pub sent: Option<SentTime>,
    /// Whether that packet contained retransmissions.
    pub retransmission: bool,
}

/// The time in a TIMESTAMP chunk: when a packet was sent, in microseconds since an origin of the
/// association, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentTime {
    pub(crate) origin: u32,
    pub(crate) stamp: u32,
}

impl SentTime {
    /// Whether it is the timestamp of `time`.
    pub fn is(self, time: Time) -> bool {
        self.stamp == Self::stamp_of(self.origin, time)
    }

    /// Whether it is the timestamp of an earlier time than `time`, by less than 36 minutes.
    pub fn is_before(self, time: Time) -> bool {
        let age = Self::stamp_of(self.origin, time).wrapping_sub(self.stamp);
        age != 0 && age < 1 << 31
    }

    pub(crate) fn stamp_of(origin: u32, time: Time) -> u32 {
        ((time.as_nanos() / 1000) as u32).wrapping_add(origin)
    }
}

/// Decides which chunks measure the round-trip time.
pub trait RttSampling: Send + Debug {
    /// Whether a chunk that is sent for the `transmissions`-th time may be chosen for a
    /// measurement.
    fn may_start(&self, transmissions: u32) -> bool;

    /// Adds the samples of a SACK that arrives at `now` to `samples`: path and round-trip time of
    /// each. `acked` are the chunks that it newly acknowledges.
    fn samples(
        &mut self,
        now: Time,
        cause: &SackCause,
        acked: &[AckedChunk],
        paths: PathsView<'_>,
        samples: &mut Vec<(PathId, Duration)>,
    );
}
