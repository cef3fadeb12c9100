//! The program's SCTP sockets: their state and the table of descriptors.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polypath::{Association, Endpoint};
use tokio::sync::Notify;

use crate::end::End;
use crate::errno::Errno;
use crate::frame::Header;
use crate::values::Options;
use crate::{real, report};

/// Progress of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// New, bound, or its last attempt to connect has failed.
    Idle,
    Listening,
    Connecting,
    Connected,
    /// The association is over.
    Closed,
}

/// State that the program's threads and the engine share.
pub(crate) struct Link {
    phase: AtomicU8,
    /// Error for the next call (SO_ERROR), or 0.
    error: AtomicI32,
    /// Abort instead of a graceful shutdown when the program closes the socket.
    pub(crate) abort: AtomicBool,
    /// Notified when the program has closed a descriptor of the socket.
    pub(crate) left: Notify,
    /// Messages that the program has not read, of those sent to its end of the pair.
    pub(crate) unread: AtomicI64,
    /// Bit for each type of notification that the program has subscribed to.
    pub(crate) events: AtomicU32,
    /// Number of outgoing streams.
    pub(crate) streams: AtomicU32,
    /// Association id (`sctp_assoc_t`).
    pub(crate) id: i32,
    /// The association. The lock is held for short moments only, never while the core is called.
    association: Mutex<Option<Association>>,
    /// Address and port of the peer.
    pub(crate) peer: Mutex<Option<SocketAddr>>,
}

/// Numbers of associations begin after the special values (SCTP_FUTURE_ASSOC, ...).
static NEXT_ID: AtomicI32 = AtomicI32::new(3);

impl Link {
    pub(crate) fn new(events: u32) -> Self {
        Self {
            phase: AtomicU8::new(Phase::Idle as u8),
            error: AtomicI32::new(0),
            abort: AtomicBool::new(false),
            left: Notify::new(),
            unread: AtomicI64::new(0),
            events: AtomicU32::new(events),
            streams: AtomicU32::new(0),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            association: Mutex::new(None),
            peer: Mutex::new(None),
        }
    }

    /// The link of a socket of the parent in a child of fork: with what the program knows, and
    /// without the association. Other threads may have held locks, so this one takes none.
    fn for_child(&self) -> Self {
        let copy = |number: &AtomicU32| AtomicU32::new(number.load(Ordering::Acquire));
        Self {
            phase: AtomicU8::new(self.phase.load(Ordering::Acquire)),
            events: copy(&self.events),
            streams: copy(&self.streams),
            id: self.id,
            peer: Mutex::new(self.peer.try_lock().map_or(None, |peer| *peer)),
            ..Self::new(0)
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Idle,
            1 => Phase::Listening,
            2 => Phase::Connecting,
            3 => Phase::Connected,
            _ => Phase::Closed,
        }
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Changes the phase unless another thread has changed it already.
    pub(crate) fn change_phase(&self, from: Phase, to: Phase) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.phase.compare_exchange(from as u8, to as u8, success, failure).is_ok()
    }

    pub(crate) fn fail(&self, error: c_int) {
        self.error.store(error, Ordering::Release);
    }

    /// The pending error, which is reported once.
    pub(crate) fn take_error(&self) -> c_int {
        self.error.swap(0, Ordering::AcqRel)
    }

    pub(crate) fn association(&self) -> Option<Association> {
        lock(&self.association).clone()
    }

    pub(crate) fn set_association(&self, association: Option<Association>) {
        if let Some(association) = &association {
            self.streams.store(association.streams().0.into(), Ordering::Release);
        }
        // The old one is dropped after the lock is released.
        let old = std::mem::replace(&mut *lock(&self.association), association);
        drop(old);
    }
}

/// The start of a message whose rest the program has not read yet.
pub(crate) struct Pending {
    pub(crate) header: Header,
    pub(crate) bytes: Vec<u8>,
    pub(crate) read: usize,
}

/// What the program has requested.
#[derive(Clone, Default)]
pub(crate) struct Names {
    /// Local addresses; empty for the wildcard.
    pub(crate) addresses: Vec<IpAddr>,
    /// SCTP port; 0 before it is chosen.
    pub(crate) port: u16,
    /// The program has called bind.
    pub(crate) bound: bool,
    pub(crate) endpoint: Option<Endpoint>,
}

/// An SCTP socket of the program.
pub(crate) struct Sock {
    /// AF_INET or AF_INET6.
    pub(crate) family: c_int,
    pub(crate) link: Arc<Link>,
    pub(crate) names: Mutex<Names>,
    pub(crate) options: Mutex<Options>,
    /// Protects reading, and holds the rest of a message.
    pub(crate) reading: Mutex<Option<Pending>>,
    /// The engine's end of the pair; `None` on a socket that accept has returned.
    pub(crate) engine_end: Mutex<Option<Arc<End>>>,
    /// Process in which the engine of this socket runs.
    pub(crate) process: u32,
}

impl Sock {
    /// Whether the engine runs in this process: it does not after fork.
    pub(crate) fn is_local(&self) -> bool {
        self.process == std::process::id()
    }

    /// The socket in a child of fork, see [`Link::for_child`].
    fn for_child(&self) -> Self {
        let names = self.names.try_lock().map(|names| Names {
            addresses: names.addresses.clone(),
            port: names.port,
            bound: names.bound,
            endpoint: None,
        });
        Self {
            family: self.family,
            link: Arc::new(self.link.for_child()),
            names: Mutex::new(names.unwrap_or_default()),
            options: Mutex::new(self.options.try_lock().map(|kept| *kept).unwrap_or_default()),
            reading: Mutex::default(),
            engine_end: Mutex::default(),
            process: self.process,
        }
    }

