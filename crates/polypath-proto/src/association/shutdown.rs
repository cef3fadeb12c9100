//! Graceful shutdown (RFC 9260 9.2) and abort (9.1).

use bytes::Bytes;

use super::Association;
use super::state::{ShutdownTimers, State};
use crate::event::CloseReason;
use crate::ids::{PathId, Tsn, VerificationTag};
use crate::outbox::{Control, OwnedCause};
use crate::policy::failover::PathErrorKind;
use crate::reply::shutdown_complete_packet;
use crate::time::Time;
use crate::transmit::FourTuple;

impl Association {
    /// Ends the association once everything sent has been acknowledged; new messages are rejected
    /// (RFC 9260 11.1.3, SHUTDOWN).
    ///
    /// [`Event::Closed`](crate::Event::Closed) reports the end. Before the association is
    /// established, the shutdown waits for that.
    pub fn shutdown(&mut self, now: Time) {
        self.shutdown_requested = true;
        self.begin_shutdown(now);
    }

    pub(super) fn begin_shutdown(&mut self, now: Time) {
        if matches!(self.state, State::Established) {
            self.become_shutdown_pending();
            self.advance_shutdown(now);
        }
    }

    /// Ends the association at once (RFC 9260 11.1.4, ABORT). Outstanding data is lost; the ABORT
    /// carries `reason` to the peer.
    pub fn abort(&mut self, now: Time, reason: &[u8]) {
        if self.is_closed() {
            return;
        }
        let _ = now;
        // RFC 9260 9.1: the cause is included "on request of the upper layer", with a reason or
        // without. A reason that does not fit the smallest packet is cut off.
        let reason = Bytes::copy_from_slice(&reason[..reason.len().min(400)]);
        self.send_abort(Some(OwnedCause::UserAbort(reason)));
        self.become_closed(CloseReason::LocalAbort);
    }

    /// The peer broke the protocol: ends the association (RFC 9260 3.3.10.13).
    #[cold]
    pub(super) fn violation(&mut self, what: &'static str) {
        self.send_abort(Some(OwnedCause::ProtocolViolation(what)));
        self.become_closed(CloseReason::ProtocolViolation { what });
    }

    /// Ends the association if its error count has exceeded Association.Max.Retrans (RFC 9260 8.1).
    /// The ABORT has been queued.
    pub(super) fn end_if_unreachable(&mut self) {
        if self.paths.are_unreachable() {
            self.become_closed(CloseReason::PeerUnreachable);
        }
    }

    pub(super) fn send_abort(&mut self, cause: Option<OwnedCause>) {
        self.outbox.clear();
        // RFC 9260 8.5.1 B: the ABORT carries the peer's tag; without one it cannot be sent.
        if self.handshake.peer_tag.0 != 0 {
            self.outbox.push(self.paths.for_control(), Control::Abort(cause));
        }
    }

