//! Properties: written packets parse to the same content, and no bytes make a parser panic.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::prelude::*;

use super::tests::{HEADER, walk};
use super::*;
use crate::{Mid, Ppid, Ssn, StreamId, Tsn, VerificationTag};

/// The bytes of one parameter or cause.
fn tlv(ty: u16, value: &[u8]) -> Vec<u8> {
    let mut raw = ty.to_be_bytes().to_vec();
    raw.extend(u16::try_from(4 + value.len()).unwrap().to_be_bytes());
    raw.extend(value);
    raw
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

/// The bytes of a list of 16-bit numbers.
fn numbers() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<[u8; 2]>(), 0..8).prop_map(|list| list.concat())
}

/// A parameter that owns its bytes.
#[derive(Clone, Debug)]
enum OwnedParameter {
    HeartbeatInfo(Vec<u8>),
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    StateCookie(Vec<u8>),
    Unrecognized(Vec<u8>),
    CookiePreservative(u32),
    HostName(Vec<u8>),
    SupportedAddressTypes(Vec<u8>),
    EcnCapable,
    SupportedExtensions(Vec<u8>),
    ZeroChecksum(u32),
    Timestamps,
    RetransmissionFlag,
    PacketCount,
    PartialSacks,
    WideSacks,
    ForwardTsnSupported,
    Random(Vec<u8>),
    ChunkList(Vec<u8>),
    HmacAlgorithms(Vec<u8>),
    AdaptationLayer(u32),
    Unknown(u16, Vec<u8>),
}

impl OwnedParameter {
    fn borrow(&self) -> Parameter<'_> {
        match self {
            Self::HeartbeatInfo(info) => Parameter::HeartbeatInfo(info),
            Self::Ipv4(address) => Parameter::Ipv4(*address),
            Self::Ipv6(address) => Parameter::Ipv6(*address),
            Self::StateCookie(cookie) => Parameter::StateCookie(cookie),
            Self::Unrecognized(raw) => Parameter::UnrecognizedParameter(raw),
            Self::CookiePreservative(ms) => Parameter::CookiePreservative(*ms),
            Self::HostName(raw) => Parameter::HostName(raw),
            Self::SupportedAddressTypes(types) => {
                Parameter::SupportedAddressTypes(U16List::from_be_bytes(types).unwrap())
            }
            Self::EcnCapable => Parameter::EcnCapable,
            Self::ZeroChecksum(method) => Parameter::ZeroChecksumAcceptable(*method),
            Self::SupportedExtensions(types) => Parameter::SupportedExtensions(types),
            Self::Timestamps => Parameter::Timestamps,
            Self::RetransmissionFlag => Parameter::RetransmissionFlag,
            Self::PacketCount => Parameter::PacketCount,
            Self::PartialSacks => Parameter::PartialSacks,
            Self::WideSacks => Parameter::WideSacks,
            Self::ForwardTsnSupported => Parameter::ForwardTsnSupported,
            Self::Random(random) => Parameter::Random(random),
            Self::ChunkList(types) => Parameter::ChunkList(types),
            Self::HmacAlgorithms(list) => {
                Parameter::HmacAlgorithms(U16List::from_be_bytes(list).unwrap())
            }
            Self::AdaptationLayer(code) => Parameter::AdaptationLayer(*code),
            Self::Unknown(ty, raw) => Parameter::Unknown { ty: *ty, raw },
        }
    }
}

