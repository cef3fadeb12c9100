//! An endpoint, and a peer whose packets are built by hand and may be hostile. The peer reads the
//! endpoint's packets, so that it can be hostile well beyond the handshake, and checks the endpoint
//! after every packet.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use polypath_proto::wire::{
    Checksum, Chunk, Init, InitFields, Packet, PacketWriter, Parameter, ReconfigParameter,
    chunk_type,
};
use polypath_proto::{
    Association, AssociationId, Endpoint, Event, FourTuple, PathState, Seed, Time, Tsn,
    VerificationTag,
};

use super::offers::{MOST_PATHS, Offers, key};
use super::packets::{How, OURS, Sign, ip, last_byte, packet, sign};

const OUR_TAG: u32 = 0x0bad_cafe;
/// Wraps around soon.
const OUR_TSN: u32 = 0xffff_ffe0;
/// Maximum size of a transmission to an unconfirmed path, or twice the last received packet if that
/// is larger: enough for a HEARTBEAT, or an answer.
const LITTLE: usize = 200;

/// Contents of an INIT ACK.
#[derive(Clone, Default)]
struct Offered {
    tag: u32,
    tsn: u32,
    cookie: Vec<u8>,
    key: Option<Vec<u8>>,
}

/// Events that the endpoint has reported.
#[derive(Debug, Default)]
pub struct Told {
    /// Messages that failed.
    pub given_up: usize,
    /// Resets and additions of streams, performed or refused.
    pub reconfigured: usize,
    /// Paths added.
    pub added: usize,
    /// Changes of the endpoint's addresses that the peer has granted.
    pub moved: usize,
    /// Whether data was readable.
    pub readable: bool,
    /// Whether the association was closed.
    pub closed: bool,
}

pub struct Peer {
    pub endpoint: Endpoint,
    pub id: Option<AssociationId>,
    pub now: Time,
    ours: Offers,
    theirs: Offers,
    offered: Option<Offered>,
    /// Of the association: the endpoint's verification tag, and the key.
    pub tag: u32,
    key: Option<Vec<u8>>,
    /// The endpoint's highest TSN, the numbers of its last request and of its last ASCONF.
    pub highest: u32,
    pub their_request: u32,
    pub their_asconf: u32,
    /// Info of its last HEARTBEAT, and the addresses of the answer.
    pub heartbeat: (Vec<u8>, (u8, u8)),
    pub cookie: Vec<u8>,
    /// Next numbers of the peer: TSN, request, ASCONF.
    pub next: u32,
    pub request: u32,
    pub serial: u32,
    /// Packets that the peer has sent, and how.
    pub said: Vec<(Vec<u8>, How)>,
    /// Whether an authenticated packet, or another handshake, followed the first handshake.
    trusted: bool,
    /// Whether data was readable before the last handshake.
    readable_before: bool,
    last_len: usize,
    pub told: Told,
}

impl Peer {
    /// An established association with both sides' offers; `None` if the handshake fails.
    pub fn meet(ours: Offers, theirs: Offers) -> Option<Self> {
        let mut peer = Self {
            endpoint: Endpoint::new(ours.config(), Seed::from_u64(1)),
            id: None,
            now: Time::from_secs(1),
            ours,
            theirs,
            offered: None,
            tag: 0,
            key: None,
            highest: 0,
            their_request: 0,
            their_asconf: 0,
            heartbeat: (Vec::new(), How::GOOD.way),
            cookie: Vec::new(),
            next: OUR_TSN,
            request: OUR_TSN,
            serial: OUR_TSN,
            said: Vec::new(),
            trusted: false,
            readable_before: false,
            last_len: 0,
            told: Told::default(),
        };
        peer.handshake(theirs, 0, How::GOOD);
        peer.trusted = false;
        peer.id.is_some().then_some(peer)
    }

