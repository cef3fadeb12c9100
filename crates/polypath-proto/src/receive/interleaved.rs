//! Reassembly of messages from I-DATA chunks (RFC 8260 2.2.3): fragments are numbered within their
//! message, and fragments of several messages may be interleaved.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};

use super::reassembly::{Dropped, FragmentError, Joined, Piece};
use super::tsns::TsnTracker;
use crate::allocation::{ALLOCATION, tree};
use crate::ids::{Mid, Ppid, StreamId};
use crate::streams::Streams;
use crate::wire::{IData, Mark};

/// Identifies a message: stream, whether it is unordered, and message identifier.
type Key = (StreamId, bool, MidKey);

/// A message identifier as a key. Its numeric order is not the serial order of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MidKey(u32);

/// Memory of an incomplete message.
pub(crate) const INCOMPLETE: usize = tree(8 + 72);
/// Memory of the first node of an incomplete message's fragment tree, and of its entry among the
/// messages eligible for partial delivery.
pub(super) const FRAGMENTS: usize = 11 * 48 + ALLOCATION + tree(16);
/// Memory of a fragment of an incomplete message, also recorded above a gap.
pub(super) const FRAGMENT: usize = tree(48) + tree(24) + ALLOCATION;

/// A fragment: the place of its TSN, and its bytes.
type Fragment = (u64, Bytes);

#[derive(Debug, Default)]
struct Incomplete {
    /// By fragment sequence number.
    fragments: BTreeMap<u32, Fragment>,
    /// The next fragment to deliver; above 0 once a part of the message was delivered.
    next: u32,
    last: Option<u32>,
    ppid: Ppid,
    bytes: usize,
    /// Whether it is unordered, or the next message of its stream.
    turn: bool,
    /// Its bytes in its entry in `Interleaved::heads`, if it has one.
    listed: Option<usize>,
    /// Whether it holds no fragments: all that arrived were delivered.
    idle: bool,
}

impl Incomplete {
    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.fragments.len() as u64 == u64::from(last - self.next) + 1)
    }

    /// Takes the first `n` fragments out as a piece.
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
        if self.fragments.is_empty() {
            // An empty tree that was used keeps a node.
            self.fragments = BTreeMap::new();
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
    /// Fragments that arrived above a gap, by the place of their TSN. These may be reneged.
    early: BTreeMap<u64, (Key, u32)>,
    /// For each stream, the last message that the peer abandoned.
    skipped: BTreeMap<(StreamId, bool), Mid>,
    bytes: usize,
    chunks: u32,
    /// Messages that can be delivered in part, by their bytes: `turn` is set, and the next fragment
    /// has arrived.
    heads: BTreeSet<(usize, Key)>,
    /// Number of idle messages.
    idle: usize,
}

impl Interleaved {
    /// Whether the peer abandoned this chunk's message.
    pub(crate) fn is_skipped(&self, data: &IData<'_>) -> bool {
        let skipped = self.skipped.get(&(data.stream, data.unordered));
        skipped.is_some_and(|mid| !data.mid.is_after(*mid))
    }

