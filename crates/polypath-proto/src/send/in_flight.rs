//! Chunks that have a TSN and are not yet cumulatively acknowledged: a ring indexed by TSN offset.
//!
//! Processing a SACK costs O(acknowledged + gap blocks), never a walk over all outstanding chunks.

use std::collections::{BTreeSet, VecDeque};

use super::queue::NewChunk;
use crate::allocation::tree;
use crate::ids::{PathId, Tsn};
use crate::path::SentHere;
use crate::policy::retransmission::LossCause;
use crate::time::Time;

mod abandon;
pub(crate) mod acked;
pub(super) mod outstanding;
mod reserved;
mod spans;

use outstanding::{Abandonment, FastRetransmission, Fate, Outstanding, Route};
use reserved::Reserved;
use spans::Span;

/// Memory of a chunk not yet cumulatively acknowledged: in the ring, in the list of its path, among
/// the lost chunks, and in the lists of chunks that a SACK acknowledges and reports missing.
pub(super) const OUTSTANDING: usize = 2 * size_of::<Outstanding>() + 2 * 8 + tree(8) + 96;

/// A ring for up to this number of chunks keeps its memory.
const SPARE_CHUNKS: usize = 1024;

/// TSNs are assigned up to this distance above the cumulative TSN ack point, exclusive: gap blocks
/// reach no further (RFC 9260 3.3.4), so that a chunk beyond it would stay in flight until
/// everything missing below it has arrived.
const MOST_TSNS: u64 = 1 << 16;

/// The same with wide SACKs: 380 MB in packets of 1500 bytes.
const MOST_TSNS_WIDE: u64 = 1 << 18;

