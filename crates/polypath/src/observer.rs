//! Observes the associations of an endpoint.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use polypath_proto::{EndpointStats, Time};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use crate::observed::{Observed, Snapshot};
use crate::shared::{Shared, State};
use crate::socket::SocketStats;

/// Observes all associations of an endpoint, for metrics and logs.
///
/// It keeps neither the endpoint nor an association open, and does not delay them: at most 1024
/// events are queued for an observer.
#[derive(Debug)]
pub struct Observer {
    shared: Weak<Shared>,
    events: Receiver<Observed>,
}

/// A snapshot of an endpoint and its associations.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointSnapshot {
    /// Time since the endpoint was created.
    pub at: Time,
    /// Local addresses with their UDP ports (0 on raw IP).
    pub locals: Vec<SocketAddr>,
    /// Counters of the protocol.
    pub stats: EndpointStats,
    /// Counters of the sockets, in the order of `locals`.
    pub sockets: Vec<SocketStats>,
    /// Its associations, those included that have ended and still have unread data.
    pub associations: Vec<Snapshot>,
}

impl Observer {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let events = shared.lock().observe();
        Self { shared: Arc::downgrade(shared), events }
    }

    /// The endpoint at this moment; `None` once it has gone.
    pub fn snapshot(&self) -> Option<EndpointSnapshot> {
        let shared = self.shared.upgrade()?;
        let state = shared.lock();
        (!state.driver_gone).then(|| snapshot(shared.now(), &state))
    }

    /// Takes the events since the last call, and the number of events that were missed because too
    /// many were queued.
    pub fn events(&mut self) -> (Vec<Observed>, u64) {
        let (mut events, mut missed) = (Vec::new(), 0);
        loop {
            match self.events.try_recv() {
                Ok(event) => events.push(event),
                Err(TryRecvError::Lagged(count)) => missed += count,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return (events, missed),
            }
        }
    }
}

fn snapshot(at: Time, state: &State) -> EndpointSnapshot {
    let ids = state.proto.associations();
    let all = ids.filter_map(|id| Some(Snapshot::new(id, state.proto.association(id)?)));
    EndpointSnapshot {
        at,
        locals: state.locals.clone(),
        stats: state.proto.stats(),
        sockets: state.sockets.clone(),
        associations: all.collect(),
    }
}
