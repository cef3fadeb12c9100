//! Steps that calls on one-to-one and one-to-many sockets have in common: descriptors, endpoints,
//! names.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use polypath::Endpoint;

use crate::claims::{self, Use};
use crate::engine::engine;
use crate::errno::Errno;
use crate::link::lock;
use crate::socket::{self, Names, Sock};
use crate::values::Options;
use crate::{real, report};

/// Gives the program a descriptor, with the flags of socket(2) and accept4(2).
pub(crate) fn publish(program: OwnedFd, sock: Sock, flags: c_int) -> Errno<c_int> {
    let fd = program.as_raw_fd();
    // SAFETY: these commands take flags and no pointer.
    unsafe {
        if flags & libc::SOCK_CLOEXEC == 0 {
            real::fcntl(fd, libc::F_SETFD, 0);
        }
        if flags & libc::SOCK_NONBLOCK != 0 {
            real::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK as usize);
        }
    }
    // The socket of an association has the values of the socket that it comes from.
    let options = *lock(&sock.options);
    for (name, size) in
        [(libc::SO_RCVBUF, options.receive_buffer), (libc::SO_SNDBUF, options.send_buffer)]
    {
        if let Some(size) = size {
            let length = size_of::<c_int>() as libc::socklen_t;
            // SAFETY: the value is an int that lives during the call.
            unsafe {
                let value = (&raw const size).cast();
                real::setsockopt(fd, libc::SOL_SOCKET, name, value, length);
            }
        }
    }
    if !socket::insert(fd, Arc::new(sock)) {
        return Err(libc::EMFILE);
    }
    Ok(program.into_raw_fd())
}

/// Refuses calls that need the engine on sockets that belong to the parent's engine.
pub(crate) fn local(sock: &Sock) -> Errno<()> {
    if sock.is_local() {
        return Ok(());
    }
    report::missed("bind, listen or connect on a socket from before fork");
    Err(libc::EOPNOTSUPP)
}

/// EADDRINUSE for a socket that is about to listen if another one has its address and port.
pub(crate) fn may_listen(sock: &Sock) -> Errno<()> {
    let (addresses, port) = {
        let names = lock(&sock.names);
        (names.addresses.clone(), names.port)
    };
    if addresses.is_empty() {
        socket::check_free(sock, Ipv4Addr::UNSPECIFIED.into(), port)?;
    }
    addresses.into_iter().try_for_each(|ip| socket::check_free(sock, ip, port))?;
    claims::renew(sock, &mut lock(&sock.names), Use::Listening)
}

/// Opens an endpoint. The engine frees the UDP port of a listening socket a moment after the
/// program has closed it; the kernel would do so at once.
// A thread of the program waits, not one of the runtime.
#[allow(clippy::disallowed_methods)]
pub(crate) fn opened(
    family: c_int,
    names: &Names,
    listens: bool,
    options: &Options,
) -> Errno<Endpoint> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let engine = engine()?;
    loop {
        match engine.endpoint(family, names, listens, options) {
            Err(libc::EADDRINUSE)
                if lock(&LISTENER_CLOSED).is_some_and(|at| at.elapsed() < PATIENCE) =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}

/// When the program has last closed a listening socket.
pub(crate) static LISTENER_CLOSED: Mutex<Option<Instant>> = Mutex::new(None);

/// The addresses of a peer, checked.
pub(crate) fn peers_of(sock: &Sock, peers: &[SocketAddr]) -> Errno<Vec<SocketAddr>> {
    let port = peers[0].port();
    if peers.iter().any(|peer| peer.port() != port || !is_unicast(peer.ip())) {
        return Err(libc::EINVAL);
    }
    if !peers.iter().all(|peer| fits_family(sock, peer.ip())) {
        return Err(libc::EINVAL);
    }
    // No socket has this port.
    if port == 0 { Err(libc::ECONNREFUSED) } else { Ok(peers.to_vec()) }
}

/// Whether a socket can have or reach an address of this family.
pub(crate) fn fits_family(sock: &Sock, ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => !lock(&sock.options).only_v6,
        IpAddr::V6(_) => sock.family == libc::AF_INET6,
    }
}

/// Whether an address is one of a host.
pub(crate) fn is_unicast(ip: IpAddr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && ip != IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// SO_SNDTIMEO, if it is set.
pub(crate) fn send_timeout(fd: c_int) -> Option<Duration> {
    // SAFETY: all-zero bytes are a valid `timeval`, which lives during the call.
    let time = unsafe {
        let mut time: libc::timeval = std::mem::zeroed();
        let mut length = size_of::<libc::timeval>() as libc::socklen_t;
        let value = (&raw mut time).cast();
        real::getsockopt(fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, value, &raw mut length);
        time
    };
    let limit = Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_micros(time.tv_usec.unsigned_abs());
    (!limit.is_zero()).then_some(limit)
}
