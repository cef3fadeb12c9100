//! Background packets under way: one event per packet and link. They have no bytes, so they need no
//! buffer: a packet is identified by its source and by its current link on the source's route.
//! Captures do not show them.

use polypath_proto::Time;

use super::traffic::Source;
use super::{Event, Network};
use crate::link::{Ticket, Verdict};

/// All sources of background traffic, and the number of their events in the queue.
#[derive(Debug, Default)]
pub(super) struct Background {
    sources: Vec<Source>,
    waiting: usize,
}

impl Network<'_> {
    /// Starts the sources, each at its configured time.
    pub(crate) fn start_traffic(&mut self, sources: Vec<Source>) {
        self.background.sources = sources;
        for source in 0..self.background.sources.len() {
            let start = self.background.sources[source].plan.start;
            self.schedule_emission(start, source as u32);
        }
    }

    /// Whether only events of background traffic, which never ends, are left.
    pub(crate) fn is_idle(&self) -> bool {
        self.events.len() == self.background.waiting
    }

    /// A source sends a packet.
    pub(crate) fn emit(&mut self, now: Time, source: u32) {
        self.background.waiting -= 1;
        self.offer_background(now, source, 0);
        self.schedule_emission(now, source);
    }

    /// A background packet reaches the end of the n-th link of its route.
    pub(crate) fn arrive_background(&mut self, now: Time, source: u32, hop: u32, ticket: Ticket) {
        self.background.waiting -= 1;
        let plan = &self.background.sources[source as usize].plan;
        let link = plan.way[hop as usize];
        let goes_on = hop as usize + 1 < plan.way.len();
        if self.links[link.index()].arrive_background(ticket, plan.size) && goes_on {
            self.offer_background(now, source, hop + 1);
        }
    }

    fn offer_background(&mut self, now: Time, source: u32, hop: u32) {
        let plan = &self.background.sources[source as usize].plan;
        let link = &mut self.links[plan.way[hop as usize].index()];
        let verdict = link.offer_background(now, plan.size);
        if let Verdict::Deliver { arrival, duplicate } = verdict {
            let event = Event::Background { source, hop, ticket: arrival.ticket };
            for _ in 0..=u32::from(duplicate) {
                self.background.waiting += 1;
                self.events.schedule(arrival.at, event);
            }
        }
    }

    fn schedule_emission(&mut self, after: Time, source: u32) {
        let gap = self.background.sources[source as usize].next_gap();
        self.background.waiting += 1;
        self.events.schedule(after + gap, Event::Emission { source });
    }
}
