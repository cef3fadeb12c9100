//! Messages from the program's threads to the core: they do not cross the socket pair.
//!
//! While the send buffer is full, a thread that may wait does so here, and fillers keep the
//! program's descriptor unwritable for one that may not.

use std::ffi::c_int;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use libc::{iovec, msghdr};
use polypath::{Association, Message, SendError};

use crate::errno::{self, Errno};
use crate::frame::{HEADER, Header, Kind, PAYLOAD};
use crate::link::Link;
use crate::socket::{self, Sock, is_nonblocking};
use crate::{memory, open, private, real};

/// Passes a message to the core. `None` if the core does not take it: the end of the association is
/// about to be reported by the socket pair.
pub(crate) fn send(
    fd: c_int,
    sock: &Arc<Sock>,
    link: &Link,
    message: Message,
    flags: c_int,
) -> Errno<Option<()>> {
    let Some(association) = link.association() else { return Ok(None) };
    let result = match send_here(&association, &message) {
        Err(SendError::WouldBlock) if is_nonblocking(fd, flags) => {
            hold(fd, sock, link, &association, &message)?
        }
        Err(SendError::WouldBlock) => {
            let later = async {
                loop {
                    association.writable().await;
                    match send_here(&association, &message) {
                        Err(SendError::WouldBlock) => {}
                        result => return result,
                    }
                }
            };
            let result = wait(pin!(later), open::send_timeout(fd))?;
            // Another thread may have closed the descriptor meanwhile, and its number is another's.
            if result.is_err() && !socket::find(fd).is_some_and(|now| Arc::ptr_eq(&now, sock)) {
                return Err(libc::EBADF);
            }
            result
        }
        result => result,
    };
    Ok(result.ok().map(|()| {
        link.touch();
        link.sent.notify_one();
    }))
}

/// A UDP socket that is full gets another descriptor meanwhile, which is the engine's.
fn send_here(association: &Association, message: &Message) -> Result<(), SendError> {
    private::inside(|| association.try_send_here(message.clone()))
}

/// Makes the descriptor unwritable until the send buffer has room: EAGAIN, unless it has room now.
fn hold(
    fd: c_int,
    sock: &Sock,
    link: &Link,
    association: &Association,
    message: &Message,
) -> Errno<Result<(), SendError>> {
    loop {
        link.blocked.store(true, Ordering::Release);
        if sock.many.is_some() {
            sock.link.held.notify_one();
        }
        if !sock.link.filled.swap(true, Ordering::AcqRel) {
            fill(fd);
        }
        match send_here(association, message) {
            // The engine will take the fillers, since the core has refused a message while they
            // were there. Otherwise it may have taken them before.
            Err(SendError::WouldBlock) if sock.link.filled.load(Ordering::Acquire) => {
                return Err(libc::EAGAIN);
            }
            Err(SendError::WouldBlock) => {}
            result => return Ok(result),
        }
    }
}

/// The bytes of a message.
///
/// # Safety
///
/// The parts pass [`memory::check`], and are not written meanwhile.
pub(crate) unsafe fn gather(parts: &[iovec]) -> Errno<Bytes> {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.iov_len).sum());
    for part in parts {
        // SAFETY: by the contract of this function.
        unsafe { memory::copy_in(part.iov_base.cast(), part.iov_len, &mut bytes) }?;
    }
    Ok(bytes.into())
}

/// Makes the descriptor unwritable until the engine takes the fillers. An AF_UNIX socket is
/// writable while its messages use at most a quarter of SO_SNDBUF.
pub(crate) fn fill(fd: c_int) {
    static ZEROS: [u8; PAYLOAD] = [0; PAYLOAD];
    let mut size: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the value is an int that lives during the call.
    unsafe {
        let value = (&raw mut size).cast();
        real::getsockopt(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, value, &raw mut length);
    }
    let quarter = size.max(0) as usize / 4;
    let filler = &ZEROS[..PAYLOAD.min(quarter)];
    let header = Header::new(Kind::Filler).write();
    let mut parts = [
        iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: HEADER },
        iovec { iov_base: filler.as_ptr().cast_mut().cast(), iov_len: filler.len() },
    ];
    // SAFETY: all-zero bytes are a valid `msghdr`; the parts are valid during the call.
    unsafe {
        let mut message: msghdr = std::mem::zeroed();
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = 2;
        for _ in 0..=quarter / filler.len().max(1) {
            real::sendmsg(fd, &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        }
    }
}

/// Wakes a thread that waits for a future.
struct Alarm(AtomicU32);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.0.swap(1, Ordering::AcqRel) == 0 {
            let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the word lives as long as this object.
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, 1) };
        }
    }
}

/// Waits for a future, at most `limit` (EAGAIN), as a call on a socket waits: a signal whose
/// handler was installed without SA_RESTART interrupts it (EINTR), and with a limit any handler
/// does. futex(2) has just these rules; a condition variable of the standard library would go on.
fn wait<T>(
    mut future: std::pin::Pin<&mut impl Future<Output = T>>,
    limit: Option<Duration>,
) -> Errno<T> {
    let until = limit.map(|limit| Instant::now() + limit);
    let alarm = Arc::new(Alarm(AtomicU32::new(0)));
    let waker = Waker::from(alarm.clone());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Ok(result);
        }
        while alarm.0.swap(0, Ordering::AcqRel) == 0 {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(libc::EAGAIN);
            }
            let left = left.map(|left| libc::timespec {
                tv_sec: left.as_secs() as libc::time_t,
                tv_nsec: left.subsec_nanos().into(),
            });
            let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the word and the time live during the call.
            let waited =
                unsafe { libc::syscall(libc::SYS_futex, alarm.0.as_ptr(), operation, 0, left) };
            if waited < 0 && errno::get() == libc::EINTR {
                return Err(libc::EINTR);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_is_waited_for_and_given_up_after_the_limit() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || wait(pin!(receiver), None));
        sender.send(7).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(Ok(7)));
        let limit = Some(Duration::from_millis(5));
        assert_eq!(wait(pin!(std::future::pending::<()>()), limit), Err(libc::EAGAIN));
    }
}
