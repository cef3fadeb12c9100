//! Scopes of addresses: an endpoint bound to all of a host's addresses announces only those that
//! the peer may be able to reach (RFC 9260 5.1.2; draft-stewart-tsvwg-sctp-ipv4, as Linux
//! implements it).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Part of the Internet in which an address is valid, the widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Global,
    /// RFC 1918 and 2544, or site-local.
    Private,
    /// One link.
    Link,
    /// One host.
    Loopback,
}

impl Scope {
    pub(crate) fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::of_v4(ip),
            IpAddr::V6(ip) => Self::of_v6(ip),
        }
    }

    fn of_v4(ip: Ipv4Addr) -> Self {
        let [first, second, ..] = ip.octets();
        let benchmarks = first == 198 && second & 0xfe == 18;
        if ip.is_loopback() {
            Self::Loopback
        } else if ip.is_link_local() {
            Self::Link
        } else if ip.is_private() || benchmarks {
            Self::Private
        } else {
            Self::Global
        }
    }

    const fn of_v6(ip: Ipv6Addr) -> Self {
        let site_local = ip.segments()[0] & 0xffc0 == 0xfec0;
        if ip.is_loopback() {
            Self::Loopback
        } else if ip.is_unicast_link_local() {
            Self::Link
        } else if site_local {
            Self::Private
        } else {
            Self::Global
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_those_of_linux() {
        for (text, scope) in [
            ("127.0.0.1", Scope::Loopback),
            ("::1", Scope::Loopback),
            ("::ffff:127.9.0.1", Scope::Loopback),
            ("169.254.1.1", Scope::Link),
            ("fe80::1", Scope::Link),
            ("10.1.0.1", Scope::Private),
            ("172.16.0.1", Scope::Private),
            ("192.168.0.1", Scope::Private),
            ("198.19.0.1", Scope::Private),
            ("fec0::1", Scope::Private),
            ("198.51.100.1", Scope::Global),
            ("172.32.0.1", Scope::Global),
            ("fd00::1", Scope::Global),
            ("2001:db8::1", Scope::Global),
        ] {
            assert_eq!(Scope::of(text.parse().unwrap()), scope, "{text}");
        }
        assert!(Scope::Global < Scope::Private && Scope::Link < Scope::Loopback);
    }
}
