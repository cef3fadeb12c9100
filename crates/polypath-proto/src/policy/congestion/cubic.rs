//! CUBIC (RFC 9438) with HyStart++ (RFC 9406), and the smaller cut of ABE for ECN (RFC 8511).
//!
//! Windows are counted in bytes; the RFC's segments are the path's largest chunks. RFC 9260 7.2.3
//! bounds the slow start threshold from below by four chunks (`cwnd_floor`), RFC 9438 by two: this
//! policy keeps SCTP's bound. The window grows only while it limits the sender (RFC 9438 5.8), so
//! that it may replace the flight size where a threshold is computed (4.6).
//!
//! Packets are paced at twice the window per round-trip time in slow start and 1.25 times it later:
//! faster than they are acknowledged, so that pacing does not limit the window's growth (RFC 9002
//! 7.7).

use std::collections::VecDeque;
use std::time::Duration;

use super::hystart::{Growth, HyStart};
use super::{Congestion, CongestionController, Context, NewPath, PathAck, PathTable, Spurious};
use crate::path::{PathView, Window};
use crate::policy::entry::{Entry, Needs};
use crate::time::Time;

/// See the [module](self).
pub static CUBIC: Entry<dyn CongestionController> = Entry::<dyn CongestionController>::new(
    "cubic",
    "cubic growth after a loss, slow start that ends when delay rises, paced (RFC 9438, 9406, 8511)",
    |setup| {
        Box::new(Cubic {
            initial: setup.constants.initial_cwnd(),
            floor: setup.constants.cwnd_floor(),
            paths: PathTable::default(),
        })
    },
)
.with_needs(Needs::NONE.pacing());

/// RFC 9438 4.6: "The parameter beta_cubic SHOULD be set to 0.7".
pub(super) const BETA: f64 = 0.7;
/// RFC 8511 3.1: "CUBIC connections benefit from beta_ecn of 0.85".
const BETA_ECN: f64 = 0.85;
/// RFC 9438 5: "Therefore, C SHOULD be set to 0.4", in segments per cubic second.
pub(super) const C: f64 = 0.4;
/// RFC 9438 4.3: 3 * (1 - beta_cubic) / (1 + beta_cubic).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The window never grows beyond this many bytes.
const MOST: f64 = (1u32 << 30) as f64;

#[derive(Debug)]
struct Cubic {
    /// In PMDCS; 0 selects RFC 9260's formula.
    initial: u32,
    /// Lower bound of the slow start threshold, in PMDCS.
    floor: u32,
    paths: PathTable<State>,
}

/// The variables of RFC 9438 4.1 that a congestion event changes; bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    ssthresh: u32,
    cwnd_prior: f64,
    w_max: f64,
    /// The current congestion avoidance stage, once it has begun.
    stage: Option<Stage>,
    /// T3-rtx has expired, and no congestion avoidance stage has begun since.
    after_timeout: bool,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stage {
    epoch: Time,
    /// In seconds.
    k: f64,
    w_max: f64,
    w_est: f64,
}

/// The state before a recovery.
#[derive(Clone, Debug)]
struct Saved {
    cwnd: u32,
    curve: Curve,
    hystart: Option<HyStart>,
}

/// Recoveries that can be undone.
const MOST_SAVED: usize = 4;

/// One path.
#[derive(Clone, Debug)]
struct State {
    curve: Curve,
    /// The state before the first event of each of the last recoveries.
    undo: VecDeque<Saved>,
    /// A recovery has begun and is not over.
    recovering: bool,
    /// The first slow start, until it ends.
    hystart: Option<HyStart>,
    /// Bytes of growth that did not make up a whole byte yet.
    fraction: f64,
    /// When data was last acknowledged.
    last_ack: Time,
    /// Since when the window has not limited the sender.
    unlimited_since: Option<Time>,
}

