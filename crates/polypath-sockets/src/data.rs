//! Sending and receiving.

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use libc::{cmsghdr, iovec, msghdr};

use crate::bytes::Writer;
use crate::errno::{self, Errno};
use crate::frame::{HEADER, Header, Kind, PAYLOAD};
use crate::inbox::{Found, Next};
use crate::link::{Link, Phase, lock};
use crate::request::Request;
use crate::socket::{Pending, Sock, is_nonblocking};
use crate::{abi, address, calls, direct, engine, inbox, many, memory, options, real};

/// Parts of a message that one call may have.
const MOST_PARTS: usize = 1023;

/// Sends a message: the parts, the control messages and the address of a `msghdr`.
///
/// # Safety
///
/// The message is valid as sendmsg(2) requires.
pub(crate) unsafe fn send(
    fd: c_int,
    sock: &Arc<Sock>,
    message: &msghdr,
    flags: c_int,
) -> Errno<usize> {
    // SAFETY: by the contract of this function.
    let (parts, to, request) = unsafe {
        let to = match message.msg_name.is_null() || message.msg_namelen == 0 {
            true => None,
            false => Some(address::read(message.msg_name.cast(), message.msg_namelen)?),
        };
        (parts(message)?, to, Request::read(sock, message)?)
    };
    let asked = request.asked.flags;
    let size: usize = parts.iter().map(|part| part.iov_len).sum();
    if size > PAYLOAD && size > largest(fd, sock) {
        return Err(libc::EMSGSIZE);
    }
    let ends = asked & (abi::SCTP_EOF | abi::SCTP_ABORT) != 0;
    if (asked & abi::SCTP_EOF != 0 && size > 0) || (!ends && size == 0) {
        return Err(libc::EINVAL);
    }
    let on = (fd, sock);
    let mut peers: Vec<SocketAddr> = to.into_iter().collect();
    if let Some(to) = to {
        peers.extend(request.peers.iter().map(|ip| SocketAddr::new(*ip, to.port())));
    }
    if let Some(many) = &sock.many {
        if asked & abi::SCTP_SENDALL != 0 && to.is_none() {
            for link in many.all() {
                send_on(on, &link, request.header(&link), parts, flags)?;
            }
        } else {
            let (link, header) = if sock.is_local() {
                let link = many::destination(sock, many, &peers, &request)?;
                let header = request.header(&link);
                (link, header)
            } else {
                (sock.link.clone(), many::forwarded(sock, many, &peers, &request)?)
            };
            send_on(on, &link, header, parts, flags)?;
            link.aborted.fetch_or(asked & abi::SCTP_ABORT != 0, Ordering::AcqRel);
        }
        // Linux reports none of the bytes that explain an ABORT.
        return Ok(if ends { 0 } else { size });
    }
    if ends {
        // As in Linux: for one-to-many sockets only.
        return Err(libc::EINVAL);
    }
    if !sock.peeled && peers.first().is_some_and(|peer| !is_peer(&sock.link, *peer)) {
        return Err(libc::EADDRNOTAVAIL);
    }
    ready(fd, sock, &peers, flags)?;
    let error = sock.link.take_error();
    if error != 0 {
        return Err(error);
    }
    send_on(on, &sock.link, request.header(&sock.link), parts, flags)?;
    Ok(size)
}

/// Maximum size of a message: SO_SNDBUF as in Linux, but less in a child of fork, whose messages
/// pass through the pair.
fn largest(fd: c_int, sock: &Sock) -> usize {
    if sock.is_local() { options::send_buffer(fd, sock) } else { PAYLOAD }
}

/// Whether a one-to-one socket can send to an address: it is its peer's, or will be.
fn is_peer(link: &Link, to: SocketAddr) -> bool {
    if link.phase() != Phase::Connected || *lock(&link.peer) == Some(to) {
        return true;
    }
    link.association().is_some_and(|association| {
        association.peer_port() == to.port()
            && association.paths().iter().any(|path| path.view.remote == to.ip())
    })
}

