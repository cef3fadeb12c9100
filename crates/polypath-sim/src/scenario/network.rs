//! The network of a scenario: nodes, links, background traffic, and changes of links and addresses.

use std::net::{IpAddr, Ipv4Addr};

use polypath_proto::Time;

use super::Scenario;
use super::address::{AddressEvent, AddressKind};
use super::cross_traffic::{self, Middle};
use super::error::Problem;
use super::fault::{Fault, FaultKind, PathRef};
use super::key::Key;
use super::link::{LinkSpec, PathSpec};
use super::nat::NatSpec;
use super::traffic::{TrafficKind, TrafficSpec};
use super::workload::Direction;
use crate::link::LinkConfig;
use crate::network::tcp::TcpPlan;
use crate::network::traffic::TrafficPlan;
use crate::network::{
    Change, ChangeKind, HostId, LinkId, Move, NatReset, NodeId, NodeKind, Topology,
};
use crate::units::{Rate, Size};

/// The links of a `[[path]]`, in the order in which a packet passes them.
#[derive(Clone, Debug)]
pub(crate) struct PathLinks {
    pub(crate) name: String,
    pub(crate) forward: Vec<LinkId>,
    pub(crate) back: Vec<LinkId>,
    /// Index of the link to which the path's own parameters and its faults apply.
    pub(crate) middle: usize,
}

/// Nodes and links under construction.
#[derive(Debug, Default)]
pub(super) struct NetworkBuilder {
    pub(super) topology: Topology,
    pub(super) paths: Vec<PathLinks>,
    pub(super) traffic: Vec<TrafficPlan>,
    pub(super) tcp: Vec<TcpPlan>,
    /// Names of nodes, with which links and background traffic refer to them.
    nodes: Vec<(String, NodeId)>,
    /// Two-way links of a general graph: their names and their two directions.
    links: Vec<NamedLink>,
}

#[derive(Debug)]
struct NamedLink {
    names: Vec<(String, Direction)>,
    forward: LinkId,
    back: LinkId,
}

impl NetworkBuilder {
    pub(super) fn paths(&mut self, specs: &[PathSpec], seed: u64) -> Result<(), Problem> {
        let sender = self.topology.add_host("sender");
        let receiver = self.topology.add_host("receiver");
        for (i, spec) in specs.iter().enumerate() {
            let key = Key::root().field("path").index(i);
            if i > 254 {
                return Err(Problem::new(key, "allowed: at most 255 paths"));
            }
            let name = spec.name.clone().unwrap_or_else(|| format!("path{i}"));
            if self.paths.iter().any(|p| p.name == name) {
                let text = format!("another path is called \"{name}\"");
                return Err(Problem::new(key.field("name"), text));
            }
            let address = |n| IpAddr::V4(Ipv4Addr::new(10, i as u8, 0, n));
            let addresses = spec.addresses.unwrap_or_else(|| [address(1), address(2)]);
            if addresses[0].is_ipv4() != addresses[1].is_ipv4() {
                let text = "IPv4 and IPv6 do not mix on one path";
                return Err(Problem::new(key.field("addresses"), text));
            }
            let from = self.interface(sender, addresses[0], &key.field("addresses"))?;
            let to = self.interface(receiver, addresses[1], &key.field("addresses"))?;
            self.nodes.push((format!("sender.{i}"), from));
            self.nodes.push((format!("receiver.{i}"), to));
            if spec.shares.is_some() {
                let links = self.path_that_shares(name, spec, [from, to], &specs[..i], &key)?;
                self.paths.push(links);
                continue;
            }
            let none = LinkSpec::default();
            let direction = |field: &str, over: &Option<LinkSpec>| {
                let config = spec.config(over.as_ref().unwrap_or(&none));
                let inner = over.as_ref().map(|_| key.field(field)).unwrap_or_else(|| key.clone());
                check_link(&config, &inner).map(|()| config)
            };
            let forward = direction("forward", &spec.forward)?;
            let back = direction("back", &spec.back)?;
            let edge = spec.edge.as_ref().map(|edge| edge.config(&none));
            let Some(edge) = edge else {
                if spec.cross_traffic.is_some() {
                    let text =
                        "needs edge: the links of its nodes are like those of the path's ends";
                    return Err(Problem::new(key.field("cross_traffic"), text));
                }
                let t = &mut self.topology;
                let forward = vec![t.add_link(format!("{name}/forward"), from, to, forward)];
                let back = vec![t.add_link(format!("{name}/back"), to, from, back)];
                self.nat(spec.nat.as_ref(), (&name, i), from, [forward[0], back[0]], &key)?;
                self.paths.push(PathLinks { name, forward, back, middle: 0 });
                continue;
            };
            check_link(&edge, &key.field("edge"))?;
            let (links, routers) = self.path_with_edges(name, [from, to], forward, back, &edge);
            if let Some(cross) = &spec.cross_traffic {
                let middle = Middle {
                    name: &links.name,
                    routers,
                    links: [links.forward[links.middle], links.back[links.middle]],
                    edge: &edge,
                };
                let key = key.field("cross_traffic");
                let traffic =
                    cross_traffic::expand(cross, &middle, &mut self.topology, seed, &key)?;
                self.traffic.extend(traffic);
            }
            let middle = [links.forward[links.middle], links.back[links.middle]];
            self.nat(spec.nat.as_ref(), (&links.name, i), routers[0], middle, &key)?;
            self.paths.push(links);
        }
        Ok(())
    }

