//! All connections of an endpoint: who is a datagram for, and which connection is a packet for?

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dimpl::{Config, Dtls, DtlsCertificate, Output};
use polypath_proto::{FourTuple, Time};
use thiserror::Error;

use crate::connection::{Connection, News, Phase, Surroundings};
use crate::cookie::{self, Baker, Recipe};
use crate::crypto;
use crate::fingerprint::Fingerprint;
use crate::hello::ClientHello;
use crate::identity::Identity;
use crate::slots::{Key, Slot, Slots};
use crate::trust::{Refusal, Trust};
use crate::version::Version;

/// Handshakes that others have begun and not completed, at most.
const MOST_OPENING: usize = 256;
/// Connections over which nothing has gone for so long are closed.
const IDLE: Duration = Duration::from_secs(600);
/// If nothing comes back for so long, the peer may have lost its connection, or know this side by another
/// address (a NAT has changed it): a new handshake is tried, and again after a while. It is less than SCTP's
/// RTO.Min of 1 s (RFC 9260 16), so that the first retransmission begins one: the host may have restarted.
const MUTE: Duration = Duration::from_millis(900);
const AGAIN: Duration = Duration::from_secs(10);
/// What the peer has sent over a connection before it knew of the next is taken for so long.
const LINGER: Duration = Duration::from_secs(3);
/// `dimpl` changes keys by KeyUpdate after so many records: never, for if both sides do so at the same time,
/// some of what follows cannot be read. A new connection has new keys as well.
const KEY_UPDATE: u64 = 1 << 60;
/// Flights are repeated after 1, 2 and 4 s (RFC 9147 5.8.2); so a way that comes to life again is not
/// waited for much longer than by SCTP's own timers.
const RETRIES: usize = 3;
const HANDSHAKE: Duration = Duration::from_secs(20);
/// Bytes of a datagram of the handshake, which knows nothing of the path's MTU.
const HANDSHAKE_DATAGRAM: usize = 1150;
/// Room for whatever a datagram has.
const SCRATCH: usize = 1 << 16;
/// Datagrams of handshakes that wait to be sent; what is more is lost.
const OUTGOING: usize = 1024;

/// Bytes that a record adds to a packet: header, type and tag (RFC 9147 4).
pub const OVERHEAD: usize = 5 + 1 + 16;
/// Bytes that a record of DTLS 1.2 adds, at most: header, nonce and tag (RFC 6347 4.1, RFC 5288 3).
pub const OVERHEAD_12: usize = 13 + 8 + 16;
/// Packets after which a connection of DTLS 1.2 is replaced, at most. With AES-GCM it ends after 2^22.
const REKEY_12: u64 = 1 << 20;

/// What a layer is made from.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who this host is.
    pub identity: Identity,
    /// Whose certificates are taken.
    pub trust: Trust,
    /// Packets after which a connection is replaced by a new one, with new keys. Default: 2^23, some 10 GB; in
    /// DTLS 1.2 at most 2^20.
    pub rekey_after: u64,
    /// Connections at a time. When there are so many, one that the layer above does not use is closed
    /// for the next; if it uses them all, others' handshakes are refused. Default: 4096.
    pub max_connections: usize,
    minimum: Version,
}

/// The layer above, which sends and receives the packets.
pub trait Upper {
    /// Takes a packet from the owner of this certificate.
    fn deliver(&mut self, peer: Fingerprint, packet: &[u8]);

    /// The remote addresses that it has to do with, each with the certificate that it expects: their
    /// connections are kept. Asked only when there are as many connections as allowed.
    fn in_use(&self) -> BTreeSet<(SocketAddr, Fingerprint)> {
        BTreeSet::new()
    }
}

impl<F: FnMut(Fingerprint, &[u8])> Upper for F {
    fn deliver(&mut self, peer: Fingerprint, packet: &[u8]) {
        self(peer, packet);
    }
}

/// Why DTLS 1.2 cannot be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a shared secret needs DTLS 1.3: certificates of 1.2 travel in clear, and whoever sees one could try secrets \
     on it"
)]
pub struct SecretInClear;

impl Options {
    /// With the defaults for the rest; DTLS 1.3 only.
    pub const fn new(identity: Identity, trust: Trust) -> Self {
        Self {
            identity,
            trust,
            rekey_after: 1 << 23,
            max_connections: 4096,
            minimum: Version::Dtls13,
        }
    }

    /// The oldest version of DTLS that is spoken, the newest that both have is. Whoever is on the way can make
    /// two hosts that allow 1.2 speak 1.2.
    ///
    /// # Errors
    ///
    /// Certificates prove a shared secret, and it would be 1.2.
    pub fn at_least(self, minimum: Version) -> Result<Self, SecretInClear> {
        match (minimum, &self.trust) {
            (Version::Dtls12, Trust::Secret(_)) => Err(SecretInClear),
            _ => Ok(Self { minimum, ..self }),
        }
    }
}

