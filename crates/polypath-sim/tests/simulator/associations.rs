//! Several associations in one network: each with its own paths, settings and share of the data.

use std::time::Duration;

use polypath_sim::link::LossModel;
use polypath_sim::outcome::{AssociationOutcome, Outcome};
use polypath_sim::scenario::{
    AssociationSpec, CheckEvery, Fault, LinkSpec, PathRef, PathSpec, TopologyName, Workload,
};
use polypath_sim::units::{Probability, QueueLimit, Rate, Size, Span};
use polypath_sim::{RunOptions, Scenario};

fn run(scenario: &Scenario) -> Outcome {
    let options = RunOptions { check_every: Some(CheckEvery::Events(50)), ..RunOptions::default() };
    scenario.run(&options).expect("the invariants hold")
}

fn path(name: &str, loss: u8) -> PathSpec {
    let loss = LossModel::bernoulli(Probability::percent(loss));
    PathSpec::new(Rate::mbit(10), Span::millis(25)).named(name).loss(loss)
}

fn striped(size: u64) -> Workload {
    Workload { striped: Some(true), ..Workload::bulk(Size(size)) }
}

fn over(paths: &[&str], workload: Workload) -> AssociationSpec {
    let paths = paths.iter().map(|name| PathRef::Name((*name).to_owned())).collect();
    AssociationSpec { paths: Some(paths), ..AssociationSpec::new("sender", "receiver", workload) }
}

/// Number of packets that were offered to a link.
fn sent(outcome: &Outcome, link: &str) -> u64 {
    outcome.links.iter().find(|l| l.name == link).expect("the link").counts.offered
}

fn rate(association: &AssociationOutcome) -> f64 {
    association.forward.goodput * 8.0 / 1e6
}

#[test]
fn each_association_keeps_to_its_paths_and_settings() {
    let mut scenario = Scenario::new("own paths").path(path("a", 0)).path(path("b", 0));
    let mut reno = over(&["a"], Workload::bulk(Size(2_000_000)));
    reno.transport.both.receive_buffer = Some(8_000);
    let mut both = over(&["b", "a"], Workload::bulk(Size(1_000_000)));
    both.policy.both.scheduler = Some("primary".to_owned());
    both.name = Some("both".to_owned());
    both.workload.start = Some(Span::secs(1));
    both.transport.both.rto_initial = Some(Duration::from_secs(2));
    scenario = scenario.association(reno).association(both);
    let outcome = run(&scenario);
    let [first, both] = &outcome.associations[..] else { panic!("two associations") };
    assert!(first.complete && both.complete, "{outcome:#?}");
    assert_eq!((first.sender.paths.len(), both.sender.paths.len()), (1, 2));
    // The first path listed is the primary.
    assert_eq!(both.sender.paths[0].local, "10.1.0.1");
    assert_eq!(both.sender.paths[1].counts.data_chunks_sent, 0);
    assert_eq!(both.started_at, 1.0);
    // The first sends 8 kB per round trip of 50 ms; nothing competes with the second.
    assert!(rate(first) < 8.0 * 8.0 / 50.0, "{}", rate(first));
    assert!(rate(both) > 6.0, "{}", rate(both));
    assert!(sent(&outcome, "a/forward") > 2_000_000 / 1452);
}

#[test]
fn a_setting_of_one_association_leaves_the_others_alone() {
    let base = Scenario::new("alone").path(path("a", 0)).path(path("b", 0));
    let first = over(&["a"], Workload::bulk(Size(500_000)));
    let second = over(&["b"], Workload::bulk(Size(500_000)));
    let mut other = second.clone();
    other.policy.both.scheduler = Some("concurrent".into());
    other.transport.both.initial_cwnd = Some(1);
    let plain = run(&base.clone().association(first.clone()).association(second));
    let changed = run(&base.association(first).association(other));
    assert_eq!(plain.associations[0].forward, changed.associations[0].forward);
    assert_ne!(plain.associations[1].forward, changed.associations[1].forward);
}

