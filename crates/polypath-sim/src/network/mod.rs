//! Packet forwarding: links between nodes, static routes, and the queue of all events.

mod background;
mod change;
mod departures;
mod event;
mod nat;
mod packet;
mod queue;
pub(crate) mod tcp;
mod topology;
pub mod trace;
pub(crate) mod traffic;

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use polypath_proto::{Ecn, Fragmentation, Time};

use background::Background;
pub(crate) use change::Move;
pub use change::{Change, ChangeKind};
pub(crate) use departures::Departures;
pub(crate) use event::Event;
use nat::Nat;
pub use nat::NatCounters;
pub(crate) use nat::NatReset;
pub(crate) use packet::{Packet, PacketId, PacketPool};
pub(crate) use queue::EventQueue;
pub(crate) use topology::NatPlan;
pub(crate) use topology::Routes;
pub use topology::{HostId, LinkId, LinkPlan, NatBehavior, NodeId, NodeKind, Topology};

use crate::link::{Allows, Link, LossModel, Origin, Ticket, Verdict};
use crate::pcapng::{InterfaceId, PcapNg};
use tcp::{Tcp, TcpPlan, Wires};
use trace::Tracer;
use traffic::Source;

/// All links of a run, and the packets on them.
pub(crate) struct Network<'w> {
    pub(crate) events: EventQueue<Event>,
    pub(crate) packets: PacketPool,
    pub(crate) topology: Topology,
    pub(crate) links: Vec<Link>,
    routes: Routes,
    nats: Vec<Nat>,
    /// Sort keys of all interface addresses, and of the external addresses of NATs, in ascending
    /// order.
    addresses: Vec<((bool, u128), NodeId)>,
    /// Interfaces whose host does not have their address at present.
    away: Vec<NodeId>,
    background: Background,
    tcp: Tcp,
    /// Links in whose queues packets of the current event wait; empty between events.
    waits: Vec<LinkId>,
    departures: Departures,
    capture: Option<Capture<'w>>,
    pub(crate) tracer: Option<Tracer>,
    /// Packets without a route, or whose source or destination address no host has at present.
    pub(crate) unroutable: u64,
}

struct Capture<'w> {
    file: PcapNg<&'w mut (dyn Write + Send)>,
    interfaces: Vec<InterfaceId>,
    result: io::Result<()>,
}

/// An address as a number, which compares faster than an `IpAddr`. True for IPv6.
fn sort_key(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(ip) => (false, ip.to_bits().into()),
        IpAddr::V6(ip) => (true, ip.to_bits()),
    }
}

fn inside_of(nats: &[Nat], address: SocketAddr) -> SocketAddr {
    nats.iter().find_map(|nat| nat.inside_of(address)).unwrap_or(address)
}

