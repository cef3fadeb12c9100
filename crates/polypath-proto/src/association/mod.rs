//! An association: owns its parts and dispatches received chunks to them.
//!
//! Each procedure of RFC 9260 has its own submodule: [`connect`] (5.1), [`collision`] (5.2),
//! [`paths`] (5.4, 8.1, 8.2), [`data`] (6.2), [`acknowledge`] (6.2.1, 7.2), [`transmit`] (6.1,
//! 6.10), [`timers`] (6.3.3), [`heartbeat`] (8.3), [`shutdown`] (9), [`icmp`] (10). [`mtu`]
//! searches for the paths' largest packets; [`measure`] and [`reconfig`] implement extensions that
//! both sides may agree on.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use crate::budget;
use crate::config::Config;
use crate::cookie::StateCookie;
use crate::error::{ConnectError, SendError};
use crate::event::{CloseReason, Event, Message, Received};
use crate::events::Events;
use crate::extension::Extension;
use crate::handshake::Handshake;
use crate::ids::{AssociationId, PathId, Ppid, StreamId, Tsn, VerificationTag};
use crate::outbox::Outbox;
use crate::path::{Path, PathState};
use crate::paths::Paths;
use crate::receive::Receiving;
use crate::reliability::Reliability;
use crate::reply::words;
use crate::rng::{Rng, Secret};
use crate::send::Sending;
use crate::shared::{Remote, Shared};
use crate::stats::AssociationStats;
use crate::time::Time;
use crate::transmit::{Ecn, FourTuple};
use crate::wire::{Action, Cause, Chunk, ChunkError, Packet, chunk_type};

mod abandon;
mod acknowledge;
mod addresses;
mod auth;
mod blocking;
mod buffer_splitting;
mod collision;
mod congestion;
mod connect;
mod data;
mod ecn;
mod forward;
mod heartbeat;
mod icmp;
mod immediate;
mod interleave;
mod invariants;
mod losses;
mod measure;
mod mtu;
mod nr_sack;
mod paths;
pub mod procedures;
mod reconfig;
mod recovery;
mod shutdown;
mod silence;
mod state;
mod stranded;
mod timers;
mod transmit;

pub(crate) use auth::trusts_stranger;
pub use invariants::Budget;
pub(crate) use procedures::{SENDERS, Sender};
use procedures::{SenderProcedures, Side};
pub use reconfig::{AcceptedRequests, StreamReset};
use state::{CookieWait, State};

/// Most SACKs processed in one packet.
const MOST_SACKS: u32 = 1;

/// One association with a peer, over all paths between the two.
#[derive(Debug)]
pub struct Association {
    id: AssociationId,
    shared: Arc<Shared>,
    config: Config,
    state: State,
    wants_shutdown: bool,
    now: Time,
    handshake: Handshake,
    paths: Paths,
    sending: Sending,
    receiving: Receiving,
    outbox: Outbox,
    events: Events,
    stats: AssociationStats,
    rng: Rng,
    reconfig: Option<Box<reconfig::Reconfig>>,
    auth: auth::Keys,
    addresses: Option<Box<addresses::Addresses>>,
    marks: ecn::Marks,
    procedures: &'static dyn SenderProcedures,
    side: Box<dyn Side>,
}

impl Association {
    fn new(
        id: AssociationId,
        shared: Arc<Shared>,
        config: Config,
        secret: &mut Secret,
        now: Time,
        tags: (VerificationTag, Tsn),
        peer_port: u16,
    ) -> Self {
        let wait = CookieWait {
            t1: Time::FAR_FUTURE,
            retransmits: 0,
            path: PathId(0),
            preservative: None,
            stale: 0,
        };
        let procedures = config.procedures().sender().procedures;
        let mut sending = Sending::new(tags.1, &config, &shared.pool);
        sending.flight.count_padding(procedures.counts_padding());
        let key = secret.next_bytes();
        Self {
            id,
            state: State::CookieWait(wait),
            wants_shutdown: false,
            now,
            handshake: Handshake::new(&config, tags, peer_port, key),
            paths: Paths::new(&config, key),
            sending,
            receiving: Receiving::new(&config, &shared.pool),
            outbox: Outbox::default(),
            events: Events::default(),
            stats: AssociationStats::default(),
            rng: Rng::new(&secret.fork()).with_ties(config.ties()),
            reconfig: None,
            auth: auth::Keys::new(shared.config.auth_keys.clone()),
            addresses: None,
            marks: ecn::Marks::default(),
            procedures,
            side: procedures.side(),
            shared,
            config,
        }
    }

