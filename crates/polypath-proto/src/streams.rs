//! Sets of streams, as requests to reset streams list them (RFC 6525 4.1, 4.2).

use std::collections::BTreeSet;

use crate::ids::StreamId;

/// A set of streams of an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    All,
    Some(BTreeSet<u16>),
}

impl Streams {
    /// The streams that a request lists: an empty list means all.
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

    /// Whether all of `others` are among these, in an association with `count` streams.
    pub(crate) fn includes(&self, others: &Self, count: u16) -> bool {
        match others {
            Self::All => (0..count).all(|s| self.contains(StreamId(s))),
            Self::Some(some) => some.iter().all(|s| self.contains(StreamId(*s))),
        }
    }

    /// The stream ids, ascending; empty for all streams.
    pub(crate) fn list(&self) -> Vec<StreamId> {
        match self {
            Self::All => Vec::new(),
            Self::Some(some) => some.iter().map(|s| StreamId(*s)).collect(),
        }
    }
}
