//! Paths of one association that share a bottleneck with a single-path competitor: the share of
//! each (natarajan2009, future work), and the effect of coupled congestion control on it (RFC 6356;
//! CMT/RPv2).

use polypath_sim::scenario::{
    AssociationSpec, CrossTraffic, PathRef, PathSpec, Run, TopologyName, Workload,
};
use polypath_sim::units::{Load, Rate, Size, Span};
use polypath_sim::{RunOptions, Scenario};

const SEEDS: u64 = 8;
/// Student's t for the 90 % interval of eight runs.
const T: f64 = 1.895;

/// A flow over these paths with `profile`, for as long as the run lasts.
fn flow(paths: &[&str], profile: &str, controller: Option<&str>) -> AssociationSpec {
    let workload = Workload::bulk(Size(1_000_000_000));
    let mut spec = AssociationSpec::new("sender", "receiver", workload);
    spec.paths = Some(paths.iter().map(|name| PathRef::Name((*name).to_owned())).collect());
    spec.transport.profile = Some(profile.to_owned());
    spec.policy.both.congestion = controller.map(str::to_owned);
    spec
}

fn patient(mut scenario: Scenario, limit: Span) -> Scenario {
    scenario.transport.both.receive_buffer = Some(1_000_000);
    scenario.transport.both.send_buffer = Some(4_000_000);
    scenario.run = Run { limit, check_content: false, ..Run::default() };
    scenario
}

/// Goodput in Mbit/s of each association in each of the seeds' runs.
fn goodput(scenario: &Scenario, seeds: u64) -> Vec<Vec<f64>> {
    let run = |seed| {
        let options = RunOptions { seed: Some(seed), ..RunOptions::default() };
        let outcome = scenario.run(&options).expect("the invariants hold");
        outcome.associations.iter().map(|a| a.forward.goodput * 8.0 / 1e6).collect()
    };
    (1..=seeds).map(run).collect()
}

/// The multipath flow's and the competitor's goodput over the shared bottleneck.
fn shared(multipath: AssociationSpec) -> Vec<Vec<f64>> {
    let mut scenario = Scenario::new("shared").topology(TopologyName::SharedBottleneck);
    // Cross-traffic makes the runs of different seeds differ.
    scenario.paths[0].cross_traffic = Some(CrossTraffic::load(Load::percent(10)));
    let competitor = flow(&["competitor"], "rfc9260", None);
    goodput(
        &patient(scenario.association(multipath).association(competitor), Span::secs(60)),
        SEEDS,
    )
}

/// Goodput of the multipath flow in excess of that of one path, run by run: mean and half the width
/// of its interval.
fn more(multipath: &[Vec<f64>], single: &[Vec<f64>]) -> (f64, f64) {
    let pairs = multipath.iter().zip(single).map(|(multipath, single)| multipath[0] - single[0]);
    let differences: Vec<f64> = pairs.collect();
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    (mean, T * (squares / (n - 1.0) / n).sqrt())
}

/// Jain's fairness index of two flows, on average.
fn jain(runs: &[Vec<f64>]) -> f64 {
    let index = |g: &Vec<f64>| (g[0] + g[1]).powi(2) / (2.0 * (g[0] * g[0] + g[1] * g[1]));
    runs.iter().map(index).sum::<f64>() / runs.len() as f64
}

#[test]
fn coupled_paths_take_no_more_than_one() {
    let both = ["primary", "alternate"];
    let single = shared(flow(&both[..1], "cmt", None));
    assert!(jain(&single) > 0.99, "{single:?}");
    let alone = shared(flow(&both, "cmt", None));
    let (mean, half) = more(&alone, &single);
    assert!(mean - half > 1.0 && jain(&alone) < 0.93, "by themselves {mean} +- {half} Mbit/s more");
    for congestion in ["coupled", "resource-pooling"] {
        let coupled = shared(flow(&both, "cmt", Some(congestion)));
        let (mean, half) = more(&coupled, &single);
        assert!(mean - half <= 0.0, "{congestion}: {mean} +- {half} Mbit/s more");
        // A coupled flow takes no less than a fair share either, and the link is full.
        assert!(jain(&coupled) > 0.98, "{congestion}: {coupled:?}");
        assert!(coupled.iter().all(|g| g[0] + g[1] > 8.2), "{congestion}: {coupled:?}");
    }
}

#[test]
fn coupled_paths_of_their_own_are_both_used() {
    let path = |name: &str| PathSpec::new(Rate::mbit(10), Span::millis(45)).named(name);
    for (congestion, least) in
        [(None, 18.0), (Some("coupled"), 17.0), (Some("resource-pooling"), 13.0)]
    {
        let scenario = Scenario::new("disjoint").path(path("a")).path(path("b"));
        let mut scenario = scenario.association(flow(&["a", "b"], "cmt", congestion));
        scenario.transport.both.heartbeat_interval = Some(None);
        let goodput = goodput(&patient(scenario, Span::secs(60)), 2);
        assert!(goodput.iter().all(|g| g[0] > least), "{congestion:?}: {goodput:?} of 20 Mbit/s");
    }
}
