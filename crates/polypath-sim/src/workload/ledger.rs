//! Messages sent and not yet received; checks that each arrives once, intact, and in order within
//! its stream.

use std::collections::{BTreeMap, VecDeque};

use polypath_proto::{Received, Reliability};

use super::content;
use super::source::Planned;

/// Messages of one direction that are under way. The ledger holds numbers and sizes, never
/// contents, and removes a message once it has arrived.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Distinguishes the contents of flows.
    flow: u64,
    check_content: bool,
    /// Ordered messages of each stream, with their places in the order of sending.
    ordered: Vec<VecDeque<(u64, Planned)>>,
    unordered: BTreeMap<u32, Planned>,
    /// Messages of which a part has been received.
    partial: Vec<Partial>,
    /// Messages that were abandoned after a part of them had been sent: they may still arrive.
    given_up: BTreeMap<u32, (u64, Planned)>,
    /// For each stream, the place of the last ordered message that has begun to arrive.
    last: Vec<Option<u64>>,
    /// Number of messages ever sent, which is the place of the next one. Message numbers need not
    /// ascend, because striping sends old messages again.
    places: u64,
    outstanding: u64,
}

/// A message that the sender has abandoned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub(crate) stream: u16,
    pub(crate) mark: u32,
    pub(crate) unordered: bool,
    /// Whether any part of it has been sent.
    pub(crate) sent: bool,
}

/// Result of receiving a piece of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The message, if it is complete now.
    pub(crate) complete: Option<Planned>,
    /// Whether the sender has abandoned it.
    pub(crate) given_up: bool,
}

#[derive(Clone, Copy, Debug)]
struct Partial {
    message: Planned,
    offset: usize,
    given_up: bool,
}

impl Ledger {
    pub(crate) fn new(flow: u64, check_content: bool) -> Self {
        Self {
            flow,
            check_content,
            ordered: Vec::new(),
            unordered: BTreeMap::new(),
            partial: Vec::new(),
            given_up: BTreeMap::new(),
            last: Vec::new(),
            places: 0,
            outstanding: 0,
        }
    }

    /// The content of a message.
    pub(crate) fn payload(&self, message: &Planned) -> bytes::Bytes {
        content::payload(content::place(self.flow, message.number), message.size as usize)
    }

    /// PPID by which the receiver identifies the message. It is in a range in which IANA assigns
    /// nothing, so that no tool misinterprets the content.
    pub(crate) const fn mark(message: &Planned) -> u32 {
        0x4000_0000 | (message.number as u32 & 0x3fff_ffff)
    }

    /// Records a message that the association has accepted.
    #[inline]
    pub(crate) fn sent(&mut self, message: Planned) {
        self.outstanding += 1;
        let place = self.places;
        self.places += 1;
        if message.unordered {
            self.unordered.insert(Self::mark(&message), message);
            return;
        }
        let stream = usize::from(message.stream);
        if self.ordered.len() <= stream {
            self.ordered.resize_with(stream + 1, VecDeque::new);
        }
        self.ordered[stream].push_back((place, message));
    }

    /// Records that the sender has abandoned a message, and whether any of it has been sent.
    /// Returns true if the message has not arrived.
    ///
    /// # Errors
    /// The message must not be abandoned; the reason in words.
    pub(crate) fn given_up(&mut self, failed: &Failed) -> Result<bool, String> {
        let Failed { stream, mark, unordered, sent } = *failed;
        let wrong = |what: &str| Err(format!("message {} was given up {what}", number(mark)));
        let queue = self.ordered.get_mut(usize::from(stream)).filter(|_| !unordered);
        let ordered = queue.and_then(|queue| {
            let at = queue.iter().position(|(_, m)| Self::mark(m) == mark)?;
            queue.remove(at)
        });
        let begun = self.partial.iter_mut().find(|p| Self::mark(&p.message) == mark);
        // An unordered message needs no place.
        let unordered = || self.unordered.remove(&mark).map(|message| (0, message));
        if let Some((place, message)) = ordered.or_else(unordered) {
            if message.reliability == Reliability::Reliable {
                return wrong("although it is reliable");
            }
            if sent {
                self.given_up.insert(mark, (place, message));
            }
        } else if let Some(partial) = begun {
            if partial.given_up || !sent {
                return wrong("twice, or it has arrived in part and was not sent");
            }
            partial.given_up = true;
        } else if sent && !self.given_up.contains_key(&mark) {
            // The message has arrived, but the sender does not know that.
            return Ok(false);
        } else {
            return wrong("twice, or it has arrived and was not sent");
        }
        self.outstanding -= 1;
        Ok(true)
    }

