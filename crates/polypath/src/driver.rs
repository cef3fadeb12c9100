//! The task of an endpoint: moves bytes between its sockets and the protocol, and keeps the time.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use polypath_dtls::Fingerprint;
use polypath_proto::{Ecn, FourTuple, Fragmentation, Quoted, Time, Transmit};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Instant, Sleep};

use crate::locals::Locals;
use crate::secure::{self, Secure};
use crate::shared::{Assistant, Shared, State};
use crate::socket::{MAX_TRANSMIT, NetworkError, Outgoing, ReceiveBuffers, Socket};

/// Maximum number of transmits (each up to [`MAX_TRANSMIT`] bytes) per wake-up, so that
/// acknowledgements are read while data is sent, and the application's tasks run in between on the
/// same thread.
const TRANSMITS: usize = 16;

/// Maximum number of system calls that receive from one socket per wake-up. The second one mostly
/// finds nothing, after which the operating system wakes the task; the task would otherwise have to
/// wake itself for it, and a runtime with several threads would wake another thread, too.
const READS: usize = 2;

/// After a system call that received this many bytes, more have probably arrived, and the
/// application reads these first while they are in the processor's cache.
const MANY: usize = 1 << 16;

/// A future that ends when the endpoint is closed or dropped, and no association is open any more.
pub(crate) struct Driver(Arc<Mutex<Inner>>);

/// The state of the task, also for a thread that sends while the task sleeps ([`Assistant`]).
pub(crate) struct Inner {
    shared: Arc<Shared>,
    locals: Locals,
    secure: Option<Secure>,
    /// Datagrams to send in clear that do not come from the protocol: refusals of DTLS handshakes
    /// or of unencrypted INITs.
    answers: Vec<(FourTuple, Vec<u8>)>,
    receive: ReceiveBuffers,
    transmit: Box<[u8]>,
    timer: Pin<Box<Sleep>>,
    /// Deadline that the timer is set to. It may have moved to a later time since.
    deadline: Option<Time>,
    /// The runtime is single-threaded: the application's tasks run only when this one yields.
    one_thread: bool,
}

impl Driver {
    /// The driver of an endpoint, which `shared` knows from then on.
    pub(crate) fn new(shared: Arc<Shared>, locals: Locals, secure: Option<Secure>) -> Self {
        let inner = Arc::new(Mutex::new(Inner::new(shared.clone(), locals, secure)));
        let assistant: Weak<Mutex<Inner>> = Arc::downgrade(&inner);
        shared.set_assistant(assistant);
        Self(inner)
    }
}

impl Inner {
    fn new(shared: Arc<Shared>, locals: Locals, secure: Option<Secure>) -> Self {
        Self {
            shared,
            locals,
            secure,
            answers: Vec::new(),
            receive: ReceiveBuffers::new(),
            transmit: vec![0; MAX_TRANSMIT].into_boxed_slice(),
            timer: Box::pin(tokio::time::sleep_until(Instant::now())),
            deadline: None,
            one_thread: Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread,
        }
    }

