//! Slow start, congestion avoidance and their exits as in RFC 9260 7.2.

use std::net::IpAddr;

use super::{CongestionController, PathAck};
use crate::path::{PathView, PathsView, Window};
use crate::policy::Answer;

/// See the [module](self).
pub static RFC9260: Answer<dyn CongestionController> = Answer {
    name: "rfc9260",
    summary: "slow start and congestion avoidance for each path by itself (RFC 9260 7.2)",
    make: |setup| {
        Box::new(Rfc9260 {
            initial: setup.constants.initial_cwnd(),
            floor: setup.constants.cwnd_floor(),
        })
    },
};

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
    fn initial(&self, max_chunk: u32, ssthresh: u32, remote: IpAddr) -> Window {
        // RFC 9260 7.2.1: "min(4 * PMDCS, max(2 * PMDCS, 4404)) bytes if the peer address is an
        // IPv4 address" and 4344 for IPv6: three chunks of an Ethernet packet.
        let three = if remote.is_ipv4() { 4404 } else { 4344 };
        let formula = (4 * max_chunk).min((2 * max_chunk).max(three));
        let cwnd = if self.initial == 0 { formula } else { self.initial * max_chunk };
        Window { cwnd, ssthresh, partial_bytes_acked: 0 }
    }

    fn on_ack(&mut self, path: &PathView, ack: &PathAck, _: PathsView<'_>) -> Window {
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

    fn on_fast_retransmit(&mut self, path: &PathView, _: PathsView<'_>) -> Window {
        // RFC 9260 7.2.3, 7.2.4 (2).
        let ssthresh = self.halved(path);
        Window { cwnd: ssthresh, ssthresh, partial_bytes_acked: 0 }
    }

    fn on_timeout(&mut self, path: &PathView, _: PathsView<'_>) -> Window {
        // RFC 9260 7.2.3.
        Window { cwnd: path.max_chunk, ssthresh: self.halved(path), partial_bytes_acked: 0 }
    }

    fn on_idle(&mut self, path: &PathView, first: bool) -> Window {
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
