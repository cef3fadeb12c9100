//! The answer to a reset of the association goes before all data until the peer has shown that it has it.
//!
//! By RFC 6525 5.2.4 this side's TSNs go on where they were (G2), while the numbers of its streams begin anew (G5).
//! Data that overtakes the answer, over another path or because the answer got lost, passes for data of before:
//! a peer that takes data again, having been told to wait, acknowledges it, and gives its stream numbers that
//! it had in another life. So each packet with DATA or FORWARD TSN has the answer in front, until a SACK says that one of them
//! has come.

use bytes::Bytes;

use crate::Tsn;
use crate::association::Association;
use crate::wire::{CHUNK_HEADER_LEN, DoesNotFit, PacketWriter, ReconfigParameters};

/// The answer that the peer may not have.
#[derive(Debug)]
pub(super) struct Unheard {
    /// The parameters of the chunk.
    body: Bytes,
    /// The first TSN behind the reset.
    first: Tsn,
}

impl Association {
    /// The last answer was that the association has been reset; the TSNs of this side go on from `first`.
    pub(super) fn repeat_until_heard(&mut self, first: Tsn) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let Some((_, body)) = reconfig.answers.front() else { return };
        reconfig.unheard = Some(Unheard { body: body.clone(), first });
        self.update_largest_payload();
    }

    /// A SACK has been heeded. Whoever has data behind the reset has the answer too.
    pub(in crate::association) fn note_heard(&mut self) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let acknowledged = self.sender.flight.ack_point();
        if reconfig.unheard.take_if(|u| !acknowledged.is_before(u.first)).is_some() {
            self.update_largest_payload();
        }
    }

    /// What goes before data: the parameters of a RE-CONFIG chunk.
    pub(in crate::association) fn unheard_answer(&self) -> Option<&Bytes> {
        Some(&self.reconfig.as_ref()?.unheard.as_ref()?.body)
    }

    /// The bytes that it takes in a packet.
    pub(in crate::association) fn unheard_len(&self) -> usize {
        self.unheard_answer().map_or(0, |body| CHUNK_HEADER_LEN + body.len())
    }

    /// Writes it, if there is one.
    pub(in crate::association) fn write_unheard_answer(
        &self,
        w: &mut PacketWriter<'_>,
    ) -> Result<(), DoesNotFit> {
        let Some(body) = self.unheard_answer() else { return Ok(()) };
        w.re_config(|p| p.append(ReconfigParameters::new(body)))
    }
}
