//! Ordering of messages within streams, and the queue of messages ready for the application (RFC
//! 9260 6.5, 6.6).
//!
//! Held messages are stored per association, not per stream: a stream without held messages costs
//! only its sequence numbers, and no operation searches stream by stream.

use std::collections::{BTreeMap, VecDeque};

use super::reassembly::{Piece, payload};
use crate::allocation::tree;
use crate::ids::StreamId;
use crate::streams::Streams;

/// Memory of a message received ahead of its turn, in both of its indices.
pub(super) const EARLY: usize = tree(16 + size_of::<Piece>()) + tree(24);

/// Number of messages for which the ready queue keeps spare memory.
const SPARE_SLOTS: usize = 1024;

/// The place of the first ordered message of a stream. Not 0, so that numbers before it have a
/// place.
const FIRST: u64 = 1 << 32;

/// State of one inbound stream. Places count ordered messages from [`FIRST`] and do not wrap.
#[derive(Clone, Copy, Debug)]
struct InStream {
    /// Place of the next ordered message to deliver.
    next: u64,
    /// Messages from this place up to `next`, exclusive, were skipped, and no later one was
    /// delivered.
    skipped_from: u64,
    /// Places in [`Ready`] of the stream's first and last piece; `head` is 0 if there is none.
    head: u64,
    tail: u64,
    /// Whether the stream is in [`InStreams::moved`].
    moved: bool,
}

impl Default for InStream {
    fn default() -> Self {
        Self { next: FIRST, skipped_from: FIRST, head: 0, tail: 0, moved: false }
    }
}

impl InStream {
    /// The place of the message with this number, by serial arithmetic from the next one.
    fn place(&self, numbers: Numbers, number: u32) -> u64 {
        let offset = match numbers {
            Numbers::Ssn => i64::from((number as u16).wrapping_sub(self.next as u16).cast_signed()),
            Numbers::Mid => i64::from(number.wrapping_sub(self.next as u32).cast_signed()),
        };
        self.next.wrapping_add_signed(offset)
    }
}

/// A piece that is ready, or `None` after it was read through its stream.
#[derive(Debug)]
struct Slot {
    piece: Option<Piece>,
    /// The place of the next piece of the same stream; 0 if there is none.
    next: u64,
}

/// Pieces in the order in which they became ready.
#[derive(Debug)]
struct Ready {
    slots: VecDeque<Slot>,
    /// The place of the first slot; places start at 1.
    first: u64,
    /// Number of slots that hold a piece.
    live: usize,
}

impl Ready {
    const fn new() -> Self {
        Self { slots: VecDeque::new(), first: 1, live: 0 }
    }

    fn slot(&mut self, place: u64) -> Option<&mut Slot> {
        self.slots.get_mut(place.checked_sub(self.first)? as usize)
    }

    /// Appends a piece of `stream`.
    fn push(&mut self, stream: &mut InStream, piece: Piece) {
        let (len, capacity) = (self.slots.len(), self.slots.capacity());
        if len == capacity && len >= SPARE_SLOTS {
            // Grow by less than double: spare capacity counts as held.
            self.slots.reserve_exact(len / 8);
        }
        let place = self.first + len as u64;
        self.slots.push_back(Slot { piece: Some(piece), next: 0 });
        self.live += 1;
        if stream.head == 0 {
            stream.head = place;
        } else if let Some(last) = self.slot(stream.tail) {
            last.next = place;
        }
        stream.tail = place;
    }

    /// Takes what `take` takes of the first piece of a stream, and drops the rest.
    fn pop_from<T>(
        &mut self,
        stream: &mut InStream,
        take: impl FnOnce(&mut Piece) -> T,
    ) -> Option<T> {
        let head = stream.head;
        let slot = self.slot(head)?;
        let taken = slot.piece.as_mut().map(take);
        slot.piece = None;
        stream.head = slot.next;
        self.live -= usize::from(taken.is_some());
        while self.slots.front().is_some_and(|slot| slot.piece.is_none()) {
            self.slots.pop_front();
            self.first += 1;
        }
        let (len, capacity) = (self.slots.len(), self.slots.capacity());
        if capacity > SPARE_SLOTS && len < capacity / 4 {
            self.slots.shrink_to((capacity / 2).max(SPARE_SLOTS));
        }
        taken
    }

