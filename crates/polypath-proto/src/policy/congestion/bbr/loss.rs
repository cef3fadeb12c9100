//! Losses and marks: the bounds of the model, and what is restored if they were spurious
//! (draft-ietf-ccwg-bbr 5.5.10, 5.5.11).

use super::model::{Ack, BETA, INFINITY, LOSS_THRESHOLD, Model, State, scale};
use crate::path::LossSample;
use crate::time::Time;

impl Model {
    /// `IsInflightTooHigh`, beyond the path's own losses.
    pub(super) fn is_inflight_too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        lost as f64 > self.tolerated(tx_in_flight)
    }

    /// The most of `bytes` bytes that may be lost: `LossThresh`, beyond the path's own losses.
    fn tolerated(&self, bytes: u64) -> f64 {
        let threshold = LOSS_THRESHOLD + self.ambient.share(self.smss);
        (bytes as f64 * threshold).max(self.ambient.own(bytes, self.smss))
    }

    /// `ResetCongestionSignals`.
    pub(super) const fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest_delivery_signals(&mut self, ack: &Ack) {
        self.loss_round_start = false;
        let (rate, delivered) = self.delivered_at_full_pace(ack);
        self.bw_latest = self.bw_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(delivered);
        if ack.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered) {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest_delivery_signals(&mut self, ack: &Ack) {
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = self.delivered_at_full_pace(ack);
        }
    }

    /// The rate and the volume of a sample, as they would be at the pace of CRUISE. DOWN sends less
    /// than the path delivers, to drain the queue of its own probe, which may be what has lost or
    /// marked packets: without this, the bounds of CRUISE would be the pace of DOWN. Losses in
    /// a queue that others keep leave them room.
    fn delivered_at_full_pace(&self, ack: &Ack) -> (u64, u64) {
        let sent_in_down = match self.state {
            State::Down => true,
            State::Cruise => ack.prior_delivered.is_some_and(|p| p < self.cruise_delivered),
            _ => false,
        };
        let leaves_room = self.losses_in_round > 0 && self.is_queue_of_others();
        let slow = sent_in_down && !leaves_room;
        let gain = if slow { 1.0 / State::Down.gains().0 } else { 1.0 };
        (scale(ack.rate, gain), scale(ack.delivered, gain))
    }

    /// `UpdateCongestionSignals`.
    pub(super) fn update_congestion_signals(&mut self, ack: &Ack) {
        self.ambient.note_acked(ack.newly_acked, ack.rtt, self.min_rtt);
        self.update_round(ack);
        // `UpdateMaxBw` (draft 5.5.5).
        if ack.rate > 0 && (ack.rate >= self.max_bw.max() || !ack.app_limited) {
            self.max_bw.update(ack.rate);
        }
        if self.loss_round_start {
            if !self.state.accelerates() && self.is_loss_in_round {
                self.adapt_lower_bounds(ack.cwnd);
            }
            self.is_loss_in_round = false;
        }
    }

    /// `InitLowerBounds`, `LossLowerBounds`.
    fn adapt_lower_bounds(&mut self, cwnd: u64) {
        if self.bw_shortterm == INFINITY {
            self.bw_shortterm = self.max_bw.max();
        }
        if self.inflight_shortterm == INFINITY {
            self.inflight_shortterm = cwnd;
        }
        // A sender at the rate of the path delivers that rate without the path's own losses.
        let sent = 1.0 / (1.0 - self.ambient.share(self.smss));
        let (bw, inflight) = (scale(self.bw_latest, sent), scale(self.inflight_latest, sent));
        self.bw_shortterm = bw.max(scale(self.bw_shortterm, BETA)).min(self.bw_shortterm);
        self.inflight_shortterm = inflight.max(scale(self.inflight_shortterm, BETA));
    }

    /// `NoteLoss`.
    fn note_loss(&mut self, cwnd: u64) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_state_upon_loss(cwnd);
        }
        self.is_loss_in_round = true;
    }

    /// `HandleLostPacket`, for a chunk of `size` bytes.
    pub(super) fn handle_lost(
        &mut self,
        now: Time,
        cwnd: u64,
        size: u64,
        sample: Option<LossSample>,
    ) {
        self.ambient.note_lost(size);
        if self.ambient.is_exceeded(self.smss) {
            self.note_loss(cwnd);
        }
        if self.last_loss.replace(now) != Some(now) {
            self.losses_in_round = self.losses_in_round.saturating_add(1);
        }
        let Some(sample) = sample.filter(|_| self.is_bw_probe_sample) else { return };
        let in_flight = u64::from(sample.in_flight_at_send);
        if self.is_inflight_too_high(sample.lost, in_flight) {
            let threshold = self.tolerated(in_flight) / in_flight.max(1) as f64;
            let at_loss = inflight_at_loss(size, in_flight, sample.lost, threshold);
            self.handle_inflight_too_high(now, cwnd, at_loss, sample.app_limited);
        }
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(
        &mut self,
        now: Time,
        cwnd: u64,
        in_flight: u64,
        app_limited: bool,
    ) {
        self.prev_probe_too_high = true;
        // React only once per probe.
        self.is_bw_probe_sample = false;
        if !app_limited {
            let least = scale(self.target_inflight(cwnd), BETA);
            self.inflight_longterm = in_flight.max(least).min(INFINITY - 1);
        }
        if self.state == State::Up {
            self.undo_state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// A packet was marked "congestion experienced". Draft 3.7: "the congestion controller response
    /// MUST treat any CE marks as congestion": a mark counts as high loss while the sender
    /// accelerates, and as a loss otherwise.
    pub(super) fn handle_mark(&mut self, now: Time, cwnd: u64, in_flight: u64) {
        self.note_loss(cwnd);
        match self.state {
            State::Startup => self.leave_startup_on_congestion(),
            State::Refill | State::Up => {
                self.handle_inflight_too_high(now, cwnd, in_flight, false);
            }
            _ => {}
        }
    }

    /// `SaveStateUponLoss`.
    pub(super) fn save_state_upon_loss(&mut self, cwnd: u64) {
        self.save_cwnd(cwnd);
        self.undo_state = None;
        self.undo_bw_shortterm = self.bw_shortterm;
        self.undo_inflight_shortterm = self.inflight_shortterm;
        self.undo_inflight_longterm = self.inflight_longterm;
    }

    /// `HandleSpuriousLossDetection`; returns the new window.
    pub(super) fn undo(&mut self, cwnd: u64) -> u64 {
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo_bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo_inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo_inflight_longterm);
        match self.undo_state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
        self.restored_cwnd(cwnd)
    }

    /// `SaveCwnd` (draft 5.6.4.4).
    pub(super) fn save_cwnd(&mut self, cwnd: u64) {
        self.prior_cwnd = if !self.in_recovery && self.state != State::ProbeRtt {
            cwnd
        } else {
            self.prior_cwnd.max(cwnd)
        };
    }

    /// `RestoreCwnd`.
    pub(super) fn restored_cwnd(&self, cwnd: u64) -> u64 {
        cwnd.max(self.prior_cwnd)
    }
}

/// `InflightAtLoss`: the bytes in flight at which losses crossed the threshold, for a lost chunk of
/// `size` bytes.
pub(super) fn inflight_at_loss(size: u64, in_flight: u64, lost: u64, threshold: f64) -> u64 {
    let before = in_flight.saturating_sub(size);
    let lost_before = lost.saturating_sub(size) as f64;
    let prefix = (threshold * before as f64 - lost_before) / (1.0 - threshold);
    before.saturating_add(prefix.max(0.0) as u64)
}
