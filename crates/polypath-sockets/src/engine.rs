//! The engine: a thread with a tokio runtime that runs polypath's endpoints, and moves messages
//! between associations and the socket pairs.

use std::ffi::c_int;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use polypath::{
    Association, BindError, CloseReason, ConnectError, ConnectOptions, Encryption, Endpoint,
    EndpointOptions, Event, Events, Message, PathId, Ppid, Received, Reliability, SharedSockets,
    StreamId,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Handle};

use crate::abi;
use crate::end::{Descriptor, End, fillers_only, pair, register, sent};
use crate::errno::Errno;
use crate::frame::{HEADER, Header, Kind, PAYLOAD};
use crate::inbox::Inbox;
use crate::link::{Link, Phase, Route, lock};
use crate::notify;
use crate::ports::{self, Ports};
use crate::private;
use crate::real;
use crate::settings::Settings;
use crate::socket::Names;
use crate::values::Options;

/// The engine of this process.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) runtime: Handle,
    pub(crate) settings: Arc<Settings>,
    /// The UDP sockets of listening sockets, or with `polypath run --shared` of all.
    sockets: SharedSockets,
    /// The daemon of `polypath run --shared`.
    pub(crate) ports: Option<Ports>,
    process: u32,
}

static ENGINE: Mutex<Option<Engine>> = Mutex::new(None);

/// Associations that are not over.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The engine of this process, started by the first SCTP socket. A child of fork starts its own.
pub(crate) fn engine() -> Errno<Engine> {
    let mut engine = lock(&ENGINE);
    if let Some(engine) = engine.as_ref().filter(|one| one.process == std::process::id()) {
        return Ok(engine.clone());
    }
    // A program that knows that it uses polypath closes no descriptors that it has not opened.
    if !real::is_direct() {
        private::reserve();
    }
    let settings = Settings::current();
    let runtime = private::inside(|| Builder::new_current_thread().enable_all().build());
    let runtime = runtime.map_err(|error| error.raw_os_error().unwrap_or(libc::ENOMEM))?;
    let join = || ports::join(settings.port, runtime.handle());
    let joined = settings.shared.then(join).transpose()?;
    let (ports, sockets) = joined.map_or_else(Default::default, |(ports, all)| (Some(ports), all));
    let new = Engine {
        runtime: runtime.handle().clone(),
        settings: Arc::new(settings),
        sockets,
        ports,
        process: std::process::id(),
    };
    // The program's signals are handled on its own threads: the new thread inherits this mask.
    let old = block_signals();
    let thread = std::thread::Builder::new()
        .name("polypath".to_owned())
        .spawn(move || private::inside(|| runtime.block_on(std::future::pending::<()>())));
    restore_signals(&old);
    thread.map_err(|_| libc::EAGAIN)?;
    OPEN.store(0, Ordering::Release);
    // The engine of the parent is leaked: its threads do not exist in this process.
    std::mem::forget(engine.replace(new.clone()));
    Ok(new)
}

/// Runs `work` if no engine has been started in this process, and prevents its start meanwhile.
pub(crate) fn before_start<R>(work: impl FnOnce() -> R) -> Option<R> {
    let engine = lock(&ENGINE);
    let started = engine.as_ref().is_some_and(|one| one.process == std::process::id());
    (!started).then(work)
}

/// Whether an engine runs in this process.
pub(crate) fn is_running() -> bool {
    ENGINE
        .try_lock()
        .is_ok_and(|engine| engine.as_ref().is_some_and(|one| one.process == std::process::id()))
}

fn block_signals() -> libc::sigset_t {
    // SAFETY: the sets are valid for the calls, and all-zero bytes are a valid `sigset_t`.
    unsafe {
        let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        old
    }
}

fn restore_signals(old: &libc::sigset_t) {
    // SAFETY: `old` was filled in by `block_signals`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old, std::ptr::null_mut()) };
}

