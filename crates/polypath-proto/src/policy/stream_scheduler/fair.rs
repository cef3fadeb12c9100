//! Fair shares of the capacity: the stream that has sent the least relative to its weight is next.
//!
//! RFC 8260 3.5 (SCTP_SS_FC): equal shares, whatever the sizes of messages. 3.6 (SCTP_SS_WFQ):
//! shares in proportion to the streams' values. Start-time fair queueing (Goyal et al. 1997): each
//! stream has a virtual time that advances by the bytes sent divided by its weight. A stream that
//! was idle starts at the virtual time of the others, so that idle time earns no credit.

use std::collections::{BTreeMap, BTreeSet};

use super::{Left, StreamScheduler, Waiting};
use crate::ids::StreamId;
use crate::policy::entry::Entry;

/// See the [module](self).
pub static FAIR_CAPACITY: Entry<dyn StreamScheduler> = Entry::new(
    "fair-capacity",
    "equal shares of the bytes for all streams (SCTP_SS_FC, RFC 8260 3.5)",
    |_| Box::new(Fair { weighted: false, ..Fair::default() }),
);

/// See the [module](self).
pub static WEIGHTED_FAIR_QUEUEING: Entry<dyn StreamScheduler> = Entry::new(
    "weighted-fair-queueing",
    "shares of the bytes in proportion to the streams' values (SCTP_SS_WFQ, RFC 8260 3.6)",
    |_| Box::new(Fair { weighted: true, ..Fair::default() }),
);

/// Virtual time of one byte at weight 1; large enough that a byte at the largest weight counts.
const BYTE: u128 = 1 << 16;

#[derive(Debug, Default)]
struct Fair {
    weighted: bool,
    /// Streams with waiting messages, by virtual time.
    active: BTreeSet<(u128, StreamId)>,
    /// The virtual time of each stream, active or not.
    times: BTreeMap<StreamId, u128>,
    /// The virtual time at which the last chunk was sent.
    now: u128,
}

impl StreamScheduler for Fair {
    fn queued(&mut self, message: &Waiting) {
        if message.first {
            let time = self.times.entry(message.stream).or_default();
            *time = self.now.max(*time);
            self.active.insert((*time, message.stream));
        }
    }

    fn left(&mut self, chunk: &Left) {
        let Some(time) = self.times.get_mut(&chunk.stream) else { return };
        self.active.remove(&(*time, chunk.stream));
        if chunk.bytes > 0 {
            self.now = self.now.max(*time);
            let weight = if self.weighted { u128::from(chunk.value.max(1)) } else { 1 };
            *time += chunk.bytes as u128 * BYTE / weight;
        }
        if chunk.more {
            self.active.insert((*time, chunk.stream));
        }
    }

    fn next(&self) -> Option<StreamId> {
        self.active.first().map(|(_, stream)| *stream)
    }
}
