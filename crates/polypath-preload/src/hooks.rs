//! The functions of the C library that this library replaces. Each passes calls on other
//! descriptors on.
//!
//! They may unwind: pthread_cancel unwinds through a thread that waits.

// They are public to the dynamic linker.
#![allow(unreachable_pub)]

use std::ffi::{c_int, c_ulong, c_void};
use std::os::fd::AsRawFd;
use std::panic::catch_unwind;

use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec};
use polypath_sockets::{api, private};

use crate::real;

/// Defines functions that replace those of the C library.
macro_rules! hooks {
    ($($name:ident($fd:ident: c_int $(, $arg:ident: $ty:ty)*) -> $ret:ty;)*) => { $(
        /// Replaces the C library's function.
        ///
        /// # Safety
        ///
        /// As for that function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($fd: c_int $(, $arg: $ty)*) -> $ret {
            // SAFETY: the caller fulfils the contract of the C library's function.
            unsafe {
                if api::is_ours($fd) {
                    api::$name($fd $(, $arg)*)
                } else {
                    real::$name($fd $(, $arg)*)
                }
            }
        }
    )* };
}

polypath_sockets::with_functions!(hooks);

/// Replaces socket(2): one of SCTP becomes polypath's.
#[unsafe(no_mangle)]
pub extern "C" fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    if private::is_inside() {
        // SAFETY: the function takes no pointer.
        return keep(private::raised(unsafe { real::socket(family, kind, protocol) }));
    }
    // SAFETY: the function takes no pointer.
    let other = || unsafe { real::socket(family, kind, protocol) };
    api::socket(family, kind, protocol, print).unwrap_or_else(other)
}

/// Prints the report of `polypath run --doctor`.
fn print(report: &str) {
    let error = std::io::stderr();
    // SAFETY: the text is valid for its length.
    unsafe { real::write(error.as_raw_fd(), report.as_ptr().cast(), report.len()) };
}

/// Marks a descriptor as the engine's.
fn keep(fd: c_int) -> c_int {
    private::mark(fd);
    fd
}

/// Replaces epoll_create1(2), for the engine.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: the function takes no pointer.
    let fd = unsafe { real::epoll_create1(flags) };
    if private::is_inside() { keep(private::raised(fd)) } else { fd }
}

/// Replaces eventfd(2), for the engine.
#[unsafe(no_mangle)]
pub extern "C" fn eventfd(value: u32, flags: c_int) -> c_int {
    // SAFETY: the function takes no pointer.
    let fd = unsafe { real::eventfd(value, flags) };
    if private::is_inside() { keep(private::raised(fd)) } else { fd }
}

/// Replaces socketpair(2), for the engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    ends: *mut c_int,
) -> c_int {
    // SAFETY: the caller fulfils the contract of the C library's function.
    unsafe {
        let made = real::socketpair(domain, kind, protocol, ends);
        if made == 0 && private::is_inside() {
            let raised = [private::raised(*ends), private::raised(*ends.add(1))];
            private::share(raised);
            ends.cast::<[c_int; 2]>().write(raised);
        }
        made
    }
}

/// Replaces close(2). The program cannot close the engine's descriptors.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn close(fd: c_int) -> c_int {
    if private::is_marked(fd) && !api::is_borrowed() {
        if !private::is_inside() {
            return api::failed(libc::EBADF);
        }
        private::unmark(fd);
    }
    // SAFETY: the caller owns the descriptor.
    api::close(fd).unwrap_or_else(|| unsafe { real::close(fd) })
}

/// Replaces close_range(2): SCTP sockets in the range are closed first.
#[unsafe(no_mangle)]
pub extern "C" fn close_range(first: u32, last: u32, flags: c_int) -> c_int {
    const CLOSE_RANGE_CLOEXEC: c_int = 4;
    if flags & CLOSE_RANGE_CLOEXEC != 0 || first > last || api::is_borrowed() {
        // SAFETY: the caller owns the descriptors.
        return unsafe { real::close_range(first, last, flags) };
    }
    api::close_between(first, last);
    // Around the engine's descriptors.
    let mut result = 0;
    let mut from = first;
    for fd in private::marked().filter(|fd| (first..=last).contains(fd)).chain([u32::MAX]) {
        let to = last.min(fd.saturating_sub(1));
        if from <= to {
            // SAFETY: the caller owns the descriptors.
            result |= unsafe { real::close_range(from, to, flags) };
        }
        from = fd.saturating_add(1);
    }
    if last == u32::MAX && from <= last {
        // SAFETY: as above.
        result |= unsafe { real::close_range(from, last, flags) };
    }
    result
}

/// Replaces closefrom(3).
#[unsafe(no_mangle)]
pub extern "C" fn closefrom(first: c_int) {
    if api::is_borrowed() {
        // SAFETY: the caller owns the descriptors.
        unsafe { real::closefrom(first) };
    } else {
        close_range(first.max(0).unsigned_abs(), u32::MAX, 0);
    }
}

