//! `polypath perf`: measures what the paths between two hosts carry, with the habits of iperf3.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use polypath::proto::Registry;
use polypath::{Association, Endpoint, Path};
use polypath_apps::accept::Arrival;
use polypath_apps::perf::{Load, MOST_MESSAGE, PERF, Request, client, server};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::code::CodeOptions;
use crate::consent::Credentials;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::leave::leave;
use crate::listen::{Listen, Listener};
use crate::output;
use crate::perf_report::{End, Interval, Share, before, both, sum, sums};
use crate::reach::{Reach, seconds};
use crate::reason;
use crate::send::{rate, size};
use crate::tuning::Tuning;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    side: Side,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Side {
    /// Serve clients that measure
    #[command(short_flag = 's', long_flag = "server")]
    Server(Box<ServerArgs>),
    /// Measure the paths to a server
    #[command(short_flag = 'c', long_flag = "client")]
    Client(Box<ClientArgs>),
}

#[derive(Clone, Debug, clap::Args)]
struct ServerArgs {
    /// Serve one client and exit
    #[arg(short = '1', long, help_heading = "Measurement")]
    one_off: bool,
    /// Print only errors and the code phrase
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    tuning: Tuning,
}

#[derive(Clone, Debug, clap::Args)]
struct ClientArgs {
    #[command(flatten)]
    reach: Reach,
    /// Seconds to send [default: 10]
    #[arg(short, long, help_heading = "Measurement", value_name = "SECONDS", value_parser = seconds, conflicts_with = "bytes")]
    time: Option<f64>,
    /// Bytes to send, such as 1GB, instead of a time
    #[arg(short = 'n', long, help_heading = "Measurement", value_name = "SIZE", value_parser = amount)]
    bytes: Option<u64>,
    /// Send from the server to the client
    #[arg(short = 'R', long, help_heading = "Measurement", conflicts_with = "bidir")]
    reverse: bool,
    /// Send in both directions at the same time
    #[arg(long, help_heading = "Measurement")]
    bidir: bool,
    /// Number of associations that send at the same time
    #[arg(short = 'P', long, help_heading = "Measurement", value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    parallel: u8,
    /// Seconds between two reports; 0 prints only the result
    #[arg(short, long, help_heading = "Output", value_name = "SECONDS", default_value_t = 1.0, value_parser = crate::send::patience)]
    interval: f64,
    /// Size of a message
    #[arg(short, long, help_heading = "Measurement", value_name = "SIZE", default_value = "64KiB", value_parser = message_size)]
    length: u32,
    /// Limit the sending rate of each association, such as 10Mbit/s
    #[arg(long, help_heading = "Measurement", value_name = "RATE", value_parser = rate)]
    limit: Option<u64>,
    /// Print one JSON object
    #[arg(short = 'J', long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    code: CodeOptions,
    #[command(flatten)]
    tuning: Tuning,
}

/// Default time to send for, in seconds.
const TIME: f64 = 10.0;

/// A size as iperf3 has it: a number without a unit is bytes, and K, M and G are powers of 1024.
fn amount(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
    let shift = match text.strip_prefix(digits) {
        Some("") => 0,
        Some("k" | "K") => 10,
        Some("m" | "M") => 20,
        Some("g" | "G") => 30,
        _ => return size(text),
    };
    match digits.parse::<u64>() {
        Ok(number) => number.checked_mul(1 << shift).ok_or_else(|| "too large".to_owned()),
        Err(_) => size(text),
    }
}

fn message_size(text: &str) -> Result<u32, String> {
    let bytes = amount(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| (1..=MOST_MESSAGE).contains(bytes))
        .ok_or_else(|| format!("expected 1 B to {MOST_MESSAGE} B"))
}

pub(crate) async fn run(args: Args, registry: &Registry) -> Result<(), Failure> {
    match args.side {
        Side::Server(args) => serve(&args, registry).await,
        Side::Client(args) => measure(&args, registry).await,
    }
}

