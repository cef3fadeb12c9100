//! UDP sockets that several endpoints of a process share: the UDP port belongs to the host, and the
//! SCTP ports multiplex above it (RFC 6951 5.1).
//!
//! An endpoint has a [`Member`] for each of its addresses. The member that reads the UDP socket
//! passes the packets of other endpoints on: tokio wakes only the task that has polled a socket
//! last, so one task reads for all of them, and it wakes the others. Packets to an address with a
//! UDP socket of its own may be for an endpoint of the wildcard address.
//!
//! The UDP sockets may also come from another process, which selects the SCTP ports whose packets
//! they receive ([`SharedSockets::given`]). The kernel selects once for datagrams that it has
//! coalesced (UDP_GRO), by the first one: a later one may be for another process.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker, ready};

use polypath_proto::{Ecn, FourTuple, Unreachable};
use socket2::{Protocol, SockRef, Type};

use super::buffers::{BUFFER, COUNT, Filled, ReceiveBuffers};
use super::udp::Udp;
use super::waiting::{Io, Room};
use super::{NetworkError, Outgoing, open};

/// Errors queued for a member; further ones are dropped.
const MOST_ERRORS: usize = 64;

/// Whether a datagram belongs to an association of an endpoint.
pub(crate) type Owner = Arc<dyn Fn(&FourTuple, &[u8]) -> bool + Send + Sync>;

/// UDP sockets that several endpoints of this process use: endpoints with different SCTP ports, or
/// different addresses, have the same UDP port
/// ([`EndpointOptions::shared`](crate::EndpointOptions::shared)).
///
/// Clones are handles of the same sockets. All endpoints run in one tokio runtime.
#[derive(Clone, Default)]
pub struct SharedSockets {
    table: Arc<Mutex<Table>>,
    /// Dropped when the last endpoint that was opened with it has closed its sockets.
    _guard: Option<Arc<dyn Any + Send + Sync>>,
}

/// SCTP port of an endpoint, and a number that grows with each member.
type Key = (u16, u64);

#[derive(Default)]
struct Table {
    sockets: Vec<Weak<Common>>,
    members: BTreeMap<Key, Entry>,
    next: u64,
    given: Option<Given>,
}

/// The SCTP ports of several processes that share a UDP port. Its functions are called while
/// packets are received, and must not wait.
pub trait PortSpace: Send + Sync {
    /// Whether a packet for this address and SCTP port, which no endpoint of this process has, may
    /// be for another process. Then this process does not reply to it.
    fn is_elsewhere(&self, to: IpAddr, port: u16) -> bool;

    /// The kernel has coalesced such packets with those of this process. They are lost.
    fn misdirected(&self, to: IpAddr, port: u16, packets: usize);

    /// The kernel has reported an error about a packet to this process that none of its endpoints
    /// has sent: it is for the process with the source port of the packet, which passes it to
    /// [`SharedSockets::report`].
    fn unreachable(&self, error: ForeignError);
}

/// An ICMP error about a packet that another process has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignError {
    /// Destination of the packet, with the UDP port.
    pub destination: SocketAddr,
    /// The error.
    pub what: Unreachable,
    /// The beginning of the SCTP packet.
    pub quoted: Vec<u8>,
}

impl ForeignError {
    /// Source port of the packet.
    pub fn port(&self) -> Option<u16> {
        source_port(&self.quoted)
    }
}

/// UDP sockets of the wildcard addresses that several processes share.
struct Given {
    sockets: Vec<UdpSocket>,
    space: Arc<dyn PortSpace>,
}

/// A UDP socket.
struct Common {
    local: SocketAddr,
    io: Arc<Io>,
    udp: Mutex<Udp>,
}

/// Table entry of a member.
struct Entry {
    /// Address of the endpoint, and the UDP port.
    local: SocketAddr,
    inbox: VecDeque<Parcel>,
    /// Bytes in the inbox.
    queued: usize,
    errors: Vec<NetworkError>,
    /// Wakes the endpoint's task.
    waker: Option<Waker>,
    owner: Option<Owner>,
}

/// Datagrams that another member has received for this one, all of the same size except the last.
struct Parcel {
    four_tuple: FourTuple,
    ecn: Ecn,
    stride: usize,
    bytes: Vec<u8>,
}