fn parameter() -> impl Strategy<Value = OwnedParameter> {
    let unknown = any::<u16>().prop_filter("known", |&ty| parameter_type::name(ty).is_none());
    prop_oneof![
        bytes().prop_map(OwnedParameter::HeartbeatInfo),
        any::<Ipv4Addr>().prop_map(OwnedParameter::Ipv4),
        any::<Ipv6Addr>().prop_map(OwnedParameter::Ipv6),
        bytes().prop_map(OwnedParameter::StateCookie),
        bytes().prop_map(OwnedParameter::Unrecognized),
        any::<u32>().prop_map(OwnedParameter::CookiePreservative),
        bytes().prop_map(|name| OwnedParameter::HostName(tlv(parameter_type::HOST_NAME, &name))),
        numbers().prop_map(OwnedParameter::SupportedAddressTypes),
        Just(OwnedParameter::EcnCapable),
        bytes().prop_map(OwnedParameter::SupportedExtensions),
        any::<u32>().prop_map(OwnedParameter::ZeroChecksum),
        Just(OwnedParameter::Timestamps),
        Just(OwnedParameter::RetransmissionFlag),
        Just(OwnedParameter::PacketCount),
        Just(OwnedParameter::PartialSacks),
        Just(OwnedParameter::WideSacks),
        Just(OwnedParameter::ForwardTsnSupported),
        bytes().prop_map(OwnedParameter::Random),
        bytes().prop_map(OwnedParameter::ChunkList),
        numbers().prop_map(OwnedParameter::HmacAlgorithms),
        any::<u32>().prop_map(OwnedParameter::AdaptationLayer),
        (unknown, bytes()).prop_map(|(ty, v)| OwnedParameter::Unknown(ty, tlv(ty, &v))),
    ]
}

/// A cause that owns its bytes.
#[derive(Clone, Debug)]
enum OwnedCause {
    Stream(u16),
    Missing(Vec<u8>),
    Stale(u32),
    OutOfResource,
    Unresolvable(Vec<u8>),
    Chunk(Vec<u8>),
    Invalid,
    Parameters(Vec<u8>),
    NoUserData(u32),
    ShuttingDown,
    Restart(Vec<u8>),
    User(Vec<u8>),
    Violation(Vec<u8>),
    Refused(usize, Vec<u8>),
    Hmac(u16),
    Unknown(u16, Vec<u8>),
}

impl OwnedCause {
    fn borrow(&self) -> Cause<'_> {
        match self {
            Self::Stream(stream) => Cause::InvalidStreamIdentifier(StreamId(*stream)),
            Self::Missing(types) => {
                Cause::MissingMandatoryParameter(U16List::from_be_bytes(types).unwrap())
            }
            Self::Stale(staleness_us) => Cause::StaleCookie { staleness_us: *staleness_us },
            Self::OutOfResource => Cause::OutOfResource,
            Self::Unresolvable(raw) => Cause::UnresolvableAddress(raw),
            Self::Chunk(raw) => Cause::UnrecognizedChunk(raw),
            Self::Invalid => Cause::InvalidMandatoryParameter,
            Self::Parameters(list) => Cause::UnrecognizedParameters(Parameters::new(list)),
            Self::NoUserData(tsn) => Cause::NoUserData(Tsn(*tsn)),
            Self::ShuttingDown => Cause::CookieReceivedWhileShuttingDown,
            Self::Restart(list) => Cause::RestartWithNewAddresses(Parameters::new(list)),
            Self::User(reason) => Cause::UserInitiatedAbort(reason),
            Self::Violation(info) => Cause::ProtocolViolation(info),
            Self::Refused(which, request) => Cause::AddressRefused {
                refusal: AddressRefusal::of_code(0xa0 + (*which as u16)).unwrap(),
                request,
            },
            Self::Hmac(identifier) => Cause::UnsupportedHmac(*identifier),
            Self::Unknown(code, raw) => Cause::Unknown { code: *code, raw },
        }
    }
}

fn cause() -> impl Strategy<Value = OwnedCause> {
    let unknown = any::<u16>().prop_filter("known", |&code| cause_code::name(code).is_none());
    prop_oneof![
        any::<u16>().prop_map(OwnedCause::Stream),
        numbers().prop_map(OwnedCause::Missing),
        any::<u32>().prop_map(OwnedCause::Stale),
        Just(OwnedCause::OutOfResource),
        bytes().prop_map(OwnedCause::Unresolvable),
        bytes().prop_map(OwnedCause::Chunk),
        Just(OwnedCause::Invalid),
        bytes().prop_map(OwnedCause::Parameters),
        any::<u32>().prop_map(OwnedCause::NoUserData),
        Just(OwnedCause::ShuttingDown),
        bytes().prop_map(OwnedCause::Restart),
        bytes().prop_map(OwnedCause::User),
        bytes().prop_map(OwnedCause::Violation),
        (0..5usize, bytes()).prop_map(|(which, raw)| OwnedCause::Refused(which, raw)),
        any::<u16>().prop_map(OwnedCause::Hmac),
        (unknown, bytes()).prop_map(|(code, v)| OwnedCause::Unknown(code, tlv(code, &v))),
    ]
}

