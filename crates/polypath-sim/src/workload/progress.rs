//! Times of sending and delivery in one direction, and its gaps.

use std::collections::BTreeMap;
use std::time::Duration;

use polypath_proto::Time;

use super::ledger::Arrival;

/// A time without newly delivered data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) start: Time,
    pub(crate) length: Duration,
}

/// Times and counts of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Time of the application's first send.
    pub(crate) first_send: Option<Time>,
    /// Time at which the first DATA chunk was sent.
    pub(crate) first_data: Option<Time>,
    pub(crate) first_delivered: Option<Time>,
    pub(crate) last_delivered: Option<Time>,
    pub(crate) messages_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) messages_delivered: u64,
    /// Messages that the sender abandoned and that were not delivered.
    pub(crate) messages_abandoned: u64,
    pub(crate) bytes_delivered: u64,
    pub(crate) longest_gap: Option<Gap>,
    pub(crate) blackouts: Vec<Gap>,
    threshold: Duration,
    timed: Option<Box<Timed>>,
}

/// The times that messages take.
#[derive(Clone, Debug, Default)]
struct Timed {
    /// When the application sent the messages that are under way, by their numbers.
    sent: BTreeMap<u64, Time>,
    took: Vec<Duration>,
}

impl Progress {
    /// Lists gaps of at least `threshold` as blackouts; 0 lists none.
    pub(crate) const fn new(threshold: Duration) -> Self {
        Self {
            first_send: None,
            first_data: None,
            first_delivered: None,
            last_delivered: None,
            messages_sent: 0,
            bytes_sent: 0,
            messages_delivered: 0,
            messages_abandoned: 0,
            bytes_delivered: 0,
            longest_gap: None,
            blackouts: Vec::new(),
            threshold,
            timed: None,
        }
    }

    /// Measures from now on how long each message takes to its delivery.
    pub(crate) fn time_messages(&mut self) {
        self.timed = Some(Box::default());
    }

    /// The application sends the message with this number.
    pub(crate) fn begun(&mut self, now: Time, number: u64) {
        if let Some(timed) = &mut self.timed {
            timed.sent.insert(number, now);
        }
    }

    /// The times from the sending of messages to their delivery, in ascending order.
    pub(crate) fn delivery_times(&self) -> Vec<Duration> {
        let mut times = self.timed.as_ref().map(|timed| timed.took.clone()).unwrap_or_default();
        times.sort_unstable();
        times
    }

    pub(crate) fn sent(&mut self, now: Time, bytes: u32) {
        self.first_send.get_or_insert(now);
        self.messages_sent += 1;
        self.bytes_sent += u64::from(bytes);
    }

    /// Counts an abandoned message if it is missing, that is, has not arrived.
    pub(crate) fn given_up(&mut self, missing: bool) {
        self.messages_abandoned += u64::from(missing);
    }

    pub(crate) fn delivered(&mut self, now: Time, bytes: usize, arrival: Arrival) {
        self.gap_until(now);
        self.first_delivered.get_or_insert(now);
        self.last_delivered = Some(now);
        self.messages_delivered += u64::from(arrival.complete.is_some());
        self.messages_abandoned -= u64::from(arrival.complete.is_some() && arrival.given_up);
        self.bytes_delivered += bytes as u64;
        if let (Some(timed), Some(message)) = (&mut self.timed, arrival.complete)
            && let Some(sent) = timed.sent.remove(&message.number)
        {
            timed.took.push(now.since(sent));
        }
    }

    /// The run has ended although data is missing: the last gap lasts until now.
    pub(crate) fn broken_off(&mut self, now: Time) {
        self.gap_until(now);
    }

    fn gap_until(&mut self, now: Time) {
        let Some(start) = self.last_delivered.or(self.first_data) else { return };
        let gap = Gap { start, length: now.since(start) };
        if self.longest_gap.is_none_or(|longest| gap.length > longest.length) {
            self.longest_gap = Some(gap);
        }
        if gap.length >= self.threshold && !self.threshold.is_zero() {
            self.blackouts.push(gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::source::Planned;

    #[test]
    fn the_longest_gap_and_the_list() {
        let mut progress = Progress::new(Duration::from_secs(1));
        progress.sent(Time::ZERO, 10);
        progress.first_data = Some(Time::ZERO);
        let reliability = polypath_proto::Reliability::Reliable;
        let message = Planned { number: 0, stream: 0, size: 1, unordered: false, reliability };
        for millis in [100, 200, 1500, 1600, 1601, 5000] {
            let arrival = Arrival { complete: Some(message), given_up: false };
            progress.delivered(Time::from_millis(millis), 1, arrival);
        }
        let longest = progress.longest_gap.unwrap();
        assert_eq!((longest.start, longest.length.as_millis()), (Time::from_millis(1601), 3399));
        assert_eq!(progress.blackouts.len(), 2);
        assert_eq!(progress.messages_delivered, 6);
    }
}
