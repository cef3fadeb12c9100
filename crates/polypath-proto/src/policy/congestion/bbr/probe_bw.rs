//! The cycle of bandwidth probing: DOWN, CRUISE, REFILL, UP (draft-ietf-ccwg-bbr 5.3.3).

use std::time::Duration;

use super::super::cubic;
use super::model::{Ack, AckPhase, INFINITY, Model, State};
use crate::time::Time;

/// Draft 5.3.3.5.2: the wait in wall clock time is 2 to 3 seconds.
const LEAST_WAIT: Duration = Duration::from_secs(2);
/// At most this many round trips (draft 5.3.3.5.2).
const RENO_ROUNDS: u64 = 63;
/// Seconds that a probe waits for others at most: K of 2300 packets.
const LONGEST_WAIT: f64 = 12.0;
/// A queue counts as that of others from this part of the shortest round-trip time.
const QUEUE_OF_OTHERS: u32 = 10;

impl Model {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, now: Time) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = INFINITY;
        self.pick_probe_wait(now);
        self.cycle_stamp = now;
        if self.state != State::ProbeRtt {
            self.probe_stamp = now;
        }
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::Down;
    }

    /// `StartProbeBW_CRUISE`.
    pub(super) const fn start_cruise(&mut self) {
        self.cruise_delivered = self.delivered;
        self.state = State::Cruise;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) const fn start_refill(&mut self) {
        self.reset_short_term();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, ack: &Ack) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = ack.rate;
        self.state = State::Up;
        self.raise_longterm_slope(ack.cwnd);
    }

    /// `PickProbeWait`. The numbers only have to differ between flows: they are derived from the
    /// time and from what was delivered (SplitMix64).
    fn pick_probe_wait(&mut self, now: Time) {
        let mut z = now.as_nanos().wrapping_add(self.delivered.rotate_left(32));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        self.rounds_since_probe_up = z & 1;
        self.bw_probe_wait = LEAST_WAIT + Duration::from_nanos((z >> 1) % 1_000_000_000);
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle_phase(&mut self, ack: &Ack) {
        if !self.full_bw_reached || self.adapt_long_term_model(ack) {
            return;
        }
        match self.state {
            State::Down | State::Cruise => self.end_wait(ack),
            State::Refill if self.round_start => {
                // One round trip of REFILL.
                self.is_bw_probe_sample = true;
                self.start_up(ack);
            }
            State::Up => self.end_probe(ack),
            _ => {}
        }
    }

    /// DOWN or CRUISE: `IsTimeToProbeBW`, `IsTimeToCruise`.
    fn end_wait(&mut self, ack: &Ack) {
        let waited = |times| ack.now > self.cycle_stamp + self.bw_probe_wait * times;
        let rounds = self.reno_rounds(ack.cwnd);
        let due = waited(1) || self.rounds_since_probe_up >= rounds.min(RENO_ROUNDS);
        // Others grow into their share meanwhile.
        let queue = self.is_queue_of_others();
        let early =
            queue && self.rounds_since_probe_up < rounds && !self.is_cubic_probe_time(ack.now);
        if due && !early && (!self.another_probes || waited(2)) {
            if queue {
                self.give_up_headroom();
            }
            self.start_refill();
        } else if self.state == State::Down && self.is_time_to_cruise(ack) {
            self.start_cruise();
        }
    }

    /// Whether others keep a queue, for DOWN has drained this path's own. Then the probe begins at
    /// the volume with headroom, from which UP adds equally much to small and large flows, while
    /// the headroom is a share of each: flows that do so converge (Chiu and Jain 1989). From the
    /// bound itself, as in the draft, a large flow takes the headroom back at once.
    pub(super) fn is_queue_of_others(&self) -> bool {
        let least = self.round_rtt.0.into_iter().chain(self.round_rtt.1).min();
        let rtts = self.min_rtt.zip(least);
        rtts.is_some_and(|(min, rtt)| rtt > min + min / QUEUE_OF_OTHERS)
    }

    /// The probe begins with the headroom, but not below what fills the path without a queue.
    fn give_up_headroom(&mut self) {
        let least = self.inflight(self.max_bw.max(), 1.0);
        let begin = self.inflight_with_headroom().max(least);
        self.inflight_longterm = self.inflight_longterm.min(begin);
    }

    /// UP: goes down if it is time to.
    fn end_probe(&mut self, ack: &Ack) {
        if self.is_time_to_go_down(ack) {
            self.prev_probe_too_high = false;
            self.start_down(ack.now);
        }
    }

    /// Ends a probe that fills the queue, or Startup if the last round-trip time shows that it has.
    pub(super) fn stop_probing(&mut self, now: Time, last_rtt: Option<Duration>) {
        match self.state {
            State::Refill | State::Up => self.start_down(now),
            State::Startup if self.min_rtt.zip(last_rtt).is_some_and(|(m, r)| r > m + m / 4) => {
                self.full_bw_reached = true;
                self.enter_drain();
            }
            _ => return,
        }
        self.set_pacing_rate(self.state.gains().0);
    }

    /// The time scale of `IsRenoCoexistenceProbeTime`: as many round trips as there are packets in
    /// flight.
    fn reno_rounds(&self, cwnd: u64) -> u64 {
        self.target_inflight(cwnd) / self.smss
    }

    /// Whether a flow of CUBIC of this size would have got back the window that the last probe cost
    /// it: K of RFC 9438 4.2. Each probe fills the queue, and the losses cut such a flow to 0.7. It
    /// grows from loss to loss only if the time between them exceeds its own K, which the draft
    /// waits for up to 62 packets. With the K of this flow's volume, both come to the same volume.
    fn is_cubic_probe_time(&self, now: Time) -> bool {
        if self.inflight_longterm == INFINITY {
            return true;
        }
        let packets = self.inflight_longterm as f64 / self.smss as f64;
        let k = (packets * (1.0 - cubic::BETA) / cubic::C).cbrt().min(LONGEST_WAIT);
        now >= self.probe_stamp + Duration::from_secs_f64(k)
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        ack.inflight <= self.inflight_with_headroom()
            && ack.inflight <= self.inflight(self.max_bw.max(), 1.0)
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, ack: &Ack) -> bool {
        if self.prev_probe_too_high && ack.inflight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && ack.cwnd >= self.inflight_longterm {
            // The bandwidth is limited by inflight_longterm.
            self.reset_full_bw();
            self.full_bw = ack.rate;
            return false;
        }
        self.full_bw_now
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_longterm_slope(&mut self, cwnd: u64) {
        let growth = 1u64 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (cwnd / growth).max(self.smss);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_longterm_upward(&mut self, ack: &Ack) {
        if !self.is_cwnd_limited() || ack.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked = self.bw_probe_up_acked.saturating_add(ack.newly_acked);
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = self.bw_probe_up_acked / self.probe_up_acked_per_inc;
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            let grown = self.inflight_longterm.saturating_add(delta.saturating_mul(self.smss));
            self.inflight_longterm = grown.min(INFINITY - 1);
        }
        if self.round_start {
            self.raise_longterm_slope(ack.cwnd);
        }
    }

    /// `AdaptLongTermModel`: true if it decided on a transition.
    fn adapt_long_term_model(&mut self, ack: &Ack) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            // The end of samples from bandwidth probing.
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.probes_bandwidth() && !ack.app_limited {
                self.max_bw.advance();
            }
            // A precautionary probe found no high loss: probe again at once.
            if self.state.probes_bandwidth()
                && self.prev_probe_precautionary
                && !self.prev_probe_too_high
            {
                self.start_refill();
                return true;
            }
        }
        if !self.is_inflight_too_high(ack.lost, ack.tx_in_flight)
            && self.inflight_longterm != INFINITY
        {
            self.inflight_longterm = self.inflight_longterm.max(ack.tx_in_flight);
            if self.state == State::Up {
                self.probe_longterm_upward(ack);
            }
        }
        false
    }
}
