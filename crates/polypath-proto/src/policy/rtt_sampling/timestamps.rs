//! Timestamps (TS): every packet with DATA says when it was sent, and a SACK repeats that of the
//! packet which caused it. Karn's rule is dropped.
//!
//! Caro 2006 (retransmission policies), 4.2: "the sender can distinguish between acks for original
//! transmissions and acks for retransmissions. Thus, Karn's algorithm can be eliminated, and
//! successful retransmissions can be used to update the RTT estimate". A chunk measures when it is
//! acknowledged for the first time by a SACK whose echo is the time at which it was last sent: that
//! transmission, and no other, made the peer send this SACK. All chunks of the packet do, and those of
//! other packets of the same instant; the once a round trip of RFC 9260 6.3.1 (C4) does not hold.
//!
//! The peer echoes the first packet with DATA since its last SACK, so that a delayed SACK is
//! measured with its delay. ns-2: Agent/SCTP/Timestamp.

use std::time::Duration;

use super::{AckedChunk, RttSampling, SackCause};
use crate::policy::{Answer, PathsView};
use crate::{Extension, PathId, Time};

/// See the [module](self).
pub static TIMESTAMPS: Answer<dyn RttSampling> = Answer {
    name: "timestamps",
    summary: "every chunk that left when the peer's SACK says, retransmissions too; 12 bytes a packet, \
              both sides (TS; Caro 2006, 4.2)",
    make: |_| Box::new(Timestamps),
};

#[derive(Debug)]
struct Timestamps;

impl RttSampling for Timestamps {
    fn needs(&self) -> Option<Extension> {
        Some(Extension::Timestamps)
    }

    fn may_start(&self, _: u32) -> bool {
        true
    }

    fn samples(
        &mut self,
        now: Time,
        cause: &SackCause,
        acked: &[AckedChunk],
        _: PathsView<'_>,
        samples: &mut Vec<(PathId, Duration)>,
    ) {
        let Some(sent) = cause.sent else { return };
        let caused = acked.iter().filter(|c| sent.is(c.sent));
        samples.extend(caused.map(|c| (c.path, now.since(c.sent))));
    }
}
