//! An incomplete file: written under a name of its own in the target's folder, and renamed when it
//! is complete.
//!
//! The name is `.NAME.KEY.polypath-part`. `KEY` is derived from the sender's identity and the path,
//! so that the next run finds what the last one has left, and two senders of one name do not
//! disturb each other. A lock keeps a second receiver out.

use std::fs::{File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::error::Error;
use crate::transfer::digest::{DIGEST, hex, read_blocks};
use crate::transfer::folder::{self, Attributes, Folder, Found};
use crate::transfer::names::{PARTIAL, RelativePath};

/// Maximum number of bytes of the file's own name in the name of its partial file.
const MOST_NAME: usize = 200;
/// Attempts to lock a file, and the pause between two of them: long enough for the same sender's
/// earlier connection to end, if that was killed.
const ATTEMPTS: usize = 60;
const PAUSE: Duration = Duration::from_millis(100);

/// Name of the partial file of `path` from the sender with this identity.
pub(crate) fn name(sender: &str, path: &RelativePath) -> String {
    let (folders, name) = path.split();
    let mut digest = Sha256::new();
    for part in std::iter::once(sender).chain(folders.iter().map(String::as_str)).chain([name]) {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut end = name.len().min(MOST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!(".{}.{}{PARTIAL}", &name[..end], hex(&digest.finalize()[..6]))
}

/// An open and locked partial file.
#[derive(Debug)]
pub(crate) struct Partial {
    folder: Folder,
    name: String,
    /// Name of the complete file.
    target: String,
    file: File,
    /// State after `bytes` bytes.
    digest: Sha256,
    bytes: u64,
}

impl Partial {
    /// Opens the partial file `name` of `target`, created if missing. If another transfer has
    /// locked it, notifies `conflict` and waits for a few seconds.
    pub(crate) fn open(
        folder: Folder,
        name: String,
        target: &str,
        conflict: &Notify,
    ) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::file("create", &folder.path(target), &error);
        for _ in 0..ATTEMPTS {
            let file = folder.write(&name).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    conflict.notify_one();
                    wait();
                    continue;
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // The file may have been completed between opening and locking it.
            if folder.is_named(&file, &name).map_err(failed)? {
                let (digest, target) = (Sha256::new(), target.to_owned());
                return Ok(Self { folder, name, target, file, digest, bytes: 0 });
            }
        }
        Err(Error::Local(format!("another transfer is writing {}", folder.path(target).display())))
    }

    /// Compares the first `bytes` bytes with digests of the sender's file; returns the offset up to
    /// which they agree.
    pub(crate) fn compare(
        &mut self,
        bytes: u64,
        block: u64,
        digests: &[[u8; DIGEST]],
    ) -> Result<u64, Error> {
        let mut expected = digests.iter();
        let agree = &mut |found, _: &Sha256| expected.next() == Some(&found);
        let (digest, bytes) = read_blocks(&mut self.file, bytes, block, agree)
            .map_err(|e| self.failed("read", &e))?;
        (self.digest, self.bytes) = (digest, bytes);
        Ok(bytes)
    }

    /// Drops what is behind the last compared byte, and prepares to append.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        let cut = self.file.set_len(self.bytes);
        cut.and_then(|()| self.file.seek(SeekFrom::Start(self.bytes)))
            .map(|_| ())
            .map_err(|error| self.failed("write", &error))
    }

    /// Length in bytes so far.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|error| self.failed("write", &error))?;
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Checks the content, brings it to disk and gives it its name. Returns the SHA-256.
    pub(crate) fn finish(
        self,
        size: u64,
        sha256: &str,
        attributes: Attributes,
        overwrite: bool,
    ) -> Result<String, Error> {
        let found = hex(&self.digest.clone().finalize());
        if size != self.bytes || sha256 != found {
            // Another attempt would continue from these bytes.
            self.discard();
            return Err(Error::Protocol(if size == self.bytes {
                format!("the SHA-256 differs: received {found}, but the sender has {sha256}")
            } else {
                format!("received {} bytes, but {size} were sent", self.bytes)
            }));
        }
        let default = Attributes { mode: Some(attributes.mode.unwrap_or(0o666)), ..attributes };
        folder::set(&self.file, default)
            .and_then(|()| self.file.sync_all())
            .map_err(|error| self.failed("write", &error))?;
        match self.folder.rename(&self.name, &self.target, overwrite) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.discard();
                return Err(exists(&self.folder, &self.target));
            }
            Err(error) if cannot_store(&error) => {
                self.discard();
                return Err(Error::Local(self.failed("create", &error).to_string()));
            }
            Err(error) => return Err(self.failed("write", &error)),
        }
        self.folder.sync();
        Ok(found)
    }

    /// Removes the partial file.
    pub(crate) fn discard(&self) {
        // It stays if the folder has become read-only.
        let _ = self.folder.remove(&self.name);
    }

    /// Removes the partial file if it holds nothing that another run could use.
    pub(crate) fn leave(&self) {
        if matches!(self.folder.look(&self.name), Ok(Some(Found::File(0)))) {
            self.discard();
        }
    }

    fn failed(&self, verb: &'static str, error: &io::Error) -> Error {
        Error::file(verb, &self.folder.path(&self.target), error)
    }
}

