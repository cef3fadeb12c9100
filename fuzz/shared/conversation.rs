//! A conversation with an endpoint whose peer is the input: chunks of extensions and others, in any order,
//! cut off, repeated, out of place, beside what an application does. Nothing may panic, what
//! is held stays bounded and consistent, and every answer is a packet.
//!
//! The first byte says what is offered by the endpoint, the second one what by the peer. Each further step
//! is a byte for its kind, and what that takes. Numbers that have to be near others to mean anything
//! (TSNs, streams, requests) are moved there, unless the input wants them as they are.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use polypath_proto::wire::{
    Checksum, Chunk, CommonHeader, InitFields, Packet, PacketWriter, chunk_type,
};
use polypath_proto::{
    AssociationId, Config, Ecn, Encapsulation, Endpoint, EndpointConfig, Event, FourTuple, Message,
    Reliability, Seed, StreamId, StreamReset, Time, Tsn, VerificationTag,
};

const PORT: u16 = 5000;
const OUR_TAG: u32 = 0x0bad_cafe;
/// Comes around soon.
const OUR_TSN: u32 = 0xffff_ffe0;

/// What the peer says most.
const KINDS: [u8; 16] = [
    chunk_type::DATA,
    chunk_type::I_DATA,
    chunk_type::SACK,
    chunk_type::FORWARD_TSN,
    chunk_type::I_FORWARD_TSN,
    chunk_type::RE_CONFIG,
    chunk_type::PAD,
    chunk_type::ECNE,
    chunk_type::CWR,
    chunk_type::HEARTBEAT,
    chunk_type::HEARTBEAT_ACK,
    chunk_type::TIMESTAMP,
    chunk_type::SHUTDOWN,
    chunk_type::ERROR,
    chunk_type::COOKIE_ACK,
    chunk_type::INIT,
];

/// What a conversation came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Kinds of chunks said while the association was established.
    pub(crate) said: BTreeSet<u8>,
    /// Messages, or pieces of them, that the application got.
    pub(crate) received: usize,
    /// Messages given up, resets and additions performed.
    pub(crate) given_up: usize,
    pub(crate) reconfigured: usize,
    /// The association is over.
    pub(crate) closed: bool,
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

struct Conversation {
    endpoint: Endpoint,
    id: Option<AssociationId>,
    now: Time,
    four_tuple: FourTuple,
    /// Of the endpoint.
    tag: VerificationTag,
    first: u32,
    /// Its highest TSN, and what its last heartbeat and its INIT ACK had.
    highest: u32,
    heartbeat: Vec<u8>,
    cookie: Vec<u8>,
    /// Our next TSN and request.
    next: u32,
    request: u32,
    said: Vec<Vec<u8>>,
    outcome: Outcome,
}

/// Has the conversation that the input tells.
pub(crate) fn converse(input: &[u8]) -> Outcome {
    let mut input = Input(input);
    let (ours, theirs) = (input.byte(), input.byte());
    let Some(mut talk) = Conversation::begin(ours, theirs) else { return Outcome::default() };
    while !input.0.is_empty() {
        talk.step(&mut input);
        talk.settle();
    }
    talk.wait(Duration::from_secs(30));
    talk.outcome
}

fn config(offers: u8) -> Config {
    let config = Config::builder()
        .interleaving(offers & 1 > 0)
        .partial_reliability(offers & 2 > 0)
        .stream_reconfiguration(offers & 4 > 0)
        .ecn(offers & 8 > 0)
        .path_mtu_discovery(offers & 16 > 0)
        .receive_buffer(if offers & 32 > 0 { 3_000 } else { 20_000 })
        .send_buffer(20_000)
        .inbound_streams(8)
        .outbound_streams(8);
    config.build().expect("a sound configuration")
}

impl Conversation {
    fn begin(ours: u8, theirs: u8) -> Option<Self> {
        let ip = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let mut settings = EndpointConfig::new(PORT, vec![ip(1)], Encapsulation::RawIp);
        settings.listen = true;
        settings.checksum = Checksum::Ignore;
        settings.association = config(ours);
        let mut talk = Self {
            endpoint: Endpoint::new(settings, Seed::from_u64(1)),
            id: None,
            now: Time::from_secs(1),
            four_tuple: FourTuple { local: (ip(1), 0).into(), remote: (ip(2), 0).into() },
            tag: VerificationTag(0),
            first: 0,
            highest: 0,
            heartbeat: Vec::new(),
            cookie: Vec::new(),
            next: OUR_TSN,
            request: OUR_TSN,
            said: Vec::new(),
            outcome: Outcome::default(),
        };
        let fields = InitFields {
            initiate_tag: VerificationTag(OUR_TAG),
            a_rwnd: 10_000,
            outbound_streams: 8,
            inbound_streams: 8,
            initial_tsn: Tsn(OUR_TSN),
        };
        let types = [(1, 64), (2, 192), (4, 130), (3, 194)];
        let types: Vec<u8> =
            types.iter().filter(|(bits, _)| theirs & bits == *bits).map(|t| t.1).collect();
        talk.say(|w| {
            let _ = w.init(&fields, |p| {
                p.supported_extensions(&types)?;
                if theirs & 8 > 0 { p.ecn_capable() } else { Ok(()) }
            });
        });
        talk.settle();
        let cookie = std::mem::take(&mut talk.cookie);
        talk.say(|w| {
            let _ = w.typed_chunk(chunk_type::COOKIE_ECHO, 0, &cookie);
        });
        talk.settle();
        talk.id.is_some().then_some(talk)
    }

