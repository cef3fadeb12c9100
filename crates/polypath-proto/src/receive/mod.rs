//! From DATA chunks to messages: TSNs, gaps, reassembly, streams, and the receive buffer.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::allocation::LEAST;
use crate::config::Config;
use crate::event::Received;
use crate::extension::{Extension, Extensions};
use crate::ids::{Mid, StreamId, Tsn};
use crate::policy::AckPolicy;
use crate::pool::Pool;
use crate::streams::Streams;
use crate::time::Time;
use crate::wire::{DATA_HEADER_LEN, Data, IData};

mod forward;
mod interleaved;
mod pending;
mod reassembly;
mod streams;
mod tsns;
mod tuning;

pub(crate) use interleaved::INCOMPLETE;
use interleaved::{FRAGMENT, FRAGMENTS, Interleaved};
pub(crate) use pending::PendingSack;
use reassembly::{BLOCK, FragmentError, Joined, Reassembly};
use streams::{EARLY, InStreams, Numbers};
use tsns::{Arrived, GAP_RUN, TsnTracker};
use tuning::Tuning;

/// Result of processing a DATA or I-DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// New and accepted.
    New,
    /// Received before.
    Duplicate,
    /// Dropped for lack of buffer space; the peer will retransmit it.
    NoBuffer,
    /// Acknowledged and discarded: its stream does not exist (RFC 9260 6.5).
    InvalidStream,
    /// Too far above the cumulative TSN for a peer that respects the window.
    OutOfWindow,
    /// The peer's fragments or sequence numbers contradict each other.
    Violation(&'static str),
}

/// Most memory in bytes that a chunk takes in addition to its payload.
const MOST_DATA_MEMORY: usize = EARLY + GAP_RUN;
const MOST_I_DATA_MEMORY: usize = INCOMPLETE + FRAGMENTS + FRAGMENT + GAP_RUN;

/// Memory beyond [`most_memory`] for the next chunk in sequence if the receiver has promised not to
/// renege on chunks above it: otherwise promises that fill the memory would exclude that chunk for
/// ever.
const BEYOND_PROMISES: usize = 4 * LEAST;

/// Limit on the memory of received data, up to which further data is accepted.
const fn most_memory(receive_buffer: usize) -> usize {
    receive_buffer + receive_buffer / 4 * 3 + LEAST
}

/// Limit on the memory of gaps, up to which new gaps are accepted.
const fn most_gaps(receive_buffer: usize) -> usize {
    receive_buffer / 4 + LEAST
}

/// The receiving half of an association.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) ack: PendingSack,
    pub(crate) ack_policy: Box<dyn AckPolicy>,
    /// Value of [`ever_ready`](Self::ever_ready) when [`has_news`](Self::has_news) was last called.
    known_ready: u64,
    tsns: TsnTracker,
    reassembly: Reassembly,
    /// Used instead of `reassembly` if messages are interleaved.
    interleaved: Interleaved,
    streams: InStreams,
    /// Bytes of payload and headers held. They exceed `backed` only for a single larger chunk, and
    /// for chunks missing below non-renegable ones.
    buffered: usize,
    /// Size of the buffer in bytes, which the announced windows count from.
    limit: usize,
    /// Bytes of the buffer for which there is memory: `limit`, except after a pause, in which other
    /// associations may have claimed the rest.
    backed: usize,
    tuning: Tuning,
    /// Bytes of payload and headers accepted since a window was announced last.
    arrived: usize,
    /// Bytes of memory up to which chunks are accepted.
    most_memory: usize,
    /// The window announced last, in bytes.
    pub(crate) announced: u32,
    /// Chunks received up to this place are non-renegable (NR-SACK).
    kept: Option<u64>,
    /// Size of the largest chunk so far, in bytes with its header.
    largest: usize,
    reneged: bool,
    /// Payload bytes that [`recv`](Self::recv) has returned and the application has not read, if it
    /// reports that.
    unread: Option<usize>,
}

const fn charge(payload: usize, chunks: u32) -> usize {
    payload + chunks as usize * DATA_HEADER_LEN
}

