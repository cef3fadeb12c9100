//! Strict priorities: the stream with the smallest value first; among equals, the streams take
//! turns.
//!
//! RFC 8260 3.4 (SCTP_SS_PRIO); 4.3.3: the value of a stream is its priority.

use std::collections::{BTreeMap, BTreeSet};

use super::{Left, StreamScheduler, Waiting};
use crate::ids::StreamId;
use crate::policy::entry::Entry;

/// See the [module](self).
pub static PRIORITY: Entry<dyn StreamScheduler> = Entry::new(
    "priority",
    "the stream with the smallest value first, equals in turn (SCTP_SS_PRIO, RFC 8260 3.4)",
    |_| Box::<Priority>::default(),
);

#[derive(Debug, Default)]
struct Priority {
    /// Streams with waiting messages, by value.
    active: BTreeMap<u16, BTreeSet<StreamId>>,
    /// For each value, the stream from which the next search starts.
    from: BTreeMap<u16, StreamId>,
}

impl StreamScheduler for Priority {
    fn queued(&mut self, message: &Waiting) {
        self.active.entry(message.value).or_default().insert(message.stream);
    }

    fn left(&mut self, chunk: &Left) {
        if chunk.bytes > 0 {
            self.from.insert(chunk.value, StreamId(chunk.stream.0.wrapping_add(1)));
        }
        if !chunk.more
            && let Some(streams) = self.active.get_mut(&chunk.value)
        {
            streams.remove(&chunk.stream);
            if streams.is_empty() {
                self.active.remove(&chunk.value);
            }
        }
    }

    fn next(&self) -> Option<StreamId> {
        let (value, streams) = self.active.first_key_value()?;
        let from = self.from.get(value).copied().unwrap_or_default();
        streams.range(from..).next().or_else(|| streams.first()).copied()
    }
}
