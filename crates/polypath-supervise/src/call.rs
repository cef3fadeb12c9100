//! A system call of the program that waits for its answer.

use std::ffi::c_int;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use libc::seccomp_notif;
use polypath_sockets::foreign::{self, Attached, Kept};

use crate::memory::Memory;
use crate::state::State;
use crate::target::Target;
use crate::watch::Reason;

/// Error number that lets the kernel call the program's handler of a signal, and then start the
/// call again or end it with EINTR, as the program has requested (`linux/errno.h`). The program
/// does not see it.
pub(crate) const ERESTARTSYS: c_int = 512;

/// Why a call has no value as its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It fails with this error number.
    Error(c_int),
    /// The kernel does what the program has called.
    Proceed,
    /// The program's thread has ended.
    Over,
}

impl From<c_int> for Stop {
    fn from(number: c_int) -> Self {
        Self::Error(number)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Error(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// The result of a call.
pub(crate) type Answer<T = i64> = Result<T, Stop>;

/// A call.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a State,
    pub(crate) id: u64,
    pub(crate) target: Target,
    pub(crate) memory: Memory,
    pub(crate) number: i64,
    pub(crate) args: [u64; 6],
}

/// An SCTP socket during a call.
pub(crate) struct Socket {
    pub(crate) kept: Arc<Kept>,
    attached: Attached,
}

impl Socket {
    pub(crate) fn fd(&self) -> c_int {
        self.attached.fd()
    }
}

impl<'a> Call<'a> {
    pub(crate) fn new(state: &'a State, notification: &seccomp_notif) -> Self {
        let thread = notification.pid as libc::pid_t;
        Self {
            state,
            id: notification.id,
            target: Target(thread),
            memory: Memory(thread),
            number: notification.data.nr.into(),
            args: notification.data.args,
        }
    }

    /// An argument that is an int.
    pub(crate) fn int(&self, at: usize) -> c_int {
        self.args[at] as c_int
    }

    /// Ends the call.
    pub(crate) fn end(&self, answer: Answer) {
        let listener = &self.state.listener;
        match answer {
            Ok(value) => listener.answer(self.id, value, 0),
            Err(Stop::Error(number)) => listener.answer(self.id, 0, number),
            Err(Stop::Proceed) => listener.proceed(self.id),
            Err(Stop::Over) => {}
        }
    }

    /// Stops if the program's thread has ended: its number may be another one's.
    pub(crate) fn check(&self) -> Answer<()> {
        if self.state.listener.is_valid(self.id) { Ok(()) } else { Err(Stop::Over) }
    }

    /// A copy of a descriptor of the program.
    pub(crate) fn copy(&self, fd: c_int) -> Answer<OwnedFd> {
        let copy = self.target.copy(fd);
        self.check()?;
        copy.map_err(|error| match error.raw_os_error() {
            Some(libc::EBADF) => Stop::Proceed,
            Some(libc::EPERM) => {
                foreign::missed("calls of a process that polypath may not trace");
                Stop::Error(libc::EPERM)
            }
            _ => error.into(),
        })
    }

    /// The socket of a descriptor; [`Stop::Proceed`] if it is none of SCTP.
    pub(crate) fn kept(&self, fd: c_int) -> Answer<(Arc<Kept>, OwnedFd)> {
        let copy = self.copy(fd)?;
        let kept = self.state.table.find(&copy).ok_or(Stop::Proceed)?;
        Ok((kept, copy))
    }

    /// As [`Self::kept`], for the functions of `polypath_sockets::api`.
    pub(crate) fn socket(&self, fd: c_int) -> Answer<Socket> {
        let (kept, copy) = self.kept(fd)?;
        let attached = kept.attach(copy)?;
        Ok(Socket { kept, attached })
    }

    /// Runs a function that returns a negative number and sets errno if it fails. It may wait until
    /// the program's thread ends, or has to handle a signal.
    pub(crate) fn run(&self, mut work: impl FnMut() -> isize) -> Answer<isize> {
        let watch = &self.state.watch;
        loop {
            let (result, error) = watch.during(self.id, self.target, || {
                let result = work();
                (result, io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
            });
            if result >= 0 {
                return Ok(result);
            }
            if error != libc::EINTR {
                return Err(Stop::Error(error));
            }
            match watch.reason(self.id, self.target) {
                Reason::None => {}
                Reason::Over => return Err(Stop::Over),
                Reason::Restart => return Err(Stop::Error(ERESTARTSYS)),
                Reason::Interrupted => return Err(Stop::Error(libc::EINTR)),
            }
        }
    }
}
