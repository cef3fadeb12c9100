//! `polypath send`: a file to another host.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polypath::{
    Association, Config, ConnectOptions, Encapsulation, Endpoint, SystemRoutes, UDP_PORT,
};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::local;
use crate::monitor::{Counter, Monitor, Role};
use crate::peer::PeerAddress;
use crate::progress::Progress;
use crate::protocol::{Answer, Header, Part, SCTP_PORT, Trailer, VERSION};
use crate::reason;
use crate::source::Source;
use crate::summary::Summary;
use crate::tuning::Tuning;

/// How long the last packets may take when a transfer is given up.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long the graceful shutdown may take after the file has arrived.
const SHUTDOWN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// File to send
    file: PathBuf,
    /// Receiver: a name or an address, optionally with its UDP port and with the local address that
    /// speaks to it
    #[arg(value_name = "HOST[:UDPPORT][=LOCAL]")]
    host: PeerAddress,
    /// More addresses of the receiver, a path each
    #[arg(long, value_name = "ADDR[:UDPPORT][=LOCAL]", value_delimiter = ',')]
    via: Vec<PeerAddress>,
    /// Make this address of the receiver the primary path; HOST is, otherwise
    #[arg(long, value_name = "ADDR")]
    primary: Option<IpAddr>,
    /// Local addresses to send from; those that the routes give, otherwise
    #[arg(short, long, value_name = "LOCAL", value_delimiter = ',')]
    bind: Vec<IpAddr>,
    /// SCTP port of the receiver
    #[arg(short, long, default_value_t = SCTP_PORT)]
    port: u16,
    /// UDP port of the receiver
    #[arg(short, long, default_value_t = UDP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    udp_port: u16,
    /// Local UDP port; any free one, otherwise
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    local_udp_port: u16,
    /// Send IP protocol 132 instead of UDP (needs CAP_NET_RAW)
    #[arg(long)]
    raw: bool,
    /// Name of the file at the receiver
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Seconds to wait for the connection
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0, value_parser = seconds)]
    timeout: f64,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    tuning: Tuning,
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok(seconds),
        _ => Err("it has to be a number of seconds above 0".to_owned()),
    }
}

pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let config = args.tuning.config()?;
    let source = Source::open(&args.file, args.name.as_deref())?;
    let mut interrupt = Interrupt::new()?;
    let (endpoint, association) = tokio::select! {
        failure = interrupt.wait() => return Err(failure),
        connected = connect(&args, config) => connected?,
    };
    let peer = args.host.to_string();
    let counter = Counter::default();
    let (name, size) = (source.name.clone(), source.size);
    let progress = Progress::new(Role::Sender, &name, size, args.quiet);
    let monitor =
        Monitor::start(Role::Sender, &endpoint, &association, counter.clone(), size, progress);
    let result = tokio::select! {
        failure = interrupt.wait() => Err(failure),
        result = transfer(&peer, &association, source, &counter) => result,
    };
    let seen = monitor.finish().await;
    match result {
        Ok(sha256) => {
            let summary = Summary { role: Role::Sender, file: name, bytes: size, sha256, seen };
            // The file is there, whatever happens now.
            let _ = tokio::time::timeout(SHUTDOWN, association.shutdown()).await;
            leave(&endpoint, association).await;
            summary.print(args.json)
        }
        Err(failure) => {
            association.abort(failure.reason());
            leave(&endpoint, association).await;
            Err(failure)
        }
    }
}

/// Lets the last packets go.
pub(crate) async fn leave(endpoint: &Endpoint, association: Association) {
    drop(association);
    let _ = tokio::time::timeout(FAREWELL, endpoint.close()).await;
}

async fn connect(args: &Args, config: Config) -> Result<(Endpoint, Association), Failure> {
    let remotes = remotes(args).await?;
    let addresses = local_addresses(args, &remotes)?;
    let encapsulation = if args.raw {
        Encapsulation::RawIp
    } else {
        Encapsulation::Udp { port: args.local_udp_port }
    };
    let endpoint = local::bind(addresses, 0, encapsulation, false, config)?;
    let udp_port = (!args.raw).then(|| remotes[0].0.port());
    let host = args.host.to_string();
    let options = ConnectOptions { port: args.port, remotes, config: None };
    let timeout = Duration::from_secs_f64(args.timeout);
    match tokio::time::timeout(timeout, endpoint.connect(options)).await {
        Ok(Ok(association)) => Ok((endpoint, association)),
        Ok(Err(error)) => Err(reason::connect(&host, udp_port, args.port, &error)),
        Err(_) => {
            let error = polypath::ConnectError::Closed(polypath::CloseReason::NoAnswer);
            Err(reason::connect(&host, udp_port, args.port, &error))
        }
    }
}

