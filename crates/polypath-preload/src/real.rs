//! The C library's own functions, which the functions of this library replace.

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::mem::{size_of, transmute_copy};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec};

/// A function of the C library, looked up once.
struct Symbol {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Symbol {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The address of the function that follows this library's in the order of lookup. Threads that
    /// look it up at the same time find the same address.
    fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name ends with a NUL byte, and RTLD_NEXT needs no handle.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

macro_rules! real {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => { $(
        /// The C library's function of this name.
        ///
        /// # Safety
        ///
        /// As for that function.
        pub(crate) unsafe fn $name($($arg: $ty),*) -> $ret {
            static SYMBOL: Symbol = Symbol::new(
                // The name without an interior NUL byte, as a literal of the macro.
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                },
            );
            // pthread_cancel unwinds through calls that wait.
            type Function = unsafe extern "C-unwind" fn($($ty),*) -> $ret;
            const { assert!(size_of::<Function>() == size_of::<*mut c_void>()) };
            let found = SYMBOL.get();
            if found.is_null() {
                crate::errno::set(libc::ENOSYS);
                return -1;
            }
            // SAFETY: the C library defines the function with this signature, and a pointer to a
            // function has the size of a pointer to data, which is asserted above.
            unsafe { transmute_copy::<*mut c_void, Function>(&found)($($arg),*) }
        }
    )* };
}

real! {
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int;
    epoll_create1(flags: c_int) -> c_int;
    eventfd(value: u32, flags: c_int) -> c_int;
    ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int;
    bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    close(fd: c_int) -> c_int;
    closefrom(first: c_int) -> c_int;
    close_range(first: u32, last: u32, flags: c_int) -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(from: c_int, to: c_int) -> c_int;
    dup3(from: c_int, to: c_int, flags: c_int) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int;
    getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t)
        -> c_int;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t)
        -> c_int;
    read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t;
    readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t;
    writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    recv(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t;
    recvfrom(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int, address: *mut sockaddr,
        length: *mut socklen_t) -> ssize_t;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    recvmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int, timeout: *mut timespec)
        -> c_int;
    send(fd: c_int, buffer: *const c_void, count: size_t, flags: c_int) -> ssize_t;
    sendto(fd: c_int, buffer: *const c_void, count: size_t, flags: c_int, address: *const sockaddr,
        length: socklen_t) -> ssize_t;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    sendmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int) -> c_int;
    sendfile(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    sendfile64(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    splice(from: c_int, from_offset: *mut i64, to: c_int, to_offset: *mut i64, count: size_t,
        flags: u32) -> ssize_t;
    _exit(status: c_int) -> c_int;
}
