//! Calls on SCTP sockets other than those that move data or options.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libc::{iovec, msghdr};
use polypath::Endpoint;

use crate::bytes::Reader;
use crate::claims::{self, Use};
use crate::end::pair;
use crate::engine::{self, engine};
use crate::errno::{self, Errno};
use crate::frame::{HEADER, Header};
use crate::inbox::{self, Inbox};
use crate::link::{Link, Phase, lock};
use crate::open::{
    LISTENER_CLOSED, fits_family, is_unicast, local, may_listen, opened, peers_of, publish,
    send_timeout,
};
use crate::socket::{self, Names, Sock, is_nonblocking};
use crate::{address, direct, interfaces, many, memory, private, real};

/// Opens a socket.
pub(crate) fn open(family: c_int, kind: c_int) -> Errno<c_int> {
    engine()?;
    let (program, end) = pair()?;
    let (style, link) = (kind & 0xf, Arc::new(Link::new(0, family)));
    let sock = Sock {
        many: (style == libc::SOCK_SEQPACKET).then(Arc::default),
        engine_end: Mutex::new(Some(Arc::new(end))),
        ..Sock::new(family, style, link, std::process::id())
    };
    publish(program, sock, kind)
}

pub(crate) fn bind(sock: &Sock, to: SocketAddr) -> Errno<()> {
    local(sock)?;
    // Without a lock, for it takes those of the other sockets.
    let taken = socket::check_free(sock, to.ip(), to.port());
    let mut names = lock(&sock.names);
    if names.bound || sock.link.phase() != Phase::Idle {
        return Err(libc::EINVAL);
    }
    let ip = usable(sock, to.ip())?;
    taken?;
    if to.port() != 0 && to.port() < first_free_port() && !may_use_low_ports() {
        return Err(libc::EACCES);
    }
    let addresses: Vec<IpAddr> = ip.into_iter().collect();
    claims::claim(sock, &mut names, &addresses, to.port(), Use::Bound)?;
    names.addresses = addresses;
    names.bound = true;
    Ok(())
}

/// The address, or `None` for the wildcard address; an error if the host does not have it.
fn usable(sock: &Sock, ip: IpAddr) -> Errno<Option<IpAddr>> {
    if !fits_family(sock, ip) {
        return Err(libc::EINVAL);
    }
    if ip.is_unspecified() {
        return Ok(None);
    }
    if !is_unicast(ip) {
        return Err(libc::EADDRNOTAVAIL);
    }
    UdpSocket::bind((ip, 0)).map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))?;
    Ok(Some(ip))
}

/// The first port that needs no privilege.
fn first_free_port() -> u16 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024)
}

/// Whether the process may bind lower ports. CAP_NET_BIND_SERVICE is not looked up: a process
/// without it is refused as a process that is not root.
fn may_use_low_ports() -> bool {
    // SAFETY: the call takes no argument.
    unsafe { libc::geteuid() == 0 }
}

/// `sctp_bindx`.
pub(crate) fn bindx(sock: &Sock, addresses: &[SocketAddr], add: bool) -> Errno<()> {
    local(sock)?;
    let taken = socket::check_free(sock, addresses[0].ip(), addresses[0].port());
    let mut names = lock(&sock.names);
    if !add && names.addresses.len() <= addresses.len() {
        // The last address stays.
        return Err(libc::EBUSY);
    }
    let port = match addresses[0].port() {
        _ if names.bound => names.port,
        port => port,
    };
    // Port 0 is the socket's.
    if !addresses.iter().all(|one| one.port() == 0 || one.port() == port) {
        return Err(libc::EINVAL);
    }
    for one in addresses {
        // Also if the wildcard address has all.
        let known = names.addresses.contains(&one.ip()) || names.addresses.is_empty();
        if names.bound && known == add {
            return Err(libc::EINVAL);
        }
    }
    if add && !names.bound {
        taken?;
    }
    let usage = Use::of(sock, &names);
    if add {
        let wildcard = addresses.iter().any(|one| one.ip().is_unspecified());
        let new = addresses.iter().map(SocketAddr::ip);
        let all: Vec<IpAddr> = names.addresses.iter().copied().chain(new).collect();
        let all = if wildcard { &[] } else { &all[..] };
        claims::claim(sock, &mut names, all, port, usage)?;
    }
    let changed = change_addresses(sock, &mut names, addresses, add);
    names.bound |= add && changed.is_ok();
    if !add || changed.is_err() {
        claims::renew(sock, &mut names, usage)?;
    }
    changed
}

