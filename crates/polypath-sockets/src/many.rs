//! One-to-many sockets (RFC 6458 3): their associations, and calls on them.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use polypath::Endpoint;

use crate::end::pair;
use crate::engine::engine;
use crate::errno::Errno;
use crate::frame::{HEADER, Header, Kind, PAYLOAD};
use crate::inbox::Inbox;
use crate::link::{Link, Many, Phase, Route, lock};
use crate::open::{local, may_listen, opened, peers_of, publish, send_timeout};
use crate::request::Request;
use crate::socket::{Pending, Sock};
use crate::values::Options;
use crate::{abi, claims, notify, real, report};

/// The endpoint of a socket, opened and served now if it has none.
///
/// A socket that the program has bound takes the UDP port of listening sockets even before it
/// listens, since its peers may connect to it later; if that is in use, any free one.
fn endpoint(sock: &Sock, many: &Arc<Many>, listens: bool) -> Errno<Endpoint> {
    let mut names = lock(&sock.names);
    if let Some(endpoint) = &names.endpoint {
        return Ok(endpoint.clone());
    }
    let options = *lock(&sock.options);
    claims::open(sock, &mut names, listens)?;
    let open = |first| opened(sock.family, &names, first, &options);
    let opened = match open(listens || names.bound) {
        Err(libc::EADDRINUSE) if !listens => open(false),
        other => other,
    }?;
    opened.set_listening(listens);
    names.port = opened.port();
    names.bound = true;
    let end = lock(&sock.engine_end).clone().ok_or(libc::EINVAL)?;
    engine()?.serve(sock.link.clone(), many.clone(), end, opened.clone(), options)?;
    names.endpoint = Some(opened.clone());
    Ok(opened)
}

/// listen(2): associations of peers are accepted on their own while the backlog is not 0.
pub(crate) fn listen(sock: &Sock, many: &Arc<Many>, backlog: c_int) -> Errno<()> {
    local(sock)?;
    let listens = backlog != 0;
    if !listens && sock.link.phase() != Phase::Listening {
        return Err(libc::EINVAL);
    }
    if listens && sock.link.phase() != Phase::Listening {
        may_listen(sock)?;
    }
    endpoint(sock, many, listens)?.set_listening(listens);
    sock.link.set_phase(if listens { Phase::Listening } else { Phase::Idle });
    Ok(())
}