/// Waits until all associations are over, at most this long.
// A thread of the program waits, not one of the runtime.
#[allow(clippy::disallowed_methods)]
pub(crate) fn wait_until_over(limit: Duration) {
    let start = std::time::Instant::now();
    while OPEN.load(Ordering::Acquire) > 0 && start.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Counts an association as open while it exists.
pub(crate) struct Counted;

impl Counted {
    pub(crate) fn new() -> Self {
        OPEN.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Engine {
    /// The local addresses of a socket that has these.
    pub(crate) fn local_addresses(
        &self,
        family: c_int,
        addresses: &[IpAddr],
        options: &Options,
    ) -> Vec<IpAddr> {
        let fits = |ip: &&IpAddr| match family {
            libc::AF_INET => ip.is_ipv4(),
            _ => ip.is_ipv6() || !options.only_v6,
        };
        let bind: Vec<IpAddr> = self.settings.bind.iter().filter(fits).copied().collect();
        match (addresses, &bind[..]) {
            ([], []) if family == libc::AF_INET => vec![Ipv4Addr::UNSPECIFIED.into()],
            ([], []) if options.only_v6 => vec![Ipv6Addr::UNSPECIFIED.into()],
            ([], []) => vec![Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()],
            ([], bind) => bind.to_vec(),
            (addresses, _) => addresses.to_vec(),
        }
    }

    /// Opens an endpoint for a socket.
    pub(crate) fn endpoint(
        &self,
        family: c_int,
        names: &Names,
        listens: bool,
        options: &Options,
    ) -> Errno<Endpoint> {
        let settings = &self.settings;
        let sockets = match &names.claim {
            Some(claim) => self.sockets.holding(claim.clone()),
            None => self.sockets.clone(),
        };
        let _runtime = self.runtime.enter();
        let options = EndpointOptions {
            addresses: self.local_addresses(family, &names.addresses, options),
            port: names.port,
            encapsulation: settings.encapsulation(listens),
            listen: listens,
            max_associations: 1 << 16,
            config: options.config(&settings.config)?,
            encryption: settings.encrypt.then(Encryption::default),
            auth_keys: names.auth_keys.clone(),
            follow_addresses: options.auto_asconf,
            announce: polypath::Announce::All,
            shared: (!settings.encrypt).then_some(sockets),
            ..EndpointOptions::default()
        };
        private::inside(|| Endpoint::bind(options)).map_err(|error| match error {
            BindError::InUse { .. } | BindError::NoCommonPort => libc::EADDRINUSE,
            BindError::NotLocal { .. } => libc::EADDRNOTAVAIL,
            BindError::RawNotPermitted => libc::EACCES,
            BindError::Socket { source, .. } => source.raw_os_error().unwrap_or(libc::EINVAL),
            _ => libc::EINVAL,
        })
    }

    /// Connects in the background. Takes the fillers from the pair once it has succeeded, so that
    /// the program's end becomes writable.
    pub(crate) fn connect(
        &self,
        link: Arc<Link>,
        end: Arc<End>,
        endpoint: Endpoint,
        peers: &[SocketAddr],
        close_on_failure: bool,
    ) -> Errno<()> {
        let port = peers[0].port();
        let udp = |peer: &SocketAddr| SocketAddr::new(peer.ip(), self.settings.peer_port);
        let options = ConnectOptions::new(port, peers.iter().map(udp));
        let _runtime = self.runtime.enter();
        let waiting = register(end.clone())?;
        let counted = Counted::new();
        self.runtime.spawn(async move {
            let connected = tokio::select! {
                connected = endpoint.connect(options) => connected,
                // The program has closed the socket.
                () = fillers_only(&waiting) => return,
            };
            // A new one reports the fillers again. After a failure there is none: the program may
            // connect again once it sees the failure.
            drop(waiting);
            let connected = connected.map_err(|error| refusal(&error));
            match connected.and_then(|association| Ok((association, register(end.clone())?))) {
                Ok((association, fd)) => {
                    link.set_association(Some(association.clone()));
                    link.set_phase(Phase::Connected);
                    run(link, Arc::new(fd), association).await;
                }
                Err(error) => {
                    link.fail(error);
                    *lock(&link.peer) = None;
                    let end = Descriptor::new(end);
                    // Writable before its end is seen, and before connect returns.
                    end.drain();
                    link.set_phase(if close_on_failure { Phase::Closed } else { Phase::Idle });
                    if close_on_failure {
                        end.shutdown();
                    }
                }
            }
            drop((endpoint, counted));
        });
        Ok(())
    }

    /// Passes new associations to the program's end of the listening socket's pair.
    pub(crate) fn listen(
        &self,
        listener: Arc<Link>,
        end: Arc<End>,
        endpoint: Endpoint,
    ) -> Errno<()> {
        let _runtime = self.runtime.enter();
        let fd = register(end)?;
        self.runtime.spawn(async move {
            let mut queue = AcceptQueue::default();
            loop {
                let association = tokio::select! {
                    next = queue.next(&listener, &fd, &endpoint) => next,
                    () = fillers_only(&fd) => None,
                };
                let Some(association) = association else { break };
                if let Err(error) = hand_over(&listener, &fd, association).await {
                    // The program's limit of descriptors, for example: the association is aborted.
                    crate::report::missed(format!("accept: {error}"));
                }
            }
            lock(&ARRIVED).retain(|arrived| arrived.listener != listener.id);
        });
        Ok(())
    }
}

/// The queue of accept: what a listening socket has sent to the program.
///
/// A child of fork may call accept: only the kernel knows what is left in the pair.
#[derive(Default)]
struct AcceptQueue {
    /// Bytes that the kernel counts for one association.
    unit: usize,
    /// There was nothing in the pair before the last association.
    was_empty: bool,
    full: bool,
}

impl AcceptQueue {
    /// The next association. While the queue is full, the endpoint refuses further ones, as Linux.
    async fn next(
        &mut self,
        listener: &Link,
        fd: &AsyncFd<Descriptor>,
        endpoint: &Endpoint,
    ) -> Option<Association> {
        const INTERVAL: Duration = Duration::from_millis(10);
        if self.was_empty {
            self.unit = fd.get_ref().unread();
        }
        loop {
            let full = {
                let limit = lock(&listener.backlog);
                let waiting = fd.get_ref().unread().div_ceil(self.unit.max(1));
                let full = self.unit > 0 && waiting > *limit as usize;
                if full != self.full && !listener.is_refusing() {
                    endpoint.set_listening(!full);
                }
                full
            };
            self.full = full;
            if !full {
                break;
            }
            tokio::select! {
                () = listener.taken.notified() => {}
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
        let next = endpoint.accept().await;
        self.was_empty = fd.get_ref().unread() == 0;
        next
    }
}

/// An association that accept has not returned yet.
pub(crate) struct Arrived {
    /// Number of the listening socket.
    listener: i32,
    pub(crate) link: Arc<Link>,
}

/// Maximum number of closed associations that wait for accept: a child of fork may have taken them.
const MOST_CLOSED: usize = 1024;

pub(crate) static ARRIVED: Mutex<Vec<Arrived>> = Mutex::new(Vec::new());

/// Locks that a thread of the program may hold at the moment of a fork.
pub(crate) type Frozen = (MutexGuard<'static, Option<Engine>>, MutexGuard<'static, Vec<Arrived>>);

pub(crate) fn freeze() -> Frozen {
    (lock(&ENGINE), lock(&ARRIVED))
}

/// The associations that accept has not returned yet.
pub(crate) fn arrived(frozen: &Frozen) -> &[Arrived] {
    &frozen.1
}

/// Runs a task in the engine, if there is one, while its lock is held.
pub(crate) fn spawn(frozen: &Frozen, task: impl Future<Output = ()> + Send + 'static) {
    if let Some(engine) = &*frozen.0 {
        engine.runtime.spawn(task);
    }
}

/// Drops the associations of the parent in a child of fork.
pub(crate) fn forget_arrived(frozen: &mut Frozen) {
    std::mem::forget(std::mem::take(&mut *frozen.1));
}

/// Sends a new association's socket to the program's end of the listening socket.
async fn hand_over(
    listener: &Link,
    fd: &AsyncFd<Descriptor>,
    association: Association,
) -> io::Result<()> {
    let (program, end) = pair().map_err(io::Error::from_raw_os_error)?;
    let link = Arc::new(listener.member());
    let peer = peer(&association);
    *lock(&link.peer) = peer;
    link.set_association(Some(association.clone()));
    link.set_phase(Phase::Connected);
    let end = Arc::new(register(Arc::new(end)).map_err(io::Error::from_raw_os_error)?);
    {
        let mut arrived = lock(&ARRIVED);
        if arrived.len() >= MOST_CLOSED {
            arrived.retain(|one| one.link.phase() != Phase::Closed);
        }
        // With the lock of the list, which a fork takes.
        if listener.inbox().is_shared() {
            link.set_inbox(Arc::new(Inbox::new_shared()));
        }
        arrived.push(Arrived { listener: listener.id, link: link.clone() });
    }
    let header = Header { association: link.id, ..Header::new(Kind::Accept) };
    let payload = peer.map(|peer| crate::address::format(peer, libc::AF_INET6));
    sent(fd.get_ref(), |fd| {
        fd.send(&header, payload.as_deref().unwrap_or_default(), Some(&program))
    })
    .await?;
    let counted = Counted::new();
    tokio::spawn(async move {
        run(link, end, association).await;
        drop(counted);
    });
    Ok(())
}

/// Address and SCTP port of the peer: the primary path's.
pub(crate) fn peer(association: &Association) -> Option<SocketAddr> {
    let paths = association.paths();
    let primary = association.primary();
    let path = paths.iter().find(|path| path.view.id == primary).or_else(|| paths.first())?;
    Some(SocketAddr::new(path.view.remote.to_canonical(), association.peer_port()))
}

/// Runs an association to its end.
async fn run(link: Arc<Link>, fd: Arc<AsyncFd<Descriptor>>, association: Association) {
    let events = association.events();
    link.set_route(Some(Route { fd: fd.clone(), inbox: link.inbox() }));
    let out = tokio::spawn(outgoing(link.clone(), fd.clone(), association.clone()));
    incoming(&link, &association, events).await;
    notify::ended(&link, &association).await;
    link.flush().await;
    link.set_phase(Phase::Closed);
    link.set_association(None);
    link.set_route(None);
    fd.get_ref().shutdown();
    out.abort();
}

/// Sends the program's messages.
pub(crate) async fn outgoing(
    link: Arc<Link>,
    fd: Arc<AsyncFd<Descriptor>>,
    association: Association,
) {
    let mut buffer = vec![0; HEADER + abi::BUFFER as usize];
    loop {
        let received = fd.async_io(Interest::READABLE, |fd| {
            // The fillers stay.
            let filled = link.filled.load(Ordering::Acquire);
            if filled { Ok(None) } else { fd.receive(&mut buffer).map(Some) }
        });
        let size = match received.await {
            Ok(None) => {
                tokio::select! {
                    () = association.writable() => {}
                    () = aborted(&link, &fd) => break,
                }
                link.filled.store(false, Ordering::Release);
                continue;
            }
            // The program has called close or shutdown, or has ended.
            Ok(Some(0)) => break,
            Ok(Some(size)) => size,
            // It has closed the socket without reading everything: Linux aborts if messages are
            // among that, but not for notifications.
            Err(_) if link.inbox().has_unread() => {
                link.abort.store(true, Ordering::Release);
                break;
            }
            Err(_) => continue,
        };
        let Some(header) = Header::read(&buffer[..size]) else { continue };
        let payload = &buffer[HEADER..size];
        match header.kind {
            Kind::Data => {
                let message = message(&header, Bytes::copy_from_slice(payload));
                let passed = tokio::select! {
                    passed = association.send(message) => passed,
                    () = aborted(&link, &fd) => break,
                };
                link.sent.notify_one();
                if passed.is_err() {
                    // The other direction reports the end of the association.
                    fd.get_ref().refuse();
                    return;
                }
            }
            Kind::End if header.flags & abi::SCTP_ABORT != 0 => association.abort(payload),
            Kind::End => break,
            _ => {}
        }
    }
    if link.abort.load(Ordering::Acquire) {
        association.abort("");
    } else {
        let _ = association.shutdown().await;
    }
}

/// Waits until the program has closed the socket so that the association is to be aborted, even if
/// messages before that wait for the send buffer.
pub(crate) async fn aborted(link: &Link, fd: &AsyncFd<Descriptor>) {
    loop {
        let left = link.left.notified();
        if link.abort.load(Ordering::Acquire) && fd.get_ref().hung_up() {
            return;
        }
        left.await;
    }
}

pub(crate) fn message(header: &Header, payload: Bytes) -> Message {
    let reliability = match header.pr_policy {
        abi::SCTP_PR_SCTP_TTL if header.pr_value > 0 => {
            Reliability::Lifetime(Duration::from_millis(header.pr_value.into()))
        }
        abi::SCTP_PR_SCTP_RTX => Reliability::Retransmissions(header.pr_value),
        abi::SCTP_PR_SCTP_PRIO => Reliability::Priority(header.pr_value),
        _ => Reliability::Reliable,
    };
    Message {
        ppid: Ppid(u32::from_be(header.ppid)),
        unordered: header.flags & abi::SCTP_UNORDERED != 0,
        reliability,
        context: header.context,
        sack_immediately: header.flags & abi::SCTP_SACK_IMMEDIATELY != 0,
        ..Message::new(StreamId(header.stream), payload)
    }
}

/// Bytes of messages after which the program is woken, even if more arrive. Waking it costs as much
/// as moving about 50 KB. No more than half of what the inbox holds, so that both threads work.
const BATCH: usize = 192 * 1024;

/// Bytes that have arrived at once, after which more are about to arrive.
const MANY: usize = 32 * 1024;

/// Passes the association's messages and notifications to the program until it is over.
pub(crate) async fn incoming(link: &Link, association: &Association, mut events: Events) {
    link.apply(association);
    // As Linux, which reports the paths of the handshake by SCTP_COMM_UP alone.
    let first: Vec<PathId> = association.paths().iter().map(|path| path.view.id).collect();
    notify::established(link, association).await;
    let mut listening = true;
    // Whether something was sent since SCTP_SENDER_DRY_EVENT.
    let mut wet = false;
    loop {
        tokio::select! {
            biased;
            event = events.next(), if listening => match event {
                Ok(Event::PathAdded { path }) if first.contains(&path) => {}
                Ok(event) => {
                    if matches!(event, Event::PeerShutdown) {
                        link.peer_shut.store(true, Ordering::Release);
                    }
                    if notify::follows_data(&event) {
                        while let Some(received) = association.try_recv() {
                            deliver_all(link, association, received).await;
                        }
                    }
                    notify::event(link, association, &event).await;
                }
                Err(polypath::EventsError::Lagged { .. }) => {}
                Err(_) => listening = false,
            },
            received = association.recv() => match received {
                Ok(Some(received)) => deliver_all(link, association, received).await,
                Ok(None) => break,
                Err(closed) => {
                    link.fail(closed_errno(&closed.0));
                    break;
                }
            },
            () = link.sent.notified(), if !wet => wet = true,
            // As Linux: at once if nothing is outstanding.
            () = link.awaits_dry.notified() => wet = true,
            done = association.drained(), if wet && link.wants(abi::SENDER_DRY_EVENT) => {
                wet = false;
                if done.is_ok() {
                    notify::dry(link).await;
                }
            }
        }
    }
    // Events that came with the last ones.
    while let Ok(event) = events.next().await {
        notify::event(link, association, &event).await;
    }
}

/// Passes a message to the program, and those that arrive with it, and then wakes it.
async fn deliver_all(link: &Link, association: &Association, first: Received) {
    let (mut next, mut size, mut yielded_at) = (Some(first), 0, 0);
    while let Some(received) = next {
        size += received.payload.len();
        deliver(link, &received).await;
        if size >= BATCH {
            break;
        }
        next = association.try_recv();
        if next.is_none() && size - yielded_at >= MANY {
            yielded_at = size;
            // The endpoint receives meanwhile.
            tokio::task::yield_now().await;
            next = association.try_recv();
        }
    }
    link.signal();
}

/// Passes a message to the program. Drops it if the program has closed the socket.
async fn deliver(link: &Link, received: &Received) {
    link.touch();
    if received.aborted {
        return notify::aborted(link, received).await;
    }
    if link.unread_end.load(Ordering::Acquire) {
        return link.has_read(received.payload.len());
    }
    let unordered = if received.unordered { abi::SCTP_UNORDERED } else { 0 };
    let size = received.payload.len();
    for start in (0..size).step_by(PAYLOAD) {
        let piece = received.payload.slice(start..size.min(start + PAYLOAD));
        let header = Header {
            flags: unordered,
            stream: received.stream.0,
            ssn: received.mid.0 as u16,
            ppid: received.ppid.0.to_be(),
            end: received.end && start + piece.len() == size,
            tsn: received.tsn.0,
            cumulative_tsn: if received.unordered { received.cumulative_tsn.0 } else { 0 },
            ..Header::new(Kind::Data)
        };
        if !link.deliver(&header, &piece).await {
            link.has_read(piece.len());
        } else if link.inbox().is_shared() {
            link.forget_unread();
        }
    }
}

/// The error of a program's call after the association has ended like this.
pub(crate) fn closed_errno(reason: &CloseReason) -> c_int {
    match reason {
        // An ICMP error counts as an ABORT of the peer (RFC 9260 10, ICMP7).
        CloseReason::PeerAbort { .. } | CloseReason::Unreachable { .. } => libc::ECONNRESET,
        CloseReason::NoAnswer | CloseReason::PeerUnreachable | CloseReason::ShutdownTimeout => {
            libc::ETIMEDOUT
        }
        CloseReason::ProtocolViolation { .. } => libc::EPROTO,
        _ => libc::ECONNABORTED,
    }
}

/// The error of an association that was not established.
pub(crate) fn not_started(reason: &CloseReason) -> c_int {
    match reason {
        CloseReason::PeerAbort { .. } | CloseReason::Unreachable { .. } => libc::ECONNREFUSED,
        reason => closed_errno(reason),
    }
}

fn refusal(error: &ConnectError) -> c_int {
    match error {
        ConnectError::Closed(reason) => not_started(reason),
        ConnectError::Start(_) => libc::ENETUNREACH,
        _ => libc::ECONNREFUSED,
    }
}
