//! Random messages through random networks with random configurations: every message arrives
//! exactly once and intact, ordered streams in order; the association ends closed, or reports a
//! reason.
//!
//! Each case is derived from one number. A failure prints a line that runs it again.
//! `POLYPATH_CASES` sets the number of cases, `POLYPATH_FIRST` the number of the first one, which
//! by default is derived from the commit. `make fleet` runs more of them, faster.

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