/// W_cubic(t) in bytes, `t` seconds after the epoch (RFC 9438 4.2, Figure 1).
fn w_cubic(t: f64, k: f64, w_max: f64, max_chunk: f64) -> f64 {
    C * max_chunk * (t - k).powi(3) + w_max
}

/// K in seconds (RFC 9438 4.2, Figure 2).
fn time_to_w_max(w_max: f64, cwnd: f64, max_chunk: f64) -> f64 {
    ((w_max - cwnd).max(0.0) / max_chunk / C).cbrt()
}

impl State {
    const fn new(path: &NewPath) -> Self {
        let curve = Curve {
            ssthresh: path.ssthresh,
            cwnd_prior: 0.0,
            w_max: 0.0,
            stage: None,
            after_timeout: false,
        };
        Self {
            curve,
            undo: VecDeque::new(),
            recovering: false,
            // RFC 9406 4.3: "An implementation SHOULD use HyStart++ only for the initial slow
            // start".
            hystart: Some(HyStart::new()),
            fraction: 0.0,
            last_ack: path.now,
            unlimited_since: None,
        }
    }

    /// Excludes time in which the application or the peer limited the sender from the current
    /// stage (RFC 9438 4.2); false if they still do.
    fn is_limited_by_window(&mut self, now: Time, path: &PathView, ack: &PathAck) -> bool {
        let cwnd = path.window.cwnd;
        // The pacer releases batches: less than one may be missing.
        let batch = path.window.pacing_rate.map_or(0, |rate| (rate / 1000).min(1 << 16) as u32);
        let slack = path.max_chunk.max(batch).min(cwnd / 4);
        // Half a window must be in flight in slow start, where it doubles each round trip and not
        // all of the acknowledgements find it full, and while data waits for the pacer. RFC 9002
        // 7.8: "A sender SHOULD NOT consider itself application limited if it would have fully
        // utilized the congestion window without pacing delay."
        let half = cwnd < self.curve.ssthresh || ack.paced;
        let limited = ack.in_flight_before >= if half { cwnd / 2 } else { cwnd - slack };
        if !limited {
            self.unlimited_since.get_or_insert(self.last_ack);
        } else if let Some(since) = self.unlimited_since.take()
            && let Some(stage) = &mut self.curve.stage
        {
            stage.epoch = stage.epoch + now.since(since);
        }
        self.last_ack = now;
        limited
    }

