//! The engine's side of one-to-many sockets: one pair for all associations of a socket.
//!
//! What the program sends is queued for each association. All queues of a socket together are
//! limited, as Linux's SO_SNDBUF is shared by all associations of a socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use polypath::proto::ConnectError as StartError;
use polypath::{Association, ConnectError, ConnectOptions, Endpoint};
use tokio::io::Interest;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::end::{End, register};
use crate::engine::{Counted, Engine, aborted, incoming, message, not_started, outgoing, peer};
use crate::errno::Errno;
use crate::frame::{HEADER, Header, Kind};
use crate::inbox::Inbox;
use crate::link::{Link, Many, Packet, Phase, Queue, Route, lock};
use crate::values::Options;
use crate::{abi, notify};

impl Engine {
    /// Serves a one-to-many socket until the program closes it.
    pub(crate) fn serve(
        &self,
        socket: Arc<Link>,
        many: Arc<Many>,
        end: Arc<End>,
        endpoint: Endpoint,
        options: Options,
    ) -> Errno<()> {
        let route = self.route(end, socket.inbox())?;
        *lock(&many.route) = Some(route.clone());
        let engine = self.clone();
        self.runtime.spawn(async move {
            let accepting = accept_all(socket.clone(), many.clone(), endpoint.clone());
            let accepting = tokio::spawn(accepting);
            let open = |peer| engine.open(&socket, &many, &endpoint, &[peer], &options).ok();
            dispatch(&socket, &many, &route, open).await;
            accepting.abort();
            let abort = socket.abort.load(Ordering::Acquire);
            for link in many.all() {
                match link.association() {
                    Some(association) if abort => association.abort(""),
                    _ => link.enqueue(end_packet()),
                }
            }
            *lock(&many.route) = None;
        });
        Ok(())
    }

    /// A route to an end of a pair.
    pub(crate) fn route(&self, end: Arc<End>, inbox: Arc<Inbox>) -> Errno<Route> {
        let _runtime = self.runtime.enter();
        Ok(Route { fd: Arc::new(register(end)?), inbox })
    }

    /// Opens an association of a one-to-many socket.
    pub(crate) fn open(
        &self,
        socket: &Link,
        many: &Arc<Many>,
        endpoint: &Endpoint,
        peers: &[SocketAddr],
        options: &Options,
    ) -> Errno<Arc<Link>> {
        let udp = |peer: &SocketAddr| SocketAddr::new(peer.ip(), self.settings.peer_port);
        let _runtime = self.runtime.enter();
        let connect = ConnectOptions {
            config: Some(options.config(&self.settings.config)?),
            ..ConnectOptions::new(peers[0].port(), peers.iter().map(udp))
        };
        let association = endpoint.open(&connect).map_err(|error| match error {
            // It was peeled off, or is about to end.
            ConnectError::Start(StartError::Exists) => libc::EADDRNOTAVAIL,
            _ => libc::ENETUNREACH,
        })?;
        let link = begin(socket, many, &association, Some(peers[0]));
        tokio::spawn(member(link.clone(), many.clone(), association, Counted::new()));
        Ok(link)
    }

    /// Serves the socket of an association that was peeled off.
    pub(crate) fn peeled(&self, link: Arc<Link>, route: Route) {
        let queue = lock(&link.queue).take();
        self.runtime.spawn(async move {
            let Some(association) = link.association() else { return };
            // First what the program has sent before.
            if let Some(Queue { packets, task }) = queue {
                drop(packets);
                let _ = task.await;
            }
            outgoing(link, route.fd, association).await;
        });
    }
}

/// A packet that asks for the graceful end.
fn end_packet() -> Packet {
    Packet { header: Header::new(Kind::End), payload: Bytes::new(), _room: None }
}

/// Adds an association to a socket.
fn begin(
    socket: &Link,
    many: &Many,
    association: &Association,
    peer: Option<SocketAddr>,
) -> Arc<Link> {
    let link = Arc::new(socket.member());
    *lock(&link.peer) = peer;
    link.set_phase(Phase::Connecting);
    link.set_association(Some(association.clone()));
    link.set_route(lock(&many.route).clone());
    let (packets, queued) = mpsc::unbounded_channel();
    let task = tokio::spawn(send_queued(link.clone(), association.clone(), queued));
    *lock(&link.queue) = Some(Queue { packets, task });
    many.add(link.clone());
    link
}

/// Accepts the peers' associations.
async fn accept_all(socket: Arc<Link>, many: Arc<Many>, endpoint: Endpoint) {
    while let Some(association) = endpoint.accept().await {
        let link = begin(&socket, &many, &association, peer(&association));
        tokio::spawn(member(link, many.clone(), association, Counted::new()));
    }
}