    /// A packet from us.
    fn say(&mut self, chunks: impl FnOnce(&mut PacketWriter<'_>)) {
        let header =
            CommonHeader { source_port: PORT, destination_port: PORT, verification_tag: self.tag };
        let mut buf = vec![0; 2_000];
        let mut w = PacketWriter::new(&mut buf, header);
        chunks(&mut w);
        let len = w.finish(Checksum::Ignore);
        buf.truncate(len);
        self.deliver(&buf, Ecn::NotEct);
        self.said.push(buf);
    }

    fn deliver(&mut self, bytes: &[u8], ecn: Ecn) {
        self.endpoint.handle_datagram(self.now, self.four_tuple, ecn, bytes);
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let kind = input.byte();
        match kind % 16 {
            0..=7 => {
                let chunks: Vec<(u8, u8, Vec<u8>)> =
                    (0..=kind / 16 % 4).map(|_| self.chunk(input)).collect();
                self.say(|w| {
                    for (ty, flags, value) in chunks {
                        let _ = w.typed_chunk(ty, flags, &value);
                    }
                });
            }
            // Once more, as it was, or cut off.
            8 | 9 => {
                let (which, at) = (input.byte(), input.byte());
                let again = self.said[usize::from(which) % self.said.len()].clone();
                let len = if kind % 16 == 8 { again.len() } else { usize::from(at) % again.len() };
                self.deliver(&again[..len], if kind >= 128 { Ecn::Ce } else { Ecn::Ect0 });
            }
            10 => self.wait(Duration::from_millis(u64::from(input.byte()) * 20)),
            11 => {
                // All that the endpoint has sent has come.
                let mut value = self.highest.to_be_bytes().to_vec();
                value.extend([0, 0, 0x27, 0x10, 0, 0, 0, 0]);
                self.say(|w| {
                    let _ = w.typed_chunk(chunk_type::SACK, 0, &value);
                });
            }
            12 => {
                let info = self.heartbeat.clone();
                self.say(|w| {
                    let _ = w.typed_chunk(chunk_type::HEARTBEAT_ACK, 0, &info);
                });
            }
            _ => self.act(kind, input),
        }
    }

    /// A chunk of the peer: type, flags, value.
    fn chunk(&mut self, input: &mut Input<'_>) -> (u8, u8, Vec<u8>) {
        let (kind, flags, len) = (input.byte(), input.byte(), input.byte());
        let ty = KINDS[usize::from(kind) % 16];
        let wild = kind & 0x80 > 0;
        let carries = matches!(ty, chunk_type::DATA | chunk_type::I_DATA);
        let least = if carries && !wild { 17 } else { 0 };
        let mut value = input.take(usize::from(len) % 80).to_vec();
        if value.len() < least {
            value.resize(least, len);
        }
        let base = match ty {
            chunk_type::SACK | chunk_type::ECNE | chunk_type::SHUTDOWN => self.highest,
            chunk_type::RE_CONFIG => {
                if !wild && value.len() >= 8 {
                    let response = value[1] % 6 == 3;
                    let (len, kind) = (value.len() as u16, 13 + value[1] % 6);
                    value[0..4].copy_from_slice(&[0, kind, (len >> 8) as u8, len as u8]);
                    let base = if response { self.first } else { self.request };
                    self.request = self.request.wrapping_add(u32::from(!response));
                    near(&mut value[4..], base);
                    if value.len() >= 16 && kind == 13 {
                        near(&mut value[12..], self.next.wrapping_sub(1));
                    }
                }
                0
            }
            _ => self.next,
        };
        if ty != chunk_type::RE_CONFIG {
            let moved = near(&mut value, base);
            if carries && moved == Some(0) {
                self.next = self.next.wrapping_add(1);
            }
        }
        if !wild {
            let small: &[usize] = match ty {
                chunk_type::DATA => &[4, 6],
                chunk_type::I_DATA if flags & 2 > 0 => &[4, 10],
                chunk_type::I_DATA => &[4, 10, 14],
                chunk_type::FORWARD_TSN => &[4, 6],
                chunk_type::I_FORWARD_TSN => &[4, 10],
                _ => &[],
            };
            for at in small {
                if let Some([high, low]) = value.get_mut(*at..at + 2) {
                    (*high, *low) = (0, *low % 4);
                }
            }
            if ty == chunk_type::I_DATA {
                value[8..10].fill(0);
                if flags & 2 == 0 {
                    value[12..14].fill(0);
                }
            }
        }
        if self.is_established() {
            self.outcome.said.insert(ty);
        }
        (ty, flags, value)
    }

    /// What the application does.
    fn act(&mut self, kind: u8, input: &mut Input<'_>) {
        let (a, b) = (input.byte(), input.byte());
        let now = self.now;
        let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) else {
            return;
        };
        let stream = StreamId((a % 8).into());
        match kind % 16 {
            13 => {
                let reliability = match b % 4 {
                    0 => Reliability::Reliable,
                    1 => Reliability::Retransmissions(0),
                    2 => Reliability::Lifetime(Duration::from_millis(u64::from(b))),
                    _ => Reliability::Priority(a.into()),
                };
                let plain = Message::new(stream, vec![a; 1 + usize::from(b) * 30]);
                let unordered = a >= 128;
                let _ = association.send(now, Message { reliability, unordered, ..plain });
            }
            14 => {
                let reset = [StreamReset::Outgoing, StreamReset::Incoming, StreamReset::Both];
                let _ = match b % 6 {
                    0 => association.reset_association(now),
                    1 => association.add_streams(now, a.into(), 1),
                    n => association.reset_streams(now, reset[usize::from(n) % 3], &[stream]),
                };
            }
            _ if a == 255 => association.shutdown(now),
            _ => {
                while association.recv(now).is_some() {
                    self.outcome.received += 1;
                }
            }
        }
    }

