//! From DATA chunks to messages: TSNs, gaps, reassembly, streams, and the receive buffer.

use crate::event::Received;
use crate::send::Streams;
use crate::wire::{DATA_HEADER_LEN, Data, IData};
use crate::{Mid, StreamId, Tsn};

mod forward;
mod interleaved;
mod reassembly;
mod streams;
mod tsns;

use interleaved::Interleaved;
use reassembly::{FragmentError, Piece, Reassembly};
use streams::{InStreams, Numbers};
use tsns::{Arrived, TsnTracker};

/// What became of a DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// New and kept.
    New,
    /// Received before.
    Duplicate,
    /// No room for it; the peer will send it again.
    NoBuffer,
    /// Acknowledged and thrown away: there is no such stream (RFC 9260 6.5).
    InvalidStream,
    /// So far above what was received that no peer that respects the window would send it.
    OutOfWindow,
    /// The peer's fragments or sequence numbers contradict each other.
    Violation(&'static str),
}

/// The receiving half of an association.
#[derive(Debug)]
pub(crate) struct Receiver {
    tsns: TsnTracker,
    reassembly: Reassembly,
    /// In place of it, where messages are interleaved.
    interleaved: Interleaved,
    streams: InStreams,
    /// Bytes of payload and headers held; never above `limit`, but for a single chunk that is.
    buffered: usize,
    limit: usize,
    /// The window announced last.
    announced: u32,
    /// What has come up to this TSN is never dropped again (NR-SACK).
    kept: Option<Tsn>,
    /// What the largest chunk so far took.
    largest: usize,
}

const fn charge(payload: usize, chunks: u32) -> usize {
    payload + chunks as usize * DATA_HEADER_LEN
}

impl Receiver {
    pub(crate) fn new(initial: Tsn, streams: u16, limit: u32) -> Self {
        Self {
            tsns: TsnTracker::new(initial),
            reassembly: Reassembly::default(),
            interleaved: Interleaved::default(),
            streams: InStreams::new(streams),
            buffered: 0,
            limit: limit as usize,
            announced: limit,
            kept: None,
            largest: 0,
        }
    }

    pub(crate) const fn tsns(&self) -> &TsnTracker {
        &self.tsns
    }

    /// Whether the peer is to be told what is never dropped again.
    pub(crate) fn keep(&mut self, keeps: bool) {
        self.kept = keeps.then(|| self.tsns.cumulative());
    }

    /// The TSN up to which nothing is dropped from now on: all that has come, as long as what is missing below
    /// it has room beside it. The rest makes that room.
    pub(crate) fn promise(&mut self) -> Tsn {
        let highest = self.tsns.highest();
        let kept = self.kept.unwrap_or_else(|| self.tsns.cumulative());
        let missing = self.tsns.missing() as usize * self.largest;
        if self.buffered + missing <= self.limit && highest.is_after(kept) {
            self.kept = Some(highest);
            return highest;
        }
        kept
    }

    /// Gives back the memory that is kept for what comes.
    pub(crate) fn give_back(&mut self) {
        self.reassembly.give_back();
    }

    /// A SACK carries each duplicate once.
    pub(crate) fn duplicates_reported(&mut self) {
        self.tsns.duplicates_reported();
    }

    /// Messages, and pieces of messages, that have ever become ready for the application.
    pub(crate) const fn ever_ready(&self) -> u64 {
        self.streams.ever_ready()
    }

    /// The peer interleaves its messages, from the first one on.
    pub(crate) const fn interleave(&mut self, interleaves: bool) {
        self.streams.number_by(if interleaves { Numbers::Mid } else { Numbers::Ssn });
    }

    pub(crate) fn handle_data(&mut self, data: &Data<'_>) -> Outcome {
        let (arrived, size) = match self.admit(data.tsn, data.stream, data.payload.len()) {
            Ok(admitted) => admitted,
            Err(outcome) => return outcome,
        };
        let joined = self.reassembly.insert(data, arrived == Arrived::InSequence);
        self.take(data.tsn, size, joined)
    }

