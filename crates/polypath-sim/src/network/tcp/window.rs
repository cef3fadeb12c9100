//! The congestion window of a TCP flow, in segments: NewReno (RFC 5681, 6582) or CUBIC (RFC 9438).
//!
//! This is not the code of the core's controllers: what competes with them is independent of them.

use std::time::Duration;

use polypath_proto::Time;
use serde::{Deserialize, Serialize};

/// Congestion control of a TCP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TcpCongestion {
    /// RFC 9438, as Linux by default.
    #[default]
    Cubic,
    /// RFC 5681 and 6582.
    NewReno,
}

/// RFC 6928 2.
const INITIAL: f64 = 10.0;
/// RFC 9438 4.6 and 5: the constants beta_cubic and C.
const BETA: f64 = 0.7;
const C: f64 = 0.4;
/// RFC 9438 4.3: alpha_cubic.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// RFC 5681 equation 4, RFC 9438 4.6: the slow start threshold is at least two segments.
const LEAST: f64 = 2.0;

#[derive(Debug)]
pub(super) struct Congestion {
    kind: TcpCongestion,
    pub(super) cwnd: f64,
    ssthresh: f64,
    /// The window is in slow start after a timeout (RFC 3465 2.3).
    after_timeout: bool,
    curve: Curve,
}

/// The variables of RFC 9438 4.1.
#[derive(Debug, Default)]
struct Curve {
    w_max: f64,
    k: f64,
    w_est: f64,
    cwnd_prior: f64,
    epoch: Option<Time>,
}

impl Congestion {
    pub(super) fn new(kind: TcpCongestion) -> Self {
        Self {
            kind,
            cwnd: INITIAL,
            ssthresh: f64::INFINITY,
            after_timeout: false,
            curve: Curve::default(),
        }
    }

    /// `acked` segments were acknowledged outside of fast recovery.
    pub(super) fn grow(&mut self, now: Time, acked: u64, srtt: Duration) {
        if self.cwnd < self.ssthresh {
            // RFC 3465 2.2, 2.3: by the bytes acknowledged, at most two segments, one after a
            // timeout.
            let most = if self.after_timeout { 1.0 } else { 2.0 };
            self.cwnd = (self.cwnd + (acked as f64).min(most)).min(self.ssthresh);
            return;
        }
        self.after_timeout = false;
        match self.kind {
            // RFC 5681 3.1: "one way to follow this guideline ... is to count the number of bytes
            // that have been acknowledged": a segment for each window.
            TcpCongestion::NewReno => self.cwnd += acked as f64 / self.cwnd,
            TcpCongestion::Cubic => self.grow_cubic(now, acked as f64, srtt),
        }
    }

    fn grow_cubic(&mut self, now: Time, acked: f64, srtt: Duration) {
        let curve = &mut self.curve;
        let start = *curve.epoch.get_or_insert_with(|| {
            // RFC 9438 4.2: K is computed from the window at the beginning of the epoch.
            curve.w_est = self.cwnd;
            if curve.w_max <= self.cwnd {
                (curve.w_max, curve.k) = (self.cwnd, 0.0);
            } else {
                curve.k = libm::cbrt((curve.w_max - self.cwnd) / C);
            }
            now
        });
        let t = now.since(start).as_secs_f64();
        let w_cubic = |t: f64| C * libm::pow(t - curve.k, 3.0) + curve.w_max;
        // RFC 9438 4.3: alpha is 1 once the window is as large as before the last reduction.
        let alpha = if curve.w_est < curve.cwnd_prior { ALPHA } else { 1.0 };
        curve.w_est += alpha * acked / self.cwnd;
        if w_cubic(t) < curve.w_est {
            self.cwnd = curve.w_est.max(self.cwnd);
            return;
        }
        // RFC 9438 4.4, 4.5.
        let target = w_cubic(t + srtt.as_secs_f64()).clamp(self.cwnd, 1.5 * self.cwnd);
        self.cwnd += acked * (target - self.cwnd) / self.cwnd;
    }

    /// A loss begins a fast recovery with `flight` segments outstanding.
    pub(super) fn reduce(&mut self, flight: u64) {
        self.cut(flight);
        self.cwnd = self.ssthresh;
    }

    /// The retransmission timer expired; the threshold stays if it was for a segment that had timed
    /// out before (RFC 5681 3.1).
    pub(super) fn collapse(&mut self, flight: u64, again: bool) {
        if !again {
            self.cut(flight);
        }
        self.cwnd = 1.0;
        self.after_timeout = true;
    }

    fn cut(&mut self, flight: u64) {
        let flight = flight as f64;
        self.ssthresh = match self.kind {
            TcpCongestion::NewReno => (flight / 2.0).max(LEAST),
            TcpCongestion::Cubic => {
                let before = self.cwnd.min(flight).max(1.0);
                let curve = &mut self.curve;
                // RFC 9438 4.7: fast convergence.
                curve.w_max =
                    if before < curve.w_max { before * (1.0 + BETA) / 2.0 } else { before };
                curve.cwnd_prior = before;
                curve.epoch = None;
                (before * BETA).max(LEAST)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_doubles_and_then_a_segment_for_each_window() {
        let mut reno = Congestion::new(TcpCongestion::NewReno);
        for _ in 0..5 {
            reno.grow(Time::ZERO, 2, Duration::ZERO);
        }
        assert_eq!(reno.cwnd, 20.0);
        reno.reduce(20);
        assert_eq!(reno.cwnd, 10.0);
        for _ in 0..10 {
            reno.grow(Time::ZERO, 1, Duration::ZERO);
        }
        assert!((10.9..=11.0).contains(&reno.cwnd), "{}", reno.cwnd);
        reno.collapse(11, false);
        assert_eq!((reno.cwnd, reno.ssthresh), (1.0, 5.5));
        reno.collapse(1, true);
        assert_eq!((reno.cwnd, reno.ssthresh), (1.0, 5.5));
    }

    /// RFC 9438 4.2: the window is W_max again after K = cbrt(W_max (1 - beta) / C) seconds.
    #[test]
    fn the_cubic_curve_comes_back_after_k() {
        let mut cubic = Congestion::new(TcpCongestion::Cubic);
        cubic.cwnd = 1000.0;
        cubic.reduce(1000);
        assert_eq!(cubic.cwnd, 700.0);
        let rtt = Duration::from_millis(100);
        let mut times = 0;
        while cubic.cwnd < 999.0 {
            times += 1;
            cubic.grow(Time::from_millis(100 * times), cubic.cwnd as u64, rtt);
        }
        let k = (1000.0f64 * 0.3 / 0.4).cbrt();
        assert!((times as f64 * 0.1 - k).abs() < 1.5, "{times} {k}");
        cubic.reduce(900);
        assert_eq!(cubic.curve.w_max, 900.0 * 0.85);
    }
}
