//! The program's SCTP sockets: their state and the table of descriptors.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use polypath::{Association, AuthKeys, Endpoint};
use polypath_ports::client::Claimed;

use crate::end::End;
use crate::errno::Errno;
use crate::frame::Header;
use crate::link::{Link, Many, Phase, lock};
use crate::values::Options;
use crate::{real, report};

/// The start of a message whose rest the program has not read yet.
pub(crate) struct Pending {
    pub(crate) header: Header,
    pub(crate) bytes: Vec<u8>,
    pub(crate) read: usize,
    /// The packet is no longer in the pair.
    pub(crate) taken: bool,
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
    /// SCTP_AUTH_KEY.
    pub(crate) auth_keys: AuthKeys,
    /// The port among those of all processes, with `polypath run --shared`.
    pub(crate) claim: Option<Arc<Claimed>>,
    pub(crate) endpoint: Option<Endpoint>,
}

/// An SCTP socket of the program.
pub(crate) struct Sock {
    /// AF_INET or AF_INET6.
    pub(crate) family: c_int,
    /// SOCK_STREAM or SOCK_SEQPACKET.
    pub(crate) kind: c_int,
    /// The association, or what the associations of a one-to-many socket have in common.
    pub(crate) link: Arc<Link>,
    /// The associations of a one-to-many socket.
    pub(crate) many: Option<Arc<Many>>,
    pub(crate) names: Mutex<Names>,
    pub(crate) options: Mutex<Options>,
    /// Protects reading, and holds the rest of a message.
    pub(crate) reading: Mutex<Option<Pending>>,
    /// The engine's end of the pair; `None` on a socket that accept has returned.
    pub(crate) engine_end: Mutex<Option<Arc<End>>>,
    /// Process in which the engine of this socket runs.
    pub(crate) process: u32,
    /// `sctp_peeloff` has made it: Linux ignores the destinations of its messages.
    pub(crate) peeled: bool,
}

impl Sock {
    /// Whether the engine runs in this process: it does not after fork. A child of vfork has the
    /// memory of its parent, and so its engine, too.
    pub(crate) fn is_local(&self) -> bool {
        self.process == PROCESS.load(Ordering::Acquire)
    }

    /// The socket in a child of fork, see [`Link::for_child`].
    fn for_child(&self) -> Self {
        let names = self.names.try_lock().map(|names| Names {
            addresses: names.addresses.clone(),
            port: names.port,
            bound: names.bound,
            ..Names::default()
        });
        let link = Arc::new(self.link.for_child());
        Self {
            many: self.many.as_ref().map(|many| Arc::new(many.for_child())),
            names: Mutex::new(names.unwrap_or_default()),
            options: Mutex::new(self.options.try_lock().map(|kept| *kept).unwrap_or_default()),
            peeled: self.peeled,
            ..Self::new(self.family, self.kind, link, self.process)
        }
    }

    /// Whether the wildcard address of the socket means IPv4 addresses, and IPv6 addresses.
    fn families(&self) -> [bool; 2] {
        let six = self.family == libc::AF_INET6;
        [!(six && lock(&self.options).only_v6), six]
    }

    /// A one-to-one socket without a name.
    pub(crate) fn new(family: c_int, kind: c_int, link: Arc<Link>, process: u32) -> Self {
        Self {
            family,
            kind,
            link,
            many: None,
            names: Mutex::default(),
            options: Mutex::default(),
            reading: Mutex::default(),
            engine_end: Mutex::default(),
            process,
            peeled: false,
        }
    }

    /// A socket for an association that `from` has accepted or gives away: with its local addresses
    /// and its options.
    pub(crate) fn of_association(from: &Self, link: Arc<Link>, process: u32) -> Self {
        let names = lock(&from.names);
        let (addresses, port) = (names.addresses.clone(), names.port);
        drop(names);
        Self {
            names: Mutex::new(Names { addresses, port, bound: true, ..Names::default() }),
            options: Mutex::new(*lock(&from.options)),
            ..Self::new(from.family, from.kind, link, process)
        }
    }

    /// The link of an association; one-to-one sockets ignore the id.
    pub(crate) fn member(&self, id: i32) -> Errno<Arc<Link>> {
        match &self.many {
            None => Ok(self.link.clone()),
            Some(many) => many.open(id).ok_or(libc::EINVAL),
        }
    }

    /// The association of a connected socket, or the one with this id.
    pub(crate) fn association(&self, id: i32) -> Errno<Association> {
        if !self.is_local() {
            report::missed("a request about an association after fork");
            return Err(libc::EOPNOTSUPP);
        }
        self.member(id)?.association().ok_or(libc::EINVAL)
    }
}

/// Whether a call with these flags must not wait.
pub(crate) fn is_nonblocking(fd: c_int, flags: c_int) -> bool {
    // SAFETY: F_GETFL takes no pointer.
    let status = || unsafe { real::fcntl(fd, libc::F_GETFL, 0) };
    flags & libc::MSG_DONTWAIT != 0 || status() & libc::O_NONBLOCK != 0
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

/// Whether a socket may have this address, or the wildcard, and this port: EADDRINUSE if another
/// socket of this process has them, unless both have SO_REUSEADDR or SCTP_REUSE_PORT and the other
/// one does not listen, or both have SO_REUSEPORT. Sockets that accept has returned do not count.
pub(crate) fn check_free(sock: &Sock, ip: IpAddr, port: u16) -> Errno<()> {
    let own = *lock(&sock.options);
    let reuses = |options: &Options| options.reuse_address || options.reuse_port;
    let wanted = sock.families();
    // The lock of the table is not held while those of sockets are.
    let others: Vec<_> = lock(&TABLE).values().cloned().collect();
    let taken = others.iter().any(|other| {
        if std::ptr::eq(Arc::as_ptr(other), sock) || lock(&other.engine_end).is_none() {
            return false;
        }
        let known = other.families();
        let names = lock(&other.names);
        let same = match (ip.is_unspecified(), &names.addresses[..]) {
            (true, []) => (0..2).any(|family| wanted[family] && known[family]),
            (true, addresses) => addresses.iter().any(|ip| wanted[usize::from(ip.is_ipv6())]),
            (false, []) => known[usize::from(ip.is_ipv6())],
            (false, addresses) => addresses.contains(&ip),
        };
        let listens = other.link.phase() == Phase::Listening;
        let others = *lock(&other.options);
        let both = (reuses(&own) && reuses(&others) && !listens)
            || (own.shares_port && others.shares_port);
        names.bound && port != 0 && names.port == port && same && !both
    });
    others.into_iter().for_each(release);
    if taken { Err(libc::EADDRINUSE) } else { Ok(()) }
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