    /// Takes the next step of a shutdown if everything is acknowledged.
    pub(super) fn advance_shutdown(&mut self, now: Time) {
        if !self.sending.is_done() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                // RFC 9260 9.2: "start the T2-shutdown timer and enter the SHUTDOWN-SENT state".
                let path = self.paths.for_control();
                let t2 = now + self.paths[path].rto();
                // RFC 9260 9.2: T5-shutdown-guard "SHOULD be set to the RECOMMENDED value of 5
                // times 'RTO.Max'".
                let t5 = Some(now + 5 * self.config.rto_max());
                self.become_shutdown_sent(ShutdownTimers { t2, t5, path });
                self.outbox.push(path, Control::Shutdown);
            }
            // RFC 9260 6.4: send a reply on the path of the chunk that it answers.
            State::ShutdownReceived(path) => self.send_shutdown_ack(now, path),
            _ => {}
        }
    }

    fn send_shutdown_ack(&mut self, now: Time, path: PathId) {
        // All data has been delivered in both directions: the state of the paths no longer matters.
        self.paths.stop_timers();
        if let Some(side) = &mut self.side {
            side.stop();
        }
        let t2 = now + self.paths[path].rto();
        // RFC 9260 9.2: "The sender of the SHUTDOWN chunk" has the guard timer; in this state, only
        // if both sides have sent one. Association.Max.Retrans alone limits the number of SHUTDOWN
        // ACKs.
        let t5 = match &self.state {
            State::ShutdownSent(timers) => timers.t5,
            _ => None,
        };
        self.become_shutdown_ack_sent(ShutdownTimers { t2, t5, path });
        self.outbox.push(path, Control::ShutdownAck);
    }

    /// Processes a SHUTDOWN, beginning with its cumulative TSN ack (RFC 9260 9.2).
    pub(super) fn handle_shutdown(&mut self, now: Time, path: PathId, cumulative: Tsn) {
        if !self.state.is_synchronised() {
            return;
        }
        sender!(self).handle_shutdown_ack_point(now, cumulative);
        match &mut self.state {
            State::Established | State::ShutdownPending => {
                self.become_shutdown_received(path);
                self.advance_shutdown(now);
            }
            // Both sides began: RFC 9260 9.2, "SHUTDOWN chunk collision".
            State::ShutdownSent(_) => self.send_shutdown_ack(now, path),
            State::ShutdownReceived(from) => {
                *from = path;
                self.advance_shutdown(now);
            }
            State::ShutdownAckSent(timers) => {
                timers.path = path;
                self.outbox.push(path, Control::ShutdownAck);
            }
            State::CookieWait(_) | State::CookieEchoed(_) | State::Closed(_) => {}
        }
    }

    /// Processes a SHUTDOWN ACK in a packet with this verification tag.
    pub(super) fn handle_shutdown_ack(
        &mut self,
        path: PathId,
        from: FourTuple,
        tag: VerificationTag,
    ) {
        match self.state {
            State::ShutdownSent(_) | State::ShutdownAckSent(_) => {
                self.outbox.clear();
                self.outbox.push(path, Control::ShutdownComplete);
                self.become_closed(CloseReason::Graceful);
            }
            // RFC 9260 8.5.1 E, 8.4 (5): reply as to an out-of-the-blue packet, and continue the
            // handshake.
            State::CookieWait(_) | State::CookieEchoed(_) => {
                let packet = shutdown_complete_packet(self.reply_header(tag), &self.shared);
                self.reply(from, packet);
            }
            _ => self.stats.dropped += 1,
        }
    }

    pub(super) fn handle_shutdown_complete(&mut self) {
        match self.state {
            State::ShutdownAckSent(_) => self.become_closed(CloseReason::Graceful),
            // RFC 9260 8.5.1 C, 9.2: discarded in any other state.
            _ => self.stats.dropped += 1,
        }
    }

    /// The peer has ended the association (RFC 9260 9.1).
    pub(super) fn handle_abort(&mut self, reason: CloseReason) {
        self.outbox.clear();
        self.become_closed(reason);
    }

    /// RFC 9260 9.2: in SHUTDOWN-SENT, "The reception of any packet from its peer ... SHOULD clear
    /// the endpoint's retransmission count and restart the T2-shutdown timer".
    pub(super) fn extend_shutdown(&mut self, now: Time) {
        if let State::ShutdownSent(timers) = &mut self.state {
            timers.t2 = now + self.paths[timers.path].rto();
            self.paths.clear_association_errors();
        }
    }

    /// DATA in SHUTDOWN-SENT: the peer has not seen the SHUTDOWN yet (RFC 9260 9.2).
    #[cold]
    pub(super) fn repeat_shutdown(&mut self, now: Time) {
        if let State::ShutdownSent(timers) = &mut self.state {
            let path = timers.path;
            timers.t2 = now + self.paths[path].rto();
            self.receiving.ack.demand();
            self.outbox.push(path, Control::Shutdown);
        }
    }

    /// T2-shutdown or T5-shutdown-guard has expired.
    pub(super) fn handle_t2_t5(&mut self, now: Time) {
        let (State::ShutdownSent(timers) | State::ShutdownAckSent(timers)) = &self.state else {
            return;
        };
        let (t2, t5, old) = (timers.t2, timers.t5, timers.path);
        if t5.is_some_and(|t5| t5 <= now) {
            self.send_abort(None);
            return self.become_closed(CloseReason::ShutdownTimeout);
        }
        if t2 > now {
            return;
        }
        // RFC 9260 9.2: resend, and count an error of the path and of the association (8.1, 8.2).
        self.paths[old].back_off(now);
        sender!(self).count_error(now, old, PathErrorKind::DataTimeout);
        self.end_if_unreachable();
        if self.is_closed() {
            return;
        }
        let path = sender!(self).alternate_for_control(old);
        let rto = self.paths[path].rto();
        let control = match &mut self.state {
            State::ShutdownSent(timers) => {
                (timers.t2, timers.path) = (now + rto, path);
                Control::Shutdown
            }
            State::ShutdownAckSent(timers) => {
                (timers.t2, timers.path) = (now + rto, path);
                Control::ShutdownAck
            }
            _ => return,
        };
        self.outbox.push(path, control);
    }

    /// Drops all outstanding and queued data when the association has ended.
    pub(super) fn drop_outstanding(&mut self) {
        for path in self.paths.iter_mut() {
            path.flight_dropped();
        }
        self.sending.copies.clear();
        self.sending.flight.restart(self.sending.flight.next_tsn());
        self.drop_reconfig();
        self.sending.queue.clear();
        self.sending.buffered = 0;
        self.paths.clear_send_credit();
    }
}
