//! What a FORWARD TSN does: nothing up to its TSN is waited for any more (RFC 3758 3.6).

use super::reassembly::Dropped;
use super::{Receiver, charge};
use crate::Tsn;
use crate::wire::{SkippedMessage, SkippedStream};

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
        if !to.is_after(self.tsns.cumulative()) {
            return false;
        }
        self.tsns.forward(to);
        // "The receiver MUST remove any partially reassembled message, which is still missing one or more
        // TSNs earlier than or equal to the new cumulative TSN point."
        let dropped = self.reassembly.drop_up_to(to);
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
        if !to.is_after(self.tsns.cumulative()) {
            return false;
        }
        self.tsns.forward(to);
        let limit = self.streams.limit();
        for SkippedMessage { stream, unordered, mid } in messages.filter(|m| m.stream.0 < limit) {
            let dropped = self.interleaved.skip(stream, unordered, mid);
            self.forget(dropped);
            if !unordered {
                self.streams.skip(stream, mid.0);
            }
        }
        true
    }

    /// Gives the room of what was dropped free, and tells the application where it has a part.
    fn forget(&mut self, dropped: Vec<Dropped>) {
        for part in dropped {
            self.buffered -= charge(part.bytes, part.chunks);
            if let Some(aborted) = part.aborted {
                self.streams.abort(aborted);
            }
        }
    }
}
