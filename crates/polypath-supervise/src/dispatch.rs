//! Which function answers which system call.

use std::ffi::c_long;

use polypath_sockets::api;

use crate::call::{Answer, Call, Socket, Stop};
use crate::calls::{accept, close, connecting, control, done, duplicate, name, open, replace};
use crate::names::Name;
use crate::{messages, options};

/// Answers a call.
pub(crate) fn answer(call: &Call<'_>) -> Answer {
    let fd = call.int(0);
    let number: c_long = call.number;
    match number {
        libc::SYS_socket => open(call),
        libc::SYS_close => close(call),
        libc::SYS_dup => duplicate(call, 0, false),
        libc::SYS_fcntl => {
            let from = u32::try_from(call.int(2)).map_err(|_| libc::EINVAL)?;
            duplicate(call, from, call.int(1) == libc::F_DUPFD_CLOEXEC)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_dup2 => replace(call),
        libc::SYS_dup3 => replace(call),
        libc::SYS_splice => match (call.kept(fd), call.kept(call.int(2))) {
            (Err(Stop::Proceed), Err(Stop::Proceed)) => Err(Stop::Proceed),
            (Err(Stop::Over), _) | (_, Err(Stop::Over)) => Err(Stop::Over),
            // Programs then copy instead.
            _ => Err(Stop::Error(libc::EINVAL)),
        },
        _ => on_socket(call, &call.socket(fd)?),
    }
}

fn on_socket(call: &Call<'_>, socket: &Socket) -> Answer {
    let (fd, args) = (socket.fd(), &call.args);
    match call.number {
        libc::SYS_bind => {
            let name = Name::read(call, args[1], call.int(2))?;
            call.state.table.sweep();
            // SAFETY: the address is valid for its length, or longer than the function accepts.
            done(call.run(|| unsafe { api::bind(fd, name.pointer(), name.length()) } as isize))
        }
        libc::SYS_listen => {
            call.state.table.sweep();
            let backlog = call.int(1);
            // SAFETY: the function takes no pointer.
            done(call.run(|| unsafe { api::listen(fd, backlog) } as isize))
        }
        libc::SYS_connect => {
            let name = Name::read(call, args[1], call.int(2))?;
            connecting(call, socket, || {
                // SAFETY: as for bind.
                unsafe { api::connect(fd, name.pointer(), name.length()) as isize }
            })
        }
        libc::SYS_accept => accept(call, fd, 0),
        libc::SYS_accept4 => accept(call, fd, call.int(3)),
        libc::SYS_shutdown => {
            let how = call.int(1);
            // SAFETY: the function takes no pointer.
            done(call.run(|| unsafe { api::shutdown(fd, how) } as isize))
        }
        libc::SYS_getsockname => name(call, |to, length| {
            // SAFETY: the buffer is valid for its length.
            unsafe { api::getsockname(fd, to, length) }
        }),
        libc::SYS_getpeername => name(call, |to, length| {
            // SAFETY: as above.
            unsafe { api::getpeername(fd, to, length) }
        }),
        libc::SYS_setsockopt => options::set(call, socket),
        libc::SYS_getsockopt => options::get(call, socket),
        libc::SYS_ioctl => control(call, fd),
        libc::SYS_sendfile => Err(Stop::Error(libc::EINVAL)),
        libc::SYS_preadv2 | libc::SYS_pwritev2 => {
            api::at_position(args[3].cast_signed(), call.int(5)).map_err(Stop::Error)?;
            messages::answer(call, fd)
        }
        _ => messages::answer(call, fd),
    }
}
