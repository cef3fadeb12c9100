//! One direction of a link: transmission rate, propagation delay, a queue in front, and impairments
//! such as loss.
//!
//! A [`Link`] has no clock, no sockets and no event queue: [`Link::offer`] returns when, and how
//! often, a packet arrives, and the driver (simulator or emulator) delivers it at that time.
//! Departures from a drop-tail queue are implicit, so a packet costs one event. As a consequence, a
//! changed rate or delay applies only to packets offered afterwards; queued packets keep their
//! arrival times.
//!
//! A queue under CoDel decides when packets leave it. Its packets wait ([`Verdict::Wait`]), and the
//! driver calls [`Link::depart`] at the time that [`Link::departure`] returns.

mod codel;
mod config;
mod counters;
mod loss;
mod managed;
mod middlebox;
mod policer;
mod rate_trace;
mod red;
mod script;

use std::collections::VecDeque;
use std::time::Duration;

use polypath_proto::Time;

pub use config::{Codel, LinkConfig, Policer, Red, Reordering};
pub use counters::LinkCounters;
pub use loss::LossModel;
pub use middlebox::Middlebox;
pub use rate_trace::RateTrace;
pub use script::{LossScript, PacketKind};

use crate::random::{Random, derive};
use crate::units::{QueueLimit, Rate};
use codel::Waiting;

/// The largest packet of a queue that knows none.
const ETHERNET_MTU: u32 = 1500;

/// Outcome of offering a packet to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet arrives, and perhaps a copy of it too, unless the link goes down before.
    Deliver {
        /// Arrival of the packet.
        arrival: Arrival,
        /// Whether a copy, made at the far end, arrives at the same time.
        duplicate: bool,
    },
    /// The packet does not arrive.
    Drop(DropReason),
    /// The packet waits in a queue under active management, which decides its fate when it leaves.
    Wait,
}

/// The arrival of a packet at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of the arrival.
    pub at: Time,
    /// Ticket to pass to [`Link::arrive`] at that time.
    pub ticket: Ticket,
    /// Bit of the payload that arrives inverted, counted from the payload's first bit; `None` if
    /// the payload arrives intact.
    pub inverted_bit: Option<u32>,
    /// Whether the link marks the packet with congestion experienced, because the queue was long.
    pub marked: bool,
    /// Whether a middlebox has cleared the packet's ECN field.
    pub cleared: bool,
}

/// Treatment that a packet's IP header allows the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allows {
    /// The packet may be fragmented. The link treats all its fragments as one packet.
    pub fragments: bool,
    /// The packet may be marked with congestion experienced (ECT, RFC 3168).
    pub mark: bool,
}

/// What a queue under active management knows about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The packet's flow: addresses and ports, as a number.
    pub flow: u64,
    /// The driver's name for the packet, which [`Link::depart`] returns.
    pub id: u64,
    /// It is background traffic.
    pub background: bool,
}

/// Shows whether the link stayed up since a packet was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

/// Reason why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The link is down.
    Down,
    /// The packet is larger than the MTU.
    Mtu,
    /// The loss model dropped the packet.
    Loss,
    /// The queue is full.
    Queue,
    /// The queue has been long: random early detection or CoDel.
    Early,
    /// The policer's bucket is empty.
    Policer,
    /// A middlebox does not let it pass.
    Middlebox,
}

impl DropReason {
    /// The reason in words, for traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "dropped: link down",
            Self::Mtu => "dropped: larger than the MTU",
            Self::Loss => "dropped: lost",
            Self::Queue => "dropped: queue full",
            Self::Early => "dropped: early",
            Self::Policer => "dropped: beyond the policer's rate",
            Self::Middlebox => "dropped: by a middlebox",
        }
    }
}

impl Verdict {
    /// A note on anything unusual about the packet's fate, for traces; empty otherwise.
    pub const fn comment(&self) -> &'static str {
        match self {
            Self::Drop(reason) => reason.as_str(),
            Self::Deliver { arrival, .. } if arrival.inverted_bit.is_some() => {
                "arrives with an inverted bit"
            }
            Self::Deliver { duplicate: true, .. } => "arrives twice",
            Self::Deliver { .. } | Self::Wait => "",
        }
    }
}

/// One random stream for each impairment, so that none changes the draws of another.
#[derive(Clone, Debug)]
struct Dice {
    loss: Random,
    reorder: Random,
    duplicate: Random,
    corrupt: Random,
    red: Random,
}