    /// Checks a message, or a piece of one, that has been received.
    ///
    /// # Errors
    /// The piece is not the expected one; the reason in words.
    #[inline]
    pub(crate) fn received(&mut self, received: &Received) -> Result<Arrival, String> {
        let Received { stream, ppid, unordered, beginning, end, aborted, payload, .. } = received;
        let mark = ppid.0;
        let wrong = |what: String| {
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
                let expected = self.expected(stream.0, *unordered, mark);
                match expected.and_then(|(place, partial)| self.in_order(place, partial)) {
                    Ok(partial) => partial,
                    Err(what) => return wrong(what),
                }
            }
        };
        if Self::mark(&part.message) != mark {
            return wrong(format!("goes on message {}", part.message.number));
        }
        if *aborted {
            if !part.given_up || *end || !payload.is_empty() {
                return wrong("breaks off, but was not given up".to_owned());
            }
            begun.map(|place| self.partial.swap_remove(place));
            return Ok(Arrival { complete: None, given_up: true });
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
        self.outstanding -= u64::from(*end && !part.given_up);
        Ok(Arrival { complete: end.then_some(part.message), given_up: part.given_up })
    }

    /// Removes the message that begins to arrive, and returns it with its place.
    fn expected(
        &mut self,
        stream: u16,
        unordered: bool,
        mark: u32,
    ) -> Result<(u64, Partial), String> {
        let partial = |message, given_up| Partial { message, offset: 0, given_up };
        if let Some((place, message)) = self.given_up.remove(&mark) {
            if (message.stream, message.unordered) != (stream, unordered) {
                return Err(format!("was sent on stream {}", message.stream));
            }
            return Ok((place, partial(message, true)));
        }
        if unordered {
            let message = self.unordered.remove(&mark);
            let message = message.ok_or("was not sent, or has arrived already")?;
            if message.stream != stream {
                return Err(format!("was sent on stream {}", message.stream));
            }
            return Ok((0, partial(message, false)));
        }
        let queue = self.ordered.get_mut(usize::from(stream));
        let Some((_, front)) = queue.as_ref().and_then(|queue| queue.front().copied()) else {
            return Err("nothing is under way on this stream".to_owned());
        };
        if Self::mark(&front) != mark {
            return Err(format!("message {} comes first", front.number));
        }
        let (place, message) = queue.and_then(VecDeque::pop_front).ok_or_else(String::new)?;
        Ok((place, partial(message, false)))
    }

    /// Checks that messages begin to arrive in the order of sending on each stream, abandoned or
    /// not.
    fn in_order(&mut self, place: u64, partial: Partial) -> Result<Partial, String> {
        let Planned { stream, unordered, .. } = partial.message;
        let stream = usize::from(stream);
        if unordered {
            return Ok(partial);
        }
        if self.last.len() <= stream {
            self.last.resize(stream + 1, None);
        }
        match self.last[stream].replace(place) {
            Some(last) if last >= place => Err("comes behind one that was sent later".to_owned()),
            _ => Ok(partial),
        }
    }

    /// Number of messages sent and neither completely received nor abandoned.
    pub(crate) const fn outstanding(&self) -> u64 {
        self.outstanding
    }
}

/// The lower 30 bits of the message's number, which the mark contains.
const fn number(mark: u32) -> u32 {
    mark & 0x3fff_ffff
}

