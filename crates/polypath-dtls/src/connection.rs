//! One DTLS connection on one path.

use std::time::{Duration, Instant};

use dimpl::{Dtls, Error, Output, ProtocolVersion, SecurityError};
use polypath_proto::{FourTuple, Time};

use crate::crypto::Provider;
use crate::fingerprint::Fingerprint;
use crate::hello::{self, ClientHello};
use crate::key_log::KeyLog;
use crate::marks::Marks;
use crate::outgoing::Outgoing;
use crate::trust::{Refusal, Trust};
use crate::version::Version;

/// Maximum number of SCTP packets that wait for the handshake; SCTP retransmits dropped ones.
const WAITING: usize = 8;
/// Interval at which an established connection passes the time to `dimpl` while it receives
/// datagrams; during a handshake, every datagram passes it.
const TICK: Duration = Duration::from_millis(10);
/// Maximum number of attempts to draw an unused nonce for AES-GCM in DTLS 1.2 (`crypto/nonces.rs`).
/// At worst, every second nonce is rejected as long as the key may be used.
const DRAWS: usize = 64;
/// Maximum number of records per key: 2^24.5 (RFC 9147 4.5.3 for AES-GCM).
const MOST: u64 = 23_726_566;
/// Content type of a DTLS 1.2 record with application data.
const APPLICATION_DATA: u8 = 23;
/// Longer timeouts count as none.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handshake is running.
    Opening,
    /// Established with the peer that has this certificate.
    Open(Fingerprint),
    /// Closed, refused or failed.
    Over,
}

/// A change of a connection's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Established with `peer`. Of the packets that waited, `withheld` were for another
    /// certificate, and `dropped` could not be encrypted or queued.
    Opened {
        peer: Fingerprint,
        withheld: u64,
        dropped: u64,
    },
    Refused(Refusal),
    /// The peer has closed the connection in order, after it had sent packets.
    Closed,
    /// The handshake or the connection has failed.
    Failed,
}

pub(crate) struct Connection {
    dtls: Dtls,
    /// Whether this side started the handshake.
    pub(crate) client: bool,
    /// The client's random number, which distinguishes handshakes.
    pub(crate) random: Option<[u8; 32]>,
    phase: Phase,
    certificate: Vec<u8>,
    /// Packets that wait for the handshake, each with the expected certificate if one is known.
    waiting: Vec<(Option<Fingerprint>, Vec<u8>)>,
    /// Bytes that may be sent to a client that has not proved its address; `None` once it has.
    credit: Option<usize>,
    /// When `tick` must be called.
    pub(crate) timeout: Option<Time>,
    told: Time,
    /// When a packet was last sent or received.
    pub(crate) used: Time,
    /// Number of packets encrypted by `seal`.
    pub(crate) sealed: u64,
    pub(crate) marks: Marks,
    /// When the first packet was sent after the last received one.
    unanswered: Option<Time>,
    /// Whether `dimpl` has accepted a datagram; `received`: whether a packet of the peer has been
    /// decrypted, by this connection or one that it has replaced.
    pub(crate) heard: bool,
    received: bool,
}

/// Context of a call: the time, the path, and the state that a layer's connections share.
pub(crate) struct Surroundings<'a> {
    pub(crate) now: Time,
    pub(crate) origin: Instant,
    pub(crate) way: FourTuple,
    pub(crate) trust: &'a Trust,
    pub(crate) minimum: Version,
    pub(crate) scratch: &'a mut [u8],
    pub(crate) outgoing: &'a mut Outgoing,
    /// Where the secrets of connections go, and the provider that derives them.
    pub(crate) secrets: Option<(&'a KeyLog, &'a Provider)>,
}

impl Surroundings<'_> {
    fn instant(&self) -> Instant {
        self.origin + self.now.since(Time::ZERO)
    }

    /// Logs the secrets that a connection has just derived.
    fn log_secrets(&self, random: Option<[u8; 32]>) {
        let Some((log, provider)) = self.secrets else { return };
        let secrets = provider.take_secrets();
        if let Some(random) = random {
            secrets.iter().for_each(|secret| log.write(&random, secret));
        }
    }
}

/// Receives each decrypted packet with the fingerprint of its sender.
pub(crate) type Deliver<'a> = dyn FnMut(Fingerprint, &[u8]) + 'a;

