//! Messages that must not get sequence numbers yet: their streams are being reset (RFC 6525 5.1.2).

use std::collections::{BTreeSet, VecDeque};

use crate::{Message, StreamId};

/// Streams of an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    All,
    Some(BTreeSet<u16>),
}

impl Streams {
    /// As a request lists them: no number stands for all.
    pub(crate) fn listed(streams: impl IntoIterator<Item = u16>) -> Self {
        let some: BTreeSet<u16> = streams.into_iter().collect();
        if some.is_empty() { Self::All } else { Self::Some(some) }
    }

    pub(crate) fn contains(&self, stream: StreamId) -> bool {
        match self {
            Self::All => true,
            Self::Some(some) => some.contains(&stream.0),
        }
    }

    /// The numbers, ascending; none for all.
    pub(crate) fn list(&self) -> Vec<StreamId> {
        match self {
            Self::All => Vec::new(),
            Self::Some(some) => some.iter().map(|s| StreamId(*s)).collect(),
        }
    }
}

/// What waits for the end of a reset.
#[derive(Debug, Default)]
pub(crate) struct Held {
    streams: Option<Streams>,
    messages: VecDeque<Message>,
    bytes: usize,
}

impl Held {
    /// From now on, messages on these streams wait here.
    pub(crate) fn hold(&mut self, streams: Streams) {
        debug_assert!(self.streams.is_none(), "one reset at a time");
        self.streams = Some(streams);
    }

    pub(crate) fn holds(&self, stream: StreamId) -> bool {
        self.streams.as_ref().is_some_and(|streams| streams.contains(stream))
    }

    pub(crate) fn is_holding(&self) -> bool {
        self.streams.is_some()
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.bytes += message.payload.len();
        self.messages.push_back(message);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The reset is over: the messages in the order in which they came.
    pub(crate) fn release(&mut self) -> VecDeque<Message> {
        std::mem::take(self).messages
    }
}
