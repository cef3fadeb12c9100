//! Chunks that have a TSN and are not yet cumulatively acknowledged: a ring indexed by TSN offset.
//!
//! Processing a SACK costs O(acknowledged + gap blocks), never a walk over all outstanding chunks.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::partial::Partial;
use super::queue::NewChunk;
use crate::allocation::tree;
use crate::ids::{Mid, PathId, Ppid, Ssn, StreamId, Tsn};
use crate::policy::loss::MissingChunk;
use crate::policy::retransmission::{LossCause, LostChunk};
use crate::time::Time;
use crate::wire::{
    DATA_HEADER_LEN, Data, DoesNotFit, GapBlock, I_DATA_HEADER_LEN, IData, Mark, PacketWriter, Sack,
};

mod abandon;
mod reserved;

use reserved::Reserved;

/// Memory of a chunk not yet cumulatively acknowledged: in the ring, in the list of its path, among
/// the lost chunks, and in the lists of chunks that a SACK acknowledges and reports missing.
pub(super) const OUTSTANDING: usize = 2 * size_of::<Outstanding>() + 2 * 8 + tree(8) + 96;

/// A ring for up to this number of chunks keeps its memory.
const SPARE_CHUNKS: usize = 1024;

/// State of an outstanding chunk, as the sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Sent and not yet acknowledged.
    InFlight,
    /// Acknowledged by a gap block; the receiver may still renege.
    Acked,
    /// Waits for retransmission.
    Lost(LossCause),
    /// Abandoned (RFC 3758 3.4): neither in flight nor to be retransmitted.
    Abandoned,
    /// Has a TSN but has not been sent yet: slower paths sent higher TSNs first.
    Reserved,
}

#[derive(Debug)]
pub(crate) struct Outstanding {
    /// User data; emptied when the chunk is abandoned or the peer reports it as non-renegable.
    pub(crate) payload: Bytes,
    /// Original length of the payload in bytes.
    payload_len: u32,
    /// Bytes of padding that count towards windows.
    padding: u8,
    pub(crate) stream: StreamId,
    mid: Mid,
    /// Fragment sequence number, in an I-DATA chunk.
    fsn: Option<u32>,
    pub(crate) ppid: Ppid,
    unordered: bool,
    beginning: bool,
    end: bool,
    immediate: bool,
    /// Its message, if that may be abandoned.
    pub(crate) partial: Option<Arc<Partial>>,
    /// Whether it was abandoned; stays set when a gap block acknowledges the chunk.
    pub(crate) abandoned: bool,
    /// Whether it was abandoned in flight: missing reports still show its loss (RFC 3758 3.5 F5).
    watched: bool,
    /// A stream reset follows this chunk: message identifiers of later chunks start anew.
    before_reset: bool,
    pub(crate) fate: Fate,
    pub(crate) fast_retransmitted: bool,
    /// Whether it was ever marked for fast retransmission; never cleared.
    pub(crate) ever_fast_retransmitted: bool,
    /// The path it was last sent on.
    pub(crate) path: PathId,
    /// Whether it was sent on more than one path.
    pub(crate) wandered: bool,
    pub(crate) transmissions: u32,
    /// When it was last sent.
    pub(crate) sent: Time,
    /// Recover point of this chunk: the highest TSN sent when it was last fast retransmitted. For a
    /// chunk first sent after higher TSNs on its path, the highest of those.
    pub(crate) own_recover: Option<Tsn>,
    /// Number of missing reports.
    pub(crate) reports: u32,
    /// Whether it was sent before chunks with lower TSNs.
    ahead: bool,
}

impl Outstanding {
    fn new(chunk: NewChunk, path: PathId, padded: bool) -> Self {
        // Both headers are multiples of four.
        let padding = if padded { chunk.payload.len().wrapping_neg() % 4 } else { 0 };
        Self {
            padding: padding as u8,
            payload_len: chunk.payload.len() as u32,
            payload: chunk.payload,
            stream: chunk.stream,
            mid: chunk.mid,
            fsn: chunk.fsn,
            ppid: chunk.ppid,
            unordered: chunk.unordered,
            beginning: chunk.beginning,
            end: chunk.end,
            immediate: chunk.immediate,
            partial: chunk.partial,
            abandoned: false,
            watched: false,
            before_reset: false,
            fate: Fate::InFlight,
            fast_retransmitted: false,
            ever_fast_retransmitted: false,
            path,
            wandered: false,
            transmissions: 1,
            sent: Time::ZERO,
            own_recover: None,
            reports: 0,
            ahead: false,
        }
    }

