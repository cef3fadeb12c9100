//! `polypath_configure`, and what the library changes in itself.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::catch_unwind;
use std::sync::Once;

use polypath_sockets::api::{self, ConfigureError};

thread_local! {
    /// Why the thread's last call has failed.
    static REASON: RefCell<CString> = RefCell::default();
}

/// Keeps this library from printing when it catches a panic: the hook of its own copy of Rust's
/// standard library.
pub(crate) fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
}

/// Sets an option or a constant; see `polypath.h`.
///
/// # Safety
///
/// The pointers are null or point to strings that end with a NUL byte.
#[unsafe(export_name = "polypath_configure")]
pub unsafe extern "C" fn configure(key: *const c_char, value: *const c_char) -> c_int {
    silence();
    if key.is_null() || value.is_null() {
        return refused("no key or no value", libc::EFAULT);
    }
    // SAFETY: by the contract of this function.
    let (key, value) = unsafe { (CStr::from_ptr(key), CStr::from_ptr(value)) };
    let (Ok(key), Ok(value)) = (key.to_str(), value.to_str()) else {
        return refused("the key or the value is not UTF-8", libc::EINVAL);
    };
    match catch_unwind(|| api::configure(key, value)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            let late = error == ConfigureError::TooLate;
            refused(&error.to_string(), if late { libc::EBUSY } else { libc::EINVAL })
        }
        Err(_) => refused("an internal error", libc::EIO),
    }
}

/// Keeps the reason of a failure.
fn refused(reason: &str, number: c_int) -> c_int {
    let text = CString::new(reason.replace('\0', " ")).unwrap_or_default();
    // An error means that the thread is about to end.
    let _ = REASON.try_with(|kept| *kept.borrow_mut() = text);
    api::failed(number)
}

/// Why the thread's last call of `polypath_configure` that failed has failed.
#[unsafe(export_name = "polypath_configure_error")]
pub extern "C" fn configure_error() -> *const c_char {
    REASON.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The version of the library.
#[unsafe(export_name = "polypath_version")]
pub extern "C" fn version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
