//! All connections of an endpoint: assigns datagrams and packets to connections.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dimpl::{Config, Dtls, DtlsCertificate, Output};
use polypath_proto::{FourTuple, Time};

use crate::connection::{Connection, News, Phase, Surroundings};
use crate::cookie::{Baker, Recipe};
use crate::crypto::Provider;
use crate::fingerprint::Fingerprint;
use crate::hello::ClientHello;
use crate::identity::Identity;
use crate::key_log::KeyLog;
use crate::outgoing::Outgoing;
use crate::slots::{Key, Slot, Slots};
use crate::trust::{Refusal, Trust};
use crate::version::Version;

/// Maximum number of connections whose handshake a peer has started and not completed.
const MOST_OPENING: usize = 256;
/// Connections without packets for this long are closed.
const IDLE: Duration = Duration::from_secs(600);
/// A connection is mute if packets were sent and none was received for this long. The peer may have
/// lost its connection, or a NAT may have changed this side's address: a new handshake is started,
/// at most one every `AGAIN`. The time is less than SCTP's RTO.Min of 1 s (RFC 9260 16), so that
/// the first retransmission starts a handshake: the host may have restarted.
const MUTE: Duration = Duration::from_millis(900);
const AGAIN: Duration = Duration::from_secs(10);
/// After a connection was replaced, records that the peer still sends over it are accepted for this
/// long.
const LINGER: Duration = Duration::from_secs(3);
/// Number of records after which `dimpl` changes keys by KeyUpdate. It is never reached: if both
/// sides update their keys at the same time, some of the following records cannot be read. A new
/// connection has new keys as well.
const KEY_UPDATE: u64 = 1 << 60;
/// Flights are retransmitted after 1, 2 and 4 s (RFC 9147 5.8.2), so that a handshake notices a
/// path that works again not much later than SCTP's own timers.
const RETRIES: usize = 3;
const HANDSHAKE: Duration = Duration::from_secs(20);
/// Maximum size of a handshake datagram in bytes; the handshake does not know the path MTU.
const HANDSHAKE_DATAGRAM: usize = 1150;
/// Bytes of the buffer for `dimpl`'s output: enough for any datagram.
const SCRATCH: usize = 1 << 16;

/// Bytes that a record adds to a packet: header, type and tag (RFC 9147 4).
pub const OVERHEAD: usize = 5 + 1 + 16;
/// Bytes that a record of DTLS 1.2 adds, at most: header, nonce and tag (RFC 6347 4.1, RFC 5288 3).
pub const OVERHEAD_12: usize = 13 + 8 + 16;
/// Upper limit of [`Options::rekey_after`] for DTLS 1.2, where an AES-GCM key is used for at most
/// 2^22 records.
const REKEY_12: u64 = 1 << 20;

/// Configuration of a [`Layer`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Private key and certificate of this host.
    pub identity: Identity,
    /// Which certificates of peers are accepted.
    pub trust: Trust,
    /// Number of packets after which a connection is replaced by a new one with new keys. Default:
    /// 2^23, about 10 GB; at most 2^20 in DTLS 1.2.
    pub rekey_after: u64,
    /// Maximum number of connections. When it is reached, a connection that the layer above does
    /// not use is closed to make room; if all are in use, handshakes started by peers are refused.
    /// Default: 4096.
    pub max_connections: usize,
    /// Maximum number of handshakes of DTLS 1.3 that begin without a cookie, which saves the client
    /// a round trip: while fewer clients than this have not proved their addresses (RFC 9147 5.1:
    /// the cookie exchange is optional). Such a client gets at most three times the bytes that it
    /// has sent. Default: 0, so that every client has to repeat a cookie.
    pub unproven: usize,
    /// Where the secrets of all connections go. Default: `None`, nowhere.
    pub key_log: Option<KeyLog>,
    minimum: Version,
}

/// The layer above, which sends and receives the packets.
pub trait Upper {
    /// Receives a packet from the peer with this certificate.
    fn deliver(&mut self, peer: Fingerprint, packet: &[u8]);