impl Receiving {
    pub(crate) fn new(config: &Config, pool: &Arc<Pool>) -> Self {
        let (streams, limit) =
            (config.inbound_streams(), config.constants().first_receive_buffer());
        Self {
            ack: PendingSack::new(),
            ack_policy: config.ack().make(&config.setup()),
            known_ready: 0,
            tsns: TsnTracker::new(Tsn(0)),
            reassembly: Reassembly::new(limit as usize),
            interleaved: Interleaved::default(),
            streams: InStreams::new(streams),
            buffered: 0,
            limit: limit as usize,
            backed: limit as usize,
            tuning: Tuning::new(config, pool),
            arrived: 0,
            most_memory: most_memory(limit as usize),
            announced: limit,
            kept: None,
            largest: 0,
            reneged: false,
            unread: None,
        }
    }

    /// What [`recv`](Self::recv) returns counts against the window until [`read`](Self::read).
    pub(crate) fn count_unread(&mut self) {
        self.unread.get_or_insert(0);
    }

    /// The application has read this number of payload bytes.
    pub(crate) fn read(&mut self, bytes: usize) {
        if let Some(unread) = &mut self.unread {
            *unread = unread.saturating_sub(bytes);
        }
    }

    /// Bytes of the buffer that are in use.
    fn used(&self) -> usize {
        self.buffered + self.unread.unwrap_or(0)
    }

    /// Begins with the peer's initial TSN, its number of streams and the extensions that both sides
    /// have agreed on. Nothing has been received before.
    pub(crate) fn begin(&mut self, initial: Tsn, streams: u16, extensions: Extensions) {
        self.tsns = TsnTracker::new(initial);
        self.reassembly = Reassembly::new(self.limit);
        self.interleaved = Interleaved::default();
        self.streams = InStreams::new(streams);
        self.buffered = 0;
        self.announced = self.limit as u32;
        self.arrived = 0;
        self.kept = None;
        self.largest = 0;
        self.reneged = false;
        self.adopt(extensions);
    }

    /// Adopts the extensions that both sides have agreed on.
    fn adopt(&mut self, extensions: Extensions) {
        self.keep(extensions.contains(Extension::NrSack));
        if extensions.contains(Extension::WideSacks) {
            self.tsns.reach_far();
        }
        self.expect_gaps(extensions.contains(Extension::PartialReliability));
        let interleaves = extensions.contains(Extension::Interleaving);
        self.streams.number_by(if interleaves { Numbers::Mid } else { Numbers::Ssn });
    }

    /// Whether messages have become readable since the last call.
    pub(crate) fn has_news(&mut self) -> bool {
        let ready = self.streams.ever_ready();
        std::mem::replace(&mut self.known_ready, ready) != ready
    }

    pub(crate) const fn tsns(&self) -> &TsnTracker {
        &self.tsns
    }

    /// Sets whether SACKs report non-renegable chunks (NR-SACK).
    fn keep(&mut self, keeps: bool) {
        self.kept = keeps.then(|| self.tsns.place());
    }

    /// Advances and returns the place up to which chunks are non-renegable: up to the highest chunk
    /// received, if the chunks missing below it still fit. Chunks above the place may be dropped to
    /// make room.
    pub(crate) fn promise(&mut self) -> u64 {
        let highest = self.tsns.highest();
        let kept = self.kept.unwrap_or_else(|| self.tsns.place());
        let missing = usize::try_from(self.tsns.missing()).unwrap_or(usize::MAX);
        let takes = |each: usize, held: usize| missing.saturating_mul(each).saturating_add(held);
        if highest > kept
            && takes(self.largest, self.buffered) <= self.limit
            && takes(self.largest + MOST_DATA_MEMORY, self.memory()) <= self.most_memory
        {
            self.kept = Some(highest);
            return highest;
        }
        kept
    }

    /// Bytes of memory that the held chunks take, without the unused parts of blocks.
    fn held_memory(&self) -> usize {
        self.reassembly.memory()
            + self.interleaved.memory(self.streams.limit())
            + self.streams.memory()
            + self.tsns.memory()
            + self.reassembly.laid()
    }

    /// Bytes of memory in use, except the unused part of the block that is being filled.
    pub(crate) fn memory(&self) -> usize {
        let spare = self.reassembly.blocks() - self.reassembly.laid();
        self.held_memory() + spare.saturating_sub(BLOCK)
    }

    /// Current size of the buffer in bytes.
    pub(crate) const fn size(&self) -> usize {
        self.limit
    }

    /// Frees the memory that is kept for later chunks. After a pause, memory claimed for the buffer
    /// is returned too; the window stays announced, and [`back`](Self::back) claims the memory
    /// again when data arrives.
    pub(crate) fn give_back(&mut self, now: Time) {
        self.reassembly.give_back();
        if self.buffered == 0 && !self.tuning.is_fixed() && self.tuning.is_idle(now) {
            self.tuning.give_back(0);
            self.note_backed();
        }
    }

