//! Reassembly of messages from DATA chunks (RFC 9260 6.9).
//!
//! Fragments of a message carry consecutive TSNs, so runs of neighbouring fragments are joined as
//! they arrive, in any order; a run with a beginning and an end is a message.
//!
//! If messages may be abandoned, a run next to a chunk of another message can never be completed.
//! This is detected when the second of the two arrives, without a search.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use bytes::{Bytes, BytesMut};

use super::tsns::TsnTracker;
use crate::allocation::{ALLOCATION, tree};
use crate::ids::{Ppid, Ssn, StreamId};
use crate::wire::Data;

/// Size of a block, in bytes. The allocator would map larger ones from the operating system, and
/// return them, one by one.
pub(super) const BLOCK: usize = 96 * 1024;
/// Bytes that a block must have left for a message to begin in it.
const START: usize = BLOCK / 3;
/// A message smaller than this, in bytes, gets its own memory.
const SMALL: usize = BLOCK / 16;

/// Memory of a run of fragments: its tree entry, its fields and the header of its payload.
const RUN: usize = tree(8 + size_of::<Run>()) + 2 * ALLOCATION;

/// Most payload blocks, in any buffer.
const MOST_BLOCKS: usize = 64;

/// Number of payload blocks that fill the receive buffer, including the space wasted at their ends.
fn blocks(receive_buffer: usize) -> usize {
    (receive_buffer / 2 * 3 / BLOCK).clamp(1, MOST_BLOCKS)
}

/// Memory of a separately allocated payload. A joined payload may have spare capacity.
pub(super) const fn payload(len: usize) -> usize {
    if len < SMALL { len + ALLOCATION } else { len + len / 4 }
}

/// A message, or a piece of one, that left reassembly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) stream: StreamId,
    /// Its SSN or MID; meaningless for an unordered message in DATA chunks.
    pub(crate) number: u32,
    pub(crate) ppid: Ppid,
    pub(crate) unordered: bool,
    pub(crate) beginning: bool,
    pub(crate) end: bool,
    /// Whether the peer abandoned the rest of the message.
    pub(crate) aborted: bool,
    /// The block that holds the payload, if any.
    pub(crate) block: BlockId,
    pub(crate) payload: Bytes,
    /// Number of chunks that carried it; each is charged with its header.
    pub(crate) chunks: u32,
    /// Places of the first and the last TSN of the message, as far as received.
    pub(crate) places: (u64, u64),
    /// Places of all its TSNs in I-DATA chunks, which need not be consecutive.
    pub(crate) scattered: Box<[u64]>,
}

/// Neighbouring fragments of one message.
#[derive(Debug)]
pub(super) struct Run {
    /// Places of the first and the last TSN.
    first: u64,
    last: u64,
    beginning: bool,
    end: bool,
    stream: StreamId,
    ssn: Ssn,
    ppid: Ppid,
    unordered: bool,
    /// Whether pieces of the message were delivered already (partial delivery).
    delivering: bool,
    /// The block that holds the payload, if any.
    block: BlockId,
    payload: BytesMut,
    chunks: u32,
}

/// Fragments that were dropped because their message was abandoned.
#[derive(Debug)]
pub(crate) struct Dropped {
    pub(crate) bytes: usize,
    pub(crate) chunks: u32,
    /// Notifies the application, if it has read a part of the message.
    pub(crate) aborted: Option<Piece>,
}

/// Result of adding a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// Its message is incomplete.
    Waits,
    /// It completes this message.
    Completes(Piece),
    /// Its message was abandoned: the chunk was dropped.
    Useless,
}

impl Run {
    /// Whether `above`, the neighbour above this run, continues it, by its flags and its message.
    /// With `gaps`, messages may have been abandoned.
    fn takes(&self, above: &Self, gaps: bool) -> Result<bool, FragmentError> {
        if self.end || above.beginning {
            // Unless messages are abandoned, a beginning follows each end (RFC 9260 6.9).
            let broken = self.end != above.beginning;
            return if broken && !gaps { Err(FragmentError) } else { Ok(false) };
        }
        let same = self.stream == above.stream
            && self.unordered == above.unordered
            && (self.unordered || self.ssn == above.ssn);
        if same { Ok(true) } else { Err(FragmentError) }
    }

