//! Non-renegable acknowledgements (draft-natarajan-tsvwg-sctp-nrsack), if both sides offered them.
//! The receiver reports the data that it will not drop again: everything received, as long as there
//! is room for the data that is missing below it; data beyond that may have to make room. The
//! sender frees the payload of reported data at once, and keeps only its bookkeeping until the
//! cumulative ack has reached it.

use super::Receiver;
use crate::wire::{DoesNotFit, PacketWriter};

impl Receiver<'_> {
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
