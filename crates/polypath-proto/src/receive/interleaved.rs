//! I-DATA chunks become messages again (RFC 8260 2.2.3): fragments are numbered within their message,
//! and those of several messages arrive by turns.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};

use super::reassembly::{Dropped, FragmentError, Piece};
use crate::send::Streams;
use crate::wire::{IData, Mark};
use crate::{Mid, Ppid, StreamId, Tsn};

/// A message of a stream, ordered or not.
type Key = (StreamId, bool, MidKey);

/// A message identifier as a key; which one comes first, only serial comparison tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MidKey(u32);

/// Of so many messages that have begun, one is sought to be handed over in part; more hold nothing up,
/// for what holds them up can be reneged.
const MOST_CANDIDATES: usize = 256;

#[derive(Debug)]
struct Fragment {
    fsn: u32,
    tsn: Tsn,
    payload: Bytes,
}

#[derive(Debug, Default)]
struct Incomplete {
    /// By number.
    fragments: VecDeque<Fragment>,
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
        let taken: Vec<Fragment> = self.fragments.drain(..n).collect();
        let beginning = self.next == 0;
        self.next += n as u32;
        let payload = if let [whole] = &taken[..] {
            whole.payload.clone()
        } else {
            let mut joined = BytesMut::with_capacity(taken.iter().map(|f| f.payload.len()).sum());
            taken.iter().for_each(|f| joined.extend_from_slice(&f.payload));
            joined.freeze()
        };
        self.bytes -= payload.len();
        let first = taken.iter().map(|f| f.tsn).reduce(|a, b| if b.is_before(a) { b } else { a });
        let first = first.unwrap_or_default();
        Piece {
            stream: key.0,
            number: key.2.0,
            ppid: self.ppid,
            unordered: key.1,
            beginning,
            end,
            aborted: false,
            payload,
            chunks: n as u32,
            tsns: (first, first),
            scattered: taken.iter().map(|f| f.tsn).collect(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Interleaved {
    messages: BTreeMap<Key, Incomplete>,
    /// Fragments that came above a gap, by the place of their TSN: those that may be reneged.
    early: BTreeMap<u64, (Key, u32)>,
    /// A TSN and its place.
    base: (Tsn, u64),
    /// Messages up to these were given up.
    skipped: BTreeMap<(StreamId, bool), Mid>,
    bytes: usize,
    chunks: u32,
}

impl Interleaved {
    /// Places ascend with TSNs; the cumulative one never goes back.
    fn place(&mut self, cumulative: Tsn, tsn: Tsn) -> u64 {
        let moved = u64::from(cumulative.offset_from(self.base.0));
        self.base = (cumulative, self.base.1 + moved);
        self.base.1 + u64::from(tsn.offset_from(cumulative))
    }

    fn place_of(&self, tsn: Tsn) -> u64 {
        let offset = tsn.offset_from(self.base.0) as i32;
        self.base.1.wrapping_add_signed(offset.into())
    }

    /// The message was given up: what comes of it is of no use.
    pub(crate) fn is_skipped(&self, data: &IData<'_>) -> bool {
        let skipped = self.skipped.get(&(data.stream, data.unordered));
        skipped.is_some_and(|mid| !data.mid.is_after(*mid))
    }

    /// Takes a chunk; gives the message if that completes one.
    pub(crate) fn insert(
        &mut self,
        data: &IData<'_>,
        cumulative: Tsn,
    ) -> Result<Option<Piece>, FragmentError> {
        let key = (data.stream, data.unordered, MidKey(data.mid.0));
        let fsn = match data.mark {
            Mark::Beginning(_) => 0,
            // RFC 8260 2.1: the first fragment has the number 0, and no other.
            Mark::Fragment(0) => return Err(FragmentError),
            Mark::Fragment(fsn) => fsn,
        };
        let message = self.messages.entry(key).or_default();
        let at = message.fragments.partition_point(|f| f.fsn < fsn);
        let twice = fsn < message.next || message.fragments.get(at).is_some_and(|f| f.fsn == fsn);
        let beyond = message.last.is_some_and(|last| data.end || fsn > last)
            || (data.end && at < message.fragments.len());
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
        message.fragments.insert(at, Fragment { fsn, tsn: data.tsn, payload });
        let complete = message.is_complete();
        if data.tsn != cumulative.next() && !complete {
            let place = self.place(cumulative, data.tsn);
            self.early.insert(place, (key, fsn));
        }
        if !complete {
            return Ok(None);
        }
        let Some(mut message) = self.messages.remove(&key) else { return Ok(None) };
        let n = message.fragments.len();
        let piece = message.take(key, n, true);
        self.taken(&piece);
        Ok(Some(piece))
    }

    fn taken(&mut self, piece: &Piece) {
        self.bytes -= piece.payload.len();
        self.chunks -= piece.chunks;
        self.forget_places(&piece.scattered);
    }

    fn forget_places(&mut self, tsns: &[Tsn]) {
        if !self.early.is_empty() {
            for tsn in tsns {
                let place = self.place_of(*tsn);
                self.early.remove(&place);
            }
        }
    }

    /// The highest fragment that has a gap below it.
    pub(crate) fn highest_above(&self, cumulative: Tsn) -> Option<Tsn> {
        let (_, (key, fsn)) = self.early.last_key_value()?;
        let fragments = &self.messages.get(key)?.fragments;
        let at = fragments.binary_search_by_key(fsn, |f| f.fsn).ok()?;
        Some(fragments[at].tsn).filter(|tsn| tsn.is_after(cumulative))
    }

    /// Forgets that fragment: its TSN, its bytes and chunks.
    pub(crate) fn evict_highest(&mut self) -> Option<(Tsn, usize, u32)> {
        let (_, (key, fsn)) = self.early.pop_last()?;
        let message = self.messages.get_mut(&key)?;
        let at = message.fragments.binary_search_by_key(&fsn, |f| f.fsn).ok()?;
        let fragment = message.fragments.remove(at)?;
        let bytes = fragment.payload.len();
        message.bytes -= bytes;
        message.last = message.last.filter(|last| *last != fsn);
        if message.fragments.is_empty() && message.next == 0 {
            self.messages.remove(&key);
        }
        self.bytes -= bytes;
        self.chunks -= 1;
        Some((fragment.tsn, bytes, 1))
    }

    /// A piece of an unfinished message: all of it from its beginning, or from the last piece on, that
    /// has arrived up to `cumulative` (partial delivery, RFC 9260 6.9). `large` says whether so many
    /// bytes in so many chunks are too much to hold, `ready` whether its stream has come to the message.
    pub(crate) fn take_partial(
        &mut self,
        cumulative: Tsn,
        large: impl Fn(usize, u32) -> bool,
        ready: impl Fn(StreamId, u32, bool) -> bool,
    ) -> Option<Piece> {
        let (key, n) = self.messages.iter().take(MOST_CANDIDATES).find_map(|(key, m)| {
            if !large(m.bytes, m.fragments.len() as u32) || !ready(key.0, key.2.0, key.1) {
                return None;
            }
            let in_line = m.fragments.iter().zip(m.next..);
            let n =
                in_line.take_while(|(f, fsn)| f.fsn == *fsn && !f.tsn.is_after(cumulative)).count();
            (n > 0).then_some((*key, n))
        })?;
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
        let range = (stream, unordered, MidKey(0))..=(stream, unordered, MidKey(u32::MAX));
        let given_up = |key: &&Key| !Mid(key.2.0).is_after(mid);
        let keys: Vec<Key> =
            self.messages.range(range).map(|(key, _)| key).filter(given_up).copied().collect();
        keys.into_iter().filter_map(|key| self.drop_message(key)).collect()
    }

    /// The peer begins anew with the numbers of these streams, having sent all of what it began: what is
    /// here of an unfinished message was never finished, and is dropped.
    pub(crate) fn reset(&mut self, streams: &Streams) -> Vec<Dropped> {
        self.skipped.retain(|(stream, _), _| !streams.contains(*stream));
        let keys: Vec<Key> =
            self.messages.keys().filter(|key| streams.contains(key.0)).copied().collect();
        keys.into_iter().filter_map(|key| self.drop_message(key)).collect()
    }

    fn drop_message(&mut self, key: Key) -> Option<Dropped> {
        let message = self.messages.remove(&key)?;
        let tsns: Vec<Tsn> = message.fragments.iter().map(|f| f.tsn).collect();
        self.forget_places(&tsns);
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
            payload: Bytes::new(),
            chunks: 0,
            tsns: Default::default(),
            scattered: Vec::new(),
        });
        Some(Dropped { bytes: message.bytes, chunks, aborted })
    }

    /// Bytes held, and chunks that they came in.
    pub(crate) const fn held(&self) -> (usize, u32) {
        (self.bytes, self.chunks)
    }

    /// Everything received so far belongs to the past (restart).
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The counts agree with what is there.
    pub(crate) fn check(&self) -> Result<(), String> {
        let all = self.messages.values().flat_map(|m| &m.fragments);
        let (bytes, chunks) = all.fold((0, 0), |(b, c), f| (b + f.payload.len(), c + 1));
        let known = |&(key, fsn): &(Key, u32)| {
            self.messages.get(&key).is_some_and(|m| m.fragments.iter().any(|f| f.fsn == fsn))
        };
        if (bytes, chunks) != self.held() || !self.early.values().all(known) {
            return Err(format!(
                "interleaved: {bytes} bytes in {chunks} chunks, {:?}",
                self.held()
            ));
        }
        Ok(())
    }
}