/// Distributes what the program sends until it closes the socket. A child of fork addresses what it
/// sends to a peer: `open` opens an association with one that has none.
async fn dispatch(
    socket: &Link,
    many: &Many,
    route: &Route,
    open: impl Fn(SocketAddr) -> Option<Arc<Link>>,
) {
    let fd = &route.fd;
    let room = Arc::new(Semaphore::new(abi::BUFFER as usize));
    let mut buffer = vec![0; HEADER + abi::BUFFER as usize];
    loop {
        let received = fd.async_io(Interest::READABLE, |fd| {
            let filled = socket.filled.load(Ordering::Acquire);
            if filled { Ok(None) } else { fd.receive(&mut buffer).map(Some) }
        });
        let size = match received.await {
            Ok(None) => {
                tokio::select! {
                    () = one_writable(socket, many) => {}
                    () = aborted(socket, fd) => return,
                }
                socket.filled.store(false, Ordering::Release);
                continue;
            }
            Ok(Some(0)) => return,
            Ok(Some(size)) => size,
            // As in `outgoing`.
            Err(_) if route.inbox.has_unread() => {
                socket.abort.store(true, Ordering::Release);
                return;
            }
            Err(_) => continue,
        };
        let Some(header) = Header::read(&buffer[..size]) else { continue };
        // The association may have ended meanwhile.
        let found = match header.peer {
            Some(peer) => many.find(peer).or_else(|| open(peer)),
            None => many.get(header.association),
        };
        let Some(link) = found else { continue };
        let payload = Bytes::copy_from_slice(&buffer[HEADER..size]);
        let share = room.clone().acquire_many_owned(payload.len() as u32);
        let share = tokio::select! {
            share = share => share.ok(),
            () = aborted(socket, fd) => return,
        };
        link.enqueue(Packet { header, payload, _room: share });
    }
}

/// Waits until one of the associations whose send buffers were full has room.
async fn one_writable(socket: &Link, many: &Many) {
    loop {
        let held = socket.held.notified();
        let mut waiting = JoinSet::new();
        for link in many.all() {
            let association = link.association();
            if let Some(association) = association.filter(|_| link.blocked.load(Ordering::Acquire))
            {
                waiting.spawn(async move {
                    association.writable().await;
                    link.blocked.store(false, Ordering::Release);
                });
            }
        }
        tokio::select! {
            // At once if there is none.
            _ = waiting.join_next() => return,
            () = held => {}
        }
    }
}

/// Sends what is queued for an association.
async fn send_queued(
    link: Arc<Link>,
    association: Association,
    mut queued: mpsc::UnboundedReceiver<Packet>,
) {
    while let Some(packet) = queued.recv().await {
        match packet.header.kind {
            Kind::Data => {
                link.touch();
                let message = message(&packet.header, packet.payload.clone());
                if association.send(message).await.is_err() {
                    // An error means that the program does not get notifications any more.
                    let _ = link.add_late(&packet.header, packet.payload);
                }
                link.sent.notify_one();
            }
            Kind::End if packet.header.flags & abi::SCTP_ABORT != 0 => {
                association.abort(&packet.payload);
            }
            Kind::End => {
                let _ = association.shutdown().await;
            }
            _ => {}
        }
    }
}

/// Runs an association of a one-to-many socket to its end.
async fn member(link: Arc<Link>, many: Arc<Many>, association: Association, counted: Counted) {
    let mut events = association.events();
    let started = association.established().await;
    match &started {
        Ok(()) => {
            link.set_association(Some(association.clone()));
            link.set_phase(Phase::Connected);
            let seconds = many.autoclose.load(Ordering::Acquire);
            let limit = Duration::from_secs(seconds.into());
            let idle = (seconds > 0)
                .then(|| tokio::spawn(close_if_idle(link.clone(), association.clone(), limit)));
            incoming(&link, &association, events).await;
            if let Some(idle) = idle {
                idle.abort();
            }
        }
        Err(reason) => {
            link.fail(not_started(reason));
            // Messages that were not sent.
            while let Ok(event) = events.next().await {
                notify::event(&link, &association, &event).await;
            }
        }
    }
    let ending = many.end(link.id);
    let peeled = ending.is_none();
    // The core refuses what is left.
    let queue = lock(&link.queue).take();
    if let Some(Queue { packets, task }) = queue {
        drop(packets);
        let _ = task.await;
    }
    match started {
        Ok(()) => notify::ended(&link, &association).await,
        Err(_) => notify::not_started(&link, &association).await,
    }
    link.flush().await;
    drop(ending);
    link.set_phase(Phase::Closed);
    link.set_association(None);
    if peeled && let Some(route) = link.route() {
        route.fd.get_ref().shutdown();
    }
    link.set_route(None);
    drop(counted);
}

/// SCTP_AUTOCLOSE (RFC 6458 8.1.8): shuts an association down once it has been idle that long.
async fn close_if_idle(link: Arc<Link>, association: Association, limit: Duration) {
    loop {
        let at = link.touched() + limit;
        if at <= Instant::now() {
            let _ = association.shutdown().await;
            return;
        }
        tokio::time::sleep_until(at).await;
    }
}
