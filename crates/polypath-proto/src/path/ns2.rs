//! What a path does only by the procedures of ns-2's SCTP module (`Procedures::Ns2`).

use super::Path;
use crate::{Time, Tsn};

impl Path {
    /// T3-rtx runs from now, whatever is in flight.
    pub(crate) fn force_t3(&mut self, now: Time) {
        self.t3 = Some(now + self.rtt.rto());
    }

    /// The measurement under way is given up; its chunk keeps its time, and an answer to it counts
    /// if another measurement is under way by then.
    pub(crate) fn suspend_rtt_probe(&mut self) {
        self.stale_probes.extend(self.rtt_probe.take());
    }

    /// The chunk leaves again: its time measures nothing, nor does the measurement under way.
    pub(crate) fn void_rtt_probe(&mut self, tsn: Tsn) {
        let timed = self.rtt_probe.is_some_and(|p| p == tsn) || self.stale_probes.contains(&tsn);
        if timed {
            self.suspend_rtt_probe();
            self.stale_probes.retain(|&p| p != tsn);
        }
    }

    /// A chunk was acknowledged: does it measure the round-trip time? It does if it has a time of its
    /// own and any measurement is under way, which this ends.
    pub(crate) fn end_any_rtt_probe(&mut self, tsn: Tsn) -> bool {
        let timed = self.rtt_probe == Some(tsn) || self.stale_probes.contains(&tsn);
        let measures = timed && self.rtt_probe.is_some();
        if measures {
            self.suspend_rtt_probe();
        }
        self.stale_probes.retain(|&p| p != tsn);
        measures
    }

    /// New data was sent here, which makes the path busy for the heartbeats.
    pub(crate) const fn used(&mut self, now: Time) {
        self.last_measured = now;
    }

    /// Since when nothing has been sent here that makes the path busy.
    pub(crate) const fn idle_since(&self) -> Time {
        self.last_measured
    }

    /// No answer to a HEARTBEAT is awaited any longer.
    pub(crate) const fn forget_heartbeat(&mut self) {
        self.heartbeat_out = None;
    }

    pub(crate) const fn decay(&self) -> Option<Time> {
        self.decay
    }

    /// The window decays an RTO after this.
    pub(crate) fn schedule_decay(&mut self, now: Time) {
        self.decay = Some(now + self.rtt.rto());
    }

    pub(crate) const fn stop_decay(&mut self) {
        self.decay = None;
    }
}
