//! The applications of the kinds of workload: transfers, periodic messages, requests and replies.

use std::time::Duration;

use polypath_proto::{Reliability, Time};

use crate::application::{Application, Applications, Message};
use crate::random::Random;
use crate::scenario::{Side, SizeRange, Workload, WorkloadKind};
use crate::units::{Probability, Size};

/// Size that fills the payload of a DATA chunk in a packet of 1500 bytes over IPv4.
const DEFAULT_MESSAGE: SizeRange = SizeRange::fixed(Size(1452));

/// The application of one side of a workload; `None` if the workload names one that is not among
/// `own`.
pub(crate) fn application(
    workload: &Workload,
    side: Side,
    dice: Random,
    own: &Applications,
) -> Option<Box<dyn Application>> {
    let direction = workload.direction();
    let used = match side {
        Side::Sender => direction.is_forward(),
        Side::Receiver => direction.is_back(),
    };
    if let (WorkloadKind::Application, Some(name)) = (workload.kind, &workload.application) {
        let make = own.get(name)?;
        return Some(if used { make(side, dice) } else { Box::new(Silent) });
    }
    let messages = Messages::new(workload, side, used, dice);
    let interval = workload.interval.unwrap_or_default().duration();
    Some(match (workload.kind, side) {
        (WorkloadKind::Periodic, _) => Box::new(Periodic { messages, interval, due: None }),
        (WorkloadKind::RequestReply, Side::Sender) => {
            Box::new(Requests { messages, think: interval, allowed: 1, due: None })
        }
        (WorkloadKind::RequestReply, Side::Receiver) => Box::new(Replies { messages, allowed: 0 }),
        (WorkloadKind::Bulk | WorkloadKind::Application, _) => Box::new(Bulk { messages }),
    })
}

/// Sizes, streams and reliability of the messages that are left.
#[derive(Debug)]
struct Messages {
    left: Left,
    sizes: SizeRange,
    streams: u16,
    unordered: f64,
    limit: Option<Limit>,
    unreliable: f64,
    taken: u64,
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

impl Messages {
    /// The messages of one side; none if it is not used.
    fn new(workload: &Workload, side: Side, used: bool, dice: Random) -> Self {
        let messages = workload.messages.map(Left::Messages);
        let left = match (used, workload.size) {
            (false, _) => Left::Messages(0),
            (true, Some(size)) => Left::Bytes(size.0),
            (true, None) => messages.unwrap_or(Left::Messages(0)),
        };
        let lifetime = workload.lifetime.map(|l| Limit::Same(Reliability::Lifetime(l.duration())));
        let retransmissions =
            workload.retransmissions.map(|n| Limit::Same(Reliability::Retransmissions(n)));
        let priorities = workload.priorities.map(Limit::Priorities);
        let sizes = workload.reply_size.filter(|_| side == Side::Receiver);
        Self {
            left,
            sizes: sizes.or(workload.message_size).unwrap_or(DEFAULT_MESSAGE),
            streams: workload.streams.unwrap_or(1),
            unordered: workload.unordered.unwrap_or_default().get(),
            limit: lifetime.or(retransmissions).or(priorities),
            unreliable: workload.unreliable.unwrap_or(Probability::ONE).get(),
            taken: 0,
            dice,
        }
    }

    #[inline]
    fn take(&mut self) -> Option<Message> {
        if self.is_empty() {
            return None;
        }
        let (min, max) = (self.sizes.min.0, self.sizes.max.0);
        let mut size = if min == max { min } else { self.dice.between(min, max) };
        match &mut self.left {
            Left::Bytes(left) => {
                size = size.min(*left);
                *left -= size;
            }
            Left::Messages(left) => *left -= 1,
        }
        let stream = (self.taken % u64::from(self.streams)) as u16;
        self.taken += 1;
        let unordered = self.unordered > 0.0 && self.dice.chance(self.unordered);
        let reliability = self.reliability();
        Some(Message { size: size as u32, stream, unordered, reliability })
    }

    /// Reliability of one message. If all messages are reliable, no random number is drawn for it.
    fn reliability(&mut self) -> Reliability {
        match self.limit {
            Some(limit) if self.dice.chance(self.unreliable) => match limit {
                Limit::Same(reliability) => reliability,
                Limit::Priorities(n) => Reliability::Priority(self.dice.below(n.into()) as u32),
            },
            _ => Reliability::Reliable,
        }
    }

    const fn is_empty(&self) -> bool {
        matches!(self.left, Left::Bytes(0) | Left::Messages(0))
    }
}

/// Sends nothing.
#[derive(Debug)]
struct Silent;

impl Application for Silent {
    fn next(&mut self, _: Time) -> Option<Message> {
        None
    }

    fn is_finished(&self) -> bool {
        true
    }
}

/// Sends all messages at once.
#[derive(Debug)]
struct Bulk {
    messages: Messages,
}

impl Application for Bulk {
    #[inline]
    fn next(&mut self, _: Time) -> Option<Message> {
        self.messages.take()
    }

    fn is_finished(&self) -> bool {
        self.messages.is_empty()
    }
}

/// Sends a message when it is first asked, and one after each interval.
#[derive(Debug)]
struct Periodic {
    messages: Messages,
    interval: Duration,
    /// Time of the next message; `None` before the first one.
    due: Option<Time>,
}

impl Application for Periodic {
    fn next(&mut self, now: Time) -> Option<Message> {
        let due = self.due.unwrap_or(now);
        if now < due {
            return None;
        }
        self.due = Some(due + self.interval);
        self.messages.take()
    }

