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
    /// Start of the current period in which nothing has measured the round-trip time, the number
    /// of samples by then, and the number of such periods before.
    counted: Option<(Time, u64, u32)>,
}

impl Path {
    /// A copy of `size` bytes, `payload` of them user data, is sent on the path. The pacer is not
    /// charged: copies have a budget of their own, and where the application sends little, a pacing
    /// rate that follows what was delivered would leave less and less to new data.
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

    /// The number of periods for which nothing has measured the round-trip time: not 0 once in each
    /// period, and at once if it is unknown.
    pub(crate) fn periods_unmeasured(&mut self, now: Time, period: Duration) -> u32 {
        let (samples, known) = (self.stats.rtt_samples, self.srtt().is_some());
        let (periods, at) = match self.copies.counted {
            Some((at, before, periods)) if before == samples => (periods, at),
            None if !known => (0, now - period),
            _ => (0, now),
        };
        let due = at + period <= now;
        let (at, periods) = if due { (now, periods + 1) } else { (at, periods) };
        self.copies.counted = Some((at, samples, periods));
        if due { periods } else { 0 }
    }
}
