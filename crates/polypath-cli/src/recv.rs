//! `polypath recv`: receives files and folders from other hosts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use polypath::proto::Registry;
use polypath::{Association, Endpoint};
use polypath_apps::accept::{Arrival, Peer};
use polypath_apps::transfer::FILES;
use polypath_apps::transfer::receive::Incoming;
use polypath_apps::transfer::rules::{Output, Rules};
use polypath_apps::transfer::store;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::failure::{Failure, one_line};
use crate::interrupt::Interrupt;
use crate::leave::leave;
use crate::listen::{Listen, Listener};
use crate::monitor::Monitor;
use crate::progress::Progress;
use crate::reason;
use crate::role::Role;
use crate::send::{patience, size};
use crate::summary::Summary;
use crate::tuning::Tuning;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    listen: Listen,
    /// Folder for the files, or name of the file; - is standard output
    #[arg(short, long, value_name = "PATH", default_value = ".", help_heading = "Transfer")]
    output: PathBuf,
    /// Receive from one sender and exit; this is the default
    #[arg(long, conflicts_with = "forever", hide_short_help = true, help_heading = "Transfer")]
    once: bool,
    /// Receive from any number of senders until interrupted
    #[arg(long, help_heading = "Transfer")]
    forever: bool,
    /// Time to wait for a lost sender to continue; not with --forever
    #[arg(long, hide_short_help = true, help_heading = "Transfer", value_name = "SECONDS", default_value_t = 300.0, value_parser = patience)]
    resume_wait: f64,
    /// Print each summary as one JSON object
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    accepts: Accepts,
    #[command(flatten)]
    tuning: Tuning,
}

/// Options that decide which files are accepted.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Files")]
struct Accepts {
    /// Replace existing files
    #[arg(long)]
    overwrite: bool,
    /// Accept hidden names (they begin with a dot)
    #[arg(long)]
    hidden: bool,
    /// Accept at most this many bytes from a sender, such as 10GB
    ///
    /// Default: the free disk space, except for a reserve of one percent (at most 1 GiB).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Accept at most this many files and folders from a sender
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
    max_files: u64,
}

/// Interval of checks for refused senders while no association arrives.
const GLANCE: Duration = Duration::from_millis(500);
/// Time for the first connection of a sender to end when the same sender connects again.
const TAKEOVER: Duration = Duration::from_secs(5);
/// Reason for a second sender.
const BUSY: &str = "this receiver accepts one transfer, which is running";

pub(crate) async fn run(args: Args, registry: &Registry) -> Result<(), Failure> {
    let config = args.tuning.config(registry)?;
    if args.output != Path::new("-") {
        store::check(Output::at(&args.output)).map_err(|error| {
            Failure::new(error.to_string())
                .hint("--output needs a folder, or the name of a file in one")
        })?;
    }
    let mut interrupt = Interrupt::new()?;
    let listener = args.listen.open(config, FILES, args.quiet)?;
    let endpoint = listener.endpoint.clone();
    let mut service = Service {
        args: Arc::new(args),
        listener,
        transfers: JoinSet::new(),
        associations: BTreeMap::new(),
        next: 0,
        lost: None,
    };
    let result = service.run(&mut interrupt).await;
    // The transfers share the options, which end the log when they are dropped.
    service.transfers.shutdown().await;
    for association in std::mem::take(&mut service.associations).into_values() {
        if let Err(failure) = &result {
            association.abort(failure.reason());
        }
        leave(&endpoint, association).await;
    }
    result
}

/// Outcome of a transfer.
enum Ended {
    Done(Box<Summary>),
    /// No transfer took place: the peer connected and sent no file.
    Nothing(Failure),
    /// The connection was lost; the sender may continue.
    Lost(Failure),
    Failed(Failure),
}

struct Service {
    args: Arc<Args>,
    listener: Listener,
    transfers: JoinSet<(u64, Ended)>,
    /// Handles of the associations with a transfer, to end them on an interrupt.
    associations: BTreeMap<u64, Association>,
    next: u64,
    /// The failure that the command ends with if the sender does not continue by then.
    lost: Option<(Failure, Instant)>,
}

impl Service {
    async fn run(&mut self, interrupt: &mut Interrupt) -> Result<(), Failure> {
        loop {
            tokio::select! {
                failure = interrupt.wait() => return Err(failure),
                arrival = self.listener.acceptor.next() => match arrival {
                    Some(Arrival::Accepted(peer)) => self.begin(peer)?,
                    Some(Arrival::Refused { peer, fingerprint: _, error }) => {
                        self.listener.refused(peer, &error);
                    }
                    None => return Err(Failure::new("the sockets have failed")),
                },
                Some(ended) = self.transfers.join_next() => {
                    let Ok((id, ended)) = ended else {
                        return Err(Failure::new("a transfer has failed"));
                    };
                    if self.ended(ended)? {
                        return Ok(());
                    }
                    self.associations.remove(&id);
                }
                () = tokio::time::sleep(GLANCE) => {
                    self.listener.note_outdated();
                    let now = Instant::now();
                    if self.transfers.is_empty()
                        && let Some((failure, _)) = self.lost.take_if(|(_, until)| now >= *until)
                    {
                        return Err(failure);
                    }
                }
            }
        }
    }

