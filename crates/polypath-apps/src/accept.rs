//! Accepts peers for an application, each in its own task, so that none delays another.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polypath::{Association, Endpoint, Fingerprint};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use crate::consent::{self, Consent, Door, Service};
use crate::error::Error;
use crate::limits::{Slot, Slots};
use crate::liveness;

/// Maximum number of peers that are not yet accepted; the oldest makes room for a new one.
const MOST_PENDING: usize = 512;
/// Maximum number of arrivals that wait for the application; further ones wait in the protocol.
const ARRIVALS: usize = 16;
/// Silence after which an earlier connection of a peer that has connected again is dropped.
const SUCCEEDED: Duration = Duration::from_millis(2500);

/// Accepts peers for one service.
#[derive(Debug)]
pub struct Acceptor {
    arrivals: mpsc::Receiver<Arrival>,
    task: AbortHandle,
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A peer that has connected.
#[derive(Debug)]
pub enum Arrival {
    /// The peer has been let in.
    Accepted(Peer),
    /// The peer was refused, or has sent no valid first message.
    Refused {
        /// The peer's address.
        peer: IpAddr,
        /// Its certificate; `None` in clear.
        fingerprint: Option<Fingerprint>,
        /// The reason.
        error: Error,
    },
}

/// A peer that has been let in.
#[derive(Debug)]
pub struct Peer {
    /// Its association.
    pub association: Association,
    /// The address of its primary path.
    pub address: IpAddr,
    /// How it was let in.
    pub consent: Consent,
    /// Time for its next message.
    pub patience: Duration,
    /// Number of the association among those of this acceptor.
    number: u64,
    accepted: Accepted,
    _slot: Slot,
}

impl Peer {
    /// Ends this peer's other associations if they prove silent within seconds, and waits until all
    /// of them are over: the peer may have been killed, and be back before that was noticed.
    pub async fn end_silent_ones(&self) {
        let key = key(&self.association, self.address);
        let open = self.accepted.peers().get(&key).cloned().unwrap_or_default();
        let mut watching = JoinSet::new();
        for (_, other) in open.into_iter().filter(|(number, _)| *number != self.number) {
            watching.spawn(async move {
                tokio::select! {
                    () = liveness::silence(&other, Duration::ZERO, SUCCEEDED) => {
                        other.abort("the peer has connected again");
                    }
                    _ = other.closed() => {}
                }
            });
        }
        while watching.join_next().await.is_some() {}
    }
}

impl Acceptor {
    /// Starts to accept peers that `door` lets in, at most `per_address` of them for each address.
    /// `patience` is the time for a peer's first message, and for the one after consent.
    pub fn start(
        endpoint: Endpoint,
        service: Service,
        door: Arc<Door>,
        per_address: usize,
        patience: Duration,
    ) -> Self {
        let (sender, arrivals) = mpsc::channel(ARRIVALS);
        let task = tokio::spawn(accept_all(endpoint, service, door, per_address, patience, sender));
        Self { arrivals, task: task.abort_handle() }
    }

    /// The next arrival; `None` once the endpoint is closed. Cancellation-safe.
    pub async fn next(&mut self) -> Option<Arrival> {
        self.arrivals.recv().await
    }
}

/// Peers that were let in, by certificate; those in clear by address.
#[derive(Clone, Debug, Default)]
struct Accepted(Arc<Mutex<Open>>);

type Open = BTreeMap<(Option<Fingerprint>, Option<IpAddr>), Vec<(u64, Association)>>;

impl Accepted {
    fn peers(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a peer.
    fn add(&self, number: u64, association: &Association, address: IpAddr) {
        let mut peers = self.peers();
        peers.retain(|_, open| {
            open.retain(|(_, association)| association.close_reason().is_none());
            !open.is_empty()
        });
        peers.entry(key(association, address)).or_default().push((number, association.clone()));
    }
}

/// What a peer is recognised by when it connects again.
fn key(association: &Association, address: IpAddr) -> (Option<Fingerprint>, Option<IpAddr>) {
    let fingerprint = association.peer();
    (fingerprint, fingerprint.is_none().then_some(address))
}

/// The remote address of the primary path.
fn address(association: &Association) -> Option<IpAddr> {
    let primary = association.primary();
    association.paths().get(primary.index()).map(|path| path.view.remote)
}

async fn accept_all(
    endpoint: Endpoint,
    service: Service,
    door: Arc<Door>,
    per_address: usize,
    patience: Duration,
    arrivals: mpsc::Sender<Arrival>,
) {
    let slots = Slots::new(per_address);
    let accepted = Accepted::default();
    let mut numbers = 0..;
    let mut pending: VecDeque<(Association, JoinHandle<()>)> = VecDeque::new();
    while let (Some(association), Some(number)) = (endpoint.accept().await, numbers.next()) {
        let Some(peer) = address(&association) else { continue };
        let Some(slot) = slots.take(peer) else {
            association.abort("too many connections from this address");
            continue;
        };
        pending.retain(|(_, task)| !task.is_finished());
        while pending.len() >= MOST_PENDING {
            if let Some((oldest, task)) = pending.pop_front() {
                task.abort();
                oldest.abort("too many connections");
            }
        }
        let (door, arrivals, accepted) = (door.clone(), arrivals.clone(), accepted.clone());
        let (own, kept) = (endpoint.fingerprint(), association.clone());
        let task = tokio::spawn(async move {
            let fingerprint = association.peer();
            let arrival = match consent::answer(&association, service, &door, own, patience).await {
                Ok(consent) => {
                    accepted.add(number, &association, peer);
                    Arrival::Accepted(Peer {
                        association,
                        address: peer,
                        consent,
                        patience,
                        number,
                        accepted,
                        _slot: slot,
                    })
                }
                Err(error) => Arrival::Refused { peer, fingerprint, error },
            };
            // The application may have ended.
            let _ = arrivals.send(arrival).await;
        });
        pending.push_back((kept, task));
    }
}