    /// Whether too many slots are empty: pieces were read through their streams before earlier
    /// ones.
    fn is_sparse(&self) -> bool {
        self.slots.len() > 2 * self.live + 64
    }

    fn memory(&self) -> usize {
        let spare = self.slots.capacity().saturating_sub(SPARE_SLOTS);
        self.slots.len().max(spare) * size_of::<Slot>()
    }
}

#[derive(Debug)]
pub(crate) struct InStreams {
    streams: Vec<InStream>,
    ready: Ready,
    /// Complete ordered messages that wait for earlier ones, by stream and place.
    early: BTreeMap<(StreamId, u64), Piece>,
    /// Those of `early` that arrived above a gap, by the place of their first TSN.
    above_gap: BTreeMap<u64, (StreamId, u64)>,
    /// Streams that have delivered or skipped an ordered message since the association began or all
    /// streams were reset.
    moved: Vec<StreamId>,
    /// Bytes of payload held, the number of their chunks, and the bytes of memory that payload
    /// takes outside of blocks.
    bytes: usize,
    chunks: u32,
    outside: usize,
    /// Total number of pieces that became ready, over all streams.
    ever_ready: u64,
    limit: u16,
    numbers: Numbers,
}

/// How messages are numbered: by 16-bit stream sequence numbers in DATA chunks, by 32-bit message
/// identifiers in I-DATA chunks (RFC 8260 2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Numbers {
    #[default]
    Ssn,
    Mid,
}

/// Bytes of memory of a piece's payload, if that is outside of blocks.
fn outside(piece: &Piece) -> usize {
    if piece.block.is_some() { 0 } else { payload(piece.payload.len()) }
}

impl InStreams {
    pub(crate) fn new(limit: u16) -> Self {
        Self {
            streams: Vec::new(),
            ready: Ready::new(),
            early: BTreeMap::new(),
            above_gap: BTreeMap::new(),
            moved: Vec::new(),
            bytes: 0,
            chunks: 0,
            outside: 0,
            ever_ready: 0,
            limit,
            numbers: Numbers::default(),
        }
    }

    pub(crate) const fn limit(&self) -> u16 {
        self.limit
    }

    /// Sets how the peer numbers its messages; called before the first one.
    pub(crate) const fn number_by(&mut self, numbers: Numbers) {
        self.numbers = numbers;
    }

    fn stream(&self, stream: StreamId) -> InStream {
        self.streams.get(usize::from(stream.0)).copied().unwrap_or_default()
    }

    fn stream_mut(&mut self, stream: StreamId) -> &mut InStream {
        let index = usize::from(stream.0);
        if self.streams.len() <= index {
            self.streams.resize_with(index + 1, InStream::default);
        }
        &mut self.streams[index]
    }

    /// Whether this message may be delivered next on its stream.
    pub(crate) fn is_next(&self, stream: StreamId, number: u32, unordered: bool) -> bool {
        let s = self.stream(stream);
        unordered || s.place(self.numbers, number) == s.next
    }

    /// The number of the next ordered message of a stream.
    pub(crate) fn next_number(&self, stream: StreamId) -> u32 {
        self.stream(stream).next as u32
    }

    /// Whether the ordered message with this number was delivered or skipped.
    pub(crate) fn is_past(&self, stream: StreamId, number: u32) -> bool {
        let s = self.stream(stream);
        s.place(self.numbers, number) < s.next
    }

    /// Whether this is an ordered message that has to wait for earlier ones.
    pub(crate) fn comes_early(&self, piece: &Piece) -> bool {
        !piece.unordered && {
            let s = self.stream(piece.stream);
            s.place(self.numbers, piece.number) > s.next
        }
    }

