//! One direction of a wire: transmission rate, propagation delay, a drop-tail queue in front, and
//! what can go wrong on it.
//!
//! A [`Link`] has no clock, no sockets and no event queue: [`Link::offer`] says when, and how
//! often, a packet arrives, and the driver (simulator or emulator) hands it over at that time. The
//! departures stay implicit, so a packet costs one event. What follows from that: a changed rate
//! or delay applies to packets offered afterwards; what is queued keeps its arrival time.

mod config;
mod counters;
mod loss;
mod script;

use std::collections::VecDeque;
use std::time::Duration;

use polypath_proto::Time;

pub use config::{LinkConfig, Reordering};
pub use counters::LinkCounters;
pub use loss::LossModel;
pub use script::{LossScript, PacketKind};

use crate::random::Random;
use crate::units::{QueueLimit, Rate};

/// What becomes of a packet that was offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It arrives, and perhaps a copy of it too, unless the link goes down before.
    Deliver {
        /// The packet.
        arrival: Arrival,
        /// The copy, made at the far end at the same time.
        duplicate: bool,
    },
    /// It does not arrive.
    Drop(DropReason),
}

/// The arrival of a packet at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// To be shown to [`Link::arrive`] then.
    pub ticket: Ticket,
    /// The bit of the payload behind the headers that arrives inverted, counted from its first bit,
    /// if any.
    pub inverted_bit: Option<u32>,
    /// Congestion was experienced: the queue was long.
    pub marked: bool,
}

/// What a packet's IP header allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allows {
    /// It may be fragmented. Its fragments travel together, and share its fate.
    pub fragments: bool,
    /// It may be marked, rather than lost later (ECT, RFC 3168).
    pub mark: bool,
}

/// Tells whether the link stayed up since a packet was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The link is down.
    Down,
    /// The packet is larger than the MTU.
    Mtu,
    /// The loss model took it.
    Loss,
    /// The queue is full.
    Queue,
}

impl DropReason {
    /// In words, for traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "dropped: link down",
            Self::Mtu => "dropped: larger than the MTU",
            Self::Loss => "dropped: lost",
            Self::Queue => "dropped: queue full",
        }
    }
}

impl Verdict {
    /// What is special about it, in words, for traces; empty if nothing is.
    pub const fn comment(&self) -> &'static str {
        match self {
            Self::Drop(reason) => reason.as_str(),
            Self::Deliver { arrival, .. } if arrival.inverted_bit.is_some() => {
                "arrives with an inverted bit"
            }
            Self::Deliver { duplicate: true, .. } => "arrives twice",
            Self::Deliver { .. } => "",
        }
    }
}

/// One stream for each thing that can happen, so that none shifts the others' dice.
#[derive(Clone, Debug)]
struct Dice {
    loss: Random,
    reorder: Random,
    duplicate: Random,
    corrupt: Random,
}

/// A one-directional link at work.
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    loss: loss::LossProcess,
    dice: Dice,
    up: bool,
    /// Rises with every outage: packets of an earlier epoch are lost.
    epoch: u32,
    /// When the transmitter has sent all that was accepted.
    busy_until: Time,
    /// Packets that wait: when each begins to be transmitted, and its size.
    waiting: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
    counters: LinkCounters,
    background: LinkCounters,
}

impl Link {
    /// A link that is up and idle. `name` and the run's root seed `seed` determine its dice.
    pub fn new(config: LinkConfig, seed: u64, name: &str) -> Self {
        let dice = |what: &str| Random::named(seed, &format!("link:{name}/{what}"));
        Self {
            loss: loss::LossProcess::new(config.loss.clone()),
            dice: Dice {
                loss: dice("loss"),
                reorder: dice("reorder"),
                duplicate: dice("duplicate"),
                corrupt: dice("corrupt"),
            },
            config,
            up: true,
            epoch: 0,
            busy_until: Time::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            counters: LinkCounters::default(),
            background: LinkCounters::default(),
        }
    }

    /// A packet of `size` bytes, of which `payload` are the last (what is in front is IP and UDP),
    /// wants to cross at `now`, which never goes backwards between calls.
    #[inline]
    pub fn offer(&mut self, now: Time, size: u32, payload: &[u8]) -> Verdict {
        self.offer_as(now, size, payload, Allows::default())
    }

    /// [`offer`](Self::offer) for a packet with other bits in its IP header.
    #[inline]
    pub fn offer_as(&mut self, now: Time, size: u32, payload: &[u8], allows: Allows) -> Verdict {
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(size);
        // All dice are thrown for every packet, so that its fate depends on its number alone.
        let lost = self.loss.loses_next(&mut self.dice.loss, payload);
        let held_up = self.roll_reorder();
        let p = self.config.duplicate.get();
        let duplicate = p > 0.0 && self.dice.duplicate.chance(p);
        let inverted_bit = self.roll_corruption(payload.len());
        if !self.up {
            self.counters.lost_outage += 1;
            return Verdict::Drop(DropReason::Down);
        }
        if self.config.mtu.is_some_and(|mtu| size > mtu) && !allows.fragments {
            self.counters.dropped_mtu += 1;
            return Verdict::Drop(DropReason::Mtu);
        }
        if lost {
            self.counters.lost += 1;
            return Verdict::Drop(DropReason::Loss);
        }
        let marked = allows.mark && self.is_congested(now);
        let Some(sent) = self.enqueue(now, size) else {
            self.counters.dropped_queue += 1;
            return Verdict::Drop(DropReason::Queue);
        };
        self.counters.in_flight += 1 + u64::from(duplicate);
        self.counters.duplicated += u64::from(duplicate);
        self.counters.reordered += u64::from(held_up.is_some());
        self.counters.corrupted += u64::from(inverted_bit.is_some());
        let at = sent + self.config.delay + held_up.unwrap_or_default();
        Verdict::Deliver {
            arrival: Arrival { at, ticket: Ticket(self.epoch), inverted_bit, marked },
            duplicate,
        }
    }

