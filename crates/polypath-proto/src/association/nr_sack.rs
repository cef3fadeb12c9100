//! Non-renegable acknowledgements (draft-natarajan-tsvwg-sctp-nrsack), if both sides offered them.
//! The receiver reports the data that it will not drop again: everything received, as long as there
//! is room for the data that is missing below it; data beyond that may have to make room. The
//! sender frees the payload of reported data at once, and keeps only its bookkeeping until the
//! cumulative ack has reached it.

use super::Association;
use crate::extension::Extension;
use crate::ids::PathId;
use crate::time::Time;
use crate::wire::{DoesNotFit, PacketWriter, Sack};

impl Association {
    /// Processes an NR-SACK. True if the packet's next chunk is to be processed.
    pub(super) fn handle_nr_sack(
        &mut self,
        now: Time,
        path: PathId,
        sack: &Sack<'_>,
        echo: Option<u32>,
    ) -> bool {
        if !self.handshake.has(Extension::NrSack) {
            // RFC 9260 3.2: treat it as an unknown type that begins with the bits 00.
            self.stats.dropped += 1;
            return false;
        }
        if !self.state.may_send_data() {
            self.stats.dropped += 1;
            return true;
        }
        self.sending.sack.cause = self.cause_of(now, sack, echo);
        let (old, announced) = (self.sending.flight.knows_more(sack), self.sending.announced);
        if !self.handle_sack(now, path, sack) {
            return true;
        }
        if old && announced < sack.a_rwnd {
            // A later SACK overtook it: its window has since been used for data that it does not
            // list.
            self.sending.set_window(announced);
        }
        self.sending.buffered -= self.sending.flight.release(sack.nr_gaps());
        self.tell_if_writable();
        true
    }

    pub(super) fn write_nr_sack(
        &mut self,
        a_rwnd: u32,
        flags: u8,
        w: &mut PacketWriter<'_>,
    ) -> Result<(), DoesNotFit> {
        let kept = self.receiving.promise();
        let tsns = self.receiving.tsns();
        let (gaps, nr_gaps) = (tsns.gaps_above(kept), tsns.gaps_up_to(kept));
        w.nr_sack(tsns.cumulative(), a_rwnd, flags, gaps, nr_gaps, tsns.duplicates())
    }
}
