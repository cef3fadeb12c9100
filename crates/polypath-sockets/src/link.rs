//! Associations as the program and the engine share them, and the way of their packets.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use polypath::{AcceptedRequests, Association};
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::abi;
use crate::defaults::Defaults;
use crate::end::{Descriptor, sent};
use crate::frame::Header;
use crate::inbox::{Inbox, Pushed};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    /// The program has begun the graceful shutdown.
    pub(crate) ends: AtomicBool,
    /// The send buffer has refused a message of a thread that does not wait.
    pub(crate) blocked: AtomicBool,
    /// Fillers keep the program's end of the pair unwritable until there is room.
    pub(crate) filled: AtomicBool,
    /// Notified when another association of a one-to-many socket is blocked.
    pub(crate) held: Notify,
    /// listen with a backlog of 0 has ended the acceptance of associations.
    refuses: AtomicBool,
    /// shutdown with SHUT_RD: without messages, recv returns 0, and no more arrive.
    pub(crate) unread_end: AtomicBool,
    /// The peer has begun the shutdown: recv returns 0 after the last message.
    pub(crate) peer_shut: AtomicBool,
    /// The program has begun the shutdown, or the association has failed: recv fails after the last
    /// message.
    pub(crate) shut: AtomicBool,
    /// The program has aborted the association with SCTP_ABORT: no call finds it any more.
    pub(crate) aborted: AtomicBool,
    /// Of a listening socket: as many associations and one more may wait for accept. Locked while
    /// the endpoint begins or ends to accept associations.
    pub(crate) backlog: Mutex<u32>,
    /// Notified when accept has returned an association.
    pub(crate) taken: Notify,
    /// Notified when the program has closed a descriptor of the socket.
    pub(crate) left: Notify,
    /// AF_INET or AF_INET6.
    pub(crate) family: c_int,
    /// SCTP_I_WANT_MAPPED_V4_ADDR.
    mapped: AtomicBool,
    /// As in [`Route`].
    inbox: Mutex<Arc<Inbox>>,
    route: Mutex<Option<Route>>,
    /// Notified when the route has changed.
    pub(crate) rerouted: Notify,
    /// What the program sends on an association of a one-to-many socket.
    pub(crate) queue: Mutex<Option<Queue>>,
    /// Messages of a one-to-many socket that the core has refused, since the association is over;
    /// `None` once that is reported.
    late: Mutex<Option<Vec<(Header, Bytes)>>>,
    /// Notified when a message of the program has been passed to the core.
    pub(crate) sent: Notify,
    /// Notified when the program has subscribed to SCTP_SENDER_DRY_EVENT.
    pub(crate) awaits_dry: Notify,
    /// Time of the last message in either direction.
    touched: Mutex<Option<Instant>>,
    /// Bit for each type of notification that the program has subscribed to.
    pub(crate) events: AtomicU32,
    /// Of the association, or of a socket's next ones.
    pub(crate) defaults: Mutex<Defaults>,
    /// SCTP_ENABLE_STREAM_RESET; [`UNSET`] for the core's default.
    accepted: AtomicU32,
    /// SCTP_MAXSEG; 0 leaves it to the path MTU.
    pub(crate) max_segment: AtomicU32,
    /// SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, as [`abi::EXPOSE_PF`].
    pub(crate) expose_pf: AtomicU32,
    /// The error causes of the peer's ABORT.
    pub(crate) causes: Mutex<Bytes>,
    /// Number of outgoing streams.
    pub(crate) streams: AtomicU32,
    /// Association id (`sctp_assoc_t`).
    pub(crate) id: i32,
    /// The association. The lock is held for short moments only, never while the core is called.
    association: Mutex<Option<Association>>,
    /// Address and port of the peer.
    pub(crate) peer: Mutex<Option<SocketAddr>>,
    /// Bytes that the program has read and the core does not know of yet, and as many as it learns
    /// of at a time.
    read: AtomicUsize,
    read_share: AtomicUsize,
}

/// The core learns of what the program has read when that is this share of the receive buffer, and
/// at the latest after this number of bytes.
const READ_SHARE: usize = 64;
const MOST_READ: usize = 16 * 1024;

