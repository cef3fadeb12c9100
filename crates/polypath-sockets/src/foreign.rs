//! Sockets whose descriptors other processes have: those of a program that a supervisor watches.
//!
//! The supervisor makes sockets with [`crate::api`] and gives their descriptors away. For a call of
//! the program on one of them, it fetches a copy of the descriptor and [attaches](Kept::attach) it:
//! the functions of [`crate::api`] then work on this copy. In between, this process has no
//! descriptor of the program's end, so that the engine sees the end when the last process closes
//! it.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use crate::end::End;
use crate::link::{Phase, lock};
use crate::open::LISTENER_CLOSED;
use crate::socket::{self, Sock};
use crate::{calls, report};

/// Maximum size of a message, whatever SO_SNDBUF is: the default of `max_message_size`.
pub const LARGEST_MESSAGE: usize = 1 << 24;

/// A socket whose descriptors are in other processes.
///
/// It stays in the table of descriptors, where other sockets see its name, with a number that
/// nothing else of this process has. Dropping it removes it from there, as the last close does.
pub struct Kept {
    sock: Arc<Sock>,
    number: c_int,
    end: Option<Arc<End>>,
}

impl Kept {
    /// Takes over the socket of a descriptor that a function of [`crate::api`] has returned. The
    /// descriptor stays open and is no longer in the table.
    ///
    /// # Errors
    ///
    /// It is none, or there is no number for it, and it is closed.
    pub fn new(fd: c_int) -> io::Result<(Self, OwnedFd)> {
        let found = socket::remove(fd);
        let (sock, _) = found.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        // SAFETY: it was in the table, whose descriptors belong to the callers of the functions.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: the call takes no pointer.
        let number = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just made the descriptor.
        let reserved = unsafe { OwnedFd::from_raw_fd(number) };
        if !socket::insert(number, sock.clone()) {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let end = lock(&sock.engine_end).clone();
        Ok((Self { sock, number: reserved.into_raw_fd(), end }, owned))
    }

    /// Makes a copy of the program's descriptor a descriptor of the socket.
    ///
    /// # Errors
    ///
    /// The number of the copy is too large.
    pub fn attach(&self, copy: OwnedFd) -> io::Result<Attached> {
        if socket::insert(copy.as_raw_fd(), self.sock.clone()) {
            Ok(Attached(copy))
        } else {
            Err(io::Error::from_raw_os_error(libc::EMFILE))
        }
    }

    /// The engine's end of the socket pair, which hangs up when the program's end is closed, or
    /// when the association is over. `None` for the socket of an accepted association.
    #[must_use]
    pub fn engine_end(&self) -> Option<c_int> {
        self.end.as_ref().map(|end| end.number())
    }

    /// Prepares the end of the socket whose descriptor is about to be closed: with SO_LINGER of 0
    /// seconds, its association is aborted once no process has a descriptor.
    pub fn about_to_close(&self) {
        calls::leave(&self.sock, true);
        self.sock.link.left.notify_one();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // The end of the process closes all sockets.
        if socket::remove(self.number).is_none() {
            return;
        }
        // SAFETY: nothing else closes the number while it is in the table.
        drop(unsafe { OwnedFd::from_raw_fd(self.number) });
        self.sock.link.left.notify_one();
        if self.sock.link.phase() == Phase::Listening {
            *lock(&LISTENER_CLOSED) = Some(Instant::now());
        }
    }
}

/// A copy of the program's descriptor during a call.
#[derive(Debug)]
pub struct Attached(OwnedFd);

impl Attached {
    /// The descriptor, for the functions of [`crate::api`].
    #[must_use]
    pub fn fd(&self) -> c_int {
        self.0.as_raw_fd()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The copy is closed next. It is not the socket's end.
        drop(socket::remove(self.fd()));
    }
}

/// Counts a request that is not supported, for the report of `polypath run --doctor`.
pub fn missed(request: &str) {
    report::missed(request);
}
