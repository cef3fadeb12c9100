//! The daemon: it owns the UDP port and the table, and ends after its last program.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use polypath::{
    BindError, Encapsulation, Endpoint, EndpointOptions, ForeignError, PortSpace, SharedSockets,
};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::group::Group;
use crate::message::{LONGEST, Reply, Request, write_error};
use crate::name;
use crate::table::{Claim, Refusal, Slot, Table};

/// Time without a program after which the daemon ends: a program that has moved to the background
/// opens its first socket after the end of the process that `polypath run` was.
const GRACE: Duration = Duration::from_secs(3);

/// Processes and connections at a time.
const MOST_PROCESSES: usize = 4096;

/// Why the daemon does not start.
#[derive(Debug)]
pub enum StartError {
    /// Another one has the same UDP port already.
    Runs,
    /// Another program has the UDP port.
    InUse,
    /// The kernel lacks what the daemon needs, or the process may not use it.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs => f.write_str("it runs already"),
            Self::InUse => f.write_str("another program uses the UDP port"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Serves the programs of this user and network namespace until there are none. Calls `ready` once
/// they can connect.
pub fn serve(udp_port: u16, ready: impl FnOnce()) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = UnixListener::bind_addr(&name::address(udp_port)?).map_err(|error| {
            let runs = error.kind() == io::ErrorKind::AddrInUse;
            if runs { StartError::Runs } else { error.into() }
        })?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        let group = Group::open(udp_port).map_err(|error| {
            let used = error.kind() == io::ErrorKind::AddrInUse;
            if used { StartError::InUse } else { error.into() }
        })?;
        let state = Arc::new(Mutex::new(State::new(group)));
        let replies = replies(&state, udp_port)?;
        lock(&state).watch(1);
        ready();
        let space = Arc::new(Space { state, ended: Notify::new(), replies });
        tokio::select! {
            () = accept(&listener, &space) => {}
            () = space.over() => {}
        }
        Ok(())
    })
}

/// Marks all descriptors except standard input, output and error as close-on-exec: the daemon
/// outlives the programs, and must not keep their files open.
#[expect(unsafe_code, reason = "nix does not have the call")]
pub fn inherit_no_descriptors() {
    const CLOSE_RANGE_CLOEXEC: u32 = 4;
    // SAFETY: the call takes numbers, and closes nothing in this process. A kernel before 5.11
    // refuses it.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, CLOSE_RANGE_CLOEXEC) };
}

/// An endpoint without associations, which replies to packets for ports that no process has
/// (RFC 9260 8.4).
fn replies(state: &Arc<Mutex<State>>, udp_port: u16) -> io::Result<Endpoint> {
    let (addresses, sockets) = {
        let group = &mut lock(state).group;
        (group.addresses(), group.sockets(0)?)
    };
    let shared = SharedSockets::given(sockets, Arc::new(Others(state.clone())));
    lock(state).shared = Some(shared.clone());
    let options = EndpointOptions {
        addresses,
        encapsulation: Encapsulation::Udp { port: udp_port },
        announce: polypath::Announce::None,
        shared: Some(shared),
        ..EndpointOptions::plain()
    };
    Endpoint::bind(options).map_err(|error| match error {
        BindError::Socket { source, .. } => source,
        other => io::Error::other(other),
    })
}

/// The ports of the processes, for the endpoint that replies.
struct Others(Arc<Mutex<State>>);

impl PortSpace for Others {
    /// A packet that the kernel has selected the daemon for may be coalesced with one for a port
    /// that no process has, or older than the claim.
    fn is_elsewhere(&self, to: IpAddr, port: u16) -> bool {
        lock(&self.0).group.selected(to, port) != 0
    }

    /// They follow packets for a port that no process has: the reply ends these.
    fn misdirected(&self, _to: IpAddr, _port: u16, _packets: usize) {}

