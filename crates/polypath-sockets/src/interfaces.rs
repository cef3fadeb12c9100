//! The addresses of this host.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

use crate::errno::{self, Errno};

/// Addresses of the interfaces that are up. Link-local ones are left out: they need an interface.
pub(crate) fn addresses(family: c_int) -> Errno<Vec<IpAddr>> {
    let mut list = ptr::null_mut();
    // SAFETY: `list` has room for a pointer.
    errno::check(unsafe { libc::getifaddrs(&raw mut list) } as isize)?;
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: the call has made a list, whose addresses have the size of their family.
    while let Some(one) = unsafe { next.as_ref() } {
        next = one.ifa_next;
        let up = one.ifa_flags & libc::IFF_UP as u32 != 0;
        // SAFETY: as above.
        let ip = match unsafe { one.ifa_addr.as_ref() }.map(|address| address.sa_family.into()) {
            Some(libc::AF_INET) => {
                // SAFETY: as above.
                let four = unsafe { one.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
                Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(four.sin_addr.s_addr))))
            }
            Some(libc::AF_INET6) if family == libc::AF_INET6 => {
                // SAFETY: as above.
                let six = unsafe { one.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
                let ip = Ipv6Addr::from(six.sin6_addr.s6_addr);
                (!ip.is_unicast_link_local()).then_some(IpAddr::V6(ip))
            }
            _ => None,
        };
        found.extend(ip.filter(|_| up));
    }
    // SAFETY: the list is freed once.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}