    /// Bytes of memory that it takes outside of blocks.
    fn memory(&self) -> usize {
        RUN + if self.block.is_some() { 0 } else { self.payload.capacity() }
    }

    fn dropped(self, blocks: &mut Blocks) -> Dropped {
        blocks.release(self.block, self.payload.len());
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
                block: None,
                payload: Bytes::new(),
                chunks: 0,
                places: (self.first, self.last),
                scattered: Box::default(),
            }),
        }
    }

    /// Whether the chunk at this place continues the run.
    fn is_continued_by(&self, data: &Data<'_>, place: u64) -> bool {
        self.last + 1 == place
            && !self.end
            && !data.beginning
            && self.stream == data.stream
            && self.unordered == data.unordered
            && (self.unordered || self.ssn == data.ssn)
    }

    fn append(&mut self, above: Self, blocks: &mut Blocks) {
        self.last = above.last;
        self.end = above.end;
        self.chunks += above.chunks;
        self.append_payload(above.payload, above.block, blocks);
    }

    fn append_payload(&mut self, payload: BytesMut, block: BlockId, blocks: &mut Blocks) {
        if self.payload.is_empty() {
            (self.payload, self.block) = (payload, block);
            return;
        }
        // No copy is needed if both are adjacent in one block.
        let beside = self.payload.as_ptr_range().end == payload.as_ptr();
        if self.block.is_some() && self.block == block && beside {
            return self.payload.unsplit(payload);
        }
        let len = self.payload.len() + payload.len();
        if self.block.is_some() || self.payload.capacity() < len {
            // Grow by less than double: spare capacity counts as held.
            let mut larger = BytesMut::with_capacity(len + len / 4);
            larger.extend_from_slice(&self.payload);
            blocks.release(self.block.take(), self.payload.len());
            self.payload = larger;
        }
        blocks.release(block, payload.len());
        self.payload.extend_from_slice(&payload);
    }
}

/// The sender's fragments contradict each other: a protocol violation (RFC 9260 6.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentError;

/// Identifies a block; `None` for payload outside of blocks.
pub(crate) type BlockId = Option<NonZeroU32>;

#[derive(Debug)]
struct Block {
    id: BlockId,
    /// Bytes in it that the application has not read.
    held: usize,
    /// The part that is still to be filled.
    rest: BytesMut,
}

/// Payload that arrives in sequence is stored contiguously in blocks, so joining it needs no copy.
/// Payload that is kept for long is copied out, so as not to pin its block.
///
/// A block is reused once none of its memory is referenced: memory returned to the operating system
/// would have to be mapped again, page by page.
#[derive(Debug)]
struct Blocks {
    /// In the order in which they were filled: the last is being filled, the first will be free
    /// first.
    blocks: VecDeque<Block>,
    /// Most blocks: while all of them hold unread bytes, payload gets its own memory.
    most: usize,
    /// Unread bytes in all blocks.
    held: usize,
    /// The number of the newest block.
    last: u32,
}

impl Blocks {
    const fn new(most: usize) -> Self {
        Self { blocks: VecDeque::new(), most, held: 0, last: 0 }
    }

    /// Stores `payload` at the end of the last block, or of a new one if it does not fit or fewer
    /// than `least` bytes are left. Gives it its own memory if no block is free.
    fn lay(&mut self, payload: &[u8], least: usize) -> (BytesMut, BlockId) {
        let fits = |block: &Block| block.rest.capacity() >= payload.len().max(least);
        if !self.blocks.back().is_some_and(fits) && !self.begin() {
            return (BytesMut::from(payload), None);
        }
        let Some(block) = self.blocks.back_mut().filter(|block| fits(block)) else {
            return (BytesMut::from(payload), None);
        };
        block.rest.extend_from_slice(payload);
        block.held += payload.len();
        self.held += payload.len();
        (block.rest.split(), block.id)
    }

    /// Stores `payload` behind `before`, which is stored in block `id`, without moving either;
    /// [`take_behind`](Self::take_behind) then joins them. Returns false if `before` does not end
    /// where the last block is being filled, or if that block is full.
    fn lay_behind(&mut self, payload: &[u8], before: &BytesMut, id: BlockId) -> bool {
        let Some(block) = self.blocks.back_mut() else { return false };
        let beside = block.id == id && before.as_ptr_range().end == block.rest.as_ptr();
        if !beside || block.rest.capacity() - block.rest.len() < payload.len() {
            return false;
        }
        block.rest.extend_from_slice(payload);
        block.held += payload.len();
        self.held += payload.len();
        true
    }