    /// Adds a message, or a piece of the next one of its stream. `above_gap`: a TSN below its first
    /// one is missing. Returns false, and leaves the piece, if its number was used before by an
    /// ordered message, which violates the protocol.
    pub(crate) fn insert(&mut self, piece: &mut Piece, above_gap: bool) -> bool {
        let id = piece.stream;
        let numbers = self.numbers;
        let s = *self.stream_mut(id);
        if piece.unordered {
            self.add(piece);
            self.now_ready(std::mem::take(piece));
            return true;
        }
        let place = s.place(numbers, piece.number);
        if place != s.next {
            if (s.skipped_from..s.next).contains(&place) {
                // Some senders list the SSN of an abandoned unordered message, against RFC 3758
                // 3.2, so the ordered message with this number may still arrive. Delivering it
                // keeps the order, as no later one was delivered, and its TSN is new.
                self.stream_mut(id).skipped_from = place + 1;
                self.add(piece);
                self.now_ready(std::mem::take(piece));
                return true;
            }
            if place < s.next || self.early.contains_key(&(id, place)) {
                return false;
            }
            self.add(piece);
            if above_gap {
                self.above_gap.insert(piece.places.0, (id, place));
            }
            self.early.insert((id, place), std::mem::take(piece));
            return true;
        }
        let end = piece.end;
        self.add(piece);
        self.now_ready(std::mem::take(piece));
        // `skipped_from` advances even if only a part of the message has arrived.
        self.move_to(id, s.next + u64::from(end), s.next + u64::from(end));
        self.release_early(id);
        true
    }

    /// Sets the next ordered message of a stream.
    fn move_to(&mut self, id: StreamId, next: u64, skipped_from: u64) {
        let s = self.stream_mut(id);
        (s.next, s.skipped_from) = (next, skipped_from);
        if !std::mem::replace(&mut s.moved, true) {
            self.moved.push(id);
        }
    }

    /// Makes messages ready that waited for the ones just delivered or skipped.
    fn release_early(&mut self, id: StreamId) {
        let mut s = self.stream(id);
        while !self.early.is_empty()
            && let Some(piece) = self.take_early((id, s.next))
        {
            self.now_ready(piece);
            self.move_to(id, s.next + 1, s.next + 1);
            s.next += 1;
        }
    }

    fn take_early(&mut self, key: (StreamId, u64)) -> Option<Piece> {
        let piece = self.early.remove(&key)?;
        if !self.above_gap.is_empty() {
            self.above_gap.remove(&piece.places.0);
        }
        Some(piece)
    }

    /// The peer has abandoned a message that was delivered in part: queues the notification.
    pub(crate) fn abort(&mut self, piece: Piece) {
        // Its pieces were delivered, so the stream exists.
        if usize::from(piece.stream.0) < self.streams.len() {
            self.add(&piece);
            self.now_ready(piece);
        }
    }

    /// The peer has abandoned the missing ordered messages up to this one: makes those ready that
    /// waited for them (RFC 3758 3.6).
    pub(crate) fn skip(&mut self, stream: StreamId, number: u32) {
        let numbers = self.numbers;
        let s = *self.stream_mut(stream);
        let to = s.place(numbers, number);
        if to < s.next {
            return;
        }
        self.move_to(stream, to + 1, s.skipped_from);
        let waits = |early: &BTreeMap<(StreamId, u64), Piece>| {
            let first = early.range((stream, 0)..=(stream, to)).next();
            first.map(|(key, _)| *key)
        };
        while let Some(key) = waits(&self.early) {
            let Some(piece) = self.take_early(key) else { break };
            self.now_ready(piece);
            self.stream_mut(stream).skipped_from = key.1 + 1;
        }
        if self.early.contains_key(&(stream, to + 1)) {
            self.release_early(stream);
        }
    }

