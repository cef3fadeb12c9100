//! Missing reports as ns-2's SCTP module counts them, and one fast retransmission a chunk.
//!
//! RFC 4960 7.2.4 counts reports below the highest TSN that the current SACK newly acknowledges. In
//! the module that mark outlives the SACK: a gap block may only raise it, so a SACK with gap blocks
//! that newly acknowledges nothing still reports everything below the mark. Chunks that wait for
//! retransmission are reported too. A chunk that was fast retransmitted once never is again; one
//! that timed out before may be. ns-2: ProcessGapAckBlocks, eIneligibleForFastRtx.

use std::any::Any;

use crate::ids::Tsn;
use crate::policy::entry::{Entry, Setup};
use crate::policy::loss::{self, LossDetector, MissingChunk, PathTimes, SackView};

/// See the module.
pub static LOSS: Entry<dyn LossDetector> = Entry::new(
    "ns2",
    "missing reports below a mark that no SACK resets, one fast retransmission a chunk \
              (ns-2's SCTP module)",
    |setup| Box::new(Ns2::new(setup, false)),
);

/// MFR as in the module (Agent/SCTP/MultipleFastRtx): a chunk may be fast retransmitted again, by
/// reports with a mark above the highest TSN sent when it was marked lost.
pub(super) static MULTIPLE: Entry<dyn LossDetector> = Entry::new(
    loss::MULTIPLE_FAST_RETRANSMIT.name,
    loss::MULTIPLE_FAST_RETRANSMIT.summary,
    |setup| Box::new(Ns2::new(setup, true)),
);

/// SFR as in the module (useCmtReordering_).
pub(super) static SPLIT: Entry<dyn LossDetector> =
    Entry::new(loss::SPLIT_FAST_RETRANSMIT.name, loss::SPLIT_FAST_RETRANSMIT.summary, |setup| {
        Box::new(Split::new(setup, false))
    });

/// SFR over MFR, which the module does not have.
pub(super) static SPLIT_MULTIPLE: Entry<dyn LossDetector> = Entry::new(
    loss::SPLIT_MULTIPLE_FAST_RETRANSMIT.name,
    loss::SPLIT_MULTIPLE_FAST_RETRANSMIT.summary,
    |setup| Box::new(Split::new(setup, true)),
);

/// Forbids another fast retransmission of a chunk.
pub(crate) fn bar_from_fast_retransmission(detector: &mut dyn LossDetector, tsn: Tsn) {
    let detector: &mut dyn Any = detector;
    if let Some(ns2) = detector.downcast_mut::<Ns2>() {
        ns2.barred.add(tsn);
    } else if let Some(split) = detector.downcast_mut::<Split>() {
        split.barred.add(tsn);
    }
}

/// The chunks that are not fast retransmitted again (eIneligibleForFastRtx).
#[derive(Debug, Default)]
struct Barred(Vec<Tsn>);

impl Barred {
    fn add(&mut self, tsn: Tsn) {
        if !self.0.contains(&tsn) {
            self.0.push(tsn);
        }
    }

    /// Bars the chunk; false if it was barred before.
    fn take(&mut self, tsn: Tsn) -> bool {
        let barred = self.0.contains(&tsn);
        self.add(tsn);
        !barred
    }

    /// Drops the chunks up to the cumulative TSN ack.
    fn acknowledged(&mut self, cumulative: Tsn) {
        self.0.retain(|tsn| tsn.is_after(cumulative));
    }
}

#[derive(Debug)]
struct Ns2 {
    threshold: u32,
    /// Agent/SCTP/MultipleFastRtx: a chunk may be fast retransmitted again, by reports with a mark
    /// above the highest TSN sent when it was marked lost.
    multiple: bool,
    /// The module's uiHighestTsnNewlyAcked.
    mark: Option<Tsn>,
    barred: Barred,
}

impl Ns2 {
    fn new(setup: &Setup<'_>, multiple: bool) -> Self {
        let threshold = setup.constants.fast_retransmit_reports();
        Self { threshold, multiple, mark: None, barred: Barred::default() }
    }
}

impl LossDetector for Ns2 {
    fn on_sack(&mut self, sack: &SackView<'_>, _: &[PathTimes]) {
        self.barred.acknowledged(sack.cumulative);
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

    fn includes_lost(&self) -> bool {
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

    fn is_lost(&mut self, chunk: &MissingChunk) -> bool {
        if chunk.fast_retransmitted {
            self.barred.add(chunk.tsn);
        }
        chunk.reports >= self.threshold && (self.multiple || self.barred.take(chunk.tsn))
    }
}

/// Split Fast Retransmit as in the module: chunks that wait for retransmission are reported too,
/// only gap blocks newly acknowledge TSNs of a path, and without MFR a chunk is fast retransmitted
/// at most once.
#[derive(Debug)]
struct Split {
    threshold: u32,
    multiple: bool,
    /// Whether the current SACK newly acknowledges chunks of several paths.
    mixed: bool,
    barred: Barred,
}

impl Split {
    fn new(setup: &Setup<'_>, multiple: bool) -> Self {
        let threshold = setup.constants.fast_retransmit_reports();
        Self { threshold, multiple, mixed: false, barred: Barred::default() }
    }
}

impl LossDetector for Split {
    fn on_sack(&mut self, sack: &SackView<'_>, _: &[PathTimes]) {
        self.mixed = sack.newly_acked_on.iter().filter(|on| on.highest.is_some()).count() > 1;
        self.barred.acknowledged(sack.cumulative);
    }

    fn includes_lost(&self) -> bool {
        true
    }

    fn reports(&mut self, chunk: &MissingChunk, sack: &SackView<'_>) -> u32 {
        let Some(on) = sack.newly_acked_on.get(chunk.path.index()) else { return 0 };
        // With ns-2's procedures, the highest TSN in gap blocks.
        let (Some(lowest), Some(highest)) = (on.lowest, on.highest) else { return 0 };
        let old = self.multiple && chunk.own_recover.is_some_and(|own| !highest.is_after(own));
        if old || !highest.is_after(chunk.tsn) {
            return 0;
        }
        match sack.packets {
            Some(packets) if !self.mixed && !lowest.is_before(chunk.tsn) => packets,
            _ => 1,
        }
    }

    fn is_lost(&mut self, chunk: &MissingChunk) -> bool {
        if chunk.fast_retransmitted {
            self.barred.add(chunk.tsn);
        }
        chunk.reports >= self.threshold && (self.multiple || self.barred.take(chunk.tsn))
    }
}
