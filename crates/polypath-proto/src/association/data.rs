//! Received DATA, and the SACKs for it (RFC 9260 6.2, 6.5 to 6.9).

use std::time::Duration;

use bytes::Bytes;

use super::Association;
use super::state::State;
use crate::event::{CloseReason, Event, Received};
use crate::extension::Extension;
use crate::ids::{PathId, StreamId, Tsn};
use crate::outbox::{Control, OwnedCause};
use crate::path::{Path, PathState};
use crate::policy::ack::Arrival;
use crate::receive::Outcome;
use crate::time::Time;
use crate::transmit::Ecn;
use crate::wire::{Data, DoesNotFit, IData, PacketWriter, Sack, Timestamp};

/// Round-trip time before the first sample.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

/// Summary of the DATA chunks of one packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataSeen {
    any: bool,
    first: bool,
    duplicate: bool,
    immediate: bool,
    dropped: bool,
    retransmission: bool,
    /// The packet was marked with congestion experienced, and its lowest TSN.
    marked: bool,
    lowest: Option<Tsn>,
    /// Gap blocks before the packet.
    runs: usize,
    /// The packet's TIMESTAMP chunk, if that was agreed on.
    pub(super) timestamp: Option<Timestamp>,
}

/// Fields that DATA and I-DATA chunks have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    tsn: Tsn,
    stream: StreamId,
    immediate: bool,
    retransmission: bool,
    bytes: usize,
}

impl From<&Data<'_>> for Head {
    fn from(d: &Data<'_>) -> Self {
        Self {
            tsn: d.tsn,
            stream: d.stream,
            immediate: d.immediate,
            retransmission: d.retransmission,
            bytes: d.payload.len(),
        }
    }
}

impl From<&IData<'_>> for Head {
    fn from(d: &IData<'_>) -> Self {
        Self {
            tsn: d.tsn,
            stream: d.stream,
            immediate: d.immediate,
            retransmission: d.retransmission,
            bytes: d.payload.len(),
        }
    }
}

impl DataSeen {
    /// For a packet that arrived with this ECN codepoint.
    pub(super) fn new(ecn: Ecn) -> Self {
        Self { marked: ecn == Ecn::Ce, ..Self::default() }
    }

    /// Counts a FORWARD TSN; `out_of_date` if it did not move the cumulative TSN.
    pub(super) const fn forwarded(&mut self, out_of_date: bool) {
        self.any = true;
        self.duplicate |= out_of_date;
    }
}

impl Association {
    /// Takes the next message, or piece of one, of any stream (RFC 9260 11.1.7, RECEIVE).
    pub fn recv(&mut self, now: Time) -> Option<Received> {
        let received = self.receiving.recv()?;
        Some(self.received(now, received))
    }

    /// Takes the next message, or piece of one, of this stream.
    pub(super) fn recv_from(&mut self, now: Time, stream: StreamId) -> Option<Received> {
        let received = self.receiving.recv_from(stream)?;
        Some(self.received(now, received))
    }

    fn received(&mut self, now: Time, received: Received) -> Received {
        // The slowest path decides how long data may wait for earlier data.
        let Self { receiving, paths, handshake, .. } = self;
        receiving.tune(now, || {
            let active = paths.iter().filter(|p| p.state() == PathState::Active);
            active.filter_map(Path::srtt).max().or(handshake.round_trip).unwrap_or(UNKNOWN_RTT)
        });
        self.stats.bytes_received += received.payload.len() as u64;
        self.stats.messages_received += u64::from(received.end);
        // RFC 9260 6.2: "an additional SACK chunk MAY be sent ... to update the a_rwnd".
        let chunk = self.largest_chunk();
        let wanted = self.procedures.updates_window(self, chunk);
        if wanted && self.state.may_receive_data() && self.receiving.should_update(chunk) {
            self.receiving.ack.demand();
        }
        received
    }

    fn largest_chunk(&self) -> u32 {
        self.paths[self.receiving.ack.last_path].max_chunk()
    }

    pub(super) fn handle_data(&mut self, path: PathId, data: &Data<'_>, seen: &mut DataSeen) {
        let head = data.into();
        if !self.is_wrong_kind(false) && self.note_data(path, head, seen) {
            let outcome = self.receiving.handle_data(data);
            self.note_outcome(path, head, outcome, seen);
        }
    }

    /// Notes a received chunk of user data; false if it is dropped because of the association's
    /// state.
    pub(super) fn note_data(&mut self, path: PathId, chunk: Head, seen: &mut DataSeen) -> bool {
        if !self.state.may_receive_data()
            || self.is_blind()
            || self.is_deferred(chunk.stream, chunk.tsn)
        {
            self.stats.dropped += 1;
            return false;
        }
        if !seen.any {
            seen.runs = self.receiving.tsns().runs();
        }
        seen.any = true;
        let tsn = chunk.tsn;
        seen.lowest = seen.lowest.filter(|t| !t.is_after(tsn)).or(Some(tsn));
        seen.immediate |= chunk.immediate;
        seen.first |= self.receiving.tsns().is_first(tsn);
        seen.retransmission |= chunk.retransmission && self.flags_retransmissions();
        self.paths[path].stats.data_chunks_received += 1;
        true
    }