/// The share of one address of an endpoint in a UDP socket.
pub(super) struct Member {
    table: SharedSockets,
    key: Key,
    common: Arc<Common>,
    /// Maximum number of bytes in the inbox; further datagrams are dropped, as by a full socket.
    room: usize,
    full: Room,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for SharedSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = lock(&self.table);
        let members = table.members.iter().map(|((port, _), entry)| (port, entry.local));
        f.debug_list().entries(members).finish()
    }
}

impl SharedSockets {
    /// Uses these UDP sockets, one of each IP version, bound to the wildcard address: other
    /// processes have sockets with the same UDP port, and the kernel selects one by the SCTP port.
    /// The kernel coalesces datagrams if the sockets have UDP_GRO, which stays as it is.
    #[must_use]
    pub fn given(sockets: Vec<UdpSocket>, space: Arc<dyn PortSpace>) -> Self {
        let table = Table { given: Some(Given { sockets, space }), ..Table::default() };
        Self { table: Arc::new(Mutex::new(table)), _guard: None }
    }

    /// The same sockets. `guard` is dropped once every endpoint that is opened with the result has
    /// closed its sockets: it may reserve an SCTP port.
    #[must_use]
    pub fn holding(&self, guard: Arc<dyn Any + Send + Sync>) -> Self {
        Self { table: self.table.clone(), _guard: Some(guard) }
    }

    /// Passes an error that another process has received to the endpoints with the port.
    pub fn report(&self, error: ForeignError) {
        let port = error.port();
        let ForeignError { destination, what, quoted } = error;
        let error = NetworkError { destination, what, quoted: Some(quoted) };
        let concerns = |key: &Key, entry: &Entry| {
            Some(key.0) == port && entry.local.is_ipv4() == destination.is_ipv4()
        };
        self.share(&error, concerns, None);
    }

    /// Passes on the errors that a socket of the group receives, also while no endpoint uses it, as
    /// long as the result is polled.
    #[cfg(target_os = "linux")]
    pub fn watch(&self, socket: UdpSocket) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        use nix::sys::socket::{setsockopt, sockopt};
        if socket.local_addr()?.is_ipv4() {
            setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
        } else {
            setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
        }
        let local = socket.local_addr()?;
        let io = Io::new(socket)?;
        let shared = self.clone();
        Ok(async move {
            loop {
                io.failed().await;
                io.read_errors(|socket| {
                    super::icmp::read(socket, |error| {
                        shared.pass(&error, local, None);
                    });
                });
            }
        })
    }

    /// Passes an error of a UDP socket to the members that it concerns: those with the SCTP port of
    /// the quoted packet, or all of the socket if this host itself reports it; or else to another
    /// process. True if it concerns the member that is excepted.
    fn pass(&self, error: &NetworkError, socket: SocketAddr, except: Option<Key>) -> bool {
        let port = error.quoted.as_deref().map(source_port);
        if port == Some(None) {
            return false;
        }
        let space = self.space();
        let concerns = |key: &Key, entry: &Entry| match port.flatten() {
            Some(port) => key.0 == port,
            None if space.is_some() => entry.local.is_ipv4() == socket.is_ipv4(),
            None => entry.local == socket,
        };
        let (any, excepted) = self.share(error, concerns, except);
        if !any && let (Some(space), Some(quoted)) = (space, &error.quoted) {
            let NetworkError { destination, what, .. } = *error;
            space.unreachable(ForeignError { destination, what, quoted: quoted.clone() });
        }
        excepted
    }

    /// Passes an error to the members that it concerns, except one that is returned: whether there
    /// are any, and whether it is one of them.
    fn share(
        &self,
        error: &NetworkError,
        concerns: impl Fn(&Key, &Entry) -> bool,
        except: Option<Key>,
    ) -> (bool, bool) {
        let (mut any, mut excepted) = (false, false);
        let mut wakers: Vec<Waker> = Vec::new();
        let mut table = lock(&self.table);
        for (key, entry) in &mut table.members {
            if !concerns(key, entry) {
                continue;
            }
            any = true;
            if Some(*key) == except {
                excepted = true;
            } else if entry.errors.len() < MOST_ERRORS {
                entry.errors.push(error.clone());
                wakers.extend(entry.waker.take());
            }
        }
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
        (any, excepted)
    }

    /// The other processes that share the UDP sockets.
    fn space(&self) -> Option<Arc<dyn PortSpace>> {
        lock(&self.table).given.as_ref().map(|given| given.space.clone())
    }

    /// Adds an endpoint's address. `local` has the UDP port, which is not 0.
    pub(super) fn join(
        &self,
        local: SocketAddr,
        sctp_port: u16,
        buffer: usize,
    ) -> io::Result<Member> {
        let mut table = lock(&self.table);
        let common = table.socket_for(local, buffer)?;
        let key = (sctp_port, table.next);
        table.next += 1;
        let entry = Entry {
            local,
            inbox: VecDeque::new(),
            queued: 0,
            errors: Vec::new(),
            waker: None,
            owner: None,
        };
        table.members.insert(key, entry);
        Ok(Member { table: self.clone(), key, common, room: buffer, full: Room::default() })
    }
}

