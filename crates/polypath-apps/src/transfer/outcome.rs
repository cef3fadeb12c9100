//! What a transfer has done: counters while it runs, and its outcome.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of files and of reasons that an outcome lists; the others are counted.
pub(crate) const MOST_LISTED: usize = 1000;

/// Counters of a running transfer, for a display.
#[derive(Debug, Default)]
pub struct Counts {
    moved: AtomicU64,
    kept: AtomicU64,
    files: AtomicU64,
}

impl Counts {
    /// Bytes of files that were given to the association or taken from it.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Bytes of files that the receiver had already.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Files that are complete.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    pub(crate) fn move_bytes(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn keep_bytes(&self, bytes: u64) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn complete_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }
}

/// A complete file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its path on this side.
    pub path: PathBuf,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bytes that the receiver had already.
    pub kept: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// Outcome of a transfer that has come to its end. Entries may have been rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was sent, for people.
    pub name: String,
    /// The first thousand complete files.
    pub done: Vec<Done>,
    /// Number of complete files.
    pub files: u64,
    /// Bytes of all complete files.
    pub bytes: u64,
    /// Bytes of them that the receiver had already.
    pub kept: u64,
    /// The first thousand rejected entries, each with its reason.
    pub rejected: Vec<String>,
    /// Number of rejected entries.
    pub rejections: u64,
}

impl Outcome {
    pub(crate) fn complete(&mut self, done: Done) {
        self.files += 1;
        self.bytes += done.bytes;
        self.kept += done.kept;
        if self.done.len() < MOST_LISTED {
            self.done.push(done);
        }
    }

    pub(crate) fn reject(&mut self, reason: String) {
        self.rejections += 1;
        if self.rejected.len() < MOST_LISTED {
            self.rejected.push(reason);
        }
    }

    /// The failure that a transfer with rejected entries ends with.
    pub fn failure(&self) -> Option<String> {
        let first = self.rejected.first()?;
        Some(match (self.rejections, self.files) {
            (1, 0) => first.clone(),
            (1, _) => format!("one entry was rejected: {first}"),
            (count, _) => format!("{count} entries were rejected; the first: {first}"),
        })
    }
}
