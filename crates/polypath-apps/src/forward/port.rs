//! Local TCP ports whose connections are forwarded.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, sleep};

/// Connections that wait to be accepted, where the system allows as many (on Linux
/// net.core.somaxconn). The 128 of the standard library are too few for a program that opens
/// hundreds at once: Linux then answers with SYN cookies, and resets some of them later.
const BACKLOG: u32 = 4096;
/// Time until a listener is tried again after an error that passes.
const PAUSE: Duration = Duration::from_millis(100);
/// Time between two reports of such errors.
const REPORTS: Duration = Duration::from_secs(10);

/// Listens on the first of these addresses that can be bound.
///
/// # Errors
///
/// None of them can be bound; the error is that of the last one.
pub fn listen(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut result = Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
    for address in addresses {
        result = listen_on(*address);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A port may be used again at once, although earlier connections are in TIME-WAIT.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts the connections of a port.
pub(crate) struct Port {
    listener: TcpListener,
    /// When an error that passes was last reported.
    reported: Option<Instant>,
}

impl Port {
    pub(crate) const fn new(listener: TcpListener) -> Self {
        Self { listener, reported: None }
    }

    /// The next connection. `report` is called with errors that pass, at most every ten seconds.
    pub(crate) async fn next(&mut self, report: impl Fn(&io::Error)) -> io::Result<TcpStream> {
        loop {
            match self.listener.accept().await {
                Ok((socket, _)) => return Ok(socket),
                // Such as too many open files, or a connection that has gone already.
                Err(error) if is_passing(&error) => {
                    let now = Instant::now();
                    let is_gone = error.kind() == io::ErrorKind::ConnectionAborted;
                    if !is_gone && self.reported.is_none_or(|last| now - last >= REPORTS) {
                        self.reported = Some(now);
                        report(&error);
                    }
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether a listener works again after an error.
fn is_passing(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected)
}
