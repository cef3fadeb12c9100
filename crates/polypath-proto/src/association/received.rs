//! Received packets: each chunk is passed to its owner (RFC 9260 8.5).

use std::net::IpAddr;

use bytes::Bytes;

use super::Association;
use super::Violation;
use super::addresses::{AckOutcome, Addresses};
use super::data::DataSeen;
use super::state::State;
use crate::budget;
use crate::event::{CloseReason, Event};
use crate::extension::Extension;
use crate::ids::{PathId, Tsn, VerificationTag};
use crate::outbox::OwnedCause;
use crate::path::PathState;
use crate::reply::words;
use crate::time::Time;
use crate::transmit::{Ecn, FourTuple};
use crate::wire::{
    Action, AddressRefusal, Asconf, AsconfAck, Auth, Cause, Chunk, ChunkError, Packet,
    PacketWriter, ReConfig, Sack, Timestamp, chunk_type, seal,
};

/// Most SACKs processed in one packet.
const MOST_SACKS: u32 = 1;

/// Most bytes of the causes in an ERROR chunk that are reported.
const MOST_CAUSES: usize = 256;

impl Association {
    /// Processes a packet with this association's verification tag (RFC 9260 8.5), of which `done`
    /// chunks have been processed.
    pub(crate) fn handle_packet(
        &mut self,
        now: Time,
        from: FourTuple,
        ecn: Ecn,
        packet: &Packet<'_>,
        done: usize,
    ) {
        self.now = now;
        if self.is_closed() {
            self.stats.dropped += 1;
            return;
        }
        let known = self.paths.path_for(&from);
        let apart = known.is_some_and(|path| self.is_mapped_apart(path, &from));
        let own = known.filter(|_| !apart);
        let path = own.or_else(|| self.path_of_unknown_source(now, &from, packet)).or(known);
        let Some(path) = path else {
            let taken = done == 0 && self.handle_from_nowhere(now, from, packet);
            self.stats.dropped += u64::from(!taken);
            return;
        };
        if let Some(side) = &mut self.side {
            side.on_packet(&mut self.receiving.ack, path);
        }
        self.sending.burst.begin(self.config.burst_rule(), &self.paths);
        // A packet to an address that is being removed does not update the path (RFC 5061 5.3 F6).
        if !self.paths.is_unannounced(path, &self.shared) && self.stays(from.local.ip()) {
            self.paths.adopt_source(path, &from, &self.shared);
        }
        if self.paths[path].state() == PathState::Unconfirmed {
            sender!(self).verify_source(now, path);
        }
        let stats = &mut self.paths[path].stats;
        stats.packets_received += 1;
        stats.bytes_received += packet.datagram().len() as u64;
        self.extend_shutdown(now);
        let mut seen = DataSeen::new(ecn);
        let (work, outstanding) = (self.work(), self.sending.flight.len());
        let mut sacks = 0;
        let tag = packet.header().verification_tag;
        let mut chunks = packet.chunks();
        // If two chunks have been processed, the first one has authenticated the second.
        let mut authenticated = done > 1;
        chunks.by_ref().take(done).for_each(drop);
        loop {
            let rest = chunks.as_bytes();
            // Match by reference: copying the chunk in pieces costs time.
            let next = chunks.next();
            let Some(chunk) = &next else { break };
            let ty = || chunk.as_ref().map_or_else(ChunkError::ty, Chunk::ty);
            if !authenticated && self.auth.are_agreed() && self.auth.demand(ty()) {
                // RFC 4895 6.3: silently discarded.
                self.stats.unauthenticated += 1;
                if ty() == chunk_type::ASCONF {
                    // RFC 5061 5.2 D5: "silently discard this chunk and the rest of the packet".
                    break;
                }
                continue;
            }
            let go_on = match chunk {
                // RFC 4895 4: one at most.
                Ok(Chunk::Auth(_)) if authenticated => false,
                Ok(Chunk::Auth(auth)) => {
                    authenticated = if self.is_opening() && self.auth.await_cookie_behind(packet) {
                        self.accepts_cookie_echo(now, packet)
                    } else {
                        self.verify(Some(path), auth, rest)
                    };
                    authenticated
                }
                // RFC 9260 5.1: before the handshake is complete only its own chunks count, except
                // that DATA and SACK may follow a COOKIE ACK in its packet.
                Ok(Chunk::Data(data)) => {
                    let handled = receiver!(self).handle_data(path, data, &mut seen);
                    self.end_if_violated(handled);
                    true
                }
                // Process one SACK of a packet: each is compared with all outstanding chunks.
                Ok(Chunk::Sack(_) | Chunk::NrSack(_)) if sacks == MOST_SACKS => {
                    self.stats.dropped += 1;
                    true
                }
                // RFC 9260 6: "A SACK chunk received in any other state SHOULD be discarded."
                Ok(Chunk::Sack(sack)) if self.state.may_send_data() => {
                    sacks += 1;
                    let sack = if self.sending.wide_sacks { sack.read_wide() } else { *sack };
                    self.handle_sack(now, path, &sack, seen.echo());
                    true
                }
                Ok(chunk) => {
                    sacks += u32::from(matches!(chunk, Chunk::NrSack(_)));
                    self.handle_chunk(now, path, from, tag, chunk, &mut seen)
                }
                Err(error) => self.handle_malformed(error),
            };
            if !go_on || self.is_closed() {
                break;
            }
        }
        sender!(self).note_packet(now, seen.any());
        self.after_data(now, path, seen);
        let done = self.work().saturating_sub(work);
        let most = budget::most_work(packet.datagram().len(), outstanding);
        self.sending.overwork = self.sending.overwork.max(done.saturating_sub(most));
    }

