//! On which path is a chunk retransmitted?

use std::cmp::Ordering;
use std::fmt::Debug;

use crate::ids::{PathId, Tsn};
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::Entry;
use crate::rng::Rng;

pub mod alternate;
pub mod asap;
pub mod cwnd;
pub mod earliest;
pub mod hybrid;
pub mod loss_rate;
pub mod receive_buffer;
pub mod same;
pub mod ssthresh;

pub use alternate::ALTERNATE;
pub use asap::ASAP;
pub use cwnd::CWND;
pub use earliest::EARLIEST;
pub use hybrid::HYBRID;
pub use loss_rate::LOSS_RATE;
pub use receive_buffer::RECEIVE_BUFFER;
pub use same::SAME;
pub use ssthresh::SSTHRESH;

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn RetransmissionPolicy>] =
    &[&HYBRID, &SAME, &ALTERNATE, &ASAP, &CWND, &SSTHRESH, &LOSS_RATE, &RECEIVE_BUFFER, &EARLIEST];

/// Why a chunk is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// Enough missing reports (RFC 9260 7.2.4).
    FastRetransmit,
    /// T3-rtx expired on the path it was last sent on (RFC 9260 6.3.3).
    Timeout,
}

/// A chunk that waits for retransmission.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LostChunk {
    /// Its TSN.
    pub tsn: Tsn,
    /// Why it is lost.
    pub cause: LossCause,
    /// The path it was last sent on.
    pub last_path: PathId,
    /// Number of its transmissions.
    pub transmissions: u32,
}

/// Decides on which path a chunk is retransmitted.
pub trait RetransmissionPolicy: Send + Debug {
    /// The path for `chunk`. Called whenever the chunk could be sent; if the path's window has no
    /// room, the retransmission waits.
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, rng: &mut Rng) -> PathId;

    /// Called after the handshake with the size of the peer's receive buffer in bytes.
    fn learn_peer_buffer(&mut self, bytes: u32) {
        let _ = bytes;
    }
}

/// The path to use instead of `last`: the next active one in round robin, which may be `last`
/// itself (RFC 7829 3.2: then not a potentially failed one), or else a potentially failed one.
/// Another destination is preferred and, of the paths to it, one from another source (RFC 9260
/// 6.4.1: "attempt to pick the most divergent source-destination pair"). If every path is inactive,
/// the next inactive one, which may work again; `last` itself if there is no other.
pub fn alternate(last: PathId, paths: PathsView<'_>) -> PathId {
    let other = |state| move |path| path != last && paths.state(path) == state;
    let away = |path| paths.remote(path) != paths.remote(last);
    let divergent =
        paths.next_after(last, |path| paths.is_active(path) && away(path)).map(|next| {
            let diverges = |path| {
                paths.remote(path) == paths.remote(next) && paths.local(path) != paths.local(last)
            };
            paths.next_after(last, |path| paths.is_active(path) && diverges(path)).unwrap_or(next)
        });
    divergent
        .or_else(|| paths.next_after(last, |path| paths.is_active(path)))
        .or_else(|| paths.next_after(last, other(PathState::PotentiallyFailed)))
        .or_else(|| match paths.state(last) {
            PathState::Inactive => paths.next_after(last, other(PathState::Inactive)),
            _ => None,
        })
        .unwrap_or(last)
}

/// The lowest bit of a random number with which most policies choose the later of two paths.
pub const LATER_IF_ODD: u32 = 1;

/// The active path of the highest rank, at random among equals; `None` if no active path has a
/// rank. With `tie_seed`, the later of two equal paths is chosen if the
/// lowest bit of the number drawn is `bit` ([`Rng::takes_over`]).
pub fn random_best<R: Ord>(
    paths: PathsView<'_>,
    rng: &mut Rng,
    bit: u32,
    rank: impl Fn(&PathView) -> Option<R>,
) -> Option<PathId> {
    let mut best: Option<(R, PathId)> = None;
    let mut equals = 1;
    for path in paths.iter().filter(PathView::is_usable) {
        let Some(rank) = rank(&path) else { continue };
        let order = best.as_ref().map_or(Ordering::Greater, |(most, _)| rank.cmp(most));
        equals = if order == Ordering::Greater { 1 } else { equals + u64::from(order.is_eq()) };
        if order.is_gt() || (order.is_eq() && rng.takes_over(equals, bit)) {
            best = Some((rank, path.id));
        }
    }
    best.map(|(_, id)| id)
}

/// `last` while it is active, otherwise its [`alternate()`].
pub fn same_unless_failed(last: PathId, paths: PathsView<'_>) -> PathId {
    if paths.is_active(last) { last } else { alternate(last, paths) }
}