/// Adds or removes addresses.
fn change_addresses(
    sock: &Sock,
    names: &mut Names,
    addresses: &[SocketAddr],
    add: bool,
) -> Errno<()> {
    for one in addresses {
        let ip = usable(sock, one.ip())?;
        match (ip, &names.endpoint) {
            (Some(ip), None) if add => {
                if !names.addresses.contains(&ip) {
                    names.addresses.push(ip);
                }
            }
            (None, None) if add => names.addresses.clear(),
            (Some(ip), Some(endpoint)) if add => {
                private::inside(|| endpoint.add_local_address(ip))
                    .map_err(|_| libc::EADDRNOTAVAIL)?;
                names.addresses.push(ip);
            }
            (Some(ip), endpoint) if !add => {
                if let Some(endpoint) = endpoint {
                    endpoint.remove_local_address(ip);
                }
                names.addresses.retain(|kept| *kept != ip);
            }
            _ => return Err(libc::EINVAL),
        }
    }
    Ok(())
}

/// The endpoint of a socket, opened now if it has none.
fn endpoint(sock: &Sock, listens: bool) -> Errno<Endpoint> {
    let mut names = lock(&sock.names);
    if let Some(endpoint) = &names.endpoint {
        return Ok(endpoint.clone());
    }
    claims::open(sock, &mut names, listens)?;
    let options = *lock(&sock.options);
    let endpoint = opened(sock.family, &names, listens, &options)?;
    names.port = endpoint.port();
    names.bound = true;
    names.endpoint = Some(endpoint.clone());
    Ok(endpoint)
}

pub(crate) fn listen(fd: c_int, sock: &Sock, backlog: c_int) -> Errno<()> {
    if let Some(many) = &sock.many {
        return many::listen(sock, many, backlog);
    }
    local(sock)?;
    match sock.link.phase() {
        // There is nothing to end.
        Phase::Idle if backlog == 0 => return Err(libc::EINVAL),
        Phase::Idle => {}
        Phase::Listening if backlog == 0 && sock.link.is_refusing() => return Err(libc::EINVAL),
        Phase::Listening => {
            let endpoint = lock(&sock.names).endpoint.clone();
            let mut limit = lock(&sock.link.backlog);
            *limit = backlog as u32;
            sock.link.set_refusing(backlog == 0);
            if let Some(endpoint) = endpoint {
                endpoint.set_listening(backlog != 0);
            }
            sock.link.taken.notify_one();
            return Ok(());
        }
        _ => return Err(libc::EINVAL),
    }
    may_listen(sock)?;
    // A negative number is a large one, as in Linux.
    *lock(&sock.link.backlog) = backlog as u32;
    let endpoint = endpoint(sock, true)?;
    let end = lock(&sock.engine_end).clone().ok_or(libc::EINVAL)?;
    engine()?.listen(sock.link.clone(), end, endpoint)?;
    // As in Linux, a listening socket is never writable.
    direct::fill(fd);
    sock.link.set_phase(Phase::Listening);
    Ok(())
}

/// Connects to a peer that has these addresses, and waits unless `background`.
pub(crate) fn connect_to(
    fd: c_int,
    sock: &Sock,
    peers: &[SocketAddr],
    background: bool,
) -> Errno<()> {
    if let Some(many) = &sock.many {
        return many::connect(fd, sock, many, peers, background)?.1;
    }
    local(sock)?;
    let link = &sock.link;
    match link.phase() {
        Phase::Idle => {}
        Phase::Connecting => return Err(libc::EALREADY),
        Phase::Connected => return Err(libc::EISCONN),
        Phase::Listening | Phase::Closed => return Err(libc::EISCONN),
    }
    let peers = peers_of(sock, peers)?;
    let endpoint = endpoint(sock, false)?;
    let end = lock(&sock.engine_end).clone().ok_or(libc::EINVAL)?;
    if !link.change_phase(Phase::Idle, Phase::Connecting) {
        return Err(libc::EALREADY);
    }
    *lock(&link.peer) = Some(peers[0]);
    link.take_error();
    link.shut.store(false, Ordering::Release);
    direct::fill(fd);
    if let Err(error) = engine()?.connect(link.clone(), end, endpoint, &peers, background) {
        link.set_phase(Phase::Idle);
        return Err(error);
    }
    if background { Err(libc::EINPROGRESS) } else { wait_connected(fd, sock) }
}

