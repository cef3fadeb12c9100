//! From the scenario to what the simulator and the emulator run.

use std::net::{IpAddr, Ipv4Addr};

use polypath_proto::{Config, Time};

use super::error::Problem;
use super::link::{LinkSpec, PathSpec};
use super::transport::{self, Side};
use super::workload::{Direction, Workload};
use super::{EncapsulationSpec, Fault, FaultKind, Key, PathRef, Scenario};
use crate::link::LinkConfig;
use crate::network::{Change, ChangeKind, HostId, LinkId, NodeId, Topology};
use crate::units::{Rate, Size};

/// SCTP port unless the scenario says otherwise.
const DEFAULT_PORT: u16 = 5001;

/// A scenario that has been found to make sense.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) topology: Topology,
    /// Of each `[[path]]`: its links.
    #[cfg_attr(not(feature = "emulator"), allow(dead_code))] // only the emulator asks
    pub(crate) paths: Vec<PathLinks>,
    pub(crate) changes: Vec<Change>,
    pub(crate) stacks: Vec<StackPlan>,
    pub(crate) associations: Vec<AssociationPlan>,
    /// Of the side that opens an association.
    pub(crate) sender: Config,
    /// Of the side that accepts it.
    pub(crate) receiver: Config,
}

/// The links of a `[[path]]`, in the order in which a packet passes them.
#[derive(Clone, Debug)]
pub(crate) struct PathLinks {
    pub(crate) name: String,
    pub(crate) forward: Vec<LinkId>,
    pub(crate) back: Vec<LinkId>,
    /// Which of them the path's own parameters, and its faults, belong to.
    pub(crate) middle: usize,
}

/// An endpoint of the protocol on a host.
#[derive(Clone, Debug)]
pub(crate) struct StackPlan {
    pub(crate) host: HostId,
    pub(crate) port: u16,
    /// It accepts associations.
    pub(crate) listens: bool,
}

/// An association to be opened.
#[derive(Clone, Debug)]
pub(crate) struct AssociationPlan {
    pub(crate) name: String,
    /// The stack that opens it, and the one that accepts it.
    pub(crate) stacks: [usize; 2],
    pub(crate) port: u16,
    pub(crate) start: Time,
    pub(crate) workload: Workload,
}

impl Plan {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, Problem> {
        let root = Key::root();
        if scenario.schema != super::SCHEMA {
            let text = format!("found {}; allowed: {}", scenario.schema, super::SCHEMA);
            return Err(Problem::new(root.field("schema"), text));
        }
        let mut builder = NetworkBuilder::default();
        match (scenario.paths.is_empty(), scenario.nodes.is_empty() && scenario.links.is_empty()) {
            (false, false) => {
                let text = "either [[path]] or [[node]] and [[link]], not both";
                return Err(Problem::new(root.field("path"), text));
            }
            (true, true) => {
                let text = "missing; allowed: at least one [[path]], or [[node]] and [[link]]";
                return Err(Problem::new(root.field("path"), text));
            }
            (false, true) => builder.paths(&scenario.paths)?,
            (true, false) => builder.graph(scenario)?,
        }
        let changes = builder.changes(&scenario.faults)?;
        let sender = transport::config(&scenario.transport, &scenario.policy, Side::Sender)?;
        let receiver = transport::config(&scenario.transport, &scenario.policy, Side::Receiver)?;
        let mut plan = Self {
            topology: builder.topology,
            paths: builder.paths,
            changes,
            stacks: Vec::new(),
            associations: Vec::new(),
            sender,
            receiver,
        };
        plan.associations(scenario)?;
        check_rest(scenario)?;
        Ok(plan)
    }

