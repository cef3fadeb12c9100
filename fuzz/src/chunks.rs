//! Chunks made from the input's bytes. Numbers that only have an effect near others (TSNs, streams,
//! requests), counts and lengths are moved into range, so that a chunk is not hostile by its format
//! alone.

use std::net::IpAddr;

use polypath_proto::wire::{asconf_type, chunk_type, hmac_id};

use super::Input;
use super::packets::ip;
use super::peer::Peer;

/// A chunk of the peer: type, flags, value.
pub type RawChunk = (u8, u8, Vec<u8>);

/// Parameters of ASCONF and ASCONF-ACK (RFC 5061 4.2), and an unknown one.
const REQUESTS: [u16; 4] =
    [asconf_type::ADD_ADDRESS, asconf_type::DELETE_ADDRESS, asconf_type::SET_PRIMARY, 0xc0ff];
const ANSWERS: [u16; 3] =
    [asconf_type::SUCCESS, asconf_type::ERROR_CAUSE, asconf_type::ADD_ADDRESS];

impl Peer {
    /// The next chunk of the input; its type is one of `kinds`.
    pub fn chunk(&mut self, kinds: &[u8], input: &mut Input<'_>) -> RawChunk {
        let (kind, flags, len) = (input.byte(), input.byte(), input.byte());
        let ty = kinds[usize::from(kind & 0x7f) % kinds.len()];
        let mut value = input.take(usize::from(len) % 80).to_vec();
        // Otherwise the value stays unchanged, which is too short for most types.
        if kind & 0x80 == 0 {
            self.repair(ty, flags, len, &mut value);
        }
        (ty, flags, value)
    }

    fn repair(&mut self, ty: u8, flags: u8, filler: u8, value: &mut Vec<u8>) {
        let least = match ty {
            chunk_type::DATA | chunk_type::I_DATA => 17,
            chunk_type::SACK => 12,
            chunk_type::NR_SACK => 16,
            chunk_type::TIMESTAMP => 8,
            chunk_type::ASCONF | chunk_type::ASCONF_ACK | chunk_type::AUTH => 4,
            _ => 0,
        };
        if value.len() < least {
            value.resize(least, filler);
        }
        match ty {
            chunk_type::DATA | chunk_type::I_DATA => {
                let at: &[usize] = match ty {
                    chunk_type::DATA => &[4, 6],
                    _ if flags & 2 > 0 => &[4, 10],
                    _ => &[4, 10, 14],
                };
                at.iter().for_each(|at| small(value, *at, 4));
                if ty == chunk_type::I_DATA {
                    value[8..10].fill(0);
                    if flags & 2 == 0 {
                        value[12..14].fill(0);
                    }
                }
                if near(value, self.next) == Some(0) {
                    self.next = self.next.wrapping_add(1);
                }
            }
            chunk_type::FORWARD_TSN | chunk_type::I_FORWARD_TSN => {
                let second = if ty == chunk_type::FORWARD_TSN { 6 } else { 10 };
                small(value, 4, 4);
                small(value, second, 4);
                near(value, self.next);
            }
            chunk_type::SACK | chunk_type::NR_SACK => self.mend_sack(ty, value),
            chunk_type::RE_CONFIG => self.mend_re_config(value),
            chunk_type::ASCONF => {
                let (number, rest) = value.split_at(4);
                let lookup = rest.first().copied().unwrap_or_default();
                let requests = rest.get(1..).unwrap_or_default().as_chunks().0;
                let mut asconf = number.to_vec();
                near(&mut asconf, self.serial);
                asconf.extend(address(ip(lookup)));
                for &[ty, id, last] in requests {
                    let address = address(ip(last));
                    let ty = REQUESTS[usize::from(ty) % REQUESTS.len()];
                    asconf.extend(head(ty, 8 + address.len()));
                    asconf.extend([0, 0, 0, id]);
                    asconf.extend(address);
                }
                *value = asconf;
            }
            chunk_type::ASCONF_ACK => {
                let (number, rest) = value.split_at(4);
                let mut ack = number.to_vec();
                near(&mut ack, self.their_asconf);
                for &[ty, id, cause] in rest.as_chunks().0 {
                    let cause: &[u8] = if ty % 3 == 1 { &[0, cause, 0, 4] } else { &[] };
                    ack.extend(head(ANSWERS[usize::from(ty) % ANSWERS.len()], 8 + cause.len()));
                    ack.extend([0, 0, 0, id]);
                    ack.extend(cause);
                }
                *value = ack;
            }
            chunk_type::AUTH => {
                let id = [hmac_id::SHA_256, hmac_id::SHA_1][usize::from(value[3] % 2)] as u8;
                value[..4].copy_from_slice(&[0, 0, 0, id]);
            }
            chunk_type::TIMESTAMP => {
                // A time of the endpoint's clock: microseconds plus its tag.
                let clock = (self.now.as_nanos() / 1000) as u32;
                near(&mut value[4..], clock.wrapping_add(self.tag));
            }
            chunk_type::HEARTBEAT => {
                let len = value.len();
                value.splice(0..0, head(1, 4 + len));
            }
            chunk_type::HEARTBEAT_ACK => value.clone_from(&self.heartbeat.0),
            chunk_type::COOKIE_ECHO => value.clone_from(&self.cookie),
            chunk_type::ERROR if !value.is_empty() => {
                let (code, len) = (u16::from(value[0] % 16), value.len());
                value.splice(0..1, head(code, 3 + len));
            }
            chunk_type::ECNE | chunk_type::SHUTDOWN => {
                near(value, self.highest);
            }
            _ => {
                near(value, self.next);
            }
        }
    }

