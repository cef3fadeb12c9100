//! DATA in flight on a path. Sizes are those of chunks with their headers.

use std::collections::{BTreeSet, VecDeque};

use super::recovery::Recovery;
use super::silence::Silence;
use super::{LEAST_SENT_HERE, Path, SentHere};
use crate::ids::Tsn;
use crate::time::Time;

impl Path {
    pub(crate) fn data_sent(&mut self, now: Time, tsn: Tsn, transmissions: u32, size: u32) {
        let resumes = self.in_flight == 0;
        if resumes {
            self.bandwidth.resume(now);
        }
        if let Some(delivery) = &mut self.delivery {
            if resumes {
                delivery.resume(now);
            }
            delivery.sent(now, size);
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.sent(now, self.in_flight, size);
        }
        if let Some(rate) = self.window.pacing_rate {
            self.pacer.sent(now, size, rate, self.max_chunk());
        }
        self.in_flight += size;
        self.recovery.sent(size);
        self.chunks_in_flight += 1;
        self.sent_here.push_back(SentHere { tsn, transmissions });
        self.loss.count_sent();
        self.last_data = Some(now);
        self.decayed = false;
        if self.highest_sent.is_none_or(|highest| tsn.is_after(highest)) {
            self.highest_sent = Some(tsn);
        }
    }

    /// When data was last sent on this path, or the window last reduced because none was.
    pub(crate) const fn last_data(&self) -> Option<Time> {
        self.last_data
    }

    /// The highest TSN sent on this path.
    pub(crate) const fn highest_sent(&self) -> Option<Tsn> {
        self.highest_sent
    }

    /// TSNs are renumbered.
    pub(crate) const fn clear_highest_sent(&mut self) {
        self.highest_sent = None;
    }

    /// A chunk in flight here was acknowledged, or found lost.
    pub(crate) fn data_gone(&mut self, size: u32) {
        debug_assert!(self.in_flight >= size && self.chunks_in_flight > 0, "flight underflow");
        self.in_flight = self.in_flight.saturating_sub(size);
        self.chunks_in_flight = self.chunks_in_flight.saturating_sub(1);
    }

    /// Bytes of chunks that were last sent on this path and wait for retransmission.
    pub(crate) const fn lost(&self) -> u32 {
        self.lost
    }

    /// A chunk in flight here was found lost.
    pub(crate) fn data_lost(&mut self, size: u32) {
        self.data_gone(size);
        self.lost += size;
    }

    /// Chunks that were marked lost here are in flight after all: transmissions in their order, and
    /// their bytes. They were sent before everything that is in flight.
    pub(crate) fn data_found(&mut self, sent: impl Iterator<Item = (SentHere, u32)>) {
        let later = std::mem::take(&mut self.sent_here);
        for (entry, size) in sent {
            self.lost_gone(size);
            self.in_flight += size;
            self.chunks_in_flight += 1;
            self.sent_here.push_back(entry);
        }
        self.sent_here.extend(later);
    }

    /// A chunk that was lost here is retransmitted, on any path, or was acknowledged after all.
    pub(crate) fn lost_gone(&mut self, size: u32) {
        debug_assert!(self.lost >= size, "lost underflow");
        self.lost = self.lost.saturating_sub(size);
    }

    /// A chunk that was acknowledged by a gap ack block no longer is (RFC 9260 6.2.1).
    pub(crate) fn data_back(&mut self, tsn: Tsn, transmissions: u32, size: u32) {
        self.in_flight += size;
        self.chunks_in_flight += 1;
        self.sent_here.push_back(SentHere { tsn, transmissions });
        // The list may hold it already: a peer can revoke its acknowledgements again and again.
        if self.sent_here.len() >= self.most_sent_here {
            let mut seen = BTreeSet::new();
            let mut list: Vec<SentHere> = self.sent_here.drain(..).rev().collect();
            list.retain(|s| seen.insert((s.tsn.0, s.transmissions)));
            self.sent_here.extend(list.into_iter().rev());
            self.most_sent_here = LEAST_SENT_HERE.max(2 * self.sent_here.len());
        }
    }

    /// The share of the last transmissions that was lost.
    pub(crate) const fn recent_loss(&self) -> f64 {
        self.loss.recent()
    }

    /// Counts a lost chunk, or an expiry of T3-rtx.
    pub(crate) const fn count_loss(&mut self) {
        self.loss.count_lost();
    }

    /// Drops void entries at the front. True if there was one, that is if the chunk that was
    /// outstanding on this path for the longest time no longer is, or if nothing is in flight.
    pub(crate) fn oldest_is_gone(&mut self, outstanding: impl Fn(&SentHere) -> bool) -> bool {
        let mut gone = self.chunks_in_flight == 0;
        while self.sent_here.front().is_some_and(|s| !outstanding(s)) {
            self.sent_here.pop_front();
            gone = true;
        }
        gone
    }

    /// The transmission in flight here for the longest time, after
    /// [`oldest_is_gone`](Self::oldest_is_gone) has dropped void entries.
    pub(crate) fn oldest(&self) -> Option<SentHere> {
        self.sent_here.front().copied()
    }

    /// The transmissions here from the oldest on, void entries included.
    pub(crate) fn sent_here(&self) -> impl Iterator<Item = &SentHere> {
        self.sent_here.iter()
    }

    /// The transmission in flight here that was sent last; drops void entries at the back.
    pub(crate) fn newest(&mut self, outstanding: impl Fn(&SentHere) -> bool) -> Option<SentHere> {
        while self.sent_here.back().is_some_and(|s| !outstanding(s)) {
            self.sent_here.pop_back();
        }
        self.sent_here.back().copied()
    }

    /// Nothing sent on this path will be acknowledged any more.
    pub(crate) fn flight_dropped(&mut self) {
        self.in_flight = 0;
        self.chunks_in_flight = 0;
        self.lost = 0;
        self.timed_out = false;
        self.highest_sent = None;
        self.sent_here.clear();
        self.rtt_probe = None;
        self.t3 = None;
        self.drop_records();
        self.recovery = Recovery::default();
        self.silence = Silence::default();
    }

    /// Takes the transmissions on this path; the caller skips the void entries.
    pub(crate) fn take_sent_here(&mut self) -> VecDeque<SentHere> {
        std::mem::take(&mut self.sent_here)
    }

    /// Puts back an entry that [`take_sent_here`](Self::take_sent_here) took.
    pub(crate) fn still_here(&mut self, sent: SentHere) {
        self.sent_here.push_back(sent);
    }

    /// Nothing sent on this path will be acknowledged or retransmitted any more.
    pub(crate) fn clear_flight(&mut self) {
        self.timed_out = false;
        self.in_flight = 0;
        self.chunks_in_flight = 0;
        self.lost = 0;
        self.highest_sent = None;
        self.sent_here.clear();
        self.recovery = Recovery::default();
        self.silence = Silence::default();
        self.last_data = None;
        self.drop_records();
    }
}
