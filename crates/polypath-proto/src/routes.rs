//! Pairs local addresses with remote ones.

use std::fmt::Debug;
use std::net::IpAddr;

/// Pairs addresses into paths. Drivers on real hosts query the operating system's routes.
pub trait RouteTable: Send + Sync + Debug {
    /// The local address, one of `locals`, from which `remote` is reached; `None` if no local
    /// address is suitable. `index` is the position of `remote` in the peer's list of addresses.
    fn local_for(&self, remote: IpAddr, index: usize, locals: &[IpAddr]) -> Option<IpAddr>;

    /// The address among `locals` that the routes choose as source towards `remote`, never just a
    /// suitable one. `None` without a route.
    fn source_for(&self, remote: IpAddr, locals: &[IpAddr]) -> Option<IpAddr> {
        self.local_for(remote, 0, locals)
    }

    /// The addresses among `locals` that each reach `remote` over a network of their own; the one
    /// that the routes prefer is the first. A local address that has no other path gets one to such
    /// a remote address. A table that does not know the networks returns none.
    fn all_for(&self, remote: IpAddr, locals: &[IpAddr]) -> Vec<IpAddr> {
        let _ = (remote, locals);
        Vec::new()
    }
}

/// Pairs by the longest common prefix, which suits hosts on common networks; of several equally
/// close local addresses, it takes the one at the remote address's position in the list.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrefixRoutes;

impl RouteTable for PrefixRoutes {
    fn local_for(&self, remote: IpAddr, index: usize, locals: &[IpAddr]) -> Option<IpAddr> {
        let same_family = |l: &&IpAddr| l.is_ipv4() == remote.is_ipv4();
        let longest = locals.iter().filter(same_family).map(|l| common_prefix(*l, remote)).max()?;
        let closest: Vec<IpAddr> = locals
            .iter()
            .filter(same_family)
            .filter(|l| common_prefix(**l, remote) == longest)
            .copied()
            .collect();
        Some(closest[index % closest.len()])
    }
}

/// Length in bits of the common prefix of two addresses of one family; 0 for an unspecified one.
fn common_prefix(a: IpAddr, b: IpAddr) -> u32 {
    match (a, b) {
        _ if a.is_unspecified() => 0,
        (IpAddr::V4(a), IpAddr::V4(b)) => (u32::from(a) ^ u32::from(b)).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (u128::from(a) ^ u128::from(b)).leading_zeros(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_then_by_place() {
        let ip = |s: &str| s.parse::<IpAddr>().unwrap();
        let locals = [ip("10.1.0.1"), ip("10.2.0.1"), ip("fd00::1")];
        let r = PrefixRoutes;
        assert_eq!(r.local_for(ip("10.2.0.9"), 0, &locals), Some(locals[1]));
        assert_eq!(r.local_for(ip("fd00::9"), 0, &locals), Some(locals[2]));
        let loopback = [ip("127.1.0.1"), ip("127.1.0.2")];
        assert_eq!(r.local_for(ip("127.2.0.1"), 0, &loopback), Some(loopback[0]));
        assert_eq!(r.local_for(ip("127.2.0.2"), 1, &loopback), Some(loopback[1]));
        assert_eq!(r.local_for(ip("fd00::9"), 0, &loopback), None);
    }
}
