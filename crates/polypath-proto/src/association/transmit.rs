//! Building packets: the next chunks to send, their path and their amount (RFC 9260 6.1, 6.10).

use super::Association;
use super::state::State;
use crate::extension::Extension;
use crate::ids::{PathId, Tsn, VerificationTag};
use crate::init;
use crate::outbox::Control;
use crate::path::{Path, PathState};
use crate::policy::retransmission::LossCause;
use crate::policy::scheduler::Turn;
use crate::reply::write_reply;
use crate::send::Sending;
use crate::time::Time;
use crate::transmit::{Ecn, Fragmentation, Transmit};
use crate::wire::{
    CHUNK_HEADER_LEN, COMMON_HEADER_LEN, Checksum, CommonHeader, DoesNotFit, InitFields,
    PacketWriter, ReconfigParameters, chunk_type, seal,
};

/// Purpose of the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Control,
    /// The chunk with this TSN, and further lost chunks that fit.
    Retransmission(Tsn),
    /// New data beyond the first `n` queued bytes.
    NewData(usize),
    /// New data, or again the chunk with this TSN, whatever the window (RFC 8985 7.3).
    Probe(Option<Tsn>),
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
        self.abandon_hopeless(now);
        self.advance_reconfig(now);
        let (mut probes, mut ecn);
        let (path, segment) = loop {
            let Some((path, purpose)) = self.next_packet(now) else {
                self.sending.burst.end();
                if self.sending.is_concurrent() {
                    self.paths.clear_allowances();
                    self.sending.scheduler.turn_over();
                }
                self.procedures.on_burst_over(self);
                self.note_blocking(now);
                self.pause_paths(now);
                if self.state.may_send_data() {
                    // RFC 9260 6.1 A: the first probe of a closed window is sent after one RTO,
                    // later ones as T3-rtx backs off.
                    self.sending.watch_window(now + self.paths[self.paths.current()].rto());
                }
                return None;
            };
            let max_packet = self.packet_limit(path, purpose).min(buf.len());
            probes = matches!(self.outbox.front(), Some((_, Control::MtuProbe(..))));
            let new = self.paths[path].stats.data_chunks_sent;
            let segment = self.write_reported(now, path, purpose, &mut buf[..max_packet]);
            ecn = self.ect_beyond(path, new);
            if segment > 0 {
                break (path, segment);
            }
            // A control chunk that could not be written has been removed from the queue; anything
            // else waits for a larger buffer.
            if purpose != Purpose::Control {
                return None;
            }
        };
        let mut size = segment;
        let mut segments = 1;
        // Append datagrams of the same size, for segmentation offload.
        let large = segment > self.paths[path].max_packet();
        while !probes && !large && segments < MAX_SEGMENTS && buf.len() - size >= segment {
            let Some((next, purpose)) = self.next_packet(now) else { break };
            let fresh = matches!(purpose, Purpose::NewData(_));
            if next != path || !(fresh || matches!(purpose, Purpose::Retransmission(_))) {
                break;
            }
            // All of them share one ECN codepoint.
            if self.ect() != Ecn::NotEct && fresh != (ecn != Ecn::NotEct) {
                break;
            }
            // Do not cut a long message to the size of a short packet before it.
            let full = self.paths[path].max_packet() < segment + SLACK;
            let whole = self.sending.flight.first_reserved().is_some()
                || self.sending.queue.next_is_whole(self.sending.largest_payload);
            if !full && !whole {
                break;
            }
            let written = self.write_reported(now, path, purpose, &mut buf[size..size + segment]);
            if written == 0 {
                break;
            }
            size += written;
            segments += 1;
            if written < segment {
                break;
            }
        }
        let p = &mut self.paths[path];
        p.stats.packets_sent += segments as u64;
        p.stats.bytes_sent += size as u64;
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
    fn packet_limit(&self, path: PathId, purpose: Purpose) -> usize {
        let limit = self.paths[path].max_packet();
        if let Some((_, Control::MtuProbe(Some(size), _))) = self.outbox.front() {
            return *size;
        }
        // RFC 9260 3.3.3: the peer's cookie may be of any length. Unrecognized parameters of its
        // INIT ACK are reported in the same packet, because no other may be sent before the COOKIE
        // ACK (5.1 C).
        if let (State::CookieEchoed(echoed), Purpose::Control) = (&self.state, purpose) {
            let chunks = self.outbox.len_of_errors() + echoed.cookie.len().next_multiple_of(4);
            return limit.max(COMMON_HEADER_LEN + CHUNK_HEADER_LEN + chunks);
        }
        let flight = &self.sending.flight;
        let payload = match purpose {
            Purpose::Retransmission(tsn) | Purpose::Probe(Some(tsn)) => {
                flight.get(tsn).map_or(0, |chunk| chunk.content.payload.len())
            }
            Purpose::NewData(_) | Purpose::Probe(None) if flight.largest_reserved() > 0 => {
                flight.largest_reserved()
            }
            _ => return limit,
        };
        let chunk = (self.data_header() + payload).next_multiple_of(4);
        limit.max(COMMON_HEADER_LEN + self.overhead() + self.pending_response_len() + chunk)
    }

    /// The path and the purpose of the next packet; `None` if nothing may be sent now.
    fn next_packet(&mut self, now: Time) -> Option<(PathId, Purpose)> {
        while let Some(path) = self.outbox.front_path() {
            let (gone, untold) =
                (self.paths[path].state() == PathState::Removed, self.is_untold(path));
            let front = self.outbox.front().map(|(_, control)| control);
            let asconf = matches!(front, Some(Control::Asconf(_)));
            let forbidden = front.is_some_and(|control| self.is_forbidden(path, control));
            match (gone || forbidden || (untold && !asconf)).then(|| self.redirected(path)) {
                None => return Some((path, Purpose::Control)),
                Some(Some(other)) => self.outbox.redirect(other),
                // A timer retransmits the chunks that need an answer.
                Some(None) => self.outbox.pop(),
            }
        }
        if self.is_closed() {
            return None;
        }
        if self.state.may_send_data() {
            self.procedures.before_sending(self, now);
            if let Some((path, tsn)) = self.next_tail_probe() {
                return Some((path, Purpose::Probe(tsn)));
            }
            // RFC 9260 6.1 C: retransmissions before new data.
            let lost = self.sending.flight.has_lost();
            if lost
                && self.sending.is_overdue()
                && let Some(turn) = self.procedures.next_new_data(self, now)
            {
                return Some((turn.path, Purpose::NewData(turn.ahead)));
            }
            if lost && let Some((path, tsn)) = self.procedures.next_retransmission(self, now) {
                return Some((path, Purpose::Retransmission(tsn)));
            }
            // In CMT, a chunk that waits for its path's window does not block other paths.
            let concurrent = self.sending.is_concurrent();
            if (!lost || concurrent || !self.config.new_data_waits())
                && let Some(turn) = self.procedures.next_new_data(self, now)
                && (concurrent || self.may_overtake(turn.path))
            {
                return Some((turn.path, Purpose::NewData(turn.ahead)));
            }
        }
        if let Some(path) = self.outbox.release() {
            return Some((path, Purpose::Control));
        }
        if !self.receiving.ack.is_due() || !self.state.is_synchronised() {
            return None;
        }
        let path = self.ack_path();
        self.may_answer(path).then_some((path, Purpose::Sack))
    }

    /// The lowest lost chunk and its path, if it may be sent now; in CMT the lowest that may.
    #[inline(never)]
    pub(super) fn next_retransmission(&mut self, now: Time) -> Option<(PathId, Tsn)> {
        let concurrent = self.sending.is_concurrent();
        if concurrent && !self.paths.iter().any(|p| p.allowance || p.has_room()) {
            return None;
        }
        // Paths whose chunks wait, after a fast retransmission and after a timeout: the policy
        // would choose the same path for their next chunk.
        let mut waiting = [0u64; 2];
        let mut from = self.sending.flight.ack_point().next();
        loop {
            let (tsn, chunk, cause) = self.sending.flight.lost_from(from)?;
            from = tsn.next();
            let waiting = &mut waiting[usize::from(cause == LossCause::Timeout)];
            let bit = 1 << chunk.path.index();
            if *waiting & bit != 0 {
                continue;
            }
            let size = chunk.size();
            let lost = chunk.as_lost(tsn, cause);
            let path = self.path_for_lost(&lost);
            if !self.paths.may_carry(path) {
                if !concurrent {
                    return None;
                }
                continue;
            }
            if self.paths[path].allowance {
                return Some((path, tsn));
            }
            let congestion = &mut self.sending.congestion;
            self.paths[path].decay_if_idle(now, |view, first| congestion.on_idle(now, view, first));
            // RFC 9260 6.3.3 E3: after a timeout, retransmit regardless of the peer's window, in
            // CMT even on a path without send credit.
            let owed = concurrent && cause == LossCause::Timeout;
            let waits = self.paths[path].awaits_delivery();
            if self.may_burst(now, path)
                && !waits
                && (owed || self.sending.peer_has_room_for(tsn, size))
            {
                return Some((path, tsn));
            }
            if !concurrent {
                return None;
            }
            *waiting |= bit;
        }
    }

    /// The size of the next new chunk in a packet of its own, if TSNs are left, data may be sent,
    /// and the peer has room for it.
    pub(super) fn next_new_size(&self) -> Option<u32> {
        let size = self.sending.next_new_size(self.sending.largest_payload)? + self.data_header();
        let size = self.sending.flight.counted(size);
        let full = self.sending.flight.is_full() && self.sending.flight.first_reserved().is_none();
        let waits = self.paths.awaited || full || !self.sending.peer_has_room(size);
        (!waits).then_some(size)
    }

    /// The path for the next packet of new data, and which data, if it may be sent now.
    pub(super) fn next_new_data(&mut self, now: Time) -> Option<Turn> {
        let size = self.next_new_size()?;
        let congestion = &mut self.sending.congestion;
        for path in self.paths.iter_mut() {
            path.decay_if_idle(now, |view, first| congestion.on_idle(now, view, first));
        }
        let (share, full) = (self.path_share(), self.burst_is_full());
        let data = self.sending.new_data(now);
        let Sending { scheduler, burst, .. } = &mut self.sending;
        let (view, max_burst) = (self.paths.view(), self.config.max_burst());
        let room = |path: PathId| {
            let p = &view.paths[path.index()];
            p.in_flight() < share
                && burst.has_room(p, max_burst, now)
                && (!full || p.is_paced())
                && !p.awaits_delivery()
        };
        let mut turn = scheduler.next(view, &data, &room)?;
        // A probe of the peer's window must be the chunk that the peer waits for, and data that may
        // be abandoned gets no TSN before it is sent.
        let probe = data.in_flight == 0 || size > data.peer_rwnd;
        if probe || self.handshake.has(Extension::PartialReliability) {
            turn.ahead = 0;
        }
        Some(turn)
    }

    /// Grants send credit after a loss on `path`: one packet of retransmissions may be sent
    /// regardless of the window (RFC 9260 6.3.3 E3, 7.2.4 (3)), on any path, or in CMT on the path
    /// that suffered the loss (Iyengar 2004, V.B).
    pub(super) fn grant_allowance(&mut self, path: PathId) {
        let concurrent = self.sending.is_concurrent();
        for p in self.paths.iter_mut() {
            p.allowance |= !concurrent || p.id() == path;
        }
    }

    /// Whether new data may be sent on `path` while a lost chunk waits for the window of another
    /// path. The peer's buffer must have room for the lost chunks too.
    fn may_overtake(&mut self, path: PathId) -> bool {
        let Some((tsn, chunk, cause)) = self.sending.flight.first_lost() else { return true };
        let lost = chunk.as_lost(tsn, cause);
        let held_back: u32 = self.paths.iter().map(Path::lost).sum();
        let next = self
            .sending
            .queue
            .next_size(self.sending.largest_payload, self.sending.largest_payload);
        let size = self.sending.flight.counted(next.unwrap_or_default() + self.data_header());
        self.path_for_lost(&lost) != path
            && self.sending.peer_has_room(held_back.saturating_add(size))
    }

    fn may_burst(&self, now: Time, path: PathId) -> bool {
        let p = &self.paths[path];
        self.sending.burst.has_room(p, self.config.max_burst(), now)
            && (p.is_paced() || !self.burst_is_full())
    }

    /// Whether Max.Burst packets have been sent in response to the current event, if packets are
    /// counted.
    fn burst_is_full(&self) -> bool {
        self.procedures.burst_is_full(self)
    }

    /// Begins a burst after an event that may release packets: it is counted from the bytes in
    /// flight now, unless the burst of an earlier event is not over yet.
    pub(super) fn new_burst(&mut self) {
        self.sending.burst.begin(self.config.burst_rule(), &self.paths);
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

    /// Writes a packet and reports its data to the congestion controller, if that needs it; returns
    /// the packet's length.
    fn write_reported(
        &mut self,
        now: Time,
        path: PathId,
        purpose: Purpose,
        buf: &mut [u8],
    ) -> usize {
        let before = self.paths[path].in_flight();
        let written = self.write_packet(now, path, purpose, buf);
        if self.sending.needs.sending {
            self.report_sent(now, path, before);
        }
        written
    }

    /// Writes a packet; returns its length.
    fn write_packet(&mut self, now: Time, path: PathId, purpose: Purpose, buf: &mut [u8]) -> usize {
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
        let room = self.auth_room(purpose);
        let limit = (buf.len() & !3).saturating_sub(room);
        let mut w = PacketWriter::new(&mut buf[..limit], header);
        let bundles = self.procedures.bundles();
        let mut answered = false;
        let early = self.sends_with_cookie(path);
        if !self.outbox.is_empty() && (bundles || purpose == Purpose::Control) {
            answered = self.write_controls(path, &mut w);
        }
        let probe = matches!(self.outbox.front(), Some((_, Control::MtuProbe(..))));
        let alone = self.is_closed()
            || probe
            || verification_tag.0 == 0
            || !self.may_answer(path)
            || (!bundles && purpose == Purpose::Control && !w.is_empty());
        if !alone && self.state.is_synchronised() {
            // RFC 9260 6.10: control chunks before DATA. A delayed SACK is bundled with the next
            // packet on its path.
            let may_follow = bundles || purpose == Purpose::Sack;
            let with_sack =
                self.receiving.ack.is_pending() && may_follow && self.ack_path() == path;
            let stamp = self.write_timestamp(now, with_sack, &mut w);
            // If it does not fit, the SACK is sent in the next packet.
            let echoes = with_sack && self.write_sack(&mut w).is_ok() && self.write_ecne(&mut w);
            let mut full = echoes && !self.marks.may_precede_data();
            let bare = (w.len(), w.chunk_count());
            if !answered {
                full |= self.write_pending_response(&mut w).is_err();
            }
            let before = w.chunk_count();
            if self.state.may_send_data() && !full && (bundles || purpose != Purpose::Sack) {
                self.note_alone();
                self.write_data(now, path, purpose, &mut w);
            }
            if w.chunk_count() == before {
                w.take_back(bare.0, bare.1);
            }
            self.settle_timestamp(now, stamp, &mut w);
        }
        if early && self.next_new_size().is_some() {
            self.note_alone();
            // One packet, whatever the window of the path, which the COOKIE ACK confirms.
            self.write_new_data(now, path, Purpose::Probe(None), &mut w);
        }
        if matches!(purpose, Purpose::Retransmission(_) | Purpose::NewData(_)) {
            self.sending.burst.count();
        }
        match (w.is_empty(), room) {
            (true, _) => 0,
            (false, 0) => w.finish(checksum),
            (false, _) => {
                let len = w.len();
                let len = self.authenticate(buf, len);
                seal(&mut buf[..len], checksum);
                len
            }
        }
    }

    /// Writes the DATA chunks of a packet.
    fn write_data(&mut self, now: Time, path: PathId, purpose: Purpose, w: &mut PacketWriter<'_>) {
        match purpose {
            Purpose::Probe(tsn) => {
                match tsn {
                    Some(tsn) => self.write_probe(now, path, tsn, w),
                    None => self.write_new_data(now, path, purpose, w),
                }
                self.paths[path].recovery.probe = false;
            }
            Purpose::NewData(_) => self.write_new_data(now, path, purpose, w),
            _ if self.sending.flight.has_lost() => {
                self.procedures.write_retransmissions(self, now, path, purpose, w);
            }
            _ => self.write_new_data(now, path, purpose, w),
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
                self.procedures.on_heartbeat_written(self, path);
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
                    w.heartbeat(&self.heartbeat_info(path))
                }
                _ => Ok(()),
            },
            Control::CookieAck => w.cookie_ack(),
            Control::CookieAckVerifying => {
                w.cookie_ack()?;
                w.heartbeat(&self.heartbeat_info(path))
            }
            Control::Heartbeat => w.heartbeat(&self.heartbeat_info(path)),
            Control::PairedHeartbeat { second } => {
                w.heartbeat(&self.paired_heartbeat_info(path, *second))
            }
            Control::Probe(size) => {
                let mut info = self.heartbeat_info(path).to_vec();
                let taken = HEARTBEAT_LEN + self.auth_room(Purpose::Control);
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
            Control::ForwardTsn => self.write_forward_tsn(w),
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
            init::offered(&self.config, &self.shared.config).write(p)?;
            init::write_adaptation_layer(p, &self.config)?;
            if self.config.authentication() {
                self.auth_offer().write(p)?;
            }
            if let Some(ms) = preservative {
                p.cookie_preservative(ms)?;
            }
            init::write_supported_types(p, &self.shared, destination)
        })
    }

    /// Writes the lowest lost chunks, as many as fit one packet (RFC 9260 6.3.3 (E3), 7.2.4 (3)).
    #[inline(never)]
    pub(super) fn write_retransmissions(
        &mut self,
        now: Time,
        path: PathId,
        purpose: Purpose,
        w: &mut PacketWriter<'_>,
    ) {
        let concurrent = self.sending.is_concurrent();
        let forced = self.paths[path].allowance;
        let (mut from, chosen) = match purpose {
            Purpose::Retransmission(tsn) => (tsn, Some(tsn)),
            _ => (self.sending.flight.ack_point().next(), None),
        };
        let mut first = true;
        while let Some((tsn, chunk, cause)) = self.sending.flight.lost_from(from) {
            from = tsn.next();
            let size = chunk.size();
            if w.remaining() < size as usize {
                break;
            }
            let lost = chunk.as_lost(tsn, cause);
            // The policy has chosen for this chunk already; if it draws lots, it may choose
            // differently now.
            let to = if chosen == Some(tsn) { path } else { self.path_for_lost(&lost) };
            let allowed = (forced || chosen == Some(tsn))
                || (self.may_burst(now, path)
                    && !(first && self.paths[path].awaits_delivery())
                    && self.sending.peer_has_room_for(tsn, size));
            if to != path && concurrent {
                continue;
            }
            if to != path || !allowed {
                break;
            }
            self.retransmit(now, path, tsn, cause, w);
            first = false;
        }
        if !first {
            if concurrent {
                self.paths[path].allowance = false;
            } else {
                self.paths.clear_allowances();
            }
            self.outbox.release();
        }
    }

    /// Retransmits a lost chunk on `path`. The packet has room for it.
    fn retransmit(
        &mut self,
        now: Time,
        path: PathId,
        tsn: Tsn,
        cause: LossCause,
        w: &mut PacketWriter<'_>,
    ) {
        // In CMT each path recovers by itself.
        let cmt = self.sending.is_concurrent();
        let own = if cmt { self.paths[path].highest_sent() } else { None };
        let highest = own.unwrap_or_else(|| self.sending.flight.highest());
        let old = self.sending.flight.get(tsn).map_or(path, |chunk| chunk.path);
        for p in self.paths.iter_mut().filter(|p| !cmt || p.id() == old) {
            p.drop_rtt_probe_from(tsn);
        }
        self.write_again(now, path, tsn, cause, highest, w);
    }

    /// Writes a lost chunk again, and accounts for it; `highest` is its recover point if this is a
    /// fast retransmission.
    pub(super) fn write_again(
        &mut self,
        now: Time,
        path: PathId,
        tsn: Tsn,
        cause: LossCause,
        highest: Tsn,
        w: &mut PacketWriter<'_>,
    ) {
        let retransmission = self.flags_retransmissions();
        let (old, chunk) = self.sending.flight.resend(tsn, path, highest);
        let (transmissions, size) = (chunk.transmissions, chunk.size());
        let still = self.stands_still_after(path, size);
        if let Some(chunk) = self.sending.flight.get(tsn) {
            // The room was checked.
            let _ = chunk.write(tsn, still, retransmission, w);
        }
        self.sending.cwnd_update.on_retransmit(old, path);
        self.paths[old].lost_gone(size);
        self.paths[old].recovery.retransmitted(tsn);
        let p = &mut self.paths[path];
        match cause {
            LossCause::FastRetransmit => p.stats.fast_retransmissions += 1,
            LossCause::Timeout => p.stats.timeout_retransmissions += 1,
        }
        self.sending.charge_window(tsn, size);
        self.data_left(now, path, tsn, transmissions, size);
    }

    /// Writes a chunk in flight again, to probe its path.
    fn write_probe(&mut self, now: Time, path: PathId, tsn: Tsn, w: &mut PacketWriter<'_>) {
        let size = self.sending.flight.get(tsn).map_or(0, crate::send::Outstanding::size);
        if w.remaining() >= size as usize && self.mark_probed(path, tsn) {
            self.retransmit(now, path, tsn, LossCause::FastRetransmit, w);
        }
    }

    fn write_new_data(
        &mut self,
        now: Time,
        path: PathId,
        purpose: Purpose,
        w: &mut PacketWriter<'_>,
    ) {
        let ahead = match purpose {
            Purpose::NewData(ahead) => ahead,
            Purpose::Probe(_) => 0,
            _ => match self.procedures.next_new_data(self, now) {
                Some(turn) if turn.path == path => turn.ahead,
                _ => return,
            },
        };
        let mut written = false;
        let bundles = self.sending.queue.begin_packet();
        let first = self.sending.queue.next_stream();
        let header = self.data_header();
        let concurrent = self.sending.is_concurrent();
        loop {
            let room = w.remaining() / 4 * 4;
            let Some(room) = room.checked_sub(header) else { break };
            if !bundles && self.sending.queue.next_stream() != first {
                break;
            }
            let Some((n, reserved)) = self.next_new_chunk(path, ahead, room) else { break };
            let size = self.sending.flight.counted(n + header);
            let overtakes =
                concurrent || !self.sending.flight.has_lost() || self.may_overtake(path);
            let allowed = matches!(purpose, Purpose::Probe(_)) || self.may_burst(now, path);
            if !allowed || !self.sending.peer_has_room(size) || !overtakes {
                break;
            }
            let sender = &mut self.sending;
            let tsn = if let Some(tsn) = reserved {
                sender.flight.send_reserved(tsn, path, self.paths[path].highest_sent());
                tsn
            } else {
                if sender.flight.is_full() {
                    break;
                }
                let Some(chunk) = sender.queue.take(n) else { break };
                sender.flight.push(chunk, path).0
            };
            let still = self.stands_still_after(path, size);
            let Some(out) = self.sending.flight.get(tsn) else { break };
            // The room was checked.
            let _ = out.write(tsn, still, false, w);
            self.sending.charge_window(tsn, size);
            let stats = &mut self.paths[path].stats;
            stats.data_chunks_sent += 1;
            stats.data_bytes_sent += n as u64;
            self.data_left(now, path, tsn, 1, size);
            written = true;
        }
        if written {
            self.procedures.on_new_data_written(self, now, path);
        }
    }

    /// Size of the next new chunk for `path` if `room` bytes are left for its payload, and its TSN
    /// if it has one.
    fn next_new_chunk(
        &mut self,
        path: PathId,
        ahead: usize,
        room: usize,
    ) -> Option<(usize, Option<Tsn>)> {
        let largest = self.sending.largest_payload;
        let sender = &mut self.sending;
        let tsn = if ahead > 0 {
            sender.next_ahead(ahead, self.paths[path].highest_sent(), largest)
        } else {
            sender.flight.first_reserved().map(|(tsn, _)| tsn)
        };
        let Some(tsn) = tsn else { return Some((sender.queue.next_size(largest, room)?, None)) };
        let n = sender.flight.get(tsn)?.content.payload.len();
        (n <= room).then_some((n, Some(tsn)))
    }

    /// Accounts for a chunk sent on `path`: flight, round-trip time, T3-rtx.
    pub(super) fn data_left(
        &mut self,
        now: Time,
        path: PathId,
        tsn: Tsn,
        transmissions: u32,
        size: u32,
    ) {
        self.sending.flight.set_sent(tsn, now);
        let p = &mut self.paths[path];
        p.data_sent(now, tsn, transmissions, size);
        if p.rtt_probe().is_none() && self.sending.rtt_sampling.may_start(transmissions) {
            p.start_rtt_probe(now, tsn);
        }
        // RFC 9260 6.3.2 (R1).
        self.procedures.on_chunk_sent(self, now, path, tsn, transmissions);
        self.note_sent(now, path, tsn, transmissions);
        self.watch_sent(now, path);
    }
}

/// A packet with at most this many bytes less than the largest one counts as full.
const SLACK: usize = 64;

/// Most datagrams in one buffer; Linux accepts no more in one call.
const MAX_SEGMENTS: usize = 64;