/// A chunk that owns its bytes.
#[derive(Clone, Debug)]
enum OwnedChunk {
    Data {
        tsn: u32,
        stream: u16,
        ssn: u16,
        ppid: u32,
        flags: [bool; 5],
        payload: Vec<u8>,
    },
    Init {
        ack: bool,
        fields: InitFields,
        parameters: Vec<OwnedParameter>,
    },
    Sack {
        tsn: u32,
        a_rwnd: u32,
        flags: u8,
        gaps: Vec<(u16, u16)>,
        duplicates: Vec<u32>,
    },
    NrSack {
        fixed: (u32, u32, u8),
        gaps: [Vec<(u16, u16)>; 2],
        duplicates: Vec<u32>,
    },
    Heartbeat {
        ack: bool,
        info: Vec<u8>,
    },
    Abort {
        t_bit: bool,
        causes: Vec<OwnedCause>,
    },
    Error(Vec<OwnedCause>),
    CookieEcho(Vec<u8>),
    ForwardTsn(u32, Vec<(u16, u16)>),
    IData {
        tsn: u32,
        stream: u16,
        mid: u32,
        mark: Mark,
        flags: [bool; 4],
        payload: Vec<u8>,
    },
    IForwardTsn(u32, Vec<(u16, bool, u32)>),
    Auth(u16, u16, Vec<u8>),
    /// With the lookup address; an ASCONF-ACK has none.
    Asconf(u32, Option<std::net::IpAddr>, Vec<(u16, u32, std::net::IpAddr)>),
    /// A chunk that borrows nothing.
    Plain(Chunk<'static>),
    Unknown {
        ty: u8,
        flags: u8,
        value: Vec<u8>,
    },
}

fn init_fields() -> impl Strategy<Value = InitFields> {
    any::<(u32, u32, u16, u16, u32)>().prop_map(|(tag, a_rwnd, outbound, inbound, tsn)| {
        InitFields {
            initiate_tag: VerificationTag(tag),
            a_rwnd,
            outbound_streams: outbound,
            inbound_streams: inbound,
            initial_tsn: Tsn(tsn),
        }
    })
}

fn plain() -> impl Strategy<Value = Chunk<'static>> {
    let tsn = || any::<u32>().prop_map(Tsn);
    prop_oneof![
        tsn().prop_map(|tsn| Chunk::Shutdown(Shutdown { cumulative_tsn_ack: tsn })),
        Just(Chunk::ShutdownAck),
        any::<bool>().prop_map(|t_bit| Chunk::ShutdownComplete(ShutdownComplete { t_bit })),
        Just(Chunk::CookieAck),
        tsn().prop_map(|lowest_tsn| Chunk::Ecne(Ecne { lowest_tsn })),
        tsn().prop_map(|lowest_tsn| Chunk::Cwr(Cwr { lowest_tsn })),
        any::<(u32, Option<u32>)>()
            .prop_map(|(sent, echo)| Chunk::Timestamp(Timestamp { sent, echo })),
    ]
}

