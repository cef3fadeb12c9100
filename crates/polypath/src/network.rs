//! A network other than the operating system's, such as a simulated one.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use polypath_proto::{Ecn, Fragmentation};

/// A network that an endpoint binds its sockets in, instead of the operating system's
/// ([`EndpointOptions::network`]).
///
/// The endpoint's clock is [`tokio::time::Instant`], and its timers are tokio's: in a runtime whose
/// clock is paused, time belongs to the network too. The crate `polypath-virtual` runs programs
/// over the simulator's links in this way.
///
/// [`EndpointOptions::network`]: crate::EndpointOptions::network
pub trait Network: Debug + Send + Sync {
    /// Binds a socket to an address of this host. An unspecified address means all of the host's
    /// addresses of its family; port 0 means any free port.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another socket has the address and port,
    /// [`io::ErrorKind::AddrNotAvailable`] if it is no address of this host, or any other.
    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSocket>>;
}

/// A socket of a [`Network`]. Dropping it closes it.
pub trait DatagramSocket: Debug + Send {
    /// The address and port that the socket is bound to.
    fn local_address(&self) -> SocketAddr;

    /// Receives one datagram into `buffer`, which has room for 65,536 bytes. If there is none, the
    /// task is woken when one arrives.
    ///
    /// # Errors
    /// The endpoint logs the error and goes on.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<DatagramArrival>>;

    /// Sends one datagram. If there is no room for it, the task is woken when there is.
    ///
    /// # Errors
    /// The datagram is lost. [`io::ErrorKind::NetworkUnreachable`] and
    /// [`io::ErrorKind::HostUnreachable`] make the endpoint suspect the path.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        datagram: &DatagramToSend<'_>,
    ) -> Poll<io::Result<()>>;
}

/// A datagram that a [`DatagramSocket`] has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramArrival {
    /// Bytes in the buffer.
    pub size: usize,
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// The local address that it was sent to.
    pub destination: IpAddr,
    /// Its ECN codepoint.
    pub ecn: Ecn,
}

/// A datagram for a [`DatagramSocket`] to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramToSend<'a> {
    /// Source address, if the socket is bound to an unspecified one; `None` for the one that leads
    /// to the destination.
    pub source: Option<IpAddr>,
    /// Address and port of the receiver.
    pub destination: SocketAddr,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// Whether routers may fragment it.
    pub fragmentation: Fragmentation,
    /// Its payload.
    pub contents: &'a [u8],
}
