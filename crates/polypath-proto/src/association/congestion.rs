//! Calls of the congestion controller: reports to it, and the windows and pacing rates that it
//! returns.

use super::Sender;
use crate::ids::{PathId, Tsn};
use crate::path::{Repair, Window};
use crate::policy::CongestionController;
use crate::policy::congestion::{Congestion, Context, Loss, PathAck, Sent};
use crate::policy::loss::SackView;
use crate::send::PathReport;
use crate::time::Time;

/// A controller that asks to be called at once is called after this time.
const LEAST_WAIT: std::time::Duration = std::time::Duration::from_millis(1);

impl Sender<'_> {
    /// Calls the controller for a path, and adopts the window that it returns. A window holds at
    /// least one chunk.
    pub(super) fn control(
        &mut self,
        now: Time,
        path: PathId,
        event: impl FnOnce(&mut dyn CongestionController, &Context<'_>) -> Window,
    ) {
        let paths = self.paths.view();
        let view = paths.path(path);
        let context = Context::new(now, &view, paths);
        let window = event(&mut *self.sending.congestion, &context);
        let cwnd = window.cwnd.max(view.max_chunk);
        let pacing_rate = window.pacing_rate.filter(|_| self.sending.needs.pacing);
        self.paths[path].set_window(Window { cwnd, pacing_rate, ..window });
    }

    /// Data was acknowledged on a path.
    pub(super) fn apply_ack(&mut self, now: Time, path: PathId, ack: &PathAck) {
        self.control(now, path, |controller, context| controller.on_ack(context, ack));
    }

    /// Applies a SACK to the windows of the paths with acknowledged data (RFC 9260 7.2.1, 7.2.2).
    pub(super) fn update_windows(&mut self, now: Time, view: &SackView<'_>, tally: &[PathReport]) {
        for (path, t) in self.paths.ids().zip(tally) {
            if t.acked == 0 {
                continue;
            }
            let p = &mut self.paths[path];
            let ack = PathAck {
                acked: t.acked,
                acked_by_gaps: t.acked_by_gaps,
                in_flight_before: t.in_flight_before,
                paced: p.awaits_pacer(),
                advanced: view.advanced,
                may_grow: self.sending.cwnd_update.may_grow(path, view),
                recovering: p.repair() == Some(Repair::Fast),
                rtt: t.newly_acked.last_sent.map(|sent| now.since(sent)),
                delivery: p.sampler().and_then(|sampler| sampler.take_sample(now)),
            };
            self.apply_ack(now, path, &ack);
        }
    }

    /// There is congestion on a path: its window is cut.
    pub(super) fn cut_window(&mut self, now: Time, path: PathId, congestion: Congestion) {
        if congestion == Congestion::Loss {
            self.paths[path].set_repair(Some(Repair::Fast));
        }
        self.control(now, path, |c, context| c.on_congestion(context, congestion));
    }

    /// T3-rtx has expired on a path: its window is cut.
    pub(super) fn cut_window_after_timeout(&mut self, now: Time, path: PathId) {
        // In CMT each path recovers by itself.
        let concurrent = self.sending.is_concurrent();
        let own = if concurrent { self.paths[path].highest_sent() } else { None };
        let exit = own.unwrap_or_else(|| self.sending.flight.highest());
        self.paths[path].set_repair(Some(Repair::Timeout(exit)));
        self.control(now, path, |controller, context| controller.on_timeout(context));
    }

    /// A chunk of `size` bytes, sent on a path at `sent`, was found lost.
    pub(super) fn report_loss(&mut self, now: Time, path: PathId, sent: Time, size: u32) {
        let delivery = self.paths[path].sampler().and_then(|sampler| sampler.lost(sent, size));
        let loss = Loss { bytes: size, delivery };
        self.control(now, path, |controller, context| controller.on_loss(context, &loss));
    }

    /// Ends the recoveries whose data is acknowledged up to `cumulative`.
    pub(super) fn end_recoveries(&mut self, now: Time, cumulative: Tsn) {
        for path in self.paths.ids() {
            let over = match self.paths[path].repair() {
                None => false,
                Some(Repair::Fast) => self.sending.cwnd_update.recover(path).is_none(),
                Some(Repair::Timeout(exit)) => !exit.is_after(cumulative),
            };
            if over {
                self.paths[path].set_repair(None);
                self.control(now, path, |controller, context| controller.on_recovered(context));
            }
        }
    }

    /// Packets of one buffer were sent on a path, where `before` bytes were in flight.
    pub(super) fn report_sent(&mut self, now: Time, path: PathId, before: u32) {
        let p = &self.paths[path];
        let bytes = p.in_flight().saturating_sub(before);
        if bytes > 0 {
            let app_limited = p.is_app_limited();
            let sent = Sent { bytes, in_flight_before: before, app_limited };
            self.control(now, path, |controller, context| controller.on_sent(context, &sent));
        }
    }

    /// Everything that may be sent now has been sent: sets the timers of the pacers and of the
    /// controller, and notes which paths could have carried more.
    pub(super) fn pause_paths(&mut self, now: Time) {
        let needs = self.sending.needs;
        if !needs.beyond_acknowledgements() {
            return;
        }
        let waits =
            self.phase.may_send_data && (!self.sending.is_idle() || self.sending.copies.wait());
        // Data that waits for its retransmission or for the peer is not the application's fault.
        let unused = needs.delivery_samples
            && (!waits
                || (!self.sending.flight.has_lost()
                    && self.sending.next_new_chunk_size(self.paths).is_some()));
        for path in self.paths.ids() {
            let wake = if needs.wakes { self.sending.congestion.wake_at(path) } else { None };
            let wake = wake.map(|at| if at > now { at } else { now + LEAST_WAIT });
            self.paths[path].pause(now, waits, unused, wake);
        }
    }

    /// An event may release data.
    pub(super) fn resume_paths(&mut self, now: Time) {
        if self.sending.needs.delivery_samples {
            self.paths.iter_mut().for_each(|p| p.resume(now));
        }
    }

    /// Wakes the controller for the paths for which it has asked for that. The pacers need nothing
    /// but a look at the packets to send, which follows every event.
    pub(super) fn handle_releases(&mut self, now: Time) {
        for path in self.paths.ids() {
            let due = self.paths[path].take_release(now) && self.sending.needs.wakes;
            if due && self.sending.congestion.wake_at(path).is_some_and(|at| at <= now) {
                self.control(now, path, |controller, context| controller.on_wake(context));
            }
        }
    }
}
