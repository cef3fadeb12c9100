//! One connection of DTLS, on one way.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use dimpl::{Dtls, Error, Output, ProtocolVersion, SecurityError};
use polypath_proto::{FourTuple, Time};

use crate::fingerprint::Fingerprint;
use crate::hello::{self, ClientHello};
use crate::marks::Marks;
use crate::trust::{Refusal, Trust};
use crate::version::Version;

/// SCTP packets that wait for the handshake; SCTP sends again what is dropped.
const WAITING: usize = 8;
/// `dimpl` has to be told the time before it does something; so often is enough where nothing waits.
const TICK: Duration = Duration::from_millis(10);
/// With AES-GCM in DTLS 1.2, a nonce that may have been used is drawn again (`crypto/nonces.rs`): every second one
/// at the worst, as long as the key may be used.
const DRAWS: usize = 64;
/// Records of a key, at most: 2^24.5 (RFC 9147 4.5.3 for AES-GCM).
const MOST: u64 = 23_726_566;
/// What a record of data begins with in DTLS 1.2.
const APPLICATION_DATA: u8 = 23;
/// Timeouts beyond it are none.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In the handshake.
    Opening,
    /// Between this host and who has this certificate.
    Open(Fingerprint),
    /// Of no use any more.
    Over,
}

/// What has become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Between this host and `peer`; so many packets that waited were for somebody else.
    Opened {
        peer: Fingerprint,
        withheld: u64,
    },
    Refused(Refusal),
    /// The peer has closed it, or it has failed.
    Ended,
}

pub(crate) struct Connection {
    dtls: Dtls,
    /// Whether this side has begun.
    pub(crate) client: bool,
    /// The client's random number, which tells attempts apart.
    pub(crate) random: Option<[u8; 32]>,
    phase: Phase,
    certificate: Vec<u8>,
    /// Packets, each with whom it is for, if that is known.
    waiting: Vec<(Option<Fingerprint>, Vec<u8>)>,
    /// When `dimpl` wants to be called.
    pub(crate) timeout: Option<Time>,
    told: Time,
    /// When something went or came last that was encrypted.
    pub(crate) used: Time,
    /// Records that were sent with packets.
    pub(crate) sealed: u64,
    pub(crate) marks: Marks,
    /// Since when packets have gone and none has come.
    unanswered: Option<Time>,
    /// Something has come from the peer; something that was encrypted for SCTP.
    pub(crate) heard: bool,
    received: bool,
}

/// What connections share: where they read and write, and whom they trust.
pub(crate) struct Surroundings<'a> {
    pub(crate) now: Time,
    pub(crate) origin: Instant,
    pub(crate) way: FourTuple,
    pub(crate) trust: &'a Trust,
    pub(crate) minimum: Version,
    pub(crate) scratch: &'a mut [u8],
    pub(crate) outgoing: &'a mut VecDeque<(FourTuple, Vec<u8>)>,
}

impl Surroundings<'_> {
    fn instant(&self) -> Instant {
        self.origin + self.now.since(Time::ZERO)
    }
}

