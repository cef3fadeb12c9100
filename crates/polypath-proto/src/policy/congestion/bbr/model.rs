//! The model of one path and the state of its machine (draft-ietf-ccwg-bbr 2).
//!
//! Volumes are bytes of DATA chunks with their headers, rates are bytes per second; `INFINITY`
//! means unbounded. Fields have the draft's names.

use std::time::Duration;

use super::ambient::Ambient;
use super::filter::{MaxBandwidth, WindowedMax};
use crate::path::{DeliverySample, PathView};
use crate::policy::congestion::{NewPath, PathAck};
use crate::time::Time;

pub(super) const INFINITY: u64 = u64::MAX;

/// `LossThresh`: the tolerated share of lost packets in a round trip of bandwidth probing.
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// `Beta`: the multiplicative decrease for a round trip with losses.
pub(super) const BETA: f64 = 0.7;
/// `Headroom`: the share of inflight_longterm that is left to others.
const HEADROOM: f64 = 0.15;
/// `MinPipeCwnd` in packets.
const MIN_PIPE: u64 = 4;

/// A state of the machine (draft 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// The pacing gain and the window gain (draft 5.6.1).
    pub(super) const fn gains(self) -> (f64, f64) {
        match self {
            // 4 * ln(2).
            Self::Startup => (2.77, 2.0),
            Self::Drain => (0.5, 2.0),
            Self::Down => (0.9, 2.0),
            Self::Cruise | Self::Refill => (1.0, 2.0),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, 0.5),
        }
    }

    /// `IsInAProbeBWState`.
    pub(super) const fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// A probe for bandwidth that may fill the queue.
    pub(super) const fn raises_inflight(self) -> bool {
        matches!(self, Self::Refill | Self::Up)
    }

    /// `IsProbingBW`.
    pub(super) const fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// `ack_phase`: the meaning of the acknowledgements that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// One acknowledgement: C and RS in the draft.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub(super) now: Time,
    /// Bytes in flight after it.
    pub(super) inflight: u64,
    /// The congestion window before it.
    pub(super) cwnd: u64,
    pub(super) newly_acked: u64,
    pub(super) rtt: Option<Duration>,
    /// Whether the path is in fast recovery.
    pub(super) recovering: bool,
    /// RS.prior_delivered, if it is known.
    pub(super) prior_delivered: Option<u64>,
    /// RS.delivered.
    pub(super) delivered: u64,
    /// RS.delivery_rate; 0 without a sample.
    pub(super) rate: u64,
    pub(super) app_limited: bool,
    pub(super) tx_in_flight: u64,
    pub(super) lost: u64,
}

impl Ack {
    pub(super) fn new(now: Time, path: &PathView, ack: &PathAck, limited_until: u64) -> Self {
        let sample = ack.delivery;
        let limited = |s: &DeliverySample| s.app_limited || s.prior_delivered < limited_until;
        Self {
            now,
            inflight: path.in_flight.into(),
            cwnd: path.window.cwnd.into(),
            newly_acked: ack.acked.into(),
            rtt: ack.rtt,
            recovering: ack.recovering,
            prior_delivered: sample.map(|s| s.prior_delivered),
            delivered: sample.map_or(0, |s| s.in_interval()),
            rate: sample.and_then(|s| s.rate).unwrap_or(0),
            app_limited: sample.is_some_and(|s| limited(&s)),
            tx_in_flight: sample.map_or(0, |s| s.in_flight_at_send.into()),
            lost: sample.map_or(0, |s| s.lost),
        }
    }
}