    /// Bytes that it counts towards windows: chunk header, payload and padding.
    pub(crate) fn size(&self) -> u32 {
        let header = if self.fsn.is_some() { I_DATA_HEADER_LEN } else { DATA_HEADER_LEN };
        header as u32 + self.payload_len + u32::from(self.padding)
    }

    fn is_of(&self, message: &Partial) -> bool {
        self.partial.as_ref().is_some_and(|p| p.number == message.number)
    }

    /// This chunk as a retransmission policy sees it.
    pub(crate) const fn as_lost(&self, tsn: Tsn, cause: LossCause) -> LostChunk {
        LostChunk { tsn, cause, last_path: self.path, transmissions: self.transmissions }
    }

    /// This chunk as a loss detector sees it; `recover` is the recover point of the association or
    /// of the path.
    pub(crate) const fn as_missing(&self, tsn: Tsn, recover: Option<Tsn>) -> MissingChunk {
        MissingChunk {
            tsn,
            path: self.path,
            reports: self.reports,
            fast_retransmitted: self.fast_retransmitted,
            ever_fast_retransmitted: self.ever_fast_retransmitted,
            own_recover: self.own_recover,
            transmissions: self.transmissions,
            sent: self.sent,
            recover,
        }
    }

    /// Writes it as DATA or I-DATA. `immediate` sets the I bit even if the application did not ask
    /// for it.
    pub(crate) fn write(
        &self,
        tsn: Tsn,
        immediate: bool,
        retransmission: bool,
        w: &mut PacketWriter<'_>,
    ) -> Result<(), DoesNotFit> {
        let (stream, unordered, end) = (self.stream, self.unordered, self.end);
        let (immediate, payload) = (immediate || self.immediate, &self.payload[..]);
        let Some(fsn) = self.fsn else {
            return w.data(&Data {
                tsn,
                stream,
                // RFC 9260 3.3.1: 16 bits, without meaning in an unordered chunk.
                ssn: Ssn(if unordered { 0 } else { self.mid.0 as u16 }),
                ppid: self.ppid,
                unordered,
                beginning: self.beginning,
                end,
                immediate,
                retransmission,
                payload,
            });
        };
        w.i_data(&IData {
            tsn,
            stream,
            mid: self.mid,
            mark: if self.beginning { Mark::Beginning(self.ppid) } else { Mark::Fragment(fsn) },
            unordered,
            end,
            immediate,
            retransmission,
            payload,
        })
    }
}

/// Most runs of non-renegable chunks whose payload is freed before the cumulative ack.
const MOST_KEPT: usize = 512;

/// TSNs are assigned up to this distance above the cumulative TSN ack point, exclusive. A receiver
/// compares stream sequence numbers by serial arithmetic (RFC 9260 1.6), which has 15 bits for
/// "after"; RFC 9260 6.1 allows 2^16 - 1 messages of a stream. Gap blocks reach twice this distance
/// (3.3.4): a chunk beyond that would stay in flight until everything missing below it has arrived.
pub(super) const MOST_TSNS: u64 = 1 << 15;

/// A run of places, both ends included. A place counts TSNs from the association's first one and
/// does not wrap.
type Span = (u64, u64);

#[derive(Debug)]
pub(crate) struct InFlight {
    ring: VecDeque<Outstanding>,
    /// TSN of the ring's first chunk (the cumulative TSN ack point plus one), and its place.
    first: Tsn,
    first_place: u64,
    /// Runs that the last gap blocks acknowledge, ascending.
    acked: Vec<Span>,
    /// The previous `acked`; its memory is reused for the next SACK.
    spare: Vec<Span>,
    /// The runs of these that the peer reported as non-renegable (NR-SACK).
    kept: Vec<Span>,
    lost: BTreeSet<u64>,
    /// Bytes with fate `InFlight`.
    bytes: u32,
    /// Number of abandoned chunks.
    abandoned: usize,
    /// Place up to which, exclusive, a FORWARD TSN may skip.
    skippable: u64,
    /// A chunk was lost whose message may be abandoned.
    partly_lost: bool,
    /// Operations so far; see [`budget`](crate::budget).
    looked: u64,
    reserved: Reserved,
    /// Whether chunks count with their padding (RFC 9260 7.2).
    padded: bool,
}

