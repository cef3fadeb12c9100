//! Multiple Fast Retransmit (MFR): a lost fast retransmission is fast retransmitted again instead
//! of waiting for the timeout.
//!
//! Caro 2006 (retransmission policies), 4.3: when a chunk is fast retransmitted, the highest TSN
//! outstanding is kept with it; from then on "only sacks for packets greater than *n* can serve as
//! missing reports, because the sacks up to *n* were already in flight". The count restarts with
//! each retransmission. MFR assumes that fast retransmissions take the same path as the chunks they
//! are compared with.

use super::{LossDetector, MissingChunk, SackView, standard};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static MULTIPLE_FAST_RETRANSMIT: Entry<dyn LossDetector> = Entry::new(
    "multiple-fast-retransmit",
    "the same again for a lost fast retransmission, by TSNs sent after it \
              (MFR; Caro 2006, 4.3)",
    |setup| {
        let threshold = setup.constants.fast_retransmit_reports();
        Box::new(MultipleFastRetransmit { threshold, standard: standard::STANDARD.make(setup) })
    },
);

#[derive(Debug)]
struct MultipleFastRetransmit {
    threshold: u32,
    standard: Box<dyn LossDetector>,
}

impl LossDetector for MultipleFastRetransmit {
    fn reports(&mut self, chunk: &MissingChunk, sack: &SackView<'_>) -> u32 {
        let newer = chunk
            .own_recover
            .is_none_or(|n| sack.highest_newly_acked.is_some_and(|highest| highest.is_after(n)));
        if newer { self.standard.reports(chunk, sack) } else { 0 }
    }

    fn is_lost(&mut self, chunk: &MissingChunk) -> bool {
        chunk.reports >= self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, PathId, Time, Tsn};

    fn missing(recover: Option<u32>, in_fast_recovery: bool) -> MissingChunk {
        MissingChunk {
            tsn: Tsn(10),
            path: PathId(0),
            reports: 0,
            fast_retransmitted: recover.is_some(),
            own_recover: recover.map(Tsn),
            transmissions: 1,
            sent: Time::ZERO,
            recover: in_fast_recovery.then_some(Tsn(30)),
        }
    }

    fn sack(highest_newly_acked: Option<u32>, advanced: bool) -> SackView<'static> {
        SackView {
            cumulative: Tsn(9),
            advanced,
            highest_newly_acked: highest_newly_acked.map(Tsn),
            newly_acked_by_gaps: highest_newly_acked.map(Tsn),
            highest_acked: Tsn(40),
            ..SackView::default()
        }
    }

    #[test]
    fn only_tsns_above_the_recover_point_report() {
        let config = Config::rfc9260();
        let mut mfr = MULTIPLE_FAST_RETRANSMIT.make(&config.setup());
        let mut standard = standard::STANDARD.make(&config.setup());
        for (recover, newly, advanced, reports) in [
            // Never fast retransmitted: as in `standard`.
            (None, Some(11), false, 1),
            (None, None, false, 0),
            (None, None, true, 1),
            // Fast retransmitted when 20 was the highest: TSNs in flight then are no missing
            // reports.
            (Some(20), Some(11), false, 0),
            (Some(20), Some(20), false, 0),
            (Some(20), Some(21), false, 1),
            (Some(20), None, true, 0),
            (Some(20), Some(20), true, 0),
            (Some(20), Some(21), true, 1),
        ] {
            let (chunk, sack) = (missing(recover, advanced), sack(newly, advanced));
            assert_eq!(mfr.reports(&chunk, &sack), reports, "{recover:?} {newly:?} {advanced}");
            if recover.is_none() {
                assert_eq!(standard.reports(&chunk, &sack), reports);
            }
        }
    }

    #[test]
    fn what_was_fast_retransmitted_can_be_lost_again() {
        let config = Config::rfc9260();
        let chunk = MissingChunk { reports: 3, ..missing(Some(20), true) };
        assert!(MULTIPLE_FAST_RETRANSMIT.make(&config.setup()).is_lost(&chunk));
        assert!(!standard::STANDARD.make(&config.setup()).is_lost(&chunk));
        let fewer = MissingChunk { reports: 2, ..chunk };
        assert!(!MULTIPLE_FAST_RETRANSMIT.make(&config.setup()).is_lost(&fewer));
    }
}
