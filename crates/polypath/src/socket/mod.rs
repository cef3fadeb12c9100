//! Sockets, one for each local address, with a common interface for UDP and raw IP.
//!
//! UDP sockets use `quinn-udp` (batching, segmentation offload, ECN, source address). Raw sockets
//! cannot: `quinn-udp` sets UDP options and expects UDP datagrams.

mod backlog;
mod buffers;
#[cfg(target_os = "linux")]
mod exits;
#[cfg(target_os = "linux")]
mod fragments;
#[cfg(target_os = "linux")]
mod icmp;
mod own;
#[cfg(target_os = "linux")]
mod raw;
mod shared;
mod udp;
mod waiting;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use polypath_proto::{Ecn, Fragmentation, Unreachable};
use socket2::{Domain, Protocol, Type};

use crate::encapsulation::Encapsulation;
use crate::error::BindError;
use crate::network::Network;
use backlog::Backlog;
pub(crate) use buffers::ReceiveBuffers;
pub(crate) use shared::Owner;
pub use shared::{ForeignError, PortSpace, SharedSockets};
use waiting::{Io, Room};

/// Maximum size of one transmit in bytes: less than UDP over IPv4 can carry.
pub(crate) const MAX_TRANSMIT: usize = 65_000;

/// Number of attempts to send a datagram before its error counts.
const SEND_ATTEMPTS: u32 = 8;

/// Number of attempts to find a UDP port that is free on all addresses.
const PORT_ATTEMPTS: usize = 16;

/// Counters of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// Datagrams given to the operating system.
    pub datagrams_sent: u64,
    /// Datagrams that the operating system refused (no route, interface down, too big, filtered).
    pub datagrams_refused: u64,
    /// System calls that sent; each carries one datagram or, with segmentation offload, many.
    pub sends: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// ICMP errors received.
    pub icmp_errors: u64,
}

/// Datagrams to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    /// Source address; `None` uses the socket's own, or lets the operating system choose.
    pub(crate) source: Option<IpAddr>,
    pub(crate) destination: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) fragmentation: Fragmentation,
    /// One or several datagrams.
    pub(crate) contents: &'a [u8],
    /// Size of each datagram except the last, in bytes.
    pub(crate) segment: usize,
}

impl Outgoing<'_> {
    fn datagrams(&self) -> usize {
        self.contents.len().div_ceil(self.segment).max(1)
    }
}

/// A report that a datagram was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetworkError {
    /// Destination of the datagram.
    pub(crate) destination: SocketAddr,
    pub(crate) what: Unreachable,
    /// The beginning of the datagram, as an ICMP message quotes it; `None` if this host reports the
    /// error itself.
    pub(crate) quoted: Option<Vec<u8>>,
}

/// The socket of one local address.
pub(crate) struct Socket {
    local: SocketAddr,
    kind: Kind,
    /// Datagrams queued because the operating system's buffer was full.
    backlog: Backlog,
    /// Ready when the error queue may hold something.
    errors: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The last error of the operating system since the errors were last polled.
    refused: Option<NetworkError>,
    pub(crate) stats: SocketStats,
}

enum Kind {
    System(System, Room),
    /// Of another network than the operating system's.
    Own(own::Own),
    /// Shared with other endpoints.
    Shared(shared::Member),
}

/// A socket of the operating system.
enum System {
    Udp(udp::Udp),
    #[cfg(target_os = "linux")]
    Raw(raw::Raw),
}

impl System {
    const fn io(&self) -> &Arc<Io> {
        match self {
            Self::Udp(udp) => udp.io(),
            #[cfg(target_os = "linux")]
            Self::Raw(raw) => raw.io(),
        }
    }

    /// Receives with one system call.
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        local: SocketAddr,
        buffers: &mut ReceiveBuffers,
    ) -> Poll<io::Result<()>> {
        self.io().poll_receive(cx, || match self {
            Self::Udp(udp) => udp.receive(local, buffers),
            #[cfg(target_os = "linux")]
            Self::Raw(raw) => raw.receive(local, buffers),
        })
    }

    /// Sends with one system call; an error means that nothing was sent.
    fn send(&mut self, outgoing: &Outgoing<'_>) -> io::Result<()> {
        match self {
            Self::Udp(udp) => udp.try_send(outgoing),
            #[cfg(target_os = "linux")]
            Self::Raw(raw) => raw.try_send(outgoing),
        }
    }
}

