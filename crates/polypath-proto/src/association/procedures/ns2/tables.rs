//! What the procedures remember of each path and of each chunk.

use crate::ids::Tsn;
use crate::path::Path;
use crate::send::{Fate, InFlight};
use crate::time::Time;

/// A timer of a path that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Expired {
    T3,
    Decay,
    Heartbeat,
}

/// The timer for the decay of the idle window.
#[derive(Clone, Copy, Debug)]
struct Decay {
    at: Time,
    order: u64,
}

/// Notes on one path.
#[derive(Debug, Default)]
pub(super) struct PathSide {
    /// Abandoned measurements of the round-trip time whose chunks may still be acknowledged.
    stale_probes: Vec<Tsn>,
    /// The positions of T3-rtx and of the HEARTBEAT's timer in the order in which the association's
    /// timers were set.
    t3_order: u64,
    heartbeat_order: u64,
    decay: Option<Decay>,
    /// When new data or a HEARTBEAT was last sent.
    last_used: Option<Time>,
}

impl PathSide {
    /// Starts T3-rtx now, whatever is in flight.
    pub(super) fn start_t3(&mut self, path: &mut Path, now: Time, order: u64) {
        path.set_t3(now);
        self.t3_order = order;
    }

    /// Abandons the current measurement; its chunk keeps its time, and its acknowledgement counts
    /// if another measurement is running by then.
    pub(super) fn suspend_rtt_probe(&mut self, path: &mut Path) {
        if let Some(tsn) = path.rtt_probe() {
            path.drop_rtt_probe(tsn);
            self.stale_probes.push(tsn);
        }
    }

    /// The chunk is retransmitted: its time measures nothing, and the current measurement is
    /// abandoned too.
    pub(super) fn void_rtt_probe(&mut self, path: &mut Path, tsn: Tsn) {
        if path.rtt_probe() == Some(tsn) || self.stale_probes.contains(&tsn) {
            self.suspend_rtt_probe(path);
            self.clear_rtt_probe(tsn);
        }
    }

    /// Whether an acknowledged chunk measures the round-trip time. It does if it has a time of its
    /// own and any measurement is running, which this ends. A chunk that only a gap ack block
    /// acknowledges keeps its time, because another SACK may revoke that.
    pub(super) fn end_rtt_probe(&mut self, path: &mut Path, tsn: Tsn, by_gaps: bool) -> bool {
        let timed = path.rtt_probe() == Some(tsn) || self.stale_probes.contains(&tsn);
        let measures = timed && path.rtt_probe().is_some();
        if measures {
            self.suspend_rtt_probe(path);
        }
        if !by_gaps {
            self.clear_rtt_probe(tsn);
        }
        measures
    }

    /// The cumulative ack has removed a chunk that a gap ack block had acknowledged.
    pub(super) fn clear_rtt_probe(&mut self, tsn: Tsn) {
        self.stale_probes.retain(|&p| p != tsn);
    }

    /// New data or a HEARTBEAT was sent on the path: it is not idle for the heartbeats.
    pub(super) const fn used(&mut self, now: Time) {
        self.last_used = Some(now);
    }

    /// When new data or a HEARTBEAT was last sent on the path.
    pub(super) fn idle_since(&self, path: &Path) -> Time {
        self.last_used.unwrap_or(path.created)
    }

    /// Schedules the decay of the window an RTO after `now`.
    pub(super) fn schedule_decay(&mut self, path: &Path, now: Time, order: u64) {
        self.decay = Some(Decay { at: now + path.rto(), order });
    }

    pub(super) const fn stop_decay(&mut self) {
        self.decay = None;
    }

    /// Notes the position of the HEARTBEAT's timer, which has been set.
    pub(super) const fn set_heartbeat_order(&mut self, order: u64) {
        self.heartbeat_order = order;
    }

    /// When the window decays.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.decay.map(|decay| decay.at)
    }

    /// The timers have been stopped.
    pub(super) fn stop(&mut self) {
        self.stale_probes.clear();
        self.decay = None;
    }

    /// The first set of the timers that have expired here, with its position.
    pub(super) fn first_expired(&self, path: &Path, now: Time) -> Option<(u64, Expired)> {
        let t3 = path.t3().map(|at| (at, self.t3_order, Expired::T3));
        let decay = self.decay.map(|d| (d.at, d.order, Expired::Decay));
        let heartbeat = path.heartbeat_deadline();
        let heartbeat = heartbeat.map(|at| (at, self.heartbeat_order, Expired::Heartbeat));
        let expired = [t3, decay, heartbeat].into_iter().flatten().filter(|(at, ..)| *at <= now);
        expired.map(|(_, order, which)| (order, which)).min()
    }
}

/// For each of `paths` paths, the lowest TSN last sent on it that no gap block acknowledges.
pub(super) fn first_on(flight: &InFlight, paths: usize) -> Vec<Option<Tsn>> {
    let mut first = vec![None; paths];
    let mut missing = paths;
    for (tsn, chunk) in flight.iter().filter(|(_, chunk)| chunk.fate != Fate::Acked) {
        if first[chunk.path.index()].is_none() {
            first[chunk.path.index()] = Some(tsn);
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    first
}

/// The highest TSN that does not wait for retransmission.
pub(super) fn highest_not_lost(flight: &InFlight) -> Option<Tsn> {
    let outstanding = flight.iter().rev().find(|(_, chunk)| !matches!(chunk.fate, Fate::Lost(_)));
    outstanding.map(|(tsn, _)| tsn)
}
