//! `polypath send`: sends files and folders to another host.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use polypath::proto::Registry;
use polypath::proto::quantity::{SIZE, Units};
use polypath::{Association, Config, Endpoint};
use polypath_apps::error::Error;
use polypath_apps::transfer::FILES;
use polypath_apps::transfer::outcome::{Counts, Outcome};
use polypath_apps::transfer::send::send;
use polypath_apps::transfer::source::Manifest;
use tokio::time::Instant;

use crate::code::CodeOptions;
use crate::consent::Credentials;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::leave::leave;
use crate::monitor::{Monitor, Observations};
use crate::progress::Progress;
use crate::reach::Reach;
use crate::reason;
use crate::role::Role;
use crate::summary::Summary;
use crate::tuning::Tuning;

/// Time for the graceful shutdown after everything has arrived.
const SHUTDOWN: Duration = Duration::from_secs(10);
/// Time between two attempts to connect again.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Files and folders to send; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reach: Reach,
    /// Name of the file or folder at the receiver
    #[arg(long = "as", value_name = "NAME", help_heading = "Transfer")]
    name: Option<String>,
    /// Limit the sending rate, such as 10Mbit/s or 1.5MB (per second)
    #[arg(long, help_heading = "Transfer", value_name = "RATE", value_parser = rate)]
    limit: Option<u64>,
    /// Time to try to continue after the connection is lost; 0 does not try
    #[arg(long, help_heading = "Transfer", value_name = "SECONDS", default_value_t = 300.0, value_parser = patience)]
    retry: f64,
    /// Print the summary as one JSON object
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    code: CodeOptions,
    #[command(flatten)]
    tuning: Tuning,
}

/// Bit rates, in bits per second.
const RATE: Units = Units {
    what: "a rate",
    notation: "a number and bit/s, kbit/s, Mbit/s, Gbit/s, or a number of bytes such as 1.5MB",
    read: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
    written: &[("bit/s", 1)],
};

/// Parses a rate; in bytes per second.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let bits = RATE.read(text).map(|bits| bits / 8);
    let bytes = bits.or_else(|| SIZE.read(text.strip_suffix("/s").unwrap_or(text)));
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| format!("expected {}", RATE.notation))
}

/// A number of bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    SIZE.read(text).ok_or_else(|| format!("expected {}", SIZE.notation))
}

/// A number of seconds, which may be 0.
pub(crate) fn patience(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds".to_owned()),
    }
}

/// A failed attempt.
struct Attempt {
    failure: Failure,
    /// The connection was lost, and another attempt may continue.
    is_loss: bool,
    /// What was observed, if the transfer had begun.
    seen: Option<Observations>,
}

impl From<Failure> for Attempt {
    fn from(failure: Failure) -> Self {
        Self { failure, is_loss: false, seen: None }
    }
}

/// Observations over all connections of a command.
#[derive(Default)]
struct Seen {
    all: Option<Observations>,
    /// When the last connection was lost.
    lost: Option<Instant>,
}

impl Seen {
    fn add(&mut self, later: Observations) {
        let ended = Instant::now();
        self.all = Some(match (self.all.take(), self.lost) {
            (Some(mut all), Some(lost)) => {
                all.then(ended.duration_since(lost).saturating_sub(later.duration), later);
                all
            }
            _ => later,
        });
        self.lost = Some(ended);
    }
}

