//! Messages in the order of their streams, ready for the application (RFC 9260 6.5, 6.6).

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::reassembly::Piece;
use crate::send::Streams;
use crate::{Mid, Ssn, StreamId, Tsn};

#[derive(Debug, Default)]
struct InStream {
    /// The ordered message to deliver next.
    next: u32,
    /// Those from this one up to `next` were skipped, and nothing behind them has been delivered.
    skipped_from: u32,
    /// Complete ordered messages that came too early, by number.
    early: VecDeque<Piece>,
    ready: VecDeque<Piece>,
    /// Entries of `InStreams::order` whose piece was taken through the stream's own door.
    taken: usize,
}

impl InStream {
    fn was_skipped(&self, numbers: Numbers, number: u32) -> bool {
        numbers.cmp(number, self.skipped_from).is_ge() && numbers.cmp(number, self.next).is_lt()
    }
}

#[derive(Debug, Default)]
pub(crate) struct InStreams {
    streams: Vec<InStream>,
    /// Streams in the order in which their pieces became ready, one entry for each piece.
    order: VecDeque<StreamId>,
    /// Pieces that have ever become ready, over all streams.
    ever_ready: u64,
    limit: u16,
    numbers: Numbers,
}

/// How messages are numbered: by stream sequence numbers of 16 bits in DATA chunks, by message
/// identifiers of 32 in I-DATA chunks (RFC 8260 2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Numbers {
    #[default]
    Ssn,
    Mid,
}

impl Numbers {
    fn cmp(self, a: u32, b: u32) -> Ordering {
        match self {
            Self::Ssn => Ssn(a as u16).serial_cmp(Ssn(b as u16)),
            Self::Mid => Mid(a).serial_cmp(Mid(b)),
        }
    }

    const fn next(self, number: u32) -> u32 {
        match self {
            Self::Ssn => number.wrapping_add(1) & 0xffff,
            Self::Mid => number.wrapping_add(1),
        }
    }
}

impl InStreams {
    pub(crate) fn new(limit: u16) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(crate) const fn limit(&self) -> u16 {
        self.limit
    }

    /// The peer numbers its messages so from the first one on.
    pub(crate) const fn number_by(&mut self, numbers: Numbers) {
        self.numbers = numbers;
    }

    /// It is this message's turn on its stream.
    pub(crate) fn is_next(&self, stream: StreamId, number: u32, unordered: bool) -> bool {
        unordered || self.streams.get(usize::from(stream.0)).map_or(0, |s| s.next) == number
    }

    /// The ordered message of this number has been delivered, or skipped.
    pub(crate) fn is_past(&self, stream: StreamId, number: u32) -> bool {
        let next = self.streams.get(usize::from(stream.0)).map_or(0, |s| s.next);
        self.numbers.cmp(number, next).is_lt()
    }

    /// Takes a message, or a piece of one whose turn it is. False if an ordered message with this
    /// number was here before: the sender broke the protocol.
    pub(crate) fn insert(&mut self, piece: Piece) -> bool {
        let id = piece.stream;
        let index = usize::from(id.0);
        if self.streams.len() <= index {
            self.streams.resize_with(index + 1, InStream::default);
        }
        let numbers = self.numbers;
        let s = &mut self.streams[index];
        if piece.unordered {
            s.ready.push_back(piece);
            self.now_ready(id);
            return true;
        }
        if piece.number != s.next {
            if s.was_skipped(numbers, piece.number) {
                // Some senders name the number of an unordered message that they give up, against RFC 3758 3.2:
                // the ordered message of this number is another one. It comes in its order, for nothing behind it
                // has been delivered, and is new by its TSN.
                s.skipped_from = numbers.next(piece.number);
                s.ready.push_back(piece);
                self.now_ready(id);
                return true;
            }
            if numbers.cmp(piece.number, s.next).is_lt() {
                return false;
            }
            let at = s.early.partition_point(|p| numbers.cmp(p.number, piece.number).is_lt());
            if s.early.get(at).is_some_and(|p| p.number == piece.number) {
                return false;
            }
            s.early.insert(at, piece);
            return true;
        }
        if piece.end {
            s.next = numbers.next(s.next);
        }
        s.ready.push_back(piece);
        let mut ready = 1;
        while s.early.front().is_some_and(|p| p.number == s.next) {
            s.ready.extend(s.early.pop_front());
            s.next = numbers.next(s.next);
            ready += 1;
        }
        // Also while only a part of the message has come.
        s.skipped_from = s.next;
        for _ in 0..ready {
            self.now_ready(id);
        }
        true
    }