#[test]
fn a_striped_file_arrives_once_over_all_paths() {
    let mut carried_by = [0; 3];
    for seed in 1..=20 {
        let mut scenario = Scenario::new("AppStripe")
            .seed(seed)
            .path(path("a", 1))
            .path(path("b", 5))
            .path(path("c", 3))
            .workload(striped(600_000));
        // The send buffers of `modern` hold the file.
        scenario.transport.profile = Some("rfc9260".to_owned());
        let outcome = run(&scenario);
        let [stripe] = &outcome.stripes[..] else { panic!("one application") };
        assert!(stripe.complete && outcome.associations.iter().all(|a| a.complete));
        assert_eq!(stripe.associations, ["main/a", "main/b", "main/c"]);
        assert_eq!(stripe.forward.bytes_delivered, 600_000);
        assert_eq!(stripe.forward.messages_delivered, 600_000u64.div_ceil(1452));
        // Only the last messages are sent more than once, by associations that have nothing else to
        // send.
        let carried: u64 = outcome.associations.iter().map(|a| a.forward.bytes_delivered).sum();
        assert!((600_000..1_000_000).contains(&carried), "seed {seed}: {carried}");
        for (sum, association) in carried_by.iter_mut().zip(&outcome.associations) {
            *sum += association.forward.bytes_delivered;
        }
        let last = outcome.associations.iter().filter_map(|a| a.forward.last_delivered);
        assert!(stripe.forward.last_delivered <= last.reduce(f64::max));
    }
    assert!(carried_by.iter().all(|&bytes| bytes > 20 * 50_000), "{carried_by:?}");
}

#[test]
fn striping_takes_what_both_paths_have() {
    let slow = PathSpec::new(Rate::mbit(2), Span::millis(100)).named("slow");
    let mut scenario = Scenario::new("ideal").path(path("fast", 0)).path(slow);
    scenario.transport.both.receive_buffer = Some(1 << 20);
    let outcome = run(&scenario.workload(striped(20_000_000)));
    let goodput = outcome.stripes[0].forward.goodput * 8.0 / 1e6;
    // 12 Mbit/s less headers of 48 bytes in 1500, and slow start.
    assert!((0.95 * 12.0 * 1452.0 / 1500.0..12.0).contains(&goodput), "{goodput}");
}

#[test]
fn a_path_that_dies_keeps_nothing_of_a_striped_file() {
    let scenario = Scenario::new("dead").path(path("a", 0)).path(path("b", 0));
    let scenario = scenario.workload(striped(2_000_000)).fault(Fault::down(1, Span::millis(500)));
    let outcome = run(&scenario);
    assert!(outcome.stripes[0].complete, "{outcome:#?}");
    assert!(outcome.associations[0].complete && !outcome.associations[1].complete);
    assert!(outcome.stripes[0].forward.last_delivered.is_some_and(|at| at < 3.0));
}

/// The transfers are so long that the end of the shortest one does not decide: BBR finds the rate
/// that it leaves after two to three seconds (draft-ietf-ccwg-bbr 5.3.3.5.2).
#[test]
fn paths_that_share_a_link_share_its_rate() {
    let mut scenario = Scenario::new("shared").topology(TopologyName::SharedBottleneck);
    scenario.paths[2].edge = Some(LinkSpec::default().delay(Span::millis(5)));
    for name in ["primary", "alternate", "competitor"] {
        scenario = scenario.association(over(&[name], Workload::bulk(Size(20_000_000))));
    }
    let outcome = run(&scenario);
    assert!(outcome.associations.iter().all(|a| a.complete));
    let links: Vec<&str> = outcome.links.iter().map(|l| l.name.as_str()).collect();
    assert!(!links.contains(&"alternate/forward") && links.contains(&"competitor/back/last"));
    let last = outcome.associations.iter().filter_map(|a| a.forward.last_delivered);
    let together = 60_000_000.0 * 8.0 / 1e6 / last.fold(0.0, f64::max);
    assert!((8.5..9.7).contains(&together), "{together} Mbit/s of 10");
    assert!(outcome.associations.iter().all(|a| rate(a) > 2.0));
    // The shorter edge links belong to the competitor alone.
    let rtt = |n: usize| outcome.associations[n].sender.paths[0].rtt_min.expect("samples");
    assert!(rtt(2) < rtt(1) - 0.015 && (rtt(1) - rtt(0)).abs() < 0.003);
}

#[test]
fn a_fault_of_one_path_is_one_of_all_that_share_its_link() {
    let mut shared = path("a", 0).edge(LinkSpec::default().rate(Rate::mbit(100)));
    shared.queue = Some(QueueLimit::Packets(100));
    let scenario = Scenario::new("fault")
        .path(shared)
        .path(PathSpec::sharing("a").named("b"))
        .fault(Fault::down(1, Span::millis(400)).lasting(Span::millis(300)))
        .association(over(&["a"], Workload::bulk(Size(1_000_000))))
        .association(over(&["b"], Workload::bulk(Size(1_000_000))));
    let outcome = run(&scenario);
    let counts = &outcome.links.iter().find(|l| l.name == "a/forward").expect("the link").counts;
    assert!(counts.lost_outage > 2);
    for association in &outcome.associations {
        assert!(association.complete);
        let gap = association.forward.longest_gap.expect("one");
        assert!(gap.start < 0.7 && gap.length > 0.3, "{gap:?}");
    }
}
