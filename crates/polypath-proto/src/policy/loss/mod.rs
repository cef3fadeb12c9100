//! When is a chunk lost?

use std::fmt::Debug;

use super::Answer;
use crate::{PathId, Tsn};

pub mod multiple_fast_retransmit;
pub mod standard;

pub use multiple_fast_retransmit::MULTIPLE_FAST_RETRANSMIT;
pub use standard::STANDARD;

/// Every answer, by name.
pub static ANSWERS: &[&Answer<dyn LossDetector>] = &[&STANDARD, &MULTIPLE_FAST_RETRANSMIT];

/// What a SACK said, for the rules that judge by it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SackView<'a> {
    /// Its cumulative TSN ack.
    pub cumulative: Tsn,
    /// It moved the cumulative TSN ack point.
    pub advanced: bool,
    /// Highest TSN that it acknowledges for the first time, if any.
    pub highest_newly_acked: Option<Tsn>,
    /// The same for each path, by the path that the chunk was last sent to.
    pub highest_newly_acked_on: &'a [Option<Tsn>],
    /// Highest TSN that it acknowledges at all.
    pub highest_acked: Tsn,
}

/// A chunk that a SACK reports missing.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MissingChunk {
    /// Its TSN.
    pub tsn: Tsn,
    /// The path that it was last sent to.
    pub path: PathId,
    /// Missing reports so far.
    pub reports: u32,
    /// It has been fast retransmitted since it was last sent by timeout or for the first time.
    pub fast_retransmitted: bool,
    /// Recover point of its own: the highest TSN that had been sent when it was last fast
    /// retransmitted, if it ever was.
    pub own_recover: Option<Tsn>,
    /// How often it has been sent.
    pub transmissions: u32,
    /// The association (or the chunk's path, in CMT) is in fast recovery.
    pub in_fast_recovery: bool,
}

/// Decides when a chunk is lost.
pub trait LossDetector: Send + Debug {
    /// How many missing reports `sack` adds to `chunk`, which it does not acknowledge.
    fn reports(&mut self, chunk: &MissingChunk, sack: &SackView<'_>) -> u32;

    /// The chunk, with its reports counted, is lost and is to be fast retransmitted.
    fn is_lost(&self, chunk: &MissingChunk) -> bool;
}
