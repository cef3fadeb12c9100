//! INIT and COOKIE ECHO for an existing association: simultaneous opening, duplicated chunks, or a
//! restart of the peer (RFC 9260 5.2).

use std::net::{IpAddr, SocketAddr};

use super::Association;
use super::state::State;
use crate::cookie::{CookieError, StateCookie};
use crate::event::{CloseReason, Event};
use crate::ids::{PathId, Tsn, VerificationTag};
use crate::init::{self, InitAck};
use crate::outbox::{Control, OwnedCause};
use crate::path::PathState;
use crate::policy::congestion::NewPath;
use crate::reply::{abort_packet, stale_cookie_packet};
use crate::send::WindowProbe;
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{CauseWriter, CommonHeader, DoesNotFit, Init};

impl Association {
    /// Processes an INIT from an address of this association's peer, or one that lists such an
    /// address (RFC 9260 5.1.2 D, 5.2.1, 5.2.2). `fresh` holds an unused tag and TSN.
    pub(crate) fn handle_init(
        &mut self,
        now: Time,
        init: &Init<'_>,
        from: FourTuple,
        fresh: (VerificationTag, Tsn),
    ) {
        // RFC 9260 5.2.1: the INIT ACK of a side that has sent an INIT has the parameters of that.
        let plain = self.handshake.plain && !self.state.is_synchronised();
        let parameters = match init::read(init, from.remote.ip(), &self.config, false) {
            Ok(parameters) => parameters.for_plain(plain),
            Err(error) => return self.discard_init(init, from, |c| error.write(c)),
        };
        let known = parameters.addresses.iter().all(|ip| self.paths.is_peer_address(*ip));
        let own = (self.handshake.local_tag, self.handshake.local_initial_tsn);
        let (to, (local_tag, local_initial_tsn), ties) = match &self.state {
            // RFC 9260 5.2.1: the tag and TSN of the INIT that this side has sent; no tie tags.
            State::CookieWait(_) => {
                let Some(to) = self.named_destination(&from, &parameters.addresses) else {
                    self.stats.dropped += 1;
                    return;
                };
                (to, own, Default::default())
            }
            // RFC 9260 9.2: in SHUTDOWN-ACK-SENT the INIT is discarded and the SHUTDOWN ACK
            // repeated.
            State::ShutdownAckSent(timers) => {
                let path = timers.path;
                self.outbox.push(path, Control::ShutdownAck);
                return;
            }
            // RFC 9260 5.2.1, 5.2.2: neither a collision nor a restart may bring new addresses.
            _ if !known => return self.refuse_new_addresses(init, from, &parameters.addresses),
            // RFC 9260 5.2.1. The INIT ACK reveals this side's tag, so send it only to the
            // transport address that the peer's INIT ACK was sent from, and to no other UDP port of
            // that host.
            State::CookieEchoed(_) => {
                let path = self.paths.path_for(&from).map(|path| self.paths[path].remote());
                let to = FourTuple { remote: path.unwrap_or(from.remote), ..from };
                (to, own, self.handshake.tie_tags())
            }
            _ => (from, fresh, self.handshake.tie_tags()),
        };
        let ack = InitAck {
            init,
            parameters: &parameters,
            peer_port: self.handshake.peer_port,
            four_tuple: to,
            local_tag,
            local_initial_tsn,
            ties,
        };
        let packet = ack.packet(now, &self.shared, &self.config);
        self.reply(to, packet);
    }

    /// Destination of an INIT ACK in COOKIE-WAIT. It reveals this side's tag, with which any reader
    /// could open the association in the peer's place.
    fn named_destination(&self, from: &FourTuple, listed: &[IpAddr]) -> Option<FourTuple> {
        // RFC 9260 5.4 (1): until the peer has answered, only the addresses that the application
        // passed are CONFIRMED.
        let named = |ip: IpAddr| self.paths.confirmed_to(ip);
        // RFC 9260 5.2.1 (3): "SHOULD be sent to the source address of the received packet".
        if let Some(path) = named(from.remote.ip()) {
            return Some(FourTuple { local: from.local, remote: path.remote() });
        }
        // RFC 9260 5.2.1 (1), (2): "MUST only be sent to an address passed by the upper layer", and
        // "to an address reported in the incoming INIT chunk".
        let path = listed.iter().find_map(|ip| named(*ip))?;
        let local = SocketAddr::new(path.local(), from.local.port());
        Some(FourTuple { local, remote: path.remote() })
    }