    /// The window in bytes after `acked` bytes in congestion avoidance (RFC 9438 4.2 to 4.5).
    fn avoid(&mut self, now: Time, cwnd: f64, acked: f64, srtt: Duration, max_chunk: f64) -> f64 {
        let Curve { w_max, cwnd_prior, after_timeout, .. } = self.curve;
        let stage = self.curve.stage.get_or_insert_with(|| {
            // 4.8: "During the first congestion avoidance stage after a timeout, [...] K is set to
            // 0, and W_max is set to the congestion window size at the beginning".
            let w_max = if after_timeout { cwnd } else { w_max.max(cwnd) };
            let k = time_to_w_max(w_max, cwnd, max_chunk);
            Stage { epoch: now, k, w_max, w_est: cwnd }
        });
        self.curve.after_timeout = false;
        let t = now.since(stage.epoch).as_secs_f64();
        // 4.3, Figure 4. "Once W_est has grown to reach [...] cwnd_prior, the sender SHOULD set
        // alpha_cubic to 1".
        let alpha = if stage.w_est >= cwnd_prior { 1.0 } else { ALPHA };
        stage.w_est = (stage.w_est + alpha * max_chunk * acked / cwnd).min(MOST);
        if w_cubic(t, stage.k, stage.w_max, max_chunk) < stage.w_est {
            // 4.3: "cwnd SHOULD be set to W_est at each reception of a new ACK".
            return stage.w_est.max(cwnd);
        }
        // 4.2: the target of the next round trip; 4.4 and 4.5: it is reached in a window of
        // acknowledgements.
        let ahead = t + srtt.as_secs_f64();
        let target = w_cubic(ahead, stage.k, stage.w_max, max_chunk).clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) * (acked / cwnd).min(1.0)
    }

    /// Cuts the window by `beta`, with the threshold at least `floor` bytes (RFC 9438 4.6, 4.7).
    fn cut(&mut self, cwnd: u32, beta: f64, floor: u32) {
        let w = f64::from(cwnd);
        // 4.7, fast convergence: "if cwnd < W_max, further reduce W_max".
        let below = w < self.curve.w_max;
        self.curve = Curve {
            ssthresh: ((w * beta) as u32).max(floor),
            cwnd_prior: w,
            w_max: if below { w * (1.0 + BETA) / 2.0 } else { w },
            stage: None,
            after_timeout: false,
        };
        self.hystart = None;
        self.fraction = 0.0;
    }

    /// A recovery begins, or T3-rtx expires in one: what was before can be restored.
    fn save(&mut self, cwnd: u32) {
        if !self.recovering {
            if self.undo.len() == MOST_SAVED {
                self.undo.pop_front();
            }
            let hystart = self.hystart.clone();
            self.undo.push_back(Saved { cwnd, curve: self.curve, hystart });
        }
        self.recovering = true;
    }

    /// The window, with its pacing rate.
    fn window(&self, path: &PathView, cwnd: u32) -> Window {
        let slow_start = cwnd < self.curve.ssthresh;
        let gain = if slow_start { 2.0 } else { 1.25 };
        let paced = |srtt: Duration| {
            let bytes = f64::from(cwnd.max(path.in_flight));
            (gain * bytes / srtt.as_secs_f64().max(1e-9)) as u64
        };
        let pacing_rate = path.srtt.map(paced);
        Window { pacing_rate, ..Window::unpaced(cwnd, self.curve.ssthresh) }
    }
}

impl Cubic {
    fn state(&mut self, context: &Context<'_>) -> &mut State {
        let Context { now, path, .. } = *context;
        let sizes = (path.max_chunk, path.window.ssthresh, path.remote);
        self.paths.get_or_insert_with(path.id, || State::new(&NewPath::new(now, path.id, sizes)))
    }
}

impl CongestionController for Cubic {
    fn initial(&mut self, path: &NewPath) -> Window {
        self.paths.reset(path.id);
        self.paths.get_or_insert_with(path.id, || State::new(path));
        Window::unpaced(path.initial_cwnd(self.initial), path.ssthresh)
    }

    fn on_ack(&mut self, context: &Context<'_>, ack: &PathAck) -> Window {
        let state = self.state(context);
        let Context { now, path, .. } = *context;
        let cwnd = path.window.cwnd;
        let limited = state.is_limited_by_window(now, path, ack);
        let slow_start = cwnd < state.curve.ssthresh;
        let paced = path.window.pacing_rate.is_some();
        let growth = match &mut state.hystart {
            Some(h) if slow_start => {
                h.on_ack(ack.acked, path.in_flight, ack.rtt, path.max_chunk, paced)
            }
            _ => Growth { bytes: ack.acked, ends: false },
        };
        if !limited || ack.recovering {
            return state.window(path, cwnd);
        }
        if slow_start {
            // RFC 9438 4.10: "CUBIC MUST employ a slow-start algorithm, when cwnd is no more than
            // ssthresh."
            let grown = f64::from(cwnd) + f64::from(growth.bytes);
            let cwnd = grown.min(f64::from(state.curve.ssthresh)).min(MOST) as u32;
            if growth.ends {
                // RFC 9438 4.10: W_max is undefined; "CUBIC sets cwnd_prior = cwnd and switches to
                // congestion avoidance. [...] K is set to 0, and W_max is set to the congestion
                // window size at the beginning".
                state.hystart = None;
                state.curve.ssthresh = cwnd;
                state.curve.cwnd_prior = cwnd.into();
                state.curve.w_max = cwnd.into();
            }
            return state.window(path, cwnd);
        }
        let srtt = path.srtt.unwrap_or_default();
        let (before, acked) = (f64::from(cwnd) + state.fraction, f64::from(ack.acked));
        let grown = state.avoid(now, before, acked, srtt, path.max_chunk.into()).min(MOST);
        state.fraction = grown.fract();
        state.window(path, (grown as u32).max(cwnd))
    }

