//! Chunks that have a TSN and are not sent yet, because slower paths sent higher TSNs first.

use std::collections::{BTreeMap, BTreeSet};

use super::InFlight;
use super::outstanding::{Fate, Outstanding, Turn};
use crate::ids::{PathId, Tsn};
use crate::send::queue::SendQueue;

/// Places in a bucket. With up to 2^16 reserved chunks a search looks at some hundred entries.
const BUCKET: u64 = 128;

/// The chunks with [`Fate::Reserved`].
#[derive(Debug)]
pub(super) struct Reserved {
    /// Their places: offsets from the association's first TSN.
    places: BTreeSet<u64>,
    /// Their bytes, chunk headers included.
    bytes: usize,
    /// Their bytes by bucket of places; no bucket is empty.
    buckets: BTreeMap<u64, usize>,
    /// Largest payload in bytes reserved since the set was last empty.
    largest: usize,
    /// Bytes of chunks sent before lower TSNs and not cumulatively acknowledged.
    ahead: u32,
}

impl Reserved {
    pub(super) const fn new() -> Self {
        Self { places: BTreeSet::new(), bytes: 0, buckets: BTreeMap::new(), largest: 0, ahead: 0 }
    }

    fn insert(&mut self, place: u64, size: usize) {
        self.places.insert(place);
        self.bytes += size;
        *self.buckets.entry(place / BUCKET).or_default() += size;
    }

    /// A reserved chunk is sent, acknowledged or abandoned.
    pub(super) fn remove(&mut self, place: u64, size: u32) {
        if self.places.remove(&place) {
            self.bytes -= size as usize;
            if let Some(bytes) = self.buckets.get_mut(&(place / BUCKET)) {
                *bytes -= size as usize;
                if *bytes == 0 {
                    self.buckets.remove(&(place / BUCKET));
                }
            }
        }
        if self.places.is_empty() {
            self.largest = 0;
        }
    }

    /// A chunk is removed from the ring.
    pub(super) fn gone(&mut self, chunk: &Outstanding) {
        if chunk.turn == Turn::Ahead {
            self.ahead -= chunk.size();
        }
    }

    pub(super) fn check<'a>(
        &self,
        ring: impl Iterator<Item = &'a Outstanding>,
    ) -> Result<(), String> {
        if self.buckets.values().sum::<usize>() != self.bytes
            || self.buckets.values().any(|b| *b == 0)
        {
            return Err(format!("reserved: the buckets do not add up: {self:?}"));
        }
        let (mut count, mut bytes, mut ahead) = (0, 0, 0);
        for chunk in ring {
            if chunk.fate == Fate::Reserved {
                count += 1;
                bytes += chunk.size() as usize;
            }
            ahead += if chunk.turn == Turn::Ahead { chunk.size() } else { 0 };
        }
        if (count, bytes, ahead) == (self.places.len(), self.bytes, self.ahead) {
            return Ok(());
        }
        Err(format!(
            "reserved: {count} chunks of {bytes} bytes, {ahead} ahead, but counted {self:?}"
        ))
    }
}

impl InFlight {
    /// The lowest reserved chunk.
    pub(crate) fn first_reserved(&self) -> Option<(Tsn, &Outstanding)> {
        self.reserved.places.first().and_then(|&place| self.at(place))
    }

    /// The TSN of the highest reserved chunk.
    pub(crate) fn last_reserved(&self) -> Option<Tsn> {
        self.reserved.places.last().map(|&place| self.tsn_at(place))
    }

    /// The lowest reserved chunk with at least `ahead` reserved bytes below it and a TSN above
    /// `highest`; failing that, the highest reserved chunk.
    pub(crate) fn reserved_behind(&self, ahead: usize, highest: Option<Tsn>) -> Option<Tsn> {
        let last = self.last_reserved()?;
        let mut below = 0;
        let bucket = self.reserved.buckets.iter().find(|&(_, bytes)| {
            let reaches = below + bytes > ahead;
            below += if reaches { 0 } else { *bytes };
            reaches
        });
        let Some((bucket, _)) = bucket else { return Some(last) };
        let too_low = |tsn: Tsn| highest.is_some_and(|highest| !tsn.is_after(highest));
        let far_enough = self.reserved.places.range(bucket * BUCKET..).find(|&&place| {
            let found = below >= ahead;
            below += self.at(place).map_or(0, |(_, chunk)| chunk.size() as usize);
            found
        });
        let Some(&place) = far_enough else { return Some(last) };
        if !too_low(self.tsn_at(place)) {
            return Some(self.tsn_at(place));
        }
        let above = highest.map_or(place, |highest| self.place_of(highest) + 1);
        self.reserved.places.range(above..).next().map_or(Some(last), |&p| Some(self.tsn_at(p)))
    }

    /// Bytes of the reserved chunks, headers included.
    pub(crate) const fn reserved_bytes(&self) -> usize {
        self.reserved.bytes
    }

    /// Upper bound of the payload bytes of a reserved chunk.
    pub(crate) const fn largest_reserved(&self) -> usize {
        self.reserved.largest
    }

    /// Bytes sent before chunks with lower TSNs and not cumulatively acknowledged.
    pub(crate) const fn ahead(&self) -> u32 {
        self.reserved.ahead
    }

    /// Whether a TSN from `first` to `last` is reserved and not sent yet. Asked for every gap ack
    /// block, and nearly always nothing is reserved.
    #[inline]
    pub(crate) fn has_reserved_in(&self, first: Tsn, last: Tsn) -> bool {
        !self.reserved.places.is_empty() && self.has_some_reserved_in(first, last)
    }

    fn has_some_reserved_in(&self, first: Tsn, last: Tsn) -> bool {
        let span = self.place_of(first)..=self.place_of(last);
        !last.is_before(first) && self.reserved.places.range(span).next().is_some()
    }

    /// Marks a reserved chunk as sent on `path`; `highest` is the highest TSN sent on that path.
    pub(crate) fn send_reserved(
        &mut self,
        tsn: Tsn,
        path: PathId,
        highest: Option<Tsn>,
    ) -> &Outstanding {
        let place = self.place_of(tsn);
        let ahead = self.reserved.places.first().is_some_and(|&first| first < place);
        let chunk = self.begin(tsn, path);
        let size = chunk.size();
        chunk.turn = if ahead { Turn::Ahead } else { Turn::InOrder };
        // Otherwise higher TSNs sent before it would report it missing.
        chunk.own_recover = highest.filter(|highest| highest.is_after(tsn));
        self.reserved.ahead += if ahead { size } else { 0 };
        self.reserved.remove(place, size);
        self.at(place).map(|(_, chunk)| chunk).expect("it is there")
    }

    fn at(&self, place: u64) -> Option<(Tsn, &Outstanding)> {
        let tsn = self.tsn_at(place);
        self.get(tsn).map(|chunk| (tsn, chunk))
    }

    /// Reserves a TSN for the next queued chunk; false if the queue is empty or no TSN is free.
    pub(crate) fn reserve(&mut self, queue: &mut SendQueue, largest: usize) -> bool {
        let next = self.next_tsn();
        let place = self.place_of(next);
        if self.is_full() {
            return false;
        }
        let Some(chunk) = queue.next_size(largest, largest).and_then(|n| queue.take(n)) else {
            return false;
        };
        let chunk = self.push_reserved(chunk);
        let (size, payload) = (chunk.size() as usize, chunk.content.payload.len());
        self.reserved.insert(place, size);
        self.reserved.largest = self.reserved.largest.max(payload);
        true
    }
}
