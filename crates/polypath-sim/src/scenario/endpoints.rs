//! Plans the associations of a scenario: their endpoints, ports, paths and settings.

use std::net::IpAddr;

use polypath_proto::Registry;
use polypath_proto::{Config, Time};

use super::Scenario;
use super::association::AssociationSpec;
use super::build::{ApplicationPlan, AssociationPlan, Plan, StackPlan};
use super::error::Problem;
use super::fault::PathRef;
use super::key::Key;
use super::transport::{self, EncapsulationSpec, Layer, Side};
use super::workload::{SizeRange, Workload};
use crate::network::{HostId, NodeId};
use crate::units::Size;

/// The first SCTP port to try if the scenario sets none.
const FIRST_PORT: u16 = 5001;

/// The settings of an association.
struct Settings {
    sender: Config,
    receiver: Config,
    encapsulation: EncapsulationSpec,
}

/// An association to be planned.
struct Wanted<'a> {
    name: String,
    ends: [HostId; 2],
    /// Indices of the addresses at both hosts; `None` means all of them.
    paths: Option<Vec<usize>>,
    port: Option<u16>,
    application: usize,
    settings: &'a Settings,
    key: &'a Key,
}

impl Plan {
    pub(super) fn add_associations(&mut self, scenario: &Scenario) -> Result<(), Problem> {
        let root = Key::root();
        let base = scenario.layer();
        let Some(workload) = &scenario.workload else {
            if scenario.associations.is_empty() {
                // Nothing runs, but the settings are validated.
                settings(&[base], &scenario.registry)?;
            }
            let specs = scenario.associations.iter().enumerate();
            return specs.into_iter().try_for_each(|(i, spec)| self.add_spec(scenario, i, spec));
        };
        if !scenario.associations.is_empty() {
            let text = "either [workload] or [[association]], not both";
            return Err(Problem::new(root.field("workload"), text));
        }
        let key = root.field("workload");
        let settings = settings(&[base], &scenario.registry)?;
        if self.topology.hosts.len() < 2 {
            let text = "needs two hosts: a [[node]] with addresses is one";
            return Err(Problem::new(key, text));
        }
        let wanted = Wanted {
            name: "main".to_owned(),
            ends: [HostId(0), HostId(1)],
            paths: None,
            port: None,
            application: 0,
            settings: &settings,
            key: &key,
        };
        self.add_application(wanted, workload, &key, &[])
    }

    fn add_spec(
        &mut self,
        scenario: &Scenario,
        i: usize,
        spec: &AssociationSpec,
    ) -> Result<(), Problem> {
        let key = Key::root().field("association").index(i);
        let own = Layer { at: key.clone(), transport: &spec.transport, policy: &spec.policy };
        let settings = settings(&[scenario.layer(), own], &scenario.registry)?;
        let host = |field: &str, name: &str| {
            let found = self.topology.hosts.iter().position(|host| host == name);
            found.map(|i| HostId(i as u32)).ok_or_else(|| {
                let known = self.topology.hosts.iter().map(String::as_str);
                Problem::unknown(key.field(field), "host", name, known)
            })
        };
        let ends = [host("from", &spec.from)?, host("to", &spec.to)?];
        let name = spec.name.clone().unwrap_or_else(|| format!("association{i}"));
        if self.applications.iter().any(|known| known.name == name) {
            let text = format!("another association is called \"{name}\"");
            return Err(Problem::new(key.field("name"), text));
        }
        let paths = match &spec.paths {
            Some(refs) => Some(self.numbers(refs, ends, &key.field("paths"))?),
            None => None,
        };
        let taken: Vec<u16> = scenario.associations.iter().filter_map(|a| a.port).collect();
        let wanted = Wanted {
            name,
            ends,
            paths,
            port: spec.port,
            application: self.applications.len(),
            settings: &settings,
            key: &key,
        };
        self.add_application(wanted, &spec.workload, &key.field("workload"), &taken)
    }

