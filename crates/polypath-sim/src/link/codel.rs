//! CoDel: packets are dropped or marked at the head of the queue once the least time that packets
//! wait has been above a target for an interval (RFC 8289).
//!
//! [`Flow`] is the queue of RFC 8289 5 with its state; one serves all packets, or each flow has its
//! own (RFC 8290, in [`managed`](super::managed)). RFC 8289 5 drops; a packet that may be marked is
//! marked instead and sent, as RFC 8290 5.2.6 has it.

use std::collections::VecDeque;
use std::time::Duration;

use polypath_proto::Time;

use super::config::Codel;

/// A packet in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// The driver's name for it.
    pub(super) id: u64,
    pub(super) size: u32,
    /// When it was offered.
    pub(super) since: Time,
    /// The link's epoch at that time.
    pub(super) epoch: u32,
    pub(super) background: bool,
    pub(super) may_mark: bool,
    pub(super) marked: bool,
    pub(super) cleared: bool,
    pub(super) held_up: Option<Duration>,
    pub(super) duplicate: bool,
    pub(super) inverted_bit: Option<u32>,
    /// Whether it was dropped because there was no room.
    pub(super) full: bool,
}

impl Waiting {
    /// Marks the packet; false if that is not allowed.
    pub(super) const fn mark(&mut self) -> bool {
        self.marked |= self.may_mark;
        self.may_mark
    }
}

/// A queue with the state of its control.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    packets: VecDeque<Waiting>,
    bytes: u64,
    /// When packets may be dropped, if they wait for longer than the target until then.
    first_above: Option<Time>,
    dropping: bool,
    /// When the next packet is dropped.
    drop_next: Time,
    /// Packets dropped or marked since the queue began to drop.
    count: u32,
    /// `count` when it began to drop the last time.
    last_count: u32,
}

impl Flow {
    /// Bytes that wait.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of packets that wait.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn push(&mut self, packet: Waiting) {
        self.bytes += u64::from(packet.size);
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// Takes the next packet to transmit (RFC 8289 5.5), and moves those that are dropped before it
    /// to `dropped`. `mtu` is the size of the largest packet.
    pub(super) fn dequeue(
        &mut self,
        now: Time,
        control: &Codel,
        mtu: u32,
        dropped: &mut VecDeque<Waiting>,
    ) -> Option<Waiting> {
        let (mut head, mut late) = self.next(now, control, mtu);
        if self.dropping {
            self.dropping = late;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let marked = head.as_mut().is_some_and(Waiting::mark);
                if !marked {
                    dropped.extend(head);
                    (head, late) = self.next(now, control, mtu);
                    self.dropping = late;
                }
                if self.dropping {
                    self.drop_next = after(self.drop_next, control, self.count);
                }
                if marked {
                    break;
                }
            }
        } else if late {
            let marked = head.as_mut().is_some_and(Waiting::mark);
            if !marked {
                dropped.extend(head);
                (head, _) = self.next(now, control, mtu);
            }
            self.dropping = true;
            // "If min went above TARGET close to when it last went below, assume that the drop rate
            // that controlled the queue on the last cycle is a good starting point to control it
            // now."
            let delta = self.count.wrapping_sub(self.last_count);
            let recent = now.since(self.drop_next) < control.interval.duration() * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = after(now, control, self.count);
            self.last_count = self.count;
        }
        head
    }

    /// The packet at the head, and whether packets have waited for too long for an interval
    /// (RFC 8289 5.6, dodequeue).
    fn next(&mut self, now: Time, control: &Codel, mtu: u32) -> (Option<Waiting>, bool) {
        let head = self.pop();
        let wait = head.as_ref().map(|packet| now.since(packet.since));
        let above = wait.is_some_and(|wait| wait >= control.target.duration());
        if !above || self.bytes <= u64::from(mtu) {
            self.first_above = None;
            return (head, false);
        }
        let first = *self.first_above.get_or_insert_with(|| now + control.interval.duration());
        (head, now >= first)
    }
}