/// Waits until a connection in progress succeeds or fails, or until SO_SNDTIMEO expires.
pub(crate) fn wait_connected(fd: c_int, sock: &Sock) -> Errno<()> {
    let limit = send_timeout(fd);
    let start = Instant::now();
    loop {
        match sock.link.phase() {
            Phase::Connecting => {}
            Phase::Connected => {
                // The engine takes the fillers.
                let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
                // SAFETY: `poll` is one valid entry.
                unsafe { libc::poll(&raw mut poll, 1, 1000) };
                return Ok(());
            }
            phase => match sock.link.take_error() {
                // Established, and shut down by the peer meanwhile.
                0 if phase == Phase::Closed => return Ok(()),
                0 => return Err(libc::ECONNREFUSED),
                error => return Err(error),
            },
        }
        let mut slice = Duration::from_millis(200);
        if let Some(limit) = limit {
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(libc::EINPROGRESS);
            }
            slice = slice.min(left);
        }
        let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
        let slice = slice.as_millis().max(1) as c_int;
        // SAFETY: `poll` is one valid entry. The limit covers a failure that leaves fillers.
        errno::check(unsafe { libc::poll(&raw mut poll, 1, slice) } as isize)?;
    }
}

/// `sctp_connectx` of today's libsctp: `struct sctp_getaddrs_old`. The value is the id of the new
/// association, also if it is in progress.
pub(crate) fn connectx3(fd: c_int, sock: &Sock, request: Reader<'_>) -> Errno<(i32, Errno<()>)> {
    let (size, at) = (request.i32(4), request.0.get(8..16).ok_or(libc::EINVAL)?);
    let at = usize::from_ne_bytes(at.try_into().map_err(|_| libc::EINVAL)?) as *const u8;
    let size = usize::try_from(size).map_err(|_| libc::EINVAL)?;
    if size == 0 {
        return Err(libc::EINVAL);
    }
    memory::probe(at, size)?;
    // SAFETY: the program passes an array of addresses of this size.
    let peers = address::parse_packed(unsafe { std::slice::from_raw_parts(at, size) })?;
    let background = is_nonblocking(fd, 0);
    match &sock.many {
        Some(many) => many::connect(fd, sock, many, &peers, background),
        None => Ok((sock.link.id, connect_to(fd, sock, &peers, background))),
    }
}

/// Whether a socket accepts associations.
pub(crate) fn accepts(sock: &Sock) -> bool {
    sock.many.is_none() && sock.link.phase() == Phase::Listening && !sock.link.is_refusing()
}