    fn path_with_edges(
        &mut self,
        name: String,
        [from, to]: [NodeId; 2],
        forward: LinkConfig,
        back: LinkConfig,
        edge: &LinkConfig,
    ) -> (PathLinks, [NodeId; 2]) {
        let t = &mut self.topology;
        let (near, far) = (t.add_router(), t.add_router());
        self.nodes.push((format!("{name}/near"), near));
        self.nodes.push((format!("{name}/far"), far));
        let mut chain = |name: String, nodes: [NodeId; 4], middle: LinkConfig| {
            vec![
                t.add_link(format!("{name}/first"), nodes[0], nodes[1], edge.clone()),
                t.add_link(name.clone(), nodes[1], nodes[2], middle),
                t.add_link(format!("{name}/last"), nodes[2], nodes[3], edge.clone()),
            ]
        };
        let forward = chain(format!("{name}/forward"), [from, near, far, to], forward);
        let back = chain(format!("{name}/back"), [to, far, near, from], back);
        (PathLinks { name, forward, back, middle: 1 }, [near, far])
    }

    /// Adds the links of a path that shares the middle link of another one.
    fn path_that_shares(
        &mut self,
        name: String,
        spec: &PathSpec,
        [from, to]: [NodeId; 2],
        above: &[PathSpec],
        key: &Key,
    ) -> Result<PathLinks, Problem> {
        let wanted = spec.shares.as_deref().unwrap_or_default();
        if let Some(field) = spec.given() {
            let text = format!("is that of path \"{wanted}\", whose link this one shares");
            return Err(Problem::new(key.field(field), text));
        }
        let base = self.paths.iter().position(|path| path.name == wanted);
        let base = base.filter(|&n| above[n].edge.is_some() && above[n].shares.is_none());
        let Some(base) = base else {
            let own = above.iter().zip(&self.paths);
            let own = own.filter(|(spec, _)| spec.edge.is_some() && spec.shares.is_none());
            let known = own.map(|(_, path)| path.name.as_str());
            return Err(Problem::unknown(
                key.field("shares"),
                "path above with edge",
                wanted,
                known,
            ));
        };
        let mut edge = spec.edge.clone().unwrap_or_default();
        if let Some(base) = &above[base].edge {
            edge.inherit(base);
        }
        let edge = edge.config(&LinkSpec::default());
        check_link(&edge, &key.field("edge"))?;
        let [near, far] = ["near", "far"].map(|end| format!("{wanted}/{end}"));
        let near = self.node(&near, || key.field("shares"))?;
        let far = self.node(&far, || key.field("shares"))?;
        let PathLinks { forward, back, middle, .. } = self.paths[base].clone();
        let (t, middle) = (&mut self.topology, [forward[middle], back[middle]]);
        let mut chain = |way: &str, nodes: [NodeId; 4], middle: LinkId| {
            vec![
                t.add_link(format!("{name}/{way}/first"), nodes[0], nodes[1], edge.clone()),
                middle,
                t.add_link(format!("{name}/{way}/last"), nodes[2], nodes[3], edge.clone()),
            ]
        };
        let forward = chain("forward", [from, near, far, to], middle[0]);
        let back = chain("back", [to, far, near, from], middle[1]);
        Ok(PathLinks { name, forward, back, middle: 1 })
    }