/// Takes what SCTP gets: packets, and whom they are from.
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

    /// The version that both speak, once that is known.
    pub(crate) fn version(&self) -> Option<Version> {
        match self.dtls.protocol_version()? {
            ProtocolVersion::DTLS1_2 => Some(Version::Dtls12),
            _ => Some(Version::Dtls13),
        }
    }

    /// Tells the time, which makes a client begin.
    pub(crate) fn tick(
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

    /// A datagram that may be for this connection. What is not, or is damaged or repeated, leaves no
    /// trace (RFC 9147 4.5.1, 4.5.2).
    pub(crate) fn receive(
        &mut self,
        around: &mut Surroundings<'_>,
        datagram: &[u8],
        deliver: &mut Deliver<'_>,
    ) -> Option<News> {
        if !self.is_open() {
            // Of the connection that this one may replace.
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
        if !self.is_open() || around.now.since(self.told) >= TICK {
            self.told = around.now;
            if self.dtls.handle_timeout(around.instant()).is_err() {
                return self.fail();
            }
        }
        match self.dtls.handle_packet(datagram) {
            Ok(()) => self.heard = true,
            // Not an answer to the hello that is for both versions.
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

    /// Encrypts a packet into a record of its own, behind what `out` holds; false if that failed.
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
        // Everything else has been polled: the first one is this one's.
        let Output::Packet(record) = self.dtls.poll_output(around.scratch) else { return false };
        out.extend_from_slice(record);
        self.marks.note(record);
        self.used = around.now;
        self.sealed += 1;
        self.unanswered.get_or_insert(around.now);
        self.poll(around, &mut |_, _| {}).is_none()
    }

    /// An ICMP message that quotes this was caused by a record of this connection: a large record of
    /// data, or the client's hello.
    pub(crate) fn has_sent(&self, quoted: &[u8]) -> bool {
        let hello =
            self.client && self.random.is_some() && hello::quoted_random(quoted) == self.random;
        hello || self.marks.know(quoted)
    }

    /// Packets have gone for so long, and none has come.
    pub(crate) fn is_mute(&self, now: Time, time: Duration) -> bool {
        self.unanswered.is_some_and(|since| now.since(since) >= time)
    }

    /// Keeps a packet until the handshake is over; false if there are too many.
    pub(crate) fn wait(&mut self, expected: Option<Fingerprint>, packet: &[u8]) -> bool {
        let room = self.waiting.len() < WAITING;
        if room {
            self.waiting.push((expected, packet.to_vec()));
        }
        room
    }

    /// Takes over what waits for another one.
    pub(crate) fn inherit(&mut self, other: &mut Self) {
        self.waiting.append(&mut other.waiting);
        self.waiting.truncate(WAITING);
    }

    /// Says goodbye (close_notify).
    pub(crate) fn close(&mut self, around: &mut Surroundings<'_>) {
        if self.is_open() && draws(|| self.dtls.close().is_ok()) {
            self.poll(around, &mut |_, _| {});
        }
        self.phase = Phase::Over;
    }

    const fn fail(&mut self) -> Option<News> {
        self.phase = Phase::Over;
        Some(News::Ended)
    }

    /// Passes on all that `dimpl` has to say.
    fn poll(&mut self, around: &mut Surroundings<'_>, deliver: &mut Deliver<'_>) -> Option<News> {
        let mut news = None;
        loop {
            match self.dtls.poll_output(around.scratch) {
                Output::Packet(packet) => {
                    if self.client && self.random.is_none() {
                        self.random = ClientHello::parse(packet).map(|hello| hello.random);
                    }
                    around.outgoing.push_back((around.way, packet.to_vec()));
                }
                Output::PeerCert(certificate) => self.certificate = certificate.to_vec(),
                Output::Connected => news = Some(self.connected(around)),
                Output::ApplicationData(packet) => {
                    if let Phase::Open(peer) = self.phase {
                        self.used = around.now;
                        self.received = true;
                        self.unanswered = None;
                        deliver(peer, packet);
                    }
                }
                Output::CloseNotify => {
                    let refused = self.is_open() && !self.received;
                    news = Some(if refused { News::Refused(Refusal::ByPeer) } else { News::Ended });
                    self.close(around);
                }
                Output::Timeout(at) => {
                    let wait = at.saturating_duration_since(around.instant());
                    self.timeout = (wait < NEVER).then(|| around.now + wait);
                    return news;
                }
                // The buffer holds whatever a datagram can have.
                Output::BufferTooSmall { .. } => return self.fail(),
                _ => {}
            }
        }
    }

    /// The handshake is over, and the peer has signed it with the key of its certificate.
    fn connected(&mut self, around: &Surroundings<'_>) -> News {
        match around.trust.judge(&self.certificate) {
            Ok(peer) => {
                self.phase = Phase::Open(peer);
                let mut withheld = 0;
                for (expected, packet) in std::mem::take(&mut self.waiting) {
                    if expected.is_none_or(|expected| expected == peer) {
                        // If it fails, the connection does, and is found out with the next packet.
                        draws(|| self.dtls.send_application_data(&packet).is_ok());
                    } else {
                        withheld += 1;
                    }
                }
                News::Opened { peer, withheld }
            }
            Err(refusal) => {
                // The peer learns of it.
                let _ = self.dtls.close();
                self.phase = Phase::Over;
                News::Refused(refusal)
            }
        }
    }
}

/// Tries to make a record, until its nonce is a new one.
fn draws(mut made: impl FnMut() -> bool) -> bool {
    (0..DRAWS).any(|_| made())
}