    /// Sends INIT and COOKIE ECHO, also when an association exists.
    pub fn handshake(&mut self, theirs: Offers, other_tag: u8, how: How) {
        let fields = InitFields {
            initiate_tag: VerificationTag(OUR_TAG ^ u32::from(other_tag)),
            a_rwnd: 10_000,
            outbound_streams: 8,
            inbound_streams: 8,
            initial_tsn: Tsn(OUR_TSN),
        };
        self.theirs = theirs;
        self.trusted = true;
        self.readable_before = self.told.readable;
        self.offered = None;
        let init = packet(0, |w| {
            let _ = w.init(&fields, |p| theirs.write(p));
        });
        self.deliver(&init, how, true);
        self.settle();
        let Some(offered) = self.offered.clone() else { return };
        let mut echo = packet(offered.tag, |w| {
            let _ = w.typed_chunk(chunk_type::COOKIE_ECHO, 0, &offered.cookie);
        });
        self.cookie.clone_from(&offered.cookie);
        if let Some(key) = &offered.key {
            sign(&mut echo, key, how.sign);
        }
        self.deliver(&echo, how, true);
        self.said.push((echo, how));
        self.settle();
    }

    /// Sends a packet of the peer.
    pub fn say(&mut self, how: How, chunks: impl FnOnce(&mut PacketWriter<'_>)) {
        let mut bytes = packet([self.tag, OUR_TAG, 0][usize::from(how.tag)], chunks);
        if let Some(key) = &self.key {
            self.trusted |= matches!(how.sign, Sign::Right | Sign::Late);
            sign(&mut bytes, key, how.sign);
        }
        self.deliver(&bytes, how, false);
        self.said.push((bytes, how));
    }

    /// Delivers a packet unchanged, except that its checksum is set if the endpoint needs it.
    pub fn deliver(&mut self, bytes: &[u8], how: How, handshake: bool) {
        let mut bytes = bytes.to_vec();
        let without = self.theirs.has(Offers::ZERO_CHECKSUM) && !handshake;
        if self.ours.has(Offers::CHECKS) && !without && bytes.len() >= 12 {
            let sum = polypath_proto::wire::checksum(&bytes);
            bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        }
        self.last_len = bytes.len();
        let (local, remote) = how.way;
        let address = |last| SocketAddr::new(ip(last), 0);
        let four_tuple = FourTuple { local: address(local), remote: address(remote) };
        self.endpoint.handle_datagram(self.now, four_tuple, how.ecn, &bytes);
    }

    /// The association, with the current time.
    pub fn association(&mut self) -> Option<(Time, &mut Association)> {
        let now = self.now;
        self.id.and_then(|id| self.endpoint.association_mut(id)).map(|a| (now, a))
    }

    pub fn is_established(&self) -> bool {
        let association = self.id.and_then(|id| self.endpoint.association(id));
        association.is_some_and(Association::is_established)
    }

    pub fn wait(&mut self, long: Duration) {
        let end = self.now + long;
        let mut times = 0;
        self.last_len = 0;
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            self.settle();
            times += 1;
            assert!(times < 10_000, "timers without end");
        }
        self.now = end;
    }

    /// Takes the endpoint's packets and events, and checks its state.
    pub fn settle(&mut self) {
        let mut buf = vec![0; 70_000];
        let mut packets = 0;
        while let Some(transmit) = self.endpoint.poll_transmit(self.now, &mut buf) {
            packets += 1;
            assert!(packets < 1_000, "one packet makes it say a thousand");
            let path = transmit
                .path
                .and_then(|(id, path)| self.endpoint.association(id).and_then(|a| a.path(path)));
            if path.is_some_and(|p| p.state == PathState::Unconfirmed) {
                let most = LITTLE.max(2 * self.last_len);
                assert!(transmit.size <= most, "{} to who has not been asked", transmit.size);
            }
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            let back = (last_byte(transmit.source), last_byte(transmit.destination.ip()));
            for bytes in buf[..transmit.size].chunks(segment) {
                let packet = Packet::parse(bytes, Checksum::Ignore);
                for chunk in packet.expect("what it sends are packets").chunks() {
                    self.hear(&chunk.expect("and in them chunks"), back);
                }
            }
        }
        let mut events = 0;
        while let Some((id, event)) = self.endpoint.poll_event() {
            events += 1;
            assert!(events < 5_000, "events without end");
            match event {
                Event::Established { .. } => self.id = Some(id),
                Event::SendFailed { .. } => self.told.given_up += 1,
                Event::StreamsReset { .. }
                | Event::AssociationReset { .. }
                | Event::StreamsAdded { .. } => self.told.reconfigured += 1,
                Event::PathAdded { .. } => self.told.added += 1,
                Event::LocalAddress { granted, .. } => self.told.moved += usize::from(granted),
                Event::Readable => self.told.readable = true,
                Event::Closed { .. } => self.told.closed = true,
                _ => {}
            }
        }
        self.check();
    }

