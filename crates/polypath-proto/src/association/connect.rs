//! INIT, INIT ACK, COOKIE ECHO, COOKIE ACK: the side that opens the association (RFC 9260 5.1).

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;

use super::addresses::Addresses;
use super::ecn::Marks;
use super::reconfig::Reconfig;
use super::state::{CookieEchoed, CookieWait, State};
use super::{Association, auth};
use crate::auth::AuthOffer;
use crate::event::{CloseReason, Event};
use crate::extension::{Extension, Extensions};
use crate::ids::{PathId, Tsn};
use crate::init::{self, InitError};
use crate::outbox::{Control, OwnedCause};
use crate::path::PathState;
use crate::paths::HEARTBEAT_CHUNK_LEN;
use crate::policy::congestion::NewPath;
use crate::policy::entry::Needs;
use crate::policy::retransmission::LossCause;
use crate::policy::rtt_sampling::KARN;
use crate::reply::abort_packet;
use crate::send::{Fate, Stamps};
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{CHUNK_HEADER_LEN, COMMON_HEADER_LEN, Init};

/// INITs with extensions before one without, if there are not more paths.
const FULL_INITS: usize = 2;

impl Association {
    /// Sends the first INIT.
    pub(super) fn begin_connect(&mut self, now: Time) {
        self.handshake.opened_here = true;
        let path = self.paths.primary();
        let t1 = now + self.paths[path].rto();
        self.become_cookie_wait(CookieWait {
            t1,
            retransmits: 0,
            path,
            preservative: None,
            stale: 0,
        });
        self.outbox.push(path, Control::Init);
    }

    /// Processes an INIT ACK (RFC 9260 5.1 B).
    pub(super) fn handle_init_ack(
        &mut self,
        now: Time,
        path: PathId,
        init: &Init<'_>,
        from: FourTuple,
    ) {
        let State::CookieWait(wait) = &self.state else {
            // RFC 9260 5.2.3: unexpected INIT ACKs are discarded.
            self.stats.dropped += 1;
            return;
        };
        let stale = wait.stale;
        let parameters = match init::read(init, from.remote.ip(), &self.config, true) {
            Ok(parameters) => parameters.for_plain(self.handshake.plain),
            // RFC 9260 3.3.3: "MUST discard the packet, SHOULD send a packet in response containing
            // an ABORT chunk and using the Initiate Tag as the Verification Tag, and MUST NOT
            // change the state of any existing association".
            Err(error @ InitError::SmallWindow) => {
                let header = self.reply_header(init.initiate_tag);
                let packet = abort_packet(header, false, &self.shared, |c| error.write(c));
                return self.reply(from, packet);
            }
            Err(error) => return self.refuse_init_ack(path, init, error, from),
        };
        self.handshake.peer_tag = init.initiate_tag;
        let agreed = parameters.agreed(&self.config, &self.shared);
        self.agree_on(agreed, parameters.authentication.as_ref(), parameters.adaptation_layer);
        self.set_streams(
            self.config.outbound_streams().min(init.inbound_streams),
            self.config.inbound_streams().min(init.outbound_streams),
        );
        self.start_receiving(init.initial_tsn, init.a_rwnd);
        self.paths.adopt_source(path, &from, &self.shared);
        self.paths.sources.clone_from(&self.shared.config.sources);
        if parameters.lists_addresses {
            let remote = self.paths[self.paths.primary()].remote().ip();
            if !parameters.addresses.contains(&remote) {
                self.paths.set_primary(now, path, &mut self.events);
            }
            // RFC 9260 5.1.2 C.
            sender!(self).set_peer_addresses(now, &parameters.addresses, from.remote.port());
        } else {
            // RFC 9260 5.1.2 A would leave only the source address. But a peer that is bound to an
            // unspecified address, or behind a NAT, lists none: keep the addresses that the
            // application passed. They carry no data before they have answered a HEARTBEAT.
            sender!(self).learn_addresses(now, &parameters.addresses, from.remote.port());
        }
        // RFC 9260 5.1.4: "it MUST immediately send a COOKIE ECHO chunk to its peer with the
        // received State Cookie". It goes to the source of the INIT ACK.
        let t1 = now + self.paths[path].rto();
        let cookie = Bytes::from(parameters.cookie.unwrap_or_default());
        let echoed = CookieEchoed { t1, retransmits: 0, path, cookie, since: now, stale };
        self.become_cookie_echoed(echoed);
        self.outbox.clear();
        self.outbox.push(path, Control::CookieEcho);
        if !parameters.unrecognized.is_empty() {
            // RFC 9260 5.1.2: bundled with the COOKIE ECHO.
            let raw = Bytes::from(parameters.unrecognized);
            self.outbox.push(path, Control::Error(OwnedCause::UnrecognizedParameters(raw)));
        }
    }

