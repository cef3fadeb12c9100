//! A peer that sends anything at any time causes no panic and no packet storm, and buffers stay
//! bounded. The endpoints check their invariants after every packet.

use crate::common::*;
use polypath_proto::policy::{loss, probing};
use polypath_proto::wire::{
    Checksum, Data, GapBlock, PacketWriter, ReconfigParameter, U16List, checksum,
};
use polypath_proto::{
    self, Config, ConfigBuilder, Event, Message, PathId, Ppid, Registry, Reliability, Ssn,
    StreamId, StreamReset, Time, Tsn, VerificationTag, wire,
};
use proptest::prelude::*;
use proptest::sample::Index;

/// A chunk; TSNs are offsets from the expected ones.
#[derive(Clone, Debug)]
enum Say {
    Data {
        tsn: i32,
        stream: u16,
        ssn: u16,
        flags: u8,
        len: u16,
    },
    Sack {
        tsn: i32,
        rwnd: u32,
        flags: u8,
        gaps: Vec<(u16, u16)>,
        duplicates: Vec<i32>,
    },
    /// The echo is an offset in microseconds from the host's clock.
    Timestamp {
        sent: u32,
        echo: Option<i32>,
    },
    ForwardTsn {
        tsn: i32,
        streams: Vec<(u16, u16)>,
    },
    IData {
        tsn: i32,
        stream: u16,
        mid: u32,
        fsn: u32,
        flags: u8,
        len: u16,
    },
    IForwardTsn {
        tsn: i32,
        messages: Vec<(u16, bool, u32)>,
    },
    Init {
        tag: u32,
        rwnd: u32,
        streams: (u16, u16),
        ack: bool,
        parameters: Vec<(u16, u8)>,
    },
    Cookie {
        true_one: bool,
    },
    CookieAck,
    Heartbeat(u8),
    HeartbeatAck {
        true_one: bool,
    },
    Shutdown(i32),
    ShutdownAck,
    ShutdownComplete(bool),
    Abort(bool),
    Error(u16, u8),
    /// Requests and responses; sequence numbers are offsets from the expected ones.
    ReConfig(Vec<(u8, i8, u32, Vec<u16>)>),
    Unknown(u8, u8, u8),
}

#[derive(Clone, Debug)]
enum Step {
    /// With the right tag, the hand's own, zero, or another.
    Packet {
        tag: u8,
        says: Vec<Say>,
        cut: Option<Index>,
        flip: Option<(Index, u8)>,
    },
    /// A correct handshake, which opens or restarts an association.
    Handshake,
    /// A valid next DATA chunk, perhaps a fragment, or a whole message after a gap.
    Data {
        skip: u8,
        stream: u8,
        unordered: bool,
        ends: bool,
        len: u16,
    },
    /// A SACK for all but the last `leave` chunks, with gap ack blocks for some of those.
    Sack {
        leave: u8,
        some: u8,
        rwnd: u16,
    },
    /// The host opens an association.
    Call,
    Wait(u16),
    Send {
        stream: u8,
        unordered: bool,
        len: u16,
    },
    /// The host requests a reconfiguration.
    Reset(u8),
    Read,
    Shutdown,
    Abort,
    Heartbeat,
}

fn near() -> impl Strategy<Value = i32> {
    prop_oneof![6 => -3i32..6, 2 => -70i32..400, 1 => any::<i32>()]
}

