//! Tests with complete packets, and helpers for the tests of the chunks.

use super::*;
use crate::{Ppid, Ssn, StreamId, Tsn, VerificationTag};

pub(super) const HEADER: CommonHeader = CommonHeader {
    source_port: 32836,
    destination_port: 9899,
    verification_tag: VerificationTag(0x2ac1_7b90),
};

/// The chunk that `write` writes into a packet with room for `room` bytes of chunks.
pub(super) fn chunk_bytes_in(
    room: usize,
    write: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), DoesNotFit>,
) -> Result<Vec<u8>, DoesNotFit> {
    let mut buf = vec![0xff; COMMON_HEADER_LEN + room];
    let mut writer = PacketWriter::new(&mut buf, HEADER);
    let before = (writer.len(), writer.remaining(), writer.chunk_count());
    let result = write(&mut writer);
    match result {
        Ok(()) => assert_eq!((writer.chunk_count(), writer.is_empty()), (1, false)),
        Err(DoesNotFit) => {
            assert_eq!((writer.len(), writer.remaining(), writer.chunk_count()), before);
        }
    }
    let len = writer.finish(Checksum::Ignore);
    result.map(|()| buf[COMMON_HEADER_LEN..len].to_vec())
}

/// The chunk that `write` writes.
pub(super) fn chunk_bytes(
    write: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), DoesNotFit>,
) -> Vec<u8> {
    chunk_bytes_in(1000, write).unwrap()
}

/// Whether the output of `write` fits into `room` bytes.
pub(super) fn writes(
    room: usize,
    write: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), DoesNotFit>,
) -> bool {
    chunk_bytes_in(room, write).is_ok()
}

/// The only chunk in `bytes`.
pub(super) fn only_chunk(bytes: &[u8]) -> Result<Chunk<'_>, ChunkError<'_>> {
    let mut chunks = Chunks::new(bytes);
    let chunk = chunks.next().expect("a chunk");
    assert_eq!(chunks.next(), None);
    if let Ok(chunk) = chunk {
        assert_eq!(chunk.ty(), bytes[0]);
    }
    chunk
}

/// Parses all items of a datagram, writes each chunk again, and returns the number of chunks,
/// parameters and causes.
pub(super) fn walk(datagram: &[u8]) -> usize {
    let Ok(packet) = Packet::parse(datagram, Checksum::Ignore) else { return 0 };
    let mut items = 0;
    for chunk in packet.chunks() {
        items += 1;
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        items += match chunk {
            Chunk::Init(init) | Chunk::InitAck(init) => init.parameters.iter().count(),
            Chunk::Asconf(asconf) => asconf.parameters.iter().count(),
            Chunk::AsconfAck(ack) => ack.parameters.iter().count(),
            Chunk::Abort(Abort { causes, .. }) | Chunk::Error(ErrorChunk { causes }) => {
                causes.iter().map(|c| 1 + c.map_or(0, |c| c.to_string().len().min(1))).sum()
            }
            _ => 0,
        };
        assert!(!format!("{chunk:?}").is_empty());
        let bytes = chunk_bytes_in(datagram.len(), |w| w.chunk(&chunk)).unwrap();
        assert_eq!(only_chunk(&bytes), Ok(chunk));
    }
    items
}

// Packets of an association. Their bytes and checksums come from an independent program, which
// computes the CRC bit by bit.

const INIT: [u8; 64] = [
    0x80, 0x44, 0x26, 0xab, 0x00, 0x00, 0x00, 0x00, 0x93, 0xeb, 0xfa, 0xf1, 0x01, 0x00, 0x00, 0x34,
    0x5b, 0xd6, 0xac, 0xf1, 0x00, 0x01, 0xa0, 0x00, 0x00, 0x0a, 0xff, 0xff, 0x8b, 0x4f, 0x2c, 0x33,
    0x00, 0x05, 0x00, 0x08, 0xc0, 0x00, 0x02, 0x0a, 0x00, 0x05, 0x00, 0x08, 0xc6, 0x33, 0x64, 0x0a,
    0x00, 0x0c, 0x00, 0x08, 0x00, 0x05, 0x00, 0x06, 0x80, 0x00, 0x00, 0x04, 0xc0, 0x00, 0x00, 0x04,
];

