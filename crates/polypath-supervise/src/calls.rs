//! The answers to the program's system calls, by the functions of `polypath_sockets::api` on copies
//! of its memory. Those that move messages are in `messages`, options in `options`.

use std::ffi::{c_int, c_ulong};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use libc::{sockaddr, socklen_t};
use polypath_sockets::api;
use polypath_sockets::foreign::{self, Kept};

use crate::call::{Answer, Call, ERESTARTSYS, Socket, Stop};
use crate::names::{Room, STORAGE};
use crate::numbers::{self, Number};

/// The result of a function that returns 0.
pub(crate) fn done(result: Answer<isize>) -> Answer {
    result.map(|value| value as i64)
}

/// socket(2).
pub(crate) fn open(call: &Call<'_>) -> Answer {
    let (family, kind, protocol) = (call.int(0), call.int(1), call.int(2));
    let mut known = true;
    let made = call.run(|| {
        api::socket(family, kind, protocol, print).map_or_else(
            || {
                known = false;
                0
            },
            |fd| fd as isize,
        )
    })?;
    if !known {
        return Err(Stop::Proceed);
    }
    let program = adopt(call, made as c_int)?;
    give(call, program, 0, kind & libc::SOCK_CLOEXEC != 0)
}

/// Prints the report of `polypath run --doctor`.
fn print(report: &str) {
    eprint!("{report}");
}

/// Adds a new socket to the table.
pub(crate) fn adopt(call: &Call<'_>, fd: c_int) -> Answer<OwnedFd> {
    let (kept, program) = Kept::new(fd)?;
    call.state.table.add(&program, kept);
    Ok(program)
}

/// A number for a new descriptor of the program.
fn choose(call: &Call<'_>, from: u32) -> Answer<Number> {
    let number = numbers::choose(call.target, call.state.base, from);
    call.check()?;
    Ok(number?)
}

/// Gives the program a new descriptor, whose number is at least `from`.
pub(crate) fn give(call: &Call<'_>, fd: OwnedFd, from: u32, close_on_exec: bool) -> Answer {
    let number = choose(call, from)?;
    call.state.listener.give(call.id, &fd, number.number, close_on_exec)?;
    Ok(number.number.into())
}

/// close(2). The kernel closes the descriptor.
pub(crate) fn close(call: &Call<'_>) -> Answer {
    about_to_close(call, call.int(0))?;
    Err(Stop::Proceed)
}

fn about_to_close(call: &Call<'_>, fd: c_int) -> Answer<()> {
    let (kept, copy) = call.kept(fd)?;
    kept.about_to_close();
    drop(copy);
    call.state.table.report();
    Ok(())
}

/// dup(2), and fcntl(2) with F_DUPFD: the number of the new descriptor is at least `from`.
pub(crate) fn duplicate(call: &Call<'_>, from: u32, close_on_exec: bool) -> Answer {
    let (_, copy) = call.kept(call.int(0))?;
    give(call, copy, from, close_on_exec)
}

/// dup2(2) and dup3(2). Calls on a descriptor with a small number do not stop.
pub(crate) fn replace(call: &Call<'_>) -> Answer {
    let (from, to) = (call.int(0), call.int(1));
    match call.kept(from) {
        Ok(_) if (0..call.state.base).contains(&u32::try_from(to).unwrap_or(u32::MAX)) => {
            foreign::missed("dup2 of an SCTP socket to a small number, by system calls");
            return Err(Stop::Error(libc::EOPNOTSUPP));
        }
        Ok(_) | Err(Stop::Proceed) => {}
        Err(stop) => return Err(stop),
    }
    if from != to {
        about_to_close(call, to)?;
    }
    Err(Stop::Proceed)
}

/// getsockname(2) and getpeername(2).
pub(crate) fn name(
    call: &Call<'_>,
    work: impl Fn(*mut sockaddr, *mut socklen_t) -> c_int,
) -> Answer {
    let (mut bytes, mut used) = ([0; STORAGE], STORAGE as socklen_t);
    call.run(|| work(bytes.as_mut_ptr().cast(), &raw mut used) as isize)?;
    let mut room = Room::read(call, call.args[1], call.args[2])?;
    (room.bytes, room.used) = (bytes, used);
    room.write(call).map(|()| 0)
}