fn say() -> impl Strategy<Value = Say> {
    let gap = prop_oneof![4 => (0u16..8, 0u16..8), 1 => any::<(u16, u16)>()];
    prop_oneof![
        6 => (near(), prop_oneof![4 => 0u16..3, 1 => any::<u16>()], prop_oneof![4 => 0u16..6, 1 => any::<u16>()], any::<u8>(), 0u16..3000)
            .prop_map(|(tsn, stream, ssn, flags, len)| Say::Data { tsn, stream, ssn, flags, len }),
        4 => (near(), prop_oneof![Just(0), 0u32..5000, any::<u32>()], prop_oneof![3 => Just(0), 1 => any::<u8>()], prop::collection::vec(gap, 0..5), prop::collection::vec(near(), 0..3))
            .prop_map(|(tsn, rwnd, flags, gaps, duplicates)| Say::Sack { tsn, rwnd, flags, gaps, duplicates }),
        3 => (any::<u32>(), prop::option::of(prop_oneof![Just(0), -2_000_000i32..1000, any::<i32>()]))
            .prop_map(|(sent, echo)| Say::Timestamp { sent, echo }),
        3 => (near(), prop::collection::vec((0u16..4, prop_oneof![4 => 0u16..9, 1 => any::<u16>()]), 0..4))
            .prop_map(|(tsn, streams)| Say::ForwardTsn { tsn, streams }),
        6 => (near(), prop_oneof![4 => 0u16..3, 1 => any::<u16>()], prop_oneof![4 => 0u32..6, 1 => any::<u32>()], prop_oneof![4 => 0u32..4, 1 => any::<u32>()], any::<u8>(), 0u16..3000)
            .prop_map(|(tsn, stream, mid, fsn, flags, len)| Say::IData { tsn, stream, mid, fsn, flags, len }),
        3 => (near(), prop::collection::vec((0u16..4, any::<bool>(), prop_oneof![4 => 0u32..9, 1 => any::<u32>()]), 0..4))
            .prop_map(|(tsn, messages)| Say::IForwardTsn { tsn, messages }),
        2 => (prop_oneof![3 => Just(0x0bad_cafe), 1 => any::<u32>()], prop_oneof![4 => 1400u32..100_000, 1 => any::<u32>()], any::<(u16, u16)>(), any::<bool>(), prop::collection::vec((prop_oneof![0u16..14, 0x8000u16..0x8002, 0xbe01u16..0xbe03, any::<u16>()], 0u8..40), 0..4))
            .prop_map(|(tag, rwnd, streams, ack, parameters)| Say::Init { tag, rwnd, streams, ack, parameters }),
        2 => any::<bool>().prop_map(|true_one| Say::Cookie { true_one }),
        1 => Just(Say::CookieAck),
        1 => any::<u8>().prop_map(Say::Heartbeat),
        2 => any::<bool>().prop_map(|true_one| Say::HeartbeatAck { true_one }),
        1 => near().prop_map(Say::Shutdown),
        1 => Just(Say::ShutdownAck),
        1 => any::<bool>().prop_map(Say::ShutdownComplete),
        1 => any::<bool>().prop_map(Say::Abort),
        1 => (0u16..15, any::<u8>()).prop_map(|(code, len)| Say::Error(code, len)),
        4 => prop::collection::vec((0u8..8, prop_oneof![4 => 0i8..3, 1 => any::<i8>()], prop_oneof![3 => 0u32..8, 1 => any::<u32>()], prop::collection::vec(prop_oneof![4 => 0u16..4, 1 => any::<u16>()], 0..4)), 0..3).prop_map(Say::ReConfig),
        1 => any::<(u8, u8, u8)>().prop_map(|(ty, flags, len)| Say::Unknown(ty, flags, len)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop_oneof![8 => Just(0u8), 1 => 1u8..4], prop::collection::vec(say(), 1..5), prop::option::weighted(0.1, any::<Index>()), prop::option::weighted(0.1, any::<(Index, u8)>()))
            .prop_map(|(tag, says, cut, flip)| Step::Packet { tag, says, cut, flip }),
        2 => Just(Step::Handshake),
        9 => (prop_oneof![4 => Just(0u8), 1 => 1u8..5], 0u8..3, prop::bool::weighted(0.3), prop::bool::weighted(0.7), 1u16..3000)
            .prop_map(|(skip, stream, unordered, ends, len)| Step::Data { skip, stream, unordered, ends, len }),
        9 => (0u8..8, any::<u8>(), any::<u16>()).prop_map(|(leave, some, rwnd)| Step::Sack { leave, some, rwnd }),
        1 => Just(Step::Call),
        2 => (0u16..20_000).prop_map(Step::Wait),
        4 => (any::<u8>(), any::<bool>(), 1u16..9000).prop_map(|(stream, unordered, len)| Step::Send { stream, unordered, len }),
        2 => any::<u8>().prop_map(Step::Reset),
        2 => Just(Step::Read),
        1 => Just(Step::Shutdown),
        1 => Just(Step::Abort),
        1 => Just(Step::Heartbeat),
    ]
}

