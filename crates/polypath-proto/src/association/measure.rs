//! Negotiated aids for measuring round-trip times: TIMESTAMP chunks and the retransmission flag
//! (Caro 2006, retransmission policies, 4.2).

use super::Association;
use crate::auth::AuthOffer;
use crate::extension::{Extension, Extensions};
use crate::policy::ack::DELAYED;
use crate::policy::congestion::NewPath;
use crate::policy::entry::Needs;
use crate::policy::rtt_sampling::{KARN, SackCause, SentTime};
use crate::send::Stamps;
use crate::time::Time;
use crate::wire::{PacketWriter, Sack, Timestamp};

impl Association {
    /// Adopts the extensions and the adaptation code point of the handshake. Nothing that depends
    /// on them has been sent yet.
    pub(super) fn agree_on(
        &mut self,
        extensions: Extensions,
        auth: Option<&AuthOffer>,
        adaptation_layer: Option<u32>,
    ) {
        self.handshake.peer_adaptation_layer = adaptation_layer;
        self.forget_reconfig();
        self.handshake.extensions = extensions;
        self.start_authentication(auth);
        self.marks = super::ecn::Marks::default();
        self.sending.stamps = Stamps::default();
        let setup = self.config.setup();
        let agreed = |needs: Needs| needs.extension.is_none_or(|e| extensions.contains(e));
        let (sampling, ack) = (self.config.rtt_sampling(), self.config.ack());
        self.sending.rtt_sampling =
            if agreed(sampling.needs) { sampling.make(&setup) } else { KARN.make(&setup) };
        self.receiving.ack_policy =
            if agreed(ack.needs) { ack.make(&setup) } else { DELAYED.make(&setup) };
        self.sending.queue.interleave(extensions.contains(Extension::Interleaving));
        let overhead = self.overhead();
        let (now, congestion) = (self.now, &mut self.sending.congestion);
        for path in self.paths.iter_mut() {
            let id = path.id();
            path.reserve(overhead, |max_chunk, ssthresh, remote| {
                congestion.initial(&NewPath::new(now, id, (max_chunk, ssthresh, remote)))
            });
        }
        self.update_largest_payload();
    }

    pub(super) fn flags_retransmissions(&self) -> bool {
        self.handshake.has(Extension::RetransmissionFlag)
    }

    /// Origin of the timestamps: they match no other association, and do not reveal this host's
    /// uptime (RFC 7323 7.1).
    const fn stamp_origin(&self) -> u32 {
        self.handshake.local_tag.0
    }

    /// Writes a TIMESTAMP chunk before the packet's other chunks, if that was negotiated; with a
    /// SACK it carries the echo. Returns the packet's length and number of chunks before it.
    pub(super) fn write_timestamp(
        &mut self,
        now: Time,
        with_sack: bool,
        w: &mut PacketWriter<'_>,
    ) -> Option<(usize, usize)> {
        if !self.handshake.has(Extension::Timestamps) {
            return None;
        }
        let before = (w.len(), w.chunk_count());
        let sent = SentTime::stamp_of(self.stamp_origin(), now);
        let echo = if with_sack { self.receiving.ack.echo } else { None };
        w.timestamp(Timestamp { sent, echo }).ok()?;
        Some(before)
    }

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
        self.sending.stamps.sent(now);
    }

    /// The cause of a SACK, as its flags and the echo in its packet report it.
    pub(super) fn cause_of(&mut self, now: Time, sack: &Sack<'_>, echo: Option<u32>) -> SackCause {
        let mut cause = SackCause::default();
        if self.handshake.has(Extension::Timestamps) {
            cause.sent =
                echo.and_then(|stamp| self.sending.stamps.time_of(now, self.stamp_origin(), stamp));
            self.stats.bad_echoes += u64::from(echo.is_some() && cause.sent.is_none());
        }
        if self.flags_retransmissions() {
            cause.retransmission = sack.flags & Sack::RETRANSMISSION != 0;
        }
        cause
    }
}
