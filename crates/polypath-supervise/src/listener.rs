//! The descriptor that receives the notifications of the seccomp filter.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{Ioctl, seccomp_notif, seccomp_notif_addfd, seccomp_notif_resp};

/// Lets the kernel run the program on the processor of the supervisor's thread: since Linux 6.6.
const SYNC_WAKE_UP: u64 = 1;

/// The notifications of a filter.
pub(crate) struct Listener(OwnedFd);

impl Listener {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        let listener = Self(fd);
        // SAFETY: the operation takes a number. Older kernels refuse it, and do without.
        unsafe {
            libc::ioctl(listener.number(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP);
        }
        listener
    }

    pub(crate) fn number(&self) -> c_int {
        self.0.as_raw_fd()
    }

    /// An operation, which a signal does not end.
    fn control<T>(&self, operation: Ioctl, argument: &mut T) -> io::Result<c_int> {
        loop {
            // SAFETY: each caller passes the structure of the operation.
            let done = unsafe { libc::ioctl(self.number(), operation, &raw mut *argument) };
            if done >= 0 {
                return Ok(done);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Waits for the next notification.
    pub(crate) fn receive(&self) -> io::Result<seccomp_notif> {
        loop {
            // SAFETY: all-zero bytes are a valid structure, and what the kernel requires.
            let mut notification: seccomp_notif = unsafe { std::mem::zeroed() };
            match self.control(libc::SECCOMP_IOCTL_NOTIF_RECV, &mut notification) {
                Ok(_) => return Ok(notification),
                // The process has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the call still waits for its answer, so that its thread still exists.
    pub(crate) fn is_valid(&self, id: u64) -> bool {
        let mut id = id;
        self.control(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).is_ok()
    }

    /// Ends a call: with an error number unless that is 0, or else with the value.
    pub(crate) fn answer(&self, id: u64, value: i64, error: c_int) {
        let mut response = seccomp_notif_resp { id, val: value, error: -error, flags: 0 };
        // An error means that the process has ended.
        let _ = self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut response);
    }

    /// Lets the kernel do what the program has called.
    pub(crate) fn proceed(&self, id: u64) {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let mut response = seccomp_notif_resp { id, val: 0, error: 0, flags };
        let _ = self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut response);
    }

    /// Gives the program a copy of a descriptor, with this number. The call goes on: its answer
    /// must not reach the program before this process has closed its own copy.
    pub(crate) fn give(
        &self,
        id: u64,
        fd: &OwnedFd,
        number: u32,
        close_on_exec: bool,
    ) -> io::Result<()> {
        let mut request = seccomp_notif_addfd {
            id,
            flags: libc::SECCOMP_ADDFD_FLAG_SETFD as u32,
            srcfd: fd.as_raw_fd() as u32,
            newfd: number,
            newfd_flags: if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
        };
        self.control(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut request).map(drop)
    }
}
