//! What is sent: the files and folders on the sender's side.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::error::Error;
use crate::transfer::digest::{DIGEST, hex, read_blocks};
use crate::transfer::message::{Begin, CHUNK, Entry, Kind};
use crate::transfer::names;

/// Maximum number of top names that are listed in advance.
const TOPS: usize = 64;
/// Maximum number of folders in a path.
const DEPTH: usize = 64;

/// Where the bytes of an entry are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Path(PathBuf),
    StandardInput,
}

/// An entry to send.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) entry: Entry,
}

/// Everything to send, in the order of sending.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub(crate) sources: Vec<Source>,
    pub(crate) begin: Begin,
    /// Entries that cannot be sent, each with the reason.
    pub(crate) skipped: Vec<String>,
}

impl Manifest {
    /// Lists files and folders with everything in them. A path `-` is the standard input. `name` is
    /// the name of a single path at the receiver.
    ///
    /// # Errors
    ///
    /// A path does not exist, cannot be read, has no name that can be sent, or is neither a file
    /// nor a folder.
    pub fn of(paths: &[PathBuf], name: Option<&str>) -> Result<Self, Error> {
        let [first, others @ ..] = paths else {
            return Err(Error::Local("there is nothing to send".to_owned()));
        };
        if name.is_some() && !others.is_empty() {
            return Err(Error::Local("one name cannot be given to several files".to_owned()));
        }
        let mut walk = Walk { sources: Vec::new(), skipped: Vec::new() };
        let mut tops: Vec<String> = Vec::new();
        for path in paths {
            let top = match name {
                Some(name) => name.to_owned(),
                None => own_name(path)?,
            };
            names::check(&top, true).map_err(|problem| {
                Error::Local(format!("{top:?} cannot be sent as a name: {problem}"))
            })?;
            if tops.contains(&top) {
                return Err(Error::Local(format!("two files have the name {top:?}")));
            }
            walk.top(path, &top)?;
            tops.push(top);
        }
        let name = match (tops.first(), others.len()) {
            (Some(top), 0) => top.clone(),
            (_, more) => format!("{} and {more} more", first.display()),
        };
        let mut size = Some(0u64);
        for source in &walk.sources {
            if let Kind::File(bytes) = source.entry.kind {
                size = size.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
            }
        }
        tops.truncate(TOPS);
        let entries = walk.sources.len() as u64;
        let begin = Begin { name, size, entries, tops };
        Ok(Self { sources: walk.sources, begin, skipped: walk.skipped })
    }

    /// What is sent, for people.
    pub fn name(&self) -> &str {
        &self.begin.name
    }

    /// Bytes of all files; `None` if they are not known.
    pub const fn size(&self) -> Option<u64> {
        self.begin.size
    }

    /// Number of entries that cannot be sent.
    pub const fn skipped(&self) -> usize {
        self.skipped.len()
    }

    /// Whether the manifest can be sent again after a loss: standard input cannot be read twice.
    pub fn is_repeatable(&self) -> bool {
        self.sources.iter().all(|source| source.origin != Origin::StandardInput)
    }
}

/// The name of a path at the receiver.
fn own_name(path: &Path) -> Result<String, Error> {
    if path == Path::new("-") {
        return Ok("stdin".to_owned());
    }
    let named = match path.file_name() {
        Some(_) => path.to_owned(),
        // Such as "." and "..".
        None => path.canonicalize().map_err(|error| Error::file("open", path, &error))?,
    };
    let name =
        named.file_name().ok_or_else(|| Error::Local(format!("{} has no name", path.display())))?;
    name.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::Local(format!("the name of {} is not UTF-8", path.display())))
}

struct Walk {
    sources: Vec<Source>,
    skipped: Vec<String>,
}

impl Walk {
    /// Adds a path that was named on the command line. A symbolic link is followed.
    fn top(&mut self, path: &Path, name: &str) -> Result<(), Error> {
        let names = vec![name.to_owned()];
        if path == Path::new("-") {
            self.add(Origin::StandardInput, names, Kind::File(None), None);
            return Ok(());
        }
        let failed = |error: io::Error| Error::file("open", path, &error);
        let about = std::fs::metadata(path).map_err(failed)?;
        if about.is_dir() {
            return self.folder(path, names, &about);
        }
        if !about.is_file() {
            return Err(Error::Local(format!("{} is neither a file nor a folder", path.display())));
        }
        // Reports a file that cannot be read before a connection is made.
        drop(File::open(path).map_err(failed)?);
        self.add(Origin::Path(path.to_owned()), names, Kind::File(Some(about.len())), Some(&about));
        Ok(())
    }