    fn associations(&mut self, scenario: &Scenario) -> Result<(), Problem> {
        let root = Key::root();
        if let Some(workload) = &scenario.workload {
            if !scenario.associations.is_empty() {
                let text = "either [workload] or [[association]], not both";
                return Err(Problem::new(root.field("workload"), text));
            }
            let key = root.field("workload");
            if self.topology.hosts.len() < 2 {
                let text = "needs two hosts: a [[node]] with addresses is one";
                return Err(Problem::new(key, text));
            }
            let ends = [HostId(0), HostId(1)];
            return self.association("main".to_owned(), ends, DEFAULT_PORT, workload, &key, &key);
        }
        for (i, spec) in scenario.associations.iter().enumerate() {
            let key = root.field("association").index(i);
            let host = |field: &str, name: &str| {
                let found = self.topology.hosts.iter().position(|host| host == name);
                found.map(|i| HostId(i as u32)).ok_or_else(|| {
                    let known = self.topology.hosts.iter().map(String::as_str);
                    Problem::unknown(key.field(field), "host", name, known)
                })
            };
            let ends = [host("from", &spec.from)?, host("to", &spec.to)?];
            let name = spec.name.clone().unwrap_or_else(|| format!("association{i}"));
            let port = spec.port.unwrap_or(DEFAULT_PORT);
            let inner = key.field("workload");
            self.association(name, ends, port, &spec.workload, &inner, &key)?;
        }
        Ok(())
    }

    fn association(
        &mut self,
        name: String,
        ends: [HostId; 2],
        port: u16,
        workload: &Workload,
        workload_key: &Key,
        key: &Key,
    ) -> Result<(), Problem> {
        workload.check(workload_key)?;
        if ends[0] == ends[1] {
            return Err(Problem::new(key.field("to"), "is the host that opens the association"));
        }
        if !self.is_connected(ends) {
            let [from, to] = ends.map(|host| self.topology.hosts[host.index()].as_str());
            let text = format!("no way leads from {from} to {to}, or none back");
            return Err(Problem::new(key.clone(), text));
        }
        if port == 0 {
            return Err(Problem::new(key.field("port"), "found 0; allowed: from 1 to 65535"));
        }
        let stacks = [self.stack(ends[0], port, false), self.stack(ends[1], port, true)];
        let mut reversed = stacks;
        reversed.reverse();
        if self.associations.iter().any(|a| a.stacks == stacks || a.stacks == reversed) {
            let text = format!(
                "another association between the two hosts has port {port}; each needs its own"
            );
            return Err(Problem::new(key.field("port"), text));
        }
        let largest = |config: &Config, range: Option<super::SizeRange>, field: &str| match range {
            Some(range) if range.max.0 > u64::from(config.max_message_size()) => {
                let most = Size(config.max_message_size().into());
                let text = format!("found {range}; allowed: at most max_message_size ({most})");
                Err(Problem::new(workload_key.field(field), text))
            }
            _ => Ok(()),
        };
        largest(&self.sender, workload.message_size, "message_size")?;
        largest(&self.receiver, workload.message_size, "message_size")?;
        largest(&self.receiver, workload.reply_size, "reply_size")?;
        let streams = self.sender.outbound_streams().min(self.receiver.outbound_streams());
        let streams = streams.min(self.sender.inbound_streams());
        let streams = streams.min(self.receiver.inbound_streams());
        if workload.streams.is_some_and(|n| n > streams) {
            let text = format!("allowed: at most {streams}, the streams of [transport]");
            return Err(Problem::new(workload_key.field("streams"), text));
        }
        self.associations.push(AssociationPlan {
            name,
            stacks,
            port,
            start: Time::ZERO + workload.start.unwrap_or_default().duration(),
            workload: workload.clone(),
        });
        Ok(())
    }

    /// Some address of one host reaches one of the other, and back.
    fn is_connected(&self, ends: [HostId; 2]) -> bool {
        let routes = self.topology.routes();
        let [here, there] = ends.map(|host| self.topology.interfaces(host));
        here.iter().any(|&a| {
            let both = |b| routes.hops(a, b).is_some() && routes.hops(b, a).is_some();
            there.iter().any(|&b| both(b) && self.topology.same_family(a, b))
        })
    }

