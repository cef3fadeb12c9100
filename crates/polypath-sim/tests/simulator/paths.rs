//! Several paths with the default settings: the sum of separate paths, the share of one flow at a
//! common bottleneck, and the standstill when a path is cut. docs/paths.md has more cells.

use polypath_sim::scenario::CheckEvery;
use polypath_sim::units::Span;
use polypath_sim::{Outcome, RunOptions, Scenario};

const SETTINGS: &str = "[transport]\nsend_buffer = \"64 MiB\"\nreceive_buffer = \"64 MiB\"\n\
                        [run]\ncheck_content = false\ncheck_every = \"end\"\n";

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml(&format!("schema = 1\n{text}{SETTINGS}")).unwrap()
}

fn options(seed: u64) -> RunOptions {
    RunOptions { seed: Some(seed), check_every: Some(CheckEvery::End), ..RunOptions::default() }
}

fn run(text: &str, millis: u64, seed: u64) -> Outcome {
    let mut scenario = scenario(text);
    scenario.run.limit = Span::millis(millis);
    scenario.run.blackout = Span::millis(1);
    scenario.run(&options(seed)).unwrap()
}

/// Bytes that the first association delivers between these seconds.
fn delivered(text: &str, from: u64, to: u64, seed: u64) -> f64 {
    let times = [Span::secs(from), Span::secs(to)];
    let delivered = scenario(text).delivered_by(&options(seed), &times).unwrap();
    (delivered[1][0] - delivered[0][0]) as f64
}

/// A path with a queue of one bandwidth-delay product; Mbit/s and ms.
fn path(name: &str, rate: u32, rtt: u32) -> String {
    format!(
        "[[path]]\nname = \"{name}\"\nrate = \"{rate} Mbit/s\"\ndelay = \"{} us\"\n\
         queue = \"{} B\"\n",
        rtt * 500,
        rate * 125 * rtt
    )
}

const BULK: &str = "[workload]\nsize = \"8 GB\"\n";

#[test]
fn separate_paths_add_up() {
    let cells = [
        ("bbr", [(20, 40), (20, 40)]),
        ("bbr", [(20, 20), (10, 60)]),
        // Queues that fill at the same rate, as those of two windows that began together.
        ("cubic", [(100, 20), (100, 20)]),
    ];
    for (congestion, paths) in cells {
        let text: String = paths
            .iter()
            .zip(["a", "b"])
            .map(|(&(rate, rtt), name)| path(name, rate, rtt))
            .collect();
        // Long enough for paths to be taken for one bottleneck by mistake.
        let policy = format!("[policy]\ncongestion = \"{congestion}\"\n");
        let sum: f64 =
            paths.iter().map(|&(rate, _)| f64::from(rate) * 125e3 * 1452.0 / 1500.0).sum();
        let share = delivered(&(text + BULK + &policy), 4, 24, 1) / 20.0 / sum;
        assert!(share >= 0.93, "{congestion}, {paths:?}: {share:.3}");
    }
}

#[test]
fn paths_over_one_bottleneck_take_the_share_of_one_flow() {
    let network = path("a", 20, 40)
        + "edge = { rate = \"1 Gbit/s\", delay = \"10 us\" }\n\
           [[path]]\nname = \"b\"\nshares = \"a\"\n[[path]]\nname = \"c\"\nshares = \"a\"\n";
    // Goodput from second 20 to 60, mean of the runs; they differ by the start of the competitor.
    let goodput = |paths: &str, seeds: u64| {
        let run = |seed| {
            let flows = format!(
                "[[association]]\nfrom = \"sender\"\nto = \"receiver\"\npaths = {paths}\n\
                 workload = {{ size = \"8 GB\" }}\n\
                 [[association]]\nfrom = \"sender\"\nto = \"receiver\"\npaths = [\"c\"]\n\
                 workload = {{ size = \"8 GB\", start = \"{} ms\" }}\n",
                seed * 137
            );
            delivered(&(network.clone() + &flows), 20, 60, seed)
        };
        (1..=seeds).map(run).sum::<f64>() / seeds as f64
    };
    // Three runs give ratios from 1.0 to 1.3; the mean of forty is 1.07.
    let ratio = goodput("[\"a\", \"b\"]", 12) / goodput("[\"a\"]", 12);
    assert!((0.8..=1.2).contains(&ratio), "{ratio:.2} of a flow's share");
}

#[test]
fn a_transfer_does_not_stand_still_when_a_path_is_cut() {
    let cases = [
        ("both", [20, 20]),
        ("both", [20, 100]),
        ("forward", [100, 100]),
        ("back", [20, 20]),
        ("back", [50, 50]),
    ];
    for (direction, rtts) in cases {
        for cut in ["a", "b"] {
            let at = 3000;
            let fault = format!(
                "[[fault]]\nat = \"{at} ms\"\npath = \"{cut}\"\nkind = \"down\"\n\
                 direction = \"{direction}\"\n"
            );
            let text = path("a", 20, rtts[0]) + &path("b", 20, rtts[1]) + &fault + BULK;
            let outcome = run(&text, at + 3000, 1);
            let flow = &outcome.associations[0].forward;
            let from = at as f64 / 1e3;
            let gaps = flow.blackouts.iter().filter(|gap| gap.start + gap.length >= from);
            let longest = gaps.map(|gap| gap.length).fold(0.0, f64::max) * 1e3;
            // Two round trips of the longer path.
            let bound = f64::from(2 * rtts[1] + 10);
            assert!(longest < bound, "{direction} of {cut}, {rtts:?}: {longest:.0} ms");
            assert!(flow.last_delivered.unwrap() > from + 2.9);
        }
    }
}
