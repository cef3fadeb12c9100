//! Constants, policies and extensions of the protocol.

use std::time::Duration;

use polypath_proto::{BufferSplitting, ChunkTypes, Config, ConfigBuilder, Overrides, Registry};
use polypath_sim::Scenario;
use polypath_sim::random::Random;
use polypath_sim::scenario::{
    EncapsulationSpec, Fault, Policy, Reset, Transport, Workload, WorkloadKind,
};
use polypath_sim::units::{Size, Span};

use super::{Dice, Harshness};

pub(super) fn transport(dice: &mut Dice, harshness: Harshness) -> Transport {
    let rto_min = dice.spread(10, 1_000);
    let rto_initial = dice.spread(rto_min, 3_000);
    let rto_max = dice.spread(rto_initial.max(1_000), 60_000);
    let patient = harshness != Harshness::Anything;
    let mtu = *dice.0.pick(&[576, 1280, 1400, 1500, 1500, 1500, 9000]);
    let encapsulation = dice.one_in(3).then_some(EncapsulationSpec::Udp);
    let mut both = Overrides {
        rto_min: Some(Duration::from_millis(rto_min)),
        rto_initial: Some(Duration::from_millis(rto_initial)),
        rto_max: Some(Duration::from_millis(rto_max)),
        path_max_retrans: Some(dice.between(0, 5) as u32),
        potentially_failed_max_retrans: dice.one_in(2).then(|| dice.between(0, 3) as u32),
        change_primary_threshold: dice.one_in(2).then(|| Some(dice.between(0, 5) as u32)),
        association_max_retrans: Some(if patient { 100 } else { dice.between(0, 20) as u32 }),
        max_init_retransmits: Some(if patient { 100 } else { dice.between(0, 8) as u32 }),
        heartbeat_interval: Some(match dice.between(0, 3) {
            0 => None,
            _ => Some(Duration::from_millis(dice.spread(50, 30_000))),
        }),
        sack_delay: Some(Duration::from_millis(dice.between(0, 500))),
        sack_every: Some(dice.between(1, 4) as u32),
        receive_buffer: Some(dice.spread(1_500, 1 << 20) as u32),
        send_buffer: Some(dice.spread(1_000, 1 << 20) as u32),
        max_burst: Some(dice.between(1, 8) as u32),
        fast_retransmit_reports: Some(dice.between(1, 4) as u32),
        path_mtu: Some(mtu),
        full_mesh: dice.one_in(4).then_some(true),
        ..Overrides::default()
    };
    if dice.one_in(3) {
        both.initial_ssthresh = Some(Some(dice.spread(mtu.into(), 1 << 20) as u32));
    }
    if patient {
        // Data may wait for hours if every loss doubles the RTO.
        both.cookie_life = Some(Duration::from_secs(86_400));
    }
    Transport { encapsulation, both, ..Transport::default() }
}

/// The policies of a decision that recorded cases draw from. A case's number must keep its meaning:
/// newer policies are drawn by [`super::modern`].
fn recorded(decision: &str) -> &'static [&'static str] {
    match decision {
        "retransmission" => &[
            "hybrid",
            "same",
            "alternate",
            "asap",
            "cwnd",
            "ssthresh",
            "loss-rate",
            "receive-buffer",
        ],
        "loss" => &[
            "standard",
            "multiple-fast-retransmit",
            "split-fast-retransmit",
            "split-multiple-fast-retransmit",
            "ns2",
        ],
        "congestion" => &["rfc9260", "ns2", "coupled", "resource-pooling"],
        "cwnd_update" => &["standard", "cuc", "cuc-v2", "ns2"],
        "scheduler" => &["primary", "concurrent", "delay-aware"],
        "failover" => &[
            "standard",
            "dormant-hop",
            "dormant-primary",
            "dormant-last-dest",
            "permanent",
            "model",
            "full-model",
            "two-phase",
            "potentially-failed",
            "cmt-potentially-failed",
        ],
        "ack" => &["delayed", "delayed-cmt", "ns2"],
        "rtt_sampling" => &["karn", "timestamps", "retransmission-flag"],
        "probing" => &["idle", "after-rto"],
        "stream_scheduler" => &[
            "first-come",
            "round-robin",
            "round-robin-packet",
            "priority",
            "fair-capacity",
            "weighted-fair-queueing",
        ],
        other => unreachable!("{other} is no decision"),
    }
}

