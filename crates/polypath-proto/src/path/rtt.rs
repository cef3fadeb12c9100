//! Round-trip time and retransmission timeout of a path (RFC 9260 6.3.1, 6.3.3).

use std::time::Duration;

use crate::time::Time;

/// SRTT, RTTVAR and RTO of one path.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    srtt: Option<Duration>,
    rttvar: Duration,
    rto: Duration,
    initial: Duration,
    min: Duration,
    max: Duration,
    /// When the RTO was last doubled; `None` once it has been computed anew.
    backed_off: Option<Time>,
}

impl RttEstimator {
    pub(crate) const fn new(initial: Duration, min: Duration, max: Duration) -> Self {
        // RFC 9260 6.3.1 (C1).
        let rttvar = Duration::ZERO;
        Self { srtt: None, rttvar, rto: initial, initial, min, max, backed_off: None }
    }

    /// Changes the limits; the present RTO is kept as far as they allow.
    pub(crate) fn limit(&mut self, initial: Duration, min: Duration, max: Duration) {
        (self.initial, self.min, self.max) = (initial, min, max);
        let first = self.srtt.is_none() && self.backed_off.is_none();
        self.rto = if first { initial } else { self.rto.clamp(min, max) };
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

    /// Takes a sample, and ends the backoff: the RTO is computed anew.
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
        self.compute_rto();
    }

    fn compute_rto(&mut self) {
        self.backed_off = None;
        self.rto = self.computed();
    }

    /// The RTO without back-off.
    pub(crate) fn computed(&self) -> Duration {
        // RFC 9260 6.3.1 (C1).
        let Some(srtt) = self.srtt else { return self.initial };
        // RFC 9260 6.3.1 (C6), (C7); a variation of zero would make RTO = SRTT (G of RFC 9260
        // 6.3.1).
        let rttvar = self.rttvar.max(Duration::from_nanos(1));
        (srtt + 4 * rttvar).clamp(self.min, self.max)
    }

    /// RFC 9260 6.3.3 (E2): "RTO <- RTO * 2", at most RTO.Max.
    pub(crate) fn back_off(&mut self, now: Time) {
        self.rto = self.rto.saturating_mul(2).min(self.max);
        self.backed_off = Some(now);
    }

    /// A chunk has been acknowledged this time after its last transmission; `once` if that was its
    /// only one.
    ///
    /// RFC 9002 6.2.1: "The PTO backoff factor is reset when an acknowledgment is received". But
    /// the acknowledgement of a retransmission that takes longer than the RTO without its back-off
    /// may be for an earlier transmission, and then the RTO is too short (Karn's algorithm).
    pub(crate) fn acknowledged(&mut self, age: Duration, once: bool) {
        if self.backed_off.is_some() && (once || age <= self.computed()) {
            self.compute_rto();
        }
    }

    /// Data has been acknowledged, perhaps only data that measures nothing because it was sent
    /// twice (RFC 9260 6.3.1 C5).
    ///
    /// RFC 8961 4 (3): "The backoff SHOULD be removed after either (a) the subsequent successful
    /// transmission of non-retransmitted data, or (b) an RTO passes without detecting additional
    /// losses." [`sample`](Self::sample) implements (a). For (b), an RTO as long as the doubled one
    /// preserves the purpose of Karn's algorithm: acknowledgements have shown that the path answers
    /// within that time.
    pub(crate) fn end_back_off(&mut self, now: Time) {
        if self.backed_off.is_some_and(|at| now.since(at) >= self.rto) {
            self.compute_rto();
        }
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
            e.back_off(Time::ZERO);
        }
        assert_eq!(e.rto(), MS(5000));
        e.sample(MS(10));
        assert_eq!(e.rto(), MS(1000));
    }

    /// RFC 9002 6.2.1, with Karn's algorithm.
    #[test]
    fn an_unambiguous_acknowledgement_ends_the_backing_off() {
        for (age, once, rto) in [(300, false, 300), (900, true, 300), (301, false, 1200)] {
            let mut e = RttEstimator::new(MS(1000), MS(200), MS(60_000));
            e.sample(MS(100));
            e.back_off(Time::ZERO);
            e.back_off(Time::ZERO);
            assert_eq!(e.rto(), MS(1200));
            e.acknowledged(MS(age), once);
            assert_eq!(e.rto(), MS(rto), "{age} {once}");
        }
    }

    /// RFC 8961 4 (3).
    #[test]
    fn the_backing_off_ends_with_an_rto_without_another_timeout() {
        let at = |ms| Time::ZERO + MS(ms);
        let mut e = RttEstimator::new(MS(1000), MS(200), MS(60_000));
        e.back_off(at(1000));
        e.back_off(at(3000));
        e.end_back_off(at(6999));
        assert_eq!(e.rto(), MS(4000));
        e.end_back_off(at(7000));
        assert_eq!(e.rto(), MS(1000), "nothing has been measured");
        e.sample(MS(100));
        e.end_back_off(at(90_000));
        assert_eq!(e.rto(), MS(300));
        e.back_off(at(100_000));
        e.end_back_off(at(100_600));
        assert_eq!(e.rto(), MS(300));
    }
}
