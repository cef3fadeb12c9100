//! A scenario is data: network, transport, workload, faults and limits of one run.
//!
//! One schema serves files (TOML), programs and other languages: [`Scenario`] and the structs in it
//! serialize to the contents of the files. Quantities are strings with units ("10 Mbit/s", "45 ms",
//! "64 KiB", "8 %"); unknown keys are rejected, with a suggestion.

mod address;
mod association;
mod build;
mod cross_traffic;
mod de;
mod document;
mod edit;
mod endpoints;
mod error;
mod fault;
mod key;
mod link;
mod nat;
mod network;
mod rate_traces;
mod run;
mod serialize;
mod topology;
mod traffic;
mod transport;
mod workload;

use polypath_proto::Registry;
use serde::{Deserialize, Serialize};

pub use crate::network::tcp::TcpCongestion;
pub use address::{AddressEvent, AddressKind};
pub use association::AssociationSpec;
pub(crate) use build::{ApplicationPlan, AssociationPlan, Plan, StackPlan, encapsulation_port};
pub use cross_traffic::{CrossTraffic, LoadSpec};
pub use edit::literal;
pub use error::{Place, ScenarioError};
pub use fault::{Fault, FaultKind, PathRef};
pub use key::Key;
pub use link::{LinkEntry, LinkSpec, NodeSpec, PathSpec};
pub use nat::NatSpec;
#[cfg(feature = "emulator")]
pub(crate) use network::PathLinks;
pub use run::{CheckEvery, EmulatorSpec, Run, Series};
pub use topology::TopologyName;
pub use traffic::{TrafficKind, TrafficSpec};
pub use transport::{Effective, EncapsulationSpec, Policy, Side, Transport};
pub use workload::{DeliverySpec, Direction, Reset, SizeRange, Workload, WorkloadKind};

use serialize::{is_default, seed};
use transport::Layer;

/// The schema that this version reads and writes.
pub const SCHEMA: u32 = 1;

/// A run as data. The module's documentation describes its notation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of the schema: 1.
    pub schema: u32,
    /// Name of the scenario.
    #[serde(default)]
    pub name: String,
    /// Root seed of all randomness; 1 by default. In TOML an integer, or a string such as "0x1f".
    #[serde(default = "default_seed", with = "seed")]
    pub seed: u64,
    /// A network by name. Reading a scenario replaces it with the network's paths in `paths`.
    #[serde(rename = "topology", default, skip_serializing)]
    named: Option<TopologyName>,
    /// Paths between two hosts, "sender" and "receiver"; or use `nodes` and `links`.
    #[serde(rename = "path", default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathSpec>,
    /// Hosts and routers of a general graph.
    #[serde(rename = "node", default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeSpec>,
    /// Two-way links of a general graph.
    #[serde(rename = "link", default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkEntry>,
    /// Background traffic between nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficSpec>,
    /// Parameters of the protocol.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: Transport,
    /// Policies of the protocol.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: Policy,
    /// Workload of the only association.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// Several associations, each with its own workload.
    #[serde(rename = "association", default, skip_serializing_if = "Vec::is_empty")]
    pub associations: Vec<AssociationSpec>,
    /// Changes of links.
    #[serde(rename = "fault", default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// Changes of addresses.
    #[serde(rename = "address", default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressEvent>,
    /// Limits and checks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub run: Run,
    /// Samples over time, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Addresses and ports of the emulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorSpec>,
    /// The policies and profiles that the scenario may name.
    #[serde(skip)]
    pub registry: Registry,
}

const fn default_seed() -> u64 {
    1
}

impl Scenario {
    /// An empty scenario of this name with seed 1: add paths and a workload.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA,
            name: name.into(),
            seed: default_seed(),
            named: None,
            paths: Vec::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            traffic: Vec::new(),
            transport: Transport::default(),
            policy: Policy::default(),
            workload: None,
            associations: Vec::new(),
            faults: Vec::new(),
            addresses: Vec::new(),
            run: Run::default(),
            series: None,
            emulator: None,
            registry: Registry::default(),
        }
    }

    /// Adds a path between the two hosts.
    #[must_use]
    pub fn path(mut self, path: PathSpec) -> Self {
        self.paths.push(path);
        self
    }

    /// Replaces all paths with those of this network.
    #[must_use]
    pub fn topology(mut self, name: TopologyName) -> Self {
        self.paths = name.paths();
        self
    }

    /// Sets the workload.
    #[must_use]
    pub fn workload(mut self, workload: Workload) -> Self {
        self.workload = Some(workload);
        self
    }

    /// Adds an association.
    #[must_use]
    pub fn association(mut self, association: AssociationSpec) -> Self {
        self.associations.push(association);
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Adds a change of an address.
    #[must_use]
    pub fn address(mut self, event: AddressEvent) -> Self {
        self.addresses.push(event);
        self
    }

    /// Sets the root seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The scenario as TOML; [`from_toml`](Self::from_toml) reads the same scenario back.
    pub fn to_toml(&self) -> String {
        // Nothing in the schema fails to serialize: keys are strings, numbers fit.
        toml::to_string(self).unwrap_or_default()
    }

    /// All parameters and policies that `[transport]` and `[policy]` give one side, including those
    /// of the profile.
    ///
    /// # Errors
    /// One of them is not allowed.
    pub fn effective(&self, side: Side) -> Result<Effective, ScenarioError> {
        transport::config(&[self.layer()], &self.registry, side)
            .map(|config| Effective { config })
            .map_err(|problem| problem.at(Place::default()))
    }

    /// Settings of all associations.
    const fn layer(&self) -> Layer<'_> {
        Layer { at: Key::root(), transport: &self.transport, policy: &self.policy }
    }
}

#[cfg(test)]
mod tests;
