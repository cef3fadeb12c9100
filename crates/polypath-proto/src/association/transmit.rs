//! Building packets: the next chunks to send, their path and their amount (RFC 9260 6.1, 6.10).

use bytes::Bytes;

use super::choose::Content;
use super::data::ack_path;
use super::forward::write_forward_tsn;
use super::measure::write_timestamp;
use super::reconfig::write_response;
use super::state::State;
use super::{Association, auth};
use crate::extension::Extension;
use crate::ids::{PathId, VerificationTag};
use crate::init;
use crate::outbox::Control;
use crate::path::PathState;
use crate::paths::HeartbeatKind;
use crate::policy::rtt_sampling::SentTime;
use crate::reply::write_reply;
use crate::time::Time;
use crate::transmit::{Ecn, Fragmentation, Transmit};
use crate::wire::{
    CHUNK_HEADER_LEN, COMMON_HEADER_LEN, Checksum, CommonHeader, DoesNotFit, InitFields,
    PacketWriter, ReconfigParameters, chunk_type, seal,
};

/// The next packet, as it was chosen. Passed by reference: copying it in pieces costs time.
#[derive(Debug)]
struct NextPacket {
    path: PathId,
    kind: Kind,
    /// Most bytes.
    limit: usize,
}

/// Purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Control chunks.
    Control,
    Data(Content),
    Sack,
}

/// Common header, and the headers of the chunk and of its parameter (RFC 9260 3.3.5).
const HEARTBEAT_LEN: usize = COMMON_HEADER_LEN + 4 + 4;

impl Association {
    /// Writes the next datagram, or several of one size for one path if the buffer has room for
    /// them, and returns their destination. Call it until it returns `None`, after every other
    /// call.
    ///
    /// `buf` must have room for one packet of the largest path MTU.
    pub(crate) fn poll_transmit(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        self.now = now;
        if let Some(reply) = self.outbox.next_reply() {
            return Some(write_reply(&reply, buf));
        }
        // RFC 3758 4.1 TR3, TR4: abandon messages before anything is sent. A reset may have waited
        // for that.
        if self.sending.may_abandon(self.handshake.extensions) && self.state.may_send_data() {
            sender!(self).abandon_hopeless(now);
            self.advance_shutdown(now);
        }
        if let Some(reconfig) = &mut self.reconfig {
            reconfig.advance(&mut sender!(self), now);
        }
        let (mut probes, mut ecn, mut before);
        let (path, segment) = loop {
            let next = self.next_packet(now);
            let Some(packet) = &next else {
                self.sending.burst.end();
                if self.sending.is_concurrent() {
                    self.paths.clear_send_credit();
                    self.sending.scheduler.turn_over();
                }
                let mut s = sender!(self);
                s.model.procedures.on_burst_over(&mut s);
                s.note_blocking(now);
                s.pause_paths(now);
                if s.phase.may_send_data {
                    // RFC 9260 6.1 A: the first probe of a closed window is sent after one RTO,
                    // later ones as T3-rtx backs off.
                    s.sending.watch_window(now + s.paths[s.paths.current()].rto());
                }
                return None;
            };
            let (path, limit) = (packet.path, packet.limit.min(buf.len()));
            probes = matches!(self.outbox.front(), Some((_, Control::MtuProbe(..))));
            before = self.paths[path].in_flight();
            let new = self.paths[path].stats.data_chunks_sent;
            let segment = self.write_and_record(now, packet, &mut buf[..limit]);
            ecn = self.ect_beyond(path, new);
            if segment > 0 {
                break (path, segment);
            }
            // A control chunk that could not be written has been removed from the queue; anything
            // else waits for a larger buffer.
            if packet.kind != Kind::Control {
                return None;
            }
        };
        let mut size = segment;
        let mut segments = 1;
        // Append datagrams of the same size, for segmentation offload.
        let large = segment > self.paths[path].max_packet();
        let more = !probes && !large && !self.sending.is_idle();
        while more && segments < MAX_SEGMENTS && buf.len() - size >= segment {
            let next = self.next_packet(now);
            let Some(next) = &next else { break };
            let fresh = matches!(next.kind, Kind::Data(Content::NewData(_)));
            let again = matches!(next.kind, Kind::Data(Content::Retransmission(_)));
            if next.path != path || !(fresh || again) {
                break;
            }
            // All of them share one ECN codepoint.
            if self.ect(path) != Ecn::NotEct && fresh != (ecn != Ecn::NotEct) {
                break;
            }
            // Do not cut a long message to the size of a short packet before it.
            let full = self.paths[path].max_packet() < segment + SLACK;
            let whole = self.sending.flight.first_reserved().is_some()
                || self.sending.queue.next_is_whole(self.sending.largest_payload);
            if !full && !whole {
                break;
            }
            let written = self.write_and_record(now, next, &mut buf[size..size + segment]);
            if written == 0 {
                break;
            }
            size += written;
            segments += 1;
            if written < segment {
                break;
            }
        }
        if self.sending.needs.sending {
            sender!(self).report_sent(now, path, before);
        }
        if self.paths[path].count_sent(segments as u64, size as u64) {
            self.paths.choose_current(now, &mut self.events);
        }
        let p = &self.paths[path];
        Some(Transmit {
            path: Some((self.id, path)),
            source: p.local(),
            destination: p.remote(),
            ecn,
            fragmentation: if probes { Fragmentation::Never } else { p.fragmentation(large) },
            size,
            segment_size: (segments > 1).then_some(segment),
        })
    }