    fn add(&mut self, origin: Origin, path: Vec<String>, kind: Kind, about: Option<&Metadata>) {
        let id = self.sources.len() as u64;
        let mode = about.map(|about| about.mode() & 0o777);
        let modified = about
            .map(|about| (about.mtime(), u32::try_from(about.mtime_nsec()).unwrap_or_default()));
        self.sources.push(Source { origin, entry: Entry { id, path, kind, mode, modified } });
    }

    fn folder(&mut self, path: &Path, names: Vec<String>, about: &Metadata) -> Result<(), Error> {
        let failed = |error: io::Error| Error::file("read", path, &error);
        let mut entries: Vec<_> =
            std::fs::read_dir(path).and_then(Iterator::collect).map_err(failed)?;
        // The same order in every run.
        entries.sort_by_key(std::fs::DirEntry::file_name);
        self.add(Origin::Path(path.to_owned()), names.clone(), Kind::Folder, Some(about));
        for entry in entries {
            let path = entry.path();
            if let Err(error) = self.inner(&path, &names, &entry.file_name()) {
                self.skipped.push(error.to_string());
            }
        }
        Ok(())
    }

    /// Adds an entry of a folder.
    fn inner(
        &mut self,
        path: &Path,
        above: &[String],
        name: &std::ffi::OsStr,
    ) -> Result<(), Error> {
        let failed = |error: io::Error| Error::file("open", path, &error);
        let name = name
            .to_str()
            .ok_or_else(|| Error::Local(format!("the name of {} is not UTF-8", path.display())))?;
        names::check(name, true).map_err(|problem| {
            Error::Local(format!("{} is not sent: {problem}", path.display()))
        })?;
        if above.len() >= DEPTH {
            return Err(Error::Local(format!("{} is nested in too many folders", path.display())));
        }
        let mut names = above.to_vec();
        names.push(name.to_owned());
        let about = std::fs::symlink_metadata(path).map_err(failed)?;
        let origin = Origin::Path(path.to_owned());
        if about.is_dir() {
            return self.folder(path, names, &about);
        }
        if about.is_file() {
            self.add(origin, names, Kind::File(Some(about.len())), Some(&about));
        } else if about.is_symlink() {
            let target = std::fs::read_link(path).map_err(failed)?;
            let target = target.to_str().ok_or_else(|| {
                Error::Local(format!("the target of {} is not UTF-8", path.display()))
            })?;
            self.add(origin, names, Kind::Link(target.to_owned()), None);
        } else {
            return Err(Error::Local(format!("{} is neither a file nor a folder", path.display())));
        }
        Ok(())
    }
}

/// A file that is compared with what the receiver has, before its bytes are sent.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// The state of the SHA-256 behind each block.
    states: Vec<(u64, Sha256)>,
    pub(crate) digests: Vec<[u8; DIGEST]>,
}

impl Compared {
    /// Reads the first `bytes` bytes in blocks.
    pub(crate) fn read(path: &Path, bytes: u64, block: u64) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::file("read", path, &error);
        let mut file = File::open(path).map_err(failed)?;
        let mut compared = Self::default();
        let Self { states, digests } = &mut compared;
        read_blocks(&mut file, bytes, block, &mut |digest, state| {
            digests.push(digest);
            let end = bytes.min(block.saturating_mul(digests.len() as u64));
            states.push((end, state.clone()));
            true
        })
        .map_err(failed)?;
        Ok(compared)
    }

    /// The SHA-256 of the first `offset` bytes.
    pub(crate) fn state(&self, offset: u64) -> Option<Sha256> {
        if offset == 0 {
            return Some(Sha256::new());
        }
        self.states.iter().find(|(end, _)| *end == offset).map(|(_, state)| state.clone())
    }

    /// The SHA-256 of all bytes that were compared, in hexadecimal.
    pub(crate) fn sha256(&self) -> String {
        let state = self.states.last().map_or_else(Sha256::new, |(_, state)| state.clone());
        hex(&state.finalize())
    }
}

/// Reads a file from `offset` on and passes its chunks to `chunks`. Returns its size in bytes and
/// its SHA-256; `state` is that of the bytes before `offset`.
pub(crate) fn read(
    source: &Source,
    offset: u64,
    mut state: Sha256,
    chunks: &mpsc::Sender<Bytes>,
) -> Result<(u64, String), Error> {
    let Kind::File(announced) = source.entry.kind else {
        return Err(Error::Protocol("the receiver requests bytes of a folder".to_owned()));
    };
    let path = match &source.origin {
        Origin::StandardInput => {
            let size = stream(&mut io::stdin().lock(), u64::MAX, &mut state, chunks)
                .map_err(|error| Error::file("read", Path::new("standard input"), &error))?;
            return Ok((size, hex(&state.finalize())));
        }
        Origin::Path(path) => path,
    };
    let failed = |error: io::Error| Error::file("read", path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let before = file.metadata().map_err(failed)?;
    let size = announced.unwrap_or(0);
    let changed = || {
        let now = file_size(path);
        Error::Local(format!(
            "{} has changed while it was sent: it had {size} bytes, and now {now}",
            path.display()
        ))
    };
    if before.len() != size {
        return Err(changed());
    }
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let sent = stream(&mut file, size - offset.min(size), &mut state, chunks).map_err(failed)?;
    let after = file.metadata().map_err(failed)?;
    let times = |about: &Metadata| (about.mtime(), about.mtime_nsec(), about.len());
    if offset + sent != size || times(&after) != times(&before) {
        return Err(changed());
    }
    Ok((size, hex(&state.finalize())))
}

fn file_size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.len())
}