    /// Remote addresses in use, each with the expected certificate: their connections are kept.
    /// Called only when the maximum number of connections is reached.
    fn in_use(&self) -> BTreeSet<(SocketAddr, Fingerprint)> {
        BTreeSet::new()
    }
}

impl<F: FnMut(Fingerprint, &[u8])> Upper for F {
    fn deliver(&mut self, peer: Fingerprint, packet: &[u8]) {
        self(peer, packet);
    }
}

impl Options {
    /// Options with defaults for the other fields; DTLS 1.3 only.
    pub const fn new(identity: Identity, trust: Trust) -> Self {
        Self {
            identity,
            trust,
            rekey_after: 1 << 23,
            max_connections: 4096,
            unproven: 0,
            key_log: None,
            minimum: Version::Dtls13,
        }
    }

    /// Sets the oldest version of DTLS that is allowed. Two hosts use the newest version that both
    /// allow; an attacker on the path can force two hosts that allow 1.2 to use 1.2.
    #[must_use]
    pub const fn at_least(mut self, minimum: Version) -> Self {
        self.minimum = minimum;
        self
    }
}

/// A change of a connection's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The connection is established and encrypts packets.
    Opened {
        /// Addresses of the connection's path.
        way: FourTuple,
        /// The peer's certificate.
        peer: Fingerprint,
    },
    /// The connection was refused, by this side or by the peer.
    Refused {
        /// Addresses of the connection's path.
        way: FourTuple,
        /// Reason for the refusal.
        why: Refusal,
    },
}

/// Counters of a [`Layer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections established.
    pub opened: u64,
    /// Connections refused, by this side or by the peer.
    pub refused: u64,
    /// Handshakes and connections that failed (no answer, a protocol violation).
    pub failed: u64,
    /// First ClientHellos answered with a cookie.
    pub cookies: u64,
    /// Handshakes begun without a cookie.
    pub unproven: u64,
    /// ClientHellos whose cookie is not from this layer, expired, or for another address.
    pub bad_cookies: u64,
    /// Datagrams that belong to no connection, such as SCTP packets in clear.
    pub strangers: u64,
    /// Packets not sent because the peer has another certificate than expected.
    pub other_certificate: u64,
    /// Packets not sent because too many packets or datagrams already waited during the handshake,
    /// or because the handshake failed, was refused or was given up.
    pub dropped: u64,
    /// Connections closed to make room for another one.
    pub evicted: u64,
    /// Handshakes of peers refused because every connection is in use.
    pub turned_away: u64,
    /// ClientHellos that offer no allowed version of DTLS.
    pub outdated: u64,
}

/// All connections of an endpoint.
pub struct Layer {
    config: Arc<Config>,
    certificate: DtlsCertificate,
    trust: Trust,
    minimum: Version,
    rekey_after: u64,
    max_connections: usize,
    unproven: usize,
    key_log: Option<KeyLog>,
    /// Like `config`, for servers that request no cookie.
    without_cookie: Arc<Config>,
    fingerprint: Fingerprint,
    baker: Baker,
    /// [`Time::ZERO`] as an `Instant`, which is what `dimpl` takes.
    ///
    /// `dimpl` reads the clock by itself once in a process, and only for DTLS 1.2: the random
    /// numbers of its hellos begin with the date (RFC 5246 7.4.1.2). It converts an `Instant` to a
    /// date by a pair of an `Instant` and a `SystemTime` in a static (`time_tricks.rs`), which no
    /// option sets.
    origin: Instant,
    slots: Slots,
    outgoing: Outgoing,
    events: VecDeque<Event>,
    stats: Stats,
    scratch: Box<[u8]>,
    swept: Time,
    /// After the connections, which use it until they are dropped.
    provider: Provider,
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").field("ways", &self.slots.len()).finish_non_exhaustive()
    }
}

