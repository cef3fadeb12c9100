//! Builds from a scenario the plan that the simulator and the emulator run.

use std::net::IpAddr;

use polypath_proto::{Config, Time};

use super::error::{Place, Problem, ScenarioError};
use super::key::Key;
use super::network::{NetworkBuilder, PathLinks};
use super::transport::EncapsulationSpec;
use super::workload::Workload;
use super::{SCHEMA, Scenario};
use crate::network::tcp::TcpPlan;
use crate::network::traffic::TrafficPlan;
use crate::network::{Change, HostId, Move, NatReset, NodeId, NodeKind, Topology};

/// A validated scenario.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) topology: Topology,
    /// The links of each `[[path]]`.
    #[cfg_attr(not(feature = "emulator"), allow(dead_code))] // only the emulator uses it
    pub(crate) paths: Vec<PathLinks>,
    /// Sources of background traffic.
    pub(crate) traffic: Vec<TrafficPlan>,
    /// TCP flows.
    pub(crate) tcp: Vec<TcpPlan>,
    pub(crate) changes: Vec<Change>,
    /// Changes of addresses, in the order of time.
    pub(crate) moves: Vec<Move>,
    /// Losses of NATs' mappings, in the order of time.
    pub(crate) resets: Vec<NatReset>,
    pub(crate) stacks: Vec<StackPlan>,
    pub(crate) associations: Vec<AssociationPlan>,
    /// Applications: one for each association, or one for all associations that a workload is
    /// striped over.
    pub(crate) applications: Vec<ApplicationPlan>,
}

/// An endpoint of the protocol on a host.
#[derive(Clone, Debug)]
pub(crate) struct StackPlan {
    pub(crate) host: HostId,
    pub(crate) port: u16,
    /// The host's addresses that it uses, the primary's first.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) encapsulation: EncapsulationSpec,
    /// Whether it accepts associations.
    pub(crate) listens: bool,
    /// Configuration of the associations that it accepts.
    pub(crate) config: Config,
}

/// An association to be opened.
#[derive(Clone, Debug)]
pub(crate) struct AssociationPlan {
    pub(crate) name: String,
    /// The stack that opens it, and the one that accepts it.
    pub(crate) stacks: [usize; 2],
    pub(crate) port: u16,
    pub(crate) start: Time,
    /// Configuration of the side that opens it.
    pub(crate) config: Config,
    /// Index of the application whose data it carries.
    pub(crate) application: usize,
}

/// An application: a named workload.
#[derive(Clone, Debug)]
pub(crate) struct ApplicationPlan {
    pub(crate) name: String,
    pub(crate) workload: Workload,
    /// Key of the workload.
    pub(crate) key: Key,
}

impl ApplicationPlan {
    /// The workload names an application that is none of the known ones.
    pub(crate) fn unknown_application<'a>(
        &self,
        known: impl Iterator<Item = &'a str>,
    ) -> ScenarioError {
        let name = self.workload.application.as_deref().unwrap_or_default();
        let key = self.key.field("application");
        Problem::unknown(key, "application", name, known).at(Place::default())
    }
}

impl Scenario {
    /// Checks that the scenario can be run.
    ///
    /// # Errors
    /// The first problem.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        self.plan().map(drop)
    }

    pub(super) fn check(&self) -> Result<(), Problem> {
        Plan::new(self).map(drop)
    }

    /// The hosts, links and associations that the scenario describes.
    pub(crate) fn plan(&self) -> Result<Plan, ScenarioError> {
        Plan::new(self).map_err(|problem| problem.at(Place::default()))
    }
}

impl Plan {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, Problem> {
        let root = Key::root();
        if scenario.schema != SCHEMA {
            let text = format!("found {}; allowed: {SCHEMA}", scenario.schema);
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
        let moves = builder.moves(&scenario.addresses)?;
        let resets = builder.resets(scenario)?;
        let mut plan = Self {
            topology: builder.topology,
            paths: builder.paths,
            traffic: builder.traffic,
            tcp: builder.tcp,
            changes,
            moves,
            resets,
            stacks: Vec::new(),
            associations: Vec::new(),
            applications: Vec::new(),
        };
        plan.add_associations(scenario)?;
        plan.check_addresses()?;
        plan.check_encapsulation()?;
        check_rest(scenario)?;
        Ok(plan)
    }

    /// Checks that packets can pass the NATs: none of them knows SCTP over IP.
    fn check_encapsulation(&self) -> Result<(), Problem> {
        let over_ip = |stack: &StackPlan| stack.encapsulation == EncapsulationSpec::Ip;
        if !self.topology.nats.is_empty() && self.stacks.iter().any(over_ip) {
            let key = Key::root().field("transport").field("encapsulation");
            return Err(Problem::new(key, "a nat lets only UDP pass; allowed with it: udp"));
        }
        Ok(())
    }

    /// Checks that each association has addresses at both ends when it is opened, as far as the
    /// endpoints know.
    fn check_addresses(&self) -> Result<(), Problem> {
        if self.moves.is_empty() {
            return Ok(());
        }
        let routes = self.topology.routes();
        for one in &self.associations {
            let [here, there] = one.stacks.map(|stack| self.known(stack, one));
            let meet = |a: NodeId, b: NodeId| {
                let ways = routes.hops(a, b).is_some() && routes.hops(b, a).is_some();
                ways && self.topology.same_family(a, b)
            };
            if !here.iter().any(|&a| there.iter().any(|&b| meet(a, b))) {
                let [from, to] = one.stacks.map(|stack| {
                    let host = self.stacks[stack].host;
                    self.topology.hosts[host.index()].as_str()
                });
                let text = format!(
                    "association \"{}\" opens at {} s, when {from} and {to} know of no addresses \
                     with a route between them",
                    one.name,
                    one.start.as_secs_f64(),
                );
                return Err(Problem::new(Key::root().field("address"), text));
            }
        }
        Ok(())
    }

    /// Interfaces whose addresses a stack knows to be present when an association is opened: those
    /// that were present at the last notification of its host.
    fn known(&self, stack: usize, association: &AssociationPlan) -> Vec<NodeId> {
        let plan = &self.stacks[stack];
        let own = |node: NodeId| match self.topology.nodes[node.index()] {
            NodeKind::Interface { host, .. } => host == plan.host,
            NodeKind::Router => false,
        };
        let noticed =
            |one: &Move| Some(one.noticed()).filter(|&at| own(one.node) && at <= association.start);
        let noticed = self.moves.iter().filter_map(noticed).max();
        let interfaces = plan.addresses.iter().filter_map(|&ip| self.topology.interface(ip));
        interfaces.filter(|&node| Move::is_here(&self.moves, node, noticed)).collect()
    }
}

/// Checks the parts that concern neither the network nor an association.
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
