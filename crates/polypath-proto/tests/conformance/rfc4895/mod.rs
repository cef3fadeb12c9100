//! RFC 4895, Authenticated Chunks: the requirements with MUST.
//!
//! [`Peer`] computes keys and codes from the packets' bytes without the library.

mod parameters;
mod receiving;
mod sending;

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

use crate::bytes::{Raw, chunk, parameters, reseal};
use crate::common::*;
use polypath_proto::wire::{Auth, Chunk, PacketWriter, ParameterWriter};
use polypath_proto::*;

const DATA: u8 = 0;
const INIT: u16 = 1;
const INIT_ACK: u16 = 2;
const AUTH: u8 = 15;
const I_DATA: u8 = 64;
const SHA_1: u16 = 1;
const SHA_256: u16 = 3;
const RANDOM: u16 = 0x8002;
const CHUNKS: u16 = 0x8003;
const HMAC_ALGO: u16 = 0x8004;

/// An endpoint that accepts chunks of these types only if they are authenticated.
fn config(types: &[u8]) -> ConfigBuilder {
    let types = ChunkTypes::authenticated(types);
    Config::rfc9260()
        .to_builder()
        .authentication(true)
        .authenticated_chunks(types)
        .heartbeat_interval(None)
}

/// Host 1 has these keys in addition to the empty one, and sends with the last of them.
fn pair_with(types: &[u8], keys: &[(u16, &[u8])]) -> Net {
    let mut auth_keys = AuthKeys::default();
    for (id, secret) in keys {
        auth_keys.set(*id, secret).unwrap();
        auth_keys.activate(*id).unwrap();
    }
    let config = config(types).build().unwrap();
    let auth_keys = [AuthKeys::default(), auth_keys];
    Setup { configs: [config.clone(), config], auth_keys, ..Setup::default() }.build()
}

/// The parameter of this type.
fn parameter(list: &[Raw], ty: u16) -> Option<&Raw> {
    list.iter().find(|p| p.ty == ty)
}

/// RFC 4895 6.1: the key vector, without padding.
fn vector(list: &[Raw]) -> Vec<u8> {
    let found = [RANDOM, CHUNKS, HMAC_ALGO].into_iter().filter_map(|ty| parameter(list, ty));
    let bytes = found.flat_map(|p| {
        let head = [p.ty.to_be_bytes(), (p.value.len() as u16 + 4).to_be_bytes()];
        [&head.concat(), &p.value[..]].concat()
    });
    bytes.collect()
}

/// Offset of the first AUTH chunk of a packet.
fn auth_at(packet: &[u8]) -> Option<usize> {
    let mut at = 12;
    while at + 4 <= packet.len() {
        if packet[at] == AUTH {
            return Some(at);
        }
        let length = u16::from_be_bytes([packet[at + 2], packet[at + 3]]);
        at += usize::from(length).next_multiple_of(4);
    }
    None
}

/// RFC 4895 6.2: the code of a packet's bytes from the AUTH chunk on, with zeros as its code.
fn code(key: &[u8], from_auth: &[u8]) -> Vec<u8> {
    let mut data = from_auth.to_vec();
    let length = usize::from(u16::from_be_bytes([data[2], data[3]]));
    data[8..length].fill(0);
    match u16::from_be_bytes([data[6], data[7]]) {
        SHA_1 => {
            let mut mac = Hmac::<Sha1>::new_from_slice(key).unwrap();
            mac.update(&data);
            mac.finalize().into_bytes().to_vec()
        }
        SHA_256 => {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
            mac.update(&data);
            mac.finalize().into_bytes().to_vec()
        }
        _ => vec![0; length - 8],
    }
}

/// A hand-built peer of host 1.
struct Peer {
    hand: Hand,
    /// The key vectors, the smaller one first.
    vectors: [Vec<u8>; 2],
    /// Number and secret of the key that authenticates its packets.
    key: (u16, Vec<u8>),
    hmac: u16,
}

