//! The outputs: pacing rate and window, and the estimate of aggregation that the window needs
//! (draft-ietf-ccwg-bbr 5.5.9, 5.6).

use std::time::Duration;

use super::model::{Ack, INFINITY, Model, State, scale};
use crate::time::Time;

/// `PacingMarginPercent`.
const MARGIN: f64 = 0.99;
/// `ExtraAckedFilterLen` in round trips.
const EXTRA_ACKED_ROUNDS: u64 = 10;

impl Model {
    /// `UpdateOnACK` (draft 5.2.3); returns the new window.
    pub(super) fn update_on_ack(&mut self, ack: &Ack) -> u64 {
        // `UpdateModelAndState`.
        self.update_latest_delivery_signals(ack);
        self.update_congestion_signals(ack);
        self.update_ack_aggregation(ack);
        self.check_full_bw_reached(ack);
        self.check_startup_done(ack);
        self.check_drain_done(ack);
        self.update_cycle_phase(ack);
        self.update_min_rtt(ack);
        let cwnd = self.check_probe_rtt(ack, ack.cwnd);
        self.advance_latest_delivery_signals(ack);
        self.bound_bw();
        // `UpdateControlParameters`.
        self.set_pacing_rate(self.state.gains().0);
        self.new_cwnd(ack, cwnd)
    }

    /// `BoundBWForModel`.
    pub(super) fn bound_bw(&mut self) {
        self.bw = self.max_bw.max().min(self.bw_shortterm);
    }

    /// `InitPacingRate`, once there is a round-trip time.
    pub(super) fn init_pacing_rate(&mut self, cwnd: u64, srtt: Option<Duration>) {
        if let Some(srtt) = srtt.filter(|_| !self.has_seen_rtt) {
            self.has_seen_rtt = true;
            let nominal = u128::from(cwnd) * 1_000_000_000 / srtt.as_nanos().max(1);
            let nominal = u64::try_from(nominal).unwrap_or(u64::MAX - 1);
            self.pacing_rate = scale(nominal, State::Startup.gains().0).max(1);
        }
    }

    /// `SetPacingRateWithGain`.
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = scale(self.bw, gain * MARGIN);
        if rate > 0 && (self.full_bw_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// `UpdateACKAggregation` (draft 5.5.9).
    fn update_ack_aggregation(&mut self, ack: &Ack) {
        let interval = ack.now.since(self.extra_acked_interval_start);
        let expected = u128::from(self.bw) * interval.as_nanos() / 1_000_000_000;
        let mut expected = u64::try_from(expected).unwrap_or(u64::MAX);
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0;
            self.extra_acked_interval_start = ack.now;
            expected = 0;
        }
        self.extra_acked_delivered = self.extra_acked_delivered.saturating_add(ack.newly_acked);
        let extra = (self.extra_acked_delivered - expected).min(ack.cwnd);
        let rounds = if self.full_bw_reached { EXTRA_ACKED_ROUNDS } else { 1 };
        self.extra_acked = self.extra_acked_filter.update(extra, self.round_count, rounds);
    }

    /// `SetCwnd` (draft 5.6.4.6), for the window `cwnd`.
    fn new_cwnd(&self, ack: &Ack, cwnd: u64) -> u64 {
        // `UpdateMaxInflight`.
        let target = self.bdp(self.state.gains().1).saturating_add(self.extra_acked);
        let max_inflight = self.quantized(target);
        let grown = cwnd.saturating_add(ack.newly_acked);
        let cwnd = if self.full_bw_reached {
            grown.min(max_inflight)
        } else if cwnd < max_inflight || self.delivered < self.initial_cwnd {
            grown
        } else {
            cwnd
        };
        self.bounded_cwnd(cwnd.max(self.min_pipe()))
    }

    /// `BoundCwndForProbeRTT`, `BoundCwndForModel` (draft 5.6.4.5, 5.6.4.7).
    pub(super) fn bounded_cwnd(&self, cwnd: u64) -> u64 {
        let cwnd = match self.state {
            State::ProbeRtt => cwnd.min(self.probe_rtt_cwnd()),
            _ => cwnd,
        };
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::ProbeRtt | State::Cruise => self.inflight_with_headroom(),
            State::Startup | State::Drain => INFINITY,
        };
        cwnd.min(cap.min(self.inflight_shortterm).max(self.min_pipe()))
    }

    /// `HandleRestartFromIdle` (draft 5.4.1); returns the new window.
    pub(super) fn restart_from_idle(&mut self, now: Time, cwnd: u64) -> u64 {
        self.idle_restart = true;
        self.extra_acked_interval_start = now;
        if self.state.probes_bandwidth() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            return self.check_probe_rtt_done(now, cwnd);
        }
        cwnd
    }
}