    fn refuse_new_addresses(&mut self, init: &Init<'_>, from: FourTuple, addresses: &[IpAddr]) {
        let new: Vec<IpAddr> =
            addresses.iter().filter(|ip| !self.paths.is_peer_address(**ip)).copied().collect();
        self.discard_init(init, from, |c| {
            c.restart_with_new_addresses(|p| new.iter().try_for_each(|ip| p.address(*ip)))
        });
    }

    /// Discards an INIT, and replies with an ABORT that has its initiate tag. The peer of this
    /// association never gets one: an INIT with its tag is a late copy of the one that opened the
    /// association, because a restarted peer has another tag (RFC 9260 5.3.1), and the ABORT would
    /// end the association, which the INIT "MUST NOT change" (3.3.2).
    fn discard_init(
        &mut self,
        init: &Init<'_>,
        from: FourTuple,
        cause: impl FnOnce(&mut CauseWriter<'_>) -> Result<(), DoesNotFit>,
    ) {
        // RFC 9260 3.3.2: an INIT with the initiate tag 0 is silently discarded.
        if init.initiate_tag.0 == 0 || init.initiate_tag == self.handshake.peer_tag {
            self.stats.dropped += 1;
            return;
        }
        let header = self.reply_header(init.initiate_tag);
        let packet = abort_packet(header, false, &self.shared, cause);
        self.reply(from, packet);
    }

    pub(super) fn reply(&mut self, four_tuple: FourTuple, packet: Vec<u8>) {
        if !self.outbox.reply(four_tuple, packet) {
            self.stats.dropped += 1;
        }
    }

    pub(super) fn reply_header(&self, verification_tag: VerificationTag) -> CommonHeader {
        CommonHeader {
            source_port: self.shared.config.port,
            destination_port: self.handshake.peer_port,
            verification_tag,
        }
    }

    /// Processes a COOKIE ECHO for an existing association (RFC 9260 5.2.4, table 12). `tag` is the
    /// verification tag of its packet. True if the packet belongs to this association from now on.
    pub(crate) fn handle_cookie_echo(
        &mut self,
        now: Time,
        tag: VerificationTag,
        bytes: &[u8],
        from: FourTuple,
    ) -> bool {
        let verified = StateCookie::verify(bytes, &self.shared.secret, &self.config, now);
        let cookie = match verified {
            Ok(cookie) => cookie,
            // RFC 9260 5.2.4 (3): a stale cookie is accepted if both tags are the association's.
            Err(CookieError::Stale(cookie, by)) => {
                if cookie.local_tag != self.handshake.local_tag
                    || cookie.peer_tag != self.handshake.peer_tag
                {
                    self.report_stale(by, cookie.peer_tag, from);
                    return false;
                }
                *cookie
            }
            Err(CookieError::Forged) => {
                self.stats.dropped += 1;
                return false;
            }
        };
        if cookie.local_tag != tag || cookie.peer_port != self.handshake.peer_port {
            self.stats.dropped += 1;
            return false;
        }
        let local = cookie.local_tag == self.handshake.local_tag;
        let peer = cookie.peer_tag == self.handshake.peer_tag;
        let ties = (cookie.local_tie, cookie.peer_tie) == self.handshake.tie_tags();
        match (local, peer) {
            // Action A: the peer restarted.
            (false, false) if ties => self.restart(now, &cookie, from),
            // Action B: both sides opened the association at about the same time.
            (true, false) => self.accept_collision(now, &cookie, from),
            // Action D: the tags are those of the association: a late or repeated COOKIE ECHO.
            (true, true) => self.accept_again(now, &cookie, from),
            // Action C: the cookie is from an earlier attempt of this side; and every other case.
            _ => {
                self.stats.dropped += 1;
                false
            }
        }
    }

    fn report_stale(
        &mut self,
        by: std::time::Duration,
        peer_tag: VerificationTag,
        from: FourTuple,
    ) {
        let header = self.reply_header(peer_tag);
        let packet = stale_cookie_packet(header, by, &self.shared);
        self.reply(from, packet);
    }

    /// RFC 9260 5.2.4.1, action A, and 5.2.4.2: the peer has restarted.
    fn restart(&mut self, now: Time, cookie: &StateCookie, from: FourTuple) -> bool {
        if let State::ShutdownAckSent(timers) = &self.state {
            let path = timers.path;
            self.outbox.push(path, Control::ShutdownAck);
            self.outbox.push(path, Control::Error(OwnedCause::CookieWhileShuttingDown));
            return false;
        }
        let established = matches!(self.state, State::Established | State::ShutdownPending);
        if !established
            && !matches!(self.state, State::ShutdownReceived(_) | State::ShutdownSent(_))
        {
            self.stats.dropped += 1;
            return false;
        }
        self.handshake.local_tag = cookie.local_tag;
        self.handshake.peer_tag = cookie.peer_tag;
        self.handshake.local_initial_tsn = cookie.local_initial_tsn;
        self.agree_on(cookie.extensions, cookie.authentication.as_ref(), cookie.adaptation_layer);
        self.set_streams(cookie.outbound_streams, cookie.inbound_streams);
        self.restart_transfer(cookie);
        self.paths.clear_association_errors();
        self.receiving.ack.clear();
        self.outbox.clear();
        self.restart_paths(now);
        if let Some(side) = &mut self.side {
            side.stop();
        }
        self.events.push(Event::Restarted);
        let Some(path) = self.take_addresses(now, cookie, from) else {
            // No local address is left that reaches the peer.
            self.become_closed(CloseReason::PeerUnreachable);
            return false;
        };
        self.paths.set_primary(now, path, &mut self.events);
        self.push_cookie_ack(now, from);
        self.state = State::Established;
        let mut s = sender!(self);
        s.model.procedures.start_path_management(&mut s, now, true);
        s.paths.start_mtu_searches(now);
        if self.shutdown_requested {
            self.begin_shutdown(now);
        }
        true
    }

    /// RFC 9260 5.2.4 A: "treated the same as if it received an ABORT chunk followed by a new
    /// COOKIE ECHO": restarts every path as unconfirmed.
    fn restart_paths(&mut self, now: Time) {
        let ssthresh = self.config.initial_ssthresh().unwrap_or(self.paths.ssthresh);
        for path in self.paths.iter_mut() {
            if path.state() == PathState::Removed {
                path.clear_flight();
                continue;
            }
            let remote = path.remote().ip();
            let sizes = (path.max_chunk(), ssthresh, remote);
            let window = self.sending.congestion.initial(&NewPath::new(now, path.id(), sizes));
            path.restart(window, self.config.constants());
            let to = PathState::Unconfirmed;
            let from = path.set_state(now, to);
            if from != to {
                let path = path.id();
                self.events.push(Event::PathState { path, from, to, at: now });
            }
        }
    }

    /// RFC 9260 5.2.4, action B: adopts the peer's tag from the cookie.
    fn accept_collision(&mut self, now: Time, cookie: &StateCookie, from: FourTuple) -> bool {
        if self.state.is_synchronised() || self.is_closed() {
            self.stats.dropped += 1;
            return false;
        }
        // It had another tag.
        self.lose_data_with_cookie();
        self.handshake.peer_tag = cookie.peer_tag;
        self.agree_on(cookie.extensions, cookie.authentication.as_ref(), cookie.adaptation_layer);
        self.set_streams(cookie.outbound_streams, cookie.inbound_streams);
        self.start_receiving(cookie.peer_initial_tsn, cookie.peer_rwnd);
        self.take_addresses(now, cookie, from);
        self.accept_again(now, cookie, from)
    }

    /// RFC 9260 5.2.4, action D: establishes the association if necessary, and sends the COOKIE
    /// ACK.
    fn accept_again(&mut self, now: Time, cookie: &StateCookie, from: FourTuple) -> bool {
        if self.is_closed() {
            return false;
        }
        // The peer has sent to this address, so it knows it.
        self.record_announced(from.local.ip());
        if !self.state.is_synchronised() {
            self.outbox.clear();
            if let Some(path) = self.init_ack_path(now, cookie, from) {
                sender!(self).confirm(now, path);
            }
            self.become_established(now, false);
        }
        self.push_cookie_ack(now, from);
        true
    }

    /// Sends the COOKIE ACK to the source of the COOKIE ECHO (RFC 9260 6.4).
    pub(super) fn push_cookie_ack(&mut self, now: Time, from: FourTuple) {
        let Some(path) =
            self.paths.path_for(&from).or_else(|| self.redirected(self.paths.primary()))
        else {
            return;
        };
        self.paths.adopt_source(path, &from, &self.shared);
        sender!(self).acknowledge_cookie(now, path);
    }

    /// Adopts the peer's addresses from the INIT that the cookie was made for, and removes other
    /// paths. Returns the path to the address that the INIT ACK was sent to: "For the receiver of
    /// the COOKIE ECHO chunk, the only CONFIRMED address" (RFC 9260 5.4 (2)). If no local address
    /// reaches it any more, returns the path of the COOKIE ECHO, which is not confirmed.
    pub(super) fn take_addresses(
        &mut self,
        now: Time,
        cookie: &StateCookie,
        from: FourTuple,
    ) -> Option<PathId> {
        let confirmed = self.init_ack_path(now, cookie, from);
        let listed = cookie.addresses.contains(&from.remote.ip());
        let path = match confirmed {
            Some(path) => path,
            None if listed => self.path_to(now, from.local.ip(), from.remote)?,
            None => return None,
        };
        if self.addresses.is_none() {
            self.start_addresses(cookie.peer_initial_tsn);
        }
        self.record_announced(cookie.local);
        self.record_announced(from.local.ip());
        if self.shared.config.announced.is_some() {
            // The peer does not know the others.
            let listed = init::usable(&self.shared, cookie.remote.ip());
            self.paths.sources = listed.copied().collect();
        }
        sender!(self).set_peer_addresses(now, &cookie.addresses, from.remote.port());
        self.handshake.peer_lists_none = cookie.addresses.len() == 1;
        if let Some(path) = confirmed {
            sender!(self).confirm(now, path);
        }
        Some(path)
    }

    /// The path to the address that the INIT ACK was sent to. The host may have lost the local
    /// address that it was sent from; it has the one that the COOKIE ECHO arrived at.
    fn init_ack_path(
        &mut self,
        now: Time,
        cookie: &StateCookie,
        from: FourTuple,
    ) -> Option<PathId> {
        let remote = cookie.remote;
        if remote.ip() == from.remote.ip() {
            return self.path_to(now, from.local.ip(), from.remote);
        }
        if self.shared.has_address(cookie.local) {
            return self.path_to(now, cookie.local, remote);
        }
        let config = &self.shared.config;
        let local = config.routes.local_for(remote.ip(), 0, &config.addresses)?;
        self.path_to(now, local, remote)
    }

    /// The path to a remote address; adds one from this local address if there is none yet.
    fn path_to(&mut self, now: Time, local: IpAddr, remote: SocketAddr) -> Option<PathId> {
        let from = FourTuple { local: SocketAddr::new(local, 0), remote };
        let path =
            self.paths.path_for(&from).or_else(|| sender!(self).add_path(now, local, remote))?;
        self.paths.adopt_source(path, &from, &self.shared);
        Some(path)
    }

    /// Adopts the new association's numbers. Data that the old one had not delivered is lost;
    /// queued data without a TSN is sent to the new peer.
    fn restart_transfer(&mut self, cookie: &StateCookie) {
        self.keep_lost_by_restart();
        let mut lost = 0;
        for (_, chunk) in self.sending.flight.iter() {
            lost += chunk.content.payload.len();
        }
        lost += self.sending.queue.restart();
        self.sending.buffered -= lost;
        self.sending.copies.clear();
        self.sending.flight.restart(cookie.local_initial_tsn);
        self.peer_window(cookie.peer_rwnd);
        self.paths.clear_send_credit();
        self.sending.forward = None;
        self.sending.last_sack = Some(self.now);
        self.sending.probe = WindowProbe::Idle;
        let extensions = self.handshake.extensions;
        self.receiving.restart(cookie.peer_initial_tsn, cookie.inbound_streams, extensions);
        self.start_reconfig(cookie.peer_initial_tsn);
        self.start_addresses(cookie.peer_initial_tsn);
        self.sending.cwnd_update = self.config.cwnd_update().make(&self.config.setup());
        self.sending.loss = self.config.loss().make(&self.config.setup());
    }
}