    fn on_congestion(&mut self, context: &Context<'_>, congestion: Congestion) -> Window {
        let floor = self.floor;
        let state = self.state(context);
        let path = context.path;
        let cwnd = path.window.cwnd;
        if congestion == Congestion::Ecn {
            // RFC 9438 4.6: "CUBIC MUST continue to reduce cwnd in response to congestion events
            // due to ECN-Echo ACKs until it reaches a value of 1 MSS."
            // RFC 8511 4: ABE "when cwnd is smaller than or equal to ssthresh is not currently
            // recommended".
            let beta = if cwnd < state.curve.ssthresh { BETA } else { BETA_ECN };
            state.cut(cwnd, beta, path.max_chunk);
            return state.window(path, state.curve.ssthresh);
        }
        state.save(cwnd);
        state.cut(cwnd, BETA, floor.saturating_mul(path.max_chunk));
        state.window(path, state.curve.ssthresh)
    }

    fn on_recovered(&mut self, context: &Context<'_>) -> Window {
        let state = self.state(context);
        state.recovering = false;
        state.window(context.path, context.path.window.cwnd)
    }

    fn on_timeout(&mut self, context: &Context<'_>) -> Window {
        let floor = self.floor;
        let state = self.state(context);
        let path = context.path;
        state.save(path.window.cwnd);
        // RFC 9438 4.8: "In case of a timeout, CUBIC follows Reno to reduce cwnd, but sets ssthresh
        // using beta_cubic".
        state.cut(path.window.cwnd, BETA, floor.saturating_mul(path.max_chunk));
        state.curve.after_timeout = true;
        state.window(path, path.max_chunk)
    }

    fn on_spurious(&mut self, context: &Context<'_>, spurious: &Spurious) -> Window {
        let state = self.state(context);
        let path = context.path;
        let cwnd = path.window.cwnd;
        state.recovering = false;
        // The window is that from before an earlier recovery if that one was spurious, too.
        let at = state.undo.iter().rposition(|saved| saved.cwnd == spurious.before.cwnd);
        let at = at.or_else(|| state.undo.len().checked_sub(1));
        let saved = at.and_then(|at| {
            state.undo.truncate(at + 1);
            state.undo.pop_back()
        });
        match saved {
            // RFC 9438 4.9.2: "CUBIC MAY restore the original values [...] if the current cwnd is
            // lower than cwnd_prior." The pacer spreads what the larger window releases.
            Some(saved) if cwnd < saved.cwnd => {
                state.curve = saved.curve;
                state.hystart = saved.hystart;
                state.fraction = 0.0;
                state.window(path, saved.cwnd)
            }
            _ => state.window(path, cwnd),
        }
    }

    fn on_idle(&mut self, now: Time, path: &PathView, first: bool) -> Window {
        let sizes = (path.max_chunk, path.window.ssthresh, path.remote);
        let new = || State::new(&NewPath::new(now, path.id, sizes));
        let floor = self.floor.saturating_mul(path.max_chunk);
        let state = self.paths.get_or_insert_with(path.id, new);
        // RFC 9260 7.2.1: "adjusted to max(cwnd / 2, 4 * PMDCS) once per RTO"; "Before the first
        // cwnd adjustment, the ssthresh of the transport address SHOULD be set to the cwnd."
        let cwnd = path.window.cwnd;
        let reduced = (cwnd / 2).max(floor).min(cwnd);
        if first && reduced < cwnd && state.hystart.is_none() {
            state.curve.ssthresh = state.curve.ssthresh.max(cwnd);
        }
        if reduced < cwnd {
            state.curve.stage = None;
        }
        state.window(path, reduced)
    }
}

#[cfg(test)]
mod tests;
