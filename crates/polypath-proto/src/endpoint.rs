//! An endpoint: finds the association of each packet, sends stateless replies, checks cookies. With
//! [`Association`] it is the interface to the upper layer (RFC 9260 11.1).

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use crate::association::{Association, authenticates_cookie};
use crate::config::Config;
use crate::cookie::{CookieError, StateCookie};
use crate::error::ConnectError;
use crate::event::Event;
use crate::ids::{AssociationId, Tsn, VerificationTag};
use crate::init::{self, InitAck};
use crate::pool::Pool;
use crate::reply::{self, Reply};
use crate::rng::{Secret, Seed};
use crate::shared::{EndpointConfig, Quoted, Remote, Shared, Unreachable};
use crate::stats::EndpointStats;
use crate::time::Time;
use crate::transmit::{Ecn, FourTuple, Transmit};
use crate::wire::{Checksum, Chunk, CommonHeader, Init, Packet, PacketError};

mod entry;
mod out_of_the_blue;
mod timeouts;

use entry::{Entry, Queues};
use timeouts::Timeouts;

/// Many associations over one SCTP port.
#[derive(Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
    listening: bool,
    secret: Secret,
    next_id: u64,
    entries: BTreeMap<AssociationId, Entry>,
    by_tag: BTreeMap<u32, AssociationId>,
    by_peer: BTreeMap<(IpAddr, u16), AssociationId>,
    timeouts: Timeouts,
    queues: Queues,
    replies: VecDeque<Reply>,
    stats: EndpointStats,
}

/// Limit on queued stateless replies; further ones are dropped.
const MOST_REPLIES: usize = 256;

impl Endpoint {
    /// An endpoint that derives all its randomness from `seed` (RFC 9260 11.1.1, INITIALIZE).
    pub fn new(config: EndpointConfig, seed: Seed) -> Self {
        let mut secret = Secret::new(&seed, "polypath endpoint");
        let pool = Pool::new(config.association.buffer_budget() as usize);
        let shared = Shared { secret: secret.next_bytes(), config, pool };
        Self {
            listening: shared.config.listen,
            shared: Arc::new(shared),
            secret,
            next_id: 0,
            entries: BTreeMap::new(),
            by_tag: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            timeouts: Timeouts::default(),
            queues: Queues::default(),
            replies: VecDeque::new(),
            stats: EndpointStats::default(),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &EndpointConfig {
        &self.shared.config
    }

    /// Counters.
    pub const fn stats(&self) -> EndpointStats {
        self.stats
    }

    /// Bytes by which the buffers of all associations together may still grow
    /// ([`Config::buffer_budget`]).
    pub fn free_buffer_budget(&self) -> usize {
        self.shared.pool.free()
    }

    /// Sets whether peers may open associations.
    pub const fn set_listening(&mut self, listening: bool) {
        self.listening = listening;
    }

    /// Opens an association with SCTP port `peer_port` at the addresses `remotes`, the first of
    /// which is the primary (RFC 9260 11.1.2, ASSOCIATE). The application may send data at once; it
    /// waits for the handshake.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        now: Time,
        peer_port: u16,
        remotes: &[Remote],
    ) -> Result<AssociationId, ConnectError> {
        self.connect_with(now, peer_port, remotes, self.shared.config.association.clone())
    }

    /// Like [`connect`](Self::connect), with constants and policies that differ from the
    /// endpoint's.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    pub fn connect_with(
        &mut self,
        now: Time,
        peer_port: u16,
        remotes: &[Remote],
        config: Config,
    ) -> Result<AssociationId, ConnectError> {
        if remotes.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        // RFC 9260 3.1: port number 0 MUST NOT be used.
        if peer_port == 0 || self.shared.config.port == 0 {
            return Err(ConnectError::NoPort);
        }
        let max = self.shared.config.max_associations;
        if self.entries.len() >= max {
            return Err(ConnectError::TooMany { max });
        }
        self.reindex();
        if remotes.iter().any(|r| self.by_peer.contains_key(&(r.address.ip(), peer_port))) {
            return Err(ConnectError::Exists);
        }
        let id = self.new_id();
        let tags = self.fresh_tags();
        let shared = Arc::clone(&self.shared);
        let association = Association::connect(
            id,
            shared,
            config,
            &mut self.secret,
            now,
            tags,
            peer_port,
            remotes,
        )?;
        self.insert(association);
        Ok(id)
    }

