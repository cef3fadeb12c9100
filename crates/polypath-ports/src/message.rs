//! The messages between a process and the daemon.
//!
//! Each has its length before it, as 16 bits in the host's byte order. The daemon replies to
//! requests, with their numbers.

use std::net::{IpAddr, SocketAddr};

use polypath::ForeignError;
use polypath::proto::Unreachable;

use crate::table::Claim;

/// Addresses in a claim.
pub const MOST_ADDRESSES: usize = 64;

/// Longest message in bytes.
pub const LONGEST: usize = 12 + 17 * MOST_ADDRESSES;

/// What a process asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The daemon stays until this process has ended, even without a connection.
    Attend,
    /// UDP sockets, which come with the reply.
    Join,
    /// Addresses and a port.
    Claim(u32, Claim),
    /// The end of a claim. It has no reply.
    Release(u32),
    /// The number of malformed datagrams so far.
    Count,
    /// The kernel has coalesced packets for this address and port with those of this process. It
    /// has no reply.
    Misdirected(IpAddr, u16),
    /// An error about a packet of another process. It has no reply.
    Unreachable(ForeignError),
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// An error number, or 0.
    pub error: u32,
    /// The port of a claim, or the number of datagrams.
    pub value: u32,
}

impl Request {
    /// The bytes, with the number of the request and the length.
    pub fn write(&self, number: u32) -> Vec<u8> {
        let mut bytes = number.to_ne_bytes().to_vec();
        match self {
            Self::Attend => bytes.push(0),
            Self::Join => bytes.push(1),
            Self::Claim(id, claim) => {
                bytes.push(2);
                bytes.extend(id.to_ne_bytes());
                bytes.extend(claim.port.to_ne_bytes());
                let Claim { any_v4, any_v6, reuses, shares, opened, listens, .. } = *claim;
                let flags = [any_v4, any_v6, reuses, shares, opened, listens];
                bytes.push(flags.iter().rev().fold(0, |all, flag| all << 1 | u8::from(*flag)));
                let all = claim.addresses.iter().take(MOST_ADDRESSES);
                bytes.extend(all.flat_map(written));
            }
            Self::Release(id) => {
                bytes.push(3);
                bytes.extend(id.to_ne_bytes());
            }
            Self::Count => bytes.push(4),
            Self::Misdirected(to, port) => {
                bytes.push(5);
                bytes.extend(port.to_ne_bytes());
                bytes.extend(written(to));
            }
            Self::Unreachable(error) => {
                bytes.push(6);
                bytes.extend(write_error(error));
            }
        }
        [&(bytes.len() as u16).to_ne_bytes(), &bytes[..]].concat()
    }

    /// Reads a message without its length: the request and its number.
    pub fn read(bytes: &[u8]) -> Option<(u32, Self)> {
        let (number, rest) = int(bytes)?;
        let (kind, rest) = rest.split_first()?;
        let request = match (kind, rest) {
            (0, []) => Self::Attend,
            (1, []) => Self::Join,
            (2, rest) => {
                let (id, rest) = int(rest)?;
                let (port, rest) = rest.split_first_chunk()?;
                let (flags, rest) = rest.split_first()?;
                let flag = |at: u8| flags >> at & 1 != 0;
                let addresses = addresses(rest)?;
                let claim = Claim {
                    port: u16::from_ne_bytes(*port),
                    any_v4: flag(0) && addresses.is_empty(),
                    any_v6: flag(1) && addresses.is_empty(),
                    addresses,
                    reuses: flag(2),
                    shares: flag(3),
                    opened: flag(4),
                    listens: flag(5),
                };
                Self::Claim(id, claim)
            }
            (3, rest) => match int(rest)? {
                (id, []) => Self::Release(id),
                _ => return None,
            },
            (4, []) => Self::Count,
            (5, rest) => {
                let (port, rest) = rest.split_first_chunk()?;
                let [to] = addresses(rest)?[..] else { return None };
                Self::Misdirected(to, u16::from_ne_bytes(*port))
            }
            (6, rest) => Self::Unreachable(read_error(rest)?),
            _ => return None,
        };
        Some((number, request))
    }
}

/// Longest beginning of a packet in an error.
const QUOTED: usize = 64;

