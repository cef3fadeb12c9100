//! Windows as in ns-2's SCTP module, which produced the papers' figures.
//!
//! RFC 2960 7.2 with its implementer's guide, interpreted as follows:
//! - slow start and congestion avoidance require a full window before the SACK; chunks that wait
//!   for retransmission count as outstanding with ns-2's procedures;
//! - partial_bytes_acked counts cumulatively acknowledged bytes only while the window is full,
//!   bytes acknowledged by gap blocks whenever the cumulative ack advances, and both in fast
//!   recovery too;
//! - T3-rtx changes nothing if the window is one packet already;
//! - the ssthresh of an idle path does not change.
//!
//! Its constants are `initial_cwnd` and `cwnd_floor`: 2 and 2 in the papers' releases; RFC 4960's
//! 4380 bytes and 4 in the last one. ns-2: AdjustCwnd, FastRtx, Timeout,
//! CwndDegradeTimerExpiration.

use crate::path::{PathView, Window};
use crate::policy::congestion::{
    self, Congestion, CongestionController, Context, NewPath, PathAck, coupled, resource_pooling,
};
use crate::policy::entry::{Entry, Policy, Setup};
use crate::policy::probing;
use crate::time::Time;

/// See the module.
pub static CONGESTION: Entry<dyn CongestionController> = Entry::new(
    "ns2",
    "slow start and congestion avoidance as ns-2's SCTP module reads RFC 2960 and 4960",
    |setup| Box::new(Ns2::new(setup, false)),
);

/// The same for ns-2's procedures, which count partial_bytes_acked themselves in CMT.
pub(super) static COUNTED: Entry<dyn CongestionController> =
    Entry::new(CONGESTION.name, CONGESTION.summary, counted);

/// Coupled growth of these windows.
pub(super) static COUPLED: Entry<dyn CongestionController> =
    Entry::new(congestion::COUPLED.name, congestion::COUPLED.summary, |setup| {
        coupled::over(counted(setup))
    });

/// Resource pooling of these windows.
pub(super) static RESOURCE_POOLING: Entry<dyn CongestionController> =
    Entry::new(congestion::RESOURCE_POOLING.name, congestion::RESOURCE_POOLING.summary, |setup| {
        resource_pooling::over(counted(setup))
    });

fn counted(setup: &Setup<'_>) -> Box<dyn CongestionController> {
    Box::new(Ns2::new(setup, setup.concurrent))
}

/// Whether ns-2's procedures count partial_bytes_acked for this controller in CMT.
pub(crate) fn counts_acknowledged(controller: &Policy<dyn CongestionController>) -> bool {
    let own = [&CONGESTION, &congestion::COUPLED, &congestion::RESOURCE_POOLING];
    own.into_iter().any(|entry| controller.is(entry))
}

#[derive(Debug)]
struct Ns2 {
    /// In PMDCS; 0 selects the RFC's formula.
    initial: u32,
    floor: u32,
    floor_after_timeout: u32,
    /// Whether to act like Agent/SCTP/CMT.
    cmt: bool,
    /// Whether partial_bytes_acked includes what the SACK acknowledges already.
    counted: bool,
}

impl Ns2 {
    fn new(setup: &Setup<'_>, counted: bool) -> Self {
        let floor = setup.constants.cwnd_floor();
        // Agent/SCTP/HbAfterRto uses RFC 2960's floor after a timeout.
        let after_rto = setup.probing == probing::AFTER_RTO.name;
        let floor_after_timeout = if after_rto { floor.min(IDLE) } else { floor };
        // Agent/SCTP/CMT uses it after every loss, but not for an idle window.
        let cmt = setup.concurrent;
        let floor_after_timeout = if cmt { floor.min(IDLE) } else { floor_after_timeout };
        Self { initial: setup.constants.initial_cwnd(), floor, floor_after_timeout, cmt, counted }
    }
}

/// An idle window above this many packets decays (ns-2: initialCwnd_, 2 in all the papers).
const IDLE: u32 = 2;

/// Half the window, but at least `floor` packets.
fn at_least(path: &PathView, floor: u32) -> u32 {
    (path.window.cwnd / 2).max(floor * path.max_chunk)
}

impl CongestionController for Ns2 {
    fn initial(&mut self, path: &NewPath) -> Window {
        let max_chunk = path.max_chunk;
        // RFC 4960 7.2.1: min(4 * MTU, max(2 * MTU, 4380)).
        let formula = (4 * max_chunk).min((2 * max_chunk).max(4380));
        let cwnd = if self.initial == 0 { formula } else { self.initial * max_chunk };
        Window::unpaced(cwnd, path.ssthresh)
    }

    fn on_ack(&mut self, context: &Context<'_>, ack: &PathAck) -> Window {
        let path = context.path;
        let mut w = path.window;
        let full = ack.in_flight_before >= w.cwnd;
        if w.cwnd > w.ssthresh && !self.counted {
            let cumulative = if full { ack.acked - ack.acked_by_gaps } else { 0 };
            let by_gaps = if ack.advanced { ack.acked_by_gaps } else { 0 };
            let acked = cumulative.saturating_add(by_gaps);
            w.partial_bytes_acked = w.partial_bytes_acked.saturating_add(acked);
        }
        if ack.may_grow && full {
            if w.cwnd <= w.ssthresh {
                w.cwnd = w.cwnd.saturating_add(ack.acked.min(path.max_chunk));
            } else if w.partial_bytes_acked >= w.cwnd {
                w.partial_bytes_acked -= w.cwnd;
                w.cwnd = w.cwnd.saturating_add(path.max_chunk);
            }
        }
        if ack.in_flight_before <= ack.acked && !self.cmt {
            w.partial_bytes_acked = 0;
        }
        w
    }

    fn on_congestion(&mut self, context: &Context<'_>, _: Congestion) -> Window {
        let floor = if self.cmt { self.floor_after_timeout } else { self.floor };
        let ssthresh = at_least(context.path, floor);
        Window::unpaced(ssthresh, ssthresh)
    }

    fn on_timeout(&mut self, context: &Context<'_>) -> Window {
        let path = context.path;
        if path.window.cwnd <= path.max_chunk && !self.cmt {
            return path.window;
        }
        let ssthresh = at_least(path, self.floor_after_timeout);
        Window::unpaced(path.max_chunk, ssthresh)
    }

    fn on_idle(&mut self, _: Time, path: &PathView, _: bool) -> Window {
        let w = path.window;
        // With a floor of four packets a window of three grows, as in ns-2.
        if w.cwnd > IDLE * path.max_chunk {
            Window { cwnd: at_least(path, self.floor), ..w }
        } else {
            w
        }
    }
}
