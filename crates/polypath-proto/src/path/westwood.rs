//! A path's bandwidth from the rate of its acknowledgements, as TCP Westwood estimates it.
//!
//! Mascolo and others 2001 (TCP Westwood): each acknowledgement is a sample, the newly acknowledged
//! bytes divided by the time since the previous one; a low-pass filter by the trapezoidal rule,
//! whose weight follows the spacing of the samples, smooths them. Qiao 2008, 5.2, uses it for the
//! bandwidth of the primary.
//!
//! The filter's time constant is half the path's shortest round trip, where Westwood has a fixed
//! one: the estimate follows slow start, which doubles the rate each round trip, and does not
//! mistake the pause between two of its bursts for the rate of the link.

use std::time::Duration;

use crate::time::Time;

/// Time constant of TCP Westwood, used before the round trip is known.
const TAU: Duration = Duration::from_millis(500);

/// The estimate of one path, in bytes per second of DATA chunks with their headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Westwood {
    /// The filtered estimate, and the previous sample.
    estimate: Option<(f64, f64)>,
    /// When the interval of the next sample began.
    since: Option<Time>,
    /// Bytes acknowledged at the very instant of the previous sample.
    waiting: u32,
}

impl Westwood {
    pub(crate) fn bytes_per_second(&self) -> Option<f64> {
        self.estimate.map(|(filtered, _)| filtered)
    }

    /// Data is sent with nothing in flight: the pause before it does not measure the path.
    pub(crate) const fn resume(&mut self, now: Time) {
        self.since = Some(now);
        self.waiting = 0;
    }

    /// `bytes` bytes are newly acknowledged.
    pub(crate) fn acknowledged(&mut self, now: Time, bytes: u32, shortest: Option<Duration>) {
        let Some(since) = self.since else { return self.resume(now) };
        self.waiting = self.waiting.saturating_add(bytes);
        let span = now.since(since).as_secs_f64();
        if bytes == 0 || span <= 0.0 {
            return;
        }
        let sample = f64::from(std::mem::take(&mut self.waiting)) / span;
        self.since = Some(now);
        let double_tau = shortest.map_or(2 * TAU, |rtt| rtt).as_secs_f64();
        let keep = ((double_tau - span) / (double_tau + span)).max(0.0);
        self.estimate = Some(match self.estimate {
            None => (sample, sample),
            Some((filtered, last)) => {
                (keep * filtered + (1.0 - keep) * f64::midpoint(sample, last), sample)
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u32 = 1468;

    /// A window-limited sender over a link of `rate` bytes per second and a round trip of `rtt`:
    /// the window grows by half each round trip, and every second packet is acknowledged. Returns
    /// the estimate after `rounds`.
    fn slow_start(rate: f64, rtt: f64, rounds: usize) -> f64 {
        let mut estimate = Westwood::default();
        let at = |seconds: f64| Time::from_nanos((seconds * 1e9) as u64);
        estimate.resume(at(0.0));
        let (mut begins, mut window) = (0.0, 2.0_f64);
        for _ in 0..rounds {
            // The bottleneck spaces what arrives; a window larger than the pipe never pauses.
            let mut time: f64 = begins + rtt;
            for _ in 0..(window / 2.0) as u32 {
                time += f64::from(2 * PACKET) / rate;
                let shortest = Some(Duration::from_secs_f64(rtt));
                estimate.acknowledged(at(time), 2 * PACKET, shortest);
            }
            begins = (begins + rtt).max(time - rtt);
            window *= 1.5;
        }
        estimate.bytes_per_second().unwrap()
    }

    #[test]
    fn the_rate_of_the_link_once_slow_start_has_filled_it() {
        for (rate, rtt) in
            [(4500.0, 0.1), (48e3, 0.1), (1.25e6, 0.1), (3.75e6, 0.1), (1.25e6, 0.02)]
        {
            let full = (rate * rtt / f64::from(PACKET)).max(2.0);
            let rounds = ((full / 2.0).ln() / 1.5_f64.ln()).ceil() as usize + 4;
            let estimate = slow_start(rate, rtt, rounds);
            assert!((estimate / rate - 1.0).abs() < 0.05, "{rate} {rtt}: {estimate}");
        }
    }

    #[test]
    fn a_window_smaller_than_the_pipe_is_no_more_than_it_carries() {
        let estimate = slow_start(1.25e6, 0.1, 3);
        assert!(estimate < 0.3 * 1.25e6, "{estimate}");
    }

    #[test]
    fn pauses_of_the_application_and_sacks_of_one_instant() {
        let mut estimate = Westwood::default();
        let at = Time::from_nanos;
        estimate.resume(at(0));
        estimate.acknowledged(at(1_000_000), 1000, None);
        assert_eq!(estimate.bytes_per_second(), Some(1e6));
        // An hour without data.
        estimate.resume(at(3_600_000_000_000));
        estimate.acknowledged(at(3_600_001_000_000), 500, None);
        estimate.acknowledged(at(3_600_001_000_000), 500, None);
        estimate.acknowledged(at(3_600_002_000_000), 500, None);
        let estimate = estimate.bytes_per_second().unwrap();
        assert!((estimate / 1e6 - 1.0).abs() < 0.01, "{estimate}");
    }
}
