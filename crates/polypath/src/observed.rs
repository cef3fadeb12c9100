//! What an observer sees of an association: snapshots and events.

use polypath_proto::{
    Association, AssociationId, AssociationStats, Event, PathId, PathMtu, PathStats, PathView, Time,
};

/// A snapshot of one path of an association, with its counters.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Path {
    /// Addresses, state, congestion window and round-trip time.
    pub view: PathView,
    /// Counters.
    pub stats: PathStats,
    /// Largest packet known to fit the path.
    pub mtu: PathMtu,
}

/// A snapshot of an association, with its counters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its number, which the endpoint does not reuse.
    pub association: AssociationId,
    /// Whether the handshake is complete and the association has not ended.
    pub established: bool,
    /// Bytes in the send buffer: not yet sent, or sent and not yet acknowledged.
    pub buffered: usize,
    /// Counters of the association.
    pub stats: AssociationStats,
    /// The primary path.
    pub primary: PathId,
    /// The path for new data, or the first of them if a scheduler uses several.
    pub current: PathId,
    /// All paths, ordered by path id.
    pub paths: Vec<Path>,
}

/// An event of one of an endpoint's associations.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observed {
    /// Number of the association.
    pub association: AssociationId,
    /// Time at which the event was reported.
    pub at: Time,
    /// The event.
    pub event: Event,
    /// The last counters, with [`Event::Closed`].
    pub last: Option<Snapshot>,
}

/// Snapshots of an association's paths, ordered by path id.
pub(crate) fn paths(association: &Association) -> Vec<Path> {
    association
        .paths()
        .map(|view| Path {
            view,
            stats: association.path_stats(view.id).unwrap_or_default(),
            mtu: association.path_mtu(view.id).unwrap_or_default(),
        })
        .collect()
}

impl Snapshot {
    pub(crate) fn new(id: AssociationId, association: &Association) -> Self {
        Self {
            association: id,
            established: association.is_established(),
            buffered: association.buffered(),
            stats: association.stats(),
            primary: association.primary(),
            current: association.current_path(),
            paths: paths(association),
        }
    }
}
