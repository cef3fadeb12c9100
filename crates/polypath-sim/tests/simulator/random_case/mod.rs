//! A random network, configuration and workload, all from one number.

mod addresses;

use polypath_proto::{BufferSplitting, BurstRule, ChunkTypes, Config, policy};
use polypath_sim::Scenario;
use polypath_sim::link::{LossModel, LossScript, Reordering};
use polypath_sim::random::Random;
use polypath_sim::scenario::{
    AssociationSpec, CheckEvery, Choice, CrossTraffic, Direction, EncapsulationSpec, Fault,
    LinkEntry, LinkSpec, NodeSpec, PathSpec, Policy, Reset, SizeRange, Switch, Threshold,
    TrafficKind, TrafficSpec, Transport, TransportParameters, Workload, WorkloadKind,
};
use polypath_sim::units::{Probability, QueueLimit, Rate, Size, Span};

/// A scenario, and what may be asked of it.
pub(crate) struct Case {
    pub(crate) scenario: Scenario,
    /// Nothing in it can justify that an association fails.
    pub(crate) gentle: bool,
    /// It runs by the procedures of ns-2's module.
    pub(crate) ns2: bool,
    /// Without heartbeats, an idle side asks for nothing but the paths' MTUs.
    pub(crate) asks_for_mtu_only: bool,
}

struct Dice(Random);

impl Dice {
    fn one_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.between(low, high)
    }

    /// Every order of magnitude (in bits) is as likely.
    fn spread(&mut self, low: u64, high: u64) -> u64 {
        let bits = |n: u64| u64::from(64 - n.leading_zeros());
        let bits = self.between(bits(low), bits(high));
        let top = 1u64 << (bits - 1);
        (top + self.0.below(top)).clamp(low, high)
    }

    fn percent(&mut self, most: u8) -> Probability {
        Probability::percent(self.between(0, most.into()) as u8)
    }
}

impl Case {
    pub(crate) fn new(number: u64) -> Self {
        let mut dice = Dice(Random::named(number, "case"));
        let mut scenario = Scenario::new(format!("case {number:#x}")).seed(number);
        let harshness = Harshness::new(&mut dice);
        network(&mut scenario, &mut dice, harshness);
        scenario.transport = transport(&mut dice, harshness);
        // Not by the dice, so that cases which failed once stay what they were.
        scenario.transport.burst_rule = (number % 4 == 1).then_some(Choice(BurstRule::FlightSize));
        scenario.policy = policies(&mut Dice(Random::named(number, "policies")));
        scenario.transport.potentially_failed_cwnd =
            (number % 3 == 1).then_some(number as u32 / 3 % 4 + 1);
        scenario.transport.profile = match number % 16 {
            3 => Some("ns2-2.35".to_owned()),
            11 => Some("paper-2006".to_owned()),
            _ => None,
        };
        // Likewise, and with dice of their own.
        let traffic = matches!(number % 16, 4..=7);
        if traffic {
            background(&mut scenario, &mut Dice(Random::named(number, "traffic")), harshness);
        }
        let mut workload = workload(&mut dice, &scenario.transport);
        // Alone in some cases, and together with resets in others.
        if number % 8 == 2 || number % 16 == 6 {
            let dice = &mut Dice(Random::named(number, "reliability"));
            partial_reliability(&mut scenario, &mut workload, dice);
        }
        if scenario.paths.is_empty() {
            scenario.associations.push(AssociationSpec::new("sender", "receiver", workload));
        } else {
            scenario.workload = Some(workload);
        }
        resets(&mut scenario, number);
        authenticates(&mut scenario, number);
        extensions(&mut scenario, number);
        bounded_buffers(&mut scenario, number);
        let agreed = addresses::draw(&mut scenario, number, harshness);
        let faults = faults(&mut scenario, &mut dice, harshness);
        scenario.run.check_every = CheckEvery::Events(1);
        // Background traffic goes on through outages of hours.
        scenario.run.max_events = if traffic { 30_000_000 } else { 3_000_000 };
        forget_refused_threshold(&mut scenario);
        let ns2 = scenario.transport.profile.is_some();
        let transport = &scenario.transport;
        let asks_for_mtu_only = transport.path_mtu_discovery == Some(true)
            && matches!(transport.heartbeat_interval, Some(Switch::Off));
        let gentle = harshness == Harshness::Gentle && !faults && agreed;
        Self { gentle, ns2, asks_for_mtu_only, scenario }
    }