async fn serve(args: &ServerArgs, registry: &Registry) -> Result<(), Failure> {
    let config = args.tuning.config(registry)?;
    let mut interrupt = Interrupt::new()?;
    let mut listener: Listener = args.listen.open(config, PERF, args.quiet)?;
    let mut running: JoinSet<Result<String, Failure>> = JoinSet::new();
    loop {
        tokio::select! {
            failure = interrupt.wait() => return Err(failure),
            arrival = listener.acceptor.next() => match arrival {
                Some(Arrival::Accepted(peer)) => {
                    listener.accepted(&peer, !args.one_off)?;
                    running.spawn(async move {
                        let name = peer.address.to_string();
                        let result = server(&peer, &Load::default()).await;
                        if let Err(error) = &result {
                            peer.association.abort(error.to_string());
                        }
                        let outcome = result.map_err(|error| reason::ended(&name, &error))?;
                        Ok(format!("{name}: {}", both(&outcome)))
                    });
                }
                Some(Arrival::Refused { peer, error, .. }) => listener.refused(peer, &error),
                None => return Err(Failure::new("the sockets have failed")),
            },
            Some(done) = running.join_next() => {
                match done {
                    Ok(Ok(line)) if !args.quiet => eprintln!("{line}"),
                    Ok(Err(failure)) => eprintln!("{failure}"),
                    _ => {}
                }
                if args.one_off && running.is_empty() {
                    return Ok(());
                }
            }
        }
    }
}

/// One of the associations that measure.
struct Line {
    endpoint: Endpoint,
    association: Association,
    load: Arc<Load>,
    /// Counters at the end of the last interval: bytes sent and received, and those of the paths.
    sent: u64,
    received: u64,
    paths: Vec<Path>,
}

impl Line {
    /// What has happened since the last call, in `seconds`.
    fn interval(&mut self, id: usize, seconds: f64) -> Interval {
        // What is still in the send buffer has not been sent.
        let sent = self.load.sent().saturating_sub(self.association.buffered() as u64);
        let (sent, received) = (sent.max(self.sent), self.load.received());
        let now = self.association.paths();
        let paths = now.iter().map(|path| Share::new(path, before(&self.paths, path), seconds));
        let interval = Interval {
            id,
            sent: sent - self.sent,
            received: received - self.received,
            paths: paths.collect(),
        };
        (self.sent, self.received, self.paths) = (sent, received, now);
        interval
    }
}

async fn measure(args: &ClientArgs, registry: &Registry) -> Result<(), Failure> {
    let mut interrupt = Interrupt::new()?;
    let mut credentials = Credentials::new(&args.reach, &args.code)?;
    let mut lines = Vec::new();
    let opened = tokio::select! {
        failure = interrupt.wait() => Err(failure),
        opened = open(args, registry, &mut credentials, &mut lines) => opened,
    };
    let result = match opened {
        Ok(()) => tokio::select! {
            failure = interrupt.wait() => Err(failure),
            result = run_all(args, &mut lines) => result,
        },
        Err(failure) => Err(failure),
    };
    for Line { endpoint, association, .. } in lines {
        match &result {
            Ok(()) => {
                let closing = association.shutdown();
                let _ = tokio::time::timeout(Duration::from_secs(2), closing).await;
            }
            Err(failure) => association.abort(failure.reason()),
        }
        leave(&endpoint, association).await;
    }
    result
}

/// Opens the associations, one after the other: the first may spend a code phrase.
async fn open(
    args: &ClientArgs,
    registry: &Registry,
    credentials: &mut Credentials,
    lines: &mut Vec<Line>,
) -> Result<(), Failure> {
    for _ in 0..args.parallel {
        let config = args.tuning.config(registry)?;
        let (endpoint, association) = args.reach.connect(config, credentials.hello(PERF)).await?;
        let settled = credentials.settle(&args.reach, &endpoint, &association, PERF).await;
        let paths = association.paths();
        let load = Arc::default();
        lines.push(Line { endpoint, association, load, sent: 0, received: 0, paths });
        settled?;
    }
    Ok(())
}

