//! The start of the program, with the filter.

use std::ffi::{OsString, c_int};
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::filter;
use crate::listener::Listener;
use crate::numbers;

/// Limit of the supervisor's own descriptors.
const MOST_DESCRIPTORS: u64 = 1 << 16;

/// Descriptors that the start of a program needs.
const FEW: u32 = 16;

/// Why the program did not start.
#[derive(Debug)]
pub(crate) enum StartError {
    /// The kernel does not permit the filter.
    Filter(io::Error),
    /// The program cannot be run.
    Program(io::Error),
    /// Another step has failed.
    Other(&'static str, io::Error),
    /// No numbers are left: too many descriptors are open, or the limit is too low.
    Descriptors,
}

impl StartError {
    /// Exit code, as that of a shell for programs that cannot be run.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Program(error) if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Program(_) => 126,
            _ => 1,
        }
    }
}

/// The error of the operating system without the number.
fn text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(error) => f.write_str(&text(error)),
            Self::Other(step, error) => write!(f, "cannot {step}: {}", text(error)),
            Self::Descriptors => f.write_str(
                "too many descriptors are open\nhint: a higher limit of descriptors (ulimit -n)",
            ),
            Self::Filter(error) => {
                write!(f, "the kernel does not let polypath answer system calls: {}", text(error))?;
                f.write_str(match error.raw_os_error() {
                    Some(libc::EBUSY) => {
                        "\nhint: another program answers them already, such as polypath run"
                    }
                    Some(libc::EINVAL | libc::ENOSYS) => {
                        "\nhint: it needs seccomp user notification, as Linux 5.19 has it"
                    }
                    Some(libc::EPERM | libc::EACCES) => {
                        "\nhint: a container or a security module may forbid seccomp"
                    }
                    _ => "",
                })
            }
        }
    }
}

/// A program that has been started.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) listener: Listener,
    /// The smallest number of an SCTP descriptor.
    pub(crate) base: u32,
}

/// Starts a program whose calls on SCTP sockets stop for an answer, with a mask of blocked signals.
/// The calling process has one thread.
pub(crate) fn start(
    program: &OsString,
    arguments: &[OsString],
    mask: libc::sigset_t,
) -> Result<Started, StartError> {
    let other = |step| move |error: io::Error| StartError::Other(step, error);
    let limit = limit().map_err(other("read the limits"))?;
    let base = numbers::base(limit.rlim_cur);
    let (own, theirs) = UnixDatagram::pair().map_err(other("open sockets"))?;
    // The calls that start the program must not stop: nothing answers them yet.
    if theirs.as_raw_fd() as u32 + FEW > base {
        return Err(StartError::Descriptors);
    }
    raise(limit);
    let mut command = Command::new(program);
    command.args(arguments);
    let prepare = move || {
        // SAFETY: the calls take numbers, and structures that live meanwhile.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            // Without the supervisor, the program's SCTP sockets are of no use.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
        let installed = filter::install(base);
        send(&theirs, installed.as_ref().map_err(|error| error.raw_os_error().unwrap_or(0)))?;
        installed.map(drop)
    };
    // SAFETY: the process has one thread, so that the child may do whatever its parent may.
    unsafe { command.pre_exec(prepare) };
    let spawned = command.spawn();
    // With the copy of `theirs`: there is an end if there was no child.
    drop(command);
    match (spawned, receive(&own)) {
        (Ok(child), Ok(Ok(listener))) => {
            Ok(Started { child, listener: Listener::new(listener), base })
        }
        (Err(error), Ok(Ok(_))) => Err(StartError::Program(error)),
        (_, Ok(Err(refused))) => Err(StartError::Filter(refused)),
        (Err(error), _) | (_, Err(error)) => Err(StartError::Other("start a process", error)),
    }
}

/// The limit of descriptors.
fn limit() -> io::Result<libc::rlimit> {
    // SAFETY: all-zero bytes are a valid structure, which lives during the call.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        match libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) {
            0 => Ok(limit),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Raises the supervisor's own limit: it has descriptors for each socket of all processes.
fn raise(mut limit: libc::rlimit) {
    limit.rlim_cur = limit.rlim_cur.max(limit.rlim_max.min(MOST_DESCRIPTORS));
    // SAFETY: the structure lives during the call. Without success the old limit stays.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
}

/// Sends the descriptor that receives the notifications, or an error number.
fn send(to: &UnixDatagram, installed: Result<&OwnedFd, c_int>) -> io::Result<()> {
    let number = installed.err().unwrap_or(0).to_ne_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let attached = installed.map(|fd| [fd.as_fd()]);
    if let Ok(attached) = &attached {
        control.push(SendAncillaryMessage::ScmRights(attached));
    }
    rustix::net::sendmsg(to, &[IoSlice::new(&number)], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives what the child has sent; an error if it has not come so far.
fn receive(from: &UnixDatagram) -> io::Result<Result<OwnedFd, io::Error>> {
    let mut number = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(from, &mut [IoSliceMut::new(&mut number)], &mut control, flags)?;
    let attached = control.drain().find_map(|one| match one {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(attached.ok_or_else(|| io::Error::from_raw_os_error(i32::from_ne_bytes(number))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listener_or_the_reason_arrives() {
        let (one, other) = UnixDatagram::pair().unwrap();
        assert_eq!(receive(&other).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        send(&one, Err(libc::EBUSY)).unwrap();
        assert_eq!(receive(&other).unwrap().unwrap_err().raw_os_error(), Some(libc::EBUSY));
        let file = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        send(&one, Ok(&file)).unwrap();
        assert!(receive(&other).unwrap().is_ok());
    }

    #[test]
    fn errors_explain_what_the_kernel_lacks() {
        let refused = |number| StartError::Filter(io::Error::from_raw_os_error(number)).to_string();
        assert!(refused(libc::EBUSY).contains("another program answers them already"));
        assert!(refused(libc::EINVAL).contains("Linux 5.19"));
        assert!(refused(libc::EACCES).contains("may forbid seccomp"));
        let missing = StartError::Program(io::Error::from_raw_os_error(libc::ENOENT));
        assert_eq!(
            (missing.code(), missing.to_string().as_str()),
            (127, "no such file or directory")
        );
    }
}
