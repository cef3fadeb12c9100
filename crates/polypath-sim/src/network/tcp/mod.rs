//! TCP flows that compete with the associations: long-lived transfers without a handshake, whose
//! packets have numbers but no bytes.

mod receiver;
mod sender;
mod window;

use std::time::Duration;

use polypath_proto::Time;

use super::departures;
use super::event::Event;
use super::queue::EventQueue;
use super::topology::LinkId;
use crate::link::{Link, Ticket, Verdict};
use receiver::{Ack, Receiver};
use sender::Sender;
pub use window::TcpCongestion;

/// A flow, as the scenario describes it.
#[derive(Clone, Debug)]
pub(crate) struct TcpPlan {
    pub(crate) name: String,
    /// Links of the data's route, and of the acknowledgements' route.
    pub(crate) ways: [Vec<LinkId>; 2],
    /// Bytes of a packet with data, headers included.
    pub(crate) size: u32,
    /// The receive window, in segments.
    pub(crate) window: u64,
    pub(crate) start: Time,
    pub(crate) congestion: TcpCongestion,
}

impl TcpPlan {
    /// Bytes of the IP and TCP headers.
    pub(crate) const HEADERS: u32 = 40;
}

/// What a flow has achieved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Progress {
    pub(crate) start: Time,
    pub(crate) bytes_delivered: u64,
    pub(crate) segments_sent: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) srtt: Option<Duration>,
}

#[derive(Debug)]
struct Flow {
    plan: TcpPlan,
    sender: Sender,
    receiver: Receiver,
    /// Time of its earliest timer event in the queue.
    armed: Option<Time>,
}

/// A packet under way.
#[derive(Clone, Copy, Debug)]
struct Packet {
    flow: u32,
    /// Index of its current link on the way.
    hop: u32,
    content: Content,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    Data(u64),
    Ack(Ack),
}

/// All flows.
#[derive(Debug, Default)]
pub(super) struct Tcp {
    flows: Vec<Flow>,
    packets: Vec<Packet>,
    free: Vec<u32>,
    /// Number of its events in the queue.
    waiting: usize,
}

/// The links and the queue that the packets need.
pub(super) struct Wires<'a> {
    pub(super) links: &'a mut [Link],
    pub(super) events: &'a mut EventQueue<Event>,
    /// Links in whose queues packets wait since the event began.
    pub(super) waits: &'a mut Vec<LinkId>,
}

impl Tcp {
    /// Starts the flows, each at its time.
    pub(super) fn start(&mut self, plans: Vec<TcpPlan>, events: &mut EventQueue<Event>) {
        for plan in plans {
            let start = plan.start;
            let sender = Sender::new(plan.congestion, plan.window);
            let flow = self.flows.len() as u32;
            self.flows.push(Flow {
                plan,
                sender,
                receiver: Receiver::default(),
                armed: Some(start),
            });
            self.waiting += 1;
            events.schedule(start, Event::TcpTimer { flow });
        }
    }

    /// Number of its events in the queue.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// A timer of a flow may have expired, or the flow begins.
    pub(super) fn timer(&mut self, now: Time, flow: u32, wires: &mut Wires<'_>) {
        self.waiting -= 1;
        let one = &mut self.flows[flow as usize];
        if one.armed == Some(now) {
            one.armed = None;
        }
        one.sender.expire(now);
        if let Some(ack) = one.receiver.expire(now) {
            self.send(now, Packet { flow, hop: 0, content: Content::Ack(ack) }, wires);
        }
        self.fill(now, flow, wires);
    }