/// A hand against host 1, and the hand's state.
struct Fight {
    net: Net,
    hand: Hand,
    heartbeat: Vec<u8>,
    /// Tag and TSN of an INIT ACK whose cookie has not been acknowledged.
    offered: Option<Hand>,
    /// The hand's next TSN, and the message that it continues.
    next: u32,
    open: Option<(u8, bool)>,
    ssn: [u16; 3],
    /// Number of fragments of the current message sent so far.
    fragments: u32,
    /// The highest TSN that the host has sent.
    highest: u32,
    /// Parameters that the hand offers in its INITs, which are the host's.
    offer: Vec<(u16, Vec<u8>)>,
}

const BUFFER: u32 = 20_000;

/// Chunk type of I-DATA.
const INTERLEAVES: u8 = 64;

/// The extensions of the retransmission policies, in all combinations, partial reliability, stream
/// reconfiguration and interleaving.
fn extended(answers: u8) -> ConfigBuilder {
    let sampling = Registry::standard().rtt_sampling()[usize::from(answers % 3)];
    let config = Config::rfc9260().to_builder().rtt_sampling(sampling).loss(if answers & 4 > 0 {
        &loss::MULTIPLE_FAST_RETRANSMIT
    } else {
        &loss::STANDARD
    });
    let config = config.partial_reliability(answers & 16 > 0).interleaving(answers & 32 > 0);
    let har = answers.is_multiple_of(3) && answers & 8 > 0;
    let config = config.stream_reconfiguration(answers & 128 > 0);
    if har { config.probing(&probing::AFTER_RTO) } else { config }
}

/// The parameters that offer these extensions.
fn offered(answers: u8) -> Vec<(u16, Vec<u8>)> {
    let sampling = [None, Some(0xbe01), Some(0xbe02)][usize::from(answers % 3)];
    let partial = (answers & 16 > 0).then_some(0xc000);
    let plain = sampling.into_iter().chain(partial).map(|ty| (ty, vec![]));
    let types = [(128, 130), (32, INTERLEAVES), (32 | 64, 194)];
    let types = types.into_iter().filter(|(bits, _)| answers & bits == *bits);
    plain.chain([(0x8008, types.map(|(_, ty)| ty).collect())]).collect()
}

impl Fight {
    fn new(full_mesh: bool, answers: u8) -> Self {
        let config = extended(answers)
            .receive_buffer(BUFFER)
            .send_buffer(50_000)
            .heartbeat_interval(Some(S(3)))
            .full_mesh(full_mesh)
            .build()
            .unwrap();
        let mut net = pair(2, config);
        net.hosts[1].reads = false;
        Self {
            net,
            hand: Hand::new(1),
            heartbeat: vec![1; 20],
            offered: None,
            next: 1,
            open: None,
            ssn: [0; 3],
            fragments: 0,
            highest: 0,
            offer: offered(answers),
        }
    }

    fn begin_anew(&mut self) {
        (self.next, self.open, self.ssn, self.highest) = (1, None, [0; 3], 0);
        self.fragments = 0;
    }

    /// Learns the host's tag, cookie and nonces from the packets that it sent since `mark`.
    fn learn(&mut self, mark: usize) {
        for packet in self.hand.answers(&self.net, mark) {
            if packet.has("INIT ACK") {
                let mut offered = self.hand.clone();
                offered.learn(&packet);
                self.offered = Some(offered);
            }
            if packet.has("COOKIE ACK")
                && let Some(offered) = self.offered.take()
            {
                self.hand = offered;
                self.begin_anew();
            }
            if packet.has("INIT") {
                self.hand.learn(&packet);
                self.begin_anew();
            }
            let numbers = packet.data().into_iter().map(|d| d.n);
            self.highest = numbers.filter(|n| *n < 1 << 20).fold(self.highest, u32::max);
            for chunk in packet.parsed() {
                if let wire::Chunk::Heartbeat(h) = chunk {
                    self.heartbeat = h.info.to_vec();
                }
            }
        }
    }

