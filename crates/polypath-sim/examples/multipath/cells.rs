//! The cells that docs/paths.md states: networks, and what is measured on them.

use polypath_sim::scenario::CheckEvery;
use polypath_sim::units::Span;
use polypath_sim::{Outcome, RunOptions, Scenario};

/// 1452 bytes of each packet of 1500 are payload.
pub(crate) const PAYLOAD: f64 = 1452.0 / 1500.0;

/// A path with a queue of one bandwidth-delay product, at least 10 packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// In Mbit/s.
    pub(crate) rate: u32,
    /// Round-trip time in milliseconds.
    pub(crate) rtt: u32,
    /// Packets lost in each direction, in percent.
    pub(crate) loss: f64,
}

impl Path {
    pub(crate) const fn new(rate: u32, rtt: u32) -> Self {
        Self { rate, rtt, loss: 0.0 }
    }

    fn toml(self, name: usize) -> String {
        let queue = (u64::from(self.rate) * 125 * u64::from(self.rtt)).max(15_000);
        format!(
            "[[path]]\nname = \"p{name}\"\nrate = \"{} Mbit/s\"\ndelay = \"{} us\"\n\
             queue = \"{queue} B\"\nloss = \"{} %\"\n",
            self.rate,
            self.rtt * 500,
            self.loss
        )
    }
}

/// What happens to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Neither direction delivers anything any more.
    Both,
    /// The direction of the data.
    Data,
    /// The direction of the acknowledgements.
    Acks,
    /// Half of the packets are lost in both directions.
    Half,
}

/// The scenario of a transfer that outlasts the run; `settings` are lines of TOML.
pub(crate) fn scenario(paths: &[Path], settings: &str, extra: &str) -> Scenario {
    let mut text = String::from("schema = 1\n");
    for (i, path) in paths.iter().enumerate() {
        text += &path.toml(i);
    }
    text += extra;
    text += &format!(
        "\n[workload]\nkind = \"bulk\"\nsize = \"8 GB\"\n[run]\ncheck_content = false\n\
         check_checksums = false\ncheck_every = \"end\"\n{settings}\n"
    );
    Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs it for `secs` seconds.
pub(crate) fn run(mut scenario: Scenario, secs: f64, seed: u64) -> Outcome {
    scenario.run.limit = Span::millis((secs * 1e3) as u64);
    scenario.run.blackout = Span::millis(1);
    let options = RunOptions {
        seed: Some(seed),
        check_every: Some(CheckEvery::End),
        ..RunOptions::default()
    };
    scenario.run(&options).unwrap_or_else(|error| panic!("{error}"))
}

/// Longest time in milliseconds in which nothing is delivered, from the cut of a path on: after
/// this many round trips of the longest path, and two seconds.
pub(crate) fn standstill(
    paths: &[Path],
    (cut, rounds): (usize, u32),
    kind: Cut,
    settings: &str,
    seed: u64,
) -> f64 {
    let longest = paths.iter().map(|p| p.rtt).max().unwrap_or_default();
    let at = 2000 + rounds * longest + 37 * seed as u32;
    let fault = match kind {
        Cut::Both => "kind = \"down\"",
        Cut::Data => "kind = \"down\"\ndirection = \"forward\"",
        Cut::Acks => "kind = \"down\"\ndirection = \"back\"",
        Cut::Half => "kind = \"loss\"\nloss = \"50 %\"",
    };
    let fault = format!("[[fault]]\nat = \"{at} ms\"\npath = \"p{cut}\"\n{fault}\n");
    let from = f64::from(at) / 1e3;
    let outcome = run(scenario(paths, settings, &fault), from + 6.0, seed);
    let flow = &outcome.associations[0].forward;
    let gaps = flow.blackouts.iter().filter(|gap| gap.start + gap.length >= from);
    let longest = gaps.map(|gap| gap.length).fold(0.0, f64::max);
    let last = flow.last_delivered.map_or(f64::INFINITY, |last| from + 6.0 - last);
    longest.max(last) * 1e3
}

/// The bound of a standstill in milliseconds: two round-trip times of the longer path, and 10 ms.
pub(crate) fn bound(paths: &[Path]) -> f64 {
    f64::from(2 * paths.iter().map(|p| p.rtt).max().unwrap_or_default() + 10)
}

/// The share of the sum of the paths that payload uses, from second `from` to `to`.
pub(crate) fn filled(paths: &[Path], settings: &str, (from, to): (f64, f64), seed: u64) -> f64 {
    let delivered = |secs| {
        let outcome = run(scenario(paths, settings, ""), secs, seed);
        outcome.associations[0].forward.bytes_delivered as f64
    };
    let sum: f64 = paths.iter().map(|p| f64::from(p.rate) * 1e6 / 8.0 * PAYLOAD).sum();
    (delivered(to) - delivered(from)) / (to - from) / sum
}

/// Goodput in Mbit/s over 20 s while the last path flaps, `half` ms on and `half` ms off.
pub(crate) fn flapping(paths: &[Path], half: u32, settings: &str, seed: u64) -> f64 {
    let mut faults = String::new();
    for at in (2 * half..22_000).step_by(2 * half as usize) {
        faults += &format!(
            "[[fault]]\nat = \"{at} ms\"\nfor = \"{half} ms\"\npath = \"p{}\"\nkind = \"down\"\n",
            paths.len() - 1
        );
    }
    let outcome = run(scenario(paths, settings, &faults), 22.0, seed);
    outcome.associations[0].forward.bytes_delivered as f64 * 8.0 / 22.0 / 1e6
}

/// Goodput in Mbit/s of a flow over two paths, and of a competitor on one, over a bottleneck that
/// all share, in the second half of a minute. The competitor and, with `single`, the flow use one
/// path.
pub(crate) fn shared(rate: u32, rtt: u32, settings: &str, single: bool, seed: u64) -> (f64, f64) {
    let mut text = format!("schema = 1\n{}", Path::new(rate, rtt).toml(0));
    text += "edge = { rate = \"1 Gbit/s\", delay = \"10 us\" }\n";
    text += "[[path]]\nname = \"p1\"\nshares = \"p0\"\n[[path]]\nname = \"p2\"\nshares = \"p0\"\n";
    let both = if single { "[\"p0\"]" } else { "[\"p0\", \"p1\"]" };
    for (name, paths, at) in [("flow", both, 0), ("competitor", "[\"p2\"]", seed * 137)] {
        text += &format!(
            "[[association]]\nname = \"{name}\"\nfrom = \"sender\"\nto = \"receiver\"\n\
             paths = {paths}\nworkload = {{ size = \"8 GB\", start = \"{at} ms\" }}\n"
        );
    }
    text += &format!(
        "[run]\ncheck_content = false\ncheck_checksums = false\ncheck_every = \"end\"\n{settings}\n"
    );
    let scenario = Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let at = |secs| {
        let outcome = run(scenario.clone(), secs, seed);
        let flows = outcome.associations.iter();
        flows.map(|a| a.forward.bytes_delivered as f64 * 8.0 / 1e6).collect::<Vec<_>>()
    };
    let (half, all) = (at(20.0), at(60.0));
    ((all[0] - half[0]) / 40.0, (all[1] - half[1]) / 40.0)
}