/// "t + INTERVAL / sqrt(count)" (RFC 8289 5.6, control_law).
fn after(time: Time, control: &Codel, count: u32) -> Time {
    let nanoseconds = control.interval.0 as f64 / f64::from(count).sqrt();
    time + Duration::from_nanos(nanoseconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u32 = 1500;

    fn packet(since: u64) -> Waiting {
        Waiting { size: 1000, since: Time::from_millis(since), ..Waiting::default() }
    }

    /// Takes one packet in each of `milliseconds`, of a queue whose packets have waited for 50 ms,
    /// and returns when packets were dropped.
    fn drops(flow: &mut Flow, milliseconds: std::ops::Range<u64>) -> Vec<u64> {
        let mut dropped = VecDeque::new();
        milliseconds
            .filter(|ms| {
                while flow.len() < 20 {
                    flow.push(packet(ms.saturating_sub(50)));
                }
                dropped.clear();
                flow.dequeue(Time::from_millis(*ms), &Codel::default(), MTU, &mut dropped);
                !dropped.is_empty()
            })
            .collect()
    }

    /// RFC 8289 5.5 and 5.6: the first drop comes an interval after the wait went above the target,
    /// and the n-th 100 ms / sqrt(n) after the one before.
    #[test]
    fn drops_come_faster_while_the_queue_stays_long() {
        let mut expected = vec![1100];
        let mut at = 1100.0;
        for n in 1..8 {
            at += 100.0 / f64::from(n).sqrt();
            // Packets leave at whole milliseconds.
            expected.push(f64::ceil(at) as u64);
        }
        assert_eq!(drops(&mut Flow::default(), 1000..expected[7] + 1), expected);
    }

    /// RFC 8289 5.5: one packet that has waited for less than the target ends it; if the queue
    /// grows soon again, the rate of drops goes on from where it was.
    #[test]
    fn a_short_wait_ends_it_and_the_rate_is_remembered() {
        let mut flow = Flow::default();
        let shorten = |flow: &mut Flow, ms| {
            while flow.pop().is_some() {}
            (0..3).for_each(|_| flow.push(packet(ms - 2)));
            let mut dropped = VecDeque::new();
            flow.dequeue(Time::from_millis(ms), &Codel::default(), MTU, &mut dropped);
            assert!(dropped.is_empty() && !flow.dropping);
            while flow.pop().is_some() {}
        };
        let before = drops(&mut flow, 1000..1500);
        shorten(&mut flow, 1500);
        let after = drops(&mut flow, 1501..1700);
        assert_eq!(after[0], 1601);
        // Its gaps are those after as many drops as there were before, without the first.
        let count = before.len() - 1;
        let gap = (100.0 / f64::from(u32::try_from(count).unwrap()).sqrt()).ceil() as u64;
        assert_eq!(after[1] - after[0], gap);
        // After sixteen intervals it starts again.
        shorten(&mut flow, 1700);
        let later = drops(&mut flow, 5000..5300);
        assert_eq!((later[0] - 5000, later[1] - later[0]), (100, 100), "{later:?}");
    }

    /// RFC 8289 5.6: "by never allowing the queue to get smaller than the amount that arrives in a
    /// typical interarrival time".
    #[test]
    fn the_last_packets_are_never_dropped() {
        let mut flow = Flow::default();
        let mut dropped = VecDeque::new();
        for ms in 1000..3000 {
            (flow.len()..2).for_each(|_| flow.push(packet(0)));
            flow.dequeue(Time::from_millis(ms), &Codel::default(), MTU, &mut dropped);
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn packets_that_may_be_marked_are_marked_instead() {
        let mut flow = Flow::default();
        let mut dropped = VecDeque::new();
        let marks = (1000..1300).filter(|ms| {
            while flow.len() < 20 {
                flow.push(Waiting { may_mark: true, ..packet(ms - 50) });
            }
            let taken = flow.dequeue(Time::from_millis(*ms), &Codel::default(), MTU, &mut dropped);
            taken.unwrap().marked
        });
        assert_eq!(marks.collect::<Vec<_>>(), drops(&mut Flow::default(), 1000..1300));
        assert!(dropped.is_empty());
    }
}
