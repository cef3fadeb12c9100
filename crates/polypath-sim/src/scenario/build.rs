//! From the scenario to what the simulator and the emulator run.

use polypath_proto::{Config, Time};

use super::error::Problem;
use super::network::NetworkBuilder;
use super::transport::{self, Side};
use super::workload::Workload;
use super::{EncapsulationSpec, Key, Scenario};
use crate::network::{Change, HostId, LinkId, Topology};
use crate::traffic::TrafficPlan;
use crate::units::Size;

/// SCTP port unless the scenario says otherwise.
const DEFAULT_PORT: u16 = 5001;

/// A scenario that has been found to make sense.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) topology: Topology,
    /// Of each `[[path]]`: its links.
    #[cfg_attr(not(feature = "emulator"), allow(dead_code))] // only the emulator asks
    pub(crate) paths: Vec<PathLinks>,
    /// Sources of background traffic.
    pub(crate) traffic: Vec<TrafficPlan>,
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
            (false, true) => builder.paths(&scenario.paths, scenario.seed)?,
            (true, false) => builder.graph(scenario)?,
        }
        builder.background(&scenario.traffic)?;
        let changes = builder.changes(&scenario.faults)?;
        let sender = transport::config(&scenario.transport, &scenario.policy, Side::Sender)?;
        let receiver = transport::config(&scenario.transport, &scenario.policy, Side::Receiver)?;
        let mut plan = Self {
            topology: builder.topology,
            paths: builder.paths,
            traffic: builder.traffic,
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

/// UDP port of the encapsulation, 0 on raw IP.
pub(crate) const fn encapsulation_port(spec: EncapsulationSpec) -> u16 {
    match spec {
        EncapsulationSpec::Ip => 0,
        EncapsulationSpec::Udp => 9899,
    }
}