    /// The sender has given up a message of which pieces have been delivered.
    pub(crate) fn abort(&mut self, piece: Piece) {
        let id = piece.stream;
        // Its pieces went through here.
        if let Some(s) = self.streams.get_mut(usize::from(id.0)) {
            s.ready.push_back(piece);
            self.now_ready(id);
        }
    }

    /// Ordered messages up to this one that are missing will not come: those that wait for them have
    /// waited long enough (RFC 3758 3.6).
    pub(crate) fn skip(&mut self, stream: StreamId, number: u32) {
        let index = usize::from(stream.0);
        if self.streams.len() <= index {
            self.streams.resize_with(index + 1, InStream::default);
        }
        let numbers = self.numbers;
        let s = &mut self.streams[index];
        if numbers.cmp(number, s.next).is_lt() {
            return;
        }
        s.next = numbers.next(number);
        let mut ready = 0;
        while s.early.front().is_some_and(|p| numbers.cmp(p.number, s.next).is_le()) {
            let Some(piece) = s.early.pop_front() else { break };
            if piece.number == s.next {
                s.next = numbers.next(s.next);
            }
            s.skipped_from = numbers.next(piece.number);
            s.ready.push_back(piece);
            ready += 1;
        }
        for _ in 0..ready {
            self.now_ready(stream);
        }
    }

    fn now_ready(&mut self, stream: StreamId) {
        self.order.push_back(stream);
        self.ever_ready += 1;
    }

    /// The piece that has been ready for the longest time.
    pub(crate) fn pop(&mut self) -> Option<Piece> {
        while let Some(id) = self.order.pop_front() {
            let s = &mut self.streams[usize::from(id.0)];
            if s.taken > 0 {
                s.taken -= 1;
                continue;
            }
            return s.ready.pop_front();
        }
        None
    }

    /// The piece of this stream that has been ready for the longest time.
    pub(crate) fn pop_from(&mut self, stream: StreamId) -> Option<Piece> {
        let s = self.streams.get_mut(usize::from(stream.0))?;
        let piece = s.ready.pop_front()?;
        s.taken += 1;
        if self.order.front() == Some(&stream) {
            self.order.pop_front();
            s.taken -= 1;
        }
        Some(piece)
    }

    /// The application has something to read.
    pub(crate) fn has_ready(&self) -> bool {
        self.streams.iter().any(|s| !s.ready.is_empty())
    }

    /// Pieces that have ever become ready.
    pub(crate) const fn ever_ready(&self) -> u64 {
        self.ever_ready
    }

    /// The early message with the highest TSN: where it begins.
    pub(crate) fn highest_early(&self) -> Option<(StreamId, Tsn)> {
        let highest =
            |a: (StreamId, Tsn), b: (StreamId, Tsn)| if b.1.is_after(a.1) { b } else { a };
        let last =
            |(i, s): (usize, &InStream)| s.early.back().map(|p| (StreamId(i as u16), p.tsns.0));
        self.streams.iter().enumerate().filter_map(last).reduce(highest)
    }

    /// Forgets the last early message of a stream.
    pub(crate) fn evict_early(&mut self, stream: StreamId) -> Option<Piece> {
        self.streams.get_mut(usize::from(stream.0))?.early.pop_back()
    }

    /// Bytes held, and chunks that they came in.
    pub(crate) fn held(&self) -> (usize, u32) {
        let pieces = self.streams.iter().flat_map(|s| s.early.iter().chain(&s.ready));
        pieces.fold((0, 0), |(b, c), p| (b + p.payload.len(), c + p.chunks))
    }

    /// There are so many streams from now on.
    pub(crate) const fn set_limit(&mut self, limit: u16) {
        self.limit = limit;
    }

    /// The next ordered message on these streams has sequence number 0 (RFC 6525 5.2.2 E3). What came
    /// too early can have no predecessor any more: gives what was dropped.
    pub(crate) fn reset(&mut self, streams: &Streams) -> (usize, u32) {
        let mut dropped = (0, 0);
        for (stream, s) in self.streams.iter_mut().enumerate() {
            if streams.contains(StreamId(stream as u16)) {
                for p in s.early.drain(..) {
                    dropped = (dropped.0 + p.payload.len(), dropped.1 + p.chunks);
                }
                (s.next, s.skipped_from) = (0, 0);
            }
        }
        dropped
    }

