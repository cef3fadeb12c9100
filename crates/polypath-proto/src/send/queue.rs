//! Messages that wait to become DATA chunks, first come first served (RFC 9260 6.9).

use std::collections::VecDeque;

use bytes::Bytes;

use super::Streams;
use crate::{Message, Ppid, Ssn, StreamId};

/// A fragment smaller than this is not worth its header: the message waits for the next packet.
const LEAST_FRAGMENT: usize = 64;

/// What the next DATA chunk carries; it has no TSN yet.
#[derive(Debug)]
pub(crate) struct NewChunk {
    pub(crate) stream: StreamId,
    pub(crate) ssn: Ssn,
    pub(crate) ppid: Ppid,
    pub(crate) unordered: bool,
    pub(crate) beginning: bool,
    pub(crate) end: bool,
    pub(crate) payload: Bytes,
}

#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    messages: VecDeque<Message>,
    /// Bytes of the first message that have left in fragments.
    offset: usize,
    bytes: usize,
    /// The next stream sequence number of each stream that has been used.
    next_ssn: Vec<Ssn>,
}

impl SendQueue {
    pub(crate) fn push(&mut self, message: Message) {
        self.bytes += message.payload.len();
        self.messages.push_back(message);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Payload bytes waiting.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Payload bytes that the next chunk would have, if it may have at most `largest` and a packet
    /// has `room` for it; `None` if nothing waits or this packet is too full.
    pub(crate) fn next_size(&self, largest: usize, room: usize) -> Option<usize> {
        let rest = self.messages.front()?.payload.len() - self.offset;
        if self.offset == 0 && rest <= largest {
            // RFC 9260 6.9: fragmented only if it does not fit one packet.
            return (rest <= room).then_some(rest);
        }
        let n = rest.min(largest).min(room);
        (n == rest || n >= LEAST_FRAGMENT.min(largest)).then_some(n)
    }

    /// What leaves next is a message that fits a chunk of `largest` bytes.
    pub(crate) fn next_is_whole(&self, largest: usize) -> bool {
        self.offset == 0 && self.messages.front().is_some_and(|m| m.payload.len() <= largest)
    }

    /// Takes `size` bytes, which [`next_size`](Self::next_size) gave.
    pub(crate) fn take(&mut self, size: usize) -> Option<NewChunk> {
        let message = self.messages.front()?;
        let index = usize::from(message.stream.0);
        if self.next_ssn.len() <= index {
            self.next_ssn.resize(index + 1, Ssn(0));
        }
        let ssn = self.next_ssn[index];
        let beginning = self.offset == 0;
        let end = self.offset + size == message.payload.len();
        let mut chunk = NewChunk {
            stream: message.stream,
            ssn: if message.unordered { Ssn(0) } else { ssn },
            ppid: message.ppid,
            unordered: message.unordered,
            beginning,
            end,
            payload: Bytes::new(),
        };
        self.bytes -= size;
        if end {
            if !message.unordered {
                self.next_ssn[index] = ssn.next();
            }
            let mut message = self.messages.pop_front()?;
            chunk.payload =
                if beginning { message.payload } else { message.payload.split_off(self.offset) };
            self.offset = 0;
        } else {
            chunk.payload = message.payload.slice(self.offset..self.offset + size);
            self.offset += size;
        }
        Some(chunk)
    }

    /// Removes messages of which nothing has left and whose stream does not exist: stream and bytes.
    pub(crate) fn drop_streams_from(&mut self, streams: u16) -> Vec<(StreamId, usize)> {
        let mut dropped = Vec::new();
        let begun = usize::from(self.offset > 0);
        let mut index = 0;
        self.messages.retain(|m| {
            index += 1;
            let keep = m.stream.0 < streams || index <= begun;
            if !keep {
                dropped.push((m.stream, m.payload.len()));
            }
            keep
        });
        self.bytes -= dropped.iter().map(|(_, bytes)| bytes).sum::<usize>();
        dropped
    }

    /// A message on one of these streams waits, or a part of one.
    pub(crate) fn has_any_of(&self, streams: &Streams) -> bool {
        self.messages.iter().any(|m| streams.contains(m.stream))
    }

    /// The next ordered message on these streams has sequence number 0 (RFC 6525 5.2.7).
    pub(crate) fn reset_ssns(&mut self, streams: &Streams) {
        for (stream, ssn) in self.next_ssn.iter_mut().enumerate() {
            if streams.contains(StreamId(stream as u16)) {
                *ssn = Ssn(0);
            }
        }
    }

    /// Forgets what waits, and counts from zero again.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The peer restarted: sequence numbers start anew. The rest of a message of which a part has
    /// left goes with that part. Gives the bytes dropped.
    pub(crate) fn restart(&mut self) -> usize {
        let mut dropped = 0;
        if self.offset > 0 {
            if let Some(m) = self.messages.pop_front() {
                dropped = m.payload.len() - self.offset;
            }
            self.bytes -= dropped;
            self.offset = 0;
        }
        self.next_ssn.clear();
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_stay_whole_and_large_ones_fill_packets() {
        let mut q = SendQueue::default();
        q.push(Message::new(StreamId(0), vec![1; 100]));
        q.push(Message::new(StreamId(0), vec![2; 3000]));
        assert_eq!(q.next_size(1452, 99), None);
        assert_eq!(q.next_size(1452, 1452), Some(100));
        let c = q.take(100).unwrap();
        assert!(c.beginning && c.end && c.ssn == Ssn(0));
        // The next packet has 1336 bytes left after the first chunk.
        assert_eq!(q.next_size(1452, 1336), Some(1336));
        let c = q.take(1336).unwrap();
        assert!(c.beginning && !c.end && c.ssn == Ssn(1));
        assert_eq!(q.next_size(1452, 40), None);
        assert_eq!(q.next_size(1452, 1452), Some(1452));
        q.take(1452);
        assert_eq!(q.next_size(1452, 300), Some(212));
        let c = q.take(212).unwrap();
        assert!(!c.beginning && c.end && c.ssn == Ssn(1) && c.payload.len() == 212);
        assert!(q.is_empty() && q.bytes() == 0 && q.next_size(1452, 1452).is_none());
    }
}