    /// Whether data follows the COOKIE ECHO that is the next chunk for this path. RFC 9260 5.1 C:
    /// the COOKIE ECHO "MAY be bundled with any pending outbound DATA chunks, but it MUST be the
    /// first chunk in the packet and, until the COOKIE ACK chunk is returned, the sender MUST NOT
    /// send any other packets to the peer". Not if chunks may have to be authenticated: the peer
    /// has no key before it has processed the cookie.
    pub(super) fn sends_with_cookie(&self, path: PathId) -> bool {
        let State::CookieEchoed(echoed) = &self.state else { return false };
        let first = echoed.retransmits == 0 && echoed.stale == 0;
        let next = self
            .outbox
            .front()
            .is_some_and(|(p, control)| *p == path && matches!(control, Control::CookieEcho));
        first
            && next
            && self.config.data_with_cookie()
            && !self.auth.are_agreed()
            && path == self.paths.current()
    }

    /// Data sent with a COOKIE ECHO is lost, because that has not been answered in time: T1-cookie
    /// takes the place of T3-rtx. It is retransmitted once the association is established.
    pub(super) fn lose_data_with_cookie(&mut self) {
        let flight = self.sending.flight.iter();
        let sent = flight.filter(|(_, chunk)| chunk.fate == Fate::InFlight);
        let sent: Vec<_> = sent.map(|(tsn, chunk)| (tsn, chunk.path, chunk.size())).collect();
        for (tsn, path, size) in sent {
            self.sending.flight.mark_lost(tsn, LossCause::FastRetransmit);
            self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(size);
            let p = &mut self.paths[path];
            p.data_lost(size);
            p.drop_rtt_probe(tsn);
            p.stop_t3();
            sender!(self).grant_send_credit(path);
        }
    }

    fn refuse_init_ack(
        &mut self,
        path: PathId,
        init: &Init<'_>,
        error: InitError,
        from: FourTuple,
    ) {
        let what = error.words();
        self.outbox.clear();
        if init.initiate_tag.0 == 0 {
            // RFC 9260 3.3.3: the ABORT has the T bit, and the verification tag of the INIT ACK.
            let header = self.reply_header(self.handshake.local_tag);
            let packet = abort_packet(header, true, &self.shared, |_| Ok(()));
            self.reply(from, packet);
        } else {
            self.handshake.peer_tag = init.initiate_tag;
            self.outbox.push(path, Control::Abort(Some(OwnedCause::Init(error))));
        }
        self.become_closed(CloseReason::ProtocolViolation { what });
    }

    pub(super) fn set_streams(&mut self, outbound: u16, inbound: u16) {
        self.handshake.outbound_streams = outbound;
        self.handshake.inbound_streams = inbound;
        // Messages given to `send` before the peer announced how many streams it accepts.
        for message in self.sending.queue.drop_streams_from(outbound) {
            let bytes = message.payload.len();
            self.sending.buffered -= bytes;
            self.keep_refused(&message);
            self.events.push_always(Event::SendFailed {
                stream: message.stream,
                ppid: message.ppid,
                context: message.context,
                unordered: message.unordered,
                bytes,
                sent: false,
            });
        }
    }

    /// Initialises the receiver from the peer's initial TSN, and the sender from its window.
    pub(super) fn start_receiving(&mut self, initial: Tsn, a_rwnd: u32) {
        let streams = self.handshake.inbound_streams;
        self.receiving.begin(initial, streams, self.handshake.extensions);
        self.start_reconfig(initial);
        self.start_addresses(initial);
        self.peer_window(a_rwnd);
        if self.config.initial_ssthresh().is_none() {
            // RFC 9260 7.2.1: "The initial value of ssthresh MAY be arbitrarily high (e.g., the
            // size of the largest possible advertised window)."
            for path in self.paths.iter_mut() {
                path.set_initial_ssthresh(a_rwnd);
            }
            self.paths.ssthresh = a_rwnd;
        }
    }

