//! The timers (RFC 9260 6.3.3, 8, 9.2).

use super::Association;
use crate::send::WindowProbe;
use crate::time::Time;

impl Association {
    /// The time at which [`handle_timeout`](Self::handle_timeout) must be called.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        if self.is_closed() {
            return None;
        }
        let probe = match self.sending.probe {
            WindowProbe::At(at) => Some(at),
            _ => None,
        };
        let may_send = self.state.may_send_data();
        let own = [
            self.state.next_timeout(),
            self.receiving.ack.deadline(),
            probe,
            self.side.as_ref().and_then(|side| side.next_timeout()),
            self.reconfig.as_ref().and_then(|r| r.next_timeout()),
            self.addresses.as_ref().and_then(|a| a.next_timeout()),
            self.sending.next_abandonment(self.handshake.extensions).filter(|_| may_send),
            self.sending.forward_timer().filter(|_| may_send),
            self.sending.copies.next_timeout().filter(|_| may_send),
            self.paths.search.deadline(),
        ];
        // This runs after every packet: each timer that most associations lack costs a comparison.
        self.paths
            .iter()
            .fold(Time::earliest(&own), |first, path| Time::earliest(&[first, path.next_timeout()]))
    }

    /// Call it at the time that `poll_timeout` returned. An earlier call does no harm.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.is_closed() {
            return;
        }
        self.now = now;
        let mut s = sender!(self);
        s.new_burst();
        s.resume_paths(now);
        if self.receiving.ack.deadline().is_some_and(|t| t <= now) {
            self.receiving.ack.demand();
            if let Some(side) = &mut self.side {
                side.on_sack_timeout(&self.sending, &mut self.receiving.ack);
            }
        }
        if matches!(self.sending.probe, WindowProbe::At(at) if at <= now) {
            self.sending.probe = WindowProbe::Allowed;
        }
        self.handle_t1(now);
        self.handle_t2_t5(now);
        sender!(self).handle_releases(now);
        if let Some(reconfig) = &mut self.reconfig {
            reconfig.handle_timeout(&mut sender!(self), now);
            self.end_if_unreachable();
        }
        if let Some(addresses) = &mut self.addresses {
            let may_change = self.state.may_change_addresses();
            addresses.handle_timeout(&mut sender!(self), now, may_change);
            self.end_if_unreachable();
        }
        if self.is_closed() {
            return;
        }
        let mut s = sender!(self);
        s.hedge(now);
        s.handle_search(now);
        let idle = s.model.procedures.handle_path_timers(&mut s, now);
        self.end_if_unreachable();
        self.advance_shutdown(now);
        if idle {
            // Free spare receive memory here: rarely enough for an association that receives, and
            // soon enough for one that no longer does.
            self.receiving.give_back(now);
        }
    }
}
