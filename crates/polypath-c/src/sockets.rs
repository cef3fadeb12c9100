//! The functions of the C library, with a prefix: `polypath_socket` and those on descriptors.

use std::ffi::{c_int, c_ulong, c_void};
use std::panic::catch_unwind;

use libc::{iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};
use polypath_sockets::{api, real};

use crate::{configuration, system};

/// Defines the functions on descriptors. A child of vfork has descriptors of its own, but reads and
/// writes its parent's sockets.
macro_rules! export {
    ($($name:ident($fd:ident: c_int $(, $arg:ident: $ty:ty)*) -> $ret:ty;)*) => { $(
        /// The C library's function of this name, also for polypath's sockets.
        ///
        /// # Safety
        ///
        /// As for that function.
        #[unsafe(export_name = concat!("polypath_", stringify!($name)))]
        pub unsafe extern "C-unwind" fn $name($fd: c_int $(, $arg: $ty)*) -> $ret {
            // SAFETY: the caller fulfils the contract of the C library's function.
            unsafe {
                if api::is_ours($fd) {
                    api::$name($fd $(, $arg)*)
                } else {
                    system::$name($fd $(, $arg)*)
                }
            }
        }
    )* };
}

polypath_sockets::with_functions!(export);

/// socket(2): polypath's for SCTP.
#[unsafe(export_name = "polypath_socket")]
pub extern "C-unwind" fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    real::call_directly();
    configuration::silence();
    // A library prints nothing: `polypath run` alone reports unsupported requests.
    let report = |_: &str| {};
    // SAFETY: the function takes no pointer.
    let other = || unsafe { system::socket(family, kind, protocol) };
    api::socket(family, kind, protocol, report).unwrap_or_else(other)
}

/// close(2).
#[unsafe(export_name = "polypath_close")]
pub extern "C-unwind" fn close(fd: c_int) -> c_int {
    // SAFETY: the caller owns the descriptor.
    api::close(fd).unwrap_or_else(|| unsafe { system::close(fd) })
}

/// dup(2).
#[unsafe(export_name = "polypath_dup")]
pub extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: the function takes no pointer.
    api::duplicate(fd, || unsafe { system::dup(fd) })
}

/// dup2(2).
#[unsafe(export_name = "polypath_dup2")]
pub extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    // SAFETY: the function takes no pointer.
    api::replace(from, to, || unsafe { system::dup2(from, to) })
}

/// dup3(2).
#[unsafe(export_name = "polypath_dup3")]
pub extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: the function takes no pointer.
    api::replace(from, to, || unsafe { system::dup3(from, to, flags) })
}

/// fcntl(2), which is variadic: see [`system`]. An absent third argument is not looked at.
///
/// # Safety
///
/// As for that function.
#[unsafe(export_name = "polypath_fcntl")]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller fulfils the contract of the command.
    let system = || unsafe { system::fcntl(fd, command, argument) };
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => api::duplicate(fd, system),
        _ => system(),
    }
}

/// _exit(2): the peers receive what the program has sent.
#[unsafe(export_name = "polypath__exit")]
pub extern "C" fn exit(status: c_int) -> ! {
    let _ = catch_unwind(api::finish);
    // SAFETY: the function takes no pointer.
    unsafe { libc::_exit(status) }
}
