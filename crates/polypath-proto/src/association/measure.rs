//! Negotiated aids for measuring round-trip times: TIMESTAMP chunks and the retransmission flag
//! (Caro 2006, retransmission policies, 4.2).

use super::Association;
use crate::auth::AuthOffer;
use crate::extension::{Extension, Extensions};
use crate::policy::ack::DELAYED;
use crate::policy::rtt_sampling::{KARN, SackCause, SentTime};
use crate::time::Time;
use crate::wire::{PacketWriter, Sack, Timestamp};

/// An echo older than this is invalid: timestamps wrap around after 71 minutes.
const OLDEST_ECHO_US: u32 = 1 << 31;

/// When the first and the last TIMESTAMP chunk were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamped {
    first: Time,
    last: Time,
}

impl Association {
    /// Adopts the extensions and the adaptation code point of the handshake. Nothing that depends
    /// on them has been sent yet.
    pub(super) fn agree_on(
        &mut self,
        extensions: Extensions,
        auth: Option<&AuthOffer>,
        adaptation_layer: Option<u32>,
    ) {
        self.peer_adaptation_layer = adaptation_layer;
        self.forget_reconfig();
        self.extensions = extensions;
        self.start_authentication(auth);
        self.marks = super::ecn::Marks::default();
        self.stamped = None;
        let setup = self.config.setup();
        self.policies.rtt_sampling = (self.config.rtt_sampling().make)(&setup);
        if !self.policies.rtt_sampling.needs().is_none_or(|e| extensions.contains(e)) {
            self.policies.rtt_sampling = (KARN.make)(&setup);
        }
        self.policies.ack = (self.config.ack().make)(&setup);
        if !self.policies.ack.needs().is_none_or(|e| extensions.contains(e)) {
            self.policies.ack = (DELAYED.make)(&setup);
        }
        self.sender.queue.interleave(extensions.contains(Extension::Interleaving));
        let overhead = self.overhead();
        for path in &mut self.paths {
            path.reserve(overhead, |max_chunk, ssthresh, remote| {
                self.policies.congestion.initial(max_chunk, ssthresh, remote)
            });
        }
        self.update_largest_payload();
    }

    pub(super) fn flags_retransmissions(&self) -> bool {
        self.extensions.contains(Extension::RetransmissionFlag)
    }

    /// Origin of the timestamps: they match no other association, and do not reveal this host's
    /// uptime (RFC 7323 7.1).
    const fn stamp_origin(&self) -> u32 {
        self.local_tag.0
    }

    /// Writes a TIMESTAMP chunk before the packet's other chunks, if that was negotiated; with a
    /// SACK it carries the echo. Returns the packet's length and number of chunks before it.
    pub(super) fn write_timestamp(
        &mut self,
        now: Time,
        with_sack: bool,
        w: &mut PacketWriter<'_>,
    ) -> Option<(usize, usize)> {
        if !self.extensions.contains(Extension::Timestamps) {
            return None;
        }
        let before = (w.len(), w.chunk_count());
        let sent = SentTime::stamp_of(self.stamp_origin(), now);
        let echo = if with_sack { self.ack.echo } else { None };
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
        let first = self.stamped.map_or(now, |s| s.first);
        self.stamped = Some(Stamped { first, last: now });
    }

    /// The cause of a SACK, as its flags and the echo in its packet report it.
    pub(super) fn cause_of(&mut self, now: Time, sack: &Sack<'_>, echo: Option<u32>) -> SackCause {
        let mut cause = SackCause::default();
        if self.extensions.contains(Extension::Timestamps) {
            cause.sent = echo.and_then(|stamp| self.sent_time(now, stamp));
            self.stats.bad_echoes += u64::from(echo.is_some() && cause.sent.is_none());
        }
        if self.flags_retransmissions() {
            cause.retransmission = sack.flags & Sack::RETRANSMISSION != 0;
        }
        cause
    }

    /// The time that an echo encodes, if it is between the first and the last timestamp sent.
    fn sent_time(&self, now: Time, stamp: u32) -> Option<SentTime> {
        let stamped = self.stamped?;
        let origin = self.stamp_origin();
        let age = SentTime::stamp_of(origin, now).wrapping_sub(stamp);
        let least =
            SentTime::stamp_of(origin, now).wrapping_sub(SentTime::stamp_of(origin, stamped.last));
        let most = (now.since(stamped.first).as_micros() + 1).min(OLDEST_ECHO_US.into()) as u32;
        (age >= least && age <= most).then_some(SentTime { origin, stamp })
    }
}
