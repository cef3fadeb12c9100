//! Which stream's message leaves next? (RFC 8260 3)
//!
//! With user message interleaving a scheduler is asked for every chunk. Without, a message that has
//! begun to leave goes on to its end, and the scheduler is asked for every message (RFC 8260 3).

use std::fmt;

use super::Answer;
use crate::StreamId;

mod fair;
mod first_come;
mod priority;
mod round_robin;

pub use fair::{FAIR_CAPACITY, WEIGHTED_FAIR_QUEUEING};
pub use first_come::FIRST_COME;
pub use priority::PRIORITY;
pub use round_robin::{ROUND_ROBIN, ROUND_ROBIN_PACKET};

/// Every answer.
pub static ANSWERS: &[&Answer<dyn StreamScheduler>] = &[
    &FIRST_COME,
    &ROUND_ROBIN,
    &ROUND_ROBIN_PACKET,
    &PRIORITY,
    &FAIR_CAPACITY,
    &WEIGHTED_FAIR_QUEUEING,
];

/// A message that begins to wait, behind those of its stream that wait already.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its stream.
    pub stream: StreamId,
    /// Counts the messages of the association in the order in which they came. One that a reset of its
    /// stream has held back begins to wait after younger ones of other streams.
    pub number: u64,
    /// Nothing else waits on its stream.
    pub first: bool,
    /// What the application has set for the stream (SCTP_STREAM_SCHEDULER_VALUE).
    pub value: u16,
}

/// A chunk that has left, or a message that was dropped.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Its stream.
    pub stream: StreamId,
    /// The number of its message.
    pub number: u64,
    /// Payload bytes that left; none of what was dropped.
    pub bytes: usize,
    /// Nothing of the message waits any more.
    pub ends: bool,
    /// Something waits on its stream.
    pub more: bool,
    /// What the application has set for the stream.
    pub value: u16,
}

/// See the [module](self).
pub trait StreamScheduler: fmt::Debug + Send {
    /// A message begins to wait.
    fn queued(&mut self, message: &Waiting);

    /// A chunk has left, or a message was dropped.
    fn left(&mut self, chunk: &Left);

    /// The stream of the next chunk; `None` if nothing waits.
    fn next(&self) -> Option<StreamId>;

    /// A packet is begun.
    fn begin_packet(&mut self) {}

    /// Chunks of several streams may share a packet.
    fn bundles_streams(&self) -> bool {
        true
    }
}