    /// The same with the standard answers: what cases had that failed before answers were drawn.
    pub(crate) fn with_standard_answers(mut self) -> Self {
        self.scenario.policy = Policy::default();
        self.scenario.transport.partial_reliability = None;
        self.scenario.transport.interleaving = None;
        let workloads = self.scenario.associations.iter_mut().map(|a| &mut a.workload);
        for workload in workloads.chain(&mut self.scenario.workload) {
            (workload.lifetime, workload.retransmissions, workload.priorities) = (None, None, None);
            workload.unreliable = None;
        }
        forget_refused_threshold(&mut self.scenario);
        self
    }
}

/// Only some answers heed a Change Primary Threshold, and not every one.
fn forget_refused_threshold(scenario: &mut Scenario) {
    let transport = &mut scenario.transport;
    let least = transport.potentially_failed_max_retrans.unwrap_or(0);
    let low = matches!(transport.change_primary_threshold, Some(Threshold(Some(n))) if n < least);
    let refused = match scenario.policy.failover.as_deref() {
        Some("permanent") => false,
        Some("potentially-failed" | "cmt-potentially-failed") => low,
        _ => true,
    };
    if refused {
        transport.change_primary_threshold = None;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Harshness {
    /// Some loss and disorder: everything must arrive and close gracefully.
    Gentle,
    /// Outages too, but constants that wait for their end.
    Outages,
    /// Anything.
    Anything,
}

impl Harshness {
    fn new(dice: &mut Dice) -> Self {
        match dice.between(0, 9) {
            0..=4 => Self::Gentle,
            5..=7 => Self::Outages,
            _ => Self::Anything,
        }
    }

    fn loss(self, dice: &mut Dice) -> LossModel {
        let most = match self {
            Self::Gentle => 8,
            Self::Outages => 15,
            Self::Anything => 30,
        };
        let gentle = self == Self::Gentle;
        match dice.between(0, 5) {
            0 | 1 => LossModel::None,
            // The states change with packets, not with time: a bad one that lasts is an outage for
            // whoever sends little, such as a SHUTDOWN now and then.
            2 => LossModel::GilbertElliott {
                good_to_bad: Probability::percent(dice.between(1, 3) as u8),
                bad_to_good: Probability::percent(
                    dice.between(if gentle { 50 } else { 20 }, 80) as u8
                ),
                loss_good: Probability::ZERO,
                loss_bad: Probability::percent(
                    dice.between(20, if gentle { 50 } else { 100 }) as u8
                ),
            },
            3 => LossModel::Script(LossScript::packets(
                (0..dice.between(0, 8)).map(|_| dice.between(1, 60)),
            )),
            _ => LossModel::bernoulli(dice.percent(most)),
        }
    }
}

fn link(dice: &mut Dice, harshness: Harshness) -> LinkSpec {
    let mut link = LinkSpec::default()
        .rate(Rate(dice.spread(200_000, 100_000_000)))
        .delay(Span(dice.spread(1, 300_000_000)))
        .loss(harshness.loss(dice));
    link.queue = Some(match dice.between(0, 3) {
        0 => QueueLimit::Bytes(dice.spread(10_000, 1_000_000)),
        1 => QueueLimit::Unlimited,
        _ => QueueLimit::Packets(dice.spread(4, 200) as u32),
    });
    if dice.one_in(3) {
        let probability = dice.percent(20);
        let delay = Span(dice.spread(1_000, 200_000_000));
        link.reorder = Some(Reordering { probability, delay });
    }
    link.duplicate = dice.one_in(3).then(|| dice.percent(10));
    link.corrupt = dice.one_in(3).then(|| dice.percent(5));
    link
}

fn network(scenario: &mut Scenario, dice: &mut Dice, harshness: Harshness) {
    let v6 = dice.one_in(4);
    let address = |net: u64, host: u64| {
        let text = if v6 { format!("fd00:{net}::{host}") } else { format!("192.168.{net}.{host}") };
        text.parse().expect("an address")
    };
    if !dice.one_in(4) {
        for n in 0..dice.between(1, 3) {
            let mut path = PathSpec {
                addresses: Some([address(n, 1), address(n, 2)]),
                forward: Some(link(dice, harshness)),
                back: Some(link(dice, harshness)),
                ..PathSpec::default()
            };
            if dice.one_in(4) {
                path = path.edge(LinkSpec::default().rate(Rate::mbit(100)).delay(Span::millis(1)));
            }
            scenario.paths.push(path);
        }
        return;
    }
    // Every interface has a link of its own to one router: each address reaches each other.
    let mut hosts = Vec::new();
    for (host, name) in ["sender", "receiver"].into_iter().enumerate() {
        let addresses = (0..dice.between(1, 3)).map(|n| address(n, host as u64 + 1)).collect();
        hosts.push(NodeSpec { name: name.to_owned(), addresses });
    }
    for host in &hosts {
        for n in 0..host.addresses.len() {
            scenario.links.push(LinkEntry {
                between: [format!("{}.{n}", host.name), "router".to_owned()],
                forward: Some(link(dice, harshness)),
                back: Some(link(dice, harshness)),
                ..LinkEntry::default()
            });
        }
    }
    scenario.nodes = hosts;
    scenario.nodes.push(NodeSpec { name: "router".to_owned(), addresses: Vec::new() });
}

/// Background traffic. Where associations have to survive, all of it together is less than half of the
/// slowest link: otherwise a queue without limit grows for ever.
fn background(scenario: &mut Scenario, dice: &mut Dice, harshness: Harshness) {
    let most = if harshness == Harshness::Anything { 200_000 } else { 10_000 };
    let ends = |dice: &mut Dice, scenario: &Scenario| match scenario.paths.len() {
        0 => [0, 1].map(|host| dice.0.below(scenario.nodes[host].addresses.len() as u64)),
        paths => [dice.0.below(paths as u64); 2],
    };
    for _ in 0..dice.between(1, 3) {
        let [from, to] = ends(dice, scenario);
        let mut nodes = [format!("sender.{from}"), format!("receiver.{to}")];
        if dice.one_in(2) {
            nodes.reverse();
        }
        let [from, to] = nodes;
        let constant = dice.one_in(3);
        scenario.traffic.push(TrafficSpec {
            from,
            to,
            kind: if constant { TrafficKind::Constant } else { TrafficKind::Pareto },
            rate: Rate(dice.spread(2_000, most)),
            packet_size: dice.one_in(2).then(|| Size(dice.spread(40, 2000))),
            sources: dice.one_in(2).then(|| dice.between(1, 3) as u32),
            start: dice.one_in(2).then(|| Span(dice.spread(1, 5_000_000_000))),
            shape: (!constant).then(|| 1.0 + dice.between(1, 30) as f64 / 10.0),
            on: (!constant).then(|| Span::millis(dice.spread(100, 5_000))),
            ..TrafficSpec::default()
        });
    }
    for path in scenario.paths.iter_mut().filter(|path| path.edge.is_some()) {
        path.cross_traffic = Some(CrossTraffic {
            rate: Some(Rate(dice.spread(2_000, most))),
            nodes: Some(dice.between(1, 3) as u32),
            sources: Some(dice.between(1, 4) as u32),
            ..CrossTraffic::default()
        });
    }
}

fn transport(dice: &mut Dice, harshness: Harshness) -> Transport {
    let rto_min = dice.spread(10, 1_000);
    let rto_initial = dice.spread(rto_min, 3_000);
    let rto_max = dice.spread(rto_initial.max(1_000), 60_000);
    let patient = harshness != Harshness::Anything;
    let mtu = *dice.0.pick(&[576, 1280, 1400, 1500, 1500, 1500, 9000]);
    let mut transport = Transport {
        encapsulation: dice.one_in(3).then_some(EncapsulationSpec::Udp),
        rto_min: Some(Span::millis(rto_min)),
        rto_initial: Some(Span::millis(rto_initial)),
        rto_max: Some(Span::millis(rto_max)),
        path_max_retrans: Some(dice.between(0, 5) as u32),
        potentially_failed_max_retrans: dice.one_in(2).then(|| dice.between(0, 3) as u32),
        change_primary_threshold: dice
            .one_in(2)
            .then(|| Threshold(Some(dice.between(0, 5) as u32))),
        association_max_retrans: Some(if patient { 100 } else { dice.between(0, 20) as u32 }),
        max_init_retransmits: Some(if patient { 100 } else { dice.between(0, 8) as u32 }),
        heartbeat_interval: Some(match dice.between(0, 3) {
            0 => Switch::Off,
            _ => Switch::On(Span::millis(dice.spread(50, 30_000))),
        }),
        sack_delay: Some(Span::millis(dice.between(0, 500))),
        sack_every: Some(dice.between(1, 4) as u32),
        receive_buffer: Some(Size(dice.spread(1_500, 1 << 20))),
        send_buffer: Some(Size(dice.spread(1_000, 1 << 20))),
        max_burst: Some(dice.between(1, 8) as u32),
        fast_retransmit_reports: Some(dice.between(1, 4) as u32),
        path_mtu: Some(Size(mtu)),
        full_mesh: dice.one_in(4).then_some(true),
        ..Transport::default()
    };
    if dice.one_in(3) {
        transport.initial_ssthresh = Some(Switch::On(Size(dice.spread(mtu, 1 << 20))));
    }
    if patient {
        // Data may wait for hours if every loss doubles the RTO.
        transport.cookie_life = Some(Span::secs(86_400));
    }
    transport
}

/// Any answer to each decision, in any combination that is allowed.
fn policies(dice: &mut Dice) -> Policy {
    macro_rules! draw {
        ($($seam:ident),*) => {{
            let mut policy = Policy::default();
            let mut config = Config::builder();
            $(
                let answer = *dice.0.pick(policy::$seam::ANSWERS);
                policy.$seam = Some(answer.name.to_owned());
                config = config.$seam(answer);
            )*
            (policy, config)
        }};
    }
    loop {
        let (policy, config) = draw!(
            retransmission,
            loss,
            congestion,
            cwnd_update,
            scheduler,
            failover,
            ack,
            rtt_sampling,
            probing,
            stream_scheduler
        );
        if config.build().is_ok() {
            return policy;
        }
    }
}

fn workload(dice: &mut Dice, transport: &Transport) -> Workload {
    let kind = match dice.between(0, 5) {
        0 => WorkloadKind::Periodic,
        1 => WorkloadKind::RequestReply,
        _ => WorkloadKind::Bulk,
    };
    let small = transport.receive_buffer.is_some_and(|Size(buffer)| buffer < 8_000);
    let largest = dice.spread(1, if small { 20_000 } else { 200_000 });
    let range =
        |dice: &mut Dice| SizeRange { min: Size(dice.spread(1, largest)), max: Size(largest) };
    // Few bytes in all: thousands of cases have to run.
    let total = dice.spread(1_000, if small { 60_000 } else { 300_000 });
    let messages = (total / (largest / 2 + 1)).clamp(1, 300);
    let direction = *dice.0.pick(&[Direction::Forward, Direction::Both, Direction::Back]);
    Workload {
        kind,
        direction: (kind != WorkloadKind::RequestReply).then_some(direction),
        messages: Some(messages),
        message_size: Some(range(dice)),
        reply_size: (kind == WorkloadKind::RequestReply && dice.one_in(2)).then(|| range(dice)),
        interval: match kind {
            WorkloadKind::Bulk => None,
            _ => Some(Span::millis(dice.spread(1, 500))),
        },
        streams: Some(dice.spread(1, 64) as u16),
        unordered: Some(match dice.between(0, 3) {
            0 => dice.percent(100),
            1 => Probability::ONE,
            _ => Probability::ZERO,
        }),
        start: dice.one_in(4).then(|| Span::millis(dice.between(0, 2_000))),
        read_rate: dice.one_in(4).then(|| Rate(dice.spread(50_000, 50_000_000))),
        ..Workload::default()
    }
}

/// Links that drop what is large, or mark before they drop; likewise.
fn extensions(scenario: &mut Scenario, number: u64) {
    if scenario.transport.profile.is_some() {
        return;
    }
    let interleaving = &mut Dice(Random::named(number, "interleaving"));
    if number.is_multiple_of(2) && interleaving.one_in(3) {
        scenario.transport.interleaving = Some(true);
    }
    let mut dice = Dice(Random::named(number, "extensions"));
    if number % 8 == 2 {
        scenario.transport.path_mtu_discovery = Some(true);
        for path in 0..scenario.paths.len() {
            let least = if scenario.paths[path].addresses.is_some_and(|a| a[0].is_ipv6()) {
                1280
            } else {
                600
            };
            scenario.paths[path].mtu = dice.one_in(2).then(|| Size(dice.between(least, 2000)));
            if dice.one_in(3) {
                let at = Span::millis(dice.spread(1, 10_000));
                let fault = Fault::mtu(path, at, Size(dice.between(least, 2000)));
                scenario.faults.push(fault.lasting(Span::millis(dice.spread(1, 30_000))));
            }
        }
    }
    if number % 8 == 7 {
        scenario.transport.ecn = Some(true);
        for path in &mut scenario.paths {
            path.mark_at = dice.one_in(2).then(|| dice.between(0, 20) as u32);
        }
    }
}

/// Chunks are authenticated in some cases. Not by the dice, likewise.
fn authenticates(scenario: &mut Scenario, number: u64) {
    if scenario.transport.profile.is_some() || number % 8 != 5 {
        return;
    }
    let mut dice = Dice(Random::named(number, "authentication"));
    scenario.transport.authentication = Some(true);
    scenario.transport.dynamic_addresses = dice.one_in(2).then_some(true);
    let all = [0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 132, 192];
    let types: Vec<u8> = all.into_iter().filter(|_| dice.one_in(3)).collect();
    scenario.transport.authenticated_chunks = Some(Choice(ChunkTypes::authenticated(&types)));
}

/// Streams and associations are reset in some cases. Not by the dice, likewise.
fn resets(scenario: &mut Scenario, number: u64) {
    if scenario.transport.profile.is_some() || number % 8 != 6 {
        return;
    }
    let mut dice = Dice(Random::named(number, "resets"));
    scenario.transport.stream_reconfiguration = Some(true);
    let specs = scenario.associations.iter_mut().map(|spec| &mut spec.workload);
    for workload in specs.chain(&mut scenario.workload) {
        workload.reset_every = Some(dice.spread(1, 60) as u32);
        workload.reset = Some(*dice.0.pick(&[
            Reset::Outgoing,
            Reset::Incoming,
            Reset::Both,
            Reset::Association,
        ]));
    }
}

/// Messages that may be given up, where both sides offer it.
fn partial_reliability(scenario: &mut Scenario, workload: &mut Workload, dice: &mut Dice) {
    if workload.kind == WorkloadKind::RequestReply {
        return;
    }
    scenario.transport.partial_reliability = (!dice.one_in(8)).then_some(true);
    match dice.between(0, 2) {
        0 => workload.lifetime = Some(Span(dice.spread(1, 3_000_000_000))),
        1 => workload.retransmissions = Some(dice.between(0, 2) as u32),
        _ => workload.priorities = Some(dice.between(1, 5) as u32),
    }
    workload.unreliable = dice.one_in(2).then(|| dice.percent(100));
}

/// NR-SACK at one side or both, and split buffers. Not by the dice, likewise.
fn bounded_buffers(scenario: &mut Scenario, number: u64) {
    if scenario.transport.profile.is_some() || number % 4 != 2 {
        return;
    }
    let mut dice = Dice(Random::named(number, "bounded buffers"));
    scenario.transport.nr_sack = Some(true);
    if dice.one_in(4) {
        let receiver = TransportParameters { nr_sack: Some(false), ..Default::default() };
        scenario.transport.receiver = Some(receiver);
    }
    let splitting = [
        BufferSplitting::Off,
        BufferSplitting::Send,
        BufferSplitting::Receive,
        BufferSplitting::Both,
    ];
    scenario.transport.buffer_splitting = Some(Choice(*dice.0.pick(&splitting)));
}

/// Outages and changes; true if there are outages.
fn faults(scenario: &mut Scenario, dice: &mut Dice, harshness: Harshness) -> bool {
    let links = scenario.paths.len().max(scenario.links.len());
    let target = |scenario: &Scenario, dice: &mut Dice, mut fault: Fault| {
        if scenario.paths.is_empty() {
            let link = dice.0.pick(&scenario.links);
            fault.path = None;
            fault.link = Some(format!("{}->{}", link.between[0], link.between[1]));
            if dice.one_in(2) {
                fault.link = Some(format!("{}->{}", link.between[1], link.between[0]));
            }
        } else if dice.one_in(3) {
            fault = fault.direction(*dice.0.pick(&[Direction::Forward, Direction::Back]));
        }
        fault
    };
    for _ in 0..dice.between(0, 2) {
        let path = dice.0.below(links as u64) as usize;
        let at = Span::millis(dice.spread(1, 10_000));
        let fault = match dice.between(0, 2) {
            0 => Fault::rate(path, at, Rate(dice.spread(200_000, 100_000_000))),
            1 => Fault::delay(path, at, Span(dice.spread(1, 300_000_000))),
            _ => Fault::loss(path, at, harshness.loss(dice)),
        };
        let fault = target(scenario, dice, fault);
        scenario.faults.push(fault);
    }
    if harshness == Harshness::Gentle {
        return false;
    }
    for _ in 0..dice.between(1, 4) {
        let path = dice.0.below(links as u64) as usize;
        let mut fault = Fault::down(path, Span::millis(dice.spread(1, 20_000)));
        // Some are for ever, where that may be.
        if harshness == Harshness::Outages || !dice.one_in(4) {
            fault = fault.lasting(Span::millis(dice.spread(1, 30_000)));
        }
        let fault = target(scenario, dice, fault);
        scenario.faults.push(fault);
    }
    // Every path for a while.
    if !scenario.paths.is_empty() && dice.one_in(3) {
        let at = Span::millis(dice.spread(1, 10_000));
        for path in 0..links {
            let span = Span::millis(dice.spread(100, 20_000));
            scenario.faults.push(Fault::down(path, at).lasting(span));
        }
    }
    true
}