    /// Adapts the size of the buffer to what the application has read, or what it would have read
    /// without a gap. `rtt` measures the round-trip time.
    pub(crate) fn tune(&mut self, now: Time, rtt: impl FnOnce() -> Duration) {
        if self.tuning.is_fixed() {
            return;
        }
        let size = self.tuning.measure(now, rtt);
        if size > self.limit {
            self.grow(size);
        } else if size < self.limit && !self.tsns.has_gap() {
            self.shrink(size);
        }
    }

    /// Enlarges the buffer to up to `size` bytes.
    fn grow(&mut self, size: usize) {
        self.tuning.back(size);
        self.limit = self.limit.max(self.tuning.backed());
        self.note_backed();
    }

    /// Reduces the buffer to `size` bytes, but leaves room for what the announced window allows the
    /// peer to send: its right edge never moves to the left.
    fn shrink(&mut self, size: usize) {
        let promised = (self.announced as usize).saturating_sub(self.arrived);
        let least = (self.buffered + promised).max(self.memory());
        if least.max(size) < self.limit {
            self.limit = least.max(size);
            self.tuning.give_back(self.limit);
            self.note_backed();
        }
    }

    /// Claims memory for the whole buffer, which was returned in a pause.
    #[cold]
    fn back(&mut self) {
        self.tuning.back(self.limit);
        self.note_backed();
    }

    fn note_backed(&mut self) {
        self.backed = self.limit.min(self.tuning.backed());
        self.most_memory = most_memory(self.backed);
        self.reassembly.resize(self.backed);
    }

    /// Enlarges the buffer for an incomplete message that takes more than half of it: false if it
    /// cannot be enlarged.
    #[cold]
    fn grow_for_message(&mut self) -> bool {
        let before = self.limit;
        if !self.tuning.is_fixed() {
            self.grow(self.tuning.size_for(before * 2));
        }
        self.limit > before
    }

    /// Notes the TSN before the peer's first one as a duplicate.
    pub(crate) fn note_before_first(&mut self) {
        self.tsns.note_before_first();
    }

    /// Clears the list of duplicates after a SACK: each is reported once.
    pub(crate) fn duplicates_reported(&mut self) {
        self.tsns.duplicates_reported();
    }

    pub(crate) fn handle_data(&mut self, data: &Data<'_>) -> Outcome {
        let memory = data.payload.len() + MOST_DATA_MEMORY;
        let (place, size) = match self.admit(data.tsn, data.stream, data.payload.len(), memory) {
            Ok(admitted) => admitted,
            Err(outcome) => return outcome,
        };
        let joined = self.reassembly.insert(data, place, &self.tsns);
        let outcome = self.take(data.tsn, size, joined);
        if self.reassembly.has_dropped() {
            let dropped = self.reassembly.take_dropped();
            self.forget(dropped);
        }
        outcome
    }

    pub(crate) fn handle_i_data(&mut self, data: &IData<'_>) -> Outcome {
        let memory = data.payload.len() + MOST_I_DATA_MEMORY;
        let (place, size) = match self.admit(data.tsn, data.stream, data.payload.len(), memory) {
            Ok(admitted) => admitted,
            Err(outcome) => return outcome,
        };
        if self.interleaved.is_skipped(data) {
            self.tsns.note(data.tsn);
            return Outcome::New;
        }
        if !data.unordered && self.streams.is_past(data.stream, data.mid.0) {
            return Outcome::Violation("a message identifier was used twice");
        }
        let turn = self.streams.is_next(data.stream, data.mid.0, data.unordered);
        let joined = self.interleaved.insert(data, place, turn, &self.tsns);
        let outcome = self.take(data.tsn, size, joined);
        self.next_turn(data.stream);
        self.make_readable();
        outcome
    }

    /// Updates which message of a stream is the next in order.
    fn next_turn(&mut self, stream: StreamId) {
        if !self.interleaved.is_empty() {
            self.interleaved.turn(stream, Mid(self.streams.next_number(stream)));
        }
    }