    /// Processes all chunks but DATA and SACK, which nearly all packets consist of. Not inlined:
    /// instructions that are not run take up instruction cache if they are between others. True if
    /// the packet's next chunk is to be processed.
    #[inline(never)]
    fn handle_chunk(
        &mut self,
        now: Time,
        path: PathId,
        from: FourTuple,
        tag: VerificationTag,
        chunk: &Chunk<'_>,
        seen: &mut DataSeen,
    ) -> bool {
        match chunk {
            Chunk::Timestamp(t) if self.handshake.has(Extension::Timestamps) => {
                self.handle_timestamp(t, seen);
            }
            Chunk::NrSack(sack) => {
                return self.handle_nr_sack(now, path, sack, seen.echo());
            }
            Chunk::Ecne(e) if self.handshake.has(Extension::Ecn) => {
                sender!(self).handle_ecne(path, e.lowest_tsn);
            }
            Chunk::Cwr(c) if self.handshake.has(Extension::Ecn) => {
                self.marks.handle_cwr(c.lowest_tsn);
            }
            // A PAD chunk only adds to the packet's size.
            Chunk::Pad(_) => {}
            Chunk::Asconf(asconf) if self.addresses.is_none() => {
                if self.state.is_synchronised() {
                    self.outbox.report_unrecognized(path, asconf.raw);
                }
                self.stats.dropped += 1;
            }
            Chunk::Asconf(asconf) if self.state.is_synchronised() => {
                self.handle_asconf(now, from, asconf);
            }
            Chunk::AsconfAck(ack) if self.state.is_synchronised() => {
                self.handle_asconf_ack(now, from, ack);
            }
            Chunk::ReConfig(chunk) => self.handle_reconfig(now, path, chunk),
            Chunk::IData(data) => {
                let handled = receiver!(self).handle_i_data(path, data, seen);
                self.end_if_violated(handled);
            }
            Chunk::IForwardTsn(forward) => {
                receiver!(self).handle_i_forward_tsn(path, forward, seen);
            }
            Chunk::ForwardTsn(forward) => {
                let handled = receiver!(self).handle_forward_tsn(path, forward, seen);
                self.end_if_violated(handled);
            }
            Chunk::Heartbeat(h) => sender!(self).handle_heartbeat(path, h.parameters),
            Chunk::HeartbeatAck(h) if self.state.is_synchronised() => {
                sender!(self).handle_heartbeat_ack(now, h.info);
            }
            Chunk::InitAck(init) => self.handle_init_ack(now, path, init, from),
            Chunk::CookieEcho(echo) => return self.handle_cookie_echo(now, tag, echo.cookie, from),
            Chunk::CookieAck => self.handle_cookie_ack(now, path),
            Chunk::Error(error) => self.handle_error(now, error.causes),
            // RFC 9260 3.3.7: "an ABORT chunk with a format error ... MUST silently discard it".
            Chunk::Abort(abort) if !abort.causes.is_complete() => self.stats.dropped += 1,
            // RFC 9260 8.5.1 B, C: with the local tag only without the T bit. RFC 5061 5.3 F4: not
            // to an address that is being removed.
            Chunk::Abort(abort) if !abort.t_bit && self.stays(from.local.ip()) => {
                let causes = Bytes::copy_from_slice(abort.causes.as_bytes());
                self.events.push(Event::PeerAborted { causes });
                self.handle_abort(CloseReason::PeerAbort { cause: words(abort.causes) });
            }
            Chunk::Shutdown(s) => self.handle_shutdown(now, path, s.cumulative_tsn_ack),
            Chunk::ShutdownAck => self.handle_shutdown_ack(path, from, tag),
            Chunk::ShutdownComplete(s) if !s.t_bit => self.handle_shutdown_complete(),
            // RFC 9260 6.10: an INIT is not bundled, and has tag 0 (8.5.1 A).
            Chunk::Init(_) => return false,
            Chunk::Unknown(unknown) => {
                let action = unknown.action();
                if action.reports() && self.state.is_synchronised() {
                    self.outbox.report_unrecognized(path, unknown.raw);
                }
                self.stats.dropped += 1;
                return !matches!(action, Action::Stop | Action::StopAndReport);
            }
            // SACK and HEARTBEAT ACK before the handshake is complete; a T bit with the local tag;
            // ECNE, CWR and TIMESTAMP where they were not negotiated.
            _ => self.stats.dropped += 1,
        }
        true
    }