#[cfg(test)]
mod tests {
    use polypath_proto::{Ppid, StreamId};

    use super::*;

    const PART: Result<Arrival, String> = Ok(Arrival { complete: None, given_up: false });

    fn complete(message: Planned) -> Result<Arrival, String> {
        Ok(Arrival { complete: Some(message), given_up: false })
    }

    fn message(number: u64, stream: u16, size: u32, unordered: bool) -> Planned {
        let reliability = Reliability::Reliable;
        Planned { number, stream, size, unordered, reliability }
    }

    fn whole(ledger: &Ledger, message: &Planned) -> Received {
        Received {
            stream: StreamId(message.stream),
            ppid: Ppid(Ledger::mark(message)),
            unordered: message.unordered,
            beginning: true,
            end: true,
            aborted: false,
            tsn: polypath_proto::Tsn(0),
            cumulative_tsn: polypath_proto::Tsn(0),
            mid: polypath_proto::Mid(0),
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
        assert_eq!(ledger.received(&whole(&ledger, &a)), complete(a));
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
        assert_eq!(ledger.received(&whole(&ledger, &b)), complete(b));
        assert!(ledger.received(&whole(&ledger, &b)).is_err());
        assert_eq!(ledger.received(&whole(&ledger, &a)), complete(a));
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
        assert_eq!(ledger.received(&piece(0, 40)), PART);
        assert!(ledger.received(&piece(0, 40)).is_err());
        assert_eq!(ledger.received(&piece(40, 70)), PART);
        assert_eq!(ledger.received(&piece(70, 100)), complete(a));
        assert_eq!(ledger.outstanding(), 0);
    }

    #[test]
    fn given_up() {
        let mut ledger = Ledger::new(1, true);
        let messages: Vec<Planned> = (0..5)
            .map(|n| Planned {
                reliability: Reliability::Retransmissions(0),
                ..message(n, 3, 50, false)
            })
            .collect();
        for m in &messages {
            ledger.sent(*m);
        }
        let failed = |n: u64, sent| Failed {
            stream: 3,
            mark: Ledger::mark(&messages[n as usize]),
            unordered: false,
            sent,
        };
        assert_eq!(ledger.given_up(&failed(0, false)), Ok(true));
        assert!(ledger.given_up(&failed(0, false)).is_err(), "twice");
        assert!(ledger.received(&whole(&ledger, &messages[0])).is_err(), "it was never sent");
        assert_eq!(ledger.given_up(&failed(1, true)), Ok(true));
        assert_eq!(ledger.given_up(&failed(2, true)), Ok(true));
        // The abandoned message has arrived nevertheless.
        let late = Ok(Arrival { complete: Some(messages[2]), given_up: true });
        assert_eq!(ledger.received(&whole(&ledger, &messages[2])), late);
        assert!(ledger.received(&whole(&ledger, &messages[1])).is_err(), "but not out of order");
        assert_eq!(ledger.received(&whole(&ledger, &messages[3])), complete(messages[3]));
        assert_eq!(ledger.given_up(&failed(3, true)), Ok(false));
        // A message arrives in part, and the rest does not follow.
        let all = whole(&ledger, &messages[4]);
        let part = Received { end: false, payload: all.payload.slice(..20), ..all.clone() };
        let end = Received {
            beginning: false,
            end: false,
            aborted: true,
            payload: Default::default(),
            ..all
        };
        assert_eq!(ledger.received(&part), PART);
        assert!(ledger.received(&end).is_err());
        assert_eq!(ledger.given_up(&failed(4, true)), Ok(true));
        assert_eq!(ledger.received(&end), Ok(Arrival { complete: None, given_up: true }));
        assert_eq!(ledger.outstanding(), 0);
        let reliable = message(9, 3, 50, false);
        ledger.sent(reliable);
        let failed = Failed { mark: Ledger::mark(&reliable), ..failed(0, true) };
        assert!(ledger.given_up(&failed).is_err(), "a reliable one");
    }
}