impl InFlight {
    pub(crate) const fn new(initial: Tsn) -> Self {
        Self {
            ring: VecDeque::new(),
            first: initial,
            first_place: 0,
            acked: Vec::new(),
            spare: Vec::new(),
            kept: Vec::new(),
            lost: BTreeSet::new(),
            bytes: 0,
            abandoned: 0,
            skippable: 0,
            partly_lost: false,
            looked: 0,
            reserved: Reserved::new(),
            padded: true,
        }
    }

    /// Sets whether chunks count with their padding (RFC 9260 7.2).
    pub(crate) const fn count_padding(&mut self, counts: bool) {
        self.padded = counts;
    }

    /// Bytes that a chunk of `bytes` bytes, header included, counts towards windows.
    pub(crate) const fn counted(&self, bytes: usize) -> u32 {
        if self.padded { bytes.next_multiple_of(4) as u32 } else { bytes as u32 }
    }

    /// TSN of the next new chunk.
    pub(crate) fn next_tsn(&self) -> Tsn {
        self.first.plus(self.ring.len() as u32)
    }

    /// The cumulative TSN ack point.
    pub(crate) const fn ack_point(&self) -> Tsn {
        self.first.prev()
    }

    /// The highest TSN assigned; the same as the highest sent unless chunks are reserved.
    pub(crate) fn highest(&self) -> Tsn {
        self.next_tsn().prev()
    }

    /// The highest TSN in the ring that waits neither for retransmission nor for its first
    /// transmission.
    pub(crate) fn highest_not_lost(&self) -> Option<Tsn> {
        let waits = |c: &Outstanding| matches!(c.fate, Fate::Lost(_) | Fate::Reserved);
        let at = self.ring.iter().rposition(|c| !waits(c))?;
        Some(self.first.plus(at as u32))
    }