    /// Notes what the packet's TIMESTAMP chunk reports; further ones are ignored.
    fn handle_timestamp(&mut self, chunk: &Timestamp, seen: &mut DataSeen) {
        if seen.stamps.is_some() {
            return;
        }
        let stamps = match &mut self.side {
            Some(side) => side.on_timestamp(&mut self.receiving.ack, chunk),
            None => chunk.into(),
        };
        seen.stamps = Some(stamps);
        if stamps.data && self.state.may_send_data() {
            seen.repeated(self.receiving.tsns().has_gap());
            self.receiving.note_before_first();
        }
    }

    #[cold]
    fn handle_malformed(&mut self, error: &ChunkError<'_>) -> bool {
        match error {
            ChunkError::NoUserData { tsn, .. } => self.handle_no_user_data(*tsn),
            _ => self.stats.dropped += 1,
        }
        !error.ends_packet()
    }

    /// Processes an ERROR chunk (RFC 9260 3.3.10).
    fn handle_error(&mut self, now: Time, causes: crate::wire::Causes<'_>) {
        for cause in causes.iter() {
            if let Ok(Cause::StaleCookie { .. }) = cause {
                return self.handle_stale_cookie(now);
            }
            if let Ok(Cause::UnrecognizedChunk([chunk_type::ASCONF, ..])) = cause {
                self.handle_asconf_unrecognized();
            }
        }
        if self.state.is_synchronised() {
            // RFC 9260 6.10, 3.3.10: an error that does not end the association.
            let bytes = causes.as_bytes();
            let bytes = Bytes::copy_from_slice(&bytes[..bytes.len().min(MOST_CAUSES)]);
            self.events.push(Event::PeerError { cause: words(causes), causes: bytes });
        }
    }

    /// Processes a packet with another tag than the local one: an ABORT or SHUTDOWN COMPLETE may
    /// carry the peer's own tag, reflected (RFC 9260 8.5.1 B, C). True if it was one.
    pub(crate) fn handle_reflected(&mut self, from: &FourTuple, packet: &Packet<'_>) -> bool {
        if packet.header().verification_tag != self.handshake.peer_tag
            || self.handshake.peer_tag.0 == 0
        {
            return false;
        }
        let ends = |c: &_| matches!(c, Ok(Chunk::Abort(_) | Chunk::ShutdownComplete(_)));
        match packet.chunks().find(ends) {
            // RFC 9260 3.3.7: one with a format error is discarded.
            Some(Ok(Chunk::Abort(abort))) if abort.t_bit && abort.causes.is_complete() => {
                let cause = words(abort.causes);
                self.handle_reflected_abort(from, CloseReason::PeerAbort { cause });
                true
            }
            Some(Ok(Chunk::ShutdownComplete(s))) if s.t_bit => {
                self.handle_shutdown_complete();
                true
            }
            _ => false,
        }
    }

