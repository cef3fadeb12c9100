//! An endpoint, and a peer made of packets that are built by hand: it may be as hostile as it likes. It hears what the
//! endpoint sends, so that it can be hostile well beyond the handshake, and looks after every packet whether
//! what the endpoint does is as it should be.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use polypath_proto::policy::{ack, rtt_sampling, scheduler};
use polypath_proto::wire::{
    Checksum, Chunk, CommonHeader, Init, InitFields, Packet, PacketWriter, Parameter,
    ParameterWriter, ReconfigParameter, chunk_type, hmac_id, parameter_type,
};
use polypath_proto::{
    Association, AssociationId, ChunkTypes, Config, Ecn, Encapsulation, Endpoint, EndpointConfig,
    Event, FourTuple, PathState, Seed, Time, Tsn, VerificationTag,
};

use super::Input;

const PORT: u16 = 5000;
const OUR_TAG: u32 = 0x0bad_cafe;
/// Comes around soon.
const OUR_TSN: u32 = 0xffff_ffe0;
const MOST_PATHS: u8 = 5;
/// What a path that has not been confirmed may get in a packet, if it has not sent more itself: a
/// HEARTBEAT, or an answer.
const LITTLE: usize = 200;
/// Our addresses, and those of the endpoint.
pub const OURS: [u8; 2] = [100, 101];
pub const THEIRS: [u8; 2] = [1, 2];

/// What a side offers, a bit each. Some say how the endpoint is set up, or what the peer lists.
#[derive(Clone, Copy)]
pub struct Offers(pub u16);

impl Offers {
    pub const INTERLEAVING: u16 = 1;
    pub const PARTIAL_RELIABILITY: u16 = 2;
    pub const RECONFIGURATION: u16 = 4;
    pub const ECN: u16 = 8;
    /// The endpoint looks for the path MTU.
    pub const PATH_MTU: u16 = 16;
    /// The endpoint's receive buffer is small.
    pub const SMALL: u16 = 32;
    pub const NR_SACK: u16 = 64;
    pub const TIMESTAMPS: u16 = 128;
    pub const RETRANSMISSION_FLAG: u16 = 256;
    /// Delayed acknowledgements for CMT; the endpoint uses all paths at once.
    pub const PACKET_COUNT: u16 = 512;
    pub const ZERO_CHECKSUM: u16 = 1024;
    pub const AUTHENTICATION: u16 = 2048;
    /// The endpoint takes all that can be authenticated only so.
    pub const DEMANDS: u16 = 4096;
    pub const ADDRESSES: u16 = 8192;
    /// The peer lists both of its addresses.
    pub const LISTED: u16 = 16_384;
    /// The endpoint needs a checksum in its packets.
    pub const CHECKS: u16 = 32_768;

    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits == bits
    }

    fn config(self) -> EndpointConfig {
        let mut config = Config::builder()
            .interleaving(self.has(Self::INTERLEAVING))
            .partial_reliability(self.has(Self::PARTIAL_RELIABILITY))
            .stream_reconfiguration(self.has(Self::RECONFIGURATION))
            .ecn(self.has(Self::ECN))
            .path_mtu_discovery(self.has(Self::PATH_MTU))
            .nr_sack(self.has(Self::NR_SACK))
            .authentication(self.has(Self::AUTHENTICATION))
            .dynamic_addresses(self.has(Self::ADDRESSES))
            .unauthenticated_addresses(!self.has(Self::AUTHENTICATION))
            .max_paths(MOST_PATHS)
            .receive_buffer(if self.has(Self::SMALL) { 3_000 } else { 20_000 })
            .send_buffer(20_000)
            .inbound_streams(8)
            .outbound_streams(8);
        if self.has(Self::TIMESTAMPS) {
            config = config.rtt_sampling(&rtt_sampling::TIMESTAMPS);
        } else if self.has(Self::RETRANSMISSION_FLAG) {
            config = config.rtt_sampling(&rtt_sampling::RETRANSMISSION_FLAG);
        }
        if self.has(Self::PACKET_COUNT) {
            config = config.ack(&ack::DELAYED_CMT).scheduler(&scheduler::CONCURRENT);
        }
        if self.has(Self::DEMANDS) {
            let all: Vec<u8> = (0..=u8::MAX).collect();
            config = config.authenticated_chunks(ChunkTypes::authenticated(&all));
        }
        EndpointConfig {
            listen: true,
            association: config.build().expect("a sound configuration"),
            zero_checksum: self.has(Self::ZERO_CHECKSUM),
            checksum: if self.has(Self::CHECKS) { Checksum::Verify } else { Checksum::Ignore },
            ..EndpointConfig::new(PORT, THEIRS.map(ip).to_vec(), Encapsulation::RawIp)
        }
    }

    /// What the peer's INIT has.
    fn write(self, p: &mut ParameterWriter<'_>) -> Result<(), polypath_proto::wire::DoesNotFit> {
        let types = [
            (Self::INTERLEAVING, chunk_type::I_DATA),
            (Self::PARTIAL_RELIABILITY, chunk_type::FORWARD_TSN),
            (Self::INTERLEAVING | Self::PARTIAL_RELIABILITY, chunk_type::I_FORWARD_TSN),
            (Self::RECONFIGURATION, chunk_type::RE_CONFIG),
            (Self::NR_SACK, chunk_type::NR_SACK),
            (Self::AUTHENTICATION, chunk_type::AUTH),
            (Self::ADDRESSES, chunk_type::ASCONF),
            (Self::ADDRESSES, chunk_type::ASCONF_ACK),
        ];
        let types: Vec<u8> =
            types.iter().filter(|(bits, _)| self.has(*bits)).map(|t| t.1).collect();
        p.supported_extensions(&types)?;
        if self.has(Self::LISTED) {
            OURS.into_iter().try_for_each(|last| p.address(ip(last)))?;
        }
        if self.has(Self::ECN) {
            p.ecn_capable()?;
        }
        if self.has(Self::TIMESTAMPS) {
            p.timestamps()?;
        }
        if self.has(Self::RETRANSMISSION_FLAG) {
            p.retransmission_flag()?;
        }
        if self.has(Self::PACKET_COUNT) {
            p.packet_count()?;
        }
        if self.has(Self::ZERO_CHECKSUM) {
            // RFC 9653 7.2: SCTP over DTLS.
            p.zero_checksum_acceptable(1)?;
        }
        if self.has(Self::AUTHENTICATION) {
            p.random(&RANDOM)?;
            p.chunk_list(&ASKED)?;
            p.hmac_algorithms(&HMACS)?;
        }
        Ok(())
    }
}

