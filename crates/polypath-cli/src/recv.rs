//! `polypath recv`: receives files from other hosts.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polypath::{Association, Encapsulation, Endpoint, EndpointOptions, Trust, UDP_PORT};

use crate::auth_key;
use crate::failure::{Failure, one_line};
use crate::interrupt::Interrupt;
use crate::leave::leave;
use crate::local;
use crate::monitor::{Counter, Monitor};
use crate::progress::Progress;
use crate::protocol::{Answer, Header, Part, Role, SCTP_PORT, name_problem};
use crate::reach::seconds;
use crate::reason;
use crate::summary::Summary;
use crate::target::{Piece, Target, destination};
use crate::trust;
use crate::tuning::Tuning;

/// Time for the sender to close the association after the answer.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Local addresses to receive on [default: all IPv4 addresses of the host]. List them to
    /// announce them all to the sender
    #[arg(short, long, value_name = "ADDR", value_delimiter = ',')]
    bind: Vec<IpAddr>,
    /// Follow this host's addresses: announce to the sender which ones appear and disappear
    #[arg(long)]
    follow_addresses: bool,
    /// SCTP port
    #[arg(short, long, default_value_t = SCTP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// UDP port; 0 picks any free one
    #[arg(short, long, default_value_t = UDP_PORT)]
    udp_port: u16,
    /// Receive IP protocol 132 instead of UDP (needs CAP_NET_RAW)
    #[arg(long)]
    raw: bool,
    /// Directory to put files into, or name of the file
    #[arg(short, long, value_name = "DIR or FILE", default_value = ".")]
    output: PathBuf,
    /// Receive one file and exit; the default
    #[arg(long, conflicts_with = "forever")]
    once: bool,
    /// Receive files one after the other, until interrupted
    #[arg(long)]
    forever: bool,
    /// Seconds between the connection and the file before a sender is given up. If data waits for
    /// the paths to be confirmed (path_confirmation=before-data), broken paths use up some of that
    /// time
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    timeout: f64,
    /// Print each summary as one JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    encryption: trust::Options,
    #[command(flatten)]
    authentication: auth_key::KeyOptions,
    #[command(flatten)]
    tuning: Tuning,
}

/// Interval of checks for refused senders while no association arrives.
const GLANCE: Duration = Duration::from_millis(500);

/// Outcome of a failed transfer.
enum Wrong {
    /// No transfer took place: the peer connected and sent no file.
    NoTransfer(Failure),
    Transfer(Failure),
}

/// Reports that senders were refused for their DTLS version. Reports only the first one, because
/// anyone can send ClientHellos.
fn note_outdated(endpoint: &Endpoint, before: &mut u64) {
    let (stats, _) = endpoint.encryption_stats();
    if stats.outdated > 0 && *before == 0 {
        eprintln!("a sender without DTLS 1.3 was refused; --min-dtls 1.2 takes the older version");
    }
    *before = stats.outdated;
}

pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let config = args.tuning.config()?;
    let mut interrupt = Interrupt::new()?;
    let addresses = if args.bind.is_empty() {
        if args.follow_addresses {
            local::any_of_each_family()?
        } else {
            vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)]
        }
    } else {
        args.bind.clone()
    };
    let encapsulation =
        if args.raw { Encapsulation::RawIp } else { Encapsulation::Udp { port: args.udp_port } };
    let encryption = args.encryption.encryption(args.raw, Trust::Anyone)?;
    let endpoint = local::bind(EndpointOptions {
        addresses,
        port: args.port,
        encapsulation,
        listen: true,
        follow_addresses: args.follow_addresses,
        config: args.authentication.demand(config)?,
        auth_keys: args.authentication.keys()?,
        encryption,
        ..EndpointOptions::default()
    })?;
    announce(&endpoint, &args);
    let mut outdated = 0;
    loop {
        let association = tokio::select! {
            failure = interrupt.wait() => return Err(failure),
            association = endpoint.accept() => association,
            () = tokio::time::sleep(GLANCE) => {
                note_outdated(&endpoint, &mut outdated);
                continue;
            }
        };
        let Some(association) = association else {
            return Err(Failure::new("the sockets have failed"));
        };
        let result = tokio::select! {
            failure = interrupt.wait() => {
                association.abort(failure.reason());
                leave(&endpoint, association).await;
                return Err(failure);
            }
            result = receive(&args, &endpoint, &association) => result,
        };
        match result {
            Ok(summary) => summary.print(args.json)?,
            Err(Wrong::NoTransfer(failure)) => {
                eprintln!("{failure}");
                continue;
            }
            Err(Wrong::Transfer(failure)) if args.forever => eprintln!("{failure}"),
            Err(Wrong::Transfer(failure)) => {
                leave(&endpoint, association).await;
                return Err(failure);
            }
        }
        if !args.forever {
            leave(&endpoint, association).await;
            return Ok(());
        }
    }
}