pub(crate) async fn run(args: Args, registry: &Registry) -> Result<(), Failure> {
    let config = args.tuning.config(registry)?;
    let name = args.name.as_deref();
    let manifest =
        Manifest::of(&args.files, name).map_err(|error| Failure::new(error.to_string()))?;
    let mut interrupt = Interrupt::new()?;
    let mut credentials = Credentials::new(&args.reach, &args.code)?;
    let mut seen = Seen::default();
    let mut first: Option<(Failure, Instant)> = None;
    let outcome = loop {
        let attempt =
            attempt(&args, config.clone(), &manifest, &mut credentials, &mut interrupt).await;
        let Attempt { failure, is_loss, seen: observed } = match attempt {
            Ok((outcome, observed)) => {
                seen.add(observed);
                break outcome;
            }
            Err(attempt) => attempt,
        };
        let begun = observed.is_some();
        if let Some(observed) = observed {
            seen.add(observed);
        }
        let now = Instant::now();
        let patience = Duration::from_secs_f64(args.retry);
        first = match first {
            // Each loss of a running transfer begins a new time to try.
            None if begun && is_loss && manifest.is_repeatable() && !patience.is_zero() => {
                eprintln!("{}; trying for {:.0} s to continue", failure.reason(), args.retry);
                Some((failure, now + patience))
            }
            Some((lost, _)) if begun && is_loss => Some((lost, now + patience)),
            Some((lost, until)) if is_loss || !failure.is_usage() => {
                if now >= until || !is_loss {
                    return Err(if is_loss { lost } else { failure });
                }
                Some((lost, until))
            }
            _ => return Err(failure),
        };
        tokio::select! {
            failure = interrupt.wait() => return Err(failure),
            () = tokio::time::sleep(PAUSE) => {}
        }
    };
    let failure = outcome.failure().map(|reason| {
        // Reasons of the receiver come with its name.
        let own = outcome.rejections == manifest.skipped() as u64;
        Failure::new(if own { reason } else { format!("{}: {reason}", args.reach.host) })
    });
    if outcome.files > 0 || failure.is_none() {
        let seen = seen.all.unwrap_or_default();
        Summary { role: Role::Sender, outcome, seen }.print(args.json)?;
    }
    failure.map_or(Ok(()), Err)
}

/// Connects and sends everything that the receiver does not have.
async fn attempt(
    args: &Args,
    config: Config,
    manifest: &Manifest,
    credentials: &mut Credentials,
    interrupt: &mut Interrupt,
) -> Result<(Outcome, Observations), Attempt> {
    let (endpoint, association) = tokio::select! {
        failure = interrupt.wait() => return Err(failure.into()),
        connected = args.reach.connect(config, credentials.hello(FILES)) => {
            connected.map_err(|failure| Attempt { failure, is_loss: true, seen: None })?
        }
    };
    let settled = tokio::select! {
        failure = interrupt.wait() => Err(failure),
        settled = credentials.settle(&args.reach, &endpoint, &association, FILES) => settled,
    };
    if let Err(failure) = settled {
        association.abort(failure.reason());
        leave(&endpoint, association).await;
        return Err(failure.into());
    }
    let (result, seen) = transfer(args, &endpoint, &association, manifest, interrupt).await;
    let peer = args.reach.host.to_string();
    match result {
        Ok(Ok(outcome)) => {
            // Everything has arrived: errors of the shutdown do not matter.
            let _ = tokio::time::timeout(SHUTDOWN, association.shutdown()).await;
            leave(&endpoint, association).await;
            Ok((outcome, seen))
        }
        Ok(Err(error)) => {
            let failure = reason::ended(&peer, &error);
            association.abort(failure.reason());
            leave(&endpoint, association).await;
            Err(Attempt { failure, is_loss: error.is_loss(), seen: Some(seen) })
        }
        Err(failure) => {
            association.abort(failure.reason());
            leave(&endpoint, association).await;
            Err(failure.into())
        }
    }
}

/// Sends everything over one association; the outer error is an interruption.
async fn transfer(
    args: &Args,
    endpoint: &Endpoint,
    association: &Association,
    manifest: &Manifest,
    interrupt: &mut Interrupt,
) -> (Result<Result<Outcome, Error>, Failure>, Observations) {
    let counts = Arc::<Counts>::default();
    let total = manifest.size();
    let progress = Progress::new(Role::Sender, manifest.name(), total, args.quiet);
    let monitor =
        Monitor::start(Role::Sender, endpoint, association, counts.clone(), total, progress);
    let result = tokio::select! {
        failure = interrupt.wait() => Err(failure),
        result = send(association, manifest, &counts, args.limit) => Ok(result),
        never = args.reach.remember_more(association) => match never {},
    };
    (result, monitor.finish().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_bits_or_bytes() {
        assert_eq!(rate("10Mbit/s"), Ok(1_250_000));
        assert_eq!(rate("8 bit/s"), Ok(1));
        assert_eq!(rate("1.5MB"), Ok(1_500_000));
        assert_eq!(rate("1.5 MB/s"), Ok(1_500_000));
        assert!(rate("0MB").is_err() && rate("fast").is_err() && rate("1 bit/s").is_err());
    }
}
