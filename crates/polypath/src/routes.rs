//! Chooses local addresses by the operating system's routing table.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use polypath_proto::{PrefixRoutes, RouteTable};

use crate::interfaces::{self, Interface};

/// The operating system's routing table: the source address that it would use towards the remote
/// address, if that is among the local ones or an unspecified one is, or else the local address
/// that shares the longest prefix with the remote one ([`PrefixRoutes`]). On Linux, a remote
/// address is also reached from each local address whose interface has a route to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRoutes;

impl SystemRoutes {
    /// The source address that the operating system would use towards `remote`; `None` without a
    /// route.
    pub fn source_towards(remote: IpAddr) -> Option<IpAddr> {
        source_towards(remote)
    }
}

impl RouteTable for SystemRoutes {
    fn local_for(&self, remote: IpAddr, index: usize, locals: &[IpAddr]) -> Option<IpAddr> {
        let any = |source: &IpAddr| {
            locals.iter().any(|ip| ip.is_unspecified() && ip.is_ipv4() == source.is_ipv4())
        };
        source_towards(remote)
            .filter(|source| locals.contains(source) || any(source))
            .or_else(|| PrefixRoutes.local_for(remote, index, locals))
    }

    fn source_for(&self, remote: IpAddr, locals: &[IpAddr]) -> Option<IpAddr> {
        source_towards(remote).filter(|source| locals.contains(source))
    }

    fn all_for(&self, remote: IpAddr, locals: &[IpAddr]) -> Vec<IpAddr> {
        let preferred = self.local_for(remote, 0, locals);
        let mut all: Vec<IpAddr> = preferred.into_iter().collect();
        let interfaces = interfaces::up().unwrap_or_default();
        // A host reaches its own addresses over no network.
        if remote.is_loopback() || interfaces.iter().any(|one| one.addresses.contains(&remote)) {
            return all;
        }
        for interface in interfaces {
            // Two addresses of an interface lead over the same network.
            if interface.addresses.iter().any(|ip| all.contains(ip)) {
                continue;
            }
            let reaches = |local: &&IpAddr| {
                local.is_ipv4() == remote.is_ipv4()
                    && interfaces::reaches(**local, interface.index, remote)
            };
            let bound = locals.iter().filter(|local| interface.addresses.contains(local));
            all.extend({ bound }.find(reaches));
        }
        all
    }
}

/// The routes without further ones: each remote address is reached from one local address.
#[derive(Debug)]
pub(crate) struct Preferred(pub(crate) std::sync::Arc<dyn RouteTable>);

impl RouteTable for Preferred {
    fn local_for(&self, remote: IpAddr, index: usize, locals: &[IpAddr]) -> Option<IpAddr> {
        self.0.local_for(remote, index, locals)
    }

    fn source_for(&self, remote: IpAddr, locals: &[IpAddr]) -> Option<IpAddr> {
        self.0.source_for(remote, locals)
    }
}

/// The host's addresses that can be of use to a peer, one of each interface and family: not those
/// of bridges that lead to no other network, such as that of containers.
pub(crate) fn useful() -> io::Result<Vec<IpAddr>> {
    /// Addresses that no host has (RFC 5737, RFC 3849), for a route to the world outside.
    const OUTSIDE: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    ];
    let mut found = Vec::new();
    for Interface { index, is_bridge, addresses } in interfaces::up()? {
        for outside in OUTSIDE {
            let of_family = |ip: &&IpAddr| ip.is_ipv4() == outside.is_ipv4();
            let Some(first) = addresses.iter().find(of_family) else { continue };
            let source = interfaces::source(index, outside).filter(|ip| addresses.contains(ip));
            if !is_bridge || interfaces::reaches(source.unwrap_or(*first), index, outside) {
                found.push(source.unwrap_or(*first));
            }
        }
    }
    Ok(found)
}

/// Connecting a UDP socket looks the route up and sends nothing.
fn source_towards(remote: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match remote {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // The port does not matter, but some systems refuse 0.
    socket.connect(SocketAddr::new(remote, crate::UDP_PORT)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_its_own_source() {
        assert_eq!(
            source_towards(Ipv4Addr::LOCALHOST.into()),
            Some(IpAddr::V4(Ipv4Addr::LOCALHOST))
        );
    }

    #[test]
    fn the_route_wins_if_its_source_is_bound() {
        let locals = ["127.0.0.1".parse().unwrap(), "127.9.0.1".parse().unwrap()];
        let remote = "127.9.0.2".parse().unwrap();
        // The kernel sends from 127.0.0.1 to all of 127/8.
        assert_eq!(SystemRoutes.local_for(remote, 0, &locals), Some(locals[0]));
        assert_eq!(SystemRoutes.local_for(remote, 0, &locals[1..]), Some(locals[1]));
        assert_eq!(SystemRoutes.source_for(remote, &locals), Some(locals[0]));
        assert_eq!(SystemRoutes.source_for(remote, &locals[1..]), None);
    }

    #[test]
    fn an_unspecified_address_stands_for_the_source_of_the_route() {
        let any = [Ipv4Addr::UNSPECIFIED.into()];
        let remote = Ipv4Addr::LOCALHOST.into();
        assert_eq!(SystemRoutes.local_for(remote, 0, &any), Some(remote));
        assert_eq!(SystemRoutes.all_for(remote, &any), [remote]);
    }
}
