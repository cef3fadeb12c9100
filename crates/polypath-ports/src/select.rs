//! The program of classic BPF that selects the socket of a datagram.
//!
//! The kernel runs it on the UDP payload, and takes its result as the number of the socket in the
//! group. SCTP's destination port is the second field of the packet (RFC 9260 3.1). Loading a field
//! that a short datagram does not have ends the program with 0, the daemon's socket.

use std::net::IpAddr;

use crate::table::{Routes, Targets};

/// An instruction, as `struct sock_filter` of linux/filter.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// Instructions to skip if the comparison holds.
    pub then: u8,
    /// Instructions to skip if it does not hold.
    pub otherwise: u8,
    /// The operand.
    pub operand: u32,
}

/// `BPF_MAXINSNS`.
const MOST: usize = 4096;

/// BPF_LD | BPF_H | BPF_ABS.
const LOAD_HALF: u16 = 0x28;
/// BPF_LD | BPF_W | BPF_ABS.
const LOAD_WORD: u16 = 0x20;
/// BPF_JMP | BPF_JEQ | BPF_K.
const IF_EQUAL: u16 = 0x15;
/// BPF_JMP | BPF_JGE | BPF_K.
const IF_AT_LEAST: u16 = 0x35;
/// BPF_JMP | BPF_JA.
const SKIP: u16 = 0x05;
/// BPF_RET | BPF_K.
const RETURN: u16 = 0x06;

/// `SKF_NET_OFF`: the offset is from the IP header.
const IP_HEADER: u32 = -0x10_0000_i32 as u32;

/// Offset of SCTP's destination port in the UDP payload.
const DESTINATION_PORT: u32 = 2;

/// Ports that are compared one after the other, at the end of the binary search.
const RUN: usize = 8;

/// The program for datagrams of one IP version; `None` if the kernel permits no program this long.
pub fn program(routes: &Routes) -> Option<Vec<Instruction>> {
    let all: Vec<(u16, &Targets)> = routes.iter().map(|(port, to)| (*port, to)).collect();
    let mut program = vec![plain(LOAD_HALF, DESTINATION_PORT)];
    program.extend(search(&all));
    (program.len() <= MOST).then_some(program)
}

const fn plain(code: u16, operand: u32) -> Instruction {
    Instruction { code, then: 0, otherwise: 0, operand }
}

/// Compares the loaded value; unless it is equal, skips that many instructions.
fn unless_equal(value: u32, skip: usize) -> Instruction {
    Instruction { otherwise: skip as u8, ..plain(IF_EQUAL, value) }
}

/// Finds the port. Each part ends with a result.
fn search(routes: &[(u16, &Targets)]) -> Vec<Instruction> {
    if routes.len() > RUN {
        let (lower, upper) = routes.split_at(routes.len() / 2);
        let lower = search(lower);
        let middle = u32::from(upper[0].0);
        let mut program = vec![
            Instruction { otherwise: 1, ..plain(IF_AT_LEAST, middle) },
            plain(SKIP, lower.len() as u32),
        ];
        program.extend(lower);
        program.extend(search(upper));
        return program;
    }
    let mut program = Vec::new();
    for (port, targets) in routes {
        let found = addresses(targets);
        match found.len() {
            1 => program.push(unless_equal((*port).into(), 1)),
            length => {
                let beyond = plain(SKIP, length as u32);
                program.push(Instruction { then: 1, ..plain(IF_EQUAL, (*port).into()) });
                program.push(beyond);
            }
        }
        program.extend(found);
    }
    program.push(plain(RETURN, 0));
    program
}

