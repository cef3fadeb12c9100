//! FORWARD TSN: announces abandoned data to the peer (RFC 3758 3.5), and processes the peer's
//! (3.6).
//!
//! A FORWARD TSN is sent when Advanced.Peer.Ack.Point has moved, and again, until it is
//! acknowledged, after a SACK that arrives a round-trip time later (F2) or after the RTO: a timer
//! like T3-rtx, which runs although nothing is in flight (C5).

use super::Association;
use super::data::DataSeen;
use crate::extension::Extension;
use crate::ids::{PathId, Ssn};
use crate::outbox::Control;
use crate::policy::failover::PathErrorKind;
use crate::send::Forward;
use crate::time::Time;
use crate::wire::{
    DoesNotFit, FORWARD_TSN_HEADER_LEN, ForwardTsn, IForwardTsn, PacketWriter, SKIPPED_MESSAGE_LEN,
    SKIPPED_STREAM_LEN, SkippedMessage, SkippedStream,
};

impl Association {
    /// When the timer of a FORWARD TSN expires.
    pub(super) fn forward_timer(&self) -> Option<Time> {
        self.sending.forward.filter(|_| self.state.may_send_data()).map(|f| f.timer)
    }

    /// Sends a FORWARD TSN if Advanced.Peer.Ack.Point has moved (C3).
    pub(super) fn forward(&mut self, now: Time) {
        let flight = &self.sending.flight;
        if let Some(forward) = self.sending.forward
            && !flight.ack_point().is_before(forward.point)
        {
            self.sending.forward = None;
            // Acknowledged, as a DATA chunk would be (RFC 9260 8.1, 8.2).
            self.paths.clear_association_errors();
            self.paths.answered(now, forward.path, &mut self.events);
        }
        let flight = &self.sending.flight;
        let point = flight.advanced_ack_point();
        if !flight.has_abandoned() || point == flight.ack_point() {
            return;
        }
        if self.sending.forward.is_none_or(|f| f.point != point) {
            self.send_forward(now, self.paths.for_control());
        }
    }

    /// A SACK has arrived that does not acknowledge the FORWARD TSN: repeats it if there was time
    /// for an answer, since it was lost then (F2: "waiting a full RTT before sending a duplicate").
    pub(super) fn repeat_forward(&mut self, now: Time) {
        let Some(forward) = self.sending.forward else { return };
        let round_trip = self.paths[forward.path].view().srtt;
        if now > forward.sent && round_trip.is_some_and(|rtt| now >= forward.sent + rtt) {
            self.send_forward(now, self.paths.for_control());
        }
    }

    #[cold]
    fn send_forward(&mut self, now: Time, path: PathId) {
        let point = self.sending.flight.advanced_ack_point();
        let timer = now + self.paths[path].rto();
        self.sending.forward = Some(Forward { point, sent: now, path, timer });
        self.outbox.push_once(path, Control::ForwardTsn);
    }

    /// The timer has expired: the FORWARD TSN or its SACK was lost, or the peer is unreachable.
    pub(super) fn handle_forward_timeout(&mut self, now: Time) {
        let Some(forward) = self.sending.forward.filter(|f| f.timer <= now) else { return };
        if !self.state.may_send_data() {
            return;
        }
        if self.sending.flight.bytes() == 0 {
            // Nothing in flight would detect the failure (RFC 9260 6.3.3 E2, 8.1, 8.2).
            self.paths[forward.path].back_off(now);
            self.count_error(now, forward.path, PathErrorKind::DataTimeout);
            if self.is_closed() {
                return;
            }
        }
        self.send_forward(now, self.alternate_for_control(forward.path));
    }

    pub(super) fn write_forward_tsn(&self, w: &mut PacketWriter<'_>) -> Result<(), DoesNotFit> {
        let flight = &self.sending.flight;
        let interleaves = self.handshake.has(Extension::Interleaving);
        let each = if interleaves { SKIPPED_MESSAGE_LEN } else { SKIPPED_STREAM_LEN };
        let head = self.pending_response_len() + FORWARD_TSN_HEADER_LEN;
        let room = w.remaining().saturating_sub(head) / each;
        let (point, skipped) = flight.skipped(room);
        if point != flight.advanced_ack_point() && !w.is_empty() {
            return Err(DoesNotFit);
        }
        if point == flight.ack_point() {
            // It has been acknowledged meanwhile.
            return Ok(());
        }
        self.write_pending_response(w)?;
        if interleaves {
            let messages = skipped.iter().map(|s| SkippedMessage {
                stream: s.stream,
                unordered: s.unordered,
                mid: s.mid,
            });
            return w.i_forward_tsn(point, messages);
        }
        let streams =
            skipped.iter().map(|s| SkippedStream { stream: s.stream, ssn: Ssn(s.mid.0 as u16) });
        w.forward_tsn(point, streams)
    }

    /// Processes a FORWARD TSN (RFC 3758 3.6).
    pub(super) fn handle_forward_tsn(
        &mut self,
        path: PathId,
        forward: &ForwardTsn<'_>,
        seen: &mut DataSeen,
    ) {
        if self.is_wrong_kind(false) {
            return;
        }
        if !self.may_forward(Extension::PartialReliability, path, forward.raw) {
            return;
        }
        let moved = self.receiving.forward(forward.new_cumulative_tsn(), forward.streams());
        // "For the purposes of sending a SACK, the receiver MUST follow the same rules as if a DATA
        // chunk had been received", and one that is out of date is acknowledged at once.
        seen.forwarded(!moved);
    }

    /// Processes an I-FORWARD-TSN (RFC 8260 2.3.1).
    pub(super) fn handle_i_forward_tsn(
        &mut self,
        path: PathId,
        forward: &IForwardTsn<'_>,
        seen: &mut DataSeen,
    ) {
        if !self.may_forward(Extension::InterleavedForwardTsn, path, forward.raw) {
            return;
        }
        let point = forward.new_cumulative_tsn();
        let moved = self.receiving.forward_interleaved(point, forward.messages());
        seen.forwarded(!moved);
    }

    /// Whether the peer's chunk `raw`, which belongs to this extension, is to be processed.
    fn may_forward(&mut self, extension: Extension, path: PathId, raw: &[u8]) -> bool {
        let agreed = self.handshake.has(extension);
        if agreed && self.state.may_receive_data() && !self.is_blind() {
            return true;
        }
        if !agreed && self.state.is_synchronised() {
            // RFC 3758 3.3.1: treat it as unknown, "returning an ERROR to the peer".
            self.report_unrecognized_chunk(path, raw);
        }
        self.stats.dropped += 1;
        false
    }
}
