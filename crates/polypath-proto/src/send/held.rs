//! Messages that get no sequence numbers yet because their streams are being reset (RFC 6525
//! 5.1.2).

use std::collections::VecDeque;

use super::queued::Queued;
use crate::ids::StreamId;
use crate::streams::Streams;

/// Messages that wait for the end of a reset.
#[derive(Debug, Default)]
pub(super) struct Held {
    streams: Option<Streams>,
    /// In the order in which they were queued, so with ascending numbers.
    messages: VecDeque<Queued>,
}

impl Held {
    /// From now on, messages on these streams are held.
    pub(super) fn hold(&mut self, streams: Streams) {
        debug_assert!(self.streams.is_none(), "one reset at a time");
        self.streams = Some(streams);
    }

    pub(super) fn holds(&self, stream: StreamId) -> bool {
        self.streams.as_ref().is_some_and(|streams| streams.contains(stream))
    }

    pub(super) const fn is_holding(&self) -> bool {
        self.streams.is_some()
    }

    pub(super) fn push(&mut self, message: Queued) {
        self.messages.push_back(message);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.messages.iter()
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.messages.binary_search_by_key(&number, |m| m.number).ok()
    }

    /// The message with this number, if it is held.
    pub(super) fn get(&self, number: u64) -> Option<&Queued> {
        self.messages.get(self.find(number)?)
    }

    /// Removes an abandoned message.
    pub(super) fn remove(&mut self, number: u64) -> Option<Queued> {
        self.messages.remove(self.find(number)?)
    }

    /// The reset is over: returns the held messages.
    pub(super) fn release(&mut self) -> VecDeque<Queued> {
        std::mem::take(self).messages
    }
}
