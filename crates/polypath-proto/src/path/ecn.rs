//! Marks of explicit congestion notification on one path, and whether it may be used there.
//!
//! Each path is validated, as in RFC 9000 13.4.2: one that drops ECN-capable packets, or marks all
//! of them, gets no more of them. QUIC's receivers count codepoints; SCTP's report marks only, so
//! that a path that clears codepoints is not detected: there, congestion shows as loss.

use std::time::Duration;

use crate::ids::Tsn;
use crate::time::Time;

/// Marks in a row, from the first packet on, after which a path counts as one that marks all.
const ALL_MARKED: u32 = 10;
/// Chunks that only arrive without the codepoint, after which a path counts as one that drops the
/// others.
const ALL_DROPPED: u32 = 3;

/// Whether packets may be ECN-capable (RFC 9000 A.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Validation {
    /// No packet has arrived without a mark.
    #[default]
    Testing,
    Capable,
    /// Packets are not ECN-capable any more.
    Failed,
}

/// Marks on one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// The highest TSN sent when the window was last reduced.
    reduced: Option<Tsn>,
    /// TSN of the last ECNE.
    last: Option<Tsn>,
    /// When the last CWR was sent.
    answered: Option<Time>,
    validation: Validation,
    /// A TSN of the first ECN-capable packet of the test.
    first: Option<Tsn>,
    /// SACKs for ECN-capable data, each of which came with a new mark, since the test began.
    marked: u32,
    /// The last SACK for ECN-capable data has come without a new mark so far.
    unmarked: bool,
    /// Chunks that only arrived when they were sent again, in packets that are not ECN-capable.
    again: u32,
}

impl Marks {
    /// Whether packets with new data may be ECN-capable.
    pub(crate) fn is_allowed(&self) -> bool {
        self.validation != Validation::Failed
    }

    /// An ECN-capable packet was sent; `tsn` is one of its chunks.
    pub(crate) fn sent(&mut self, tsn: Option<Tsn>) {
        self.first = self.first.or(tsn);
    }

    /// A SACK has acknowledged chunks: each with its number of transmissions.
    pub(crate) fn acknowledged(&mut self, chunks: impl Iterator<Item = (Tsn, u32)>) {
        let Some(first) = self.first.filter(|_| self.validation == Validation::Testing) else {
            return;
        };
        let (mut new, mut again) = (false, 0);
        for (_, transmissions) in chunks.filter(|(tsn, _)| !tsn.is_before(first)) {
            new |= transmissions == 1;
            again += u32::from(transmissions > 1);
        }
        if new && self.unmarked {
            self.validation = Validation::Capable;
        }
        let any = new || self.unmarked || self.marked > 0;
        self.unmarked |= new;
        self.again += again;
        if !any && self.again >= ALL_DROPPED {
            self.validation = Validation::Failed;
        }
    }

    /// An ECNE with this TSN has arrived; `highest` is the highest TSN sent. True if the window is
    /// to be reduced: once per round trip.
    pub(crate) fn notified(&mut self, lowest: Tsn, highest: Tsn) -> bool {
        if self.last.is_none_or(|last| lowest.is_after(last)) {
            self.last = Some(lowest);
            self.unmarked = false;
            self.marked += 1;
            if self.marked >= ALL_MARKED && self.validation == Validation::Testing {
                self.validation = Validation::Failed;
            }
        }
        let reduces =
            self.is_allowed() && self.reduced.is_none_or(|reduced| lowest.is_after(reduced));
        if reduces {
            self.reduced = Some(highest);
        }
        reduces
    }

    /// Whether an ECNE with this TSN is to be answered with a CWR; to be asked before
    /// [`notified`](Self::notified). One that is new is, and a repeated one after one and a half
    /// round trips: those of the first were sent before the CWR could arrive, later ones show that
    /// it was lost.
    pub(crate) fn is_to_be_answered(
        &mut self,
        lowest: Tsn,
        now: Time,
        round_trip: Duration,
    ) -> bool {
        let due = self.last.is_none_or(|last| lowest.is_after(last))
            || self.answered.is_none_or(|answered| now.since(answered) >= round_trip * 3 / 2);
        if due {
            self.answered = Some(now);
        }
        due
    }

    /// T3-rtx has expired: the path may have changed.
    pub(crate) const fn timed_out(&mut self) {
        let any = self.unmarked || self.marked > 0;
        match self.validation {
            Validation::Testing if self.first.is_some() && !any => {
                self.validation = Validation::Failed;
            }
            Validation::Capable => {
                self.validation = Validation::Testing;
                (self.first, self.marked, self.unmarked, self.again) = (None, 0, false, 0);
            }
            _ => {}
        }
    }
}
