//! The program's SCTP sockets: their state and the table of descriptors.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polypath::{Association, Endpoint};

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
            events: AtomicU32::new(events),
            streams: AtomicU32::new(0),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            association: Mutex::new(None),
            peer: Mutex::new(None),
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
#[derive(Default)]
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

/// Locks everything that a thread of the program may hold at the moment of a fork, and unlocks it
/// in both processes.
pub(crate) struct Frozen {
    _table: MutexGuard<'static, BTreeMap<c_int, Arc<Sock>>>,
}

pub(crate) fn freeze() -> Frozen {
    Frozen { _table: lock(&TABLE) }
}