/// Takes the next association of a listening socket, and its peer's address.
pub(crate) fn accept(fd: c_int, sock: &Sock, flags: c_int) -> Errno<(c_int, Vec<u8>)> {
    if sock.kind == libc::SOCK_SEQPACKET {
        return Err(libc::EOPNOTSUPP);
    }
    if !accepts(sock) {
        return Err(libc::EINVAL);
    }
    if flags & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) != 0 {
        return Err(libc::EINVAL);
    }
    // The association waits for the next call if there is no descriptor for it.
    // SAFETY: the calls take no pointer, and the new descriptor is not used otherwise.
    unsafe {
        let free = errno::check(real::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) as isize);
        real::close(free.map_err(|_| libc::EMFILE)? as c_int);
    }
    let mut packet = [0u8; HEADER + 28];
    let mut control = [0u64; 4];
    let mut part = iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: packet.len() };
    // SAFETY: all-zero bytes are a valid `msghdr`; the buffers are valid during the call, and the
    // kernel has written the control message that is read.
    let (size, program) = unsafe {
        let mut message: msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        let size = match errno::check(real::recvmsg(fd, &raw mut message, flags)) {
            Err(libc::EAGAIN) if !is_nonblocking(fd, 0) => Err(errno::WAIT),
            other => other,
        }?;
        let attached = libc::CMSG_FIRSTHDR(&raw const message);
        if attached.is_null() {
            return Err(if message.msg_flags & libc::MSG_CTRUNC == 0 {
                libc::EINVAL
            } else {
                libc::EMFILE
            });
        }
        let number = libc::CMSG_DATA(attached).cast::<c_int>().read_unaligned();
        (size, OwnedFd::from_raw_fd(number))
    };
    sock.link.taken.notify_one();
    let header = Header::read(&packet[..size]).ok_or(libc::EINVAL)?;
    let peer = address::parse(&packet[HEADER..size]).ok();
    let link = {
        let mut arrived = lock(&engine::ARRIVED);
        let at = arrived.iter().position(|one| one.link.id == header.association);
        at.map(|at| arrived.swap_remove(at).link)
    };
    // After fork, the parent's engine has the association, and this process only the socket.
    let process = if link.is_some() { std::process::id() } else { 0 };
    let link = link.unwrap_or_else(|| {
        let link = sock.link.member();
        link.set_inbox(Arc::new(Inbox::new_shared()));
        link.set_phase(Phase::Connected);
        *lock(&link.peer) = peer;
        Arc::new(link)
    });
    let accepted = Sock::of_association(sock, link, process);
    let new = publish(program, accepted, flags)?;
    Ok((new, peer.map(|peer| address::format(peer, sock.link.name_family())).unwrap_or_default()))
}

/// shutdown(2). SCTP has no half-closed state: SHUT_WR begins the graceful shutdown (RFC 6458
/// 4.1.7).
pub(crate) fn shutdown(fd: c_int, sock: &Sock, how: c_int) -> Errno<()> {
    match (sock.link.phase(), how) {
        (_, ..0 | 3..) => Err(libc::EINVAL),
        (Phase::Connected | Phase::Closed, libc::SHUT_RD) => {
            sock.link.unread_end.store(true, Ordering::Release);
            Ok(())
        }
        (Phase::Connected | Phase::Closed, libc::SHUT_WR | libc::SHUT_RDWR) => {
            sock.link.unread_end.fetch_or(how == libc::SHUT_RDWR, Ordering::AcqRel);
            // The next message takes the way of the end, which reports it.
            sock.link.ends.store(true, Ordering::Release);
            let first = !sock.link.peer_shut.load(Ordering::Acquire);
            sock.link.shut.fetch_or(first, Ordering::AcqRel);
            // SAFETY: the call takes no pointer.
            errno::check(unsafe { real::shutdown(fd, libc::SHUT_WR) } as isize).map(drop)
        }
        _ => Err(libc::ENOTCONN),
    }
}