impl Kind {
    /// Datagrams that one call may send.
    fn max_segments(&self) -> usize {
        match self {
            Self::System(System::Udp(udp), _) => udp.max_segments(),
            Self::Shared(member) => member.max_segments(),
            _ => 1,
        }
    }

    /// The operating system's socket.
    fn io(&self) -> Option<&Arc<Io>> {
        match self {
            Self::System(system, _) => Some(system.io()),
            Self::Own(_) => None,
            Self::Shared(member) => Some(member.io()),
        }
    }

    /// Ready when the error queue may hold something.
    fn errors(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match self.io() {
            Some(io) => watch_errors(io.clone()),
            None => Box::pin(std::future::pending()),
        }
    }
}

impl Socket {
    fn new(local: SocketAddr, kind: Kind) -> Self {
        let errors = kind.errors();
        Self {
            local,
            kind,
            backlog: Backlog::default(),
            errors,
            refused: None,
            stats: SocketStats::default(),
        }
    }

    /// The local address and UDP port (0 on raw IP).
    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// The source address to set for a datagram; `None` if the operating system's socket is bound
    /// to one address.
    fn source(&self, wanted: IpAddr) -> Option<IpAddr> {
        let own = self.local.ip();
        let bound = match &self.kind {
            Kind::Shared(member) => member.bound(),
            _ => own,
        };
        let source = if wanted.is_unspecified() { own } else { wanted };
        (bound.is_unspecified() && !source.is_unspecified()).then_some(source)
    }

    /// Sets which of several endpoints that share a UDP socket gets a datagram.
    pub(crate) fn set_owner(&self, owner: Owner) {
        if let Kind::Shared(member) = &self.kind {
            member.set_owner(owner);
        }
    }