/// Sends a message on an association: directly to the core if it is in this process, and otherwise
/// through the pair, which also reports the end of the association.
fn send_on(
    (fd, sock): (c_int, &Arc<Sock>),
    link: &Arc<Link>,
    header: Header,
    parts: &[iovec],
    flags: c_int,
) -> Errno<()> {
    let streams = link.streams.load(Ordering::Acquire);
    let open = matches!(link.phase(), Phase::Connecting | Phase::Connected);
    if open && streams != 0 && u32::from(header.stream) >= streams {
        return Err(libc::EINVAL);
    }
    let ends = header.flags & (abi::SCTP_EOF | abi::SCTP_ABORT) != 0;
    if !ends
        && lock(&sock.options).no_fragments
        && let Some(association) = link.association()
    {
        let most = association.paths().iter().map(|path| path.view.max_chunk).min().unwrap_or(0);
        let size = parts.iter().map(|part| part.iov_len).sum::<usize>();
        if size > link.largest_payload(most) as usize {
            return Err(libc::EMSGSIZE);
        }
    }
    if sock.is_local() {
        // SAFETY: `parts` has checked them, and the program does not write them during the call.
        let payload = || unsafe { direct::gather(parts) };
        if header.flags & abi::SCTP_ABORT != 0 {
            // At once, even if messages before it wait.
            if let Some(association) = link.association() {
                association.abort(payload()?);
            }
            return Ok(());
        }
        // What follows the end takes the same way as the end.
        link.ends.fetch_or(ends, Ordering::AcqRel);
        if !link.ends.load(Ordering::Acquire) {
            let message = engine::message(&header, payload()?);
            if direct::send(fd, sock, link, message, flags)?.is_some() {
                return Ok(());
            }
            if let Some(many) = &sock.many {
                return many::keep_late(many, link, &header, payload()?);
            }
        }
    }
    let kind = if ends { Kind::End } else { Kind::Data };
    match write(fd, &Header { kind, ..header }, parts, flags) {
        // The pair sends no signal.
        Err(libc::EPIPE) => Err(broken(flags)),
        result => result,
    }
}

/// Waits until the socket is connected, or returns the error of a socket that is not.
fn ready(fd: c_int, sock: &Sock, peers: &[SocketAddr], flags: c_int) -> Errno<()> {
    match sock.link.phase() {
        Phase::Connected | Phase::Closed => Ok(()),
        Phase::Connecting if is_nonblocking(fd, flags) => Err(libc::EAGAIN),
        Phase::Connecting => calls::wait_connected(fd, sock),
        // Linux connects a one-to-one socket to the destination of its first message.
        Phase::Idle if peers.is_empty() => Err(broken(flags)),
        Phase::Idle => calls::connect_to(fd, sock, peers, false),
        Phase::Listening => Err(broken(flags)),
    }
}

/// EPIPE, with its signal.
fn broken(flags: c_int) -> c_int {
    if flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: the call takes no pointer.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    libc::EPIPE
}

/// Sends a packet to the engine.
fn write(fd: c_int, header: &Header, parts: &[iovec], flags: c_int) -> Errno<()> {
    if parts.iter().map(|part| part.iov_len).sum::<usize>() > PAYLOAD {
        return Err(libc::EMSGSIZE);
    }
    let header = header.write();
    let first = iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: HEADER };
    let mut all = Vec::with_capacity(parts.len() + 1);
    all.push(first);
    all.extend_from_slice(parts);
    // SAFETY: all-zero bytes are a valid `msghdr`; the parts are valid during the call.
    let sent = unsafe {
        let mut message: msghdr = std::mem::zeroed();
        message.msg_iov = all.as_mut_ptr();
        message.msg_iovlen = all.len() as _;
        let known = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        real::sendmsg(fd, &raw const message, flags & known)
    };
    errno::check(sent).map(drop)
}

/// The parts of a message.
///
/// # Safety
///
/// The pointer and the number of parts are valid.
unsafe fn parts(message: &msghdr) -> Errno<&[iovec]> {
    if message.msg_iovlen > MOST_PARTS {
        return Err(libc::EMSGSIZE);
    }
    if message.msg_iovlen == 0 {
        return Ok(&[]);
    }
    memory::check(message.msg_iov, message.msg_iovlen * size_of::<iovec>())?;
    if !message.msg_iov.is_aligned() {
        return Err(libc::EFAULT);
    }
    // SAFETY: by the contract of this function.
    let parts = unsafe { std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen) };
    for part in parts {
        memory::check(part.iov_base, part.iov_len)?;
    }
    // The sum is the result of a call.
    let sum = parts.iter().try_fold(0isize, |sum, part| sum.checked_add_unsigned(part.iov_len));
    sum.map(|_| parts).ok_or(libc::EINVAL)
}