const SACK_AND_DATA: [u8; 68] = [
    0x80, 0x44, 0x26, 0xab, 0x2a, 0xc1, 0x7b, 0x90, 0x7e, 0x61, 0x3a, 0x2c, 0x03, 0x00, 0x00, 0x18,
    0x11, 0x22, 0x33, 0x43, 0x00, 0x01, 0x90, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x02, 0x00, 0x04,
    0x11, 0x22, 0x33, 0x40, 0x00, 0x03, 0x00, 0x1d, 0x8b, 0x4f, 0x2c, 0x33, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x2c, 0x20, 0x77, 0x6f, 0x72, 0x6c, 0x64,
    0x0a, 0x00, 0x00, 0x00,
];

const ABORT: [u8; 24] = [
    0x26, 0xab, 0x80, 0x44, 0x5b, 0xd6, 0xac, 0xf1, 0xfe, 0x5a, 0xcc, 0x58, 0x06, 0x00, 0x00, 0x0b,
    0x00, 0x0c, 0x00, 0x07, 0x62, 0x79, 0x65, 0x00,
];

/// The packet that `write` writes.
fn packet(header: CommonHeader, write: impl FnOnce(&mut PacketWriter<'_>)) -> Vec<u8> {
    let mut buf = vec![0xff; 1500];
    let mut writer = PacketWriter::new(&mut buf, header);
    write(&mut writer);
    let len = writer.finish(Checksum::Verify);
    buf.truncate(len);
    buf
}

#[test]
fn init_packet() {
    let header = CommonHeader { verification_tag: VerificationTag(0), ..HEADER };
    let parsed = Packet::parse(&INIT, Checksum::Verify).unwrap();
    assert_eq!(parsed.header(), header);
    let Ok(Chunk::Init(init)) = only_chunk(&INIT[COMMON_HEADER_LEN..]) else { panic!("no INIT") };
    let fields = InitFields {
        initiate_tag: VerificationTag(0x5bd6_acf1),
        a_rwnd: 106_496,
        outbound_streams: 10,
        inbound_streams: 65535,
        initial_tsn: Tsn(0x8b4f_2c33),
    };
    assert_eq!(InitFields::from(&init), fields);
    let expected = [
        Parameter::Ipv4([192, 0, 2, 10].into()),
        Parameter::Ipv4([198, 51, 100, 10].into()),
        Parameter::SupportedAddressTypes(U16List::from_be_bytes(&[0, 5, 0, 6]).unwrap()),
        Parameter::EcnCapable,
        Parameter::ForwardTsnSupported,
    ];
    assert!(init.parameters.iter().eq(expected.map(Ok)));
    let written = packet(header, |w| {
        w.init(&fields, |p| expected.iter().try_for_each(|e| p.parameter(e))).unwrap();
    });
    assert_eq!(written, INIT);
}

#[test]
fn sack_and_data_packet() {
    let parsed = Packet::parse(&SACK_AND_DATA, Checksum::Verify).unwrap();
    assert_eq!(parsed.header(), HEADER);
    let data = Data {
        tsn: Tsn(0x8b4f_2c33),
        stream: StreamId(0),
        ssn: Ssn(0),
        ppid: Ppid(0),
        unordered: false,
        beginning: true,
        end: true,
        immediate: false,
        retransmission: false,
        payload: b"hello, world\n",
    };
    let (cumulative, gap, duplicate) =
        (Tsn(0x1122_3343), GapBlock { start: 2, end: 4 }, Tsn(0x1122_3340));
    let mut chunks = parsed.chunks();
    let Some(Ok(Chunk::Sack(sack))) = chunks.next() else { panic!("no SACK") };
    assert_eq!((sack.cumulative_tsn_ack, sack.a_rwnd, sack.flags), (cumulative, 102_400, 0));
    assert!(sack.gaps().eq([gap]));
    assert!(sack.duplicates().eq([duplicate]));
    assert_eq!(chunks.next(), Some(Ok(Chunk::Data(data))));
    assert_eq!(chunks.next(), None);
    let written = packet(HEADER, |w| {
        w.sack(cumulative, 102_400, 0, [gap].into_iter(), [duplicate].into_iter()).unwrap();
        w.data(&data).unwrap();
        assert_eq!((w.chunk_count(), w.len()), (2, 68));
    });
    assert_eq!(written, SACK_AND_DATA);
}

#[test]
fn abort_packet() {
    let header = CommonHeader {
        source_port: 9899,
        destination_port: 32836,
        verification_tag: VerificationTag(0x5bd6_acf1),
    };
    let parsed = Packet::parse(&ABORT, Checksum::Verify).unwrap();
    assert_eq!(parsed.header(), header);
    let written = packet(header, |w| {
        w.abort(false, |c| c.user_initiated_abort(b"bye")).unwrap();
    });
    assert_eq!(written, ABORT);
}

/// One packet with every chunk.
fn every_chunk() -> Vec<u8> {
    let fields = InitFields {
        initiate_tag: VerificationTag(1),
        a_rwnd: 2,
        outbound_streams: 3,
        inbound_streams: 4,
        initial_tsn: Tsn(5),
    };
    packet(HEADER, |w| {
        w.init(&fields, |p| {
            p.ipv6(std::net::Ipv6Addr::LOCALHOST)?;
            p.cookie_preservative(1)?;
            p.supported_address_types(&[5])
        })
        .unwrap();
        w.init_ack(&fields, |p| {
            p.state_cookie(b"cookie")?;
            p.unrecognized_parameter(&[0xc0, 0, 0, 4])
        })
        .unwrap();
        w.data(&Data {
            tsn: Tsn(1),
            stream: StreamId(2),
            ssn: Ssn(3),
            ppid: Ppid(4),
            unordered: true,
            beginning: true,
            end: false,
            immediate: false,
            retransmission: false,
            payload: b"x",
        })
        .unwrap();
        w.heartbeat(b"info").unwrap();
        w.heartbeat_ack(b"info").unwrap();
        w.error(|c| {
            c.stale_cookie(7)?;
            c.missing_mandatory_parameter(&[7])?;
            c.unrecognized_parameters(|p| p.raw(&[0xc0, 0, 0, 5, 1]))
        })
        .unwrap();
        w.abort(true, |c| c.protocol_violation(b"why")).unwrap();
        w.shutdown(Tsn(9)).unwrap();
        w.shutdown_ack().unwrap();
        w.shutdown_complete(true).unwrap();
        w.cookie_echo(b"cookie").unwrap();
        w.cookie_ack().unwrap();
        w.ecne(Tsn(1)).unwrap();
        w.cwr(Tsn(1)).unwrap();
        w.raw_chunk(&[0xc3, 0, 0, 5, 1]).unwrap();
        w.sack(Tsn(1), 2, 3, [GapBlock { start: 2, end: 2 }].into_iter(), std::iter::empty())
            .unwrap();
    })
}

#[test]
fn every_chunk_in_one_packet() {
    let bytes = every_chunk();
    let parsed = Packet::parse(&bytes, Checksum::Verify).unwrap();
    let types = [1, 2, 0, 4, 5, 9, 6, 7, 8, 14, 10, 11, 12, 13, 0xc3, 3];
    assert!(parsed.chunks().map(|c| c.unwrap().ty()).eq(types));
    assert_eq!(walk(&bytes), types.len() + 3 + 2 + 2 * 3 + 2);
}

#[test]
fn every_truncation() {
    for bytes in [&INIT[..], &SACK_AND_DATA, &ABORT, &every_chunk()] {
        let whole = Packet::parse(bytes, Checksum::Verify).unwrap();
        let whole: Vec<_> = whole.chunks().map(Result::unwrap).collect();
        for len in 0..bytes.len() {
            let cut = &bytes[..len];
            assert!(Packet::parse(cut, Checksum::Verify).is_err());
            walk(cut);
            let Ok(packet) = Packet::parse(cut, Checksum::Ignore) else {
                assert!(len < COMMON_HEADER_LEN || len % 4 != 0);
                continue;
            };
            // The chunks before the cut, and an error for the truncated chunk.
            let mut chunks = packet.chunks();
            let sound = chunks.by_ref().map_while(Result::ok).collect::<Vec<_>>();
            assert_eq!(sound, whole[..sound.len()]);
            assert!(sound.len() < whole.len());
            assert_eq!(chunks.next(), None);
        }
    }
}

/// Replaces every byte of valid packets with values that change the meaning of lengths and types.
#[test]
fn every_byte_replaced() {
    for bytes in [&INIT[..], &SACK_AND_DATA, &ABORT, &every_chunk()] {
        let mut bytes = bytes.to_vec();
        for at in 0..bytes.len() {
            let original = bytes[at];
            for value in [0, 1, 3, 4, 5, 0x7f, 0x80, 0xfe, 0xff, original ^ 1] {
                bytes[at] = value;
                walk(&bytes);
            }
            bytes[at] = original;
        }
    }
}