/// A one-directional link with its state.
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    loss: loss::LossProcess,
    bucket: policer::Bucket,
    detector: red::Detector,
    /// The packets that wait under CoDel; `waiting` is empty then.
    managed: Option<managed::Managed>,
    /// Of a link with a trace.
    transmitter: rate_trace::Transmitter,
    dice: Dice,
    up: bool,
    /// Increases with every outage: packets of an earlier epoch are lost.
    epoch: u32,
    /// When the transmitter will have sent all accepted packets.
    busy_until: Time,
    /// Size of the last packet in bytes, and its time of transmission at the current rate: most
    /// packets of a direction have one size, and divisions are slow.
    last: (u32, Duration),
    /// Queued packets: the start of transmission and the size in bytes of each.
    waiting: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
    counters: LinkCounters,
    background: LinkCounters,
}

impl Link {
    /// A link that is up and idle. `name` and the run's root seed `seed` determine its random
    /// streams.
    pub fn new(config: LinkConfig, seed: u64, name: &str) -> Self {
        let dice = |what: &str| Random::named(seed, &format!("link:{name}/{what}"));
        Self {
            loss: loss::LossProcess::new(config.loss.clone()),
            bucket: policer::Bucket::default(),
            detector: red::Detector::default(),
            managed: config.codel.map(|codel| {
                let (mtu, salt) = (config.mtu.unwrap_or(ETHERNET_MTU), derive(seed, name));
                managed::Managed::new(codel, config.queue, mtu, salt)
            }),
            transmitter: rate_trace::Transmitter::default(),
            dice: Dice {
                loss: dice("loss"),
                reorder: dice("reorder"),
                duplicate: dice("duplicate"),
                corrupt: dice("corrupt"),
                red: dice("red"),
            },
            config,
            up: true,
            epoch: 0,
            busy_until: Time::ZERO,
            last: (0, Duration::ZERO),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            counters: LinkCounters::default(),
            background: LinkCounters::default(),
        }
    }

    /// Offers a packet of `size` bytes at `now`, which must not decrease between calls. `payload`
    /// is the part of the packet after the IP and UDP headers.
    #[inline]
    pub fn offer(&mut self, now: Time, size: u32, payload: &[u8]) -> Verdict {
        self.offer_as(now, size, payload, Allows::default(), Origin::default())
    }

    /// [`offer`](Self::offer) for a packet whose IP header allows more, or that may wait. `origin`
    /// is not read unless the queue is under active management.
    #[inline]
    pub fn offer_as(
        &mut self,
        now: Time,
        size: u32,
        payload: &[u8],
        mut allows: Allows,
        origin: Origin,
    ) -> Verdict {
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(size);
        // Make the same draws for every packet, so that its fate depends on its number alone.
        let lost = self.loss.loses_next(&mut self.dice.loss, payload);
        let held_up = self.roll_reorder();
        let p = self.config.duplicate.get();
        let duplicate = p > 0.0 && self.dice.duplicate.chance(p);
        let inverted_bit = self.roll_corruption(payload.len());
        if !self.up {
            self.counters.lost_outage += 1;
            return Verdict::Drop(DropReason::Down);
        }
        let mut cleared = false;
        if let Some(middlebox) = self.config.middlebox {
            if !self.passes(middlebox, payload) {
                return Verdict::Drop(DropReason::Middlebox);
            }
            cleared = middlebox.clear_ecn;
            allows.mark &= !middlebox.clear_ecn;
            allows.fragments &= !middlebox.drop_fragments;
        }
        if self.config.mtu.is_some_and(|mtu| size > mtu) && !allows.fragments {
            self.counters.dropped_mtu += 1;
            return Verdict::Drop(DropReason::Mtu);
        }
        if lost {
            self.counters.lost += 1;
            return Verdict::Drop(DropReason::Loss);
        }
        if self.config.policer.is_some_and(|policer| !self.bucket.takes(now, size, &policer)) {
            self.counters.dropped_queue += 1;
            return Verdict::Drop(DropReason::Policer);
        }
        let early = match self.config.red {
            Some(red) => self.detect(now, size, &red),
            None => red::Fate::Pass,
        };
        if early == red::Fate::Drop || (early == red::Fate::Mark && !allows.mark) {
            self.counters.dropped_queue += 1;
            return Verdict::Drop(DropReason::Early);
        }
        let marked = early == red::Fate::Mark || (allows.mark && self.is_congested(now));
        let packet = Waiting {
            id: origin.id,
            size,
            since: now,
            epoch: self.epoch,
            background: origin.background,
            may_mark: allows.mark,
            marked,
            cleared,
            held_up,
            duplicate,
            inverted_bit,
            full: false,
        };
        if self.managed.is_some() {
            return self.wait(now, origin.flow, packet);
        }
        let Some(sent) = self.enqueue(now, size) else {
            self.counters.dropped_queue += 1;
            return Verdict::Drop(DropReason::Queue);
        };
        self.counters.in_flight += 1;
        self.deliver(sent, &packet)
    }

