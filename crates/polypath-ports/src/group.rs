//! The UDP sockets of all processes: one group for each IP version (`SO_REUSEPORT`).
//!
//! The kernel numbers the sockets of a group in the order in which they were bound, and gives the
//! number of one that is closed to another one. Therefore the daemon keeps all of them open: a
//! later process has the sockets of one that has ended.
//!
//! The kernel coalesces datagrams of one pair of UDP ports (UDP_GRO), and selects the socket by the
//! first one. If two programs have the same peer, a packet of one of them may reach the other one,
//! which drops it. From then on the kernel does not coalesce, until one of the two has ended. It
//! coalesces by the option of any socket of the group, which a hash of the addresses selects:
//! therefore all sockets have the same option.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage, bind, recv, setsockopt, socket,
    sockopt,
};

use crate::select::{self, Instruction};
use crate::table::{Routes, Slot, Table};

/// Datagrams or errors of an earlier process that are dropped at most.
const STALE: usize = 1 << 20;

/// The sockets of all processes.
#[derive(Debug)]
pub struct Group {
    sides: Vec<Side>,
    /// Pairs of processes whose packets the kernel has coalesced: it does not while there are any.
    mixed: BTreeSet<(Slot, Slot)>,
}

/// Those of one IP version.
#[derive(Debug)]
struct Side {
    any: SocketAddr,
    /// By slot.
    sockets: Vec<UdpSocket>,
    /// What the kernel selects by.
    routes: Routes,
}

impl Group {
    /// Binds the daemon's own sockets, so that no datagram goes to another one.
    pub fn open(udp_port: u16) -> io::Result<Self> {
        let mut sides = vec![Side::open(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), udp_port))?];
        match Side::open(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), udp_port)) {
            Ok(side) => sides.push(side),
            // The host has no IPv6.
            Err(error) if lacks_family(&error) => {}
            Err(error) => return Err(error),
        }
        let mut group = Self { sides, mixed: BTreeSet::new() };
        group.coalesce();
        group.attach(&Table::default())?;
        Ok(group)
    }

    /// Duplicates of the sockets of a slot, which are opened now if there are none.
    pub fn sockets(&mut self, slot: Slot) -> io::Result<Vec<UdpSocket>> {
        let sockets = self.sides.iter_mut().map(|side| side.socket(slot)).collect();
        self.coalesce();
        sockets
    }

    /// The process whose socket the kernel selects; 0 for the daemon.
    pub fn selected(&self, to: IpAddr, port: u16) -> Slot {
        let side = self.sides.iter().find(|side| side.any.is_ipv4() == to.is_ipv4());
        let targets = side.and_then(|side| side.routes.get(&port));
        targets.and_then(|all| all.single.get(&to).copied().or(all.any)).unwrap_or(0)
    }

    /// The processes with a port, at any address.
    pub fn having(&self, v6: bool, port: u16) -> BTreeSet<Slot> {
        let side = self.sides.iter().find(|side| side.any.is_ipv6() == v6);
        let targets = side.and_then(|side| side.routes.get(&port)).into_iter();
        targets.flat_map(|all| all.single.values().chain(&all.any)).copied().collect()
    }

    /// The kernel has coalesced packets of two processes.
    pub fn mix(&mut self, one: Slot, other: Slot) {
        if one != other {
            self.mixed.insert((one, other));
            self.coalesce();
        }
    }

    /// A process has ended. Drops what has arrived for it.
    pub fn leave(&mut self, slot: Slot) {
        self.mixed.retain(|(one, other)| *one != slot && *other != slot);
        self.coalesce();
        self.drain(slot);
    }

    /// Sets whether the kernel coalesces datagrams.
    fn coalesce(&self) {
        for socket in self.sides.iter().flat_map(|side| &side.sockets) {
            // Linux before 5.0 does not have the option.
            let _ = setsockopt(socket, sockopt::UdpGroSegment, &self.mixed.is_empty());
        }
    }

    fn drain(&self, slot: Slot) {
        for side in &self.sides {
            if let Some(socket) = side.sockets.get(slot as usize) {
                drain(socket);
            }
        }
    }

    /// The wildcard addresses of the sockets.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.sides.iter().map(|side| side.any.ip()).collect()
    }

    /// Makes the kernel select the sockets as the table has it.
    pub fn attach(&mut self, table: &Table) -> io::Result<()> {
        self.sides.iter_mut().try_for_each(|side| {
            let routes = table.routes(side.any.is_ipv6());
            let program = select::program(&routes).ok_or(io::ErrorKind::OutOfMemory)?;
            attach(&side.sockets[0], &program)?;
            side.routes = routes;
            Ok(())
        })
    }
}