    /// Bytes that were laid behind a payload and not joined to it yet.
    fn behind(&self) -> usize {
        self.blocks.back().map_or(0, |block| block.rest.len())
    }

    /// Joins what was laid behind `before` to it.
    fn take_behind(&mut self, before: &mut BytesMut) {
        if let Some(block) = self.blocks.back_mut() {
            before.unsplit(block.rest.split());
        }
    }

    /// Begins a block; false if there are `most` and the oldest holds unread bytes.
    fn begin(&mut self) -> bool {
        let free = self.blocks.front_mut().is_some_and(|block| block.rest.try_reclaim(BLOCK));
        let full = self.blocks.len() >= self.most;
        if !free && full && self.blocks.front().is_some_and(|block| block.held > 0) {
            // Try another one next time.
            self.blocks.rotate_left(1);
            return false;
        }
        let mut rest = BytesMut::new();
        if free || full {
            // If it is not free, only the application still references it.
            let first = self.blocks.pop_front();
            rest = first.filter(|_| free).map_or(rest, |block| block.rest);
        }
        rest.reserve(BLOCK);
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.blocks.push_back(Block { id: NonZeroU32::new(self.last), held: 0, rest });
        true
    }

    /// The application has read, or reassembly has dropped or copied out, `bytes` bytes of a block.
    fn release(&mut self, id: BlockId, bytes: usize) {
        if id.is_some()
            && let Some(block) = self.blocks.iter_mut().find(|block| block.id == id)
        {
            block.held -= bytes;
            self.held -= bytes;
        }
    }

    /// Frees the blocks without unread bytes.
    fn give_back(&mut self) {
        self.blocks.retain(|block| block.held > 0);
    }
}

#[derive(Debug)]
pub(crate) struct Reassembly {
    /// By the place of their first TSN.
    runs: BTreeMap<u64, Run>,
    /// Bytes of payload held, the number of their chunks, and the bytes of memory that the runs
    /// take outside of blocks.
    bytes: usize,
    chunks: u32,
    memory: usize,
    blocks: Blocks,
    /// Whether the peer may abandon a partly sent message.
    gaps: bool,
    /// Runs of messages that turned out to be abandoned.
    dropped: Vec<Dropped>,
    /// The memory of the last message of a single chunk, for the next of about the same size, if
    /// the application has dropped it by then: allocators are slow for packets' sizes.
    spare: BytesMut,
}

/// Messages smaller than this, in bytes, are allocated quickly.
const LEAST_SPARE: usize = 1024;

impl Reassembly {
    /// For a receive buffer of `buffer` bytes.
    pub(crate) fn new(buffer: usize) -> Self {
        Self {
            runs: BTreeMap::new(),
            bytes: 0,
            chunks: 0,
            memory: 0,
            blocks: Blocks::new(blocks(buffer)),
            gaps: false,
            dropped: Vec::new(),
            spare: BytesMut::new(),
        }
    }

    /// The receive buffer has `buffer` bytes from now on.
    pub(crate) fn resize(&mut self, buffer: usize) {
        self.blocks.most = blocks(buffer);
    }

    /// See [`Receiving::expect_gaps`](super::Receiving::expect_gaps).
    pub(crate) const fn expect_gaps(&mut self, expected: bool) {
        self.gaps = expected;
    }

    /// Frees the memory that is kept for later chunks.
    pub(crate) fn give_back(&mut self) {
        self.join();
        self.spare = BytesMut::new();
        self.blocks.give_back();
    }

    fn add(&mut self, run: Run) {
        self.bytes += run.payload.len();
        self.chunks += run.chunks;
        self.memory += run.memory();
        self.runs.insert(run.first, run);
    }

    fn remove(&mut self, first: u64) -> Option<Run> {
        let run = self.runs.remove(&first)?;
        self.bytes -= run.payload.len();
        self.chunks -= run.chunks;
        self.memory -= run.memory();
        Some(run)
    }