/// Value of an option that the program has not set.
const UNSET: u32 = u32::MAX;

/// Numbers of associations begin after the special values (SCTP_FUTURE_ASSOC, ...).
static NEXT_ID: AtomicI32 = AtomicI32::new(3);

impl Link {
    pub(crate) fn new(events: u32, family: c_int) -> Self {
        Self {
            phase: AtomicU8::new(Phase::Idle as u8),
            error: AtomicI32::new(0),
            abort: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            filled: AtomicBool::new(false),
            held: Notify::new(),
            refuses: AtomicBool::new(false),
            unread_end: AtomicBool::new(false),
            peer_shut: AtomicBool::new(false),
            shut: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            backlog: Mutex::new(0),
            taken: Notify::new(),
            left: Notify::new(),
            family,
            mapped: AtomicBool::new(true),
            inbox: Mutex::default(),
            route: Mutex::new(None),
            rerouted: Notify::new(),
            queue: Mutex::new(None),
            late: Mutex::new(Some(Vec::new())),
            sent: Notify::new(),
            awaits_dry: Notify::new(),
            touched: Mutex::new(None),
            events: AtomicU32::new(events),
            max_segment: AtomicU32::new(0),
            expose_pf: AtomicU32::new(0),
            causes: Mutex::default(),
            streams: AtomicU32::new(0),
            defaults: Mutex::default(),
            accepted: AtomicU32::new(UNSET),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            association: Mutex::new(None),
            peer: Mutex::new(None),
            read: AtomicUsize::new(0),
            read_share: AtomicUsize::new(0),
        }
    }

    /// The link of a socket of the parent in a child of fork: with what the program knows, and
    /// without the association. Other threads may have held locks, so this one takes none.
    pub(crate) fn for_child(&self) -> Self {
        let copy = |number: &AtomicU32| AtomicU32::new(number.load(Ordering::Acquire));
        Self {
            phase: AtomicU8::new(self.phase.load(Ordering::Acquire)),
            events: copy(&self.events),
            streams: copy(&self.streams),
            mapped: AtomicBool::new(self.mapped.load(Ordering::Acquire)),
            defaults: Mutex::new(self.defaults.try_lock().map(|kept| *kept).unwrap_or_default()),
            id: self.id,
            peer: Mutex::new(self.peer.try_lock().map_or(None, |peer| *peer)),
            inbox: Mutex::new(Arc::new(
                self.inbox
                    .try_lock()
                    .map_or_else(|_| Inbox::new_shared(), |inbox| inbox.for_child()),
            )),
            ..Self::new(0, self.family)
        }
    }

    pub(crate) fn set_mapped(&self, mapped: bool) {
        self.mapped.store(mapped, Ordering::Release);
    }

    /// The family in which the program gets IPv4 addresses: mapped ones of AF_INET6, or AF_INET.
    pub(crate) fn name_family(&self) -> c_int {
        if self.mapped.load(Ordering::Acquire) { self.family } else { libc::AF_INET }
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

    pub(crate) fn is_refusing(&self) -> bool {
        self.refuses.load(Ordering::Acquire)
    }

    pub(crate) fn set_refusing(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::Release);
    }