    /// Adopts the first window that the peer announces.
    pub(super) fn peer_window(&mut self, a_rwnd: u32) {
        self.sending.largest_window = 0;
        self.sending.set_window(a_rwnd);
        self.sending.retransmission.learn_peer_buffer(a_rwnd);
        // Chunks of at most half a small buffer leave it room to work with.
        self.sending.window_payload = a_rwnd as usize / 2 - self.sending.data_header();
        self.sending.fit(&self.paths);
    }

    /// Processes a COOKIE ACK: the association is established (RFC 9260 5.1 E).
    pub(super) fn handle_cookie_ack(&mut self, now: Time, path: PathId) {
        // RFC 9260 5.2.5: silently discarded in any other state.
        let State::CookieEchoed(echoed) = &self.state else { return };
        self.handshake.round_trip = Some(now.since(echoed.since));
        self.outbox.clear();
        // RFC 9260 5.4: the COOKIE ACK answers the COOKIE ECHO sent on this path.
        sender!(self).confirm(now, path);
        self.become_established(now, false);
    }

    /// The cookie was stale (RFC 9260 5.2.6 (3)): requests one with a longer lifetime.
    pub(super) fn handle_stale_cookie(&mut self, now: Time) {
        // "If the association is not in the COOKIE-ECHOED state, the ERROR chunk SHOULD be silently
        // discarded."
        let State::CookieEchoed(echoed) = &self.state else { return };
        let (path, stale, since) = (echoed.path, echoed.stale + 1, echoed.since);
        if stale > self.config.max_init_retransmits() {
            return self.become_closed(CloseReason::NoAnswer);
        }
        self.lose_data_with_cookie();
        // "SHOULD use the RTT information measured based on the previous COOKIE ECHO/ERROR chunk
        // exchange and SHOULD add no more than 1 second beyond the measured RTT". The staleness
        // that the peer reports is not used.
        let increment = now.since(since) + Duration::from_secs(1);
        let preservative = Some(u32::try_from(increment.as_millis()).unwrap_or(u32::MAX));
        let t1 = now + self.paths[path].rto();
        self.become_cookie_wait(CookieWait { t1, retransmits: 0, path, preservative, stale });
        self.outbox.clear();
        self.outbox.push(path, Control::Init);
    }

    /// T1-init or T1-cookie has expired (RFC 9260 4, 5.1).
    pub(super) fn handle_t1(&mut self, now: Time) {
        let most = self.config.max_init_retransmits();
        let (old, retransmits, init) = match &self.state {
            State::CookieWait(s) if s.t1 <= now => (s.path, s.retransmits, true),
            State::CookieEchoed(s) if s.t1 <= now => (s.path, s.retransmits, false),
            _ => return,
        };
        if retransmits >= most {
            return self.become_closed(CloseReason::NoAnswer);
        }
        // RFC 9260 6.3.3 (E2) applies to T1 too. The next attempt uses another address, because the
        // first may be unreachable, and the RTO of that address: 5.1, "there SHOULD be a T1-init
        // and T1-cookie timer for each address of the peer".
        self.lose_data_with_cookie();
        self.paths[old].back_off(now);
        let next = self.next_remote(old);
        let rto = self.paths[next].rto();
        match &mut self.state {
            State::CookieWait(s) => {
                (s.path, s.t1, s.retransmits) = (next, now + rto, retransmits + 1);
            }
            State::CookieEchoed(s) => {
                (s.path, s.t1, s.retransmits) = (next, now + rto, retransmits + 1);
            }
            _ => {}
        }
        self.outbox.clear();
        if init && init::may_be_plain(&self.config, &self.shared.config, self.auth.shared()) {
            // RFC 3168 6.1.1.1: "To overcome normal packet loss [...], the originating host may
            // retransmit one or more ECN-setup SYN packets before giving up": two at least, and one
            // for each path. Then both kinds take turns, because the peer may have been away.
            let turn = self.paths.present().count().max(FULL_INITS) as u32;
            self.handshake.offer((retransmits + 1) / turn % 2 == 1);
        }
        self.outbox.push(
            next,
            match init {
                true => Control::Init,
                false if self.paths.is_confirmed(next) => Control::CookieEcho,
                false => Control::CookieEchoVerifying,
            },
        );
    }

    /// The next path for an INIT or a COOKIE ECHO, after that on `path` has not been answered.
    fn next_remote(&self, path: PathId) -> PathId {
        let usable = |id: PathId| {
            let p = &self.paths[id];
            // RFC 9260 5.4: to an UNCONFIRMED address only with a HEARTBEAT in the same packet.
            p.state() != PathState::Removed
                && (self.paths.is_confirmed(id)
                    || self.verifying_cookie_echo_len() <= p.max_packet())
        };
        self.paths.view().next_after(path, usable).unwrap_or(path)
    }

