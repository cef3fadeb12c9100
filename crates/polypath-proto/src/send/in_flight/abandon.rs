//! Abandoned chunks: they stay in the ring until the peer acknowledges a FORWARD TSN (RFC 3758 3.4,
//! 3.5).

use std::collections::BTreeMap;

use super::InFlight;
use super::outstanding::{Abandonment, Fate, Outstanding};
use crate::ids::{Mid, PathId, StreamId, Tsn};
use crate::send::partial::Partial;
use crate::send::queue::NewChunk;

/// The last message of a stream, ordered or unordered, that a FORWARD TSN skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) stream: StreamId,
    pub(crate) unordered: bool,
    pub(crate) mid: Mid,
}

impl InFlight {
    /// Abandons the chunks of a message. `known` may be the TSN of any of them. Calls `each` with
    /// every chunk and its former fate, and returns the payload bytes freed. A chunk that a gap
    /// block acknowledges stays acknowledged, but is not retransmitted if the peer reneges (RFC
    /// 3758 3.5 A3).
    pub(crate) fn abandon(
        &mut self,
        message: &Partial,
        known: Option<Tsn>,
        mut each: impl FnMut(Tsn, &Outstanding, Fate),
    ) -> usize {
        let known = known.map(|tsn| tsn.offset_from(self.first) as usize);
        let of_it = |c: &Outstanding| c.is_of(message);
        let Some(at) = known.or_else(|| self.ring.iter().rposition(of_it)) else { return 0 };
        // From this fragment down to the first, then up to the last, as far as they are in the
        // ring. Fragments in DATA chunks are contiguous.
        let interleaved = self.ring[at].content.fsn.is_some();
        let mut freed = 0;
        for offset in (0..=at).rev() {
            if !self.ring[offset].is_of(message) {
                if interleaved {
                    continue;
                }
                break;
            }
            freed += self.abandon_at(offset, &mut each);
            if self.ring[offset].content.beginning {
                break;
            }
        }
        if self.ring[at].content.end {
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
            if self.ring[offset].content.end {
                break;
            }
        }
        self.advance_skippable();
        freed
    }

    /// Advances the place up to which a FORWARD TSN may skip. It never moves back: chunks stay
    /// abandoned.
    pub(super) fn advance_skippable(&mut self) {
        let mut place = self.skippable.max(self.first_place);
        loop {
            let offset = (place - self.first_place) as usize;
            let behind_reset = offset > 0 && self.is_before_reset(place - 1);
            if behind_reset || self.ring.get(offset).is_none_or(|c| !c.is_abandoned()) {
                break;
            }
            place += 1;
        }
        self.skippable = place;
    }

    /// Whether a chunk whose message may be abandoned was lost since the last call.
    pub(crate) const fn take_partly_lost(&mut self) -> bool {
        std::mem::replace(&mut self.partly_lost, false)
    }

    fn abandon_at(
        &mut self,
        offset: usize,
        each: &mut impl FnMut(Tsn, &Outstanding, Fate),
    ) -> usize {
        let chunk = &mut self.ring[offset];
        if chunk.is_abandoned() {
            return 0;
        }
        chunk.abandonment = Abandonment::Settled;
        self.abandoned += 1;
        let before = chunk.fate;
        match before {
            Fate::InFlight => {
                self.bytes -= chunk.size();
                chunk.abandonment = Abandonment::InFlight;
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
        std::mem::take(&mut chunk.content.payload).len()
    }

    /// Uses up a TSN for the unsent rest of an abandoned message. The chunk is never sent, but a
    /// FORWARD TSN that skips it lets a peer drop the fragments it has.
    pub(crate) fn push_abandoned(&mut self, chunk: NewChunk, path: PathId) {
        let size = self.push(chunk, path).1.size();
        self.bytes -= size;
        self.abandoned += 1;
        if let Some(chunk) = self.ring.back_mut() {
            chunk.fate = Fate::Abandoned;
            chunk.abandonment = Abandonment::Settled;
        }
        self.advance_skippable();
    }

    /// Whether any chunk in the ring is abandoned.
    pub(crate) const fn has_abandoned(&self) -> bool {
        self.abandoned > 0
    }

    /// Records that a request to reset streams is sent after the last chunk (RFC 6525 5.1.2).
    pub(crate) fn note_reset(&mut self) {
        let Some(last) = (self.first_place + self.ring.len() as u64).checked_sub(1) else { return };
        if !self.ring.is_empty() && !self.is_before_reset(last) {
            self.resets.push_back(last);
        }
    }

    /// Whether a request to reset streams was sent after the chunk at `place`.
    fn is_before_reset(&self, place: u64) -> bool {
        // Nearly always empty: one request is outstanding at a time (RFC 6525 5.1.1).
        self.resets.contains(&place)
    }

    /// The chunks that a FORWARD TSN may skip: the abandoned ones at the start of the ring, up to a
    /// stream reset. The peer performs the reset as soon as it has every TSN before it, and would
    /// then read message identifiers from before the reset as new ones. A FORWARD TSN that ends at
    /// the reset is outdated for such a peer, which drops it (RFC 3758 3.6).
    pub(super) fn to_be_skipped(&self) -> impl Iterator<Item = &Outstanding> {
        let first = self.first_place;
        let reset = self.resets.iter().find(|&&place| place >= first);
        let most = reset.map_or(usize::MAX, |&place| (place - first) as usize + 1);
        self.ring.iter().take(most).take_while(|c| c.is_abandoned())
    }

    /// Advanced.Peer.Ack.Point: every TSN up to it is acknowledged or abandoned (RFC 3758 3.5 C1,
    /// C2).
    pub(crate) fn advanced_ack_point(&self) -> Tsn {
        self.tsn_at(self.skippable).prev()
    }

    /// Contents of a FORWARD TSN with room for `most` streams: its new cumulative TSN, and the last
    /// message skipped on each stream (RFC 3758 3.5 C4).
    pub(crate) fn skipped(&self, most: usize) -> (Tsn, Vec<Skipped>) {
        let mut last = BTreeMap::new();
        let mut point = self.ack_point();
        for chunk in self.to_be_skipped() {
            // FORWARD TSN lists ordered messages only, I-FORWARD-TSN both kinds.
            let content = &chunk.content;
            if !content.unordered || content.fsn.is_some() {
                let key = (content.stream, content.unordered);
                if !last.contains_key(&key) && last.len() == most {
                    break;
                }
                last.insert(key, content.mid);
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

    use super::super::acked::Outside;
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
        f.ack_gaps([gap(2, 2)].into_iter(), Outside::Missing, |_, _, _| {}, |_, _| {});
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
        // The last message is found by its number alone; the message before it holds the point
        // back.
        assert_eq!(f.abandon(&messages[2], None, |_, _, _| {}), 8);
        assert_eq!(f.abandon(&messages[2], None, |_, _, _| panic!("twice")), 0);
        assert_eq!(f.advanced_ack_point(), Tsn(2));
        f.abandon(&messages[1], None, |_, _, _| {});
        let last = Skipped { stream: StreamId(2), ..first };
        // An unordered message is not listed.
        assert_eq!(f.skipped(9), (Tsn(5), vec![first, last]));
        assert_eq!(f.skipped(1), (Tsn(3), vec![first]));
        // The receiver reneges: abandoned chunks do not return to flight.
        f.ack_gaps(
            [].into_iter(),
            Outside::Missing,
            |_, _, _| {},
            |_, chunk| assert!(chunk.is_abandoned()),
        );
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