/// Replaces dup(2).
#[unsafe(no_mangle)]
pub extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: the function takes no pointer.
    api::duplicate(fd, || unsafe { real::dup(fd) })
}

/// Replaces dup2(2).
#[unsafe(no_mangle)]
pub extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    // SAFETY: the function takes no pointer.
    api::replace(from, to, || unsafe { real::dup2(from, to) })
}

/// Replaces dup3(2).
#[unsafe(no_mangle)]
pub extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: the function takes no pointer.
    api::replace(from, to, || unsafe { real::dup3(from, to, flags) })
}

/// Replaces fcntl(2), which is variadic: on Linux's 64-bit ABIs the third argument of a variadic
/// call is passed as that of any other call, and an absent one is not looked at.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller fulfils the contract of the command.
    duplicating(fd, command, || unsafe { real::fcntl(fd, command, argument) })
}

/// As [`fcntl`].
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller fulfils the contract of the command.
    duplicating(fd, command, || unsafe { real::fcntl64(fd, command, argument) })
}

fn duplicating(fd: c_int, command: c_int, real: impl FnOnce() -> c_int) -> c_int {
    if command != libc::F_DUPFD && command != libc::F_DUPFD_CLOEXEC {
        return real();
    }
    if private::is_inside() { keep(private::raised(real())) } else { api::duplicate(fd, real) }
}

/// Replaces sendfile(2): EINVAL on SCTP sockets, after which programs copy instead.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile(
    out: c_int,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    if api::is_ours(out) {
        return api::failed(libc::EINVAL) as ssize_t;
    }
    // SAFETY: the caller fulfils the contract of the C library's function.
    unsafe { real::sendfile(out, from, offset, count) }
}

/// As [`sendfile`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile64(
    out: c_int,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    if api::is_ours(out) {
        return api::failed(libc::EINVAL) as ssize_t;
    }
    // SAFETY: the caller fulfils the contract of the C library's function.
    unsafe { real::sendfile64(out, from, offset, count) }
}

/// Replaces splice(2): not on SCTP sockets.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn splice(
    from: c_int,
    from_offset: *mut i64,
    to: c_int,
    to_offset: *mut i64,
    count: size_t,
    flags: u32,
) -> ssize_t {
    if api::is_ours(from) || api::is_ours(to) {
        return api::failed(libc::EINVAL) as ssize_t;
    }
    // SAFETY: the caller fulfils the contract of the C library's function.
    unsafe { real::splice(from, from_offset, to, to_offset, count, flags) }
}

/// Defines preadv2(2) or pwritev2(2), which do as `plain` on SCTP sockets.
macro_rules! at_position {
    ($($name:ident as $plain:ident;)*) => { $(
        /// Replaces the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            fd: c_int,
            parts: *const iovec,
            count: c_int,
            offset: off_t,
            flags: c_int,
        ) -> ssize_t {
            // SAFETY: the caller fulfils the contract of the C library's function.
            unsafe {
                match api::at_position(offset, flags) {
                    _ if !api::is_ours(fd) => real::$name(fd, parts, count, offset, flags),
                    Ok(()) => $plain(fd, parts, count),
                    Err(number) => api::failed(number) as ssize_t,
                }
            }
        }
    )* };
}

at_position! {
    preadv2 as readv;
    preadv64v2 as readv;
    pwritev2 as writev;
    pwritev64v2 as writev;
}

/// Replaces sockatmark(3), which the C library answers by a request of ioctl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sockatmark(fd: c_int) -> c_int {
    if api::is_ours(fd) {
        return api::failed(libc::ENOTTY);
    }
    // SAFETY: the function takes no pointer.
    unsafe { real::sockatmark(fd) }
}

/// The fortified read(2) of programs built with _FORTIFY_SOURCE.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    size: size_t,
) -> ssize_t {
    // SAFETY: the caller passes a buffer of `size` bytes.
    if count > size { abort() } else { unsafe { read(fd, buffer, count) } }
}

/// The fortified recv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller passes a buffer of `size` bytes.
    if count > size { abort() } else { unsafe { recv(fd, buffer, count, flags) } }
}

/// The fortified recvfrom(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    size: size_t,
    flags: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    if count > size {
        abort()
    }
    // SAFETY: the caller passes a buffer of `size` bytes.
    unsafe { recvfrom(fd, buffer, count, flags, from, length) }
}

/// Ends a program that would overflow its buffer, as the C library's fortified functions do.
fn abort() -> ! {
    std::process::abort()
}

/// Replaces _exit(2): the peers receive what the program has sent.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    let _ = catch_unwind(api::finish);
    // SAFETY: the function takes no pointer.
    unsafe { real::_exit(status) };
    abort()
}