    /// If incomplete messages have filled the buffer, delivers parts of them until half of the
    /// buffer is free. RFC 9260 6.9: "If the receiver runs out of buffer space while still waiting
    /// for more fragments to complete the reassembly of the message, it should dispatch part of its
    /// inbound message through a partial delivery API". RFC 8260 2.2.2 has the sender begin one
    /// message of a stream at a time, so every message begun is the next of its stream.
    fn make_readable(&mut self) {
        if self.streams.has_ready()
            || (self.window() as usize >= self.largest
                && self.has_room(self.largest, self.largest + MOST_I_DATA_MEMORY))
        {
            return;
        }
        let before = self.interleaved.held();
        let full = |receiving: &Self| {
            let (bytes, chunks) = receiving.interleaved.held();
            let freed = charge(before.0 - bytes, before.1 - chunks);
            (receiving.buffered - freed) * 2 > receiving.limit
                || receiving.interleaved.memory(receiving.streams.limit()) * 2
                    > receiving.most_memory
        };
        while self.hand_over_part(|bytes, _| bytes > 0) && full(self) {}
    }

    /// Decides whether a chunk is new and fits. Returns its place and its size in bytes with the
    /// header.
    fn admit(
        &mut self,
        tsn: Tsn,
        stream: StreamId,
        payload: usize,
        memory: usize,
    ) -> Result<(u64, usize), Outcome> {
        let arrived = self.tsns.judge(tsn);
        if arrived == Arrived::Duplicate {
            self.tsns.note_duplicate(tsn);
            return Err(Outcome::Duplicate);
        }
        // Each chunk takes at least a header and one byte: more TSNs than this do not fit the
        // window.
        let most = (self.limit / (DATA_HEADER_LEN + 1)) as u32;
        if tsn.offset_from(self.tsns.cumulative()) > most {
            return Err(Outcome::OutOfWindow);
        }
        if self.backed < self.limit {
            self.back();
        }
        let place = self.tsns.place_of(tsn);
        let in_sequence = arrived == Arrived::InSequence;
        let gaps = self.tsns.memory();
        if !in_sequence && gaps > most_gaps(self.backed) && !self.tsns.has(place - 1) {
            // Gaps take memory that the announced window does not cover.
            return Err(Outcome::NoBuffer);
        }
        if stream.0 >= self.streams.limit() {
            self.tsns.note(tsn);
            return Err(Outcome::InvalidStream);
        }
        let size = charge(payload, 1);
        self.largest = self.largest.max(size);
        let fits = self.has_room(size, memory)
            || self.make_room(place, size, memory)
            || (in_sequence && self.must_take(memory));
        if !fits {
            return Err(Outcome::NoBuffer);
        }
        Ok((place, size))
    }

    /// Whether `size` bytes of payload and header fit the buffer, and `memory` bytes the memory
    /// limit.
    fn has_room(&self, size: usize, memory: usize) -> bool {
        self.used() + size <= self.backed && self.memory() + memory <= self.most_memory
    }

    /// Accounts for a chunk that passed reassembly, and queues the message that it completes.
    fn take(
        &mut self,
        tsn: Tsn,
        size: usize,
        mut joined: Result<Joined, FragmentError>,
    ) -> Outcome {
        if !self.streams.has_ready() {
            self.tuning.arrived(size);
        }
        // Match by reference: the piece has just been written, and to copy it at once costs time.
        match &mut joined {
            Err(FragmentError) => {
                return Outcome::Violation("fragments of a message contradict each other");
            }
            Ok(Joined::Waits) => self.buffered += size,
            Ok(Joined::Useless) => {}
            Ok(Joined::Completes(piece)) => {
                let held = charge(piece.payload.len(), piece.chunks);
                if piece.block.is_some() && self.streams.comes_early(piece) {
                    self.reassembly.copy_out(piece);
                }
                let above_gap = piece.places.0 > self.tsns.place() + 1;
                if !self.streams.insert(piece, above_gap) {
                    self.reassembly.release(piece);
                    // Its earlier fragments were charged; this chunk was not.
                    self.buffered -= held - size;
                    return Outcome::Violation("a stream sequence number was used twice");
                }
                self.buffered += size;
            }
        }
        self.tsns.note(tsn);
        self.arrived += size;
        if self.buffered * 2 > self.limit {
            self.deliver_in_part();
        }
        Outcome::New
    }

