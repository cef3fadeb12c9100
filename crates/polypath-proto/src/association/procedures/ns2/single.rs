//! What follows a SACK when one path at a time carries data (FastRtx), and rules that CMT shares.

use super::tables::first_on;
use super::{Own, Retransmit};
use crate::association::Sender;
use crate::ids::PathId;
use crate::policy::congestion::Congestion;
use crate::time::Time;

impl Sender<'_> {
    /// A SACK has been processed; `found` if it found losses.
    pub(super) fn ns2_after_sack(&mut self, found: bool) {
        if found {
            self.ns2_begin(Retransmit::OnePacket);
        } else if self.sending.flight.has_lost() {
            self.ns2_begin(Retransmit::Window);
        }
    }

    pub(super) fn ns2_begin(&mut self, retransmit: Retransmit) {
        self.side.own().retransmit = retransmit;
        self.side.own().destination = None;
        self.side.own().burst = 0;
        self.side.own().first = first_on(&self.sending.flight, self.paths.len());
    }

    /// The cumulative ack has acknowledged a chunk that had been fast retransmitted.
    pub(super) fn ns2_limit_burst(&mut self) {
        if self.is_ns2_cmt() {
            return self.ns2_cmt_limit_burst();
        }
        self.side.own().limited = self.applies_max_burst();
    }

    /// Cuts the window of the path of the lowest chunk marked above the recover point, and
    /// continues from the new recover point; each path's window is cut once.
    pub(super) fn ns2_cut(&mut self, now: Time) {
        let mut cut = vec![false; self.paths.len()];
        let mut from = self.sending.flight.ack_point().next();
        while let Some((tsn, chunk, _)) = self.sending.flight.lost_from(from) {
            from = tsn.next();
            let path = chunk.path;
            let recover = self.sending.cwnd_update.recover(path);
            if cut[path.index()] || recover.is_some_and(|recover| !tsn.is_after(recover)) {
                continue;
            }
            let highest = self.side.own().highest_outstanding(&self.sending.flight);
            if !self.sending.cwnd_update.on_fast_retransmit(path, tsn, highest) {
                continue;
            }
            cut[path.index()] = true;
            self.cut_window(now, path, Congestion::Loss);
            self.side.own().path(path).suspend_rtt_probe(&mut self.paths[path]);
        }
    }

    /// Updates T3-rtx after a SACK; `stopped` if it acknowledged a chunk that stops the timer.
    pub(super) fn ns2_update_t3(&mut self, now: Time, path: PathId, stopped: bool) {
        let p = &mut self.paths[path];
        if p.in_flight() + p.lost() == 0 {
            p.stop_t3();
        } else if stopped || p.t3().is_none() {
            self.side.own().start_t3(self.paths, now, path);
        }
    }
}
