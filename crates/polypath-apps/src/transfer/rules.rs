//! What a receiver accepts, and where it puts it.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What a receiver accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether existing files are replaced. Default: no.
    pub overwrite: bool,
    /// Whether names may begin with a dot. Default: no.
    pub hidden: bool,
    /// Maximum bytes of a transfer. Default: what the disk has room for, less one percent of it (at
    /// most 1 GiB).
    pub most_bytes: Option<u64>,
    /// Maximum number of entries of a transfer. Default: a million.
    pub most_entries: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { overwrite: false, hidden: false, most_bytes: None, most_entries: 1_000_000 }
    }
}

/// Where received files go.
pub enum Output {
    /// Into this folder.
    Folder(PathBuf),
    /// One file, under this name.
    File(PathBuf),
    /// One file, into this stream.
    Stream(Box<dyn Write + Send>),
}

impl Output {
    /// Into `path` if it is a folder, or else under that name.
    pub fn at(path: &Path) -> Self {
        if path.is_dir() { Self::Folder(path.to_owned()) } else { Self::File(path.to_owned()) }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => f.debug_tuple("Folder").field(path).finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Stream(_) => f.write_str("Stream(..)"),
        }
    }
}
