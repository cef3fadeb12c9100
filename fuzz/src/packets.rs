//! Packets of the peer: their addresses, verification tag and authentication.

use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use polypath_proto::wire::{Checksum, CommonHeader, PacketWriter, chunk_type, hmac_id};
use polypath_proto::{Ecn, VerificationTag};

use super::Input;

pub const PORT: u16 = 5000;
/// Last bytes of the peer's addresses, and of the endpoint's.
pub const OURS: [u8; 2] = [100, 101];
pub const THEIRS: [u8; 2] = [1, 2];

/// The address with this last byte; some values select special addresses.
pub fn ip(last: u8) -> IpAddr {
    match last {
        0 => IpAddr::from([0, 0, 0, 0]),
        255 => IpAddr::from([0u16; 8]),
        250 => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]),
        251 => IpAddr::from([224, 0, 0, 1]),
        _ => IpAddr::from([10, 0, 0, last]),
    }
}

/// The argument with which [`ip`] makes this address; the multicast address is not mapped back.
pub fn last_byte(address: IpAddr) -> u8 {
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

/// Authentication of a packet of the peer, if both sides have offered it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Right,
    Not,
    /// With a wrong code.
    Wrong,
    /// The AUTH chunk follows the first chunk.
    Late,
}

/// How the peer sends a packet.
#[derive(Clone, Copy)]
pub struct How {
    pub sign: Sign,
    /// Verification tag: 0 for the right one, 1 for the peer's own, 2 for zero.
    pub tag: u8,
    /// The last bytes of the destination address and of the source address.
    pub way: (u8, u8),
    pub ecn: Ecn,
}

impl How {
    /// A valid packet between the first addresses.
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

pub fn packet(tag: u32, chunks: impl FnOnce(&mut PacketWriter<'_>)) -> Vec<u8> {
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
pub fn sign(packet: &mut Vec<u8>, key: &[u8], how: Sign) {
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