    /// Bytes of a packet with the COOKIE ECHO and a HEARTBEAT.
    fn verifying_cookie_echo_len(&self) -> usize {
        let cookie = match &self.state {
            State::CookieEchoed(echoed) => echoed.cookie.len().next_multiple_of(4),
            _ => 0,
        };
        let room = self.auth_room(true);
        COMMON_HEADER_LEN + room + CHUNK_HEADER_LEN + cookie + HEARTBEAT_CHUNK_LEN
    }

    /// Adopts the extensions and the adaptation code point of the handshake. Nothing that depends
    /// on them has been sent yet.
    pub(super) fn agree_on(
        &mut self,
        extensions: Extensions,
        auth: Option<&AuthOffer>,
        adaptation_layer: Option<u32>,
    ) {
        self.handshake.peer_adaptation_layer = adaptation_layer;
        self.drop_reconfig();
        self.handshake.extensions = extensions;
        let authenticates = extensions.contains(Extension::Authentication);
        let ours = auth::offer(&self.config, &self.shared, &self.handshake);
        self.auth.derive(&ours, auth.filter(|_| authenticates));
        self.marks = Marks::default();
        self.paths.iter_mut().for_each(|p| p.marks = crate::path::Marks::default());
        self.sending.stamps = Stamps::default();
        self.sending.partial_sacks = extensions.contains(Extension::PartialSacks);
        self.sending.wide_sacks = extensions.contains(Extension::WideSacks);
        self.sending.flight.reach_far(self.sending.wide_sacks);
        let setup = self.config.setup();
        let agreed = |needs: Needs| needs.extension.is_none_or(|e| extensions.contains(e));
        let sampling = self.config.rtt_sampling();
        self.sending.rtt_sampling =
            if agreed(sampling.needs) { sampling.make(&setup) } else { KARN.make(&setup) };
        self.receiving.ack_policy = self.make_ack_policy();
        self.sending.queue.interleave(extensions.contains(Extension::Interleaving));
        let overhead = extensions.overhead() + self.auth.overhead();
        self.paths.overhead = overhead;
        let (now, congestion) = (self.now, &mut self.sending.congestion);
        for path in self.paths.iter_mut() {
            let id = path.id();
            path.reserve(overhead, |max_chunk, ssthresh, remote| {
                congestion.initial(&NewPath::new(now, id, (max_chunk, ssthresh, remote)))
            });
        }
        self.sending.fit(&self.paths);
    }

    /// Initialises the state of reconfiguration from both initial TSNs (RFC 6525 4.1).
    pub(super) fn start_reconfig(&mut self, peer_initial: Tsn) {
        let agreed = self.handshake.has(Extension::StreamReconfiguration);
        let initial = self.handshake.local_initial_tsn;
        self.reconfig = agreed.then(|| Box::new(Reconfig::new(initial, peer_initial)));
    }

    /// Drops the state of reconfiguration when the association ends or restarts, and releases the
    /// data that waited for a reset.
    pub(super) fn drop_reconfig(&mut self) {
        self.reconfig = None;
        self.sending.response_len = 0;
        self.sending.fit(&self.paths);
        self.sending.queue.release();
    }

    /// Initialises the state of address changes from both initial TSNs (RFC 5061 5.1 A2).
    pub(super) fn start_addresses(&mut self, peer_initial: Tsn) {
        if !self.handshake.has(Extension::DynamicAddresses) {
            self.addresses = None;
            self.paths.locals = None;
        } else if !self.paths.is_empty() {
            // The accepting side calls this again once it has its paths.
            let addresses =
                Addresses::begin(&mut self.paths, &self.shared, &self.handshake, peer_initial);
            self.addresses = Some(Box::new(addresses));
        }
    }

    /// Records a local address that the peer has sent to, listed or not.
    pub(super) fn record_announced(&mut self, local: IpAddr) {
        if let Some(addresses) = &mut self.addresses {
            addresses.record_announced(&mut self.paths, local);
        }
    }

    /// The handshake is complete: adopts new addresses that arrived during it, and announces them.
    pub(super) fn take_shared(&mut self, now: Time) {
        if let Some(shared) = self.handshake.shared_later.take() {
            self.shared = shared;
        }
        if let Some(addresses) = &mut self.addresses {
            addresses.advance(&mut sender!(self), now);
        }
    }
}
