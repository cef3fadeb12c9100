//! The local socket from which `polypath top` reads the state of a command. Each connection gets
//! one JSON text, and ends.
//!
//! The socket is in a folder that only its user can read: `$RUNTIME_DIRECTORY` (set by systemd),
//! `$XDG_RUNTIME_DIR/polypath`, or `/run/polypath` for root. A command that can create none of them
//! runs without.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polypath::{EndpointSnapshot, Path as NetworkPath};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::task::AbortHandle;

use super::lock;
use super::source::Sources;
use crate::text::state_key;
use crate::usage;

/// Time for a reader to take the text.
const PATIENCE: Duration = Duration::from_secs(2);

/// State of a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// The command, such as "polypath send".
    pub(crate) command: String,
    /// Number of its process.
    pub(crate) process: u32,
    /// Seconds since it began to be observed.
    pub(crate) seconds: f64,
    pub(crate) associations: Vec<AssociationStatus>,
}

/// State of an association.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AssociationStatus {
    /// Endpoint and number: "0.1".
    pub(crate) association: String,
    pub(crate) established: bool,
    pub(crate) send_buffer_bytes: u64,
    pub(crate) paths: Vec<PathStatus>,
}

/// State of a path. Times are in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PathStatus {
    pub(crate) path: u8,
    pub(crate) local: String,
    pub(crate) remote: String,
    pub(crate) state: String,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) smoothed_rtt: Option<f64>,
    pub(crate) congestion_window_bytes: u32,
    pub(crate) in_flight_bytes: u32,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) errors: u32,
}

/// The socket of this process; it is removed with this.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    task: AbortHandle,
}

/// The folders in which commands of this user, and services if this is root, have their sockets.
pub(crate) fn folders() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("polypath"));
    let services = std::fs::read_dir("/run").into_iter().flatten().flatten();
    let services = services.filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with("polypath"))
    });
    own.into_iter().chain(services.map(|entry| entry.path())).collect()
}

/// The folder for this process's socket, created if it does not exist.
fn folder() -> Option<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    if let Some(folder) = std::env::var_os("RUNTIME_DIRECTORY") {
        // systemd lists several, separated by colons.
        let first = folder.to_str()?.split(':').next()?;
        return Some(first.into());
    }
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(&folder).join("polypath"),
        None => "/run/polypath".into(),
    };
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => None,
        _ => Some(folder),
    }
}

impl Socket {
    /// Creates the socket and serves it.
    pub(super) fn open(sources: &Arc<Mutex<Sources>>) -> Option<Self> {
        let path = folder()?.join(format!("{}.socket", std::process::id()));
        // One that a process of the same number left when it was killed.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).ok()?;
        let sources = sources.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let status = status(&lock(&sources));
                let Ok(text) = serde_json::to_vec(&status) else { continue };
                // A reader that has gone needs nothing.
                let _ = tokio::time::timeout(PATIENCE, stream.write_all(&text)).await;
            }
        });
        Some(Self { path, task: task.abort_handle() })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

fn status(sources: &Sources) -> Status {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let endpoints = sources.snapshots();
    Status {
        command: usage::command(words.iter().map(String::as_str)),
        process: std::process::id(),
        seconds: sources.now().as_secs_f64(),
        associations: endpoints
            .iter()
            .flat_map(|(number, one)| of_endpoint(*number, one))
            .collect(),
    }
}

fn of_endpoint(number: usize, endpoint: &EndpointSnapshot) -> Vec<AssociationStatus> {
    let all = endpoint.associations.iter();
    all.map(|one| AssociationStatus {
        association: format!("{number}.{}", one.association),
        established: one.established,
        send_buffer_bytes: one.buffered as u64,
        paths: one.paths.iter().map(of_path).collect(),
    })
    .collect()
}

fn of_path(path: &NetworkPath) -> PathStatus {
    let (view, stats) = (&path.view, &path.stats);
    PathStatus {
        path: view.id.0,
        local: view.local.to_string(),
        remote: view.remote.to_string(),
        state: state_key(view.state).to_owned(),
        sent_bytes: stats.bytes_sent,
        received_bytes: stats.bytes_received,
        smoothed_rtt: view.srtt.map(|time| time.as_secs_f64()),
        congestion_window_bytes: view.window.cwnd,
        in_flight_bytes: view.in_flight,
        retransmissions: stats.fast_retransmissions + stats.timeout_retransmissions,
        timeouts: stats.timeouts,
        errors: view.error_count,
    }
}
