//! Requirements on the outcome of a scenario: whether its association must survive, and how long it
//! may make no progress.

use polypath_proto::Config;
use polypath_proto::procedures::ns2::PROCEDURES;
use polypath_sim::link::LossModel;
use polypath_sim::scenario::{
    AddressKind, Effective, Fault, FaultKind, LinkSpec, Side, SizeRange, TrafficKind, Workload,
};
use polypath_sim::units::{Rate, Size, Span};
use polypath_sim::{Scenario, ScenarioError};

/// Probability below which an event is assumed never to happen.
const NEVER: f64 = 1e-9;
/// Maximum number of attempts, for links that are overloaded or lose nearly all packets.
const MOST_ATTEMPTS: f64 = 500.0;
/// Rate of links that transmit in no time.
const UNKNOWN_RATE: Rate = Rate(u64::MAX);

/// Requirements on the outcome of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Whether nothing in the scenario can justify that an association fails.
    pub survives: bool,
    /// Time by which an association that survives must be complete.
    pub deadline: Span,
    /// Longest time without progress: by RFC 9260, an association that makes no progress for this
    /// long after the last change of the network has ended, or will never make any.
    pub patience: Span,
    /// Whether background traffic alone takes more than half of the slowest link: its bursts may
    /// leave nothing, and a queue without a limit may grow forever.
    pub overloaded: bool,
    /// Whether it uses ns-2's procedures, by which an association need not end.
    pub ns2: bool,
    /// Whether the side that opens the association and the other one send HEARTBEATs, so that each
    /// detects the loss of its peer although it has nothing to send.
    pub heartbeats: [bool; 2],
    /// Whether an address of the side that opens the association may be removed before it is
    /// established.
    pub may_lose_its_address: bool,
    /// Whether addresses are added or removed.
    pub addresses_change: bool,
}

impl Terms {
    /// The requirements of a scenario.
    ///
    /// # Errors
    /// The scenario is invalid.
    pub fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let sides = [scenario.effective(Side::Sender)?, scenario.effective(Side::Receiver)?];
        let sides = sides.map(|Effective { config }| config);
        let network = NetworkTerms::of(scenario);
        let heartbeats = |side: &Config| side.heartbeat_interval().is_some();
        Ok(Self {
            survives: survives(scenario, &sides, &network),
            deadline: deadline(scenario, &sides, &network),
            patience: sides.iter().map(|side| patience(side, &network)).max().unwrap_or_default(),
            overloaded: network.is_overloaded(),
            ns2: is_ns2(&sides[0]),
            heartbeats: sides.each_ref().map(heartbeats),
            may_lose_its_address: scenario.addresses.iter().any(|e| e.node.starts_with("sender")),
            addresses_change: !scenario.addresses.is_empty(),
        })
    }
}

/// The longest time without progress.
///
/// RFC 9260 8.1 counts an error for every timeout, and each acknowledgement sets the count to zero:
/// an association ends after Association.Max.Retrans + 1 timeouts in a row (a handshake after
/// Max.Init.Retransmits + 1, section 5.1), each of at most RTO.Max (6.3.3, E2), and an idle
/// association after as many HEARTBEATs, one each RTO + 1.5 HB.interval at most (8.3). If
/// occasional acknowledgements keep it from ending, at most as many attempts fail in a row as fail
/// with a probability of 10^-9. So:
///
/// patience = (max(Association.Max.Retrans, Max.Init.Retransmits, attempts) + 2)
///            * (RTO.Max + 1.5 HB.interval)
fn patience(side: &Config, network: &NetworkTerms) -> Span {
    let errors = side.association_max_retrans().max(side.max_init_retransmits());
    let attempts = network.attempts() as u64;
    let each = rto_max(side) + heartbeat_period(side);
    Span((u64::from(errors).max(attempts) + 2).saturating_mul(each))
}

fn is_ns2(side: &Config) -> bool {
    side.procedures() == PROCEDURES
}

/// RTO.Max in nanoseconds.
fn rto_max(side: &Config) -> u64 {
    Span::from(side.rto_max()).0
}

/// 1.5 HB.interval in nanoseconds, or 0 without HEARTBEATs.
fn heartbeat_period(side: &Config) -> u64 {
    let interval = side.heartbeat_interval().map_or(0, |interval| Span::from(interval).0);
    interval + interval / 2
}

/// Timeouts that an association which survives may spend waiting. Among a thousand drawn cases the
/// maximum is 130.
const CRAWLS: u64 = 500;