    /// Processes an ABORT with the T bit and the peer's own tag (RFC 9260 8.5.1 B), or an ICMP
    /// message that is treated as one (10, ICMP8).
    pub(super) fn handle_reflected_abort(&mut self, from: &FourTuple, reason: CloseReason) {
        if self.auth.demand(chunk_type::ABORT) {
            self.stats.unauthenticated += 1;
            return;
        }
        if self.is_abort_of_a_change(from) {
            return;
        }
        if let Some(path) = self.paths.refused_path(from) {
            self.events.push(Event::PathRefused { path });
            return;
        }
        // In SHUTDOWN-ACK-SENT all data has been delivered in both directions: a peer that no
        // longer knows the association has completed the shutdown.
        let done = matches!(self.state, State::ShutdownAckSent(_));
        self.handle_abort(if done { CloseReason::Graceful } else { reason });
    }

    /// Processes a SACK that arrived over `path` (RFC 9260 6.2.1). False if it was discarded or
    /// ended the association.
    fn handle_sack(&mut self, now: Time, path: PathId, sack: &Sack<'_>, echo: Option<u32>) -> bool {
        self.stats.sacks_received += 1;
        let origin = self.handshake.local_tag.0;
        let known = self.sending.note_cause(self.handshake.extensions, (now, origin), sack, echo);
        self.stats.bad_echoes += u64::from(!known);
        if let Some(side) = &mut self.side {
            side.on_sack();
        }
        let cumulative = sack.cumulative_tsn_ack;
        // RFC 9260 6.2.1 (D i): "If Cumulative TSN Ack is less than the Cumulative TSN Ack Point,
        // then drop the SACK chunk": it is late.
        if cumulative.is_before(self.sending.flight.ack_point()) {
            self.stats.dropped += 1;
            return false;
        }
        if self.sending.is_overtaken(now, &self.paths[path], sack) {
            self.stats.dropped += 1;
            return false;
        }
        if self.sending.acknowledges_unsent(sack) {
            if self.reconfig.as_ref().is_some_and(|r| r.is_renumbered()) {
                // It may have been sent before the reset, and be late.
                self.stats.dropped += 1;
            } else {
                self.violation("it acknowledged data that was never sent");
            }
            return false;
        }
        let mut s = sender!(self);
        s.resume_paths(now);
        let counted = s.has(Extension::PacketCount);
        let packets = counted.then(|| sack.packets());
        s.model.procedures.acknowledge(&mut s, now, cumulative, Some(sack), packets);
        s.model.procedures.set_window(&mut s, sack.a_rwnd);
        s.sending.last_sack = Some(now);
        s.paths[path].sack_arrived(now);
        if s.acknowledges_suspect(path) {
            s.undo_suspicion(now, path);
        }
        if let Some(reconfig) = &mut self.reconfig {
            reconfig.note_sack(s.sending, s.paths);
        }
        s.resend_refused_probe();
        s.abandon_hopeless(now);
        s.repeat_forward(now);
        self.advance_shutdown(now);
        !self.is_closed()
    }

