//! Sockets of the operating system, which tokio waits for.
//!
//! They are registered for what arrives alone. The kernel reports room in a socket's buffer each
//! time that the network has taken a datagram, which would wake the runtime as often. A socket
//! whose buffer is full is registered once more until it has room.

use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

/// A socket; a raw one, too.
pub(super) struct Io {
    socket: AsyncFd<UdpSocket>,
    runtime: Handle,
}

impl Io {
    /// Must be called in the runtime.
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        Ok(Self { socket: wait_for(socket, Interest::READABLE)?, runtime: Handle::current() })
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        self.socket.get_ref()
    }

    /// Calls `receive` when something may have arrived.
    pub(super) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        mut receive: impl FnMut() -> io::Result<()>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            if let Ok(received) = guard.try_io(|_| receive()) {
                return Poll::Ready(received);
            }
        }
    }

    /// Waits until the error queue may hold something.
    pub(super) async fn failed(&self) {
        if self.socket.ready(Interest::ERROR).await.is_err() {
            // The runtime has ended.
            std::future::pending::<()>().await;
        }
    }

    /// Calls `read`, which empties the error queue.
    pub(super) fn read_errors(&self, read: impl FnOnce(&UdpSocket)) {
        // `WouldBlock` makes tokio wait for the next error.
        let _ = self.socket.try_io(Interest::ERROR, |socket| {
            read(socket);
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }

    /// Waits until the socket's buffer has room.
    async fn room(&self) {
        let again = self.socket().try_clone().and_then(|again| {
            let _runtime = self.runtime.enter();
            wait_for(again, Interest::WRITABLE)
        });
        match again {
            Ok(again) => drop(again.writable().await),
            // There are no descriptors left.
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

#[expect(unsafe_code, reason = "tokio's safe function is deprecated")]
fn wait_for(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
    // SAFETY: a `UdpSocket` owns its descriptor, which stays the same and open while it exists.
    Ok(unsafe { AsyncFd::register_with_interest(socket, interest) }?)
}

/// The wait of a sender for room in a socket's buffer.
#[derive(Default)]
pub(super) struct Room(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Room {
    /// Calls `send`. If the socket is full, the task is woken when there is room.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        io: &Arc<Io>,
        mut send: impl FnMut() -> io::Result<()>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(room) = &mut self.0 {
                ready!(room.as_mut().poll(cx));
                self.0 = None;
            }
            match send() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
            let io = io.clone();
            self.0 = Some(Box::pin(async move { io.room().await }));
        }
    }
}