    /// Most bytes of the packet. A chunk that was cut for larger packets, before a path with
    /// smaller ones was known, is sent whole: IP fragments it (RFC 9260 6.9).
    fn packet_limit(&self, path: PathId, kind: Kind) -> usize {
        let limit = self.paths[path].max_packet();
        if let Some((_, Control::MtuProbe(Some(size), _))) = self.outbox.front() {
            return *size;
        }
        // RFC 9260 3.3.3: the peer's cookie may be of any length. Unrecognized parameters of its
        // INIT ACK are reported in the same packet, because no other may be sent before the COOKIE
        // ACK (5.1 C).
        if let (State::CookieEchoed(echoed), Kind::Control) = (&self.state, kind) {
            let chunks = self.outbox.len_of_errors() + echoed.cookie.len().next_multiple_of(4);
            return limit.max(COMMON_HEADER_LEN + CHUNK_HEADER_LEN + chunks);
        }
        let flight = &self.sending.flight;
        let Kind::Data(content) = kind else { return limit };
        let payload = match content {
            Content::Retransmission(tsn) | Content::Probe(Some(tsn)) => {
                flight.get(tsn).map_or(0, |chunk| chunk.content.payload.len())
            }
            Content::NewData(_) | Content::Probe(None) if flight.largest_reserved() > 0 => {
                flight.largest_reserved()
            }
            _ => return limit,
        };
        let chunk = (self.sending.data_header() + payload).next_multiple_of(4);
        limit.max(COMMON_HEADER_LEN + self.paths.overhead + self.sending.response_len + chunk)
    }

    /// Chooses the next packet; `None` if nothing may be sent now.
    fn next_packet(&mut self, now: Time) -> Option<NextPacket> {
        let (path, kind) = self.next_kind(now)?;
        Some(NextPacket { path, kind, limit: self.packet_limit(path, kind) })
    }

    /// The path and the purpose of the next packet.
    fn next_kind(&mut self, now: Time) -> Option<(PathId, Kind)> {
        while let Some(path) = self.outbox.front_path() {
            let (gone, unannounced) =
                (self.paths[path].state() == PathState::Removed, self.is_unannounced(path));
            let front = self.outbox.front().map(|(_, control)| control);
            let asconf = matches!(front, Some(Control::Asconf(_)));
            let forbidden = front.is_some_and(|control| self.is_forbidden(path, control));
            match (gone || forbidden || (unannounced && !asconf)).then(|| self.redirected(path)) {
                None => return Some((path, Kind::Control)),
                Some(Some(other)) => self.outbox.redirect(other),
                // A timer retransmits the chunks that need an answer.
                Some(None) => self.outbox.pop(),
            }
        }
        if self.is_closed() {
            return None;
        }
        if self.state.may_send_data() {
            let sack_first = self.receiving.ack.is_due() && self.model.rules.sends_sacks_first;
            let mut s = sender!(self);
            let next = if sack_first {
                let again = s.model.procedures.next_retransmission(&mut s, now);
                again.map(|(path, tsn)| (path, Content::Retransmission(tsn)))
            } else {
                s.next_data(now)
            };
            if let Some((path, content)) = next {
                return Some((path, Kind::Data(content)));
            }
        }
        if let Some(path) = self.outbox.release() {
            return Some((path, Kind::Control));
        }
        if !self.receiving.ack.is_due() || !self.state.is_synchronised() {
            return None;
        }
        let path = self.ack_path();
        self.may_answer(path).then_some((path, Kind::Sack))
    }

