//! The oracle of RTX-LOSSRATE: the loss rate of each path, which a sender cannot know (Iyengar
//! 2004, II).

use polypath_proto::policy::retransmission::LOSS_RATE;
use polypath_proto::{Association, PathView};

use crate::network::Network;

/// Sets the current loss rate towards the peer of each path, if the association uses RTX-LOSSRATE.
pub(crate) fn tell(network: &Network<'_>, association: &mut Association) {
    if association.config().retransmission().name != LOSS_RATE.name {
        return;
    }
    let paths: Vec<PathView> = association.paths().collect();
    for path in paths {
        let per_billion = (share(network, &path) * 1e9).round() as u32;
        let told = association.set_loss_rate(path.id, per_billion);
        debug_assert!(told.is_ok(), "the path is one of the association's");
    }
}

/// Share of the packets offered to the first link of the path's route that its links lose. Losses
/// of a script do not count, because they cannot be predicted.
fn share(network: &Network<'_>, path: &PathView) -> f64 {
    let topology = &network.topology;
    let ends = (network.node(path.local), network.node(path.remote));
    let (Some(from), Some(to)) = ends else { return 0.0 };
    let way = topology.way(from, to).unwrap_or_default();
    let arrives = |link: &crate::network::LinkId| {
        1.0 - network.links[link.index()].config().loss.mean().unwrap_or(0.0)
    };
    1.0 - way.iter().map(arrives).product::<f64>()
}
