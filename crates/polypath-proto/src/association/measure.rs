//! Negotiated aids for measuring round-trip times: TIMESTAMP chunks and the retransmission flag
//! (Caro 2006, retransmission policies, 4.2).
//!
//! The timestamps have an origin: they match no other association, and do not reveal this host's
//! uptime (RFC 7323 7.1).

use crate::extension::{Extension, Extensions};
use crate::policy::rtt_sampling::SackCause;
use crate::send::Sending;
use crate::time::Time;
use crate::wire::{PacketWriter, Sack, Timestamp};

/// Writes a TIMESTAMP chunk before the packet's other chunks, with the `echo` that belongs to a
/// SACK and the time `sent`. Returns the packet's length and number of chunks before it.
pub(super) fn write_timestamp(
    sent: u32,
    echo: Option<u32>,
    w: &mut PacketWriter<'_>,
) -> Option<(usize, usize)> {
    let before = (w.len(), w.chunk_count());
    w.timestamp(Timestamp { sent, echo }).ok()?;
    Some(before)
}

impl Sending {
    /// The packet is complete: removes a TIMESTAMP chunk that nothing follows.
    pub(super) fn settle_timestamp(
        &mut self,
        now: Time,
        before: Option<(usize, usize)>,
        w: &mut PacketWriter<'_>,
    ) {
        let Some((len, chunks)) = before else { return };
        if w.chunk_count() == chunks + 1 {
            return w.take_back(len, chunks);
        }
        self.stamps.sent(now);
    }

    /// Notes the cause of a SACK, as its flags and the echo in its packet report it. False if the
    /// echo is that of no timestamp sent.
    pub(super) fn note_cause(
        &mut self,
        agreed: Extensions,
        (now, origin): (Time, u32),
        sack: &Sack<'_>,
        echo: Option<u32>,
    ) -> bool {
        let mut cause = SackCause::default();
        let mut known = true;
        if agreed.contains(Extension::Timestamps) {
            cause.sent = echo.and_then(|stamp| self.stamps.time_of(now, origin, stamp));
            known = echo.is_none() || cause.sent.is_some();
        }
        if agreed.contains(Extension::RetransmissionFlag) {
            cause.retransmission = sack.flags & Sack::RETRANSMISSION != 0;
        }
        self.sack.cause = cause;
        known
    }
}