    /// Number of chunks that are not cumulatively acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Operations so far.
    pub(crate) const fn looked(&self) -> u64 {
        self.looked
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Whether no further TSN may be assigned until the cumulative TSN ack point advances.
    pub(crate) fn is_full(&self) -> bool {
        self.ring.len() as u64 + 1 >= MOST_TSNS
    }

    /// Bytes in flight over all paths, chunk headers included.
    pub(crate) const fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(crate) fn get(&self, tsn: Tsn) -> Option<&Outstanding> {
        self.ring.get(tsn.offset_from(self.first) as usize)
    }

    pub(super) fn tsn_at(&self, place: u64) -> Tsn {
        self.first.plus((place - self.first_place) as u32)
    }

    /// The place of a TSN: see [`Span`].
    pub(super) fn place_of(&self, tsn: Tsn) -> u64 {
        self.first_place + u64::from(tsn.offset_from(self.first))
    }

    /// Assigns a TSN to a new chunk that is sent on `path`.
    pub(crate) fn push(&mut self, chunk: NewChunk, path: PathId) -> (Tsn, &Outstanding) {
        let tsn = self.next_tsn();
        let out = Outstanding::new(chunk, path, self.padded);
        self.bytes += out.size();
        self.ring.push_back(out);
        let at = self.ring.len() - 1;
        (tsn, &self.ring[at])
    }

    /// Assigns a TSN to a new chunk that is sent later.
    pub(super) fn push_reserved(&mut self, chunk: NewChunk) -> &Outstanding {
        let fate = Fate::Reserved;
        let out = Outstanding::new(chunk, PathId(0), self.padded);
        self.ring.push_back(Outstanding { fate, ..out });
        let at = self.ring.len() - 1;
        &self.ring[at]
    }

    /// Marks a reserved chunk as sent on `path`.
    pub(super) fn begin(&mut self, tsn: Tsn, path: PathId) -> &mut Outstanding {
        let offset = tsn.offset_from(self.first) as usize;
        let chunk = &mut self.ring[offset];
        debug_assert_eq!(chunk.fate, Fate::Reserved);
        (chunk.fate, chunk.path) = (Fate::InFlight, path);
        self.bytes += chunk.size();
        chunk
    }

    /// For each of `paths` paths, the lowest TSN last sent on it that no gap block acknowledges.
    pub(crate) fn first_on(&self, paths: usize) -> Vec<Option<Tsn>> {
        let mut first = vec![None; paths];
        let mut missing = paths;
        let gone = [Fate::Acked, Fate::Reserved];
        for (tsn, chunk) in self.iter().filter(|(_, chunk)| !gone.contains(&chunk.fate)) {
            if first[chunk.path.index()].is_none() {
                first[chunk.path.index()] = Some(tsn);
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
        }
        first
    }

    /// The lowest chunk that waits for retransmission.
    pub(crate) fn first_lost(&self) -> Option<(Tsn, &Outstanding, LossCause)> {
        self.lost_from(self.first)
    }

    /// The lowest chunk at or above `tsn` that waits for retransmission.
    pub(crate) fn lost_from(&self, tsn: Tsn) -> Option<(Tsn, &Outstanding, LossCause)> {
        let from = self.first_place + u64::from(tsn.offset_from(self.first));
        let place = *self.lost.range(from..).next()?;
        let chunk = &self.ring[(place - self.first_place) as usize];
        let Fate::Lost(cause) = chunk.fate else { return None };
        Some((self.tsn_at(place), chunk, cause))
    }

    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Marks a lost chunk as retransmitted on `path`; `highest` is its recover point if this is a
    /// fast retransmission. Returns the path it was sent on before, and the chunk.
    pub(crate) fn resend(
        &mut self,
        tsn: Tsn,
        path: PathId,
        highest: Tsn,
    ) -> (PathId, &Outstanding) {
        let offset = tsn.offset_from(self.first) as usize;
        self.lost.remove(&(self.first_place + offset as u64));
        let chunk = &mut self.ring[offset];
        // RFC 9260 7.2.4 (5): a chunk is fast retransmitted once; after a timeout it may be again.
        chunk.fast_retransmitted = chunk.fate == Fate::Lost(LossCause::FastRetransmit);
        if chunk.fast_retransmitted {
            chunk.own_recover = Some(highest);
        }
        chunk.fate = Fate::InFlight;
        let old = std::mem::replace(&mut chunk.path, path);
        chunk.wandered |= old != path;
        chunk.transmissions += 1;
        self.bytes += chunk.size();
        (old, chunk)
    }

    pub(crate) fn get_mut(&mut self, tsn: Tsn) -> Option<&mut Outstanding> {
        self.ring.get_mut(tsn.offset_from(self.first) as usize)
    }

    /// Records when a chunk was sent, for the first time or again.
    pub(crate) fn set_sent(&mut self, tsn: Tsn, now: Time) {
        if let Some(chunk) = self.ring.get_mut(tsn.offset_from(self.first) as usize) {
            chunk.sent = now;
        }
    }

    /// Marks a chunk in flight as lost, or changes the cause of an earlier loss. Returns whether it
    /// was in flight. The loss of a chunk abandoned in flight counts once.
    pub(crate) fn mark_lost(&mut self, tsn: Tsn, cause: LossCause) -> bool {
        let offset = tsn.offset_from(self.first) as usize;
        let Some(chunk) = self.ring.get_mut(offset) else { return false };
        if matches!(chunk.fate, Fate::Acked | Fate::Abandoned | Fate::Reserved) {
            chunk.watched = false;
            return false;
        }
        let was_in_flight = chunk.fate == Fate::InFlight;
        chunk.fate = Fate::Lost(cause);
        chunk.reports = 0;
        chunk.ever_fast_retransmitted |= cause == LossCause::FastRetransmit;
        if was_in_flight {
            self.bytes -= chunk.size();
            self.partly_lost |= chunk.partial.is_some();
            self.lost.insert(self.first_place + offset as u64);
        }
        was_in_flight
    }

    /// T3-rtx expired on `path`: chunks that wait for fast retransmission there count as lost by
    /// the timeout, except those that `spares` selects.
    pub(crate) fn give_up_waiting(&mut self, path: PathId, spares: impl Fn(&Outstanding) -> bool) {
        for place in &self.lost {
            let chunk = &mut self.ring[(place - self.first_place) as usize];
            if chunk.path == path && !spares(chunk) {
                chunk.fate = Fate::Lost(LossCause::Timeout);
                chunk.reports = 0;
            }
        }
    }

    /// Removes every chunk up to `cumulative`; calls `each` with the chunk and its last fate.
    pub(crate) fn ack_cumulative(
        &mut self,
        cumulative: Tsn,
        mut each: impl FnMut(Tsn, Outstanding, Fate),
    ) {
        let n = (cumulative.next().offset_from(self.first) as usize).min(self.ring.len());
        for _ in 0..n {
            let Some(chunk) = self.ring.pop_front() else { break };
            let (tsn, fate) = (self.first, chunk.fate);
            match fate {
                Fate::InFlight => self.bytes -= chunk.size(),
                Fate::Lost(_) => {
                    self.lost.remove(&self.first_place);
                }
                Fate::Acked | Fate::Abandoned => {}
                Fate::Reserved => self.reserved.remove(self.first_place, chunk.size()),
            }
            self.reserved.gone(&chunk);
            self.abandoned -= usize::from(chunk.abandoned);
            self.first = self.first.next();
            self.first_place += 1;
            each(tsn, chunk, fate);
        }
        let (len, capacity) = (self.ring.len(), self.ring.capacity());
        if capacity > SPARE_CHUNKS && len < capacity / 4 {
            self.ring.shrink_to(capacity / 2);
        }
        self.advance_skippable();
        let first = self.first_place;
        for spans in [&mut self.acked, &mut self.kept] {
            let below = spans.partition_point(|s| s.1 < first);
            spans.drain(..below);
            if let Some(span) = spans.first_mut() {
                span.0 = span.0.max(first);
            }
        }
    }

    /// Processes the gap blocks of a SACK whose cumulative TSN ack is the ack point. Calls `acked`
    /// with each chunk that they newly acknowledge and its former fate, and `reneged` with each
    /// chunk that an earlier SACK acknowledged and this one does not. Blocks that do not ascend are
    /// ignored.
    pub(crate) fn ack_gaps(
        &mut self,
        gaps: impl Iterator<Item = GapBlock>,
        mut acked: impl FnMut(Tsn, &mut Outstanding, Fate),
        mut reneged: impl FnMut(Tsn, &mut Outstanding),
    ) {
        let mut new = std::mem::take(&mut self.spare);
        spans_of(self.first_place, gaps, &mut new);
        if !self.kept.is_empty() {
            new = union(&new, &self.kept);
        }
        let old = std::mem::take(&mut self.acked);
        let mut looked = (old.len() + self.kept.len()) as u64;
        difference(&new, &old, |place| {
            let offset = (place - self.first_place) as usize;
            let chunk = &mut self.ring[offset];
            let fate = std::mem::replace(&mut chunk.fate, Fate::Acked);
            match fate {
                Fate::InFlight => self.bytes -= chunk.size(),
                Fate::Lost(_) => {
                    self.lost.remove(&place);
                }
                Fate::Acked | Fate::Abandoned => {}
                Fate::Reserved => self.reserved.remove(place, chunk.size()),
            }
            acked(self.first.plus(offset as u32), chunk, fate);
        });
        difference(&old, &new, |place| {
            looked += 1;
            let offset = (place - self.first_place) as usize;
            let chunk = &mut self.ring[offset];
            if chunk.abandoned {
                chunk.fate = Fate::Abandoned;
            } else {
                chunk.fate = Fate::InFlight;
                self.bytes += chunk.size();
            }
            reneged(self.first.plus(offset as u32), chunk);
        });
        self.acked = new;
        self.spare = old;
        self.looked += looked;
    }

    /// Frees the payload of the chunks in these non-renegable gap blocks of the last SACK. Returns
    /// the bytes freed.
    pub(crate) fn release(&mut self, gaps: impl Iterator<Item = GapBlock>) -> usize {
        let mut named = Vec::new();
        spans_of(self.first_place, gaps, &mut named);
        if named.is_empty() {
            return 0;
        }
        self.looked += (self.acked.len() + self.kept.len()) as u64;
        let new = union(&intersection(&named, &self.acked), &self.kept);
        if new.len() > MOST_KEPT {
            // Every later SACK is compared with all of these runs: payload beyond the limit is kept
            // until it is cumulatively acknowledged.
            return 0;
        }
        let mut bytes = 0;
        difference(&new, &self.kept, |place| {
            let chunk = &mut self.ring[(place - self.first_place) as usize];
            bytes += std::mem::take(&mut chunk.payload).len();
        });
        self.kept = new;
        bytes
    }

    /// Whether this SACK is outdated: it lacks chunks that an earlier one reported as
    /// non-renegable.
    pub(crate) fn knows_more(&self, sack: &Sack<'_>) -> bool {
        if sack.cumulative_tsn_ack != self.ack_point() || self.kept.is_empty() {
            return false;
        }
        let mut named = Vec::new();
        spans_of(self.first_place, sack.all_gaps(), &mut named);
        let mut more = false;
        difference(&self.kept, &named, |_| more = true);
        more
    }

    /// The highest TSN that gap blocks acknowledge, or the ack point.
    pub(crate) fn highest_acked(&self) -> Tsn {
        self.acked.last().map_or_else(|| self.ack_point(), |s| self.tsn_at(s.1))
    }

    /// Calls `each` with every chunk in flight below `horizon` that the last SACK does not
    /// acknowledge, even above its highest gap block. Includes chunks abandoned in flight, and with
    /// `lost` those that wait for retransmission.
    pub(crate) fn for_each_missing(
        &mut self,
        horizon: Tsn,
        lost: bool,
        mut each: impl FnMut(Tsn, &mut Outstanding),
    ) {
        if horizon.is_before(self.first) {
            return;
        }
        let end = self.first_place
            + u64::from(horizon.offset_from(self.first)).min(self.ring.len() as u64);
        let mut place = self.first_place;
        let beyond = (end, end);
        let mut looked = 0;
        for (first, last) in self.acked.iter().copied().chain([beyond]) {
            for p in place..first.min(end) {
                looked += 1;
                let offset = (p - self.first_place) as usize;
                let chunk = &mut self.ring[offset];
                let may_leave = !chunk.abandoned && chunk.fate != Fate::Reserved;
                let watched = chunk.fate == Fate::Abandoned && chunk.watched;
                if chunk.fate == Fate::InFlight || watched || (lost && may_leave) {
                    each(self.first.plus(offset as u32), chunk);
                }
            }
            place = last + 1;
        }
        self.looked += looked;
    }

    /// Calls `each`, in TSN order, with every chunk up to the highest acknowledged one that was not
    /// yet acknowledged before the last SACK. With `next_too`, the range ends one chunk later.
    pub(crate) fn for_each_scanned(
        &mut self,
        next_too: bool,
        mut each: impl FnMut(Tsn, &mut Outstanding),
    ) {
        let Some(&(_, highest)) = self.acked.last() else { return };
        let last =
            (highest + u64::from(next_too)).min(self.first_place + self.ring.len() as u64 - 1);
        let Self { first, first_place, ring, spare, looked, .. } = self;
        // `spare` holds the runs acknowledged before the last SACK.
        difference(&[(*first_place, last)], spare, |place| {
            *looked += 1;
            let offset = (place - *first_place) as usize;
            if !ring[offset].abandoned && ring[offset].fate != Fate::Reserved {
                each(first.plus(offset as u32), &mut ring[offset]);
            }
        });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Tsn, &Outstanding)> {
        self.ring.iter().enumerate().map(|(i, c)| (self.first.plus(i as u32), c))
    }

    /// Drops all chunks; the next one gets TSN `initial`.
    pub(crate) fn restart(&mut self, initial: Tsn) {
        let (padded, looked) = (self.padded, self.looked);
        *self = Self { padded, looked, ..Self::new(initial) };
    }

    /// Checks that the counts agree with the ring.
    pub(crate) fn check(&self) -> Result<(), String> {
        let bytes: u64 = self
            .ring
            .iter()
            .filter(|c| c.fate == Fate::InFlight)
            .map(|c| u64::from(c.size()))
            .sum();
        let lost = self.ring.iter().filter(|c| matches!(c.fate, Fate::Lost(_))).count();
        let acked = self.ring.iter().filter(|c| c.fate == Fate::Acked).count() as u64;
        let spans: u64 = self.acked.iter().map(|s| s.1 - s.0 + 1).sum();
        let abandoned = self.ring.iter().filter(|c| c.abandoned).count();
        let wrong = self.ring.iter().any(|c| c.fate == Fate::Abandoned && !c.abandoned);
        if abandoned != self.abandoned || wrong {
            return Err(format!("{abandoned} chunks given up, but counted {}", self.abandoned));
        }
        if bytes != u64::from(self.bytes) || lost != self.lost.len() || acked != spans {
            return Err(format!(
                "in flight: {bytes} bytes, {lost} lost, {acked} acked, but counted {}, {}, {spans}",
                self.bytes,
                self.lost.len()
            ));
        }
        // Non-renegable and abandoned chunks hold no payload; all others hold all of it.
        let mut kept = self.kept.iter().peekable();
        let mut places = self.first_place..;
        let unsound = self.ring.iter().find(|c| {
            let place = places.next().unwrap_or_default();
            while kept.next_if(|span| span.1 < place).is_some() {}
            let released = kept.peek().is_some_and(|span| span.0 <= place);
            let held = if released || c.abandoned { 0 } else { c.payload_len as usize };
            c.payload.len() != held || (released && c.fate != Fate::Acked)
        });
        if let Some(chunk) = unsound {
            return Err(format!("kept by the receiver {:?}, and {chunk:?}", self.kept));
        }
        let skippable = self.first_place + self.to_be_skipped().count() as u64;
        if skippable != self.skippable {
            return Err(format!("skippable up to {skippable}, counted {}", self.skippable));
        }
        self.reserved.check(self.ring.iter())
    }
}

/// Converts the gap blocks of a SACK whose cumulative TSN ack is the ack point to places. A block
/// that begins within or below an earlier one is ignored.
fn spans_of(first_place: u64, gaps: impl Iterator<Item = GapBlock>, spans: &mut Vec<Span>) {
    spans.clear();
    // Gap blocks count from the ack point, one below the ring.
    let base = first_place.wrapping_sub(1);
    for g in gaps.filter(|g| g.is_sound()) {
        let first = base.wrapping_add(g.start.into());
        let last = base.wrapping_add(g.end.into());
        match spans.last_mut() {
            Some(l) if first <= l.1 => {}
            Some(l) if first == l.1 + 1 => l.1 = last,
            _ => spans.push((first, last)),
        }
    }
}

/// Places in `a` or `b`; both ascend.
fn union(a: &[Span], b: &[Span]) -> Vec<Span> {
    let mut all: Vec<Span> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let mut spans: Vec<Span> = Vec::with_capacity(all.len());
    for span in all {
        match spans.last_mut() {
            Some(l) if span.0 <= l.1 + 1 => l.1 = l.1.max(span.1),
            _ => spans.push(span),
        }
    }
    spans
}

/// Places in both `a` and `b`; both ascend.
fn intersection(a: &[Span], b: &[Span]) -> Vec<Span> {
    let mut spans = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let span = (x.0.max(y.0), x.1.min(y.1));
        if span.0 <= span.1 {
            spans.push(span);
        }
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    spans
}

/// Calls `each` with every place in `a` that is not in `b`; both ascend.
fn difference(a: &[Span], b: &[Span], mut each: impl FnMut(u64)) {
    let mut b = b.iter().peekable();
    for &(first, last) in a {
        let mut place = first;
        while place <= last {
            while b.next_if(|s| s.1 < place).is_some() {}
            let stop = match b.peek() {
                Some(s) if s.0 <= place => {
                    place = s.1 + 1;
                    continue;
                }
                Some(s) => s.0.min(last + 1),
                None => last + 1,
            };
            (place..stop).for_each(&mut each);
            place = stop;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    pub(super) fn chunk() -> NewChunk {
        NewChunk {
            stream: StreamId(0),
            mid: Mid(0),
            fsn: None,
            ppid: Ppid(0),
            unordered: false,
            beginning: true,
            end: true,
            immediate: false,
            payload: Bytes::from_static(b"1234"),
            partial: None,
        }
    }

    #[test]
    fn gaps_come_and_go() {
        let mut f = InFlight::new(Tsn(u32::MAX - 1));
        for _ in 0..6 {
            f.push(chunk(), PathId(0));
        }
        let gap = |start, end| GapBlock { start, end };
        let (mut acked, mut reneged) = (vec![], vec![]);
        f.ack_gaps(
            [gap(2, 3), gap(5, 5)].into_iter(),
            |t, _, _| acked.push(t.0),
            |t, _| reneged.push(t.0),
        );
        assert_eq!((&acked[..], &reneged[..]), (&[u32::MAX, 0, 2][..], &[][..]));
        assert_eq!(f.bytes(), 60);
        let mut missing = vec![];
        f.for_each_missing(f.highest_acked(), false, |t, _| missing.push(t.0));
        assert_eq!(missing, [u32::MAX - 1, 1]);
        acked.clear();
        f.ack_gaps([gap(3, 4)].into_iter(), |t, _, _| acked.push(t.0), |t, _| reneged.push(t.0));
        assert_eq!((&acked[..], &reneged[..]), (&[1][..], &[u32::MAX, 2][..]));
        f.check().unwrap();
        let mut gone = 0;
        f.ack_cumulative(Tsn(1), |_, _, _| gone += 1);
        assert_eq!((gone, f.ack_point(), f.highest()), (4, Tsn(1), Tsn(3)));
        f.check().unwrap();
    }

    proptest! {
        /// Compares random SACKs, losses and retransmissions with a plain map.
        #[test]
        fn agrees_with_a_map(start in any::<u32>(), steps in prop::collection::vec((0u8..5, any::<u16>(), any::<u32>()), 1..80)) {
            let mut f = InFlight::new(Tsn(start));
            let mut model: BTreeMap<u32, Fate> = BTreeMap::new();
            let (mut first, mut next) = (0u32, 0u32);
            for (what, a, bits) in steps {
                match what {
                    0 | 1 => for _ in 0..a % 8 {
                        let (tsn, _) = f.push(chunk(), PathId(0));
                        prop_assert_eq!(tsn, Tsn(start).plus(next));
                        model.insert(next, Fate::InFlight);
                        next += 1;
                    },
                    2 => {
                        let n = u32::from(a) % (next - first + 1);
                        if n == 0 { continue; }
                        let mut seen = vec![];
                        f.ack_cumulative(Tsn(start).plus(first + n - 1), |t, _, fate| seen.push((t.offset_from(Tsn(start)), fate)));
                        let expected: Vec<_> = (first..first + n).map(|k| (k, model.remove(&k).unwrap())).collect();
                        prop_assert_eq!(seen, expected);
                        first += n;
                    }
                    3 => {
                        // A SACK that acknowledges the chunks whose bit is set, never the first.
                        let set: Vec<u32> = (first + 1..next).filter(|k| bits >> ((k - first) % 32) & 1 == 1).collect();
                        let gaps = set.iter().map(|k| { let o = (k - first + 1) as u16; GapBlock { start: o, end: o } });
                        let (mut acked, mut reneged) = (vec![], vec![]);
                        f.ack_gaps(gaps, |t, _, fate| acked.push((t.offset_from(Tsn(start)), fate)), |t, _| reneged.push(t.offset_from(Tsn(start))));
                        let mut expected = (vec![], vec![]);
                        for (k, fate) in &mut model {
                            let now = set.contains(k);
                            if now && *fate != Fate::Acked { expected.0.push((*k, *fate)); *fate = Fate::Acked; }
                            else if !now && *fate == Fate::Acked { expected.1.push(*k); *fate = Fate::InFlight; }
                        }
                        prop_assert_eq!((acked, reneged), expected);
                    }
                    _ => {
                        if next == first { continue; }
                        let k = first + u32::from(a) % (next - first);
                        let tsn = Tsn(start).plus(k);
                        if f.mark_lost(tsn, LossCause::Timeout) {
                            prop_assert_eq!(model.insert(k, Fate::Lost(LossCause::Timeout)), Some(Fate::InFlight));
                        } else if matches!(model[&k], Fate::Lost(_)) {
                            f.resend(tsn, PathId(1), f.highest());
                            model.insert(k, Fate::InFlight);
                        }
                    }
                }
                prop_assert_eq!(f.check(), Ok(()));
                let lowest = model.iter().find(|(_, v)| matches!(v, Fate::Lost(_))).map(|(k, _)| Tsn(start).plus(*k));
                prop_assert_eq!(f.first_lost().map(|l| l.0), lowest);
            }
        }
    }
}