    fn interface(&mut self, host: HostId, address: IpAddr, key: &Key) -> Result<NodeId, Problem> {
        if self.topology.interface(address).is_some() {
            let text = format!("address {address} is used twice");
            return Err(Problem::new(key.clone(), text));
        }
        Ok(self.topology.add_interface(host, address))
    }

    /// Adds the NAT of a path or link, if it has one.
    fn nat(
        &mut self,
        spec: Option<&NatSpec>,
        name: (&str, usize),
        inside: NodeId,
        links: [LinkId; 2],
        key: &Key,
    ) -> Result<(), Problem> {
        let Some(spec) = spec else { return Ok(()) };
        let key = key.field("nat");
        self.topology.nats.push(spec.plan(name, inside, links, &key)?);
        Ok(())
    }

    /// The losses of mappings, in the order of time, whose addresses the NATs learn.
    pub(super) fn resets(&mut self, scenario: &Scenario) -> Result<Vec<NatReset>, Problem> {
        self.check_nats()?;
        let mut resets = Vec::new();
        for (i, fault) in scenario.faults.iter().enumerate() {
            let key = Key::root().field("fault").index(i);
            if fault.kind != FaultKind::NatReset {
                if fault.address.is_some() {
                    let text = "belongs to kind \"nat-reset\"";
                    return Err(Problem::new(key.field("address"), text));
                }
                continue;
            }
            for (field, given) in
                [("for", fault.lasts.is_some()), ("direction", fault.direction.is_some())]
            {
                if given {
                    let text = "does not belong to kind \"nat-reset\"";
                    return Err(Problem::new(key.field(field), text));
                }
            }
            let targets = self.targets(fault, &key)?;
            let nats = &mut self.topology.nats;
            let nat = nats
                .iter()
                .position(|nat| targets.contains(&nat.links[0]))
                .ok_or_else(|| Problem::new(key.field("kind"), "the path or link has no nat"))?;
            if let Some(address) = fault.address {
                let alike = nats[nat].addresses[0].is_ipv4() == address.is_ipv4();
                let others = nats.iter().enumerate().filter(|(other, _)| *other != nat);
                let taken = others.flat_map(|(_, nat)| &nat.addresses).any(|a| *a == address);
                if !alike || taken || self.topology.interface(address).is_some() {
                    let text = format!("{address} is used already, or of another IP version");
                    return Err(Problem::new(key.field("address"), text));
                }
                if !self.topology.nats[nat].addresses.contains(&address) {
                    self.topology.nats[nat].addresses.push(address);
                }
            }
            let at = Time::ZERO + fault.at.duration();
            resets.push(NatReset { at, nat, address: fault.address });
        }
        resets.sort_by_key(|reset| reset.at);
        Ok(resets)
    }

    /// Checks that the NATs have addresses of their own.
    fn check_nats(&self) -> Result<(), Problem> {
        for (i, nat) in self.topology.nats.iter().enumerate() {
            let address = nat.addresses[0];
            let others = self.topology.nats[..i].iter();
            if self.topology.interface(address).is_some()
                || others.flat_map(|other| &other.addresses).any(|other| *other == address)
            {
                let text = format!("nat of \"{}\": address {address} is used twice", nat.name);
                let array = if self.paths.is_empty() { "link" } else { "path" };
                return Err(Problem::new(Key::root().field(array), text));
            }
        }
        Ok(())
    }