    /// Whether a middlebox lets a packet pass.
    #[cold]
    #[inline(never)]
    fn passes(&mut self, middlebox: Middlebox, payload: &[u8]) -> bool {
        let passes = !(middlebox.drop_extensions && middlebox::has_extension(payload));
        self.counters.dropped_middlebox += u64::from(!passes);
        passes
    }

    /// A packet of those in flight that leaves the transmitter at `sent`. Inlined, so that a packet
    /// that does not wait is never written to memory.
    #[inline(always)]
    fn deliver(&mut self, sent: Time, packet: &Waiting) -> Verdict {
        let &Waiting { held_up, duplicate, inverted_bit, marked, cleared, .. } = packet;
        self.counters.in_flight += u64::from(duplicate);
        self.counters.duplicated += u64::from(duplicate);
        self.counters.reordered += u64::from(held_up.is_some());
        self.counters.corrupted += u64::from(inverted_bit.is_some());
        let at = sent + self.config.delay + held_up.unwrap_or_default();
        Verdict::Deliver {
            arrival: Arrival { at, ticket: Ticket(packet.epoch), inverted_bit, marked, cleared },
            duplicate,
        }
    }

    /// A packet comes to a queue under active management, and leaves at once if nothing is before
    /// it.
    fn wait(&mut self, now: Time, flow: u64, packet: Waiting) -> Verdict {
        let Some(managed) = &mut self.managed else { return Verdict::Wait };
        let idle = self.busy_until <= now && managed.waiting().0 == 0;
        if !managed.enqueue(flow, packet, idle) {
            self.counters.dropped_queue += 1;
            return Verdict::Drop(DropReason::Queue);
        }
        self.counters.in_flight += 1;
        if idle && let Some(packet) = managed.dequeue(now) {
            let sent = self.transmit(now, now, packet.size);
            return self.deliver(sent, &packet);
        }
        Verdict::Wait
    }

    /// Time from `now` on of the next call of [`depart`](Self::depart); `None` if nothing waits
    /// under active management.
    #[inline]
    pub fn departure(&self, now: Time) -> Option<Time> {
        let waits = self.managed.as_ref().is_some_and(|managed| !managed.is_empty());
        waits.then_some(self.busy_until.max(now))
    }

    /// A packet whose fate is decided at `now`, by the `id` of its [`Origin`]: it was dropped, or
    /// it leaves the queue. To be called until it returns `None`.
    pub fn depart(&mut self, now: Time) -> Option<(u64, Verdict)> {
        let managed = self.managed.as_mut()?;
        let before = self.counters;
        let (packet, verdict) = if let Some(packet) = managed.fetch_dropped() {
            (packet, self.give_up(&packet))
        } else if self.busy_until <= now
            && let Some(packet) = managed.dequeue(now)
        {
            let sent = self.transmit(now, now, packet.size);
            (packet, self.deliver(sent, &packet))
        } else {
            return None;
        };
        if packet.background {
            self.background.add_change(&before, &self.counters);
        }
        Some((packet.id, verdict))
    }

    /// A packet left its queue without being transmitted.
    fn give_up(&mut self, packet: &Waiting) -> Verdict {
        if packet.epoch != self.epoch {
            // It was counted when the link went down.
            return Verdict::Drop(DropReason::Down);
        }
        self.counters.in_flight -= 1;
        self.counters.dropped_queue += 1;
        Verdict::Drop(if packet.full { DropReason::Queue } else { DropReason::Early })
    }

    /// Offers a packet of background traffic, which has a size but no contents.
    #[inline]
    pub fn offer_background(&mut self, now: Time, size: u32, origin: Origin) -> Verdict {
        let before = self.counters;
        let verdict = self.offer_as(now, size, &[], Allows::default(), origin);
        self.background.add_change(&before, &self.counters);
        verdict
    }

