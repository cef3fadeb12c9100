//! The graph: hosts with interfaces, routers, and one-directional links between them.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::link::LinkConfig;

/// An interface of a host, or a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A link, numbered in the order in which links were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u32);

/// A host, numbered in the order in which hosts were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub u32);

impl NodeId {
    /// Index in a list of all nodes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Index in a list of all links.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl HostId {
    /// Index in a list of all hosts.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A link with its two ends.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Name of the link; it determines the link's random streams.
    pub name: String,
    /// Node that sends over the link.
    pub from: NodeId,
    /// Node that the link leads to.
    pub to: NodeId,
    /// Configuration of the link.
    pub config: LinkConfig,
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Forwards packets.
    Router,
    /// An interface of a host; the host sends its packets with this source address from it.
    Interface {
        /// The host.
        host: HostId,
        /// The interface's address.
        address: IpAddr,
    },
}

/// What of an external host matters to a mapping or a filter of a NAT (RFC 4787 4.1, 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NatBehavior {
    /// Nothing.
    #[default]
    EndpointIndependent,
    /// Its address.
    AddressDependent,
    /// Its address and port.
    AddressAndPortDependent,
}

/// A NAT, as the scenario describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NatPlan {
    /// Name of its link; it determines the external ports.
    pub(crate) name: String,
    /// Node at the inner end of the link.
    pub(crate) inside: NodeId,
    /// The link to the outside, and the link from it.
    pub(crate) links: [LinkId; 2],
    /// External addresses, the first one at first; the others replace it later.
    pub(crate) addresses: Vec<IpAddr>,
    /// A mapping ends when it has not been refreshed for this long.
    pub(crate) timeout: Duration,
    pub(crate) mapping: NatBehavior,
    pub(crate) filtering: NatBehavior,
    /// Whether packets from outside refresh a mapping too (RFC 4787 4.3).
    pub(crate) inbound_refresh: bool,
}

/// Hosts, interfaces, routers, links and NATs.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    pub(crate) nodes: Vec<NodeKind>,
    pub(crate) hosts: Vec<String>,
    pub(crate) links: Vec<LinkPlan>,
    pub(crate) nats: Vec<NatPlan>,
}

impl Topology {
    /// Adds a host without interfaces.
    pub fn add_host(&mut self, name: impl Into<String>) -> HostId {
        self.hosts.push(name.into());
        HostId(self.hosts.len() as u32 - 1)
    }

    /// Adds an interface to a host.
    pub fn add_interface(&mut self, host: HostId, address: IpAddr) -> NodeId {
        self.add_node(NodeKind::Interface { host, address })
    }

    /// Whether a link inverts bits of packets.
    pub(crate) fn corrupts(&self) -> bool {
        self.links.iter().any(|link| link.config.corrupt.get() > 0.0)
    }

    /// Adds a router.
    pub fn add_router(&mut self) -> NodeId {
        self.add_node(NodeKind::Router)
    }