impl Layer {
    /// Creates a layer without connections; `secret` is the key of its cookies.
    ///
    /// `origin` is [`Time::ZERO`] as an [`Instant`]: the layer reads no clock, and the DTLS library
    /// computes with `Instant`s.
    pub fn new(options: Options, secret: &[u8; 32], origin: Instant) -> Self {
        let provider = Provider::new();
        // The configuration depends only on constants and the minimum version; the tests cover both
        // versions.
        #[expect(clippy::expect_used, reason = "all of it is constant")]
        let [config, without_cookie] = [true, false].map(|cookie| {
            let mut config = Config::builder()
                .with_crypto_provider(provider.for_dimpl())
                .mtu(HANDSHAKE_DATAGRAM)
                .flight_retries(RETRIES)
                .handshake_timeout(HANDSHAKE)
                .aead_encryption_limit(KEY_UPDATE)
                .use_server_cookie(cookie);
            if options.minimum == Version::Dtls13 {
                config = config.dtls12_cipher_suites(&[]);
            }
            Arc::new(config.build().expect("a provider that computes what it should"))
        });
        if options.key_log.is_some() {
            provider.record_secrets();
        }
        let fingerprint = options.identity.fingerprint();
        let Identity { key, certificate } = options.identity;
        Self {
            config,
            certificate: DtlsCertificate { certificate, private_key: key },
            trust: options.trust,
            minimum: options.minimum,
            rekey_after: options.rekey_after,
            max_connections: options.max_connections,
            unproven: options.unproven,
            key_log: options.key_log,
            without_cookie,
            fingerprint,
            baker: Baker::new(secret),
            origin,
            slots: Slots::default(),
            outgoing: Outgoing::new(options.max_connections),
            events: VecDeque::new(),
            stats: Stats::default(),
            scratch: vec![0; SCRATCH].into_boxed_slice(),
            swept: Time::ZERO,
            provider,
        }
    }

    /// Maximum number of bytes that a record adds to a packet.
    pub fn overhead(&self) -> usize {
        if self.minimum == Version::Dtls12 { OVERHEAD_12 } else { OVERHEAD }
    }

    /// Fingerprint of this host's certificate.
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Counters of all connections since the layer was created.
    pub const fn stats(&self) -> Stats {
        self.stats
    }

    /// Number of paths with a connection, established or not.
    pub fn ways(&self) -> usize {
        self.slots.len()
    }

    /// Fingerprint of the peer's certificate, if the path's connection is established.
    pub fn peer(&self, way: FourTuple) -> Option<Fingerprint> {
        match self.slots.get(&self.slots.find(way))?.current.phase() {
            Phase::Open(peer) => Some(peer),
            _ => None,
        }
    }

    /// Whether an ICMP message quotes a datagram that was sent to `remote`: at least 59 bytes of
    /// the ClientHello of a handshake, or 21 bytes of one of a connection's last 1024 large
    /// records. A host that has not seen the datagram cannot forge either.
    pub fn has_sent(&self, remote: SocketAddr, quoted: &[u8]) -> bool {
        self.slots.to(remote).any(|slot| {
            let connections = [slot.old.as_ref(), Some(&slot.current), slot.next.as_ref()];
            connections.into_iter().flatten().any(|connection| connection.has_sent(quoted))
        })
    }