    fn is_established(&self) -> bool {
        let association = self.id.and_then(|id| self.endpoint.association(id));
        association.is_some_and(polypath_proto::Association::is_established)
    }

    fn wait(&mut self, long: Duration) {
        let end = self.now + long;
        let mut times = 0;
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
    fn settle(&mut self) {
        let mut buf = vec![0; 70_000];
        let mut packets = 0;
        while let Some(transmit) = self.endpoint.poll_transmit(self.now, &mut buf) {
            packets += 1;
            assert!(packets < 1_000, "one packet makes it say a thousand");
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for bytes in buf[..transmit.size].chunks(segment) {
                let packet = Packet::parse(bytes, Checksum::Ignore);
                for chunk in packet.expect("what it sends are packets").chunks() {
                    self.hear(&chunk.expect("and in them chunks"));
                }
            }
        }
        let mut events = 0;
        while let Some((id, event)) = self.endpoint.poll_event() {
            events += 1;
            assert!(events < 5_000, "events without end");
            match event {
                Event::Established { .. } => self.id = Some(id),
                Event::SendFailed { .. } => self.outcome.given_up += 1,
                Event::StreamsReset { .. }
                | Event::AssociationReset { .. }
                | Event::StreamsAdded { .. } => self.outcome.reconfigured += 1,
                Event::Closed { .. } => self.outcome.closed = true,
                _ => {}
            }
        }
        self.endpoint.check_invariants().expect("all is as it should be");
    }

    fn hear(&mut self, chunk: &Chunk<'_>) {
        let tsn = match chunk {
            Chunk::Data(data) => data.tsn,
            Chunk::IData(data) => data.tsn,
            Chunk::Heartbeat(heartbeat) => {
                self.heartbeat = heartbeat.info.to_vec();
                self.heartbeat.splice(0..0, [0, 1, 0, 4 + heartbeat.info.len() as u8]);
                return;
            }
            Chunk::InitAck(init) if self.first == 0 => {
                self.tag = init.initiate_tag;
                self.first = init.initial_tsn.0;
                self.highest = self.first.wrapping_sub(1);
                for parameter in init.parameters.iter().flatten() {
                    if let polypath_proto::wire::Parameter::StateCookie(cookie) = parameter {
                        self.cookie = cookie.to_vec();
                    }
                }
                return;
            }
            _ => return,
        };
        if tsn.is_after(Tsn(self.highest)) {
            self.highest = tsn.0;
        }
    }
}

/// Moves the number that stands first near this one, by its first byte; gives how far it is from it.
fn near(value: &mut [u8], base: u32) -> Option<i32> {
    let number = value.get_mut(..4)?;
    let by = match number[0] {
        0..=191 => 0,
        b @ 192..=223 => i32::from(b % 32) - 8,
        _ if number[1] < 128 => i32::from(number[1]) * 97,
        // As it is.
        _ => return None,
    };
    number.copy_from_slice(&base.wrapping_add_signed(by).to_be_bytes());
    Some(by)
}