/// Prints the addresses and ports in use: scripts that request any free port need them.
fn announce(endpoint: &Endpoint, args: &Args) {
    if args.quiet {
        return;
    }
    let addresses: Vec<String> =
        endpoint.local_addresses().iter().map(|address| address.ip().to_string()).collect();
    let below = match endpoint.local_addresses()[..] {
        [first, ..] if !args.raw => format!("UDP port {}", first.port()),
        _ => "IP protocol 132".to_owned(),
    };
    eprintln!("waiting on {}, {below}, SCTP port {}", addresses.join(", "), endpoint.port());
    match endpoint.fingerprint() {
        // The fingerprint is of no use: the certificate is temporary, and the secret proves its
        // owner.
        Some(_) if args.encryption.has_secret() => eprintln!("encrypted, with the shared secret"),
        Some(fingerprint) => eprintln!("encrypted, fingerprint {}", fingerprint.short()),
        None => eprintln!("in clear"),
    }
}

/// Receives the file of one association.
async fn receive(
    args: &Args,
    endpoint: &Endpoint,
    association: &Association,
) -> Result<Summary, Wrong> {
    let peer = peer_name(association);
    if let (Some(fingerprint), false) = (association.peer(), args.quiet) {
        eprintln!("connected with {peer}, fingerprint {}", fingerprint.short());
    }
    let patience = Duration::from_secs_f64(args.timeout);
    let header = match tokio::time::timeout(patience, header(&peer, association)).await {
        Ok(header) => header,
        Err(_) => Err(Failure::new(format!("{peer} has connected and sends no file"))),
    };
    let header = match header {
        Ok(header) => header,
        Err(failure) => {
            association.abort(failure.reason());
            return Err(Wrong::NoTransfer(failure));
        }
    };
    let counter = Counter::default();
    let progress = Progress::new(Role::Receiver, &one_line(&header.name), header.size, args.quiet);
    let size = header.size;
    let monitor =
        Monitor::start(Role::Receiver, endpoint, association, counter.clone(), size, progress);
    let result = store(args, &peer, association, &header, &counter).await;
    let seen = monitor.finish().await;
    match result {
        Ok((file, sha256)) => {
            answer(association, Answer::Ok(sha256.clone())).await;
            Ok(Summary {
                role: Role::Receiver,
                file: file.display().to_string(),
                bytes: size,
                sha256,
                seen,
            })
        }
        Err(failure) => {
            answer(association, Answer::Error(failure.reason())).await;
            association.abort(failure.reason());
            Err(Wrong::Transfer(failure))
        }
    }
}

/// The peer's primary address, as its name in messages.
fn peer_name(association: &Association) -> String {
    let paths = association.paths();
    let primary = association.primary();
    paths
        .get(primary.index())
        .map_or_else(|| "the sender".to_owned(), |path| path.view.remote.to_string())
}

async fn header(peer: &str, association: &Association) -> Result<Header, Failure> {
    match next(peer, association).await? {
        Part::Header(header) => Ok(header),
        _ => Err(Failure::new(format!("{peer} does not say what it sends"))),
    }
}

async fn next(peer: &str, association: &Association) -> Result<Part, Failure> {
    match association.recv().await {
        Ok(Some(received)) => {
            Part::read(received).map_err(|error| Failure::new(format!("{peer}: {error}")))
        }
        Ok(None) => Err(reason::lost(peer, &polypath::CloseReason::Graceful)),
        Err(error) => Err(reason::not_received(peer, &error)),
    }
}

/// Stores the file. Returns its path and its SHA-256.
async fn store(
    args: &Args,
    peer: &str,
    association: &Association,
    header: &Header,
    counter: &Counter,
) -> Result<(PathBuf, String), Failure> {
    if let Some(problem) = name_problem(&header.name) {
        return Err(Failure::new(format!("{:?} is refused as a name: {problem}", header.name)));
    }
    let path = destination(&args.output, &header.name);
    let (pieces, written) = Target::create(path.clone(), header)?.write();
    let failed = || Failure::new("writing the file has failed");
    let came = async {
        loop {
            let piece = match next(peer, association).await? {
                Part::Bytes(bytes) => {
                    counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    Piece::Bytes(bytes)
                }
                Part::Trailer(trailer) => Piece::End(trailer),
                _ => return Err(Failure::new(format!("{peer} sends something unexpected"))),
            };
            let last = matches!(piece, Piece::End(_));
            if pieces.send(piece).await.is_err() || last {
                // The writer has ended or is about to; its result is the reason.
                return Ok(());
            }
        }
    }
    .await;
    drop(pieces);
    let written = written.await.map_err(|_| failed())?;
    // If the connection failed, report that rather than the writer's incomplete file.
    came?;
    Ok((path, written?))
}

/// Sends the answer, and gives the sender time to receive it and close.
///
/// The protocol limits the time until the answer is acknowledged: if the primary path is cut, which
/// this side detects only by sending, the answer is retransmitted on another path after a timeout.
async fn answer(association: &Association, answer: Answer) {
    // An error means that the sender has gone already.
    if association.send(Part::Answer(answer).message()).await.is_ok()
        && association.drained().await.is_ok()
    {
        let _ = tokio::time::timeout(FAREWELL, association.closed()).await;
    }
}
