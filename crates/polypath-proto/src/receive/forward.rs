//! What a FORWARD TSN does: nothing up to its TSN is waited for any more (RFC 3758 3.6).

use super::{Receiver, charge};
use crate::{StreamId, Tsn};

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
        streams: impl Iterator<Item = (StreamId, u32)>,
    ) -> bool {
        let cumulative = self.tsns.cumulative();
        if !to.is_after(cumulative) || to.offset_from(cumulative) > FURTHEST {
            return false;
        }
        self.tsns.forward(to);
        // "The receiver MUST remove any partially reassembled message, which is still missing one or more
        // TSNs earlier than or equal to the new cumulative TSN point."
        for run in self.reassembly.drop_up_to(to) {
            self.buffered -= charge(run.bytes, run.chunks);
            if let Some(aborted) = run.aborted {
                self.streams.abort(aborted);
            }
        }
        let limit = self.streams.limit();
        for (stream, ssn) in streams.filter(|(stream, _)| stream.0 < limit) {
            self.streams.skip(stream, crate::Ssn(ssn as u16));
        }
        true
    }
}