    /// Processes the receiver's verdict on a chunk.
    pub(super) fn note_outcome(
        &mut self,
        path: PathId,
        chunk: Head,
        outcome: Outcome,
        seen: &mut DataSeen,
    ) {
        match outcome {
            Outcome::New => {
                self.paths[path].stats.data_bytes_received += chunk.bytes as u64;
                // RFC 9260 6.2: another chunk was dropped to make room, and "the receiver MUST
                // immediately send back a SACK chunk".
                seen.dropped |= self.receiving.take_reneged() && self.procedures.reports_reneging();
            }
            Outcome::Duplicate => {
                self.stats.duplicates_received += 1;
                seen.duplicate = true;
            }
            Outcome::NoBuffer => {
                self.stats.dropped_no_buffer += 1;
                seen.dropped = true;
            }
            Outcome::OutOfWindow => {
                self.stats.dropped += 1;
                seen.dropped = true;
            }
            Outcome::InvalidStream => {
                // RFC 9260 6.5: acknowledge and report it.
                self.stats.dropped += 1;
                let cause = OwnedCause::InvalidStream(chunk.stream);
                self.outbox.push(path, Control::Error(cause));
            }
            // The peer has reset the association, and its response is still in flight on another
            // path.
            Outcome::Violation(_) if self.awaits_renumbering() => self.stats.dropped += 1,
            Outcome::Violation(what) => self.violation(what),
        }
    }

    /// A DATA chunk without user data (RFC 9260 6.2, 3.3.10.9).
    #[cold]
    pub(super) fn handle_no_user_data(&mut self, tsn: Tsn) {
        if self.state.may_receive_data() {
            self.send_abort(Some(OwnedCause::NoUserData(tsn)));
            self.become_closed(CloseReason::ProtocolViolation {
                what: "a DATA chunk without user data",
            });
        }
    }

    /// Reports new readable messages to the application.
    pub(super) fn note_readable(&mut self) {
        if self.receiving.has_news() {
            self.events.push_readable();
        }
    }

    /// All chunks of a packet have been processed: lets the policy decide when the SACK is sent.
    pub(super) fn after_data(&mut self, now: Time, path: PathId, seen: DataSeen) {
        if !seen.any || self.is_closed() {
            return;
        }
        self.perform_deferred_reset();
        if let Some(lowest) = seen.lowest.filter(|_| seen.marked) {
            self.note_mark(path, lowest);
        }
        self.note_readable();
        self.receiving.ack.echo =
            self.receiving.ack.echo.or_else(|| seen.timestamp.map(|t| t.sent));
        self.receiving.ack.retransmission |= seen.retransmission;
        let arrival = Arrival {
            now,
            path,
            packets: self.receiving.ack.count(path),
            first: seen.first,
            gap: self.receiving.tsns().has_gap(),
            new_gap: self.receiving.tsns().runs() > seen.runs,
            rtt: self.paths[path].srtt().or(self.handshake.round_trip),
            duplicate: seen.duplicate,
            // A SACK that reports a retransmission has no other cause, and no delay that would be
            // measured.
            immediate: seen.immediate || seen.retransmission,
            dropped: seen.dropped,
        };
        let when = self.receiving.ack_policy.when(&arrival);
        self.receiving.ack.decide(now, &arrival, when);
        if matches!(self.state, State::ShutdownSent(_)) {
            self.repeat_shutdown(now);
        }
    }

    /// The path for the SACK.
    pub(super) fn ack_path(&self) -> PathId {
        let view = self.paths.view();
        let path = self.receiving.ack_policy.path(self.receiving.ack.last_path, view);
        if self.may_answer(path) {
            return path;
        }
        let others = [self.paths.current(), self.paths.fallback()].into_iter();
        let mut others = others.chain(self.paths.iter().map(Path::id));
        others.find(|path| self.may_answer(*path)).unwrap_or_else(|| self.paths.current())
    }

    pub(super) fn write_sack(&mut self, w: &mut PacketWriter<'_>) -> Result<(), DoesNotFit> {
        let a_rwnd = self.receiving.announce(self.largest_chunk());
        let mut flags = if self.receiving.ack.retransmission { Sack::RETRANSMISSION } else { 0 };
        if self.handshake.has(Extension::PacketCount) {
            flags |= Sack::packets_flags(self.receiving.ack.packets());
        }
        if self.handshake.has(Extension::NrSack) {
            self.write_nr_sack(a_rwnd, flags, w)?;
        } else {
            let tsns = self.receiving.tsns();
            w.sack(tsns.cumulative(), a_rwnd, flags, tsns.gaps(), tsns.duplicates())?;
        }
        self.receiving.duplicates_reported();
        self.receiving.ack.sent();
        self.stats.sacks_sent += 1;
        Ok(())
    }

    /// The peer has reported an error that does not end the association (RFC 9260 6.10, 3.3.10).
    pub(super) fn peer_error(&mut self, cause: String) {
        self.events.push(Event::PeerError { cause });
    }

    pub(super) fn report_unrecognized_chunk(&mut self, path: PathId, raw: &[u8]) {
        // Repeat as much of the chunk as fits the reply; the cause's length shows how much that is.
        let raw = Bytes::copy_from_slice(&raw[..raw.len().min(256)]);
        self.outbox.push(path, Control::Error(OwnedCause::UnrecognizedChunk(raw)));
    }
}