fn lacks_family(error: &io::Error) -> bool {
    let known = [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL];
    error.raw_os_error().is_some_and(|error| known.contains(&error))
}

impl Side {
    fn open(any: SocketAddr) -> io::Result<Self> {
        // Without SO_REUSEPORT, so that it fails if another program has the port.
        let own = bound(any, false)?;
        setsockopt(&own, sockopt::ReusePort, &true)?;
        let mut side = Self { any, sockets: vec![own], routes: Routes::new() };
        // There is a group with the second socket.
        side.socket(1)?;
        Ok(side)
    }

    fn socket(&mut self, slot: Slot) -> io::Result<UdpSocket> {
        while self.sockets.len() <= slot as usize {
            self.sockets.push(bound(self.any, true)?);
        }
        self.sockets[slot as usize].try_clone()
    }
}

/// A nonblocking socket with an address.
fn bound(any: SocketAddr, reuses: bool) -> io::Result<UdpSocket> {
    let family = if any.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(family, SockType::Datagram, flags, None)?;
    if any.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    if reuses {
        setsockopt(&socket, sockopt::ReusePort, &true)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(any))?;
    Ok(socket.into())
}

fn drain(socket: &UdpSocket) {
    for flags in [MsgFlags::empty(), MsgFlags::MSG_ERRQUEUE] {
        let next = || recv(socket.as_raw_fd(), &mut [0], flags | MsgFlags::MSG_DONTWAIT);
        // A pending ICMP error is returned once, in place of a datagram.
        let is_empty = |result: &nix::Result<usize>| *result == Err(nix::Error::EAGAIN);
        (0..STALE).map(|_| next()).find(is_empty);
    }
}

fn attach(socket: &UdpSocket, program: &[Instruction]) -> io::Result<()> {
    let mut filter: Vec<libc::sock_filter> = program
        .iter()
        .map(|one| libc::sock_filter {
            code: one.code,
            jt: one.then,
            jf: one.otherwise,
            k: one.operand,
        })
        .collect();
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let filter = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    setsockopt(socket, sockopt::AttachReusePortCbpf, &filter)?;
    Ok(())
}

#[cfg(test)]
// There is no runtime.
#[allow(clippy::disallowed_methods)]
mod tests {
    use std::time::Duration;

    use nix::sys::socket::getsockopt;

    use super::*;
    use crate::table::Claim;