/// The model of one path.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// SMSS: the largest chunk.
    pub(super) smss: u64,
    /// `C.InitialCwnd`.
    pub(super) initial_cwnd: u64,
    /// `C.delivered`.
    pub(super) delivered: u64,
    pub(super) state: State,

    // Round trips (draft 5.5.1).
    pub(super) round_count: u64,
    pub(super) round_start: bool,
    pub(super) next_round_delivered: u64,
    pub(super) drain_start_round: u64,

    // Bandwidth.
    pub(super) max_bw: MaxBandwidth,
    pub(super) bw_shortterm: u64,
    /// The bandwidth to use: the lesser of the two above.
    pub(super) bw: u64,
    pub(super) pacing_rate: u64,
    /// The initial pacing rate was computed from a measured round-trip time.
    pub(super) has_seen_rtt: bool,

    // Volumes.
    pub(super) min_rtt: Option<Duration>,
    pub(super) min_rtt_stamp: Time,
    pub(super) inflight_longterm: u64,
    pub(super) inflight_shortterm: u64,
    pub(super) extra_acked: u64,
    pub(super) extra_acked_filter: WindowedMax,
    pub(super) extra_acked_interval_start: Time,
    pub(super) extra_acked_delivered: u64,

    // Startup.
    pub(super) full_bw_reached: bool,
    pub(super) full_bw_now: bool,
    pub(super) full_bw: u64,
    pub(super) full_bw_count: u32,

    // Signals of congestion.
    pub(super) bw_latest: u64,
    pub(super) inflight_latest: u64,
    pub(super) is_loss_in_round: bool,
    pub(super) loss_round_delivered: u64,
    pub(super) loss_round_start: bool,
    /// SACKs in this round trip that showed losses, and the time of the last one.
    pub(super) losses_in_round: u32,
    pub(super) last_loss: Option<Time>,
    pub(super) ambient: Ambient,
    /// `delivered` at the beginning of CRUISE: what was sent before was sent in DOWN.
    pub(super) cruise_delivered: u64,

    // Probing for bandwidth.
    pub(super) ack_phase: AckPhase,
    pub(super) is_bw_probe_sample: bool,
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,
    pub(super) probe_up_acked_per_inc: u64,
    pub(super) bw_probe_up_acked: u64,
    pub(super) bw_probe_up_rounds: u32,
    pub(super) rounds_since_probe_up: u64,
    pub(super) bw_probe_wait: Duration,
    /// Another path of the association probes for bandwidth.
    pub(super) another_probes: bool,
    pub(super) cycle_stamp: Time,
    /// The end of the last probe, or of Startup. Unlike `cycle_stamp`, ProbeRTT leaves it as it is.
    pub(super) probe_stamp: Time,
    /// The shortest round-trip times of the current round trip and of the last one.
    pub(super) round_rtt: (Option<Duration>, Option<Duration>),
    /// The window was full in the current round trip, and in the last one.
    pub(super) cwnd_limited: (bool, bool),

    // Probing for the round-trip time.
    pub(super) probe_rtt_min_delay: Option<Duration>,
    pub(super) probe_rtt_min_stamp: Time,
    pub(super) probe_rtt_expired: bool,
    pub(super) probe_rtt_done_stamp: Option<Time>,
    pub(super) probe_rtt_round_done: bool,
    pub(super) idle_restart: bool,
    /// Samples of data sent before so much was delivered are limited by the sender.
    pub(super) limited_until: u64,

    // Recovery.
    pub(super) in_recovery: bool,
    pub(super) prior_cwnd: u64,
    pub(super) undo_state: Option<State>,
    pub(super) undo_bw_shortterm: u64,
    pub(super) undo_inflight_shortterm: u64,
    pub(super) undo_inflight_longterm: u64,
}

impl Model {
    /// `OnInit` (draft 5.2.1).
    pub(super) fn new(path: &NewPath, initial_cwnd: u32) -> Self {
        let (now, initial_cwnd) = (path.now, u64::from(initial_cwnd));
        Self {
            smss: path.max_chunk.max(1).into(),
            initial_cwnd,
            delivered: 0,
            state: State::Startup,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            drain_start_round: 0,
            max_bw: MaxBandwidth::default(),
            bw_shortterm: INFINITY,
            bw: 0,
            // `InitPacingRate`: "C.InitialCwnd / (C.srtt ? C.srtt : 1ms)".
            pacing_rate: scale(initial_cwnd.saturating_mul(1000), State::Startup.gains().0),
            has_seen_rtt: false,
            min_rtt: None,
            min_rtt_stamp: now,
            inflight_longterm: INFINITY,
            inflight_shortterm: INFINITY,
            extra_acked: 0,
            extra_acked_filter: WindowedMax::default(),
            extra_acked_interval_start: now,
            extra_acked_delivered: 0,
            full_bw_reached: false,
            full_bw_now: false,
            full_bw: 0,
            full_bw_count: 0,
            bw_latest: 0,
            inflight_latest: 0,
            cruise_delivered: 0,
            is_loss_in_round: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            losses_in_round: 0,
            last_loss: None,
            ambient: Ambient::default(),
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            probe_up_acked_per_inc: INFINITY,
            bw_probe_up_acked: 0,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            bw_probe_wait: Duration::ZERO,
            another_probes: false,
            cycle_stamp: now,
            probe_stamp: now,
            round_rtt: (None, None),
            cwnd_limited: (false, false),
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: now,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            limited_until: 0,
            in_recovery: false,
            prior_cwnd: 0,
            undo_state: None,
            undo_bw_shortterm: INFINITY,
            undo_inflight_shortterm: INFINITY,
            undo_inflight_longterm: INFINITY,
        }
    }