/// Pauses the thread that writes a transfer's files.
#[expect(clippy::disallowed_methods, reason = "not a thread of the runtime")]
fn wait() {
    std::thread::sleep(PAUSE);
}

/// Whether the disk cannot store a name.
fn cannot_store(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename)
}

/// The target has a file of this name already.
pub(crate) fn exists(folder: &Folder, name: &str) -> Error {
    Error::Local(format!("{} exists and is not replaced", folder.path(name).display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> RelativePath {
        RelativePath::new(vec![name.to_owned()], false).unwrap()
    }

    fn open(place: &std::path::Path, sender: &str) -> Result<Partial, Error> {
        let folder = Folder::open(place).unwrap();
        Partial::open(folder, name(sender, &path("file")), "file", &Notify::new())
    }

    fn names(place: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(place).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn digests(content: &[u8], block: usize) -> Vec<[u8; DIGEST]> {
        let digest = |block: &[u8]| Sha256::digest(block)[..DIGEST].try_into().unwrap();
        content.chunks(block).map(digest).collect()
    }

    #[test]
    fn names_differ_by_sender_and_path_and_fit() {
        assert_ne!(name("a", &path("file")), name("b", &path("file")));
        assert_eq!(name("a", &path("file")), name("a", &path("file")));
        let in_folder = RelativePath::new(vec!["folder".into(), "file".into()], false).unwrap();
        assert_ne!(name("a", &in_folder), name("a", &path("file")));
        let long = name("a", &path(&"ü".repeat(127)));
        assert!(long.len() <= 255 && long.starts_with(".ü") && long.ends_with(PARTIAL), "{long}");
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let mut partial = open(place.path(), "a").unwrap();
        partial.begin().unwrap();
        partial.append(b"abc").unwrap();
        let [only] = &names(place.path())[..] else { panic!("not one file") };
        assert!(only.starts_with(".file.") && only.ends_with(PARTIAL), "{only}");
        let sha256 = hex(&Sha256::digest(b"abc"));
        partial.finish(3, &sha256, Attributes::default(), false).unwrap();
        assert_eq!(names(place.path()), ["file"]);
        assert_eq!(std::fs::read(place.path().join("file")).unwrap(), b"abc");
    }

    #[test]
    fn wrong_content_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let sha256 = hex(&Sha256::digest(b"abc"));
        for (content, size) in [(&b"abd"[..], 3), (b"ab", 3), (b"abc", 4)] {
            let mut partial = open(place.path(), "a").unwrap();
            partial.begin().unwrap();
            partial.append(content).unwrap();
            let error = partial.finish(size, &sha256, Attributes::default(), false).unwrap_err();
            assert!(matches!(error, Error::Protocol(_)), "{error}");
            assert_eq!(names(place.path()), [""; 0]);
        }
    }

    #[test]
    fn the_next_run_continues_where_the_files_agree() {
        let place = tempfile::tempdir().unwrap();
        let mut first = open(place.path(), "a").unwrap();
        first.begin().unwrap();
        first.append(b"0123456789abcXYZ").unwrap();
        drop(first);
        let content = b"0123456789abcdef!";
        let mut second = open(place.path(), "a").unwrap();
        assert_eq!(second.compare(16, 4, &digests(&content[..16], 4)).unwrap(), 12);
        second.begin().unwrap();
        second.append(&content[12..]).unwrap();
        let sha256 = hex(&Sha256::digest(content));
        assert_eq!(second.finish(17, &sha256, Attributes::default(), false).unwrap(), sha256);
        assert_eq!(std::fs::read(place.path().join("file")).unwrap(), content);
    }

    #[test]
    fn two_receivers_do_not_write_one_file() {
        let place = tempfile::tempdir().unwrap();
        let first = open(place.path(), "a").unwrap();
        let error = open(place.path(), "a").unwrap_err().to_string();
        assert!(error.starts_with("another transfer is writing "), "{error}");
        let other = open(place.path(), "b").unwrap();
        let sha256 = hex(&Sha256::digest(b""));
        first.finish(0, &sha256, Attributes::default(), false).unwrap();
        let error = other.finish(0, &sha256, Attributes::default(), false).unwrap_err().to_string();
        assert!(error.contains("exists and is not replaced"), "{error}");
        assert_eq!(names(place.path()), ["file"]);
        open(place.path(), "c").unwrap().leave();
        assert_eq!(names(place.path()), ["file"]);
    }
}
