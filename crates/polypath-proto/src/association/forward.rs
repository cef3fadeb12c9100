//! FORWARD TSN: announces abandoned data to the peer (RFC 3758 3.5), and processes the peer's
//! (3.6).
//!
//! A FORWARD TSN is sent when Advanced.Peer.Ack.Point has moved, and again, until it is
//! acknowledged, after a SACK that arrives a round-trip time later (F2) or after the RTO: a timer
//! like T3-rtx, which runs although nothing is in flight (C5).

use bytes::Bytes;

use super::Sender;
use super::data::DataSeen;
use super::reconfig::{Reconfig, write_response};
use super::{Receiver, Violation};
use crate::extension::Extension;
use crate::ids::{PathId, Ssn};
use crate::outbox::Control;
use crate::policy::failover::PathErrorKind;
use crate::send::{Forward, Sending};
use crate::time::Time;
use crate::wire::{
    DoesNotFit, FORWARD_TSN_HEADER_LEN, ForwardTsn, IForwardTsn, PacketWriter, SKIPPED_MESSAGE_LEN,
    SKIPPED_STREAM_LEN, SkippedMessage, SkippedStream,
};

impl Sender<'_> {
    /// Sends a FORWARD TSN if Advanced.Peer.Ack.Point has moved (C3).
    pub(super) fn forward(&mut self, now: Time) {
        let flight = &self.sending.flight;
        if let Some(forward) = self.sending.forward
            && !flight.ack_point().is_before(forward.point)
        {
            self.sending.forward = None;
            // Acknowledged, as a DATA chunk would be (RFC 9260 8.1, 8.2).
            self.paths.clear_association_errors();
            self.paths.answered(now, forward.path, self.events);
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
        if !self.phase.may_send_data {
            return;
        }
        if self.sending.flight.bytes() == 0 {
            // Nothing in flight would detect the failure (RFC 9260 6.3.3 E2, 8.1, 8.2).
            self.paths[forward.path].back_off(now);
            self.count_error(now, forward.path, PathErrorKind::DataTimeout);
            if self.is_over() {
                return;
            }
        }
        self.send_forward(now, self.alternate_for_control(forward.path));
    }
}

/// Writes a FORWARD TSN, preceded by the `pending` response to a reset.
pub(super) fn write_forward_tsn(
    sending: &Sending,
    interleaves: bool,
    pending: Option<&Bytes>,
    w: &mut PacketWriter<'_>,
) -> Result<(), DoesNotFit> {
    let flight = &sending.flight;
    let each = if interleaves { SKIPPED_MESSAGE_LEN } else { SKIPPED_STREAM_LEN };
    let head = sending.response_len + FORWARD_TSN_HEADER_LEN;
    let room = w.remaining().saturating_sub(head) / each;
    let (point, skipped) = flight.skipped(room);
    if point != flight.advanced_ack_point() && !w.is_empty() {
        return Err(DoesNotFit);
    }
    if point == flight.ack_point() {
        // It has been acknowledged meanwhile.
        return Ok(());
    }
    write_response(pending, w)?;
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

impl Receiver<'_> {
    /// Processes a FORWARD TSN (RFC 3758 3.6).
    pub(super) fn handle_forward_tsn(
        &mut self,
        path: PathId,
        forward: &ForwardTsn<'_>,
        seen: &mut DataSeen,
    ) -> Result<(), Violation> {
        self.check_kind(false)?;
        if !self.may_forward(Extension::PartialReliability, path, forward.raw) {
            return Ok(());
        }
        let moved = self.receiving.forward(forward.new_cumulative_tsn(), forward.streams());
        // "For the purposes of sending a SACK, the receiver MUST follow the same rules as if a DATA
        // chunk had been received", and one that is out of date is acknowledged at once.
        seen.forwarded(!moved);
        Ok(())
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
        let agreed = self.has(extension);
        if agreed && self.may_receive_data && !self.reconfig.is_some_and(Reconfig::is_blind) {
            return true;
        }
        if !agreed && self.synchronised {
            // RFC 3758 3.3.1: treat it as unknown, "returning an ERROR to the peer".
            self.outbox.report_unrecognized(path, raw);
        }
        self.stats.dropped += 1;
        false
    }
}
