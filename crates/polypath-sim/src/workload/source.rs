//! Messages of an application, one after the other.

use std::time::Duration;

use polypath_proto::Reliability;

use crate::random::Random;
use crate::scenario::{SizeRange, Workload, WorkloadKind};
use crate::units::{Probability, Size};

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// Number in its flow, counted from 0.
    pub(crate) number: u64,
    pub(crate) stream: u16,
    pub(crate) size: u32,
    pub(crate) unordered: bool,
    pub(crate) reliability: Reliability,
}

/// Size that fills the payload of a DATA chunk in a packet of 1500 bytes over IPv4.
const DEFAULT_MESSAGE: SizeRange = SizeRange::fixed(Size(1452));

/// The messages of one direction, in the order in which they are sent.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    left: Left,
    sizes: SizeRange,
    streams: u16,
    unordered: f64,
    limit: Option<Limit>,
    unreliable: f64,
    next_number: u64,
    /// Number of messages that may be sent now; later ones wait for time to pass or for the peer.
    credit: u64,
    /// A message for which the send buffer had no room.
    pending: Option<Planned>,
    /// Time between messages of a periodic source.
    interval: Option<Duration>,
    dice: Random,
}

/// Limit after which messages are abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Same(Reliability),
    Priorities(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Bytes(u64),
    Messages(u64),
}

impl Source {
    /// The messages that the workload sends forward (or back). With "request-reply", requests are
    /// sent forward and replies back.
    pub(crate) fn new(workload: &Workload, forward: bool, dice: Random) -> Self {
        let direction = workload.direction();
        let used = if forward { direction.is_forward() } else { direction.is_back() };
        let messages = workload.messages.map(Left::Messages);
        let left = match (used, workload.size) {
            (false, _) => Left::Messages(0),
            (true, Some(size)) => Left::Bytes(size.0),
            (true, None) => messages.unwrap_or(Left::Messages(0)),
        };
        let credit = match (workload.kind, forward) {
            (WorkloadKind::Bulk, _) => u64::MAX,
            (WorkloadKind::Periodic, _) | (WorkloadKind::RequestReply, true) => 1,
            (WorkloadKind::RequestReply, false) => 0,
        };
        let lifetime = workload.lifetime.map(|l| Limit::Same(Reliability::Lifetime(l.duration())));
        let retransmissions =
            workload.retransmissions.map(|n| Limit::Same(Reliability::Retransmissions(n)));
        let priorities = workload.priorities.map(Limit::Priorities);
        let sizes = if forward { None } else { workload.reply_size };
        let clock = workload.kind == WorkloadKind::Periodic;
        Self {
            left,
            sizes: sizes.or(workload.message_size).unwrap_or(DEFAULT_MESSAGE),
            streams: workload.streams.unwrap_or(1),
            unordered: workload.unordered.unwrap_or_default().get(),
            limit: lifetime.or(retransmissions).or(priorities),
            unreliable: workload.unreliable.unwrap_or(Probability::ONE).get(),
            next_number: 0,
            credit,
            pending: None,
            interval: workload.interval.filter(|_| clock).map(|i| i.duration()),
            dice,
        }
    }

