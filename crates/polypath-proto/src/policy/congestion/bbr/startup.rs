//! Startup and Drain, and the estimator of a full pipe (draft-ietf-ccwg-bbr 5.3.1, 5.3.2).

use super::model::{Ack, Model, State};

/// Growth of the delivery rate in a round trip below which the pipe may be full.
const GROWTH: f64 = 1.25;
/// Round trips without growth after which it is.
const FULL_ROUNDS: u32 = 3;
/// `BBRStartupFullLossCnt`: losses in a round trip that end Startup.
const LOSSES: u32 = 6;
/// Most round trips in Drain.
const DRAIN_ROUNDS: u64 = 3;

impl Model {
    pub(super) const fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// `CheckFullBWReached` (draft 5.3.1.2).
    pub(super) fn check_full_bw_reached(&mut self, ack: &Ack) {
        if self.full_bw_now || !self.round_start || ack.app_limited || ack.rate == 0 {
            return;
        }
        if ack.rate as f64 >= self.full_bw as f64 * GROWTH {
            self.reset_full_bw();
            self.full_bw = ack.rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, ack: &Ack) {
        self.check_startup_high_loss(ack);
        if self.state == State::Startup && self.full_bw_reached {
            self.enter_drain();
        }
    }

    /// `CheckStartupHighLoss` (draft 5.3.1.3): in fast recovery for a round trip, in which more
    /// than 2 % of the packets were lost, in at least six places. Without a queue, losses that the
    /// path may have by itself do not count: its share is not known in the first round trips.
    fn check_startup_high_loss(&mut self, ack: &Ack) {
        let high = self.loss_round_start
            && ack.recovering
            && self.losses_in_round >= LOSSES
            && self.is_inflight_too_high(ack.lost, ack.tx_in_flight)
            && !(self.ambient.is_unqueued()
                && ack.lost as f64 <= self.ambient.most_own(ack.tx_in_flight, self.smss));
        if self.state == State::Startup && high {
            self.leave_startup_on_congestion();
        }
        if self.loss_round_start {
            self.losses_in_round = 0;
        }
    }

    /// Takes what was delivered in the last round trip for the safe volume, and drains the queue.
    pub(super) fn leave_startup_on_congestion(&mut self) {
        self.undo_state = Some(State::Startup);
        self.full_bw_reached = true;
        self.inflight_longterm = self.bdp(1.0).max(self.inflight_latest);
        self.enter_drain();
    }

    pub(super) const fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.round_count;
    }

    /// `CheckDrainDone` (draft 5.3.2).
    pub(super) fn check_drain_done(&mut self, ack: &Ack) {
        let drained = ack.inflight <= self.inflight(self.bw, 1.0);
        let late = self.round_count > self.drain_start_round + DRAIN_ROUNDS;
        if self.state == State::Drain && (drained || late) {
            self.start_down(ack.now);
        }
    }
}