    /// Adds the chunk at this place, which `tsns` has not recorded yet. `turn`: its message is
    /// unordered, or the next one of its stream.
    pub(crate) fn insert(
        &mut self,
        data: &IData<'_>,
        place: u64,
        turn: bool,
        tsns: &TsnTracker,
    ) -> Result<Joined, FragmentError> {
        let key = (data.stream, data.unordered, MidKey(data.mid.0));
        let fsn = match data.mark {
            Mark::Beginning(_) => 0,
            // RFC 8260 2.1: only the first fragment has the number 0.
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
        message.turn = turn;
        self.bytes += payload.len();
        self.chunks += 1;
        message.fragments.insert(fsn, (place, payload));
        if message.is_complete() {
            let n = message.fragments.len();
            let piece = message.take(key, n, true);
            self.remove(key);
            self.taken(&piece);
            return Ok(Joined::Completes(piece));
        }
        if place != tsns.place() + 1 {
            self.early.insert(place, (key, fsn));
        }
        self.list(key);
        Ok(Joined::Waits)
    }

    /// This ordered message is now the next one of its stream.
    pub(crate) fn turn(&mut self, stream: StreamId, mid: Mid) {
        let key = (stream, false, MidKey(mid.0));
        let before = self.messages.get_mut(&key).map(|m| std::mem::replace(&mut m.turn, true));
        if before == Some(false) {
            self.list(key);
        }
    }

    /// Updates `idle` and `heads` after a message has changed.
    fn list(&mut self, key: Key) {
        let Some(m) = self.messages.get_mut(&key) else { return };
        self.idle -= usize::from(m.idle);
        m.idle = m.fragments.is_empty();
        self.idle += usize::from(m.idle);
        let now = (m.turn && m.fragments.contains_key(&m.next)).then_some(m.bytes);
        let before = std::mem::replace(&mut m.listed, now);
        if before != now {
            before.map(|bytes| self.heads.remove(&(bytes, key)));
            now.map(|bytes| self.heads.insert((bytes, key)));
        }
    }

    fn remove(&mut self, key: Key) -> Option<Incomplete> {
        let message = self.messages.remove(&key)?;
        self.idle -= usize::from(message.idle);
        message.listed.map(|bytes| self.heads.remove(&(bytes, key)));
        Some(message)
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

    /// Place of the highest fragment that arrived above a gap, if that is above `place`.
    pub(crate) fn highest_above(&self, place: u64) -> Option<u64> {
        self.early.last_key_value().map(|(&highest, _)| highest).filter(|highest| *highest > place)
    }

    /// Drops that fragment; returns its place, its payload bytes and its number of chunks.
    pub(crate) fn evict_highest(&mut self) -> Option<(u64, usize, u32)> {
        let (place, (key, fsn)) = self.early.pop_last()?;
        let message = self.messages.get_mut(&key)?;
        let bytes = message.fragments.remove(&fsn)?.1.len();
        message.bytes -= bytes;
        message.last = message.last.filter(|last| *last != fsn);
        if message.fragments.is_empty() && message.next == 0 {
            self.remove(key);
        }
        self.list(key);
        self.bytes -= bytes;
        self.chunks -= 1;
        Some((place, bytes, 1))
    }

    /// Takes a piece of the largest message that can be delivered in part (RFC 9260 6.9): all of it
    /// that has arrived from its beginning, or from the last piece, up to the first missing
    /// fragment. `large` decides by the message's bytes and chunks whether to deliver it.
    pub(crate) fn take_partial(&mut self, large: impl Fn(usize, u32) -> bool) -> Option<Piece> {
        let &(bytes, key) = self.heads.last()?;
        let m = self.messages.get_mut(&key)?;
        if !large(bytes, m.fragments.len() as u32) {
            return None;
        }
        let n = m.fragments.keys().zip(m.next..).take_while(|(at, fsn)| **at == *fsn).count();
        let piece = m.take(key, n, false);
        self.taken(&piece);
        self.list(key);
        Some(piece)
    }

    /// Drops the messages of a stream up to this one: the peer abandoned them (RFC 8260 2.3.1).
    pub(crate) fn skip(&mut self, stream: StreamId, unordered: bool, mid: Mid) -> Vec<Dropped> {
        let skipped = self.skipped.entry((stream, unordered)).or_insert(mid);
        if mid.is_after(*skipped) {
            *skipped = mid;
        }
        // The half of the number space below `mid`, which may wrap around.
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

    /// The peer restarts the message identifiers of these streams. It must have finished all
    /// messages before, so incomplete ones are dropped.
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
        let message = self.remove(key)?;
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

    /// Whether no message is incomplete.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Payload bytes held, and the number of their chunks.
    pub(crate) const fn held(&self) -> (usize, u32) {
        (self.bytes, self.chunks)
    }

    /// Bytes of memory in use, not counting one idle message for each of `streams` streams. Those
    /// count as memory of the streams, since no window keeps a peer from beginning a message on
    /// each.
    pub(crate) fn memory(&self, streams: u16) -> usize {
        let with_fragments = self.messages.len() - self.idle;
        self.bytes
            + self.idle.saturating_sub(streams.into()) * INCOMPLETE
            + with_fragments * (INCOMPLETE + FRAGMENTS)
            + self.chunks as usize * FRAGMENT
    }

    /// The peer restarted: drops all fragments.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Checks the counts.
    pub(crate) fn check(&self) -> Result<(), String> {
        let all = self.messages.values().flat_map(|m| m.fragments.values());
        let (bytes, chunks) = all.fold((0, 0), |(b, c), f| (b + f.1.len(), c + 1));
        let known = |(place, (key, fsn)): (&u64, &(Key, u32))| {
            let fragment = self.messages.get(key).and_then(|m| m.fragments.get(fsn));
            fragment.is_some_and(|f| f.0 == *place)
        };
        let head = |m: &Incomplete| m.turn && m.fragments.contains_key(&m.next);
        let mut heads = self.messages.iter().filter(|(_, m)| head(m)).map(|(k, m)| (m.bytes, *k));
        let listed = self.messages.values().filter(|m| head(m)).count() == self.heads.len()
            && heads.all(|head| self.heads.contains(&head));
        let idle = self.messages.values().filter(|m| m.fragments.is_empty()).count() == self.idle;
        let sound = listed && idle && self.early.iter().all(known);
        if (bytes, chunks) != self.held() || !sound {
            return Err(format!(
                "interleaved: {bytes} bytes in {chunks} chunks, {:?}",
                self.held()
            ));
        }
        Ok(())
    }
}
