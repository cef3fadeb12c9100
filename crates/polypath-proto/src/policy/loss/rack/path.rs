//! The variables of RFC 8985 for one path, and its procedures.

use std::collections::VecDeque;
use std::time::Duration;

use crate::ids::{PathId, Tsn};
use crate::policy::loss::{PathTimes, Recovering, SackView};
use crate::policy::rtt_sampling::AckedChunk;
use crate::time::Time;

/// RFC 8985 6.2: DupThresh, "3 segments".
const DUP_THRESH: usize = 3;

/// RFC 8985 6.2: recoveries for which an enlarged reordering window stays.
const PERSIST: u32 = 16;

/// RFC 8985 7.2: "when there is no SRTT estimate available, the PTO SHOULD be 1 second".
const FIRST_PTO: Duration = Duration::from_secs(1);

/// Chunks found lost, kept to recognize their duplicates.
const MOST_MARKED: usize = 256;

/// RFC 8985 6.2: "The sender SHOULD track a windowed min-filtered estimate of recent RTT
/// measurements". Half of that window; Linux has 300 s.
const HALF_WINDOW: Duration = Duration::from_secs(150);

/// A transmission of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Time,
    pub(super) tsn: Tsn,
}

impl Sent {
    /// RACK_sent_after.
    pub(super) fn is_after(self, other: Self) -> bool {
        self.at > other.at || (self.at == other.at && self.tsn.is_after(other.tsn))
    }
}

/// The shortest round-trip time of the last minutes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    since: Time,
    recent: Option<Duration>,
    older: Option<Duration>,
}

impl MinRtt {
    pub(super) fn add(&mut self, now: Time, rtt: Duration) {
        if now.since(self.since) >= HALF_WINDOW {
            (self.since, self.older, self.recent) = (now, self.recent, None);
        }
        self.recent = Some(self.recent.map_or(rtt, |r| r.min(rtt)));
    }

    pub(super) fn get(&self) -> Option<Duration> {
        self.recent.into_iter().chain(self.older).min()
    }
}

/// A delivered packet, as far as its chunks show it: chunks that were sent together, with
/// consecutive TSNs and no more bytes than fit a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    last: Sent,
    bytes: u32,
}

/// The deadline of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wait {
    #[default]
    Nothing,
    /// The reordering window of the chunk that was sent earliest ends (RFC 8985 6.2, step 5).
    Reordering(Time),
    /// The PTO (RFC 8985 7.2).
    Probe(Time),
}

/// A probe in flight (RFC 8985 7.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// TLP.end_seq.
    pub(super) sent: Sent,
    /// TLP.is_retrans.
    pub(super) retransmission: bool,
    pub(super) acked: bool,
}

#[derive(Debug)]
pub(super) struct Path {
    /// RACK.segment: RACK.xmit_ts and RACK.end_seq.
    pub(super) segment: Option<Sent>,
    pub(super) rtt: Duration,
    pub(super) min_rtt: MinRtt,
    /// The chunk sent last of those acknowledged.
    fack: Option<Sent>,
    pub(super) reordering_seen: bool,
    /// The packets sent last of those delivered, the last one first.
    delivered: [Option<Packet>; DUP_THRESH],
    dsack_round: Option<Tsn>,
    pub(super) reo_wnd_mult: u32,
    reo_wnd_persist: u32,
    pub(super) recovering: Recovering,
    /// Chunks that were found lost last.
    marked: VecDeque<Tsn>,
    pub(super) wait: Wait,
    /// The last SACK has acknowledged a chunk of the path.
    pub(super) progress: bool,
    pub(super) probe: Option<Probe>,
    /// The round-trip time was measured since the last probe.
    pub(super) sampled: bool,
    pub(super) repaired: Option<Tsn>,
}

impl Path {
    pub(super) const fn new() -> Self {
        Self {
            segment: None,
            rtt: Duration::ZERO,
            min_rtt: MinRtt { since: Time::ZERO, recent: None, older: None },
            fack: None,
            reordering_seen: false,
            delivered: [None; DUP_THRESH],
            dsack_round: None,
            reo_wnd_mult: 1,
            reo_wnd_persist: PERSIST,
            recovering: Recovering::No,
            marked: VecDeque::new(),
            wait: Wait::Nothing,
            progress: false,
            probe: None,
            sampled: false,
            repaired: None,
        }
    }

    /// Steps 1 and 2 (RFC 8985 6.2) for the chunks of a SACK on this path, which is `id`.
    pub(super) fn update(&mut self, sack: &SackView<'_>, path: &PathTimes) {
        let before = self.fack;
        let mut last: Option<(Sent, Duration)> = None;
        for c in sack.acked.iter().filter(|c| c.path == path.id) {
            self.progress = true;
            let sent = Sent { at: c.sent, tsn: c.tsn };
            let rtt = sack.now.since(c.sent);
            if c.transmissions == 1 {
                self.min_rtt.add(sack.now, rtt);
                self.sampled = true;
            } else if path.spurious_timeout || self.is_ambiguous(sack, c, rtt) {
                // It was found lost, and its original was only late.
                self.reordering_seen |= self.marked.contains(&c.tsn);
                continue;
            }
            if last.is_none_or(|(l, _)| sent.is_after(l)) {
                last = Some((sent, rtt));
            }
            self.count(sent, c.bytes, path.max_chunk);
            // Step 3. Chunks of one SACK have an order of TSNs, not one of arrival.
            match before {
                Some(fack) if c.transmissions == 1 && fack.is_after(sent) => {
                    self.reordering_seen = true;
                }
                _ => {}
            }
            if self.fack.is_none_or(|fack| sent.is_after(fack)) {
                self.fack = Some(sent);
            }
        }
        if let Some((sent, rtt)) = last {
            self.rtt = rtt;
            if self.segment.is_none_or(|segment| sent.is_after(segment)) {
                self.segment = Some(sent);
            }
        }
    }

