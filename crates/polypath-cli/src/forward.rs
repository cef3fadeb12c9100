//! `polypath forward`: forwards TCP connections to and from a server, with the options of ssh.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use polypath::proto::Registry;
use polypath_apps::forward::client::{Route, local, remote};
use polypath_apps::forward::mux::{Mux, Request, Side};
use polypath_apps::forward::port::listen;
use polypath_apps::forward::pump::{Ended, pump};
use polypath_apps::forward::{self, FORWARD, Failure as Reason, Problem, Target};
use tokio::net::{TcpListener, lookup_host};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::code::CodeOptions;
use crate::consent::Credentials;
use crate::failure::{Failure, one_line, system_text};
use crate::interrupt::Interrupt;
use crate::leave::leave;
use crate::reach::Reach;
use crate::reason;
use crate::tuning::Tuning;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    reach: Reach,
    /// Forward a local port to a host and port that the server reaches; may be repeated
    #[arg(short = 'L', long, help_heading = "Ports", value_name = "[BIND:]PORT:HOST:PORT", value_parser = mapping)]
    local: Vec<Mapping>,
    /// Forward a port of the server to a host and port that this host reaches
    #[arg(short = 'R', long, help_heading = "Ports", value_name = "[BIND:]PORT:HOST:PORT", value_parser = mapping)]
    remote: Vec<Mapping>,
    /// Forward SOCKS 5 requests to a local port; may be repeated
    #[arg(short = 'D', long, help_heading = "Ports", value_name = "[BIND:]PORT", value_parser = listener)]
    dynamic: Vec<Port>,
    /// Connect standard input and output to a host and port that the server reaches
    ///
    /// For ssh: ssh -o ProxyCommand='polypath forward HOST -W %h:%p' USER@TARGET
    #[arg(short = 'W', long, help_heading = "Ports", value_name = "HOST:PORT", value_parser = target, conflicts_with_all = ["local", "remote", "dynamic"])]
    stdio: Option<Target>,
    /// Print only errors
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    code: CodeOptions,
    #[command(flatten)]
    tuning: Tuning,
}

/// A port to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Port {
    /// Local address or name; the loopback address if empty.
    bind: String,
    port: u16,
}

/// A port to listen on, and where its connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    from: Port,
    to: Target,
}

/// Splits at colons outside of brackets.
fn fields(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let split = text.split(|c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        c == ':' && depth == 0
    });
    split
        .map(|field| field.strip_prefix('[').and_then(|f| f.strip_suffix(']')).unwrap_or(field))
        .collect()
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is not a port (0 to 65535)"))
}

