//! The TIMESTAMP chunks that were sent, to judge the peer's echoes (Caro 2006, retransmission
//! policies, 4.2).

use crate::policy::rtt_sampling::SentTime;
use crate::time::Time;

/// An echo older than this is invalid: timestamps wrap around after 71 minutes.
const OLDEST_ECHO_US: u32 = 1 << 31;

/// When the first and the last TIMESTAMP chunk were sent; `None` before the first.
#[derive(Debug, Default)]
pub(crate) struct Stamps(Option<(Time, Time)>);

impl Stamps {
    /// A TIMESTAMP chunk has been sent.
    pub(crate) fn sent(&mut self, now: Time) {
        let first = self.0.map_or(now, |(first, _)| first);
        self.0 = Some((first, now));
    }

    /// The time that an echo encodes, if it is between the first and the last timestamp sent.
    /// `origin` is the origin of this association's timestamps.
    pub(crate) fn time_of(&self, now: Time, origin: u32, stamp: u32) -> Option<SentTime> {
        let (first, last) = self.0?;
        let age = SentTime::stamp_of(origin, now).wrapping_sub(stamp);
        let least = SentTime::stamp_of(origin, now).wrapping_sub(SentTime::stamp_of(origin, last));
        let most = (now.since(first).as_micros() + 1).min(OLDEST_ECHO_US.into()) as u32;
        (age >= least && age <= most).then_some(SentTime { origin, stamp })
    }
}
