//! Background packets under way: one event per packet and link. They have no bytes, so they need no
//! buffer: a packet is identified by its source and by its current link on the source's route.
//! Captures do not show them.

use polypath_proto::Time;

use super::departures;
use super::event::Event;
use super::queue::EventQueue;
use super::topology::LinkId;
use super::traffic::Source;
use crate::link::{Link, Ticket, Verdict};

/// All sources of background traffic, and the number of their events in the queue.
#[derive(Debug, Default)]
pub(super) struct Background {
    sources: Vec<Source>,
    waiting: usize,
}

impl Background {
    /// Starts the sources, each at its configured time.
    pub(super) fn start(&mut self, sources: Vec<Source>, events: &mut EventQueue<Event>) {
        self.sources = sources;
        for source in 0..self.sources.len() {
            let start = self.sources[source].plan.start;
            self.schedule_emission(start, source as u32, events);
        }
    }

    /// Number of its events in the queue.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// A source sends a packet. Returns the link in whose queue it waits, if its fate is not known.
    pub(super) fn emit(
        &mut self,
        now: Time,
        source: u32,
        links: &mut [Link],
        events: &mut EventQueue<Event>,
    ) -> Option<LinkId> {
        self.waiting -= 1;
        let waits = self.offer(now, source, 0, links, events);
        self.schedule_emission(now, source, events);
        waits
    }

    /// A packet reaches the end of the n-th link of its route. Returns the link in whose queue it
    /// waits, if its fate is not known.
    pub(super) fn arrive(
        &mut self,
        now: Time,
        source: u32,
        hop: u32,
        ticket: Ticket,
        links: &mut [Link],
        events: &mut EventQueue<Event>,
    ) -> Option<LinkId> {
        self.waiting -= 1;
        let plan = &self.sources[source as usize].plan;
        let link = plan.way[hop as usize];
        let goes_on = hop as usize + 1 < plan.way.len();
        if links[link.index()].arrive_background(ticket, plan.size) && goes_on {
            return self.offer(now, source, hop + 1, links, events);
        }
        None
    }

    fn offer(
        &mut self,
        now: Time,
        source: u32,
        hop: u32,
        links: &mut [Link],
        events: &mut EventQueue<Event>,
    ) -> Option<LinkId> {
        let plan = &self.sources[source as usize].plan;
        let (on, size) = (plan.way[hop as usize], plan.size);
        let origin = departures::background(source, hop);
        let verdict = links[on.index()].offer_background(now, size, origin);
        self.settle(source, hop, on.index(), verdict, events);
        (verdict == Verdict::Wait).then_some(on)
    }

    /// Schedules the arrival of a packet that a link transmits.
    pub(super) fn settle(
        &mut self,
        source: u32,
        hop: u32,
        link: usize,
        verdict: Verdict,
        events: &mut EventQueue<Event>,
    ) {
        if let Verdict::Deliver { arrival, duplicate } = verdict {
            let event = Event::Background { source, hop, ticket: arrival.ticket };
            for _ in 0..=u32::from(duplicate) {
                self.waiting += 1;
                events.schedule_in(link, arrival.at, event);
            }
        }
    }

    fn schedule_emission(&mut self, after: Time, source: u32, events: &mut EventQueue<Event>) {
        let gap = self.sources[source as usize].next_gap();
        self.waiting += 1;
        events.schedule(after + gap, Event::Emission { source });
    }
}
