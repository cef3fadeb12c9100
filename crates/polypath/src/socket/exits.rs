//! The interface that datagrams leave by: that of their source address, if it leads to the
//! destination (Linux).
//!
//! Linux chooses it by the destination alone, unless there are rules for source addresses. With two
//! uplinks, datagrams from the second one's address would leave by the first, whose provider may
//! drop them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::libc;

use super::fragments::set_option;
use crate::interfaces;

/// Time after which routes are looked up again.
const FRESH: Duration = Duration::from_secs(5);
/// Maximum number of pairs of addresses that are remembered.
const MOST: usize = 1024;

/// What a socket knows about interfaces.
#[derive(Debug)]
pub(super) struct Exits {
    /// The interface that the socket is set to; 0 leaves the choice to the kernel. `None` if others
    /// have set it.
    now: Option<u32>,
    /// The interface for a source and a destination; 0 where the kernel's own choice is right.
    known: HashMap<(IpAddr, IpAddr), u32>,
    /// Since when the routes are known, and whether the host has several interfaces.
    since: Option<(Instant, bool)>,
}

impl Exits {
    /// Those of a socket that is new, or that others have `used`.
    pub(super) fn new(used: bool) -> Self {
        Self { now: (!used).then_some(0), known: HashMap::new(), since: None }
    }

    /// Sets the socket's option for the next datagram, if it has to change. If the kernel refuses
    /// it, because the interface has gone, the datagram leaves where the routes lead.
    pub(super) fn set(&mut self, socket: &impl AsRawFd, source: IpAddr, destination: SocketAddr) {
        let remote = destination.ip();
        let wanted = if source.is_unspecified() || source.is_loopback() || remote.is_loopback() {
            0
        } else {
            self.exit(source, remote)
        };
        if self.now == Some(wanted) {
            return;
        }
        let (level, option) = match destination {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_UNICAST_IF),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_IF),
        };
        // In network byte order (ip(7)).
        match set_option(socket.as_raw_fd(), level, option, wanted.to_be() as libc::c_int) {
            Ok(()) => self.now = Some(wanted),
            Err(error) => {
                tracing::debug!("{source} to {remote}: interface {wanted}: {error}");
                if wanted != 0 {
                    self.known.insert((source, remote), 0);
                    self.set(socket, source, destination);
                }
            }
        }
    }

    fn exit(&mut self, source: IpAddr, remote: IpAddr) -> u32 {
        let several = match self.since {
            Some((since, several)) if since.elapsed() < FRESH => several,
            _ => {
                self.known.clear();
                let several = interfaces::up().is_ok_and(|all| all.len() > 1);
                self.since = Some((Instant::now(), several));
                several
            }
        };
        if !several {
            return 0;
        }
        if self.known.len() >= MOST {
            self.known.clear();
        }
        *self.known.entry((source, remote)).or_insert_with(|| other_than_chosen(source, remote))
    }
}

/// The interface of `source`, if the kernel chooses another one although it leads to `remote`; 0
/// otherwise.
fn other_than_chosen(source: IpAddr, remote: IpAddr) -> u32 {
    let all = interfaces::up().unwrap_or_default();
    if all.iter().any(|one| one.addresses.contains(&remote)) {
        return 0;
    }
    let own = all.iter().find(|one| one.addresses.contains(&source)).map(|one| one.index);
    own.filter(|own| interfaces::exit(source, remote) != Some(*own))
        .filter(|own| interfaces::reaches(source, *own, remote))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_has_gone_leaves_the_choice_to_the_kernel() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let lo = nix::net::if_::if_nametoindex("lo").unwrap();
        let [source, remote] = ["192.0.2.1", "198.51.100.1"].map(|ip| ip.parse().unwrap());
        let pair = (source, remote);
        let mut exits = Exits { since: Some((Instant::now(), true)), ..Exits::new(false) };
        for (interface, set_to) in [(lo, lo), (i32::MAX as u32, 0)] {
            exits.known.insert(pair, interface);
            exits.set(&socket, source, SocketAddr::new(remote, 9899));
            assert_eq!((exits.now, exits.known[&pair]), (Some(set_to), set_to));
        }
    }
}