    /// Starts a transfer.
    fn begin(&mut self, peer: Peer) -> Result<(), Failure> {
        let busy = !self.args.forever && !self.transfers.is_empty();
        let sender = peer.association.peer();
        let same = |running: &Association| sender.is_some() && running.peer() == sender;
        let comes_back = busy && self.associations.values().any(same);
        let incoming = Incoming::new(peer);
        if busy && !comes_back {
            tokio::spawn(async move { incoming.refuse(BUSY).await });
            return Ok(());
        }
        self.listener.accepted(incoming.peer(), self.args.forever)?;
        let id = self.next;
        self.next += 1;
        self.associations.insert(id, incoming.peer().association.clone());
        let (args, endpoint) = (self.args.clone(), self.listener.endpoint.clone());
        self.transfers.spawn(async move {
            // A sender that was killed may be back before its first connection proves silent.
            let over = timeout(TAKEOVER, incoming.peer().end_silent_ones());
            if comes_back && over.await.is_err() {
                incoming.refuse(BUSY).await;
                let peer = incoming.peer().address;
                return (id, Ended::Nothing(Failure::new(format!("{peer} was refused: {BUSY}"))));
            }
            (id, receive(&args, &endpoint, &incoming).await)
        });
        Ok(())
    }

    /// Handles the end of a transfer; true if it was the only one to wait for.
    fn ended(&mut self, ended: Ended) -> Result<bool, Failure> {
        let forever = self.args.forever;
        match ended {
            Ended::Done(summary) => {
                let failure = summary.outcome.failure().map(Failure::new);
                if summary.outcome.files > 0 || failure.is_none() {
                    if self.args.output == Path::new("-") {
                        eprint!("{}", summary.text());
                    } else {
                        summary.print(self.args.json)?;
                    }
                }
                match failure {
                    Some(failure) if forever => eprintln!("{failure}"),
                    Some(failure) => return Err(failure),
                    None => {}
                }
                Ok(!forever)
            }
            Ended::Nothing(failure) => {
                eprintln!("{failure}");
                Ok(false)
            }
            Ended::Failed(failure) | Ended::Lost(failure) if forever => {
                eprintln!("{failure}");
                Ok(false)
            }
            // The same sender has connected again.
            Ended::Failed(failure) | Ended::Lost(failure) if !self.transfers.is_empty() => {
                eprintln!("{failure}");
                Ok(false)
            }
            Ended::Lost(failure) if self.args.resume_wait > 0.0 => {
                let wait = self.args.resume_wait;
                eprintln!("{}; waiting {wait:.0} s for it to continue", failure.reason());
                let until = Instant::now() + Duration::from_secs_f64(wait);
                self.lost = Some((failure, until));
                Ok(false)
            }
            Ended::Failed(failure) | Ended::Lost(failure) => Err(failure),
        }
    }
}

/// Receives the transfer of one sender.
async fn receive(args: &Args, endpoint: &Endpoint, incoming: &Incoming) -> Ended {
    let peer = incoming.peer().address.to_string();
    let association = &incoming.peer().association;
    let begin = match incoming.begin().await {
        Ok(begin) => begin,
        Err(error) => return Ended::Nothing(reason::ended(&peer, &error)),
    };
    let counts = Arc::default();
    let name = one_line(&begin.name);
    let progress = Progress::new(Role::Receiver, &name, begin.size, args.quiet);
    let monitor = Monitor::start(
        Role::Receiver,
        endpoint,
        association,
        Arc::clone(&counts),
        begin.size,
        progress,
    );
    let output = if args.output == Path::new("-") {
        Output::Stream(Box::new(std::io::stdout()))
    } else {
        Output::at(&args.output)
    };
    let accepts = &args.accepts;
    let rules = Rules {
        overwrite: accepts.overwrite,
        hidden: accepts.hidden,
        most_bytes: accepts.max_size,
        most_entries: accepts.max_files,
    };
    let result = incoming.receive(begin, output, rules, counts).await;
    let seen = monitor.finish().await;
    match result {
        Ok(outcome) => Ended::Done(Box::new(Summary { role: Role::Receiver, outcome, seen })),
        Err(error) if error.is_loss() => Ended::Lost(reason::ended(&peer, &error)),
        Err(error) => Ended::Failed(reason::ended(&peer, &error)),
    }
}
