//! `polypath emulate`: a scenario's paths in real time, between real UDP sockets.
//!
//! It reads commands from stdin, one per line; `help` lists them. It ends with `quit` or with a
//! signal.

use std::fs::File;
use std::io::{BufRead, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use polypath::proto::Registry;
use polypath_sim::emulator::{self, EmulatorError, Handle};
use polypath_sim::link::LossModel;
use polypath_sim::network::ChangeKind;
use polypath_sim::scenario::Direction;
use polypath_sim::units::{Probability, Rate, Span};
use tokio::sync::mpsc;

use crate::failure::{Failure, did_you_mean, one_line, system_text};
use crate::interrupt::Interrupt;
use crate::output;
use crate::scenario::ScenarioArgs;
use crate::table::Table;

/// First words of the commands.
const VERBS: &[&str] = &["down", "up", "rate", "delay", "loss", "report", "help", "quit"];
const HELP: &str = "down PATH | up PATH | rate PATH RATE | delay PATH SPAN | loss PATH PROBABILITY \
                    | report | quit; before PATH, a direction (forward or back) limits the change";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Write the packets of all links to this pcapng file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pcap: Option<PathBuf>,
}

/// A command on stdin.
#[derive(Clone, Debug, PartialEq)]
enum Command {
    Change { path: usize, direction: Direction, kind: ChangeKind },
    Report,
    Help,
    Quit,
}

pub(crate) async fn run(args: Args, registry: &Registry) -> Result<(), Failure> {
    let scenario = args.scenario.load(registry)?;
    let mut interrupt = Interrupt::new()?;
    let capture = args.pcap.as_ref().map(|path| {
        let file = File::create(path).map_err(|error| Failure::file("create", path, &error))?;
        Ok::<Box<dyn Write + Send>, Failure>(Box::new(BufWriter::new(file)))
    });
    let handle = emulator::start(&scenario, capture.transpose()?).map_err(|e| failure(&e))?;
    for path in handle.paths() {
        output::print_line(format_args!(
            "{}: sender {} sends to {}; receiver {} sees {}",
            path.name, path.sender, path.front, path.receiver, path.back
        ))?;
    }
    output::print_line("ready")?;
    let mut lines = stdin_lines();
    loop {
        let line = tokio::select! {
            // A signal is the normal way to end the program.
            _ = interrupt.wait() => break,
            Some(line) = lines.recv() => line,
        };
        match parse(&line, &handle) {
            Ok(None) => {}
            Ok(Some(Command::Quit)) => break,
            Ok(Some(Command::Help)) => eprintln!("{HELP}"),
            Ok(Some(Command::Report)) => output::print(report(&handle)?)?,
            Ok(Some(Command::Change { path, direction, kind })) => {
                handle.change(path, direction, kind).map_err(|error| failure(&error))?;
                output::print_line(format_args!("done: {}", one_line(&line)))?;
            }
            Err(problem) => eprintln!("polypath: {problem}"),
        }
    }
    handle.stop().map_err(|error| failure(&error))
}

fn failure(error: &EmulatorError) -> Failure {
    match error {
        EmulatorError::Bind { address, source } => {
            Failure::new(format!("cannot use UDP {address}: {}", system_text(source)))
                .hint("the scenario's table [emulator] sets addresses and ports")
        }
        error => Failure::new(error.to_string()),
    }
}

/// Lines of stdin, read by a thread that the end of the program does not wait for.
fn stdin_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() || line.is_ok_and(|line| sender.blocking_send(line).is_err()) {
                return;
            }
        }
    });
    receiver
}

/// Parses a command; `None` for an empty line.
fn parse(line: &str, handle: &Handle) -> Result<Option<Command>, String> {
    let names: Vec<&str> = handle.paths().iter().map(|path| path.name.as_str()).collect();
    parse_command(line, &names)
}

