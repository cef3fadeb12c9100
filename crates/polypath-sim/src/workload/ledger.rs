//! What has been sent and not yet received: exactly once, intact, and in order within a stream.

use std::collections::{BTreeMap, VecDeque};

use polypath_proto::Received;

use super::content;
use super::source::Planned;

/// Messages of one direction that are under way. It holds numbers and sizes, never content, and
/// forgets a message once it has arrived.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Distinguishes the contents of flows.
    flow: u64,
    check_content: bool,
    /// Ordered messages of each stream.
    ordered: Vec<VecDeque<Planned>>,
    unordered: BTreeMap<u32, Planned>,
    /// Messages of which a part has been received.
    partial: Vec<Partial>,
    outstanding: u64,
}

#[derive(Clone, Copy, Debug)]
struct Partial {
    message: Planned,
    offset: usize,
}

impl Ledger {
    pub(crate) fn new(flow: u64, check_content: bool) -> Self {
        Self {
            flow,
            check_content,
            ordered: Vec::new(),
            unordered: BTreeMap::new(),
            partial: Vec::new(),
            outstanding: 0,
        }
    }

    /// The content of a message.
    pub(crate) fn payload(&self, message: &Planned) -> bytes::Bytes {
        content::payload(content::place(self.flow, message.number), message.size as usize)
    }

    /// The mark (PPID) that tells the receiver which message it is. It lies where IANA assigns
    /// nothing, so that no tool takes the content for something that it is not.
    pub(crate) const fn mark(message: &Planned) -> u32 {
        0x4000_0000 | (message.number as u32 & 0x3fff_ffff)
    }

    /// The message has been handed to the association.
    pub(crate) fn sent(&mut self, message: Planned) {
        self.outstanding += 1;
        if message.unordered {
            self.unordered.insert(Self::mark(&message), message);
            return;
        }
        let stream = usize::from(message.stream);
        if self.ordered.len() <= stream {
            self.ordered.resize_with(stream + 1, VecDeque::new);
        }
        self.ordered[stream].push_back(message);
    }

    /// A message, or a piece of one, has been received: the message if it is complete now.
    ///
    /// # Errors
    /// It is not what it should be, in words.
    pub(crate) fn received(&mut self, received: &Received) -> Result<Option<Planned>, String> {
        let Received { stream, ppid, unordered, beginning, end, payload } = received;
        let mark = ppid.0;
        let wrong = |what: String| -> Result<Option<Planned>, String> {
            let order = if *unordered { "unordered" } else { "ordered" };
            Err(format!("stream {stream}, {order} message {}: {what}", number(mark)))
        };
        let begun = self.partial.iter().position(|p| {
            p.message.stream == stream.0
                && p.message.unordered == *unordered
                && (!*unordered || Self::mark(&p.message) == mark)
        });
        let part = match (begun, *beginning) {
            (Some(_), true) => return wrong("begins again before its end".to_owned()),
            (None, false) => return wrong("goes on without a beginning".to_owned()),
            (Some(place), false) => self.partial[place],
            (None, true) => {
                let message = match self.expected(stream.0, *unordered, mark) {
                    Ok(message) => message,
                    Err(what) => return wrong(what),
                };
                Partial { message, offset: 0 }
            }
        };
        if Self::mark(&part.message) != mark {
            return wrong(format!("goes on message {}", part.message.number));
        }
        let after = part.offset + payload.len();
        let size = part.message.size as usize;
        if after > size || (*end && after != size) || (!*end && payload.is_empty()) {
            return wrong(format!("{after} bytes (end: {end}), but {size} were sent"));
        }
        let place = || content::place(self.flow, part.message.number);
        if self.check_content && !content::matches(place(), part.offset, payload) {
            return wrong(format!("wrong content in bytes {} to {after}", part.offset));
        }
        match (begun, *end) {
            (Some(place), true) => {
                self.partial.swap_remove(place);
            }
            (Some(place), false) => self.partial[place].offset = after,
            (None, false) => self.partial.push(Partial { offset: after, ..part }),
            (None, true) => {}
        }
        self.outstanding -= u64::from(*end);
        Ok(end.then_some(part.message))
    }

