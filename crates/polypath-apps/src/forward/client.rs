//! The client's side of forwarding.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::forward::connection::Connection;
use crate::forward::message::{Failure, Target};
use crate::forward::mux::{Mux, Request};
use crate::forward::port::Port;
use crate::forward::{Problem, pump, socks};

/// Time for a program's SOCKS request.
const REQUEST: Duration = Duration::from_secs(10);

/// Where the connections of a local port go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// To this target.
    To(Target),
    /// To the target of each connection's SOCKS request.
    Socks,
}

/// Forwards the connections of a local port, until the port fails.
///
/// `report` is called with each connection that does not come about.
///
/// # Errors
///
/// The listener has failed.
pub async fn local(
    mux: Mux,
    listener: TcpListener,
    route: Route,
    report: impl Fn(Problem<'_>) + Clone + Send + Sync + 'static,
) -> io::Result<()> {
    let mut port = Port::new(listener);
    loop {
        let socket = port.next(|error| report(Problem::NotAccepted(error))).await?;
        let (mux, route, report) = (mux.clone(), route.clone(), report.clone());
        tokio::spawn(async move {
            if let Err((target, failure)) = one(&mux, socket, route).await {
                report(Problem::NotConnected(&target, failure));
            }
        });
    }
}

async fn one(mux: &Mux, mut socket: TcpStream, route: Route) -> Result<(), (Target, Failure)> {
    let (target, is_socks) = match route {
        Route::To(target) => (target, false),
        Route::Socks => match timeout(REQUEST, socks::request(&mut socket)).await {
            Ok(Ok(target)) => (target, true),
            // The program has learned of it, is silent, or has gone.
            Ok(Err(_)) | Err(_) => return Ok(()),
        },
    };
    let connected = mux.connect(target.clone()).await;
    if is_socks {
        let result = connected.as_ref().map(|_| ()).map_err(|failure| *failure);
        if socks::answer(&mut socket, result).await.is_err() {
            return Ok(());
        }
    }
    match connected {
        Ok(connection) => {
            pump::tcp(connection, socket).await;
            Ok(())
        }
        Err(failure) => {
            if !is_socks {
                // As if the target itself had refused.
                let _ = socket.set_zero_linger();
            }
            Err((target, failure))
        }
    }
}

/// What the server has replied about a requested port.
pub type Listening = (u64, Result<u16, String>);

/// Serves the connections that come in on ports of the server, until the association ends.
pub async fn remote(
    mut requests: mpsc::Receiver<Request>,
    targets: BTreeMap<u64, Target>,
    replies: mpsc::Sender<Listening>,
) {
    let targets = Arc::new(targets);
    while let Some(request) = requests.recv().await {
        match request {
            Request::Arrived(connection, listener) => {
                let targets = targets.clone();
                tokio::spawn(async move { arrived(connection, targets.get(&listener)).await });
            }
            Request::Listening { listener, port } => {
                // The command may have no use for it any more.
                let _ = replies.send((listener, port)).await;
            }
            // The server has no business with this host.
            Request::Connect(connection, _) => connection.refuse(Failure::NotAllowed).await,
            Request::Listen { .. } => {}
        }
    }
}

async fn arrived(mut connection: Connection, target: Option<&Target>) {
    let Some(target) = target else { return connection.refuse(Failure::NotAllowed).await };
    match TcpStream::connect((target.host.as_str(), target.port)).await {
        Ok(socket) => {
            if connection.accept().await.is_ok() {
                pump::tcp(connection, socket).await;
            }
        }
        Err(error) => connection.refuse(Failure::of(&error)).await,
    }
}
