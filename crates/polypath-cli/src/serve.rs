//! `polypath serve`: the server's side of `polypath forward`.

use std::sync::Arc;

use polypath::proto::Registry;
use polypath_apps::accept::{Arrival, Peer};
use polypath_apps::forward::mux::{Mux, Side};
use polypath_apps::forward::rules::Rule;
use polypath_apps::forward::server::{Rules, serve};
use polypath_apps::forward::{self, FORWARD, Failure as Failed, Problem};
use tokio::task::JoinSet;

use crate::failure::{Failure, one_line};
use crate::forward::waiting;
use crate::interrupt::Interrupt;
use crate::listen::Listen;
use crate::tuning::Tuning;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Targets that clients may reach: [FINGERPRINT@]HOST:PORT; may be repeated
    ///
    /// HOST is a name, an address, a network such as 10.0.0.0/8, or *. PORT is a port, a range such
    /// as 8000-8099, or *. With a fingerprint, the rule is for one client. Clients can reach
    /// nothing that no rule allows.
    #[arg(long, value_name = "RULE", help_heading = "Rules")]
    allow: Vec<Rule>,
    /// Local addresses and ports that clients may listen on (-R); may be repeated
    #[arg(long, value_name = "RULE", help_heading = "Rules")]
    allow_listen: Vec<Rule>,
    /// Print only errors and the code phrase
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    tuning: Tuning,
}

pub(crate) async fn run(args: Args, registry: &Registry) -> Result<(), Failure> {
    if args.allow.is_empty() && args.allow_listen.is_empty() {
        return Err(Failure::usage("no rule: clients could reach nothing").hint(
            "pass --allow localhost:22 for ssh to this host, or --allow '*:*' for every target",
        ));
    }
    let config = forward::config(&args.tuning.config(registry)?)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut interrupt = Interrupt::new()?;
    let mut listener = args.listen.open(config, FORWARD, args.quiet)?;
    let rules = Arc::new(Rules { reach: args.allow, listen: args.allow_listen });
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            failure = interrupt.wait() => return Err(failure),
            arrival = listener.acceptor.next() => match arrival {
                Some(Arrival::Accepted(peer)) => {
                    listener.accepted(&peer, true)?;
                    clients.spawn(client(peer, rules.clone()));
                }
                Some(Arrival::Refused { peer, error, .. }) => listener.refused(peer, &error),
                None => return Err(Failure::new("the sockets have failed")),
            },
            Some(done) = clients.join_next() => {
                if let (Ok(line), false) = (done, args.quiet) {
                    eprintln!("{line}");
                }
            }
        }
    }
}

/// Serves a client until it leaves; returns a line about it.
async fn client(peer: Peer, rules: Arc<Rules>) -> String {
    let fingerprint = peer.association.peer();
    let address = peer.address;
    let (mux, requests) = Mux::start(peer.association.clone(), Side::Server);
    let report = move |problem: Problem<'_>| {
        let line = match problem {
            Problem::NotConnected(target, Failed::NotAllowed) => {
                format!("{address} may not reach {target}")
            }
            Problem::NotConnected(target, why) => {
                format!("cannot connect {address} to {target}: {why}")
            }
            Problem::NotAccepted(error) => waiting(error),
        };
        eprintln!("{}", one_line(&line));
    };
    serve(mux, requests, rules, fingerprint, report).await;
    match peer.association.close_reason() {
        Some(reason) => format!("{address} has disconnected: {}", one_line(&reason.to_string())),
        None => format!("{address} has disconnected"),
    }
}
