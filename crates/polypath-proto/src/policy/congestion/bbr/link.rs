//! A bottleneck with a queue, random loss and a sender under BBR, for the tests.

use std::collections::VecDeque;
use std::time::Duration;

use super::{BBR, Bbr, Model};
use crate::ids::PathId;
use crate::policy::congestion::PathTable;
use crate::policy::congestion::testing::Drill;
use crate::rng::{Rng, Seed};
use crate::time::Time;

/// Bytes of a packet's chunk.
pub(super) const CHUNK: u64 = 1468;

/// The sender and the bottleneck.
pub(super) struct Link {
    pub(super) drill: Drill<Bbr>,
    /// Bytes per second.
    pub(super) rate: u64,
    /// The round-trip time without a queue.
    pub(super) rtt: Duration,
    /// Bytes.
    pub(super) queue: u64,
    /// Per thousand packets.
    pub(super) loss: u64,
    /// Acknowledgements arrive at multiples of this time, if it is not zero.
    pub(super) aggregation: Duration,
    /// Bytes per second that the application sends; `None` if it always has data.
    pub(super) application: Option<u64>,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Largest queue since it was last reset, in bytes.
    pub(super) longest_queue: u64,
    rng: Rng,
    /// When the link has sent all that is queued.
    busy_until: Time,
    /// When each packet in flight is acknowledged; `None` if it is lost.
    flight: VecDeque<Option<Time>>,
    /// Packets that leave the flight before the recovery is over.
    recovery: Option<usize>,
    /// When the application has its next packet.
    next_data: Time,
}

impl Link {
    /// A link of `mbit` Mbit/s with a queue of `bdp` bandwidth-delay products.
    pub(super) fn new(mbit: u64, rtt: Duration, bdp: f64) -> Self {
        let rate = mbit * 125_000;
        let drill =
            Drill::new(Box::new(Bbr { initial: 10, paths: PathTable::default() }), BBR.needs);
        let now = drill.now();
        Self {
            drill,
            rate,
            rtt,
            queue: (rate as f64 * rtt.as_secs_f64() * bdp) as u64,
            loss: 0,
            aggregation: Duration::ZERO,
            application: None,
            delivered: 0,
            lost: 0,
            longest_queue: 0,
            rng: Rng::new(&Seed::from_u64(7)),
            busy_until: now,
            flight: VecDeque::new(),
            recovery: None,
            next_data: now,
        }
    }

    /// Other losses than those of the first seed.
    pub(super) fn seed(&mut self, seed: u64) {
        self.rng = Rng::new(&Seed::from_u64(seed));
    }

    pub(super) fn model(&self) -> &Model {
        self.drill.controller().paths.get(PathId(0)).expect("data was sent")
    }

    /// The bandwidth-delay product in bytes.
    pub(super) fn bdp(&self) -> u64 {
        (self.rate as f64 * self.rtt.as_secs_f64()) as u64
    }

    /// Bytes per second delivered while `self` runs for `span`.
    pub(super) fn goodput(&mut self, span: Duration) -> f64 {
        let before = self.delivered;
        self.run(span);
        (self.delivered - before) as f64 / span.as_secs_f64()
    }

    /// Runs for a time.
    pub(super) fn run(&mut self, span: Duration) {
        let end = self.drill.now() + span;
        self.run_until(end, |_| false);
    }

    /// Runs until `done`, at most until `end`; false if the time is over.
    pub(super) fn run_until(&mut self, end: Time, done: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.send_all();
            if self.drill.in_flight() > 0 && done(self) {
                return true;
            }
            let ack = self.flight.iter().flatten().next().copied();
            let paced = self.drill.next_release();
            let data = self.application.map(|_| self.next_data);
            let waiting = if self.has_data() { paced } else { data };
            let Some(next) = [ack, waiting].into_iter().flatten().min() else {
                return false;
            };
            if next > end {
                self.drill.advance_to(end);
                return false;
            }
            self.drill.advance_to(next);
            if ack == Some(next) {
                self.acknowledge();
            }
        }
    }

    fn has_data(&self) -> bool {
        self.application.is_none() || self.next_data <= self.drill.now()
    }

    fn send_all(&mut self) {
        while self.drill.may_send() {
            if !self.has_data() {
                self.drill.run_dry();
                return;
            }
            if let Some(rate) = self.application {
                let gap = Duration::from_nanos(CHUNK * 1_000_000_000 / rate);
                self.next_data = self.next_data.max(self.drill.now()) + gap;
            }
            self.drill.send();
            let now = self.drill.now();
            let backlog = self.busy_until.since(now).as_secs_f64() * self.rate as f64;
            if backlog as u64 + CHUNK > self.queue.max(2 * CHUNK)
                || self.rng.below(1000) < self.loss
            {
                self.flight.push_back(None);
                self.lost += CHUNK;
                continue;
            }
            self.longest_queue = self.longest_queue.max(backlog as u64);
            let takes = Duration::from_nanos(CHUNK * 1_000_000_000 / self.rate);
            self.busy_until = self.busy_until.max(now) + takes;
            let mut at = self.busy_until + self.rtt;
            if let Some(slots) = at.as_nanos().checked_div(self.aggregation.as_nanos() as u64) {
                at = Time::from_nanos((slots + 1) * self.aggregation.as_nanos() as u64);
            }
            self.flight.push_back(Some(at));
        }
    }

    /// The first packet that was not lost is acknowledged, which shows the losses before it.
    fn acknowledge(&mut self) {
        let losses = self.flight.iter().take_while(|at| at.is_none()).count();
        self.flight.drain(..=losses);
        if losses > 0 {
            let flight = self.flight.len() + 1;
            self.recovery.get_or_insert(flight);
            self.drill.lose(losses);
        }
        self.delivered += CHUNK;
        self.drill.ack(1);
        if let Some(left) = self.recovery {
            let left = left.saturating_sub(losses + 1);
            self.recovery = (left > 0).then_some(left);
            if left == 0 {
                self.drill.recovered();
            }
        }
    }
}