    fn wakes_at(&self) -> Option<Time> {
        self.due.filter(|_| !self.messages.is_empty())
    }

    fn is_finished(&self) -> bool {
        self.messages.is_empty()
    }
}

/// Sends a request, and the next one a time after its reply.
#[derive(Debug)]
struct Requests {
    messages: Messages,
    /// Time from a reply to the next request.
    think: Duration,
    /// Number of requests that may be sent now.
    allowed: u64,
    /// Time at which one more is allowed.
    due: Option<Time>,
}

impl Application for Requests {
    fn next(&mut self, now: Time) -> Option<Message> {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.allowed += 1;
        }
        self.allowed = self.allowed.checked_sub(1)?;
        self.messages.take()
    }

    fn received(&mut self, now: Time, _: &Message) {
        if self.think.is_zero() {
            self.allowed += 1;
        } else {
            self.due = Some(now + self.think);
        }
    }

    fn wakes_at(&self) -> Option<Time> {
        self.due
    }

    fn is_finished(&self) -> bool {
        self.messages.is_empty()
    }
}

/// Replies to each message.
#[derive(Debug)]
struct Replies {
    messages: Messages,
    allowed: u64,
}

impl Application for Replies {
    fn next(&mut self, _: Time) -> Option<Message> {
        self.allowed = self.allowed.checked_sub(1)?;
        self.messages.take()
    }

    fn received(&mut self, _: Time, _: &Message) {
        self.allowed += 1;
    }

    fn is_finished(&self) -> bool {
        self.messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(workload: &Workload, side: Side) -> Box<dyn Application> {
        let dice = Random::named(1, "workload");
        application(workload, side, dice, &Applications::default()).unwrap()
    }

    fn all(application: &mut dyn Application, now: Time) -> Vec<Message> {
        std::iter::from_fn(|| application.next(now)).collect()
    }

    #[test]
    fn bulk_sends_exactly_its_bytes() {
        let mut workload = Workload::bulk(Size(10_000));
        workload.streams = Some(3);
        let mut bulk = made(&workload, Side::Sender);
        let sent = all(&mut *bulk, Time::ZERO);
        assert_eq!(sent.iter().map(|m| m.size).sum::<u32>(), 10_000);
        assert_eq!(sent.last().unwrap().size, 10_000 - 6 * 1452);
        assert_eq!(sent.iter().map(|m| m.stream).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
        assert!(bulk.is_finished() && made(&workload, Side::Receiver).is_finished());
    }

    #[test]
    fn periodic_messages_keep_their_times_even_if_some_are_late() {
        let at = Time::from_secs;
        let interval = Some("1 s".parse().unwrap());
        let kind = WorkloadKind::Periodic;
        let workload = Workload { kind, interval, messages: Some(5), ..Workload::default() };
        let mut periodic = made(&workload, Side::Sender);
        assert_eq!(periodic.wakes_at(), None);
        assert_eq!(all(&mut *periodic, at(10)).len(), 1);
        assert_eq!(periodic.wakes_at(), Some(at(11)));
        // There was no room in between: two are due.
        assert_eq!(all(&mut *periodic, at(12)).len(), 2);
        assert_eq!(periodic.wakes_at(), Some(at(13)));
        assert_eq!(all(&mut *periodic, at(14)).len(), 2);
        assert!(periodic.is_finished());
        assert_eq!(periodic.wakes_at(), None);
    }

    #[test]
    fn some_messages_may_be_given_up() {
        let workload = Workload {
            messages: Some(1000),
            priorities: Some(3),
            unreliable: Some(Probability::percent(40)),
            ..Workload::default()
        };
        let mut counts = [0; 4];
        for message in all(&mut *made(&workload, Side::Sender), Time::ZERO) {
            counts[match message.reliability {
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
        let all = made(&limited, Side::Sender).next(Time::ZERO).map(|m| m.reliability);
        assert_eq!(all, Some(Reliability::Retransmissions(2)));
    }

    #[test]
    fn replies_wait_for_requests_and_requests_for_replies() {
        let workload = Workload {
            kind: WorkloadKind::RequestReply,
            messages: Some(2),
            unordered: Some(Probability::ONE),
            reply_size: Some("1 B .. 10 B".parse().unwrap()),
            interval: Some("1 s".parse().unwrap()),
            ..Workload::default()
        };
        let at = Time::from_secs;
        let mut requests = made(&workload, Side::Sender);
        let request = requests.next(at(0)).unwrap();
        assert!(request.unordered && request.size == 1452);
        assert_eq!(requests.next(at(9)), None);
        let mut replies = made(&workload, Side::Receiver);
        assert_eq!(replies.next(at(9)), None);
        replies.received(at(9), &request);
        let reply = replies.next(at(9)).unwrap();
        assert!((1..=10).contains(&reply.size));
        assert!(!replies.is_finished());
        requests.received(at(10), &reply);
        assert_eq!((requests.next(at(10)), requests.wakes_at()), (None, Some(at(11))));
        assert!(requests.next(at(11)).is_some() && requests.is_finished());
    }
}
