//! New data sent ahead of its order: TSNs are reserved for chunks that faster paths will carry, and
//! a chunk with a higher TSN is sent on a slower path now, to arrive in order.
//!
//! The peer's window still limits this (RFC 9260 6.1 A), and the scheduler leaves part of the
//! window to the reserved chunks. If the window is full nevertheless, the chunk that the peer waits
//! for is sent as a window probe.

use super::Sending;
use super::in_flight::InFlight;
use crate::ids::Tsn;

impl Sending {
    /// Payload bytes of the lowest unsent chunk, if a new chunk may have at most `largest`.
    pub(crate) fn next_new_size(&self, largest: usize) -> Option<usize> {
        match self.flight.first_reserved() {
            Some((_, chunk)) => Some(chunk.content.payload.len()),
            None => self.queue.next_size(largest, largest),
        }
    }

    /// Unsent bytes: queued payload, and reserved chunks with their headers.
    pub(crate) const fn waiting(&self) -> usize {
        self.queue.bytes() + self.flight.reserved_bytes()
    }

    /// Picks the chunk for a slower path: the lowest one with at least `ahead` unsent bytes below
    /// it and a TSN above `highest`, the highest TSN sent on that path; failing that, the highest
    /// reserved chunk. Reserves TSNs for the unsent data below it.
    pub(crate) fn next_ahead(
        &mut self,
        ahead: usize,
        highest: Option<Tsn>,
        largest: usize,
    ) -> Option<Tsn> {
        let Self { flight, queue, .. } = self;
        let too_low = |tsn: Tsn| highest.is_some_and(|highest| !tsn.is_after(highest));
        let lacks = |flight: &InFlight| {
            flight.reserved_bytes() <= ahead || flight.last_reserved().is_none_or(too_low)
        };
        while lacks(flight) && flight.reserve(queue, largest) {}
        flight.reserved_behind(ahead, highest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::in_flight::MOST_MESSAGES;
    use super::*;
    use crate::pool::Pool;
    use crate::{Config, Message, PathId, StreamId, Time};

    /// A sender with `messages` queued messages of 84 bytes, 100 with the header.
    fn sender(messages: u32) -> Sending {
        let mut s = Sending::new(Tsn(u32::MAX - 1), &Config::rfc9260(), &Pool::new(0));
        for _ in 0..messages {
            s.queue.push(Time::ZERO, Message::new(StreamId(0), vec![1; 84]));
        }
        s
    }

    fn send(s: &mut Sending, tsn: Tsn, highest: Option<Tsn>) {
        s.flight.send_reserved(tsn, PathId(1), highest);
        s.flight.check().unwrap();
    }

    #[test]
    fn what_leaves_ahead_lies_behind_so_many_bytes() {
        let mut s = sender(10);
        let at = |n| Tsn(u32::MAX - 1).plus(n);
        assert_eq!(s.next_ahead(300, None, 1000), Some(at(3)));
        assert_eq!((s.waiting(), s.flight.reserved_bytes()), (6 * 84 + 400, 400));
        send(&mut s, at(3), None);
        // The next chunk has a higher TSN even if fewer bytes are asked for.
        assert_eq!(s.next_ahead(200, Some(at(3)), 1000), Some(at(4)));
        send(&mut s, at(4), Some(at(3)));
        assert_eq!(s.next_ahead(100, None, 1000), Some(at(1)));
        assert_eq!(s.next_ahead(500, Some(at(4)), 1000), Some(at(7)));
        // Too few bytes are queued: the last chunk.
        assert_eq!(s.next_ahead(5000, Some(at(4)), 1000), Some(at(9)));
        assert!(s.queue.is_empty());
        assert_eq!((s.flight.ahead(), s.flight.bytes()), (200, 200));
        assert!(s.flight.has_reserved_in(at(2), at(3)) && !s.flight.has_reserved_in(at(3), at(4)));
        // The lowest is sent last on a path: chunks sent on it before do not report it missing.
        let first = s.flight.first_reserved().unwrap().0;
        assert_eq!(first, at(0));
        send(&mut s, first, Some(at(4)));
        assert_eq!(s.flight.get(first).unwrap().own_recover, Some(at(4)));
        assert_eq!(s.flight.ahead(), 200);
        s.flight.ack_cumulative(first, |_, _, _| {});
        s.flight.check().unwrap();
    }

    /// Every choice is that of a search from the end, with chunks of all sizes and gaps.
    #[test]
    fn the_choice_is_that_of_a_search_through_all_chunks() {
        let mut s = Sending::new(Tsn(u32::MAX - 300), &Config::rfc9260(), &Pool::new(0));
        for n in 0..1500 {
            s.queue.push(Time::ZERO, Message::new(StreamId(0), vec![1; 20 + n * 37 % 400]));
        }
        while s.flight.reserve(&mut s.queue, 1000) {}
        let mut dice = 1_u32;
        let mut roll = |below: u32| {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (dice >> 8) % below
        };
        let mut all: Vec<(Tsn, usize)> = (0..1500)
            .map(|n| Tsn(u32::MAX - 300).plus(n))
            .map(|tsn| (tsn, s.flight.get(tsn).unwrap().size() as usize))
            .collect();
        while !all.is_empty() {
            let ahead = roll(400_000) as usize;
            let highest = (roll(2) == 0).then(|| Tsn(u32::MAX - 300).plus(roll(1500)));
            let mut below = 0;
            let enough = all.iter().find(|(tsn, size)| {
                let found = below >= ahead && highest.is_none_or(|highest| tsn.is_after(highest));
                below += size;
                found
            });
            let expected = enough.or_else(|| all.last()).map(|(tsn, _)| *tsn);
            assert_eq!(s.flight.reserved_behind(ahead, highest), expected);
            let place = roll(all.len() as u32) as usize;
            send(&mut s, all.remove(place).0, None);
        }
    }

    #[test]
    fn no_more_tsns_than_gap_blocks_reach() {
        // Messages of three chunks each, or without a stream sequence number.
        for unordered in [false, true] {
            let mut s = sender(0);
            for _ in 0..70_000 {
                let message = Message { unordered, ..Message::new(StreamId(0), vec![1; 84]) };
                s.queue.push(Time::ZERO, message);
            }
            let last = s.next_ahead(usize::MAX, None, if unordered { 1000 } else { 28 }).unwrap();
            assert_eq!(last.offset_from(s.flight.ack_point()), u16::MAX.into());
            s.flight.check().unwrap();
        }
    }

    #[test]
    fn no_more_messages_than_serial_numbers_order() {
        let mut s = sender(70_000);
        let last = s.next_ahead(usize::MAX, None, 1000).unwrap();
        assert_eq!(last.offset_from(s.flight.ack_point()), MOST_MESSAGES as u32 - 1);
        assert!(s.flight.is_full());
        // As soon as the first ones have arrived, others may follow.
        for n in 0..3 {
            send(&mut s, Tsn(u32::MAX - 1).plus(n), None);
        }
        s.flight.ack_cumulative(Tsn(u32::MAX - 1).plus(2), |_, _, _| {});
        let last = s.next_ahead(usize::MAX, None, 1000).unwrap();
        assert_eq!(last.offset_from(s.flight.ack_point()), MOST_MESSAGES as u32 - 1);
    }
}