    /// Takes the message that begins to arrive.
    fn expected(&mut self, stream: u16, unordered: bool, mark: u32) -> Result<Planned, String> {
        if unordered {
            let message = self.unordered.remove(&mark);
            let message = message.ok_or("was not sent, or has arrived already")?;
            if message.stream != stream {
                return Err(format!("was sent on stream {}", message.stream));
            }
            return Ok(message);
        }
        let queue = self.ordered.get_mut(usize::from(stream));
        let Some(front) = queue.as_ref().and_then(|queue| queue.front().copied()) else {
            return Err("nothing is under way on this stream".to_owned());
        };
        if Self::mark(&front) != mark {
            return Err(format!("message {} comes first", front.number));
        }
        queue.and_then(VecDeque::pop_front).ok_or_else(String::new)
    }

    /// Messages sent and not completely received.
    pub(crate) const fn outstanding(&self) -> u64 {
        self.outstanding
    }
}

/// The message's number, as far as the mark tells it.
const fn number(mark: u32) -> u32 {
    mark & 0x3fff_ffff
}

#[cfg(test)]
mod tests {
    use polypath_proto::{Ppid, StreamId};

    use super::*;

    fn message(number: u64, stream: u16, size: u32, unordered: bool) -> Planned {
        Planned { number, stream, size, unordered }
    }

    fn whole(ledger: &Ledger, message: &Planned) -> Received {
        Received {
            stream: StreamId(message.stream),
            ppid: Ppid(Ledger::mark(message)),
            unordered: message.unordered,
            beginning: true,
            end: true,
            payload: ledger.payload(message),
        }
    }

    #[test]
    fn in_order_once_and_intact() {
        let mut ledger = Ledger::new(1, true);
        let (a, b) = (message(0, 2, 100, false), message(1, 2, 50, false));
        ledger.sent(a);
        ledger.sent(b);
        let error = ledger.received(&whole(&ledger, &b)).unwrap_err();
        assert_eq!(error, "stream 2, ordered message 1: message 0 comes first");
        assert_eq!(ledger.received(&whole(&ledger, &a)), Ok(Some(a)));
        assert!(ledger.received(&whole(&ledger, &a)).is_err(), "twice");
        let mut wrong = whole(&ledger, &b);
        wrong.payload = ledger.payload(&a).slice(..50);
        assert!(ledger.received(&wrong).unwrap_err().contains("wrong content"));
    }

    #[test]
    fn unordered_in_any_order_but_once() {
        let mut ledger = Ledger::new(1, true);
        let (a, b) = (message(0, 0, 10, true), message(1, 0, 10, true));
        ledger.sent(a);
        ledger.sent(b);
        assert_eq!(ledger.received(&whole(&ledger, &b)), Ok(Some(b)));
        assert!(ledger.received(&whole(&ledger, &b)).is_err());
        assert_eq!(ledger.received(&whole(&ledger, &a)), Ok(Some(a)));
        assert_eq!(ledger.outstanding(), 0);
    }

    #[test]
    fn in_pieces() {
        let mut ledger = Ledger::new(1, true);
        let a = message(0, 0, 100, false);
        ledger.sent(a);
        let all = whole(&ledger, &a);
        let piece = |from: usize, to: usize| Received {
            beginning: from == 0,
            end: to == 100,
            payload: all.payload.slice(from..to),
            ..all.clone()
        };
        assert!(ledger.received(&piece(40, 70)).is_err());
        assert_eq!(ledger.received(&piece(0, 40)), Ok(None));
        assert!(ledger.received(&piece(0, 40)).is_err());
        assert_eq!(ledger.received(&piece(40, 70)), Ok(None));
        assert_eq!(ledger.received(&piece(70, 100)), Ok(Some(a)));
        assert_eq!(ledger.outstanding(), 0);
    }
}
