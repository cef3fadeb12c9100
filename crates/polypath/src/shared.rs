//! State shared by the handles and the driver: the protocol behind a lock, and the tasks that wait.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Waker;

use polypath_dtls::{self as dtls, Fingerprint, Refusal};
use polypath_proto::{self as proto, AssociationId, CloseReason, Event, Time};
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use crate::events;
use crate::observed::{Observed, Snapshot};
use crate::socket::{Socket, SocketStats};

/// Maximum number of events queued for a slow observer.
const OBSERVED: usize = 1024;

/// Shared by the driver and all handles of an endpoint.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// When the protocol's clock was 0.
    origin: Instant,
    /// Wakes tasks that wait in `accept`.
    pub(crate) incoming: Notify,
    /// Wakes tasks that wait for the end of the driver.
    pub(crate) ended: Notify,
    assistant: OnceLock<Weak<dyn Assistant>>,
}

/// The part of the driver that works in a handle's thread.
pub(crate) trait Assistant: Send + Sync {
    /// Sends what the protocol has to send while the driver sleeps; `waker` wakes it. True if that
    /// is left to the driver.
    fn assist(&self, waker: &Waker) -> bool;
}

impl fmt::Debug for dyn Assistant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Assistant")
    }
}

/// State protected by the lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) proto: proto::Endpoint,
    pub(crate) entries: BTreeMap<AssociationId, Entry>,
    /// Established associations that are not yet accepted.
    pub(crate) incoming: VecDeque<AssociationId>,
    /// The endpoint neither accepts nor opens associations any more.
    pub(crate) closing: bool,
    /// The driver has ended: packets are no longer sent or received.
    pub(crate) driver_gone: bool,
    /// Socket counters, one for each local address.
    pub(crate) sockets: Vec<SocketStats>,
    /// The local addresses with their UDP ports.
    pub(crate) locals: Vec<SocketAddr>,
    /// Sockets that a handle has opened, not yet taken by the driver.
    pub(crate) opened: Vec<Socket>,
    /// Removed addresses that peers may still send to.
    pub(crate) leaving: Vec<Leaving>,
    /// Counters of the DTLS layer.
    pub(crate) dtls: dtls::Stats,
    /// Packets for an association that came from another certificate than its peer's.
    pub(crate) intruders: u64,
    /// Addresses to which no encrypted connection was made, with the reasons.
    pub(crate) refusals: BTreeMap<IpAddr, Refusal>,
    /// Queue of events for observers, once there is one.
    observers: Option<broadcast::Sender<Observed>>,
    /// Waker of the driver while it sleeps.
    driver: Option<Waker>,
    /// A handle has left work for the driver.
    work: bool,
}

/// A removed local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    pub(crate) address: IpAddr,
    /// Time to close its socket, set once no peer sends to it any more.
    pub(crate) until: Option<Time>,
}

/// The handles' view of one association.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) wakes: Arc<Wakes>,
    pub(crate) events: Option<broadcast::Sender<Event>>,
    pub(crate) handle: HandleState,
    pub(crate) established: bool,
    /// This side has begun the graceful shutdown.
    pub(crate) shutting_down: bool,
    /// Set by [`Event::Closed`], the last event.
    pub(crate) closed: Option<CloseReason>,
    /// Certificate of the peer.
    pub(crate) peer: Option<Fingerprint>,
    /// Reason why encryption was refused before the association was established.
    pub(crate) refused: Option<Refusal>,
    /// Messages may be sent in different ways: one may overtake others that wait.
    pub(crate) overtaking: bool,
    /// Bytes that the application has received since the driver was last woken for a window update.
    pub(crate) consumed: usize,
}

/// Whether the application holds a handle of the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandleState {
    /// Not yet accepted.
    Waiting,
    /// At least one handle exists.
    Held,
    /// The last handle was dropped.
    Dropped,
}

/// Wakes tasks that wait for an association. Several tasks may wait; all are woken and check again.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    pub(crate) readable: Arc<Notify>,
    pub(crate) writable: Arc<Notify>,
    /// Established, drained or closed.
    pub(crate) state: Notify,
}

impl Wakes {
    fn all(&self) {
        self.readable.notify_waiters();
        self.writable.notify_waiters();
        self.state.notify_waiters();
    }
}

impl Entry {
    pub(crate) fn new(handle: HandleState) -> Self {
        Self {
            wakes: Arc::default(),
            events: None,
            handle,
            established: false,
            shutting_down: false,
            closed: None,
            peer: None,
            refused: None,
            overtaking: false,
            consumed: 0,
        }
    }
}

impl Shared {
    pub(crate) fn new(proto: proto::Endpoint, locals: Vec<SocketAddr>, origin: Instant) -> Self {
        Self {
            state: Mutex::new(State {
                proto,
                entries: BTreeMap::new(),
                incoming: VecDeque::new(),
                closing: false,
                driver_gone: false,
                sockets: vec![SocketStats::default(); locals.len()],
                locals,
                opened: Vec::new(),
                leaving: Vec::new(),
                dtls: dtls::Stats::default(),
                intruders: 0,
                refusals: BTreeMap::new(),
                observers: None,
                driver: None,
                work: false,
            }),
            origin,
            incoming: Notify::new(),
            ended: Notify::new(),
            assistant: OnceLock::new(),
        }
    }

    /// Makes the driver known.
    pub(crate) fn set_assistant(&self, assistant: Weak<dyn Assistant>) {
        // There is one driver.
        let _ = self.assistant.set(assistant);
    }

    /// Sends what the protocol has to send in this thread, or wakes the driver for it. `waker` is
    /// that of a driver that sleeps ([`State::sleeping`]).
    pub(crate) fn assist(&self, waker: &Waker) {
        let assistant = self.assistant.get().and_then(Weak::upgrade);
        if assistant.is_none_or(|assistant| assistant.assist(waker)) {
            self.with(State::poke);
        }
    }