    pub(super) fn graph(&mut self, scenario: &Scenario) -> Result<(), Problem> {
        for (i, node) in scenario.nodes.iter().enumerate() {
            let key = Key::root().field("node").index(i);
            if scenario.nodes[..i].iter().any(|other| other.name == node.name) {
                let text = format!("another node is called \"{}\"", node.name);
                return Err(Problem::new(key.field("name"), text));
            }
            if node.addresses.is_empty() {
                let router = self.topology.add_router();
                self.nodes.push((node.name.clone(), router));
                continue;
            }
            let host = self.topology.add_host(node.name.clone());
            for (n, &address) in node.addresses.iter().enumerate() {
                let id = self.interface(host, address, &key.field("addresses").index(n))?;
                self.nodes.push((format!("{}.{n}", node.name), id));
                if node.addresses.len() == 1 {
                    self.nodes.push((node.name.clone(), id));
                }
            }
        }
        for (i, entry) in scenario.links.iter().enumerate() {
            let key = Key::root().field("link").index(i);
            let end = |n: usize| self.node(&entry.between[n], || key.field("between").index(n));
            let (a, b) = (end(0)?, end(1)?);
            if a == b {
                return Err(Problem::new(key.field("between"), "the two ends are the same node"));
            }
            let none = LinkSpec::default();
            let config = |over: &Option<LinkSpec>| {
                let config = entry.config(over.as_ref().unwrap_or(&none));
                check_link(&config, &key).map(|()| config)
            };
            let [from, to] = &entry.between;
            let (there, here) = (format!("{from}->{to}"), format!("{to}->{from}"));
            let mut aliases =
                vec![(there.clone(), Direction::Forward), (here.clone(), Direction::Back)];
            let (forward_name, back_name) = match &entry.name {
                Some(name) => {
                    aliases.push((name.clone(), Direction::Both));
                    (format!("{name}/forward"), format!("{name}/back"))
                }
                None => (there, here),
            };
            let taken = |name: &str| {
                let taken = |link: &NamedLink| link.names.iter().any(|(n, _)| n == name);
                self.links.iter().any(taken)
            };
            if let Some((name, _)) = aliases.iter().find(|(name, _)| taken(name)) {
                let text = format!("another link is called \"{name}\"");
                return Err(Problem::new(key.field("name"), text));
            }
            let forward = self.topology.add_link(forward_name, a, b, config(&entry.forward)?);
            let back = self.topology.add_link(back_name, b, a, config(&entry.back)?);
            let name = entry.name.as_deref().unwrap_or(&aliases[0].0);
            self.nat(entry.nat.as_ref(), (name, i), a, [forward, back], &key)?;
            self.links.push(NamedLink { names: aliases, forward, back });
        }
        Ok(())
    }

    fn node(&self, name: &str, key: impl FnOnce() -> Key) -> Result<NodeId, Problem> {
        let found = self.nodes.iter().find(|(known, _)| known == name);
        found.map(|(_, id)| *id).ok_or_else(|| {
            let known = self.nodes.iter().map(|(name, _)| name.as_str());
            Problem::unknown(key(), "node", name, known)
        })
    }

    /// Looks up a host's interface by its name.
    pub(super) fn interface_of(
        &self,
        name: &str,
        key: impl FnOnce() -> Key,
    ) -> Result<NodeId, Problem> {
        let is_interface = |id: &NodeId| self.topology.nodes[id.index()] != NodeKind::Router;
        let known = || self.nodes.iter().filter(|(_, id)| is_interface(id));
        let found = known().find(|(known, _)| known == name);
        found.map(|(_, id)| *id).ok_or_else(|| {
            Problem::unknown(key(), "address", name, known().map(|(name, _)| name.as_str()))
        })
    }

    /// Adds background traffic between any two nodes.
    pub(super) fn background(&mut self, specs: &[TrafficSpec]) -> Result<(), Problem> {
        let name = |i: usize| specs[i].name.clone().unwrap_or_else(|| format!("traffic{i}"));
        for (i, spec) in specs.iter().enumerate() {
            let key = Key::root().field("traffic").index(i);
            if (0..i).any(|other| name(other) == name(i)) {
                let text = format!("other traffic is called \"{}\"", name(i));
                return Err(Problem::new(key.field("name"), text));
            }
            let from = self.node(&spec.from, || key.field("from"))?;
            let to = self.node(&spec.to, || key.field("to"))?;
            if from == to {
                return Err(Problem::new(key.field("to"), "is the node that sends"));
            }
            let way = self.topology.way(from, to).ok_or_else(|| {
                let text = format!("no way leads from {} to {}", spec.from, spec.to);
                Problem::new(key.field("to"), text)
            })?;
            if spec.kind == TrafficKind::Tcp {
                let back = self.topology.way(to, from).ok_or_else(|| {
                    let text = format!("no way leads back from {} to {}", spec.to, spec.from);
                    Problem::new(key.field("to"), text)
                })?;
                self.tcp.extend(spec.flows(&name(i), [&way, &back], &key)?);
                continue;
            }
            self.traffic.extend(spec.plans(&name(i), &way, &key)?);
        }
        Ok(())
    }

