//! Sender state of a message that may be abandoned (RFC 3758 3.4, RFC 7496).

use std::collections::BTreeMap;

use crate::allocation::{ALLOCATION, tree};
use crate::event::Message;
use crate::ids::{Ppid, StreamId};
use crate::reliability::{Abandoned, AbandonedCounts, Reliability};
use crate::time::Time;

/// Memory of the state of a message that may be abandoned.
pub(super) const PARTIAL: usize = size_of::<Partial>() + ALLOCATION + tree(24);

/// When a message is abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// At the end of its lifetime (RFC 3758 4.1).
    Until(Time),
    /// After this number of retransmissions of one of its chunks (RFC 7496 3.1).
    Retransmissions(u32),
    /// When a message of higher priority needs its buffer space (RFC 7496 3.2).
    Priority(u32),
}

impl Limit {
    fn of(reliability: Reliability, now: Time) -> Option<Self> {
        match reliability {
            Reliability::Reliable => None,
            Reliability::Lifetime(lifetime) => Some(Self::Until(now + lifetime)),
            Reliability::Retransmissions(most) => Some(Self::Retransmissions(most)),
            Reliability::Priority(priority) => Some(Self::Priority(priority)),
        }
    }

    /// Whether a lost chunk that was sent `transmissions` times must not be retransmitted.
    pub(crate) fn is_reached(self, now: Time, transmissions: u32) -> bool {
        match self {
            // RFC 3758 4.1, TR4.
            Self::Until(end) => now >= end,
            Self::Retransmissions(most) => transmissions > most,
            Self::Priority(_) => false,
        }
    }
}

/// A message that may be abandoned.
#[derive(Debug)]
pub(crate) struct Partial {
    /// Its number in the order in which the association's messages were queued.
    pub(crate) number: u64,
    pub(crate) stream: StreamId,
    pub(crate) ppid: Ppid,
    pub(crate) context: u32,
    pub(crate) unordered: bool,
    pub(crate) bytes: usize,
    pub(crate) limit: Limit,
}

impl Partial {
    /// The state of `message`; `None` if it is reliable.
    pub(crate) fn of(message: &Message, number: u64, now: Time) -> Option<Self> {
        Some(Self {
            number,
            stream: message.stream,
            ppid: message.ppid,
            context: message.context,
            unordered: message.unordered,
            bytes: message.payload.len(),
            limit: Limit::of(message.reliability, now)?,
        })
    }
}

/// Counts of abandoned messages.
#[derive(Debug, Default)]
pub(crate) struct Abandonments {
    all: Abandoned,
    streams: BTreeMap<StreamId, Abandoned>,
}

impl Abandonments {
    pub(crate) fn count(&mut self, message: &Partial, sent: bool) {
        for counts in [&mut self.all, self.streams.entry(message.stream).or_default()] {
            let AbandonedCounts { unsent, sent: begun } = match message.limit {
                Limit::Until(_) => &mut counts.lifetime,
                Limit::Retransmissions(_) => &mut counts.retransmissions,
                Limit::Priority(_) => &mut counts.priority,
            };
            *(if sent { begun } else { unsent }) += 1;
        }
    }

    pub(crate) fn of(&self, stream: Option<StreamId>) -> Abandoned {
        match stream {
            None => self.all,
            Some(stream) => self.streams.get(&stream).copied().unwrap_or_default(),
        }
    }
}
