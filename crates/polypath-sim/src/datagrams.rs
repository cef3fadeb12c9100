//! The links of a scenario for the datagrams of programs, in virtual time.
//!
//! The caller has the clock and the programs: it sends their datagrams, handles one event after the
//! other, and passes on what arrives. The crate `polypath-virtual` does so for programs that use
//! polypath's async API.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use polypath_proto::{Ecn, Fragmentation, RouteTable, Time};

use crate::network::traffic::Source;
use crate::network::{
    Change, Event, HostId, LinkId, NatReset, Network, NodeId, NodeKind, PacketId,
};
use crate::scenario::{Key, Place, Scenario, ScenarioError};
use crate::stack::HostRoutes;

/// Bytes of the buffers that are reserved for packets; larger datagrams get larger ones.
const USUAL: usize = 1500;

/// The links, faults and background traffic of a scenario.
#[derive(Debug)]
pub struct DatagramNetwork {
    network: Network<'static>,
    changes: Vec<Change>,
    resets: Vec<NatReset>,
}

/// A datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver.
    pub destination: SocketAddr,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// Whether links may fragment it.
    pub fragmentation: Fragmentation,
    /// Its payload.
    pub contents: Cow<'a, [u8]>,
}

impl DatagramNetwork {
    /// The network of a scenario at time 0. Workload, associations and transport of the scenario
    /// are checked, but not used.
    ///
    /// # Errors
    /// The scenario is invalid, or adds or removes addresses.
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let plan = scenario.plan()?;
        if !plan.moves.is_empty() {
            let key = Key::root().field("address");
            let problem = "a program's sockets stay where they are: take it out".to_owned();
            return Err(ScenarioError::Key { place: Place::default(), key, problem });
        }
        let seed = scenario.seed;
        let mut network = Network::new(plan.topology, seed, USUAL);
        network.start_traffic(plan.traffic.into_iter().map(|t| Source::new(t, seed)).collect());
        network.start_tcp(plan.tcp);
        for (index, change) in (0u32..).zip(&plan.changes) {
            network.events.schedule(change.at, Event::Change { index });
        }
        for (index, reset) in (0u32..).zip(&plan.resets) {
            network.events.schedule(reset.at, Event::Reset { index });
        }
        Ok(Self { network, changes: plan.changes, resets: plan.resets })
    }

    /// The hosts' names; those of `[[path]]` are "sender" and "receiver".
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.network.topology.hosts.iter().map(String::as_str)
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<HostId> {
        let place = self.hosts().position(|host| host == name)?;
        Some(HostId(place as u32))
    }

    /// Addresses of a host, in the order of the scenario.
    pub fn addresses(&self, host: HostId) -> Vec<IpAddr> {
        self.network.topology.addresses(host)
    }

    /// The host that has an address.
    pub fn host_of(&self, address: IpAddr) -> Option<HostId> {
        self.network.topology.host_of(address)
    }

    /// The routes of a host: its nearest addresses for each remote one.
    pub fn routes(&self, host: HostId) -> impl RouteTable + use<> {
        HostRoutes::new(&self.network, host)
    }

    /// Sends a datagram; its address is looked up, and the first link decides about it, at once.
    pub fn send(&mut self, now: Time, datagram: &Datagram<'_>) {
        let id = self.network.packets.take();
        let packet = self.network.packets.get_mut(id);
        packet.source = datagram.source;
        packet.destination = datagram.destination;
        packet.ecn = datagram.ecn;
        packet.fragmentation = datagram.fragmentation;
        packet.intact = true;
        packet.fill(&datagram.contents);
        self.network.send(now, id);
    }

    /// Time of the next event; `None` if nothing will happen before the next datagram is sent.
    pub fn next_time(&self) -> Option<Time> {
        self.network.events.next_time()
    }

    /// Handles the next event; returns the datagram that has arrived with it, if there is one.
    pub fn advance(&mut self) -> Option<Datagram<'static>> {
        let (now, event) = self.network.events.pop()?;
        match event {
            Event::Arrival { link, packet, ticket } => {
                let node = self.network.arrive(now, link, packet, ticket)?;
                return self.arrived(now, node, packet);
            }
            Event::Emission { source } => self.network.emit(now, source),
            Event::Background { source, hop, ticket } => {
                self.network.arrive_background(now, source, hop, ticket);
            }
            Event::Segment { segment, ticket } => {
                self.network.arrive_segment(now, segment, ticket);
            }
            Event::TcpTimer { flow } => self.network.tcp_timer(now, flow),
            Event::Departure { link } => self.network.depart(now, link),
            Event::Change { index } => {
                let Change { link: LinkId(link), ref kind, .. } = self.changes[index as usize];
                kind.apply(now, &mut self.network.links[link as usize]);
            }
            Event::Reset { index } => self.network.reset_nat(&self.resets[index as usize]),
            // Only simulations have endpoints, applications, moving addresses and samples.
            Event::Timer { .. }
            | Event::Application { .. }
            | Event::Move { .. }
            | Event::Notice { .. }
            | Event::Sample { .. } => {}
        }
        None
    }

    fn arrived(&mut self, now: Time, node: NodeId, id: PacketId) -> Option<Datagram<'static>> {
        if self.network.packets.get(id).to != node {
            self.network.forward(now, node, id);
            return None;
        }
        let packet = self.network.packets.get(id);
        let host = matches!(self.network.topology.nodes[node.index()], NodeKind::Interface { .. });
        let datagram = host.then(|| Datagram {
            source: packet.source,
            destination: packet.destination,
            ecn: packet.ecn,
            fragmentation: packet.fragmentation,
            contents: packet.bytes().to_vec().into(),
        });
        self.network.packets.give_back(id);
        datagram
    }
}
