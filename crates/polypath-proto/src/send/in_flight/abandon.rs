//! Chunks that were given up: they wait for nothing but the peer's leave to be forgotten
//! (RFC 3758 3.4, 3.5).

use std::collections::BTreeMap;

use super::{Fate, InFlight, Outstanding};
use crate::send::partial::Partial;
use crate::send::queue::NewChunk;
use crate::{Mid, PathId, StreamId, Tsn};

/// The last message of a stream, ordered or not, that the receiver is not to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) stream: StreamId,
    pub(crate) unordered: bool,
    pub(crate) mid: Mid,
}

impl InFlight {
    /// Gives up the chunks of a message, one of which may be `known`: calls `each` with them as they
    /// were, and gives the payload bytes let go. A chunk that a gap block acknowledges stays so, but
    /// will not be sent again if the receiver reneges (RFC 3758 3.5 A3).
    pub(crate) fn abandon(
        &mut self,
        message: &Partial,
        known: Option<Tsn>,
        mut each: impl FnMut(Tsn, &Outstanding, Fate),
    ) -> usize {
        let known = known.map(|tsn| tsn.offset_from(self.first) as usize);
        let of_it = |c: &Outstanding| c.is_of(message);
        let Some(at) = known.or_else(|| self.ring.iter().rposition(of_it)) else { return 0 };
        // From there to its first fragment, and to its last one, as far as they are here. With DATA
        // chunks there is nothing between.
        let interleaved = self.ring[at].fsn.is_some();
        let mut freed = 0;
        for offset in (0..=at).rev() {
            if !self.ring[offset].is_of(message) {
                if interleaved {
                    continue;
                }
                break;
            }
            freed += self.abandon_at(offset, &mut each);
            if self.ring[offset].beginning {
                break;
            }
        }
        if self.ring[at].end {
            self.advance_skippable();
            return freed;
        }
        for offset in at + 1..self.ring.len() {
            if !self.ring[offset].is_of(message) {
                if interleaved {
                    continue;
                }
                break;
            }
            freed += self.abandon_at(offset, &mut each);
            if self.ring[offset].end {
                break;
            }
        }
        self.advance_skippable();
        freed
    }

    /// Finds how far a FORWARD TSN may skip, from where it was: chunks stay given up.
    pub(super) fn advance_skippable(&mut self) {
        let mut place = self.skippable.max(self.first_place);
        loop {
            let offset = (place - self.first_place) as usize;
            let behind_reset = offset > 0 && self.ring[offset - 1].before_reset;
            if behind_reset || self.ring.get(offset).is_none_or(|c| !c.abandoned) {
                break;
            }
            place += 1;
        }
        self.skippable = place;
    }

    /// Some chunk was lost, since this was last asked, whose message may be given up.
    pub(crate) const fn take_partly_lost(&mut self) -> bool {
        std::mem::replace(&mut self.partly_lost, false)
    }

    fn abandon_at(
        &mut self,
        offset: usize,
        each: &mut impl FnMut(Tsn, &Outstanding, Fate),
    ) -> usize {
        let chunk = &mut self.ring[offset];
        if std::mem::replace(&mut chunk.abandoned, true) {
            return 0;
        }
        self.abandoned += 1;
        let before = chunk.fate;
        match before {
            Fate::InFlight => {
                self.bytes -= chunk.size();
                chunk.watched = true;
            }
            Fate::Lost(_) => {
                self.lost.remove(&(self.first_place + offset as u64));
            }
            Fate::Reserved => self.reserved.remove(self.first_place + offset as u64, chunk.size()),
            Fate::Acked | Fate::Abandoned => {}
        }
        if before != Fate::Acked {
            chunk.fate = Fate::Abandoned;
        }
        each(self.first.plus(offset as u32), chunk, before);
        std::mem::take(&mut chunk.payload).len()
    }

    /// Uses up a TSN for the rest of a message that was given up before all of it had left: without one,
    /// a receiver that has the part that did leave would never hear of it. It is never sent.
    pub(crate) fn push_abandoned(&mut self, chunk: NewChunk, path: PathId) {
        let size = self.push(chunk, path).1.size();
        self.bytes -= size;
        self.abandoned += 1;
        if let Some(chunk) = self.ring.back_mut() {
            chunk.fate = Fate::Abandoned;
            chunk.abandoned = true;
        }
        self.advance_skippable();
    }

    /// Some chunk here has been given up.
    pub(crate) const fn has_abandoned(&self) -> bool {
        self.abandoned > 0
    }

    /// A request to reset streams leaves behind the last chunk (RFC 6525 5.1.2).
    pub(crate) fn note_reset(&mut self) {
        if let Some(last) = self.ring.back_mut() {
            last.before_reset = true;
        }
    }

    /// What a FORWARD TSN may speak of: chunks that were given up, one after the other. It does not reach
    /// across a reset of streams. The peer has done the reset once it has all before it, and takes the
    /// numbers of messages before it for ones behind it; a FORWARD TSN that ends there says nothing new
    /// to such a peer, and is dropped (RFC 3758 3.6).
    pub(super) fn to_be_skipped(&self) -> impl Iterator<Item = &Outstanding> {
        let mut reset = false;
        self.ring
            .iter()
            .take_while(move |c| !std::mem::replace(&mut reset, c.before_reset) && c.abandoned)
    }

    /// Advanced.Peer.Ack.Point: up to there all is acknowledged or given up (RFC 3758 3.5 C1, C2).
    pub(crate) fn advanced_ack_point(&self) -> Tsn {
        self.tsn_at(self.skippable).prev()
    }