pub(crate) fn accept(call: &Call<'_>, fd: c_int, flags: c_int) -> Answer {
    let to = call.args[1];
    let mut room = (to != 0).then(|| Room::read(call, to, call.args[2])).transpose()?;
    // The association waits for the next call if there is no number.
    drop(choose(call, 0)?);
    let made = call.run(|| {
        let (mut bytes, mut used) = ([0; STORAGE], STORAGE as socklen_t);
        // SAFETY: the buffer is valid for its length.
        let made = unsafe { api::accept4(fd, bytes.as_mut_ptr().cast(), &raw mut used, flags) };
        if let Some(room) = &mut room {
            (room.bytes, room.used) = (bytes, used);
        }
        made as isize
    })?;
    let program = adopt(call, made as c_int)?;
    if let Some(room) = room {
        room.write(call)?;
    }
    give(call, program, 0, flags & libc::SOCK_CLOEXEC != 0)
}

/// A call that may connect, and wait. The kernel starts it again after a signal: it then waits for
/// the connection that is in progress.
pub(crate) fn connecting(
    call: &Call<'_>,
    socket: &Socket,
    attempt: impl FnMut() -> isize,
) -> Answer {
    let interrupted = &call.state.interrupted;
    let key = (call.target.0, Arc::as_ptr(&socket.kept).addr());
    let again = interrupted.remove(key);
    let result = match call.run(attempt) {
        Err(Stop::Error(libc::EALREADY)) if again => wait_connected(call, socket.fd()),
        Err(Stop::Error(libc::EISCONN)) if again => Ok(0),
        result => result,
    };
    if result == Err(Stop::Error(ERESTARTSYS)) {
        interrupted.insert(key);
    }
    done(result)
}

/// Waits for a connection that is in progress, from now on as long as SO_SNDTIMEO permits.
fn wait_connected(call: &Call<'_>, fd: c_int) -> Answer<isize> {
    let mut limit = libc::timeval { tv_sec: 0, tv_usec: 0 };
    option(call, fd, libc::SO_SNDTIMEO, &mut limit)?;
    let limit = limit.tv_sec.saturating_mul(1000).saturating_add((limit.tv_usec + 999) / 1000);
    let limit = if limit == 0 { -1 } else { c_int::try_from(limit).unwrap_or(c_int::MAX) };
    let ready = call.run(|| {
        let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
        // SAFETY: `poll` is one valid entry.
        unsafe { libc::poll(&raw mut poll, 1, limit) as isize }
    })?;
    if ready == 0 {
        return Err(Stop::Error(libc::EINPROGRESS));
    }
    let mut error: c_int = 0;
    option(call, fd, libc::SO_ERROR, &mut error)?;
    if error == 0 { Ok(0) } else { Err(Stop::Error(error)) }
}

/// Reads an option of the level of sockets whose value is a `T`.
fn option<T>(call: &Call<'_>, fd: c_int, name: c_int, value: &mut T) -> Answer<isize> {
    let mut length = size_of::<T>() as socklen_t;
    call.run(|| {
        let at = (&raw mut *value).cast();
        // SAFETY: the value lives during the call, and the length is its own.
        unsafe { api::getsockopt(fd, libc::SOL_SOCKET, name, at, &raw mut length) as isize }
    })
}

/// ioctl(2).
pub(crate) fn control(call: &Call<'_>, fd: c_int) -> Answer {
    let request = call.args[1] as c_ulong;
    if ![libc::FIONREAD, libc::TIOCOUTQ, api::SIOCATMARK].contains(&request) {
        return Err(Stop::Proceed);
    }
    let mut size: c_int = 0;
    let argument = (&raw mut size).expose_provenance();
    // SAFETY: the requests write an int, which lives during the call.
    call.run(|| unsafe { api::ioctl(fd, request, argument) as isize })?;
    call.check()?;
    call.memory.write(call.args[2], &size.to_ne_bytes())?;
    Ok(0)
}
