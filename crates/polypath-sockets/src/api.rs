//! The functions of the C library on SCTP sockets, with its arguments, results and errno. They
//! return EIO instead of panicking in the program.
//!
//! [`with_functions!`](crate::with_functions) has their signatures, for those who export them.
//!
//! They may unwind nevertheless: pthread_cancel unwinds through a thread that waits.

use std::ffi::{c_int, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use libc::{iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};

use crate::bytes::Reader;
use crate::errno::{self, Errno};
use crate::socket::{self, Sock};
use crate::{abi, address, calls, data, engine, memory, options, process, real, settings};

pub use crate::process::finish;
pub use crate::settings::ConfigureError;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// A request of ioctl(2) that the crate `libc` does not have.
pub const SIOCATMARK: c_ulong = 0x8905;

/// Result of a call that found nothing and may wait.
const WAIT: isize = isize::MIN;

/// Runs a call on an SCTP socket, and converts its result to C's. errno keeps its value if the call
/// succeeds. pthread_cancel does not take effect meanwhile.
fn call(work: impl FnOnce() -> Errno<isize>) -> isize {
    const PTHREAD_CANCEL_DISABLE: c_int = 1;
    let before = errno::get();
    let mut cancellation = 0;
    // SAFETY: the pointers are null or valid.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut cancellation) };
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(libc::EIO));
    // SAFETY: as above.
    unsafe { pthread_setcancelstate(cancellation, std::ptr::null_mut()) };
    match result {
        Err(errno::WAIT) => {
            errno::set(before);
            WAIT
        }
        Ok(value) => {
            errno::set(before);
            value
        }
        Err(number) => {
            errno::set(number);
            -1
        }
    }
}

/// The SCTP socket of a descriptor.
fn find(fd: c_int) -> Option<Arc<Sock>> {
    if !socket::is_ours(fd) {
        return None;
    }
    catch_unwind(|| socket::find(fd)).ok().flatten()
}

/// Runs `work` with the SCTP socket of a descriptor.
fn on(fd: c_int, work: impl FnOnce(&Arc<Sock>) -> Errno<isize>) -> isize {
    // Another thread has closed it since the caller has looked.
    let Some(sock) = find(fd) else { return call(|| Err(libc::EBADF)) };
    let result = call(|| work(&sock));
    socket::release(sock);
    result
}

/// Waits until a descriptor is readable. False if the call must return the error in errno.
///
/// pthread_cancel ends the thread in here: it unwinds through this frame and those of the hooks,
/// which own nothing at this moment.
fn wait_readable(fd: c_int) -> bool {
    let (before, mut byte) = (errno::get(), 0u8);
    // SAFETY: the buffer has room for one byte.
    let seen = unsafe { real::recv(fd, (&raw mut byte).cast(), 1, libc::MSG_PEEK) };
    let done = seen >= 0 || errno::get() == libc::ECONNRESET;
    if done {
        errno::set(before);
    }
    done
}

fn done(result: Errno<()>) -> Errno<isize> {
    result.map(|()| 0)
}

/// Opens an SCTP socket; `None` if these arguments do not ask for one, so that the C library's
/// function has to be called. `report` receives a report of unsupported requests at the end of the
/// program if the settings request one.
pub fn socket(family: c_int, kind: c_int, protocol: c_int, report: fn(&str)) -> Option<c_int> {
    let internet = family == libc::AF_INET || family == libc::AF_INET6;
    let known = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].contains(&(kind & 0xf));
    (internet && known && protocol == abi::IPPROTO_SCTP).then(|| {
        call(|| {
            if kind & !(0xf | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
                return Err(libc::EINVAL);
            }
            process::register(report);
            calls::open(family, kind).map(|fd| fd as isize)
        }) as c_int
    })
}

/// Sets an option of `polypath run` (`port`, `peer-port`, `raw`, `bind`, `encrypt`, `profile`) or a
/// constant, in place of what the environment has.
///
/// # Errors
///
/// The process has opened an SCTP socket, or the key, the value or the combination with others is
/// not allowed.
pub fn configure(key: &str, value: &str) -> Result<(), ConfigureError> {
    engine::before_start(|| settings::set(key, value)).unwrap_or(Err(ConfigureError::TooLate))
}

