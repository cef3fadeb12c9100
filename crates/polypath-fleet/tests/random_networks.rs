//! Random messages through random networks with random configurations: every message arrives
//! exactly once and intact, ordered streams in order; the association ends closed, or reports a
//! reason.
//!
//! Each case is derived from one number. A failure prints a line that runs it again.
//! `POLYPATH_CASES` sets the number of cases, `POLYPATH_FIRST` the number of the first one, which
//! by default is derived from the commit. `make fleet` runs more of them, faster.

use std::sync::atomic::{AtomicU64, Ordering};

use polypath_fleet::fleet::Fleet;
use polypath_fleet::{case, corpus, judge, seed};

/// Enough for a CI run of well under a minute on two cores.
const CASES: u64 = 20_000;

/// A number from an environment variable, with which a person replays a case.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(seed::number(&text).unwrap_or_else(|| panic!("{name}={text} is not a number")))
}

#[test]
fn messages_survive_random_networks() {
    let cases = number("POLYPATH_CASES").unwrap_or(CASES);
    let first = number("POLYPATH_FIRST").unwrap_or_else(seed::of_commit);
    println!("POLYPATH_FIRST={first:#x} POLYPATH_CASES={cases}");
    let summary = Fleet::new(first, cases).run(
        &|failed| {
            println!(
                "POLYPATH_CASE={:#x} cargo test -p polypath-fleet --test random_networks \
                 replay -- --nocapture  \
                 # {}",
                failed.number, failed.failure
            );
        },
        &|_| (),
    );
    println!("{cases} cases: {:?}", summary.seen);
    assert!(summary.failed.is_empty(), "{} of {cases} cases failed", summary.failed.len());
    if cases >= CASES {
        summary.seen.check(cases).unwrap();
    }
}

/// The networks of [`messages_survive_random_networks`], with loss detection by time: recorded
/// cases draw from older detectors only.
#[test]
fn messages_survive_with_rack() {
    let cases = number("POLYPATH_CASES").unwrap_or(CASES) / 8;
    let first = number("POLYPATH_FIRST").unwrap_or_else(seed::of_commit);
    println!("POLYPATH_FIRST={first:#x} POLYPATH_CASES={}", 8 * cases);
    let next = AtomicU64::new(0);
    let worker = || {
        let mut failures = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= cases {
                return failures;
            }
            let number = first.wrapping_add(n);
            if case::ns2_profile(number).is_some() {
                continue;
            }
            let mut scenario = case::recorded(number);
            scenario.policy.both.loss = Some("rack".to_owned());
            if number.is_multiple_of(3) {
                scenario.policy.both.ack = Some("rate".to_owned());
            }
            let judged = judge::outcome(&scenario)
                .and_then(|(outcome, terms)| judge::judge(&terms, &outcome));
            if let Err(failure) = judged {
                println!("{}", scenario.to_toml());
                failures.push(format!("{number:#x}: {failure}"));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|w| w.join().expect("a worker")).collect()
    });
    assert!(failures.is_empty(), "{} of {cases} cases failed: {failures:#?}", failures.len());
}

#[test]
fn scenarios_that_failed_once_pass() {
    let mut failures = Vec::new();
    for entry in corpus::entries().unwrap() {
        match corpus::run(&entry) {
            Ok(()) => {}
            Err(failure) => {
                println!("make fleet CASE={}  # {failure}", entry.path.display());
                failures.push(entry.name);
            }
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn replay() {
    let Some(number) = number("POLYPATH_CASE") else { return };
    let scenario = case::scenario(number);
    println!("{}", scenario.to_toml());
    let judged = judge::outcome(&scenario).and_then(|(outcome, terms)| {
        println!("{outcome:#?}\n{terms:#?}");
        judge::judge(&terms, &outcome)
    });
    if let Err(failure) = judged {
        panic!("case {number:#x}: {failure}");
    }
}
