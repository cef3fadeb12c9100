//! Queues under active management: packets wait in them until the transmitter is free, and their
//! fate is decided then. One queue for all packets is CoDel (RFC 8289); one for each flow, served
//! in turn, is FQ-CoDel (RFC 8290).

use std::collections::{BTreeMap, VecDeque};

use polypath_proto::Time;

use super::codel::{Flow, Waiting};
use super::config::Codel;
use crate::random::split_mix;
use crate::units::QueueLimit;

/// Most packets that are dropped at once from a queue that has become too long (RFC 8290 4.1).
const MOST_DROPPED: usize = 64;

/// A flow's queue and its share of the transmitter.
#[derive(Clone, Debug, Default)]
struct Turn {
    queue: Flow,
    /// Bytes that it may still send in its turn.
    credits: i64,
    /// Whether it is in one of the two lists.
    listed: bool,
}

/// The queues of a link.
#[derive(Clone, Debug)]
pub(super) struct Managed {
    control: Codel,
    limit: QueueLimit,
    mtu: u32,
    /// Makes which flows share a queue depend on the run's seed.
    salt: u64,
    turns: BTreeMap<u64, Turn>,
    /// Queues that had been empty, and those that have had their turn (RFC 8290 4).
    new: VecDeque<u64>,
    old: VecDeque<u64>,
    packets: usize,
    bytes: u64,
    /// Packets that will not be transmitted, for the driver to fetch.
    dropped: VecDeque<Waiting>,
}

impl Managed {
    pub(super) fn new(control: Codel, limit: QueueLimit, mtu: u32, salt: u64) -> Self {
        Self {
            control,
            limit,
            mtu,
            salt,
            turns: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            dropped: VecDeque::new(),
        }
    }

    /// Packets and bytes that wait for transmission.
    pub(super) const fn waiting(&self) -> (usize, u64) {
        (self.packets, self.bytes)
    }

    /// Whether there is nothing to transmit and nothing to fetch.
    pub(super) fn is_empty(&self) -> bool {
        self.packets == 0 && self.dropped.is_empty()
    }

