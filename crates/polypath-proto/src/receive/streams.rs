//! Messages in the order of their streams, ready for the application (RFC 9260 6.5, 6.6).

use std::collections::VecDeque;

use super::reassembly::Piece;
use crate::send::Streams;
use crate::{Ssn, StreamId, Tsn};

#[derive(Debug, Default)]
struct InStream {
    /// The ordered message to deliver next.
    next: Ssn,
    /// Complete ordered messages that came too early, by SSN.
    early: VecDeque<Piece>,
    ready: VecDeque<Piece>,
    /// Entries of `InStreams::order` whose piece was taken through the stream's own door.
    taken: usize,
}

#[derive(Debug, Default)]
pub(crate) struct InStreams {
    streams: Vec<InStream>,
    /// Streams in the order in which their pieces became ready, one entry for each piece.
    order: VecDeque<StreamId>,
    /// Pieces that have ever become ready, over all streams.
    ever_ready: u64,
    limit: u16,
}

impl InStreams {
    pub(crate) fn new(limit: u16) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(crate) const fn limit(&self) -> u16 {
        self.limit
    }

    /// It is this message's turn on its stream.
    pub(crate) fn is_next(&self, stream: StreamId, ssn: Ssn, unordered: bool) -> bool {
        unordered || self.streams.get(usize::from(stream.0)).map_or(Ssn(0), |s| s.next) == ssn
    }

    /// Takes a message, or a piece of one whose turn it is. False if an ordered message with this SSN
    /// was here before: the sender broke the protocol.
    pub(crate) fn insert(&mut self, piece: Piece) -> bool {
        let id = piece.stream;
        let index = usize::from(id.0);
        if self.streams.len() <= index {
            self.streams.resize_with(index + 1, InStream::default);
        }
        let s = &mut self.streams[index];
        if piece.unordered {
            s.ready.push_back(piece);
            self.now_ready(id);
            return true;
        }
        if piece.ssn != s.next {
            if piece.ssn.is_before(s.next) {
                return false;
            }
            let at = s.early.partition_point(|p| p.ssn.is_before(piece.ssn));
            if s.early.get(at).is_some_and(|p| p.ssn == piece.ssn) {
                return false;
            }
            s.early.insert(at, piece);
            return true;
        }
        if piece.end {
            s.next = s.next.next();
        }
        s.ready.push_back(piece);
        let mut ready = 1;
        while s.early.front().is_some_and(|p| p.ssn == s.next) {
            s.ready.extend(s.early.pop_front());
            s.next = s.next.next();
            ready += 1;
        }
        for _ in 0..ready {
            self.now_ready(id);
        }
        true
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
                s.next = Ssn(0);
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
            s.next = Ssn(0);
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
            ssn: Ssn(ssn),
            ppid: Ppid(0),
            unordered,
            beginning: true,
            end: true,
            payload: Bytes::from(vec![stream as u8, ssn as u8]),
            chunks: 1,
            tsns: (Tsn(ssn.into()), Tsn(ssn.into())),
        }
    }

    fn drain(s: &mut InStreams) -> Vec<(u16, u16)> {
        std::iter::from_fn(|| s.pop()).map(|p| (p.stream.0, p.ssn.0)).collect()
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
    fn two_doors_to_one_stream() {
        let mut s = InStreams::new(10);
        for p in [piece(1, 0, false), piece(2, 0, false), piece(1, 1, false), piece(2, 1, false)] {
            s.insert(p);
        }
        assert_eq!(s.pop_from(StreamId(2)).map(|p| p.ssn), Some(Ssn(0)));
        assert_eq!(s.pop().map(|p| (p.stream.0, p.ssn.0)), Some((1, 0)));
        assert_eq!(s.pop_from(StreamId(9)), None);
        assert_eq!(drain(&mut s), [(1, 1), (2, 1)]);
        assert_eq!(s.ever_ready(), 4);
    }
}
