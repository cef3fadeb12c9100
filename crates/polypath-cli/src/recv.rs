//! `polypath recv`: a file from another host.

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

/// How long the other side may take to end the association after the receiver's word.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Local addresses to receive on; all of the host's IPv4 addresses, otherwise. Name them to
    /// have the sender know them all
    #[arg(short, long, value_name = "ADDR", value_delimiter = ',')]
    bind: Vec<IpAddr>,
    /// Follow this host's addresses: those that come are told to the sender, those that go as well
    #[arg(long)]
    follow_addresses: bool,
    /// SCTP port
    #[arg(short, long, default_value_t = SCTP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// UDP port; 0 is any free one
    #[arg(short, long, default_value_t = UDP_PORT)]
    udp_port: u16,
    /// Receive IP protocol 132 instead of UDP (needs CAP_NET_RAW)
    #[arg(long)]
    raw: bool,
    /// Folder to put files into, or name of the file
    #[arg(short, long, value_name = "DIR or FILE", default_value = ".")]
    output: PathBuf,
    /// Receive one file and end; the default
    #[arg(long, conflicts_with = "forever")]
    once: bool,
    /// Receive one file after the other, until interrupted
    #[arg(long)]
    forever: bool,
    /// Seconds that a sender may take from the connection to the file. Where data waits for the paths
    /// (path_confirmation=before-data), bad ones take their time
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

/// How often is looked who could not even begin, while nothing comes.
const GLANCE: Duration = Duration::from_millis(500);

/// How a transfer went wrong.
enum Wrong {
    /// It was none: somebody knocked and had nothing to send.
    NoTransfer(Failure),
    Transfer(Failure),
}

/// Says so when a sender has been refused for its version of DTLS; at the first one, for anybody can send hellos.
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

/// Says where it listens: scripts that ask for any free port need to know.
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
        // Nobody knows this one: it is made for the secret.
        Some(_) if args.encryption.has_secret() => eprintln!("encrypted, with the shared secret"),
        Some(fingerprint) => eprintln!("encrypted, fingerprint {}", fingerprint.short()),
        None => eprintln!("in clear"),
    }
}

/// One association from its first message to its end.
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

/// The address that the sender is known by.
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

/// Writes what comes. Returns where the file is, and its SHA-256.
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
                // The writer has ended, or is about to; it says how.
                return Ok(());
            }
        }
    }
    .await;
    drop(pieces);
    let written = written.await.map_err(|_| failed())?;
    // Without the end, the writer only knows that it did not come.
    came?;
    Ok((path, written?))
}

/// Tells the sender, and gives it time to take note and close.
///
/// The protocol decides how long the telling may take: if the primary path is cut, which this side does
/// not know until it sends, the answer goes over another one after a timeout.
async fn answer(association: &Association, answer: Answer) {
    // If one of these fails, the sender has gone already.
    if association.send(Part::Answer(answer).message()).await.is_ok()
        && association.drained().await.is_ok()
    {
        let _ = tokio::time::timeout(FAREWELL, association.closed()).await;
    }
}
