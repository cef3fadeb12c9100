//! Whether IP fragments what a socket sends (Linux).

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use nix::libc;
use polypath_proto::Fragmentation;

/// What every IPv6 link carries (RFC 8200 5), in bytes.
const LEAST_V6: libc::c_int = 1280;

/// What a socket does at the moment.
#[derive(Debug)]
pub(super) struct Fragments {
    now: Fragmentation,
    /// Whether `System` means `Never`: `quinn-udp` sets it so.
    never: bool,
}

impl Fragments {
    /// `never` if the socket has been told that nothing is to be fragmented.
    pub(super) const fn new(never: bool) -> Self {
        Self { now: Fragmentation::System, never }
    }

    /// Tells the socket what the next datagram wants, if that is something else.
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
            // Which `quinn-udp` sets.
            let whole = i32::from(self.never && wanted != Fragmentation::Allowed);
            set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, whole)?;
            // Routers fragment nothing: the fragments have to fit the whole way.
            let size = if wanted == Fragmentation::Allowed { LEAST_V6 } else { 0 };
            set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU, size)?;
        }
        self.now = wanted;
        Ok(())
    }
}

/// Neither `nix` nor `socket2` nor the standard library sets these options, which are Linux's own, and none sets an
/// option by its number: so the system is called here.
#[expect(unsafe_code, reason = "setsockopt by number, with an integer")]
fn set_option(
    fd: std::os::fd::RawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer is to an integer that lives through the call, and `size` is its size.
    let result = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
