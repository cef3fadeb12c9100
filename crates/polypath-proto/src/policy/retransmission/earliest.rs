//! Retransmissions on the path that is expected to deliver them first.
//!
//! A path delivers a chunk after half of its smoothed round-trip time, and a lost one again after
//! 1.25 round trips more (RFC 8985 6.2: a reordering window of a quarter), so that with losses of
//! share p the mean time is `srtt * (1/2 + 1.25 p / (1 - p))`. A path without room in its window
//! counts with the time until acknowledgements make room: the bytes in flight beyond the window at
//! the rate of the path. A full window of many packets has room again with the next
//! acknowledgement, and retransmissions precede new data (RFC 9260 6.1 C). As in RTX-LOSSRATE and
//! RTX-CWND (Iyengar 2004, II), retransmissions avoid paths that lose packets, and as in RTX-ASAP
//! they avoid windows that stay full.

use std::time::Duration;

use super::{LossCause, LostChunk, RetransmissionPolicy, same_unless_failed};
use crate::ids::PathId;
use crate::path::{PathView, PathsView};
use crate::policy::entry::Entry;
use crate::policy::scheduler::earliest::wait;
use crate::rng::Rng;

/// See the [module](self).
pub static EARLIEST: Entry<dyn RetransmissionPolicy> = Entry::new(
    "earliest",
    "every retransmission to the active path that is expected to deliver it first, by delay, \
              loss rate and room",
    |_| Box::new(Earliest),
);

/// Probability that a path loses a chunk that it has just lost, apart from its own loss rate.
const LOST_ONCE: f64 = 0.1;
const LOST_OFTEN: f64 = 0.5;

/// Transmissions of a chunk beyond which the path that has lost it does not become worse.
const MOST_TRANSMISSIONS: u32 = 8;

/// Round-trip times that a loss adds until the next transmission of a chunk.
const LOST_AGAIN: f64 = 1.25;

#[derive(Debug)]
struct Earliest;

/// Expected time until a chunk is delivered over a path that loses this share of its packets, in
/// seconds.
pub(crate) fn mean_delivery(srtt: Duration, loss: f64) -> f64 {
    srtt.as_secs_f64() * (0.5 + LOST_AGAIN * loss / (1.0 - loss))
}

/// A chunk that a path has just lost is more likely to be lost again than on a path that nothing
/// is known of, above all after a timeout, or if it was lost before. From the third loss on, each
/// halves the probability that the path delivers it: everything behind the chunk waits for it, and
/// the mean time of a short path that loses half of its packets is that of most chunks, not of one
/// that has been lost many times.
fn lost_again(chunk: &LostChunk) -> f64 {
    if chunk.cause == LossCause::FastRetransmit && chunk.transmissions == 1 {
        return LOST_ONCE;
    }
    let losses = chunk.transmissions.clamp(2, MOST_TRANSMISSIONS) - 1;
    1.0 - LOST_OFTEN.powi(losses.cast_signed())
}

/// Expected time until a chunk is delivered, in seconds; `None` if the delay is unknown.
fn delivery(path: &PathView, chunk: &LostChunk) -> Option<f64> {
    let srtt = path.srtt?;
    let (lost, sent) = path.loss.share();
    let share = if sent == 0 { 0.0 } else { f64::from(lost) / f64::from(sent) };
    let mut loss = share.max(path.loss.recent()).min(0.9);
    if path.id == chunk.last_path {
        loss += (1.0 - loss) * lost_again(chunk);
    }
    let waits = if path.has_room() || path.send_credit { 0.0 } else { wait(path) };
    Some(mean_delivery(srtt, loss) + waits)
}