/// Whether a descriptor is an SCTP socket. Takes no lock.
#[must_use]
pub fn is_ours(fd: c_int) -> bool {
    socket::is_ours(fd)
}

/// Whether the calling process shares the memory of the one that the sockets belong to: a child of
/// vfork, which has its own descriptors.
#[must_use]
pub fn is_borrowed() -> bool {
    socket::is_borrowed()
}

/// The result of a call that fails with this error number.
#[must_use]
pub fn failed(number: c_int) -> c_int {
    errno::set(number);
    -1
}

/// Whether preadv2(2) and pwritev2(2) with this position and these flags do as readv(2) and
/// writev(2) on a socket.
///
/// # Errors
///
/// The error number otherwise: a socket has no position, and no `RWF_NOWAIT`.
pub const fn at_position(offset: i64, flags: c_int) -> Result<(), c_int> {
    const KNOWN: c_int = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_APPEND;
    if offset != -1 {
        return Err(libc::ESPIPE);
    }
    if flags & !KNOWN == 0 { Ok(()) } else { Err(libc::EOPNOTSUPP) }
}

/// Closes a descriptor of an SCTP socket; `None` if it is none.
#[must_use]
pub fn close(fd: c_int) -> Option<c_int> {
    if !socket::is_ours(fd) || socket::is_borrowed() {
        return None;
    }
    catch_unwind(|| calls::close(fd)).ok().flatten()
}

/// Closes the SCTP sockets among these descriptors.
pub fn close_between(first: u32, last: u32) {
    let _ = catch_unwind(|| {
        let inside = |fd: &c_int| (i64::from(first)..=i64::from(last)).contains(&(*fd).into());
        socket::descriptors().into_iter().filter(inside).for_each(|fd| {
            calls::close(fd);
        });
    });
}

/// Duplicates a descriptor by `system`, whose result is the new one: it is a descriptor of the same
/// SCTP socket. A child of vfork only duplicates: the table is its parent's.
pub fn duplicate(fd: c_int, system: impl FnOnce() -> c_int) -> c_int {
    let sock = if socket::is_ours(fd) && socket::is_borrowed() { None } else { find(fd) };
    let new = system();
    let _ = catch_unwind(AssertUnwindSafe(|| calls::duplicated(sock, new)));
    new
}

/// As [`duplicate`], with a number for the new descriptor, which `system` closes if it is open.
pub fn replace(from: c_int, to: c_int, system: impl FnOnce() -> c_int) -> c_int {
    if socket::is_borrowed() {
        return system();
    }
    let sock = find(from);
    if from != to
        && let Some(old) = find(to)
    {
        let _ = catch_unwind(AssertUnwindSafe(|| calls::leave(&old, socket::is_only(to, &old))));
        socket::release(old);
    }
    let new = system();
    if new >= 0 && from != to {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // The call has closed the descriptor's old socket.
            if let Some((old, last)) = socket::remove(to) {
                if last {
                    old.link.inbox().close();
                }
                calls::left(&old);
                socket::release(old);
            }
            calls::duplicated(sock, new);
        }));
    }
    new
}

/// Defines functions of the C library on SCTP sockets, and `with_functions!` with their signatures.
/// Each body is run for the socket of the descriptor, the first argument.
macro_rules! functions {
    ($dollar:tt $($name:ident($fd:ident: c_int $(, $arg:ident: $ty:ty)* $(,)?) -> $ret:ty,
        $sock:ident => $body:expr;)*) => {
        $(
            /// The C library's function of this name, on an SCTP socket.
            ///
            /// # Safety
            ///
            /// As for that function.
            pub unsafe fn $name($fd: c_int $(, $arg: $ty)*) -> $ret {
                loop {
                    // SAFETY: the caller fulfils the contract of the C library's function.
                    let result = on($fd, |$sock| {
                        #[allow(unused_unsafe)]
                        unsafe { $body }
                    });
                    if result != WAIT {
                        return result as $ret;
                    }
                    if !wait_readable($fd) {
                        return -1;
                    }
                }
            }
        )*

        /// Passes the signatures of the functions on SCTP sockets to a macro. The types are those
        /// of the crate `libc` and of `std::ffi`.
        #[macro_export]
        macro_rules! with_functions {
            ($dollar callback:ident) => {
                $dollar callback! { $($name($fd: c_int $(, $arg: $ty)*) -> $ret;)* }
            };
        }
    };
}