    pub(crate) fn handle_i_data(&mut self, data: &IData<'_>) -> Outcome {
        let (_, size) = match self.admit(data.tsn, data.stream, data.payload.len()) {
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
        let joined = self.interleaved.insert(data, self.tsns.cumulative());
        self.take(data.tsn, size, joined)
    }

    /// Whether there is room for a chunk that is new: what its TSN is, and what it takes.
    fn admit(
        &mut self,
        tsn: Tsn,
        stream: StreamId,
        payload: usize,
    ) -> Result<(Arrived, usize), Outcome> {
        let arrived = self.tsns.judge(tsn);
        if arrived == Arrived::Duplicate {
            self.tsns.note_duplicate(tsn);
            return Err(Outcome::Duplicate);
        }
        // Each chunk costs a header and a byte at least: more TSNs than this do not fit the window.
        let most = (self.limit / (DATA_HEADER_LEN + 1)) as u32;
        if tsn.offset_from(self.tsns.cumulative()) > most {
            return Err(Outcome::OutOfWindow);
        }
        if stream.0 >= self.streams.limit() {
            self.tsns.note(tsn);
            return Err(Outcome::InvalidStream);
        }
        let size = charge(payload, 1);
        self.largest = self.largest.max(size);
        let in_sequence = arrived == Arrived::InSequence;
        if self.buffered + size > self.limit
            && !self.make_room(tsn, size)
            && !(in_sequence && self.must_take())
        {
            return Err(Outcome::NoBuffer);
        }
        Ok((arrived, size))
    }

    /// A chunk has gone to the others of its message, and perhaps completed it.
    fn take(
        &mut self,
        tsn: Tsn,
        size: usize,
        joined: Result<Option<Piece>, FragmentError>,
    ) -> Outcome {
        match joined {
            Err(FragmentError) => {
                return Outcome::Violation("fragments of a message contradict each other");
            }
            Ok(None) => {}
            Ok(Some(piece)) => {
                let gone = charge(piece.payload.len(), piece.chunks);
                if !self.streams.insert(piece) {
                    // Its earlier fragments were charged; this chunk was not.
                    self.buffered -= gone - size;
                    return Outcome::Violation("a stream sequence number was used twice");
                }
            }
        }
        self.buffered += size;
        self.tsns.note(tsn);
        self.drop_orphans();
        if self.buffered * 2 > self.limit {
            self.deliver_in_part();
        }
        Outcome::New
    }

    /// Drops what has a gap below it, the highest TSNs first, for the sake of `tsn` (RFC 9260 6.2:
    /// a receiver short of buffer may renege).
    #[cold]
    fn make_room(&mut self, tsn: Tsn, size: usize) -> bool {
        while self.buffered + size > self.limit {
            let cumulative = self.tsns.cumulative();
            let least = self.kept.filter(|kept| kept.is_after(cumulative)).unwrap_or(cumulative);
            let fragments = self.reassembly.highest_above(least);
            let fragments = fragments.or_else(|| self.interleaved.highest_above(least));
            let fragments = fragments.filter(|f| f.is_after(tsn));
            let message = self
                .streams
                .highest_early()
                .filter(|(_, first)| first.is_after(least) && first.is_after(tsn));
            match (fragments, message) {
                (Some(first), m) if m.is_none_or(|(_, other)| first.is_after(other)) => {
                    let evicted = self.reassembly.evict_highest();
                    let evicted = evicted.or_else(|| self.interleaved.evict_highest());
                    let Some((last, bytes, chunks)) = evicted else { return false };
                    self.tsns.forget(first, last);
                    self.buffered -= charge(bytes, chunks);
                }
                (_, Some((stream, _))) => {
                    let Some(piece) = self.streams.evict_early(stream) else { return false };
                    if piece.scattered.is_empty() {
                        self.tsns.forget(piece.tsns.0, piece.tsns.1);
                    }
                    piece.scattered.iter().for_each(|tsn| self.tsns.forget(*tsn, *tsn));
                    self.buffered -= charge(piece.payload.len(), piece.chunks);
                }
                _ => return false,
            }
        }
        true
    }

    /// Hands over what there is of a message that takes more than half the buffer by itself
    /// (RFC 9260 6.9, partial delivery). Smaller ones wait: the application makes room by reading
    /// what is ready, and [`make_room`](Self::make_room) by reneging.
    #[cold]
    fn deliver_in_part(&mut self) {
        let limit = self.limit;
        self.hand_over_part(|bytes, chunks| charge(bytes, chunks) * 2 > limit);
    }

    fn hand_over_part(&mut self, large: impl Fn(usize, u32) -> bool) {
        let Self { streams, tsns, .. } = self;
        let ready = |stream, number, unordered| streams.is_next(stream, number, unordered);
        let piece = self.reassembly.take_partial(tsns.cumulative(), &large, ready);
        let ready = |stream, number, unordered| streams.is_next(stream, number, unordered);
        let piece =
            piece.or_else(|| self.interleaved.take_partial(tsns.cumulative(), &large, ready));
        if let Some(piece) = piece {
            self.streams.insert(piece);
        }
    }

    /// There is no room for the very chunk that is expected next. If the application has something to
    /// read, that will make room; if not, the message that has begun is handed over in part, for the
    /// same end. An empty buffer takes one chunk, were it larger than the whole buffer: otherwise
    /// nothing would ever move.
    #[cold]
    fn must_take(&mut self) -> bool {
        if !self.streams.has_ready() {
            self.hand_over_part(|bytes, _| bytes > 0);
        }
        // Where what has come may not be dropped, it is taken beyond the limit: what it completes can be
        // read, and until that has happened nothing more is taken.
        self.buffered == 0 || (self.kept.is_some() && !self.streams.has_ready())
    }

    pub(crate) fn recv(&mut self) -> Option<Received> {
        let piece = self.streams.pop()?;
        Some(self.hand_over(piece))
    }

    pub(crate) fn recv_from(&mut self, stream: StreamId) -> Option<Received> {
        let piece = self.streams.pop_from(stream)?;
        Some(self.hand_over(piece))
    }

    fn hand_over(&mut self, piece: Piece) -> Received {
        self.buffered -= charge(piece.payload.len(), piece.chunks);
        Received {
            stream: piece.stream,
            ppid: piece.ppid,
            unordered: piece.unordered,
            mid: Mid(piece.number),
            beginning: piece.beginning,
            end: piece.end,
            aborted: piece.aborted,
            payload: piece.payload,
        }
    }

    /// Bytes of messages that are not complete, and chunks that they came in.
    fn in_parts(&self) -> (usize, u32) {
        let (a, b) = (self.reassembly.held(), self.interleaved.held());
        (a.0 + b.0, a.1 + b.1)
    }

    /// Free bytes of the buffer.
    pub(crate) const fn window(&self) -> u32 {
        self.limit.saturating_sub(self.buffered) as u32
    }

    /// The window to announce in a SACK. A window too small for a packet of `max_chunk` bytes is
    /// announced as none (RFC 9260 6.2: silly window syndrome, RFC 1122 4.2.3.3).
    pub(crate) const fn announce(&mut self, max_chunk: u32) -> u32 {
        let window = self.window();
        let small = (self.limit / 2) as u32;
        let least = if max_chunk < small { max_chunk } else { small };
        self.announced = if window < least { 0 } else { window };
        self.announced
    }

    /// The window of the last SACK.
    pub(crate) const fn announced(&self) -> u32 {
        self.announced
    }

    /// The application has read so much since the last SACK that the peer should know: the window
    /// was closed or small, and has opened by a packet and by a good share of the buffer.
    pub(crate) const fn should_update(&self, max_chunk: u32) -> bool {
        let limit = self.limit as u32;
        let step = if max_chunk < limit / 2 { max_chunk } else { limit / 2 };
        let opened = self.window().saturating_sub(self.announced);
        self.announced < limit / 2
            && opened >= step
            && (self.announced < 2 * step || opened >= limit / 4)
    }

    /// The peer starts anew; what the application has not read yet stays (RFC 9260 5.2.4.1).
    pub(crate) fn restart(&mut self, initial: Tsn, streams: u16) {
        let (bytes, chunks) = self.in_parts();
        self.reassembly.clear();
        self.interleaved.clear();
        let (early, early_chunks) = self.streams.restart(streams);
        self.buffered -= charge(bytes + early, chunks + early_chunks);
        self.tsns = TsnTracker::new(initial);
        self.keep(self.kept.is_some());
        self.announced = self.window();
    }

    /// The peer may use so many streams from now on (RFC 6525 5.2.5).
    pub(crate) const fn set_streams(&mut self, streams: u16) {
        self.streams.set_limit(streams);
    }

    /// The peer begins anew with the sequence numbers of these streams.
    pub(crate) fn reset_streams(&mut self, streams: &Streams) {
        let dropped = self.interleaved.reset(streams);
        self.forget(dropped);
        let (bytes, chunks) = self.streams.reset(streams);
        self.buffered -= charge(bytes, chunks);
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.interleaved.check()?;
        let (a, b) = (self.in_parts(), self.streams.held());
        let held = charge(a.0 + b.0, a.1 + b.1);
        let limit = self.limit + if self.kept.is_some() { usize::from(u16::MAX) } else { 0 };
        if held != self.buffered || (held > limit && a.1 + b.1 > 1) {
            return Err(format!(
                "receive buffer: {held} bytes held, {} counted, {} allowed",
                self.buffered, self.limit
            ));
        }
        Ok(())
    }
}