    /// Drops chunks above a gap, highest TSNs first, until the chunk at `place` fits. RFC 9260 6.2:
    /// a receiver short of buffer may renege. Chunks below `place` and non-renegable ones stay.
    #[cold]
    fn make_room(&mut self, place: u64, size: usize, memory: usize) -> bool {
        self.reassembly.give_back();
        let least = self.kept.unwrap_or_default().max(self.tsns.place()).max(place);
        while !self.has_room(size, memory) {
            let fragments = self.reassembly.highest_above(least);
            let fragments = fragments.or_else(|| self.interleaved.highest_above(least));
            let message = self.streams.highest_early().filter(|first| *first > least);
            match (fragments, message) {
                (Some(first), m) if m.is_none_or(|other| first > other) => {
                    let evicted = self.reassembly.evict_highest();
                    let evicted = evicted.or_else(|| self.interleaved.evict_highest());
                    let Some((last, bytes, chunks)) = evicted else { return false };
                    self.tsns.forget(first, last);
                    self.reneged = true;
                    self.buffered -= charge(bytes, chunks);
                }
                (_, Some(_)) => {
                    let Some(piece) = self.streams.evict_highest() else { return false };
                    self.reneged = true;
                    if piece.scattered.is_empty() {
                        self.tsns.forget(piece.places.0, piece.places.1);
                    }
                    piece.scattered.iter().for_each(|place| self.tsns.forget(*place, *place));
                    self.buffered -= charge(piece.payload.len(), piece.chunks);
                }
                _ => return false,
            }
        }
        true
    }

    /// Delivers the received part of a message that takes more than half the buffer by itself (RFC
    /// 9260 6.9, partial delivery). Smaller ones wait: the application makes room by reading ready
    /// messages, and [`make_room`](Self::make_room) by reneging.
    fn deliver_in_part(&mut self) {
        let limit = self.limit;
        let large = |bytes, chunks| charge(bytes, chunks) * 2 > limit;
        let found = Cell::new(false);
        // Look first: a part that is delivered cannot be taken back.
        self.hand_over_part(|bytes, chunks| {
            found.set(large(bytes, chunks));
            false
        });
        if found.get() && !self.grow_for_message() {
            self.hand_over_part(large);
        }
    }

    /// Delivers a part of a message that `large` selects; false if there is none.
    fn hand_over_part(&mut self, large: impl Fn(usize, u32) -> bool) -> bool {
        let Self { streams, tsns, .. } = self;
        let ready = |stream, number, unordered| streams.is_next(stream, number, unordered);
        let piece = self.reassembly.take_partial(tsns.place(), &large, ready);
        let Some(mut piece) = piece.or_else(|| self.interleaved.take_partial(&large)) else {
            return false;
        };
        let inserted = self.streams.insert(&mut piece, false);
        debug_assert!(inserted, "it was not the turn of {piece:?}");
        true
    }

    /// Called when the next chunk in sequence does not fit; returns whether to accept it all the
    /// same. If the application has nothing to read, delivers a part of an incomplete message so
    /// that reading makes room. An empty buffer accepts any chunk, even one larger than the buffer:
    /// otherwise the association would stall.
    #[cold]
    fn must_take(&mut self, memory: usize) -> bool {
        if !self.streams.has_ready() {
            self.hand_over_part(|bytes, _| bytes > 0);
        }
        // If the chunks above it are non-renegable, it is accepted beyond the buffer limit: the
        // message that it completes can be read, and no further chunk is accepted until then. It
        // had room when they became non-renegable, unless it is larger than every chunk before.
        let kept = self.kept.is_some_and(|kept| kept > self.tsns.place());
        let most = self.most_memory + BEYOND_PROMISES;
        self.used() == 0 || (kept && !self.streams.has_ready() && self.memory() + memory <= most)
    }

    pub(crate) fn recv(&mut self) -> Option<Received> {
        self.recv_from(self.streams.first()?)
    }

    /// Called when the application has taken a message: if incomplete ones fill the buffer, and
    /// nothing else is left to be read, it gets parts of them. Otherwise the window would stay
    /// closed, because the probes of a closed window may be messages of their own.
    pub(crate) fn after_reading(&mut self) {
        if !self.interleaved.is_empty() {
            self.make_readable();
        }
    }

    pub(crate) fn recv_from(&mut self, stream: StreamId) -> Option<Received> {
        let Self { streams, buffered, tuning, reassembly, tsns, unread, .. } = self;
        streams.pop_from(stream, |piece| {
            let bytes = charge(piece.payload.len(), piece.chunks);
            *buffered -= bytes;
            if let Some(unread) = unread {
                *unread += piece.payload.len();
            }
            tuning.read(bytes);
            reassembly.release(piece);
            Received {
                stream: piece.stream,
                ppid: piece.ppid,
                unordered: piece.unordered,
                mid: Mid(piece.number),
                beginning: piece.beginning,
                end: piece.end,
                aborted: piece.aborted,
                tsn: tsns.tsn_at(piece.places.0),
                cumulative_tsn: tsns.cumulative(),
                payload: std::mem::take(&mut piece.payload),
            }
        })
    }