fn chunk() -> impl Strategy<Value = OwnedChunk> {
    let unknown = any::<u8>().prop_filter("known", |&ty| chunk_type::name(ty).is_none());
    prop_oneof![
        (any::<(u32, u16, u16, u32, [bool; 5])>(), vec(any::<u8>(), 1..60)).prop_map(
            |((tsn, stream, ssn, ppid, flags), payload)| OwnedChunk::Data {
                tsn,
                stream,
                ssn,
                ppid,
                flags,
                payload
            }
        ),
        (any::<bool>(), init_fields(), vec(parameter(), 0..6))
            .prop_map(|(ack, fields, parameters)| OwnedChunk::Init { ack, fields, parameters }),
        (any::<(u32, u32, u8)>(), vec(any::<(u16, u16)>(), 0..20), vec(any::<u32>(), 0..20))
            .prop_map(|((tsn, a_rwnd, flags), gaps, duplicates)| OwnedChunk::Sack {
                tsn,
                a_rwnd,
                flags,
                gaps,
                duplicates
            }),
        (
            any::<(u32, u32, u8)>(),
            [(); 2].map(|()| vec(any::<(u16, u16)>(), 0..20)),
            vec(any::<u32>(), 0..20)
        )
            .prop_map(|(fixed, gaps, duplicates)| OwnedChunk::NrSack {
                fixed,
                gaps,
                duplicates
            }),
        (any::<bool>(), bytes()).prop_map(|(ack, info)| OwnedChunk::Heartbeat { ack, info }),
        (any::<bool>(), vec(cause(), 0..4))
            .prop_map(|(t_bit, causes)| OwnedChunk::Abort { t_bit, causes }),
        vec(cause(), 0..4).prop_map(OwnedChunk::Error),
        bytes().prop_map(OwnedChunk::CookieEcho),
        (any::<u32>(), vec(any::<(u16, u16)>(), 0..20))
            .prop_map(|(tsn, streams)| OwnedChunk::ForwardTsn(tsn, streams)),
        (any::<(u32, u16, u32, u32, bool, [bool; 4])>(), vec(any::<u8>(), 1..60)).prop_map(
            |((tsn, stream, mid, last, beginning, flags), payload)| {
                let mark =
                    if beginning { Mark::Beginning(Ppid(last)) } else { Mark::Fragment(last) };
                OwnedChunk::IData { tsn, stream, mid, mark, flags, payload }
            }
        ),
        (any::<u32>(), vec(any::<(u16, bool, u32)>(), 0..20))
            .prop_map(|(tsn, streams)| OwnedChunk::IForwardTsn(tsn, streams)),
        (any::<(u16, u16)>(), bytes()).prop_map(|((k, h), mac)| OwnedChunk::Auth(k, h, mac)),
        (
            any::<u32>(),
            any::<Option<std::net::IpAddr>>(),
            vec(any::<(u16, u32, std::net::IpAddr)>(), 0..5)
        )
            .prop_map(|(serial, lookup, list)| {
                let ty = |ty: u16| [0xc001, 0xc002, 0xc004][usize::from(ty % 3)];
                // IPv4-mapped IPv6 addresses are written as IPv4 addresses.
                let written = |ip: std::net::IpAddr| ip.to_canonical();
                let list = list.into_iter().map(|(t, id, ip)| (ty(t), id, written(ip))).collect();
                OwnedChunk::Asconf(serial, lookup.map(written), list)
            }),
        plain().prop_map(OwnedChunk::Plain),
        (unknown, any::<u8>(), bytes()).prop_map(|(ty, flags, value)| OwnedChunk::Unknown {
            ty,
            flags,
            value
        }),
    ]
}

