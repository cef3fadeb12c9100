//! Missing reports by the highest TSN newly acknowledged (RFC 9260 7.2.4).

use super::{LossDetector, MissingChunk, SackView};
use crate::policy::entry::Entry;

/// See the [module](self).
pub static STANDARD: Entry<dyn LossDetector> = Entry::new(
    "standard",
    "three missing reports, by the highest TSN newly acknowledged (RFC 9260 7.2.4)",
    |setup| Box::new(Standard { threshold: setup.constants.fast_retransmit_reports() }),
);

#[derive(Debug)]
struct Standard {
    threshold: u32,
}

impl LossDetector for Standard {
    fn reports(&mut self, chunk: &MissingChunk, sack: &SackView<'_>) -> u32 {
        if !chunk.may_be_reported_by(sack.last_sent) {
            return 0;
        }
        // RFC 9260 7.2.4: "If an endpoint is in Fast Recovery and a SACK chunk arrives that
        // advances the Cumulative TSN Ack Point, the miss indications are incremented for all TSNs
        // reported missing in the SACK chunk."
        let all = chunk.recover.is_some() && sack.advanced;
        // "... miss indications are only incremented for missing TSNs prior to the highest TSN
        // newly acknowledged in the SACK chunk."
        let below = sack.highest_newly_acked.is_some_and(|h| chunk.tsn.is_before(h));
        u32::from(all || below)
    }

    fn is_lost(&mut self, chunk: &MissingChunk) -> bool {
        // RFC 9260 7.2.4 (5): a chunk that was fast retransmitted is "ineligible for a subsequent
        // Fast Retransmit".
        chunk.reports >= self.threshold && !chunk.fast_retransmitted
    }
}
