//! HyStart++ (RFC 9406): leaves slow start when the round-trip time rises, before packets are lost.

use std::time::Duration;

/// RFC 9406 4.3: `MIN_RTT_THRESH`, `MAX_RTT_THRESH`.
const LEAST_THRESHOLD: Duration = Duration::from_millis(4);
const MOST_THRESHOLD: Duration = Duration::from_millis(16);
/// `MIN_RTT_DIVISOR`.
const RTT_DIVISOR: u32 = 8;
/// `N_RTT_SAMPLE`.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`.
const GROWTH_DIVISOR: u32 = 4;
/// `CSS_ROUNDS`.
const ROUNDS: u32 = 5;
/// L of a sender that does not pace, in packets. One that paces has no limit.
const LIMIT: u32 = 8;

/// The phase of the first slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Standard,
    /// Conservative Slow Start: its baseline, and its rounds so far, the current one included.
    Conservative {
        baseline: Duration,
        rounds: u32,
    },
}

/// One path's first slow start.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    phase: Phase,
    last_round: Option<Duration>,
    this_round: Option<Duration>,
    samples: u32,
    /// Bytes acknowledged so far, and when the current round ends.
    acked: u64,
    round_end: u64,
}

/// What an acknowledgement does to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Growth {
    /// Bytes by which the window grows.
    pub(super) bytes: u32,
    /// Whether slow start is over.
    pub(super) ends: bool,
}

impl HyStart {
    pub(super) const fn new() -> Self {
        Self {
            phase: Phase::Standard,
            last_round: None,
            this_round: None,
            samples: 0,
            acked: 0,
            round_end: 0,
        }
    }

    /// RFC 9406 4.2: `acked` bytes are acknowledged with this round-trip time, and `in_flight`
    /// bytes are left in flight; a packet has `max_chunk` bytes.
    pub(super) fn on_ack(
        &mut self,
        acked: u32,
        in_flight: u32,
        rtt: Option<Duration>,
        max_chunk: u32,
        paced: bool,
    ) -> Growth {
        // "L = infinity if paced, L = 8 if non-paced".
        let limit = if paced { u32::MAX } else { LIMIT.saturating_mul(max_chunk) };
        let bytes = match self.phase {
            Phase::Standard => acked.min(limit),
            Phase::Conservative { .. } => acked.min(limit) / GROWTH_DIVISOR,
        };
        if let Some(rtt) = rtt {
            self.this_round = Some(self.this_round.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        self.judge();
        self.acked += u64::from(acked);
        let mut ends = false;
        if self.acked >= self.round_end {
            // "At the start of each round": all data sent in the last one is acknowledged.
            self.round_end = self.acked + u64::from(in_flight);
            self.last_round = self.this_round.take();
            self.samples = 0;
            if let Phase::Conservative { rounds, .. } = &mut self.phase {
                // "If CSS_ROUNDS rounds are complete, enter congestion avoidance"; "if the
                // transition into CSS happens in the middle of a round, that partial round counts
                // towards the limit."
                ends = *rounds >= ROUNDS;
                *rounds += 1;
            }
        }
        Growth { bytes, ends }
    }

    fn judge(&mut self) {
        let Some(this) = self.this_round.filter(|_| self.samples >= SAMPLES) else { return };
        match self.phase {
            Phase::Standard => {
                let Some(last) = self.last_round else { return };
                let threshold = (last / RTT_DIVISOR).clamp(LEAST_THRESHOLD, MOST_THRESHOLD);
                if this >= last + threshold {
                    self.phase = Phase::Conservative { baseline: this, rounds: 1 };
                }
            }
            // "If so, [...] resume slow start": the delay was not that of a queue.
            Phase::Conservative { baseline, .. } if this < baseline => {
                self.phase = Phase::Standard;
            }
            Phase::Conservative { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const CHUNK: u32 = 1000;

    /// One round of `n` acknowledgements of a packet each, all with this round-trip time; the
    /// bytes by which the window grows, and whether slow start ended.
    fn round(h: &mut HyStart, n: u32, rtt: Duration) -> (u32, bool) {
        let mut grown = 0;
        for _ in 0..n {
            let g = h.on_ack(CHUNK, n * CHUNK, Some(rtt), CHUNK, true);
            grown += g.bytes;
            if g.ends {
                return (grown, true);
            }
        }
        (grown, false)
    }

    /// A connection whose first round trips took 40 ms. Returns it at the beginning of a round.
    fn begun() -> HyStart {
        let mut h = HyStart::new();
        // The first acknowledgement begins the first round.
        assert_eq!(h.on_ack(CHUNK, 16 * CHUNK, Some(MS(40)), CHUNK, true).bytes, CHUNK);
        assert_eq!(round(&mut h, 16, MS(40)), (16 * CHUNK, false));
        h
    }

    #[test]
    fn a_rise_by_an_eighth_of_the_round_trip_time_begins_conservative_slow_start() {
        // RttThresh = max(4 ms, min(40 ms / 8, 16 ms)) = 5 ms.
        let mut h = begun();
        assert_eq!(round(&mut h, 16, MS(44)), (16 * CHUNK, false));
        let mut h = begun();
        // The eighth sample of a round decides; the window grows by a quarter from the ninth on.
        assert_eq!(round(&mut h, 16, MS(45)), (8 * CHUNK + 8 * CHUNK / 4, false));
    }

    #[test]
    fn the_threshold_is_between_4_and_16_ms() {
        for (base, threshold) in [(8, 4), (31, 4), (64, 8), (128, 16), (600, 16)] {
            for rise in [threshold - 1, threshold] {
                let mut h = HyStart::new();
                h.on_ack(CHUNK, 16 * CHUNK, Some(MS(base)), CHUNK, true);
                round(&mut h, 16, MS(base));
                round(&mut h, 16, MS(base + rise));
                let conservative = h.phase != Phase::Standard;
                assert_eq!(conservative, rise == threshold, "{base} ms + {rise} ms");
            }
        }
    }

    #[test]
    fn conservative_slow_start_lasts_five_rounds() {
        let mut h = begun();
        // The partial round counts.
        for _ in 1..5 {
            assert!(!round(&mut h, 16, MS(60)).1);
        }
        assert!(round(&mut h, 16, MS(60)).1);
    }

    #[test]
    fn a_drop_below_the_baseline_resumes_slow_start() {
        let mut h = begun();
        round(&mut h, 16, MS(60));
        assert_eq!(round(&mut h, 16, MS(60)).0, 4 * CHUNK);
        assert_eq!(round(&mut h, 16, MS(59)).0, 8 * CHUNK / 4 + 8 * CHUNK);
        assert_eq!(h.phase, Phase::Standard);
    }

    #[test]
    fn fewer_than_eight_samples_decide_nothing() {
        let mut h = HyStart::new();
        h.on_ack(CHUNK, 7 * CHUNK, Some(MS(40)), CHUNK, true);
        for _ in 0..20 {
            assert_eq!(round(&mut h, 7, MS(400)), (7 * CHUNK, false));
        }
    }

    #[test]
    fn without_pacing_an_acknowledgement_counts_for_at_most_eight_packets() {
        let mut h = HyStart::new();
        assert_eq!(h.on_ack(20 * CHUNK, 0, None, CHUNK, false).bytes, 8 * CHUNK);
        assert_eq!(h.on_ack(20 * CHUNK, 0, None, CHUNK, true).bytes, 20 * CHUNK);
    }
}
