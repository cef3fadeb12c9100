//! First come, first served: messages are sent in the order in which the application queued them.
//!
//! RFC 8260 3.1 (SCTP_SS_FCFS).

use std::collections::VecDeque;

use super::{Left, StreamScheduler, Waiting};
use crate::ids::StreamId;
use crate::policy::entry::Entry;

/// RFC 8260 3.1: first come, first served.
pub static FIRST_COME: Entry<dyn StreamScheduler> = Entry::new(
    "first-come",
    "messages in the order in which they were given (SCTP_SS_FCFS, RFC 8260 3.1)",
    |_| Box::<FirstCome>::default(),
);

#[derive(Debug, Default)]
struct FirstCome {
    /// Waiting messages, by number.
    order: VecDeque<(u64, StreamId)>,
}

impl StreamScheduler for FirstCome {
    fn queued(&mut self, message: &Waiting) {
        let entry = (message.number, message.stream);
        if self.order.back().is_none_or(|m| m.0 < message.number) {
            return self.order.push_back(entry);
        }
        // A reset of its stream held it back.
        let at = self.order.partition_point(|m| m.0 < message.number);
        self.order.insert(at, entry);
    }

    fn left(&mut self, chunk: &Left) {
        if !chunk.ends {
            return;
        }
        if self.order.front().is_some_and(|m| m.0 == chunk.number) {
            self.order.pop_front();
        } else if let Ok(at) = self.order.binary_search_by_key(&chunk.number, |m| m.0) {
            self.order.remove(at);
        }
    }

    fn next(&self) -> Option<StreamId> {
        self.order.front().map(|m| m.1)
    }
}
