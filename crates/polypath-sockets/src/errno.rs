//! The error number of the calling thread.

use std::ffi::c_int;

/// Not an error number of C: the call found nothing and may wait.
pub(crate) const WAIT: c_int = -1;

/// Result of a call that failed with this error number.
pub(crate) type Errno<T> = Result<T, c_int>;

pub(crate) fn set(number: c_int) {
    // SAFETY: the C library returns a valid pointer to a variable of the calling thread.
    unsafe { *libc::__errno_location() = number }
}

pub(crate) fn get() -> c_int {
    // SAFETY: as in `set`.
    unsafe { *libc::__errno_location() }
}

/// Converts the result of a system call: negative means that errno has the reason.
pub(crate) fn check(result: isize) -> Errno<usize> {
    usize::try_from(result).map_err(|_| get())
}