    fn data(&mut self, skip: u8, stream: u8, unordered: bool, ends: bool, len: u16) {
        let n = self.next + u32::from(skip);
        // Send a whole message after a gap, or continue the current message.
        let (open, end) = if skip > 0 { (None, true) } else { (self.open, ends) };
        let (stream, unordered) = open.unwrap_or((stream, unordered));
        let payload = vec![n as u8; len.into()];
        let chunk = Data {
            stream: StreamId(stream.into()),
            ssn: Ssn(self.ssn[usize::from(stream)]),
            unordered,
            beginning: open.is_none(),
            end,
            ..self.hand.chunk(n, &payload)
        };
        let interleaves = self.offer.iter().any(|(_, types)| types.contains(&INTERLEAVES));
        let fsn = self.fragments;
        self.fragments = if end { 0 } else { fsn + 1 };
        let mid = polypath_proto::Mid(if unordered { self.next } else { chunk.ssn.0.into() });
        self.hand.say(&mut self.net, &|w| {
            if !interleaves {
                return w.data(&chunk).unwrap();
            }
            let mark = if chunk.beginning {
                wire::Mark::Beginning(chunk.ppid)
            } else {
                wire::Mark::Fragment(fsn)
            };
            w.i_data(&wire::IData {
                tsn: chunk.tsn,
                stream: chunk.stream,
                mid,
                mark,
                unordered: chunk.unordered,
                end: chunk.end,
                immediate: false,
                retransmission: false,
                payload: chunk.payload,
            })
            .unwrap();
        });
        if end && !unordered {
            self.ssn[usize::from(stream)] += 1;
        }
        if skip == 0 {
            self.next += 1;
            self.open = (!end).then_some((stream, unordered));
        }
    }

    fn sack(&mut self, leave: u8, some: u8, rwnd: u16) {
        let leave = u32::from(leave).min(self.highest);
        let some = (2..=leave as u16).filter(|i| some >> (i % 8) & 1 == 1);
        let gaps: Vec<(u16, u16)> = some.map(|i| (i, i)).collect();
        // Closed windows, small ones, large ones.
        let rwnd = u32::from(rwnd) * u32::from(rwnd % 4);
        self.hand.sack_rwnd(&mut self.net, self.highest - leave, &gaps, rwnd);
    }