/// Receives a message, without waiting: [`errno::WAIT`] if there is none and the socket blocks.
///
/// # Safety
///
/// The message is valid as recvmsg(2) requires.
pub(crate) unsafe fn receive(
    fd: c_int,
    sock: &Sock,
    message: &mut msghdr,
    flags: c_int,
) -> Errno<usize> {
    match sock.link.phase() {
        Phase::Connected | Phase::Closed => {}
        _ if sock.many.is_some() => {}
        // Over the loopback interface Linux has connected before connect returns.
        Phase::Connecting if is_nonblocking(fd, flags) => return Err(libc::EAGAIN),
        _ => {
            let error = sock.link.take_error();
            return Err(if error == 0 { libc::ENOTCONN } else { error });
        }
    }
    // SAFETY: by the contract of this function.
    let parts = unsafe { parts(message) }?;
    for (at, size) in [
        (message.msg_name, message.msg_namelen as usize),
        (message.msg_control, message.msg_controllen),
    ] {
        memory::check(at, if at.is_null() { 0 } else { size })?;
    }
    let peek = flags & libc::MSG_PEEK != 0;
    let mut taken = take(fd, sock, parts, peek)?;
    let waits = flags & libc::MSG_DONTWAIT == 0 && !is_nonblocking(fd, flags);
    let alone = matches!(taken, Taken::Nothing) && sock.many.is_some() && waits && !has_peers(sock);
    if alone && let Some(many) = &sock.many {
        // The last association may have ended, with a notification, since nothing was found.
        many.wait_for_ends();
        taken = take(fd, sock, parts, peek)?;
    }
    match taken {
        Taken::Bytes { header, size, end } => {
            // SAFETY: by the contract of this function.
            unsafe { describe(fd, sock, message, &header, end) };
            Ok(size)
        }
        Taken::Over => over(fd, sock, message, flags),
        Taken::Nothing if sock.link.unread_end.load(Ordering::Acquire) => {
            over(fd, sock, message, flags)
        }
        Taken::Nothing if flags & libc::MSG_DONTWAIT != 0 => Err(libc::EAGAIN),
        // Nothing can arrive.
        Taken::Nothing if alone => Err(libc::ENOTCONN),
        // With O_NONBLOCK, waiting fails with EAGAIN.
        Taken::Nothing => Err(errno::WAIT),
    }
}

/// Whether a one-to-many socket has associations, or accepts them.
fn has_peers(sock: &Sock) -> bool {
    let some = sock.many.as_ref().is_some_and(|many| !many.all().is_empty());
    some || !sock.is_local() || sock.link.phase() == Phase::Listening
}

/// The end of the association: its error once; then 0 if the peer has begun the shutdown, and
/// ENOTCONN otherwise. poll always reports the end, so a socket that does not block has 0.
fn over(fd: c_int, sock: &Sock, message: &mut msghdr, flags: c_int) -> Errno<usize> {
    let link = &sock.link;
    let error = link.take_error();
    if error != 0 {
        return Err(error);
    }
    let end = link.unread_end.load(Ordering::Acquire);
    if !end && link.shut.load(Ordering::Acquire) && !is_nonblocking(fd, flags) {
        return Err(libc::ENOTCONN);
    }
    message.msg_namelen = 0;
    message.msg_controllen = 0;
    message.msg_flags = 0;
    Ok(0)
}

/// Result of [`take`].
enum Taken {
    /// Bytes of a message: their number, and whether the message ends with them.
    Bytes { header: Header, size: usize, end: bool },
    /// No message has arrived.
    Nothing,
    /// The association is over.
    Over,
}

/// Takes bytes of the next message without waiting: its header, their number, and whether the
/// message ends with them.
fn take(fd: c_int, sock: &Sock, parts: &[iovec], peek: bool) -> Errno<Taken> {
    let room: usize = parts.iter().map(|part| part.iov_len).sum();
    match sock.link.inbox().take(fd, room, peek, |bytes| scatter(parts, bytes))? {
        Found::Bytes { header, size, end } => {
            if !peek && header.is_data() {
                has_read(sock, header.association, size);
            }
            Ok(Taken::Bytes { header, size, end })
        }
        Found::Nothing => Ok(Taken::Nothing),
        Found::Over => Ok(Taken::Over),
        Found::Shared => take_from_pair(fd, sock, parts, room, peek),
    }
}

/// Notes that the program has read bytes of an association's messages, so that the peer can send
/// more.
fn has_read(sock: &Sock, association: i32, size: usize) {
    match &sock.many {
        None => sock.link.has_read(size),
        Some(many) => many.get(association).iter().for_each(|link| link.has_read(size)),
    }
}