    /// The association of a connected socket.
    pub(crate) fn association(&self) -> Errno<Association> {
        if !self.is_local() {
            report::missed("a request about an association after fork");
            return Err(libc::EOPNOTSUPP);
        }
        self.link.association().ok_or(libc::EINVAL)
    }
}

/// Whether a call with these flags must not wait.
pub(crate) fn is_nonblocking(fd: c_int, flags: c_int) -> bool {
    // SAFETY: F_GETFL takes no pointer.
    let status = || unsafe { real::fcntl(fd, libc::F_GETFL, 0) };
    flags & libc::MSG_DONTWAIT != 0 || status() & libc::O_NONBLOCK != 0
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of descriptors that the bit map covers. Others are never SCTP sockets.
const DESCRIPTORS: usize = 1 << 16;

/// A bit for each descriptor: whether it is an SCTP socket. A call on any other descriptor takes no
/// lock, and so is as safe in a signal handler as the C library's own function.
static OURS: [AtomicU64; DESCRIPTORS / 64] = [const { AtomicU64::new(0) }; DESCRIPTORS / 64];

static TABLE: Mutex<BTreeMap<c_int, Arc<Sock>>> = Mutex::new(BTreeMap::new());

fn bit(fd: c_int) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok().filter(|fd| *fd < DESCRIPTORS)?;
    Some((&OURS[fd / 64], 1 << (fd % 64)))
}

/// The SCTP socket of a descriptor.
pub(crate) fn find(fd: c_int) -> Option<Arc<Sock>> {
    let (word, bit) = bit(fd)?;
    if word.load(Ordering::Acquire) & bit == 0 {
        return None;
    }
    lock(&TABLE).get(&fd).cloned()
}

/// Whether a descriptor is an SCTP socket.
pub(crate) fn is_ours(fd: c_int) -> bool {
    bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

/// Adds a descriptor; false if its number is too large.
pub(crate) fn insert(fd: c_int, sock: Arc<Sock>) -> bool {
    let Some((word, bit)) = bit(fd) else { return false };
    let old = lock(&TABLE).insert(fd, sock);
    word.fetch_or(bit, Ordering::AcqRel);
    if let Some(old) = old {
        release(old);
    }
    true
}

/// Removes a descriptor, before it is closed. The second value is whether it was the last of the
/// socket in this process.
pub(crate) fn remove(fd: c_int) -> Option<(Arc<Sock>, bool)> {
    let (word, bit) = bit(fd)?;
    if word.fetch_and(!bit, Ordering::AcqRel) & bit == 0 {
        return None;
    }
    let mut table = lock(&TABLE);
    let sock = table.remove(&fd)?;
    let last = !table.values().any(|other| Arc::ptr_eq(other, &sock));
    Some((sock, last))
}

/// Whether no other descriptor of this process has the socket.
pub(crate) fn is_only(fd: c_int, sock: &Arc<Sock>) -> bool {
    !lock(&TABLE).iter().any(|(other, known)| *other != fd && Arc::ptr_eq(known, sock))
}

/// Drops a socket. After fork, a socket of the parent is leaked instead: its association belongs to
/// the parent's engine, whose locks another thread may have held at the moment of the fork.
pub(crate) fn release(sock: Arc<Sock>) {
    if !sock.is_local() {
        std::mem::forget(sock);
    }
}

/// The descriptors of all sockets.
pub(crate) fn descriptors() -> Vec<c_int> {
    lock(&TABLE).keys().copied().collect()
}

/// Whether no thread is in the middle of a change, tried for a while: a signal handler that ends
/// the program may have interrupted one, which then never ends.
// A thread of the program waits, not one of the runtime.
#[allow(clippy::disallowed_methods)]
pub(crate) fn is_quiet() -> bool {
    (0..100).any(|_| {
        let quiet = TABLE.try_lock().is_ok();
        if !quiet {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        quiet
    })
}

/// Locks that a thread of the program may hold at the moment of a fork.
pub(crate) type Frozen = MutexGuard<'static, BTreeMap<c_int, Arc<Sock>>>;

pub(crate) fn freeze() -> Frozen {
    lock(&TABLE)
}

/// Replaces the sockets of the parent in a child of fork.
pub(crate) fn inherit(table: &mut Frozen) {
    let mut copies: Vec<(*const Sock, Arc<Sock>)> = Vec::new();
    for sock in table.values_mut() {
        let known = copies.iter().find(|(old, _)| *old == Arc::as_ptr(sock));
        let copy = known.map_or_else(|| Arc::new(sock.for_child()), |(_, copy)| copy.clone());
        copies.push((Arc::as_ptr(sock), copy.clone()));
        // The parent's engine has the association.
        std::mem::forget(std::mem::replace(sock, copy));
    }
}

/// The process that the table belongs to.
static PROCESS: AtomicU32 = AtomicU32::new(0);

pub(crate) fn set_process() {
    PROCESS.store(std::process::id(), Ordering::Release);
}

/// Whether the calling process shares the memory of the one that the table belongs to: a child of
/// vfork, which has its own descriptors.
pub(crate) fn is_borrowed() -> bool {
    PROCESS.load(Ordering::Acquire) != std::process::id()
}
