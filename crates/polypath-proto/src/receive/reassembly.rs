//! DATA chunks become messages again (RFC 9260 6.9).
//!
//! Fragments of a message carry consecutive TSNs, so runs of neighbouring fragments are joined as
//! they arrive, whatever their order; a run with a beginning and an end is a message.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::wire::Data;
use crate::{Ppid, Ssn, StreamId, Tsn};

/// Size of a block, in bytes. Larger ones would be mapped from and returned to the operating system one by one.
const BLOCK: usize = 96 * 1024;
/// So many are kept: what is unread in a receive buffer of 1 MiB.
const MOST_BLOCKS: usize = 16;
/// A message begins in a block that has so much left, or in a new one.
const START: usize = BLOCK / 3;
/// A message smaller than this gets memory of its own.
const SMALL: usize = BLOCK / 16;

/// A message, or a piece of one, that left reassembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) stream: StreamId,
    /// Its place in the stream: SSN or MID; means nothing if unordered and by SSN.
    pub(crate) number: u32,
    pub(crate) ppid: Ppid,
    pub(crate) unordered: bool,
    pub(crate) beginning: bool,
    pub(crate) end: bool,
    /// The rest will not come: it was given up.
    pub(crate) aborted: bool,
    pub(crate) payload: Bytes,
    /// Chunks that it came in; each is charged with its header.
    pub(crate) chunks: u32,
    /// First and last TSN of the message (of a piece: so far).
    pub(crate) tsns: (Tsn, Tsn),
    /// All of them, where they need not be neighbours (I-DATA).
    pub(crate) scattered: Vec<Tsn>,
}

/// Neighbouring fragments of one message.
#[derive(Debug)]
struct Run {
    first: Tsn,
    last: Tsn,
    beginning: bool,
    end: bool,
    stream: StreamId,
    ssn: Ssn,
    ppid: Ppid,
    unordered: bool,
    payload: BytesMut,
    chunks: u32,
    /// Pieces of the message have left already (partial delivery).
    delivering: bool,
}

/// Fragments that were dropped because their message was given up.
#[derive(Debug)]
pub(crate) struct Dropped {
    pub(crate) bytes: usize,
    pub(crate) chunks: u32,
    /// What tells the application, if it has had a part of the message.
    pub(crate) aborted: Option<Piece>,
}

impl Run {
    /// `above` carries on where this run ends, by its flags and by its message. `gaps`: a message may
    /// have been given up between.
    fn takes(&self, above: &Self, gaps: bool) -> Result<bool, FragmentError> {
        if self.last.next() != above.first || self.end || above.beginning {
            // A message that never ends and another that never begins cannot be neighbours.
            let broken = self.last.next() == above.first && self.end != above.beginning;
            return if broken && !gaps { Err(FragmentError) } else { Ok(false) };
        }
        let same = self.stream == above.stream
            && self.unordered == above.unordered
            && (self.unordered || self.ssn == above.ssn);
        if same { Ok(true) } else { Err(FragmentError) }
    }

    fn dropped(self) -> Dropped {
        Dropped {
            bytes: self.payload.len(),
            chunks: self.chunks,
            aborted: self.delivering.then(|| Piece {
                stream: self.stream,
                number: self.ssn.0.into(),
                ppid: self.ppid,
                unordered: self.unordered,
                beginning: false,
                end: false,
                aborted: true,
                payload: Bytes::new(),
                chunks: 0,
                tsns: (self.first, self.last),
                scattered: Vec::new(),
            }),
        }
    }

    fn append(&mut self, above: Self) {
        self.last = above.last;
        self.end = above.end;
        self.chunks += above.chunks;
        // Free of copying if both lie side by side in one block.
        self.payload.unsplit(above.payload);
    }
}

/// The sender's fragments contradict each other: a protocol violation (RFC 9260 6.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentError;

/// Payload that arrives in sequence is laid end to end into blocks, so that joining it moves nothing. What is
/// kept for long is copied out of its block, which it would pin.
///
/// A block is used again when nothing in it is in use any more: memory that goes back to the operating system
/// has to be mapped anew, page by page.
#[derive(Debug, Default)]
struct Blocks {
    /// The last is being filled; the first was filled first, and will be free first.
    blocks: VecDeque<BytesMut>,
}

