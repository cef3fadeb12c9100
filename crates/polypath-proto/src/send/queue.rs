//! Messages that wait to be sent: a queue for each stream, and a scheduler that chooses among them
//! (RFC 9260 6.9, RFC 8260 3).

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::held::Held;
use super::partial::{Limit, Partial};
use super::queued::Queued;
use crate::constants::Delivery;
use crate::event::Message;
use crate::ids::{Mid, Ppid, StreamId};
use crate::policy::StreamScheduler;
use crate::policy::stream_scheduler::{Left, Waiting};
use crate::streams::Streams;
use crate::time::Time;

/// A fragment smaller than this is not worth its header: the message waits for the next packet.
const LEAST_FRAGMENT: usize = 64;

/// An empty stream queue keeps memory for this number of messages.
const MOST_SPARE: usize = 16;

/// Contents of the next DATA or I-DATA chunk, which has no TSN yet.
#[derive(Debug)]
pub(crate) struct NewChunk {
    pub(crate) stream: StreamId,
    pub(crate) mid: Mid,
    /// Fragment sequence number, if messages are interleaved.
    pub(crate) fsn: Option<u32>,
    pub(crate) ppid: Ppid,
    /// [`Message::context`].
    pub(crate) context: u32,
    pub(crate) unordered: bool,
    pub(crate) beginning: bool,
    pub(crate) end: bool,
    /// Whether the application asked for an immediate SACK: on the last fragment (RFC 7053 5).
    pub(crate) immediate: bool,
    pub(crate) delivery: Delivery,
    pub(crate) payload: Bytes,
    /// The message's state, if it may be abandoned.
    pub(crate) partial: Option<Arc<Partial>>,
}

#[derive(Debug, Default)]
struct OutStream {
    messages: VecDeque<Queued>,
    /// Bytes of the first message that were sent in fragments.
    offset: usize,
    /// Number of these fragments.
    fragments: u32,
    /// Identifiers of the next ordered and of the next unordered message.
    next: [Mid; 2],
    /// The stream's value for the scheduler, such as its priority.
    value: u16,
    /// How its messages are sent, if not as those of the association.
    delivery: Option<Delivery>,
}

/// A message, or the unsent rest of one, that was removed from the queue.
#[derive(Debug)]
pub(crate) struct Removed {
    /// Payload bytes.
    pub(crate) bytes: usize,
    /// The message's identifier, if a part of it was sent.
    pub(crate) begun: Option<Mid>,
    pub(crate) message: Message,
}

#[derive(Debug)]
pub(crate) struct SendQueue {
    streams: Vec<OutStream>,
    scheduler: Box<dyn StreamScheduler>,
    /// How messages are sent whose stream has no other way.
    delivery: Delivery,
    /// Whether any message was to arrive early so far: most associations have none.
    any_urgent: bool,
    /// Whether fragments of messages on different streams may be interleaved.
    interleaves: bool,
    /// Without interleaving: the stream whose first message is partly sent and must be finished
    /// first.
    begun: Option<StreamId>,
    /// The stream of the next chunk.
    next: Option<StreamId>,
    /// Messages held until their streams' reset is over.
    held: Held,
    bytes: usize,
    /// Messages that are not completely sent, held ones included.
    messages: usize,
    /// Messages ever queued; the number of the next one.
    number: u64,
    /// Messages with a lifetime, and those with a priority, that are not completely sent.
    expiries: BTreeSet<(Time, u64, StreamId)>,
    priorities: BTreeSet<(u32, Reverse<u64>, StreamId)>,
}

impl SendQueue {
    pub(crate) fn new(scheduler: Box<dyn StreamScheduler>) -> Self {
        Self {
            streams: Vec::new(),
            scheduler,
            delivery: Delivery::Standard,
            any_urgent: false,
            interleaves: false,
            begun: None,
            next: None,
            held: Held::default(),
            bytes: 0,
            messages: 0,
            number: 0,
            expiries: BTreeSet::new(),
            priorities: BTreeSet::new(),
        }
    }

