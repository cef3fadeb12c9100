//! The shortest round-trip time, and ProbeRTT, which drains the queue to measure it
//! (draft-ietf-ccwg-bbr 5.3.4).

use std::time::Duration;

use super::model::{Ack, AckPhase, Model, State};
use crate::time::Time;

/// `ProbeRTTInterval`.
const INTERVAL: Duration = Duration::from_secs(5);
/// Fewest round trips between two ProbeRTTs.
const INTERVAL_ROUNDS: u32 = 25;
/// `ProbeRTTDuration`.
const DURATION: Duration = Duration::from_millis(200);

/// A sample that exceeds the shortest one by no more than one part in this many shows it again.
const NEAR: u32 = 32;

/// Whether a sample shows that the path's round-trip time is still the shortest one.
fn is_near(rtt: Duration, shortest: Duration) -> bool {
    rtt <= shortest + shortest / NEAR
}

impl Model {
    /// `UpdateMinRTT`. The draft enters ProbeRTT unless a lower sample was seen in the last five
    /// seconds (5.3.4.3): it halves the window for a round trip and 200 ms, which costs a tenth of
    /// the throughput at 600 ms. A sample that equals the shortest one shows the same as ProbeRTT
    /// would, so that it postpones ProbeRTT, too.
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        self.probe_rtt_expired = ack.now > self.probe_rtt_min_stamp + self.probe_rtt_interval();
        if let Some(rtt) = ack.rtt
            && (self.probe_rtt_min_delay.is_none_or(|least| rtt < least) || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = ack.now;
        } else if ack.rtt.zip(self.probe_rtt_min_delay).is_some_and(|(rtt, min)| is_near(rtt, min))
        {
            // The queue is empty: draining it would show nothing new.
            self.probe_rtt_min_stamp = ack.now;
        }
        // `MinRTTFilterLen`, "roughly twice the BBR.ProbeRTTInterval".
        let expired = ack.now > self.min_rtt_stamp + 2 * self.probe_rtt_interval();
        if let Some(delay) = self.probe_rtt_min_delay
            && (self.min_rtt.is_none_or(|least| delay < least) || expired)
        {
            self.min_rtt = Some(delay);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// `ProbeRTTInterval`. ProbeRTT halves the window for a round trip at least, and is to cost
    /// about 2 % (draft 5.3.4.2). On a path with a long round-trip time a probe for bandwidth and
    /// the DOWN that drains its queue also take more than five seconds, so that there is no sample
    /// near the shortest one for as long, although the queue is empty in each cycle.
    fn probe_rtt_interval(&self) -> Duration {
        self.min_rtt.map_or(INTERVAL, |rtt| INTERVAL.max(rtt * INTERVAL_ROUNDS))
    }

    /// `CheckProbeRTT`; returns the new window.
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack, cwnd: u64) -> u64 {
        let mut cwnd = cwnd;
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd(cwnd);
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            cwnd = self.handle_probe_rtt(ack, cwnd);
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
        cwnd
    }

    /// `HandleProbeRTT`.
    fn handle_probe_rtt(&mut self, ack: &Ack, cwnd: u64) -> u64 {
        // "Ignore low rate samples during ProbeRTT".
        self.limited_until = (self.delivered + ack.inflight).max(1);
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                return self.check_probe_rtt_done(ack.now, cwnd);
            }
        } else if ack.inflight <= self.probe_rtt_cwnd() {
            self.probe_rtt_done_stamp = Some(ack.now + DURATION);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
        cwnd
    }

    /// `CheckProbeRTTDone`; returns the new window.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time, cwnd: u64) -> u64 {
        if self.probe_rtt_done_stamp.is_none_or(|done| now <= done) {
            return cwnd;
        }
        self.probe_rtt_min_stamp = now;
        // `ExitProbeRTT`.
        self.reset_short_term();
        if self.full_bw_reached {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.enter_startup();
        }
        self.restored_cwnd(cwnd)
    }

    /// `ProbeRTTCwnd` (draft 5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp(State::ProbeRtt.gains().1).max(self.min_pipe())
    }
}
