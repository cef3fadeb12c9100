//! The file to receive: written under a temporary name by a separate thread, and renamed only when
//! it is complete.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::protocol::{Header, Trailer};
use crate::source::hex;

/// Maximum number of chunks queued for the writer.
const WAITING: usize = 32;

/// Input of the writer.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    /// The last one.
    End(Trailer),
}

/// A file that is being received. Dropping it before it is complete removes it.
#[derive(Debug)]
pub(crate) struct Target {
    /// Final path of the file.
    path: PathBuf,
    partial: NamedTempFile,
    digest: Sha256,
    size: u64,
    announced: u64,
}

/// Path of a received file: in `output` if that is a directory, or else `output` itself.
pub(crate) fn destination(output: &Path, name: &str) -> PathBuf {
    if output.is_dir() { output.join(name) } else { output.to_owned() }
}

impl Target {
    /// Creates the temporary file, `.NAME.partial-XXXXXX`, in the directory of the final file.
    pub(crate) fn create(path: PathBuf, header: &Header) -> Result<Self, Failure> {
        // Otherwise this error would only occur at the end, when the file is renamed.
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(Failure::new(format!("{} is not the name of a file", path.display())));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let name = path.file_name().unwrap_or_else(|| header.name.as_ref()).to_string_lossy();
        // The whole name may have at most 255 bytes.
        let mut prefix = format!(".{name}");
        while prefix.len() > 230 {
            prefix.pop();
        }
        prefix.push_str(".partial-");
        let partial = tempfile::Builder::new()
            .prefix(&prefix)
            // The permissions of any new file; the umask applies.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| Failure::file("create", &path, &bare(error)))?;
        Ok(Self { path, partial, digest: Sha256::new(), size: 0, announced: header.size })
    }

    /// Starts the thread that writes. It ends with the SHA-256, once the file has its final name.
    pub(crate) fn write(self) -> (mpsc::Sender<Piece>, JoinHandle<Result<String, Failure>>) {
        let (sender, pieces) = mpsc::channel(WAITING);
        (sender, tokio::task::spawn_blocking(move || self.write_all(pieces)))
    }

    fn write_all(mut self, mut pieces: mpsc::Receiver<Piece>) -> Result<String, Failure> {
        while let Some(piece) = pieces.blocking_recv() {
            match piece {
                Piece::Bytes(bytes) => self.append(&bytes)?,
                Piece::End(trailer) => return self.finish(&trailer),
            }
        }
        Err(Failure::new("the transfer ended early"))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.size += bytes.len() as u64;
        if self.size > self.announced {
            return Err(Failure::new(format!(
                "the sender sends more than the {} bytes that it announced",
                self.announced
            )));
        }
        self.digest.update(bytes);
        self.partial
            .as_file_mut()
            .write_all(bytes)
            .map_err(|error| Failure::file("write", &self.path, &error))
    }

    /// Checks the received bytes, syncs them to disk, and renames the file.
    fn finish(self, trailer: &Trailer) -> Result<String, Failure> {
        let sha256 = hex(&self.digest.finalize());
        if trailer.size != self.size || self.announced != self.size {
            return Err(Failure::new(format!(
                "{} bytes came, but the sender announced {} and sent {}",
                self.size, self.announced, trailer.size
            )));
        }
        if trailer.sha256 != sha256 {
            return Err(Failure::new(format!(
                "the SHA-256 differs: {sha256} came, but {} was sent",
                trailer.sha256
            )));
        }
        let path = self.path;
        let fail = |error: io::Error| Failure::file("write", &path, &error);
        self.partial.as_file().sync_all().map_err(fail)?;
        let folder = self.partial.path().parent().map(Path::to_owned);
        self.partial.persist(&path).map_err(|error| fail(error.error))?;
        if let Some(folder) = folder {
            // The file is complete; syncing the directory makes its name survive a power failure.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(sha256)
    }
}

/// Removes the path from errors of `tempfile`, which would be printed twice.
fn bare(error: io::Error) -> io::Error {
    error
        .raw_os_error()
        .or_else(|| {
            let inner = error.get_ref()?.source()?;
            inner.downcast_ref::<io::Error>()?.raw_os_error()
        })
        .map_or(error, io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::VERSION;

    fn target(folder: &Path, size: u64) -> Target {
        let header = Header { version: VERSION, name: "file".into(), size };
        Target::create(destination(folder, "file"), &header).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn complete_files_get_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = target(folder.path(), 3);
        target.append(b"abc").unwrap();
        let partial = names(folder.path());
        assert!(partial.len() == 1 && partial[0].starts_with(".file.partial-"), "{partial:?}");
        let sha256 = hex(&Sha256::digest(b"abc"));
        let done = target.finish(&Trailer { size: 3, sha256: sha256.clone() }).unwrap();
        assert_eq!(done, sha256);
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"abc");
    }

    #[test]
    fn nothing_is_left_of_wrong_ones() {
        let folder = tempfile::tempdir().unwrap();
        let sha256 = hex(&Sha256::digest(b"abc"));
        let mut wrong = target(folder.path(), 3);
        wrong.append(b"abd").unwrap();
        let error = wrong.finish(&Trailer { size: 3, sha256: sha256.clone() }).unwrap_err();
        assert!(error.to_string().contains("SHA-256 differs"));
        let mut short = target(folder.path(), 4);
        short.append(b"abc").unwrap();
        assert!(short.finish(&Trailer { size: 3, sha256 }).is_err());
        let mut long = target(folder.path(), 2);
        assert!(long.append(b"abc").is_err());
        drop((long, target(folder.path(), 1)));
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn folders_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let header = Header { version: VERSION, name: "file".into(), size: 0 };
        std::fs::create_dir(folder.path().join("file")).unwrap();
        for path in [destination(folder.path(), "file"), folder.path().join("new/")] {
            let error = Target::create(path, &header).unwrap_err();
            assert!(error.to_string().ends_with("is not the name of a file"), "{error}");
        }
    }

    #[test]
    fn missing_folders_are_told() {
        let header = Header { version: VERSION, name: "file".into(), size: 0 };
        let error = Target::create("/nowhere/file".into(), &header).unwrap_err();
        assert_eq!(
            error.to_string(),
            "polypath: cannot create /nowhere/file: no such file or directory"
        );
    }
}
