//! `make fleet`: runs random networks, keeps those that fail as a corpus, replays single ones.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::{Args, Parser};
use polypath_fleet::fleet::{Failed, Fleet, Progress};
use polypath_fleet::judge::Failure;
use polypath_fleet::{case, corpus, judge, minimise, seed};
use polypath_sim::Scenario;

/// Runs random networks and judges them; see docs/fleet.md.
///
/// Replays the corpus, then draws cases and runs them. A case that fails is minimised and added to
/// the corpus.
#[derive(Parser)]
struct Arguments {
    /// Cases to run.
    #[arg(long, value_name = "N", value_parser = number, default_value = "20000")]
    cases: u64,
    /// The number of the first case [default: follows from the commit].
    #[arg(long, value_name = "N", value_parser = number)]
    first: Option<u64>,
    /// Draw cases of the ns-2 profiles only.
    #[arg(long)]
    ns2: bool,
    /// Number of cases to run at a time [default: the number of processors].
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Keep failures in this folder instead of the corpus.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    one: Option<One>,
}

/// One case: a number that was printed (0x...), or a scenario file.
#[derive(Args)]
#[group(multiple = false, conflicts_with_all = ["cases", "first", "ns2", "workers", "keep"])]
struct One {
    /// Run one case: a number that was printed (0x...), or a scenario file.
    #[arg(long, value_name = "CASE", value_parser = named)]
    replay: Option<Scenario>,
    /// Minimise a case that fails, and print its scenario.
    #[arg(long, value_name = "CASE", value_parser = named)]
    minimise: Option<Scenario>,
    /// Print the scenario of a case.
    #[arg(long, value_name = "CASE", value_parser = named)]
    print: Option<Scenario>,
}

/// Maximum number of failures of one class to minimise: they often have one cause.
const MINIMISED: usize = 3;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.one {
        Some(One { replay: Some(scenario), .. }) => replay(&scenario),
        Some(One { minimise: Some(scenario), .. }) => minimised(&scenario),
        Some(One { print: Some(scenario), .. }) => {
            print!("{}", corpus::text(&scenario));
            ExitCode::SUCCESS
        }
        _ => {
            let mut fleet =
                Fleet::new(arguments.first.unwrap_or_else(seed::of_commit), arguments.cases);
            fleet.ns2 = arguments.ns2;
            fleet.workers = arguments.workers.map_or(fleet.workers, NonZeroUsize::get);
            run(&fleet, &arguments.keep.unwrap_or_else(corpus::folder))
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    seed::number(text).ok_or_else(|| "not a number: allowed are 20000, 20_000, 0x1f2e".to_owned())
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
    // A panic of a case is one of its failures, and reported as such.
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

/// Runs the corpus; returns the number of scenarios that fail.
fn replay_corpus() -> std::io::Result<usize> {
    let mut failures = 0;
    for entry in corpus::entries()? {
        if let Err(failure) = corpus::run(&entry) {
            println!("corpus {}: {failure}", entry.name);
            failures += 1;
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
