//! Karn's rule: a retransmitted chunk gives no sample (RFC 9260 6.3.1, C5).

use std::time::Duration;

use super::{AckedChunk, RttSampling, SackCause};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::time::Time;

/// See the [module](self).
pub static KARN: Entry<dyn RttSampling> = Entry::new(
    "karn",
    "one chunk each round trip, never one that was retransmitted (RFC 9260 6.3.1 C4, C5)",
    |_| Box::new(Karn),
);

#[derive(Debug)]
struct Karn;

impl RttSampling for Karn {
    fn may_start(&self, transmissions: u32) -> bool {
        transmissions == 1
    }

    fn samples(
        &mut self,
        now: Time,
        _: &SackCause,
        acked: &[AckedChunk],
        _: PathsView<'_>,
        samples: &mut Vec<(PathId, Duration)>,
    ) {
        let counts = |c: &&AckedChunk| c.measured && c.transmissions == 1;
        samples.extend(acked.iter().filter(counts).map(|c| (c.path, now.since(c.sent))));
    }
}
