//! Links, paths, routers and background traffic.

use polypath_sim::Scenario;
use polypath_sim::link::Reordering;
use polypath_sim::scenario::{
    CrossTraffic, LinkEntry, LinkSpec, NodeSpec, PathSpec, TrafficKind, TrafficSpec,
};
use polypath_sim::units::{QueueLimit, Rate, Size, Span};

use super::{Dice, Harshness};

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

pub(super) fn network(scenario: &mut Scenario, dice: &mut Dice, harshness: Harshness) {
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
    // Every interface has its own link to one router, so each address reaches every other.
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

/// Draws background traffic. Where associations must survive, its total rate is less than half that
/// of the slowest link: otherwise a queue without a limit grows forever.
pub(super) fn background(scenario: &mut Scenario, dice: &mut Dice, harshness: Harshness) {
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
            rate: Some(Rate(dice.spread(2_000, most))),
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