    fn stream(&mut self, id: StreamId) -> &mut OutStream {
        let index = usize::from(id.0);
        if self.streams.len() <= index {
            self.streams.resize_with(index + 1, OutStream::default);
        }
        &mut self.streams[index]
    }

    /// Queues a message; returns whether it may be abandoned.
    pub(crate) fn push(&mut self, now: Time, message: Message) -> bool {
        let number = self.number;
        self.number += 1;
        self.bytes += message.payload.len();
        self.messages += 1;
        let partial = Partial::of(&message, number, now).map(Arc::new);
        let id = message.stream;
        match partial.as_ref().map(|p| p.limit) {
            Some(Limit::Until(end)) => {
                self.expiries.insert((end, number, id));
            }
            Some(Limit::Priority(p)) => {
                self.priorities.insert((p, Reverse(number), id));
            }
            _ => {}
        }
        let may_be_given_up = partial.is_some();
        let queued = Queued { number, message, partial };
        if self.held.holds(id) {
            self.held.push(queued);
        } else {
            self.enqueue(queued);
        }
        may_be_given_up
    }

    fn enqueue(&mut self, queued: Queued) {
        let (id, number) = (queued.message.stream, queued.number);
        self.any_urgent |= queued.message.delivery.is_some_and(Delivery::is_urgent);
        let stream = self.stream(id);
        let (first, value) = (stream.messages.is_empty(), stream.value);
        stream.messages.push_back(queued);
        self.scheduler.queued(&Waiting { stream: id, number, first, value });
        self.choose();
    }

    /// From now on, messages on these streams get no sequence numbers (RFC 6525 5.1.2).
    pub(crate) fn hold(&mut self, streams: Streams) {
        self.held.hold(streams);
    }

    pub(crate) const fn is_holding(&self) -> bool {
        self.held.is_holding()
    }

    /// The reset is over: queues the held messages.
    pub(crate) fn release(&mut self) {
        for queued in self.held.release() {
            self.enqueue(queued);
        }
    }

    fn choose(&mut self) {
        self.next = self.begun.or_else(|| self.scheduler.next());
    }

    /// Whether messages are interleaved.
    pub(crate) const fn interleaves(&self) -> bool {
        self.interleaves
    }

    /// Sets whether messages are interleaved, as negotiated in the handshake, before any data is
    /// sent.
    pub(crate) const fn interleave(&mut self, interleaves: bool) {
        self.interleaves = interleaves;
    }

    /// Replaces the scheduler and passes it all queued messages.
    pub(crate) fn schedule(&mut self, scheduler: Box<dyn StreamScheduler>) {
        self.scheduler = scheduler;
        let mut all: Vec<Waiting> = Vec::new();
        for (index, stream) in self.streams.iter().enumerate() {
            all.extend(stream.messages.iter().enumerate().map(|(at, queued)| Waiting {
                stream: StreamId(index as u16),
                number: queued.number,
                first: at == 0,
                value: stream.value,
            }));
        }
        all.sort_by_key(|message| message.number);
        all.iter().for_each(|message| self.scheduler.queued(message));
        self.choose();
    }

    /// Sets a stream's value for the scheduler. Call [`schedule`](Self::schedule) afterwards: a
    /// scheduler may have indexed the stream by its old value.
    pub(crate) fn set_value(&mut self, id: StreamId, value: u16) {
        self.stream(id).value = value;
    }

    pub(crate) fn value(&self, id: StreamId) -> u16 {
        self.streams.get(usize::from(id.0)).map_or(0, |stream| stream.value)
    }

    /// Sets how messages are sent from now on, those of a stream, or those of all streams without a
    /// choice of their own.
    pub(crate) fn set_delivery(&mut self, id: Option<StreamId>, delivery: Option<Delivery>) {
        self.any_urgent |= delivery.is_some_and(Delivery::is_urgent);
        match id {
            Some(id) => self.stream(id).delivery = delivery,
            None => self.delivery = delivery.unwrap_or_default(),
        }
    }

    /// Whether any message was to arrive early so far.
    pub(crate) const fn any_urgent(&self) -> bool {
        self.any_urgent
    }

