//! Two ends of an association with forwarded connections, on loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use polypath::{Association, Config, ConnectOptions, Endpoint, EndpointOptions};
use polypath_apps::forward::client::{Route, local};
use polypath_apps::forward::mux::{Mux, Side};
use polypath_apps::forward::port::listen;
use polypath_apps::forward::server::{Rules, serve};
use polypath_apps::forward::{self, Target};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// Longer than any condition takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The two ends of an association, that of the client first.
pub(crate) async fn associated() -> (Association, Association) {
    let config = forward::config(&Config::rfc9260()).unwrap();
    let bind = |listen, port| {
        Endpoint::bind(EndpointOptions {
            addresses: vec!["127.0.0.1".parse().unwrap()],
            config: config.clone(),
            listen,
            port,
            ..EndpointOptions::plain()
        })
        .unwrap()
    };
    let (there, here) = (bind(true, 9260), bind(false, 0));
    let to = ConnectOptions::new(9260, [there.local_addresses()[0]]);
    let (client, server) = tokio::join!(here.connect(to), there.accept());
    (client.unwrap(), server.unwrap())
}

/// Serves the server's end.
pub(crate) fn served(association: Association, rules: &[&str]) -> Mux {
    let (server, requests) = Mux::start(association, Side::Server);
    let reach = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let rules = Arc::new(Rules { reach, listen: vec!["127.0.0.1:*".parse().unwrap()] });
    tokio::spawn(serve(server.clone(), requests, rules, None, |_| {}));
    server
}

/// A client and a server; returns the client's side and the server's.
pub(crate) async fn pair(rules: &[&str]) -> (Mux, Mux) {
    let (client, server) = associated().await;
    let server = served(server, rules);
    let (client, requests) = Mux::start(client, Side::Client);
    // The server requests nothing.
    std::mem::forget(requests);
    (client, server)
}

/// A local port that leads to `target`.
pub(crate) async fn forwarded(mux: &Mux, route: Route) -> SocketAddr {
    let listener = listen(&["127.0.0.1:0".parse().unwrap()]).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(local(mux.clone(), listener, route, |_| {}));
    address
}

pub(crate) fn target(address: SocketAddr) -> Target {
    Target { host: address.ip().to_string(), port: address.port() }
}

/// A server that sends back what it receives, up to the end.
pub(crate) async fn echo() -> SocketAddr {
    let listener = listen(&["127.0.0.1:0".parse().unwrap()]).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = socket.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    address
}

/// Waits until no stream is in use on either side.
pub(crate) async fn all_free(muxes: [&Mux; 2]) {
    let free = async {
        while muxes.iter().any(|mux| mux.connections() > 0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(PATIENCE, free).await.is_ok(), "{:?}", muxes.map(Mux::connections));
}