    /// `C.is_cwnd_limited`.
    pub(super) const fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited.0 || self.cwnd_limited.1
    }

    /// `MinPipeCwnd`.
    pub(super) const fn min_pipe(&self) -> u64 {
        MIN_PIPE * self.smss
    }

    /// `UpdateRound` (draft 5.5.1).
    pub(super) fn update_round(&mut self, ack: &Ack) {
        self.round_start = ack.prior_delivered.is_some_and(|p| p >= self.next_round_delivered);
        if self.round_start {
            self.ambient.end_round(self.smss, self.is_bw_probe_sample);
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            self.cwnd_limited = (false, self.cwnd_limited.0);
            self.round_rtt = (None, self.round_rtt.0);
        }
        self.round_rtt.0 = self.round_rtt.0.into_iter().chain(ack.rtt).min();
    }

    pub(super) const fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// `BDPMultiple` (draft 5.6.4.2) for a bandwidth.
    pub(super) fn bdp_of(&self, bw: u64, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return self.initial_cwnd };
        let bdp = u128::from(bw) * min_rtt.as_nanos() / 1_000_000_000;
        scale(u64::try_from(bdp).unwrap_or(u64::MAX - 1), gain)
    }

    /// `BDPMultiple` for the bandwidth in use.
    pub(super) fn bdp(&self, gain: f64) -> u64 {
        self.bdp_of(self.bw, gain)
    }

    /// `QuantizationBudget`; the offload budget is one quantum.
    pub(super) fn quantized(&self, inflight: u64) -> u64 {
        let inflight = inflight.max(self.send_quantum()).max(self.min_pipe());
        let up = if self.state == State::Up { 2 * self.smss } else { 0 };
        inflight.saturating_add(up)
    }

    /// `C.send_quantum` (draft 5.6.3).
    fn send_quantum(&self) -> u64 {
        (self.pacing_rate / 1000).min(64 * 1024).max(2 * self.smss)
    }

    /// `Inflight(bw, gain)`.
    pub(super) fn inflight(&self, bw: u64, gain: f64) -> u64 {
        self.quantized(self.bdp_of(bw, gain))
    }

    /// `InflightWithHeadroom` (draft 5.3.3.6).
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_longterm == INFINITY {
            return INFINITY;
        }
        let headroom = scale(self.inflight_longterm, HEADROOM).max(self.smss);
        self.inflight_longterm.saturating_sub(headroom).max(self.min_pipe())
    }

    /// `TargetInflight`.
    pub(super) fn target_inflight(&self, cwnd: u64) -> u64 {
        self.bdp(1.0).min(cwnd)
    }

    /// `ResetShortTermModel`.
    pub(super) const fn reset_short_term(&mut self) {
        self.bw_shortterm = INFINITY;
        self.inflight_shortterm = INFINITY;
    }

    /// `ResetFullBW`.
    pub(super) const fn reset_full_bw(&mut self) {
        self.full_bw = 0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }
}

/// `value` times `gain`; infinity stays infinite.
pub(super) fn scale(value: u64, gain: f64) -> u64 {
    if value == INFINITY {
        return INFINITY;
    }
    // A cast of a float saturates.
    ((value as f64 * gain) as u64).min(INFINITY - 1)
}
