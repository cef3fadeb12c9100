//! What a FORWARD TSN does: nothing up to its TSN is waited for any more (RFC 3758 3.6).

use super::reassembly::Dropped;
use super::{Receiver, charge};
use crate::Tsn;
use crate::wire::{SkippedMessage, SkippedStream};

/// No sender gets so far ahead of what it has heard. What is further has the numbers of before a reset of the
/// association, which moves them by half of all (RFC 6525 5.2.4 G1).
const FURTHEST: u32 = 1 << 30;

impl Receiver {
    /// The peer may give messages up: fragments without an end, or a beginning, break no rule.
    pub(crate) const fn expect_gaps(&mut self, expected: bool) {
        self.reassembly.expect_gaps(expected);
    }

    /// The peer will not send what is missing up to `to`, nor the ordered messages of these streams up to
    /// these numbers. False if that is nothing new.
    pub(crate) fn forward(
        &mut self,
        to: Tsn,
        streams: impl Iterator<Item = SkippedStream>,
    ) -> bool {
        if !self.skip_to(to) {
            return false;
        }
        // "The receiver MUST remove any partially reassembled message, which is still missing one or more
        // TSNs earlier than or equal to the new cumulative TSN point."
        self.reassembly.drop_up_to(self.tsns.place_of(to));
        let dropped = self.reassembly.take_dropped();
        self.forget(dropped);
        let limit = self.streams.limit();
        for SkippedStream { stream, ssn } in streams.filter(|s| s.stream.0 < limit) {
            self.streams.skip(stream, ssn.0.into());
        }
        true
    }

    /// The same where messages are interleaved: nor the messages of these streams up to these
    /// (RFC 8260 2.3.1).
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

    /// Gives the room of what was dropped free, and tells the application where it has a part.
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
