//! Calls that move messages.

use std::ffi::{c_int, c_void};

use libc::{iovec, mmsghdr, msghdr, socklen_t};
use polypath_sockets::api;
use polypath_sockets::foreign::LARGEST_MESSAGE;

use crate::call::{Answer, Call, Stop};
use crate::memory::{self, Place};
use crate::names::{Name, Room};

/// Parts of a message that one call may have.
const MOST_PARTS: usize = 1023;

/// Messages that one call may move.
const MOST_MESSAGES: u32 = 1024;

/// Largest size of control messages. Linux's default limit is a little more.
const MOST_CONTROL: usize = 1 << 16;

// Offsets of the fields of `struct msghdr`.
const NAME_LENGTH: u64 = 8;
const CONTROL_LENGTH: u64 = 40;
const FLAGS: u64 = 48;

pub(crate) fn answer(call: &Call<'_>, fd: c_int) -> Answer {
    let args = &call.args;
    match call.number {
        libc::SYS_write => {
            let bytes = outgoing(call, &[Place::new(args[1], size(args[2])?)])?;
            send(call, fd, &bytes, 0)
        }
        libc::SYS_writev | libc::SYS_pwritev2 => {
            let bytes = outgoing(call, &parts(call, args[1], args[2], libc::EINVAL)?)?;
            send(call, fd, &bytes, 0)
        }
        libc::SYS_sendto => {
            let name = Name::read(call, args[4], call.int(5))?;
            let bytes = outgoing(call, &[Place::new(args[1], size(args[2])?)])?;
            send_to(call, fd, &bytes, &name)
        }
        libc::SYS_sendmsg => send_message(call, fd, args[1], call.int(2)),
        libc::SYS_sendmmsg => {
            each(call, call.int(3), |at, flags| send_message(call, fd, at, flags))
        }
        libc::SYS_read => receive(call, fd, &[Place::new(args[1], size(args[2])?)]),
        libc::SYS_readv | libc::SYS_preadv2 => {
            receive(call, fd, &parts(call, args[1], args[2], libc::EINVAL)?)
        }
        libc::SYS_recvfrom => receive_from(call, fd),
        libc::SYS_recvmsg => receive_message(call, fd, args[1], call.int(2)),
        libc::SYS_recvmmsg => {
            let mut first = true;
            each(call, call.int(3), |at, flags| {
                // Linux waits for all of them; fewer are allowed, too, and lose none to a signal.
                let wait = if std::mem::take(&mut first) { 0 } else { libc::MSG_DONTWAIT };
                match receive_message(call, fd, at, flags & !libc::MSG_WAITFORONE | wait) {
                    Ok(0) => Err(Stop::Error(0)),
                    result => result,
                }
            })
        }
        // The filter stops no other.
        _ => Err(Stop::Proceed),
    }
}

/// A size that the program passes: EINVAL if it is no result of a call.
fn size(size: u64) -> Answer<usize> {
    isize::try_from(size).map(isize::unsigned_abs).map_err(|_| Stop::Error(libc::EINVAL))
}

/// The parts of a message. With too many of them, the call fails with `error`.
fn parts(call: &Call<'_>, at: u64, count: u64, error: c_int) -> Answer<Vec<Place>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= MOST_PARTS).ok_or(error)?;
    let parts = call.memory.parts(at, count)?;
    memory::check(&parts)?;
    memory::total(&parts)?;
    call.check()?;
    Ok(parts)
}

/// The bytes of a message, which the program's function checks. One that is too large is as long as
/// is needed for that.
fn outgoing(call: &Call<'_>, places: &[Place]) -> Answer<Vec<u8>> {
    let size = memory::total(places)?;
    let mut bytes = vec![0; size.min(LARGEST_MESSAGE + 1)];
    if size <= LARGEST_MESSAGE {
        memory::check(places)?;
        call.memory.gather(places, &mut bytes)?;
        call.check()?;
    }
    Ok(bytes)
}