    /// Changes the phase unless another thread has changed it already.
    pub(crate) fn change_phase(&self, from: Phase, to: Phase) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.phase.compare_exchange(from as u8, to as u8, success, failure).is_ok()
    }

    /// The link of a new association of a listening or one-to-many socket.
    pub(crate) fn member(&self) -> Self {
        let link = Self::new(self.events.load(Ordering::Acquire), self.family);
        link.accepted.store(self.accepted.load(Ordering::Acquire), Ordering::Release);
        link.set_mapped(self.mapped.load(Ordering::Acquire));
        link.max_segment.store(self.max_segment.load(Ordering::Acquire), Ordering::Release);
        link.inbox().limit(self.inbox().most());
        link.expose_pf.store(self.expose_pf.load(Ordering::Acquire), Ordering::Release);
        *lock(&link.defaults) = *lock(&self.defaults);
        link
    }

    pub(crate) fn set_accepted(&self, flags: u32) {
        self.accepted.store(flags, Ordering::Release);
    }

    /// SCTP_ENABLE_STREAM_RESET: what the program has set, or 0 as in Linux.
    pub(crate) fn accepted(&self) -> u32 {
        match self.accepted.load(Ordering::Acquire) {
            UNSET => 0,
            flags => flags,
        }
    }

    /// Applies what the program has set before the association existed.
    pub(crate) fn apply(&self, association: &Association) {
        // Fails if the two sides have not agreed on stream reconfiguration.
        let _ = association.accept_requests(accepted_requests(self.accepted()));
    }

    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        lock(&self.inbox).clone()
    }

    pub(crate) fn set_inbox(&self, inbox: Arc<Inbox>) {
        *lock(&self.inbox) = inbox;
    }

    pub(crate) fn route(&self) -> Option<Route> {
        lock(&self.route).clone()
    }

    pub(crate) fn set_route(&self, route: Option<Route>) {
        // The old one is dropped after the lock is released.
        let old = std::mem::replace(&mut *lock(&self.route), route);
        drop(old);
        self.rerouted.notify_waiters();
    }

    /// Whether the program has subscribed to this type of notifications.
    pub(crate) fn wants(&self, kind: u16) -> bool {
        self.events.load(Ordering::Acquire) & 1 << (kind - abi::DATA_IO_EVENT) != 0
    }

    /// Marks that a message was sent or received.
    pub(crate) fn touch(&self) {
        *lock(&self.touched) = Some(Instant::now());
    }

    pub(crate) fn touched(&self) -> Instant {
        *lock(&self.touched).get_or_insert_with(Instant::now)
    }

    pub(crate) fn fail(&self, error: c_int) {
        self.shut.store(true, Ordering::Release);
        self.error.store(error, Ordering::Release);
    }

    /// The pending error, which is reported once.
    pub(crate) fn take_error(&self) -> c_int {
        self.error.swap(0, Ordering::AcqRel)
    }

    /// SCTP_MAXSEG, if the program has set it.
    pub(crate) fn max_segment(&self) -> Option<u32> {
        Some(self.max_segment.load(Ordering::Acquire)).filter(|size| *size != 0)
    }

    /// Maximum payload of a DATA chunk in a packet of this size without the IP header.
    pub(crate) fn largest_payload(&self, packet: u32) -> u32 {
        // The chunk's header takes 16 bytes.
        packet.saturating_sub(16).min(self.max_segment().unwrap_or(u32::MAX))
    }

    pub(crate) fn association(&self) -> Option<Association> {
        lock(&self.association).clone()
    }

    pub(crate) fn set_association(&self, association: Option<Association>) {
        if let Some(association) = &association {
            self.streams.store(association.streams().0.into(), Ordering::Release);
            association.set_max_fragment(self.max_segment());
            association.keep_undelivered();
            // What waits for the program takes room in the window.
            association.count_unread();
            let share = association.config().receive_buffer() as usize / READ_SHARE;
            self.read_share.store(share.min(MOST_READ), Ordering::Release);
        }
        // The old one is dropped after the lock is released.
        let old = std::mem::replace(&mut *lock(&self.association), association);
        drop(old);
    }
}

impl Link {
    /// The program has read this number of bytes of the association's messages.
    pub(crate) fn has_read(&self, bytes: usize) {
        let read = self.read.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if read >= self.read_share.load(Ordering::Acquire)
            && let Some(association) = self.association()
        {
            association.has_read(self.read.swap(0, Ordering::AcqRel));
        }
    }

    /// What waits for the program takes no room in the window: it may be read elsewhere.
    pub(crate) fn forget_unread(&self) {
        if let Some(association) = self.association() {
            association.has_read(usize::MAX);
        }
    }
}

/// The requests of the peer that SCTP_ENABLE_STREAM_RESET grants.
pub(crate) const fn accepted_requests(flags: u32) -> AcceptedRequests {
    AcceptedRequests {
        reset_streams: flags & 1 != 0,
        reset_association: flags & 2 != 0,
        add_streams: flags & 4 != 0,
    }
}

/// Where the messages of an association go: a pair, which the associations of a one-to-many socket
/// share.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) fd: Arc<AsyncFd<Descriptor>>,
    /// What waits for the program there.
    pub(crate) inbox: Arc<Inbox>,
}