/// What we say of authentication (RFC 4895 3).
const RANDOM: [u8; 32] = [7; 32];
const ASKED: [u8; 2] = [chunk_type::ASCONF, chunk_type::ASCONF_ACK];
const HMACS: [u16; 2] = [hmac_id::SHA_256, hmac_id::SHA_1];

/// RFC 4895 6.1: the parameters one after the other, without padding.
fn key_vector(random: &[u8], asked: Option<&[u8]>, hmacs: &[u16]) -> Vec<u8> {
    let hmacs: Vec<u8> = hmacs.iter().flat_map(|id| id.to_be_bytes()).collect();
    let mut vector = Vec::new();
    for (ty, value) in [
        (parameter_type::RANDOM, Some(random)),
        (parameter_type::CHUNK_LIST, asked),
        (parameter_type::HMAC_ALGORITHMS, Some(&hmacs)),
    ] {
        let Some(value) = value else { continue };
        vector.extend(ty.to_be_bytes());
        vector.extend((4 + value.len() as u16).to_be_bytes());
        vector.extend(value);
    }
    vector
}

/// The address that ends so; some are none of a host.
pub fn ip(last: u8) -> IpAddr {
    match last {
        0 => IpAddr::from([0, 0, 0, 0]),
        255 => IpAddr::from([0u16; 8]),
        250 => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]),
        251 => IpAddr::from([224, 0, 0, 1]),
        _ => IpAddr::from([10, 0, 0, last]),
    }
}

/// Whether a packet of ours is authenticated, where both sides have offered that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Right,
    Not,
    /// With a code that is wrong.
    Wrong,
    /// The AUTH chunk stands behind the first chunk.
    Late,
}

/// How a packet of ours is said.
#[derive(Clone, Copy)]
pub struct How {
    pub sign: Sign,
    /// Which tag it has: the right one, ours, none.
    pub tag: u8,
    /// The last byte of the address that it goes to, and of that which it comes from.
    pub way: (u8, u8),
    pub ecn: Ecn,
}

impl How {
    /// As it should be.
    pub const GOOD: Self =
        Self { sign: Sign::Right, tag: 0, way: (THEIRS[0], OURS[0]), ecn: Ecn::NotEct };

    pub fn read(input: &mut Input<'_>) -> Self {
        let how = input.byte();
        let sign = [Sign::Right, Sign::Not, Sign::Wrong, Sign::Late][usize::from(how % 4)];
        let tag = (how >> 2 & 3).saturating_sub(1);
        let from = match how >> 4 & 3 {
            3 => input.byte(),
            2 => OURS[1],
            _ => OURS[0],
        };
        let way = (THEIRS[usize::from(how >> 6 & 1)], from);
        Self { sign, tag, way, ecn: if how >= 128 { Ecn::Ce } else { Ecn::Ect0 } }
    }
}

/// What an INIT ACK offers.
#[derive(Clone, Default)]
struct Offered {
    tag: u32,
    tsn: u32,
    cookie: Vec<u8>,
    key: Option<Vec<u8>>,
}

