//! Missing reports as ns-2's SCTP module counts them, and one fast retransmission a chunk.
//!
//! RFC 4960 7.2.4 counts reports below the highest TSN that the current SACK newly acknowledges. In
//! the module that mark outlives the SACK: a gap block may only raise it, so a SACK with gap blocks
//! that newly acknowledges nothing still reports everything below the mark. Chunks that wait for
//! retransmission are reported too. A chunk that was fast retransmitted once never is again; one
//! that timed out before may be. ns-2: ProcessGapAckBlocks, eIneligibleForFastRtx.

use super::{LossDetector, MissingChunk, PathTimes, SackView};
use crate::ids::Tsn;
use crate::policy::entry::{Entry, Setup};

/// See the [module](self).
pub static NS2: Entry<dyn LossDetector> = Entry::new(
    "ns2",
    "missing reports below a mark that no SACK resets, one fast retransmission a chunk \
              (ns-2's SCTP module)",
    |setup| Box::new(Ns2::new(setup, false)),
);

#[derive(Debug)]
pub(super) struct Ns2 {
    threshold: u32,
    /// Agent/SCTP/MultipleFastRtx: a chunk may be fast retransmitted again, by reports with a mark
    /// above the highest TSN sent when it was marked lost.
    multiple: bool,
    /// The module's uiHighestTsnNewlyAcked.
    mark: Option<Tsn>,
}

impl Ns2 {
    pub(super) fn new(setup: &Setup<'_>, multiple: bool) -> Self {
        Self { threshold: setup.constants.fast_retransmit_reports(), multiple, mark: None }
    }
}

impl LossDetector for Ns2 {
    fn on_sack(&mut self, sack: &SackView<'_>, _: &[PathTimes]) {
        // The cumulative ack sets the mark, even to a lower TSN; gap blocks only raise it.
        self.mark = sack.newly_acked_cumulatively.or(self.mark);
        if let Some(highest) = sack.newly_acked_by_gaps
            && self.mark.is_none_or(|mark| highest.is_after(mark))
        {
            self.mark = Some(highest);
        }
    }

    fn horizon(&self, sack: &SackView<'_>) -> Tsn {
        match self.mark {
            Some(mark) if sack.has_gaps() && mark.is_after(sack.highest_acked) => mark,
            _ => sack.highest_acked,
        }
    }

    fn looks_at_lost(&self) -> bool {
        true
    }

    fn reports(&mut self, chunk: &MissingChunk, sack: &SackView<'_>) -> u32 {
        let below = self.mark.is_some_and(|mark| chunk.tsn.is_before(mark));
        // RFC 4960 7.2.4, in fast recovery, which for the module means a mark up to the recover
        // point.
        let recovering = match (chunk.recover, self.mark) {
            (Some(recover), Some(mark)) => !mark.is_after(recover),
            (recover, _) => recover.is_some(),
        };
        let all = sack.advanced && recovering && chunk.tsn.is_before(sack.highest_acked);
        let newer = match (chunk.own_recover, self.mark) {
            (Some(own), Some(mark)) if self.multiple => mark.is_after(own),
            _ => true,
        };
        u32::from(sack.has_gaps() && newer && (below || all))
    }

    fn is_lost(&self, chunk: &MissingChunk) -> bool {
        chunk.reports >= self.threshold && (self.multiple || !chunk.ever_fast_retransmitted)
    }
}
