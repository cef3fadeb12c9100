//! Repeats the response to an association reset before all data, until the peer has shown that it
//! has received it.
//!
//! By RFC 6525 5.2.4 this side's TSNs continue (G2), while its stream sequence numbers restart
//! (G5). Data that overtakes the response, over another path or because the response is lost, is
//! mistaken for data from before the reset: a peer that accepts data again, after it was asked to
//! wait, acknowledges it and gives it stream sequence numbers from before the reset. So each packet
//! with DATA or FORWARD TSN begins with the response, until a SACK acknowledges the first TSN after
//! the reset.

use bytes::Bytes;

use crate::association::Association;
use crate::ids::Tsn;
use crate::wire::{CHUNK_HEADER_LEN, DoesNotFit, PacketWriter, ReconfigParameters};

/// The response that the peer may not have received.
#[derive(Debug)]
pub(super) struct PendingResponse {
    /// Parameters of the RE-CONFIG chunk.
    body: Bytes,
    /// The first TSN after the reset.
    first: Tsn,
}

impl Association {
    /// Repeats the last response, which has reset the association; this side's TSNs continue from
    /// `first`.
    pub(super) fn repeat_until_acknowledged(&mut self, first: Tsn) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let Some((_, body)) = reconfig.answers.front() else { return };
        reconfig.pending_response = Some(PendingResponse { body: body.clone(), first });
        self.update_largest_payload();
    }

    /// A SACK has been processed: stops repeating if it acknowledges data from after the reset.
    pub(in crate::association) fn note_heard(&mut self) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let acknowledged = self.sending.flight.ack_point();
        if reconfig.pending_response.take_if(|u| !acknowledged.is_before(u.first)).is_some() {
            self.update_largest_payload();
        }
    }

    /// The response that precedes data: the parameters of a RE-CONFIG chunk.
    pub(in crate::association) fn pending_response(&self) -> Option<&Bytes> {
        Some(&self.reconfig.as_ref()?.pending_response.as_ref()?.body)
    }

    /// Length of the response in a packet.
    pub(in crate::association) fn pending_response_len(&self) -> usize {
        self.pending_response().map_or(0, |body| CHUNK_HEADER_LEN + body.len())
    }

    /// Writes the response, if there is one to repeat.
    pub(in crate::association) fn write_pending_response(
        &self,
        w: &mut PacketWriter<'_>,
    ) -> Result<(), DoesNotFit> {
        let Some(body) = self.pending_response() else { return Ok(()) };
        w.re_config(|p| p.append(ReconfigParameters::new(body)))
    }
}