    /// A packet of background traffic, which has a size and nothing else, wants to cross.
    #[inline]
    pub fn offer_background(&mut self, now: Time, size: u32) -> Verdict {
        let before = self.counters;
        let verdict = self.offer(now, size, &[]);
        self.background.add_change(&before, &self.counters);
        verdict
    }

    fn is_congested(&mut self, now: Time) -> bool {
        let Some(limit) = self.config.mark_at else { return false };
        self.forget_departed(now);
        self.waiting.len() >= limit as usize
    }

    /// When the last bit has been sent; `None` if the queue has no room.
    fn enqueue(&mut self, now: Time, size: u32) -> Option<Time> {
        self.forget_departed(now);
        let start = if self.busy_until > now {
            let room = match self.config.queue {
                QueueLimit::Packets(limit) => self.waiting.len() < limit as usize,
                QueueLimit::Bytes(limit) => self.waiting_bytes + u64::from(size) <= limit,
                QueueLimit::Unlimited => true,
            };
            if !room {
                return None;
            }
            self.waiting.push_back((self.busy_until, size));
            self.waiting_bytes += u64::from(size);
            self.busy_until
        } else {
            now
        };
        let transmission =
            self.config.rate.map_or(Duration::ZERO, |rate| rate.time_for(size.into()));
        self.busy_until = start + transmission;
        Some(self.busy_until)
    }

    fn forget_departed(&mut self, now: Time) {
        while let Some(&(start, size)) = self.waiting.front()
            && start <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(size);
        }
    }

    fn roll_reorder(&mut self) -> Option<Duration> {
        let reorder = self.config.reorder?;
        let dice = &mut self.dice.reorder;
        let hit = dice.chance(reorder.probability.get());
        hit.then(|| Duration::from_nanos(dice.between(0, reorder.delay.0)))
    }

    fn roll_corruption(&mut self, payload: usize) -> Option<u32> {
        let p = self.config.corrupt.get();
        if p == 0.0 {
            return None;
        }
        let (hit, place) = (self.dice.corrupt.chance(p), self.dice.corrupt.bits());
        let bits = payload as u64 * 8;
        (hit && bits > 0).then(|| (place % bits) as u32)
    }

    /// A packet of `size` bytes reaches the far end: true if it really does, false if the link
    /// went down since it was offered. To be called once for every arrival and every copy.
    #[inline]
    pub fn arrive(&mut self, ticket: Ticket, size: u32) -> bool {
        if ticket.0 != self.epoch {
            return false;
        }
        self.counters.in_flight -= 1;
        self.counters.delivered += 1;
        self.counters.delivered_bytes += u64::from(size);
        true
    }

    /// [`arrive`](Self::arrive) for a packet of background traffic.
    #[inline]
    pub fn arrive_background(&mut self, ticket: Ticket, size: u32) -> bool {
        let before = self.counters;
        let arrives = self.arrive(ticket, size);
        self.background.add_change(&before, &self.counters);
        arrives
    }

    /// The link breaks: what is queued and on the wire is lost, and so is all until
    /// [`set_up`](Self::set_up).
    pub fn set_down(&mut self, now: Time) {
        self.up = false;
        self.epoch = self.epoch.wrapping_add(1);
        for counters in [&mut self.counters, &mut self.background] {
            counters.lost_outage += counters.in_flight;
            counters.in_flight = 0;
        }
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.busy_until = now;
    }

    /// The link works again.
    pub fn set_up(&mut self) {
        self.up = true;
    }

    /// Whether the link works.
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Another rate for packets offered from now on.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.config.rate = rate;
    }

    /// Another propagation delay for packets offered from now on. If it is shorter, they may
    /// overtake earlier ones, as on a path that was rerouted.
    pub fn set_delay(&mut self, delay: Duration) {
        self.config.delay = delay;
    }

    /// Another loss model for packets offered from now on.
    pub fn set_loss(&mut self, loss: LossModel) {
        self.loss.set(loss.clone());
        self.config.loss = loss;
    }

    /// Another MTU for packets offered from now on; `None` for none.
    pub const fn set_mtu(&mut self, mtu: Option<u32>) {
        self.config.mtu = mtu;
    }

    /// What the link is like now.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// What went in and what became of it.
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// The part of [`counters`](Self::counters) that background packets have.
    pub const fn background(&self) -> &LinkCounters {
        &self.background
    }

    /// Packets and bytes that wait for transmission at `now`.
    pub fn waiting(&mut self, now: Time) -> (usize, u64) {
        self.forget_departed(now);
        (self.waiting.len(), self.waiting_bytes)
    }
}

#[cfg(test)]
mod tests;
