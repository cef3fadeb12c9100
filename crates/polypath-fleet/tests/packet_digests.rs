//! Compares every packet of a broad set of runs with the digests on record: a change of structure
//! must change none of them.
//!
//! `packet_digests.tsv` has one line for each policy of each decision and for each profile, over
//! [`SEEDS`] seeds, and one line for each [`BATCH`] random networks, which use every extension. A
//! digest is 16 bits of the CRC-64 of a run's capture (every packet of every link, with its time).
//! `POLYPATH_DIGESTS=write` records them anew: only together with a change of behaviour that the
//! changelog describes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crc_fast::{CrcAlgorithm, Digest};
use polypath_fleet::case;
use polypath_proto::{PARAMETERS, Registry};
use polypath_sim::{RunOptions, Scenario};

const SEEDS: u64 = 200;
const BATCH: u64 = 200;
const BATCHES: u64 = 20;

/// Two lossy paths, of which the first one fails for 20 s in the midst of the transfer.
const NETWORK: &str = r#"
    schema = 1
    name = "digest"
    path = [
        { name = "a", rate = "10 Mbit/s", delay = "20 ms", queue = "40 packets", loss = "3 %" },
        { name = "b", rate = "4 Mbit/s", delay = "60 ms", queue = "40 packets", loss = "1 %" },
    ]
    fault = [{ at = "600 ms", for = "20 s", path = "a", kind = "down" }]
"#;
const WORKLOADS: [&str; 2] = [
    r#"workload = { kind = "bulk", size = "300 kB", message_size = "4 kB", streams = 4 }"#,
    r#"workload = { kind = "bulk", size = "300 kB" }"#,
];

/// A row of the record: its name, and the scenario of each of its runs.
struct Row {
    name: String,
    runs: Vec<Run>,
}

enum Run {
    Seed(Box<Scenario>, u64),
    Case(u64),
}

/// Computes the digest of the bytes written to it.
struct Hash(Digest);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Run {
    fn digest(&self) -> u16 {
        let mut hash = Hash(Digest::new(CrcAlgorithm::Crc64Nvme));
        let outcome = match self {
            Self::Seed(scenario, seed) => {
                let options = RunOptions { seed: Some(*seed), ..RunOptions::default() };
                scenario.run_captured(&options, &mut hash)
            }
            Self::Case(number) => {
                case::recorded(*number).run_captured(&RunOptions::default(), &mut hash)
            }
        };
        if let Err(error) = outcome {
            panic!("{error}");
        }
        hash.0.finalize() as u16
    }
}

/// The first scenario that the engine accepts: some policies need another workload or profile.
fn accepted(changes: &str) -> Option<(&'static str, Scenario)> {
    let profiles = Registry::standard().profiles().to_vec().into_iter().map(|profile| profile.name);
    for profile in profiles {
        for workload in WORKLOADS {
            let text = format!(
                "{NETWORK}\n{workload}\n[transport]\nprofile = \"{profile}\"\n[policy]\n{changes}"
            );
            let scenario = Scenario::from_toml(&text).unwrap();
            if scenario.run(&RunOptions::default()).is_ok() {
                return Some((profile, scenario));
            }
        }
    }
    None
}

fn seeds(name: String, scenario: &Scenario) -> Row {
    let run = |seed| Run::Seed(Box::new(scenario.clone()), seed);
    Row { name, runs: (1..=SEEDS).map(run).collect() }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |decision: &str, names: Vec<&str>| {
        for name in names {
            let accepted = accepted(&format!("{decision} = \"{name}\""));
            let (profile, scenario) =
                accepted.unwrap_or_else(|| panic!("{decision} = {name} is accepted in no profile"));
            rows.push(seeds(format!("{decision}={name} {profile}"), &scenario));
        }
    };
    for decision in PARAMETERS.iter().filter(|parameter| parameter.is_policy()) {
        let policies = Registry::standard().entries(decision.name);
        add(decision.name, policies.iter().map(|policy| policy.name).collect());
    }
    for profile in Registry::standard().profiles() {
        let text = format!("{NETWORK}\n{}\ntransport.profile = \"{}\"", WORKLOADS[1], profile.name);
        rows.push(seeds(format!("profile={}", profile.name), &Scenario::from_toml(&text).unwrap()));
    }
    for batch in 0..BATCHES {
        // Numbers that differ in their lowest bits draw all extensions.
        let first = 0xd19e_5700_0000_0000 + batch * BATCH;
        let runs = (first..first + BATCH).map(Run::Case).collect();
        rows.push(Row { name: format!("networks={first:#x}"), runs });
    }
    rows
}

/// The digests of each row.
fn digests(rows: &[Row]) -> BTreeMap<&str, Vec<u16>> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let worker = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let digests = row.runs.iter().map(Run::digest).collect();
            found.lock().unwrap().insert(row.name.as_str(), digests);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    found.into_inner().unwrap()
}

fn record() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packet_digests.tsv"))
}

#[test]
fn every_packet_is_as_recorded() {
    let rows = rows();
    let found = digests(&rows);
    if std::env::var("POLYPATH_DIGESTS").is_ok_and(|wish| wish == "write") {
        let mut text = String::new();
        for (name, digests) in found {
            let hex: String = digests.iter().map(|digest| format!("{digest:04x}")).collect();
            writeln!(text, "{name}\t{hex}").unwrap();
        }
        std::fs::write(record(), text).unwrap();
        return;
    }
    let text = std::fs::read_to_string(record()).unwrap();
    let recorded: BTreeMap<&str, &str> = text.lines().filter_map(|l| l.split_once('\t')).collect();
    assert_eq!(
        recorded.keys().collect::<Vec<_>>(),
        found.keys().collect::<Vec<_>>(),
        "the rows on record and those of today: POLYPATH_DIGESTS=write records them"
    );
    let mut differ = Vec::new();
    for (name, digests) in found {
        for (run, digest) in digests.into_iter().enumerate() {
            if recorded[name].get(run * 4..run * 4 + 4) != Some(&format!("{digest:04x}")) {
                differ.push(format!("{name}, run {run}"));
            }
        }
    }
    assert!(
        differ.is_empty(),
        "other packets than on record in {} runs: {differ:#?}",
        differ.len()
    );
}