/// Selects by the destination address. A single address prevails over the wildcard.
fn addresses(targets: &Targets) -> Vec<Instruction> {
    let mut program = Vec::new();
    for (ip, slot) in &targets.single {
        // Offset of the destination address in the IP header: RFC 791 3.1, RFC 8200 3.
        let (offset, bytes) = match ip {
            IpAddr::V4(ip) => (16, ip.octets().to_vec()),
            IpAddr::V6(ip) => (24, ip.octets().to_vec()),
        };
        let words = bytes.len() / 4;
        for (at, word) in bytes.chunks_exact(4).enumerate() {
            let value = word.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
            program.push(plain(LOAD_WORD, IP_HEADER.wrapping_add(offset + 4 * at as u32)));
            program.push(unless_equal(value, 2 * (words - 1 - at) + 1));
        }
        program.push(plain(RETURN, *slot));
    }
    program.push(plain(RETURN, targets.any.unwrap_or(0)));
    program
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::table::Slot;

    /// Runs a program as the kernel does: the result, or `None` if it leaves the program.
    fn run(program: &[Instruction], payload: &[u8], header: &[u8]) -> Option<u32> {
        let (mut at, mut value) = (0, 0);
        loop {
            let Instruction { code, then, otherwise, operand } = *program.get(at)?;
            let (bytes, offset) = match operand.checked_sub(IP_HEADER) {
                Some(offset) => (header, offset),
                None => (payload, operand),
            };
            let load = |size: usize| {
                let bytes = bytes.get(offset as usize..)?.get(..size)?;
                Some(bytes.iter().fold(0u32, |value, byte| value << 8 | u32::from(*byte)))
            };
            at += 1;
            match code {
                LOAD_HALF | LOAD_WORD => match load(if code == LOAD_HALF { 2 } else { 4 }) {
                    Some(loaded) => value = loaded,
                    None => return Some(0),
                },
                IF_EQUAL => at += usize::from(if value == operand { then } else { otherwise }),
                IF_AT_LEAST => at += usize::from(if value >= operand { then } else { otherwise }),
                SKIP => at += operand as usize,
                RETURN => return Some(operand),
                _ => return None,
            }
        }
    }

    /// The IP header of a datagram to an address.
    fn header(to: IpAddr) -> Vec<u8> {
        match to {
            IpAddr::V4(ip) => [&[0x45; 16], &ip.octets()[..]].concat(),
            IpAddr::V6(ip) => [&[0x60; 24], &ip.octets()[..]].concat(),
        }
    }

    fn selected(routes: &Routes, to: IpAddr, port: u16) -> Option<u32> {
        let [high, low] = port.to_be_bytes();
        run(&program(routes).unwrap(), &[1, 2, high, low, 0, 0, 0, 0, 0, 0, 0, 0], &header(to))
    }

    #[test]
    fn a_datagram_that_is_too_short_is_for_the_daemon() {
        let routes = Routes::from([(0, Targets { any: Some(5), ..Targets::default() })]);
        let program = program(&routes).unwrap();
        for length in 0..4 {
            assert_eq!(run(&program, &vec![0; length], &[0; 20]), Some(0));
        }
        assert_eq!(run(&program, &[0; 4], &[0; 20]), Some(5));
    }

    #[test]
    fn a_program_that_the_kernel_refuses_is_none() {
        let target = Targets { any: Some(1), ..Targets::default() };
        let routes = |count: u16| (0..count).map(|port| (port, target.clone())).collect();
        assert!(program(&routes(1600)).is_some());
        assert!(program(&routes(2000)).is_none());
    }

    fn targets(v6: bool) -> impl Strategy<Value = Targets> {
        let single = prop::collection::btree_map(0u8..4, 1..20u32, 0..4);
        (prop::option::of(1..20u32), single).prop_map(move |(any, single)| Targets {
            any,
            single: single.into_iter().map(|(last, slot)| (address(v6, last), slot)).collect(),
        })
    }

    fn address(v6: bool, last: u8) -> IpAddr {
        if v6 {
            // Addresses that differ in each of the words.
            let mut groups = [0x2001; 8];
            groups[2 * usize::from(last)] = 0xdb8;
            Ipv6Addr::from(groups).into()
        } else {
            Ipv4Addr::new(192, 0, 2, last).into()
        }
    }

    proptest! {
        #[test]
        fn the_program_selects_as_the_routes_do(
            (v6, routes) in prop::bool::ANY.prop_flat_map(|v6| {
                let routes = prop::collection::btree_map(7000u16..7100, targets(v6), 0..60);
                (Just(v6), routes)
            }),
        ) {
            for port in 6998..7102 {
                for last in 0..4 {
                    let to = address(v6, last);
                    let found = routes.get(&port).and_then(|targets| {
                        targets.single.get(&to).copied().or(targets.any)
                    });
                    let expected: Slot = found.unwrap_or(0);
                    prop_assert_eq!(selected(&routes, to, port), Some(expected));
                }
            }
        }

        /// linux/filter.h: a jump must not leave the program.
        #[test]
        fn every_datagram_has_a_result(
            routes in prop::collection::btree_map(any::<u16>(), targets(false), 0..100),
            payload in prop::collection::vec(any::<u8>(), 0..40),
            header in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            prop_assert!(run(&program(&routes).unwrap(), &payload, &header).is_some());
        }
    }
}