/// What has become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// It encrypts from now on.
    Opened {
        /// Where.
        way: FourTuple,
        /// The peer's certificate.
        peer: Fingerprint,
    },
    /// It was refused, by this side or by the peer.
    Refused {
        /// Where.
        way: FourTuple,
        /// Why.
        why: Refusal,
    },
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections that came about.
    pub opened: u64,
    /// Handshakes that led to a refusal, by this side or by the peer.
    pub refused: u64,
    /// Handshakes and connections that failed: no answer, or what the peer said broke the protocol.
    pub failed: u64,
    /// First hellos that were answered with a cookie.
    pub cookies: u64,
    /// Hellos with a cookie that is not ours, stale, or of another address.
    pub bad_cookies: u64,
    /// Datagrams that belong to no connection, and SCTP packets in clear.
    pub strangers: u64,
    /// Packets that were not sent because who is at the other end has another certificate.
    pub other_certificate: u64,
    /// Packets that were not sent because too many wait for a handshake, or it failed.
    pub dropped: u64,
    /// Connections given up to make room.
    pub evicted: u64,
    /// Handshakes of others that were refused because every connection is in use.
    pub turned_away: u64,
    /// First hellos without a version that is spoken here.
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
    fingerprint: Fingerprint,
    baker: Baker,
    /// An instant that means nothing: `dimpl` counts from instants.
    origin: Instant,
    slots: Slots,
    outgoing: VecDeque<(FourTuple, Vec<u8>)>,
    events: VecDeque<Event>,
    stats: Stats,
    scratch: Box<[u8]>,
    swept: Time,
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").field("ways", &self.slots.len()).finish_non_exhaustive()
    }
}

impl Layer {
    /// A layer without connections; `secret` is what its cookies are made with.
    pub fn new(options: Options, secret: &[u8; 32]) -> Self {
        let mut config = Config::builder()
            .with_crypto_provider(crypto::provider())
            .mtu(HANDSHAKE_DATAGRAM)
            .flight_retries(RETRIES)
            .handshake_timeout(HANDSHAKE)
            .aead_encryption_limit(KEY_UPDATE);
        if options.minimum == Version::Dtls13 {
            config = config.dtls12_cipher_suites(&[]);
        }
        // Tested: it depends on nothing that is not written here.
        #[expect(clippy::expect_used, reason = "all of it is constant")]
        let config = Arc::new(config.build().expect("a provider that computes what it should"));
        let fingerprint = options.identity.fingerprint();
        let Identity { key, certificate } = options.identity;
        Self {
            config,
            certificate: DtlsCertificate { certificate, private_key: key },
            trust: options.trust,
            minimum: options.minimum,
            rekey_after: options.rekey_after,
            max_connections: options.max_connections,
            fingerprint,
            baker: Baker::new(secret),
            origin: Instant::now(),
            slots: Slots::default(),
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
            stats: Stats::default(),
            scratch: vec![0; SCRATCH].into_boxed_slice(),
            swept: Time::ZERO,
        }
    }

    /// Bytes that a record adds to a packet, at most.
    pub fn overhead(&self) -> usize {
        if self.minimum == Version::Dtls12 { OVERHEAD_12 } else { OVERHEAD }
    }

    /// What others know this host by.
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Counters.
    pub const fn stats(&self) -> Stats {
        self.stats
    }

    /// Ways with a connection, complete or not.
    pub fn ways(&self) -> usize {
        self.slots.len()
    }

    /// Who is at the other end of a way, if it encrypts.
    pub fn peer(&self, way: FourTuple) -> Option<Fingerprint> {
        match self.slots.get(&self.slots.find(way))?.current.phase() {
            Phase::Open(peer) => Some(peer),
            _ => None,
        }
    }

    /// Whether an ICMP message quotes a record that went to `remote`: 59 bytes of the hello of a
    /// handshake, or 21 bytes of one of the last thousand large records. Others cannot forge either.
    pub fn has_sent(&self, remote: SocketAddr, quoted: &[u8]) -> bool {
        self.slots.to(remote).any(|slot| {
            let connections = [slot.old.as_ref(), Some(&slot.current), slot.next.as_ref()];
            connections.into_iter().flatten().any(|connection| connection.has_sent(quoted))
        })
    }

    /// A datagram has come; the packets in it go to the layer above.
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