    /// How the next message is sent.
    pub(crate) fn next_delivery(&self) -> Delivery {
        if !self.any_urgent {
            return Delivery::Standard;
        }
        let stream = self.next.and_then(|id| self.streams.get(usize::from(id.0)));
        let own = stream.and_then(|stream| {
            stream.messages.front().and_then(|queued| queued.message.delivery).or(stream.delivery)
        });
        own.unwrap_or(self.delivery)
    }

    /// The next message to send from, and the bytes of it already sent.
    fn front(&self) -> Option<(&Message, usize)> {
        let stream = self.streams.get(usize::from(self.next?.0))?;
        Some((&stream.messages.front()?.message, stream.offset))
    }

    /// Whether no message may be sent now; held messages do not count.
    pub(crate) const fn is_empty(&self) -> bool {
        self.next.is_none()
    }

    /// Whether no message waits, held ones included.
    pub(crate) fn is_through(&self) -> bool {
        self.is_empty() && self.held.is_empty()
    }

    /// Unsent payload bytes, held messages included.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Messages that are not completely sent, held ones included.
    pub(crate) const fn messages(&self) -> usize {
        self.messages
    }

    /// The stream of the next chunk.
    pub(crate) const fn next_stream(&self) -> Option<StreamId> {
        self.next
    }

    /// Begins a packet; returns whether it may bundle chunks of several streams.
    pub(crate) fn begin_packet(&mut self) -> bool {
        self.scheduler.begin_packet();
        self.choose();
        self.scheduler.bundles_streams()
    }

    /// Payload bytes of the next chunk, which may have at most `largest` in a packet with `room`
    /// left; `None` if no message waits or the room does not suffice.
    pub(crate) fn next_size(&self, largest: usize, room: usize) -> Option<usize> {
        let (message, offset) = self.front()?;
        let rest = message.payload.len() - offset;
        if offset == 0 && rest <= largest {
            // RFC 9260 6.9: fragment a message only if it does not fit one packet.
            return (rest <= room).then_some(rest);
        }
        let n = rest.min(largest).min(room);
        (n == rest || n >= LEAST_FRAGMENT.min(largest)).then_some(n)
    }

    /// Whether the next message is unsent and fits one chunk with `largest` bytes of payload.
    pub(crate) fn next_is_whole(&self, largest: usize) -> bool {
        self.front().is_some_and(|(m, offset)| offset == 0 && m.payload.len() <= largest)
    }

    /// Takes a chunk of `size` payload bytes; `size` is the result of
    /// [`next_size`](Self::next_size).
    pub(crate) fn take(&mut self, size: usize) -> Option<NewChunk> {
        let id = self.next?;
        let delivery = self.next_delivery();
        let stream = self.streams.get_mut(usize::from(id.0))?;
        let queued = stream.messages.front()?;
        let (message, number) = (&queued.message, queued.number);
        let next = &mut stream.next[usize::from(message.unordered)];
        let beginning = stream.offset == 0;
        let end = stream.offset + size == message.payload.len();
        let mut chunk = NewChunk {
            stream: id,
            mid: *next,
            fsn: self.interleaves.then_some(stream.fragments),
            ppid: message.ppid,
            context: message.context,
            unordered: message.unordered,
            beginning,
            end,
            // RFC 7053 5: "at the time of sending, the application may know that an immediate SACK
            // is required". Until then a lost message is not noticed.
            immediate: end && (message.sack_immediately || delivery.is_urgent()),
            delivery,
            payload: Bytes::new(),
            partial: queued.partial.clone(),
        };
        if end {
            *next = next.next();
            let Queued { mut message, partial, .. } = stream.messages.pop_front()?;
            chunk.payload =
                if beginning { message.payload } else { message.payload.split_off(stream.offset) };
            stream.offset = 0;
            stream.fragments = 0;
            if stream.messages.is_empty() && stream.messages.capacity() > MOST_SPARE {
                stream.messages = VecDeque::new();
            }
            self.messages -= 1;
            if let Some(partial) = partial {
                self.forget_limit(&partial);
            }
        } else {
            chunk.payload = message.payload.slice(stream.offset..stream.offset + size);
            stream.offset += size;
            stream.fragments += 1;
        }
        self.bytes -= size;
        self.begun = (!end && !self.interleaves).then_some(id);
        self.tell_left(id, number, size, end);
        Some(chunk)
    }