impl Connection {
    pub(crate) fn new(dtls: Dtls, client: bool, now: Time) -> Self {
        Self {
            dtls,
            client,
            random: None,
            phase: Phase::Opening,
            certificate: Vec::new(),
            waiting: Vec::new(),
            credit: None,
            timeout: None,
            told: Time::ZERO,
            used: now,
            sealed: 0,
            marks: Marks::default(),
            unanswered: None,
            heard: false,
            received: false,
        }
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Whether this is the server of the client that has sent this random number.
    pub(crate) fn began(&self, random: [u8; 32]) -> bool {
        !self.client && self.random == Some(random)
    }

    /// Whether the client has not proved its address.
    pub(crate) const fn is_unproven(&self) -> bool {
        self.credit.is_some()
    }

    /// Accounts for a datagram of a client that has not proved its address. RFC 9000 8.1: "at most
    /// three times the amount of data"; RFC 9147 5.1 has no number.
    pub(crate) fn grant(&mut self, received: usize) {
        self.credit = Some(self.credit.unwrap_or(0).saturating_add(3 * received));
    }

    /// The negotiated version, once it is known.
    pub(crate) fn version(&self) -> Option<Version> {
        match self.dtls.protocol_version()? {
            ProtocolVersion::DTLS1_2 => Some(Version::Dtls12),
            _ => Some(Version::Dtls13),
        }
    }

    /// Passes the time to `dimpl`; the first call makes a client send its ClientHello.
    pub(crate) fn tick(
        &mut self,
        around: &mut Surroundings<'_>,
        deliver: &mut Deliver<'_>,
    ) -> Option<News> {
        let news = self.advance(around, deliver);
        around.log_secrets(self.random);
        news
    }

    fn advance(
        &mut self,
        around: &mut Surroundings<'_>,
        deliver: &mut Deliver<'_>,
    ) -> Option<News> {
        self.told = around.now;
        if self.dtls.handle_timeout(around.instant()).is_err() {
            return self.fail();
        }
        self.poll(around, deliver)
    }

    /// Handles a datagram that may be for this connection. One that is not, or is damaged or
    /// repeated, changes nothing (RFC 9147 4.5.1, 4.5.2).
    pub(crate) fn receive(
        &mut self,
        around: &mut Surroundings<'_>,
        datagram: &[u8],
        deliver: &mut Deliver<'_>,
    ) -> Option<News> {
        let news = self.handle(around, datagram, deliver);
        around.log_secrets(self.random);
        news
    }

    fn handle(
        &mut self,
        around: &mut Surroundings<'_>,
        datagram: &[u8],
        deliver: &mut Deliver<'_>,
    ) -> Option<News> {
        if !self.is_open() {
            // A DTLS 1.2 record of the connection that this one may replace.
            if datagram.first() == Some(&APPLICATION_DATA) {
                return None;
            }
            if self.client
                && !self.heard
                && let Some(why) = hello::refusal(datagram, around.minimum)
            {
                self.phase = Phase::Over;
                return Some(News::Refused(why));
            }
        }
        if self.is_unproven() {
            self.grant(datagram.len());
        }
        if !self.is_open() || around.now.since(self.told) >= TICK {
            self.told = around.now;
            if self.dtls.handle_timeout(around.instant()).is_err() {
                return self.fail();
            }
        }
        match self.dtls.handle_packet(datagram) {
            Ok(()) => self.heard = true,
            // Not an answer to a ClientHello that offers both versions.
            Err(_) if self.version().is_none() => return None,
            Err(Error::SecurityError(SecurityError::FatalAlert { description }))
                if !self.is_open() =>
            {
                self.phase = Phase::Over;
                return Some(News::Refused(hello::alerted(description, around.minimum)));
            }
            Err(_) => return self.fail(),
        }
        self.poll(around, deliver)
    }

    /// Encrypts a packet into its own record and appends it to `out`; returns false if that fails.
    pub(crate) fn seal(
        &mut self,
        around: &mut Surroundings<'_>,
        packet: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        if !self.is_open()
            || self.sealed >= MOST
            || !draws(|| self.dtls.send_application_data(packet).is_ok())
        {
            return false;
        }
        // All earlier output has been polled, so the first datagram is this record.
        let Output::Packet(record) = self.dtls.poll_output(around.scratch) else { return false };
        out.extend_from_slice(record);
        self.marks.note(record);
        self.used = around.now;
        self.sealed += 1;
        self.unanswered.get_or_insert(around.now);
        self.poll(around, &mut |_, _| {}).is_none()
    }

    /// Whether an ICMP message that quotes these bytes was caused by this connection: by a large
    /// record with data, or by its ClientHello.
    pub(crate) fn has_sent(&self, quoted: &[u8]) -> bool {
        let hello =
            self.client && self.random.is_some() && hello::quoted_random(quoted) == self.random;
        hello || self.marks.know(quoted)
    }

    /// Whether packets were sent for at least `time` and none was received.
    pub(crate) fn is_mute(&self, now: Time, time: Duration) -> bool {
        self.unanswered.is_some_and(|since| now.since(since) >= time)
    }

    /// Keeps a packet until the handshake is over; returns false if too many wait.
    pub(crate) fn wait(&mut self, expected: Option<Fingerprint>, packet: &[u8]) -> bool {
        let room = self.waiting.len() < WAITING;
        if room {
            self.waiting.push((expected, packet.to_vec()));
        }
        room
    }

    /// Takes over the packets that wait in another connection; none wait in this one yet.
    pub(crate) fn inherit(&mut self, other: &mut Self) {
        self.waiting = std::mem::take(&mut other.waiting);
    }

    /// This connection replaces another one. If the peer is the same, it has accepted this host's
    /// certificate if it has sent packets over the other one.
    pub(crate) fn replace(&mut self, other: &Self) {
        self.received |= other.received && other.phase == self.phase;
    }

    /// Number of packets that wait for the handshake.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Sends close_notify if the connection is established, and ends it.
    pub(crate) fn close(&mut self, around: &mut Surroundings<'_>) {
        if self.is_open() && draws(|| self.dtls.close().is_ok()) {
            self.poll(around, &mut |_, _| {});
        }
        self.phase = Phase::Over;
    }

    const fn fail(&mut self) -> Option<News> {
        self.phase = Phase::Over;
        Some(News::Failed)
    }

    /// Handles all pending output of `dimpl`.
    fn poll(&mut self, around: &mut Surroundings<'_>, deliver: &mut Deliver<'_>) -> Option<News> {
        let mut news = None;
        loop {
            match self.dtls.poll_output(around.scratch) {
                Output::Packet(packet) => {
                    if self.client && self.random.is_none() {
                        self.random = ClientHello::parse(packet).map(|hello| hello.random);
                    }
                    // A datagram beyond the credit is lost; timers send it again.
                    let credit = self.credit.map(|credit| credit.checked_sub(packet.len()));
                    match credit {
                        Some(None) => continue,
                        Some(left) => self.credit = left,
                        None => {}
                    }
                    around.outgoing.push(around.way, packet.to_vec());
                }
                Output::PeerCert(certificate) => self.certificate = certificate.to_vec(),
                Output::Connected => {
                    // The client has received the server's flight at this address.
                    self.credit = None;
                    news = Some(self.connected(around));
                }
                Output::ApplicationData(packet) => {
                    if let Phase::Open(peer) = self.phase {
                        self.used = around.now;
                        self.received = true;
                        self.unanswered = None;
                        deliver(peer, packet);
                    }
                }
                Output::CloseNotify => {
                    news = Some(match (self.is_open(), self.received) {
                        (true, true) => News::Closed,
                        (true, false) => News::Refused(Refusal::ByPeer),
                        (false, _) => News::Failed,
                    });
                    self.close(around);
                }
                Output::Timeout(at) => {
                    let wait = at.saturating_duration_since(around.instant());
                    self.timeout = (wait < NEVER).then(|| around.now + wait);
                    break;
                }
                // The buffer is large enough for any datagram.
                Output::BufferTooSmall { .. } => return self.fail(),
                _ => {}
            }
        }
        if let Some(News::Opened { peer, withheld, dropped }) = &mut news {
            (*withheld, *dropped) = self.send_waiting(around, *peer);
        }
        news
    }

    /// Sends the packets that waited for the handshake, each in a datagram of its own. Returns the
    /// number of packets for another certificate, and of packets that are lost.
    fn send_waiting(&mut self, around: &mut Surroundings<'_>, peer: Fingerprint) -> (u64, u64) {
        let (mut withheld, mut dropped) = (0, 0);
        for (expected, packet) in std::mem::take(&mut self.waiting) {
            if expected.is_some_and(|expected| expected != peer) {
                withheld += 1;
                continue;
            }
            // If `seal` fails, it fails for the next packet too, which closes the connection.
            let mut record = Vec::new();
            let sent =
                self.seal(around, &packet, &mut record) && around.outgoing.push(around.way, record);
            dropped += u64::from(!sent);
        }
        (withheld, dropped)
    }

    /// The handshake is over, and the peer has signed it with the key of its certificate.
    fn connected(&mut self, around: &Surroundings<'_>) -> News {
        match around.trust.judge(&self.certificate) {
            Ok(peer) => {
                self.phase = Phase::Open(peer);
                News::Opened { peer, withheld: 0, dropped: 0 }
            }
            Err(refusal) => {
                // Notify the peer by close_notify.
                let _ = self.dtls.close();
                self.phase = Phase::Over;
                News::Refused(refusal)
            }
        }
    }
}

/// Tries to make a record until its nonce is unused, at most `DRAWS` times.
fn draws(mut made: impl FnMut() -> bool) -> bool {
    (0..DRAWS).any(|_| made())
}