    fn exceeds(&self, packets: usize, bytes: u64) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => packets > limit as usize,
            QueueLimit::Bytes(limit) => bytes > limit,
            QueueLimit::Unlimited => false,
        }
    }

    /// Puts a packet of a flow into its queue; false if one queue serves all packets and is full.
    /// If the transmitter is `idle`, there is room for a packet that leaves at once.
    pub(super) fn enqueue(&mut self, flow: u64, packet: Waiting, idle: bool) -> bool {
        let alone = self.control.flows <= 1;
        if alone && !idle && self.exceeds(self.packets + 1, self.bytes + u64::from(packet.size)) {
            return false;
        }
        let number = if alone {
            0
        } else {
            split_mix(&mut (flow ^ self.salt)) % u64::from(self.control.flows)
        };
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        let turn = self.turns.entry(number).or_default();
        turn.queue.push(packet);
        if !turn.listed {
            turn.listed = true;
            turn.credits = i64::from(self.control.quantum);
            self.new.push_back(number);
        }
        while !idle && self.exceeds(self.packets, self.bytes) {
            self.shorten();
        }
        true
    }

    /// Drops from the longest queue: "half the number of packets from this queue (up to a maximum
    /// of 64 packets) are dropped from the head of that queue" (RFC 8290 4.1).
    fn shorten(&mut self) {
        let longest = self.turns.values_mut().max_by_key(|turn| turn.queue.bytes());
        let Some(Turn { queue, .. }) = longest else { return };
        for _ in 0..(queue.len() / 2).clamp(1, MOST_DROPPED) {
            let Some(packet) = queue.pop() else { return };
            self.packets -= 1;
            self.bytes -= u64::from(packet.size);
            self.dropped.push_back(Waiting { full: true, ..packet });
        }
    }

    /// Takes the next packet to transmit (RFC 8290 4.2).
    pub(super) fn dequeue(&mut self, now: Time) -> Option<Waiting> {
        loop {
            let of_new = !self.new.is_empty();
            let list = if of_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let turn = self.turns.entry(number).or_default();
            if turn.credits <= 0 {
                turn.credits += i64::from(self.control.quantum);
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let (packets, bytes) = (turn.queue.len(), turn.queue.bytes());
            let taken = turn.queue.dequeue(now, &self.control, self.mtu, &mut self.dropped);
            self.packets -= packets - turn.queue.len();
            self.bytes -= bytes - turn.queue.bytes();
            if let Some(packet) = taken {
                turn.credits -= i64::from(packet.size);
                return Some(packet);
            }
            list.pop_front();
            // An empty queue waits for one more turn, so that it does not starve the old ones by
            // being new again and again.
            if of_new {
                self.old.push_back(number);
            } else {
                turn.listed = false;
            }
        }
    }

    /// A packet that was dropped and is not known to be.
    pub(super) fn fetch_dropped(&mut self) -> Option<Waiting> {
        self.dropped.pop_front()
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        for turn in self.turns.values_mut() {
            while let Some(packet) = turn.queue.pop() {
                self.dropped.push_back(packet);
            }
        }
        self.turns.clear();
        self.new.clear();
        self.old.clear();
        (self.packets, self.bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn managed(flows: u32, limit: QueueLimit) -> Managed {
        Managed::new(Codel { flows, ..Codel::default() }, limit, 1500, 7)
    }

    fn packet(id: u64, size: u32) -> Waiting {
        Waiting { id, size, ..Waiting::default() }
    }

    fn order(queue: &mut Managed) -> Vec<u64> {
        std::iter::from_fn(|| queue.dequeue(Time::ZERO)).map(|packet| packet.id).collect()
    }

    /// RFC 8290 1.3: a flow that sends less than its share overtakes those that have built a queue;
    /// the others take turns by bytes.
    #[test]
    fn new_flows_first_and_old_ones_in_turn() {
        let mut queue = managed(1024, QueueLimit::Unlimited);
        for n in 0..4 {
            queue.enqueue(1, packet(10 + n, 1500), false);
            queue.enqueue(2, packet(20 + n, 750), false);
            queue.enqueue(2, packet(30 + n, 750), false);
        }
        let first = queue.dequeue(Time::ZERO).unwrap();
        assert_eq!(first.id, 10);
        let mut bytes = [0u32; 2];
        for _ in 0..6 {
            let packet = queue.dequeue(Time::ZERO).unwrap();
            bytes[usize::from(packet.size == 750)] += packet.size;
        }
        assert!(bytes[0].abs_diff(bytes[1]) <= 1514 + 750, "{bytes:?}");
        // Both have had a turn: the new flow is next.
        queue.enqueue(3, packet(99, 100), false);
        assert_eq!(queue.dequeue(Time::ZERO).unwrap().id, 99);
    }

    #[test]
    fn one_queue_keeps_the_order_and_refuses_what_it_has_no_room_for() {
        let mut queue = managed(1, QueueLimit::Packets(3));
        let accepted: Vec<_> = (0..5).map(|n| queue.enqueue(n, packet(n, 1500), false)).collect();
        assert_eq!(accepted, [true, true, true, false, false]);
        assert_eq!(order(&mut queue), [0, 1, 2]);
        assert!(queue.is_empty());
    }

    /// RFC 8290 4.1: the longest queue loses half of its packets, from its head.
    #[test]
    fn the_longest_queue_makes_room() {
        let mut queue = managed(1024, QueueLimit::Packets(10));
        queue.enqueue(1, packet(100, 100), false);
        for n in 0..9 {
            queue.enqueue(2, packet(n, 1500), false);
        }
        assert_eq!(queue.waiting(), (10, 13_600));
        assert!(queue.enqueue(3, packet(200, 1500), false));
        let dropped: Vec<_> = std::iter::from_fn(|| queue.fetch_dropped()).collect();
        assert_eq!(dropped.iter().map(|packet| packet.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(dropped.iter().all(|packet| packet.full));
        assert_eq!(queue.waiting(), (7, 100 + 6 * 1500));
    }

    proptest! {
        /// Every packet comes out once, transmitted or dropped; within a flow the order stays.
        #[test]
        fn no_packet_is_lost_or_invented(
            flows in prop_oneof![Just(1u32), Just(8), Just(1024)],
            limit in prop_oneof![
                Just(QueueLimit::Unlimited),
                (1u32..20).prop_map(QueueLimit::Packets),
                (1500u64..30_000).prop_map(QueueLimit::Bytes),
            ],
            steps in vec((0u64..12, 40u32..1501, 0u64..40, any::<bool>()), 1..300),
        ) {
            let mut queue = managed(flows, limit);
            let (mut now, mut refused, mut sent, mut dropped) = (0, 0, Vec::new(), 0);
            for (n, (flow, size, gap, takes)) in steps.iter().enumerate() {
                now += gap;
                let waiting = Waiting { since: Time::from_millis(now), ..packet(n as u64, *size) };
                refused += usize::from(!queue.enqueue(*flow, waiting, false));
                if *takes {
                    sent.extend(queue.dequeue(Time::from_millis(now)));
                }
                dropped += std::iter::from_fn(|| queue.fetch_dropped()).count();
                let (packets, bytes) = queue.waiting();
                prop_assert!(!queue.exceeds(packets, bytes));
                prop_assert_eq!(n + 1, refused + sent.len() + dropped + packets);
            }
            sent.extend(std::iter::from_fn(|| queue.dequeue(Time::from_millis(now))));
            dropped += std::iter::from_fn(|| queue.fetch_dropped()).count();
            prop_assert!(queue.is_empty());
            prop_assert_eq!(steps.len(), refused + sent.len() + dropped);
            let flow = |packet: &Waiting| steps[packet.id as usize].0;
            for wanted in 0..12 {
                let of = sent.iter().filter(|packet| flow(packet) == wanted);
                prop_assert!(of.map(|packet| packet.id).is_sorted());
            }
        }
    }
}
