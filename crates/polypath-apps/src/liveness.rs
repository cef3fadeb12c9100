//! Whether the peer still answers.

use std::time::Duration;

use polypath::Association;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Interval of checks.
const CHECK: Duration = Duration::from_millis(500);

/// Ready when no packet has arrived on any path for `limit`.
///
/// A side that only receives does not notice by itself that its peer has gone: SCTP probes an idle
/// path every 30 s (RFC 9260 8.3). Here all paths are probed once nothing arrives, and a peer that
/// answers on one of them is there, even if its data waits for a path that has failed.
///
/// Probes begin after a silence of `probe`.
pub(crate) async fn silence(association: &Association, probe: Duration, limit: Duration) {
    let mut ticks = interval(CHECK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut count, mut last) = (0, Instant::now());
    loop {
        ticks.tick().await;
        let paths = association.paths();
        let received: u64 = paths.iter().map(|path| path.stats.packets_received).sum();
        if received != count {
            (count, last) = (received, Instant::now());
            continue;
        }
        let silent = last.elapsed();
        if silent >= limit {
            return;
        }
        if silent >= probe {
            // A HEARTBEAT is sent on a path once, until it is answered or lost.
            for path in &paths {
                // A path that was removed meanwhile needs no probe.
                let _ = association.request_heartbeat(path.view.id);
            }
        }
    }
}
