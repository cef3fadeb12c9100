//! The interface that datagrams leave by: that of their source address, if it leads to the
//! destination (Linux).
//!
//! Linux chooses it by the destination alone, unless there are rules for source addresses. With two
//! uplinks, datagrams from the second one's address would leave by the first, whose provider may
//! drop them.

use std::collections::HashMap;
use std::io;
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
#[derive(Debug, Default)]
pub(super) struct Exits {
    /// The interface that the socket is set to; 0 leaves the choice to the kernel.
    now: u32,
    /// The interface for a source and a destination; 0 where the kernel's own choice is right.
    known: HashMap<(IpAddr, IpAddr), u32>,
    /// Since when the routes are known, and whether the host has several interfaces.
    since: Option<(Instant, bool)>,
}

impl Exits {
    /// Sets the socket's option for the next datagram, if it has to change.
    pub(super) fn set(
        &mut self,
        socket: &impl AsRawFd,
        source: IpAddr,
        destination: SocketAddr,
    ) -> io::Result<()> {
        let remote = destination.ip();
        let wanted = if source.is_unspecified() || source.is_loopback() || remote.is_loopback() {
            0
        } else {
            self.exit(source, remote)
        };
        if wanted == self.now {
            return Ok(());
        }
        // In network byte order (ip(7)).
        let value = wanted.to_be() as libc::c_int;
        if destination.is_ipv4() {
            set_option(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_UNICAST_IF, value)?;
        } else {
            set_option(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_UNICAST_IF, value)?;
        }
        self.now = wanted;
        Ok(())
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
