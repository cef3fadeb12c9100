//! A hostile peer changes addresses and authenticates, at the level of the state machine: ASCONF, ASCONF-ACK and AUTH
//! chunks out of place, truncated, repeated, while addresses of this host come and go too.
//!
//! Nothing may panic, the accounting must hold, paths are bounded, and an address that has not been confirmed gets
//! nothing but small packets, few at a time.

#![no_main]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use polypath_proto::wire::{
    AsconfParameter, Checksum, Chunk, CommonHeader, InitFields, Packet, PacketWriter, Parameter,
    asconf_type,
};
use polypath_proto::{
    Config, Ecn, Encapsulation, Endpoint, EndpointConfig, FourTuple, PathState, Seed, Time, Tsn,
    VerificationTag,
};

const TAG: u32 = 0x0bad_cafe;
const TSN: u32 = 0xffff_fffe;
const MOST_PATHS: u8 = 5;

fuzz_target!(|input: &[u8]| {
    let mut input = input.iter().copied();
    let authenticated = input.next().is_some_and(|byte| byte & 1 == 1);
    let mut run = Run::open(authenticated);
    while let Some(step) = input.next() {
        run.step(step, &mut input);
    }
});

struct Run {
    endpoint: Endpoint,
    now: Time,
    peer_tag: u32,
    serial: u32,
    buf: Vec<u8>,
    last: Vec<u8>,
}

fn ip(last: u8) -> IpAddr {
    match last {
        0 => IpAddr::from([0, 0, 0, 0]),
        255 => IpAddr::from([0u16; 8]),
        250 => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]),
        251 => IpAddr::from([224, 0, 0, 1]),
        _ => IpAddr::from([10, 0, 0, last]),
    }
}

impl Run {
    fn open(authenticated: bool) -> Self {
        let builder = Config::builder().dynamic_addresses(true).max_paths(MOST_PATHS);
        let config = builder
            .authentication(authenticated)
            .unauthenticated_addresses(!authenticated)
            .build()
            .expect("a sound configuration");
        let config = EndpointConfig {
            listen: true,
            association: config,
            checksum: Checksum::Ignore,
            ..EndpointConfig::new(9260, vec![ip(1), ip(2)], Encapsulation::RawIp)
        };
        let endpoint = Endpoint::new(config, Seed::from_u64(1));
        let buf = vec![0; 65_536];
        let now = Time::ZERO;
        let mut run = Self { endpoint, now, peer_tag: 0, serial: TSN, buf, last: Vec::new() };
        let fields = InitFields {
            initiate_tag: VerificationTag(TAG),
            a_rwnd: 1 << 16,
            outbound_streams: 4,
            inbound_streams: 4,
            initial_tsn: Tsn(TSN),
        };
        let init = run.packet(|w| {
            w.init(&fields, |p| {
                p.supported_extensions(&[193, 128, 15])?;
                p.random(&[7; 32])?;
                p.chunk_list(&[193, 128])?;
                p.hmac_algorithms(&[3, 1])
            })
            .expect("an INIT fits");
        });
        let answers = run.say(100, &init);
        let mut cookie = Vec::new();
        for answer in &answers {
            let packet = Packet::parse(answer, Checksum::Ignore).expect("an INIT ACK");
            for chunk in packet.chunks().flatten() {
                let Chunk::InitAck(init) = chunk else { continue };
                run.peer_tag = init.initiate_tag.0;
                for parameter in init.parameters.iter().flatten() {
                    if let Parameter::StateCookie(bytes) = parameter {
                        cookie = bytes.to_vec();
                    }
                }
            }
        }
        let echo = run.packet(|w| w.cookie_echo(&cookie).expect("a cookie fits"));
        run.say(100, &echo);
        assert_eq!(run.endpoint.associations().count(), 1);
        run
    }