/// Fewer ordered messages than this are in that window, if they have stream sequence numbers. RFC
/// 9260 6.1 allows 2^16 - 1 of a stream, but receivers compare the numbers by serial arithmetic
/// (1.6), which has 15 bits for "after".
pub(super) const MOST_MESSAGES: usize = 1 << 15;

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
    /// Number of chunks that begin an ordered message with a stream sequence number.
    numbered: usize,
    /// Places of the chunks after which a stream reset was requested: message identifiers of later
    /// chunks start anew.
    resets: VecDeque<u64>,
    /// Place up to which, exclusive, a FORWARD TSN may skip.
    skippable: u64,
    /// A chunk was lost whose message may be abandoned.
    partly_lost: bool,
    /// Operations so far; see [`budget`](crate::budget).
    looked: u64,
    reserved: Reserved,
    /// Whether chunks count with their padding (RFC 9260 7.2).
    padded: bool,
    /// TSNs are assigned up to this distance above the cumulative TSN ack point, exclusive.
    most_tsns: u64,
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
            numbered: 0,
            resets: VecDeque::new(),
            skippable: 0,
            partly_lost: false,
            looked: 0,
            reserved: Reserved::new(),
            padded: true,
            most_tsns: MOST_TSNS,
        }
    }

    /// Sets whether chunks count with their padding (RFC 9260 7.2).
    pub(crate) const fn count_padding(&mut self, counts: bool) {
        self.padded = counts;
    }

    /// Sets whether gap blocks have offsets of 32 bits.
    pub(crate) const fn reach_far(&mut self, wide: bool) {
        self.most_tsns = if wide { MOST_TSNS_WIDE } else { MOST_TSNS };
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
        // One more message may have begun below the window.
        self.ring.len() as u64 + 1 >= self.most_tsns || self.numbered + 2 > MOST_MESSAGES
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
    pub(crate) fn place_of(&self, tsn: Tsn) -> u64 {
        self.first_place + u64::from(tsn.offset_from(self.first))
    }

    /// Assigns a TSN to a new chunk that is sent on `path`.
    pub(crate) fn push(&mut self, chunk: NewChunk, path: PathId) -> (Tsn, &Outstanding) {
        let tsn = self.next_tsn();
        let out = Outstanding::new(chunk, path, self.padded);
        self.bytes += out.size();
        self.numbered += usize::from(out.is_numbered());
        self.ring.push_back(out);
        let at = self.ring.len() - 1;
        (tsn, &self.ring[at])
    }

    /// Assigns a TSN to a new chunk that is sent later.
    pub(super) fn push_reserved(&mut self, chunk: NewChunk) -> &Outstanding {
        let mut out = Outstanding::new(chunk, PathId(0), self.padded);
        out.fate = Fate::Reserved;
        self.numbered += usize::from(out.is_numbered());
        self.ring.push_back(out);
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

    /// The lowest chunk that waits for retransmission.
    pub(crate) fn first_lost(&self) -> Option<(Tsn, &Outstanding, LossCause)> {
        self.lost_from(self.first)
    }

    /// The lowest chunk at or above `tsn` that waits for retransmission.
    pub(crate) fn lost_from(&self, tsn: Tsn) -> Option<(Tsn, &Outstanding, LossCause)> {
        self.lost_where(tsn, |_, _| true)
    }

    /// The lowest chunk at or above `tsn` that waits for retransmission and that `counts` selects.
    pub(crate) fn lost_where(
        &self,
        tsn: Tsn,
        counts: impl Fn(&Outstanding, LossCause) -> bool,
    ) -> Option<(Tsn, &Outstanding, LossCause)> {
        self.lost.range(self.place_of(tsn)..).find_map(|&place| {
            let chunk = &self.ring[(place - self.first_place) as usize];
            let Fate::Lost(cause) = chunk.fate else { return None };
            counts(chunk, cause).then(|| (self.tsn_at(place), chunk, cause))
        })
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
        if chunk.fate == Fate::Lost(LossCause::FastRetransmit) {
            chunk.fast = FastRetransmission::Last;
            chunk.own_recover = Some(highest);
        } else if chunk.was_fast_retransmitted() {
            chunk.fast = FastRetransmission::Once;
        }
        chunk.fate = Fate::InFlight;
        let old = std::mem::replace(&mut chunk.path, path);
        if old != path {
            chunk.route = Route::SeveralPaths;
        }
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
            if chunk.abandonment == Abandonment::InFlight {
                chunk.abandonment = Abandonment::Settled;
            }
            return false;
        }
        let was_in_flight = chunk.fate == Fate::InFlight;
        chunk.fate = Fate::Lost(cause);
        chunk.reports = 0;
        if cause == LossCause::FastRetransmit {
            chunk.note_fast_retransmission();
        }
        if was_in_flight {
            self.bytes -= chunk.size();
            self.partly_lost |= chunk.content.partial.is_some();
            self.lost.insert(self.first_place + offset as u64);
        }
        was_in_flight
    }

    /// A timeout on `path` was spurious: chunks sent on it before `since` that it marked lost, and
    /// that were not retransmitted, are in flight again. Returns them with their sizes, in the
    /// order in which they were sent.
    pub(crate) fn unmark(&mut self, path: PathId, since: Time) -> Vec<(SentHere, u32)> {
        let Self { lost, ring, first, first_place, bytes, .. } = self;
        let mut found = Vec::new();
        lost.retain(|place| {
            let offset = (place - *first_place) as usize;
            let chunk = &mut ring[offset];
            let late = chunk.path == path
                && chunk.fate == Fate::Lost(LossCause::Timeout)
                && chunk.sent < since;
            if late {
                chunk.fate = Fate::InFlight;
                *bytes += chunk.size();
                let tsn = first.plus(offset as u32);
                let entry = SentHere { tsn, transmissions: chunk.transmissions };
                found.push((chunk.sent, entry, chunk.size()));
            }
            !late
        });
        found.sort_by_key(|&(sent, entry, _)| (sent, self.place_of(entry.tsn)));
        found.into_iter().map(|(_, entry, size)| (entry, size)).collect()
    }

    /// Number of runs that the last gap blocks acknowledge.
    pub(crate) fn blocks(&self) -> usize {
        self.acked.len()
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

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Tsn, &Outstanding)> {
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
        let abandoned = self.ring.iter().filter(|c| c.is_abandoned()).count();
        let wrong = self.ring.iter().any(|c| c.fate == Fate::Abandoned && !c.is_abandoned());
        if abandoned != self.abandoned || wrong {
            return Err(format!("{abandoned} chunks given up, but counted {}", self.abandoned));
        }
        let numbered = self.ring.iter().filter(|c| c.is_numbered()).count();
        if numbered != self.numbered {
            return Err(format!("{numbered} messages begin, but counted {}", self.numbered));
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
            let held = if released || c.is_abandoned() { 0 } else { c.payload_len as usize };
            c.content.payload.len() != held || (released && c.fate != Fate::Acked)
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

#[cfg(test)]
mod tests;
