//! The host's addresses, and notices of their changes.
//!
//! On Linux, rtnetlink announces that links, addresses or routes have changed, and `getifaddrs`
//! lists the addresses. Without notices, the addresses are read every two seconds.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Interval of reading the addresses on systems without notices of changes.
const PERIOD: Duration = Duration::from_secs(2);

/// Time after which binding an address is retried, for example because duplicate address detection
/// was still running.
const AGAIN: Duration = Duration::from_millis(500);

/// Watches for changes of the host's addresses.
pub(crate) struct Watch {
    #[cfg(target_os = "linux")]
    notices: Option<notices::Notices>,
    next: Pin<Box<Sleep>>,
}

impl Watch {
    /// Must be called in a tokio runtime.
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            notices: notices::Notices::open()
                .inspect_err(|error| tracing::warn!("no notices of addresses: {error}"))
                .ok(),
            next: Box::pin(tokio::time::sleep_until(Instant::now())),
        }
    }

    /// Ready at the first call, and when the addresses may have changed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let due = self.next.as_mut().poll(cx).is_ready();
        #[cfg(target_os = "linux")]
        if let Some(notices) = &mut self.notices {
            let ready = due | notices.poll(cx).is_ready();
            if ready {
                // From now on the notices wake the task.
                self.wake_in(cx, Duration::from_secs(3600));
            }
            return if ready { Poll::Ready(()) } else { Poll::Pending };
        }
        if !due {
            return Poll::Pending;
        }
        self.wake_in(cx, PERIOD);
        Poll::Ready(())
    }

    /// Schedules another attempt after [`AGAIN`].
    pub(crate) fn try_again(&mut self, cx: &mut Context<'_>) {
        self.wake_in(cx, AGAIN);
    }

    fn wake_in(&mut self, cx: &mut Context<'_>, time: Duration) {
        self.next.as_mut().reset(Instant::now() + time);
        // The timer must be polled to wake the task.
        let _ = self.next.as_mut().poll(cx);
    }
}

/// The host's addresses: those of interfaces that are up and have a link. Loopback addresses are
/// left out because other hosts cannot reach them, link-local ones because they need a zone.
///
/// # Errors
///
/// The error of the operating system; [`Unsupported`](std::io::ErrorKind) without `getifaddrs`.
#[cfg(unix)]
pub fn addresses() -> std::io::Result<Vec<IpAddr>> {
    addresses_on(None)
}

/// The addresses of the interface of this name, as [`addresses`] lists them; none if there is no
/// such interface, or it is down.
///
/// # Errors
///
/// As [`addresses`].
pub fn addresses_of(interface: &str) -> std::io::Result<Vec<IpAddr>> {
    addresses_on(Some(interface))
}

/// The addresses of one interface, or of all.
#[cfg(unix)]
fn addresses_on(name: Option<&str>) -> std::io::Result<Vec<IpAddr>> {
    let there = named()?.into_iter().filter(|(one, _)| name.is_none_or(|name| name == one));
    let mut found: Vec<IpAddr> = Vec::new();
    for (_, ip) in there {
        if !found.contains(&ip) {
            found.push(ip);
        }
    }
    Ok(found)
}

/// The addresses that [`addresses`] lists, with the names of their interfaces.
#[cfg(unix)]
pub(crate) fn named() -> std::io::Result<Vec<(String, IpAddr)>> {
    use nix::net::if_::InterfaceFlags;
    listed(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING, |ip| {
        let local = match ip {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        !local && !ip.is_loopback()
    })
}

/// The addresses that an endpoint bound to an unspecified address announces: those of interfaces
/// that are up, including loopback ones. IPv6 link-local ones need a zone.
#[cfg(unix)]
pub(crate) fn announced() -> std::io::Result<Vec<IpAddr>> {
    let all = listed(
        nix::net::if_::InterfaceFlags::IFF_UP,
        |ip| !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local()),
    );
    Ok(all?.into_iter().map(|(_, ip)| ip).collect())
}

/// The addresses of interfaces with these flags that fulfil a condition, each once, with the names
/// of the interfaces.
#[cfg(unix)]
fn listed(
    flags: nix::net::if_::InterfaceFlags,
    fits: impl Fn(IpAddr) -> bool,
) -> std::io::Result<Vec<(String, IpAddr)>> {
    let mut found: Vec<(String, IpAddr)> = Vec::new();
    for interface in nix::ifaddrs::getifaddrs()? {
        let Some(address) = interface.address else { continue };
        let ip: IpAddr = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(v4), _) => v4.ip().into(),
            (_, Some(v6)) => v6.ip().into(),
            _ => continue,
        };
        let usable = interface.flags.contains(flags) && fits(ip);
        let known =
            found.iter().any(|(name, known)| *known == ip && *name == interface.interface_name);
        if usable && !known {
            found.push((interface.interface_name, ip));
        }
    }
    Ok(found)
}

/// The host's addresses, which cannot be read on this system.
///
/// # Errors
///
/// [`Unsupported`](std::io::ErrorKind).
#[cfg(not(unix))]
pub fn addresses() -> std::io::Result<Vec<IpAddr>> {
    addresses_on(None)
}

#[cfg(not(unix))]
pub(crate) fn announced() -> std::io::Result<Vec<IpAddr>> {
    addresses_on(None)
}

#[cfg(not(unix))]
fn addresses_on(_: Option<&str>) -> std::io::Result<Vec<IpAddr>> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
mod notices {
    use std::io;
    use std::os::fd::AsRawFd;
    use std::task::{Context, Poll};

    use nix::libc;
    use nix::sys::socket::{
        AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
    };
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    /// An rtnetlink(7) socket on which the kernel announces changes of links, addresses and routes.
    /// It is wrapped in a `UdpSocket` so that tokio can wait for it.
    pub(super) struct Notices(UdpSocket);

    impl Notices {
        pub(super) fn open() -> io::Result<Self> {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let socket =
                socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
            let addresses = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
            let groups = addresses | libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE;
            bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups as u32))?;
            Ok(Self(UdpSocket::from_std(socket.into())?))
        }

        /// Ready if there was a notice.
        pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let mut any = false;
            while self.0.poll_recv_ready(cx).is_ready() {
                // The contents of a notice do not matter: all addresses are read again.
                let mut buf = [0; 8192];
                let received = self.0.try_io(Interest::READABLE, || {
                    Ok(recv(self.0.as_raw_fd(), &mut buf, MsgFlags::MSG_DONTWAIT)?)
                });
                match received {
                    Ok(_) => any = true,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // The kernel has dropped notices.
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => any = true,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            if any { Poll::Ready(()) } else { Poll::Pending }
        }
    }
}