    /// Adds a local address on which the driver receives and from which it sends. Associations with
    /// dynamic addresses announce it to their peers (RFC 5061; `sctp_bindx` of RFC 6458 9.1,
    /// `SCTP_AUTO_ASCONF` of 8.1.23). New associations use it in any case.
    pub fn add_local_address(&mut self, now: Time, ip: IpAddr) {
        if !self.shared.config.addresses.contains(&ip) {
            self.change_addresses(now, |config| config.addresses.push(ip));
        }
    }

    /// Removes a local address that the host has lost or should not use. An association keeps its
    /// last address until it has another one (RFC 5061 5.3 F5).
    pub fn remove_local_address(&mut self, now: Time, ip: IpAddr) {
        if self.shared.config.addresses.contains(&ip) {
            self.change_addresses(now, |config| config.addresses.retain(|known| *known != ip));
        }
    }

    /// Sets the host's addresses after they or the routes have changed, for an endpoint bound to an
    /// unspecified address. Associations with dynamic addresses announce the deletion of an address
    /// that they use, and the addition of an address that the routes choose as source towards the
    /// peer: the peer has no use for others, such as those of container bridges.
    pub fn set_host_addresses(&mut self, now: Time, there: Vec<IpAddr>) {
        self.change_addresses(now, |config| config.host_addresses = Some(there));
    }

    /// Sets the addresses that future associations list to their peers
    /// ([`EndpointConfig::announced`]), and those that they may begin paths at
    /// ([`EndpointConfig::sources`]).
    pub fn set_announced(&mut self, announced: Option<Vec<IpAddr>>, sources: Vec<IpAddr>) {
        let mut config = self.shared.config.clone();
        (config.announced, config.sources) = (announced, sources);
        self.shared = Arc::new(Shared { config, ..Shared::clone(&self.shared) });
    }

    /// Whether the routes choose `local`, of the host's addresses `there`, as source towards the
    /// peer of an association.
    pub fn is_routed(&self, local: IpAddr, there: &[IpAddr]) -> bool {
        let mut open = self.entries.values().filter(|e| !e.association.is_closed());
        open.any(|entry| entry.association.is_routed(local, there))
    }

