//! Split Fast Retransmit (SFR): missing reports per path, so that reordering between paths does not
//! look like loss.
//!
//! Iyengar, Amer, Stewart, "Concurrent Multipath Transfer Using SCTP Multihoming Over Independent
//! End-to-End Paths" (2006), SFR: a SACK reports a chunk missing only if it newly acknowledges a
//! higher TSN that was last sent on the same path. With Delayed Ack for CMT (DAC) a SACK reports
//! the number of packets that it acknowledges. "If not a mixed SACK" (chunks of one path only), and
//! if it newly acknowledges nothing below the missing TSN on that path, it counts as that many
//! reports, otherwise as one.
//!
//! Combined with MFR, which according to the paper was not ported to CMT (Iyengar 2004, IV.B), a
//! lost fast retransmission is detected by the TSNs that followed it on its path.

use super::{LossDetector, MissingChunk, PathTimes, SackView};
use crate::policy::entry::{Entry, Setup};

/// See the [module](self).
pub static SPLIT_FAST_RETRANSMIT: Entry<dyn LossDetector> = Entry::new(
    "split-fast-retransmit",
    "three missing reports, by the highest TSN newly acknowledged on the same path \
              (SFR; Iyengar 2006)",
    |setup| Box::new(Split::new(setup, false)),
);

/// See the [module](self).
pub static SPLIT_MULTIPLE_FAST_RETRANSMIT: Entry<dyn LossDetector> = Entry::new(
    "split-multiple-fast-retransmit",
    "the same again for a lost fast retransmission, by TSNs sent after it on its path \
              (SFR over MFR)",
    |setup| Box::new(Split::new(setup, true)),
);

#[derive(Debug)]
struct Split {
    threshold: u32,
    multiple: bool,
    /// Whether the current SACK newly acknowledges chunks of several paths.
    mixed: bool,
}

impl Split {
    fn new(setup: &Setup<'_>, multiple: bool) -> Self {
        Self { threshold: setup.constants.fast_retransmit_reports(), multiple, mixed: false }
    }
}

impl LossDetector for Split {
    fn on_sack(&mut self, sack: &SackView<'_>, _: &[PathTimes]) {
        self.mixed = sack.newly_acked_on.iter().filter(|on| on.highest.is_some()).count() > 1;
    }

    fn reports(&mut self, chunk: &MissingChunk, sack: &SackView<'_>) -> u32 {
        let Some(on) = sack.newly_acked_on.get(chunk.path.index()) else { return 0 };
        let (Some(lowest), Some(highest)) = (on.lowest, on.highest) else { return 0 };
        if !highest.is_after(chunk.tsn) || !chunk.may_be_reported_by(on.last_sent) {
            return 0;
        }
        // A chunk first sent after higher TSNs is reported only by the TSNs that followed it, too.
        let first = chunk.transmissions == 1;
        if (self.multiple || first) && chunk.own_recover.is_some_and(|own| !highest.is_after(own)) {
            return 0;
        }
        match sack.packets {
            Some(packets) if !self.mixed && !lowest.is_before(chunk.tsn) => packets,
            _ => 1,
        }
    }

    fn is_lost(&mut self, chunk: &MissingChunk) -> bool {
        // RFC 9260 7.2.4 (5).
        chunk.reports >= self.threshold && (self.multiple || !chunk.fast_retransmitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::loss::NewlyAckedOn;
    use crate::{Config, PathId, Time, Tsn};

    const MISSING: MissingChunk = MissingChunk {
        tsn: Tsn(10),
        path: PathId(1),
        reports: 0,
        fast_retransmitted: false,
        own_recover: None,
        transmissions: 1,
        sent: Time::ZERO,
        recover: None,
    };

    fn on(tsns: &[u32]) -> NewlyAckedOn {
        let mut on = NewlyAckedOn::default();
        tsns.iter().for_each(|&tsn| on.note(Tsn(tsn)));
        on
    }

    fn reports(
        detector: &'static Entry<dyn LossDetector>,
        chunk: MissingChunk,
        first: &[u32],
        second: &[u32],
        packets: Option<u32>,
    ) -> u32 {
        let sack = SackView {
            cumulative: Tsn(9),
            advanced: true,
            highest_newly_acked: Some(Tsn(40)),
            newly_acked_by_gaps: Some(Tsn(40)),
            newly_acked_on: &[on(first), on(second)],
            packets,
            highest_acked: Tsn(40),
            ..SackView::default()
        };
        let mut detector = detector.make(&Config::rfc9260().setup());
        detector.on_sack(&sack, &[]);
        detector.reports(&chunk, &sack)
    }

    #[test]
    fn only_the_same_path_reports_it_missing() {
        let sfr = |first: &[u32], second: &[u32]| {
            reports(&SPLIT_FAST_RETRANSMIT, MISSING, first, second, None)
        };
        assert_eq!(sfr(&[11, 12, 40], &[]), 0, "reordering between paths");
        assert_eq!(sfr(&[11], &[9]), 0, "what was sent before it");
        assert_eq!(sfr(&[], &[11]), 1);
        assert_eq!(sfr(&[12], &[11, 13]), 1);
    }

    #[test]
    fn a_sack_for_several_packets_of_one_path_reports_as_often() {
        let dac = |first: &[u32], second: &[u32]| {
            reports(&SPLIT_FAST_RETRANSMIT, MISSING, first, second, Some(2))
        };
        assert_eq!(dac(&[], &[11, 12]), 2);
        assert_eq!(dac(&[20], &[11]), 1, "a mixed SACK");
        assert_eq!(dac(&[], &[8, 11]), 1, "across the missing TSN");
        assert_eq!(dac(&[20], &[]), 0);
    }

    #[test]
    fn over_mfr_what_follows_the_retransmission_reports() {
        let again = MissingChunk {
            fast_retransmitted: true,
            own_recover: Some(Tsn(20)),
            reports: 3,
            ..MISSING
        };
        let config = Config::rfc9260();
        let mfr = &SPLIT_MULTIPLE_FAST_RETRANSMIT;
        assert_eq!(reports(mfr, again, &[], &[20], None), 0);
        assert_eq!(reports(mfr, again, &[30], &[20], None), 0);
        assert_eq!(reports(mfr, again, &[], &[21], None), 1);
        assert!(mfr.make(&config.setup()).is_lost(&again));
        assert!(!SPLIT_FAST_RETRANSMIT.make(&config.setup()).is_lost(&again));
    }
}
