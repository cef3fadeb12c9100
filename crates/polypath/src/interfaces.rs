//! The host's interfaces, and where their routes lead.
//!
//! With two uplinks and a default route over each, Linux sends everything over the one with the
//! lower metric, whatever the source address. So the kernel is asked for the routes of one
//! interface (`RTM_GETROUTE` with an output interface, rtnetlink(7)), and sockets send datagrams
//! from its addresses by it.

use std::io;
use std::net::IpAddr;

/// An interface that is up and has a link, other than the loopback interface.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    /// Whether it is a bridge, to other interfaces of this host.
    pub(crate) is_bridge: bool,
    /// Its addresses, without link-local ones, which need a zone.
    pub(crate) addresses: Vec<IpAddr>,
}

/// The interfaces that have addresses, in the order of the operating system.
#[cfg(target_os = "linux")]
pub(crate) fn up() -> io::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = Vec::new();
    for (name, address) in crate::watch::named()? {
        // It may have gone since it was listed.
        let Ok(index) = nix::net::if_::if_nametoindex(name.as_str()) else { continue };
        match found.iter_mut().find(|one| one.index == index) {
            Some(known) => known.addresses.push(address),
            None => {
                let is_bridge = std::path::Path::new("/sys/class/net").join(name).join("bridge");
                let addresses = vec![address];
                found.push(Interface { index, is_bridge: is_bridge.exists(), addresses });
            }
        }
    }
    Ok(found)
}

/// One for each address of the host: which of them belong together is not known.
#[cfg(not(target_os = "linux"))]
pub(crate) fn up() -> io::Result<Vec<Interface>> {
    let one = |(index, address)| Interface { index, is_bridge: false, addresses: vec![address] };
    Ok((0..).zip(crate::watch::addresses()?).map(one).collect())
}

/// Whether the interface has a route to `remote` for packets from `local`, one of its addresses.
pub(crate) fn reaches(local: IpAddr, interface: u32, remote: IpAddr) -> bool {
    // Without a route on the interface, the kernel assumes that everything is on its link: only a
    // match in the table counts.
    query(remote, Some(local), Some(interface), true).is_some()
}

/// The source address that the kernel prefers for packets to `remote` over an interface.
pub(crate) fn source(interface: u32, remote: IpAddr) -> Option<IpAddr> {
    query(remote, None, Some(interface), false)?.source
}

/// The interface that packets from `local` to `remote` leave by.
#[cfg(target_os = "linux")]
pub(crate) fn exit(local: IpAddr, remote: IpAddr) -> Option<u32> {
    query(remote, Some(local), None, false)?.interface
}

/// The kernel's answer about a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Route {
    interface: Option<u32>,
    source: Option<IpAddr>,
}

#[cfg(not(target_os = "linux"))]
fn query(_: IpAddr, _: Option<IpAddr>, _: Option<u32>, _: bool) -> Option<Route> {
    None
}

#[cfg(target_os = "linux")]
fn query(
    remote: IpAddr,
    local: Option<IpAddr>,
    interface: Option<u32>,
    matched: bool,
) -> Option<Route> {
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{
        AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto,
        socket,
    };

    let kind = (SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute);
    let asked = socket(AddressFamily::Netlink, kind.0, kind.1, kind.2).and_then(|socket| {
        let fd = socket.as_raw_fd();
        let request = message::request(remote, local, interface, matched);
        sendto(fd, &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answer = vec![0; 4096];
        // The kernel has answered before `sendto` returns.
        let size = recv(fd, &mut answer, MsgFlags::MSG_DONTWAIT)?;
        answer.truncate(size);
        Ok(answer)
    });
    let answer = asked.inspect_err(|error| tracing::debug!("no answer about a route: {error}"));
    message::answer(&answer.ok()?)
}

/// The messages of rtnetlink(7): integers in the host's byte order, attributes of a length, a type
/// and a value, each aligned to four bytes.
#[cfg(target_os = "linux")]
mod message {
    use std::net::IpAddr;

    use nix::libc;

    use super::Route;

    const HEADER: usize = 16;
    const ROUTE: usize = 12;
    /// Answer with the entry of the table that matches (linux/rtnetlink.h).
    const RTM_F_FIB_MATCH: u32 = 0x2000;

    pub(super) fn request(
        remote: IpAddr,
        local: Option<IpAddr>,
        interface: Option<u32>,
        matched: bool,
    ) -> Vec<u8> {
        let bytes = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let bits = |ip: Option<IpAddr>| ip.map_or(0, |ip| bytes(ip).len() as u8 * 8);
        let family = if remote.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mut route = vec![family as u8, bits(Some(remote)), bits(local), 0, 0, 0, 0, 0];
        route.extend(if matched { RTM_F_FIB_MATCH } else { 0 }.to_ne_bytes());
        let attributes = [
            Some((libc::RTA_DST, bytes(remote))),
            local.map(|ip| (libc::RTA_SRC, bytes(ip))),
            interface.map(|index| (libc::RTA_OIF, index.to_ne_bytes().to_vec())),
        ];
        for (kind, value) in attributes.into_iter().flatten() {
            route.extend((4 + value.len() as u16).to_ne_bytes());
            route.extend(kind.to_ne_bytes());
            route.extend(value);
        }
        let mut whole = ((HEADER + route.len()) as u32).to_ne_bytes().to_vec();
        whole.extend(libc::RTM_GETROUTE.to_ne_bytes());
        whole.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
        whole.extend([0; 8]);
        whole.extend(route);
        whole
    }

    /// The route in an answer; `None` if it is an error, such as that there is no route.
    pub(super) fn answer(bytes: &[u8]) -> Option<Route> {
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        if kind != libc::RTM_NEWROUTE {
            return None;
        }
        let mut route = Route::default();
        let mut rest = bytes.get(HEADER + ROUTE..)?;
        while let Some(head) = rest.get(..4) {
            let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
            let Some(value) = rest.get(4..length) else { break };
            match u16::from_ne_bytes([head[2], head[3]]) {
                libc::RTA_OIF => {
                    route.interface = value.try_into().ok().map(u32::from_ne_bytes);
                }
                libc::RTA_PREFSRC => {
                    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
                    let v6 = || <[u8; 16]>::try_from(value).map(IpAddr::from);
                    route.source = v4.or_else(|_| v6()).ok();
                }
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Some(route)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn damaged_answers_are_no_routes() {
            let whole = request([192, 0, 2, 1].into(), None, Some(3), true);
            assert_eq!(answer(&whole), None, "a request is no answer");
            let mut reply = whole;
            reply[4..6].copy_from_slice(&libc::RTM_NEWROUTE.to_ne_bytes());
            assert_eq!(answer(&reply), Some(Route { interface: Some(3), source: None }));
            for length in 0..reply.len() {
                let _ = answer(&reply[..length]);
            }
            reply[HEADER + ROUTE..HEADER + ROUTE + 2].copy_from_slice(&[0, 0]);
            assert_eq!(answer(&reply), Some(Route::default()), "an attribute of no length");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_leads_to_this_host_alone() {
        let lo = nix::net::if_::if_nametoindex("lo").unwrap();
        let here = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(exit(here, IpAddr::from([127, 9, 9, 9])), Some(lo));
        assert!(reaches(here, lo, IpAddr::from([127, 9, 9, 9])));
        assert!(!reaches(here, lo, IpAddr::from([192, 0, 2, 1])));
    }
}