/// Runs a function that sends. EPIPE comes with SIGPIPE unless the flags prevent it: for the
/// program's thread.
fn sending(call: &Call<'_>, flags: c_int, mut work: impl FnMut(c_int) -> isize) -> Answer {
    let result = call.run(|| work(flags | libc::MSG_NOSIGNAL));
    if result == Err(Stop::Error(libc::EPIPE))
        && flags & libc::MSG_NOSIGNAL == 0
        && let Ok(status) = call.target.status()
    {
        call.check()?;
        call.target.signal(status.process, libc::SIGPIPE);
    }
    result.map(|size| size as i64)
}

fn send(call: &Call<'_>, fd: c_int, bytes: &[u8], flags: c_int) -> Answer {
    sending(call, flags, |flags| {
        // SAFETY: the bytes are valid for their length.
        unsafe { api::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) }
    })
}

fn send_to(call: &Call<'_>, fd: c_int, bytes: &[u8], name: &Name) -> Answer {
    sending(call, call.int(3), |flags| {
        let data = bytes.as_ptr().cast();
        // SAFETY: the bytes are valid for their length, the address as for bind(2).
        unsafe { api::sendto(fd, data, bytes.len(), flags, name.pointer(), name.length()) }
    })
}

/// A `struct msghdr` of the program.
struct Message {
    name: u64,
    name_length: u32,
    parts: u64,
    count: u64,
    control: u64,
    control_length: usize,
}

impl Message {
    fn read(call: &Call<'_>, at: u64) -> Answer<Self> {
        let mut bytes = [0; size_of::<msghdr>()];
        call.memory.read(at, &mut bytes)?;
        call.check()?;
        let number = |at: usize| {
            bytes[at..at + 8].iter().rev().fold(0, |all, one| all << 8 | u64::from(*one))
        };
        Ok(Self {
            name: number(0),
            name_length: number(NAME_LENGTH as usize) as u32,
            parts: number(16),
            count: number(24),
            control: number(32),
            control_length: number(CONTROL_LENGTH as usize) as usize,
        })
    }

    /// A buffer for control messages, aligned as they must be.
    fn control(&self) -> Vec<u64> {
        vec![0; self.control_length.min(MOST_CONTROL).div_ceil(8)]
    }
}

/// sendmsg(2).
fn send_message(call: &Call<'_>, fd: c_int, at: u64, flags: c_int) -> Answer {
    let message = Message::read(call, at)?;
    let name = Name::read(call, message.name, message.name_length as c_int)?;
    let places = parts(call, message.parts, message.count, libc::EMSGSIZE)?;
    if message.control_length > MOST_CONTROL {
        return Err(Stop::Error(libc::ENOBUFS));
    }
    let mut control = message.control();
    let length = message.control_length;
    // SAFETY: the buffer has room for the length, and any bytes are valid numbers.
    let bytes = unsafe { std::slice::from_raw_parts_mut(control.as_mut_ptr().cast(), length) };
    call.memory.read(message.control, bytes)?;
    let mut data = outgoing(call, &places)?;
    sending(call, flags, |flags| {
        let mut part = iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
        // SAFETY: all-zero bytes are a valid `msghdr`; its pointers are valid during the call, the
        // address as for bind(2).
        unsafe {
            let mut header: msghdr = std::mem::zeroed();
            header.msg_name = name.pointer().cast_mut().cast();
            header.msg_namelen = name.length();
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = length as _;
            api::sendmsg(fd, &raw const header, flags)
        }
    })
}

/// A buffer for a message that the program has this room for.
fn buffer(places: &[Place]) -> Answer<Vec<u8>> {
    memory::check(places)?;
    Ok(vec![0; memory::total(places)?.min(LARGEST_MESSAGE)])
}

/// Writes a message to the program's parts; the number of its bytes is the result.
fn deliver(call: &Call<'_>, places: &[Place], bytes: &[u8]) -> Answer {
    call.check()?;
    call.memory.scatter(places, bytes)?;
    Ok(bytes.len() as i64)
}

/// read(2) and readv(2).
fn receive(call: &Call<'_>, fd: c_int, places: &[Place]) -> Answer {
    let mut data = buffer(places)?;
    let (at, room) = (data.as_mut_ptr().cast::<c_void>(), data.len());
    // SAFETY: the buffer is valid for its length.
    let size = call.run(|| unsafe { api::read(fd, at, room) })?;
    deliver(call, places, &data[..size as usize])
}

