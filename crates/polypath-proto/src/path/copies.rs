//! Copies of chunks that are in the network on a path: see [`Copies`](crate::send::Copies).

use std::collections::VecDeque;
use std::time::Duration;

use super::Path;
use crate::time::Time;

/// Copies sent on a path. It is not known which of them arrive, so that each counts as in flight
/// for about a round trip.
#[derive(Debug, Default)]
pub(super) struct CopiesHere {
    /// When each leaves the network, at the latest, and its bytes.
    sent: VecDeque<(Time, u32)>,
    bytes: u32,
    /// When the samples of the round-trip time were last counted, and their number.
    counted: Option<(Time, u64)>,
}

impl Path {
    /// A copy of `size` bytes, `payload` of them user data, is sent here. The pacer is not charged:
    /// copies have a budget of their own, and where the application sends little, a pacing rate
    /// that follows what was delivered would leave less and less to new data.
    pub(crate) fn copy_sent(&mut self, now: Time, size: u32, payload: u64) {
        let rtt = self.srtt().unwrap_or_else(|| self.rto());
        self.copies.sent.push_back((now + rtt + rtt / 4, size));
        self.copies.bytes += size;
        self.last_data = Some(now);
        self.decayed = false;
        self.stats.copies_sent += 1;
        self.stats.copy_bytes_sent += payload;
    }

    /// Copies that have left the network no longer count.
    pub(crate) fn expire_copies(&mut self, now: Time) {
        while let Some(&(until, size)) = self.copies.sent.front()
            && until <= now
        {
            self.copies.sent.pop_front();
            self.copies.bytes -= size;
        }
    }

    /// Whether the window has room for a copy of `size` bytes, behind the data and the copies in
    /// flight.
    pub(crate) const fn has_room_for_copy(&self, size: u32) -> bool {
        let used = self.in_flight.saturating_add(self.copies.bytes);
        used.saturating_add(size) <= self.limit()
    }

    /// Whether nothing has measured the round-trip time for this time; true once in that time.
    pub(crate) fn lacks_measurement(&mut self, now: Time, time: Duration) -> bool {
        let samples = self.stats.rtt_samples;
        match self.copies.counted {
            Some((at, _)) if now < at + time => false,
            counted => {
                self.copies.counted = Some((now, samples));
                counted.is_some_and(|(_, before)| before == samples)
            }
        }
    }
}
