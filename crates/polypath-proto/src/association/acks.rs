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
    /// It leaves the deadline as it is.
    keep_deadline: bool,
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
            keep_deadline: false,
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
            AckTime::Now => self.demand(),
            AckTime::NowAndWithin(delay) => {
                self.keep |= !self.due;
                self.due = true;
                self.deadline.get_or_insert(now + delay);
            }
            AckTime::NowAndAgainWithin(delay) => {
                self.keep_deadline |= !self.due;
                self.due = true;
                self.wait(now + delay);
            }
            AckTime::NowUncounted => {
                self.packets -= 1;
                self.keep |= !self.due;
                self.due = true;
            }
            AckTime::Within(delay) => self.wait(now + delay),
        }
    }

    /// The timer runs from the first packet since the last SACK.
    fn wait(&mut self, until: Time) {
        if self.packets == 1 || self.deadline.is_none() {
            self.deadline = Some(until);
        }
    }

    /// The timer has expired, and by the module's rules for CMT nothing is counted any more.
    pub(super) const fn forget_count(&mut self) {
        self.packets = 0;
    }

    /// It is due, and answers all that waits.
    pub(super) const fn demand(&mut self) {
        self.due = true;
        self.keep = false;
        self.keep_deadline = false;
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
        if self.due && !self.keep && !self.keep_deadline { None } else { self.deadline }
    }

    /// The SACK has left.
    pub(super) const fn sent(&mut self) {
        if !self.keep {
            self.packets = 0;
            if !self.keep_deadline {
                self.deadline = None;
            }
        }
        self.due = false;
        self.keep = false;
        self.keep_deadline = false;
        self.echo = None;
        self.retransmission = false;
    }

    pub(super) const fn clear(&mut self) {
        self.keep = false;
        self.keep_deadline = false;
        self.sent();
    }
}