    /// An association opened by this side.
    #[expect(clippy::too_many_arguments, reason = "called in one place, each is another thing")]
    pub(crate) fn connect(
        id: AssociationId,
        shared: Arc<Shared>,
        config: Config,
        secret: &mut Secret,
        now: Time,
        tags: (VerificationTag, Tsn),
        peer_port: u16,
        remotes: &[Remote],
    ) -> Result<Self, ConnectError> {
        let mut a = Self::new(id, shared, config, secret, now, tags, peer_port);
        for (index, remote) in remotes.iter().enumerate() {
            let ip = remote.address.ip();
            let locals = &a.shared.config.addresses;
            let by_route = || a.shared.config.routes.local_for(ip, index, locals);
            if let Some(local) = remote.local.or_else(by_route) {
                a.add_path(now, local, remote.address);
            }
        }
        if a.config.full_mesh() {
            for remote in remotes {
                a.learn_addresses(now, &[remote.address.ip()], remote.address.port());
            }
        }
        if a.paths.is_empty() {
            return Err(ConnectError::NoPath);
        }
        a.paths.iter_mut().for_each(Path::confirm_address);
        a.begin_connect(now);
        Ok(a)
    }

    /// The association that a valid cookie describes (RFC 9260 5.1 D).
    pub(crate) fn accept(
        id: AssociationId,
        shared: Arc<Shared>,
        secret: &mut Secret,
        now: Time,
        cookie: &StateCookie,
        from: FourTuple,
    ) -> Option<Self> {
        let config = shared.config.association.clone();
        let tags = (cookie.local_tag, cookie.local_initial_tsn);
        let mut a = Self::new(id, shared, config, secret, now, tags, cookie.peer_port);
        a.handshake.peer_tag = cookie.peer_tag;
        a.handshake.round_trip = Some(now.since(cookie.created));
        a.agree_on(cookie.extensions, cookie.authentication.as_ref(), cookie.adaptation_layer);
        a.set_streams(cookie.outbound_streams, cookie.inbound_streams);
        a.start_receiving(cookie.peer_initial_tsn, cookie.peer_rwnd);
        // The first path is the primary.
        a.take_addresses(now, cookie, from)?;
        a.become_established(now, true);
        a.push_cookie_ack(now, from);
        Some(a)
    }

    /// The association's number in the endpoint.
    pub const fn id(&self) -> AssociationId {
        self.id
    }

    /// The association's constants and policies.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The association's counters.
    pub const fn stats(&self) -> AssociationStats {
        self.stats
    }

    /// Whether the association is established: data can be sent and received.
    pub const fn is_established(&self) -> bool {
        matches!(self.state, State::Established)
    }

    /// Whether this side has begun a handshake that is not complete.
    pub(crate) const fn is_opening(&self) -> bool {
        matches!(self.state, State::CookieWait(_) | State::CookieEchoed(_))
    }

