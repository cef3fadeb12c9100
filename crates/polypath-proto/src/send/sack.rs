//! What a SACK has acknowledged, path by path.

use std::time::Duration;

use crate::ids::{PathId, Tsn};
use crate::policy::loss::NewlyAckedOn;
use crate::policy::rtt_sampling::{AckedChunk, SackCause};

/// Effects of a SACK on one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTally {
    pub(crate) acked: u32,
    pub(crate) acked_by_gaps: u32,
    pub(crate) in_flight_before: u32,
    pub(crate) newly_acked: NewlyAckedOn,
    /// The cumulative ack acknowledges data that was in flight.
    pub(crate) earliest: bool,
    /// Losses were found by missing reports.
    pub(crate) lost: bool,
    /// An acknowledgement has shown that the path works.
    pub(crate) answered: bool,
}

/// The effects of a SACK on all paths.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) paths: Vec<PathTally>,
    pub(crate) newly_acked_on: Vec<NewlyAckedOn>,
}

/// Memory for what one SACK reports, reused for the next.
#[derive(Debug, Default)]
pub(crate) struct SackMemory {
    pub(crate) tally: Tally,
    pub(crate) missing: Vec<(Tsn, PathId, u32)>,
    pub(crate) cause: SackCause,
    pub(crate) acked: Vec<AckedChunk>,
    pub(crate) samples: Vec<(PathId, Duration)>,
}