impl Blocks {
    /// Lays it behind what came before, if it fits there and so many bytes are left.
    fn lay(&mut self, payload: &[u8], least: usize) -> BytesMut {
        let fits = |block: &BytesMut| block.capacity() >= payload.len().max(least);
        if !self.blocks.back().is_some_and(fits) {
            let free = self.blocks.front_mut().is_some_and(|block| block.try_reclaim(BLOCK));
            let mut block = BytesMut::new();
            if free || self.blocks.len() == MOST_BLOCKS {
                block = self.blocks.pop_front().unwrap_or_default();
            }
            block.reserve(BLOCK);
            self.blocks.push_back(block);
        }
        let Some(block) = self.blocks.back_mut() else { return BytesMut::from(payload) };
        block.extend_from_slice(payload);
        block.split()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// Ascending by TSN.
    runs: Vec<Run>,
    blocks: Blocks,
    /// The sender may give up a message in its midst.
    gaps: bool,
}

impl Reassembly {
    /// See [`Receiver::expect_gaps`](super::Receiver::expect_gaps).
    pub(crate) const fn expect_gaps(&mut self, expected: bool) {
        self.gaps = expected;
    }

    pub(crate) const fn expects_gaps(&self) -> bool {
        self.gaps
    }

    /// Gives back the memory that is kept for what comes.
    pub(crate) fn give_back(&mut self) {
        self.blocks = Blocks::default();
    }

    /// Drops fragments at or below `to`, and those that go on there: their messages were given up. All
    /// that is missing up to `to` will not come.
    pub(crate) fn drop_up_to(&mut self, to: Tsn) -> Vec<Dropped> {
        let n = self.runs.partition_point(|r| !r.first.is_after(to));
        self.runs.drain(..n).map(Run::dropped).collect()
    }

    /// Drops what is left of messages whose beginning was given up. All up to `cumulative` has come, or will not.
    pub(crate) fn drop_orphans(&mut self, cumulative: Tsn) -> Vec<Dropped> {
        let n = self.runs.partition_point(|r| !r.first.is_after(cumulative));
        self.runs.extract_if(..n, |r| !r.beginning).map(Run::dropped).collect()
    }

    /// Takes a chunk; gives the message if that completes one. `in_sequence` says that nothing is
    /// missing below it.
    pub(crate) fn insert(
        &mut self,
        data: &Data<'_>,
        in_sequence: bool,
    ) -> Result<Option<Piece>, FragmentError> {
        let at = self.runs.partition_point(|r| r.last.is_before(data.tsn));
        let payload = if data.beginning && data.end {
            // Neighbours must not expect to go on over this chunk.
            let below = at.checked_sub(1).map(|i| &self.runs[i]);
            let open_below = below.is_some_and(|r| r.last.next() == data.tsn && !r.end);
            let above = self.runs.get(at);
            let open_above = above.is_some_and(|r| data.tsn.next() == r.first && !r.beginning);
            if (open_below || open_above) && !self.gaps {
                return Err(FragmentError);
            }
            return Ok(Some(Piece {
                stream: data.stream,
                number: data.ssn.0.into(),
                ppid: data.ppid,
                unordered: data.unordered,
                beginning: true,
                end: true,
                aborted: false,
                payload: Bytes::copy_from_slice(data.payload),
                chunks: 1,
                tsns: (data.tsn, data.tsn),
                scattered: Vec::new(),
            }));
        } else if in_sequence {
            self.blocks.lay(data.payload, if data.beginning { START } else { 0 })
        } else {
            BytesMut::from(data.payload)
        };
        let run = Run {
            first: data.tsn,
            last: data.tsn,
            beginning: data.beginning,
            end: data.end,
            stream: data.stream,
            ssn: data.ssn,
            ppid: data.ppid,
            unordered: data.unordered,
            payload,
            chunks: 1,
            delivering: false,
        };
        let gaps = self.gaps;
        let joins_below = at > 0 && self.runs[at - 1].takes(&run, gaps)?;
        // In sequence, a message begins or goes on where the one before left off.
        if in_sequence && !data.beginning && !joins_below && !gaps {
            return Err(FragmentError);
        }
        let joins_above = match self.runs.get(at) {
            Some(above) => run.takes(above, gaps)?,
            None => false,
        };
        let at = match (joins_below, joins_above) {
            (true, true) => {
                let above = self.runs.remove(at);
                let below = &mut self.runs[at - 1];
                below.append(run);
                below.append(above);
                at - 1
            }
            (true, false) => {
                self.runs[at - 1].append(run);
                at - 1
            }
            (false, true) => {
                let above = std::mem::replace(&mut self.runs[at], run);
                self.runs[at].append(above);
                at
            }
            (false, false) => {
                self.runs.insert(at, run);
                at
            }
        };
        let done = self.runs[at].beginning && self.runs[at].end;
        Ok(done.then(|| {
            let run = self.runs.remove(at);
            Self::piece(run)
        }))
    }

