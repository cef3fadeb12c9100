//! The SACK that this side owes the peer (RFC 9260 6.2).

use crate::policy::ack::{AckTime, Arrival};
use crate::{PathId, Time};

/// When it leaves, and where to.
#[derive(Debug)]
pub(super) struct PendingAck {
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// At the latest then.
    deadline: Option<Time>,
    due: bool,
    /// The SACK that is due leaves the count and the deadline as they are.
    keep: bool,
    /// Where the last DATA came from.
    pub(super) last_path: PathId,
    /// The timestamp of the first packet with DATA since the last SACK.
    pub(super) echo: Option<u32>,
    /// A retransmission has come since the last SACK.
    pub(super) retransmission: bool,
}

impl PendingAck {
    pub(super) const fn new() -> Self {
        Self {
            packets: 0,
            deadline: None,
            due: false,
            keep: false,
            last_path: PathId(0),
            echo: None,
            retransmission: false,
        }
    }

    /// Counts a packet with DATA: how many there are now.
    pub(super) const fn count(&mut self, path: PathId) -> u32 {
        self.last_path = path;
        self.packets += 1;
        self.packets
    }

    pub(super) fn decide(&mut self, now: Time, arrival: &Arrival, when: AckTime) {
        debug_assert_eq!(arrival.packets, self.packets);
        match when {
            AckTime::Now => (self.due, self.keep) = (true, false),
            AckTime::NowAndWithin(delay) => {
                self.keep |= !self.due;
                self.due = true;
                self.deadline.get_or_insert(now + delay);
            }
            AckTime::NowUncounted => {
                self.packets -= 1;
                self.keep |= !self.due;
                self.due = true;
            }
            AckTime::Within(delay) => {
                self.deadline.get_or_insert(now + delay);
            }
        }
    }

    /// It is due, and answers all that waits.
    pub(super) const fn demand(&mut self) {
        self.due = true;
        self.keep = false;
    }

    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    /// Packets with DATA since the last SACK.
    pub(super) const fn packets(&self) -> u32 {
        self.packets
    }

    /// A packet that leaves anyway should carry it.
    pub(super) const fn is_pending(&self) -> bool {
        self.due || self.packets > 0
    }

    pub(super) const fn deadline(&self) -> Option<Time> {
        if self.due && !self.keep { None } else { self.deadline }
    }

    /// The SACK has left.
    pub(super) const fn sent(&mut self) {
        if !self.keep {
            self.packets = 0;
            self.deadline = None;
        }
        self.due = false;
        self.keep = false;
        self.echo = None;
        self.retransmission = false;
    }

    pub(super) const fn clear(&mut self) {
        self.keep = false;
        self.sent();
    }
}
