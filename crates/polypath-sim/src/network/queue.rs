//! The event queue.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use polypath_proto::Time;

/// Events in the order of their times; at equal times timers first, otherwise in the order in which
/// they were scheduled.
///
/// One binary heap keyed by (time, sequence). Most events are arrivals of packets, and a link
/// delivers its packets in order: of each link only the next arrival is in the heap, the others
/// wait in a lane of their own.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    lanes: Vec<Lane<E>>,
    /// Number of events that wait in lanes.
    waiting: usize,
    scheduled: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    sequence: u64,
    event: E,
    /// The lane whose first event it is.
    lane: Option<u32>,
}

/// The events of one link.
#[derive(Debug)]
struct Lane<E> {
    /// Those behind the first, which is in the heap.
    behind: VecDeque<Entry<E>>,
    /// Time of the last; `None` if there is none.
    last: Option<Time>,
}

impl<E> Entry<E> {
    /// Time and sequence as one number, which is compared without a branch.
    fn key(&self) -> u128 {
        u128::from(self.at.as_nanos()) << 64 | u128::from(self.sequence)
    }
}

impl<E> Ord for Entry<E> {
    /// Reversed, so that the heap's greatest element is the earliest event.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<E> Eq for Entry<E> {}

/// Set in the sequence number of ordinary events, which follow the timers of the same instant.
const ORDINARY: u64 = 1 << 63;

impl<E> EventQueue<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::with_capacity(256), lanes: Vec::new(), waiting: 0, scheduled: 0 }
    }

    fn ordinary(&mut self) -> u64 {
        let sequence = ORDINARY | self.scheduled;
        self.scheduled += 1;
        sequence
    }

    pub(crate) fn schedule(&mut self, at: Time, event: E) {
        let sequence = self.ordinary();
        self.heap.push(Entry { at, sequence, event, lane: None });
    }

    /// Schedules an event like [`schedule`](Self::schedule). It is quicker for events of a link,
    /// whose number is `lane`, if they are scheduled in the order of their times.
    #[inline]
    pub(crate) fn schedule_in(&mut self, lane: usize, at: Time, event: E) {
        let sequence = self.ordinary();
        while self.lanes.len() <= lane {
            self.lanes.push(Lane { behind: VecDeque::new(), last: None });
        }
        let number = Some(lane as u32);
        let lane = &mut self.lanes[lane];
        match lane.last {
            // It overtakes.
            Some(last) if at < last => self.heap.push(Entry { at, sequence, event, lane: None }),
            Some(_) => {
                lane.last = Some(at);
                lane.behind.push_back(Entry { at, sequence, event, lane: number });
                self.waiting += 1;
            }
            None => {
                lane.last = Some(at);
                self.heap.push(Entry { at, sequence, event, lane: number });
            }
        }
    }

    /// Schedules an event before the others of its instant: a timer. The timer was set before the
    /// packet that arrives at that instant was sent, unless the path's delay is longer than the
    /// timer. ns-2, which orders events by the time of scheduling, agrees.
    pub(crate) fn schedule_first(&mut self, at: Time, event: E) {
        self.heap.push(Entry { at, sequence: self.scheduled, event, lane: None });
        self.scheduled += 1;
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, E)> {
        let mut first = self.heap.peek_mut()?;
        let lane = first.lane.map(|lane| &mut self.lanes[lane as usize]);
        let next = lane.and_then(|lane| {
            let next = lane.behind.pop_front();
            if next.is_none() {
                lane.last = None;
            }
            next
        });
        let entry = match next {
            Some(next) => {
                self.waiting -= 1;
                std::mem::replace(&mut *first, next)
            }
            None => PeekMut::pop(first),
        };
        Some((entry.at, entry.event))
    }

    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.at)
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len() + self.waiting
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_time_then_by_order_of_scheduling() {
        let mut queue = EventQueue::new();
        for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            queue.schedule(Time::from_millis(at), event);
        }
        queue.schedule_first(Time::from_millis(5), 't');
        assert_eq!(queue.next_time(), Some(Time::from_millis(3)));
        assert_eq!(queue.len(), 6);
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "bdetac");
    }

    proptest! {
        /// Lanes change nothing but the speed: with them and without, events come in one order.
        #[test]
        fn lanes_keep_the_order(steps in vec((0u64..30, 0usize..4, any::<bool>()), 0..200)) {
            let (mut with, mut without) = (EventQueue::new(), EventQueue::new());
            let mut now = 0;
            for (event, (delay, lane, pops)) in steps.into_iter().enumerate() {
                let at = Time::from_millis(now + delay);
                without.schedule(at, event);
                match lane {
                    0 => with.schedule(at, event),
                    _ => with.schedule_in(lane, at, event),
                }
                prop_assert_eq!(with.next_time(), without.next_time());
                if pops {
                    let first = with.pop();
                    prop_assert_eq!(first, without.pop());
                    now = first.map_or(now, |(at, _)| at.since(Time::ZERO).as_millis() as u64);
                }
                prop_assert_eq!(with.len(), without.len());
            }
            let rest = std::iter::from_fn(|| with.pop()).collect::<Vec<_>>();
            prop_assert_eq!(rest, std::iter::from_fn(|| without.pop()).collect::<Vec<_>>());
            prop_assert_eq!(with.len(), 0);
        }
    }
}
