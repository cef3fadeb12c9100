//! Potentially failed paths: choosing one when none is active and something is to be sent, and the
//! window of one that has answered. The failover policy decides (CMT-PF; Natarajan 2009).

use super::Sender;
use crate::ids::PathId;
use crate::path::{PathState, Window};
use crate::policy::failover::NoActivePath;
use crate::time::Time;

impl Sender<'_> {
    /// Called when something is to be sent: if no path is active, applies and returns the failover
    /// policy's decision.
    pub(super) fn without_active_path(&mut self, now: Time) -> Option<NoActivePath> {
        if self.paths.iter().any(|p| p.state() == PathState::Active) {
            return None;
        }
        let view = self.paths.view();
        let decision = self.paths.failover.without_active_path(view, self.rng);
        if let NoActivePath::Activate(path) = decision {
            self.set_cwnd(path, 1);
            let p = &mut self.paths[path];
            // Data probes the path now.
            p.cancel_heartbeat();
            p.send_credit = self.sending.flight.has_lost();
            self.model.procedures.on_path_taken_back(self, path);
            self.paths.set_state(now, path, PathState::Active, self.events);
        }
        Some(decision)
    }

    /// Sets the window of a potentially failed path that a HEARTBEAT ACK has reactivated.
    pub(super) fn restart_window(&mut self, path: PathId) {
        if let Some(packets) = self.paths.failover.cwnd_after_probe() {
            self.set_cwnd(path, packets);
        }
    }

    fn set_cwnd(&mut self, path: PathId, packets: u32) {
        let p = &mut self.paths[path];
        let cwnd = packets.saturating_mul(p.max_chunk());
        p.set_window(Window { cwnd, ..p.window() });
    }
}