    pub(super) fn changes(&self, faults: &[Fault]) -> Result<Vec<Change>, Problem> {
        let mut changes = Vec::new();
        for (i, fault) in faults.iter().enumerate() {
            let key = Key::root().field("fault").index(i);
            let targets = self.targets(fault, &key)?;
            let Some(kind) = change(fault, &key)? else { continue };
            for link in targets {
                let traced = self.topology.links[link.index()].config.trace.is_some();
                if traced && fault.kind == FaultKind::Rate {
                    let text = "the link has a trace; allowed: links with a rate";
                    return Err(Problem::new(key.field("kind"), text));
                }
                let at = Time::ZERO + fault.at.duration();
                changes.push(Change { at, link, kind: kind.clone() });
                if let Some(span) = fault.lasts {
                    let config = &self.topology.links[link.index()].config;
                    let kind = match fault.kind {
                        FaultKind::Down => ChangeKind::Up,
                        FaultKind::Up => ChangeKind::Down,
                        FaultKind::Rate => ChangeKind::Rate(config.rate),
                        FaultKind::Delay => ChangeKind::Delay(config.delay),
                        FaultKind::Loss => ChangeKind::Loss(config.loss.clone()),
                        FaultKind::Mtu => ChangeKind::Mtu(config.mtu),
                        FaultKind::NatReset => continue,
                    };
                    changes.push(Change { at: at + span.duration(), link, kind });
                }
            }
        }
        changes.sort_by_key(|change| change.at);
        Ok(changes)
    }

    /// Changes of addresses, in the order of time.
    pub(super) fn moves(&self, events: &[AddressEvent]) -> Result<Vec<Move>, Problem> {
        let mut moves = Vec::new();
        for (i, event) in events.iter().enumerate() {
            let key = || Key::root().field("address").index(i).field("node");
            let node = self.interface_of(&event.node, key)?;
            let at = Time::ZERO + event.at.duration();
            let notice = event.notice_delay.duration();
            let comes = event.kind == AddressKind::Comes;
            moves.push(Move { at, node, comes, notice });
            if let Some(span) = event.lasts {
                moves.push(Move { at: at + span.duration(), node, comes: !comes, notice });
            }
        }
        moves.sort_by_key(|one| one.at);
        Ok(moves)
    }

    fn targets(&self, fault: &Fault, key: &Key) -> Result<Vec<LinkId>, Problem> {
        let mut direction = fault.direction.unwrap_or_default();
        let (forward, back) = match (&fault.path, &fault.link) {
            (Some(path), None) => {
                let found = match path {
                    PathRef::Index(index) => self.paths.get(*index),
                    PathRef::Name(name) => self.paths.iter().find(|p| p.name == *name),
                };
                let path = found.ok_or_else(|| {
                    let known = self.paths.iter().map(|p| p.name.as_str());
                    Problem::unknown(key.field("path"), "path", &path.to_string(), known)
                })?;
                (path.forward[path.middle], path.back[path.middle])
            }
            (None, Some(name)) => {
                let named = |link: &NamedLink| {
                    let alias = link.names.iter().find(|(n, _)| n == name);
                    alias.map(|(_, direction)| (*direction, link.forward, link.back))
                };
                let (way, forward, back) = self.links.iter().find_map(named).ok_or_else(|| {
                    let known = self.links.iter().flat_map(|l| &l.names);
                    let known = known.map(|(name, _)| name.as_str());
                    Problem::unknown(key.field("link"), "link", name, known)
                })?;
                if way != Direction::Both {
                    if fault.direction.is_some_and(|d| d != way) {
                        let text = format!("\"{name}\" is one direction already");
                        return Err(Problem::new(key.field("direction"), text));
                    }
                    direction = way;
                }
                (forward, back)
            }
            _ => return Err(Problem::new(key.clone(), "allowed: either path or link")),
        };
        let forward = direction.is_forward().then_some(forward);
        let back = direction.is_back().then_some(back);
        Ok(forward.into_iter().chain(back).collect())
    }
}