/// Starts an association with a peer that has these addresses.
///
/// One with the same peer that the program has just aborted ends first.
// A thread of the program waits, not one of the runtime.
#[allow(clippy::disallowed_methods)]
pub(crate) fn open(
    sock: &Sock,
    many: &Arc<Many>,
    peers: &[SocketAddr],
    options: &Options,
) -> Errno<Arc<Link>> {
    local(sock)?;
    let peers = peers_of(sock, peers)?;
    let endpoint = endpoint(sock, many, false)?;
    const PATIENCE: Duration = Duration::from_secs(1);
    let start = Instant::now();
    loop {
        match engine()?.open(&sock.link, many, &endpoint, &peers, options) {
            Err(libc::EADDRNOTAVAIL) if many.has_aborted() && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

/// connect(2) and `sctp_connectx`; the association's id, and the result.
// A thread of the program waits, not one of the runtime.
#[allow(clippy::disallowed_methods)]
pub(crate) fn connect(
    fd: c_int,
    sock: &Sock,
    many: &Arc<Many>,
    peers: &[SocketAddr],
    background: bool,
) -> Errno<(i32, Errno<()>)> {
    if let Some(known) = peers.iter().find_map(|peer| many.find(*peer)) {
        return Err(match known.phase() {
            Phase::Connecting => libc::EALREADY,
            _ => libc::EISCONN,
        });
    }
    let options = *lock(&sock.options);
    let link = open(sock, many, peers, &options)?;
    // Even if the peer has answered already.
    if background {
        return Ok((link.id, Err(libc::EINPROGRESS)));
    }
    let limit = send_timeout(fd);
    let start = Instant::now();
    let result = loop {
        match link.phase() {
            Phase::Connecting if limit.is_some_and(|limit| start.elapsed() >= limit) => {
                break Err(libc::EINPROGRESS);
            }
            Phase::Connecting => std::thread::sleep(Duration::from_micros(200)),
            Phase::Connected => break Ok(()),
            _ => {
                let error = link.take_error();
                break if error == 0 { Ok(()) } else { Err(error) };
            }
        }
    };
    Ok((link.id, result))
}

/// The association that a message is for: that of the address, that with the id, or a new one.
/// `peers` has the destination first, then further addresses of the same peer.
pub(crate) fn destination(
    sock: &Sock,
    many: &Arc<Many>,
    peers: &[SocketAddr],
    request: &Request,
) -> Errno<Arc<Link>> {
    let Some(peer) = peers.first() else {
        return many.open(request.asked.association).ok_or(libc::EPIPE);
    };
    if let Some(link) = many.find(*peer) {
        return Ok(link);
    }
    let mut options = *lock(&sock.options);
    options.change_init(request.init);
    let header = request.header(&sock.link);
    // Nothing to end, or no such stream.
    let ends = header.flags & (abi::SCTP_EOF | abi::SCTP_ABORT) != 0;
    if ends || header.stream >= options.init[0] {
        return Err(libc::EINVAL);
    }
    open(sock, many, peers, &options)
}

/// A message for an association that has just ended: it is reported as lost, after the end.
pub(crate) fn keep_late(
    many: &Many,
    link: &Arc<Link>,
    header: &Header,
    payload: Bytes,
) -> Errno<()> {
    if let Err(payload) = link.add_late(header, payload) {
        // The end has been reported, and the association has no route any more.
        let (link, header, route) = (link.clone(), *header, lock(&many.route).clone());
        drop(engine()?.runtime.spawn(async move {
            link.set_route(route);
            notify::late(&link, &header, payload).await;
        }));
    }
    Ok(())
}

/// The header of a message that a child of fork sends: the engine of the parent finds the
/// association, or opens it. There is no error if it has ended.
pub(crate) fn forwarded(
    sock: &Sock,
    many: &Many,
    peers: &[SocketAddr],
    request: &Request,
) -> Errno<Header> {
    if !many.is_served {
        local(sock)?;
    }
    let association = request.asked.association;
    let peer = peers.first().copied();
    if peer.is_none() && association == 0 {
        return Err(libc::EPIPE);
    }
    let peer = peer.map(|peer| peers_of(sock, &[peer])).transpose()?.map(|peers| peers[0]);
    Ok(Header { association, peer, ..request.header(&sock.link) })
}

/// `sctp_peeloff`: moves an association to a socket of its own.
pub(crate) fn peel_off(fd: c_int, sock: &Sock, id: i32, flags: c_int) -> Errno<c_int> {
    let Some(many) = &sock.many else { return Err(libc::EINVAL) };
    if !sock.is_local() {
        report::missed("sctp_peeloff on a socket from before fork");
        return Err(libc::EOPNOTSUPP);
    }
    let link = many.open(id).filter(|link| link.phase() == Phase::Connected);
    let link = link.ok_or(libc::EINVAL)?;
    let old = lock(&many.route).clone().ok_or(libc::EINVAL)?;
    let (program, end) = pair()?;
    let inbox = Arc::<Inbox>::default();
    let new = engine()?.route(Arc::new(end), inbox.clone())?;
    if !many.remove(id) {
        return Err(libc::EINVAL);
    }
    let reroute = || {
        link.set_inbox(inbox.clone());
        link.set_route(Some(new.clone()));
    };
    if old.inbox.give(fd, id, (&inbox, new.fd.get_ref()), reroute).is_none() {
        inbox.share(None);
        // The program's other threads do not use the old pair meanwhile, nor does the engine.
        let mut pending = lock(&sock.reading);
        old.inbox.hold(|| {
            divide(fd, id, &mut pending, &old, &new);
            reroute();
        });
    }
    let peeled = Sock { peeled: true, ..Sock::of_association(sock, link.clone(), sock.process) };
    engine()?.peeled(link, new);
    publish(program, peeled, flags)
}

/// Moves the packets of an association from one pair to another.
fn divide(fd: c_int, id: i32, pending: &mut Option<Pending>, old: &Route, new: &Route) {
    let mut packets = Vec::new();
    while let Some(packet) = take_packet(fd) {
        packets.push(packet);
    }
    for (at, packet) in packets.iter().enumerate() {
        let Some(header) = Header::read(packet).filter(|it| it.kind != Kind::Ready) else {
            continue;
        };
        let mut payload = &packet[HEADER..];
        let moves = header.association == id;
        if moves
            && at == 0
            && let Some(read) = pending.take()
        {
            payload = &payload[payload.len() - (read.bytes.len() - read.read)..];
        }
        // There is room: the packets come from there, and the new pair is empty.
        let to = if moves { new } else { old };
        let sent = to.fd.get_ref().send(&header, payload, None);
        if moves {
            old.inbox.count_read(&header);
            if sent.is_ok() {
                new.inbox.count_unread(&header);
            }
        }
    }
}

/// Takes a packet from the program's end of a pair.
fn take_packet(fd: c_int) -> Option<Vec<u8>> {
    let mut packet = vec![0; HEADER + PAYLOAD];
    // SAFETY: the buffer is valid for its length.
    let size =
        unsafe { real::recv(fd, packet.as_mut_ptr().cast(), packet.len(), libc::MSG_DONTWAIT) };
    packet.truncate(usize::try_from(size).ok().filter(|size| *size >= HEADER)?);
    packet.shrink_to_fit();
    Some(packet)
}
