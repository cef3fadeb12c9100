//! INIT and COOKIE ECHO for an association that exists: both sides opened at once, chunks came
//! twice, or the peer restarted (RFC 9260 5.2).

use std::net::IpAddr;

use super::Association;
use super::control::{Control, OwnedCause};
use super::state::State;
use crate::cookie::{CookieError, StateCookie};
use crate::event::Event;
use crate::init::{self, InitAck};
use crate::policy::PathState;
use crate::reply::{Reply, abort_packet, stale_cookie_packet};
use crate::send::WindowProbe;
use crate::wire::{CommonHeader, Init};
use crate::{FourTuple, Time, Tsn, VerificationTag};

impl Association {
    /// An INIT from an address of this association's peer (RFC 9260 5.2.1, 5.2.2). `fresh` holds a tag
    /// and TSN that nobody has used.
    pub(crate) fn handle_init(
        &mut self,
        now: Time,
        init: &Init<'_>,
        from: FourTuple,
        fresh: (VerificationTag, Tsn),
    ) {
        let parameters = match init::read(init, from.remote.ip(), &self.config, false) {
            Ok(parameters) => parameters,
            Err(error) => {
                if init.initiate_tag.0 != 0 {
                    let header = self.reply_header(init.initiate_tag);
                    let packet = abort_packet(header, false, &self.shared, |c| error.write(c));
                    self.reply(from, packet);
                }
                return;
            }
        };
        let (local_tag, local_initial_tsn, ties) = match &self.state {
            // RFC 9260 5.2.1: the same tag and TSN as in our own INIT; no tie tags in COOKIE-WAIT.
            State::CookieWait(_) => (self.local_tag, self.local_initial_tsn, Default::default()),
            State::CookieEchoed(_) if self.are_known(&parameters.addresses) => {
                (self.local_tag, self.local_initial_tsn, (self.local_tag, self.peer_tag))
            }
            // RFC 9260 9.2: in SHUTDOWN-ACK-SENT the INIT is discarded and the SHUTDOWN ACK repeated.
            State::ShutdownAckSent(timers) => {
                let path = timers.path;
                self.control.push(path, Control::ShutdownAck);
                return;
            }
            // RFC 9260 5.2.1, 5.2.2: neither a collision nor a restart may bring new addresses.
            _ if !self.are_known(&parameters.addresses) => {
                return self.refuse_new_addresses(init, from, &parameters.addresses);
            }
            _ => (fresh.0, fresh.1, (self.local_tag, self.peer_tag)),
        };
        let ack = InitAck {
            init,
            parameters: &parameters,
            peer_port: self.peer_port,
            four_tuple: from,
            local_tag,
            local_initial_tsn,
            ties,
        };
        let packet = ack.packet(now, &self.shared, &self.config);
        self.reply(from, packet);
    }

    fn are_known(&self, addresses: &[IpAddr]) -> bool {
        addresses.iter().all(|a| self.knows(*a))
            || self.paths.len() >= usize::from(self.config.max_paths())
    }

    fn refuse_new_addresses(&mut self, init: &Init<'_>, from: FourTuple, addresses: &[IpAddr]) {
        let new: Vec<IpAddr> = addresses.iter().filter(|a| !self.knows(**a)).copied().collect();
        let header = self.reply_header(init.initiate_tag);
        let packet = abort_packet(header, false, &self.shared, |c| {
            c.restart_with_new_addresses(|p| new.iter().try_for_each(|a| p.address(*a)))
        });
        self.reply(from, packet);
    }

    pub(super) fn reply(&mut self, four_tuple: FourTuple, packet: Vec<u8>) {
        const MOST: usize = 64;
        if self.replies.len() < MOST {
            self.replies.push(Reply { four_tuple, packet });
        } else {
            self.stats.dropped += 1;
        }
    }

    pub(super) fn reply_header(&self, verification_tag: VerificationTag) -> CommonHeader {
        CommonHeader {
            source_port: self.shared.config.port,
            destination_port: self.peer_port,
            verification_tag,
        }
    }