impl Table {
    /// The UDP socket for an address, opened now if there is none.
    fn socket_for(&mut self, local: SocketAddr, buffer: usize) -> io::Result<Arc<Common>> {
        self.sockets.retain(|socket| socket.strong_count() > 0);
        if let Some(given) = &self.given {
            let socket = given.socket_for(local)?;
            let local = socket.local_addr()?;
            let known =
                self.sockets.iter().filter_map(Weak::upgrade).find(|one| one.local == local);
            if let Some(known) = known {
                return Ok(known);
            }
            super::enlarge_buffers(&SockRef::from(socket), buffer);
            let udp = Udp::of_group(Io::new(socket.try_clone()?)?)?;
            return Ok(self.add(local, udp));
        }
        let near = |socket: &Arc<Common>| {
            socket.local.port() == local.port() && socket.local.is_ipv4() == local.is_ipv4()
        };
        let others: Vec<Arc<Common>> =
            self.sockets.iter().filter_map(Weak::upgrade).filter(near).collect();
        if let Some(same) = others.iter().find(|socket| socket.local == local) {
            return Ok(same.clone());
        }
        let io = match open(local, Type::DGRAM, Protocol::UDP, buffer, false) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && !others.is_empty() => {
                open_beside(&others, local, buffer)
            }
            opened => opened,
        }?;
        Ok(self.add(local, Udp::new(io)?))
    }

    fn add(&mut self, local: SocketAddr, udp: Udp) -> Arc<Common> {
        let common = Arc::new(Common { local, io: udp.io().clone(), udp: Mutex::new(udp) });
        self.sockets.push(Arc::downgrade(&common));
        common
    }

    /// Whether this process replies to packets for an SCTP port that no endpoint has (RFC 9260
    /// 8.4).
    fn replies(&self, to: IpAddr, port: u16) -> bool {
        self.given.as_ref().is_none_or(|given| !given.space.is_elsewhere(to, port))
    }

    fn members_of(&self, port: u16) -> impl Iterator<Item = (&Key, &Entry)> {
        self.members.range((port, 0)..=(port, u64::MAX))
    }
}

impl Given {
    /// The socket for an address of this host.
    fn socket_for(&self, local: SocketAddr) -> io::Result<&UdpSocket> {
        if !local.ip().is_unspecified() {
            // The host must have the address.
            UdpSocket::bind((local.ip(), 0))?;
        }
        let any: IpAddr = match local {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let any = SocketAddr::new(any, local.port());
        let found =
            self.sockets.iter().find(|socket| socket.local_addr().is_ok_and(|at| at == any));
        found.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }
}

/// Opens a socket while this process has others with the same port: of single addresses and the
/// wildcard address. The kernel permits it if all of them have SO_REUSEADDR; they have it for this
/// moment only, so that a port that another process uses stays in use.
fn open_beside(others: &[Arc<Common>], local: SocketAddr, buffer: usize) -> io::Result<Io> {
    let set =
        |on| others.iter().try_for_each(|one| SockRef::from(one.io.socket()).set_reuse_address(on));
    let opened = set(true).and_then(|()| open(local, Type::DGRAM, Protocol::UDP, buffer, true));
    set(false)?;
    let opened = opened?;
    SockRef::from(opened.socket()).set_reuse_address(false)?;
    Ok(opened)
}

impl Member {
    pub(super) fn io(&self) -> &Arc<Io> {
        &self.common.io
    }