async fn run_all(args: &ClientArgs, lines: &mut [Line]) -> Result<(), Failure> {
    let peer = args.reach.host.to_string();
    let request = Request {
        up: !args.reverse,
        down: args.reverse || args.bidir,
        seconds: args.bytes.is_none().then(|| args.time.unwrap_or(TIME)),
        bytes: args.bytes,
        message: args.length,
        rate: args.limit,
    };
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for (id, line) in lines.iter().enumerate() {
        let (association, load) = (line.association.clone(), line.load.clone());
        let request = request.clone();
        running.spawn(async move { (id, client(&association, &request, &load).await) });
    }
    let step = Duration::from_secs_f64(if args.interval > 0.0 { args.interval } else { 3600.0 });
    let mut ticks = interval(step);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let (mut intervals, mut from) = (Vec::new(), 0.0);
    let totals: Vec<(Vec<Path>, usize)> =
        lines.iter().enumerate().map(|(id, line)| (line.paths.clone(), id)).collect();
    let mut outcomes = Vec::new();
    // All associations are with the same host, over the same paths.
    let first = lines[0].association.clone();
    let mut remember = pin!(args.reach.remember_more(&first));
    while outcomes.len() < lines.len() {
        tokio::select! {
            never = &mut remember => match never {},
            Some(done) = running.join_next() => match done {
                Ok((id, Ok(outcome))) => outcomes.push((id, outcome)),
                Ok((_, Err(error))) => return Err(reason::ended(&peer, &error)),
                Err(_) => return Err(Failure::new("the measurement failed unexpectedly")),
            },
            _ = ticks.tick() => {
                let to = begin.elapsed().as_secs_f64();
                let now: Vec<Interval> = lines
                    .iter_mut()
                    .enumerate()
                    .map(|(id, line)| line.interval(id, to - from))
                    .collect();
                if args.json {
                    intervals.push(now.iter().map(|one| one.json(from, to)).collect::<Value>());
                } else {
                    for one in &now {
                        output::print_line(one.text(from, to))?;
                    }
                }
                from = to;
            }
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    outcomes.sort_by_key(|(id, _)| *id);
    let ends: Vec<End> = outcomes
        .into_iter()
        .zip(totals)
        .map(|((id, outcome), (begun, _))| {
            let now = lines[id].association.paths();
            let paths =
                now.iter().map(|path| Share::new(path, before(&begun, path), seconds)).collect();
            End { id, outcome, paths }
        })
        .collect();
    if args.json {
        output::print_line(json!({
            "start": {
                "host": peer,
                "associations": lines.len(),
                "message_bytes": request.message,
                "up": request.up,
                "down": request.down,
            },
            "intervals": intervals,
            "end": {
                "seconds": seconds,
                "associations": ends.iter().map(End::json).collect::<Vec<_>>(),
                "sum_sent": sum(&ends, |end| end.outcome.sent.map(|(_, report)| report)),
                "sum_received": sum(&ends, |end| end.outcome.received),
            },
        }))
    } else {
        output::print(ends.iter().map(End::text).collect::<String>() + &sums(&ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_a_size() {
        assert!(message_size("2 MiB").is_err() && message_size("0 B").is_err());
        assert_eq!(message_size("64KiB"), Ok(65_536));
    }

    #[test]
    fn sizes_may_be_those_of_iperf3() {
        for (text, bytes) in [
            ("25000000", 25_000_000),
            ("128K", 131_072),
            ("3M", 3 << 20),
            ("1g", 1 << 30),
            ("1 MB", 1_000_000),
        ] {
            assert_eq!(amount(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "1KK", "-1", "1.5M", "99999999999G"] {
            assert!(amount(text).is_err(), "{text}");
        }
    }
}