/// [`take`] from the pair. The packet stays in the pair until the program has read all of it, so
/// that the descriptor stays readable.
fn take_from_pair(
    fd: c_int,
    sock: &Sock,
    parts: &[iovec],
    room: usize,
    peek: bool,
) -> Errno<Taken> {
    let mut pending = lock(&sock.reading);
    if let Some(rest) = pending.as_mut() {
        let left = &rest.bytes[rest.read..];
        let size = left.len().min(room);
        scatter(parts, &left[..size])?;
        let (header, end) = (rest.header, rest.header.end && size == left.len());
        if !peek {
            rest.read += size;
            if rest.read == rest.bytes.len() {
                let taken = rest.taken;
                *pending = None;
                if !taken {
                    drop_packet(fd, sock, &header);
                }
            }
        }
        return Ok(Taken::Bytes { header, size, end });
    }
    // A packet that the program reads at once is taken at once, for another process may read, too.
    // Only a packet of which it reads a part is looked at first, and removed with the last part,
    // unless it arrives at this very moment.
    let size = inbox::next_in_pair(fd).map(|(_, size)| size);
    let taken = !peek && size.is_none_or(|size| size <= room);
    let mut header = [0; HEADER];
    let mut spill: Vec<u8> = Vec::new();
    let first = |header: &mut [u8; HEADER]| iovec {
        iov_base: header.as_mut_ptr().cast::<c_void>(),
        iov_len: HEADER,
    };
    let mut all = Vec::with_capacity(parts.len() + 2);
    all.push(first(&mut header));
    all.extend_from_slice(parts);
    if room < PAYLOAD {
        // The rest of a message that is larger than the program's buffer.
        spill.reserve_exact(PAYLOAD - room);
        let iov_base = spill.as_mut_ptr().cast();
        all.push(iovec { iov_base, iov_len: PAYLOAD - room });
    }
    // SAFETY: all-zero bytes are a valid `msghdr`; all parts are writable during the call.
    let look = |all: &mut Vec<iovec>| unsafe {
        let mut message: msghdr = std::mem::zeroed();
        message.msg_iov = all.as_mut_ptr();
        message.msg_iovlen = all.len() as _;
        let look = if taken { 0 } else { libc::MSG_PEEK };
        real::recvmsg(fd, &raw mut message, look | libc::MSG_DONTWAIT)
    };
    let mut seen = errno::check(look(&mut all));
    if seen == Err(libc::ECONNRESET) {
        // The engine's end was closed before what it had sent was read, which can still be read.
        seen = errno::check(look(&mut all));
    }
    let seen = match seen {
        Ok(0) | Err(libc::ECONNRESET) => return Ok(Taken::Over),
        Err(libc::EAGAIN) => return Ok(Taken::Nothing),
        Ok(seen) => seen,
        Err(error) => return Err(error),
    };
    let Some(header) = Header::read(&header).filter(|_| seen >= HEADER) else {
        if !taken {
            drop_packet(fd, sock, &Header::new(Kind::Filler));
        }
        return Err(libc::EIO);
    };
    let size = (seen - HEADER).min(room);
    let left = seen - HEADER - size;
    if taken {
        sock.link.inbox().count_read(&header);
    }
    if peek || taken && left == 0 {
    } else if left == 0 {
        drop_packet(fd, sock, &header);
    } else {
        // SAFETY: the call has written `left` bytes to the spill, which has room for them.
        unsafe { spill.set_len(left) };
        spill.shrink_to_fit();
        *pending = Some(Pending { header, bytes: spill, read: 0, taken });
    }
    Ok(Taken::Bytes { header, size, end: header.end && left == 0 })
}

/// Removes the packet at the head of the pair.
fn drop_packet(fd: c_int, sock: &Sock, header: &Header) {
    sock.link.inbox().count_read(header);
    let mut byte = 0u8;
    // SAFETY: the buffer has room for one byte; the kernel drops the rest of the packet.
    unsafe { real::recv(fd, (&raw mut byte).cast(), 1, libc::MSG_DONTWAIT) };
}

/// Copies bytes into the program's parts, which [`parts`] has checked and which have room for them.
fn scatter(parts: &[iovec], mut bytes: &[u8]) -> Errno<()> {
    for part in parts {
        let (first, rest) = bytes.split_at(part.iov_len.min(bytes.len()));
        // SAFETY: the part is checked, and the program does not use it during the call.
        unsafe { memory::copy_out(first, part.iov_base.cast()) }?;
        bytes = rest;
    }
    Ok(())
}