    /// The path for the SACK.
    fn ack_path(&self) -> PathId {
        ack_path(&self.receiving, &self.paths, self.model.rules.verifies_addresses)
    }

    /// Whether SACKs and DATA may be sent on the path.
    fn may_answer(&self, path: PathId) -> bool {
        self.paths.may_answer(path, self.model.rules.verifies_addresses)
    }

    /// Whether the chunk must not be sent to the path's address, which has yet to be confirmed (RFC
    /// 9260 5.4).
    fn is_forbidden(&self, path: PathId, control: &Control) -> bool {
        !control.verifies() && self.model.rules.verifies_addresses && !self.paths.is_confirmed(path)
    }

    /// Whether the peer has yet to acknowledge the path's local address.
    fn is_unannounced(&self, path: PathId) -> bool {
        self.paths.is_unannounced(path, &self.shared)
    }

    /// The path for a packet meant for `path`; `None` if there is no usable path.
    pub(super) fn redirected(&self, path: PathId) -> Option<PathId> {
        self.paths.redirected(path, &self.shared, self.model.rules.verifies_addresses)
    }

    /// Bytes to keep free for an AUTH chunk in the next packet; `alone` if the packet is sent for
    /// its first control chunk.
    pub(super) fn auth_room(&self, alone: bool) -> usize {
        self.auth.room(self.outbox.front().map(|(_, control)| control), alone)
    }

    /// The response to a reset that precedes data.
    fn pending_response(&self) -> Option<&Bytes> {
        self.reconfig.as_ref()?.pending_response()
    }

