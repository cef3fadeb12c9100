//! HEARTBEATs on a path: when the next one is due, and the one that is outstanding (RFC 9260 8.3).

use std::time::Duration;

use super::Path;
use super::view::PathState;
use crate::time::Time;

/// An outstanding HEARTBEAT.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeartbeatOut {
    sent: Time,
    /// The HEARTBEAT counts as lost from then on.
    deadline: Time,
}

impl Path {
    /// When the next HEARTBEAT is to be considered.
    pub(crate) const fn heartbeat_due(&self) -> Option<Time> {
        self.heartbeat_due
    }

    /// The shortest time for which the path must be idle before the next HEARTBEAT.
    pub(crate) const fn heartbeat_period(&self) -> Duration {
        self.heartbeat_period
    }

    pub(crate) const fn set_heartbeat_period(&mut self, period: Duration) {
        self.heartbeat_period = period;
    }

    pub(crate) const fn schedule_heartbeat(&mut self, at: Option<Time>) {
        self.heartbeat_due = at;
    }

    /// Whether nothing that measures the round-trip time was sent since `since`.
    pub(crate) fn is_idle_since(&self, since: Time) -> bool {
        self.last_measured <= since
    }

    pub(crate) fn heartbeat_sent(&mut self, now: Time) {
        self.heartbeat_out = Some(HeartbeatOut { sent: now, deadline: now + self.rto() });
        self.last_measured = now;
        self.stats.heartbeats_sent += 1;
        self.loss.count_sent();
    }

    /// When the last HEARTBEAT on this unconfirmed path was sent.
    pub(crate) fn verified_at(&self) -> Option<Time> {
        let unconfirmed = self.state == PathState::Unconfirmed;
        (unconfirmed && self.stats.heartbeats_sent > 0).then_some(self.last_measured)
    }

    /// Processes the answer to a HEARTBEAT sent at `sent`, even if that counted as lost. Returns
    /// its round-trip time, unless the answer is a repetition.
    pub(crate) fn heartbeat_acked(&mut self, now: Time, sent: Time) -> Option<Duration> {
        // An older one was sent on a former path with this id.
        if sent > now
            || sent < self.created
            || self.heartbeat_answered.is_some_and(|last| sent <= last)
        {
            return None;
        }
        self.heartbeat_answered = Some(sent);
        if self.heartbeat_out.is_some_and(|h| h.sent <= sent) {
            self.heartbeat_out = None;
        }
        self.stats.heartbeats_acked += 1;
        Some(now.since(sent))
    }

    /// When the outstanding HEARTBEAT counts as lost; `None` if none is outstanding.
    #[inline]
    pub(crate) fn heartbeat_deadline(&self) -> Option<Time> {
        self.heartbeat_out.map(|h| h.deadline)
    }

    /// Stops waiting for the answer to a HEARTBEAT.
    pub(crate) const fn cancel_heartbeat(&mut self) {
        self.heartbeat_out = None;
    }

    pub(crate) const fn heartbeat_lost(&mut self) {
        self.heartbeat_out = None;
        self.stats.heartbeats_lost += 1;
        self.loss.count_lost();
    }

    /// Whether the path has answered a HEARTBEAT.
    pub(crate) const fn has_answered(&self) -> bool {
        self.heartbeat_answered.is_some()
    }
}