    /// The peer starts to count anew (restart); what is ready stays ready. Gives what was dropped.
    pub(crate) fn restart(&mut self, limit: u16) -> (usize, u32) {
        self.limit = limit;
        let mut dropped = (0, 0);
        for s in &mut self.streams {
            for p in s.early.drain(..) {
                dropped = (dropped.0 + p.payload.len(), dropped.1 + p.chunks);
            }
            (s.next, s.skipped_from) = (0, 0);
        }
        dropped
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
            tsns: (Tsn(ssn.into()), Tsn(ssn.into())),
            scattered: Vec::new(),
        }
    }

    fn drain(s: &mut InStreams) -> Vec<(u16, u16)> {
        std::iter::from_fn(|| s.pop()).map(|p| (p.stream.0, p.number as u16)).collect()
    }

    #[test]
    fn ordered_waits_unordered_does_not() {
        let mut s = InStreams::new(10);
        for p in [piece(1, 1, false), piece(2, 0, false), piece(1, 7, true), piece(1, 0, false)] {
            assert!(s.insert(p));
        }
        assert_eq!(drain(&mut s), [(2, 0), (1, 7), (1, 0), (1, 1)]);
        assert!(!s.insert(piece(1, 0, false)), "an old SSN");
        assert!(s.insert(piece(1, 3, false)) && !s.insert(piece(1, 3, false)), "an SSN twice");
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
                assert!(s.insert(numbered(number)), "{number}");
            }
            assert!(!s.insert(numbered(last)));
            let got: Vec<u32> = std::iter::from_fn(|| s.pop()).map(|p| p.number).collect();
            assert_eq!(got, [last - 1, last, 0, 1]);
        }
    }

    #[test]
    fn what_waited_for_what_was_given_up_becomes_ready() {
        let mut s = InStreams::new(10);
        for ssn in [2, 4, 5, 7] {
            assert!(s.insert(piece(1, ssn, false)));
        }
        s.skip(StreamId(1), 3);
        assert_eq!(drain(&mut s), [(1, 2), (1, 4), (1, 5)]);
        // Old news, and a stream that nothing has come on.
        s.skip(StreamId(1), 3);
        s.skip(StreamId(4), 0);
        assert_eq!(drain(&mut s), []);
        assert!(s.insert(piece(1, 6, false)) && s.insert(piece(4, 1, false)));
        assert_eq!(drain(&mut s), [(1, 6), (1, 7), (4, 1)]);
    }

    #[test]
    fn a_message_whose_number_was_skipped_comes_once_and_in_order() {
        let mut s = InStreams::new(10);
        assert!(s.insert(piece(1, 0, false)));
        s.skip(StreamId(1), 1);
        assert!(s.insert(piece(1, 1, false)), "the number of an unordered one was named");
        assert!(!s.insert(piece(1, 1, false)), "twice");
        assert!(s.insert(piece(1, 2, false)));
        assert_eq!(drain(&mut s), [(1, 0), (1, 1), (1, 2)]);
        s.skip(StreamId(1), 3);
        assert!(s.insert(piece(1, 4, false)));
        assert!(!s.insert(piece(1, 3, false)), "too late for its order");
        // What came early and was skipped over has been delivered.
        assert!(s.insert(piece(1, 7, false)));
        s.skip(StreamId(1), 8);
        assert!(!s.insert(piece(1, 6, false)) && !s.insert(piece(1, 7, false)));
        assert!(s.insert(piece(1, 8, false)) && s.insert(piece(1, 9, false)));
        assert_eq!(drain(&mut s), [(1, 4), (1, 7), (1, 8), (1, 9)]);
    }

    #[test]
    fn two_doors_to_one_stream() {
        let mut s = InStreams::new(10);
        for p in [piece(1, 0, false), piece(2, 0, false), piece(1, 1, false), piece(2, 1, false)] {
            s.insert(p);
        }
        assert_eq!(s.pop_from(StreamId(2)).map(|p| p.number), Some(0));
        assert_eq!(s.pop().map(|p| (p.stream.0, p.number)), Some((1, 0)));
        assert_eq!(s.pop_from(StreamId(9)), None);
        assert_eq!(drain(&mut s), [(1, 1), (2, 1)]);
        assert_eq!(s.ever_ready(), 4);
    }
}
