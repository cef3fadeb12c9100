//! getsockopt(2) and setsockopt(2).

use std::ffi::c_int;

use libc::socklen_t;
use polypath_sockets::{api, foreign};

use crate::call::{Answer, Call, Socket, Stop};
use crate::calls::{adopt, connecting, done, give};

/// Largest value that is passed on. None is larger.
const LARGEST: usize = 1 << 17;

const SCTP: c_int = libc::IPPROTO_SCTP;

// Options of `linux/sctp.h` that have more in them than a value.
const STATUS: c_int = 14;
const BINDX_ADD: c_int = 100;
const PEELOFF: c_int = 102;
const CONNECTX: c_int = 110;
const CONNECTX3: c_int = 111;
const PEELOFF_FLAGS: c_int = 122;

pub(crate) fn set(call: &Call<'_>, socket: &Socket) -> Answer {
    let fd = socket.fd();
    let (level, name) = (call.int(1), call.int(2));
    // Their values point to more.
    if level == libc::SOL_SOCKET
        && [libc::SO_ATTACH_FILTER, libc::SO_ATTACH_REUSEPORT_CBPF].contains(&name)
    {
        foreign::missed("setsockopt with a filter, by system calls");
        return Err(Stop::Error(libc::EOPNOTSUPP));
    }
    let size = usize::try_from(call.int(4)).map_err(|_| libc::EINVAL)?;
    let mut value = vec![0; size.min(LARGEST)];
    let there = call.memory.read(call.args[3], &mut value);
    call.check()?;
    // The function finds out what is wrong with a null pointer.
    let at = if there.is_ok() { value.as_ptr() } else { std::ptr::null() };
    let length = value.len() as socklen_t;
    if level == SCTP && name == BINDX_ADD {
        // As before bind(2): a socket that has just been closed has no address any more.
        call.state.table.sweep();
    }
    let attempt = || {
        // SAFETY: the value is valid for its length, or null.
        unsafe { api::setsockopt(fd, level, name, at.cast(), length) as isize }
    };
    if level == SCTP && name == CONNECTX {
        connecting(call, socket, attempt)
    } else {
        done(call.run(attempt))
    }
}

pub(crate) fn get(call: &Call<'_>, socket: &Socket) -> Answer {
    let (level, name) = (call.int(1), call.int(2));
    let size = call.memory.read_u32(call.args[4])? as c_int;
    let size = usize::try_from(size).map_err(|_| libc::EINVAL)?;
    // Some options read what is there.
    let mut value = vec![0u8; size.min(LARGEST)];
    if call.args[3] == 0 {
        return Err(Stop::Error(libc::EFAULT));
    }
    call.memory.read(call.args[3], &mut value)?;
    call.check()?;
    let mut length = value.len() as socklen_t;
    match (level, name) {
        (SCTP, CONNECTX3) => connect(call, socket, &mut value, &mut length)?,
        _ => read(call, socket.fd(), (level, name), &mut value, &mut length)?,
    }
    let flags = if name == PEELOFF_FLAGS { int(&value, 8) } else { 0 };
    if level == SCTP && (name == PEELOFF || name == PEELOFF_FLAGS) {
        let program = adopt(call, int(&value, 4))?;
        let number = give(call, program, 0, flags & libc::SOCK_CLOEXEC != 0)?;
        put(&mut value, 4, number as c_int);
    }
    call.check()?;
    call.memory.write(call.args[3], &value[..(length as usize).min(value.len())])?;
    call.memory.write(call.args[4], &length.to_ne_bytes())?;
    Ok(0)
}

/// The function of the C library.
fn read(
    call: &Call<'_>,
    fd: c_int,
    (level, name): (c_int, c_int),
    value: &mut [u8],
    length: &mut socklen_t,
) -> Answer<()> {
    let at = value.as_mut_ptr();
    // SAFETY: the value is valid for its length.
    call.run(|| unsafe { api::getsockopt(fd, level, name, at.cast(), length) as isize }).map(drop)
}

/// `sctp_connectx`: `struct sctp_getaddrs_old` points to the addresses. The result is the id of the
/// association.
fn connect(
    call: &Call<'_>,
    socket: &Socket,
    value: &mut [u8],
    length: &mut socklen_t,
) -> Answer<()> {
    let fd = socket.fd();
    let before = value.to_vec();
    let mut addresses = vec![0u8; usize::try_from(int(value, 4)).unwrap_or(0).min(LARGEST)];
    if let Some(at) = value.get(8..16).and_then(|at| at.try_into().ok()) {
        call.memory.read(u64::from_ne_bytes(at), &mut addresses)?;
        call.check()?;
        put(value, 4, addresses.len() as c_int);
        let at = addresses.as_ptr().expose_provenance();
        value[8..16].copy_from_slice(&at.to_ne_bytes());
    }
    let mut id = None;
    let size = *length;
    let result = connecting(call, socket, || {
        let mut copy = value.to_vec();
        *length = size;
        let at = copy.as_mut_ptr().cast();
        // SAFETY: the value is valid for its length, and has a pointer to the addresses.
        let done = unsafe { api::getsockopt(fd, SCTP, CONNECTX3, at, length) };
        // Not if it has failed.
        if *length == 4 {
            id = Some(int(&copy, 0));
        }
        done as isize
    });
    // It was connected when it was called for the second time, after a signal.
    if result.is_ok() && id.is_none() {
        let (mut status, mut status_length) = ([0u8; 256], 256);
        read(call, fd, (SCTP, STATUS), &mut status, &mut status_length)?;
        (id, *length) = (Some(int(&status, 0)), 4);
    }
    value.copy_from_slice(&before);
    if let Some(id) = id {
        put(value, 0, id);
    }
    if result == Err(Stop::Error(libc::EINPROGRESS)) {
        call.check()?;
        call.memory.write(call.args[3], &value[..4])?;
        call.memory.write(call.args[4], &length.to_ne_bytes())?;
    }
    result.map(drop)
}

fn int(value: &[u8], at: usize) -> c_int {
    let bytes = value.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, c_int::from_ne_bytes)
}

fn put(value: &mut [u8], at: usize, number: c_int) {
    if let Some(bytes) = value.get_mut(at..at + 4) {
        bytes.copy_from_slice(&number.to_ne_bytes());
    }
}