    /// Sets counts that fit the value's length, and gap ack blocks that may be valid.
    fn mend_sack(&self, ty: u8, value: &mut [u8]) {
        near(value, self.highest);
        // Counts of a SACK: gap ack blocks, duplicates. Of an NR-SACK: gap ack blocks, NR gap ack
        // blocks, duplicates, and a reserved field.
        let (head, counts) = if ty == chunk_type::SACK { (12, 2) } else { (16, 3) };
        let mut left = (value.len() - head) / 4;
        for i in 0..counts {
            let last = i + 1 == counts;
            let at = 8 + 2 * i;
            let count = if last { left } else { usize::from(value[at + 1]) % (left + 1) };
            left -= count;
            value[at..at + 2].copy_from_slice(&[0, count as u8]);
        }
        for at in (head..value.len() - 1).step_by(2) {
            small(value, at, 32);
        }
    }

    /// Makes a request (13 to 15, 17, 18) or a response (16), RFC 6525 4.
    fn mend_re_config(&mut self, value: &mut [u8]) {
        if value.len() < 8 {
            return;
        }
        let len = value.len();
        let ty = 13 + u16::from(value[1] % 6);
        value[..4].copy_from_slice(&head(ty, len));
        if ty == 16 {
            near(&mut value[4..], self.their_request);
            if len >= 12 {
                value[8..11].fill(0);
                value[11] %= 8;
            }
            if len >= 20 {
                near(&mut value[12..], self.next);
                near(&mut value[16..], self.highest.wrapping_add(1));
            }
            return;
        }
        if near(&mut value[4..], self.request) == Some(0) {
            self.request = self.request.wrapping_add(1);
        }
        if ty == 13 && len >= 16 {
            near(&mut value[8..], self.their_request);
            near(&mut value[12..], self.next.wrapping_sub(1));
            (16..len - 1).step_by(2).for_each(|at| small(value, at, 4));
        } else if len >= 10 {
            small(value, 8, 4);
        }
    }
}

/// Moves the number at the beginning of `value` near `base`, depending on its first byte; returns
/// its distance from `base`.
fn near(value: &mut [u8], base: u32) -> Option<i32> {
    let number = value.get_mut(..4)?;
    let by = match number[0] {
        0..=191 => 0,
        b @ 192..=223 => i32::from(b % 32) - 8,
        _ if number[1] < 128 => i32::from(number[1]) * 97,
        // The number stays unchanged.
        _ => return None,
    };
    number.copy_from_slice(&base.wrapping_add_signed(by).to_be_bytes());
    Some(by)
}

/// Makes the two-byte number at `at` smaller than `below`.
fn small(value: &mut [u8], at: usize, below: u8) {
    if let Some([high, low]) = value.get_mut(at..at + 2) {
        (*high, *low) = (0, *low % below);
    }
}

/// Type and length of a parameter.
fn head(ty: u16, len: usize) -> [u8; 4] {
    let ([t0, t1], [l0, l1]) = (ty.to_be_bytes(), (len as u16).to_be_bytes());
    [t0, t1, l0, l1]
}

/// The parameter of an address (RFC 9260 3.3.2.1).
fn address(ip: IpAddr) -> Vec<u8> {
    let (ty, octets) = match ip {
        IpAddr::V4(ip) => (5, ip.octets().to_vec()),
        IpAddr::V6(ip) => (6, ip.octets().to_vec()),
    };
    [&head(ty, 4 + octets.len())[..], &octets].concat()
}