    /// Whether the association has ended.
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// Why the association has ended; `None` before.
    pub const fn close_reason(&self) -> Option<&CloseReason> {
        match &self.state {
            State::Closed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Streams that this side may send on; the agreed number once the association is established.
    pub const fn outbound_streams(&self) -> u16 {
        self.handshake.outbound_streams
    }

    /// Streams that the peer may send on.
    pub const fn inbound_streams(&self) -> u16 {
        self.handshake.inbound_streams
    }

    /// The adaptation code point in the peer's INIT or INIT ACK; `None` without one (RFC 5061
    /// 4.2.6; `SCTP_ADAPTATION_INDICATION` of RFC 6458 6.1.6). It may change with
    /// [`Event::Restarted`].
    pub const fn peer_adaptation_layer(&self) -> Option<u32> {
        self.handshake.peer_adaptation_layer
    }

    /// Free bytes of the peer's receive buffer, as far as this side can compute.
    pub const fn peer_rwnd(&self) -> u32 {
        self.sending.peer_rwnd
    }

    /// Payload bytes given to `send` that the peer has not yet acknowledged.
    pub const fn buffered(&self) -> usize {
        self.sending.buffered
    }

    /// Payload bytes given to `send` that have not been sent yet.
    pub const fn unsent(&self) -> usize {
        self.sending.queue.bytes()
    }

    /// Payload bytes that the send buffer still accepts. Small messages take up more, because their
    /// bookkeeping is memory too, and so are events that wait to be polled.
    pub fn send_room(&self) -> usize {
        self.sending.room().saturating_sub(self.events.memory())
    }

    /// Current size of the send buffer in bytes.
    pub const fn send_buffer(&self) -> usize {
        self.sending.tuning.size()
    }

    /// Current size of the receive buffer in bytes.
    pub const fn receive_buffer(&self) -> usize {
        self.receiving.size()
    }

    /// Puts a message into the send buffer (RFC 9260 11.1.5, SEND); its bytes are not copied. A
    /// message larger than the remaining room is accepted if there is any room.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; the message was not accepted.
    pub fn send(&mut self, now: Time, message: Message) -> Result<(), SendError> {
        self.now = now;
        if self.wants_shutdown || !(matches!(self.state, State::Established) || self.is_opening()) {
            return Err(SendError::Closed);
        }
        let (size, max) = (message.payload.len(), self.config.max_message_size() as usize);
        if size == 0 {
            return Err(SendError::Empty);
        }
        if size > max {
            return Err(SendError::TooLarge { size, max });
        }
        if message.stream.0 >= self.handshake.outbound_streams {
            return Err(SendError::NoSuchStream {
                stream: message.stream,
                streams: self.handshake.outbound_streams,
            });
        }
        if let Reliability::Priority(priority) = message.reliability
            && self.may_abandon()
        {
            self.make_send_room(now, size, priority);
        }
        if self.send_room() == 0 {
            self.sending.starved = true;
            return Err(SendError::WouldBlock);
        }
        self.procedures.on_message(self);
        self.resume_paths(now);
        if self.sending.flight.bytes() == 0 {
            // After a pause the burst is counted from zero bytes in flight (RFC 9260 6.1 D).
            self.new_burst();
        }
        self.sending.buffered += size;
        self.sending.largest_message = self.sending.largest_message.max(size);
        self.sending.unreliable |= self.sending.queue.push(now, message);
        self.stats.messages_sent += 1;
        Ok(())
    }

    /// One stream, for sending and receiving.
    pub const fn stream(&mut self, id: StreamId) -> StreamMut<'_> {
        StreamMut { association: self, id }
    }

    /// The next event. Call it until it returns `None`, after every other call.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop();
        if self.sending.starved {
            // Queued events count towards the send buffer.
            self.tell_if_writable();
        }
        event
    }