fn mapping(text: &str) -> Result<Mapping, String> {
    let (bind, from, host, to) = match fields(text)[..] {
        [from, host, to] => ("", from, host, to),
        [bind, from, host, to] => (bind, from, host, to),
        _ => {
            return Err(
                "expected [BIND:]PORT:HOST:PORT, with IPv6 addresses in brackets".to_owned()
            );
        }
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let to = Target { host: host.to_owned(), port: port(to)? };
    Ok(Mapping { from: Port { bind: any(bind), port: port(from)? }, to })
}

fn listener(text: &str) -> Result<Port, String> {
    match fields(text)[..] {
        [at] => Ok(Port { bind: String::new(), port: port(at)? }),
        [bind, at] => Ok(Port { bind: any(bind), port: port(at)? }),
        _ => Err("expected [BIND:]PORT, with IPv6 addresses in brackets".to_owned()),
    }
}

fn target(text: &str) -> Result<Target, String> {
    match fields(text)[..] {
        [host, at] if !host.is_empty() => Ok(Target { host: host.to_owned(), port: port(at)? }),
        _ => Err("expected HOST:PORT, with IPv6 addresses in brackets".to_owned()),
    }
}

/// As with ssh, `*` is all addresses.
fn any(bind: &str) -> String {
    if bind == "*" { "0.0.0.0".to_owned() } else { bind.to_owned() }
}

/// The failure when the rules or the network of the other side exclude a connection.
fn not_connected(target: &Target, why: Reason) -> Failure {
    Failure::new(format!("the server cannot connect to {target}: {why}"))
}

/// A line about a connection that is not forwarded.
fn text(problem: &Problem<'_>) -> String {
    match problem {
        Problem::NotConnected(target, why) => not_connected(target, *why).reason(),
        Problem::NotAccepted(error) => waiting(error),
    }
}

/// Connections wait because this host has reached a limit, such as that of `ulimit -n`.
pub(crate) fn waiting(error: &std::io::Error) -> String {
    format!("new connections wait: {}", system_text(error))
}

pub(crate) async fn run(args: Args, registry: &Registry) -> Result<(), Failure> {
    if args.local.is_empty()
        && args.remote.is_empty()
        && args.dynamic.is_empty()
        && args.stdio.is_none()
    {
        return Err(Failure::usage("there is nothing to forward")
            .hint("pass -L, -R, -D or -W; `polypath forward --help` explains them"));
    }
    let config = forward::config(&args.tuning.config(registry)?)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut interrupt = Interrupt::new()?;
    // Ports that are in use are reported before a connection is made.
    let mut listeners = Vec::new();
    for Mapping { from, to } in &args.local {
        listeners.push((bind(from).await?, Route::To(to.clone())));
    }
    for port in &args.dynamic {
        listeners.push((bind(port).await?, Route::Socks));
    }
    let mut credentials = Credentials::new(&args.reach, &args.code)?;
    let (endpoint, association) = tokio::select! {
        failure = interrupt.wait() => return Err(failure),
        connected = args.reach.connect(config, credentials.hello(FORWARD)) => connected?,
    };
    let result = tokio::select! {
        failure = interrupt.wait() => Err(failure),
        settled = credentials.settle(&args.reach, &endpoint, &association, FORWARD) => {
            settled.map(|_| ())
        }
    };
    let result = match result {
        Ok(()) => {
            let (mux, requests) = Mux::start(association.clone(), Side::Client);
            let closed = async {
                let reason = association.closed().await;
                Err(reason::lost(&args.reach.host.to_string(), &reason))
            };
            tokio::select! {
                failure = interrupt.wait() => Err(failure),
                done = serve(&args, mux, listeners, requests) => done,
                lost = closed => lost,
                never = args.reach.remember_more(&association) => match never {},
            }
        }
        Err(failure) => Err(failure),
    };
    match &result {
        Ok(()) => {
            let closing = association.shutdown();
            let _ = tokio::time::timeout(Duration::from_secs(5), closing).await;
        }
        Err(failure) => association.abort(failure.reason()),
    }
    leave(&endpoint, association).await;
    result
}

async fn bind(port: &Port) -> Result<TcpListener, Failure> {
    let host = if port.bind.is_empty() { "localhost" } else { &port.bind };
    let failed = |error: std::io::Error| {
        Failure::new(format!("cannot listen on {host}:{}: {}", port.port, system_text(&error)))
    };
    let addresses: Vec<SocketAddr> =
        lookup_host((host, port.port)).await.map_err(failed)?.collect();
    listen(&addresses).map_err(failed)
}

/// Serves all ports, or standard input and output, until an end or a failure.
async fn serve(
    args: &Args,
    mux: Mux,
    listeners: Vec<(TcpListener, Route)>,
    requests: mpsc::Receiver<Request>,
) -> Result<(), Failure> {
    let mut tasks: JoinSet<std::io::Result<()>> = JoinSet::new();
    let mut targets = BTreeMap::new();
    for (number, Mapping { to, .. }) in args.remote.iter().enumerate() {
        targets.insert(number as u64, to.clone());
    }
    let (replies, mut replied) = mpsc::channel(1);
    tasks.spawn(async move {
        remote(requests, targets, replies).await;
        Ok(())
    });
    if let Some(target) = &args.stdio {
        let connection =
            mux.connect(target.clone()).await.map_err(|why| not_connected(target, why))?;
        let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
        return match pump(connection, stdin, stdout).await {
            Ended::Closed => Ok(()),
            Ended::Reset => Err(Failure::new(format!("the connection to {target} was reset"))),
        };
    }
    for (listener, route) in listeners {
        if let (Ok(address), false) = (listener.local_addr(), args.quiet) {
            match &route {
                Route::To(to) => eprintln!("forwarding {address} to {to}"),
                Route::Socks => eprintln!("forwarding {address} (SOCKS 5)"),
            }
        }
        let report = |problem: Problem<'_>| eprintln!("{}", one_line(&text(&problem)));
        tasks.spawn(local(mux.clone(), listener, route, report));
    }
    for (number, Mapping { from, .. }) in args.remote.iter().enumerate() {
        let peer = args.reach.host.to_string();
        mux.listen(number as u64, from.bind.clone(), from.port)
            .await
            .map_err(|error| reason::ended(&peer, &error))?;
    }
    loop {
        tokio::select! {
            Some((number, port)) = replied.recv() => {
                let found = usize::try_from(number).ok().and_then(|n| args.remote.get(n));
                let Some(Mapping { from, to }) = found else { continue };
                match port {
                    Ok(port) if !args.quiet => eprintln!("forwarding the server's port {port} to {to}"),
                    Ok(_) => {}
                    Err(why) => {
                        return Err(Failure::new(format!(
                            "the server cannot listen on port {}: {}",
                            from.port,
                            one_line(&why)
                        )));
                    }
                }
            }
            Some(done) = tasks.join_next() => {
                if let Ok(Err(error)) = done {
                    let text = system_text(&error);
                    return Err(Failure::new(format!("cannot accept connections: {text}")));
                }
            }
            else => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_those_of_ssh() {
        let found = mapping("8080:host:80").unwrap();
        assert_eq!((found.from.bind.as_str(), found.from.port), ("", 8080));
        assert_eq!(found.to, Target { host: "host".into(), port: 80 });
        let found = mapping("[::1]:8080:[fd00::2]:80").unwrap();
        assert_eq!((found.from.bind.as_str(), found.to.host.as_str()), ("::1", "fd00::2"));
        assert_eq!(mapping("*:1:h:2").unwrap().from.bind, "0.0.0.0");
        assert_eq!(listener("1080").unwrap(), Port { bind: String::new(), port: 1080 });
        assert_eq!(listener("[::]:1080").unwrap().bind, "::");
        assert_eq!(target("[::1]:22").unwrap(), Target { host: "::1".into(), port: 22 });
        for wrong in ["", "80", "a:b", "1:2", "1:h:x", "1::2", "70000:h:1", "b:1:h:2:3"] {
            assert!(mapping(wrong).is_err(), "{wrong}");
        }
        assert!(target("host").is_err() && target(":1").is_err() && listener("x:y:z").is_err());
    }
}