    /// Encrypts a packet behind what `out` holds, and says over which way it goes; `None` if it has to
    /// wait, or must not go. With `expected`, nobody else gets it.
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
                };
                if !slot.current.seal(&mut around, packet, out) {
                    self.stats.failed += 1;
                    // The peer learns of it, if it can be told; the next packet begins another one.
                    self.close_way(now, key);
                    return None;
                }
                let mute = slot.current.is_mute(now, MUTE);
                let last = slot.begun.max(slot.replaced);
                let due = last.is_none_or(|last| now.since(last) >= AGAIN);
                if (mute || slot.current.sealed >= slot.rekey) && slot.next.is_none() && due {
                    // What a mute peer has not answered goes over the new connection as well.
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

    /// The next datagram of a handshake. Call it until it gives `None`, after every other call.
    pub fn poll_transmit(&mut self) -> Option<(FourTuple, Vec<u8>)> {
        self.outgoing.pop_front()
    }

    /// What has become of connections. Call it until it gives `None`, after every other call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        let sweep = (self.slots.len() > 0).then(|| self.swept + IDLE);
        [self.slots.timeout(), sweep].into_iter().flatten().min()
    }

    /// Call it when the instant that `poll_timeout` gave has come. Earlier does no harm.
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

    /// Closes all connections: their peers are told (close_notify).
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

    /// A client's hello. Only one with a cookie leaves a trace.
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
        if hello.cookie().is_none() {
            let recipe = self.baker.recipe(now, &way, hello);
            if self.outgoing.len() < OUTGOING {
                let request = self.ask_again(now, &recipe, hello.version, datagram);
                self.stats.cookies += u64::from(request.is_some());
                self.answer(way, request.unwrap_or_else(|| hello.refused(self.minimum)));
            }
            return;
        }
        if let Some(slot) = self.slots.get(&key) {
            let same = |connection: &Connection| {
                !connection.client && connection.random == Some(hello.random)
            };
            if same(&slot.current) || slot.next.as_ref().is_some_and(same) {
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
            // Both have begun at once: the larger number is the client.
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
            return self.answer(way, hello.refused(self.minimum));
        };
        let mut connection = Connection::new(dtls, false, now);
        connection.random = Some(hello.random);
        self.accept(now, way, key, connection, upper);
    }

    /// Sends a stranger something, unless too much waits already.
    fn answer(&mut self, way: FourTuple, datagram: Vec<u8>) {
        if self.outgoing.len() < OUTGOING {
            self.outgoing.push_back((way, datagram));
        }
    }

    /// The answer to a client's first hello: say it again, with this cookie.
    fn ask_again(
        &mut self,
        now: Time,
        recipe: &Recipe,
        version: Version,
        hello: &[u8],
    ) -> Option<Vec<u8>> {
        let mut dtls = self.server(now, version)?;
        cookie::with(recipe, || dtls.handle_packet(hello)).ok()?;
        match dtls.poll_output(&mut self.scratch) {
            Output::Packet(request) => Some(request.to_vec()),
            _ => None,
        }
    }

    /// An object of `dimpl` that waits for a client.
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

    /// An object that knows all that one knew that is no more, and goes on from there.
    fn served(
        &self,
        now: Time,
        recipe: &Recipe,
        version: Version,
        first: &[u8],
        second: &[u8],
    ) -> Option<Dtls> {
        let mut dtls = self.server(now, version)?;
        cookie::with(recipe, || {
            dtls.handle_packet(first).ok()?;
            // The request for a cookie.
            let mut scratch = [0; HANDSHAKE_DATAGRAM];
            while let Output::Packet(_) = dtls.poll_output(&mut scratch) {}
            dtls.handle_packet(second).ok()
        })?;
        Some(dtls)
    }

    /// A client that is where it says.
    fn accept(
        &mut self,
        now: Time,
        way: FourTuple,
        key: Key,
        mut connection: Connection,
        upper: &dyn Upper,
    ) {
        match self.slots.get_mut(&key) {
            // Until it is complete, what there is stays.
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

    /// Begins a handshake, for a packet.
    fn open(
        &mut self,
        now: Time,
        way: FourTuple,
        key: Key,
        expected: Option<Fingerprint>,
        packet: &[u8],
    ) {
        // What the layer above sends is bounded by what it has to do: it may exceed the limit.
        self.make_room(now, None);
        let mut current = self.client(now);
        current.wait(expected, packet);
        self.slots.insert(key, Slot::new(way, current));
        self.tick(now, key);
    }

    /// Begins a handshake beside a connection that may be of no use any more. The packet is sent to this peer
    /// when the handshake is over.
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
        // The hello of one that may speak both is for both.
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

    /// Makes room for one more connection: the oldest handshake that others have begun is given up, or
    /// else the connection that has been silent for the longest time of those that are not in use. False
    /// if there is none.
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

    /// Does something with a way's connections, and what follows from it; false if there are none.
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
        };
        let news = f(slot, &mut around);
        if let Some(next) = slot.next.take_if(|next| next.is_open()) {
            slot.old = Some(std::mem::replace(&mut slot.current, next));
            slot.replaced = Some(now);
        }
        slot.old.take_if(|_| slot.replaced.is_none_or(|at| now.since(at) >= LINGER));
        slot.next.take_if(|next| next.phase() == Phase::Over);
        let (over, late) = (slot.current.phase() == Phase::Over, slot.wants() != slot.timeout);
        for news in news.into_iter().flatten() {
            match news {
                News::Opened { peer, withheld } => {
                    slot.rekey = match slot.current.version() {
                        Some(Version::Dtls12) => self.rekey_after.min(REKEY_12),
                        _ => self.rekey_after,
                    };
                    self.stats.opened += 1;
                    self.stats.other_certificate += withheld;
                    self.events.push_back(Event::Opened { way, peer });
                }
                News::Refused(why) => {
                    self.stats.refused += 1;
                    self.events.push_back(Event::Refused { way, why });
                }
                News::Ended => self.stats.failed += 1,
            }
        }
        if over {
            self.slots.remove(&key);
        } else if late {
            self.slots.index(key);
        }
        true
    }
}