    /// Checks the invariants that hold whatever the peer has sent.
    fn check(&self) {
        self.endpoint.check_invariants().expect("all is as it should be");
        let association = self.id.and_then(|id| self.endpoint.association(id));
        let Some(association) = association else { return };
        let paths = association.paths().filter(|p| p.state != PathState::Removed);
        let remotes: Vec<IpAddr> = paths.map(|p| p.remote).collect();
        assert!((1..=MOST_PATHS.into()).contains(&remotes.len()), "{} paths", remotes.len());
        let authenticates = self.key.is_some() && !self.trusted;
        if authenticates && self.theirs.has(Offers::LISTED) {
            let known = |remote| OURS.map(ip).contains(remote);
            assert!(remotes.iter().all(known), "a stranger is a path: {remotes:?}");
        }
        let deaf = self.ours.has(Offers::CHECKS)
            && !self.ours.has(Offers::ZERO_CHECKSUM)
            && self.theirs.has(Offers::ZERO_CHECKSUM);
        if deaf || (authenticates && self.ours.has(Offers::DEMANDS)) {
            assert!(!self.told.readable || self.readable_before, "data of a stranger");
        }
    }

    fn hear(&mut self, chunk: &Chunk<'_>, back: (u8, u8)) {
        match chunk {
            Chunk::Data(data) => self.has_sent(data.tsn),
            Chunk::IData(data) => self.has_sent(data.tsn),
            Chunk::Heartbeat(heartbeat) => {
                let mut info = vec![0, 1, 0, 4 + heartbeat.info.len() as u8];
                info.extend(heartbeat.info);
                self.heartbeat = (info, back);
            }
            Chunk::InitAck(init) => self.offered = Some(self.understand(init)),
            Chunk::CookieAck => self.begin(),
            Chunk::ReConfig(chunk) => {
                for parameter in chunk.parameters.iter().flatten() {
                    if let Some(number) = parameter.request() {
                        self.their_request = number;
                    }
                    if let ReconfigParameter::Response { next_tsns: Some((theirs, ours)), .. } =
                        parameter
                    {
                        (self.highest, self.next) = (theirs.prev().0, ours.0);
                    }
                }
            }
            Chunk::Asconf(asconf) => self.their_asconf = asconf.serial,
            Chunk::AsconfAck(ack) if ack.serial == self.serial => {
                self.serial = self.serial.wrapping_add(1);
            }
            _ => {}
        }
    }

    fn has_sent(&mut self, tsn: Tsn) {
        if tsn.is_after(Tsn(self.highest)) {
            self.highest = tsn.0;
        }
    }

    fn understand(&self, init: &Init<'_>) -> Offered {
        let (mut random, mut asked, mut hmacs) = (None, None, None);
        let mut offered =
            Offered { tag: init.initiate_tag.0, tsn: init.initial_tsn.0, ..Offered::default() };
        for parameter in init.parameters.iter().flatten() {
            match parameter {
                Parameter::StateCookie(cookie) => offered.cookie = cookie.to_vec(),
                Parameter::Random(bytes) => random = Some(bytes),
                Parameter::ChunkList(types) => asked = Some(types),
                Parameter::HmacAlgorithms(list) => hmacs = Some(list.iter().collect::<Vec<_>>()),
                _ => {}
            }
        }
        if let (Some(random), Some(hmacs)) = (random, hmacs)
            && self.theirs.has(Offers::AUTHENTICATION)
        {
            offered.key = Some(key(random, asked, &hmacs));
        }
        offered
    }

    /// The endpoint has accepted the cookie: use its tag, keys and numbers.
    fn begin(&mut self) {
        let Some(offered) = self.offered.take() else { return };
        (self.tag, self.key) = (offered.tag, offered.key);
        (self.next, self.request, self.serial) = (OUR_TSN, OUR_TSN, OUR_TSN);
        self.highest = offered.tsn.wrapping_sub(1);
        (self.their_request, self.their_asconf) = (self.highest, self.highest);
    }
}