fn receive_from(call: &Call<'_>, fd: c_int) -> Answer {
    let args = &call.args;
    let places = [Place::new(args[1], size(args[2])?)];
    let mut name = match args[4] {
        0 => None,
        // As in Linux, without a length there is no name.
        _ if args[5] == 0 => None,
        to => Some(Room::read(call, to, args[5])?),
    };
    let mut data = buffer(&places)?;
    let flags = call.int(3);
    let size = call.run(|| {
        let (at, room) = (data.as_mut_ptr().cast(), data.len());
        match &mut name {
            // SAFETY: the buffers are valid for their lengths.
            Some(name) => unsafe {
                name.used = name.bytes.len() as socklen_t;
                let to = name.bytes.as_mut_ptr().cast();
                api::recvfrom(fd, at, room, flags, to, &raw mut name.used)
            },
            // SAFETY: as above.
            None => unsafe { api::recv(fd, at, room, flags) },
        }
    })?;
    if let Some(name) = name {
        name.write(call)?;
    }
    deliver(call, &places, &data[..size as usize])
}

/// recvmsg(2).
fn receive_message(call: &Call<'_>, fd: c_int, at: u64, flags: c_int) -> Answer {
    let message = Message::read(call, at)?;
    let places = parts(call, message.parts, message.count, libc::EMSGSIZE)?;
    let mut data = buffer(&places)?;
    let mut control = message.control();
    let mut name = [0u8; 128];
    let name_room = (message.name_length as usize).min(name.len());
    let control_room =
        if message.control == 0 { 0 } else { message.control_length.min(MOST_CONTROL) };
    memory::check(&[
        Place::new(message.name, if message.name == 0 { 0 } else { name_room }),
        Place::new(message.control, control_room),
    ])?;
    // SAFETY: all-zero bytes are a valid `msghdr`.
    let mut header: msghdr = unsafe { std::mem::zeroed() };
    let size = call.run(|| {
        let mut part = iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_name =
            if message.name == 0 { std::ptr::null_mut() } else { name.as_mut_ptr().cast() };
        header.msg_namelen = name_room as socklen_t;
        header.msg_control =
            if message.control == 0 { std::ptr::null_mut() } else { control.as_mut_ptr().cast() };
        header.msg_controllen = control_room as _;
        // SAFETY: the pointers of the message are valid for their lengths during the call.
        unsafe { api::recvmsg(fd, &raw mut header, flags) }
    })?;
    call.check()?;
    let written = header.msg_namelen as usize;
    if message.name != 0 {
        call.memory.write(message.name, &name[..written.min(name_room)])?;
    }
    let length = header.msg_controllen as usize;
    // SAFETY: the function has filled in the buffer up to this length, which has room for it.
    let bytes = unsafe {
        std::slice::from_raw_parts(control.as_ptr().cast::<u8>(), length.min(control_room))
    };
    call.memory.write(message.control, bytes)?;
    call.memory.write(at + NAME_LENGTH, &header.msg_namelen.to_ne_bytes())?;
    call.memory.write(at + CONTROL_LENGTH, &length.to_ne_bytes())?;
    call.memory.write(at + FLAGS, &header.msg_flags.to_ne_bytes())?;
    deliver(call, &places, &data[..size as usize])
}

/// sendmmsg(2) and recvmmsg(2): runs `work` for each message until one fails; the result is the
/// number of messages, or the error of the first one.
fn each(call: &Call<'_>, flags: c_int, mut work: impl FnMut(u64, c_int) -> Answer) -> Answer {
    let count = (call.args[2] as u32).min(MOST_MESSAGES);
    for done in 0..count {
        let at = call.args[1] + u64::from(done) * size_of::<mmsghdr>() as u64;
        match work(at, flags) {
            Ok(size) => {
                let size = size as u32;
                call.memory.write(at + size_of::<msghdr>() as u64, &size.to_ne_bytes())?;
            }
            Err(Stop::Error(0)) => return Ok(done.into()),
            Err(Stop::Error(_)) if done > 0 => return Ok(done.into()),
            Err(stop) => return Err(stop),
        }
    }
    Ok(count.into())
}