    /// What a FORWARD TSN says that has room for `most` streams: the point that it advances to, and the
    /// last message skipped on each stream (RFC 3758 3.5 C4).
    pub(crate) fn skipped(&self, most: usize) -> (Tsn, Vec<Skipped>) {
        let mut last = BTreeMap::new();
        let mut point = self.ack_point();
        for chunk in self.to_be_skipped() {
            // A stream sequence number is one of ordered messages alone.
            if !chunk.unordered || chunk.fsn.is_some() {
                let key = (chunk.stream, chunk.unordered);
                if !last.contains_key(&key) && last.len() == most {
                    break;
                }
                last.insert(key, chunk.mid);
            }
            point = point.next();
        }
        let skipped = last.into_iter();
        let skipped = skipped.map(|((stream, unordered), mid)| Skipped { stream, unordered, mid });
        (point, skipped.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::chunk;
    use super::*;
    use crate::policy::retransmission::LossCause;
    use crate::send::partial::Limit;
    use crate::wire::GapBlock;

    /// Message 0 in chunks 0 to 2, message 1 in chunk 3, message 2 in chunks 4 and 5.
    fn flight() -> (InFlight, Vec<Arc<Partial>>) {
        let mut f = InFlight::new(Tsn(0));
        let messages: Vec<Arc<Partial>> = (0..3)
            .map(|number| {
                Arc::new(Partial {
                    number,
                    stream: StreamId(number as u16),
                    ppid: crate::Ppid(0),
                    context: 0,
                    unordered: number == 1,
                    bytes: 0,
                    limit: Limit::Retransmissions(0),
                })
            })
            .collect();
        for (m, beginning, end) in [
            (0, true, false),
            (0, false, false),
            (0, false, true),
            (1, true, true),
            (2, true, false),
            (2, false, true),
        ] {
            let partial: &Arc<Partial> = &messages[m];
            f.push(
                NewChunk {
                    stream: partial.stream,
                    mid: Mid(7),
                    unordered: partial.unordered,
                    beginning,
                    end,
                    partial: Some(partial.clone()),
                    ..chunk()
                },
                PathId(0),
            );
        }
        (f, messages)
    }

    #[test]
    fn a_message_goes_as_a_whole_and_the_point_waits_for_the_others() {
        let (mut f, messages) = flight();
        let gap = |start, end| GapBlock { start, end };
        f.ack_gaps([gap(2, 2)].into_iter(), |_, _, _| {}, |_, _| {});
        f.mark_lost(Tsn(2), LossCause::Timeout);
        let mut seen = Vec::new();
        let freed = f.abandon(&messages[0], Some(Tsn(1)), |t, _, fate| seen.push((t.0, fate)));
        seen.sort_by_key(|s| s.0);
        let lost = Fate::Lost(LossCause::Timeout);
        assert_eq!(seen, [(0, Fate::InFlight), (1, Fate::Acked), (2, lost)]);
        assert_eq!((freed, f.bytes(), f.has_lost()), (12, 60, false));
        f.check().unwrap();
        assert_eq!(f.advanced_ack_point(), Tsn(2));
        let first = Skipped { stream: StreamId(0), unordered: false, mid: Mid(7) };
        assert_eq!(f.skipped(9), (Tsn(2), vec![first]));
        // The last message by its number alone; the one in the middle keeps the point where it is.
        assert_eq!(f.abandon(&messages[2], None, |_, _, _| {}), 8);
        assert_eq!(f.abandon(&messages[2], None, |_, _, _| panic!("twice")), 0);
        assert_eq!(f.advanced_ack_point(), Tsn(2));
        f.abandon(&messages[1], None, |_, _, _| {});
        let last = Skipped { stream: StreamId(2), ..first };
        // What is unordered needs no number.
        assert_eq!(f.skipped(9), (Tsn(5), vec![first, last]));
        assert_eq!(f.skipped(1), (Tsn(3), vec![first]));
        // The receiver reneges: nothing comes back.
        f.ack_gaps([].into_iter(), |_, _, _| {}, |_, chunk| assert!(chunk.abandoned));
        assert_eq!((f.bytes(), f.advanced_ack_point()), (0, Tsn(5)));
        f.check().unwrap();
        f.ack_cumulative(Tsn(5), |_, _, _| {});
        assert!(f.is_empty() && !f.has_abandoned());
        f.check().unwrap();
    }

    #[test]
    fn a_forward_tsn_does_not_reach_across_a_reset() {
        let (mut f, messages) = flight();
        f.abandon(&messages[0], None, |_, _, _| {});
        f.abandon(&messages[1], None, |_, _, _| {});
        f.note_reset();
        let one = Arc::new(Partial {
            number: 3,
            stream: StreamId(0),
            ppid: crate::Ppid(0),
            context: 0,
            unordered: false,
            bytes: 0,
            limit: Limit::Retransmissions(0),
        });
        f.push(NewChunk { mid: Mid(0), partial: Some(one.clone()), ..chunk() }, PathId(0));
        f.abandon(&one, None, |_, _, _| {});
        assert_eq!(f.advanced_ack_point(), Tsn(3), "the third message is not given up");
        f.abandon(&messages[2], None, |_, _, _| {});
        let skipped =
            |stream, mid| Skipped { stream: StreamId(stream), unordered: false, mid: Mid(mid) };
        assert_eq!(f.advanced_ack_point(), Tsn(5));
        assert_eq!(f.skipped(9), (Tsn(5), vec![skipped(0, 7), skipped(2, 7)]));
        f.ack_cumulative(Tsn(4), |_, _, _| {});
        assert_eq!(f.skipped(9), (Tsn(5), vec![skipped(2, 7)]));
        f.ack_cumulative(Tsn(5), |_, _, _| {});
        assert_eq!(
            (f.advanced_ack_point(), f.skipped(9)),
            (Tsn(6), (Tsn(6), vec![skipped(one.stream.0, 0)]))
        );
    }
}