    /// ECN codepoint of a packet with new data on a path. A COOKIE ECHO has none, whatever follows
    /// it: a path that drops ECN-capable packets must not delay the handshake.
    fn ect(&self, path: PathId) -> Ecn {
        let offered = self.handshake.has(Extension::Ecn) && self.state.may_send_data();
        if offered && self.paths[path].marks.is_allowed() { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// ECN codepoint of the packet just written for `path`: ECN-capable if new data was added to
    /// the `new_chunks` chunks sent on it before.
    fn ect_beyond(&mut self, path: PathId, new_chunks: u64) -> Ecn {
        let ecn = self.ect(path);
        let p = &mut self.paths[path];
        if p.stats.data_chunks_sent == new_chunks || ecn == Ecn::NotEct {
            return Ecn::NotEct;
        }
        let highest = p.highest_sent();
        p.marks.sent(highest);
        ecn
    }

    /// RFC 9653 5.2: zero if the peer accepts that, but never in packets of the handshake.
    pub(super) fn checksum(&self) -> Checksum {
        let zero = self.handshake.has(Extension::ZeroChecksum) && self.state.is_synchronised();
        if zero { Checksum::Ignore } else { self.shared.config.checksum }
    }

    /// Whether a packet without checksum may belong to the association: this side has offered to
    /// accept them.
    pub(crate) fn accepts_zero_checksum(&self) -> bool {
        self.handshake.opened_here || self.handshake.has(Extension::ZeroChecksum)
    }

    /// Writes a packet, and records it for the burst; returns the packet's length.
    fn write_and_record(&mut self, now: Time, packet: &NextPacket, buf: &mut [u8]) -> usize {
        let written = self.write_packet(now, packet, buf);
        if let Kind::Data(Content::Retransmission(_) | Content::NewData(_)) = packet.kind {
            self.sending.burst.count();
        }
        written
    }

    /// Writes a packet; returns its length.
    fn write_packet(&mut self, now: Time, packet: &NextPacket, buf: &mut [u8]) -> usize {
        let (path, kind) = (packet.path, &packet.kind);
        let verification_tag = match self.outbox.front() {
            Some((_, Control::Init)) => VerificationTag(0),
            _ => self.handshake.peer_tag,
        };
        let header = CommonHeader {
            source_port: self.shared.config.port,
            destination_port: self.handshake.peer_port,
            verification_tag,
        };
        let checksum = self.checksum();
        let room = self.auth_room(*kind == Kind::Control);
        let limit = (buf.len() & !3).saturating_sub(room);
        let mut w = PacketWriter::new(&mut buf[..limit], header);
        let bundles = self.model.rules.bundles;
        let mut answered = false;
        let early = self.sends_with_cookie(path);
        if !self.outbox.is_empty() && (bundles || *kind == Kind::Control) {
            answered = self.write_controls(path, &mut w);
        }
        let probe = matches!(self.outbox.front(), Some((_, Control::MtuProbe(..))));
        let alone = self.is_closed()
            || probe
            || verification_tag.0 == 0
            || !self.may_answer(path)
            || (!bundles && *kind == Kind::Control && !w.is_empty());
        if !alone && self.state.is_synchronised() {
            // RFC 9260 6.10: control chunks before DATA. A delayed SACK is bundled with the next
            // packet on its path.
            let may_follow = bundles || *kind == Kind::Sack;
            let with_sack =
                self.receiving.ack.is_pending() && may_follow && self.ack_path() == path;
            let mut stamp = None;
            if self.handshake.has(Extension::Timestamps) {
                let echo = self.receiving.ack.echo.filter(|_| with_sack);
                let sent = SentTime::stamp_of(self.handshake.local_tag.0, now);
                let (ack, sack) = (&self.receiving.ack, *kind == Kind::Sack);
                let sent = match &mut self.side {
                    Some(side) => side.stamp(&self.sending, ack, sack, sent),
                    None => sent,
                };
                stamp = write_timestamp(sent, echo, &mut w);
            }
            // If it does not fit, the SACK is sent in the next packet.
            let echoes = with_sack
                && receiver!(self).write_sack(&mut w).is_ok()
                && self.marks.write_ecne(&mut w);
            let mut full = echoes && !self.marks.may_precede_data();
            let bare = (w.len(), w.chunk_count());
            if !answered {
                full |= write_response(self.pending_response(), &mut w).is_err();
            }
            let before = w.chunk_count();
            if self.state.may_send_data() && !full && (bundles || *kind != Kind::Sack) {
                let mut s = sender!(self);
                s.note_alone();
                let bundled;
                let content = match kind {
                    Kind::Data(content) => Some(content),
                    Kind::Control | Kind::Sack => {
                        bundled = s.bundled_data(now, path);
                        bundled.as_ref()
                    }
                };
                if let Some(content) = content {
                    s.write_data(now, path, content, &mut w);
                }
            }
            if w.chunk_count() == before {
                w.take_back(bare.0, bare.1);
            }
            self.sending.settle_timestamp(now, stamp, &mut w);
        }
        if early && self.sending.next_new_chunk_size(&self.paths).is_some() {
            let mut s = sender!(self);
            s.note_alone();
            // One packet, whatever the window of the path, which the COOKIE ACK confirms.
            s.write_new_data(now, path, (0, true), &mut w);
        }
        match (w.is_empty(), room) {
            (true, _) => 0,
            (false, 0) => w.finish(checksum),
            (false, _) => {
                let len = w.len();
                let len = self.auth.authenticate(buf, len);
                seal(&mut buf[..len], checksum);
                len
            }
        }
    }

    /// Writes the control chunks that are queued for this path, as many as fit. True if the reset
    /// response that must precede data is among them. Not inlined, because nearly all packets have
    /// no control chunks.
    #[inline(never)]
    fn write_controls(&mut self, path: PathId, w: &mut PacketWriter<'_>) -> bool {
        let mut answered = false;
        while let Some((p, control)) = self.outbox.front() {
            if *p != path {
                break;
            }
            let alone = matches!(
                control,
                Control::Init
                    | Control::ShutdownComplete
                    | Control::Abort(_)
                    | Control::MtuProbe(..)
            );
            // RFC 9260 6.10: INIT, INIT ACK and SHUTDOWN COMPLETE are not bundled; a probe has its
            // size.
            if alone && !w.is_empty() {
                break;
            }
            // The packet was begun without room for an AUTH chunk.
            if matches!(control, Control::Asconf(_)) && !w.is_empty() {
                break;
            }
            let before = (w.len(), w.chunk_count());
            if self.write_control(path, w).is_err() {
                w.take_back(before.0, before.1);
                if !w.is_empty() {
                    break;
                }
            }
            let front = self.outbox.front().map(|(_, control)| control);
            answered |= matches!(front, Some(Control::Reconfig(body)) if Some(body) == self.pending_response());
            if matches!(
                front,
                Some(Control::Heartbeat | Control::PairedHeartbeat { second: false })
            ) {
                let mut s = sender!(self);
                s.model.procedures.on_heartbeat_written(&mut s, path);
            }
            // A chunk that does not even fit an empty packet is dropped.
            self.outbox.pop();
            if alone {
                break;
            }
        }
        answered
    }

    fn write_control(&self, path: PathId, w: &mut PacketWriter<'_>) -> Result<(), DoesNotFit> {
        let Some((_, control)) = self.outbox.front() else { return Ok(()) };
        match control {
            Control::Init => self.write_init(path, w),
            Control::CookieEcho => match &self.state {
                State::CookieEchoed(s) => w.cookie_echo(&s.cookie),
                _ => Ok(()),
            },
            Control::CookieEchoVerifying => match &self.state {
                State::CookieEchoed(s) => {
                    w.cookie_echo(&s.cookie)?;
                    w.heartbeat(&self.paths.heartbeat(self.now, path))
                }
                _ => Ok(()),
            },
            Control::CookieAck => w.cookie_ack(),
            Control::CookieAckVerifying => {
                w.cookie_ack()?;
                w.heartbeat(&self.paths.heartbeat(self.now, path))
            }
            Control::Heartbeat => w.heartbeat(&self.paths.heartbeat(self.now, path)),
            Control::PairedHeartbeat { second } => {
                w.heartbeat(&self.paired_heartbeat(path, *second))
            }
            Control::Probe(size) => {
                let mut info = self.paths.heartbeat(self.now, path).to_vec();
                let taken = HEARTBEAT_LEN + self.auth_room(true);
                info.resize(info.len().max(size.saturating_sub(taken)), 0);
                w.heartbeat(&info)
            }
            Control::HeartbeatAck(parameters) => {
                w.typed_chunk(chunk_type::HEARTBEAT_ACK, 0, parameters)
            }
            Control::Cwr(tsn) => w.cwr(*tsn),
            Control::MtuProbe(size, begun) => self.write_mtu_probe(path, *size, *begun, w),
            Control::Asconf(raw) => w.raw_chunk(raw),
            Control::Reconfig(body) => w.re_config(|p| p.append(ReconfigParameters::new(body))),
            Control::ForwardTsn => {
                let interleaves = self.handshake.has(Extension::Interleaving);
                write_forward_tsn(&self.sending, interleaves, self.pending_response(), w)
            }
            Control::Error(cause) => w.error(|c| cause.write(c)),
            Control::Shutdown => w.shutdown(self.receiving.tsns().cumulative()),
            Control::ShutdownAck => w.shutdown_ack(),
            Control::ShutdownComplete => w.shutdown_complete(false),
            Control::Abort(cause) => w.abort(false, |c| match cause {
                Some(cause) => cause.write(c),
                None => Ok(()),
            }),
        }
    }

    /// Information of a HEARTBEAT of a packet pair.
    fn paired_heartbeat(&self, path: PathId, second: bool) -> Vec<u8> {
        let taken = COMMON_HEADER_LEN + 2 * CHUNK_HEADER_LEN + self.auth_room(true);
        self.paths.paired_heartbeat(self.now, path, second, taken)
    }

    /// Writes a HEARTBEAT of a probe for the path's MTU, and the padding of the packet.
    fn write_mtu_probe(
        &self,
        path: PathId,
        size: Option<usize>,
        begun: Time,
        w: &mut PacketWriter<'_>,
    ) -> Result<(), DoesNotFit> {
        let kind =
            if size.is_some() { HeartbeatKind::LargeProbe } else { HeartbeatKind::SmallProbe };
        w.heartbeat(&self.paths.heartbeat_info.write(kind, path, begun))?;
        match size {
            Some(size) => {
                let taken = w.len() + CHUNK_HEADER_LEN + self.auth_room(true);
                w.pad(size.saturating_sub(taken))
            }
            None => Ok(()),
        }
    }

    fn write_init(&self, path: PathId, w: &mut PacketWriter<'_>) -> Result<(), DoesNotFit> {
        let fields = InitFields {
            initiate_tag: self.handshake.local_tag,
            a_rwnd: self.config.constants().first_receive_buffer(),
            outbound_streams: self.config.outbound_streams(),
            inbound_streams: self.config.inbound_streams(),
            initial_tsn: self.handshake.local_initial_tsn,
        };
        let destination = self.paths[path].remote().ip();
        let preservative = match &self.state {
            State::CookieWait(s) => s.preservative,
            _ => None,
        };
        w.init(&fields, |p| {
            init::write_addresses(p, &self.shared, destination)?;
            if !self.handshake.plain {
                init::offered(&self.config, &self.shared.config).write(p)?;
                init::write_adaptation_layer(p, &self.config)?;
                if self.config.authentication() {
                    auth::offer(&self.config, &self.shared, &self.handshake).write(p)?;
                }
            }
            if let Some(ms) = preservative {
                p.cookie_preservative(ms)?;
            }
            init::write_supported_types(p, &self.shared, destination)
        })
    }
}

/// A packet with at most this many bytes less than the largest one counts as full.
const SLACK: usize = 64;

/// Most datagrams in one buffer; Linux accepts no more in one call.
const MAX_SEGMENTS: usize = 64;
