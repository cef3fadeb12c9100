//! I-DATA chunks become messages again (RFC 8260 2.2.3): fragments are numbered within their message,
//! and those of several messages arrive by turns.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use super::reassembly::{Dropped, FragmentError, Joined, Piece};
use super::tsns::TsnTracker;
use crate::budget;
use crate::send::Streams;
use crate::wire::{IData, Mark};
use crate::{Mid, Ppid, StreamId};

/// A message of a stream, ordered or not.
type Key = (StreamId, bool, MidKey);

/// A message identifier as a key; which one comes first, only serial comparison tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MidKey(u32);

/// Of so many messages that have begun, one is sought to be handed over in part; more hold nothing up,
/// for what holds them up can be reneged.
const MOST_CANDIDATES: usize = 32;

/// A fragment: the place of its TSN, and its bytes.
type Fragment = (u64, Bytes);

#[derive(Debug, Default)]
struct Incomplete {
    /// By number.
    fragments: BTreeMap<u32, Fragment>,
    /// The next fragment to hand over; above 0 once a part of the message was.
    next: u32,
    last: Option<u32>,
    ppid: Ppid,
    bytes: usize,
}

impl Incomplete {
    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.fragments.len() as u64 == u64::from(last - self.next) + 1)
    }

    /// Takes the first `n` fragments.
    fn take(&mut self, key: Key, n: usize, end: bool) -> Piece {
        let beginning = self.next == 0;
        self.next += n as u32;
        let mut places = Vec::with_capacity(n);
        let mut joined = BytesMut::new();
        let mut payload = Bytes::new();
        for _ in 0..n {
            let Some((_, (place, bytes))) = self.fragments.pop_first() else { break };
            places.push(place);
            self.bytes -= bytes.len();
            if n == 1 {
                payload = bytes;
            } else {
                if joined.is_empty() {
                    let rest: usize = self.fragments.values().take(n - 1).map(|f| f.1.len()).sum();
                    joined.reserve(bytes.len() + rest);
                }
                joined.extend_from_slice(&bytes);
            }
        }
        let first = places.iter().copied().min().unwrap_or_default();
        Piece {
            stream: key.0,
            number: key.2.0,
            ppid: self.ppid,
            unordered: key.1,
            beginning,
            end,
            aborted: false,
            block: None,
            payload: if n == 1 { payload } else { joined.freeze() },
            chunks: n as u32,
            places: (first, first),
            scattered: places.into(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Interleaved {
    messages: BTreeMap<Key, Incomplete>,
    /// Fragments that came above a gap, by the place of their TSN: those that may be reneged.
    early: BTreeMap<u64, (Key, u32)>,
    /// Messages up to these were given up.
    skipped: BTreeMap<(StreamId, bool), Mid>,
    bytes: usize,
    chunks: u32,
    /// The message that has grown largest.
    largest: Option<Key>,
    /// Operations, see [`budget`].
    looked: u64,
}

impl Interleaved {
    /// Operations so far.
    pub(crate) const fn looked(&self) -> u64 {
        self.looked
    }

    /// The message was given up: what comes of it is of no use.
    pub(crate) fn is_skipped(&self, data: &IData<'_>) -> bool {
        let skipped = self.skipped.get(&(data.stream, data.unordered));
        skipped.is_some_and(|mid| !data.mid.is_after(*mid))
    }

    /// Takes a chunk at this place, which is new to `tsns`.
    pub(crate) fn insert(
        &mut self,
        data: &IData<'_>,
        place: u64,
        tsns: &TsnTracker,
    ) -> Result<Joined, FragmentError> {
        let key = (data.stream, data.unordered, MidKey(data.mid.0));
        let fsn = match data.mark {
            Mark::Beginning(_) => 0,
            // RFC 8260 2.1: the first fragment has the number 0, and no other.
            Mark::Fragment(0) => return Err(FragmentError),
            Mark::Fragment(fsn) => fsn,
        };
        let known = self.messages.get_mut(&key);
        if let Mark::Beginning(ppid) = data.mark
            && data.end
            && known.is_none()
        {
            return Ok(Joined::Completes(Self::whole(data, ppid, place)));
        }
        let message = match known {
            Some(message) => message,
            None => self.messages.entry(key).or_default(),
        };
        let highest = message.fragments.last_key_value().map(|(fsn, _)| *fsn);
        let twice = fsn < message.next || message.fragments.contains_key(&fsn);
        let beyond = message.last.is_some_and(|last| data.end || fsn > last)
            || (data.end && highest.is_some_and(|highest| highest > fsn));
        if twice || beyond {
            return Err(FragmentError);
        }
        if let Mark::Beginning(ppid) = data.mark {
            message.ppid = ppid;
        }
        if data.end {
            message.last = Some(fsn);
        }
        let payload = Bytes::copy_from_slice(data.payload);
        message.bytes += payload.len();
        self.bytes += payload.len();
        self.chunks += 1;
        message.fragments.insert(fsn, (place, payload));
        if message.is_complete() {
            let n = message.fragments.len();
            let piece = message.take(key, n, true);
            self.messages.remove(&key);
            self.taken(&piece);
            return Ok(Joined::Completes(piece));
        }
        let bytes = message.bytes;
        if place != tsns.place() + 1 {
            self.early.insert(place, (key, fsn));
        }
        let largest = self.largest.and_then(|key| self.messages.get(&key));
        if largest.is_none_or(|m| m.bytes <= bytes) {
            self.largest = Some(key);
        }
        Ok(Joined::Waits)
    }

    fn whole(data: &IData<'_>, ppid: Ppid, place: u64) -> Piece {
        Piece {
            stream: data.stream,
            number: data.mid.0,
            ppid,
            unordered: data.unordered,
            beginning: true,
            end: true,
            aborted: false,
            block: None,
            payload: Bytes::copy_from_slice(data.payload),
            chunks: 1,
            places: (place, place),
            scattered: Box::default(),
        }
    }

    fn taken(&mut self, piece: &Piece) {
        self.bytes -= piece.payload.len();
        self.chunks -= piece.chunks;
        self.forget_places(piece.scattered.iter().copied());
    }

    fn forget_places(&mut self, places: impl Iterator<Item = u64>) {
        if !self.early.is_empty() {
            for place in places {
                self.early.remove(&place);
            }
        }
    }

    /// The highest fragment that came above a gap, if it lies above this place: where.
    pub(crate) fn highest_above(&self, place: u64) -> Option<u64> {
        self.early.last_key_value().map(|(&highest, _)| highest).filter(|highest| *highest > place)
    }

    /// Forgets that fragment: its place, its bytes and chunks.
    pub(crate) fn evict_highest(&mut self) -> Option<(u64, usize, u32)> {
        let (place, (key, fsn)) = self.early.pop_last()?;
        let message = self.messages.get_mut(&key)?;
        let bytes = message.fragments.remove(&fsn)?.1.len();
        message.bytes -= bytes;
        message.last = message.last.filter(|last| *last != fsn);
        if message.fragments.is_empty() && message.next == 0 {
            self.messages.remove(&key);
        }
        self.bytes -= bytes;
        self.chunks -= 1;
        Some((place, bytes, 1))
    }

    /// A piece of an unfinished message: all of it from its beginning, or from the last piece on, that
    /// has arrived up to the place of the cumulative TSN (partial delivery, RFC 9260 6.9). `large` says
    /// whether so many bytes in so many chunks are too much to hold; `ready` whether its stream has come to
    /// the message. Only the largest message is looked at unless `any` may be taken.
    pub(crate) fn take_partial(
        &mut self,
        cumulative: u64,
        any: bool,
        large: impl Fn(usize, u32) -> bool,
        ready: impl Fn(StreamId, u32, bool) -> bool,
    ) -> Option<Piece> {
        let begins = |key: &Key, m: &Incomplete| {
            let first = m.fragments.get(&m.next).is_some_and(|f| f.0 <= cumulative);
            first && large(m.bytes, m.fragments.len() as u32) && ready(key.0, key.2.0, key.1)
        };
        let largest = self.largest.and_then(|key| self.messages.get_key_value(&key));
        let mut found = largest.filter(|(key, m)| begins(key, m));
        if found.is_none() && any {
            let candidates = self.messages.iter().take(MOST_CANDIDATES);
            let mut looked = 0;
            found = candidates.inspect(|_| looked += 1).find(|(key, m)| begins(key, m));
            self.looked += looked;
        }
        let (key, m) = found.map(|(key, m)| (*key, m))?;
        let in_line = m.fragments.iter().zip(m.next..);
        let n = in_line.take_while(|((at, f), fsn)| **at == *fsn && f.0 <= cumulative).count();
        let piece = self.messages.get_mut(&key)?.take(key, n, false);
        self.taken(&piece);
        Some(piece)
    }

    /// Drops the messages of a stream up to this one: they were given up (RFC 8260 2.3.1).
    pub(crate) fn skip(&mut self, stream: StreamId, unordered: bool, mid: Mid) -> Vec<Dropped> {
        let skipped = self.skipped.entry((stream, unordered)).or_insert(mid);
        if mid.is_after(*skipped) {
            *skipped = mid;
        }
        // The half circle below `mid`, which may come around.
        let lowest = mid.0.wrapping_sub(u32::MAX / 2);
        let halves = if lowest <= mid.0 {
            [(lowest, mid.0), (1, 0)]
        } else {
            [(0, mid.0), (lowest, u32::MAX)]
        };
        let mut dropped = Vec::new();
        for (from, to) in halves.into_iter().filter(|half| half.0 <= half.1) {
            let key = |mid| (stream, unordered, MidKey(mid));
            while let Some((&key, _)) = self.messages.range(key(from)..=key(to)).next() {
                dropped.extend(self.drop_message(key));
            }
        }
        dropped
    }

    /// The peer begins anew with the numbers of these streams, having sent all of what it began: what is
    /// here of an unfinished message was never finished, and is dropped.
    pub(crate) fn reset(&mut self, streams: &Streams) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        match streams {
            Streams::All => {
                self.skipped.clear();
                while let Some((&key, _)) = self.messages.first_key_value() {
                    dropped.extend(self.drop_message(key));
                }
            }
            Streams::Some(listed) => {
                for stream in listed.iter().map(|id| StreamId(*id)) {
                    for unordered in [false, true] {
                        self.skipped.remove(&(stream, unordered));
                        let key = |mid| (stream, unordered, MidKey(mid));
                        let all = key(0)..=key(u32::MAX);
                        while let Some((&key, _)) = self.messages.range(all.clone()).next() {
                            dropped.extend(self.drop_message(key));
                        }
                    }
                }
            }
        }
        dropped
    }

    fn drop_message(&mut self, key: Key) -> Option<Dropped> {
        let message = self.messages.remove(&key)?;
        self.forget_places(message.fragments.values().map(|f| f.0));
        let chunks = message.fragments.len() as u32;
        self.bytes -= message.bytes;
        self.chunks -= chunks;
        let aborted = (message.next > 0).then(|| Piece {
            stream: key.0,
            number: key.2.0,
            ppid: message.ppid,
            unordered: key.1,
            beginning: false,
            end: false,
            aborted: true,
            block: None,
            payload: Bytes::new(),
            chunks: 0,
            places: Default::default(),
            scattered: Box::default(),
        });
        Some(Dropped { bytes: message.bytes, chunks, aborted })
    }

    /// Bytes held, and chunks that they came in.
    pub(crate) const fn held(&self) -> (usize, u32) {
        (self.bytes, self.chunks)
    }

    /// Bytes of memory that this takes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes
            + self.messages.len() * budget::INCOMPLETE
            + self.chunks as usize * budget::FRAGMENT
    }

    /// Everything received so far belongs to the past (restart).
    pub(crate) fn clear(&mut self) {
        *self = Self { looked: self.looked, ..Self::default() };
    }

    /// The counts agree with what is there.
    pub(crate) fn check(&self) -> Result<(), String> {
        let all = self.messages.values().flat_map(|m| m.fragments.values());
        let (bytes, chunks) = all.fold((0, 0), |(b, c), f| (b + f.1.len(), c + 1));
        let known = |(place, (key, fsn)): (&u64, &(Key, u32))| {
            let fragment = self.messages.get(key).and_then(|m| m.fragments.get(fsn));
            fragment.is_some_and(|f| f.0 == *place)
        };
        if (bytes, chunks) != self.held() || !self.early.iter().all(known) {
            return Err(format!(
                "interleaved: {bytes} bytes in {chunks} chunks, {:?}",
                self.held()
            ));
        }
        Ok(())
    }
}