    /// Random early detection for a packet that is offered to the queue.
    fn detect(&mut self, now: Time, size: u32, red: &Red) -> red::Fate {
        self.forget_departed(now);
        let idle = now.since(self.busy_until);
        let idle = match (&self.config.trace, self.config.rate) {
            (Some(trace), _) => trace.chances(self.busy_until, now),
            (None, Some(rate)) => (idle.as_nanos() / rate.time_for(size.into()).as_nanos().max(1))
                .try_into()
                .unwrap_or(u64::MAX),
            // Transmission takes no time: there is no queue.
            (None, None) => 1,
        };
        self.detector.offer(red, self.waiting.len(), idle, self.dice.red.unit())
    }

    fn is_congested(&mut self, now: Time) -> bool {
        let Some(limit) = self.config.mark_at else { return false };
        self.waiting(now).0 >= limit as usize
    }

    /// Time at which the packet's last bit will have been sent; `None` if the queue has no room.
    #[inline]
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
        Some(self.transmit(now, start, size))
    }

    /// Transmits a packet from `start`, or with the next chances of a trace after `now`; returns
    /// when its last bit has been sent.
    #[inline]
    fn transmit(&mut self, now: Time, start: Time, size: u32) -> Time {
        if let Some(trace) = &self.config.trace {
            self.busy_until = self.transmitter.send(trace, now, size);
            return self.busy_until;
        }
        if self.last.0 != size {
            let time = self.config.rate.map_or(Duration::ZERO, |rate| rate.time_for(size.into()));
            self.last = (size, time);
        }
        self.busy_until = start + self.last.1;
        self.busy_until
    }

    #[inline]
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

    /// A packet of `size` bytes reaches the far end. Returns false if the link went down since the
    /// packet was offered. Call this once for every arrival and every copy.
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

    /// Breaks the link: packets queued and on the wire are lost, and so are all packets offered
    /// until [`set_up`](Self::set_up).
    pub fn set_down(&mut self, now: Time) {
        self.up = false;
        self.epoch = self.epoch.wrapping_add(1);
        for counters in [&mut self.counters, &mut self.background] {
            counters.lost_outage += counters.in_flight;
            counters.in_flight = 0;
        }
        self.waiting.clear();
        self.waiting_bytes = 0;
        if let Some(managed) = &mut self.managed {
            managed.clear();
        }
        self.busy_until = now;
        self.transmitter = rate_trace::Transmitter::default();
    }

    /// Makes the link work again.
    pub fn set_up(&mut self) {
        self.up = true;
    }

    /// Whether the link is up.
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Changes the rate for packets offered from now on; a trace ends.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.config.trace = None;
        self.config.rate = rate;
        self.last = (0, Duration::ZERO);
    }

    /// Changes the propagation delay for packets offered from now on. If it is shorter, they may
    /// overtake earlier ones, as on a path that was rerouted.
    pub fn set_delay(&mut self, delay: Duration) {
        self.config.delay = delay;
    }

    /// Changes the loss model for packets offered from now on.
    pub fn set_loss(&mut self, loss: LossModel) {
        self.loss.set(loss.clone());
        self.config.loss = loss;
    }

    /// No loss model that is set later will be a script: the link is quicker then.
    pub(crate) fn without_scripts(&mut self) {
        self.loss.without_scripts();
    }

    /// Changes the MTU for packets offered from now on; `None` sets no limit.
    pub const fn set_mtu(&mut self, mtu: Option<u32>) {
        self.config.mtu = mtu;
    }

    /// Whether the queue is under active management, so that packets may wait.
    #[inline]
    pub const fn is_managed(&self) -> bool {
        self.managed.is_some()
    }

    /// The current configuration.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Counters of all packets.
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Counters of background packets alone, which [`counters`](Self::counters) includes.
    pub const fn background(&self) -> &LinkCounters {
        &self.background
    }

    /// Packets and bytes that wait for transmission at `now`.
    pub fn waiting(&mut self, now: Time) -> (usize, u64) {
        if let Some(managed) = &self.managed {
            return managed.waiting();
        }
        self.forget_departed(now);
        (self.waiting.len(), self.waiting_bytes)
    }
}

#[cfg(test)]
mod tests;
