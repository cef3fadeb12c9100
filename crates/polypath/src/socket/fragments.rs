//! Controls whether IP fragments a socket's datagrams (Linux).

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use nix::libc;
use polypath_proto::Fragmentation;

/// Packet size in bytes that every IPv6 link supports (RFC 8200 5).
const LEAST_V6: libc::c_int = 1280;

/// Current fragmentation setting of a socket.
#[derive(Debug)]
pub(super) struct Fragments {
    now: Fragmentation,
    /// Whether `System` is treated as `Never`, because `quinn-udp` has set the socket so.
    never: bool,
}

impl Fragments {
    /// `never`: whether fragmentation is already turned off on the socket.
    pub(super) const fn new(never: bool) -> Self {
        Self { now: Fragmentation::System, never }
    }

    /// Sets the socket's options for the next datagram, if they have to change.
    pub(super) fn set(
        &mut self,
        socket: &impl AsRawFd,
        destination: SocketAddr,
        wanted: Fragmentation,
    ) -> io::Result<()> {
        let wanted = match wanted {
            Fragmentation::Never if self.never => Fragmentation::System,
            other => other,
        };
        if wanted == self.now {
            return Ok(());
        }
        let fd = socket.as_raw_fd();
        if destination.is_ipv4() {
            let how = match wanted {
                Fragmentation::Never => libc::IP_PMTUDISC_PROBE,
                Fragmentation::System if self.never => libc::IP_PMTUDISC_PROBE,
                Fragmentation::System => libc::IP_PMTUDISC_WANT,
                Fragmentation::Allowed => libc::IP_PMTUDISC_DONT,
            };
            set_option(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how)?;
        } else {
            let how = match wanted {
                Fragmentation::Never => libc::IPV6_PMTUDISC_PROBE,
                Fragmentation::System if self.never => libc::IPV6_PMTUDISC_PROBE,
                Fragmentation::System => libc::IPV6_PMTUDISC_WANT,
                Fragmentation::Allowed => libc::IPV6_PMTUDISC_DONT,
            };
            set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, how)?;
            // `quinn-udp` sets this option.
            let whole = i32::from(self.never && wanted != Fragmentation::Allowed);
            set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, whole)?;
            // IPv6 routers do not fragment: the fragments must fit the whole path.
            let size = if wanted == Fragmentation::Allowed { LEAST_V6 } else { 0 };
            set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU, size)?;
        }
        self.now = wanted;
        Ok(())
    }
}

/// `nix`, `socket2` and the standard library do not cover these Linux options, and offer no way to
/// set an option by number: call the system directly.
#[expect(unsafe_code, reason = "setsockopt by number, with an integer")]
pub(super) fn set_option(
    fd: std::os::fd::RawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer is to an integer that outlives the call, and `size` is its size.
    let result = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