/// The change of the links; `None` if it is one of their NAT.
fn change(fault: &Fault, key: &Key) -> Result<Option<ChangeKind>, Problem> {
    let given = [
        ("rate", fault.rate.is_some(), fault.kind == FaultKind::Rate),
        ("delay", fault.delay.is_some(), fault.kind == FaultKind::Delay),
        ("loss", fault.loss.is_some(), fault.kind == FaultKind::Loss),
        ("mtu", fault.mtu.is_some(), fault.kind == FaultKind::Mtu),
    ];
    for (field, given, wanted) in given {
        match (given, wanted) {
            (true, false) => {
                let text = format!("belongs to kind \"{field}\"");
                return Err(Problem::new(key.field(field), text));
            }
            (false, true) => {
                let text = format!("missing; kind \"{field}\" needs it");
                return Err(Problem::new(key.field(field), text));
            }
            _ => {}
        }
    }
    if fault.rate == Some(Rate(0)) {
        return Err(Problem::new(key.field("rate"), "found 0 bit/s; allowed: above 0"));
    }
    if fault.mtu.is_some_and(|Size(mtu)| mtu < LEAST_MTU.into()) {
        return Err(Problem::new(key.field("mtu"), "allowed: at least 68 B"));
    }
    Ok(Some(match fault.kind {
        FaultKind::NatReset => return Ok(None),
        FaultKind::Down => ChangeKind::Down,
        FaultKind::Up => ChangeKind::Up,
        FaultKind::Rate => ChangeKind::Rate(fault.rate),
        FaultKind::Delay => ChangeKind::Delay(fault.delay.unwrap_or_default().duration()),
        FaultKind::Loss => ChangeKind::Loss(fault.loss.clone().unwrap_or_default()),
        FaultKind::Mtu => {
            ChangeKind::Mtu(fault.mtu.map(|Size(mtu)| mtu.try_into().unwrap_or(u32::MAX)))
        }
    }))
}

/// Smallest MTU of a link in bytes (RFC 791 3.2).
const LEAST_MTU: u32 = 68;

fn check_link(config: &LinkConfig, key: &Key) -> Result<(), Problem> {
    if config.rate == Some(Rate(0)) {
        return Err(Problem::new(key.field("rate"), "found 0 bit/s; allowed: above 0"));
    }
    if config.rate.is_some() && config.trace.is_some() {
        return Err(Problem::new(key.field("trace"), "either rate or trace, not both"));
    }
    if config.mtu.is_some_and(|mtu| mtu < LEAST_MTU) {
        return Err(Problem::new(key.field("mtu"), "allowed: at least 68 B"));
    }
    if let Some(codel) = &config.codel {
        let of = |name: &'static str, text: &str| {
            Err(Problem::new(key.field("codel").field(name), text))
        };
        if config.red.is_some() {
            return Err(Problem::new(key.field("codel"), "either red or codel, not both"));
        }
        if codel.interval.0 == 0 {
            return of("interval", "allowed: above 0");
        }
        if !(1..=65_536).contains(&codel.flows) {
            return of("flows", "allowed: 1 to 65536");
        }
        if codel.quantum == 0 {
            return of("quantum", "allowed: above 0");
        }
    }
    if let Some(red) = &config.red {
        let of =
            |name: &'static str, text: &str| Err(Problem::new(key.field("red").field(name), text));
        if red.min >= red.max {
            return of("max", "allowed: above min");
        }
        if !(red.weight > 0.0 && red.weight <= 1.0) {
            return of("weight", "allowed: above 0, up to 1");
        }
    }
    Ok(())
}
