//! Processing of a FORWARD TSN: the receiver stops waiting for TSNs up to its new cumulative TSN
//! (RFC 3758 3.6).

use super::reassembly::Dropped;
use super::{Receiving, charge};
use crate::ids::Tsn;
use crate::wire::{SkippedMessage, SkippedStream};

/// Largest advance of the cumulative TSN. No sender gets that far ahead of its acknowledgements. A
/// FORWARD TSN beyond it dates from before an association reset, which moves TSNs by half of their
/// space (RFC 6525 5.2.4 G1).
const FURTHEST: u32 = 1 << 30;

impl Receiving {
    /// Sets whether the peer may abandon messages: fragments without an end or a beginning are then
    /// no protocol violation.
    pub(crate) const fn expect_gaps(&mut self, expected: bool) {
        self.reassembly.expect_gaps(expected);
    }

    /// Processes a FORWARD TSN: the peer has abandoned the TSNs missing up to `to` and the ordered
    /// messages of `streams` up to the listed SSNs. Returns false if it is outdated.
    pub(crate) fn forward(
        &mut self,
        to: Tsn,
        streams: impl Iterator<Item = SkippedStream>,
    ) -> bool {
        if !self.skip_to(to) {
            return false;
        }
        // "The receiver MUST remove any partially reassembled message, which is still missing one
        // or more TSNs earlier than or equal to the new cumulative TSN point."
        self.reassembly.drop_up_to(self.tsns.place_of(to));
        let dropped = self.reassembly.take_dropped();
        self.forget(dropped);
        let limit = self.streams.limit();
        for SkippedStream { stream, ssn } in streams.filter(|s| s.stream.0 < limit) {
            self.streams.skip(stream, ssn.0.into());
        }
        true
    }

    /// Processes an I-FORWARD-TSN: like [`forward`](Self::forward), for interleaved messages up to
    /// the listed MIDs (RFC 8260 2.3.1).
    pub(crate) fn forward_interleaved(
        &mut self,
        to: Tsn,
        messages: impl Iterator<Item = SkippedMessage>,
    ) -> bool {
        if !self.skip_to(to) {
            return false;
        }
        let limit = self.streams.limit();
        for SkippedMessage { stream, unordered, mid } in messages.filter(|m| m.stream.0 < limit) {
            let dropped = self.interleaved.skip(stream, unordered, mid);
            self.forget(dropped);
            if !unordered {
                self.streams.skip(stream, mid.0);
                self.next_turn(stream);
            }
        }
        true
    }

    fn skip_to(&mut self, to: Tsn) -> bool {
        let cumulative = self.tsns.cumulative();
        let moves = to.is_after(cumulative) && to.offset_from(cumulative) <= FURTHEST;
        if moves {
            self.tsns.forward(to);
        }
        moves
    }

    /// Frees the buffer space of dropped fragments, and notifies the application of partly
    /// delivered messages that are aborted.
    #[inline(never)]
    pub(super) fn forget(&mut self, dropped: Vec<Dropped>) {
        for part in dropped {
            self.buffered -= charge(part.bytes, part.chunks);
            if let Some(aborted) = part.aborted {
                self.streams.abort(aborted);
            }
        }
    }
}
