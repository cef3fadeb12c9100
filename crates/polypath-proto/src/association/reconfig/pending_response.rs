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

use super::Reconfig;
use crate::ids::Tsn;
use crate::paths::Paths;
use crate::send::Sending;
use crate::wire::{CHUNK_HEADER_LEN, DoesNotFit, PacketWriter, ReconfigParameters};

/// The response that the peer may not have received.
#[derive(Debug)]
pub(super) struct PendingResponse {
    /// Parameters of the RE-CONFIG chunk.
    body: Bytes,
    /// The first TSN after the reset.
    first: Tsn,
}

impl Reconfig {
    /// Repeats the last response, which has reset the association; this side's TSNs continue from
    /// `first`.
    pub(super) fn repeat_until_acknowledged(
        &mut self,
        first: Tsn,
        sending: &mut Sending,
        paths: &Paths,
    ) {
        let Some((_, body)) = self.answers.front() else { return };
        sending.response_len = CHUNK_HEADER_LEN + body.len();
        self.pending_response = Some(PendingResponse { body: body.clone(), first });
        sending.fit(paths);
    }

    /// A SACK has been processed: stops repeating if it acknowledges data from after the reset.
    pub(in crate::association) fn note_sack(&mut self, sending: &mut Sending, paths: &Paths) {
        let acknowledged = sending.flight.ack_point();
        if self.pending_response.take_if(|p| !acknowledged.is_before(p.first)).is_some() {
            sending.response_len = 0;
            sending.fit(paths);
        }
    }

    /// The response that precedes data: the parameters of a RE-CONFIG chunk.
    pub(in crate::association) fn pending_response(&self) -> Option<&Bytes> {
        self.pending_response.as_ref().map(|p| &p.body)
    }
}

/// Writes the response `pending`, if there is one to repeat.
pub(in crate::association) fn write_response(
    pending: Option<&Bytes>,
    w: &mut PacketWriter<'_>,
) -> Result<(), DoesNotFit> {
    let Some(body) = pending else { return Ok(()) };
    w.re_config(|p| p.append(ReconfigParameters::new(body)))
}
