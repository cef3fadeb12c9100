//! The `polypath` program: sends files over many paths, diagnoses connections and runs simulations.
//!
//! It is a library so that a program with policies of its own needs one line: [`main`] takes their
//! registry.
//!
//! Data is written to stdout, everything else to stderr. A failure is one line, optionally with a
//! hint, and an exit code: 1 for a failure at run time, 2 for an invalid command line, 128 plus the
//! signal's number if interrupted.

#![forbid(unsafe_code)]

mod auth_key;
mod code;
mod consent;
mod doctor;
mod emulate;
mod failure;
mod forward;
mod interrupt;
mod known_hosts;
mod leave;
mod listen;
mod local;
mod monitor;
mod output;
mod peer;
mod perf;
mod perf_report;
mod policies;
mod progress;
mod reach;
mod reason;
mod recv;
mod role;
mod scenario;
mod send;
mod serve;
mod sim;
mod summary;
mod table;
mod text;
mod trust;
mod tuning;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use failure::Failure;
use polypath::proto::Registry;

/// SCTP over many paths: file transfer, simulation, emulation
#[derive(Parser)]
#[command(name = "polypath", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Log the sockets' activity to stderr
    #[arg(short, long, global = true)]
    verbose: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Receive files and folders
    Recv(recv::Args),
    /// Send files and folders: polypath send FILE... HOST
    Send(send::Args),
    /// Forward TCP connections to and from a host that runs polypath serve
    Forward(forward::Args),
    /// Serve clients that forward TCP connections
    Serve(serve::Args),
    /// Measure the paths to a host: polypath perf -s there, polypath perf -c HOST here
    Perf(perf::Args),
    /// Explain why a connection to a host, or one of its paths, does not come up
    Doctor(doctor::Args),
    /// Run a scenario in the simulator
    Sim(sim::Args),
    /// Run a scenario's paths in real time, between real UDP sockets
    Emulate(emulate::Args),
    /// List the protocol's policies that --policy takes
    Policies {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the profiles and the constants that --config takes
    Profiles {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs the program on the command line's arguments. `registry` has the policies and profiles that
/// options and scenarios may name.
pub fn main(registry: &Registry) -> ExitCode {
    let result = match Cli::try_parse() {
        Ok(cli) => run(cli, registry),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                let _ = error.print();
                return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
            }
            _ => Err(usage_failure(&error)),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(cli: Cli, registry: &Registry) -> Result<(), Failure> {
    if cli.verbose {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .init();
    }
    match cli.command {
        Command::Recv(args) => in_runtime(recv::run(args, registry)),
        Command::Send(args) => in_runtime(send::run(args, registry)),
        Command::Forward(args) => in_runtime(forward::run(args, registry)),
        Command::Serve(args) => in_runtime(serve::run(args, registry)),
        Command::Perf(args) => in_runtime(perf::run(args, registry)),
        Command::Doctor(args) => in_runtime(doctor::run(args)),
        Command::Sim(args) => sim::run(&args, registry),
        Command::Emulate(args) => in_runtime(emulate::run(args, registry)),
        Command::Policies { json } => output::print(policies::policies(registry, json)),
        Command::Profiles { json } => output::print(policies::profiles(registry, json)),
    }
}

/// Runs `work` on two threads: one for the sockets, one for the file's bytes.
fn in_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {}", failure::system_text(&error))))?;
    let result = runtime.block_on(work);
    // A thread may wait for standard input, which need not end.
    runtime.shutdown_background();
    result
}

/// Turns an error of the command line parser into one line and a hint.
fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let mut paragraphs = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| !paragraph.is_empty());
    let first = paragraphs.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(&first);
    // Clap puts the allowed values after the message.
    let (message, allowed) = match message.split_once(" [possible values: ") {
        Some((message, allowed)) => (message, Some(allowed.trim_end_matches(']'))),
        None => (message, None),
    };
    let failure = Failure::usage(message);
    match allowed {
        Some(allowed) => failure.hint(format!("allowed: {allowed}")),
        None => match paragraphs.next() {
            Some(hint) => {
                let hint = hint.strip_prefix("tip: ").unwrap_or(&hint);
                failure.hint(hint.to_owned())
            }
            None => failure,
        },
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn usage_failures_are_one_line() {
        let failure = |args: &[&str]| match Cli::try_parse_from(args) {
            Err(error) => usage_failure(&error).to_string(),
            Ok(_) => panic!("parsed"),
        };
        assert_eq!(
            failure(&["polypath", "recv", "--port", "many"]),
            "polypath: invalid value 'many' for '--port <PORT>': invalid digit found in string\n\
             hint: For more information, try '--help'."
        );
        let text = failure(&["polypath", "sned"]);
        assert!(text.starts_with("polypath: unrecognized subcommand 'sned'\nhint: "), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
}