/// Draws a policy for each decision, in any combination that is allowed.
pub(super) fn policies(dice: &mut Dice) -> Policy {
    macro_rules! draw {
        ($($decision:ident),*) => {
            Overrides {
                $( $decision: Some((*dice.0.pick(recorded(stringify!($decision)))).to_owned()), )*
                ..Overrides::default()
            }
        };
    }
    let registry = Registry::standard();
    loop {
        let both = draw!(
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
        let builder = Config::rfc9260().to_builder().overrides(&both, &registry);
        if builder.and_then(ConfigBuilder::build).is_ok() {
            return Policy { both, ..Policy::default() };
        }
    }
}

/// Draws the number of unconfirmed addresses that are probed at a time.
pub(super) fn verification(scenario: &mut Scenario, number: u64) {
    let mut dice = Dice(Random::named(number, "verification"));
    if scenario.transport.profile.is_none() && dice.one_in(4) {
        scenario.transport.both.hb_max_burst = Some(dice.between(1, 8) as u32);
    }
}

/// Enables extensions in some cases: interleaving, path MTU discovery with links that drop large
/// packets, and ECN with links that mark packets before they drop them.
pub(super) fn extensions(scenario: &mut Scenario, number: u64) {
    if scenario.transport.profile.is_some() {
        return;
    }
    let interleaving = &mut Dice(Random::named(number, "interleaving"));
    if number.is_multiple_of(2) && interleaving.one_in(3) {
        scenario.transport.both.interleaving = Some(true);
    }
    let mut dice = Dice(Random::named(number, "extensions"));
    if number % 8 == 2 {
        scenario.transport.both.path_mtu_discovery = Some(true);
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
        scenario.transport.both.ecn = Some(true);
        for path in &mut scenario.paths {
            path.mark_at = dice.one_in(2).then(|| dice.between(0, 20) as u32);
        }
    }
}

/// Enables authenticated chunks in some cases.
pub(super) fn authenticates(scenario: &mut Scenario, number: u64) {
    if scenario.transport.profile.is_some() || number % 8 != 5 {
        return;
    }
    let mut dice = Dice(Random::named(number, "authentication"));
    scenario.transport.both.authentication = Some(true);
    scenario.transport.both.dynamic_addresses = dice.one_in(2).then_some(true);
    let all = [0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 132, 192];
    let types: Vec<u8> = all.into_iter().filter(|_| dice.one_in(3)).collect();
    scenario.transport.both.authenticated_chunks = Some(ChunkTypes::authenticated(&types));
}

/// Enables resets of streams and associations in some cases.
pub(super) fn resets(scenario: &mut Scenario, number: u64) {
    if scenario.transport.profile.is_some() || number % 8 != 6 {
        return;
    }
    let mut dice = Dice(Random::named(number, "resets"));
    scenario.transport.both.stream_reconfiguration = Some(true);
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

/// Lets messages be abandoned, where both sides offer that.
pub(super) fn partial_reliability(
    scenario: &mut Scenario,
    workload: &mut Workload,
    dice: &mut Dice,
) {
    if workload.kind == WorkloadKind::RequestReply {
        return;
    }
    scenario.transport.both.partial_reliability = (!dice.one_in(8)).then_some(true);
    match dice.between(0, 2) {
        0 => workload.lifetime = Some(Span(dice.spread(1, 3_000_000_000))),
        1 => workload.retransmissions = Some(dice.between(0, 2) as u32),
        _ => workload.priorities = Some(dice.between(1, 5) as u32),
    }
    workload.unreliable = dice.one_in(2).then(|| dice.percent(100));
}

/// Enables NR-SACK at one side or both, and split buffers, in some cases.
pub(super) fn bounded_buffers(scenario: &mut Scenario, number: u64) {
    if scenario.transport.profile.is_some() || number % 4 != 2 {
        return;
    }
    let mut dice = Dice(Random::named(number, "bounded buffers"));
    scenario.transport.both.nr_sack = Some(true);
    if dice.one_in(4) {
        let receiver = Overrides { nr_sack: Some(false), ..Overrides::default() };
        scenario.transport.receiver = Some(receiver);
    }
    let splitting = [
        BufferSplitting::Off,
        BufferSplitting::Send,
        BufferSplitting::Receive,
        BufferSplitting::Both,
    ];
    scenario.transport.both.buffer_splitting = Some(*dice.0.pick(&splitting));
}
