//! The pending SACK (RFC 9260 6.2).

use crate::ids::PathId;
use crate::policy::ack::{AckTime, Arrival};
use crate::time::Time;

/// Time and path of the pending SACK.
#[derive(Debug)]
pub(crate) struct PendingSack {
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// The SACK is sent at this time at the latest.
    deadline: Option<Time>,
    due: bool,
    /// The SACK that is due resets neither the count nor the deadline.
    keep: bool,
    /// The SACK that is due does not reset the deadline.
    keep_deadline: bool,
    /// The path of the last DATA.
    pub(crate) last_path: PathId,
    /// The timestamp of the first packet with DATA since the last SACK.
    pub(crate) echo: Option<u32>,
    /// A retransmission has arrived since the last SACK.
    pub(crate) retransmission: bool,
}

impl PendingSack {
    pub(crate) const fn new() -> Self {
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

    /// Counts a packet with DATA; returns the number since the last SACK.
    pub(crate) const fn count(&mut self, path: PathId) -> u32 {
        self.last_path = path;
        self.packets += 1;
        self.packets
    }

    pub(crate) fn decide(&mut self, now: Time, arrival: &Arrival, when: AckTime) {
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

    /// Resets the count of packets.
    pub(crate) const fn clear_count(&mut self) {
        self.packets = 0;
    }

    /// Makes a SACK due that resets the count and the deadline.
    pub(crate) const fn demand(&mut self) {
        self.due = true;
        self.keep = false;
        self.keep_deadline = false;
    }

    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// Packets with DATA since the last SACK.
    pub(crate) const fn packets(&self) -> u32 {
        self.packets
    }

    /// Whether a packet that is sent anyway should carry the SACK.
    pub(crate) const fn is_pending(&self) -> bool {
        self.due || self.packets > 0
    }

    pub(crate) const fn deadline(&self) -> Option<Time> {
        if self.due && !self.keep && !self.keep_deadline { None } else { self.deadline }
    }

    /// The SACK has been sent.
    pub(crate) const fn sent(&mut self) {
        if !self.keep {
            self.clear_count();
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

    pub(crate) const fn clear(&mut self) {
        self.keep = false;
        self.keep_deadline = false;
        self.sent();
    }
}
