//! Parses a datagram down to the last parameter and cause, and writes all valid chunks again.
//!
//! Nothing may panic, every iteration must end, and the written chunks must parse to the same.

#![no_main]

use std::fmt::{Debug, Display, Write};

use libfuzzer_sys::fuzz_target;
use polypath_proto::wire::{
    Cause, CauseError, Causes, Checksum, Chunk, ChunkError, CommonHeader, Packet, PacketWriter,
    Parameter, ParameterError, Parameters,
};

fuzz_target!(|datagram: &[u8]| {
    // A fuzzer cannot guess checksums; computing them is exercised nevertheless.
    let _ = Packet::parse(datagram, Checksum::Verify);
    let _ = CommonHeader::peek(datagram);
    let Ok(packet) = Packet::parse(datagram, Checksum::Ignore) else { return };

    let mut sound = Vec::new();
    let mut ended = false;
    let mut count = 0;
    for chunk in packet.chunks() {
        assert!(!ended, "nothing follows an error that ends the packet");
        count += 1;
        match chunk {
            Ok(chunk) => {
                chunk_deeply(&chunk);
                sound.push(chunk);
            }
            Err(error) => {
                ended = error.ends_packet();
                chunk_error(&error);
            }
        }
    }
    assert!(count <= datagram.len() / 4);

    // All valid chunks, written one after another, are not longer than the packet that they came
    // from.
    let mut buf = vec![0xff; datagram.len()];
    let mut writer = PacketWriter::new(&mut buf, packet.header());
    for chunk in &sound {
        writer.chunk(chunk).expect("what was parsed can be written");
    }
    assert_eq!(writer.chunk_count(), sound.len());
    let len = writer.finish(Checksum::Verify);
    let again = Packet::parse(&buf[..len], Checksum::Verify).expect("what was written parses");
    assert_eq!(again.header(), packet.header());
    assert!(again.chunks().eq(sound.iter().copied().map(Ok)));

    // The same with too small a buffer.
    let mut buf = vec![0xff; datagram.len() / 2];
    let mut writer = PacketWriter::new(&mut buf, packet.header());
    let mut written = 0;
    for chunk in &sound {
        let before = writer.len();
        match writer.chunk(chunk) {
            Ok(()) => written += 1,
            Err(_) => assert_eq!(writer.len(), before),
        }
    }
    let len = writer.finish(Checksum::Verify);
    if let Ok(again) = Packet::parse(&buf[..len], Checksum::Verify) {
        assert_eq!(again.chunks().filter(Result::is_ok).count(), written);
    }
});

fn chunk_deeply(chunk: &Chunk<'_>) {
    debug(chunk);
    match *chunk {
        Chunk::Data(data) => assert!(!data.payload.is_empty()),
        Chunk::IData(data) => assert!(!data.payload.is_empty()),
        Chunk::ForwardTsn(forward) => {
            let _ = forward.new_cumulative_tsn();
            assert_eq!(forward.streams().count(), (forward.raw.len() - 8) / 4);
        }
        Chunk::IForwardTsn(forward) => {
            let _ = forward.new_cumulative_tsn();
            assert_eq!(forward.messages().count(), (forward.raw.len() - 8) / 8);
        }
        Chunk::Init(init) | Chunk::InitAck(init) => parameters(init.parameters),
        Chunk::Sack(sack) | Chunk::NrSack(sack) => {
            for gap in sack.gaps().chain(sack.gaps().rev()) {
                let _ = (gap.is_sound(), gap.first(sack.cumulative_tsn_ack));
                let _ = gap.last(sack.cumulative_tsn_ack);
            }
            assert_eq!(sack.gaps().len(), sack.gaps().count());
            assert_eq!(sack.all_gaps().count(), sack.gaps().len() + sack.nr_gaps().len());
            assert_eq!(sack.duplicates().len(), sack.duplicates().count());
        }
        Chunk::Abort(abort) => causes(abort.causes),
        Chunk::Error(error) => causes(error.causes),
        Chunk::ReConfig(re_config) => {
            let mut ended = false;
            for parameter in re_config.parameters.iter() {
                assert!(!ended, "nothing follows a length that is wrong");
                ended = parameter == Err(ParameterError::Length);
                debug(&parameter);
            }
        }
        Chunk::Asconf(asconf) => asconf.parameters.iter().for_each(|item| debug(&item)),
        Chunk::AsconfAck(ack) => ack.parameters.iter().for_each(|item| debug(&item)),
        Chunk::Unknown(unknown) => {
            assert_eq!(unknown.raw.len(), 4 + unknown.value().len());
            let _ = (unknown.action().stops(), unknown.action().reports());
        }
        _ => {}
    }
}

fn chunk_error(error: &ChunkError<'_>) {
    debug(error);
    display(error);
    let _ = error.ty();
}

fn parameters(list: Parameters<'_>) {
    let mut ended = false;
    for parameter in list {
        assert!(!ended, "nothing follows a length that is wrong");
        ended = parameter == Err(ParameterError::Length);
        debug(&parameter);
        match parameter {
            Ok(Parameter::SupportedAddressTypes(types)) => {
                assert_eq!(types.len(), types.iter().count());
            }
            Ok(Parameter::UnrecognizedParameter(raw)) => {
                // The stack does not parse nested parameters; this parses one level of them.
                debug(&Parameters::new(raw));
            }
            Ok(parameter) => {
                let _ = (parameter.action(), parameter.address());
            }
            Err(error) => display(&error),
        }
    }
}

fn causes(list: Causes<'_>) {
    let mut ended = false;
    for cause in list {
        assert!(!ended, "nothing follows a length that is wrong");
        ended = cause == Err(CauseError::Length);
        debug(&cause);
        match cause {
            Ok(cause) => {
                display(&cause);
                match cause {
                    Cause::UnrecognizedParameters(list) | Cause::RestartWithNewAddresses(list) => {
                        parameters(list);
                    }
                    _ => {}
                }
            }
            Err(error) => display(&error),
        }
    }
}

fn debug(value: &impl Debug) {
    write!(Sink, "{value:?}").expect("a sink takes all");
}

/// Text for users never contains control characters.
fn display(value: &impl Display) {
    write!(Sink, "{value}").expect("no control characters");
}

struct Sink;

impl Write for Sink {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if text.contains(char::is_control) { Err(std::fmt::Error) } else { Ok(()) }
    }
}
