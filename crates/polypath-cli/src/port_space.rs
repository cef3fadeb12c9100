//! The daemon of `polypath run --shared`, which the first program starts.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use polypath_ports::client::Client;
use polypath_ports::daemon::{self, StartError};

use crate::failure::{Failure, system_text};

/// Attempts to connect: a daemon may end at the moment, or another program may start one.
const ATTEMPTS: u32 = 100;

/// Time between attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// The line of a daemon that programs can connect to.
const READY: &str = "ready";

/// The daemon of polypath run --shared
#[derive(clap::Args)]
pub(crate) struct Args {
    /// UDP port
    #[arg(long, value_name = "PORT", help_heading = "Network")]
    port: u16,
    /// This process is the daemon, not the one that starts it
    #[arg(long, help_heading = "Network")]
    detached: bool,
}

/// Makes sure that a daemon runs at least until this process has ended.
// No runtime has been started.
#[allow(clippy::disallowed_methods)]
pub(crate) fn attend(port: u16) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| {
        let text = format!("cannot use --shared: {}", system_text(error));
        Err(Failure::new(text))
    };
    for _ in 0..ATTEMPTS {
        match Client::connect(port) {
            Ok(client) => match client.attend() {
                Ok(()) => return Ok(()),
                // It has ended meanwhile.
                Err(error) if has_ended(error.kind()) => {}
                Err(error) => return failed(&error),
            },
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => start(port)?,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(Failure::new("cannot use --shared: another user has its address"));
            }
            Err(error) => return failed(&error),
        }
        std::thread::sleep(PAUSE);
    }
    Err(Failure::new("cannot use --shared: the daemon does not stay"))
}

fn has_ended(error: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionReset, UnexpectedEof].contains(&error)
}

/// A command that runs this program as the daemon.
fn command(port: u16) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["port-space", "--port", &port.to_string()]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// Starts the daemon as a grandchild, which the program that is about to run does not wait for.
fn start(port: u16) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("cannot start the daemon of --shared: {}", system_text(&error)))
    };
    let mut command = command(port).map_err(failed)?;
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(failed)?;
    }
    child.wait().map_err(failed)?;
    match line.trim() {
        READY => Ok(()),
        "" => Err(Failure::new("cannot start the daemon of --shared")),
        reason => Err(Failure::new(format!("cannot use --shared: {reason}"))),
    }
}

/// Runs the daemon, or starts the process that does.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(system_text(&error));
    if !args.detached {
        daemon::inherit_no_descriptors();
        let mut command = command(args.port).map_err(failed)?;
        return command.arg("--detached").spawn().map(drop).map_err(failed);
    }
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    crate::raise_open_files();
    // The process that waits for the line may have ended.
    let say = |line: &str| drop(writeln!(std::io::stdout(), "{line}"));
    match daemon::serve(args.port, || say(READY)) {
        // Programs can connect to the other one.
        Ok(()) => {}
        Err(StartError::Runs) => say(READY),
        Err(error) => {
            let text = match &error {
                StartError::System(error) => system_text(error),
                other => other.to_string(),
            };
            say(&format!("UDP port {}: {text}", args.port));
        }
    }
    Ok(())
}