    /// No further message will arrive on any stream: makes all waiting ones ready.
    pub(crate) fn skip_all(&mut self) {
        while let Some(key) = self.early.first_key_value().map(|(key, _)| *key) {
            let Some(piece) = self.take_early(key) else { break };
            self.stream_mut(piece.stream);
            self.now_ready(piece);
        }
    }

    fn add(&mut self, piece: &Piece) {
        self.bytes += piece.payload.len();
        self.chunks += piece.chunks;
        self.outside += outside(piece);
    }

    fn gone(&mut self, piece: &Piece) {
        self.bytes -= piece.payload.len();
        self.chunks -= piece.chunks;
        self.outside -= outside(piece);
    }

    fn now_ready(&mut self, piece: Piece) {
        let index = usize::from(piece.stream.0);
        self.ready.push(&mut self.streams[index], piece);
        self.ever_ready += 1;
    }

    /// The stream of the piece that became ready first.
    pub(crate) fn first(&self) -> Option<StreamId> {
        // The first slot is never empty.
        Some(self.ready.slots.front()?.piece.as_ref()?.stream)
    }

    /// Takes what `take` takes of the piece of this stream that became ready first, and drops the
    /// rest.
    pub(crate) fn pop_from<T>(
        &mut self,
        stream: StreamId,
        take: impl FnOnce(&mut Piece) -> T,
    ) -> Option<T> {
        let Self { streams, ready, bytes, chunks, outside: elsewhere, .. } = self;
        let taken = ready.pop_from(streams.get_mut(usize::from(stream.0))?, |piece| {
            *bytes -= piece.payload.len();
            *chunks -= piece.chunks;
            *elsewhere -= outside(piece);
            take(piece)
        });
        if self.ready.is_sparse() {
            self.close_up();
        }
        taken
    }

    /// Drops the empty slots.
    #[cold]
    fn close_up(&mut self) {
        let slots = std::mem::take(&mut self.ready.slots);
        (self.ready.first, self.ready.live) = (1, 0);
        let pieces = || slots.iter().filter_map(|slot| slot.piece.as_ref());
        for piece in pieces() {
            self.streams[usize::from(piece.stream.0)].head = 0;
        }
        for piece in slots.into_iter().filter_map(|slot| slot.piece) {
            let index = usize::from(piece.stream.0);
            self.ready.push(&mut self.streams[index], piece);
        }
    }

    /// Whether the application has a message, or a piece of one, to read.
    pub(crate) const fn has_ready(&self) -> bool {
        self.ready.live > 0
    }

    /// Total number of pieces that became ready.
    pub(crate) const fn ever_ready(&self) -> u64 {
        self.ever_ready
    }

    /// Place of the first TSN of the highest early message above a gap.
    pub(crate) fn highest_early(&self) -> Option<u64> {
        self.above_gap.last_key_value().map(|(place, _)| *place)
    }

    /// Drops that message.
    pub(crate) fn evict_highest(&mut self) -> Option<Piece> {
        let (_, key) = self.above_gap.pop_last()?;
        let piece = self.early.remove(&key)?;
        self.gone(&piece);
        Some(piece)
    }

    /// Payload bytes held, and the number of their chunks.
    pub(crate) const fn held(&self) -> (usize, u32) {
        (self.bytes, self.chunks)
    }

    /// Bytes of memory in use outside of blocks.
    pub(crate) fn memory(&self) -> usize {
        self.outside + self.early.len() * EARLY + self.ready.memory()
    }

    /// Sets the number of inbound streams.
    pub(crate) const fn set_limit(&mut self, limit: u16) {
        self.limit = limit;
    }