    fn drop_run(&mut self, first: u64) {
        if let Some(run) = self.remove(first) {
            self.dropped.push(run.dropped(&mut self.blocks));
        }
    }

    /// Drops runs that begin at or below `to`, and one right above it that lacks its beginning:
    /// their messages were abandoned.
    pub(crate) fn drop_up_to(&mut self, to: u64) {
        self.join();
        while let Some((&first, run)) = self.runs.first_key_value()
            && (first <= to || (self.gaps && first == to + 1 && !run.beginning))
        {
            self.drop_run(first);
        }
    }

    /// Returns the fragments dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> Vec<Dropped> {
        std::mem::take(&mut self.dropped)
    }

    pub(crate) const fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Adds the chunk at this place, which `tsns` has not recorded yet.
    pub(crate) fn insert(
        &mut self,
        data: &Data<'_>,
        place: u64,
        tsns: &TsnTracker,
    ) -> Result<Joined, FragmentError> {
        let in_sequence = place == tsns.place() + 1;
        if in_sequence && !tsns.has_gap() && self.append_to_last(data, place) {
            let piece = if data.end { self.take_last_if_complete() } else { None };
            return Ok(piece.map_or(Joined::Waits, Joined::Completes));
        }
        self.join();
        let whole = data.beginning && data.end;
        let mut run = Run {
            first: place,
            last: place,
            beginning: data.beginning,
            end: data.end,
            stream: data.stream,
            ssn: data.ssn,
            ppid: data.ppid,
            unordered: data.unordered,
            payload: BytesMut::new(),
            chunks: 1,
            delivering: false,
            block: None,
        };
        let gaps = self.gaps;
        let mut near = self.runs.range_mut(..=place + 1).rev().map(|(_, run)| run);
        let mut below = near.next();
        let above = below.take_if(|run| run.first > place);
        if above.is_some() {
            below = near.next();
        }
        let below = below.filter(|run| run.last + 1 == place);
        let joins_below = below.as_ref().map_or(Ok(false), |r| r.takes(&run, gaps))?;
        // In sequence, a chunk begins a message or continues the one before.
        if in_sequence && !data.beginning && !joins_below && !gaps {
            return Err(FragmentError);
        }
        let joins_above = above.as_ref().map_or(Ok(false), |r| run.takes(r, gaps))?;
        if gaps {
            // Neighbouring runs that this chunk cuts off, and whether the chunk itself is cut off.
            let cut_below = below.as_ref().is_some_and(|r| !r.end && !joins_below);
            let cut_above = above.as_ref().is_some_and(|r| !r.beginning && !joins_above);
            let useless = (!data.beginning && !joins_below && tsns.has(place - 1))
                || (!data.end && !joins_above && tsns.has(place + 1));
            if cut_below || cut_above || useless {
                let first_below = below.filter(|_| cut_below || (useless && joins_below));
                let first_below = first_below.map(|r| r.first);
                let drops_above = cut_above || (useless && joins_above);
                first_below.into_iter().for_each(|first| self.drop_run(first));
                if drops_above {
                    self.drop_run(place + 1);
                }
                if useless {
                    return Ok(Joined::Useless);
                }
                // The runs cut off are dropped: insert the chunk as if they had never arrived.
                return self.insert(data, place, tsns);
            }
        }
        if whole {
            return Ok(Joined::Completes(self.whole(data, place)));
        }
        (run.payload, run.block) = if in_sequence {
            self.blocks.lay(data.payload, if data.beginning { START } else { 0 })
        } else {
            (BytesMut::from(data.payload), None)
        };
        let below = below.filter(|_| joins_below).map(|r| r.first);
        if joins_above && let Some(above) = self.remove(place + 1) {
            run.append(above, &mut self.blocks);
        }
        if let Some(below) = below.and_then(|first| self.runs.get_mut(&first)) {
            self.memory -= below.memory();
            self.bytes += run.payload.len();
            self.chunks += run.chunks;
            below.append(run, &mut self.blocks);
            self.memory += below.memory();
            let (first, done) = (below.first, below.beginning && below.end);
            let Some(run) = done.then(|| self.remove(first)).flatten() else {
                return Ok(Joined::Waits);
            };
            return Ok(Joined::Completes(self.piece(run)));
        }
        if run.beginning && run.end {
            return Ok(Joined::Completes(self.piece(run)));
        }
        self.add(run);
        Ok(Joined::Waits)
    }

    /// Joins the chunks that were appended to the last message: once for all of them, because each
    /// time costs as much as to store a chunk.
    fn join(&mut self) {
        if self.blocks.behind() > 0
            && let Some(mut last) = self.runs.last_entry()
        {
            self.blocks.take_behind(&mut last.get_mut().payload);
        }
    }

    /// Appends the next chunk in sequence to the last message, to be [joined](Self::join) before
    /// anything else happens to that. Returns false if it does not belong to that message, or if
    /// its payload cannot be stored directly behind it; the general path then takes it.
    fn append_to_last(&mut self, data: &Data<'_>, place: u64) -> bool {
        let Some(mut last) = self.runs.last_entry() else { return false };
        let run = last.get_mut();
        if !run.is_continued_by(data, place)
            || !self.blocks.lay_behind(data.payload, &run.payload, run.block)
        {
            return false;
        }
        (run.last, run.end) = (place, data.end);
        run.chunks += 1;
        self.chunks += 1;
        self.bytes += data.payload.len();
        true
    }

    /// Removes and returns the last message if it is complete.
    fn take_last_if_complete(&mut self) -> Option<Piece> {
        self.join();
        let (&first, run) = self.runs.last_key_value()?;
        if !(run.beginning && run.end) {
            return None;
        }
        let run = self.remove(first)?;
        Some(self.piece(run))
    }

    /// Payload in memory of its own, at most a quarter more than it takes.
    fn own(&mut self, payload: &[u8]) -> Bytes {
        let len = payload.len();
        if len < LEAST_SPARE {
            return Bytes::copy_from_slice(payload);
        }
        if !self.spare.try_reclaim(len) || self.spare.capacity() > len + len / 4 {
            self.spare = BytesMut::with_capacity(len);
        }
        self.spare.extend_from_slice(payload);
        self.spare.split().freeze()
    }

    fn whole(&mut self, data: &Data<'_>, place: u64) -> Piece {
        Piece {
            stream: data.stream,
            number: data.ssn.0.into(),
            ppid: data.ppid,
            unordered: data.unordered,
            beginning: true,
            end: true,
            aborted: false,
            block: None,
            payload: self.own(data.payload),
            chunks: 1,
            places: (place, place),
            scattered: Box::default(),
        }
    }

    /// First place of the highest run of fragments, if that is above `place`.
    pub(crate) fn highest_above(&self, place: u64) -> Option<u64> {
        self.runs.last_key_value().map(|(&first, _)| first).filter(|first| *first > place)
    }

    /// Drops the highest run; returns its last place, its payload bytes and its number of chunks.
    pub(crate) fn evict_highest(&mut self) -> Option<(u64, usize, u32)> {
        self.join();
        let first = *self.runs.last_key_value()?.0;
        let run = self.remove(first)?;
        let last = run.last;
        let dropped = run.dropped(&mut self.blocks);
        Some((last, dropped.bytes, dropped.chunks))
    }

    /// Takes a piece of the incomplete message at the cumulative TSN: all of it that has arrived
    /// (partial delivery, RFC 9260 6.9). `large` decides by its bytes and chunks whether it is too
    /// large to hold, `ready` whether it is the next message of its stream.
    pub(crate) fn take_partial(
        &mut self,
        cumulative: u64,
        large: impl Fn(usize, u32) -> bool,
        ready: impl Fn(StreamId, u32, bool) -> bool,
    ) -> Option<Piece> {
        self.join();
        let (_, run) = self.runs.range_mut(..=cumulative).next_back()?;
        let in_sequence = run.beginning && run.last == cumulative;
        if !in_sequence
            || !large(run.payload.len(), run.chunks)
            || !ready(run.stream, run.ssn.0.into(), run.unordered)
        {
            return None;
        }
        self.memory -= run.memory();
        let payload = std::mem::take(&mut run.payload).freeze();
        let piece = Piece {
            stream: run.stream,
            number: run.ssn.0.into(),
            ppid: run.ppid,
            unordered: run.unordered,
            beginning: !run.delivering,
            end: false,
            aborted: false,
            block: run.block.take(),
            payload,
            chunks: run.chunks,
            places: (run.first, run.last),
            scattered: Box::default(),
        };
        run.delivering = true;
        run.chunks = 0;
        self.memory += run.memory();
        self.bytes -= piece.payload.len();
        self.chunks -= piece.chunks;
        Some(piece)
    }

    fn piece(&mut self, mut run: Run) -> Piece {
        let small = run.payload.len() < SMALL;
        let payload = if small {
            self.blocks.release(run.block.take(), run.payload.len());
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
            block: run.block,
            payload,
            chunks: run.chunks,
            places: (run.first, run.last),
            scattered: Box::default(),
        }
    }

    /// Payload bytes held, and the number of their chunks.
    pub(crate) const fn held(&self) -> (usize, u32) {
        (self.bytes, self.chunks)
    }

    /// Bytes of memory in use outside of blocks.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    /// Size of all blocks, in bytes.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.blocks.len() * BLOCK
    }

    /// Unread payload bytes in blocks.
    pub(crate) const fn laid(&self) -> usize {
        self.blocks.held
    }

    /// Releases the payload of a piece that the application reads.
    pub(crate) fn release(&mut self, piece: &Piece) {
        self.blocks.release(piece.block, piece.payload.len());
    }

    /// Copies the payload of a piece that will be held for long out of its block.
    pub(crate) fn copy_out(&mut self, piece: &mut Piece) {
        if piece.block.is_some() {
            self.release(piece);
            piece.block = None;
            piece.payload = Bytes::copy_from_slice(&piece.payload);
        }
    }

    /// The peer restarted: drops all fragments.
    pub(crate) fn clear(&mut self) {
        self.join();
        for run in std::mem::take(&mut self.runs).into_values() {
            self.blocks.release(run.block, run.payload.len());
        }
        (self.bytes, self.chunks, self.memory) = (0, 0, 0);
    }

    /// Checks the counts.
    pub(crate) fn check(&self) -> Result<(), String> {
        let found = self.runs.values().fold((self.blocks.behind(), 0, 0), |(b, c, m), r| {
            (b + r.payload.len(), c + r.chunks, m + r.memory())
        });
        if found == (self.bytes, self.chunks, self.memory) {
            return Ok(());
        }
        let counted = (self.bytes, self.chunks, self.memory);
        Err(format!("fragments: bytes, chunks, memory {found:?}, counted {counted:?}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Tsn;

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

    /// Reassembly with its TSN tracker; the first TSN is 1.
    struct Both(Reassembly, TsnTracker);

    impl Both {
        fn new() -> Self {
            Self(Reassembly::new(1 << 20), TsnTracker::new(Tsn(1)))
        }

        fn insert(&mut self, data: &Data<'_>) -> Result<Joined, FragmentError> {
            let joined = self.0.insert(data, self.1.place_of(data.tsn), &self.1);
            self.1.note(data.tsn);
            assert_eq!(self.0.check(), Ok(()));
            joined
        }

        fn completes(&mut self, data: &Data<'_>) -> Piece {
            let Ok(Joined::Completes(piece)) = self.insert(data) else { panic!("no message") };
            piece
        }

        fn take_partial(&mut self, least: usize) -> Option<Piece> {
            let taken =
                self.0.take_partial(self.1.place(), |bytes, _| bytes >= least, |_, _, _| true);
            assert_eq!(self.0.check(), Ok(()));
            taken
        }
    }

    #[test]
    fn a_message_split_by_delivery_in_part() {
        let mut r = Both::new();
        assert_eq!(r.insert(&fragment(1, true, false, b"ab")), Ok(Joined::Waits));
        assert_eq!(r.insert(&fragment(2, false, false, b"cd")), Ok(Joined::Waits));
        let first = r.take_partial(4).unwrap();
        assert_eq!((&first.payload[..], first.beginning, first.end), (&b"abcd"[..], true, false));
        assert_eq!(r.take_partial(1), None);
        assert_eq!(r.0.held(), (0, 0));
        let last = r.completes(&fragment(3, false, true, b"e"));
        assert_eq!((&last.payload[..], last.beginning, last.end), (&b"e"[..], false, true));
    }

    /// RFC 3758 3.6: the fragments of an abandoned message are dropped. Tries several orders of
    /// arrival of fragments and of a whole message between them.
    #[test]
    fn what_can_never_be_completed_is_dropped_when_that_shows() {
        let first = fragment(1, true, false, b"a");
        let middle = fragment(2, false, false, b"b");
        let whole = fragment(3, true, true, b"c");
        let rest = fragment(4, false, true, b"d");
        for order in [
            [&first, &middle, &whole, &rest],
            [&rest, &whole, &middle, &first],
            [&whole, &first, &rest, &middle],
            [&middle, &rest, &first, &whole],
            [&first, &whole, &middle, &rest],
            [&rest, &middle, &first, &whole],
        ] {
            let mut r = Both::new();
            r.0.expect_gaps(true);
            let mut completed = 0;
            for chunk in order {
                completed += usize::from(matches!(r.insert(chunk), Ok(Joined::Completes(_))));
            }
            assert_eq!((completed, r.0.held()), (1, (0, 0)), "{order:?}");
        }
    }

    /// A part of the message was delivered: the application gets a notification.
    #[test]
    fn a_message_that_is_cut_off_during_its_delivery_is_aborted() {
        let mut r = Both::new();
        r.0.expect_gaps(true);
        r.insert(&fragment(1, true, false, b"ab")).unwrap();
        r.take_partial(1).unwrap();
        r.completes(&fragment(2, true, true, b"c"));
        assert!(matches!(&r.0.take_dropped()[..], [Dropped { aborted: Some(_), .. }]));
        assert_eq!(r.0.held(), (0, 0));
    }

    /// Fills a block; returns its address, its id and a piece that the application may keep.
    fn fill(blocks: &mut Blocks, byte: u8) -> (*const u8, BlockId, BytesMut) {
        let mut laid: Vec<_> = (0..4).map(|_| blocks.lay(&[byte; BLOCK / 4], 0)).collect();
        (laid[0].0.as_ptr(), laid[0].1, laid.remove(2).0)
    }

    #[test]
    fn a_block_is_used_again_when_nothing_in_it_is_in_use() {
        let mut blocks = Blocks::new(16);
        // The application reads all of it and keeps what the test keeps.
        let mut fill = |byte| {
            let (at, id, piece) = fill(&mut blocks, byte);
            blocks.release(id, BLOCK);
            (at, piece)
        };
        let (first, _) = fill(1);
        assert_eq!(fill(2).0, first);
        let (_, kept) = fill(3);
        let (second, _) = fill(4);
        assert_ne!(second, first);
        // The first is still in use: new ones follow, up to the limit.
        let others: Vec<_> = (0..16).map(|_| fill(5).0).collect();
        assert!(!others.contains(&first));
        assert_eq!(others[15], second);
        assert!(kept.iter().all(|&byte| byte == 3));
    }

    #[test]
    fn no_more_blocks_than_the_buffer_has_room_for() {
        let mut blocks = Blocks::new(3);
        let mut full: Vec<_> = (0..3).map(|byte| fill(&mut blocks, byte)).collect();
        let ids: Vec<BlockId> = full.iter().map(|block| block.1).collect();
        assert_eq!(blocks.lay(&[6; 5000], 0).1, None, "all of them hold something");
        blocks.release(ids[1], BLOCK);
        full.remove(1);
        let found = (0..3).any(|_| blocks.lay(&[6; 5000], 0).1.is_some());
        assert!(found && blocks.blocks.len() == 3 && blocks.held == 2 * BLOCK + 5000);
        blocks.give_back();
        assert_eq!(blocks.blocks.len(), 3);
        blocks.release(ids[0], BLOCK);
        blocks.give_back();
        assert_eq!(blocks.blocks.len(), 2);
    }

    /// Otherwise each chunk of a fast sender gets its own memory, which is copied when chunks are
    /// joined, whenever the application is not scheduled for a while.
    #[test]
    fn a_larger_buffer_has_more_blocks() {
        let mut r = Reassembly::new(1 << 20);
        let (chunk, mut unread) = (vec![7; BLOCK / 4], Vec::new());
        let mut lay = |r: &mut Reassembly, bytes: usize| {
            let laid = (0..bytes / chunk.len()).map(|_| r.blocks.lay(&chunk, 0));
            let before = unread.len();
            unread.extend(laid);
            unread[before..].iter().filter(|laid| laid.1.is_some()).count() * chunk.len()
        };
        assert!(lay(&mut r, 4 << 20) < 2 << 20);
        r.resize(4 << 20);
        assert!(lay(&mut r, 4 << 20) > 3 << 20);
    }

    #[test]
    fn a_message_goes_on_when_memory_was_given_back() {
        let mut r = Both::new();
        assert_eq!(r.insert(&fragment(1, true, false, b"ab")), Ok(Joined::Waits));
        assert_eq!(r.0.blocks(), BLOCK);
        r.0.give_back();
        assert_eq!(r.0.blocks(), BLOCK, "the message is stored");
        assert_eq!(&r.completes(&fragment(2, false, true, b"cd")).payload[..], b"abcd");
        r.0.give_back();
        assert_eq!(r.0.blocks(), 0);
    }

    /// The application has dropped the message before: the next one gets its memory.
    #[test]
    fn memory_of_messages_of_one_chunk_is_used_again() {
        let mut r = Both::new();
        let mut of = |tsn: u32, len: usize| {
            let payload = vec![tsn as u8; len];
            let piece = r.completes(&fragment(tsn, true, true, &payload));
            assert_eq!(piece.payload, payload);
            piece.payload
        };
        let place = of(1, 1400).as_ptr();
        let kept = of(2, 1400);
        assert_eq!(kept.as_ptr(), place);
        let other = of(3, 1400);
        assert_ne!(other.as_ptr(), place, "the application still has it");
        assert_eq!(kept[..], [2; 1400]);
        // At most a quarter is left over.
        let place = other.as_ptr();
        drop(other);
        assert_eq!(of(4, 1200).as_ptr(), place);
        assert_ne!(of(5, 1050).as_ptr(), place);
    }

    #[test]
    fn contradicting_fragments_are_refused() {
        for (first, second) in [
            (fragment(1, true, false, b"a"), fragment(2, true, false, b"b")),
            (fragment(1, true, false, b"a"), fragment(2, true, true, b"b")),
            (fragment(2, false, true, b"a"), fragment(1, true, true, b"b")),
        ] {
            let mut r = Both::new();
            assert_eq!(r.insert(&first), Ok(Joined::Waits));
            assert_eq!(r.insert(&second), Err(FragmentError));
        }
        let other_stream = Data { stream: StreamId(2), ..fragment(2, false, true, b"b") };
        let mut r = Both::new();
        assert_eq!(r.insert(&fragment(1, true, false, b"a")), Ok(Joined::Waits));
        assert_eq!(r.insert(&other_stream), Err(FragmentError));
        assert_eq!(Both::new().insert(&fragment(1, false, true, b"a")), Err(FragmentError));
    }

    proptest! {
        /// Messages of several fragments are reassembled in any order of arrival.
        #[test]
        fn any_order_gives_the_messages(
            lengths in prop::collection::vec(1usize..6, 1..12),
            order in any::<u64>(),
        ) {
            let mut chunks = Vec::new();
            for (m, &n) in lengths.iter().enumerate() {
                for f in 0..n {
                    let tsn = 1 + chunks.len() as u32;
                    chunks.push((tsn, f == 0, f + 1 == n, m, vec![m as u8 * 16 + f as u8; 1 + f]));
                }
            }
            let mut rng = crate::Rng::new(&crate::Seed::from_u64(order));
            for i in (1..chunks.len()).rev() {
                chunks.swap(i, rng.below(i as u64 + 1) as usize);
            }
            let mut r = Both::new();
            let mut got = vec![None; lengths.len()];
            for (tsn, b, e, m, payload) in &chunks {
                let data = Data { ssn: Ssn(*m as u16), ..fragment(*tsn, *b, *e, payload) };
                if let Joined::Completes(piece) = r.insert(&data).unwrap() {
                    prop_assert!(piece.beginning && piece.end && got[piece.number as usize].is_none());
                    got[piece.number as usize] = Some(piece.payload);
                }
            }
            for (m, &n) in lengths.iter().enumerate() {
                let whole: Vec<u8> = (0..n).flat_map(|f| vec![m as u8 * 16 + f as u8; 1 + f]).collect();
                prop_assert_eq!(got[m].as_deref(), Some(&whole[..]));
            }
            prop_assert_eq!(r.0.held(), (0, 0));
        }
    }
}
