//! Round-trip time and retransmission timeout of a path (RFC 9260 6.3.1, 6.3.3).

use std::time::Duration;

/// SRTT, RTTVAR and RTO of one path.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    srtt: Option<Duration>,
    rttvar: Duration,
    rto: Duration,
    min: Duration,
    max: Duration,
}

impl RttEstimator {
    pub(crate) const fn new(initial: Duration, min: Duration, max: Duration) -> Self {
        // RFC 9260 6.3.1 (C1).
        Self { srtt: None, rttvar: Duration::ZERO, rto: initial, min, max }
    }

    pub(crate) const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    pub(crate) const fn rttvar(&self) -> Option<Duration> {
        if self.srtt.is_some() { Some(self.rttvar) } else { None }
    }

    pub(crate) const fn rto(&self) -> Duration {
        self.rto
    }

    /// A measurement. Also ends the backing off: the RTO is computed anew.
    pub(crate) fn sample(&mut self, r: Duration) {
        match self.srtt {
            // RFC 9260 6.3.1 (C2).
            None => {
                self.srtt = Some(r);
                self.rttvar = r / 2;
            }
            // RFC 9260 6.3.1 (C3), RTO.Alpha = 1/8 and RTO.Beta = 1/4; RTTVAR before SRTT.
            Some(srtt) => {
                self.rttvar = self.rttvar * 3 / 4 + srtt.abs_diff(r) / 4;
                self.srtt = Some(srtt * 7 / 8 + r / 8);
            }
        }
        let srtt = self.srtt.unwrap_or(r);
        // RFC 9260 6.3.1 (C6), (C7); a variation of zero would make RTO = SRTT (G of RFC 9260 6.3.1).
        let rttvar = self.rttvar.max(Duration::from_nanos(1));
        self.rto = (srtt + 4 * rttvar).clamp(self.min, self.max);
    }

    /// RFC 9260 6.3.3 (E2): "RTO <- RTO * 2", at most RTO.Max.
    pub(crate) fn back_off(&mut self) {
        self.rto = self.rto.saturating_mul(2).min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn first_and_second_sample() {
        let mut e = RttEstimator::new(MS(1000), MS(10), MS(60_000));
        assert_eq!(e.rto(), MS(1000));
        e.sample(MS(100));
        assert_eq!((e.srtt(), e.rttvar(), e.rto()), (Some(MS(100)), Some(MS(50)), MS(300)));
        e.sample(MS(180));
        assert_eq!(e.rttvar(), Some(Duration::from_micros(57_500)));
        assert_eq!(e.srtt(), Some(MS(110)));
        assert_eq!(e.rto(), MS(340));
    }

    #[test]
    fn bounds_and_backing_off() {
        let mut e = RttEstimator::new(MS(1000), MS(1000), MS(5000));
        e.sample(MS(10));
        assert_eq!(e.rto(), MS(1000));
        for _ in 0..5 {
            e.back_off();
        }
        assert_eq!(e.rto(), MS(5000));
        e.sample(MS(10));
        assert_eq!(e.rto(), MS(1000));
    }
}
