//! The SCTP ports of sockets. With `polypath run --shared`, no two processes have the same one.

use std::ffi::c_int;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::sync::Arc;

use polypath::SharedSockets;
use polypath_ports::client::{Claimed, Client};
use polypath_ports::message::MOST_ADDRESSES;
use polypath_ports::table::Claim;

use crate::engine::engine;
use crate::errno::Errno;
use crate::link::{Phase, lock};
use crate::open::ephemeral_port;
use crate::socket::{Names, Sock};
use crate::{private, real, report};

/// What a socket does with its addresses and port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing yet: the daemon replies to packets.
    Bound,
    /// It has associations, or opens one.
    Open,
    /// It accepts associations.
    Listening,
}

impl Use {
    /// That of a socket at the moment.
    pub(crate) fn of(sock: &Sock, names: &Names) -> Self {
        match sock.link.phase() {
            Phase::Listening => Self::Listening,
            _ if names.endpoint.is_some() => Self::Open,
            _ => Self::Bound,
        }
    }
}

/// The daemon, for this process.
#[derive(Clone)]
pub(crate) struct Ports {
    client: Arc<Client>,
    /// The UDP sockets, and the datagrams that each had dropped when the process got it.
    sockets: Vec<(c_int, u32)>,
}

impl Ports {
    /// Lines for `polypath run --doctor`.
    pub(crate) fn report(&self) -> String {
        let dropped: u32 =
            self.sockets.iter().map(|(fd, before)| dropped(*fd).wrapping_sub(*before)).sum();
        let malformed = self.client.malformed().unwrap_or(0);
        let line = |count: u32, what: &str| match count {
            0 => String::new(),
            _ => format!("polypath run: {count} datagrams {what}\n"),
        };
        line(dropped, "dropped because the program did not receive them in time")
            + &line(malformed, "malformed, at the UDP port of all programs")
    }
}

/// Datagrams that the kernel has dropped because a socket's buffer was full (SO_MEMINFO).
fn dropped(fd: c_int) -> u32 {
    const SO_MEMINFO: c_int = 55;
    // SK_MEMINFO_DROPS of linux/sock_diag.h is the last one.
    let mut info = [0u32; 9];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the value has room for its length.
    unsafe {
        let value = info.as_mut_ptr().cast();
        real::getsockopt(fd, libc::SOL_SOCKET, SO_MEMINFO, value, &raw mut length);
    }
    info[8]
}

/// Connects to the daemon: the connection, and the UDP sockets of this process.
pub(crate) fn join(udp_port: u16) -> Errno<(Ports, SharedSockets)> {
    let joined = private::inside(|| {
        let client = Client::connect(udp_port)?;
        private::mark(client.number());
        let udp: Vec<UdpSocket> = client.join()?.into_iter().map(kept).collect();
        let numbers = udp.iter().map(AsRawFd::as_raw_fd);
        let sockets = numbers.map(|fd| (fd, dropped(fd))).collect();
        Ok((Ports { client: Arc::new(client), sockets }, SharedSockets::given(udp, false)))
    });
    joined.map_err(|error| failed(&error))
}

/// A socket that a message has brought, as a descriptor of the engine.
fn kept(socket: UdpSocket) -> UdpSocket {
    let fd = private::raised(socket.into_raw_fd());
    private::mark(fd);
    // SAFETY: `raised` has taken the descriptor, and returns one that nothing else owns.
    unsafe { UdpSocket::from_raw_fd(fd) }
}

fn failed(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or_else(|| {
        report::missed("a port without the daemon of --shared");
        libc::ENETDOWN
    })
}

/// Gives a socket these addresses with a port, or with any free one if it is 0. The caller has
/// compared it with the other sockets of this process.
pub(crate) fn claim(
    sock: &Sock,
    names: &mut Names,
    addresses: &[IpAddr],
    port: u16,
    usage: Use,
) -> Errno<()> {
    let engine = engine()?;
    let Some(ports) = &engine.ports else {
        names.port = if port == 0 { ephemeral_port() } else { port };
        return Ok(());
    };
    let options = *lock(&sock.options);
    let all = engine.local_addresses(sock.family, addresses, &options);
    let (any, single): (Vec<IpAddr>, Vec<IpAddr>) = all.iter().partition(|ip| ip.is_unspecified());
    if single.len() > MOST_ADDRESSES {
        return Err(libc::ENOBUFS);
    }
    let wanted = Claim {
        port,
        any_v4: any.iter().any(IpAddr::is_ipv4),
        any_v6: any.iter().any(IpAddr::is_ipv6),
        addresses: single,
        reuses: options.reuse_address || options.reuse_port,
        shares: options.shares_port,
        opened: usage != Use::Bound,
        listens: usage == Use::Listening,
    };
    match &names.claim {
        Some(claimed) if port == 0 || port == claimed.port() => {
            claimed.change(wanted).map_err(|error| failed(&error))?;
        }
        _ => {
            let claimed = ports.client.claim(wanted).map_err(|error| failed(&error))?;
            names.claim = Some(Arc::new(claimed));
        }
    }
    names.port = names.claim.as_deref().map_or(port, Claimed::port);
    Ok(())
}

/// Claims again what a socket has, after a change.
pub(crate) fn renew(sock: &Sock, names: &mut Names, usage: Use) -> Errno<()> {
    if names.claim.is_none() {
        return Ok(());
    }
    if !names.bound {
        names.claim = None;
        return Ok(());
    }
    let (addresses, port) = (names.addresses.clone(), names.port);
    claim(sock, names, &addresses, port, usage)
}

/// Prepares the endpoint of a socket. One without a name has a port chosen, as bind does with port
/// 0; that of one that connects is chosen with its UDP port, unless all have the same one.
pub(crate) fn open(sock: &Sock, names: &mut Names, listens: bool) -> Errno<()> {
    let usage = if listens { Use::Listening } else { Use::Open };
    if names.bound {
        return renew(sock, names, usage);
    }
    if !listens && engine()?.ports.is_none() {
        return Ok(());
    }
    let addresses = names.addresses.clone();
    claim(sock, names, &addresses, 0, usage)
}
