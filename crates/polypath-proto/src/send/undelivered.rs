//! Messages that are lost or abandoned, kept for the application (RFC 9260 11.1.14, 11.1.15).

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::in_flight::outstanding::{Fate, Outstanding};
use crate::event::{Message, Undelivered};

/// Maximum number of abandoned messages that wait for the application.
const MOST_ABANDONED: usize = 1024;

/// The messages, and the size of their payload.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    messages: VecDeque<Undelivered>,
    bytes: usize,
}

impl Kept {
    /// Adds the messages that are lost with the association, which the send buffer has held.
    pub(crate) fn lose(&mut self, lost: Parts) {
        for message in lost.joined() {
            self.bytes += message.payload.len();
            self.messages.push_back(message);
        }
    }

    /// Adds an abandoned message. An application that does not take them loses the oldest ones:
    /// `most` limits the bytes of all of them.
    pub(crate) fn abandon(&mut self, abandoned: Parts, most: usize) {
        self.lose(abandoned);
        while self.messages.len() > MOST_ABANDONED || (self.bytes > most && self.messages.len() > 1)
        {
            let Some(oldest) = self.messages.pop_front() else { break };
            self.bytes -= oldest.payload.len();
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Undelivered> {
        std::mem::take(self).messages.into()
    }
}

/// Messages with their payload in parts.
#[derive(Default)]
pub(crate) struct Parts(Vec<(Undelivered, Vec<Bytes>)>);

impl Parts {
    /// Adds a part of a message, to the last message if that goes on with it. Fragments of one
    /// message are neighbours unless messages are interleaved.
    fn add(&mut self, part: Undelivered) {
        let goes_on = |last: &&mut (Undelivered, Vec<Bytes>)| {
            !last.0.end
                && !part.beginning
                && (last.0.stream, last.0.unordered) == (part.stream, part.unordered)
        };
        match self.0.last_mut().filter(goes_on) {
            Some((message, payload)) => {
                message.end = part.end;
                payload.push(part.payload);
            }
            None => {
                let payload = vec![part.payload.clone()];
                self.0.push((Undelivered { payload: Bytes::new(), ..part }, payload));
            }
        }
    }

    /// Adds what follows.
    pub(crate) fn append(&mut self, other: Self) {
        other.joined().for_each(|part| self.add(part));
    }

    /// Adds the rest of a message of which the first `offset` bytes were sent.
    pub(crate) fn add_rest(&mut self, message: &Message, offset: usize) {
        self.add(Undelivered {
            stream: message.stream,
            ppid: message.ppid,
            context: message.context,
            unordered: message.unordered,
            beginning: offset == 0,
            end: true,
            sent: offset > 0,
            payload: message.payload.slice(offset..),
        });
    }

    /// Adds a chunk, unless its payload is not here any more.
    pub(crate) fn add_chunk(&mut self, chunk: &Outstanding, fate: Fate) {
        let content = &chunk.content;
        if !content.payload.is_empty() {
            self.add(Undelivered {
                stream: content.stream,
                ppid: content.ppid,
                context: content.context,
                unordered: content.unordered,
                beginning: content.beginning,
                end: content.end,
                sent: fate != Fate::Reserved,
                payload: content.payload.clone(),
            });
        }
    }

    fn joined(self) -> impl Iterator<Item = Undelivered> {
        self.0.into_iter().map(|(message, mut parts)| {
            let payload = if parts.len() == 1 {
                parts.remove(0)
            } else {
                let mut all = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
                parts.iter().for_each(|part| all.extend_from_slice(part));
                all.freeze()
            };
            Undelivered { payload, ..message }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::StreamId;

    fn parts(context: u32, len: usize) -> Parts {
        let message = Message { context, ..Message::new(StreamId(0), vec![0; len]) };
        let mut parts = Parts::default();
        parts.add_rest(&message, 0);
        parts
    }

    #[test]
    fn abandoned_messages_that_nobody_takes_are_bounded() {
        let mut kept = Kept::default();
        for context in 0..5000 {
            kept.abandon(parts(context, 10), 1 << 20);
        }
        let contexts = |kept: &mut Kept| kept.take().iter().map(|m| m.context).collect::<Vec<_>>();
        assert_eq!(contexts(&mut kept), (5000 - 1024..5000).collect::<Vec<_>>());
        for context in 0..9 {
            kept.abandon(parts(context, 400), 1000);
        }
        kept.abandon(parts(9, 5000), 1000);
        assert_eq!(contexts(&mut kept), [9], "the last one always stays");
        for context in 0..9 {
            kept.abandon(parts(context, 400), 1000);
        }
        assert_eq!(contexts(&mut kept), [7, 8]);
    }
}