fn parse_command(line: &str, paths: &[&str]) -> Result<Option<Command>, String> {
    let mut words = line.split_whitespace();
    let Some(verb) = words.next() else { return Ok(None) };
    let words: Vec<&str> = words.collect();
    match verb {
        "report" => return Ok(Some(Command::Report)),
        "help" => return Ok(Some(Command::Help)),
        "quit" => return Ok(Some(Command::Quit)),
        "down" | "up" | "rate" | "delay" | "loss" => {}
        _ => {
            let guess = did_you_mean(verb, VERBS).unwrap_or_default();
            return Err(format!("no command {verb:?}; {guess}allowed: {HELP}"));
        }
    }
    let (direction, words) = match words.as_slice() {
        ["forward", rest @ ..] => (Direction::Forward, rest),
        ["back", rest @ ..] => (Direction::Back, rest),
        words => (Direction::Both, words),
    };
    let [name, value @ ..] = words else {
        return Err(format!("{verb} of which path? allowed: {}", paths.join(", ")));
    };
    let path = paths
        .iter()
        .position(|path| path == name)
        .or_else(|| name.parse().ok().filter(|index| *index < paths.len()))
        .ok_or_else(|| {
            let guess = did_you_mean(name, paths).unwrap_or_default();
            format!("no path {name:?}; {guess}allowed: {}", paths.join(", "))
        })?;
    let value = value.join(" ");
    let kind = match verb {
        "down" => ChangeKind::Down,
        "up" => ChangeKind::Up,
        "rate" => ChangeKind::Rate(Some(value.parse::<Rate>().map_err(|e| e.to_string())?)),
        "delay" => ChangeKind::Delay(value.parse::<Span>().map_err(|e| e.to_string())?.duration()),
        _ => ChangeKind::Loss(LossModel::bernoulli(
            value.parse::<Probability>().map_err(|e| e.to_string())?,
        )),
    };
    if matches!(verb, "down" | "up") && !value.is_empty() {
        return Err(format!("{verb} takes a path and nothing else, not {value:?}"));
    }
    Ok(Some(Command::Change { path, direction, kind }))
}

fn report(handle: &Handle) -> Result<String, Failure> {
    let report = handle.report().map_err(|error| failure(&error))?;
    let mut table =
        Table::new(["link", "state", "offered", "delivered", "queue full", "lost", "link down"]);
    for link in report.links {
        let c = &link.counters;
        table.row([
            link.name.clone(),
            if link.up { "up" } else { "down" }.to_owned(),
            c.offered.to_string(),
            c.delivered.to_string(),
            c.dropped_queue.to_string(),
            c.lost.to_string(),
            c.lost_outage.to_string(),
        ]);
    }
    let late = report.punctuality;
    let span = |late: Duration| format!("{:.3} ms", late.as_secs_f64() * 1e3);
    let mean = late.mean().map_or_else(|| "-".to_owned(), span);
    Ok(format!(
        "{table}late by {mean} on average, at most {}, of {} datagrams\n",
        span(late.most),
        late.datagrams
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let paths = ["first", "second"];
        let parse = |line| parse_command(line, &paths);
        let change = |path, direction, kind| Ok(Some(Command::Change { path, direction, kind }));
        assert_eq!(parse("  "), Ok(None));
        assert_eq!(parse("quit"), Ok(Some(Command::Quit)));
        assert_eq!(parse("down first"), change(0, Direction::Both, ChangeKind::Down));
        assert_eq!(parse("up back 1"), change(1, Direction::Back, ChangeKind::Up));
        assert_eq!(
            parse("rate forward second 5 Mbit/s"),
            change(1, Direction::Forward, ChangeKind::Rate(Some(Rate::mbit(5))))
        );
        let delay = Span::millis(45).duration();
        assert_eq!(parse("delay first 45ms"), change(0, Direction::Both, ChangeKind::Delay(delay)));
        assert!(parse("loss first 3 %").is_ok());
    }

    #[test]
    fn wrong_commands_say_what_is_allowed() {
        let parse = |line| parse_command(line, &["first", "second"]).unwrap_err();
        assert!(parse("cut first").contains("allowed: down PATH"));
        assert!(parse("down third").contains("allowed: first, second"));
        assert!(parse("down 2").contains("allowed: first, second"));
        assert!(parse("down").contains("which path"));
        assert!(parse("rate first fast").contains("Mbit/s"));
        assert!(parse("down first now").contains("nothing else"));
    }
}