/// Passes at most `bytes` bytes on; returns their number.
fn stream(
    from: &mut impl Read,
    bytes: u64,
    state: &mut Sha256,
    chunks: &mpsc::Sender<Bytes>,
) -> io::Result<u64> {
    let mut done = 0;
    while done < bytes {
        let most = (bytes - done).min(CHUNK as u64);
        let mut chunk = vec![0; most as usize];
        // A pipe is passed on as it comes.
        let count = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        chunk.truncate(count);
        state.update(&chunk);
        done += count as u64;
        if chunks.blocking_send(chunk.into()).is_err() {
            // The transfer has ended.
            break;
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(manifest: &Manifest) -> Vec<String> {
        manifest.sources.iter().map(|source| source.entry.path.join("/")).collect()
    }

    #[test]
    fn a_folder_is_listed_in_order_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        std::fs::create_dir_all(folder.join("b/c")).unwrap();
        std::fs::write(folder.join("b/file"), "abc").unwrap();
        std::fs::write(folder.join("a"), "de").unwrap();
        std::os::unix::fs::symlink("/", folder.join("link")).unwrap();
        let manifest = Manifest::of(std::slice::from_ref(&folder), None).unwrap();
        let all = ["folder", "folder/a", "folder/b", "folder/b/c", "folder/b/file", "folder/link"];
        assert_eq!(paths(&manifest), all);
        assert_eq!((manifest.size(), manifest.name()), (Some(5), "folder"));
        assert_eq!(manifest.sources[5].entry.kind, Kind::Link("/".into()));
        let renamed = Manifest::of(std::slice::from_ref(&folder), Some("other")).unwrap();
        assert_eq!(paths(&renamed)[1], "other/a");
        let dot = Manifest::of(&[folder.join("b/..")], None);
        assert_eq!(paths(&dot.unwrap())[0], "folder");
        let several = Manifest::of(&[folder.join("a"), folder.join("b")], None).unwrap();
        assert!(several.name().ends_with("a and 1 more"), "{}", several.name());
        assert!(Manifest::of(&[folder.join("a"), folder.join("a")], None).is_err());
    }

    #[test]
    fn what_cannot_be_sent_is_reported() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("a\nb"), "").unwrap();
        let socket = std::os::unix::net::UnixListener::bind(place.path().join("socket"));
        let manifest = Manifest::of(&[place.path().to_owned()], Some("x")).unwrap();
        assert_eq!((paths(&manifest), manifest.skipped.len()), (vec!["x".to_owned()], 2));
        assert!(Manifest::of(&[place.path().join("socket")], None).is_err());
        drop(socket);
        assert!(Manifest::of(&[place.path().join("nothing")], None).is_err());
        assert!(Manifest::of(&["-".into()], None).unwrap().size().is_none());
    }

    #[test]
    fn a_file_that_changes_is_noticed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, vec![7; 300_000]).unwrap();
        let manifest = Manifest::of(std::slice::from_ref(&path), None).unwrap();
        let run = || {
            let (sender, mut chunks) = mpsc::channel(100);
            let result = read(&manifest.sources[0], 100_000, Sha256::new(), &sender);
            let mut bytes = 0;
            while let Ok(chunk) = chunks.try_recv() {
                bytes += chunk.len();
            }
            (result.map_err(|error| error.to_string()), bytes)
        };
        let expected = hex(&Sha256::digest(vec![7; 200_000]));
        assert_eq!(run(), (Ok((300_000, expected)), 200_000));
        std::fs::write(&path, vec![7; 300_001]).unwrap();
        let (result, _) = run();
        assert!(result.unwrap_err().contains("it had 300000 bytes, and now 300001"));
    }

    #[test]
    fn every_block_can_be_the_last_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, b"0123456789").unwrap();
        let compared = Compared::read(&path, 10, 4).unwrap();
        assert_eq!(compared.digests.len(), 3);
        for offset in [0, 4, 8, 10] {
            let state = compared.state(offset).unwrap();
            assert_eq!(state.finalize(), Sha256::digest(&b"0123456789"[..offset as usize]));
        }
        assert!(compared.state(5).is_none());
        assert_eq!(compared.sha256(), hex(&Sha256::digest(b"0123456789")));
    }
}
