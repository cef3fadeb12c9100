//! Observation of a running command: an event log (`--log`), metrics (`--metrics`), and the socket
//! that `polypath top` reads.

mod date;
mod metrics;
mod qlog;
mod source;
pub(crate) mod status;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polypath::Endpoint;
use tokio::task::AbortHandle;

use crate::failure::{Failure, system_text};
use qlog::Log;
use source::Sources;
use status::Socket;

/// Time between two samples of the log.
const SAMPLE: Duration = Duration::from_millis(100);

/// Options that make a command observable.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Observation")]
pub(crate) struct Observe {
    /// Write events and samples of the paths to this file (qlog, JSON-SEQ)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    log: Option<PathBuf>,
    /// Serve metrics for Prometheus over HTTP
    ///
    /// Without an address, at the loopback address. Port 0 is any free port.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address, hide_short_help = true)]
    metrics: Option<SocketAddr>,
    #[arg(skip)]
    running: Arc<Mutex<Running>>,
}

/// Which side of a connection a command is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Vantage {
    Client,
    Server,
}

/// What runs once the first endpoint is bound. It ends with the command's options.
#[derive(Debug, Default)]
struct Running {
    started: bool,
    sources: Arc<Mutex<Sources>>,
    log: Option<Arc<Mutex<Log>>>,
    socket: Option<Socket>,
    tasks: Vec<AbortHandle>,
}

/// An address and port, or a port of the loopback address.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let expected = "expected a port, or an address and a port such as 192.0.2.1:9464 or [::1]:9464";
    port.or_else(|_| text.parse()).map_err(|_| expected.to_owned())
}

impl Observe {
    /// Observes an endpoint from now on.
    pub(crate) fn watch(&self, endpoint: &Endpoint, vantage: Vantage) -> Result<(), Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if !running.started {
            running.start(self, vantage)?;
        }
        running.sample();
        lock(&running.sources).add(endpoint);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    fn start(&mut self, options: &Observe, vantage: Vantage) -> Result<(), Failure> {
        self.started = true;
        if let Some(path) = &options.log {
            let log = Arc::new(Mutex::new(Log::create(path, vantage)?));
            self.log = Some(log.clone());
            let sources = self.sources.clone();
            let task = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(SAMPLE).await;
                    let mut sources = lock(&sources);
                    lock(&log).sample(&mut sources);
                }
            });
            self.tasks.push(task.abort_handle());
        }
        if let Some(address) = options.metrics {
            let fails = |error: std::io::Error| {
                Failure::new(format!("cannot serve metrics at {address}: {}", system_text(&error)))
            };
            let listener = std::net::TcpListener::bind(address).map_err(fails)?;
            listener.set_nonblocking(true).map_err(fails)?;
            let listener = tokio::net::TcpListener::from_std(listener).map_err(fails)?;
            let local = listener.local_addr().map_err(fails)?;
            eprintln!("metrics at http://{local}/metrics");
            let task = tokio::spawn(metrics::serve(listener, self.sources.clone()));
            self.tasks.push(task.abort_handle());
        }
        self.socket = Socket::open(&self.sources);
        Ok(())
    }

    /// Writes what has happened to the log, and drops endpoints that have gone.
    fn sample(&self) {
        let mut sources = lock(&self.sources);
        if let Some(log) = &self.log {
            lock(log).sample(&mut sources);
        }
        sources.forget_ended();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.sample();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_local_unless_an_address_is_given() {
        assert_eq!(address("9464"), Ok("127.0.0.1:9464".parse().unwrap()));
        assert_eq!(address("[::1]:80"), Ok("[::1]:80".parse().unwrap()));
        assert!(address("localhost").is_err() && address("70000").is_err());
    }
}
