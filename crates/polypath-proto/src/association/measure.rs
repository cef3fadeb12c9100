//! Helps for measuring round-trip times that were agreed on in the handshake: TIMESTAMP chunks and the
//! retransmission flag (Caro 2006, retransmission policies, 4.2).

use super::Association;
use crate::auth::AuthOffer;
use crate::policy::ack::DELAYED;
use crate::policy::rtt_sampling::{KARN, SackCause, SentTime};
use crate::wire::{PacketWriter, Sack, Timestamp};
use crate::{Extension, Extensions, Time};

/// An echo older than this is none of ours: stamps come around after 71 minutes.
const OLDEST_ECHO_US: u32 = 1 << 31;

/// When TIMESTAMP chunks left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamped {
    first: Time,
    last: Time,
}

impl Association {
    /// The handshake has shown what both sides offer, and what the peer says of the layer above it. Nothing
    /// has been sent yet that depends on it.
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
        self.policies.rtt_sampling = (self.config.rtt_sampling().make)(&self.config);
        if !self.policies.rtt_sampling.needs().is_none_or(|e| extensions.contains(e)) {
            self.policies.rtt_sampling = (KARN.make)(&self.config);
        }
        self.policies.ack = (self.config.ack().make)(&self.config);
        if !self.policies.ack.needs().is_none_or(|e| extensions.contains(e)) {
            self.policies.ack = (DELAYED.make)(&self.config);
        }
        self.sender.queue.interleave(extensions.contains(Extension::Interleaving));
        let overhead = self.overhead();
        for path in &mut self.paths {
            path.reserve(overhead, &*self.policies.congestion);
        }
        self.update_largest_payload();
    }

    pub(super) fn flags_retransmissions(&self) -> bool {
        self.extensions.contains(Extension::RetransmissionFlag)
    }

    /// Where no peer can take it for another association's, and no reading of it tells how long this
    /// host has been up (RFC 7323 7.1).
    const fn stamp_origin(&self) -> u32 {
        self.local_tag.0
    }

    /// Writes a TIMESTAMP chunk before what else the packet gets, if they were agreed on; the echo goes
    /// with the SACK. Gives the packet's length and chunks before it.
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

    /// The packet is complete: a TIMESTAMP chunk that nothing follows is taken back.
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

    /// What a SACK, with the echo beside it, tells of the packet that caused it.
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

    /// The instant that an echo names, if something was sent between the first and the last packet.
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
