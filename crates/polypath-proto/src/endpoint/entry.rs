//! What an endpoint records of an association, and the queues of those that have something to do.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::association::Association;
use crate::ids::{AssociationId, VerificationTag};
use crate::time::Time;

/// An association, and what the endpoint's indices and queues have of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) association: Association,
    /// The tag indexed in `by_tag`; 0 once the association is closed: then its packets are out of
    /// the blue, and its peer may open another one.
    pub(super) tag: VerificationTag,
    /// Number of path changes at the last indexing; `u64::MAX` if no path is indexed.
    pub(super) paths: u64,
    pub(super) peers: Vec<IpAddr>,
    pub(super) timeout: Option<Time>,
    pub(super) released: bool,
    /// Whether the association is in the queues `transmitting`, `with_events`, `stale` and
    /// `changing`.
    pub(super) transmits: bool,
    pub(super) has_events_queued: bool,
    pub(super) stale: bool,
    pub(super) changes: bool,
}

impl Entry {
    /// Whether the indices have the association's tag and addresses.
    pub(super) fn is_indexed(&self) -> bool {
        let a = &self.association;
        !a.is_closed() && self.tag == a.local_tag() && self.paths == a.path_changes()
    }
}

/// Associations that have something to do, each at most once in a queue.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Those that may have a packet to send.
    pub(super) transmitting: VecDeque<AssociationId>,
    /// Those that may have an event.
    pub(super) with_events: VecDeque<AssociationId>,
    /// Those whose timeout may have changed.
    pub(super) stale: Vec<AssociationId>,
    /// Those whose tag or addresses may differ from the indexed ones.
    pub(super) changing: Vec<AssociationId>,
}

impl Queues {
    /// Adds an association whose state has changed, or is about to change.
    pub(super) fn add(&mut self, id: AssociationId, entry: &mut Entry, with_events: bool) {
        if !std::mem::replace(&mut entry.transmits, true) {
            self.transmitting.push_back(id);
        }
        if with_events {
            self.add_events(id, entry);
        }
        self.add_stale(id, entry);
    }

    /// Adds an association that may have an event.
    pub(super) fn add_events(&mut self, id: AssociationId, entry: &mut Entry) {
        if !std::mem::replace(&mut entry.has_events_queued, true) {
            self.with_events.push_back(id);
        }
    }

    /// Adds an association whose timeout may have changed.
    pub(super) fn add_stale(&mut self, id: AssociationId, entry: &mut Entry) {
        if !std::mem::replace(&mut entry.stale, true) {
            self.stale.push(id);
        }
    }

    /// Adds an association whose tag or addresses may differ from the indexed ones.
    pub(super) fn add_changing(&mut self, id: AssociationId, entry: &mut Entry) {
        if !std::mem::replace(&mut entry.changes, true) {
            self.changing.push(id);
        }
    }
}