    /// The stack of a host with this port; a new one if there is none yet.
    fn stack(&mut self, host: HostId, port: u16, listens: bool) -> usize {
        let known = self.stacks.iter().position(|s| s.host == host && s.port == port);
        let index = known.unwrap_or_else(|| {
            self.stacks.push(StackPlan { host, port, listens: false });
            self.stacks.len() - 1
        });
        self.stacks[index].listens |= listens;
        index
    }
}

/// What concerns neither the network nor an association.
fn check_rest(scenario: &Scenario) -> Result<(), Problem> {
    let root = Key::root();
    if scenario.series.as_ref().is_some_and(|s| s.interval.is_some_and(|i| i.0 == 0)) {
        let key = root.field("series").field("interval");
        return Err(Problem::new(key, "found 0 s; allowed: above 0 s"));
    }
    let Some(emulator) = &scenario.emulator else { return Ok(()) };
    let key = root.field("emulator");
    for (field, list) in [("senders", &emulator.senders), ("receivers", &emulator.receivers)] {
        if !list.is_empty() && list.len() != scenario.paths.len() {
            let text = format!(
                "found {} addresses; allowed: one for each [[path]] ({})",
                list.len(),
                scenario.paths.len()
            );
            return Err(Problem::new(key.field(field), text));
        }
    }
    if emulator.front_port == emulator.receiver_port && emulator.front_port != 0 {
        let text = "the receiver's own port; the emulator needs another one";
        return Err(Problem::new(key.field("front_port"), text));
    }
    Ok(())
}

/// Nodes and links under construction.
#[derive(Debug, Default)]
struct NetworkBuilder {
    topology: Topology,
    paths: Vec<PathLinks>,
    /// Of each two-way link of a general graph: its names and its two directions.
    links: Vec<NamedLink>,
}

#[derive(Debug)]
struct NamedLink {
    names: Vec<(String, Direction)>,
    forward: LinkId,
    back: LinkId,
}