    /// Receives with one system call.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut ReceiveBuffers,
    ) -> Poll<io::Result<()>> {
        buffers.clear();
        let received = ready!(match &mut self.kind {
            Kind::System(system, _) => system.poll_receive(cx, self.local, buffers),
            Kind::Own(own) => own.poll_receive(cx, self.local, buffers),
            Kind::Shared(member) => member.poll_receive(cx, buffers),
        });
        self.stats.datagrams_received += buffers.datagrams() as u64;
        Poll::Ready(received)
    }

    /// Sends, or queues the rest if the operating system's buffer is full. Datagrams that the
    /// operating system refuses are counted and lost.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>, source: IpAddr, outgoing: &Outgoing<'_>) {
        let outgoing = Outgoing { source: self.source(source), ..*outgoing };
        let done = if self.backlog.is_empty() { self.send_now(cx, &outgoing) } else { 0 };
        if done < outgoing.contents.len() {
            self.backlog.push(&Outgoing { contents: &outgoing.contents[done..], ..outgoing });
        }
    }

    /// Sends as much of the backlog as the operating system accepts now; if a rest remains, the
    /// task is woken when there is room again.
    pub(crate) fn flush(&mut self, cx: &mut Context<'_>) {
        while let Some(mut kept) = self.backlog.pop() {
            let done = self.send_now(cx, &kept.outgoing());
            if done < kept.outgoing().contents.len() {
                kept.advance(done);
                self.backlog.put_back(kept);
                return;
            }
        }
    }

    /// Returns the number of bytes handled; all of them, unless the operating system's buffer is
    /// full.
    fn send_now(&mut self, cx: &mut Context<'_>, outgoing: &Outgoing<'_>) -> usize {
        let mut done = 0;
        while done < outgoing.contents.len() {
            let rest = &outgoing.contents[done..];
            let most = outgoing.segment.saturating_mul(self.kind.max_segments());
            let part = Outgoing { contents: &rest[..rest.len().min(most)], ..*outgoing };
            let datagrams = part.datagrams();
            let Poll::Ready(result) = self.poll_send(cx, &part) else { break };
            match result {
                Ok(()) => {
                    self.stats.sends += 1;
                    self.stats.datagrams_sent += datagrams as u64;
                }
                // Segmentation offload may have failed: retry with single datagrams.
                Err(_) if datagrams > self.kind.max_segments() => continue,
                Err(error) => {
                    tracing::debug!(
                        "{} to {}: {error}, {datagrams} datagrams lost",
                        self.local,
                        part.destination
                    );
                    self.stats.datagrams_refused += datagrams as u64;
                    if let Some(what) = unreachable(&error) {
                        let destination = part.destination;
                        self.refused = Some(NetworkError { destination, what, quoted: None });
                    }
                }
            }
            done += part.contents.len();
        }
        done
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &Outgoing<'_>) -> Poll<io::Result<()>> {
        let mut attempts = 0;
        loop {
            let result = ready!(match &mut self.kind {
                Kind::System(system, room) => {
                    let io = system.io().clone();
                    room.poll_send(cx, &io, || system.send(outgoing))
                }
                Kind::Own(own) => own.poll_send(cx, outgoing),
                Kind::Shared(member) => member.poll_send(cx, outgoing),
            });
            attempts += 1;
            // A pending ICMP error about an earlier datagram is returned instead of sending this
            // one. Anyone can send ICMP messages, so only an error that persists comes from this
            // host.
            let several = outgoing.datagrams() > self.kind.max_segments();
            if result.is_ok() || several || attempts == SEND_ATTEMPTS {
                return Poll::Ready(result);
            }
        }
    }

    /// Whether the backlog is full, so that the protocol should produce no packets.
    pub(crate) fn is_clogged(&self) -> bool {
        self.backlog.is_full()
    }

    /// Whether the backlog is empty.
    pub(crate) fn is_idle(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Whether everything has been sent, and nothing was refused since the errors were last polled.
    pub(crate) fn is_done(&self) -> bool {
        self.backlog.is_empty() && self.refused.is_none()
    }

    /// Passes errors reported about sent datagrams to `tell`; true if there was one, as more may
    /// follow.
    pub(crate) fn poll_errors(
        &mut self,
        cx: &mut Context<'_>,
        tell: &mut dyn FnMut(NetworkError),
    ) -> bool {
        let mut news = false;
        if let Some(refused) = self.refused.take() {
            news = true;
            tell(refused);
        }
        if let Kind::Shared(member) = &self.kind {
            for error in member.take_errors() {
                news = true;
                self.stats.icmp_errors += 1;
                tell(error);
            }
        }
        if self.errors.as_mut().poll(cx).is_ready()
            && let Some(io) = self.kind.io().cloned()
        {
            news = true;
            io.read_errors(|_socket| {
                #[cfg(target_os = "linux")]
                icmp::read(_socket, |error| {
                    let concerns = match &self.kind {
                        Kind::Shared(member) => member.share_error(&error),
                        _ => true,
                    };
                    if concerns {
                        self.stats.icmp_errors += 1;
                        tell(error);
                    }
                });
            });
            self.errors = self.kind.errors();
        }
        news
    }
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").field("local", &self.local).finish_non_exhaustive()
    }
}

/// Ready when the operating system reports an error on the socket. Created again after each report,
/// which is rare, so boxing it is cheap enough.
fn watch_errors(io: Arc<Io>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move { io.failed().await })
}

/// Reachability of a destination according to a send error.
fn unreachable(error: &io::Error) -> Option<Unreachable> {
    match error.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
            Some(Unreachable::Network)
        }
        // Filtered by a local rule, or the source address was removed from the host.
        io::ErrorKind::HostUnreachable
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::InvalidInput => Some(Unreachable::Host),
        // The error queue reports TooBig, with the MTU.
        _ => None,
    }
}

/// Where sockets are bound.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In the operating system.
    System,
    /// In another network.
    Network(Arc<dyn Network>),
    /// In the operating system, together with other endpoints.
    Shared(SharedSockets),
}

/// Binds one socket for each address.
pub(crate) fn bind(
    addresses: &[IpAddr],
    encapsulation: Encapsulation,
    sctp_port: u16,
    buffer: usize,
    place: &Place,
) -> Result<Vec<Socket>, BindError> {
    if addresses.is_empty() {
        return Err(BindError::NoAddress);
    }
    let port = match encapsulation {
        Encapsulation::Udp { port } => port,
        Encapsulation::RawIp if matches!(place, Place::Network(_)) => {
            return Err(BindError::RawNotSupported);
        }
        Encapsulation::RawIp => return bind_raw(addresses, sctp_port, buffer),
    };
    // With port 0, the first address gets any free port, which may be in use on the others.
    let attempts = if port == 0 && addresses.len() > 1 { PORT_ATTEMPTS } else { 1 };
    for _ in 0..attempts {
        match bind_udp(addresses, port, sctp_port, buffer, place) {
            Err(BindError::InUse { .. }) if attempts > 1 => {}
            done => return done,
        }
    }
    Err(BindError::NoCommonPort)
}

