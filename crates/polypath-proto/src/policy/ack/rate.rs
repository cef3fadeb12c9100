//! SACKs by the rate of the data and the round-trip time: for every second packet at low rates, and
//! about 32 per round trip at high rates.
//!
//! RFC 9260 6.2: "an acknowledgement SHOULD be generated for at least every second packet". At 1
//! Gbit/s that is 40 000 SACKs a second, of which the sender needs only a few each round trip:
//! Landström and Larzon, "Reducing the TCP Acknowledgment Frequency" (2007), find that two to four
//! per window suffice if the sender counts bytes. This policy keeps eight times as many, so that
//! loss detection and pacing have a sample every three hundredths of a round trip, and sends a SACK
//! after an eighth of a round trip at the latest. A SACK is sent at once if it is the first to
//! report a gap, or if the peer asks for it; further packets above a known gap do not hurry it (RFC
//! 9260 6.7 has one for each packet, for senders that count missing reports: use it with a detector
//! that does not, such as `rack`).
//!
//! Without a measurement of the round-trip time the policy acts like
//! [`delayed`](super::delayed).

use std::time::Duration;

use super::delayed::Replies;
use super::{AckPolicy, AckTime, Arrival};
use crate::ids::PathId;
use crate::path::PathsView;
use crate::policy::entry::Entry;
use crate::time::Time;

/// See the [module](self).
pub static RATE: Entry<dyn AckPolicy> = Entry::new(
    "rate",
    "a SACK for every second packet, but about 32 per round trip at high rates, at once on \
              a new gap (Landström 2007)",
    |setup| {
        Box::new(Rate {
            every: setup.constants.sack_every(),
            delay: setup.constants.sack_delay(),
            first_at_once: setup.constants.first_sack_at_once(),
            replies: Replies::default(),
            round: None,
            packets: 0,
            last: 0,
        })
    },
);

/// SACKs per round trip at high rates.
const PER_ROUND: u32 = 32;

/// Most packets that one SACK acknowledges: the packets of a buffer that the driver sends at once
/// arrive together.
const MOST: u32 = 64;

/// Longest wait at high rates: the round-trip time of the handshake may include retransmissions.
const LONGEST: Duration = Duration::from_millis(25);

#[derive(Debug)]
struct Rate {
    every: u32,
    delay: Duration,
    first_at_once: bool,
    replies: Replies,
    /// When the current round trip began.
    round: Option<Time>,
    /// Packets with DATA in the current round trip and in the one before.
    packets: u32,
    last: u32,
}

impl Rate {
    /// Counts a packet; returns the packets that one SACK acknowledges.
    fn count(&mut self, now: Time, rtt: Duration) -> u32 {
        let begun = *self.round.get_or_insert(now);
        let age = now.since(begun);
        if age >= rtt {
            // A pause of a round trip or longer ends the high rate.
            self.last = if age < 2 * rtt { self.packets } else { 0 };
            (self.packets, self.round) = (0, Some(now));
        }
        self.packets = self.packets.saturating_add(1);
        let most = MOST.max(self.every);
        (self.last.max(self.packets) / PER_ROUND).clamp(self.every, most)
    }
}

impl AckPolicy for Rate {
    fn when(&mut self, arrival: &Arrival) -> AckTime {
        self.replies.arrived(arrival);
        let (every, wait) = match arrival.rtt.filter(|rtt| !rtt.is_zero()) {
            Some(rtt) => {
                let every = self.count(arrival.now, rtt);
                let wait = if every > self.every { (rtt / 8).min(LONGEST) } else { self.delay };
                (every, wait.min(self.delay))
            }
            None => (self.every, self.delay),
        };
        let known = every > self.every && !arrival.new_gap;
        if (arrival.gap && !known)
            || arrival.duplicate
            || arrival.immediate
            || arrival.dropped
            || (arrival.first && self.first_at_once)
            || arrival.packets >= every
            || self.delay.is_zero()
        {
            AckTime::Now
        } else {
            AckTime::Within(wait)
        }
    }

    fn path(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        self.replies.path(last, paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const US: fn(u64) -> Duration = Duration::from_micros;
    const RTT: Duration = Duration::from_millis(20);

    /// The SACKs for `n` packets that arrive at this interval: the number of the packet after which
    /// each was sent.
    fn sacks(n: u64, interval: Duration, rtt: Option<Duration>, gap: bool) -> Vec<u64> {
        let mut policy = RATE.make(&Config::rfc9260().setup());
        let (mut packets, mut due, mut sent) = (0, None, Vec::new());
        for i in 0..n {
            let now = Time::ZERO + interval * i as u32;
            if due.is_some_and(|due| due <= now) {
                (packets, due) = (0, None);
                sent.push(i);
            }
            packets += 1;
            let arrival = Arrival {
                now,
                packets,
                rtt,
                gap,
                new_gap: gap && i == 1000,
                first: i == 0,
                ..Arrival::default()
            };
            match policy.when(&arrival) {
                AckTime::Now => {
                    (packets, due) = (0, None);
                    sent.push(i);
                }
                AckTime::Within(wait) => due = due.or(Some(now + wait)),
                other => panic!("{other:?}"),
            }
        }
        sent
    }

    /// RFC 9260 6.2 at low rates, and without a round-trip time.
    #[test]
    fn every_second_packet_at_low_rates() {
        for rtt in [Some(RTT), None] {
            assert_eq!(sacks(101, US(1000), rtt, false).len(), 1 + 50);
        }
        assert_eq!(sacks(2001, US(12), None, false).len(), 1 + 1000);
    }

    /// 1 Gbit/s: 83 packets a millisecond, 1667 a round trip; at least eight SACKs a round trip.
    #[test]
    fn about_thirty_sacks_a_round_trip_at_high_rates() {
        let sent = sacks(20_000, US(12), Some(RTT), false);
        let late = sent.iter().filter(|&&i| i >= 2 * 1667).count();
        let rounds = (20_000 - 2 * 1667) / 1667;
        assert!((8 * rounds..=40 * rounds).contains(&late), "{late} in {rounds} round trips");
    }

    /// Packets above a known gap do not hurry a SACK, a new gap does.
    #[test]
    fn only_a_new_gap_is_reported_at_once() {
        let sent = sacks(3000, US(12), Some(RTT), true);
        assert!(sent.contains(&1000));
        assert!(sent.iter().filter(|&&i| i >= 1500).count() < 1500 / 20, "{}", sent.len());
        assert_eq!(sacks(100, US(2000), Some(RTT), true).len(), 100, "RFC 9260 6.7 at low rates");
    }
}