/// The time of the last change, plus the time that applications and links need, plus 500 timeouts:
/// an association that needs longer crawls. With ns-2's procedures a timeout may make a path
/// inactive, and CMT-PF sends no data on it until a HEARTBEAT was acknowledged.
fn deadline(scenario: &Scenario, sides: &[Config; 2], network: &NetworkTerms) -> Span {
    let changes =
        scenario.faults.iter().map(|fault| fault.at.0 + fault.lasts.unwrap_or_default().0);
    let moves = scenario
        .addresses
        .iter()
        .map(|event| event.at.0 + event.lasts.unwrap_or_default().0 + event.notice_delay.0);
    let last = changes.chain(moves).max().unwrap_or(0);
    let workloads = scenario.associations.iter().map(|one| &one.workload);
    let needed = workloads.chain(&scenario.workload).map(|w| needed(w, network)).max().unwrap_or(0);
    let timeout = |side: &Config| {
        let heartbeat = if is_ns2(side) { heartbeat_period(side) } else { 0 };
        rto_max(side) + heartbeat
    };
    let each = sides.iter().map(timeout).max().unwrap_or(0);
    Span(last.saturating_add(needed).saturating_add(each.saturating_mul(CRAWLS)))
}

/// Nanoseconds that a workload takes without loss: twice its bytes over the slowest link, read at
/// the application's rate, and for each message its interval, a round trip and two delayed SACKs.
fn needed(workload: &Workload, network: &NetworkTerms) -> u64 {
    let largest = |range: Option<SizeRange>| range.map_or(1500, |range| range.max.0);
    let size = largest(workload.message_size).max(largest(workload.reply_size));
    let messages = workload
        .messages
        .unwrap_or_else(|| workload.size.map_or(1, |bytes| bytes.0.div_ceil(size.max(1))));
    // Count both directions, and each message with headers.
    let bytes = messages.saturating_mul(2 * (size + size / 4 + 200));
    let slowest = [Some(network.slowest), workload.read_rate].into_iter().flatten().min();
    let carried = slowest.map_or(0, |rate| rate.time_for(bytes).as_nanos() as u64);
    let each = workload.interval.unwrap_or_default().0 + 4 * network.delay.0 + 1_000_000_000;
    let start = workload.start.unwrap_or_default().0;
    start.saturating_add(carried.saturating_mul(2)).saturating_add(messages.saturating_mul(each))
}

/// Whether an association has to survive in this network.
fn survives(scenario: &Scenario, sides: &[Config; 2], network: &NetworkTerms) -> bool {
    let errors = sides.iter().flat_map(|s| [s.association_max_retrans(), s.max_init_retransmits()]);
    let errors = errors.min().unwrap_or(0);
    let outage = scenario.faults.iter().any(|fault| fault.kind == FaultKind::Down);
    let blackhole = network.least_mtu.is_some_and(|mtu| {
        sides.iter().any(|s| !s.path_mtu_discovery() && u64::from(s.path_mtu()) > mtu.0)
    });
    !outage
        && !blackhole
        && !network.is_overloaded()
        && network.attempts() < f64::from(errors) + 1.0
        && addresses_allow_it(scenario, sides)
}

/// Whether one address at each side stays all the time, and both sides have agreed on how to
/// announce the removal of others: otherwise a path fails.
fn addresses_allow_it(scenario: &Scenario, sides: &[Config; 2]) -> bool {
    let goes = |event: &polypath_sim::scenario::AddressEvent| {
        event.kind == AddressKind::Goes || event.lasts.is_some()
    };
    let agreed = sides.iter().all(Config::dynamic_addresses)
        && (sides.iter().all(Config::authentication)
            || sides.iter().all(Config::unauthenticated_addresses));
    if scenario.addresses.iter().any(goes) && !agreed {
        return false;
    }
    let moves = |host: &str, n: usize| {
        let name = format!("{host}.{n}");
        scenario.addresses.iter().any(|event| event.node == name || event.node == host)
    };
    match scenario.paths.len() {
        0 => scenario
            .nodes
            .iter()
            .filter(|node| !node.addresses.is_empty())
            .all(|host| (0..host.addresses.len()).any(|n| !moves(&host.name, n))),
        paths => (0..paths).any(|n| !moves("sender", n) && !moves("receiver", n)),
    }
}

/// Worst-case properties of a network.
#[derive(Clone, Copy, Debug)]
struct NetworkTerms {
    /// Probability, on the worst link, that a packet is lost given that the one before was.
    loss: f64,
    /// Number of packets in the longest loss script.
    scripted: usize,
    /// Number of links that a packet and its reply cross.
    links: i32,
    slowest: Rate,
    /// The longest propagation delay, including the delay that reordering adds.
    delay: Span,
    /// Background traffic of all sources together, in bits per second.
    background: f64,
    least_mtu: Option<Size>,
}

