//! `polypath send`: sends a file to another host.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polypath::Association;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::leave::leave;
use crate::monitor::{Counter, Monitor};
use crate::progress::Progress;
use crate::protocol::{Answer, Header, Part, Role, Trailer, VERSION};
use crate::reach::Reach;
use crate::reason;
use crate::source::Source;
use crate::summary::Summary;
use crate::tuning::Tuning;

/// Time for the graceful shutdown after the file has arrived.
const SHUTDOWN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// File to send
    file: PathBuf,
    #[command(flatten)]
    reach: Reach,
    /// Name of the file at the receiver
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    tuning: Tuning,
}

pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let config = args.tuning.config()?;
    let source = Source::open(&args.file, args.name.as_deref())?;
    let mut interrupt = Interrupt::new()?;
    let (endpoint, association) = tokio::select! {
        failure = interrupt.wait() => return Err(failure),
        connected = args.reach.connect(config) => connected?,
    };
    let peer = args.reach.host.to_string();
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
            // The file has arrived: errors of the shutdown do not matter.
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

/// Sends the file and waits for the receiver's answer. Returns the SHA-256.
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
        // An answer before the end is an error, and explains more than the failure to send.
        early = &mut answer => {
            return Err(match early? {
                Answer::Error(error) => Failure::new(format!("{peer}: {error}")),
                Answer::Ok(_) => Failure::new(format!("{peer} has answered too early")),
            });
        }
        pushed = &mut push => match pushed {
            Ok(trailer) => trailer,
            // The receiver may have sent the reason.
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

/// Waits for the receiver's answer.
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
