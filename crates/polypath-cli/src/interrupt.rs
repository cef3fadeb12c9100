//! Signals that end the program gracefully.

use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, system_text};

/// Listens for SIGINT, SIGTERM and SIGHUP from its creation on, except for those that the process
/// was started to ignore (in the background of a script, or with nohup).
#[derive(Debug)]
pub(crate) struct Interrupt {
    int: Option<Signal>,
    term: Option<Signal>,
    hup: Option<Signal>,
}

impl Interrupt {
    pub(crate) fn new() -> Result<Self, Failure> {
        let ignored = ignored();
        let listen = |kind: SignalKind| {
            if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
                return Ok(None);
            }
            signal(kind).map(Some).map_err(|error| {
                Failure::new(format!("cannot listen for signals: {}", system_text(&error)))
            })
        };
        Ok(Self {
            int: listen(SignalKind::interrupt())?,
            term: listen(SignalKind::terminate())?,
            hup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for one of the signals; the exit code is the one that shells use for it.
    pub(crate) async fn wait(&mut self) -> Failure {
        let (name, number) = tokio::select! {
            () = next(&mut self.int) => ("interrupted", SignalKind::interrupt()),
            () = next(&mut self.term) => ("terminated", SignalKind::terminate()),
            () = next(&mut self.hup) => ("hung up", SignalKind::hangup()),
        };
        let code = u8::try_from(128 + number.as_raw_value()).unwrap_or(1);
        Failure::new(name).code(code)
    }
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => pending().await,
    }
}

/// Bit mask of the signals that this process ignores; 0 without /proc.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