    /// The next ordered message on these streams has sequence number 0 (RFC 6525 5.2.2 E3). Early
    /// messages can no longer get the ones they wait for, so they are dropped. Returns the payload
    /// bytes and chunks dropped.
    pub(crate) fn reset(&mut self, streams: &Streams) -> (usize, u32) {
        let before = self.held();
        match streams {
            Streams::All => {
                for piece in std::mem::take(&mut self.early).into_values() {
                    self.gone(&piece);
                }
                self.above_gap.clear();
                for id in std::mem::take(&mut self.moved) {
                    let s = self.stream_mut(id);
                    (s.next, s.skipped_from, s.moved) = (FIRST, FIRST, false);
                }
            }
            Streams::Some(listed) => listed.iter().for_each(|id| self.reset_one(StreamId(*id))),
        }
        (before.0 - self.bytes, before.1 - self.chunks)
    }

    fn reset_one(&mut self, id: StreamId) {
        while let Some((&key, _)) = self.early.range((id, 0)..=(id, u64::MAX)).next() {
            if let Some(piece) = self.take_early(key) {
                self.gone(&piece);
            }
        }
        if let Some(s) = self.streams.get_mut(usize::from(id.0)) {
            (s.next, s.skipped_from) = (FIRST, FIRST);
        }
    }

    /// The peer restarted: resets all streams, and keeps messages that are ready. Returns the
    /// payload bytes and chunks dropped.
    pub(crate) fn restart(&mut self, limit: u16) -> (usize, u32) {
        self.limit = limit;
        self.reset(&Streams::All)
    }

