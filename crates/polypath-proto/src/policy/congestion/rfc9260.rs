//! Slow start, congestion avoidance and their exits as in RFC 9260 7.2.

use super::{Congestion, CongestionController, Context, NewPath, PathAck};
use crate::path::{PathView, Window};
use crate::policy::entry::Entry;
use crate::time::Time;

/// See the [module](self).
pub static RFC9260: Entry<dyn CongestionController> = Entry::new(
    "rfc9260",
    "slow start and congestion avoidance for each path by itself (RFC 9260 7.2)",
    |setup| {
        Box::new(Rfc9260 {
            initial: setup.constants.initial_cwnd(),
            floor: setup.constants.cwnd_floor(),
        })
    },
);

#[derive(Debug)]
struct Rfc9260 {
    /// In PMDCS; 0 selects the RFC's formula.
    initial: u32,
    floor: u32,
}

impl Rfc9260 {
    /// Half the window, but at least `floor` PMDCS, 4 in RFC 9260 7.2.1, 7.2.3, 7.2.4.
    fn halved(&self, path: &PathView) -> u32 {
        (path.window.cwnd / 2).max(self.floor * path.max_chunk)
    }
}

impl CongestionController for Rfc9260 {
    fn initial(&mut self, path: &NewPath) -> Window {
        Window::unpaced(path.initial_cwnd(self.initial), path.ssthresh)
    }

    fn on_ack(&mut self, context: &Context<'_>, ack: &PathAck) -> Window {
        let path = context.path;
        let mut w = path.window;
        let full = ack.in_flight_before >= w.cwnd;
        if w.cwnd <= w.ssthresh {
            // RFC 9260 7.2.1: grow only if the window is fully used, the cumulative TSN ack point
            // advances and the association is not in fast recovery; by the lesser of the bytes
            // acknowledged and one PMDCS (L = 1).
            if ack.may_grow && full {
                w.cwnd = w.cwnd.saturating_add(ack.acked.min(path.max_chunk));
            }
        } else if ack.may_grow {
            // RFC 9260 7.2.2: bytes newly acknowledged by a SACK that advances the cumulative TSN
            // ack point, those of gap blocks included.
            w.partial_bytes_acked = w.partial_bytes_acked.saturating_add(ack.acked);
            if w.partial_bytes_acked > w.cwnd && !full {
                w.partial_bytes_acked = w.cwnd;
            }
            if w.partial_bytes_acked >= w.cwnd && full {
                w.partial_bytes_acked -= w.cwnd;
                w.cwnd = w.cwnd.saturating_add(path.max_chunk);
            }
        }
        if path.in_flight == 0 {
            // RFC 9260 7.2.2: all data acknowledged resets partial_bytes_acked.
            w.partial_bytes_acked = 0;
        }
        w
    }

    fn on_congestion(&mut self, context: &Context<'_>, _: Congestion) -> Window {
        // RFC 9260 7.2.3, 7.2.4 (2); RFC 4960 A for ECN.
        let ssthresh = self.halved(context.path);
        Window::unpaced(ssthresh, ssthresh)
    }

    fn on_timeout(&mut self, context: &Context<'_>) -> Window {
        // RFC 9260 7.2.3.
        Window::unpaced(context.path.max_chunk, self.halved(context.path))
    }

    fn on_idle(&mut self, _: Time, path: &PathView, first: bool) -> Window {
        // RFC 9260 7.2.1: "the cwnd of the transport address SHOULD be adjusted to
        // max(cwnd / 2, 4 * PMDCS) once per RTO"; "Before the first cwnd adjustment, the ssthresh
        // of the transport address SHOULD be set to the cwnd."
        let w = path.window;
        let cwnd = self.halved(path).min(w.cwnd);
        // If the window does not change, the threshold need not either.
        let ssthresh = if first && cwnd < w.cwnd { w.cwnd } else { w.ssthresh };
        Window { cwnd, ssthresh, ..w }
    }
}