/// Closes a descriptor of an SCTP socket; `None` if it is none.
// A thread of the program waits, not one of the runtime.
#[allow(clippy::disallowed_methods)]
pub(crate) fn close(fd: c_int) -> Option<c_int> {
    let (sock, last) = socket::remove(fd)?;
    let (on, seconds) = lock(&sock.options).linger;
    leave(&sock, last);
    if last {
        sock.link.inbox().close();
    }
    // SAFETY: the caller closes this descriptor, which is valid as long as it is in the table.
    let closed = unsafe { real::close(fd) };
    left(&sock);
    if last && on && seconds > 0 && sock.is_local() {
        let start = Instant::now();
        let limit = Duration::from_secs(seconds.unsigned_abs().into());
        let is_open = || match &sock.many {
            Some(many) => !many.all().is_empty(),
            None => sock.link.phase() == Phase::Connected,
        };
        while is_open() && start.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    socket::release(sock);
    Some(closed)
}

/// A descriptor of the socket has been closed.
pub(crate) fn left(sock: &Sock) {
    sock.link.left.notify_one();
    sock.link.inbox().room.notify_waiters();
    if sock.link.phase() == Phase::Listening {
        *lock(&LISTENER_CLOSED) = Some(Instant::now());
    }
}

/// Prepares the end of a socket whose descriptor is about to be closed: with SO_LINGER of 0
/// seconds, its association is aborted.
pub(crate) fn leave(sock: &Sock, last: bool) {
    if last && lock(&sock.options).linger == (true, 0) {
        sock.link.abort.store(true, Ordering::Release);
    }
}

/// Size of the next message, or 0 (SIOCINQ).
pub(crate) fn next_size(fd: c_int, sock: &Sock) -> Errno<c_int> {
    if sock.many.is_none() && sock.link.phase() == Phase::Listening {
        return Err(libc::ENOTCONN);
    }
    if let Some(size) = sock.link.inbox().next_size() {
        return Ok(size as c_int);
    }
    if let Some(rest) = lock(&sock.reading).as_ref() {
        return Ok((rest.bytes.len() - rest.read) as c_int);
    }
    Ok(inbox::next_in_pair(fd).map_or(0, |(_, size)| size as c_int))
}

/// Adds a duplicate to the table.
pub(crate) fn duplicated(sock: Option<Arc<Sock>>, new: c_int) {
    if let Some(sock) = sock.filter(|_| new >= 0) {
        socket::insert(new, sock);
    }
}

/// The address that getsockname returns.
pub(crate) fn local_name(sock: &Sock) -> Vec<u8> {
    let port = lock(&sock.names).port;
    let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    let first = locals(sock, 0).into_iter().next().unwrap_or(any);
    match first.ip() {
        // Not mapped: `::`.
        ip if ip.is_unspecified() && sock.family == libc::AF_INET6 => {
            address::format((Ipv6Addr::UNSPECIFIED, port).into(), sock.family)
        }
        _ => address::format(first, sock.link.name_family()),
    }
}

/// The local addresses, with the SCTP port.
pub(crate) fn locals(sock: &Sock, id: i32) -> Vec<SocketAddr> {
    let link = sock.member(id).ok().filter(|_| sock.is_local());
    let known = link.and_then(|link| link.association());
    let mut found: Vec<IpAddr> = known
        .map(|association| association.paths().iter().map(|path| path.view.local).collect())
        .unwrap_or_default();
    let names = lock(&sock.names);
    found.extend(&names.addresses);
    let mut addresses = Vec::new();
    for ip in found.into_iter().filter(|ip| !ip.is_unspecified()) {
        let address = SocketAddr::new(ip, names.port);
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() && names.bound {
        addresses.push(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), names.port));
    }
    addresses
}

/// The local addresses as `sctp_getladdrs` lists them: those of the association with this id, or
/// without one those of the socket, which are all of the host for the wildcard address.
pub(crate) fn listed(sock: &Sock, id: i32) -> Errno<Vec<SocketAddr>> {
    let link = sock.member(id).ok().filter(|_| id != 0 && sock.is_local());
    let association = link.and_then(|link| link.association());
    let (addresses, port, bound) = {
        let names = lock(&sock.names);
        (names.addresses.clone(), names.port, names.bound)
    };
    let found = match association {
        Some(association) => association.local_addresses(),
        None if addresses.is_empty() && bound => {
            let only_v6 = lock(&sock.options).only_v6;
            let fits = |ip: &IpAddr| !(only_v6 && ip.is_ipv4());
            interfaces::addresses(sock.family)?.into_iter().filter(fits).collect()
        }
        None => addresses,
    };
    let found = found.into_iter().filter(|ip| !ip.is_unspecified());
    Ok(found.map(|ip| SocketAddr::new(ip, port)).collect())
}

/// The peer's addresses: `sctp_getpaddrs`.
pub(crate) fn peers(sock: &Sock, id: i32) -> Errno<Vec<SocketAddr>> {
    let association = sock.association(id)?;
    let port = association.peer_port();
    let mut found = Vec::new();
    for path in association.paths() {
        let peer = SocketAddr::new(path.view.remote, port);
        if !found.contains(&peer) {
            found.push(peer);
        }
    }
    Ok(found)
}

/// The address that getpeername returns.
pub(crate) fn peer_name(sock: &Sock) -> Errno<Vec<u8>> {
    let peer = *lock(&sock.link.peer);
    match (sock.link.phase(), peer) {
        (Phase::Connected | Phase::Closed, Some(peer)) => {
            Ok(address::format(peer, sock.link.name_family()))
        }
        _ => Err(libc::ENOTCONN),
    }
}
