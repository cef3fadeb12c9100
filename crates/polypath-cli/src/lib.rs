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
#[cfg(target_os = "linux")]
mod elf;
mod emulate;
mod failure;
mod forward;
mod interrupt;
mod known_hosts;
mod leave;
mod listen;
mod local;
mod metered;
mod monitor;
mod observe;
mod output;
mod peer;
mod perf;
mod perf_report;
mod policies;
#[cfg(target_os = "linux")]
mod port_space;
mod progress;
mod reach;
mod reason;
mod recv;
mod reference;
mod role;
#[cfg(target_os = "linux")]
mod run;
mod scenario;
mod send;
mod serve;
mod sim;
mod summary;
mod table;
mod text;
mod top;
mod trust;
mod tuning;
mod usage;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use failure::Failure;
use polypath::proto::Registry;

/// SCTP over many paths: file transfer, forwarding, measurement, simulation
#[derive(Parser)]
#[command(name = "polypath", version, propagate_version = true, max_term_width = 80)]
#[command(after_long_help = reference::EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Log the activity of the sockets to standard error
    #[arg(short, long, global = true, help_heading = "Output")]
    verbose: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Receive files and folders
    Recv(recv::Args),
    /// Send files and folders: polypath send FILE... HOST
    Send(send::Args),
    /// Forward TCP connections through a host that runs polypath serve
    Forward(forward::Args),
    /// Serve clients that forward TCP connections
    Serve(serve::Args),
    /// Measure paths: polypath perf -s on one host, polypath perf -c HOST on another
    Perf(perf::Args),
    /// Explain why a connection or one of its paths does not work
    Doctor(doctor::Args),
    /// Show the associations and paths of the commands that run on this host
    Top(top::Args),
    /// Run a program with polypath instead of the kernel's SCTP
    #[cfg(target_os = "linux")]
    Run(run::Args),
    /// The daemon of polypath run --shared
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    PortSpace(port_space::Args),
    /// Run a scenario in the simulator
    Sim(sim::Args),
    /// Run a scenario's paths in real time between UDP sockets
    Emulate(emulate::Args),
    /// List the policies that --policy accepts
    Policies {
        /// Print JSON
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// List the profiles and the constants that --config accepts
    Profiles {
        /// Print JSON
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// Print completions for a shell
    Completions(reference::Completions),
    /// Write man pages
    Man(reference::Pages),
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
            _ => {
                let words: Vec<String> =
                    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
                let command = usage::command(words.iter().map(String::as_str));
                Err(usage::failure(&error, &command))
            }
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

/// The definition of the command line.
fn command() -> clap::Command {
    Cli::command()
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
        Command::Top(args) => in_runtime(top::run(args)),
        #[cfg(target_os = "linux")]
        Command::Run(args) => run::run(&args),
        #[cfg(target_os = "linux")]
        Command::PortSpace(args) => port_space::run(&args),
        Command::Sim(args) => sim::run(&args, registry),
        Command::Emulate(args) => in_runtime(emulate::run(args, registry)),
        Command::Policies { json } => output::print(policies::policies(registry, json)),
        Command::Profiles { json } => output::print(policies::profiles(registry, json)),
        Command::Completions(args) => reference::completions(&args, command()),
        Command::Man(args) => reference::pages(&args, command()),
    }
}

/// Runs `work` on two threads: one for the sockets, one for the file's bytes.
fn in_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    raise_open_files();
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

/// Allows as many open files as the system grants: each sender and each forwarded connection has
/// some, and the usual limit of 1024 is for programs that use `select`.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // The program works with the usual limit too.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The failure that these arguments give.
    fn failure(args: &[&str]) -> String {
        match Cli::try_parse_from(args) {
            Err(error) => usage::failure(&error, &usage::command(args.iter().copied())).to_string(),
            Ok(_) => panic!("parsed"),
        }
    }

    /// Calls `look` with the program and with all of its commands.
    fn every_command(look: &mut impl FnMut(&mut clap::Command)) {
        fn visit(command: &mut clap::Command, look: &mut impl FnMut(&mut clap::Command)) {
            look(command);
            for one in command
                .get_subcommands_mut()
                .filter(|one| one.get_name() != "help" && !one.is_hide_set())
            {
                visit(one, look);
            }
        }
        let mut command = Cli::command();
        command.build();
        visit(&mut command, look);
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn usage_failures_are_one_line_and_a_hint() {
        assert_eq!(
            failure(&["polypath", "recv", "--port", "many"]),
            "polypath: invalid value 'many' for '--port <PORT>': expected a number\n\
             hint: see `polypath recv --help`"
        );
        assert_eq!(
            failure(&["polypath", "sned"]),
            "polypath: unrecognized subcommand 'sned'\nhint: did you mean \"send\"?"
        );
        assert_eq!(
            failure(&["polypath", "recv", "--bnid", "::1"]),
            "polypath: unexpected argument '--bnid' found\nhint: did you mean \"--bind\"?"
        );
        let value = failure(&["polypath", "completions", "bsah"]);
        assert!(value.contains("hint: did you mean \"bash\"? allowed: bash, elvish"), "{value}");
        let missing = failure(&["polypath", "send"]);
        assert!(
            missing.contains("\nhint: usage: polypath send ") && missing.contains("<HOST"),
            "{missing}"
        );
        assert_eq!(missing.lines().count(), 2);
    }

    #[test]
    fn help_fits_80_columns() {
        every_command(&mut |command| {
            for help in [command.render_help(), command.render_long_help()] {
                let text = help.to_string();
                let long = text.lines().find(|line| line.chars().count() > 80);
                assert_eq!(long, None, "{}", command.get_name());
            }
        });
    }

    /// The short help has a line for each option, and every option is in a group.
    #[test]
    fn options_are_in_groups_and_have_short_help() {
        every_command(&mut |command| {
            for arg in command.get_arguments() {
                let (name, id) = (command.get_name(), arg.get_id());
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                assert!((5..=90).contains(&help.len()), "{name} {id}: {} {help}", help.len());
                assert!(!help.ends_with('.'), "{name} {id}: {help}");
                let own = arg.is_positional() || ["help", "version"].contains(&id.as_str());
                assert!(own || arg.get_help_heading().is_some(), "{name} {id} has no group");
            }
        });
    }

    /// The pages and the completions list every option that is not hidden.
    #[test]
    fn pages_and_completions_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let run = |words: &[&str]| {
            let cli = Cli::try_parse_from([&["polypath"], words].concat()).unwrap();
            run(cli, &Registry::standard()).unwrap();
        };
        run(&["man", "--output", folder.path().to_str().unwrap()]);
        let mut bash = Vec::new();
        let shell = clap_complete::Shell::Bash;
        clap_complete::generate(shell, &mut Cli::command(), "polypath", &mut bash);
        let bash = String::from_utf8(bash).unwrap();
        let mut count = 0;
        every_command(&mut |command| {
            let name = command.get_display_name().unwrap_or("polypath").to_owned();
            let page = std::fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                let escaped = option.replace('-', "\\-");
                assert!(page.contains(&format!("\\-\\-{escaped}")), "{name}: --{option}\n{page}");
                assert!(bash.contains(&format!("--{option}")), "{name}: --{option}");
                count += 1;
            }
        });
        assert!(count > 100, "{count}");
    }
}