    /// A group on a free port.
    fn group() -> (Group, u16) {
        loop {
            let port = UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
            match Group::open(port) {
                Ok(group) => return (group, port),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::AddrInUse),
            }
        }
    }

    /// The slot that receives a datagram for an SCTP port.
    fn receives(group: &Group, to: &str, udp: u16, sctp: u16) -> usize {
        let to: IpAddr = to.parse().unwrap();
        let from = UdpSocket::bind((to, 0)).unwrap();
        let [high, low] = sctp.to_be_bytes();
        from.send_to(&[0, 1, high, low, 0, 0, 0, 0, 0, 0, 0, 0], (to, udp)).unwrap();
        let side = group.sides.iter().find(|side| side.any.is_ipv4() == to.is_ipv4()).unwrap();
        loop {
            let found = side.sockets.iter().position(|socket| socket.recv(&mut [0; 20]).is_ok());
            if let Some(found) = found {
                return found;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_kernel_selects_the_socket_that_the_table_has() {
        let (mut group, udp) = group();
        let mut table = Table::default();
        for slot in 1..=3 {
            group.sockets(slot).unwrap();
        }
        let any =
            Claim { port: 7000, any_v4: true, any_v6: true, opened: true, ..Claim::default() };
        let single = |port, ip: &str| Claim {
            port,
            addresses: vec![ip.parse().unwrap()],
            opened: true,
            ..Claim::default()
        };
        table.claim(1, 1, any, 0).unwrap();
        table.claim(2, 1, single(7001, "127.0.0.1"), 0).unwrap();
        table.claim(3, 1, single(7001, "127.0.0.2"), 0).unwrap();
        group.attach(&table).unwrap();
        let cases = [
            ("127.0.0.1", 7000, 1),
            ("127.0.0.1", 7001, 2),
            ("127.0.0.2", 7001, 3),
            ("127.0.0.3", 7001, 0),
            ("127.0.0.1", 7002, 0),
        ];
        for (to, sctp, slot) in cases {
            assert_eq!(receives(&group, to, udp, sctp), slot, "{to} {sctp}");
        }
        if group.sides.len() == 2 {
            table.claim(2, 2, single(7003, "::1"), 0).unwrap();
            group.attach(&table).unwrap();
            assert_eq!(receives(&group, "::1", udp, 7000), 1);
            assert_eq!(receives(&group, "::1", udp, 7003), 2);
            assert_eq!(receives(&group, "::1", udp, 7001), 0);
        }
        table.release_all(1);
        group.attach(&table).unwrap();
        assert_eq!(receives(&group, "127.0.0.1", udp, 7000), 0);
    }

    #[test]
    fn a_port_that_another_program_has_is_in_use() {
        let other = UdpSocket::bind("0.0.0.0:0").unwrap();
        setsockopt(&other, sockopt::ReusePort, &true).unwrap();
        let error = Group::open(other.local_addr().unwrap().port()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn the_kernel_coalesces_while_no_two_processes_have_mixed_packets() {
        let (mut group, _) = group();
        let coalesces = |group: &Group| {
            let all: BTreeSet<bool> = group
                .sides
                .iter()
                .flat_map(|side| &side.sockets)
                .map(|socket| getsockopt(socket, sockopt::UdpGroSegment).unwrap())
                .collect();
            assert_eq!(all.len(), 1);
            all.contains(&true)
        };
        group.sockets(2).unwrap();
        assert!(coalesces(&group));
        group.mix(1, 1);
        assert!(coalesces(&group));
        group.mix(1, 2);
        group.mix(3, 2);
        assert!(!coalesces(&group));
        group.sockets(4).unwrap();
        group.leave(1);
        assert!(!coalesces(&group));
        group.leave(2);
        assert!(coalesces(&group));
        group.sockets(5).unwrap();
        assert!(coalesces(&group));
    }

    #[test]
    fn the_process_is_the_one_that_the_kernel_selects() {
        let (mut group, _) = group();
        let mut table = Table::default();
        let any = Claim { port: 7000, any_v4: true, opened: true, ..Claim::default() };
        let one = Claim { port: 7001, addresses: vec!["127.0.0.2".parse().unwrap()], ..any };
        table.claim(1, 1, Claim { addresses: Vec::new(), port: 7000, ..one.clone() }, 0).unwrap();
        table.claim(2, 1, Claim { any_v4: false, ..one }, 0).unwrap();
        group.attach(&table).unwrap();
        let cases = [("127.0.0.1", 7000, 1), ("127.0.0.2", 7001, 2), ("127.0.0.1", 7001, 0)];
        for (to, port, slot) in cases {
            assert_eq!(group.selected(to.parse().unwrap(), port), slot, "{to} {port}");
        }
    }

    #[test]
    fn a_later_process_receives_nothing_of_an_earlier_one() {
        let (mut group, udp) = group();
        let mut table = Table::default();
        let [first] = &group.sockets(1).unwrap()[..1] else { unreachable!() };
        let claim = Claim { port: 7000, any_v4: true, opened: true, ..Claim::default() };
        table.claim(1, 1, claim, 0).unwrap();
        group.attach(&table).unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..9 {
            from.send_to(&[0, 1, 0x1b, 0x58], ("127.0.0.1", udp)).unwrap();
        }
        while first.peek(&mut [0; 4]).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        group.drain(1);
        assert!(first.recv(&mut [0; 4]).is_err());
    }
}