impl OwnedChunk {
    fn data(&self) -> Option<Data<'_>> {
        let Self::Data { tsn, stream, ssn, ppid, flags, payload } = self else { return None };
        let [unordered, beginning, end, immediate, retransmission] = *flags;
        Some(Data {
            tsn: Tsn(*tsn),
            stream: StreamId(*stream),
            ssn: Ssn(*ssn),
            ppid: Ppid(*ppid),
            unordered,
            beginning,
            end,
            immediate,
            retransmission,
            payload,
        })
    }

    fn i_data(&self) -> Option<IData<'_>> {
        let Self::IData { tsn, stream, mid, mark, flags, payload } = self else { return None };
        let [unordered, end, immediate, retransmission] = *flags;
        Some(IData {
            tsn: Tsn(*tsn),
            stream: StreamId(*stream),
            mid: Mid(*mid),
            mark: *mark,
            unordered,
            end,
            immediate,
            retransmission,
            payload,
        })
    }

    fn write(&self, w: &mut PacketWriter<'_>) -> Result<(), DoesNotFit> {
        match self {
            Self::Data { .. } => w.data(&self.data().unwrap()),
            Self::Init { ack, fields, parameters } => {
                let write = |p: &mut ParameterWriter<'_>| {
                    parameters.iter().try_for_each(|x| p.parameter(&x.borrow()))
                };
                if *ack { w.init_ack(fields, write) } else { w.init(fields, write) }
            }
            Self::Sack { tsn, a_rwnd, flags, gaps, duplicates } => w.sack(
                Tsn(*tsn),
                *a_rwnd,
                *flags,
                gaps.iter().map(|&(start, end)| GapBlock { start: start.into(), end: end.into() }),
                duplicates.iter().map(|&tsn| Tsn(tsn)),
            ),
            Self::NrSack { fixed: (tsn, a_rwnd, flags), gaps, duplicates } => {
                let gaps = gaps.each_ref().map(|list| {
                    list.iter().map(|&(s, e)| GapBlock { start: s.into(), end: e.into() })
                });
                let [renegable, kept] = gaps;
                let duplicates = duplicates.iter().map(|&tsn| Tsn(tsn));
                w.nr_sack(Tsn(*tsn), *a_rwnd, *flags, renegable, kept, duplicates)
            }
            Self::Heartbeat { ack: false, info } => w.heartbeat(info),
            Self::Heartbeat { ack: true, info } => w.heartbeat_ack(info),
            Self::Abort { t_bit, causes } => {
                w.abort(*t_bit, |c| causes.iter().try_for_each(|x| c.cause(&x.borrow())))
            }
            Self::Error(causes) => {
                w.error(|c| causes.iter().try_for_each(|x| c.cause(&x.borrow())))
            }
            Self::CookieEcho(cookie) => w.cookie_echo(cookie),
            Self::IData { .. } => w.i_data(&self.i_data().unwrap()),
            Self::IForwardTsn(tsn, messages) => w.i_forward_tsn(Tsn(*tsn), messages_of(messages)),
            Self::ForwardTsn(tsn, streams) => w.forward_tsn(Tsn(*tsn), skipped(streams)),
            Self::Auth(key_id, hmac_id, hmac) => {
                w.chunk(&Chunk::Auth(Auth { key_id: *key_id, hmac_id: *hmac_id, hmac }))
            }
            Self::Asconf(serial, lookup, list) => {
                let write = |p: &mut AsconfWriter<'_>| {
                    list.iter().try_for_each(|&(ty, id, ip)| p.request(ty, id, ip))
                };
                match lookup {
                    Some(lookup) => w.asconf(*serial, *lookup, write),
                    None => w.asconf_ack(*serial, write),
                }
            }
            Self::Plain(chunk) => w.chunk(chunk),
            Self::Unknown { ty, flags, value } => w.typed_chunk(*ty, *flags, value),
        }
    }

    /// Whether `parsed` equals this chunk.
    fn is(&self, parsed: &Chunk<'_>) -> bool {
        match (self, *parsed) {
            (Self::Data { .. }, Chunk::Data(data)) => self.data() == Some(data),
            (Self::Init { ack: false, fields, parameters }, Chunk::Init(init))
            | (Self::Init { ack: true, fields, parameters }, Chunk::InitAck(init)) => {
                *fields == InitFields::from(&init)
                    && init.parameters.iter().eq(parameters.iter().map(|p| Ok(p.borrow())))
            }
            (Self::Sack { tsn, a_rwnd, flags, gaps, duplicates }, Chunk::Sack(sack)) => {
                (Tsn(*tsn), *a_rwnd, *flags) == (sack.cumulative_tsn_ack, sack.a_rwnd, sack.flags)
                    && sack
                        .gaps()
                        .map(|gap| (gap.start as u16, gap.end as u16))
                        .eq(gaps.iter().copied())
                    && sack.duplicates().map(|tsn| tsn.0).eq(duplicates.iter().copied())
            }
            (Self::NrSack { fixed, gaps, duplicates }, Chunk::NrSack(sack)) => {
                let read = |list: &mut dyn Iterator<Item = GapBlock>| -> Vec<_> {
                    list.map(|gap| (gap.start as u16, gap.end as u16)).collect()
                };
                (Tsn(fixed.0), fixed.1, fixed.2)
                    == (sack.cumulative_tsn_ack, sack.a_rwnd, sack.flags)
                    && read(&mut sack.gaps()) == gaps[0]
                    && read(&mut sack.nr_gaps()) == gaps[1]
                    && sack.duplicates().map(|tsn| tsn.0).eq(duplicates.iter().copied())
            }
            (Self::Heartbeat { ack: false, info }, Chunk::Heartbeat(heartbeat))
            | (Self::Heartbeat { ack: true, info }, Chunk::HeartbeatAck(heartbeat)) => {
                heartbeat.info == info
            }
            (Self::Abort { t_bit, causes }, Chunk::Abort(abort)) => {
                abort.t_bit == *t_bit
                    && abort.causes.iter().eq(causes.iter().map(|c| Ok(c.borrow())))
            }
            (Self::Error(causes), Chunk::Error(error)) => {
                error.causes.iter().eq(causes.iter().map(|c| Ok(c.borrow())))
            }
            (Self::CookieEcho(cookie), Chunk::CookieEcho(echo)) => echo.cookie == cookie,
            (Self::IData { .. }, Chunk::IData(data)) => self.i_data() == Some(data),
            (Self::IForwardTsn(tsn, messages), Chunk::IForwardTsn(forward)) => {
                forward.new_cumulative_tsn() == Tsn(*tsn)
                    && forward.messages().eq(messages_of(messages))
            }
            (Self::ForwardTsn(tsn, streams), Chunk::ForwardTsn(forward)) => {
                forward.new_cumulative_tsn() == Tsn(*tsn) && forward.streams().eq(skipped(streams))
            }
            (Self::Auth(key_id, hmac_id, hmac), Chunk::Auth(auth)) => {
                (auth.key_id, auth.hmac_id, auth.hmac) == (*key_id, *hmac_id, hmac.as_slice())
            }
            (Self::Asconf(serial, lookup, list), Chunk::Asconf(asconf)) => {
                (asconf.serial, asconf.lookup) == (*serial, *lookup)
                    && asked(&asconf.parameters) == *list
            }
            (Self::Asconf(serial, None, list), Chunk::AsconfAck(ack)) => {
                ack.serial == *serial && asked(&ack.parameters) == *list
            }
            (Self::Plain(chunk), parsed) => *chunk == parsed,
            (Self::Unknown { ty, flags, value }, Chunk::Unknown(unknown)) => {
                (unknown.ty, unknown.flags, unknown.value()) == (*ty, *flags, value.as_slice())
            }
            _ => false,
        }
    }
}