    /// A COOKIE ECHO for an association that exists (RFC 9260 5.2.4, table 12). `tag` is the
    /// verification tag of its packet. True if the packet belongs to this association from now on.
    pub(crate) fn handle_cookie_echo(
        &mut self,
        now: Time,
        tag: VerificationTag,
        bytes: &[u8],
        from: FourTuple,
    ) -> bool {
        let cookie = match StateCookie::verify(bytes, &self.shared.cookie_key, now) {
            Ok(cookie) => cookie,
            // RFC 9260 5.2.4 (3): a stale cookie is accepted if both tags are the association's.
            Err(CookieError::Stale(by)) => {
                let ours = StateCookie::verify(bytes, &self.shared.cookie_key, Time::ZERO);
                match ours {
                    Ok(c) if c.local_tag == self.local_tag && c.peer_tag == self.peer_tag => c,
                    Ok(c) => {
                        self.report_stale(by, c.peer_tag, from);
                        return false;
                    }
                    Err(_) => return false,
                }
            }
            Err(CookieError::Forged) => {
                self.stats.dropped += 1;
                return false;
            }
        };
        if cookie.local_tag != tag || cookie.peer_port != self.peer_port {
            self.stats.dropped += 1;
            return false;
        }
        let local = cookie.local_tag == self.local_tag;
        let peer = cookie.peer_tag == self.peer_tag;
        let ties = cookie.local_tie == self.local_tag
            && cookie.peer_tie == self.peer_tag
            && cookie.peer_tie.0 != 0;
        match (local, peer) {
            // Action A: the peer restarted.
            (false, false) if ties => self.restart(now, &cookie, from),
            // Action B: both sides opened the association at about the same time.
            (true, false) => self.accept_collision(now, &cookie, from),
            // Action D: the tags are those of the association: a late or repeated COOKIE ECHO.
            (true, true) => self.accept_again(now, from),
            // Action C: the cookie is from an earlier attempt of ours; and every other case.
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

    /// RFC 9260 5.2.4.1, action A, and 5.2.4.2.
    fn restart(&mut self, now: Time, cookie: &StateCookie, from: FourTuple) -> bool {
        if let State::ShutdownAckSent(timers) = &self.state {
            let path = timers.path;
            self.control.push(path, Control::ShutdownAck);
            self.control.push(path, Control::Error(OwnedCause::CookieWhileShuttingDown));
            return false;
        }
        let established = matches!(self.state, State::Established | State::ShutdownPending);
        if !established
            && !matches!(self.state, State::ShutdownReceived(_) | State::ShutdownSent(_))
        {
            self.stats.dropped += 1;
            return false;
        }
        self.local_tag = cookie.local_tag;
        self.peer_tag = cookie.peer_tag;
        self.local_initial_tsn = cookie.local_initial_tsn;
        self.agree_on(cookie.extensions, cookie.authentication.as_ref(), cookie.adaptation_layer);
        self.set_streams(cookie.outbound_streams, cookie.inbound_streams);
        self.restart_transfer(cookie);
        self.error_count = 0;
        self.ack.clear();
        self.control.clear();
        for path in &mut self.paths {
            if path.state() == PathState::Removed {
                path.forget_flight();
                continue;
            }
            let ssthresh = self.config.initial_ssthresh().unwrap_or(self.ssthresh);
            let remote = path.remote().ip();
            let window = self.policies.congestion.initial(path.max_chunk(), ssthresh, remote);
            path.restart(window, &self.config);
        }
        self.tell(Event::Restarted);
        let Some(path) = self.path_for(&from) else { return false };
        self.paths[path.index()].heard_from(from.local, from.remote);
        self.confirm(now, path);
        self.acknowledge_cookie(now, path);
        self.state = State::Established;
        self.start_path_management(now, true);
        self.start_mtu_searches(now);
        if self.wants_shutdown {
            self.begin_shutdown(now);
        }
        true
    }

    /// RFC 9260 5.2.4, action B: the peer's tag in the cookie is the one that holds.
    fn accept_collision(&mut self, now: Time, cookie: &StateCookie, from: FourTuple) -> bool {
        if self.state.is_synchronised() || self.is_closed() {
            self.stats.dropped += 1;
            return false;
        }
        self.peer_tag = cookie.peer_tag;
        self.agree_on(cookie.extensions, cookie.authentication.as_ref(), cookie.adaptation_layer);
        self.set_streams(cookie.outbound_streams, cookie.inbound_streams);
        self.start_receiving(cookie.peer_initial_tsn, cookie.peer_rwnd);
        self.peer_knows(from.local.ip());
        self.learn_addresses(now, &cookie.addresses, from.remote.port());
        self.accept_again(now, from)
    }

    /// RFC 9260 5.2.4, action D: the association is established, if it was not; the peer hears so.
    fn accept_again(&mut self, now: Time, from: FourTuple) -> bool {
        if self.is_closed() {
            return false;
        }
        let Some(path) = self.path_for(&from) else { return false };
        if !self.state.is_synchronised() {
            self.control.clear();
            self.paths[path.index()].heard_from(from.local, from.remote);
            self.confirm(now, path);
            self.become_established(now, false);
        }
        self.acknowledge_cookie(now, path);
        true
    }

    /// The new association's numbers; what the old one had not delivered is lost, what waits to be
    /// sent and has no TSN yet is sent to the new peer.
    fn restart_transfer(&mut self, cookie: &StateCookie) {
        let mut lost = 0;
        for (_, chunk) in self.sender.flight.iter() {
            lost += chunk.payload.len();
        }
        lost += self.sender.queue.restart();
        self.sender.buffered -= lost;
        self.sender.flight.restart(cookie.local_initial_tsn);
        self.peer_window(cookie.peer_rwnd);
        self.clear_allowances();
        self.forward = None;
        self.sender.heard = true;
        self.sender.probe = WindowProbe::Idle;
        self.receiver.restart(cookie.peer_initial_tsn, cookie.inbound_streams);
        self.keep_if_agreed();
        self.start_reconfig(cookie.peer_initial_tsn);
        Self::prepare(&mut self.receiver, self.extensions);
        self.start_addresses(cookie.peer_initial_tsn);
        self.policies.cwnd_update = (self.config.cwnd_update().make)(&self.config);
        self.policies.loss = (self.config.loss().make)(&self.config);
    }
}