    /// The next message, if one may be sent now.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Planned> {
        if let Some(planned) = self.pending.take() {
            return Some(planned);
        }
        if self.credit == 0 || self.left_nothing() {
            return None;
        }
        self.credit -= 1;
        let (min, max) = (self.sizes.min.0, self.sizes.max.0);
        let mut size = if min == max { min } else { self.dice.between(min, max) };
        match &mut self.left {
            Left::Bytes(left) => {
                size = size.min(*left);
                *left -= size;
            }
            Left::Messages(left) => *left -= 1,
        }
        let number = self.next_number;
        self.next_number += 1;
        let unordered = self.unordered > 0.0 && self.dice.chance(self.unordered);
        let stream = (number % u64::from(self.streams)) as u16;
        let reliability = self.reliability();
        Some(Planned { number, stream, size: size as u32, unordered, reliability })
    }

    /// Reliability of one message. A source whose messages are all reliable draws no random number
    /// for it.
    fn reliability(&mut self) -> Reliability {
        match self.limit {
            Some(limit) if self.dice.chance(self.unreliable) => match limit {
                Limit::Same(reliability) => reliability,
                Limit::Priorities(n) => Reliability::Priority(self.dice.below(n.into()) as u32),
            },
            _ => Reliability::Reliable,
        }
    }

    /// Keeps a message that could not be sent yet.
    pub(crate) fn put_back(&mut self, planned: Planned) {
        self.pending = Some(planned);
    }

    /// Allows one more message.
    pub(crate) fn allow_one(&mut self) {
        self.credit = self.credit.saturating_add(1);
    }

    /// Time between messages of a periodic source, as long as there are messages that time has to
    /// allow.
    pub(crate) fn ticks(&self) -> Option<Duration> {
        let all_allowed = match self.left {
            Left::Bytes(left) => left == 0,
            Left::Messages(left) => left <= self.credit,
        };
        self.interval.filter(|_| !all_allowed)
    }

    fn left_nothing(&self) -> bool {
        matches!(self.left, Left::Bytes(0) | Left::Messages(0))
    }

    /// Whether every message has been handed to the association.
    pub(crate) fn is_finished(&self) -> bool {
        self.pending.is_none() && self.left_nothing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(workload: &Workload, forward: bool) -> Source {
        Source::new(workload, forward, Random::named(1, "workload"))
    }

    #[test]
    fn bulk_sends_exactly_its_bytes() {
        let mut workload = Workload::bulk(Size(10_000));
        workload.streams = Some(3);
        let mut bulk = source(&workload, true);
        let sent: Vec<Planned> = std::iter::from_fn(|| bulk.next()).collect();
        assert_eq!(sent.iter().map(|p| p.size).sum::<u32>(), 10_000);
        assert_eq!(sent.last().unwrap().size, 10_000 - 6 * 1452);
        assert_eq!(sent.iter().map(|p| p.stream).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
        assert!(bulk.is_finished() && source(&workload, false).is_finished());
    }

    #[test]
    fn the_clock_stops_once_every_message_is_allowed() {
        let interval = Some("1 s".parse().unwrap());
        let kind = WorkloadKind::Periodic;
        let mut periodic =
            source(&Workload { kind, interval, messages: Some(3), ..Workload::default() }, true);
        let first = periodic.next().unwrap();
        periodic.put_back(first);
        for _ in 0..2 {
            assert_eq!(periodic.ticks(), Some(Duration::from_secs(1)));
            periodic.allow_one();
        }
        assert_eq!(periodic.ticks(), None);
        assert_eq!(std::iter::from_fn(|| periodic.next()).count(), 3);
    }

    #[test]
    fn some_messages_may_be_given_up() {
        let workload = Workload {
            messages: Some(1000),
            priorities: Some(3),
            unreliable: Some(Probability::percent(40)),
            ..Workload::default()
        };
        let mut some = source(&workload, true);
        let mut counts = [0; 4];
        while let Some(planned) = some.next() {
            counts[match planned.reliability {
                Reliability::Priority(p) => p as usize,
                other => {
                    assert_eq!(other, Reliability::Reliable);
                    3
                }
            }] += 1;
        }
        assert!(counts[..3].iter().all(|n| (80..200).contains(n)), "{counts:?}");
        let workload = Workload { priorities: None, unreliable: None, ..workload };
        let limited = Workload { retransmissions: Some(2), ..workload };
        let all = source(&limited, true).next().map(|p| p.reliability);
        assert_eq!(all, Some(Reliability::Retransmissions(2)));
    }

    #[test]
    fn replies_wait_for_requests() {
        let workload = Workload {
            kind: WorkloadKind::RequestReply,
            messages: Some(2),
            unordered: Some(Probability::ONE),
            reply_size: Some("1 B .. 10 B".parse().unwrap()),
            ..Workload::default()
        };
        let mut requests = source(&workload, true);
        assert!(requests.next().is_some_and(|p| p.unordered && p.size == 1452));
        assert_eq!(requests.next(), None);
        let mut replies = source(&workload, false);
        assert_eq!(replies.next(), None);
        replies.allow_one();
        let reply = replies.next().unwrap();
        assert!((1..=10).contains(&reply.size));
        replies.put_back(reply);
        assert!(!replies.is_finished());
        assert_eq!(replies.next(), Some(reply));
    }
}
