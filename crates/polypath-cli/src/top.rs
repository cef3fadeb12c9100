//! `polypath top`: the associations and paths of the commands that run on this host.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::failure::{Failure, one_line};
use crate::interrupt::Interrupt;
use crate::observe::status::{PathStatus, Status, folders};
use crate::output::{print, print_line};
use crate::reach::seconds;
use crate::table::Table;
use crate::text::{rate, size, span};

/// Time for a command to reply.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest reply of a command.
const LONGEST: u64 = 64 << 20;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Seconds between two tables
    #[arg(short, long, help_heading = "Output", value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    interval: f64,
    /// Print one table, of one interval, and exit
    #[arg(long, help_heading = "Output")]
    once: bool,
    /// Print one JSON object for each command instead, and exit
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Bytes sent and received on a path, and the time of its command; by process, association, path.
type Counters = BTreeMap<(u32, String, u8), (f64, u64, u64)>;

pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let mut interrupt = Interrupt::new()?;
    if args.json {
        return commands().iter().try_for_each(|one| {
            print_line(serde_json::to_string(one).map_err(|error| Failure::new(error.to_string()))?)
        });
    }
    let clears = std::io::stdout().is_terminal() && !args.once;
    let mut before = counters(&commands());
    loop {
        tokio::select! {
            failure = interrupt.wait() => return Err(failure),
            () = tokio::time::sleep(Duration::from_secs_f64(args.interval)) => {}
        }
        let now = commands();
        let text = if now.is_empty() { nothing() } else { table(&now, &before) };
        // Cursor to the first column, and everything below is cleared.
        print(if clears { format!("\x1b[H\x1b[2J{text}") } else { text })?;
        if args.once {
            return Ok(());
        }
        before = counters(&now);
    }
}

fn nothing() -> String {
    "no command of polypath with connections runs here\n".to_owned()
}

/// The state of each command, in the order of their processes.
fn commands() -> Vec<Status> {
    let mut all: Vec<Status> = Vec::new();
    for folder in folders() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|name| name == "socket") {
                all.extend(ask(&entry.path()));
            }
        }
    }
    all.sort_by_key(|status| status.process);
    all
}

/// A command's state; `None` if it has ended.
fn ask(path: &Path) -> Option<Status> {
    let stream = UnixStream::connect(path).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut text = Vec::new();
    stream.take(LONGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn counters(commands: &[Status]) -> Counters {
    let mut found = Counters::new();
    for (command, association, path) in paths(commands) {
        let key = (command.process, association.to_owned(), path.path);
        found.insert(key, (command.seconds, path.sent_bytes, path.received_bytes));
    }
    found
}

/// Every path with its command and its association.
fn paths(commands: &[Status]) -> impl Iterator<Item = (&Status, &str, &PathStatus)> {
    commands.iter().flat_map(|command| {
        command.associations.iter().flat_map(move |one| {
            one.paths.iter().map(move |path| (command, one.association.as_str(), path))
        })
    })
}

fn table(commands: &[Status], before: &Counters) -> String {
    let mut table = Table::new([
        "process",
        "command",
        "association",
        "path",
        "local",
        "remote",
        "state",
        "sending",
        "receiving",
        "srtt",
        "cwnd",
        "in flight",
        "rtx",
        "timeouts",
        "errors",
    ]);
    for (command, association, path) in paths(commands) {
        let key = (command.process, association.to_owned(), path.path);
        let rates = before.get(&key).map(|&(seconds, sent, received)| {
            let per_second = |now: u64, then: u64| {
                (now.saturating_sub(then) * 8) as f64 / (command.seconds - seconds).max(1e-3)
            };
            (per_second(path.sent_bytes, sent), per_second(path.received_bytes, received))
        });
        let text = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), rate);
        table.row([
            command.process.to_string(),
            one_line(command.command.trim_start_matches("polypath ")),
            one_line(association),
            path.path.to_string(),
            one_line(&path.local),
            one_line(&path.remote),
            one_line(&path.state.replace('_', " ")),
            text(rates.map(|(sent, _)| sent)),
            text(rates.map(|(_, received)| received)),
            path.smoothed_rtt
                .and_then(|time| Duration::try_from_secs_f64(time).ok())
                .map_or_else(|| "-".to_owned(), span),
            size(path.congestion_window_bytes.into()),
            size(path.in_flight_bytes.into()),
            path.retransmissions.to_string(),
            path.timeouts.to_string(),
            path.errors.to_string(),
        ]);
    }
    table.to_string()
}