impl<'w> Network<'w> {
    /// The network of a run. `largest_packet` is the size of the largest SCTP packet in bytes.
    pub(crate) fn new(topology: Topology, seed: u64, largest_packet: usize) -> Self {
        let links = topology.links.iter().map(|l| Link::new(l.config.clone(), seed, &l.name));
        let mut addresses: Vec<_> = topology
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(i, kind)| match *kind {
                NodeKind::Interface { address, .. } => Some((sort_key(address), NodeId(i as u32))),
                NodeKind::Router => None,
            })
            .collect();
        for nat in &topology.nats {
            addresses.extend(nat.addresses.iter().map(|ip| (sort_key(*ip), nat.inside)));
        }
        addresses.sort_unstable();
        let nats = topology.nats.iter().map(|plan| Nat::new(plan.clone(), seed)).collect();
        Self {
            events: EventQueue::new(),
            packets: PacketPool::new(largest_packet),
            links: links.collect(),
            routes: topology.routes(),
            topology,
            nats,
            addresses,
            away: Vec::new(),
            background: Background::default(),
            tcp: Tcp::default(),
            waits: Vec::new(),
            departures: Departures::default(),
            capture: None,
            tracer: None,
            unroutable: 0,
        }
    }

    /// Announces all changes that its links will have.
    pub(crate) fn expect(&mut self, changes: &[Change]) {
        let scripted = |link: usize| {
            changes.iter().any(|change| {
                change.link.index() == link
                    && matches!(change.kind, ChangeKind::Loss(LossModel::Script(_)))
            })
        };
        for (number, link) in self.links.iter_mut().enumerate() {
            if !scripted(number) {
                link.without_scripts();
            }
        }
    }

    /// Captures every packet that is offered to a link from now on.
    pub(crate) fn capture(&mut self, out: &'w mut (dyn Write + Send)) -> io::Result<()> {
        let mut file = PcapNg::new(out)?;
        let name = |link: &LinkPlan| file.interface(&link.name);
        let interfaces = self.topology.links.iter().map(name).collect::<io::Result<_>>()?;
        self.capture = Some(Capture { file, interfaces, result: Ok(()) });
        Ok(())
    }

    /// Ends the capture and returns its first error, if there was one.
    pub(crate) fn finish_capture(&mut self) -> io::Result<()> {
        match self.capture.take() {
            Some(mut capture) => capture.result.and_then(|()| capture.file.flush()),
            None => Ok(()),
        }
    }

    /// The interface or the NAT with this address.
    pub(crate) fn node(&self, address: IpAddr) -> Option<NodeId> {
        let place = self.addresses.binary_search_by_key(&sort_key(address), |&(a, _)| a).ok()?;
        Some(self.addresses[place].1)
    }

    /// A host sends a packet from the interface that has its source address.
    pub(crate) fn send(&mut self, now: Time, id: PacketId) {
        let packet = self.packets.get(id);
        let ends = (self.node(packet.source.ip()), self.node(packet.destination.ip()));
        let (Some(from), Some(to)) = ends else { return self.discard(id) };
        if !self.is_here(from) {
            return self.discard(id);
        }
        let packet = self.packets.get_mut(id);
        packet.to = to;
        packet.measure();
        if let Some(tracer) = &mut self.tracer {
            let destination = inside_of(&self.nats, packet.destination);
            tracer.sent(id, packet, destination.ip());
        }
        self.forward(now, from, id);
    }

    /// Forwards a packet at a node that is not its destination.
    pub(crate) fn forward(&mut self, now: Time, at: NodeId, id: PacketId) {
        let to = self.packets.get(id).to;
        match self.routes.next(at, to) {
            Some(link) => {
                if self.nats.is_empty() || self.translate_source(now, link, id) {
                    self.offer(now, link, id);
                }
            }
            None => self.discard(id),
        }
    }

    /// Drops a packet that cannot be routed.
    pub(crate) fn discard(&mut self, id: PacketId) {
        self.unroutable += 1;
        self.packets.give_back(id);
    }

    /// Adds or removes the address of an interface.
    pub(crate) fn set_here(&mut self, node: NodeId, here: bool) {
        self.away.retain(|away| *away != node);
        if !here {
            self.away.push(node);
        }
    }

    /// Whether an interface's host has the interface's address at present.
    pub(crate) fn is_here(&self, node: NodeId) -> bool {
        !self.away.contains(&node)
    }

    /// Whether some host has this address at present.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.node(address).is_some_and(|node| self.is_here(node))
    }

    #[inline]
    fn offer(&mut self, now: Time, on: LinkId, id: PacketId) {
        let packet = self.packets.get(id);
        let allows = Allows {
            fragments: packet.fragmentation == Fragmentation::Allowed,
            mark: packet.ecn != Ecn::NotEct,
        };
        let (size, link) = (packet.wire_size, &mut self.links[on.index()]);
        let origin =
            if link.is_managed() { departures::origin(id, packet) } else { Origin::default() };
        let verdict = link.offer_as(now, size, packet.bytes(), allows, origin);
        if let Some(capture) = &mut self.capture {
            capture.record(now, on, packet, verdict);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.offered(now, on, id, verdict);
        }
        self.settle(on, id, verdict);
        if verdict == Verdict::Wait {
            self.departures.waits();
            self.schedule_departure(now, on);
        }
    }

    /// A link takes the next packet from its queue.
    pub(crate) fn depart(&mut self, now: Time, on: LinkId) {
        if !self.departures.is_due(now, on) {
            return;
        }
        while let Some((id, verdict)) = self.links[on.index()].depart(now) {
            match departures::name(id) {
                departures::Name::Background { source, hop } => {
                    let link = on.index();
                    self.background.settle(source, hop, link, verdict, &mut self.events);
                }
                departures::Name::Segment(id) => {
                    self.tcp.settle(id, on, verdict, &mut self.events);
                }
                departures::Name::Packet(id) => {
                    self.departures.leaves();
                    if let (Verdict::Drop(reason), Some(tracer)) = (verdict, &mut self.tracer) {
                        tracer.dropped(id, reason);
                    }
                    self.settle(on, id, verdict);
                }
            }
        }
        self.schedule_departure(now, on);
    }

    /// Schedules the next departure from a link in whose queue packets may wait.
    fn schedule_departure(&mut self, now: Time, on: LinkId) {
        if let Some(at) = self.departures.next(now, on, &self.links[on.index()]) {
            self.events.schedule(at, Event::Departure { link: on });
        }
    }

    /// Schedules the arrival of a packet that a link transmits, or takes it back. Inlined, because
    /// the verdict is large.
    #[inline(always)]
    fn settle(&mut self, on: LinkId, id: PacketId, verdict: Verdict) {
        match &verdict {
            Verdict::Deliver { arrival, duplicate } => {
                let (at, ticket) = (arrival.at, arrival.ticket);
                if arrival.cleared {
                    self.packets.get_mut(id).ecn = Ecn::NotEct;
                }
                // Copy the packet before the bit is inverted: the copy arrives intact.
                let copy = duplicate.then(|| self.packets.copy(id));
                if arrival.marked {
                    self.packets.get_mut(id).ecn = Ecn::Ce;
                }
                if let Some(bit) = arrival.inverted_bit {
                    self.packets.get_mut(id).invert_bit(bit);
                }
                let event = Event::Arrival { link: on, packet: id, ticket };
                self.events.schedule_in(on.index(), at, event);
                if let Some(packet) = copy {
                    if let Some(tracer) = &mut self.tracer {
                        tracer.copied(id, packet);
                    }
                    let event = Event::Arrival { link: on, packet, ticket };
                    self.events.schedule_in(on.index(), at, event);
                }
            }
            Verdict::Drop(_) => self.packets.give_back(id),
            Verdict::Wait => {}
        }
    }

    /// Handles the arrival of a packet at the end of a link. Returns the node that it has reached,
    /// or `None` if it was lost on the link. Inlined, because most events are arrivals.
    #[inline(always)]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        link: LinkId,
        id: PacketId,
        ticket: Ticket,
    ) -> Option<NodeId> {
        let size = self.packets.get(id).wire_size;
        let delivered = self.links[link.index()].arrive(ticket, size);
        if let Some(tracer) = &mut self.tracer {
            tracer.arrived(now, id, delivered);
        }
        if delivered && (self.nats.is_empty() || self.translate(now, link, id)) {
            return Some(self.topology.links[link.index()].to);
        }
        self.packets.give_back(id);
        None
    }

    /// NATs translate the source of a packet that enters a link. False if one drops it.
    #[cold]
    #[inline(never)]
    fn translate_source(&mut self, now: Time, link: LinkId, id: PacketId) -> bool {
        let packet = self.packets.get_mut(id);
        let leaves = self.nats.iter_mut().all(|nat| nat.leaves(now, link, packet));
        if !leaves {
            self.packets.give_back(id);
        }
        leaves
    }

    /// NATs translate the destination of a packet that leaves a link. False if one refuses it.
    #[cold]
    #[inline(never)]
    fn translate(&mut self, now: Time, link: LinkId, id: PacketId) -> bool {
        let packet = self.packets.get_mut(id);
        let before = packet.destination;
        if !self.nats.iter_mut().all(|nat| nat.enters(now, link, packet)) {
            return false;
        }
        if packet.destination != before
            && let Some(to) = self.node(self.packets.get(id).destination.ip())
        {
            self.packets.get_mut(id).to = to;
        }
        true
    }

    /// The internal address that a NAT has given an external one for, or the address itself.
    pub(crate) fn inside_of(&self, address: SocketAddr) -> SocketAddr {
        inside_of(&self.nats, address)
    }

    /// A NAT loses its mappings.
    pub(crate) fn reset_nat(&mut self, reset: &NatReset) {
        self.nats[reset.nat].reset(reset.address);
    }

    /// The counters of all NATs, with their names.
    pub(crate) fn nat_counters(&self) -> impl Iterator<Item = (&str, NatCounters)> {
        self.nats.iter().map(|nat| (nat.name(), nat.counters))
    }

    /// Starts the sources of background traffic, each at its configured time.
    pub(crate) fn start_traffic(&mut self, sources: Vec<Source>) {
        self.background.start(sources, &mut self.events);
    }

    /// Number of buffers of packets that wait in queues, or are under way.
    pub(crate) fn expected_buffers(&self) -> usize {
        self.departures.waiting() + self.events.len()
    }

    /// Whether only events of background traffic, which never ends, are left.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        let others = self.background.waiting() + self.tcp.waiting() + self.departures.scheduled();
        self.departures.is_idle() && self.events.len() == others
    }

    /// Starts TCP flows, each at its configured time.
    pub(crate) fn start_tcp(&mut self, flows: Vec<TcpPlan>) {
        self.tcp.start(flows, &mut self.events);
    }

    /// A packet of a TCP flow reaches the end of a link.
    pub(crate) fn arrive_segment(&mut self, now: Time, segment: u32, ticket: Ticket) {
        let Self { links, events, waits, tcp, .. } = self;
        tcp.arrive(now, segment, ticket, &mut Wires { links, events, waits });
        self.schedule_departures(now);
    }

    /// A timer of a TCP flow may have expired.
    pub(crate) fn tcp_timer(&mut self, now: Time, flow: u32) {
        let Self { links, events, waits, tcp, .. } = self;
        tcp.timer(now, flow, &mut Wires { links, events, waits });
        self.schedule_departures(now);
    }

    fn schedule_departures(&mut self, now: Time) {
        while let Some(on) = self.waits.pop() {
            self.schedule_departure(now, on);
        }
    }

    /// Names of the TCP flows, and what they have achieved.
    pub(crate) fn tcp_progress(&self) -> impl Iterator<Item = (&str, tcp::Progress)> {
        self.tcp.progress()
    }

    /// A source of background traffic sends a packet.
    pub(crate) fn emit(&mut self, now: Time, source: u32) {
        let on = self.background.emit(now, source, &mut self.links, &mut self.events);
        if let Some(on) = on {
            self.schedule_departure(now, on);
        }
    }

    /// A background packet reaches the end of the n-th link of its route.
    pub(crate) fn arrive_background(&mut self, now: Time, source: u32, hop: u32, ticket: Ticket) {
        let (links, events) = (&mut self.links, &mut self.events);
        let on = self.background.arrive(now, source, hop, ticket, links, events);
        if let Some(on) = on {
            self.schedule_departure(now, on);
        }
    }

    /// Number of links between two interfaces; `None` if there is no route.
    pub(crate) fn hops(&self, from: IpAddr, to: IpAddr) -> Option<u32> {
        self.routes.hops(self.node(from)?, self.node(to)?)
    }
}

impl Capture<'_> {
    fn record(&mut self, now: Time, on: LinkId, packet: &Packet, verdict: Verdict) {
        if self.result.is_err() {
            return;
        }
        self.result = self.file.packet(
            self.interfaces[on.index()],
            now,
            packet.source,
            packet.destination,
            packet.ecn,
            packet.bytes(),
            verdict.comment(),
        );
    }
}

impl std::fmt::Debug for Network<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("links", &self.links.len()).finish_non_exhaustive()
    }
}
