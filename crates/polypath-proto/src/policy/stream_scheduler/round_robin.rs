//! Round robin: the streams take turns, in the order of their numbers.
//!
//! RFC 8260 3.2 (SCTP_SS_RR): message by message, or chunk by chunk if messages are interleaved.
//! 3.3 (SCTP_SS_RR_PKT): a stream keeps its turn to the end of the packet, and a packet carries
//! chunks of one stream only, so that its loss delays no other stream.

use std::collections::BTreeSet;

use super::{Left, StreamScheduler, Waiting};
use crate::ids::StreamId;
use crate::policy::entry::Entry;

/// See the [module](self).
pub static ROUND_ROBIN: Entry<dyn StreamScheduler> =
    Entry::new("round-robin", "the streams in turn (SCTP_SS_RR, RFC 8260 3.2)", |_| {
        Box::new(RoundRobin { by_packet: false, ..RoundRobin::default() })
    });

/// See the [module](self).
pub static ROUND_ROBIN_PACKET: Entry<dyn StreamScheduler> = Entry::new(
    "round-robin-packet",
    "the streams in turn, each for a packet of its own (SCTP_SS_RR_PKT, RFC 8260 3.3)",
    |_| Box::new(RoundRobin { by_packet: true, ..RoundRobin::default() }),
);

#[derive(Debug, Default)]
struct RoundRobin {
    by_packet: bool,
    /// Streams with waiting messages.
    active: BTreeSet<StreamId>,
    /// The stream from which the next search starts.
    from: StreamId,
    /// The stream of the current packet.
    packet: Option<StreamId>,
}

impl StreamScheduler for RoundRobin {
    fn queued(&mut self, message: &Waiting) {
        self.active.insert(message.stream);
    }

    fn left(&mut self, chunk: &Left) {
        if chunk.bytes > 0 {
            self.from = StreamId(chunk.stream.0.wrapping_add(1));
            self.packet = self.by_packet.then_some(chunk.stream);
        }
        if !chunk.more {
            self.active.remove(&chunk.stream);
        }
    }

    fn next(&self) -> Option<StreamId> {
        if let Some(stream) = self.packet.filter(|stream| self.active.contains(stream)) {
            return Some(stream);
        }
        self.active.range(self.from..).next().or_else(|| self.active.first()).copied()
    }

    fn begin_packet(&mut self) {
        self.packet = None;
    }

    fn bundles_streams(&self) -> bool {
        !self.by_packet
    }
}
