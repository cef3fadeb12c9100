//! The host's addresses, and when they change.
//!
//! On Linux the kernel says that something has changed (rtnetlink, groups for links, addresses and routes); what there
//! is now, `getifaddrs` tells. Where there are no such notices, it is asked every other second.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// How often the addresses are read where nobody tells that they change.
const PERIOD: Duration = Duration::from_secs(2);

/// An address that cannot be used yet, such as one that is being checked for duplicates, is tried again after
/// this.
const AGAIN: Duration = Duration::from_millis(500);

/// Watches the addresses.
pub(crate) struct Watch {
    #[cfg(target_os = "linux")]
    notices: Option<notices::Notices>,
    next: Pin<Box<Sleep>>,
}

impl Watch {
    /// In the current tokio runtime.
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            notices: notices::Notices::open()
                .inspect_err(|error| tracing::warn!("no notices of addresses: {error}"))
                .ok(),
            next: Box::pin(tokio::time::sleep_until(Instant::now())),
        }
    }

    /// Ready when the addresses may have changed, and the first time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut ready = self.next.as_mut().poll(cx).is_ready();
        #[cfg(target_os = "linux")]
        if let Some(notices) = &mut self.notices {
            ready |= notices.poll(cx).is_ready();
            if ready {
                // The next one comes by notice.
                self.wake_in(cx, Duration::from_secs(3600));
            }
        } else if ready {
            self.wake_in(cx, PERIOD);
        }
        #[cfg(not(target_os = "linux"))]
        if ready {
            self.wake_in(cx, PERIOD);
        }
        if ready { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Something could not be done yet.
    pub(crate) fn try_again(&mut self, cx: &mut Context<'_>) {
        self.wake_in(cx, AGAIN);
    }

    fn wake_in(&mut self, cx: &mut Context<'_>, time: Duration) {
        self.next.as_mut().reset(Instant::now() + time);
        // It has to be polled to wake.
        let _ = self.next.as_mut().poll(cx);
    }
}

/// The host's addresses: those of interfaces that are up and have a link, without loopback and link-local ones,
/// which reach nobody elsewhere or need a zone.
///
/// # Errors
///
/// What the operating system says; where there is no `getifaddrs`, [`Unsupported`](std::io::ErrorKind).
#[cfg(unix)]
pub fn addresses() -> std::io::Result<Vec<IpAddr>> {
    use nix::net::if_::InterfaceFlags;
    let mut found: Vec<IpAddr> = Vec::new();
    for interface in nix::ifaddrs::getifaddrs()? {
        let up = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
        if !interface.flags.contains(up) {
            continue;
        }
        let Some(address) = interface.address else { continue };
        let ip: IpAddr = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(v4), _) => v4.ip().into(),
            (_, Some(v6)) => v6.ip().into(),
            _ => continue,
        };
        let local = match ip {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        if !local && !ip.is_loopback() && !found.contains(&ip) {
            found.push(ip);
        }
    }
    Ok(found)
}

/// The host's addresses, which cannot be read here.
///
/// # Errors
///
/// [`Unsupported`](std::io::ErrorKind).
#[cfg(not(unix))]
pub fn addresses() -> std::io::Result<Vec<IpAddr>> {
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

    /// A socket on which the kernel tells of links, addresses and routes (rtnetlink(7)). It goes as a UDP socket:
    /// tokio only waits for it.
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

        /// Ready if there was one.
        pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let mut any = false;
            while self.0.poll_recv_ready(cx).is_ready() {
                // What it says in particular does not matter: all is read anew.
                let mut buf = [0; 8192];
                let received = self.0.try_io(Interest::READABLE, || {
                    Ok(recv(self.0.as_raw_fd(), &mut buf, MsgFlags::MSG_DONTWAIT)?)
                });
                match received {
                    Ok(_) => any = true,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // Some were missed.
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => any = true,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            if any { Poll::Ready(()) } else { Poll::Pending }
        }
    }
}