    fn write(&self, w: &mut PacketWriter<'_>, say: &Say) {
        let ours = |offset: i32| Tsn(self.hand.tsn.wrapping_add_signed(offset));
        let theirs = |offset: i32| Tsn(self.hand.peer_tsn.wrapping_add_signed(offset));
        let payload = [7; 3000];
        // Chunks that do not fit are left out.
        let _ = match say {
            Say::Data { tsn, stream, ssn, flags, len } => w.data(&Data {
                tsn: ours(*tsn),
                stream: StreamId(*stream),
                ssn: Ssn(*ssn),
                ppid: Ppid(1),
                unordered: flags & 4 != 0,
                beginning: flags & 3 != 0,
                end: flags & 8 != 0,
                immediate: flags & 16 != 0,
                retransmission: flags & 32 != 0,
                payload: &payload[..usize::from(*len)],
            }),
            Say::IData { tsn, stream, mid, fsn, flags, len } => w.i_data(&wire::IData {
                tsn: ours(*tsn),
                stream: StreamId(*stream),
                mid: polypath_proto::Mid(*mid),
                mark: if flags & 3 != 0 {
                    wire::Mark::Beginning(Ppid(1))
                } else {
                    wire::Mark::Fragment(*fsn)
                },
                unordered: flags & 4 != 0,
                end: flags & 8 != 0,
                immediate: flags & 16 != 0,
                retransmission: flags & 32 != 0,
                payload: &payload[..usize::from(*len)],
            }),
            Say::IForwardTsn { tsn, messages } => {
                let messages =
                    messages.iter().map(|&(stream, unordered, mid)| wire::SkippedMessage {
                        stream: StreamId(stream),
                        unordered,
                        mid: polypath_proto::Mid(mid),
                    });
                w.i_forward_tsn(ours(*tsn), messages)
            }
            Say::ForwardTsn { tsn, streams } => {
                let streams = streams.iter().map(|&(stream, ssn)| wire::SkippedStream {
                    stream: StreamId(stream),
                    ssn: Ssn(ssn),
                });
                w.forward_tsn(ours(*tsn), streams)
            }
            Say::Timestamp { sent, echo } => {
                let now = (self.net.now.as_nanos() / 1000) as u32;
                let host = now.wrapping_add(self.hand.peer_tag);
                let echo = echo.map(|offset| host.wrapping_add_signed(offset));
                w.timestamp(wire::Timestamp { sent: *sent, echo })
            }
            Say::Sack { tsn, rwnd, flags, gaps, duplicates } => {
                let gaps = gaps
                    .iter()
                    .map(|&(start, end)| GapBlock { start: start.into(), end: end.into() });
                w.sack(theirs(*tsn), *rwnd, *flags, gaps, duplicates.iter().map(|d| theirs(*d)))
            }
            Say::Init { tag, rwnd, streams, ack, parameters } => {
                let fields = wire::InitFields {
                    initiate_tag: VerificationTag(*tag),
                    a_rwnd: *rwnd,
                    outbound_streams: streams.0,
                    inbound_streams: streams.1,
                    initial_tsn: Tsn(self.hand.tsn),
                };
                let write = |p: &mut wire::ParameterWriter<'_>| {
                    parameters
                        .iter()
                        .try_for_each(|(ty, len)| p.typed(*ty, &payload[..usize::from(*len)]))
                };
                if *ack { w.init_ack(&fields, write) } else { w.init(&fields, write) }
            }
            Say::Cookie { true_one: true } => {
                let offered = self.offered.as_ref().unwrap_or(&self.hand);
                w.cookie_echo(&offered.cookie)
            }
            Say::Cookie { true_one: false } => w.cookie_echo(&payload[..100]),
            Say::CookieAck => w.cookie_ack(),
            Say::Heartbeat(len) => w.heartbeat(&payload[..usize::from(*len)]),
            Say::HeartbeatAck { true_one: true } => w.heartbeat_ack(&self.heartbeat),
            Say::HeartbeatAck { true_one: false } => w.heartbeat_ack(&payload[..20]),
            Say::Shutdown(tsn) => w.shutdown(theirs(*tsn)),
            Say::ShutdownAck => w.shutdown_ack(),
            Say::ShutdownComplete(t) => w.shutdown_complete(*t),
            Say::Abort(t) => w.abort(*t, |_| Ok(())),
            Say::Error(code, len) => w.error(|c| c.typed(*code, &payload[..usize::from(*len)])),
            Say::ReConfig(list) => self.write_requests(w, list),
            Say::Unknown(ty, flags, len) => {
                w.typed_chunk(*ty, *flags, &payload[..usize::from(*len)])
            }
        };
    }

    fn write_requests(
        &self,
        w: &mut PacketWriter<'_>,
        list: &[(u8, i8, u32, Vec<u16>)],
    ) -> Result<(), wire::DoesNotFit> {
        let ours = |offset: i32| Tsn(self.hand.tsn.wrapping_add_signed(offset));
        let theirs = |offset: i32| Tsn(self.hand.peer_tsn.wrapping_add_signed(offset));
        w.re_config(|p| {
            list.iter().try_for_each(|(kind, number, word, streams)| {
                let bytes: Vec<u8> = streams.iter().flat_map(|s| s.to_be_bytes()).collect();
                let streams = U16List::from_be_bytes(&bytes).unwrap();
                let request = ours((*number).into()).0;
                let response = theirs((*number).into()).0;
                p.parameter(&match kind {
                    0 => ReconfigParameter::OutgoingReset {
                        request,
                        response,
                        last_tsn: ours(*word as i32),
                        streams,
                    },
                    1 => ReconfigParameter::IncomingReset { request, streams },
                    2 => ReconfigParameter::AssociationReset { request },
                    3 => ReconfigParameter::AddOutgoing { request, streams: *word as u16 },
                    4 => ReconfigParameter::AddIncoming { request, streams: *word as u16 },
                    5 => ReconfigParameter::Unknown { ty: 99, raw: &[0, 99, 0, 4] },
                    _ => ReconfigParameter::Response {
                        response,
                        result: *word,
                        next_tsns: (*kind == 7).then(|| (ours(3), theirs(*word as i32))),
                    },
                })
            })
        })
    }

    fn take(&mut self, step: &Step) {
        let (now, mark) = (self.net.now, self.net.log.len());
        let known = self.net.hosts[1].endpoint.associations().count() > 0;
        match step {
            Step::Packet { tag, says, cut, flip } => {
                let tag = match tag {
                    0 => self.hand.peer_tag,
                    1 => self.hand.tag,
                    2 => 0,
                    _ => 0xdead_beef,
                };
                let mut packet =
                    self.hand.packet(tag, &|w| says.iter().for_each(|s| self.write(w, s)));
                if let Some(cut) = cut {
                    packet.truncate((cut.index(packet.len()) / 4 * 4).max(12));
                }
                if let Some((at, bit)) = flip {
                    let at = at.index(packet.len());
                    packet[at] ^= bit;
                }
                let crc = checksum(&packet);
                packet[8..12].copy_from_slice(&crc.to_le_bytes());
                let answers = self.hand.raw(&mut self.net, &packet);
                assert!(answers.len() < 200, "{} answers to one packet", answers.len());
            }
            Step::Handshake => {
                let offer = self.offer.clone();
                self.hand.init(&mut self.net, &|p| {
                    offer.iter().for_each(|(ty, value)| p.typed(*ty, value).unwrap());
                });
                self.learn(mark);
                let mark = self.net.log.len();
                if let Some(offered) = self.offered.clone() {
                    offered.echo(&mut self.net);
                }
                return self.learn(mark);
            }
            Step::Data { skip, stream, unordered, ends, len } => {
                self.data(*skip, *stream, *unordered, *ends, *len);
            }
            Step::Sack { leave, some, rwnd } => self.sack(*leave, *some, *rwnd),
            Step::Call => {
                let remote = [self.hand.remote()];
                let _ = self.net.hosts[1].endpoint.connect(now, PORT, &remote);
                self.net.settle();
                self.learn(mark);
                self.hand.init_ack(&mut self.net);
                self.hand.say(&mut self.net, &|w| w.cookie_ack().unwrap());
                return;
            }
            Step::Wait(ms) => self.net.run(MS((*ms).into())),
            Step::Send { stream, unordered, len } if known => {
                let payload = payload(1, (*len).into());
                let stream = StreamId(u16::from(*stream) % 70);
                let reliability = match len % 5 {
                    0 => Reliability::Lifetime(MS(u64::from(*len))),
                    1 => Reliability::Retransmissions(u32::from(len / 5 % 3)),
                    2 => Reliability::Priority(u32::from(len / 5 % 3)),
                    _ => Reliability::Reliable,
                };
                let message = Message::new(stream, payload);
                let message = Message { unordered: *unordered, reliability, ..message };
                let _ = self.net.send_message(1, message);
            }
            Step::Reset(what) if known => {
                let a = self.net.am(1);
                let _ = match what % 3 {
                    0 => a.reset_streams(now, StreamReset::Both, &[StreamId(1)]),
                    1 => a.reset_association(now),
                    _ => a.add_streams(now, (what % 5).into(), 1),
                };
                self.net.settle();
            }
            Step::Read if known => {
                self.net.read(1);
            }
            Step::Shutdown if known => self.net.shutdown(1),
            Step::Abort if known => self.net.abort(1, b"enough"),
            Step::Heartbeat if known => {
                let _ = self.net.am(1).request_heartbeat(now, PathId(0));
                self.net.settle();
            }
            _ => {}
        }
        self.learn(mark);
        let endpoint = &self.net.hosts[1].endpoint;
        for id in endpoint.associations() {
            let a = endpoint.association(id).unwrap();
            assert!(a.buffered() <= 50_000 + 9000, "{} bytes in the send buffer", a.buffered());
            assert!(a.paths().count() <= 16);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn anything_may_be_said_at_any_time(full_mesh in any::<bool>(), answers in any::<u8>(), steps in prop::collection::vec(step(), 1..80)) {
        let mut fight = Fight::new(full_mesh, answers);
        for step in &steps {
            fight.take(step);
        }
        // Without further packets from the peer, every association closes.
        fight.net.run(S(4000));
        let endpoint = &fight.net.hosts[1].endpoint;
        for id in endpoint.associations() {
            let a = endpoint.association(id).unwrap();
            prop_assert!(a.is_closed(), "nobody answers, yet it lives\n{}", fight.net.tail(10));
        }
    }

    /// Two correct endpoints and a network that changes bytes in a way that no checksum detects.
    #[test]
    fn damage_that_no_checksum_finds_is_survived(seed in any::<u64>(), rate in 2u64..40, answers in any::<u8>()) {
        let config = extended(answers).receive_buffer(BUFFER).build().unwrap();
        let mut net = Setup { paths: 2, seed: seed >> 8, configs: [config.clone(), config], ..Setup::default() }.build();
        let mut dice = polypath_proto::Rng::new(&polypath_proto::Seed::from_u64(seed));
        net.filter(move |p| {
            if dice.below(rate) > 0 {
                return Fate::Pass;
            }
            let mut bytes = p.bytes.clone();
            for _ in 0..=dice.below(3) {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << dice.below(8);
            }
            let crc = checksum(&bytes);
            bytes[8..12].copy_from_slice(&crc.to_le_bytes());
            Fate::Changed(bytes)
        });
        net.connect(0);
        for i in 0..10 {
            let _ = net.send(0, i, payload(i.into(), 8000));
        }
        net.run(S(30));
        for h in 0..2 {
            if net.hosts[h].endpoint.associations().count() > 0 {
                net.shutdown(h);
            }
        }
        net.run(S(1000));
    }
}

/// Every prefix of every packet of an association, in several of its states.
#[test]
fn truncated_packets_are_survived() {
    for answers in [0, 1, 146, 241] {
        truncate_packets(&extended(answers).build().unwrap());
    }
}

fn truncate_packets(config: &Config) {
    let mut net = established(2, config.clone());
    net.send(0, 0, payload(1, 5000)).unwrap();
    net.nth("DATA", &[2], Fate::Drop);
    net.send(0, 0, payload(1, 3000)).unwrap();
    net.run(S(1));
    let now = net.now;
    let _ = net.am(0).reset_streams(now, StreamReset::Both, &[]);
    net.run(S(1));
    let now = net.now;
    let _ = net.am(0).reset_association(now);
    net.run(S(1));
    net.shutdown(0);
    net.run(S(1));
    let packets: Vec<Sent> = net.log.clone();
    for states in 0..5 {
        let mut net = pair(2, config.clone());
        net.connect(0);
        net.run(MS([0, 15, 25, 200, 201][states]));
        if states == 4 {
            net.shutdown(0);
            net.run(MS(15));
        }
        for packet in &packets {
            for len in (12..packet.bytes.len()).step_by(4) {
                for tag in [packet.tag, 0] {
                    let mut bytes = packet.bytes[..len].to_vec();
                    bytes[4..8].copy_from_slice(&tag.to_be_bytes());
                    let crc = checksum(&bytes);
                    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
                    net.inject(packet.from, packet.to, &bytes);
                }
            }
            net.log.clear();
        }
        net.run(S(10));
    }
}

/// An application that never reads its events costs a bounded amount of memory.
#[test]
fn errors_that_nobody_reads_are_bounded() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let error = hand.packet(hand.peer_tag, &|w| w.error(|c| c.out_of_resource()).unwrap());
    let now = net.now;
    let from =
        polypath_proto::FourTuple { local: (v4(0, 1), 0).into(), remote: (hand.ip, 0).into() };
    let endpoint = &mut net.hosts[1].endpoint;
    for _ in 0..10_000 {
        endpoint.handle_datagram(now, from, polypath_proto::Ecn::NotEct, &error);
    }
    endpoint.check_invariants().unwrap();
    let told = std::iter::from_fn(|| endpoint.poll_event()).count();
    assert!((1..=4096).contains(&told), "{told} events waited");
}