    /// Payload bytes and chunks of incomplete messages.
    fn in_parts(&self) -> (usize, u32) {
        let (a, b) = (self.reassembly.held(), self.interleaved.held());
        (a.0 + b.0, a.1 + b.1)
    }

    /// Free bytes of the buffer, as the peer counts them: payload and headers. RFC 9260 6.2: small
    /// chunks take more memory per byte that the peer counts, so they shrink the window. The chunks
    /// held serve as the estimate of that ratio.
    pub(crate) fn window(&self) -> u32 {
        let free = self.limit.saturating_sub(self.used());
        let held = self.held_memory();
        if held <= LEAST {
            // Too few chunks are held for an estimate.
            return free as u32;
        }
        let memory = self.most_memory.saturating_sub(held) / 16 * 15;
        let (counted, held) = (self.buffered + self.limit / 256, held + self.limit / 256);
        let scaled = memory as u64 * counted as u64 / held.max(1) as u64;
        u32::try_from(scaled).map_or(free as u32, |scaled| scaled.min(free as u32))
    }

    /// The window to announce in a SACK, in bytes. A window smaller than a chunk of `max_chunk`
    /// bytes is announced as 0 (RFC 9260 6.2: silly window syndrome, RFC 1122 4.2.3.3).
    pub(crate) fn announce(&mut self, max_chunk: u32) -> u32 {
        let window = self.window();
        let small = (self.limit / 2) as u32;
        let least = if max_chunk < small { max_chunk } else { small };
        self.announced = if window < least { 0 } else { window };
        self.arrived = 0;
        self.announced
    }

    /// Whether chunks that a SACK may have reported were dropped since the last call.
    pub(crate) const fn take_reneged(&mut self) -> bool {
        std::mem::replace(&mut self.reneged, false)
    }

    /// Whether to send a window update: the announced window was closed or small, and the
    /// application has since read a packet's worth and a fair share of the buffer.
    pub(crate) fn should_update(&self, max_chunk: u32) -> bool {
        let limit = self.limit as u32;
        let step = if max_chunk < limit / 2 { max_chunk } else { limit / 2 };
        let opened = self.window().saturating_sub(self.announced);
        self.announced < limit / 2
            && opened >= step
            && (self.announced < 2 * step || opened >= limit / 4)
    }

    /// The peer restarted: drops incomplete and out-of-order messages, keeps those that are ready
    /// to be read (RFC 9260 5.2.4.1).
    pub(crate) fn restart(&mut self, initial: Tsn, streams: u16, extensions: Extensions) {
        let (bytes, chunks) = self.in_parts();
        self.reassembly.clear();
        self.interleaved.clear();
        let (early, early_chunks) = self.streams.restart(streams);
        self.buffered -= charge(bytes + early, chunks + early_chunks);
        self.tsns = TsnTracker::new(initial);
        self.adopt(extensions);
        self.announced = self.window();
        self.arrived = 0;
    }

    /// No further data will arrive: makes ordered messages that wait for earlier ones readable.
    pub(crate) fn skip_all(&mut self) {
        self.streams.skip_all();
    }

    /// Sets the number of streams that the peer may use (RFC 6525 5.2.5).
    pub(crate) const fn set_streams(&mut self, streams: u16) {
        self.streams.set_limit(streams);
    }

    /// The peer restarts the sequence numbers of these streams.
    pub(crate) fn reset_streams(&mut self, streams: &Streams) {
        let dropped = self.interleaved.reset(streams);
        self.forget(dropped);
        let (bytes, chunks) = self.streams.reset(streams);
        self.buffered -= charge(bytes, chunks);
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.tsns.check()?;
        self.reassembly.check()?;
        self.interleaved.check()?;
        self.streams.check()?;
        let (a, b) = (self.in_parts(), self.streams.held());
        let held = charge(a.0 + b.0, a.1 + b.1);
        let limit = if self.kept.is_some() { self.most_memory } else { self.limit };
        if held != self.buffered || (held > limit && a.1 + b.1 > 1) {
            return Err(format!(
                "receive buffer: {held} bytes held, {} counted, {} allowed",
                self.buffered, self.limit
            ));
        }
        Ok(())
    }
}
