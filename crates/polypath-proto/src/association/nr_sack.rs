//! Non-renegable acknowledgements (draft-natarajan-tsvwg-sctp-nrsack), if both sides offered them: the
//! receiver says what it will not drop again, which is all that has come as long as there is room for what
//! is missing below it; what comes beyond that may have to make room. The sender frees what it was told of at
//! once, and keeps but its books until the cumulative ack has reached it.

use super::Association;
use crate::wire::{DoesNotFit, PacketWriter, Sack};
use crate::{Extension, Time};

impl Association {
    /// True if the packet's next chunk is to be looked at.
    pub(super) fn handle_nr_sack(&mut self, now: Time, sack: &Sack<'_>, echo: Option<u32>) -> bool {
        if !self.extensions.contains(Extension::NrSack) {
            // RFC 9260 3.2: as of a type that is not known, which begins with the bits 00.
            self.stats.dropped += 1;
            return false;
        }
        if !self.state.may_send_data() {
            self.stats.dropped += 1;
            return true;
        }
        self.cause = self.cause_of(now, sack, echo);
        let (old, announced) = (self.sender.flight.knows_more(sack), self.sender.announced);
        if !self.handle_sack(now, sack) {
            return true;
        }
        if old && announced < sack.a_rwnd {
            // It has been overtaken on its way: its window has since been used for what it does not name.
            self.sender.set_window(announced);
        }
        self.sender.buffered -= self.sender.flight.release(sack.nr_gaps());
        self.tell_if_writable();
        true
    }

    /// What was agreed on holds for what arrives from now on.
    pub(super) fn keep_if_agreed(&mut self) {
        self.receiver.keep(self.extensions.contains(Extension::NrSack));
    }

    pub(super) fn write_nr_sack(
        &mut self,
        a_rwnd: u32,
        flags: u8,
        w: &mut PacketWriter<'_>,
    ) -> Result<(), DoesNotFit> {
        let kept = self.receiver.promise();
        let tsns = self.receiver.tsns();
        let (gaps, nr_gaps) = (tsns.gaps_above(kept), tsns.gaps_up_to(kept));
        w.nr_sack(tsns.cumulative(), a_rwnd, flags, gaps, nr_gaps, tsns.duplicates())
    }
}
