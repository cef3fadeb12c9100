//! The network between the hosts, and their sockets.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use polypath::Time;
use polypath::proto::Seed;
use polypath_sim::Scenario;
use polypath_sim::datagrams::{Datagram, DatagramNetwork};
use polypath_sim::network::HostId;
use polypath_sim::random::derive;
use tokio::time::Instant;

use crate::Error;

/// The first port of the dynamic range (RFC 6335 6).
const FIRST_FREE: u16 = 0xc000;

/// The network that a program runs in. Clones are the same network.
#[derive(Clone, Debug)]
pub struct World(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Time 0.
    start: Instant,
    seed: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) network: DatagramNetwork,
    /// What has arrived at each socket, by its host and the address that it is bound to.
    pub(crate) sockets: BTreeMap<(HostId, SocketAddr), Inbox>,
    /// A datagram has been sent since the network was last asked for its next event.
    sent: bool,
    /// The task that waits for that.
    waits: Option<Waker>,
    /// Number of endpoints of each host, which makes their random numbers different.
    endpoints: BTreeMap<HostId, u64>,
}

impl World {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, Error> {
        let state = State {
            network: DatagramNetwork::new(scenario)?,
            sockets: BTreeMap::new(),
            sent: false,
            waits: None,
            endpoints: BTreeMap::new(),
        };
        Ok(Self(Arc::new(Inner {
            start: Instant::now(),
            seed: scenario.seed,
            state: Mutex::new(state),
        })))
    }

    /// Time since the program began.
    pub fn now(&self) -> Time {
        Time::ZERO + self.0.start.elapsed()
    }

    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.0.start + time.since(Time::ZERO)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time of the network's next event.
    pub(crate) fn next_event(&self) -> Option<Time> {
        let mut state = self.lock();
        state.sent = false;
        state.network.next_time()
    }

    /// Handles all events of the network up to a time.
    pub(crate) fn deliver(&self, now: Time) {
        let mut state = self.lock();
        while state.network.next_time().is_some_and(|at| at <= now) {
            if let Some(datagram) = state.network.advance() {
                state.receive(datagram);
            }
        }
    }

    /// Ready when a datagram has been sent since [`next_event`](Self::next_event).
    pub(crate) fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.sent {
            return Poll::Ready(());
        }
        state.waits = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Sends a datagram of a host.
    pub(crate) fn send(&self, host: HostId, datagram: Datagram<'_>) {
        let now = self.now();
        let mut state = self.lock();
        if state.network.host_of(datagram.destination.ip()) == Some(host) {
            let contents = datagram.contents.into_owned().into();
            return state.receive(Datagram { contents, ..datagram });
        }
        state.network.send(now, &datagram);
        state.sent = true;
        if let Some(waker) = state.waits.take() {
            waker.wake();
        }
    }

    /// The seed of a host's next endpoint.
    pub(crate) fn next_seed(&self, host: HostId) -> Seed {
        let mut state = self.lock();
        let number = state.endpoints.entry(host).or_default();
        *number += 1;
        let name = format!("endpoint:{}/{number}", host.index());
        Seed::from_u64(derive(self.0.seed, &name))
    }
}

impl State {
    /// Puts a datagram that has arrived at its host into the socket that it is for, if there is
    /// one.
    fn receive(&mut self, datagram: Datagram<'static>) {
        let destination = datagram.destination;
        let Some(host) = self.network.host_of(destination.ip()) else { return };
        let any = SocketAddr::new(unspecified(destination.ip()), destination.port());
        let bound = [destination, any].map(|address| (host, address));
        let found = bound.iter().find(|key| self.sockets.contains_key(key));
        if let Some(inbox) = found.and_then(|key| self.sockets.get_mut(key)) {
            inbox.push(datagram);
        }
    }

    /// A port that no socket of the host has.
    pub(crate) fn free_port(&self, host: HostId) -> Option<u16> {
        let taken = |port: &u16| {
            self.sockets.keys().any(|(owner, address)| (*owner, address.port()) == (host, *port))
        };
        (FIRST_FREE..=u16::MAX).find(|port| !taken(port))
    }

    /// Whether a socket of the host receives for this address and port already.
    pub(crate) fn is_taken(&self, host: HostId, address: SocketAddr) -> bool {
        self.sockets.keys().any(|&(owner, other)| {
            let ip = other.ip() == address.ip()
                || other.ip().is_unspecified()
                || address.ip().is_unspecified();
            owner == host
                && other.port() == address.port()
                && other.is_ipv4() == address.is_ipv4()
                && ip
        })
    }
}

/// Bytes that a socket keeps for a program that does not read; more are lost.
const BUFFER: usize = 4 << 20;

/// Datagrams that have arrived and are not read yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    queue: VecDeque<Datagram<'static>>,
    bytes: usize,
    pub(crate) reader: Option<Waker>,
}

impl Inbox {
    pub(crate) fn push(&mut self, datagram: Datagram<'static>) {
        if self.bytes + datagram.contents.len() > BUFFER {
            return;
        }
        self.bytes += datagram.contents.len();
        self.queue.push_back(datagram);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Datagram<'static>> {
        let datagram = self.queue.pop_front()?;
        self.bytes -= datagram.contents.len();
        Some(datagram)
    }
}

/// The unspecified address of the same family.
pub(crate) fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::from([0; 4]),
        IpAddr::V6(_) => IpAddr::from([0; 16]),
    }
}
