//! Which stream's message is sent next? (RFC 8260 3)
//!
//! With user message interleaving a scheduler chooses for every chunk. Without it, a partly sent
//! message is finished first, and the scheduler chooses for every message (RFC 8260 3).

use std::fmt;

use crate::ids::StreamId;
use crate::policy::entry::Entry;

pub mod fair;
pub mod first_come;
pub mod priority;
pub mod round_robin;

pub use fair::{FAIR_CAPACITY, WEIGHTED_FAIR_QUEUEING};
pub use first_come::FIRST_COME;
pub use priority::PRIORITY;
pub use round_robin::{ROUND_ROBIN, ROUND_ROBIN_PACKET};

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn StreamScheduler>] = &[
    &FIRST_COME,
    &ROUND_ROBIN,
    &ROUND_ROBIN_PACKET,
    &PRIORITY,
    &FAIR_CAPACITY,
    &WEIGHTED_FAIR_QUEUEING,
];

/// A message that was queued behind those that already wait on its stream.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in the order in which the application sent the association's messages. A message
    /// held back by a stream reset is queued after later ones on other streams.
    pub number: u64,
    /// Whether no other message waits on its stream.
    pub first: bool,
    /// The value that the application has set for the stream (SCTP_STREAM_SCHEDULER_VALUE).
    pub value: u16,
}

/// A chunk that was sent, or a message that was dropped.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Its stream.
    pub stream: StreamId,
    /// The number of its message.
    pub number: u64,
    /// Payload bytes sent; 0 for a dropped message.
    pub bytes: usize,
    /// Whether no part of the message waits any more.
    pub ends: bool,
    /// Whether a message, or the rest of one, waits on its stream.
    pub more: bool,
    /// The value that the application has set for the stream.
    pub value: u16,
}

/// Decides which stream's message is sent next.
pub trait StreamScheduler: fmt::Debug + Send {
    /// A message was queued.
    fn queued(&mut self, message: &Waiting);

    /// A chunk was sent, or a message was dropped.
    fn left(&mut self, chunk: &Left);

    /// The stream of the next chunk; `None` if no message waits.
    fn next(&self) -> Option<StreamId>;

    /// A new packet begins.
    fn begin_packet(&mut self) {}

    /// Whether chunks of several streams may share a packet.
    fn bundles_streams(&self) -> bool {
        true
    }
}
