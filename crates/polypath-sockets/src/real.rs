//! The C library's own functions, which a preloaded library may have replaced.

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use libc::{msghdr, size_t, socklen_t, ssize_t};

/// Whether nothing in this object replaces functions of the C library.
static DIRECT: AtomicBool = AtomicBool::new(false);

/// States that nothing in this object replaces functions of the C library: they are called as any
/// other function, instead of being looked up behind this object.
pub fn call_directly() {
    DIRECT.store(true, Ordering::Relaxed);
}

/// Whether [`call_directly`] was called.
#[must_use]
pub fn is_direct() -> bool {
    DIRECT.load(Ordering::Relaxed)
}

/// A function of the C library, looked up once.
#[derive(Debug)]
pub struct Symbol {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Symbol {
    /// The function with this name.
    #[must_use]
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The address of the function that follows this library's in the order of lookup. Threads that
    /// look it up at the same time find the same address.
    pub fn get(&self) -> *mut c_void {
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

/// Sets errno, for a function that the C library does not have.
pub fn set_missing() {
    crate::errno::set(libc::ENOSYS);
}

/// Defines functions that call those of the C library with the same names, looked up behind this
/// object.
#[macro_export]
macro_rules! real {
    ($($name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty;)*) => { $(
        /// The C library's function of this name.
        ///
        /// # Safety
        ///
        /// As for that function.
        pub(crate) unsafe fn $name($($arg: $ty),*) -> $ret {
            static SYMBOL: $crate::real::Symbol = $crate::real::Symbol::new(
                // The name without an interior NUL byte, as a literal of the macro.
                match ::std::ffi::CStr::from_bytes_with_nul(
                    concat!(stringify!($name), "\0").as_bytes(),
                ) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                },
            );
            // pthread_cancel unwinds through calls that wait.
            type Function = unsafe extern "C-unwind" fn($($ty),*) -> $ret;
            const { assert!(size_of::<Function>() == size_of::<*mut ::std::ffi::c_void>()) };
            let found = SYMBOL.get();
            if found.is_null() {
                $crate::real::set_missing();
                return -1;
            }
            // SAFETY: the C library defines the function with this signature, and a pointer to a
            // function has the size of a pointer to data, which is asserted above.
            unsafe {
                ::std::mem::transmute_copy::<*mut ::std::ffi::c_void, Function>(&found)($($arg),*)
            }
        }
    )* };
}

/// Defines functions that call those of the C library directly or behind this object.
macro_rules! either {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        mod behind {
            use super::{c_int, c_ulong, c_void, msghdr, size_t, socklen_t, ssize_t};

            $crate::real! { $($name($($arg: $ty),*) -> $ret;)* }
        }

        $(
            /// The C library's function of this name.
            ///
            /// # Safety
            ///
            /// As for that function.
            pub unsafe fn $name($($arg: $ty),*) -> $ret {
                // As the functions behind: fcntl and ioctl are variadic, but on Linux's 64-bit ABIs
                // the third argument of a variadic call is passed as that of any other call.
                unsafe extern "C-unwind" {
                    fn $name($($arg: $ty),*) -> $ret;
                }
                // SAFETY: the caller fulfils the contract of the C library's function.
                unsafe {
                    if is_direct() { $name($($arg),*) } else { behind::$name($($arg),*) }
                }
            }
        )*
    };
}

either! {
    socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int;
    ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    close(fd: c_int) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t)
        -> c_int;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t)
        -> c_int;
    recv(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
}
