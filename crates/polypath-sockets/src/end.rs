//! Socket pairs, and the engine's end of each.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::errno::{self, Errno};
use crate::frame::{HEADER, Header};
use crate::{abi, private, real};

/// The descriptor of the engine's end of a pair.
pub(crate) struct End(OwnedFd);

impl End {
    fn new(fd: OwnedFd) -> Self {
        private::mark(fd.as_raw_fd());
        Self(fd)
    }

    /// The number of the descriptor.
    pub(crate) fn number(&self) -> c_int {
        self.0.as_raw_fd()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // The program's thread may drop it.
        private::unmark(self.0.as_raw_fd());
    }
}

/// A connected pair of local sockets: the program's end, and the engine's end.
pub(crate) fn pair() -> Errno<(OwnedFd, End)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` has room for two descriptors.
    let made = unsafe { real::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) };
    errno::check(made as isize)?;
    // SAFETY: the call has made both descriptors, and nothing else owns them.
    let (program, engine) =
        unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(private::raised(ends[1]))) };
    let size = abi::BUFFER;
    for end in [&program, &engine] {
        // SAFETY: the value is an int that lives during the call.
        unsafe {
            let value = (&raw const size).cast::<c_void>();
            libc::setsockopt(end.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, value, 4);
        }
    }
    // SAFETY: fcntl with F_SETFL takes flags and no pointer.
    unsafe { libc::fcntl(engine.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    Ok((program, End::new(engine)))
}

/// Waits until the program has closed its end, while it sends nothing but fillers. They stay, and
/// this descriptor does not report them again.
pub(crate) async fn fillers_only(fd: &AsyncFd<Descriptor>) {
    loop {
        let Ok(mut ready) = fd.readable().await else { return };
        if ready.ready().is_read_closed() || fd.get_ref().hung_up() {
            return;
        }
        // The end is a new event.
        ready.clear_ready();
    }
}

/// Makes the runtime wait for the engine's end of a pair. Must be called in the runtime.
///
/// Not for room to send, which the kernel reports each time that the program reads: see [`sent`].
pub(crate) fn register(end: Arc<End>) -> Errno<AsyncFd<Descriptor>> {
    wait_for(end, Interest::READABLE)
}

fn wait_for(end: Arc<End>, interest: Interest) -> Errno<AsyncFd<Descriptor>> {
    // SAFETY: the descriptor stays open while the `Descriptor` exists, and is always the same.
    let registered = unsafe { AsyncFd::register_with_interest(Descriptor(end), interest) };
    registered.map_err(|error| io::Error::from(error).raw_os_error().unwrap_or(libc::ENOMEM))
}

/// Repeats an attempt to send until the pair has room.
pub(crate) async fn sent<T>(
    end: &Descriptor,
    mut attempt: impl FnMut(&Descriptor) -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match attempt(end) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => end.room().await?,
            done => return done,
        }
    }
}

/// The engine's end of a pair.
#[derive(Clone)]
pub(crate) struct Descriptor(Arc<End>);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> c_int {
        self.0.0.as_raw_fd()
    }
}

impl Descriptor {
    pub(crate) const fn new(end: Arc<End>) -> Self {
        Self(end)
    }

    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the buffer is valid for its length.
        let size = unsafe {
            let data = buffer.as_mut_ptr().cast();
            real::recv(self.as_raw_fd(), data, buffer.len(), libc::MSG_DONTWAIT)
        };
        usize::try_from(size).map_err(|_| io::Error::last_os_error())
    }

    /// Sends a packet, with a descriptor if there is one.
    pub(crate) fn send(
        &self,
        header: &Header,
        payload: &[u8],
        attached: Option<&OwnedFd>,
    ) -> io::Result<()> {
        let header = header.write();
        let mut parts = [
            libc::iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: HEADER },
            libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() },
        ];
        // Aligned as a control message must be.
        let mut control = [0u64; 4];
        // SAFETY: all-zero bytes are a valid `msghdr`. The pointers are valid during the call, the
        // parts are only read, and the control buffer has room for one descriptor.
        let sent = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = parts.as_mut_ptr();
            message.msg_iovlen = 2;
            if let Some(attached) = attached {
                message.msg_control = control.as_mut_ptr().cast();
                message.msg_controllen = libc::CMSG_SPACE(4) as usize;
                let part = libc::CMSG_FIRSTHDR(&raw const message);
                (*part).cmsg_level = libc::SOL_SOCKET;
                (*part).cmsg_type = libc::SCM_RIGHTS;
                (*part).cmsg_len = libc::CMSG_LEN(4) as usize;
                libc::CMSG_DATA(part).cast::<c_int>().write_unaligned(attached.as_raw_fd());
            }
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            real::sendmsg(self.as_raw_fd(), &raw const message, flags)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits until the pair may have room, or the program has closed its end.
    async fn room(&self) -> io::Result<()> {
        // SAFETY: the call takes no pointer, and nothing else owns the new descriptor.
        let copy = unsafe {
            match real::fcntl(self.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0) {
                ..0 => return Err(io::Error::last_os_error()),
                copy => End::new(OwnedFd::from_raw_fd(private::raised(copy))),
            }
        };
        let copy = wait_for(Arc::new(copy), Interest::WRITABLE);
        copy.map_err(io::Error::from_raw_os_error)?.writable().await.map(drop)
    }

    /// Size of what the program has not read, with what the kernel adds to each packet (SIOCOUTQ).
    pub(crate) fn unread(&self) -> usize {
        let mut size: c_int = 0;
        // SAFETY: the argument is an int that lives during the call.
        let done = unsafe {
            let to = (&raw mut size) as usize;
            real::ioctl(self.as_raw_fd(), libc::TIOCOUTQ, to)
        };
        if done == 0 { usize::try_from(size).unwrap_or(0) } else { 0 }
    }

    /// Makes the program's end report the end; it can still read what was sent.
    pub(crate) fn shutdown(&self) {
        // SAFETY: the call takes no pointer.
        unsafe { real::shutdown(self.as_raw_fd(), libc::SHUT_RDWR) };
        self.drain();
    }

    /// Lets the program's sends fail. It can still read what was sent.
    pub(crate) fn refuse(&self) {
        // SAFETY: the call takes no pointer.
        unsafe { real::shutdown(self.as_raw_fd(), libc::SHUT_RD) };
        self.drain();
    }

    /// Drops what the program has sent. Otherwise its next call would report ECONNRESET when this
    /// end is closed, in place of a message that waits.
    pub(crate) fn drain(&self) {
        while self.receive(&mut [0; HEADER]).is_ok_and(|size| size > 0) {}
    }

    /// Whether the program has closed its end.
    pub(crate) fn hung_up(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: `poll` is one valid entry.
        unsafe { libc::poll(&raw mut poll, 1, 0) };
        poll.revents & libc::POLLHUP != 0
    }
}