    /// Checks the counts and indices.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ready = self.ready.slots.iter().filter_map(|slot| slot.piece.as_ref());
        let found =
            self.early.values().chain(ready.clone()).fold((0, 0, 0), |(b, c, o), p| {
                (b + p.payload.len(), c + p.chunks, o + outside(p))
            });
        let counted = (self.bytes, self.chunks, self.outside);
        if found != counted || ready.count() != self.ready.live {
            return Err(format!("messages: {found:?} held, {counted:?} counted"));
        }
        let known = |(place, key): (&u64, &(StreamId, u64))| {
            self.early.get(key).is_some_and(|p| p.places.0 == *place)
        };
        if !self.above_gap.iter().all(known) {
            return Err("an early message is known that is not there".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Ppid;

    fn piece(stream: u16, ssn: u16, unordered: bool) -> Piece {
        Piece {
            stream: StreamId(stream),
            number: ssn.into(),
            ppid: Ppid(0),
            unordered,
            beginning: true,
            end: true,
            aborted: false,
            payload: Bytes::from(vec![stream as u8, ssn as u8]),
            chunks: 1,
            places: (ssn.into(), ssn.into()),
            scattered: Box::default(),
            block: None,
        }
    }

    fn put(s: &mut InStreams, mut piece: Piece) -> bool {
        let done = s.insert(&mut piece, false);
        assert_eq!(s.check(), Ok(()));
        done
    }

    fn pop(s: &mut InStreams) -> Option<Piece> {
        let stream = s.first()?;
        s.pop_from(stream, std::mem::take)
    }

    fn drain(s: &mut InStreams) -> Vec<(u16, u16)> {
        std::iter::from_fn(|| pop(s)).map(|p| (p.stream.0, p.number as u16)).collect()
    }

    #[test]
    fn ordered_waits_unordered_does_not() {
        let mut s = InStreams::new(10);
        for p in [piece(1, 1, false), piece(2, 0, false), piece(1, 7, true), piece(1, 0, false)] {
            assert!(put(&mut s, p));
        }
        assert_eq!(drain(&mut s), [(2, 0), (1, 7), (1, 0), (1, 1)]);
        assert!(!put(&mut s, piece(1, 0, false)), "an old SSN");
        assert!(
            put(&mut s, piece(1, 3, false)) && !put(&mut s, piece(1, 3, false)),
            "an SSN twice"
        );
    }

    #[test]
    fn both_kinds_of_numbers_come_around() {
        for (numbers, last) in [(Numbers::Ssn, 0xffff), (Numbers::Mid, u32::MAX)] {
            let mut s = InStreams::new(10);
            s.number_by(numbers);
            s.skip(StreamId(1), last / 2 - 1);
            s.skip(StreamId(1), last - 2);
            let numbered = |number| Piece { number, ..piece(1, 0, false) };
            for number in [0, last, 1, last - 1] {
                assert!(put(&mut s, numbered(number)), "{number}");
            }
            assert!(!put(&mut s, numbered(last)));
            let got: Vec<u32> = std::iter::from_fn(|| pop(&mut s)).map(|p| p.number).collect();
            assert_eq!(got, [last - 1, last, 0, 1]);
        }
    }

    #[test]
    fn what_waited_for_what_was_given_up_becomes_ready() {
        let mut s = InStreams::new(10);
        for ssn in [2, 4, 5, 7] {
            assert!(put(&mut s, piece(1, ssn, false)));
        }
        s.skip(StreamId(1), 3);
        assert_eq!(drain(&mut s), [(1, 2), (1, 4), (1, 5)]);
        // An outdated skip, and a skip on a stream without messages.
        s.skip(StreamId(1), 3);
        s.skip(StreamId(4), 0);
        assert_eq!(drain(&mut s), []);
        assert!(put(&mut s, piece(1, 6, false)) && put(&mut s, piece(4, 1, false)));
        assert_eq!(drain(&mut s), [(1, 6), (1, 7), (4, 1)]);
    }

    #[test]
    fn a_message_whose_number_was_skipped_comes_once_and_in_order() {
        let mut s = InStreams::new(10);
        assert!(put(&mut s, piece(1, 0, false)));
        s.skip(StreamId(1), 1);
        assert!(put(&mut s, piece(1, 1, false)), "the number of an unordered one was named");
        assert!(!put(&mut s, piece(1, 1, false)), "twice");
        assert!(put(&mut s, piece(1, 2, false)));
        assert_eq!(drain(&mut s), [(1, 0), (1, 1), (1, 2)]);
        s.skip(StreamId(1), 3);
        assert!(put(&mut s, piece(1, 4, false)));
        assert!(!put(&mut s, piece(1, 3, false)), "too late for its order");
        // An early message that a skip covers is delivered once.
        assert!(put(&mut s, piece(1, 7, false)));
        s.skip(StreamId(1), 8);
        assert!(!put(&mut s, piece(1, 6, false)) && !put(&mut s, piece(1, 7, false)));
        assert!(put(&mut s, piece(1, 8, false)) && put(&mut s, piece(1, 9, false)));
        assert_eq!(drain(&mut s), [(1, 4), (1, 7), (1, 8), (1, 9)]);
    }

    #[test]
    fn two_doors_to_one_stream() {
        let mut s = InStreams::new(10);
        for p in [piece(1, 0, false), piece(2, 0, false), piece(1, 1, false), piece(2, 1, false)] {
            put(&mut s, p);
        }
        assert_eq!(s.pop_from(StreamId(2), |p| p.number), Some(0));
        assert_eq!(pop(&mut s).map(|p| (p.stream.0, p.number)), Some((1, 0)));
        assert_eq!(s.pop_from(StreamId(9), |_| ()), None);
        assert_eq!(drain(&mut s), [(1, 1), (2, 1)]);
        assert_eq!(s.ever_ready(), 4);
    }

    /// The application reads one stream while messages of another one stay unread.
    #[test]
    fn what_was_taken_by_way_of_its_stream_leaves_no_trace() {
        let mut s = InStreams::new(10);
        for n in 0..10 {
            put(&mut s, piece(1, n, false));
        }
        for n in 0..5000 {
            put(&mut s, piece(2, n, false));
            assert_eq!(s.pop_from(StreamId(2), |p| p.number), Some(n.into()));
        }
        assert!(s.memory() < 20_000, "{} bytes", s.memory());
        assert_eq!(drain(&mut s).len(), 10);
        assert_eq!(s.pop_from(StreamId(2), |_| ()), None);
        assert_eq!(s.held(), (0, 0));
    }
}