impl Peer {
    /// Exchanges INIT and INIT ACK; `own` writes the INIT's parameters.
    fn meet(net: &mut Net, own: &dyn Fn(&mut ParameterWriter<'_>)) -> Self {
        Self::meet_as(net, Hand::new(1), own)
    }

    fn meet_as(net: &mut Net, mut hand: Hand, own: &dyn Fn(&mut ParameterWriter<'_>)) -> Self {
        let init = hand.packet(0, &|w| {
            w.init(&hand.fields(), |p| {
                own(p);
                Ok(())
            })
            .unwrap();
        });
        Self::meet_with(net, &mut hand, &init)
    }

    fn meet_with(net: &mut Net, hand: &mut Hand, init: &[u8]) -> Self {
        let answers = hand.raw(net, init);
        hand.learn(&answers[0]);
        let mut vectors = [
            vector(&parameters(&chunk(init, INIT))),
            vector(&parameters(&chunk(&answers[0].bytes, INIT_ACK))),
        ];
        // Parameter types begin with bit 1, so a longer vector is the larger number.
        vectors.sort_by_key(|v| (v.len(), v.clone()));
        Self { hand: hand.clone(), vectors, key: (0, Vec::new()), hmac: SHA_256 }
    }

    /// An association without endpoint pair shared keys; the peer requires these types to be
    /// authenticated.
    fn open(net: &mut Net, types: &[u8]) -> Self {
        let peer = Self::meet(net, &|p| offer(p, types));
        let answers = peer.say(net, &|w| w.cookie_echo(&peer.hand.cookie).unwrap());
        assert!(answers[0].has("COOKIE ACK"), "{}", net.tail(3));
        peer
    }

    /// The association shared key made from this endpoint pair shared key.
    fn association_key(&self, secret: &[u8]) -> Vec<u8> {
        [secret, &self.vectors[0], &self.vectors[1]].concat()
    }

    /// A packet with an AUTH chunk between these two groups of chunks.
    fn sealed(&self, before: Chunks<'_>, behind: Chunks<'_>) -> Vec<u8> {
        let len = if self.hmac == SHA_1 { 20 } else { 32 };
        let mut packet = self.hand.packet(self.hand.peer_tag, &|w| {
            before(w);
            let auth = Auth { key_id: self.key.0, hmac_id: self.hmac, hmac: &[0; 32][..len] };
            w.chunk(&Chunk::Auth(auth)).unwrap();
            behind(w);
        });
        self.seal(&mut packet);
        packet
    }

    /// Writes the code of the AUTH chunk into a packet.
    fn seal(&self, packet: &mut [u8]) {
        let at = auth_at(packet).unwrap();
        let code = code(&self.association_key(&self.key.1), &packet[at..]);
        packet[at + 8..at + 8 + code.len()].copy_from_slice(&code);
        reseal(packet);
    }

    /// Sends authenticated chunks; returns the answers.
    fn say(&self, net: &mut Net, behind: Chunks<'_>) -> Vec<Sent> {
        let packet = self.sealed(&|_| {}, behind);
        self.hand.raw(net, &packet)
    }

    /// Sends the peer's `n`-th chunk, authenticated; returns the answers.
    fn data(&self, net: &mut Net, n: u32, payload: &[u8]) -> Vec<Sent> {
        let data = self.hand.chunk(n, payload);
        self.say(net, &|w| w.data(&data).unwrap())
    }

    /// Key identifier and HMAC identifier of a packet, if its code is right.
    fn verified(&self, packet: &Sent, secret: &[u8]) -> Option<(u16, u16)> {
        let from_auth = &packet.bytes[auth_at(&packet.bytes)?..];
        let length = usize::from(u16::from_be_bytes([from_auth[2], from_auth[3]]));
        let right = code(&self.association_key(secret), from_auth);
        let id = |at| u16::from_be_bytes([from_auth[at], from_auth[at + 1]]);
        (from_auth[8..length] == right).then(|| (id(4), id(6)))
    }
}

/// Writes the parameters of an endpoint that requires these types to be authenticated.
fn offer(p: &mut ParameterWriter<'_>, types: &[u8]) {
    p.random(&[7; 32]).unwrap();
    if !types.is_empty() {
        p.chunk_list(types).unwrap();
    }
    p.hmac_algorithms(&[SHA_256, SHA_1]).unwrap();
}

/// Writes chunks.
type Chunks<'f> = &'f dyn Fn(&mut PacketWriter<'_>);

fn payloads(net: &Net) -> Vec<&[u8]> {
    net.hosts[1].received.iter().map(|r| &r.payload[..]).collect()
}