    fn unreachable(&self, error: ForeignError) {
        lock(&self.0).pass(&error);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the daemon has.
struct Space {
    state: Arc<Mutex<State>>,
    /// A process has ended, or come.
    ended: Notify,
    /// It receives the packets for ports that no process has, and what is malformed.
    replies: Endpoint,
}

struct State {
    table: Table,
    group: Group,
    /// Slots of processes that have ended.
    free: BinaryHeap<Reverse<Slot>>,
    next: Slot,
    /// Where processes receive errors about their packets.
    errors: BTreeMap<Slot, UnixDatagram>,
    /// The daemon's own sockets.
    shared: Option<SharedSockets>,
    /// Tasks that receive errors at the sockets of free slots.
    watching: BTreeMap<Slot, JoinSet<()>>,
    /// Processes and connections.
    alive: usize,
}

impl State {
    fn new(group: Group) -> Self {
        Self {
            table: Table::default(),
            group,
            free: BinaryHeap::new(),
            next: 1,
            errors: BTreeMap::new(),
            shared: None,
            watching: BTreeMap::new(),
            alive: 0,
        }
    }

    /// A slot and its sockets: those of the group, and the one for errors.
    fn join(&mut self) -> io::Result<(Slot, Vec<OwnedFd>)> {
        let slot = self.free.peek().map_or(self.next, |slot| slot.0);
        let mut sockets: Vec<OwnedFd> =
            self.group.sockets(slot)?.into_iter().map(OwnedFd::from).collect();
        let (own, errors) = UnixDatagram::pair()?;
        own.set_nonblocking(true)?;
        errors.set_nonblocking(true)?;
        self.errors.insert(slot, own);
        self.watching.remove(&slot);
        sockets.push(errors.into());
        // A number that is not used yet is not in the heap.
        if self.free.pop().is_none() {
            self.next += 1;
        }
        Ok((slot, sockets))
    }

    /// Frees a slot.
    fn leave(&mut self, slot: Slot) {
        self.table.release_all(slot);
        self.attach();
        self.group.leave(slot);
        self.errors.remove(&slot);
        self.watch(slot);
        self.free.push(Reverse(slot));
    }

    /// Receives the errors that the kernel gives to the sockets of a free slot.
    fn watch(&mut self, slot: Slot) {
        let Some(shared) = &self.shared else { return };
        let mut tasks = JoinSet::new();
        for socket in self.group.sockets(slot).unwrap_or_default() {
            // Without descriptors, the errors are lost.
            if let Ok(watch) = shared.watch(socket) {
                tasks.spawn(watch);
            }
        }
        self.watching.insert(slot, tasks);
    }

    fn claim(&mut self, slot: Slot, id: u32, claim: Claim) -> Result<u16, libc::c_int> {
        let before = self.table.clone();
        let random = RandomState::new().build_hasher().finish() as u16;
        let port = self.table.claim(slot, id, claim, random).map_err(|error| match error {
            Refusal::InUse => libc::EADDRINUSE,
        })?;
        if self.group.attach(&self.table).is_err() {
            // The kernel permits no program this long.
            self.table = before;
            return Err(libc::ENOBUFS);
        }
        Ok(port)
    }

    /// The kernel has coalesced packets of a process with those for a port. No process has it any
    /// more if its socket was closed meanwhile.
    fn mix(&mut self, slot: Slot, to: IpAddr, port: u16) {
        let other = self.group.selected(to, port);
        if other != 0 {
            self.group.mix(slot, other);
        }
    }

    /// Passes an error to the processes that may have sent the packet. Each compares it with its
    /// associations.
    fn pass(&self, error: &ForeignError) {
        let Some(port) = error.port() else { return };
        for slot in self.group.having(error.destination.is_ipv6(), port) {
            if let Some(socket) = self.errors.get(&slot) {
                // A process that does not read loses errors, as with a full error queue.
                let _ = socket.send(&write_error(error));
            }
        }
    }

    /// A program that is shorter than the one before is permitted.
    fn attach(&mut self) {
        let _ = self.group.attach(&self.table);
    }
}

impl Space {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn malformed(&self) -> u32 {
        let stats = self.replies.stats();
        u32::try_from(stats.malformed + stats.bad_checksum).unwrap_or(u32::MAX)
    }

    /// Waits until there has been no process for a while.
    async fn over(&self) {
        loop {
            let changed = self.ended.notified();
            if self.lock().alive > 0 {
                changed.await;
            } else if timeout(GRACE, changed).await.is_err() && self.lock().alive == 0 {
                return;
            }
        }
    }
}

/// Keeps the daemon from ending.
struct Alive(Arc<Space>);

impl Alive {
    /// `None` if there are too many.
    fn new(space: &Arc<Space>) -> Option<Self> {
        let mut state = space.lock();
        if state.alive >= MOST_PROCESSES {
            return None;
        }
        state.alive += 1;
        drop(state);
        space.ended.notify_one();
        Some(Self(space.clone()))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.lock().alive -= 1;
        self.0.ended.notify_one();
    }
}

async fn accept(listener: &tokio::net::UnixListener, space: &Arc<Space>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Some(alive) = Alive::new(space) else { continue };
                tokio::spawn(async move {
                    let mut connection = Connection { alive, stream, slot: None };
                    connection.serve().await;
                });
            }
            // There are no descriptors left.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// The connection of a process.
struct Connection {
    alive: Alive,
    stream: UnixStream,
    slot: Option<Slot>,
}

impl Connection {
    /// Replies to the requests. The next one is read once the process has taken the reply, so that
    /// none waits here.
    async fn serve(&mut self) {
        let Ok(process) = name::peer(&self.stream) else { return };
        let mut bytes = [0; LONGEST];
        while let Some((number, request)) = self.next(&mut bytes).await {
            let mut sockets = Vec::new();
            let result = match request {
                Request::Attend => self.attend(process.as_raw()).map(|()| 0),
                Request::Join => self.join().map(|joined| {
                    sockets = joined;
                    0
                }),
                Request::Claim(id, claim) => self.claim(id, claim),
                Request::Release(id) => {
                    self.release(id);
                    continue;
                }
                Request::Count => Ok(self.alive.0.malformed()),
                Request::Misdirected(to, port) => {
                    self.slot.iter().for_each(|slot| self.alive.0.lock().mix(*slot, to, port));
                    continue;
                }
                Request::Unreachable(error) => {
                    self.alive.0.lock().pass(&error);
                    continue;
                }
            };
            let reply = match result {
                Ok(value) => Reply { error: 0, value },
                Err(error) => {
                    Reply { error: error.raw_os_error().unwrap_or(libc::EIO) as u32, value: 0 }
                }
            };
            if self.send(reply, number, &sockets).await.is_err() {
                return;
            }
        }
    }

    /// The next request; `None` at the end, or if it is malformed.
    async fn next(&mut self, bytes: &mut [u8; LONGEST]) -> Option<(u32, Request)> {
        let mut length = [0; 2];
        self.stream.read_exact(&mut length).await.ok()?;
        let bytes = bytes.get_mut(..u16::from_ne_bytes(length).into())?;
        self.stream.read_exact(bytes).await.ok()?;
        Request::read(bytes)
    }

    async fn send(&self, reply: Reply, number: u32, sockets: &[OwnedFd]) -> io::Result<()> {
        let bytes = reply.write(number);
        let numbers: Vec<RawFd> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&numbers)];
        let control = if numbers.is_empty() { &[][..] } else { &rights };
        let sent = self.stream.async_io(Interest::WRITABLE, || {
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            let fd = self.stream.as_raw_fd();
            Ok(sendmsg::<()>(fd, &[IoSlice::new(&bytes)], control, flags, None)?)
        });
        if sent.await? == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Keeps the daemon from ending until the process has ended.
    fn attend(&self, process: i32) -> io::Result<()> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let Some(alive) = Alive::new(&self.alive.0) else {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        };
        let process = Pid::from_raw(process).ok_or(io::ErrorKind::NotFound)?;
        let process = watched(pidfd_open(process, PidfdFlags::NONBLOCK)?)?;
        tokio::spawn(async move {
            let _ = process.readable().await;
            drop(alive);
        });
        Ok(())
    }

    fn join(&mut self) -> io::Result<Vec<OwnedFd>> {
        if self.slot.is_some() {
            return Err(io::Error::from_raw_os_error(libc::EALREADY));
        }
        let (slot, sockets) = self.alive.0.lock().join()?;
        self.slot = Some(slot);
        Ok(sockets)
    }

    fn claim(&self, id: u32, claim: Claim) -> io::Result<u32> {
        let claimed = match self.slot {
            Some(slot) => self.alive.0.lock().claim(slot, id, claim),
            None => Err(libc::ENOTCONN),
        };
        claimed.map(u32::from).map_err(io::Error::from_raw_os_error)
    }

    fn release(&self, id: u32) {
        if let Some(slot) = self.slot {
            let mut state = self.alive.0.lock();
            state.table.release(slot, id);
            state.attach();
        }
    }
}

#[expect(unsafe_code, reason = "tokio's safe function is deprecated")]
fn watched(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` owns its descriptor, which stays the same and open while it exists.
    Ok(unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) }?)
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.alive.0.lock().leave(slot);
        }
    }
}
