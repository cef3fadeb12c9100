//! Links with the rate of a recording, in the format of Mahimahi's traces (Netravali et al., 2015).
//!
//! A trace is a list of milliseconds, one for each chance to send 1504 bytes, and is repeated for
//! ever: its last entry is its length. A chance that finds the queue empty is lost. A packet may
//! need several chances, and several packets may share one.

use std::sync::Arc;

use polypath_proto::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of one chance: the largest packet of a TUN device, with its header of 4 bytes.
const CHANCE: u32 = 1504;

/// Most entries of a trace: an hour at 30 Mbit/s.
const MOST: usize = 10_000_000;

/// A trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace(Arc<[u64]>);

impl RateTrace {
    /// A trace of these milliseconds.
    ///
    /// # Errors
    /// It is empty or too long, the times decrease, or the last one is 0.
    pub fn new(times: Vec<u64>) -> Result<Self, String> {
        if times.len() > MOST {
            return Err(format!("found {} entries; allowed: at most {MOST}", times.len()));
        }
        if let Some(at) = (1..times.len()).find(|&at| times[at] < times[at - 1]) {
            let (before, after) = (times[at - 1], times[at]);
            return Err(format!("entry {} is {after}, after {before}; allowed: ascending", at + 1));
        }
        match times.last() {
            None => Err("found no entry; allowed: at least one millisecond".to_owned()),
            Some(0) => Err("the last entry is 0; allowed: above 0, the length".to_owned()),
            Some(last) if *last > u64::from(u32::MAX) => {
                Err(format!("the last entry is {last}; allowed: up to {}", u32::MAX))
            }
            Some(_) => Ok(Self(times.into())),
        }
    }

    /// Reads the text of a trace: one millisecond in each line.
    ///
    /// # Errors
    /// As [`new`](Self::new), or a line is no number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let number = |(at, line): (usize, &str)| {
            let line = line.trim();
            let shown: String = line.chars().take(20).collect();
            line.parse().map_err(|_| format!("line {}: \"{shown}\" is no millisecond", at + 1))
        };
        Self::new(lines.map(number).collect::<Result<_, _>>()?)
    }

    /// The milliseconds.
    pub fn times(&self) -> &[u64] {
        &self.0
    }

    /// Time of the n-th chance, counted from 0 over all repetitions.
    fn at(&self, n: u64) -> Time {
        let (len, length) = (self.0.len() as u64, self.length());
        Time::from_millis(n / len * length + self.0[(n % len) as usize])
    }

    /// Number of the first chance at or after a time.
    fn first_from(&self, time: Time) -> u64 {
        let ms = time.since(Time::ZERO).as_nanos().div_ceil(1_000_000) as u64;
        // A chance at the end of a repetition is as late as one at the start of the next.
        let (round, within) = match (ms / self.length(), ms % self.length()) {
            (round, 0) if round > 0 => (round - 1, self.length()),
            other => other,
        };
        let before = self.0.partition_point(|&at| at < within) as u64;
        round * self.0.len() as u64 + before
    }

    /// Number of chances from one time up to another; 0 if that is earlier.
    pub(super) fn chances(&self, from: Time, to: Time) -> u64 {
        self.first_from(to).saturating_sub(self.first_from(from))
    }

    /// Milliseconds of one repetition.
    fn length(&self) -> u64 {
        self.0.last().copied().unwrap_or(1)
    }
}

impl Serialize for RateTrace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.times())
    }
}

impl<'de> Deserialize<'de> for RateTrace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The transmitter of a link with a trace.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    /// Number of the chance that the next packet is sent with, if it has not passed by then.
    chance: u64,
    /// Bytes of it that are left.
    left: u32,
}

impl Default for Transmitter {
    fn default() -> Self {
        Self { chance: 0, left: CHANCE }
    }
}

impl Transmitter {
    /// Time at which a packet of `size` bytes has been sent that is offered at `now` and follows
    /// the last one.
    pub(super) fn send(&mut self, trace: &RateTrace, now: Time, size: u32) -> Time {
        let first = trace.first_from(now);
        if self.chance < first {
            // The rest of a chance that has passed is lost.
            *self = Self { chance: first, left: CHANCE };
        }
        let mut size = size;
        while size > self.left {
            size -= self.left;
            *self = Self { chance: self.chance + 1, left: CHANCE };
        }
        let at = trace.at(self.chance);
        self.left -= size;
        if self.left == 0 {
            *self = Self { chance: self.chance + 1, left: CHANCE };
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(trace: &[u64], packets: &[(u64, u32)]) -> Vec<u64> {
        let trace = RateTrace::new(trace.to_vec()).unwrap();
        let mut transmitter = Transmitter::default();
        let ms = |time: Time| time.since(Time::ZERO).as_millis() as u64;
        let one =
            |&(at, size): &(u64, u32)| ms(transmitter.send(&trace, Time::from_millis(at), size));
        packets.iter().map(one).collect()
    }

    #[test]
    fn each_chance_sends_one_large_packet_or_several_small_ones() {
        let queued = [(0, 1504), (0, 1504), (0, 752), (0, 752), (0, 1504)];
        assert_eq!(sent(&[3, 5, 5, 9], &queued), [3, 5, 5, 5, 9]);
        // A packet that is larger than what is left is sent with the next chance, too.
        assert_eq!(sent(&[3, 5, 5, 9], &[(0, 1000), (0, 1000), (0, 1000)]), [3, 5, 5]);
        assert_eq!(sent(&[10], &[(0, 3008)]), [20]);
    }

    #[test]
    fn the_trace_is_repeated_and_unused_chances_are_lost() {
        assert_eq!(sent(&[2, 10], &[(0, 1504); 5]), [2, 10, 12, 20, 22]);
        assert_eq!(sent(&[2, 10], &[(3, 1504), (3, 1504), (34, 100), (34, 100)]), [10, 12, 40, 40]);
        // Half of the chance at 2 ms has passed when the second packet comes.
        assert_eq!(sent(&[2, 10], &[(0, 752), (3, 752), (10, 752)]), [2, 10, 10]);
        // A chance at 0 is one of the end of each repetition, too.
        assert_eq!(sent(&[0, 5, 10], &[(0, 1504); 6]), [0, 5, 10, 10, 15, 20]);
        assert_eq!(sent(&[0, 5, 10], &[(10, 1504); 3]), [10, 10, 15]);
    }

    /// Over a whole number of repetitions, as many packets are sent as there are chances.
    #[test]
    fn the_mean_rate_is_that_of_the_trace() {
        let trace: Vec<u64> = (0..100)
            .map(|n| n * n % 97)
            .scan(0, |at, step| {
                *at += step;
                Some(*at)
            })
            .collect();
        let packets = vec![(0, CHANCE); 1000];
        assert_eq!(sent(&trace, &packets).last(), Some(&(10 * trace[99])));
    }

    #[test]
    fn what_is_no_trace_says_why() {
        let parsed = RateTrace::parse("1\n\n 2 \n2\n").unwrap();
        assert_eq!(parsed.times(), [1, 2, 2]);
        for (text, why) in [
            ("", "found no entry; allowed: at least one millisecond"),
            ("0\n0", "the last entry is 0; allowed: above 0, the length"),
            ("1\nx y", "line 2: \"x y\" is no millisecond"),
            ("-1", "line 1: \"-1\" is no millisecond"),
            ("5\n4", "entry 2 is 4, after 5; allowed: ascending"),
            ("4294967296", "the last entry is 4294967296; allowed: up to 4294967295"),
        ] {
            assert_eq!(RateTrace::parse(text).unwrap_err(), why);
        }
    }
}