fn messages_of(list: &[(u16, bool, u32)]) -> impl Iterator<Item = SkippedMessage> + '_ {
    list.iter().map(|&(stream, unordered, mid)| SkippedMessage {
        stream: StreamId(stream),
        unordered,
        mid: Mid(mid),
    })
}

fn skipped(streams: &[(u16, u16)]) -> impl Iterator<Item = SkippedStream> + '_ {
    streams.iter().map(|&(stream, ssn)| SkippedStream { stream: StreamId(stream), ssn: Ssn(ssn) })
}

fn asked(list: &AsconfParameters<'_>) -> Vec<(u16, u32, std::net::IpAddr)> {
    let seen = list.iter().map(|item| {
        let item = item.unwrap();
        let (AsconfParameter::Add(ip)
        | AsconfParameter::Delete(ip)
        | AsconfParameter::SetPrimary(ip)) = item.parameter
        else {
            panic!("{item:?}")
        };
        (item.ty, item.correlation, ip)
    });
    seen.collect()
}

/// Writes the chunks into a packet of at most `limit` bytes, omitting those that do not fit, and
/// returns those that were written.
fn bundle(chunks: &[OwnedChunk], limit: usize) -> (Vec<u8>, Vec<&OwnedChunk>) {
    let mut buf = vec![0xff; limit];
    let mut writer = PacketWriter::new(&mut buf, HEADER);
    let mut written = Vec::new();
    for chunk in chunks {
        let before = (writer.len(), writer.chunk_count());
        if chunk.write(&mut writer).is_ok() {
            written.push(chunk);
        } else {
            assert_eq!(before, (writer.len(), writer.chunk_count()));
        }
        assert!(writer.len().is_multiple_of(4));
        assert_eq!(writer.len() + writer.remaining(), limit & !3);
    }
    assert_eq!(writer.chunk_count(), written.len());
    let len = writer.finish(Checksum::Verify);
    assert!(buf[len..].iter().all(|&b| b == 0xff) || written.len() < chunks.len());
    buf.truncate(len);
    (buf, written)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_chunk_parses_to_what_was_written(chunk in chunk()) {
        let (datagram, written) = bundle(std::slice::from_ref(&chunk), 1500);
        prop_assert_eq!(written.len(), 1);
        let packet = Packet::parse(&datagram, Checksum::Verify).unwrap();
        prop_assert_eq!(packet.header(), HEADER);
        let mut chunks = packet.chunks();
        let parsed = chunks.next().unwrap().unwrap();
        prop_assert!(chunk.is(&parsed), "{:?}", parsed);
        prop_assert_eq!(chunks.next(), None);
    }

    #[test]
    fn a_bundle_parses_to_what_was_written(chunks in vec(chunk(), 0..8), limit in 12..900_usize) {
        let (datagram, written) = bundle(&chunks, limit);
        let packet = Packet::parse(&datagram, Checksum::Verify).unwrap();
        let parsed: Vec<_> = packet.chunks().map(Result::unwrap).collect();
        prop_assert_eq!(parsed.len(), written.len());
        for (written, parsed) in written.into_iter().zip(&parsed) {
            // A SACK is truncated to the available space.
            let cut = datagram.len() + 4 > limit && matches!(written, OwnedChunk::Sack { .. } | OwnedChunk::NrSack { .. });
            prop_assert!(cut || written.is(parsed), "{:?}", parsed);
        }
    }

    #[test]
    fn a_parameter_parses_to_what_was_written(parameter in parameter()) {
        let mut buf = [0xff; 200];
        let len = ParameterWriter::fill(&mut buf, |p| p.parameter(&parameter.borrow())).unwrap();
        prop_assert!(Parameters::new(&buf[..len]).iter().eq([Ok(parameter.borrow())]));
    }

    #[test]
    fn a_cause_parses_to_what_was_written(cause in cause()) {
        let mut buf = [0xff; 200];
        let len = CauseWriter::fill(&mut buf, |c| c.cause(&cause.borrow())).unwrap();
        prop_assert!(Causes::new(&buf[..len]).iter().eq([Ok(cause.borrow())]));
        // Text from a peer must not move a terminal's cursor.
        prop_assert!(!cause.borrow().to_string().contains(char::is_control));
    }

    #[test]
    fn random_bytes_do_no_harm(mut datagram in vec(any::<u8>(), 0..300)) {
        prop_assert!(walk(&datagram) <= datagram.len());
        // Again with a length that parses, and with small numbers in the positions of length
        // fields.
        datagram.truncate(datagram.len() & !3);
        prop_assert!(walk(&datagram) <= datagram.len());
        for byte in datagram.iter_mut().skip(14).step_by(4) {
            *byte = 0;
        }
        for byte in datagram.iter_mut().skip(12).step_by(4) {
            *byte &= 0x0f;
        }
        prop_assert!(walk(&datagram) <= datagram.len());
    }

    #[test]
    fn mutated_packets_do_no_harm(
        chunks in vec(chunk(), 1..6),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut datagram, _) = bundle(&chunks, 1500);
        for (at, value) in changes {
            let at = at.index(datagram.len());
            datagram[at] = value;
        }
        prop_assert!(walk(&datagram) <= datagram.len());
        datagram.truncate(cut.index(datagram.len()) & !3);
        prop_assert!(walk(&datagram) <= datagram.len());
    }
}