impl NetworkBuilder {
    fn paths(&mut self, specs: &[PathSpec]) -> Result<(), Problem> {
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
            let none = LinkSpec::default();
            let direction = |field: &str, over: &Option<LinkSpec>| {
                let config = spec.config(over.as_ref().unwrap_or(&none));
                let inner = over.as_ref().map(|_| key.field(field)).unwrap_or_else(|| key.clone());
                check_link(&config, &inner).map(|()| config)
            };
            let forward = direction("forward", &spec.forward)?;
            let back = direction("back", &spec.back)?;
            let edge = spec.edge.as_ref().map(|edge| edge.config(&none));
            if let Some(edge) = &edge {
                check_link(edge, &key.field("edge"))?;
            }
            let links = self.path(name, [from, to], forward, back, edge);
            self.paths.push(links);
        }
        Ok(())
    }

    fn path(
        &mut self,
        name: String,
        [from, to]: [NodeId; 2],
        forward: LinkConfig,
        back: LinkConfig,
        edge: Option<LinkConfig>,
    ) -> PathLinks {
        let t = &mut self.topology;
        let (forward_name, back_name) = (format!("{name}/forward"), format!("{name}/back"));
        let Some(edge) = edge else {
            let forward = vec![t.add_link(forward_name, from, to, forward)];
            let back = vec![t.add_link(back_name, to, from, back)];
            return PathLinks { name, forward, back, middle: 0 };
        };
        let (near, far) = (t.add_router(), t.add_router());
        let mut chain = |name: String, nodes: [NodeId; 4], middle: LinkConfig| {
            vec![
                t.add_link(format!("{name}/first"), nodes[0], nodes[1], edge.clone()),
                t.add_link(name.clone(), nodes[1], nodes[2], middle),
                t.add_link(format!("{name}/last"), nodes[2], nodes[3], edge.clone()),
            ]
        };
        let forward = chain(forward_name, [from, near, far, to], forward);
        let back = chain(back_name, [to, far, near, from], back);
        PathLinks { name, forward, back, middle: 1 }
    }

    fn interface(&mut self, host: HostId, address: IpAddr, key: &Key) -> Result<NodeId, Problem> {
        if self.topology.interface(address).is_some() {
            let text = format!("address {address} is used twice");
            return Err(Problem::new(key.clone(), text));
        }
        Ok(self.topology.add_interface(host, address))
    }

    fn graph(&mut self, scenario: &Scenario) -> Result<(), Problem> {
        let mut names: Vec<(String, NodeId)> = Vec::new();
        for (i, node) in scenario.nodes.iter().enumerate() {
            let key = Key::root().field("node").index(i);
            if scenario.nodes[..i].iter().any(|other| other.name == node.name) {
                let text = format!("another node is called \"{}\"", node.name);
                return Err(Problem::new(key.field("name"), text));
            }
            if node.addresses.is_empty() {
                names.push((node.name.clone(), self.topology.add_router()));
                continue;
            }
            let host = self.topology.add_host(node.name.clone());
            for (n, &address) in node.addresses.iter().enumerate() {
                let id = self.interface(host, address, &key.field("addresses").index(n))?;
                names.push((format!("{}.{n}", node.name), id));
                if node.addresses.len() == 1 {
                    names.push((node.name.clone(), id));
                }
            }
        }
        for (i, entry) in scenario.links.iter().enumerate() {
            let key = Key::root().field("link").index(i);
            let end = |n: usize| {
                let name = &entry.between[n];
                let found = names.iter().find(|(known, _)| known == name);
                found.map(|(_, id)| *id).ok_or_else(|| {
                    let known = names.iter().map(|(name, _)| name.as_str());
                    Problem::unknown(key.field("between").index(n), "node", name, known)
                })
            };
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
            self.links.push(NamedLink { names: aliases, forward, back });
        }
        Ok(())
    }

    fn changes(&self, faults: &[Fault]) -> Result<Vec<Change>, Problem> {
        let mut changes = Vec::new();
        for (i, fault) in faults.iter().enumerate() {
            let key = Key::root().field("fault").index(i);
            let (targets, kind) = (self.targets(fault, &key)?, change(fault, &key)?);
            for link in targets {
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
                    };
                    changes.push(Change { at: at + span.duration(), link, kind });
                }
            }
        }
        changes.sort_by_key(|change| change.at);
        Ok(changes)
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

fn change(fault: &Fault, key: &Key) -> Result<ChangeKind, Problem> {
    let given = [
        ("rate", fault.rate.is_some(), fault.kind == FaultKind::Rate),
        ("delay", fault.delay.is_some(), fault.kind == FaultKind::Delay),
        ("loss", fault.loss.is_some(), fault.kind == FaultKind::Loss),
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
    Ok(match fault.kind {
        FaultKind::Down => ChangeKind::Down,
        FaultKind::Up => ChangeKind::Up,
        FaultKind::Rate => ChangeKind::Rate(fault.rate),
        FaultKind::Delay => ChangeKind::Delay(fault.delay.unwrap_or_default().duration()),
        FaultKind::Loss => ChangeKind::Loss(fault.loss.clone().unwrap_or_default()),
    })
}

fn check_link(config: &LinkConfig, key: &Key) -> Result<(), Problem> {
    if config.rate == Some(Rate(0)) {
        return Err(Problem::new(key.field("rate"), "found 0 bit/s; allowed: above 0"));
    }
    if config.mtu.is_some_and(|mtu| mtu < 68) {
        return Err(Problem::new(key.field("mtu"), "allowed: at least 68 B"));
    }
    Ok(())
}

/// UDP port of the encapsulation, 0 on raw IP.
pub(crate) const fn encapsulation_port(spec: EncapsulationSpec) -> u16 {
    match spec {
        EncapsulationSpec::Ip => 0,
        EncapsulationSpec::Udp => 9899,
    }
}