fn bind_udp(
    addresses: &[IpAddr],
    port: u16,
    sctp_port: u16,
    buffer: usize,
    place: &Place,
) -> Result<Vec<Socket>, BindError> {
    let mut port = port;
    // A port that the operating system chooses belongs to one endpoint.
    let place = if port == 0 && matches!(place, Place::Shared(_)) { &Place::System } else { place };
    let mut sockets = Vec::with_capacity(addresses.len());
    for &address in addresses {
        let wanted = SocketAddr::new(address, port);
        let fail = |error| socket_error(wanted, error);
        let (bound, kind) = match place {
            Place::Network(network) => {
                let socket = network.bind(wanted).map_err(fail)?;
                (socket.local_address(), Kind::Own(own::Own::new(socket)))
            }
            Place::Shared(shared) => {
                let member = shared.join(wanted, sctp_port, buffer).map_err(fail)?;
                (wanted, Kind::Shared(member))
            }
            Place::System => {
                let socket =
                    open(wanted, Type::DGRAM, Protocol::UDP, buffer, false).map_err(fail)?;
                let bound = socket.socket().local_addr().map_err(fail)?;
                let udp = udp::Udp::new(socket).map_err(fail)?;
                (bound, Kind::System(System::Udp(udp), Room::default()))
            }
        };
        port = bound.port();
        sockets.push(Socket::new(bound, kind));
    }
    Ok(sockets)
}

#[cfg(target_os = "linux")]
fn bind_raw(addresses: &[IpAddr], port: u16, buffer: usize) -> Result<Vec<Socket>, BindError> {
    let mut sockets = Vec::with_capacity(addresses.len());
    for &address in addresses {
        let wanted = SocketAddr::new(address, 0);
        let fail = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => BindError::RawNotPermitted,
            _ => socket_error(wanted, error),
        };
        let socket = open(wanted, Type::RAW, raw::PROTOCOL, buffer, false).map_err(fail)?;
        let raw = raw::Raw::new(socket, address, port).map_err(fail)?;
        sockets.push(Socket::new(wanted, Kind::System(System::Raw(raw), Room::default())));
    }
    Ok(sockets)
}

#[cfg(not(target_os = "linux"))]
fn bind_raw(_: &[IpAddr], _: u16, _: usize) -> Result<Vec<Socket>, BindError> {
    Err(BindError::RawNotSupported)
}

/// A bound, nonblocking socket with large buffers; with SO_REUSEADDR if it `reuses` a port.
fn open(
    address: SocketAddr,
    kind: Type,
    protocol: Protocol,
    buffer: usize,
    reuses: bool,
) -> io::Result<Io> {
    let socket = socket2::Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() && kind == Type::DGRAM {
        // IPv4 has separate sockets, and raw sockets use one IP version anyway.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    if reuses {
        socket.set_reuse_address(true)?;
    }
    enlarge_buffers(&socket, buffer);
    socket.bind(&address.into())?;
    Io::new(socket.into())
}

/// Enlarges the socket buffers for throughput; errors are not fatal.
fn enlarge_buffers(socket: &socket2::Socket, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::socket::{setsockopt, sockopt};
        // Exceed the host's limits if the process is privileged.
        let receive = setsockopt(socket, sockopt::RcvBufForce, &bytes);
        let send = setsockopt(socket, sockopt::SndBufForce, &bytes);
        if receive.is_ok() && send.is_ok() {
            return;
        }
    }
    for result in [socket.set_recv_buffer_size(bytes), socket.set_send_buffer_size(bytes)] {
        if let Err(error) = result {
            tracing::debug!("cannot enlarge a socket buffer: {error}");
        }
    }
}

fn socket_error(address: SocketAddr, source: io::Error) -> BindError {
    match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse { address },
        io::ErrorKind::AddrNotAvailable => BindError::NotLocal { address },
        _ => BindError::Socket { address, source },
    }
}
