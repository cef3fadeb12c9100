//! The file to send: read and hashed in a separate thread.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::protocol::{CHUNK, Trailer, name_problem};

/// Maximum number of chunks read ahead.
const AHEAD: usize = 32;

/// An open file with a name that the receiver accepts.
#[derive(Debug)]
pub(crate) struct Source {
    path: PathBuf,
    file: File,
    pub(crate) name: String,
    /// Size in bytes.
    pub(crate) size: u64,
}

impl Source {
    /// Opens the file; `name` is its name at the receiver, the file's own by default.
    pub(crate) fn open(path: &Path, name: Option<&str>) -> Result<Self, Failure> {
        let fail = |error: io::Error| Failure::file("open", path, &error);
        let file = File::open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if !metadata.is_file() {
            return Err(Failure::new(format!("{} is not a file", path.display()))
                .hint("a folder can be sent as an archive"));
        }
        let name = match (name, path.file_name()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(name)) => name
                .to_str()
                .ok_or_else(|| {
                    Failure::new(format!("the name of {} is not UTF-8", path.display()))
                })?
                .to_owned(),
            (None, None) => return Err(Failure::new(format!("{} has no name", path.display()))),
        };
        if let Some(problem) = name_problem(&name) {
            return Err(Failure::usage(format!("{name:?} cannot be sent as a name: {problem}")));
        }
        Ok(Self { path: path.to_owned(), file, name, size: metadata.len() })
    }

    /// Starts to read. The channel yields the chunks, and the task ends once all of them are taken.
    pub(crate) fn read(self) -> (mpsc::Receiver<Bytes>, JoinHandle<Result<Trailer, Failure>>) {
        let (chunks, receiver) = mpsc::channel(AHEAD);
        (receiver, tokio::task::spawn_blocking(move || self.read_all(&chunks)))
    }

    fn read_all(mut self, chunks: &mpsc::Sender<Bytes>) -> Result<Trailer, Failure> {
        let mut digest = Sha256::new();
        let mut size = 0;
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            (&mut self.file)
                .take(CHUNK as u64)
                .read_to_end(&mut chunk)
                .map_err(|error| Failure::file("read", &self.path, &error))?;
            if chunk.is_empty() {
                break;
            }
            size += chunk.len() as u64;
            digest.update(&chunk);
            if chunks.blocking_send(chunk.into()).is_err() {
                // The receiver of the chunks was dropped.
                break;
            }
        }
        if size != self.size {
            return Err(Failure::new(format!(
                "{} has changed while it was sent: it had {} bytes, and now {size}",
                self.path.display(),
                self.size
            )));
        }
        Ok(Trailer { size, sha256: hex(&digest.finalize()) })
    }
}

/// Formats bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