/// All addresses of the receiver, the primary one first.
async fn remotes(args: &Args) -> Result<Vec<(SocketAddr, Option<IpAddr>)>, Failure> {
    let mut remotes: Vec<(SocketAddr, Option<IpAddr>)> = Vec::new();
    // A name may have addresses of a family that this host does not have.
    let usable = |address: IpAddr| {
        if args.bind.is_empty() {
            SystemRoutes::source_towards(address).is_some()
        } else {
            args.bind.iter().any(|local| local.is_ipv4() == address.is_ipv4())
        }
    };
    for peer in std::iter::once(&args.host).chain(&args.via) {
        let address = peer.resolve(args.udp_port, usable).await?;
        if remotes.iter().all(|(known, _)| known.ip() != address.ip()) {
            remotes.push((address, peer.local()));
        }
    }
    if let Some(primary) = args.primary {
        let index = remotes.iter().position(|(remote, _)| remote.ip() == primary);
        let Some(index) = index else {
            let known: Vec<String> =
                remotes.iter().map(|(remote, _)| remote.ip().to_string()).collect();
            return Err(Failure::usage(format!("--primary {primary} is not among the addresses"))
                .hint(format!("allowed: {}", known.join(", "))));
        };
        remotes[..=index].rotate_right(1);
    }
    Ok(remotes)
}

/// The addresses to bind: those asked for, or those that the routes to the receiver begin with.
fn local_addresses(
    args: &Args,
    remotes: &[(SocketAddr, Option<IpAddr>)],
) -> Result<Vec<IpAddr>, Failure> {
    let mut addresses = args.bind.clone();
    for (remote, local) in remotes {
        match local {
            Some(local) => addresses.push(*local),
            None if args.bind.is_empty() => {
                addresses.extend(SystemRoutes::source_towards(remote.ip()));
            }
            None => {}
        }
    }
    if addresses.is_empty() {
        return Err(Failure::new(format!(
            "cannot connect to {}: no route to {}",
            args.host,
            remotes[0].0.ip()
        ))
        .hint("is the network up?"));
    }
    Ok(addresses)
}

/// Sends the file and waits for the receiver's word. Returns the SHA-256.
async fn transfer(
    peer: &str,
    association: &Association,
    source: Source,
    counter: &Counter,
) -> Result<String, Failure> {
    let header = Header { version: VERSION, name: source.name.clone(), size: source.size };
    let push = async {
        send(peer, association, Part::Header(header)).await?;
        let (mut chunks, end) = source.read();
        while let Some(chunk) = chunks.recv().await {
            let size = chunk.len() as u64;
            send(peer, association, Part::Bytes(chunk)).await?;
            counter.fetch_add(size, Ordering::Relaxed);
        }
        let trailer = end.await.map_err(|_| Failure::new("reading the file has failed"))??;
        send(peer, association, Part::Trailer(trailer.clone())).await?;
        Ok::<Trailer, Failure>(trailer)
    };
    let answer = answer(peer, association);
    tokio::pin!(push, answer);
    let trailer = tokio::select! {
        biased;
        // Before the end, this is bad news, and better put than what the sending side notices.
        early = &mut answer => {
            return Err(match early? {
                Answer::Error(error) => Failure::new(format!("{peer}: {error}")),
                Answer::Ok(_) => Failure::new(format!("{peer} has answered too early")),
            });
        }
        pushed = &mut push => match pushed {
            Ok(trailer) => trailer,
            // Perhaps the receiver has said why.
            Err(failure) => match tokio::time::timeout(Duration::ZERO, &mut answer).await {
                Ok(Ok(Answer::Error(error))) => {
                    return Err(Failure::new(format!("{peer}: {error}")));
                }
                _ => return Err(failure),
            },
        },
    };
    match answer.await? {
        Answer::Ok(sha256) if sha256 == trailer.sha256 => Ok(sha256),
        Answer::Ok(sha256) => Err(Failure::new(format!(
            "the SHA-256 differs: {} was sent, but {peer} has {sha256}",
            trailer.sha256
        ))),
        Answer::Error(error) => Err(Failure::new(format!("{peer}: {error}"))),
    }
}

async fn send(peer: &str, association: &Association, part: Part) -> Result<(), Failure> {
    association.send(part.message()).await.map_err(|error| reason::not_sent(peer, &error))
}

/// Waits for the receiver's word.
async fn answer(peer: &str, association: &Association) -> Result<Answer, Failure> {
    let received = association.recv().await.map_err(|error| reason::not_received(peer, &error))?;
    let Some(received) = received else {
        return Err(reason::lost(peer, &polypath::CloseReason::Graceful));
    };
    match Part::read(received) {
        Ok(Part::Answer(answer)) => Ok(answer),
        Ok(_) => Err(Failure::new(format!("{peer} sends instead of receiving"))),
        Err(error) => Err(Failure::new(format!("{peer}: {error}"))),
    }
}