    /// Whether `poll_event` has something to return.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(crate) const fn local_tag(&self) -> VerificationTag {
        self.handshake.local_tag
    }

    /// SCTP port of the peer.
    pub const fn peer_port(&self) -> u16 {
        self.handshake.peer_port
    }

    pub(crate) const fn path_changes(&self) -> u64 {
        self.paths.changes()
    }

    /// All addresses of the peer, with paths or without: each of them identifies the association
    /// (RFC 9260 5.1.2 D).
    pub(crate) fn peer_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.paths.peer_addresses()
    }

    /// Whether something is still to be sent: an ABORT, a SHUTDOWN COMPLETE.
    pub(crate) fn has_last_words(&self) -> bool {
        !self.outbox.is_silent()
    }

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
        let known =
            self.paths.path_for(&from).or_else(|| self.learn_from_heartbeat(now, &from, packet));
        let Some(path) = known.or_else(|| self.path_of_init_ack(packet)) else {
            let taken = done == 0 && self.handle_from_nowhere(now, from, packet);
            self.stats.dropped += u64::from(!taken);
            return;
        };
        self.new_burst();
        self.procedures.on_packet(self, path);
        // A packet to an address that is being removed does not update the path (RFC 5061 5.3 F6).
        if !self.is_untold(path) && self.stays(from.local.ip()) {
            self.hear_from(path, &from);
        }
        if self.paths[path].state() == PathState::Unconfirmed {
            self.verify_source(now, path);
        }
        let stats = &mut self.paths[path].stats;
        stats.packets_received += 1;
        stats.bytes_received += packet.datagram().len() as u64;
        self.extend_shutdown(now);
        let mut seen = data::DataSeen::new(ecn);
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
            if !authenticated && self.auth.are_agreed() && self.demands_auth(ty()) {
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
                    authenticated = if self.awaits_cookie_behind(packet) {
                        self.trusts_cookie_echo(now, packet)
                    } else {
                        self.verify(Some(path), auth, rest)
                    };
                    authenticated
                }
                // RFC 9260 5.1: before the handshake is complete only its own chunks count, except
                // that DATA and SACK may follow a COOKIE ACK in its packet.
                Ok(Chunk::Data(data)) => {
                    self.handle_data(path, data, &mut seen);
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
                    self.sending.sack.cause =
                        self.cause_of(now, sack, seen.timestamp.and_then(|t| t.echo));
                    self.handle_sack(now, path, sack);
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
        seen: &mut data::DataSeen,
    ) -> bool {
        match chunk {
            Chunk::Timestamp(t) if self.handshake.has(Extension::Timestamps) => {
                seen.timestamp.get_or_insert(*t);
            }
            Chunk::NrSack(sack) => {
                return self.handle_nr_sack(now, path, sack, seen.timestamp.and_then(|t| t.echo));
            }
            Chunk::Ecne(e) if self.handshake.has(Extension::Ecn) => {
                self.handle_ecne(path, e.lowest_tsn);
            }
            Chunk::Cwr(c) if self.handshake.has(Extension::Ecn) => {
                self.handle_cwr(c.lowest_tsn);
            }
            // A PAD chunk only adds to the packet's size.
            Chunk::Pad(_) => {}
            Chunk::Asconf(asconf) if self.addresses.is_none() => {
                if self.state.is_synchronised() {
                    self.report_unrecognized_chunk(path, asconf.raw);
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
            Chunk::IData(data) => self.handle_i_data(path, data, seen),
            Chunk::IForwardTsn(forward) => self.handle_i_forward_tsn(path, forward, seen),
            Chunk::ForwardTsn(forward) => self.handle_forward_tsn(path, forward, seen),
            Chunk::Heartbeat(h) => self.handle_heartbeat(path, h.parameters),
            Chunk::HeartbeatAck(h) if self.state.is_synchronised() => {
                self.handle_heartbeat_ack(now, h.info);
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
                    self.report_unrecognized_chunk(path, unknown.raw);
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
                self.asconf_unknown();
            }
        }
        if self.state.is_synchronised() {
            self.peer_error(words(causes));
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
    fn handle_reflected_abort(&mut self, from: &FourTuple, reason: CloseReason) {
        if self.demands_auth(chunk_type::ABORT) {
            self.stats.unauthenticated += 1;
            return;
        }
        if self.is_abort_of_a_change(from) {
            return;
        }
        if let Some(path) = self.refused_path(from) {
            self.events.push(Event::PathRefused { path });
            return;
        }
        // In SHUTDOWN-ACK-SENT all data has been delivered in both directions: a peer that no
        // longer knows the association has completed the shutdown.
        let done = matches!(self.state, State::ShutdownAckSent(_));
        self.handle_abort(if done { CloseReason::Graceful } else { reason });
    }
}

/// One stream of an association.
#[derive(Debug)]
pub struct StreamMut<'a> {
    association: &'a mut Association,
    id: StreamId,
}

impl StreamMut<'_> {
    /// Sends an ordered message on this stream.
    ///
    /// # Errors
    ///
    /// As [`Association::send`].
    pub fn send(&mut self, now: Time, ppid: Ppid, payload: Bytes) -> Result<(), SendError> {
        self.association.send(now, Message { ppid, ..Message::new(self.id, payload) })
    }

    /// Takes the next message, or piece of one, of this stream.
    pub fn recv(&mut self, now: Time) -> Option<Received> {
        self.association.recv_from(now, self.id)
    }
}
