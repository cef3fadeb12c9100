//! The engine's descriptors, which the program does not know.
//!
//! They have numbers above those that the program had at its disposal, and the program cannot close
//! them: it may close every number up to a limit.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::real;

/// Numbers that the bit map covers.
const DESCRIPTORS: u64 = 1 << 16;

/// A limit of descriptors of which the engine may have a quarter.
const ENOUGH: u64 = 4096;

/// A bit for each descriptor: whether it is the engine's.
static PRIVATE: [AtomicU64; DESCRIPTORS as usize / 64] =
    [const { AtomicU64::new(0) }; DESCRIPTORS as usize / 64];

/// The smallest number of an engine's descriptor.
static BASE: AtomicI32 = AtomicI32::new(0);

/// The engine's descriptors that children of fork keep: tokio's, which it makes once.
static SHARED: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];

/// States which descriptors children of fork keep.
pub fn share(fds: [c_int; 2]) {
    for (shared, fd) in SHARED.iter().zip(fds) {
        shared.store(fd, Ordering::Release);
    }
}

thread_local! {
    /// Descriptors that this thread opens or closes are the engine's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, whose descriptors are the engine's.
pub(crate) fn inside<R>(work: impl FnOnce() -> R) -> R {
    let before = INSIDE.replace(true);
    let result = work();
    INSIDE.set(before);
    result
}

/// Whether descriptors that this thread opens or closes are the engine's.
#[must_use]
pub fn is_inside() -> bool {
    INSIDE.get()
}

fn bit(fd: c_int) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((PRIVATE.get(fd / 64)?, 1 << (fd % 64)))
}

/// Marks a descriptor as the engine's.
pub fn mark(fd: c_int) {
    if let Some((word, bit)) = bit(fd) {
        word.fetch_or(bit, Ordering::AcqRel);
    }
}

/// Takes the mark from a descriptor.
pub fn unmark(fd: c_int) {
    if let Some((word, bit)) = bit(fd) {
        word.fetch_and(!bit, Ordering::AcqRel);
    }
}

/// Whether a descriptor is the engine's.
#[must_use]
pub fn is_marked(fd: c_int) -> bool {
    let is_shared = || SHARED.iter().any(|shared| shared.load(Ordering::Acquire) == fd);
    bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0) || is_shared()
}

/// All of the engine's descriptors, in order.
pub fn marked() -> impl Iterator<Item = u32> {
    (0..DESCRIPTORS as u32).filter(|fd| is_marked(*fd as c_int))
}

/// Raises the limit of descriptors as far as the system permits. The numbers up to the old limit
/// stay the program's. Where the limit is high and cannot be raised, as in most containers, the
/// engine has the last quarter of them, which hardly a program reaches. Otherwise a number that the
/// program has closed becomes the engine's: a thread that still uses it would read the engine's
/// packets, and wait for the next ones.
pub(crate) fn reserve() {
    // SAFETY: the structure is valid during the calls.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return;
        }
        let old = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max.min(DESCRIPTORS);
        if limit.rlim_cur > old && libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 {
            BASE.store(old as c_int, Ordering::Release);
        } else if old >= ENOUGH {
            BASE.store((old.min(DESCRIPTORS) / 4 * 3) as c_int, Ordering::Release);
        }
    }
}

/// Gives a new descriptor a number of the engine's, or keeps it if there is none.
pub fn raised(fd: c_int) -> c_int {
    let base = BASE.load(Ordering::Acquire);
    if base == 0 || fd < 0 || fd >= base {
        return fd;
    }
    // SAFETY: the caller owns the descriptor; the calls take no pointer.
    unsafe {
        match real::fcntl(fd, libc::F_DUPFD_CLOEXEC, base as usize) {
            ..0 => fd,
            new => {
                real::close(fd);
                new
            }
        }
    }
}

/// Closes the copies in a child of fork, in which no engine uses them. Otherwise the ends of pairs
/// would not report the end of the parent, and its UDP ports would stay in use.
pub(crate) fn close_all_in_child() {
    if real::is_direct() {
        mark_registered();
    }
    for (at, word) in PRIVATE.iter().enumerate() {
        let bits = word.swap(0, Ordering::AcqRel);
        for bit in (0..64).filter(|bit| bits >> bit & 1 != 0) {
            // SAFETY: the objects that own the descriptors are leaked in this process.
            unsafe { real::close((at * 64 + bit) as c_int) };
        }
    }
}

/// Marks the engine's epoll and all descriptors that are registered there, where nothing has marked
/// them when they were made. The kernel lists them. The engine's ends of pairs, which are marked,
/// identify its epoll: no other one waits for them.
fn mark_registered() {
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else { return };
    for entry in descriptors.flatten() {
        let name = entry.file_name();
        let Some(fd) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if std::fs::read_link(entry.path()).is_ok_and(|to| to.ends_with("anon_inode:[eventpoll]")) {
            let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}"));
            let registered = registered(&text.unwrap_or_default());
            if registered.iter().any(|one| is_marked(*one)) {
                registered.into_iter().chain([fd]).for_each(mark);
            }
        }
    }
}

/// The descriptors that an epoll waits for, from what the kernel reports about it (proc(5)).
fn registered(text: &str) -> Vec<c_int> {
    let targets = text.lines().filter_map(|line| line.strip_prefix("tfd:"));
    targets.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_lists_what_an_epoll_waits_for() {
        let text = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t2057\n\
                    tfd:        4 events: 80000019 data:  0  pos:0 ino:808 sdev:f\n\
                    tfd:       12 events: 8000201d data: 5581  pos:0 ino:9 sdev:8\n";
        assert_eq!(registered(text), [4, 12]);
        assert_eq!(registered(""), []);
    }
}