impl RetransmissionPolicy for Earliest {
    fn path(&self, chunk: &LostChunk, paths: PathsView<'_>, _: &mut Rng) -> PathId {
        let active = paths.iter().filter(PathView::is_usable);
        let timed = active.filter_map(|p| Some((delivery(&p, chunk)?, p.id)));
        timed
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map_or_else(|| same_unless_failed(chunk.last_path, paths), |(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathState;
    use crate::policy::testing::{TestPaths, lost_chunk};

    #[test]
    fn the_shorter_path_with_room_delivers_first() {
        let mut paths = TestPaths::new(2);
        let choose = |paths: &TestPaths, last, cause| {
            Earliest
                .path(
                    &lost_chunk(1, last, cause),
                    paths.view(),
                    &mut Rng::new(&crate::Seed::from_u64(1)),
                )
                .0
        };
        assert_eq!(choose(&paths, 1, LossCause::FastRetransmit), 1, "nothing is known");
        paths.measure(0, Duration::from_millis(20));
        paths.measure(1, Duration::from_millis(100));
        assert_eq!(choose(&paths, 1, LossCause::FastRetransmit), 0);
        assert_eq!(choose(&paths, 0, LossCause::FastRetransmit), 0);
        paths.set_state(0, PathState::PotentiallyFailed);
        assert_eq!(choose(&paths, 0, LossCause::FastRetransmit), 1);
    }

    /// A chunk that the first of two equal paths has just lost is lost there again more likely
    /// than elsewhere: it waits for an acknowledgement on
    /// the other path, whose window is full, but not for half of its window to be delivered.
    #[test]
    fn a_full_window_delays_by_what_exceeds_it() {
        let mut paths = TestPaths::new(2);
        for path in [0, 1] {
            paths.measure(path, Duration::from_millis(300));
            paths.set_window(path, 750_000, 375_000);
        }
        let lost = lost_chunk(1, 0, LossCause::FastRetransmit);
        let mut rng = Rng::new(&crate::Seed::from_u64(1));
        paths.send(1, 750_000);
        assert_eq!(Earliest.path(&lost, paths.view(), &mut rng).0, 1);
        // The window was cut to half.
        paths.set_window(1, 375_000, 375_000);
        assert_eq!(Earliest.path(&lost, paths.view(), &mut rng).0, 0);
    }

    /// Not so a path that is a third longer.
    #[test]
    fn equal_paths_take_turns_after_a_loss() {
        let lost = lost_chunk(1, 0, LossCause::FastRetransmit);
        for (other, expected) in [(20, 1), (27, 0), (70, 0)] {
            let mut paths = TestPaths::new(2);
            paths.measure(0, Duration::from_millis(20));
            paths.measure(1, Duration::from_millis(other));
            let mut rng = Rng::new(&crate::Seed::from_u64(1));
            assert_eq!(Earliest.path(&lost, paths.view(), &mut rng).0, expected, "{other} ms");
        }
    }

    /// A path that loses half of its packets delivers most chunks earlier than one that is five
    /// times as long, but not one that it has lost three times.
    #[test]
    fn a_chunk_that_was_lost_three_times_takes_a_longer_path_without_losses() {
        let mut paths = TestPaths::new(2);
        paths.measure(0, Duration::from_millis(10));
        paths.measure(1, Duration::from_millis(100));
        for n in 0..64 {
            paths.transmit(0, n % 2 == 0);
            paths.transmit(1, false);
        }
        for (transmissions, expected) in [(1, 0), (2, 0), (3, 1), (4, 1), (u32::MAX, 1)] {
            let lost = lost_chunk(1, 0, LossCause::FastRetransmit);
            let lost = LostChunk { transmissions, ..lost };
            let mut rng = Rng::new(&crate::Seed::from_u64(1));
            assert_eq!(Earliest.path(&lost, paths.view(), &mut rng).0, expected, "{transmissions}");
        }
    }

    #[test]
    fn equal_paths_take_turns_after_a_timeout() {
        let mut paths = TestPaths::new(2);
        for path in [0, 1] {
            paths.measure(path, Duration::from_millis(20));
        }
        for last in [0, 1] {
            let chunk = lost_chunk(1, last, LossCause::Timeout);
            assert_eq!(
                Earliest.path(&chunk, paths.view(), &mut Rng::new(&crate::Seed::from_u64(1))).0,
                1 - last
            );
        }
    }
}