functions! {
    $
    bind(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int, sock => {
        address::check(to, length)?;
        if address::is_foreign(to, length) {
            return Err(libc::EAFNOSUPPORT);
        }
        done(address::read(to, length).and_then(|to| calls::bind(sock, to)))
    };
    listen(fd: c_int, backlog: c_int) -> c_int, sock => done(calls::listen(fd, sock, backlog));
    accept(fd: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int, sock => {
        accepted(fd, sock, from, length, 0)
    };
    accept4(fd: c_int, from: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int,
    sock => accepted(fd, sock, from, length, flags);
    connect(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int, sock => {
        address::check(to, length)?;
        if address::family(to, length) == Some(libc::AF_UNSPEC) {
            return Err(libc::EOPNOTSUPP);
        }
        done(address::read(to, length).and_then(|to| {
            calls::connect_to(fd, sock, &[to], socket::is_nonblocking(fd, 0))
        }))
    };
    ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int, sock => match request {
        libc::FIONREAD => {
            let (size, to) = (calls::next_size(fd, sock)?, argument as *mut c_int);
            memory::probe(to, size_of::<c_int>())?;
            to.write_unaligned(size);
            Ok(0)
        }
        // The former is SIOCOUTQ.
        libc::TIOCOUTQ | SIOCATMARK => Err(libc::ENOTTY),
        _ => errno::check(real::ioctl(fd, request, argument) as isize).map(|value| value as isize),
    };
    shutdown(fd: c_int, how: c_int) -> c_int, sock => done(calls::shutdown(fd, sock, how));
    getsockname(fd: c_int, to: *mut sockaddr, length: *mut socklen_t) -> c_int, sock => {
        address::check_buffer(to, length)?;
        address::write(&calls::local_name(sock), to, length);
        Ok(0)
    };
    getpeername(fd: c_int, to: *mut sockaddr, length: *mut socklen_t) -> c_int, sock => {
        let name = calls::peer_name(sock)?;
        address::check_buffer(to, length)?;
        address::write(&name, to, length);
        Ok(0)
    };
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t)
        -> c_int, sock => get_option(fd, sock, level, name, value, length);
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t)
        -> c_int, sock => set_option(fd, sock, level, name, value, length);
    read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t, sock => {
        let part = iovec { iov_base: buffer, iov_len: count };
        receive(fd, sock, &part, 1, 0, std::ptr::null_mut(), std::ptr::null_mut())
    };
    readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t, sock => {
        receive(fd, sock, parts, count, 0, std::ptr::null_mut(), std::ptr::null_mut())
    };
    recv(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t, sock => {
        let part = iovec { iov_base: buffer, iov_len: count };
        receive(fd, sock, &part, 1, flags, std::ptr::null_mut(), std::ptr::null_mut())
    };
    recvfrom(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int, from: *mut sockaddr,
        length: *mut socklen_t) -> ssize_t, sock => {
        let part = iovec { iov_base: buffer, iov_len: count };
        receive(fd, sock, &part, 1, flags, from, length)
    };
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t, sock => {
        received(fd, sock, message, flags).map(|size| size as isize)
    };
    write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t, sock => {
        let part = iovec { iov_base: buffer.cast_mut(), iov_len: count };
        send_parts(fd, sock, &part, 1, 0, std::ptr::null(), 0)
    };
    writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t, sock => {
        send_parts(fd, sock, parts, count, 0, std::ptr::null(), 0)
    };
    send(fd: c_int, buffer: *const c_void, count: size_t, flags: c_int) -> ssize_t, sock => {
        let part = iovec { iov_base: buffer.cast_mut(), iov_len: count };
        send_parts(fd, sock, &part, 1, flags, std::ptr::null(), 0)
    };
    sendto(fd: c_int, buffer: *const c_void, count: size_t, flags: c_int, to: *const sockaddr,
        length: socklen_t) -> ssize_t, sock => {
        let part = iovec { iov_base: buffer.cast_mut(), iov_len: count };
        send_parts(fd, sock, &part, 1, flags, to, length)
    };
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t, sock => {
        memory::check(message, size_of::<msghdr>())?;
        // The caller's structure need not be aligned.
        data::send(fd, sock, &message.read_unaligned(), flags).map(|size| size as isize)
    };
    sendmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int) -> c_int, sock => {
        each(messages, count, |one| {
            data::send(fd, sock, &one.msg_hdr, flags)
        })
    };
    recvmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int,
        _timeout: *mut timespec) -> c_int, sock => {
        let mut flags = flags;
        each(messages, count, |one| {
            let size = data::receive(fd, sock, &mut one.msg_hdr, flags & !libc::MSG_WAITFORONE)?;
            // Linux waits for all of them; fewer are allowed, too, and lose none to a signal.
            flags |= libc::MSG_DONTWAIT;
            if size == 0 { Err(0) } else { Ok(size) }
        })
    };
}

/// Runs `work` for each message until one fails; the result is the number of messages, or the error
/// of the first one.
///
/// # Safety
///
/// `messages` points to `count` messages.
unsafe fn each(
    messages: *mut mmsghdr,
    count: u32,
    mut work: impl FnMut(&mut mmsghdr) -> Errno<usize>,
) -> Errno<isize> {
    // As many as Linux takes at a time.
    let count = count.min(1024);
    memory::probe(messages, count as usize * size_of::<mmsghdr>())?;
    if !messages.is_aligned() {
        return Err(libc::EFAULT);
    }
    let mut finished = 0;
    for at in 0..count as usize {
        // SAFETY: by the contract of this function.
        let one = unsafe { &mut *messages.add(at) };
        match work(one) {
            Ok(size) => one.msg_len = size as u32,
            Err(error) if finished == 0 && error != 0 => return Err(error),
            Err(_) => break,
        }
        finished += 1;
    }
    Ok(finished)
}

/// Receives into the message of recvmsg(2).
///
/// # Safety
///
/// As for that function.
unsafe fn received(fd: c_int, sock: &Sock, message: *mut msghdr, flags: c_int) -> Errno<usize> {
    memory::check(message, size_of::<msghdr>())?;
    // SAFETY: by the contract of this function. The structure need not be aligned.
    unsafe {
        let mut copy = message.read_unaligned();
        let size = data::receive(fd, sock, &mut copy, flags)?;
        message.write_unaligned(copy);
        Ok(size)
    }
}

/// # Safety
///
/// The pointers are null or valid, as for accept(2).
unsafe fn accepted(
    fd: c_int,
    sock: &Sock,
    from: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> Errno<isize> {
    if !from.is_null() && calls::accepts(sock) {
        // SAFETY: by the contract of this function.
        unsafe { address::check_buffer(from, length) }?;
    }
    let (new, peer) = calls::accept(fd, sock, flags)?;
    // SAFETY: by the contract of this function.
    unsafe { address::write(&peer, from, length) };
    Ok(new as isize)
}

/// # Safety
///
/// The parts and the address are valid, as for recvmsg(2).
unsafe fn receive(
    fd: c_int,
    sock: &Sock,
    parts: *const iovec,
    count: c_int,
    flags: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
) -> Errno<isize> {
    // SAFETY: all-zero bytes are a valid `msghdr`, and by the contract of this function.
    unsafe {
        let mut message: msghdr = std::mem::zeroed();
        message.msg_iov = parts.cast_mut();
        message.msg_iovlen = usize::try_from(count).map_err(|_| libc::EINVAL)? as _;
        if !from.is_null() && !length.is_null() {
            memory::check(length, size_of::<socklen_t>())?;
            message.msg_name = from.cast();
            message.msg_namelen = *length;
        }
        let size = data::receive(fd, sock, &mut message, flags)?;
        if !from.is_null() && !length.is_null() {
            *length = message.msg_namelen;
        }
        Ok(size as isize)
    }
}

/// # Safety
///
/// The parts and the address are valid, as for sendmsg(2).
unsafe fn send_parts(
    fd: c_int,
    sock: &Arc<Sock>,
    parts: *const iovec,
    count: c_int,
    flags: c_int,
    to: *const sockaddr,
    length: socklen_t,
) -> Errno<isize> {
    // SAFETY: all-zero bytes are a valid `msghdr`, and by the contract of this function.
    unsafe {
        let mut message: msghdr = std::mem::zeroed();
        message.msg_iov = parts.cast_mut();
        message.msg_iovlen = usize::try_from(count).map_err(|_| libc::EINVAL)? as _;
        message.msg_name = to.cast_mut().cast();
        message.msg_namelen = length;
        data::send(fd, sock, &message, flags).map(|size| size as isize)
    }
}

/// # Safety
///
/// The pointers are valid, as for getsockopt(2).
unsafe fn get_option(
    fd: c_int,
    sock: &Sock,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> Errno<isize> {
    memory::probe(length, size_of::<socklen_t>())?;
    // SAFETY: by the contract of this function.
    let size = unsafe { *length };
    if size as c_int <= -1 {
        return Err(libc::EINVAL);
    }
    if value.is_null() {
        return Err(libc::EFAULT);
    }
    memory::probe(value, size as usize)?;
    // SAFETY: by the contract of this function. Options with input read what the program has
    // written there.
    let found = unsafe {
        if level == abi::IPPROTO_SCTP && name == abi::CONNECTX3 {
            let request = std::slice::from_raw_parts(value.cast::<u8>(), *length as usize);
            let (id, result) = calls::connectx3(fd, sock, Reader(request))?;
            if result.is_ok() || result == Err(libc::EINPROGRESS) {
                value.cast::<i32>().write_unaligned(id);
                *length = size_of::<i32>() as socklen_t;
            }
            return done(result);
        } else if level == abi::IPPROTO_SCTP {
            let request = std::slice::from_raw_parts(value.cast::<u8>(), *length as usize);
            options::get(fd, sock, name, request)
        } else {
            match options::get_socket(sock, level, name) {
                Some(found) => found,
                None => {
                    let result = real::getsockopt(fd, level, name, value, length);
                    return errno::check(result as isize).map(|_| 0);
                }
            }
        }
    }?;
    // SAFETY: at most `*length` bytes are written.
    unsafe {
        let count = found.len().min(*length as usize);
        std::ptr::copy_nonoverlapping(found.as_ptr(), value.cast(), count);
        *length = count as socklen_t;
    }
    Ok(0)
}

/// # Safety
///
/// The pointers are valid, as for setsockopt(2).
unsafe fn set_option(
    fd: c_int,
    sock: &Sock,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> Errno<isize> {
    if length as c_int <= -1 {
        return Err(libc::EINVAL);
    }
    if !options::has_level(level) {
        return Err(libc::ENOPROTOOPT);
    }
    memory::probe(value, length as usize)?;
    let bytes = match length {
        0 => &[][..],
        // SAFETY: by the contract of this function.
        _ => unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length as usize) },
    };
    if level == abi::IPPROTO_SCTP {
        return done(options::set(fd, sock, name, bytes));
    }
    match options::set_socket(sock, level, name, bytes) {
        Some(result) => done(result),
        // SAFETY: by the contract of this function.
        None => errno::check(unsafe { real::setsockopt(fd, level, name, value, length) } as isize)
            .map(|_| 0),
    }
}
