//! `make fleet`: runs random networks, keeps those that fail as a corpus, replays single ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use polypath_fleet::fleet::{Failed, Fleet, Progress};
use polypath_fleet::judge::Failure;
use polypath_fleet::{case, corpus, judge, minimise, seed};
use polypath_sim::Scenario;

const USAGE: &str = "\
Runs random networks and judges them; see docs/fleet.md.

polypath-fleet [--cases N] [--first N] [--ns2] [--workers N] [--keep FOLDER]
    replays the corpus, then runs N cases (20,000) from a first number (by default, it follows from
    the commit); --ns2 draws cases of the ns-2 profiles only. A case that fails is minimised and
    added to the corpus, or written to another folder.
polypath-fleet --replay CASE
    runs one case: a number that was printed (0x...), or a scenario file.
polypath-fleet --minimise CASE
    makes it small, if it fails, and prints the scenario.
polypath-fleet --print CASE
    prints its scenario.
";

/// Of failures of one class, so many are minimised: they often have one cause.
const MINIMISED: usize = 3;

fn main() -> ExitCode {
    match arguments(std::env::args().skip(1)) {
        Ok(Wanted::Fleet(fleet, keep)) => run(&fleet, &keep),
        Ok(Wanted::Replay(scenario)) => replay(&scenario),
        Ok(Wanted::Minimise(scenario)) => minimised(&scenario),
        Ok(Wanted::Print(scenario)) => {
            print!("{}", corpus::text(&scenario));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

enum Wanted {
    /// With the folder of new failures.
    Fleet(Fleet, PathBuf),
    Replay(Box<Scenario>),
    Minimise(Box<Scenario>),
    Print(Box<Scenario>),
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut fleet = Fleet::new(seed::of_commit(), 20_000);
    let mut folder = corpus::folder();
    while let Some(word) = words.next() {
        let mut next = || words.next().ok_or_else(|| format!("{word}: something has to follow"));
        let as_number =
            |text: String| seed::number(&text).ok_or_else(|| format!("\"{text}\" is not a number"));
        match word.as_str() {
            "--cases" => fleet.cases = as_number(next()?)?,
            "--first" => fleet.first = as_number(next()?)?,
            "--workers" => fleet.workers = as_number(next()?)? as usize,
            "--ns2" => fleet.ns2 = true,
            "--keep" => folder = PathBuf::from(next()?),
            "--replay" => return Ok(Wanted::Replay(Box::new(named(&next()?)?))),
            "--minimise" => return Ok(Wanted::Minimise(Box::new(named(&next()?)?))),
            "--print" => return Ok(Wanted::Print(Box::new(named(&next()?)?))),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(Wanted::Fleet(fleet, folder))
}

/// A case by its number, or a scenario file.
fn named(text: &str) -> Result<Scenario, String> {
    match seed::number(text) {
        Some(number) => Ok(case::scenario(number)),
        None => Scenario::from_file(text).map_err(|error| error.to_string()),
    }
}

fn replay(scenario: &Scenario) -> ExitCode {
    println!("{}", corpus::text(scenario));
    let judged = judge::outcome(scenario).and_then(|(outcome, terms)| {
        println!("{outcome:#?}\n{terms:#?}");
        judge::judge(&terms, &outcome)
    });
    match judged {
        Ok(()) => {
            println!("passes");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("fails: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn minimised(scenario: &Scenario) -> ExitCode {
    let Err(failure) = judge::run(scenario) else {
        println!("passes: nothing to minimise");
        return ExitCode::FAILURE;
    };
    let smallest = minimise::minimise(scenario, &failure.class, minimise::RUNS);
    let failure = judge::run(&smallest).err().unwrap_or(failure);
    println!("# {failure}\n{}", corpus::text(&smallest));
    ExitCode::SUCCESS
}

fn run(fleet: &Fleet, folder: &Path) -> ExitCode {
    // A panic of a case is one of its failures, and printed as such.
    std::panic::set_hook(Box::new(|_| {}));
    let kept = match replay_corpus() {
        Ok(failures) => failures,
        Err(error) => {
            eprintln!("the corpus cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    let minimised = Mutex::new(BTreeMap::new());
    let summary = fleet.run(&|failed| keep(failed, folder, &minimised), &|progress| {
        let Progress { cases, failures, elapsed } = progress;
        let rate = cases as f64 / elapsed.as_secs_f64();
        eprintln!("{cases} of {} cases, {rate:.0}/s, {failures} failures", fleet.cases);
    });
    println!("{:?}", summary.seen);
    let failures = summary.failed.len();
    println!(
        "make fleet CASES={} FIRST={:#x}{}: {} cases in {:.0} s, \
         {failures} failures; corpus: {kept} failures",
        fleet.cases,
        fleet.first,
        if fleet.ns2 { " NS2=1" } else { "" },
        fleet.cases,
        summary.elapsed.as_secs_f64(),
    );
    if failures + kept == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the corpus; how many of its scenarios fail that are not known to.
fn replay_corpus() -> std::io::Result<usize> {
    let mut failures = 0;
    for entry in corpus::entries()? {
        match (corpus::run(&entry), entry.known) {
            (Ok(()), false) => {}
            (Ok(()), true) => println!("corpus {}: passes now", entry.name),
            (Err(failure), true) => println!("corpus {}: known: {failure}", entry.name),
            (Err(failure), false) => {
                println!("corpus {}: {failure}", entry.name);
                failures += 1;
            }
        }
    }
    Ok(failures)
}

/// Prints the line that replays a failed case, and adds it to the corpus, minimised.
fn keep(failed: &Failed, folder: &Path, minimised: &Mutex<BTreeMap<String, usize>>) {
    let Failed { number, failure } = failed;
    println!("make fleet CASE={number:#018x}  # {failure}");
    {
        let mut minimised = minimised.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let count: &mut usize = minimised.entry(failure.class.clone()).or_default();
        *count += 1;
        if *count > MINIMISED {
            return;
        }
    }
    let smallest = minimise::minimise(&case::scenario(*number), &failure.class, minimise::RUNS);
    let seen = judge::run(&smallest).err();
    let story = match seen {
        Some(seen) => format!("{}\nMinimised from case {number:#018x}: {failure}", seen.story),
        None => failure.story.clone(),
    };
    let failure = Failure { class: failure.class.clone(), story };
    match corpus::add(folder, *number, &smallest, &failure) {
        Ok(path) => println!("    minimised: {}", path.display()),
        Err(error) => eprintln!("    not kept: {error}"),
    }
}