    /// Processes an NR-SACK. True if the packet's next chunk is to be processed.
    fn handle_nr_sack(
        &mut self,
        now: Time,
        path: PathId,
        sack: &Sack<'_>,
        echo: Option<u32>,
    ) -> bool {
        if !self.handshake.has(Extension::NrSack) {
            // RFC 9260 3.2: treat it as an unknown type that begins with the bits 00.
            self.stats.dropped += 1;
            return false;
        }
        if !self.state.may_send_data() {
            self.stats.dropped += 1;
            return true;
        }
        let (old, announced) = (self.sending.flight.reports_more(sack), self.sending.announced);
        if !self.handle_sack(now, path, sack, echo) {
            return true;
        }
        if old && announced < sack.a_rwnd {
            // A later SACK overtook it: its window has since been used for data that it does not
            // list.
            self.sending.set_window(announced);
        }
        self.sending.buffered -= self.sending.flight.release(sack.nr_gaps());
        self.sending.report_room(&mut self.events);
        true
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

    /// Ends the association if the peer has violated the protocol.
    #[inline]
    fn end_if_violated(&mut self, handled: Result<(), Violation>) {
        if let Err(what) = handled {
            self.violation(what);
        }
    }

    /// All chunks of a packet have been processed: lets the policy decide when the SACK is sent.
    fn after_data(&mut self, now: Time, path: PathId, seen: DataSeen) {
        if !seen.any() || self.is_closed() {
            return;
        }
        if let Some(reconfig) = &mut self.reconfig {
            reconfig.perform_deferred_reset(&mut halves!(self));
        }
        if self.receiving.tsns().has_gap() {
            // Reading, which adapts the buffer otherwise, waits for the gap.
            self.tune_receive_buffer(now);
        }
        receiver!(self).decide_sack(now, path, seen, self.handshake.round_trip);
        if matches!(self.state, State::ShutdownSent(_)) {
            self.repeat_shutdown(now);
        }
    }

    /// Processes a RE-CONFIG chunk.
    fn handle_reconfig(&mut self, now: Time, path: PathId, chunk: &ReConfig<'_>) {
        match &mut self.reconfig {
            Some(reconfig) if self.state.is_synchronised() => {
                reconfig.handle(&mut halves!(self), now, path, chunk);
                self.advance_shutdown(now);
            }
            _ => self.stats.dropped += 1,
        }
    }

    /// Whether the chunks after an AUTH chunk are to be processed; `rest` is the packet from the
    /// AUTH chunk on.
    fn verify(&mut self, path: Option<PathId>, auth: &Auth<'_>, rest: &[u8]) -> bool {
        let trusted = self.auth.verify(path, auth, rest, &mut self.outbox, &mut self.stats);
        if trusted && self.auth.note_key(auth.key_id) {
            self.events.push(Event::AuthKeyUsed { key: auth.key_id });
        }
        trusted
    }

    /// Whether a COOKIE ECHO of the peer, the first chunk of a packet or after an AUTH chunk, is
    /// authenticated as required (RFC 4895 6.3).
    pub(crate) fn accepts_cookie_echo(&mut self, now: Time, packet: &Packet<'_>) -> bool {
        let secret = &self.shared.secret;
        let trusted = self.auth.accept_cookie_echo(now, packet, &self.config, secret);
        self.stats.bad_auth += u64::from(!trusted);
        trusted
    }

    /// Whether the peer's NAT has a mapping for the local address that a packet arrived at, and
    /// another one for that of the path to the same peer (RFC 4787 4.1: "address-dependent
    /// mapping"). Such a NAT lets nothing from the path's local address in through the mapping that
    /// the packet shows: each local address needs a path of its own.
    fn is_mapped_apart(&self, path: PathId, from: &FourTuple) -> bool {
        let p = &self.paths[path];
        p.local() != from.local.ip()
            && p.remote().port() != from.remote.port()
            && self.handshake.peer_lists_none
            && p.state() != PathState::Unconfirmed
            && !p.local().is_unspecified()
            && self.shared.has_address(p.local())
    }

    /// The path of a packet from an address without a path: a new one, or that of an INIT ACK which
    /// lists an address that the application passed (RFC 9260 5.1.2 D).
    #[cold]
    fn path_of_unknown_source(
        &mut self,
        now: Time,
        from: &FourTuple,
        packet: &Packet<'_>,
    ) -> Option<PathId> {
        if self.handshake.peer_lists_none
            && let Some(path) = sender!(self).learn_from_heartbeat(now, from, packet)
        {
            return Some(path);
        }
        if !matches!(self.state, State::CookieWait(_)) {
            return None;
        }
        self.paths.path_of_init_ack(packet)
    }

    // Dynamic addresses (RFC 5061).

    /// Whether a local address remains: the host has it, and no outstanding ASCONF deletes it.
    /// Always true without dynamic addresses.
    fn stays(&self, local: IpAddr) -> bool {
        let kept = |a: &Addresses| self.shared.has_address(local) && !a.deletes(local);
        self.addresses.as_deref().is_none_or(kept)
    }

    /// True if an ABORT with a reflected tag must not end the association. It means that the peer
    /// does not know one of the packet's addresses: packets in flight when an address was removed
    /// are out of the blue to it (RFC 5061 5.3.1). If the local address remains, the path is given
    /// up; without another active path the ABORT ends the association.
    fn is_abort_of_a_change(&mut self, from: &FourTuple) -> bool {
        if self.addresses.is_none() {
            return false;
        }
        !self.stays(from.local.ip()) || sender!(self).leave_refused_path(from)
    }

    /// Processes an ASCONF: replies to its source with the ASCONF-ACK (RFC 5061 5.2 E6).
    fn handle_asconf(&mut self, now: Time, from: FourTuple, asconf: &Asconf<'_>) {
        let Some(addresses) = &mut self.addresses else { return };
        let allowed = (self.auth.are_agreed(), self.state.may_change_addresses());
        let ack = addresses.handle_asconf(&mut sender!(self), now, from, asconf, allowed);
        let Some(ack) = ack else { return };
        let header = self.reply_header(self.handshake.peer_tag);
        let mut buf = vec![0; ack.len() + 64];
        let mut w = PacketWriter::new(&mut buf, header);
        let written = w.raw_chunk(&ack);
        debug_assert!(written.is_ok(), "it was bounded");
        let len = w.len();
        let len = self.auth.authenticate(&mut buf, len);
        buf.truncate(len);
        seal(&mut buf, self.checksum());
        self.reply(from, buf);
    }

    /// Processes an ASCONF-ACK.
    fn handle_asconf_ack(&mut self, now: Time, from: FourTuple, ack: &AsconfAck<'_>) {
        let Some(addresses) = &mut self.addresses else {
            self.stats.dropped += 1;
            return;
        };
        match addresses.handle_ack(&mut sender!(self), now, from, ack) {
            AckOutcome::Applied => self.end_if_cut_off(),
            AckOutcome::Late => self.stats.dropped += 1,
            AckOutcome::Illegal => {
                let cause = OwnedCause::AddressRefused(AddressRefusal::IllegalAck, Bytes::new());
                self.send_abort(Some(cause));
                let what = "an ASCONF-ACK that answers nothing";
                self.become_closed(CloseReason::ProtocolViolation { what });
            }
        }
    }

    /// The peer has reported that it does not recognise ASCONF chunks (RFC 5061 5.1 A9).
    fn handle_asconf_unrecognized(&mut self) {
        if let Some(addresses) = &mut self.addresses {
            addresses.handle_unrecognized();
            self.end_if_cut_off();
        }
    }

    /// Ends the association if nothing may be sent any more (RFC 5061 5.3 F1).
    fn end_if_cut_off(&mut self) {
        let Some(addresses) = &self.addresses else { return };
        if addresses.is_cut_off(&self.paths, &self.shared) {
            self.become_closed(CloseReason::PeerUnreachable);
        }
    }

    /// Processes the ASCONFs in a packet that matches no path: it may be from a new address (RFC
    /// 5061 5.2). The verification tag has identified the association; other chunks are ignored.
    /// True if there was an ASCONF.
    #[cold]
    fn handle_from_nowhere(&mut self, now: Time, from: FourTuple, packet: &Packet<'_>) -> bool {
        if self.addresses.is_none() || !self.state.is_synchronised() {
            return false;
        }
        let mut chunks = packet.chunks();
        let mut authenticated = false;
        let mut any = false;
        loop {
            let rest = chunks.as_bytes();
            match chunks.next() {
                Some(Ok(Chunk::Auth(auth))) if !authenticated => {
                    authenticated = self.verify(None, &auth, rest);
                    if !authenticated {
                        return any;
                    }
                }
                Some(Ok(Chunk::Asconf(asconf))) => {
                    if !authenticated && self.auth.are_agreed() {
                        self.stats.unauthenticated += 1;
                        return any;
                    }
                    any = true;
                    self.handle_asconf(now, from, &asconf);
                }
                // Some stacks bundle a SACK before it.
                Some(_) => {}
                None => return any,
            }
        }
    }
}
