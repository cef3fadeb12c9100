//! Chooses local addresses by the operating system's routing table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use polypath_proto::{PrefixRoutes, RouteTable};

/// The operating system's routing table: the source address that it would use towards the remote
/// address, if that is among the local ones, or else the local address that shares the longest
/// prefix with the remote one ([`PrefixRoutes`]).
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
        source_towards(remote)
            .filter(|source| locals.contains(source))
            .or_else(|| PrefixRoutes.local_for(remote, index, locals))
    }

    fn source_for(&self, remote: IpAddr, locals: &[IpAddr]) -> Option<IpAddr> {
        source_towards(remote).filter(|source| locals.contains(source))
    }
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
}
