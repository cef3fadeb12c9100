//! The addresses and SCTP ports of sockets. With `polypath run --shared`, no two processes have the
//! same ones.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use polypath_ports::client::Claimed;
use polypath_ports::message::MOST_ADDRESSES;
use polypath_ports::table::Claim;

use crate::engine::engine;
use crate::errno::Errno;
use crate::link::{Phase, lock};
use crate::ports::failed;
use crate::socket::{Names, Sock};

/// What a socket does with its addresses and port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing yet: the daemon replies to packets.
    Bound,
    /// It has associations, or opens one.
    Open,
    /// It accepts associations.
    Listening,
}

impl Use {
    /// That of a socket at the moment.
    pub(crate) fn of(sock: &Sock, names: &Names) -> Self {
        match sock.link.phase() {
            Phase::Listening => Self::Listening,
            _ if names.endpoint.is_some() => Self::Open,
            _ => Self::Bound,
        }
    }
}

/// Gives a socket these addresses with a port, or with any free one if it is 0. The caller has
/// compared it with the other sockets of this process.
pub(crate) fn claim(
    sock: &Sock,
    names: &mut Names,
    addresses: &[IpAddr],
    port: u16,
    usage: Use,
) -> Errno<()> {
    let engine = engine()?;
    let Some(ports) = &engine.ports else {
        names.port = if port == 0 { ephemeral_port() } else { port };
        return Ok(());
    };
    let options = *lock(&sock.options);
    let all = engine.local_addresses(sock.family, addresses, &options);
    let (any, single): (Vec<IpAddr>, Vec<IpAddr>) = all.iter().partition(|ip| ip.is_unspecified());
    if single.len() > MOST_ADDRESSES {
        return Err(libc::ENOBUFS);
    }
    let wanted = Claim {
        port,
        any_v4: any.iter().any(IpAddr::is_ipv4),
        any_v6: any.iter().any(IpAddr::is_ipv6),
        addresses: single,
        reuses: options.reuse_address || options.reuse_port,
        shares: options.shares_port,
        opened: usage != Use::Bound,
        listens: usage == Use::Listening,
    };
    match &names.claim {
        Some(claimed) if port == 0 || port == claimed.port() => {
            claimed.change(wanted).map_err(|error| failed(&error))?;
        }
        _ => {
            let claimed = ports.client.claim(wanted).map_err(|error| failed(&error))?;
            names.claim = Some(Arc::new(claimed));
        }
    }
    names.port = names.claim.as_deref().map_or(port, Claimed::port);
    Ok(())
}

/// Claims again what a socket has, after a change.
pub(crate) fn renew(sock: &Sock, names: &mut Names, usage: Use) -> Errno<()> {
    if names.claim.is_none() {
        return Ok(());
    }
    if !names.bound {
        names.claim = None;
        return Ok(());
    }
    let (addresses, port) = (names.addresses.clone(), names.port);
    claim(sock, names, &addresses, port, usage)
}

/// Prepares the endpoint of a socket. One without a name has a port chosen, as bind does with port
/// 0; that of one that connects is chosen with its UDP port, unless all have the same one.
pub(crate) fn open(sock: &Sock, names: &mut Names, listens: bool) -> Errno<()> {
    let usage = if listens { Use::Listening } else { Use::Open };
    if names.bound {
        return renew(sock, names, usage);
    }
    if !listens && engine()?.ports.is_none() {
        return Ok(());
    }
    let addresses = names.addresses.clone();
    claim(sock, names, &addresses, 0, usage)
}

/// Ports of sockets whose endpoints may not have ended yet are not chosen again.
const RECENT: usize = 1024;

static RECENT_PORTS: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());

/// A port of Linux's default range (net.ipv4.ip_local_port_range).
pub(crate) fn ephemeral_port() -> u16 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // Another thread may hold the lock at the moment of a fork.
    let mut recent = RECENT_PORTS.try_lock().ok();
    loop {
        // A new hasher has random keys.
        let random = RandomState::new().build_hasher().finish();
        let port = 32_768 + (random % 28_232) as u16;
        let Some(recent) = &mut recent else { return port };
        if !recent.contains(&port) {
            recent.truncate(RECENT - 1);
            recent.push_front(port);
            return port;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_not_chosen_again_at_once() {
        let ports: Vec<u16> = (0..RECENT).map(|_| ephemeral_port()).collect();
        let different: std::collections::BTreeSet<u16> = ports.iter().copied().collect();
        assert_eq!(different.len(), RECENT);
        assert!(ports.iter().all(|port| (32_768..61_000).contains(port)));
    }
}
