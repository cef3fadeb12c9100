//! The receiver of a TCP flow: delayed and selective acknowledgements.

use std::collections::BTreeMap;
use std::time::Duration;

use polypath_proto::Time;

/// How long an acknowledgement may wait for a second segment: as in Linux; RFC 1122 4.2.3.2 and
/// RFC 5681 4.2 allow half a second.
const DELAY: Duration = Duration::from_millis(40);
/// Most blocks of an acknowledgement (RFC 2018 3, with a timestamp option).
const MOST_BLOCKS: usize = 3;

/// An acknowledgement. Segments are numbered from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ack {
    /// All segments below this number have arrived.
    pub(super) next: u64,
    /// Ranges above that have arrived, the last one exclusive; the latest first.
    pub(super) blocks: [Option<(u64, u64)>; MOST_BLOCKS],
}

impl Ack {
    /// Bytes of the packet: IP and TCP header, and the option of RFC 2018.
    pub(super) fn size(&self) -> u32 {
        let blocks = self.blocks.iter().flatten().count() as u32;
        40 + if blocks > 0 { 4 + 8 * blocks } else { 0 }
    }
}

#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// The next segment in order: as many have been delivered.
    next: u64,
    /// Ranges of later segments, by their first one.
    later: BTreeMap<u64, u64>,
    /// First segments of the ranges that changed last, the latest first.
    latest: [Option<u64>; MOST_BLOCKS],
    /// When the acknowledgement of a single segment is due.
    due: Option<Time>,
}

impl Receiver {
    /// Number of segments delivered in order.
    pub(super) const fn delivered(&self) -> u64 {
        self.next
    }

    pub(super) const fn due(&self) -> Option<Time> {
        self.due
    }

    /// A segment arrives; returns the acknowledgement that has to be sent now.
    pub(super) fn receive(&mut self, now: Time, number: u64) -> Option<Ack> {
        let in_order = number == self.next && self.later.is_empty();
        if in_order {
            self.next += 1;
            if self.due.is_none() {
                self.due = Some(now + DELAY);
                return None;
            }
        } else {
            // RFC 5681 4.2: what is out of order, or fills a gap, is acknowledged at once.
            self.insert(number);
        }
        Some(self.acknowledge())
    }

    /// The acknowledgement that was delayed, if it is due.
    pub(super) fn expire(&mut self, now: Time) -> Option<Ack> {
        self.due.is_some_and(|due| due <= now).then(|| self.acknowledge())
    }

    fn acknowledge(&mut self) -> Ack {
        self.due = None;
        let block = |first: &Option<u64>| {
            first.and_then(|first| self.later.get(&first).map(|&end| (first, end)))
        };
        let mut blocks = [None; MOST_BLOCKS];
        for (place, found) in blocks.iter_mut().zip(self.latest.iter().filter_map(block)) {
            *place = Some(found);
        }
        Ack { next: self.next, blocks }
    }

    fn insert(&mut self, number: u64) {
        if number < self.next {
            return;
        }
        let mut first = number;
        let mut end = number + 1;
        if let Some((&before, &until)) = self.later.range(..=number).next_back()
            && until >= number
        {
            (first, end) = (before, until.max(end));
        }
        if let Some(until) = self.later.remove(&end) {
            end = until;
        }
        if first == self.next {
            self.later.remove(&first);
            self.next = end;
            return;
        }
        self.later.insert(first, end);
        // RFC 2018 4: the first block has the segment that caused the acknowledgement; the others
        // repeat the most recent ones.
        let others: Vec<u64> =
            self.latest.iter().flatten().copied().filter(|&other| other != first).collect();
        let known = others.into_iter().filter(|other| self.later.contains_key(other));
        let mut list = std::iter::once(first).chain(known);
        self.latest = std::array::from_fn(|_| list.next());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn every_second_segment_is_acknowledged_or_one_after_a_delay() {
        let mut receiver = Receiver::default();
        assert_eq!(receiver.receive(at(0), 0), None);
        assert_eq!(receiver.receive(at(1), 1).unwrap().next, 2);
        assert_eq!(receiver.receive(at(2), 2), None);
        assert_eq!(receiver.due(), Some(at(42)));
        assert_eq!(receiver.expire(at(41)), None);
        assert_eq!(receiver.expire(at(42)).unwrap().next, 3);
        assert_eq!(receiver.due(), None);
    }

    /// The first case of RFC 2018 4's examples: the first of four segments is lost.
    #[test]
    fn blocks_as_in_the_rfc() {
        let mut receiver = Receiver::default();
        for number in 1..4 {
            let ack = receiver.receive(at(0), number).unwrap();
            assert_eq!((ack.next, ack.blocks), (0, [Some((1, number + 1)), None, None]));
            assert_eq!(ack.size(), 52);
        }
        let ack = receiver.receive(at(0), 0).unwrap();
        assert_eq!((ack.next, ack.blocks), (4, [None; 3]));
        assert_eq!(receiver.delivered(), 4);
    }

    /// Its third case: every second segment is lost; the latest block is the first one.
    #[test]
    fn the_latest_blocks_come_first() {
        let mut receiver = Receiver::default();
        let acks: Vec<_> =
            [1, 3, 5, 7].map(|number| receiver.receive(at(0), number).unwrap()).to_vec();
        assert_eq!(acks[3].blocks, [Some((7, 8)), Some((5, 6)), Some((3, 4))]);
        let ack = receiver.receive(at(0), 4).unwrap();
        assert_eq!(ack.blocks, [Some((3, 6)), Some((7, 8)), None]);
        let ack = receiver.receive(at(0), 0).unwrap();
        assert_eq!(ack.next, 2);
    }
}