    /// The protocol's clock: time since the endpoint was created.
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.origin.elapsed()
    }

    /// Converts the protocol's time to an instant; `None` if it is beyond the range of the clock.
    pub(crate) fn instant(&self, time: Time) -> Option<Instant> {
        self.origin.checked_add(time.since(Time::ZERO))
    }

    /// Locks the state. A panic while it was locked ends the driver, which is reported as the end
    /// of every association, so a poisoned lock needs no report of its own.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f` with the state locked, then wakes the driver if `f` left work for it
    /// ([`State::poke`]).
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = f(&mut state);
        let driver = if state.work { state.driver.take() } else { None };
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        result
    }
}

impl State {
    /// Marks work for the driver; called after everything that may lead to packets, events or
    /// timers.
    pub(crate) const fn poke(&mut self) {
        self.work = true;
    }

    /// The driver is awake and is about to check everything.
    pub(crate) fn begin_round(&mut self) {
        self.work = false;
        self.driver = None;
    }

    /// Registers the driver's waker before it sleeps; false if there is work.
    pub(crate) fn sleep(&mut self, waker: &Waker) -> bool {
        if self.work {
            return false;
        }
        self.driver = Some(waker.clone());
        true
    }

    /// The waker of the driver, if it sleeps and nothing has woken it yet.
    pub(crate) const fn sleeping(&self) -> Option<&Waker> {
        self.driver.as_ref()
    }

    /// The handles' view of an association, created if it does not exist yet.
    pub(crate) fn entry(&mut self, id: AssociationId) -> &mut Entry {
        self.entries.entry(id).or_insert_with(|| Entry::new(HandleState::Waiting))
    }

    /// The events of all associations from now on, for an observer.
    pub(crate) fn observe(&mut self) -> broadcast::Receiver<Observed> {
        let sender = self.observers.get_or_insert_with(|| broadcast::channel(OBSERVED).0);
        sender.subscribe()
    }

    /// Passes the protocol's events on to the handles.
    pub(crate) fn dispatch_events(&mut self, shared: &Shared) {
        let now = shared.now();
        while let Some((id, event)) = self.proto.poll_event() {
            let entry = self.entries.entry(id).or_insert_with(|| Entry::new(HandleState::Waiting));
            match &event {
                Event::Established { inbound } => {
                    entry.established = true;
                    entry.wakes.state.notify_waiters();
                    if *inbound && entry.handle == HandleState::Waiting {
                        self.incoming.push_back(id);
                        shared.incoming.notify_waiters();
                    }
                }
                Event::Readable => entry.wakes.readable.notify_waiters(),
                Event::Writable => entry.wakes.writable.notify_waiters(),
                Event::Drained | Event::SendFailed { .. } => entry.wakes.state.notify_waiters(),
                Event::PeerShutdown => entry.wakes.writable.notify_waiters(),
                Event::Closed(reason) => {
                    entry.closed = Some(reason.clone());
                    entry.wakes.all();
                }
                _ => {}
            }
            if let Some(observers) = &self.observers
                && events::is_public(&event)
            {
                let last = self.proto.association(id).filter(|_| entry.closed.is_some());
                let last = last.map(|association| Snapshot::new(id, association));
                let _ = observers.send(Observed {
                    association: id,
                    at: now,
                    event: event.clone(),
                    last,
                });
            }
            if let Some(events) = &entry.events
                && events::is_public(&event)
            {
                // An error means that there is no receiver at the moment.
                let _ = events.send(event);
            }
            if entry.closed.is_some() {
                entry.events = None;
                let unclaimed = entry.handle == HandleState::Waiting && !entry.established;
                if unclaimed {
                    entry.handle = HandleState::Dropped;
                }
                self.forget_if_done(id, now);
            }
        }
    }

    /// Marks that the last handle of an association was dropped (or that none will ever be taken).
    pub(crate) fn let_go(&mut self, id: AssociationId, shared: &Shared) {
        let now = shared.now();
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.handle = HandleState::Dropped;
        if entry.closed.is_none()
            && !entry.shutting_down
            && let Some(association) = self.proto.association_mut(id)
        {
            association.abort(now, b"the application has dropped the association");
        }
        // An aborted association is closed already and no longer blocks a new one.
        self.dispatch_events(shared);
        self.forget_if_done(id, now);
        self.poke();
    }

    /// Releases an association that is over and has no handle.
    fn forget_if_done(&mut self, id: AssociationId, now: Time) {
        if let Some(entry) = self.entries.get(&id)
            && entry.closed.is_some()
            && entry.handle == HandleState::Dropped
        {
            self.entries.remove(&id);
            self.proto.release(now, id);
        }
    }

    /// Stops accepting and opening associations, and aborts those not yet accepted.
    pub(crate) fn close(&mut self, shared: &Shared) {
        self.closing = true;
        self.proto.set_listening(false);
        for id in std::mem::take(&mut self.incoming) {
            self.let_go(id, shared);
        }
        self.poke();
    }

    /// Whether the endpoint is closing and has no open association.
    pub(crate) fn is_done(&self) -> bool {
        self.closing && self.entries.values().all(|entry| entry.closed.is_some())
    }

    /// Marks the end of the driver, whether it finished or its runtime was dropped.
    pub(crate) fn end(&mut self, shared: &Shared) {
        self.driver_gone = true;
        self.closing = true;
        for entry in self.entries.values_mut() {
            entry.closed.get_or_insert(CloseReason::LocalAbort);
            entry.events = None;
            entry.wakes.all();
        }
        shared.incoming.notify_waiters();
        shared.ended.notify_waiters();
    }
}
