//! Background traffic in whole runs: its load, its queues, its losses in faults, and its counters.

use polypath_sim::outcome::{End, Outcome};
use polypath_sim::scenario::{
    CheckEvery, CrossTraffic, Fault, LinkSpec, LoadSpec, PathSpec, TrafficKind, TrafficSpec,
    Workload,
};
use polypath_sim::units::{Load, Probability, QueueLimit, Rate, Size, Span};
use polypath_sim::{RunOptions, Scenario};

fn run(scenario: &Scenario) -> Outcome {
    scenario.run(&RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// A path of the dual dumbbell.
fn path(name: &str, cross: CrossTraffic) -> PathSpec {
    let edge = LinkSpec::default().rate(Rate::mbit(100)).delay(Span::millis(10));
    let mut path = PathSpec::new(Rate::mbit(10), Span::millis(25))
        .queue(QueueLimit::Bytes(62_500))
        .edge(edge)
        .cross_traffic(cross);
    path.name = Some(name.to_owned());
    path
}

/// Background traffic alone, for this number of seconds.
fn background(path: PathSpec, seconds: u64) -> Scenario {
    let mut workload = Workload::bulk(Size(1));
    workload.start = Some(Span::secs(2 * seconds));
    let mut scenario = Scenario::new("background").path(path).workload(workload);
    scenario.run.limit = Span::secs(seconds);
    scenario
}

fn load(share: f64) -> CrossTraffic {
    CrossTraffic::load(Load::new(share).unwrap())
}

#[test]
fn the_mean_load_is_what_was_asked_for() {
    let mut cross = load(0.8);
    cross.back = Some(LoadSpec { rate: Some(Rate::mbit(3)), load: None });
    let scenario = background(path("core", cross), 300);
    let [mut forward, mut back] = [Vec::new(), Vec::new()];
    for seed in 1..=10 {
        let outcome = run(&scenario.clone().seed(seed));
        assert_eq!(outcome.end, End::TimeLimit);
        let rate = |name: &str| {
            let link = outcome.links.iter().find(|link| link.name == name).unwrap();
            assert_eq!(link.counts, link.background);
            link.background.offered_bytes as f64 * 8.0 / outcome.ended_at
        };
        forward.push(rate("core/forward"));
        back.push(rate("core/back"));
    }
    for (rates, asked) in [(forward, 8e6), (back, 3e6)] {
        let mean = rates.iter().sum::<f64>() / 10.0;
        let variance = rates.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / 9.0;
        // 99 % interval of ten seeds (Student's t with 9 degrees of freedom).
        let half = 3.25 * (variance / 10.0).sqrt();
        assert!(half < 0.05 * asked, "{mean} +- {half} says nothing about {asked}");
        // Packets that are still on the edge links at the end are far less than a thousandth.
        assert!((mean - asked).abs() < half + asked / 1000.0, "{mean} +- {half}, not {asked}");
    }
}

#[test]
fn an_overloaded_link_drops_what_its_queue_does_not_hold() {
    let outcome = run(&background(path("core", load(1.1)), 120));
    let core = outcome.links.iter().find(|link| link.name == "core/forward").unwrap().background;
    assert!(core.dropped_queue * 50 > core.offered, "{core:?}");
    let delivered = core.delivered_bytes as f64 * 8.0 / outcome.ended_at;
    assert!((8.0e6..10.0e6).contains(&delivered), "{delivered}");
    // Bursts of a node never fill its own links.
    let edges = outcome.links.iter().filter(|link| link.name.contains("cross"));
    let (links, dropped) = edges.fold((0, 0), |(n, d), l| (n + 1, d + l.counts.dropped_queue));
    assert_eq!((links, dropped), (16, 0));
}

/// A file over two paths with background traffic, the first of which breaks.
fn broken_under_load() -> Scenario {
    let mut scenario = Scenario::new("broken")
        .path(path("primary", load(0.8)))
        .path(path("alternate", load(0.5)))
        .workload(Workload::bulk(Size(2_000_000)))
        .fault(Fault::down(0, Span::secs(4)).lasting(Span::secs(20)));
    scenario.transport.profile = Some("rfc9260".to_owned());
    scenario.transport.both.path_max_retrans = Some(1);
    scenario
}

#[test]
fn a_path_that_breaks_loses_the_background_traffic_on_it_too() {
    let mut scenario = broken_under_load();
    scenario.run.check_every = CheckEvery::Events(1);
    let outcome = run(&scenario);
    let association = &outcome.associations[0];
    assert!(association.complete, "{outcome:#?}");
    let core = |name: &str| outcome.links.iter().find(|link| link.name == name).unwrap();
    let broken = core("primary/forward");
    assert!(broken.background.lost_outage > 1000, "{broken:?}");
    assert!(broken.counts.lost_outage > broken.background.lost_outage, "{broken:?}");
    assert_eq!(core("alternate/forward").counts.lost_outage, 0);
    let changes = &association.changes;
    let inactive = changes.iter().find(|c| c.path == 0 && c.to.as_deref() == Some("inactive"));
    assert!(inactive.expect("the primary is given up").at > 4.0);
    for link in &outcome.links {
        link.counts.check().unwrap();
        link.background.check().unwrap();
        if link.name.contains("first") || link.name.contains("last") {
            assert_eq!(link.background.offered, 0, "{}", link.name);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_traffic() {
    let scenario = broken_under_load();
    let json = |seed| serde_json::to_string(&run(&scenario.clone().seed(seed))).unwrap();
    assert_eq!(json(3), json(3));
    assert_ne!(json(3), json(4));
}

#[test]
fn more_traffic_shifts_nobodys_dice() {
    let one = background(path("core", load(0.8)), 20);
    let offered = |scenario: &Scenario| {
        let outcome = run(scenario);
        let of_core = outcome.links.into_iter().filter(|link| link.name.starts_with("core/cross"));
        of_core.map(|link| (link.name, link.counts.offered, link.counts.offered_bytes)).collect()
    };
    let alone: Vec<_> = offered(&one);
    assert_eq!(alone.len(), 16);
    let mut more = one.path(path("other", load(0.9)));
    more.traffic.push(TrafficSpec {
        from: "core/near".to_owned(),
        to: "core/far".to_owned(),
        rate: Some(Rate::mbit(1)),
        ..TrafficSpec::default()
    });
    let near = |mut links: Vec<(String, u64, u64)>| {
        links.retain(|(name, ..)| name.ends_with("/out"));
        links
    };
    assert_eq!(near(offered(&more)), near(alone));
}

#[test]
fn traffic_between_any_two_nodes_takes_the_rate_that_is_left() {
    let mut scenario = Scenario::new("half")
        .path(PathSpec::new(Rate::mbit(10), Span::millis(10)))
        .workload(Workload::bulk(Size(4_000_000)));
    let alone = run(&scenario).associations[0].forward.time_from_start.unwrap();
    scenario.traffic.push(TrafficSpec {
        from: "sender.0".to_owned(),
        to: "receiver.0".to_owned(),
        kind: TrafficKind::Constant,
        rate: Some(Rate::mbit(4)),
        ..TrafficSpec::default()
    });
    let outcome = run(&scenario);
    let shared = outcome.associations[0].forward.time_from_start.unwrap();
    assert!(shared > alone * 1.3, "{alone} s alone, {shared} s beside 4 of 10 Mbit/s");
    let [forward, back] = [&outcome.links[0].background, &outcome.links[1].background];
    assert_eq!(back.offered, 0);
    let rate = forward.offered_bytes as f64 * 8.0 / outcome.ended_at;
    assert!((rate - 4e6).abs() < 1e5, "{rate}");
}

#[test]
fn background_packets_are_lost_duplicated_and_counted_like_all_others() {
    let mut link = PathSpec::new(Rate::mbit(10), Span::millis(10));
    link.duplicate = Some(Probability::percent(10));
    link.corrupt = Some(Probability::percent(10));
    link.loss = Some(polypath_sim::link::LossModel::bernoulli(Probability::percent(10)));
    let mut scenario = background(link, 10);
    scenario.traffic.push(TrafficSpec {
        from: "sender.0".to_owned(),
        to: "receiver.0".to_owned(),
        kind: TrafficKind::Constant,
        rate: Some(Rate::mbit(1)),
        packet_size: Some(Size(125)),
        ..TrafficSpec::default()
    });
    let counts = run(&scenario).links[0].background;
    assert!((9_998..=10_001).contains(&counts.offered), "{counts:?}");
    assert!((800..1200).contains(&counts.lost), "{counts:?}");
    assert!((700..1100).contains(&counts.duplicated), "{counts:?}");
    // Background packets have no contents that could be corrupted.
    assert_eq!(counts.corrupted, 0);
}

#[test]
fn traffic_alone_does_not_keep_a_run_going() {
    // The receiver does not learn that the sender has given up: only HEARTBEATs would show it.
    let mut scenario = Scenario::new("gone")
        .path(path("core", load(0.4)))
        .workload(Workload::bulk(Size(1_000_000)))
        .fault(Fault::down(0, Span::secs(1)));
    scenario.transport.both.heartbeat_interval = Some(None);
    scenario.transport.both.association_max_retrans = Some(1);
    let outcome = run(&scenario);
    assert_eq!(outcome.end, End::Idle, "{outcome:#?}");
    assert_eq!(outcome.associations[0].sender.close.as_deref(), Some("peer-unreachable"));
    assert!(outcome.ended_at < 60.0, "{}", outcome.ended_at);
}
