//! Fast retransmissions on the alternate path if that does not block the receive buffer.
//!
//! Qiao 2008, 5: a retransmission on a slow path keeps all data after it in the receive buffer,
//! which may fill up. Its equation (8) predicts this. The bandwidths and the queue that it needs
//! are estimated as the paper proposes (5.2) and leaves to future work: the primary's bandwidth
//! from its acknowledgements (TCP Westwood), the secondary's from pairs of HEARTBEATs, the queue
//! from the range of round-trip times. While any of them is unknown, fast retransmissions use the
//! same path: "a safe solution undoubtedly". Timeout retransmissions use an alternate path.
//!
//! Equation (8) requires only room in the receive buffer. If the alternate path has the shorter
//! round-trip time, the lost data is acknowledged before the queue of the primary has drained; the
//! window opened by this overflows the queue again and is cut twice. The paper's secondary path is
//! never shorter, so this policy does not use a shorter one.

use super::{LossCause, LostChunk, RetransmissionPolicy, alternate, same_unless_failed};
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::entry::{Entry, Needs};
use crate::rng::Rng;

mod model;

use model::BlockingModel;

/// See the [module](self).
pub static RECEIVE_BUFFER: Entry<dyn RetransmissionPolicy> =
    Entry::<dyn RetransmissionPolicy>::new(
        "receive-buffer",
        "fast retransmissions to an alternate path if the receive buffer will not block, by \
              estimates of bandwidth, delay and queue, else to the same; after a timeout to an \
              alternate one (Qiao 2008, equation 8)",
        |_| Box::new(ReceiveBuffer { peer_buffer: None }),
    )
    .with_needs(Needs::NONE.pair_bandwidth());

#[derive(Debug)]
struct ReceiveBuffer {
    /// The peer's receive buffer, in bytes.
    peer_buffer: Option<u32>,
}

impl ReceiveBuffer {
    /// The model for data lost on `primary` and retransmitted on `secondary`; `None` while an input
    /// has not been measured.
    fn model(&self, primary: &PathView, secondary: &PathView) -> Option<BlockingModel> {
        let primary_bandwidth = primary.bandwidth?;
        let primary_rtt = primary.rtt_range?;
        Some(BlockingModel {
            primary_bandwidth,
            primary_rtt: primary_rtt.min.as_secs_f64(),
            primary_queue: primary_rtt.queue(primary_bandwidth),
            secondary_bandwidth: secondary.pair_bandwidth?,
            secondary_rtt: secondary.rtt_range?.min.as_secs_f64(),
            receive_buffer: self.peer_buffer?.into(),
            mtu: primary.max_chunk.into(),
        })
    }
}

impl RetransmissionPolicy for ReceiveBuffer {
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, _: &mut Rng) -> PathId {
        let other = alternate(chunk.last_path, paths);
        if chunk.cause == LossCause::Timeout {
            return other;
        }
        let (last, secondary) = (paths.path(chunk.last_path), paths.path(other));
        let pays =
            |m: BlockingModel| m.secondary_rtt >= m.primary_rtt && m.secondary_is_fast_enough();
        let pays =
            secondary.state == PathState::Active && self.model(&last, &secondary).is_some_and(pays);
        if pays { other } else { same_unless_failed(chunk.last_path, paths) }
    }

    fn learn_peer_buffer(&mut self, bytes: u32) {
        self.peer_buffer = Some(bytes);
    }
}
