//! Procedures of a path that are specific to ns-2's SCTP module (`Procedures::Ns2`).

use super::Path;
use crate::ids::Tsn;
use crate::time::Time;

/// A timer that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Expired {
    T3,
    Decay,
    Heartbeat,
}

/// The timer for the decay of the idle window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decay {
    pub(super) at: Time,
    order: u64,
}

impl Path {
    /// Starts T3-rtx now, whatever is in flight.
    pub(crate) fn force_t3(&mut self, now: Time, order: u64) {
        self.t3 = Some(now + self.rtt.rto());
        self.t3_order = order;
    }

    /// Abandons the current measurement; its chunk keeps its time, and its acknowledgement counts
    /// if another measurement is running by then.
    pub(crate) fn suspend_rtt_probe(&mut self) {
        self.stale_probes.extend(self.rtt_probe.take());
    }

    /// The chunk is retransmitted: its time measures nothing, and the current measurement is
    /// abandoned too.
    pub(crate) fn void_rtt_probe(&mut self, tsn: Tsn) {
        let timed = self.rtt_probe.is_some_and(|p| p == tsn) || self.stale_probes.contains(&tsn);
        if timed {
            self.suspend_rtt_probe();
            self.stale_probes.retain(|&p| p != tsn);
        }
    }

    /// Whether an acknowledged chunk measures the round-trip time. It does if it has a time of its
    /// own and any measurement is running, which this ends. A chunk that only a gap ack block
    /// acknowledges keeps its time, because another SACK may revoke that.
    pub(crate) fn end_any_rtt_probe(&mut self, tsn: Tsn, by_gaps: bool) -> bool {
        let timed = self.rtt_probe == Some(tsn) || self.stale_probes.contains(&tsn);
        let measures = timed && self.rtt_probe.is_some();
        if measures {
            self.suspend_rtt_probe();
        }
        if !by_gaps {
            self.stale_probes.retain(|&p| p != tsn);
        }
        measures
    }

    /// The cumulative ack has removed a chunk that a gap ack block had acknowledged.
    pub(crate) fn forget_rtt_probe(&mut self, tsn: Tsn) {
        self.stale_probes.retain(|&p| p != tsn);
    }

    /// New data was sent here: the path is not idle for the heartbeats.
    pub(crate) const fn used(&mut self, now: Time) {
        self.last_used = now;
    }

    /// When new data or a HEARTBEAT was last sent here.
    pub(crate) const fn idle_since(&self) -> Time {
        self.last_used
    }

    /// Schedules the decay of the window an RTO after `now`.
    pub(crate) fn schedule_decay(&mut self, now: Time, order: u64) {
        self.decay = Some(Decay { at: now + self.rtt.rto(), order });
    }

    pub(crate) const fn stop_decay(&mut self) {
        self.decay = None;
    }

    /// Notes the position of the HEARTBEAT's timer, which has been set.
    pub(crate) const fn set_heartbeat_order(&mut self, order: u64) {
        self.heartbeat_order = order;
    }

    /// The first set of the timers that have expired here, with its position.
    pub(crate) fn first_expired(&self, now: Time) -> Option<(u64, Expired)> {
        let t3 = self.t3.map(|at| (at, self.t3_order, Expired::T3));
        let decay = self.decay.map(|d| (d.at, d.order, Expired::Decay));
        let heartbeat = self.heartbeat_deadline();
        let heartbeat = heartbeat.map(|at| (at, self.heartbeat_order, Expired::Heartbeat));
        let expired = [t3, decay, heartbeat].into_iter().flatten().filter(|(at, ..)| *at <= now);
        expired.map(|(_, order, which)| (order, which)).min()
    }
}
