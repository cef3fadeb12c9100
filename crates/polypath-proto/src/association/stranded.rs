//! What becomes of paths that are potentially failed: none is active and something is to be sent, or an
//! answer has brought one back. The failover policy decides (CMT-PF; Natarajan 2009).

use super::Association;
use crate::policy::failover::Stranded;
use crate::policy::{PathState, PathsView, Window};
use crate::{PathId, Time};

impl Association {
    /// Something is to be sent: if no path is active, what the failover policy makes of that.
    pub(super) fn without_active_path(&mut self, now: Time) -> Option<Stranded> {
        if self.paths.iter().any(|p| p.state() == PathState::Active) {
            return None;
        }
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        let stranded = self.policies.failover.stranded(view, &mut self.rng);
        if let Stranded::TakesBack(path) = stranded {
            self.set_cwnd(path, 1);
            let ns2 = self.is_ns2();
            let p = &mut self.paths[path.index()];
            // Data asks now. By ns-2's procedures T3-rtx runs for what waits elsewhere too.
            p.forget_heartbeat();
            if ns2 && p.in_flight() == 0 {
                p.stop_t3();
            }
            p.allowance = self.sender.flight.has_lost();
            self.set_path_state(now, path, PathState::Active);
        }
        Some(stranded)
    }

    /// A HEARTBEAT ACK has brought back a path that was potentially failed.
    pub(super) fn restart_window(&mut self, path: PathId) {
        if let Some(packets) = self.policies.failover.cwnd_after_probe() {
            self.set_cwnd(path, packets);
        }
    }

    fn set_cwnd(&mut self, path: PathId, packets: u32) {
        let p = &mut self.paths[path.index()];
        let cwnd = packets.saturating_mul(p.max_chunk());
        p.set_window(Window { cwnd, ..p.window() });
    }
}