/// How often the engine checks whether a program that does not read has closed the socket by other
/// means than this library's.
const LOOK: Duration = Duration::from_secs(1);

impl Link {
    /// Waits until the pair has what a fork could not move there at once.
    pub(crate) async fn flush(&self) {
        if let Some(route) = self.route() {
            let flush = |end: &Descriptor| route.inbox.flush(end);
            let _ = sent(route.fd.get_ref(), flush).await;
        }
    }

    /// Makes the program's descriptor readable if packets wait.
    pub(crate) fn signal(&self) {
        if let Some(route) = self.route() {
            route.inbox.signal(route.fd.get_ref());
        }
    }

    /// Sends a packet to the program, which sees it after [`signal`](Self::signal) at the latest;
    /// false if it has closed its end.
    pub(crate) async fn deliver(&self, header: &Header, payload: &Bytes) -> bool {
        let header = Header { association: self.id, peer: *lock(&self.peer), ..*header };
        loop {
            let rerouted = self.rerouted.notified();
            let Some(route) = self.route() else { return false };
            let room = route.inbox.room.notified();
            let stays = || self.route().is_some_and(|now| same(&now, &route));
            let attempt = |fd: &Descriptor| route.inbox.push(fd, &header, payload, stays);
            tokio::pin!(rerouted);
            let pushed = tokio::select! {
                biased;
                pushed = sent(route.fd.get_ref(), attempt) => pushed,
                () = &mut rerouted => continue,
            };
            match pushed {
                Ok(Pushed::Done) => return true,
                Ok(Pushed::Moved) => {}
                Ok(Pushed::Full) if route.inbox.is_closed() || route.fd.get_ref().hung_up() => {
                    return false;
                }
                Ok(Pushed::Full) => {
                    route.inbox.signal(route.fd.get_ref());
                    tokio::select! {
                        () = room => {}
                        () = rerouted => {}
                        () = tokio::time::sleep(LOOK) => {}
                    }
                }
                Err(_) => return false,
            }
        }
    }
}

/// The descriptor of a route's end, for tests of equality.
fn same(one: &Route, other: &Route) -> bool {
    one.fd.get_ref().as_raw_fd() == other.fd.get_ref().as_raw_fd()
}

/// A packet of the program for one association.
pub(crate) struct Packet {
    pub(crate) header: Header,
    pub(crate) payload: Bytes,
    /// Its share of the socket's queues.
    pub(crate) _room: Option<OwnedSemaphorePermit>,
}

/// The queue of what the program sends on an association of a one-to-many socket.
pub(crate) struct Queue {
    pub(crate) packets: mpsc::UnboundedSender<Packet>,
    /// Sends what is queued; ends after the last packet once the queue is dropped.
    pub(crate) task: JoinHandle<()>,
}

impl Link {
    /// Adds a message that the core has refused to those that are reported as lost when the end of
    /// the association is; returns the payload if that was reported.
    pub(crate) fn add_late(&self, header: &Header, payload: Bytes) -> Result<(), Bytes> {
        match &mut *lock(&self.late) {
            Some(late) => late.push((*header, payload)),
            None => return Err(payload),
        }
        Ok(())
    }

    /// The messages that the core has refused. There are no further ones.
    pub(crate) fn take_late(&self) -> Vec<(Header, Bytes)> {
        lock(&self.late).take().unwrap_or_default()
    }

    pub(crate) fn enqueue(&self, packet: Packet) {
        if let Some(queue) = &*lock(&self.queue) {
            // An error means that the association is over.
            let _ = queue.packets.send(packet);
        }
    }
}

/// An association that has been removed, and whose last notifications are not delivered yet.
pub(crate) struct Ending(Arc<Many>);

impl Drop for Ending {
    fn drop(&mut self) {
        *lock(&self.0.ending) -= 1;
        self.0.ended.notify_all();
    }
}

/// The longest time for which a call waits for the last notifications of an association. They
/// take longer only where nothing reads the socket.
const LONGEST_END: Duration = Duration::from_secs(1);