    /// The highest run of fragments that has a gap below it: its first TSN.
    pub(crate) fn highest_above(&self, cumulative: Tsn) -> Option<Tsn> {
        self.runs.last().map(|r| r.first).filter(|first| first.is_after(cumulative))
    }

    /// Forgets the highest run: its last TSN, its bytes and chunks.
    pub(crate) fn evict_highest(&mut self) -> Option<(Tsn, usize, u32)> {
        self.runs.pop().map(|r| (r.last, r.payload.len(), r.chunks))
    }

    /// A piece of the message that is next in sequence, unfinished: all of it that has arrived, up to
    /// `cumulative` (partial delivery, RFC 9260 6.9). `large` says whether so many bytes in so many
    /// chunks are too much to hold, `ready` whether its stream has come to the message.
    pub(crate) fn take_partial(
        &mut self,
        cumulative: Tsn,
        large: impl Fn(usize, u32) -> bool,
        ready: impl Fn(StreamId, u32, bool) -> bool,
    ) -> Option<Piece> {
        let run = self.runs.first_mut()?;
        let in_sequence = run.beginning && run.last == cumulative;
        if !in_sequence
            || !large(run.payload.len(), run.chunks)
            || !ready(run.stream, run.ssn.0.into(), run.unordered)
        {
            return None;
        }
        let payload = std::mem::take(&mut run.payload).freeze();
        let piece = Piece {
            stream: run.stream,
            number: run.ssn.0.into(),
            ppid: run.ppid,
            unordered: run.unordered,
            beginning: !run.delivering,
            end: false,
            aborted: false,
            payload,
            chunks: run.chunks,
            tsns: (run.first, run.last),
            scattered: Vec::new(),
        };
        run.delivering = true;
        run.chunks = 0;
        Some(piece)
    }

    fn piece(run: Run) -> Piece {
        let payload = if run.payload.len() < SMALL {
            Bytes::copy_from_slice(&run.payload)
        } else {
            run.payload.freeze()
        };
        Piece {
            stream: run.stream,
            number: run.ssn.0.into(),
            ppid: run.ppid,
            unordered: run.unordered,
            beginning: !run.delivering,
            end: true,
            aborted: false,
            payload,
            chunks: run.chunks,
            tsns: (run.first, run.last),
            scattered: Vec::new(),
        }
    }

    /// Bytes held, and chunks that they came in.
    pub(crate) fn held(&self) -> (usize, u32) {
        self.runs.iter().fold((0, 0), |(b, c), r| (b + r.payload.len(), c + r.chunks))
    }

    /// Everything received so far belongs to the past (restart).
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fragment(tsn: u32, beginning: bool, end: bool, payload: &[u8]) -> Data<'_> {
        Data {
            tsn: Tsn(tsn),
            stream: StreamId(1),
            ssn: Ssn(0),
            ppid: Ppid(9),
            unordered: false,
            beginning,
            end,
            immediate: false,
            retransmission: false,
            payload,
        }
    }

    #[test]
    fn a_message_split_by_delivery_in_part() {
        let mut r = Reassembly::default();
        assert_eq!(r.insert(&fragment(1, true, false, b"ab"), true), Ok(None));
        assert_eq!(r.insert(&fragment(2, false, false, b"cd"), true), Ok(None));
        let first = r.take_partial(Tsn(2), |bytes, _| bytes >= 4, |_, _, _| true).unwrap();
        assert_eq!((&first.payload[..], first.beginning, first.end), (&b"abcd"[..], true, false));
        assert_eq!(r.take_partial(Tsn(2), |bytes, _| bytes > 0, |_, _, _| true), None);
        assert_eq!(r.held(), (0, 0));
        let last = r.insert(&fragment(3, false, true, b"e"), true).unwrap().unwrap();
        assert_eq!((&last.payload[..], last.beginning, last.end), (&b"e"[..], false, true));
    }

