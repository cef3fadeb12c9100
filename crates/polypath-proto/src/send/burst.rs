//! Limits the packets that one event releases (RFC 9260 6.1 D, Max.Burst).

use crate::constants::BurstRule;
use crate::path::{Path, PathState};
use crate::paths::Paths;
use crate::time::Time;

/// The packets that the current event has released.
#[derive(Debug)]
pub(crate) struct Burst {
    /// Bytes in flight on each path when the burst began.
    from: Vec<u32>,
    over: bool,
    /// Packets with data.
    packets: u32,
}

impl Burst {
    pub(crate) const fn new() -> Self {
        Self { from: Vec::new(), over: true, packets: 0 }
    }

    /// Begins a burst after an event that may release packets: it is counted from the bytes in
    /// flight now, unless the burst of an earlier event is not over yet.
    pub(crate) fn begin(&mut self, rule: BurstRule, paths: &Paths) {
        if !self.over && self.from.len() == paths.len() {
            return;
        }
        self.over = false;
        self.packets = 0;
        self.from.clear();
        match rule {
            // The burst is limited only after a SACK for a fast retransmitted chunk.
            BurstRule::AfterRetransmission | BurstRule::PacketCount => {
                self.from.resize(paths.len(), u32::MAX);
            }
            _ => self.from.extend(paths.iter().map(Path::in_flight)),
        }
    }

    /// Nothing more may be sent.
    pub(crate) const fn end(&mut self) {
        self.over = true;
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.over
    }

    /// A packet with data has been sent.
    pub(crate) const fn count(&mut self) {
        self.packets += 1;
    }

    /// Whether `most` packets have been sent.
    pub(crate) const fn is_full(&self, most: u32) -> bool {
        self.packets >= most
    }

    /// A SACK has been processed that found `before` bytes in flight on the path, and perhaps
    /// acknowledged a chunk that had been fast retransmitted: the burst is counted anew.
    pub(crate) fn acknowledged(
        &mut self,
        rule: BurstRule,
        path: &Path,
        before: u32,
        fast_retransmitted: bool,
    ) {
        let Some(from) = self.from.get_mut(path.id().index()) else { return };
        *from = match rule {
            BurstRule::AckClocked => (*from).max(before),
            BurstRule::FlightSize => path.in_flight(),
            BurstRule::AfterRetransmission if fast_retransmitted => path.in_flight(),
            BurstRule::AfterRetransmission | BurstRule::PacketCount => u32::MAX,
        };
    }

    /// Whether the window of the path has room (RFC 9260 6.1 B) and the burst is not over. On a
    /// paced path the pacer limits bursts, in place of Max.Burst.
    #[inline]
    pub(crate) fn has_room(&self, p: &Path, max_burst: u32, now: Time) -> bool {
        if p.is_paced() {
            return p.state() != PathState::Unconfirmed && p.has_room() && p.is_released(now);
        }
        let burst = max_burst.saturating_mul(p.max_chunk());
        let from = self.from.get(p.id().index()).copied().unwrap_or_default();
        p.state() != PathState::Unconfirmed
            && p.has_room()
            && p.in_flight() < from.saturating_add(burst)
    }
}