    fn packet(&self, chunks: impl FnOnce(&mut PacketWriter<'_>)) -> Vec<u8> {
        let header = CommonHeader {
            source_port: 9260,
            destination_port: 9260,
            verification_tag: VerificationTag(self.peer_tag),
        };
        let mut buf = vec![0; 4096];
        let mut w = PacketWriter::new(&mut buf, header);
        chunks(&mut w);
        let len = w.finish(Checksum::Ignore);
        buf.truncate(len);
        buf
    }

    /// A packet of the peer's from one of its addresses; what is sent then.
    fn say(&mut self, from: u8, packet: &[u8]) -> Vec<Vec<u8>> {
        let remote = SocketAddr::new(ip(from), 0);
        let four_tuple = FourTuple { local: SocketAddr::new(ip(1), 0), remote };
        self.endpoint.handle_datagram(self.now, four_tuple, Ecn::NotEct, packet);
        self.settle()
    }

    fn settle(&mut self) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        while let Some(t) = self.endpoint.poll_transmit(self.now, &mut self.buf) {
            sent.push(self.buf[..t.size].to_vec());
            assert!(sent.len() < 1000, "it sends without end");
            if let Some((id, path)) = t.path
                && let Some(view) = self.endpoint.association(id).and_then(|a| a.path(path))
                && view.state == PathState::Unconfirmed
            {
                assert!(t.size < 200, "{} bytes to who has not been asked", t.size);
            }
        }
        while self.endpoint.poll_event().is_some() {}
        if let Err(what) = self.endpoint.check_invariants() {
            panic!("{what}");
        }
        for id in self.endpoint.associations() {
            let Some(a) = self.endpoint.association(id) else { continue };
            let there = a.paths().filter(|p| p.state != PathState::Removed).count();
            assert!((1..=usize::from(MOST_PATHS)).contains(&there), "{there} paths");
        }
        sent
    }

    fn step(&mut self, step: u8, input: &mut impl Iterator<Item = u8>) {
        let mut byte = || input.next().unwrap_or_default();
        let from = if step & 0x40 == 0 { 100 } else { byte() };
        match step & 0x0f {
            0..=5 => {
                // Mostly the right number.
                let serial = match byte() {
                    n @ 0..=15 => self.serial.wrapping_add(u32::from(n)).wrapping_sub(8),
                    _ => self.serial,
                };
                let lookup = ip(byte());
                let requests: Vec<[u8; 3]> =
                    (0..byte() % 40).map(|_| [byte(), byte(), byte()]).collect();
                let packet = self.packet(|w| {
                    let _ = w.asconf(serial, lookup, |p| {
                        requests.iter().try_for_each(|[ty, id, last]| {
                            let types = [
                                asconf_type::ADD_ADDRESS,
                                asconf_type::DELETE_ADDRESS,
                                asconf_type::SET_PRIMARY,
                                asconf_type::ERROR_CAUSE,
                                0x0063,
                            ];
                            p.request(types[usize::from(*ty) % 5], u32::from(*id), ip(*last))
                        })
                    });
                });
                self.last = packet.clone();
                for answer in self.say(from, &packet) {
                    self.learn(&answer);
                }
            }
            6 => {
                let packet = self.last.clone();
                self.say(from, &packet);
            }
            7..=9 => {
                let ty = [193, 128, 15, 4][usize::from(byte() % 4)];
                let flags = byte();
                let value: Vec<u8> = (0..byte()).map(|_| byte()).collect();
                let packet = self.packet(|w| {
                    let _ = w.typed_chunk(ty, flags, &value);
                });
                self.say(from, &packet);
            }
            10 => {
                let number = u32::from(byte()).wrapping_sub(4).wrapping_add(TSN);
                let packet = self.packet(|w| {
                    let _ = w.asconf_ack(number, |p| p.success(0));
                });
                self.say(from, &packet);
            }
            11 => self.endpoint.add_local_address(self.now, ip(1 + byte() % 4)),
            12 => self.endpoint.remove_local_address(self.now, ip(1 + byte() % 4)),
            13 => {
                self.now = self.now + Duration::from_millis(u64::from(byte()) * 40);
                self.endpoint.handle_timeout(self.now);
            }
            _ => {
                let ids: Vec<_> = self.endpoint.associations().collect();
                for id in ids {
                    let now = self.now;
                    if let Some(a) = self.endpoint.association_mut(id) {
                        let message =
                            polypath_proto::Message::new(polypath_proto::StreamId(0), vec![1; 3000]);
                        let _ = a.send(now, message);
                    }
                }
            }
        }
        self.settle();
    }

    /// A number that was answered is used.
    fn learn(&mut self, answer: &[u8]) {
        let Ok(packet) = Packet::parse(answer, Checksum::Ignore) else { return };
        for chunk in packet.chunks().flatten() {
            if let Chunk::AsconfAck(ack) = chunk {
                if ack.serial == self.serial {
                    self.serial = self.serial.wrapping_add(1);
                }
                let refused =
                    |p: &AsconfParameter<'_>| matches!(p, AsconfParameter::Error(_));
                let _ = ack.parameters.iter().flatten().filter(|i| refused(&i.parameter)).count();
            }
        }
    }
}
