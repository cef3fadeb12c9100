//! The server's side of forwarding.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use polypath::Fingerprint;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::system_text;
use crate::forward::connection::Connection;
use crate::forward::message::{Failure, Target};
use crate::forward::mux::{Mux, Request};
use crate::forward::port::{Port, listen};
use crate::forward::rules::Rule;
use crate::forward::{Problem, pump};
use crate::liveness;

/// Time to connect to one address of a target.
const CONNECT: Duration = Duration::from_secs(10);
/// Silence after which a client's paths are probed, and after which it is dropped.
const PROBE: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(120);
/// Maximum number of ports that a client may request.
const MOST_PORTS: usize = 64;

/// What clients may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Targets that they may reach.
    pub reach: Vec<Rule>,
    /// Local addresses and ports that they may request.
    pub listen: Vec<Rule>,
}

/// Serves a client until its association ends, or no packet has arrived from it for two minutes
/// although all paths are probed. `report` is called with each connection that the rules or the
/// limits of this host exclude.
pub async fn serve(
    mux: Mux,
    requests: mpsc::Receiver<Request>,
    rules: Arc<Rules>,
    client: Option<Fingerprint>,
    report: impl Fn(Problem<'_>) + Clone + Send + Sync + 'static,
) {
    let association = mux.association().clone();
    tokio::select! {
        () = serve_all(mux, requests, rules, client, report) => {}
        () = liveness::silence(&association, PROBE, SILENCE) => {
            association.abort("no packet has arrived for two minutes");
        }
    }
}

async fn serve_all(
    mux: Mux,
    mut requests: mpsc::Receiver<Request>,
    rules: Arc<Rules>,
    client: Option<Fingerprint>,
    report: impl Fn(Problem<'_>) + Clone + Send + Sync + 'static,
) {
    // Ports are closed with the association.
    let mut ports = JoinSet::new();
    while let Some(request) = requests.recv().await {
        match request {
            Request::Connect(connection, target) => {
                let (rules, report) = (rules.clone(), report.clone());
                tokio::spawn(async move {
                    match connect(&rules, client, &target).await {
                        Ok(socket) => join(connection, socket).await,
                        Err(failure) => {
                            if matches!(failure, Failure::NotAllowed | Failure::TooMany) {
                                report(Problem::NotConnected(&target, failure));
                            }
                            connection.refuse(failure).await;
                        }
                    }
                });
            }
            Request::Listen { listener, bind, port } => {
                while ports.try_join_next().is_some() {}
                let opened = if ports.len() < MOST_PORTS {
                    open_port(&rules, client, bind, port).await
                } else {
                    Err("too many ports".to_owned())
                };
                let reply = opened.as_ref().map(|(_, port)| *port).map_err(Clone::clone);
                if mux.listening(listener, reply).await.is_err() {
                    return;
                }
                if let Ok((socket, _)) = opened {
                    ports.spawn(accept(mux.clone(), socket, listener, report.clone()));
                }
            }
            // A client has no listeners of this side.
            Request::Arrived(connection, _) => connection.refuse(Failure::NotAllowed).await,
            Request::Listening { .. } => {}
        }
    }
}

async fn join(mut connection: Connection, socket: TcpStream) {
    if connection.accept().await.is_ok() {
        pump::tcp(connection, socket).await;
    }
}

/// Addresses of a target that a rule allows.
async fn allowed(
    rules: &[Rule],
    client: Option<Fingerprint>,
    target: &Target,
) -> Result<Vec<SocketAddr>, Failure> {
    if !rules.iter().any(|rule| rule.concerns(client, target)) {
        return Err(Failure::NotAllowed);
    }
    let found = lookup_host((target.host.as_str(), target.port)).await;
    let found: Vec<SocketAddr> = found.map_err(|_| Failure::UnknownHost)?.collect();
    let is_allowed =
        |address: &SocketAddr| rules.iter().any(|rule| rule.allows(client, target, address.ip()));
    let allowed: Vec<SocketAddr> = found.into_iter().filter(is_allowed).collect();
    if allowed.is_empty() { Err(Failure::NotAllowed) } else { Ok(allowed) }
}

async fn connect(
    rules: &Rules,
    client: Option<Fingerprint>,
    target: &Target,
) -> Result<TcpStream, Failure> {
    let mut failure = Failure::UnknownHost;
    for address in allowed(&rules.reach, client, target).await? {
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => failure = Failure::of(&error),
            Err(_) => failure = Failure::TimedOut,
        }
    }
    Err(failure)
}

async fn open_port(
    rules: &Rules,
    client: Option<Fingerprint>,
    bind: String,
    port: u16,
) -> Result<(TcpListener, u16), String> {
    let host = if bind.is_empty() { "localhost".to_owned() } else { bind };
    let target = Target { host, port };
    let addresses =
        allowed(&rules.listen, client, &target).await.map_err(|failure| failure.to_string())?;
    let listener = listen(&addresses).map_err(|error| system_text(&error))?;
    let port = listener.local_addr().map_err(|error| system_text(&error))?.port();
    Ok((listener, port))
}

/// Passes the connections of a port on to the client.
async fn accept(
    mux: Mux,
    listener: TcpListener,
    number: u64,
    report: impl Fn(Problem<'_>) + Send + Sync + 'static,
) {
    let mut port = Port::new(listener);
    while let Ok(socket) = port.next(|error| report(Problem::NotAccepted(error))).await {
        let mux = mux.clone();
        tokio::spawn(async move {
            match mux.arrived(number).await {
                Ok(connection) => {
                    pump::tcp(connection, socket).await;
                }
                Err(_) => {
                    // As if nothing listened on the port.
                    let _ = socket.set_zero_linger();
                }
            }
        });
    }
}
