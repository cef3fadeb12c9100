//! The threads of the program: their descriptors, and the signals that wait for them.

use std::collections::HashMap;
use std::ffi::{c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use libc::pid_t;

/// A thread that has made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target(pub(crate) pid_t);

/// File descriptors that refer to threads. The number of a thread that has ended may be another
/// one's; the file descriptor then still refers to the first, and is useless.
static KNOWN: Mutex<Option<HashMap<pid_t, Arc<OwnedFd>>>> = Mutex::new(None);

/// Maximum number of these.
const MOST_KNOWN: usize = 1024;

/// A system call that returns a new descriptor.
fn made(result: c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made the descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(result as c_int) })
}

impl Target {
    /// A file descriptor that refers to the thread, or before Linux 6.9 to its process.
    fn open(self) -> io::Result<OwnedFd> {
        // SAFETY: the call takes numbers.
        let thread =
            made(unsafe { libc::syscall(libc::SYS_pidfd_open, self.0, libc::PIDFD_THREAD) });
        match thread {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                let process = self.status()?.process;
                // SAFETY: as above.
                made(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) })
            }
            thread => thread,
        }
    }

    fn copy_by(pidfd: &OwnedFd, fd: c_int) -> io::Result<OwnedFd> {
        // SAFETY: the call takes numbers.
        made(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) })
    }

    /// A copy of a descriptor of the thread.
    pub(crate) fn copy(self, fd: c_int) -> io::Result<OwnedFd> {
        let mut guard = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = guard.get_or_insert_default().get(&self.0).cloned();
        drop(guard);
        if let Some(pidfd) = known {
            match Self::copy_by(&pidfd, fd) {
                // Another thread with this number, which has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                result => return result,
            }
        }
        let pidfd = Arc::new(self.open()?);
        let result = Self::copy_by(&pidfd, fd);
        if is_per_thread() {
            let mut guard = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            let known = guard.get_or_insert_default();
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            known.insert(self.0, pidfd);
        }
        result
    }

    /// What the kernel reports about the thread.
    pub(crate) fn status(self) -> io::Result<Status> {
        Ok(Status::parse(&std::fs::read_to_string(format!("/proc/{}/status", self.0))?))
    }

    /// The numbers of the descriptors that are open, and the limit of numbers.
    pub(crate) fn numbers(self) -> io::Result<(Vec<u32>, u32)> {
        let mut open = Vec::new();
        for entry in std::fs::read_dir(format!("/proc/{}/fd", self.0))? {
            open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        Ok((open, u32::try_from(self.limit(None)?.rlim_cur).unwrap_or(u32::MAX)))
    }

    /// The limit of numbers, which is changed to another one.
    fn limit(self, new: Option<&libc::rlimit>) -> io::Result<libc::rlimit> {
        let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: all-zero bytes are a valid structure. The structures live during the call.
        unsafe {
            let mut limit: libc::rlimit = std::mem::zeroed();
            match libc::prlimit(self.0, libc::RLIMIT_NOFILE, new, &raw mut limit) {
                0 => Ok(limit),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Raises the limit of numbers as far as the system permits, up to `most`; `None` if it stays.
    pub(crate) fn raise_limit(self, most: u32) -> Option<u32> {
        let old = self.limit(None).ok()?;
        let new = libc::rlimit { rlim_cur: old.rlim_max.min(most.into()), ..old };
        let higher = new.rlim_cur > old.rlim_cur && self.limit(Some(&new)).is_ok();
        higher.then(|| u32::try_from(new.rlim_cur).ok()).flatten()
    }

    /// Sends the thread a signal, as the kernel does for a call of its own.
    pub(crate) fn signal(self, process: pid_t, signal: c_int) {
        // SAFETY: the call takes numbers.
        unsafe { libc::syscall(libc::SYS_tgkill, process, self.0, signal) };
    }
}

/// Whether a file descriptor can refer to a thread: since Linux 6.9. One that refers to a process
/// does not show whether a thread has ended.
fn is_per_thread() -> bool {
    use std::sync::OnceLock;
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| {
        // SAFETY: the call takes numbers.
        let own = unsafe {
            let thread = libc::syscall(libc::SYS_gettid);
            libc::syscall(libc::SYS_pidfd_open, thread, libc::PIDFD_THREAD)
        };
        made(own).is_ok()
    })
}

/// From `/proc/PID/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) process: pid_t,
    threads: u32,
    /// Signals that wait for the thread, and for any thread of the process.
    own: u64,
    shared: u64,
    blocked: u64,
}

/// What a signal does to a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    None,
    /// It is for this thread, whose call the kernel starts again after the handler, or ends with
    /// EINTR, as the program has requested.
    Own,
    /// It is for this thread or another one.
    Shared,
}

impl Status {
    fn parse(text: &str) -> Self {
        let mut status = Self::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            let set = || u64::from_str_radix(value, 16).unwrap_or(0);
            match key {
                "Tgid" => status.process = value.parse().unwrap_or(0),
                "Threads" => status.threads = value.parse().unwrap_or(0),
                "SigPnd" => status.own = set(),
                "ShdPnd" => status.shared = set(),
                "SigBlk" => status.blocked = set(),
                _ => {}
            }
        }
        status
    }

    /// The signal that a thread has to handle.
    ///
    /// The kernel marks one thread for a signal of the process: the first one if it does not block
    /// the signal. Only a marked thread may get the answer that starts its call again.
    pub(crate) fn signal(&self, target: Target) -> Signal {
        if self.own & !self.blocked != 0 {
            return Signal::Own;
        }
        match self.shared & !self.blocked != 0 {
            true if self.threads == 1 || self.process == target.0 => Signal::Own,
            true => Signal::Shared,
            false => Signal::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_which_signals_wait() {
        let text = "Name:\tx\nTgid:\t70\nPid:\t71\nThreads:\t3\nSigPnd:\t0000000000000000\n\
                    ShdPnd:\t0000000000004000\nSigBlk:\t0000000000000000\n";
        let status = Status::parse(text);
        assert_eq!(status.process, 70);
        assert_eq!(status.signal(Target(71)), Signal::Shared);
        assert_eq!(status.signal(Target(70)), Signal::Own);
        assert_eq!(Status { blocked: 0x4000, ..status }.signal(Target(70)), Signal::None);
        assert_eq!(Status { threads: 1, ..status }.signal(Target(71)), Signal::Own);
        assert_eq!(Status { own: 2, ..status }.signal(Target(71)), Signal::Own);
    }

    #[test]
    fn descriptors_of_a_thread_are_copied() {
        let own = Target(std::process::id() as pid_t);
        let file = std::fs::File::open("/dev/null").unwrap();
        for _ in 0..2 {
            assert!(own.copy(file.as_raw_fd()).is_ok());
        }
        assert_eq!(own.copy(1 << 20).unwrap_err().raw_os_error(), Some(libc::EBADF));
        let (open, limit) = own.numbers().unwrap();
        assert!(open.contains(&(file.as_raw_fd() as u32)) && limit > 0);
    }
}