    /// A packet reaches the end of a link.
    pub(super) fn arrive(&mut self, now: Time, id: u32, ticket: Ticket, wires: &mut Wires<'_>) {
        self.waiting -= 1;
        let packet = self.packets[id as usize];
        self.free.push(id);
        let (way, size) = self.route(&packet);
        let link = way[packet.hop as usize];
        let goes_on = packet.hop as usize + 1 < way.len();
        if !wires.links[link.index()].arrive_background(ticket, size) {
            return;
        }
        if goes_on {
            return self.send(now, Packet { hop: packet.hop + 1, ..packet }, wires);
        }
        let one = &mut self.flows[packet.flow as usize];
        match packet.content {
            Content::Data(number) => {
                if let Some(ack) = one.receiver.receive(now, number) {
                    let content = Content::Ack(ack);
                    self.send(now, Packet { flow: packet.flow, hop: 0, content }, wires);
                }
            }
            Content::Ack(ack) => one.sender.acknowledge(now, &ack),
        }
        self.fill(now, packet.flow, wires);
    }

    /// Sends what the window of a flow allows, and sets its timer.
    fn fill(&mut self, now: Time, flow: u32, wires: &mut Wires<'_>) {
        while let Some(number) = self.flows[flow as usize].sender.next(now) {
            self.send(now, Packet { flow, hop: 0, content: Content::Data(number) }, wires);
        }
        let one = &mut self.flows[flow as usize];
        let due = one.sender.due().into_iter().chain(one.receiver.due()).min();
        // A timer that was set back expires in vain, and is set again then.
        if let Some(due) = due.filter(|due| one.armed.is_none_or(|armed| *due < armed)) {
            one.armed = Some(due);
            self.waiting += 1;
            wires.events.schedule(due, Event::TcpTimer { flow });
        }
    }

    fn route(&self, packet: &Packet) -> (&[LinkId], u32) {
        let plan = &self.flows[packet.flow as usize].plan;
        match packet.content {
            Content::Data(_) => (&plan.ways[0], plan.size),
            Content::Ack(ack) => (&plan.ways[1], ack.size()),
        }
    }

    fn send(&mut self, now: Time, packet: Packet, wires: &mut Wires<'_>) {
        let (way, size) = self.route(&packet);
        let on = way[packet.hop as usize];
        let back = matches!(packet.content, Content::Ack(_));
        let id = self.keep(packet);
        let origin = departures::segment(id, packet.flow, back);
        let verdict = wires.links[on.index()].offer_background(now, size, origin);
        self.settle(id, on, verdict, wires.events);
        if verdict == Verdict::Wait {
            wires.waits.push(on);
        }
    }

    fn keep(&mut self, packet: Packet) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.packets[id as usize] = packet;
                id
            }
            None => {
                self.packets.push(packet);
                self.packets.len() as u32 - 1
            }
        }
    }

    /// Schedules the arrival of a packet that a link transmits.
    pub(super) fn settle(
        &mut self,
        id: u32,
        on: LinkId,
        verdict: Verdict,
        events: &mut EventQueue<Event>,
    ) {
        let (arrival, duplicate) = match verdict {
            Verdict::Deliver { arrival, duplicate } => (arrival, duplicate),
            Verdict::Drop(_) => return self.free.push(id),
            Verdict::Wait => return,
        };
        let copy = duplicate.then(|| self.keep(self.packets[id as usize]));
        for segment in std::iter::once(id).chain(copy) {
            self.waiting += 1;
            let event = Event::Segment { segment, ticket: arrival.ticket };
            events.schedule_in(on.index(), arrival.at, event);
        }
    }

    /// Names of the flows, and what they have achieved.
    pub(super) fn progress(&self) -> impl Iterator<Item = (&str, Progress)> {
        self.flows.iter().map(|flow| {
            let payload = u64::from(flow.plan.size - TcpPlan::HEADERS);
            let progress = Progress {
                start: flow.plan.start,
                bytes_delivered: flow.receiver.delivered() * payload,
                segments_sent: flow.sender.sent,
                retransmissions: flow.sender.retransmissions,
                timeouts: flow.sender.timeouts,
                srtt: flow.sender.srtt(),
            };
            (flow.plan.name.as_str(), progress)
        })
    }
}