impl NetworkTerms {
    fn of(scenario: &Scenario) -> Self {
        let links = if scenario.paths.is_empty() { 4 } else { 2 };
        let mut terms = Self {
            loss: 0.0,
            scripted: 0,
            links,
            slowest: UNKNOWN_RATE,
            delay: Span::default(),
            background: background(scenario),
            least_mtu: None,
        };
        for path in &scenario.paths {
            let whole = LinkSpec {
                rate: path.rate,
                mtu: path.mtu,
                delay: path.delay,
                reorder: path.reorder,
                loss: path.loss.clone(),
                corrupt: path.corrupt,
                ..LinkSpec::default()
            };
            terms.add_directions(&whole, [&path.forward, &path.back]);
            path.edge.iter().for_each(|edge| terms.add(edge, edge));
        }
        for link in &scenario.links {
            let whole = LinkSpec {
                rate: link.rate,
                mtu: link.mtu,
                delay: link.delay,
                reorder: link.reorder,
                loss: link.loss.clone(),
                corrupt: link.corrupt,
                ..LinkSpec::default()
            };
            terms.add_directions(&whole, [&link.forward, &link.back]);
        }
        scenario.faults.iter().for_each(|fault| terms.add_fault(fault));
        terms
    }

    fn add_directions(&mut self, whole: &LinkSpec, directions: [&Option<LinkSpec>; 2]) {
        for over in directions {
            self.add(over.as_ref().unwrap_or(whole), whole);
        }
    }

    /// Adds a link; parameters that `over` does not set come from `whole`.
    fn add(&mut self, over: &LinkSpec, whole: &LinkSpec) {
        let (loss, scripted) = in_a_row(over.loss.as_ref().or(whole.loss.as_ref()));
        let corrupt = over.corrupt.or(whole.corrupt).map_or(0.0, |p| p.get());
        self.loss = self.loss.max(1.0 - (1.0 - loss) * (1.0 - corrupt));
        self.scripted = self.scripted.max(scripted);
        self.slowest = self.slowest.min(over.rate.or(whole.rate).unwrap_or(UNKNOWN_RATE));
        let reorder = over.reorder.or(whole.reorder).map_or(0, |reorder| reorder.delay.0);
        let delay = over.delay.or(whole.delay).unwrap_or_default().0;
        self.delay = self.delay.max(Span(delay + reorder));
        self.limit_mtu(over.mtu.or(whole.mtu));
    }

    fn add_fault(&mut self, fault: &Fault) {
        let (loss, scripted) = in_a_row(fault.loss.as_ref());
        self.loss = self.loss.max(loss);
        self.scripted = self.scripted.max(scripted);
        self.slowest = self.slowest.min(fault.rate.unwrap_or(UNKNOWN_RATE));
        self.delay = self.delay.max(fault.delay.unwrap_or_default());
        self.limit_mtu(fault.mtu);
    }

    fn limit_mtu(&mut self, mtu: Option<Size>) {
        self.least_mtu = [self.least_mtu, mtu].into_iter().flatten().min();
    }

    /// Whether background traffic alone takes more than half of the slowest link.
    fn is_overloaded(&self) -> bool {
        self.background * 2.0 > self.slowest.0 as f64
    }

    /// Number of attempts that all fail with a probability of at most 10^-9.
    fn attempts(&self) -> f64 {
        let fails = 1.0 - (1.0 - self.loss).powi(self.links);
        let attempts = match fails {
            p if p <= 0.0 => 1.0,
            p if p >= 1.0 || self.is_overloaded() => MOST_ATTEMPTS,
            p => (NEVER.ln() / p.ln()).ceil().max(1.0),
        };
        (attempts + self.scripted as f64 * f64::from(self.links)).min(MOST_ATTEMPTS)
    }
}

/// Probability that a loss is followed by another, and the number of packets in a script.
fn in_a_row(loss: Option<&LossModel>) -> (f64, usize) {
    match loss {
        None | Some(LossModel::None) => (0.0, 0),
        Some(LossModel::Bernoulli(p)) => (p.get(), 0),
        Some(LossModel::GilbertElliott { bad_to_good, loss_good, loss_bad, .. }) => {
            let (leave, good) = (bad_to_good.get(), loss_good.get());
            (good.max((1.0 - leave) * loss_bad.get() + leave * good), 0)
        }
        Some(LossModel::Script(script)) => (0.0, script.len()),
    }
}

/// The mean rate of all background traffic.
fn background(scenario: &Scenario) -> f64 {
    let sources = scenario.traffic.iter().map(|spec| {
        let share = match (spec.kind, spec.on, spec.off) {
            // TCP has no rate of its own, and leaves others a share.
            (TrafficKind::Constant | TrafficKind::Tcp, _, _) => 1.0,
            (TrafficKind::Pareto, on, off) => {
                let [on, off] = [on, off].map(|s| s.unwrap_or(Span::millis(500)).0 as f64);
                on / (on + off).max(1.0)
            }
        };
        spec.rate.map_or(0.0, |rate| rate.0 as f64) * f64::from(spec.sources.unwrap_or(1)) * share
    });
    let crossing = scenario.paths.iter().filter_map(|path| {
        let traffic = path.cross_traffic.as_ref()?;
        let rate = [path.forward.as_ref().and_then(|link| link.rate), path.rate];
        let rate = rate.into_iter().flatten().next().map_or(0.0, |rate| rate.0 as f64);
        Some(traffic.rate.map_or(rate, |rate| rate.0 as f64))
    });
    sources.chain(crossing).sum()
}