/// RFC 9260 6.8: with checksums switched off, every packet is processed; nothing breaks.
#[test]
fn without_checksums_everything_still_holds() {
    let mut config = polypath_proto::EndpointConfig::new(
        PORT,
        vec![v4(0, 1)],
        polypath_proto::Encapsulation::RawIp,
    );
    config.listen = true;
    config.checksum = Checksum::Ignore;
    let mut endpoint = polypath_proto::Endpoint::new(config, polypath_proto::Seed::from_u64(1));
    let from =
        polypath_proto::FourTuple { local: (v4(0, 1), 0).into(), remote: (v4(0, 0), 0).into() };
    let mut dice = polypath_proto::Rng::new(&polypath_proto::Seed::from_u64(2));
    let mut buf = [0; 2000];
    for i in 0..20_000u64 {
        let len = dice.below(30) as usize * 4;
        let mut bytes: Vec<u8> = (0..len).map(|_| dice.below(256) as u8).collect();
        if len >= 16 {
            bytes[2..4].copy_from_slice(&PORT.to_be_bytes());
            bytes[12] %= 16;
            bytes[14] = 0;
        }
        let now = Time::from_millis(i);
        endpoint.handle_datagram(now, from, polypath_proto::Ecn::NotEct, &bytes);
        while endpoint.poll_transmit(now, &mut buf).is_some() {}
        while let Some((_, event)) = endpoint.poll_event() {
            assert!(!matches!(event, Event::Established { .. }));
        }
        endpoint.check_invariants().unwrap();
    }
}
