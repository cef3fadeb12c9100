//! The program's SCTP sockets.
//!
//! A socket is found by the inode of the program's end of its pair, whichever process has the
//! descriptor and whatever its number is. It is over when no process has the program's end any
//! more: the kernel then no longer lists the inode.

use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polypath_sockets::foreign::Kept;

/// The sockets, and what reports their end.
pub(crate) struct Table {
    sockets: Mutex<Sockets>,
    epoll: OwnedFd,
    /// Reported by [`Table::report`].
    event: OwnedFd,
    /// Held while sockets that are over are removed and dropped.
    sweeping: Mutex<()>,
}

#[derive(Default)]
struct Sockets {
    by_inode: HashMap<u64, Arc<Kept>>,
    /// Their number at which those that are over are looked for.
    limit: usize,
}

impl Table {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the calls take numbers.
        let epoll = made(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: as above.
        let event = made(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let table = Self { sockets: Mutex::default(), epoll, event, sweeping: Mutex::default() };
        table.watch(table.event.as_raw_fd(), libc::EPOLLIN);
        Ok(table)
    }

    /// Reports events of a descriptor once, until it is closed.
    fn watch(&self, fd: c_int, events: c_int) {
        let mut event = libc::epoll_event { events: (events | libc::EPOLLET) as u32, u64: 0 };
        let add = libc::EPOLL_CTL_ADD;
        // SAFETY: the structure lives during the call.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), add, fd, &raw mut event) };
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The socket of a descriptor.
    pub(crate) fn find(&self, fd: &OwnedFd) -> Option<Arc<Kept>> {
        self.lock().by_inode.get(&inode(fd)?).cloned()
    }

    /// Adds the socket of a descriptor that is still open.
    pub(crate) fn add(&self, fd: &OwnedFd, kept: Kept) {
        let Some(inode) = inode(fd) else { return };
        if let Some(end) = kept.engine_end() {
            // The end is reported whatever is asked for.
            self.watch(end, 0);
        }
        let many = {
            let mut sockets = self.lock();
            sockets.by_inode.insert(inode, Arc::new(kept));
            sockets.by_inode.len() > sockets.limit
        };
        if many {
            self.sweep();
            let mut sockets = self.lock();
            sockets.limit = 64.max(2 * sockets.by_inode.len());
        }
    }

    /// Removes the sockets that are over. When it returns, their addresses are free, also of those
    /// that another thread has found.
    pub(crate) fn sweep(&self) {
        let _one = self.sweeping.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are added meanwhile may be missing in what is read.
        let known: Vec<u64> = self.lock().by_inode.keys().copied().collect();
        if known.is_empty() {
            return;
        }
        let Ok(listed) = std::fs::read_to_string("/proc/net/unix") else { return };
        let open = inodes(&listed);
        let mut over = Vec::new();
        let mut sockets = self.lock();
        for inode in known.iter().filter(|inode| !open.contains(inode)) {
            over.extend(sockets.by_inode.remove(inode));
        }
        drop(sockets);
        // They are dropped without the lock.
        drop(over);
    }

    /// Reports that the program is about to close a socket.
    pub(crate) fn report(&self) {
        let one = 1u64;
        // SAFETY: the number lives during the call.
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// The descriptor that is readable once the end of a socket was reported.
    pub(crate) fn reports(&self) -> &OwnedFd {
        &self.epoll
    }

    /// Takes what was reported.
    pub(crate) fn take_reports(&self) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        loop {
            // SAFETY: the buffer has room for as many events as are requested.
            let count =
                unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), 64, 0) };
            if count < 64 {
                break;
            }
        }
    }

    /// Drops all sockets.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut self.lock().by_inode);
        drop(all);
    }
}

/// A new descriptor.
fn made(fd: c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller's call has just made the descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The inode of a socket; `None` for other files.
fn inode(fd: &OwnedFd) -> Option<u64> {
    // SAFETY: all-zero bytes are a valid structure, which lives during the call.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(fd.as_raw_fd(), &raw mut status) == 0).then_some(status)
    }?;
    (status.st_mode & libc::S_IFMT == libc::S_IFSOCK).then_some(status.st_ino)
}

/// The inodes in `/proc/net/unix`: the seventh column.
fn inodes(listed: &str) -> HashSet<u64> {
    let lines = listed.lines().skip(1);
    lines.filter_map(|line| line.split_ascii_whitespace().nth(6)?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_kernel_lists_the_sockets_that_are_open() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0005 01  8127 /run/x\n\
                    0000000000000000: 00000003 00000000 00000000 0005 03 15017\n";
        assert_eq!(inodes(text), HashSet::from([8127, 15017]));
        let list = || inodes(&std::fs::read_to_string("/proc/net/unix").unwrap());
        let (one, other) = UnixStream::pair().unwrap();
        let one = OwnedFd::from(one);
        let number = inode(&one).unwrap();
        assert!(list().contains(&number));
        drop(one);
        assert!(!list().contains(&number));
        drop(other);
        assert_eq!(inode(&std::fs::File::open("/dev/null").unwrap().into()), None);
    }
}