    #[test]
    fn a_block_is_used_again_when_nothing_in_it_is_in_use() {
        let mut blocks = Blocks::default();
        // Fills a block: where it is, and a piece of it.
        let mut fill = |byte| {
            let pieces: Vec<Bytes> =
                (0..4).map(|_| blocks.lay(&[byte; BLOCK / 4], 0).freeze()).collect();
            (pieces[0].as_ptr(), pieces[2].clone())
        };
        let (first, _) = fill(1);
        assert_eq!(fill(2).0, first);
        let (_, kept) = fill(3);
        let (second, _) = fill(4);
        assert_ne!(second, first);
        // The first is in use still: new ones follow, up to so many.
        let others: Vec<_> = (0..MOST_BLOCKS).map(|_| fill(5).0).collect();
        assert!(!others.contains(&first));
        assert_eq!(others[MOST_BLOCKS - 1], second);
        assert!(kept.iter().all(|&byte| byte == 3));
    }

    #[test]
    fn a_message_goes_on_when_memory_was_given_back() {
        let mut r = Reassembly::default();
        assert_eq!(r.insert(&fragment(1, true, false, b"ab"), true), Ok(None));
        assert!(!r.blocks.blocks.is_empty());
        r.give_back();
        assert!(r.blocks.blocks.is_empty());
        let whole = r.insert(&fragment(2, false, true, b"cd"), true).unwrap().unwrap();
        assert_eq!(&whole.payload[..], b"abcd");
    }

    #[test]
    fn contradicting_fragments_are_refused() {
        for (first, second) in [
            (fragment(1, true, false, b"a"), fragment(2, true, false, b"b")),
            (fragment(1, true, false, b"a"), fragment(2, true, true, b"b")),
            (fragment(2, false, true, b"a"), fragment(1, true, true, b"b")),
        ] {
            let mut r = Reassembly::default();
            assert_eq!(r.insert(&first, first.tsn == Tsn(1)), Ok(None));
            assert_eq!(r.insert(&second, second.tsn == Tsn(1)), Err(FragmentError));
        }
        let other_stream = Data { stream: StreamId(2), ..fragment(2, false, true, b"b") };
        let mut r = Reassembly::default();
        assert_eq!(r.insert(&fragment(1, true, false, b"a"), true), Ok(None));
        assert_eq!(r.insert(&other_stream, true), Err(FragmentError));
        assert_eq!(
            Reassembly::default().insert(&fragment(1, false, true, b"a"), true),
            Err(FragmentError)
        );
    }

    proptest! {
        /// Messages of several fragments come out whole, in whatever order the fragments arrive.
        #[test]
        fn any_order_gives_the_messages(
            lengths in prop::collection::vec(1usize..6, 1..12),
            order in any::<u64>(),
        ) {
            let mut chunks = Vec::new();
            for (m, &n) in lengths.iter().enumerate() {
                for f in 0..n {
                    let tsn = chunks.len() as u32;
                    chunks.push((tsn, f == 0, f + 1 == n, m, vec![m as u8 * 16 + f as u8; 1 + f]));
                }
            }
            let mut rng = crate::Rng::new(&crate::Seed::from_u64(order));
            for i in (1..chunks.len()).rev() {
                chunks.swap(i, rng.below(i as u64 + 1) as usize);
            }
            let mut r = Reassembly::default();
            let mut tracker = super::super::tsns::TsnTracker::new(Tsn(0));
            let mut got = vec![None; lengths.len()];
            for (tsn, b, e, m, payload) in &chunks {
                let data = Data { ssn: Ssn(*m as u16), ..fragment(*tsn, *b, *e, payload) };
                let in_sequence = tracker.cumulative().next() == data.tsn;
                tracker.note(data.tsn);
                if let Some(piece) = r.insert(&data, in_sequence).unwrap() {
                    prop_assert!(piece.beginning && piece.end && got[piece.number as usize].is_none());
                    got[piece.number as usize] = Some(piece.payload);
                }
            }
            for (m, &n) in lengths.iter().enumerate() {
                let whole: Vec<u8> = (0..n).flat_map(|f| vec![m as u8 * 16 + f as u8; 1 + f]).collect();
                prop_assert_eq!(got[m].as_deref(), Some(&whole[..]));
            }
            prop_assert_eq!(r.held(), (0, 0));
        }
    }
}