    fn change_addresses(&mut self, now: Time, change: impl FnOnce(&mut EndpointConfig)) {
        let mut config = self.shared.config.clone();
        change(&mut config);
        self.shared = Arc::new(Shared { config, ..Shared::clone(&self.shared) });
        let ids: Vec<AssociationId> = self.entries.keys().copied().collect();
        for id in ids {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.association.set_shared(now, Arc::clone(&self.shared));
                self.touch(id);
            }
        }
    }

    /// Processes a received datagram.
    pub fn handle_datagram(&mut self, now: Time, from: FourTuple, ecn: Ecn, datagram: &[u8]) {
        self.handle_with(now, from, ecn, datagram, self.shared.config.checksum);
    }

    /// Processes a received datagram whose checksum need not be computed again: the lower layer has
    /// verified it, as network cards with checksum offload do, or knows that the datagram has not
    /// changed since it was sent. Debug builds verify it all the same.
    pub fn handle_verified(&mut self, now: Time, from: FourTuple, ecn: Ecn, datagram: &[u8]) {
        let configured = self.shared.config.checksum;
        let checksum = if cfg!(debug_assertions) { configured } else { Checksum::Ignore };
        self.handle_with(now, from, ecn, datagram, checksum);
    }

    fn handle_with(
        &mut self,
        now: Time,
        from: FourTuple,
        ecn: Ecn,
        datagram: &[u8],
        checksum: Checksum,
    ) {
        self.stats.datagrams_received += 1;
        self.reindex();
        let packet = match self.without_checksum(datagram) {
            Some(packet) => packet,
            None => match Packet::parse(datagram, checksum) {
                Ok(packet) => packet,
                Err(PacketError::Checksum { .. }) => {
                    self.stats.bad_checksum += 1;
                    return;
                }
                Err(_) => {
                    self.stats.malformed += 1;
                    return;
                }
            },
        };
        let header = packet.header();
        // RFC 9260 3.1: "Source Port Number 0 MUST NOT be used", and likewise the destination's.
        if header.source_port == 0 || header.destination_port == 0 {
            self.stats.malformed += 1;
            return;
        }
        if header.destination_port != self.shared.config.port {
            return self.handle_out_of_the_blue(from, &packet);
        }
        let by_tag = self.by_tag.get(&header.verification_tag.0).copied();
        if let Some(id) = by_tag
            && let Some(entry) = self.entries.get_mut(&id)
            && entry.association.peer_port() == header.source_port
        {
            entry.association.handle_packet(now, from, ecn, &packet, 0);
            return self.touch(id);
        }
        let peer = (from.remote.ip(), header.source_port);
        let by_peer = self.by_peer.get(&peer).copied();
        // RFC 4895 6.3: the COOKIE ECHO may follow an AUTH chunk.
        let mut chunks = packet.chunks();
        let mut first = chunks.next();
        let behind = matches!(first, Some(Ok(Chunk::Auth(_))));
        if behind {
            first = chunks.next();
        }
        let done = 1 + usize::from(behind);
        // RFC 9260 8.4 (2), 8.5.1 B: a packet with an ABORT and a tag other than the association's
        // is discarded.
        let aborts = || packet.chunks().any(|c| matches!(c, Ok(Chunk::Abort(_))));
        match (first, by_peer) {
            (Some(Ok(Chunk::Init(init))), _) if header.verification_tag.0 == 0 => {
                // RFC 9260 6.10: an INIT must be the only chunk of its packet.
                if packet.chunks().count() == 1 {
                    let existing = by_peer.or_else(|| self.listed(&init, header.source_port));
                    self.handle_init(now, from, header, &init, existing);
                } else {
                    self.stats.malformed += 1;
                }
            }
            (Some(Ok(Chunk::CookieEcho(echo))), Some(id)) if !aborts() => {
                let Some(entry) = self.entries.get_mut(&id) else { return };
                let tag = header.verification_tag;
                if entry.association.accepts_cookie_echo(now, &packet)
                    && entry.association.handle_cookie_echo(now, tag, echo.cookie, from)
                {
                    // The chunks after the cookie already belong to the new association.
                    entry.association.handle_packet(now, from, ecn, &packet, done);
                }
                self.touch(id);
            }
            (Some(Ok(Chunk::CookieEcho(echo))), None) if !aborts() => {
                self.handle_cookie_echo(now, from, ecn, &packet, (echo.cookie, done));
            }
            // RFC 9260 8.5.1 E, 9.2: the peer is still ending an older association while this side
            // opens one.
            (_, Some(id))
                if self.entries.get(&id).is_some_and(|e| e.association.is_opening())
                    && packet.chunks().any(|c| c == Ok(Chunk::ShutdownAck)) =>
            {
                self.handle_out_of_the_blue(from, &packet);
            }
            (_, Some(id)) => {
                let Some(entry) = self.entries.get_mut(&id) else { return };
                if entry.association.handle_reflected(&from, &packet) {
                    self.touch(id);
                } else {
                    // RFC 9260 8.5: a packet with a wrong tag is silently discarded.
                    self.stats.bad_tag += 1;
                }
            }
            (_, None) => self.handle_out_of_the_blue(from, &packet),
        }
    }

    /// The association with the verification tag of a datagram, or else with its sender as peer;
    /// `None` if there is none, if it is released, or if the datagram is not an SCTP packet.
    pub fn owner(&mut self, from: &FourTuple, datagram: &[u8]) -> Option<AssociationId> {
        self.reindex();
        let header = CommonHeader::peek(datagram)?;
        let by_tag = self.by_tag.get(&header.verification_tag.0).copied().filter(|id| {
            let association = self.association(*id);
            association.is_some_and(|association| association.peer_port() == header.source_port)
        });
        by_tag.or_else(|| {
            let by_peer = self.by_peer.get(&(from.remote.ip(), header.source_port)).copied();
            by_peer.filter(|id| self.association(*id).is_some())
        })
    }

    /// Parses a packet that may lack a checksum (RFC 9653 5.2, 5.3): one of an association in which
    /// this side has offered that, including its INIT ACK, or one of no association. RFC 9653 5.3
    /// leaves open whether out of the blue packets without a checksum are processed: the reply
    /// shows the peer at once that this host has restarted. Packets with INIT and COOKIE ECHO
    /// always have a checksum.
    fn without_checksum<'a>(&self, datagram: &'a [u8]) -> Option<Packet<'a>> {
        if !self.shared.config.zero_checksum || datagram.get(8..12) != Some(&[0; 4]) {
            return None;
        }
        let packet = Packet::parse(datagram, Checksum::Ignore).ok()?;
        let id = self.by_tag.get(&packet.header().verification_tag.0);
        let entry = id.and_then(|id| self.entries.get(id));
        let accepted = entry.is_none_or(|entry| entry.association.accepts_zero_checksum());
        let handshake = |c| matches!(c, Ok(Chunk::Init(_) | Chunk::CookieEcho(_)));
        (accepted && !packet.chunks().any(handshake)).then_some(packet)
    }

    /// The association whose peer has one of the addresses listed in an INIT: another host must not
    /// take them over (RFC 9260 5.2.2).
    fn listed(&self, init: &Init<'_>, port: u16) -> Option<AssociationId> {
        let mut addresses = init.parameters.iter().filter_map(|p| p.ok()?.address());
        addresses.find_map(|ip| self.by_peer.get(&(ip, port)).copied())
    }

    /// RFC 9260 5.1 B, 5.2.
    fn handle_init(
        &mut self,
        now: Time,
        from: FourTuple,
        header: CommonHeader,
        init: &Init<'_>,
        existing: Option<AssociationId>,
    ) {
        let fresh = self.fresh_tags();
        if let Some(id) = existing
            && let Some(entry) = self.entries.get_mut(&id)
        {
            entry.association.handle_init(now, init, from, fresh);
            return self.touch(id);
        }
        let reply_header = CommonHeader {
            source_port: header.destination_port,
            destination_port: header.source_port,
            verification_tag: init.initiate_tag,
        };
        if !self.listening {
            // RFC 9260 8.4 (3): an INIT that cannot be accepted is answered with an ABORT.
            self.stats.refused += 1;
            let packet = reply::abort_packet(reply_header, false, &self.shared, |_| Ok(()));
            return self.reply(from, packet);
        }
        if self.entries.len() >= self.shared.config.max_associations {
            self.stats.refused += 1;
            let packet =
                reply::abort_packet(reply_header, false, &self.shared, |c| c.out_of_resource());
            return self.reply(from, packet);
        }
        let config = &self.shared.config.association;
        let packet = match init::read(init, from.remote.ip(), config, false) {
            Ok(parameters) => InitAck {
                init,
                parameters: &parameters,
                peer_port: header.source_port,
                four_tuple: from,
                local_tag: fresh.0,
                local_initial_tsn: fresh.1,
                ties: Default::default(),
            }
            .packet(now, &self.shared, config),
            // Without an Initiate Tag there is no tag for a reply (RFC 9260 3.3.2).
            Err(_) if init.initiate_tag.0 == 0 => return,
            Err(error) => {
                reply::abort_packet(reply_header, false, &self.shared, |c| error.write(c))
            }
        };
        self.reply(from, packet);
    }

    /// RFC 9260 5.1 D, 5.1.5: a COOKIE ECHO from a peer without an association.
    fn handle_cookie_echo(
        &mut self,
        now: Time,
        from: FourTuple,
        ecn: Ecn,
        packet: &Packet<'_>,
        (bytes, done): (&[u8], usize),
    ) {
        let header = packet.header();
        let (config, secret) = (&self.shared.config, &self.shared.secret);
        let cookie = match StateCookie::verify(bytes, secret, &config.association, now) {
            Ok(cookie) => cookie,
            Err(CookieError::Forged) => {
                // RFC 9260 5.1.5 (2): silently discarded.
                self.stats.bad_cookies += 1;
                return;
            }
            Err(CookieError::Stale(cookie, by)) => {
                self.stats.stale_cookies += 1;
                let header = CommonHeader {
                    source_port: header.destination_port,
                    destination_port: header.source_port,
                    verification_tag: cookie.peer_tag,
                };
                let packet = reply::stale_cookie_packet(header, by, &self.shared);
                return self.reply(from, packet);
            }
        };
        if !authenticates_cookie(&cookie, &config.association, secret, &config.auth_keys, packet) {
            self.stats.bad_cookies += 1;
            return;
        }
        // RFC 9260 5.1.5 (3): ports and tag must match those of the cookie.
        if cookie.local_tag != header.verification_tag
            || cookie.peer_port != header.source_port
            || self.by_tag.contains_key(&cookie.local_tag.0)
            // RFC 9260 5.2.2, as in `listed`: an association may have taken the addresses since the
            // INIT.
            || cookie.addresses.iter().any(|ip| self.by_peer.contains_key(&(*ip, cookie.peer_port)))
        {
            self.stats.bad_cookies += 1;
            return;
        }
        if !self.listening || self.entries.len() >= self.shared.config.max_associations {
            self.stats.refused += 1;
            let header = CommonHeader {
                source_port: header.destination_port,
                destination_port: header.source_port,
                verification_tag: cookie.peer_tag,
            };
            let packet = reply::abort_packet(header, false, &self.shared, |c| c.out_of_resource());
            return self.reply(from, packet);
        }
        let id = self.new_id();
        let shared = Arc::clone(&self.shared);
        let accepted = Association::accept(id, shared, &mut self.secret, now, &cookie, from);
        let Some(mut association) = accepted else {
            self.stats.refused += 1;
            return;
        };
        self.stats.established += 1;
        association.handle_packet(now, from, ecn, packet, done);
        self.insert(association);
    }

    fn reply(&mut self, four_tuple: FourTuple, packet: Vec<u8>) {
        if self.replies.len() < MOST_REPLIES {
            self.replies.push_back(Reply { four_tuple, packet });
        } else {
            self.stats.replies_dropped += 1;
        }
    }

    /// The network could not deliver a datagram to `four_tuple.remote` (RFC 9260 10). `quoted` is
    /// the packet that the ICMP message quotes; `None` if this host itself reports the error, or if
    /// a lower layer has recognised the quoted packet as its own. A message whose quotation is too
    /// short to be recognised must not be passed on (RFC 6951 5.5).
    pub fn handle_unreachable(
        &mut self,
        now: Time,
        four_tuple: FourTuple,
        what: Unreachable,
        quoted: Option<Quoted>,
    ) {
        self.reindex();
        let remote = four_tuple.remote.ip();
        // RFC 9260 10 (ICMP5).
        let about = match quoted.map(|quoted| quoted.header.destination_port) {
            Some(port) => self.by_peer.get(&(remote, port)).copied().into_iter().collect(),
            None => self.with_peer_at(remote),
        };
        for id in about {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.association.handle_unreachable(now, &four_tuple, what, quoted);
                self.touch(id);
            }
        }
    }

    fn with_peer_at(&self, remote: IpAddr) -> Vec<AssociationId> {
        self.by_peer.range((remote, 0)..=(remote, u16::MAX)).map(|(_, id)| *id).collect()
    }

    /// The instant at which to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&mut self) -> Option<Time> {
        self.settle();
        self.timeouts.first().map(|(time, _)| time)
    }

    /// Processes expired timers. Call it at the instant returned by `poll_timeout`; earlier calls
    /// are harmless.
    pub fn handle_timeout(&mut self, now: Time) {
        self.settle();
        while let Some((time, id)) = self.timeouts.first() {
            if time > now {
                break;
            }
            self.timeouts.replace(id, Some(time), None);
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.timeout = None;
                entry.association.handle_timeout(now);
                self.touch(id);
            }
        }
    }

    /// Writes the next datagram, or several of equal size for one path if the buffer has room for
    /// them, and returns their addresses and size. Call it after every other call until it returns
    /// `None`.
    ///
    /// `buf` must hold at least one packet of the largest path MTU; 64 KiB permit batches.
    pub fn poll_transmit(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply::write_reply(&reply, buf));
        }
        while let Some(&id) = self.queues.transmitting.front() {
            if let Some(entry) = self.entries.get_mut(&id) {
                let transmit = entry.association.poll_transmit(now, buf);
                // It may have abandoned messages.
                let has_events = entry.association.has_events();
                if has_events {
                    self.queues.add_events(id, entry);
                }
                // Its timers may have changed, even if nothing was sent: data that must wait for
                // the pacer or for the peer's window sets one.
                self.queues.add_stale(id, entry);
                if !entry.is_indexed() {
                    self.queues.add_changing(id, entry);
                }
                if transmit.is_some() {
                    return transmit;
                }
                entry.transmits = false;
            }
            self.queues.transmitting.pop_front();
        }
        None
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) may return a datagram.
    #[inline]
    pub fn has_datagrams(&self) -> bool {
        !self.replies.is_empty() || !self.queues.transmitting.is_empty()
    }

    /// The next event of an association that is not released. Call it after every other call until
    /// it returns `None`.
    #[inline]
    pub fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        // Inlined into the driver: after most calls there is none.
        if self.has_events() { self.next_event() } else { None }
    }

    fn next_event(&mut self) -> Option<(AssociationId, Event)> {
        while let Some(&id) = self.queues.with_events.front() {
            if let Some(entry) = self.entries.get_mut(&id) {
                while let Some(event) = entry.association.poll_event() {
                    if matches!(event, Event::Established { inbound: false }) {
                        self.stats.established += 1;
                    }
                    if !entry.released {
                        return Some((id, event));
                    }
                }
                entry.has_events_queued = false;
            }
            self.queues.with_events.pop_front();
        }
        None
    }

    /// Whether [`poll_event`](Self::poll_event) may return an event.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.queues.with_events.is_empty()
    }

    /// Shared access to an association.
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.entries.get(&id).filter(|e| !e.released).map(|e| &e.association)
    }

    /// Exclusive access to an association.
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        let entry = self.entries.get_mut(&id).filter(|e| !e.released)?;
        self.queues.add(id, entry, true);
        self.queues.add_changing(id, entry);
        Some(&mut entry.association)
    }

    /// Every association not yet released, including closed ones.
    pub fn associations(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.entries.iter().filter(|(_, e)| !e.released).map(|(id, _)| *id)
    }

    /// Drops an association that the application no longer needs. An open association is aborted.
    /// Its last packets are still sent, but no call returns it any more.
    pub fn release(&mut self, now: Time, id: AssociationId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.association.abort(now, b"");
            entry.released = true;
            self.touch(id);
        }
    }

    /// Checks the accounting of every association; see [`Association::check_invariants`].
    ///
    /// # Errors
    ///
    /// A description of the first inconsistency.
    pub fn check_invariants(&self) -> Result<(), String> {
        for (id, entry) in &self.entries {
            let found = entry.association.check_invariants();
            found.map_err(|what| format!("association {id}: {what}"))?;
            let due = entry.association.poll_timeout();
            if !entry.stale && due != entry.timeout {
                let noted = entry.timeout;
                return Err(format!("association {id}: due at {due:?}, but noted for {noted:?}"));
            }
        }
        Ok(())
    }

    const fn new_id(&mut self) -> AssociationId {
        self.next_id += 1;
        AssociationId(self.next_id)
    }

    /// A verification tag that no association uses, and an initial TSN (RFC 9260 5.3.1).
    fn fresh_tags(&mut self) -> (VerificationTag, Tsn) {
        loop {
            let tag = self.secret.next_u32();
            if tag != 0 && !self.by_tag.contains_key(&tag) {
                return (VerificationTag(tag), Tsn(self.secret.next_u32()));
            }
        }
    }

    fn insert(&mut self, association: Association) {
        let id = association.id();
        let entry = Entry {
            tag: VerificationTag(0),
            paths: u64::MAX,
            peers: Vec::new(),
            timeout: None,
            released: false,
            transmits: false,
            has_events_queued: false,
            stale: false,
            changes: false,
            association,
        };
        self.entries.insert(id, entry);
        self.touch(id);
    }

    /// Updates the indices with an association's tag and addresses.
    fn index(&mut self, id: AssociationId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let a = &entry.association;
        let paths = if a.is_closed() { u64::MAX } else { a.path_changes() };
        // A closed association keeps its tag until its last packets have been sent: otherwise the
        // reply to an out of the blue packet, an ABORT without a cause, would overtake the ABORT
        // with the reason.
        let tag =
            if a.is_closed() && !a.has_control() { VerificationTag(0) } else { a.local_tag() };
        if entry.tag != tag {
            if self.by_tag.get(&entry.tag.0) == Some(&id) {
                self.by_tag.remove(&entry.tag.0);
            }
            entry.tag = tag;
            if tag.0 != 0 {
                // The tag of an INIT without extensions may be in use, by chance.
                self.by_tag.entry(tag.0).or_insert(id);
            }
        }
        if entry.paths != paths {
            entry.paths = paths;
            let port = a.peer_port();
            for ip in entry.peers.drain(..) {
                if self.by_peer.get(&(ip, port)) == Some(&id) {
                    self.by_peer.remove(&(ip, port));
                }
            }
            if !a.is_closed() {
                entry.peers.extend(a.peer_addresses());
                for ip in &entry.peers {
                    self.by_peer.entry((*ip, port)).or_insert(id);
                }
            }
        }
    }

    /// Updates the indices: the application may have closed associations, or their last packets may
    /// have been sent.
    fn reindex(&mut self) {
        while let Some(id) = self.queues.changing.pop() {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.changes = false;
                if !entry.is_indexed() {
                    self.index(id);
                }
            }
        }
    }

    /// Queues and indexes an association whose state may have changed.
    fn touch(&mut self, id: AssociationId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            self.queues.add(id, entry, entry.association.has_events());
            if !entry.is_indexed() {
                self.index(id);
            }
        }
    }

    /// Updates the timeouts, and removes released associations that are closed.
    fn settle(&mut self) {
        self.reindex();
        while let Some(id) = self.queues.stale.pop() {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.stale = false;
            let timeout = entry.association.poll_timeout();
            if timeout != entry.timeout {
                self.timeouts.replace(id, entry.timeout, timeout);
                entry.timeout = timeout;
            }
            if entry.released && entry.association.is_closed() && !entry.association.has_control() {
                self.remove(id);
            }
        }
    }

    /// Removes a closed association. Not inlined: its caller runs after every packet, and would
    /// reserve stack for it.
    #[cold]
    #[inline(never)]
    fn remove(&mut self, id: AssociationId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        debug_assert!(
            entry.tag.0 == 0 && entry.peers.is_empty(),
            "a closed association was indexed"
        );
        self.timeouts.replace(id, entry.timeout, None);
    }
}