    fn add_node(&mut self, kind: NodeKind) -> NodeId {
        self.nodes.push(kind);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds a one-directional link.
    pub fn add_link(
        &mut self,
        name: impl Into<String>,
        from: NodeId,
        to: NodeId,
        config: LinkConfig,
    ) -> LinkId {
        self.links.push(LinkPlan { name: name.into(), from, to, config });
        LinkId(self.links.len() as u32 - 1)
    }

    /// The interface that has an address.
    pub fn interface(&self, address: IpAddr) -> Option<NodeId> {
        let has = |kind: &NodeKind| matches!(kind, NodeKind::Interface { address: a, .. } if *a == address);
        self.nodes.iter().position(has).map(|i| NodeId(i as u32))
    }

    /// Addresses of a host, in the order in which its interfaces were added.
    pub fn addresses(&self, host: HostId) -> Vec<IpAddr> {
        let of = |kind: &NodeKind| match *kind {
            NodeKind::Interface { host: h, address } if h == host => Some(address),
            _ => None,
        };
        self.nodes.iter().filter_map(of).collect()
    }

    /// Interfaces of a host, in the order in which they were added.
    pub(crate) fn interfaces(&self, host: HostId) -> Vec<NodeId> {
        let of =
            |kind: &NodeKind| matches!(kind, NodeKind::Interface { host: h, .. } if *h == host);
        (0..self.nodes.len()).filter(|&i| of(&self.nodes[i])).map(|i| NodeId(i as u32)).collect()
    }

    /// Whether both nodes are interfaces with addresses of the same IP version.
    pub(crate) fn same_family(&self, a: NodeId, b: NodeId) -> bool {
        let is_ipv4 = |node: NodeId| match self.nodes[node.index()] {
            NodeKind::Interface { address, .. } => Some(address.is_ipv4()),
            NodeKind::Router => None,
        };
        is_ipv4(a).is_some() && is_ipv4(a) == is_ipv4(b)
    }

    /// Whether packets from an address to some other host pass a NAT.
    pub(crate) fn is_behind_nat(&self, address: IpAddr) -> bool {
        let Some(from) = self.interface(address).filter(|_| !self.nats.is_empty()) else {
            return false;
        };
        let outward = |link: &LinkId| self.nats.iter().any(|nat| nat.links[0] == *link);
        let nodes = (0..self.nodes.len() as u32).map(NodeId);
        let others = nodes.filter(|&to| self.nodes[to.index()] != NodeKind::Router && to != from);
        others.filter_map(|to| self.way(from, to)).any(|way| way.iter().any(outward))
    }

    /// The host that has an address.
    pub fn host_of(&self, address: IpAddr) -> Option<HostId> {
        match self.nodes[self.interface(address)?.index()] {
            NodeKind::Interface { host, .. } => Some(host),
            NodeKind::Router => None,
        }
    }

    /// Static routes: for each node and destination the first link of a shortest path (in hops);
    /// among several, the link that was added first. Hosts do not forward. Destinations are
    /// interfaces and NATs.
    pub(crate) fn routes(&self) -> Routes {
        let n = self.nodes.len();
        let mut routes = Routes { nodes: n, next: vec![None; n * n], hops: vec![u32::MAX; n * n] };
        for (to, kind) in self.nodes.iter().enumerate() {
            let is_nat = || self.nats.iter().any(|nat| nat.inside.index() == to);
            if *kind != NodeKind::Router || is_nat() {
                self.routes_to(to, &mut routes);
            }
        }
        routes
    }

    /// Links of the route from one node to another; `None` if there is no route.
    pub(crate) fn way(&self, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        let n = self.nodes.len();
        let mut routes = Routes { nodes: n, next: vec![None; n * n], hops: vec![u32::MAX; n * n] };
        self.routes_to(to.index(), &mut routes);
        let mut way = Vec::new();
        let mut at = from;
        while at != to {
            let link = routes.next(at, to)?;
            way.push(link);
            at = self.links[link.index()].to;
        }
        Some(way)
    }

    /// Breadth-first search from the destination, against the direction of the links.
    fn routes_to(&self, to: usize, routes: &mut Routes) {
        let n = routes.nodes;
        routes.hops[to * n + to] = 0;
        let mut reached = VecDeque::from([to]);
        while let Some(node) = reached.pop_front() {
            if node != to && self.nodes[node] != NodeKind::Router {
                continue;
            }
            let hops = routes.hops[node * n + to] + 1;
            for (i, link) in self.links.iter().enumerate().filter(|(_, l)| l.to.index() == node) {
                let place = link.from.index() * n + to;
                let better_tie = routes.hops[place] == hops
                    && routes.next[place].is_none_or(|LinkId(known)| (i as u32) < known);
                if routes.hops[place] == u32::MAX {
                    reached.push_back(link.from.index());
                }
                if routes.hops[place] > hops || better_tie {
                    routes.hops[place] = hops;
                    routes.next[place] = Some(LinkId(i as u32));
                }
            }
        }
    }
}

/// Next link for each node and destination.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    nodes: usize,
    next: Vec<Option<LinkId>>,
    hops: Vec<u32>,
}

impl Routes {
    #[inline]
    pub(crate) fn next(&self, at: NodeId, to: NodeId) -> Option<LinkId> {
        self.next[at.index() * self.nodes + to.index()]
    }

    /// Number of links of the route; `None` if there is no route.
    pub(crate) fn hops(&self, from: NodeId, to: NodeId) -> Option<u32> {
        let hops = self.hops[from.index() * self.nodes + to.index()];
        (hops != u32::MAX).then_some(hops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_way_and_no_transit_through_hosts() {
        let mut topology = Topology::default();
        let (a, b, c) = (topology.add_host("a"), topology.add_host("b"), topology.add_host("c"));
        let ip = |n: u8| IpAddr::from([10, 0, 0, n]);
        let a0 = topology.add_interface(a, ip(1));
        let b0 = topology.add_interface(b, ip(2));
        let c0 = topology.add_interface(c, ip(3));
        let (r, s) = (topology.add_router(), topology.add_router());
        let mut link = |from, to| topology.add_link("l", from, to, LinkConfig::default());
        let long = link(a0, r);
        let onward = link(r, s);
        link(s, c0);
        // A shortcut through host b, which does not forward.
        let shortcut = link(a0, b0);
        link(b0, c0);
        let routes = topology.routes();
        assert_eq!(routes.next(a0, c0), Some(long));
        assert_eq!(routes.next(r, c0), Some(onward));
        assert_eq!(routes.next(a0, b0), Some(shortcut));
        assert_eq!(routes.hops(a0, c0), Some(3));
        assert_eq!(routes.hops(c0, a0), None);
        assert_eq!(topology.host_of(ip(2)), Some(b));
        assert_eq!(topology.addresses(c), [ip(3)]);
    }
}