    fn tell_left(&mut self, id: StreamId, number: u64, bytes: usize, ends: bool) {
        let stream = &self.streams[usize::from(id.0)];
        let (more, value) = (!stream.messages.is_empty(), stream.value);
        self.scheduler.left(&Left { stream: id, number, bytes, ends, more, value });
        self.choose();
    }

    fn forget_limit(&mut self, partial: &Partial) {
        let (number, id) = (partial.number, partial.stream);
        match partial.limit {
            Limit::Until(end) => self.expiries.remove(&(end, number, id)),
            Limit::Priority(p) => self.priorities.remove(&(p, Reverse(number), id)),
            Limit::Retransmissions(_) => false,
        };
    }

    /// The earliest end of a lifetime among the messages that are not completely sent.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.expiries.first().map(|e| e.0)
    }

    /// The message whose lifetime ended first.
    pub(crate) fn expired(&self, now: Time) -> Option<Arc<Partial>> {
        let &(_, number, id) = self.expiries.first().filter(|e| e.0 <= now)?;
        self.partial(id, number)
    }

    /// The oldest message of the lowest priority, if that is below `priority` (a greater number).
    pub(crate) fn below(&self, priority: u32) -> Option<Arc<Partial>> {
        let &(_, Reverse(number), id) = self.priorities.last().filter(|p| p.0 > priority)?;
        self.partial(id, number)
    }

    fn partial(&self, id: StreamId, number: u64) -> Option<Arc<Partial>> {
        if let Some(held) = self.held.get(number) {
            return held.partial.clone();
        }
        let messages = &self.streams.get(usize::from(id.0))?.messages;
        let at = messages.binary_search_by_key(&number, |m| m.number).ok()?;
        messages[at].partial.clone()
    }

    /// Removes the unsent part of a message; `None` if all of it was sent.
    pub(crate) fn remove(&mut self, message: &Partial) -> Option<Removed> {
        let id = message.stream;
        if let Some(held) = self.held.remove(message.number) {
            let bytes = held.message.payload.len();
            self.bytes -= bytes;
            self.messages -= 1;
            self.forget_limit(message);
            return Some(Removed { bytes, begun: None, message: held.message });
        }
        let stream = self.streams.get_mut(usize::from(id.0))?;
        let at = stream.messages.binary_search_by_key(&message.number, |m| m.number).ok()?;
        let queued = stream.messages.remove(at)?;
        let bytes = queued.message.payload.len();
        let mut removed = Removed { bytes, begun: None, message: queued.message };
        if at == 0 && stream.offset > 0 {
            removed.bytes -= std::mem::take(&mut stream.offset);
            stream.fragments = 0;
            // The peer may have seen its identifier.
            let next = &mut stream.next[usize::from(message.unordered)];
            removed.begun = Some(*next);
            *next = next.next();
            self.begun = self.begun.filter(|begun| *begun != id);
        }
        self.bytes -= removed.bytes;
        self.messages -= 1;
        self.forget_limit(message);
        self.tell_left(id, message.number, 0, true);
        Some(removed)
    }

    /// Removes the messages on streams from `streams` on; a partly sent message stays.
    pub(crate) fn drop_streams_from(&mut self, streams: u16) -> Vec<Message> {
        let mut dropped = Vec::new();
        for index in usize::from(streams)..self.streams.len() {
            let stream = &mut self.streams[index];
            let from = usize::from(stream.offset > 0).min(stream.messages.len());
            for queued in stream.messages.split_off(from) {
                self.bytes -= queued.message.payload.len();
                self.messages -= 1;
                if let Some(partial) = &queued.partial {
                    self.forget_limit(partial);
                }
                self.tell_left(StreamId(index as u16), queued.number, 0, true);
                dropped.push(queued.message);
            }
        }
        dropped
    }

    /// Checks the message count.
    pub(crate) fn check(&self) -> Result<(), String> {
        let waiting: usize = self.streams.iter().map(|s| s.messages.len()).sum();
        let held = self.held.len();
        if waiting + held == self.messages {
            return Ok(());
        }
        Err(format!("{waiting} messages wait and {held} are held, counted {}", self.messages))
    }

    /// Whether a message, or a part of one, waits on one of these streams; held messages do not
    /// count.
    pub(crate) fn has_any_of(&self, streams: &Streams) -> bool {
        let waits = |(_, stream): &(usize, &OutStream)| !stream.messages.is_empty();
        let mut waiting = self.streams.iter().enumerate().filter(waits);
        waiting.any(|(index, _)| streams.contains(StreamId(index as u16)))
    }

    /// The next messages on these streams get the identifier 0 (RFC 6525 5.2.7).
    pub(crate) fn reset_numbers(&mut self, streams: &Streams) {
        for (index, stream) in self.streams.iter_mut().enumerate() {
            if streams.contains(StreamId(index as u16)) {
                stream.next = [Mid(0); 2];
            }
        }
    }

    /// The messages that are not completely sent, held ones included, in the order in which they
    /// were queued, each with the bytes of it that were sent.
    pub(crate) fn waiting(&self) -> Vec<(&Message, usize)> {
        let streams = self.streams.iter().flat_map(|stream| {
            let offset = |at| if at == 0 { stream.offset } else { 0 };
            stream.messages.iter().enumerate().map(move |(at, queued)| (queued, offset(at)))
        });
        let mut all: Vec<_> = streams.chain(self.held.iter().map(|queued| (queued, 0))).collect();
        all.sort_by_key(|(queued, _)| queued.number);
        all.into_iter().map(|(queued, offset)| (&queued.message, offset)).collect()
    }

    /// Drops all waiting messages and restarts the identifiers at 0.
    pub(crate) fn clear(&mut self) {
        self.release();
        self.restart();
        self.drop_streams_from(0);
    }

    /// The peer restarted: identifiers restart at 0, and the unsent rest of a partly sent message
    /// is dropped. Returns the bytes dropped.
    pub(crate) fn restart(&mut self) -> usize {
        let mut dropped = 0;
        self.begun = None;
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            stream.next = [Mid(0); 2];
            let offset = std::mem::take(&mut stream.offset);
            stream.fragments = 0;
            if offset == 0 {
                continue;
            }
            let Some(queued) = stream.messages.pop_front() else { continue };
            dropped += queued.message.payload.len() - offset;
            self.messages -= 1;
            if let Some(partial) = &queued.partial {
                self.forget_limit(partial);
            }
            self.tell_left(StreamId(index as u16), queued.number, 0, true);
        }
        self.bytes -= dropped;
        dropped
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::stream_scheduler::FIRST_COME;
    use crate::{Config, Reliability};

    fn queue() -> SendQueue {
        SendQueue::new(FIRST_COME.make(&Config::rfc9260().setup()))
    }

    #[test]
    fn whole_messages_stay_whole_and_large_ones_fill_packets() {
        let mut q = queue();
        q.push(Time::ZERO, Message::new(StreamId(0), vec![1; 100]));
        q.push(Time::ZERO, Message::new(StreamId(0), vec![2; 3000]));
        assert_eq!(q.next_size(1452, 99), None);
        assert_eq!(q.next_size(1452, 1452), Some(100));
        let c = q.take(100).unwrap();
        assert!(c.beginning && c.end && c.mid == Mid(0));
        // The next packet has 1336 bytes left after the first chunk.
        assert_eq!(q.next_size(1452, 1336), Some(1336));
        let c = q.take(1336).unwrap();
        assert!(c.beginning && !c.end && c.mid == Mid(1));
        assert_eq!(q.next_size(1452, 40), None);
        assert_eq!(q.next_size(1452, 1452), Some(1452));
        q.take(1452);
        assert_eq!(q.next_size(1452, 300), Some(212));
        let c = q.take(212).unwrap();
        assert!(!c.beginning && c.end && c.mid == Mid(1) && c.payload.len() == 212);
        assert!(q.is_empty() && q.bytes() == 0 && q.next_size(1452, 1452).is_none());
    }

    #[test]
    fn what_has_a_limit_can_be_found_and_removed() {
        let mut q = queue();
        let message = |stream, reliability| {
            let plain = Message::new(StreamId(stream), vec![stream as u8; 100]);
            Message { reliability, ..plain }
        };
        let lifetime = |ms| Reliability::Lifetime(Duration::from_millis(ms));
        let now = Time::from_secs(1);
        assert!(!q.push(now, message(0, Reliability::Reliable)));
        for (stream, reliability) in [
            (0, lifetime(20)),
            (1, lifetime(10)),
            (0, Reliability::Priority(3)),
            (2, Reliability::Priority(3)),
        ] {
            assert!(q.push(now, message(stream, reliability)));
        }
        assert_eq!(q.next_expiry(), Some(now + Duration::from_millis(10)));
        assert!(q.expired(now).is_none());
        let later = now + Duration::from_millis(30);
        let first = q.expired(later).unwrap();
        assert_eq!(first.number, 2);
        let removed = q.remove(&first).unwrap();
        assert_eq!((removed.bytes, removed.begun), (100, None));
        assert_eq!(q.expired(later).map(|p| p.number), Some(1));
        assert_eq!(q.below(2).map(|p| p.number), Some(3), "the older of two");
        assert!(q.below(3).is_none());
        // A part of the second message is sent; its identifier is used up.
        q.take(100);
        assert_eq!(q.take(40).map(|c| (c.stream, c.mid)), Some((StreamId(0), Mid(1))));
        let second = q.expired(later).unwrap();
        let removed = q.remove(&second).unwrap();
        assert_eq!((removed.bytes, removed.begun), (60, Some(Mid(1))));
        assert!(q.remove(&second).is_none() && q.next_expiry().is_none());
        assert_eq!(q.take(100).map(|c| c.mid), Some(Mid(2)));
        assert_eq!(q.take(100).map(|c| c.stream), Some(StreamId(2)));
        assert!(q.is_empty() && q.bytes() == 0 && q.below(0).is_none());
    }

    #[test]
    fn what_a_reset_holds_keeps_its_limit_and_its_place() {
        let mut q = queue();
        let now = Time::from_secs(1);
        let message = |stream, ms| Message {
            reliability: Reliability::Lifetime(Duration::from_millis(ms)),
            ..Message::new(StreamId(stream), vec![0; 10])
        };
        q.push(now, message(1, 900));
        let reset = Streams::listed([1]);
        q.hold(reset.clone());
        for (stream, ms) in [(1, 10), (2, 900), (1, 20), (1, 900)] {
            q.push(now, message(stream, ms));
        }
        assert!(q.has_any_of(&reset) && q.bytes() == 50);
        assert_eq!(q.take(10).map(|c| (c.stream, c.mid)), Some((StreamId(1), Mid(0))));
        assert!(!q.has_any_of(&reset), "what is held does not count");
        let first = q.expired(now + Duration::from_millis(15)).unwrap();
        let removed = q.remove(&first).unwrap();
        assert_eq!((first.number, removed.bytes, removed.begun), (1, 10, None));
        assert!(q.remove(&first).is_none());
        assert_eq!(q.next_expiry(), Some(now + Duration::from_millis(20)));
        q.reset_numbers(&reset);
        q.release();
        // In the order in which they were queued.
        let order: Vec<_> =
            std::iter::from_fn(|| q.take(10)).map(|c| (c.stream.0, c.mid)).collect();
        assert_eq!(order, [(2, Mid(0)), (1, Mid(0)), (1, Mid(1))]);
        assert!(q.is_through() && q.bytes() == 0 && q.next_expiry().is_none());
        q.hold(Streams::All);
        q.push(now, message(1, 5));
        assert!(q.is_empty() && !q.is_through());
        q.clear();
        assert!(q.is_through() && !q.is_holding() && q.bytes() == 0 && q.next_expiry().is_none());
    }
}