    /// The address that the UDP socket is bound to.
    pub(super) fn bound(&self) -> IpAddr {
        self.common.local.ip()
    }

    pub(super) fn max_segments(&self) -> usize {
        lock(&self.common.udp).max_segments()
    }

    /// Sets which of several endpoints with the same SCTP port gets a datagram.
    pub(super) fn set_owner(&self, owner: Owner) {
        if let Some(entry) = lock(&self.table.table).members.get_mut(&self.key) {
            entry.owner = Some(owner);
        }
    }

    /// Receives what others have received for this member, or else with one system call. The
    /// buffers stay empty if that has received packets of others only.
    pub(super) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut ReceiveBuffers,
    ) -> Poll<io::Result<()>> {
        if self.take(Some(cx), buffers) {
            return Poll::Ready(Ok(()));
        }
        let common = &self.common;
        let received =
            ready!(common.io.poll_receive(cx, || lock(&common.udp).receive(common.local, buffers)));
        if received.is_ok() && !self.has_all(buffers) {
            self.distribute(buffers);
            buffers.clear();
            self.take(None, buffers);
        }
        Poll::Ready(received)
    }

    /// Moves the inbox to the buffers; false if it is empty. Registers the task to wake.
    fn take(&self, cx: Option<&mut Context<'_>>, buffers: &mut ReceiveBuffers) -> bool {
        let mut table = lock(&self.table.table);
        let Some(entry) = table.members.get_mut(&self.key) else { return false };
        if let Some(cx) = cx
            && !entry.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            entry.waker = Some(cx.waker().clone());
        }
        for index in 0..COUNT {
            let Some(parcel) = entry.inbox.pop_front() else { return index > 0 };
            let size = parcel.bytes.len();
            entry.queued -= size;
            buffers.storage()[index * BUFFER..][..size].copy_from_slice(&parcel.bytes);
            let FourTuple { local, remote } = parcel.four_tuple;
            buffers.push(Filled::new((local, remote), parcel.ecn, (0, size), parcel.stride));
        }
        true
    }

    /// Whether all datagrams are for this member, or for none.
    fn has_all(&self, buffers: &ReceiveBuffers) -> bool {
        let table = lock(&self.table.table);
        let (port, _) = self.key;
        let alone = table.members_of(port).nth(1).is_none();
        let Some(own) = table.members.get(&self.key) else { return true };
        buffers.pieces().all(|(filled, bytes)| {
            let local = &filled.four_tuple.local;
            let here = own.is_at(local);
            bytes.chunks(filled.stride).all(|datagram| {
                let to = destination_port(datagram);
                if to == Some(port) {
                    alone && here
                } else {
                    to.is_none_or(|to| {
                        table.members_of(to).next().is_none() && table.replies(local.ip(), to)
                    })
                }
            })
        })
    }

    /// Puts the datagrams into the inboxes of the members that they are for.
    fn distribute(&self, buffers: &ReceiveBuffers) {
        let mut parcels: Vec<(Key, Parcel)> = Vec::new();
        let mut misdirected: BTreeMap<(IpAddr, u16), usize> = BTreeMap::new();
        for (filled, piece) in buffers.pieces() {
            let mut last: Option<Key> = None;
            let selected = destination_port(piece);
            for datagram in piece.chunks(filled.stride) {
                let Some(key) = self.target(&filled.four_tuple, datagram) else {
                    let port = destination_port(datagram);
                    if let Some(port) = port.filter(|_| port != selected) {
                        *misdirected.entry((filled.four_tuple.local.ip(), port)).or_default() += 1;
                    }
                    continue;
                };
                match parcels.last_mut() {
                    Some((_, parcel)) if last == Some(key) => {
                        parcel.bytes.extend_from_slice(datagram);
                    }
                    _ => {
                        let Filled { four_tuple, ecn, stride, .. } = *filled;
                        let bytes = datagram.to_vec();
                        parcels.push((key, Parcel { four_tuple, ecn, stride, bytes }));
                    }
                }
                last = Some(key);
            }
        }
        self.deliver(parcels);
        // The table's lock is not held meanwhile.
        if let Some(space) = self.table.space() {
            for ((to, port), packets) in misdirected {
                space.misdirected(to, port, packets);
            }
        }
    }

    fn deliver(&self, parcels: Vec<(Key, Parcel)>) {
        let mut wakers: Vec<Waker> = Vec::new();
        let mut table = lock(&self.table.table);
        for (key, parcel) in parcels {
            let Some(entry) = table.members.get_mut(&key) else { continue };
            if entry.queued + parcel.bytes.len() > self.room {
                continue;
            }
            entry.queued += parcel.bytes.len();
            entry.inbox.push_back(parcel);
            wakers.extend(entry.waker.take().filter(|_| key != self.key));
        }
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The member that a datagram is for: the one with its SCTP port and address; of several, the
    /// one with its association, or else the one of the single address that is the newest. For a
    /// packet that is for none, this one, which replies to it (RFC 9260 8.4), unless another
    /// process does.
    fn target(&self, four_tuple: &FourTuple, datagram: &[u8]) -> Option<Key> {
        let Some(port) = destination_port(datagram) else { return Some(self.key) };
        let (mut candidates, replies) = {
            let table = lock(&self.table.table);
            let candidates: Vec<(Key, bool, Option<Owner>)> = table
                .members_of(port)
                .filter(|(_, entry)| entry.is_at(&four_tuple.local))
                .map(|(key, entry)| (*key, !entry.local.ip().is_unspecified(), entry.owner.clone()))
                .collect();
            let local = four_tuple.local.ip();
            (candidates, self.key.0 != port && table.replies(local, port))
        };
        if let [(key, ..)] = candidates[..] {
            return Some(key);
        }
        // The endpoints' locks are not taken together with that of the table.
        let owns = |(_, _, owner): &&(Key, bool, Option<Owner>)| {
            owner.as_ref().is_some_and(|owner| owner(four_tuple, datagram))
        };
        if let Some((key, ..)) = candidates.iter().find(owns) {
            return Some(*key);
        }
        candidates.sort_by_key(|(key, single, _)| (*single, *key));
        if let Some((key, ..)) = candidates.last() {
            return Some(*key);
        }
        replies.then_some(self.key)
    }

    /// Sends with one system call.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: &Outgoing<'_>,
    ) -> Poll<io::Result<()>> {
        let common = &self.common;
        self.full.poll_send(cx, &common.io, || lock(&common.udp).try_send(outgoing))
    }

    /// The errors that others have read for this member.
    pub(super) fn take_errors(&self) -> Vec<NetworkError> {
        let mut table = lock(&self.table.table);
        table
            .members
            .get_mut(&self.key)
            .map(|entry| std::mem::take(&mut entry.errors))
            .unwrap_or_default()
    }

    /// Passes an error on to those that it concerns; true if this member is one of them.
    pub(super) fn share_error(&self, error: &NetworkError) -> bool {
        self.table.pass(error, self.common.local, Some(self.key))
    }
}

impl Entry {
    /// Whether the member receives what is sent to this address and UDP port.
    fn is_at(&self, to: &SocketAddr) -> bool {
        let (ip, port) = (self.local.ip(), self.local.port());
        let any = ip.is_unspecified() && ip.is_ipv4() == to.is_ipv4();
        port == to.port() && (any || ip == to.ip())
    }
}

/// RFC 9260 3.1: the source port is the first field.
fn source_port(packet: &[u8]) -> Option<u16> {
    packet.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// RFC 9260 3.1: the destination port is the second field.
fn destination_port(datagram: &[u8]) -> Option<u16> {
    datagram.get(2..4)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut table = lock(&self.table.table);
        let gone = table.members.remove(&self.key);
        // One of the others reads the socket from now on.
        let wakers: Vec<Waker> =
            table.members.values_mut().filter_map(|entry| entry.waker.take()).collect();
        drop(table);
        drop(gone);
        wakers.into_iter().for_each(Waker::wake);
    }
}
