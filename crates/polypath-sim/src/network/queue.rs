//! The event queue.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use polypath_proto::Time;

/// Events in the order of their times; at equal times timers first, otherwise in the order in which
/// they were scheduled. One binary heap keyed by (time, sequence).
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    scheduled: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.sequence)
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
        Self { heap: BinaryHeap::with_capacity(256), scheduled: 0 }
    }

    pub(crate) fn schedule(&mut self, at: Time, event: E) {
        self.heap.push(Entry { at, sequence: ORDINARY | self.scheduled, event });
        self.scheduled += 1;
    }

    /// Schedules an event before the others of its instant: a timer. The timer was set before the
    /// packet that arrives at that instant was sent, unless the path's delay is longer than the
    /// timer. ns-2, which orders events by the time of scheduling, agrees.
    pub(crate) fn schedule_first(&mut self, at: Time, event: E) {
        self.heap.push(Entry { at, sequence: self.scheduled, event });
        self.scheduled += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }

    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.at)
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
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
}