/// The bytes of an error, which the daemon passes to a process as they are.
pub fn write_error(error: &ForeignError) -> Vec<u8> {
    let (kind, mtu) = match error.what {
        Unreachable::Port => (0, 0),
        Unreachable::Protocol => (1, 0),
        Unreachable::Network => (2, 0),
        Unreachable::TooBig { mtu } => (3, mtu),
        _ => (4, 0),
    };
    let mut bytes = vec![kind];
    bytes.extend(mtu.to_ne_bytes());
    bytes.extend(error.destination.port().to_ne_bytes());
    bytes.extend(written(&error.destination.ip()));
    bytes.extend(error.quoted.iter().take(QUOTED));
    bytes
}

/// Reads an error.
pub fn read_error(bytes: &[u8]) -> Option<ForeignError> {
    let (kind, rest) = bytes.split_first()?;
    let (mtu, rest) = rest.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let (to, quoted) = rest.split_first_chunk::<17>()?;
    let [to] = addresses(to)?[..] else { return None };
    let what = match kind {
        0 => Unreachable::Port,
        1 => Unreachable::Protocol,
        2 => Unreachable::Network,
        3 => Unreachable::TooBig { mtu: u16::from_ne_bytes(*mtu) },
        4 => Unreachable::Host,
        _ => return None,
    };
    let destination = SocketAddr::new(to, u16::from_ne_bytes(*port));
    (quoted.len() <= QUOTED).then(|| ForeignError { destination, what, quoted: quoted.to_vec() })
}

fn int(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk()?;
    Some((u32::from_ne_bytes(*first), rest))
}

/// The bytes of an address.
fn written(ip: &IpAddr) -> [u8; 17] {
    let (kind, octets) = match ip {
        IpAddr::V4(ip) => (4, ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => (6, ip.octets()),
    };
    let mut bytes = [kind; 17];
    bytes[1..].copy_from_slice(&octets);
    bytes
}

fn addresses(bytes: &[u8]) -> Option<Vec<IpAddr>> {
    let one = |bytes: &[u8]| {
        let (kind, octets) = bytes.split_first()?;
        let ip = std::net::Ipv6Addr::from(*octets.first_chunk::<16>()?);
        match kind {
            4 => Some(ip.to_ipv4_mapped()?.into()),
            6 => Some(ip.into()),
            _ => None,
        }
    };
    let all = bytes.chunks(17).map(|bytes| if bytes.len() == 17 { one(bytes) } else { None });
    let all: Vec<IpAddr> = all.collect::<Option<_>>()?;
    (all.len() <= MOST_ADDRESSES).then_some(all)
}

impl Reply {
    /// Size of the bytes.
    pub const SIZE: usize = 12;

    /// The bytes, with the number of the request.
    pub fn write(&self, number: u32) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&number.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.error.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.value.to_ne_bytes());
        bytes
    }

    /// The reply, and the number of the request.
    pub fn read(bytes: &[u8; Self::SIZE]) -> (u32, Self) {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        let error = u32::from_ne_bytes([e, f, g, h]);
        let value = u32::from_ne_bytes([i, j, k, l]);
        (u32::from_ne_bytes([a, b, c, d]), Self { error, value })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let all = [
            Request::Attend,
            Request::Join,
            Request::Count,
            Request::Release(9),
            Request::Unreachable(ForeignError {
                destination: "[2001:db8::1]:9899".parse().unwrap(),
                what: Unreachable::TooBig { mtu: 1280 },
                quoted: vec![1, 2, 3],
            }),
            Request::Misdirected([192, 0, 2, 1].into(), 7000),
            Request::Claim(
                7,
                Claim {
                    port: 7000,
                    addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
                    shares: true,
                    opened: true,
                    ..Claim::default()
                },
            ),
            Request::Claim(
                8,
                Claim { any_v6: true, reuses: true, listens: true, ..Claim::default() },
            ),
        ];
        for request in all {
            let bytes = request.write(3);
            assert_eq!(usize::from(u16::from_ne_bytes([bytes[0], bytes[1]])), bytes.len() - 2);
            assert_eq!(Request::read(&bytes[2..]), Some((3, request)));
        }
        let reply = Reply { error: 98, value: 7000 };
        assert_eq!(Reply::read(&reply.write(5)), (5, reply));
    }

    #[test]
    fn the_longest_claim_fits() {
        let addresses = vec![IpAddr::from([192, 0, 2, 1]); MOST_ADDRESSES];
        let claim = Claim { addresses, ..Claim::default() };
        assert_eq!(Request::Claim(1, claim).write(1).len() - 2, LONGEST);
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some((number, request)) = Request::read(&bytes) {
                let again = request.write(number);
                prop_assert_eq!(Request::read(&again[2..]), Some((number, request)));
            }
        }
    }
}
