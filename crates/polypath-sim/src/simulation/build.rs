//! The beginning of a run: its network, its endpoints and its applications.

use std::sync::Arc;

use polypath_proto::wire::Checksum;
use polypath_proto::{Config, Encapsulation, Endpoint, EndpointConfig, Seed, Time};

use super::{SimError, Simulation};
use crate::application::Applications;
use crate::invariants::Schedule;
use crate::network::traffic::Source as Background;
use crate::network::{Move, Network};
use crate::random::{Random, derive};
use crate::scenario::{ApplicationPlan, Plan, Scenario, Side, encapsulation_port};
use crate::stack::{HostRoutes, Stack};
use crate::workload::{ApplicationPair, Conversation, Source, application};

impl Simulation<'_> {
    /// The run of a scenario that has been checked; `captured` if its packets will be written to a
    /// capture.
    ///
    /// # Errors
    /// A workload names an application that is not among `own`.
    pub(crate) fn new(
        scenario: &Scenario,
        plan: Plan,
        own: &Applications,
        captured: bool,
    ) -> Result<Self, SimError> {
        let seed = scenario.seed;
        // Only a capture shows the checksum, and only an inverted bit makes it wrong. Debug builds
        // compute and verify it in any case.
        let seen = captured || cfg!(debug_assertions) || plan.topology.corrupts();
        let checks = seen && scenario.run.check_checksums;
        let opening = plan.associations.iter().map(|one| &one.config);
        let configs = opening.chain(plan.stacks.iter().map(|stack| &stack.config));
        let largest = configs.map(Config::path_mtu).max().unwrap_or(u16::MAX);
        let mut network = Network::new(plan.topology, seed, usize::from(largest));
        network.expect(&plan.changes);
        network.start_traffic(plan.traffic.into_iter().map(|t| Background::new(t, seed)).collect());
        network.start_tcp(plan.tcp);
        for node in plan.moves.iter().map(|one| one.node) {
            network.set_here(node, Move::is_here(&plan.moves, node, None));
        }
        let stacks = plan.stacks.iter().map(|stack| {
            let udp_port = encapsulation_port(stack.encapsulation);
            let encapsulation = match udp_port {
                0 => Encapsulation::RawIp,
                port => Encapsulation::Udp { port },
            };
            let there = stack.addresses.iter().copied().filter(|ip| network.has(*ip));
            let mut config = EndpointConfig::new(stack.port, there.collect(), encapsulation);
            config.listen = stack.listens;
            if stack.addresses.iter().any(|ip| network.topology.is_behind_nat(*ip)) {
                // RFC 6951 3.2, 5.7: addresses that a NAT translates are not listed.
                config.announced = Some(Vec::new());
            }
            config.max_associations = config.max_associations.max(2 * plan.associations.len());
            if !checks {
                config.checksum = Checksum::Ignore;
            }
            config.association = stack.config.clone();
            config.routes = Arc::new(HostRoutes::new(&network, stack.host));
            let host = &network.topology.hosts[stack.host.index()];
            let name = format!("endpoint:{host}/{}", stack.port);
            let endpoint = Endpoint::new(config, Seed::from_u64(derive(seed, &name)));
            Stack::new(endpoint, stack, udp_port)
        });
        let stacks = stacks.collect();
        let mut applications = plan
            .applications
            .iter()
            .map(|plan| Ok(ApplicationPair::new(plan, messages(plan, seed, own)?, &scenario.run)))
            .collect::<Result<Vec<_>, SimError>>()?;
        let mut conversations = Vec::new();
        for (index, one) in plan.associations.iter().enumerate() {
            let workload = &plan.applications[one.application].workload;
            let members = &mut applications[one.application].members;
            conversations.push(Conversation::new(
                one,
                workload,
                members.len(),
                seed,
                &scenario.run,
            ));
            members.push(index);
        }
        Ok(Self {
            name: scenario.name.clone(),
            seed,
            now: Time::ZERO,
            network,
            stacks,
            over: vec![false; conversations.len()],
            conversations,
            applications,
            changes: plan.changes,
            moves: plan.moves,
            resets: plan.resets,
            run: scenario.run.clone(),
            configs: plan.associations.into_iter().map(|one| one.config).collect(),
            schedule: Schedule::new(scenario.run.check_every),
            probes: Vec::new(),
            events: 0,
            touched: None,
            watch: None,
        })
    }
}

/// The applications of both sides.
fn messages(
    plan: &ApplicationPlan,
    seed: u64,
    own: &Applications,
) -> Result<[Source; 2], SimError> {
    let source = |side: Side, direction: &str| {
        let dice = Random::named(seed, &format!("workload:{}/{direction}", plan.name));
        application(&plan.workload, side, dice, own).map(Source::new)
    };
    match (source(Side::Sender, "forward"), source(Side::Receiver, "back")) {
        (Some(forward), Some(back)) => Ok([forward, back]),
        _ => Err(plan.unknown_application(own.names()).into()),
    }
}