    /// RFC 8985 6.2, step 2: whether the acknowledgement of a chunk that was retransmitted may be
    /// for an earlier transmission.
    pub(super) fn is_ambiguous(&self, sack: &SackView<'_>, c: &AckedChunk, rtt: Duration) -> bool {
        sack.cause.sent.is_some_and(|echo| echo.is_before(c.sent))
            || self.min_rtt.get().is_none_or(|min| rtt < min)
    }

    /// Adds a delivered chunk to the packets delivered.
    pub(super) fn count(&mut self, sent: Sent, bytes: u32, max_chunk: u32) {
        let Some(at) = self.delivered.iter().position(|p| p.is_none_or(|p| sent.is_after(p.last)))
        else {
            return;
        };
        if let Some(p) = &mut self.delivered[at]
            && p.last.at == sent.at
            && p.last.tsn.next() == sent.tsn
            && p.bytes + bytes <= max_chunk
        {
            *p = Packet { last: sent, bytes: p.bytes + bytes };
            return;
        }
        self.delivered[at..].rotate_right(1);
        self.delivered[at] = Some(Packet { last: sent, bytes });
    }

    /// Step 4 (RFC 8985 6.2), its first part: RACK.reo_wnd_mult.
    pub(super) fn adapt(&mut self, sack: &SackView<'_>, path: &PathTimes) {
        let exits = self.recovering != Recovering::No && path.recovering == Recovering::No;
        self.recovering = path.recovering;
        if self.dsack_round.is_some_and(|round| !sack.cumulative.is_before(round)) {
            self.dsack_round = None;
        }
        let spurious = sack.duplicates.iter().any(|tsn| self.marked.contains(tsn));
        // The original was only late. Step 3 sees that no more once the chunk is retransmitted; as
        // long as no reordering is known, each chunk that is late by three packets would begin a
        // recovery, so that none could be undone. Linux draws the same conclusion.
        self.reordering_seen |= spurious;
        if self.dsack_round.is_none() && spurious {
            self.dsack_round = Some(path.next_tsn);
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = PERSIST;
        } else if exits {
            self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
            if self.reo_wnd_persist == 0 {
                self.reo_wnd_mult = 1;
            }
        }
    }

    /// Step 4, its second part: RACK.reo_wnd for a chunk.
    pub(super) fn reo_wnd(&self, sent: Sent, path: &PathTimes) -> Duration {
        let third = self.delivered[DUP_THRESH - 1];
        let many = third.is_some_and(|p| p.last.is_after(sent));
        if !self.reordering_seen && (path.recovering != Recovering::No || many) {
            return Duration::ZERO;
        }
        let min_rtt = self.min_rtt.get().unwrap_or(self.rtt);
        let window = min_rtt.saturating_mul(self.reo_wnd_mult) / 4;
        path.srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// The chunk is lost.
    pub(super) fn mark(&mut self, tsn: Tsn) {
        self.probe = self.probe.filter(|probe| probe.sent.tsn != tsn);
        if self.marked.len() == MOST_MARKED {
            self.marked.pop_front();
        }
        self.marked.push_back(tsn);
    }

    /// When RACK concludes that the chunk is lost, if one that was sent later has been delivered
    /// (RFC 8985 6.2, step 5).
    pub(super) fn lost_at(&self, sent: Sent, path: &PathTimes) -> Option<Time> {
        let evidence = self.segment.is_some_and(|segment| segment.is_after(sent));
        evidence.then(|| sent.at + self.rtt + self.reo_wnd(sent, path))
    }

    /// TLP_process_ack (RFC 8985 7.4.2).
    pub(super) fn check_probe(&mut self, sack: &SackView<'_>, id: PathId) {
        let Some(probe) = &mut self.probe else { return };
        let here = sack.acked.iter().filter(|c| c.path == id);
        let (mut acked, mut later) = (probe.acked, false);
        for c in here {
            acked |= c.tsn == probe.sent.tsn;
            later |= Sent { at: c.sent, tsn: c.tsn }.is_after(probe.sent);
        }
        probe.acked = acked;
        if !acked {
            return;
        }
        if !probe.retransmission || sack.duplicates.contains(&probe.sent.tsn) {
            // New data was delivered, or both the original and the probe were.
            self.probe = None;
        } else if later {
            // "the sender should presume that at least one of its data segments was lost".
            self.repaired = Some(probe.sent.tsn);
            self.probe = None;
        }
    }

    /// TLP_calc_PTO (RFC 8985 7.2).
    pub(super) fn schedule_probe(&mut self, path: &PathTimes, ack_delay: Duration) {
        self.wait = Wait::Nothing;
        if path.in_flight == 0 || path.recovering == Recovering::Timeout {
            return;
        }
        let pto = match path.srtt {
            Some(srtt) if path.in_flight <= path.max_chunk => srtt * 2 + ack_delay,
            Some(srtt) => srtt * 2,
            None => FIRST_PTO,
        };
        let at = path.now + pto;
        self.wait = Wait::Probe(path.t3.map_or(at, |t3| t3.min(at)));
    }
}