/// What the endpoint has told by events.
#[derive(Debug, Default)]
pub struct Told {
    /// Messages given up.
    pub given_up: usize,
    /// Resets and additions of streams, performed or refused.
    pub reconfigured: usize,
    /// Paths added.
    pub added: usize,
    /// Changes of its addresses to which we have agreed.
    pub moved: usize,
    /// There was something to read.
    pub readable: bool,
    /// The association is over.
    pub closed: bool,
}

pub struct Peer {
    pub endpoint: Endpoint,
    pub id: Option<AssociationId>,
    pub now: Time,
    ours: Offers,
    theirs: Offers,
    offered: Option<Offered>,
    /// Of the association: the endpoint's tag, the keys.
    pub tag: u32,
    key: Option<Vec<u8>>,
    /// The endpoint's highest TSN, the numbers of its last request and of its last ASCONF.
    pub highest: u32,
    pub their_request: u32,
    pub their_asconf: u32,
    /// Of its last HEARTBEAT, and the way back.
    pub heartbeat: (Vec<u8>, (u8, u8)),
    pub cookie: Vec<u8>,
    /// Our next TSN, request, ASCONF.
    pub next: u32,
    pub request: u32,
    pub serial: u32,
    /// What we have said, and how it came.
    pub said: Vec<(Vec<u8>, How)>,
    /// Something was authenticated since the handshake, or there has been another handshake.
    trusted: bool,
    last_len: usize,
    pub told: Told,
}

impl Peer {
    /// An association with both sides' offers; none if they do not come together.
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
            last_len: 0,
            told: Told::default(),
        };
        peer.handshake(theirs, 0, How::GOOD);
        peer.trusted = false;
        peer.id.is_some().then_some(peer)
    }

    /// INIT and COOKIE ECHO, also where there is an association already.
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

    /// A packet from us.
    pub fn say(&mut self, how: How, chunks: impl FnOnce(&mut PacketWriter<'_>)) {
        let mut bytes = packet([self.tag, OUR_TAG, 0][usize::from(how.tag)], chunks);
        if let Some(key) = &self.key {
            self.trusted |= matches!(how.sign, Sign::Right | Sign::Late);
            sign(&mut bytes, key, how.sign);
        }
        self.deliver(&bytes, how, false);
        self.said.push((bytes, how));
    }

    /// The packet comes as it is, but for its checksum.
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

    /// The association, with the time.
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

    /// Takes what the endpoint says and tells, and looks at what it holds.
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

    /// What must hold at any time, whatever the peer has said.
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
            assert!(!self.told.readable, "data of a stranger");
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
            let ours = key_vector(&RANDOM, Some(&ASKED), &HMACS);
            let mut vectors = [ours, key_vector(random, asked, &hmacs)];
            vectors.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            offered.key = Some(vectors.concat());
        }
        offered
    }

    /// The endpoint has taken the cookie.
    fn begin(&mut self) {
        let Some(offered) = self.offered.take() else { return };
        (self.tag, self.key) = (offered.tag, offered.key);
        (self.next, self.request, self.serial) = (OUR_TSN, OUR_TSN, OUR_TSN);
        self.highest = offered.tsn.wrapping_sub(1);
        (self.their_request, self.their_asconf) = (self.highest, self.highest);
    }
}

/// What [`ip`] made the address of.
fn last_byte(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(ip) => ip.octets()[3],
        IpAddr::V6(ip) => {
            if ip.is_unspecified() {
                255
            } else {
                250
            }
        }
    }
}

fn packet(tag: u32, chunks: impl FnOnce(&mut PacketWriter<'_>)) -> Vec<u8> {
    let header = CommonHeader {
        source_port: PORT,
        destination_port: PORT,
        verification_tag: VerificationTag(tag),
    };
    let mut buf = vec![0; 2_000];
    let mut w = PacketWriter::new(&mut buf, header);
    chunks(&mut w);
    let len = w.finish(Checksum::Ignore);
    buf.truncate(len);
    buf
}

/// Puts an AUTH chunk with the default key, number 0, into a packet (RFC 4895 6.2).
fn sign(packet: &mut Vec<u8>, key: &[u8], how: Sign) {
    const LEN: usize = 40;
    let at = match packet.get(14..16) {
        Some(len) if how == Sign::Late => {
            12 + usize::from(u16::from_be_bytes([len[0], len[1]])).next_multiple_of(4)
        }
        _ => 12,
    };
    if how == Sign::Not || at > packet.len() {
        return;
    }
    let mut chunk = vec![chunk_type::AUTH, 0, 0, LEN as u8, 0, 0, 0, hmac_id::SHA_256 as u8];
    chunk.resize(LEN, 0);
    packet.splice(at..at, chunk);
    let mac = Hmac::<sha2::Sha256>::new_from_slice(key).expect("keys may have any length");
    let code = mac.chain_update(&packet[at..]).finalize().into_bytes();
    packet[at + 8..at + LEN].copy_from_slice(&code);
    if how == Sign::Wrong {
        packet[at + 8] ^= 1;
    }
}
