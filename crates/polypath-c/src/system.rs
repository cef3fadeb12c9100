//! The C library's functions, for descriptors that are not polypath's.

use std::ffi::{c_int, c_ulong, c_void};

use libc::{iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};

/// Declares functions of the C library. pthread_cancel unwinds through those that wait.
macro_rules! declare {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        unsafe extern "C-unwind" {
            $( pub(crate) fn $name($($arg: $ty),*) -> $ret; )*
        }
    };
}

polypath_sockets::with_functions!(declare);

declare! {
    socket(family: c_int, kind: c_int, protocol: c_int) -> c_int;
    close(fd: c_int) -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(from: c_int, to: c_int) -> c_int;
    dup3(from: c_int, to: c_int, flags: c_int) -> c_int;
    // On Linux's 64-bit ABIs, the third argument of a variadic call is passed as that of any other.
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
}
