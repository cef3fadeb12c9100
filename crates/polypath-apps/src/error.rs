//! Why an operation of an application ended early.

use std::io;
use std::path::{Path, PathBuf};

use polypath::{CloseReason, ClosedError, SendError};
use thiserror::Error;

/// Reason why an operation ended early.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The association ended.
    #[error("{0}")]
    Closed(CloseReason),
    /// The peer has reported a reason.
    #[error("{0}")]
    Peer(String),
    /// The peer has sent what the protocol does not allow.
    #[error("{0}")]
    Protocol(String),
    /// No packet of the peer has arrived for some seconds.
    #[error("no packet has arrived for {seconds} s")]
    Silent {
        /// Length of the silence in seconds.
        seconds: u64,
    },
    /// An operation on a file has failed.
    #[error("cannot {verb} {}: {why}", path.display())]
    File {
        /// What was tried, such as "open".
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        why: String,
    },
    /// This side ends the operation for this reason.
    #[error("{0}")]
    Local(String),
}

impl Error {
    /// An error of the operating system about a file.
    pub fn file(verb: &'static str, path: &Path, error: &io::Error) -> Self {
        Self::File { verb, path: path.to_owned(), why: system_text(error) }
    }

    /// Whether the connection was lost without a reason that another attempt would meet again.
    pub const fn is_loss(&self) -> bool {
        match self {
            Self::Closed(CloseReason::PeerAbort { cause }) => cause.is_empty(),
            Self::Closed(CloseReason::Graceful) => false,
            Self::Closed(_) | Self::Silent { .. } => true,
            _ => false,
        }
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Closed(reason) => Self::Closed(reason),
            SendError::ShuttingDown => Self::Closed(CloseReason::Graceful),
            error => Self::Local(error.to_string()),
        }
    }
}

impl From<ClosedError> for Error {
    fn from(error: ClosedError) -> Self {
        Self::Closed(error.0)
    }
}

/// The operating system's message without the number: "no space left on device".
pub fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => text.to_owned(),
    }
}