    /// Handles a received datagram and delivers the packets in it to the layer above.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        way: FourTuple,
        datagram: &[u8],
        upper: &mut dyn Upper,
    ) {
        if let Some(hello) = ClientHello::parse(datagram) {
            let key = self.slots.adopt(way);
            return self.handle_hello(now, way, key, &hello, datagram, upper);
        }
        let deliver = &mut |peer, packet: &[u8]| upper.deliver(peer, packet);
        let mut receive = |slot: &mut Slot, around: &mut Surroundings<'_>| {
            if let Some(old) = &mut slot.old {
                old.receive(around, datagram, deliver);
            }
            let mut news = [None, None];
            let mute = slot.current.is_mute(around.now, MUTE);
            news[0] = slot.current.receive(around, datagram, deliver);
            if mute && !slot.current.is_mute(around.now, MUTE) && slot.current.is_open() {
                slot.give_up_probe();
            }
            if let Some(next) = &mut slot.next {
                news[1] = next.receive(around, datagram, deliver);
            }
            news
        };
        if self.with_slot(now, (way.remote, way.local.ip()), &mut receive) {
            return;
        }
        let key = self.slots.adopt(way);
        if !self.with_slot(now, key, receive) {
            self.stats.strangers += 1;
        }
    }

    /// Encrypts a packet, appends the record to `out`, and returns the path to send it on. Returns
    /// `None` if the packet waits for the handshake or is dropped. With `expected`, only a peer
    /// with that certificate receives the packet.
    pub fn seal(
        &mut self,
        now: Time,
        way: FourTuple,
        expected: Option<Fingerprint>,
        packet: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<FourTuple> {
        let key = self.slots.find(way);
        let Some(slot) = self.slots.get_mut(&key) else {
            self.open(now, way, key, expected, packet);
            return None;
        };
        let way = slot.way;
        match slot.current.phase() {
            Phase::Open(peer) if expected.is_some_and(|expected| expected != peer) => {
                self.stats.other_certificate += 1;
                None
            }
            Phase::Open(peer) => {
                slot.expected |= expected.is_some();
                let mut around = Surroundings {
                    now,
                    origin: self.origin,
                    way,
                    trust: &self.trust,
                    minimum: self.minimum,
                    scratch: &mut self.scratch,
                    outgoing: &mut self.outgoing,
                    secrets: self.key_log.as_ref().zip(Some(&self.provider)),
                };
                if !slot.current.seal(&mut around, packet, out) {
                    self.stats.failed += 1;
                    // Send close_notify if possible; the next packet starts a new connection.
                    self.close_way(now, key);
                    return None;
                }
                let mute = slot.current.is_mute(now, MUTE);
                let last = slot.begun.max(slot.replaced);
                let due = last.is_none_or(|last| now.since(last) >= AGAIN);
                if (mute || slot.current.sealed >= slot.rekey) && slot.next.is_none() && due {
                    // A mute peer may not have received the packet: send it over the new connection
                    // as well.
                    self.renew(now, key, mute.then_some((peer, packet)));
                } else if slot.wants() != slot.timeout {
                    self.slots.index(key);
                }
                Some(way)
            }
            _ => {
                if !slot.current.wait(expected, packet) {
                    self.stats.dropped += 1;
                }
                None
            }
        }
    }

    /// Returns the next datagram to send: a handshake message, an alert, or a packet that waited
    /// for the handshake. Call it until it returns `None`, after every other call: at most 1024
    /// datagrams wait, and two more for each of [`Options::max_connections`]. Further ones are
    /// lost.
    pub fn poll_transmit(&mut self) -> Option<(FourTuple, Vec<u8>)> {
        self.outgoing.pop()
    }

    /// Returns the next event. Call it until it returns `None`, after every other call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        let sweep = (self.slots.len() > 0).then(|| self.swept + IDLE);
        [self.slots.timeout(), sweep].into_iter().flatten().min()
    }

    /// Handles expired timers. Call it at the time that `poll_timeout` returned; earlier calls do
    /// no harm.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(key) = self.slots.due(now) {
            self.with_slot(now, key, |slot, around| {
                let next = slot.next.as_mut();
                [
                    slot.current.tick(around, &mut |_, _| {}),
                    next.and_then(|next| next.tick(around, &mut |_, _| {})),
                ]
            });
        }
        if now >= self.swept + IDLE {
            self.swept = now;
            let idle: Vec<Key> = self
                .slots
                .iter()
                .filter(|(_, slot)| now.since(slot.current.used) >= IDLE)
                .map(|(key, _)| *key)
                .collect();
            for key in idle {
                self.close_way(now, key);
            }
        }
    }

    /// Closes all connections and sends close_notify to their peers.
    pub fn close(&mut self, now: Time) {
        let keys: Vec<Key> = self.slots.iter().map(|(key, _)| *key).collect();
        for key in keys {
            self.close_way(now, key);
        }
    }

    fn close_way(&mut self, now: Time, key: Key) {
        self.with_slot(now, key, |slot, around| {
            slot.current.close(around);
            slot.next = None;
            [None, None]
        });
    }

    /// Handles a ClientHello. Only one with a cookie can change connections.
    fn handle_hello(
        &mut self,
        now: Time,
        way: FourTuple,
        key: Key,
        hello: &ClientHello<'_>,
        datagram: &[u8],
        upper: &mut dyn Upper,
    ) {
        if hello.version < self.minimum {
            self.stats.outdated += 1;
            return self.answer(way, hello.refused(self.minimum));
        }
        // A client that has not been asked for a cookie repeats its ClientHello without one.
        let same = |connection: &Connection| {
            connection.began(hello.random) && (hello.cookie().is_some() || connection.is_unproven())
        };
        let known = self.slots.get(&key);
        if known.is_some_and(|slot| same(&slot.current) || slot.next.as_ref().is_some_and(same)) {
            self.with_slot(now, key, |slot, around| {
                let connection = match &mut slot.next {
                    Some(next) if same(next) => next,
                    _ => &mut slot.current,
                };
                let deliver = &mut |peer, packet: &[u8]| upper.deliver(peer, packet);
                [connection.receive(around, datagram, deliver), None]
            });
            return;
        }
        if hello.cookie().is_none() {
            if self.trusts_address(key, hello) {
                return self.accept_unproven(now, way, key, hello, datagram, upper);
            }
            let recipe = self.baker.recipe(now, &way, hello);
            if self.outgoing.has_room_for_answer() {
                let request = self.ask_again(now, &recipe, hello.version, datagram);
                self.stats.cookies += u64::from(request.is_some());
                self.answer(way, request.unwrap_or_else(|| hello.refused(self.minimum)));
            }
            return;
        }
        if let Some(slot) = self.slots.get(&key) {
            // Both sides have started a handshake: the one with the larger random number is the
            // client.
            if slot.attempt().is_some_and(|ours| ours.random > Some(hello.random)) {
                return;
            }
        }
        let Some((recipe, first)) = self.baker.recognise(now, &way, hello) else {
            self.stats.bad_cookies += 1;
            return;
        };
        let Some(dtls) = self.served(now, &recipe, hello.version, &first, datagram) else {
            self.stats.failed += 1;
            self.provider.take_secrets();
            return self.answer(way, hello.refused(self.minimum));
        };
        let mut connection = Connection::new(dtls, false, now);
        connection.random = Some(hello.random);
        self.accept(now, way, key, connection, upper);
    }

    /// Whether a handshake may begin without a cookie: on a path without a connection, and while
    /// few clients have not proved their addresses.
    fn trusts_address(&self, key: Key, hello: &ClientHello<'_>) -> bool {
        let unproven = || self.slots.iter().filter(|(_, slot)| slot.current.is_unproven()).count();
        hello.version == Version::Dtls13
            && self.slots.get(&key).is_none()
            && self.unproven > 0
            && unproven() < self.unproven
    }

    /// Begins the handshake of a client that has not proved its address.
    fn accept_unproven(
        &mut self,
        now: Time,
        way: FourTuple,
        key: Key,
        hello: &ClientHello<'_>,
        datagram: &[u8],
        upper: &dyn Upper,
    ) {
        let instant = self.origin + now.since(Time::ZERO);
        let config = self.without_cookie.clone();
        let mut dtls = Dtls::new_13(config, self.certificate.clone(), instant);
        if dtls.handle_timeout(instant).and_then(|()| dtls.handle_packet(datagram)).is_err() {
            self.stats.failed += 1;
            self.provider.take_secrets();
            return self.answer(way, hello.refused(self.minimum));
        }
        let mut connection = Connection::new(dtls, false, now);
        connection.random = Some(hello.random);
        connection.grant(datagram.len());
        self.stats.unproven += 1;
        self.accept(now, way, key, connection, upper);
    }

    /// Queues an answer to an unknown host, unless too many datagrams already wait.
    fn answer(&mut self, way: FourTuple, datagram: Vec<u8>) {
        if self.outgoing.has_room_for_answer() {
            self.outgoing.push(way, datagram);
        }
    }

    /// The answer to a client's first ClientHello: a request to repeat it with this cookie.
    fn ask_again(
        &mut self,
        now: Time,
        recipe: &Recipe,
        version: Version,
        hello: &[u8],
    ) -> Option<Vec<u8>> {
        let mut dtls = self.server(now, version)?;
        self.provider.with_cookie_key(&recipe.0, || dtls.handle_packet(hello)).ok()?;
        match dtls.poll_output(&mut self.scratch) {
            Output::Packet(request) => Some(request.to_vec()),
            _ => None,
        }
    }

    /// Creates a `dimpl` server that waits for a ClientHello.
    fn server(&self, now: Time, version: Version) -> Option<Dtls> {
        let instant = self.origin + now.since(Time::ZERO);
        let new = match version {
            Version::Dtls12 => Dtls::new_12,
            Version::Dtls13 => Dtls::new_13,
        };
        let mut dtls = new(self.config.clone(), self.certificate.clone(), instant);
        dtls.handle_timeout(instant).ok()?;
        Some(dtls)
    }

    /// Rebuilds the server that sent the cookie request and passes it the second ClientHello.
    fn served(
        &self,
        now: Time,
        recipe: &Recipe,
        version: Version,
        first: &[u8],
        second: &[u8],
    ) -> Option<Dtls> {
        let mut dtls = self.server(now, version)?;
        self.provider.with_cookie_key(&recipe.0, || {
            dtls.handle_packet(first).ok()?;
            // Discard the cookie request: the client has already received it.
            let mut scratch = [0; HANDSHAKE_DATAGRAM];
            while let Output::Packet(_) = dtls.poll_output(&mut scratch) {}
            dtls.handle_packet(second).ok()
        })?;
        Some(dtls)
    }

    /// Accepts a client whose cookie has proved its address.
    fn accept(
        &mut self,
        now: Time,
        way: FourTuple,
        key: Key,
        mut connection: Connection,
        upper: &dyn Upper,
    ) {
        match self.slots.get_mut(&key) {
            // The established connection stays in use until the handshake completes.
            Some(slot) if slot.current.is_open() => slot.next = Some(connection),
            Some(slot) => {
                connection.inherit(&mut slot.current);
                slot.current = connection;
            }
            None => {
                if !self.make_room(now, Some(upper)) {
                    self.stats.turned_away += 1;
                    return;
                }
                self.slots.insert(key, Slot::new(way, connection));
            }
        }
        self.tick(now, key);
    }

    /// Starts a handshake to send a packet.
    fn open(
        &mut self,
        now: Time,
        way: FourTuple,
        key: Key,
        expected: Option<Fingerprint>,
        packet: &[u8],
    ) {
        // Connections for local packets may exceed the limit: the layer above bounds their number.
        self.make_room(now, None);
        let mut current = self.client(now);
        current.wait(expected, packet);
        self.slots.insert(key, Slot::new(way, current));
        self.tick(now, key);
    }

    /// Starts a handshake to replace a connection that is mute or whose keys are old. The packet is
    /// sent when the handshake completes, if the peer has the given certificate.
    fn renew(&mut self, now: Time, key: Key, packet: Option<(Fingerprint, &[u8])>) {
        let mut next = self.client(now);
        if let Some((peer, packet)) = packet {
            next.wait(Some(peer), packet);
        }
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.next = Some(next);
            slot.begun = Some(now);
        }
        self.tick(now, key);
    }

    fn client(&self, now: Time) -> Connection {
        let instant = self.origin + now.since(Time::ZERO);
        // If both versions are allowed, the ClientHello offers both.
        let new = match self.minimum {
            Version::Dtls12 => Dtls::new_auto,
            Version::Dtls13 => Dtls::new_13,
        };
        let mut dtls = new(self.config.clone(), self.certificate.clone(), instant);
        dtls.set_active(true);
        Connection::new(dtls, true, now)
    }

    fn tick(&mut self, now: Time, key: Key) {
        self.with_slot(now, key, |slot, around| {
            let next = slot.next.as_mut();
            [
                slot.current.tick(around, &mut |_, _| {}),
                next.and_then(|next| next.tick(around, &mut |_, _| {})),
            ]
        });
    }

    /// Makes room for one more connection: gives up the oldest handshake that a peer has started,
    /// or else closes the connection that has been silent longest among those that are not in use.
    /// Returns false if there is none.
    fn make_room(&mut self, now: Time, upper: Option<&dyn Upper>) -> bool {
        let opening = || self.slots.iter().filter(|(_, slot)| slot.is_opening());
        let full = self.slots.len() >= self.max_connections;
        if opening().count() < MOST_OPENING && !full {
            return true;
        }
        let mut oldest = opening().min_by_key(|(_, slot)| slot.current.used).map(|(key, _)| *key);
        if oldest.is_none() {
            let in_use = upper.map_or_else(|| self.slots.expected(), |upper| upper.in_use());
            let spare = |slot: &Slot| match slot.current.phase() {
                Phase::Open(peer) => !in_use.contains(&(slot.way.remote, peer)),
                _ => true,
            };
            let spare = self.slots.iter().filter(|(_, slot)| spare(slot));
            oldest = spare.min_by_key(|(_, slot)| slot.current.used).map(|(key, _)| *key);
        }
        let Some(key) = oldest else { return false };
        self.stats.evicted += 1;
        self.close_way(now, key);
        true
    }

    /// Calls `f` with a path's connections and handles the outcome; returns false if the path has
    /// none.
    fn with_slot(
        &mut self,
        now: Time,
        key: Key,
        f: impl FnOnce(&mut Slot, &mut Surroundings<'_>) -> [Option<News>; 2],
    ) -> bool {
        let Some(slot) = self.slots.get_mut(&key) else { return false };
        let way = slot.way;
        let mut around = Surroundings {
            now,
            origin: self.origin,
            way,
            trust: &self.trust,
            minimum: self.minimum,
            scratch: &mut self.scratch,
            outgoing: &mut self.outgoing,
            secrets: self.key_log.as_ref().zip(Some(&self.provider)),
        };
        let news = f(slot, &mut around);
        if let Some(mut next) = slot.next.take_if(|next| next.is_open()) {
            next.replace(&slot.current);
            slot.old = Some(std::mem::replace(&mut slot.current, next));
            slot.replaced = Some(now);
        }
        slot.old.take_if(|_| slot.replaced.is_none_or(|at| now.since(at) >= LINGER));
        slot.next.take_if(|next| next.phase() == Phase::Over);
        let (over, late) = (slot.current.phase() == Phase::Over, slot.wants() != slot.timeout);
        for news in news.into_iter().flatten() {
            match news {
                News::Opened { peer, withheld, dropped } => {
                    slot.rekey = match slot.current.version() {
                        Some(Version::Dtls12) => self.rekey_after.min(REKEY_12),
                        _ => self.rekey_after,
                    };
                    self.stats.opened += 1;
                    self.stats.other_certificate += withheld;
                    self.stats.dropped += dropped;
                    self.events.push_back(Event::Opened { way, peer });
                }
                News::Refused(why) => {
                    self.stats.refused += 1;
                    self.events.push_back(Event::Refused { way, why });
                }
                News::Closed => {}
                News::Failed => self.stats.failed += 1,
            }
        }
        if over {
            // A packet that waits in `next` was sent over `current` as well.
            self.stats.dropped += slot.current.waiting() as u64;
            self.slots.remove(&key);
        } else if late {
            self.slots.index(key);
        }
        true
    }
}