    /// Receives from every socket and passes all datagrams to the protocol; true if there may be
    /// more.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut more = false;
        for index in 0..self.locals.sockets.len() {
            let mut reads = 0;
            while self.receive_from(cx, index) {
                reads += 1;
                if reads == READS || self.receive.suggest_more(MANY) {
                    more = true;
                    break;
                }
            }
        }
        more
    }

    /// Receives from one socket with one system call; false if there was nothing to receive.
    fn receive_from(&mut self, cx: &mut Context<'_>, index: usize) -> bool {
        let Some(socket) = self.locals.sockets.get_mut(index) else { return false };
        match socket.poll_receive(cx, &mut self.receive) {
            Poll::Pending => return false,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                // Either an ICMP error, which the error queue reports in more detail, or an
                // interface that went down: the socket stays usable.
                tracing::debug!("{}: {error}", socket.local());
                return true;
            }
        }
        let now = self.shared.now();
        for (four_tuple, ecn, datagrams) in self.receive.iter() {
            // Lock once per train of datagrams, so that handles get the lock in between.
            let mut state = self.shared.lock();
            for datagram in datagrams {
                let answer = match &mut self.secure {
                    Some(secure) => secure.receive(&mut state, now, four_tuple, ecn, datagram),
                    None => secure::answer_hello(datagram).or_else(|| {
                        state.proto.handle_datagram(now, four_tuple, ecn, datagram);
                        None
                    }),
                };
                self.answers.extend(answer.map(|answer| (four_tuple, answer)));
            }
        }
        true
    }

    /// Passes errors that the network reported about our datagrams to the protocol.
    fn errors(&mut self, cx: &mut Context<'_>) -> bool {
        let mut news = false;
        for socket in &mut self.locals.sockets {
            let local = socket.local();
            news |= socket.poll_errors(cx, &mut |NetworkError { destination, what, quoted }| {
                tracing::debug!("{local} to {destination}: {what:?} unreachable");
                // RFC 6951 5.5, RFC 8899 4.6.1: the quoted datagram must be a packet of an
                // association, or a DTLS record that was sent.
                let quoted = match (quoted, &self.secure) {
                    (None, _) => None,
                    (Some(quoted), Some(secure)) => {
                        if !secure.has_sent(destination, &quoted) {
                            return;
                        }
                        None
                    }
                    (Some(quoted), None) => {
                        let Some(quoted) = Quoted::parse(&quoted) else { return };
                        Some(quoted)
                    }
                };
                let now = self.shared.now();
                let four_tuple = FourTuple { local, remote: destination };
                self.shared.lock().proto.handle_unreachable(now, four_tuple, what, quoted);
            });
        }
        news
    }

    /// Sends what the protocol has to send; true if there may be more.
    fn transmit(&mut self, cx: &mut Context<'_>) -> bool {
        for socket in &mut self.locals.sockets {
            socket.flush(cx);
        }
        for _ in 0..TRANSMITS {
            if self.locals.sockets.iter().any(Socket::is_clogged) {
                // The socket wakes the task when it has room.
                return false;
            }
            let now = self.shared.now();
            let (transmit, peer) = {
                let mut state = self.shared.lock();
                let transmit = state.proto.poll_transmit(now, &mut self.transmit);
                // Only encryption needs the peer of the association.
                let association = transmit.filter(|_| self.secure.is_some()).and_then(|t| t.path);
                let entry = association.and_then(|(id, _)| state.entries.get(&id));
                (transmit, entry.and_then(|entry| entry.peer))
            };
            let Some(transmit) = transmit else { return false };
            self.send(cx, now, &transmit, peer);
        }
        true
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        now: Time,
        transmit: &Transmit,
        peer: Option<Fingerprint>,
    ) {
        let (source, destination) = (transmit.source, transmit.destination);
        let Some(socket) = socket_for(&mut self.locals.sockets, source, destination) else {
            tracing::debug!("no socket for {source} to {destination}");
            return;
        };
        let packets = &self.transmit[..transmit.size];
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        let outgoing = Outgoing {
            source: None,
            destination,
            ecn: transmit.ecn,
            fragmentation: transmit.fragmentation,
            contents: packets,
            segment,
        };
        let Some(secure) = &mut self.secure else { return socket.send(cx, source, &outgoing) };
        let local = SocketAddr::new(source, socket.local().port());
        let way = FourTuple { local, remote: destination };
        let Some((way, segment)) = secure.seal(now, way, transmit, peer, packets) else { return };
        // Encryption makes packets larger: they may no longer fit one transmit.
        for contents in secure.records.chunks((MAX_TRANSMIT / segment).max(1) * segment) {
            socket.send(cx, way.local.ip(), &Outgoing { contents, segment, ..outgoing });
        }
    }

    /// Sends the datagrams of the DTLS layer itself, such as handshake messages, and replies in
    /// clear.
    fn send_others(&mut self, cx: &mut Context<'_>) {
        let handshakes = self.secure.iter_mut();
        let handshakes =
            handshakes.flat_map(|secure| std::iter::from_fn(|| secure.poll_transmit()));
        for (way, datagram) in self.answers.drain(..).chain(handshakes) {
            let source = way.local.ip();
            if let Some(socket) = socket_for(&mut self.locals.sockets, source, way.remote) {
                let outgoing = Outgoing {
                    source: None,
                    destination: way.remote,
                    ecn: Ecn::NotEct,
                    fragmentation: Fragmentation::Allowed,
                    contents: &datagram,
                    segment: datagram.len().max(1),
                };
                socket.send(cx, source, &outgoing);
            }
        }
    }

    /// The earliest deadline: of the protocol, of an endpoint that is closing, of DTLS.
    fn deadline(&self, state: &mut State) -> Option<Time> {
        let closes = state.leaving.iter().filter_map(|leaving| leaving.until).min();
        let secure = self.secure.as_ref().and_then(Secure::poll_timeout);
        [closes, state.proto.poll_timeout(), secure].into_iter().flatten().min()
    }

    /// Handles a deadline that has passed. Datagrams that have arrived are received before, so that
    /// a task that wakes late does not miss the acknowledgements that stop a timer, and packets are
    /// sent after it in the same round.
    fn expire(&mut self) {
        let now = self.shared.now();
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if self.deadline(&mut state).is_some_and(|deadline| deadline <= now) {
            self.handle_timeout(now, &mut state);
        }
    }

    fn handle_timeout(&mut self, now: Time, state: &mut State) {
        state.proto.handle_timeout(now);
        if let Some(secure) = &mut self.secure {
            secure.handle_timeout(now);
        }
    }

    /// Arms the timer for the next deadline; true if it has expired and has been handled.
    ///
    /// A deadline that moves to a later time leaves the timer as it is: most timers of the protocol
    /// move with each packet, and never expire.
    fn time(&mut self, cx: &mut Context<'_>, deadline: Option<Time>) -> bool {
        if let Some(deadline) = deadline
            && self.deadline.is_none_or(|armed| deadline < armed)
        {
            // A deadline beyond the range of the clock never expires.
            let Some(instant) = self.shared.instant(deadline) else { return false };
            self.timer.as_mut().reset(instant);
            self.deadline = Some(deadline);
        }
        let Some(armed) = self.deadline else { return false };
        if self.timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.deadline = None;
        let now = self.shared.now().max(armed);
        if deadline.is_some_and(|deadline| deadline <= now) {
            let shared = Arc::clone(&self.shared);
            self.handle_timeout(now, &mut shared.lock());
        }
        true
    }

    /// Reports what has happened; the next deadline.
    fn report(&self, state: &mut State) -> Option<Time> {
        state.dispatch_events(&self.shared);
        state.sockets.clear();
        state.sockets.extend(self.locals.sockets.iter().map(|socket| socket.stats));
        if let Some(secure) = &self.secure {
            state.dtls = secure.stats();
        }
        self.deadline(state)
    }

    /// Sends what the protocol has to send, without the task. True if that is left to do.
    fn assist(&mut self, waker: &Waker) -> bool {
        if self.secure.is_some() {
            return true;
        }
        let mut cx = Context::from_waker(waker);
        let more = self.transmit(&mut cx);
        let shared = Arc::clone(&self.shared);
        let deadline = self.report(&mut shared.lock());
        let late =
            deadline.is_some_and(|deadline| self.deadline.is_none_or(|armed| deadline < armed));
        more || late || !self.locals.sockets.iter().all(Socket::is_done)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut busy = {
            let now = self.shared.now();
            let shared = Arc::clone(&self.shared);
            let mut state = shared.lock();
            state.begin_round();
            // A new socket must be polled before it can wake the task.
            self.locals.update(cx, now, &mut state)
        };
        busy |= self.receive(cx);
        self.expire();
        busy |= self.transmit(cx);
        busy |= self.errors(cx);
        self.send_others(cx);
        if let Some(secure) = &mut self.secure {
            secure.tell(&self.shared);
        }
        let deadline = {
            let shared = Arc::clone(&self.shared);
            let mut state = shared.lock();
            let deadline = self.report(&mut state);
            if !busy && state.is_done() && self.locals.sockets.iter().all(Socket::is_idle) {
                let now = self.shared.now();
                if !self.secure.as_mut().is_some_and(|secure| secure.close(now)) {
                    return Poll::Ready(());
                }
                // DTLS close alerts have to be sent first.
                busy = true;
            }
            deadline
        };
        busy |= self.time(cx, deadline);
        if busy || !self.shared.lock().sleep(cx.waker()) {
            // Yield to the other tasks first.
            if self.one_thread {
                // A task that wakes itself is polled dozens of times before the runtime's own
                // future is.
                let _ = pin!(tokio::task::yield_now()).poll(cx);
            } else {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}

impl Assistant for Mutex<Inner> {
    fn assist(&self, waker: &Waker) -> bool {
        // Otherwise the task runs.
        self.try_lock().map_or(true, |mut inner| inner.assist(waker))
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // A panic of a thread that sent ends the task, as one of its own does.
        self.0.lock().map_or(Poll::Ready(()), |mut inner| inner.poll(cx))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Close the sockets before waking tasks that wait for the end.
        inner.locals.sockets.clear();
        inner.shared.lock().end(&inner.shared);
    }
}

/// The socket bound to a source address; for an unspecified one, the first socket of the
/// destination's address family.
fn socket_for(
    sockets: &mut [Socket],
    source: IpAddr,
    destination: SocketAddr,
) -> Option<&mut Socket> {
    let speaks = |socket: &Socket| socket.local().is_ipv4() == destination.is_ipv4();
    let own = |socket: &Socket| socket.local().ip() == source;
    let any = |socket: &Socket| socket.local().ip().is_unspecified();
    let index = sockets
        .iter()
        .position(|socket| own(socket) && speaks(socket))
        .or_else(|| sockets.iter().position(|socket| any(socket) && speaks(socket)))
        .or_else(|| sockets.iter().position(|socket| source.is_unspecified() && speaks(socket)))?;
    sockets.get_mut(index)
}
