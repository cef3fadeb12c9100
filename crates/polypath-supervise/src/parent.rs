//! The parent of the program: it passes signals on, and ends as the program does.

use std::ffi::{OsString, c_int};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::ExitCode;

use libc::pid_t;
use polypath_sockets::api;

use crate::child::{self, StartError};
use crate::supervisor::Supervisor;

/// Signals that are passed on.
const PASSED: &[c_int] =
    &[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

/// Those that end this process once the program has ended, even if others that it has started run.
const ENDING: &[c_int] = &[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Time in milliseconds after which sockets that are over are looked for.
const SOON: c_int = 20;

/// Runs the program until it and all processes that it has started have ended.
pub(crate) fn run(program: &OsString, arguments: &[OsString]) -> ExitCode {
    match start(program, arguments) {
        Ok(status) => end_as(status),
        Err(error) => {
            match &error {
                StartError::Program(_) => {
                    eprintln!("polypath: cannot run {}: {error}", program.to_string_lossy());
                }
                _ => eprintln!("polypath: {error}"),
            }
            ExitCode::from(error.code())
        }
    }
}

/// The status of the program, as waitpid(2) reports it.
fn start(program: &OsString, arguments: &[OsString]) -> Result<c_int, StartError> {
    let other = |step| move |error: io::Error| StartError::Other(step, error);
    // Orphans stay descendants of this process, which may trace its descendants.
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    let (signals, mask) = signals().map_err(other("receive signals"))?;
    let started = child::start(program, arguments, mask)?;
    let process = started.child.id() as pid_t;
    let supervisor = Supervisor::start(started.listener, started.base);
    let supervisor = supervisor.map_err(other("start a thread"))?;
    let status = wait(&supervisor, &signals, process);
    api::finish();
    supervisor.state.table.clear();
    Ok(status)
}

/// Blocks the signals that are passed on, and SIGCHLD, and opens a descriptor that reports them.
/// The second value has the signals that were blocked before.
fn signals() -> io::Result<(OwnedFd, libc::sigset_t)> {
    // SAFETY: all-zero bytes are a valid set, which lives during the calls.
    let (fd, old) = unsafe {
        let (mut set, mut old): (libc::sigset_t, _) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&raw mut set);
        for signal in PASSED.iter().chain(&[libc::SIGCHLD]) {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut old);
        (libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK), old)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made the descriptor.
    Ok((unsafe { OwnedFd::from_raw_fd(fd) }, old))
}

/// Waits for the end of all processes with the filter. The result is the status of the program.
fn wait(supervisor: &Supervisor, signals: &OwnedFd, process: pid_t) -> c_int {
    let mut status = None;
    // The program closes a socket.
    let mut closes = false;
    // A signal that ends was sent.
    let mut ending = false;
    loop {
        let reports = supervisor.state.table.reports().as_raw_fd();
        let mut polls = [
            libc::pollfd { fd: signals.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: reports, events: libc::POLLIN, revents: 0 },
            // POLLHUP alone.
            libc::pollfd { fd: supervisor.state.listener.number(), events: 0, revents: 0 },
        ];
        // SAFETY: the entries are valid.
        let count = unsafe { libc::poll(polls.as_mut_ptr(), 3, if closes { SOON } else { -1 }) };
        let reported = polls[1].revents != 0;
        if reported {
            supervisor.state.table.take_reports();
        }
        if closes || reported {
            supervisor.state.table.sweep();
        }
        closes = reported;
        if polls[0].revents != 0 || count < 0 {
            while let Some((signal, sent)) = next(signals) {
                ending |= ENDING.contains(&signal);
                if status.is_none() && signal != libc::SIGCHLD && sent {
                    // SAFETY: the call takes numbers. Nothing has waited for the process yet.
                    unsafe { libc::kill(process, signal) };
                }
            }
            status = status.or_else(|| reap(process));
        }
        if let Some(status) = status
            && (ending || polls[2].revents & libc::POLLHUP != 0)
        {
            return status;
        }
    }
}

/// The next signal, and whether a process has sent it: the terminal sends its signals to the
/// program, too.
fn next(signals: &OwnedFd) -> Option<(c_int, bool)> {
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: all-zero bytes are a valid structure, which has room for a signal.
    let (read, signal) = unsafe {
        let mut signal: libc::signalfd_siginfo = std::mem::zeroed();
        let read = libc::read(signals.as_raw_fd(), (&raw mut signal).cast(), size);
        (read, signal)
    };
    let sent = signal.ssi_code <= 0;
    (usize::try_from(read) == Ok(size)).then_some((signal.ssi_signo as c_int, sent))
}

/// Takes the children that have ended, which includes orphans, and returns the program's status.
fn reap(process: pid_t) -> Option<c_int> {
    let mut found = None;
    loop {
        let mut status = 0;
        // SAFETY: the status is an int that lives during the call.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if ended <= 0 {
            return found;
        }
        if ended == process {
            found = Some(status);
        }
    }
}

/// Ends with the exit code of the program, or by the signal that has ended it.
fn end_as(status: c_int) -> ExitCode {
    if !libc::WIFSIGNALED(status) {
        return ExitCode::from(libc::WEXITSTATUS(status) as u8);
    }
    let signal = libc::WTERMSIG(status);
    // SAFETY: the structures are valid during the calls.
    unsafe {
        // The program has left its memory, if at all.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    ExitCode::from((128 + signal) as u8)
}