    /// Indices of the addresses to which the path references refer.
    fn numbers(
        &self,
        refs: &[PathRef],
        ends: [HostId; 2],
        key: &Key,
    ) -> Result<Vec<usize>, Problem> {
        if refs.is_empty() {
            return Err(Problem::new(key.clone(), "found none; allowed: at least one"));
        }
        let mut numbers = Vec::new();
        for (n, path) in refs.iter().enumerate() {
            let found = match path {
                PathRef::Index(index) => Some(*index).filter(|&i| i < self.path_count(ends)),
                PathRef::Name(name) => self.paths.iter().position(|p| p.name == *name),
            };
            let key = key.index(n);
            let number = found.ok_or_else(|| {
                let names = (0..self.path_count(ends)).map(|n| self.path_name(n));
                let names: Vec<String> = names.collect();
                let known = names.iter().map(String::as_str);
                Problem::unknown(key.clone(), "path", &path.to_string(), known)
            })?;
            if numbers.contains(&number) {
                return Err(Problem::new(key, format!("path {path} is there already")));
            }
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Number of address indices that exist at both hosts.
    fn path_count(&self, ends: [HostId; 2]) -> usize {
        let counts = ends.map(|host| self.topology.interfaces(host).len());
        counts[0].min(counts[1])
    }

    fn path_name(&self, number: usize) -> String {
        self.paths.get(number).map_or_else(|| number.to_string(), |path| path.name.clone())
    }

    /// Adds an application with its association, or with one association for each path.
    fn add_application(
        &mut self,
        wanted: Wanted<'_>,
        workload: &Workload,
        workload_key: &Key,
        taken: &[u16],
    ) -> Result<(), Problem> {
        workload.check(workload_key)?;
        check_workload(workload, wanted.settings, workload_key)?;
        self.applications.push(ApplicationPlan {
            name: wanted.name.clone(),
            workload: workload.clone(),
            key: workload_key.clone(),
        });
        if !workload.is_striped() {
            return self.add(&wanted, workload, taken);
        }
        let all = || (0..self.path_count(wanted.ends)).collect();
        let paths: Vec<usize> = wanted.paths.clone().unwrap_or_else(all);
        for (n, path) in (0u16..).zip(paths) {
            let port = wanted.port.map(|first| {
                first.checked_add(n).ok_or_else(|| {
                    let text = format!("found {first}; the associations of each path need more");
                    Problem::new(wanted.key.field("port"), text)
                })
            });
            let one = Wanted {
                name: format!("{}/{}", wanted.name, self.path_name(path)),
                paths: Some(vec![path]),
                port: port.transpose()?,
                ..wanted
            };
            self.add(&one, workload, taken)?;
        }
        Ok(())
    }

    /// Plans one association; `taken` are the ports that the scenario assigns to associations.
    fn add(
        &mut self,
        wanted: &Wanted<'_>,
        workload: &Workload,
        taken: &[u16],
    ) -> Result<(), Problem> {
        let Wanted { ends, key, .. } = *wanted;
        if ends[0] == ends[1] {
            return Err(Problem::new(key.field("to"), "is the host that opens the association"));
        }
        if !self.is_connected(ends, wanted.paths.as_deref()) {
            let [from, to] = ends.map(|host| self.topology.hosts[host.index()].as_str());
            let text = format!("no way leads from {from} to {to}, or none back");
            return Err(Problem::new(key.clone(), text));
        }
        let stacks = match wanted.port {
            Some(0) => {
                let text = "found 0; allowed: from 1 to 65535";
                return Err(Problem::new(key.field("port"), text));
            }
            Some(port) => {
                let stacks = self.stacks_for(wanted, port);
                stacks.map_err(|text| Problem::new(key.field("port"), text))?
            }
            None => {
                let mut ports = (FIRST_PORT..=u16::MAX).filter(|port| !taken.contains(port));
                let found = ports.find_map(|port| self.stacks_for(wanted, port).ok());
                found.ok_or_else(|| {
                    Problem::new(key.clone(), "no port is left between the two hosts")
                })?
            }
        };
        let stacks = stacks.map(|stack| match stack {
            Stack::Known(index) => index,
            Stack::New(plan) => {
                self.stacks.push(*plan);
                self.stacks.len() - 1
            }
        });
        let accepting = &mut self.stacks[stacks[1]];
        accepting.listens = true;
        accepting.config = wanted.settings.receiver.clone();
        self.associations.push(AssociationPlan {
            name: wanted.name.clone(),
            stacks,
            port: accepting.port,
            start: Time::ZERO + workload.start.unwrap_or_default().duration(),
            config: wanted.settings.sender.clone(),
            application: wanted.application,
        });
        Ok(())
    }

    /// The stacks of both hosts with this port, or the reason why the association cannot use it.
    fn stacks_for(&self, wanted: &Wanted<'_>, port: u16) -> Result<[Stack; 2], String> {
        let opening = self.stack(wanted, 0, port)?;
        let accepting = self.stack(wanted, 1, port)?;
        if let (Stack::Known(a), Stack::Known(b)) = (&opening, &accepting) {
            let taken =
                |known: &AssociationPlan| known.stacks == [*a, *b] || known.stacks == [*b, *a];
            if self.associations.iter().any(taken) {
                return Err(format!(
                    "another association between the two hosts has port {port}; each needs its own"
                ));
            }
        }
        Ok([opening, accepting])
    }

    /// The stack of one host with this port: an existing one if its addresses and settings match.
    fn stack(&self, wanted: &Wanted<'_>, side: usize, port: u16) -> Result<Stack, String> {
        let host = wanted.ends[side];
        let all = self.topology.addresses(host);
        let addresses: Vec<IpAddr> = match &wanted.paths {
            Some(paths) => paths.iter().map(|&path| all[path]).collect(),
            None => all,
        };
        let Settings { receiver, encapsulation, .. } = wanted.settings;
        let Some(index) = self.stacks.iter().position(|s| s.host == host && s.port == port) else {
            return Ok(Stack::New(Box::new(StackPlan {
                host,
                port,
                addresses,
                encapsulation: *encapsulation,
                listens: false,
                config: receiver.clone(),
            })));
        };
        let known = &self.stacks[index];
        let accepts_alike = side == 0 || !known.listens || known.config == *receiver;
        if known.addresses != addresses || known.encapsulation != *encapsulation || !accepts_alike {
            let host = &self.topology.hosts[host.index()];
            return Err(format!(
                "another association at {host} has port {port} and other paths or settings; each \
                 needs its own"
            ));
        }
        Ok(Stack::Known(index))
    }

    /// Whether some address of one host reaches one of the other, and back.
    fn is_connected(&self, ends: [HostId; 2], paths: Option<&[usize]>) -> bool {
        let routes = self.topology.routes();
        let interfaces = |host| -> Vec<NodeId> {
            let all = self.topology.interfaces(host);
            match paths {
                Some(paths) => paths.iter().map(|&path| all[path]).collect(),
                None => all,
            }
        };
        let [here, there] = ends.map(interfaces);
        here.iter().any(|&a| {
            let both = |b| routes.hops(a, b).is_some() && routes.hops(b, a).is_some();
            there.iter().any(|&b| both(b) && self.topology.same_family(a, b))
        })
    }
}

/// A stack that is already planned, or one to be added.
enum Stack {
    Known(usize),
    New(Box<StackPlan>),
}

fn settings(layers: &[Layer<'_>], registry: &Registry) -> Result<Settings, Problem> {
    Ok(Settings {
        sender: transport::config(layers, registry, Side::Sender)?,
        receiver: transport::config(layers, registry, Side::Receiver)?,
        encapsulation: transport::encapsulation(layers),
    })
}

/// Checks that the association can carry the workload.
fn check_workload(workload: &Workload, settings: &Settings, key: &Key) -> Result<(), Problem> {
    let Settings { sender, receiver, .. } = settings;
    let largest = |config: &Config, range: Option<SizeRange>, field: &str| match range {
        Some(range) if range.max.0 > u64::from(config.max_message_size()) => {
            let most = Size(config.max_message_size().into());
            let text = format!("found {range}; allowed: at most max_message_size ({most})");
            Err(Problem::new(key.field(field), text))
        }
        _ => Ok(()),
    };
    largest(sender, workload.message_size, "message_size")?;
    largest(receiver, workload.message_size, "message_size")?;
    largest(receiver, workload.reply_size, "reply_size")?;
    let streams = sender.outbound_streams().min(receiver.outbound_streams());
    let streams = streams.min(sender.inbound_streams()).min(receiver.inbound_streams());
    if workload.streams.is_some_and(|n| n > streams) {
        let text = format!("allowed: at most {streams}, the streams of [transport]");
        return Err(Problem::new(key.field("streams"), text));
    }
    Ok(())
}
