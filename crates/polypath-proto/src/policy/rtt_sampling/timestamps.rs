//! Timestamps (TS): every packet with DATA carries the time when it was sent, and a SACK echoes
//! that of the packet which caused it. This replaces Karn's rule.
//!
//! Caro 2006 (retransmission policies), 4.2: "the sender can distinguish between acks for original
//! transmissions and acks for retransmissions. Thus, Karn's algorithm can be eliminated, and
//! successful retransmissions can be used to update the RTT estimate". A chunk gives a sample if
//! the SACK that newly acknowledges it echoes the time at which the chunk was last sent: only that
//! transmission can have caused this SACK. This holds for all chunks of the packet, and for those
//! of other packets sent at the same time; the limit of one sample per round trip in RFC 9260 6.3.1
//! (C4) does not apply.
//!
//! The peer echoes the first packet with DATA since its last SACK, so a sample includes the delay
//! of a delayed SACK.

use std::time::Duration;

use super::{AckedChunk, RttSampling, SackCause};
use crate::extension::Extension;
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::{Entry, Needs};
use crate::time::Time;

/// See the [module](self).
pub static TIMESTAMPS: Entry<dyn RttSampling> = Entry::<dyn RttSampling>::new(
    "timestamps",
    "every chunk sent at the time that the peer's SACK reports, retransmissions too; 12 bytes a packet, \
              both sides (TS; Caro 2006, 4.2)",
    |_| Box::new(Timestamps),
)
.with_needs(Needs::NONE.extension(Extension::Timestamps));

#[derive(Debug)]
struct Timestamps;

impl RttSampling for Timestamps {
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