/// The associations of a one-to-many socket.
#[derive(Default)]
pub(crate) struct Many {
    links: Mutex<BTreeMap<i32, Arc<Link>>>,
    /// How many associations have been removed without their last notifications, which follow.
    ending: Mutex<u32>,
    ended: Condvar,
    /// Where messages of all of them go; `None` before the first call that needs an endpoint.
    pub(crate) route: Mutex<Option<Route>>,
    /// SCTP_AUTOCLOSE in seconds; 0 for never.
    pub(crate) autoclose: AtomicU32,
    /// In a child of fork: the parent's engine serves the socket, and sends what the child writes.
    pub(crate) is_served: bool,
}

impl Many {
    pub(crate) fn add(&self, link: Arc<Link>) {
        lock(&self.links).insert(link.id, link);
    }

    /// Removes an association; false if it has been peeled off.
    pub(crate) fn remove(&self, id: i32) -> bool {
        lock(&self.links).remove(&id).is_some()
    }

    /// Removes an association whose last notifications follow until the result is dropped; the
    /// program does not find it any more when it reads them. `None` if it has been peeled off.
    pub(crate) fn end(self: &Arc<Self>, id: i32) -> Option<Ending> {
        // Counted first: a call that does not find the association any more waits.
        *lock(&self.ending) += 1;
        let ending = Ending(self.clone());
        self.remove(id).then_some(ending)
    }

    /// Waits for the last notifications of associations that have been removed.
    pub(crate) fn wait_for_ends(&self) {
        let left = self.ended.wait_timeout_while(lock(&self.ending), LONGEST_END, |left| *left > 0);
        drop(left.unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn get(&self, id: i32) -> Option<Arc<Link>> {
        lock(&self.links).get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Link>> {
        lock(&self.links).values().cloned().collect()
    }

    /// The association with this id, unless the program has aborted it.
    pub(crate) fn open(&self, id: i32) -> Option<Arc<Link>> {
        self.get(id).filter(|link| !link.aborted.load(Ordering::Acquire))
    }

    /// The associations that the program has not aborted.
    pub(crate) fn opened(&self) -> Vec<Arc<Link>> {
        let mut links = self.all();
        links.retain(|link| !link.aborted.load(Ordering::Acquire));
        links
    }

    /// Whether an association that the program has aborted is not over yet.
    pub(crate) fn has_aborted(&self) -> bool {
        self.all().iter().any(|link| link.aborted.load(Ordering::Acquire))
    }

    /// The association with a peer.
    pub(crate) fn find(&self, peer: SocketAddr) -> Option<Arc<Link>> {
        let all = self.opened();
        let has_address = |link: &&Arc<Link>| {
            link.association().is_some_and(|association| {
                association.peer_port() == peer.port()
                    && association.paths().iter().any(|path| path.view.remote == peer.ip())
            })
        };
        let known = all.iter().find(|link| *lock(&link.peer) == Some(peer));
        known.or_else(|| all.iter().find(has_address)).cloned()
    }

    /// The socket in a child of fork.
    pub(crate) fn for_child(&self) -> Self {
        let links = self.links.try_lock().map(|links| {
            links.iter().map(|(id, link)| (*id, Arc::new(link.for_child()))).collect()
        });
        let is_served = self.route.try_lock().is_ok_and(|route| route.is_some());
        Self { links: Mutex::new(links.unwrap_or_default()), is_served, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // In a thread of the test.
    #[allow(clippy::disallowed_methods)]
    #[test]
    fn a_call_waits_until_the_last_notification_is_delivered() {
        let many = Arc::<Many>::default();
        let link = Arc::new(Link::new(0, libc::AF_INET));
        let id = link.id;
        many.add(link);
        let ending = many.end(id);
        assert!(ending.is_some() && many.all().is_empty() && many.end(id).is_none());
        let delivered = Arc::new(AtomicBool::new(false));
        let engine = std::thread::spawn({
            let delivered = delivered.clone();
            move || {
                std::thread::sleep(Duration::from_millis(50));
                delivered.store(true, Ordering::Release);
                drop(ending);
            }
        });
        many.wait_for_ends();
        assert!(delivered.load(Ordering::Acquire));
        engine.join().unwrap();
        many.wait_for_ends();
    }
}