/// Fills in the address, the control messages and the flags of a received message.
///
/// # Safety
///
/// The pointers of the message are valid for their lengths.
unsafe fn describe(fd: c_int, sock: &Sock, message: &mut msghdr, header: &Header, end: bool) {
    let peer = header.peer.or_else(|| *lock(&sock.link.peer));
    // SAFETY: by the contract of this function.
    unsafe {
        match peer {
            Some(peer) if !message.msg_name.is_null() => {
                let bytes = address::format(peer, sock.link.name_family());
                let name = message.msg_name.cast();
                address::write(&bytes, name, &raw mut message.msg_namelen);
            }
            _ => message.msg_namelen = 0,
        }
    }
    message.msg_flags = if end { libc::MSG_EOR } else { 0 };
    let mut used = 0;
    if lock(&sock.options).recvnxtinfo
        && let Some(info) = nxtinfo(fd, sock)
    {
        // SAFETY: by the contract of this function.
        used += unsafe { put(message, used, abi::CMSG_NXTINFO, &info) };
    }
    if header.kind == Kind::Notification {
        message.msg_flags |= abi::MSG_NOTIFICATION;
    } else {
        let events = sock.link.events.load(Ordering::Acquire);
        let rcvinfo = lock(&sock.options).recvrcvinfo;
        if rcvinfo {
            // SAFETY: by the contract of this function.
            used += unsafe { put(message, used, abi::CMSG_RCVINFO, &rcvinfo_of(header, sock)) };
        }
        if events & 1 != 0 {
            // SAFETY: by the contract of this function.
            used += unsafe { put(message, used, abi::CMSG_SNDRCV, &sndrcv_of(header, sock)) };
        }
    }
    message.msg_controllen = used as _;
}

/// `sctp_rcvinfo` of a received message.
fn rcvinfo_of(header: &Header, sock: &Sock) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u16(header.stream).u16(header.ssn).u16(header.flags).u16(0).u32(header.ppid);
    writer.u32(header.tsn).u32(header.cumulative_tsn);
    writer.u32(context_of(header, sock)).i32(header.association).done()
}

/// `sctp_nxtinfo` of the next message, unless the program is in the middle of one.
fn nxtinfo(fd: c_int, sock: &Sock) -> Option<Vec<u8>> {
    /// SCTP_NOTIFICATION.
    const NOTIFICATION: u16 = abi::MSG_NOTIFICATION as u16;
    let (header, size) = match sock.link.inbox().next() {
        Next::Packet(header, size) => (header, size),
        Next::Nothing => return None,
        Next::Shared if lock(&sock.reading).is_some() => return None,
        Next::Shared => inbox::next_in_pair(fd)?,
    };
    let notifies = header.kind == Kind::Notification;
    let flags = header.flags | if notifies { NOTIFICATION } else { 0 };
    let mut writer = Writer::default();
    writer.u16(header.stream).u16(flags).u32(header.ppid).u32(size as u32);
    Some(writer.i32(header.association).done())
}

/// SCTP_CONTEXT of the association of a received message.
fn context_of(header: &Header, sock: &Sock) -> u32 {
    let link = sock.member(header.association).unwrap_or_else(|_| sock.link.clone());
    lock(&link.defaults).context
}

/// `sctp_sndrcvinfo` of a received message.
fn sndrcv_of(header: &Header, sock: &Sock) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u16(header.stream).u16(header.ssn).u16(header.flags).u16(0).u32(header.ppid);
    writer.u32(context_of(header, sock)).u32(0).u32(header.tsn).u32(header.cumulative_tsn);
    writer.i32(header.association).done()
}

/// Appends a control message; returns its size. Sets MSG_CTRUNC if there is not enough room.
///
/// # Safety
///
/// The control buffer is valid for `msg_controllen`, and its first `used` bytes are in use.
unsafe fn put(message: &mut msghdr, used: usize, kind: c_int, data: &[u8]) -> usize {
    // SAFETY: the macros compute sizes.
    let (space, length, head) = unsafe {
        let length = data.len() as u32;
        let head = libc::CMSG_LEN(0) as usize;
        (libc::CMSG_SPACE(length) as usize, libc::CMSG_LEN(length) as usize, head)
    };
    let room = if message.msg_control.is_null() { 0 } else { message.msg_controllen - used };
    if room < length {
        message.msg_flags |= libc::MSG_CTRUNC;
    }
    if room < head {
        return 0;
    }
    // As much as there is room for, as Linux does.
    let (space, length) = (space.min(room), length.min(room));
    // SAFETY: by the contract of this function, and there is room for the control message.
    unsafe {
        let at = message.msg_control.cast::<u8>().add(used);
        let mut header: cmsghdr = std::mem::zeroed();
        header.cmsg_len = length as _;
        header.cmsg_level = abi::IPPROTO_SCTP;
        header.cmsg_type = kind;
        at.cast::<cmsghdr>().write_unaligned(header);
        std::ptr::copy_nonoverlapping(data.as_ptr(), at.add(head), length - head);
    }
    space
}
