//! The receiver's side without the network: checks what the sender announces, and writes it.

mod offer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::error::Error;
use crate::transfer::digest::hex;
use crate::transfer::folder::{Attributes, Folder};
use crate::transfer::message::{Begin, End, Entry, FromSender, Kind, Place, Reason, Reply};
use crate::transfer::names::RelativePath;
use crate::transfer::outcome::{Counts, Done, Outcome};
use crate::transfer::partial::{self, Partial};
use crate::transfer::room::{has_room, is_full};
use crate::transfer::rules::{Output, Rules};
use crate::wire::shown;

/// Maximum and minimum number of bytes between two looks at the free space of the disk, and the
/// share of that space.
const LOOK: u64 = 16 << 20;
const LEAST_LOOK: u64 = 64 << 10;
const LOOK_SHARE: u64 = 64;

/// The opened output.
enum Target {
    Folder(Folder),
    File(Folder, RelativePath),
    Stream(Box<dyn Write + Send>),
}

/// State of an announced file.
enum Open {
    /// Waits for the digests of the sender's file, to compare them with a partial file.
    Offered { partial: Partial, bytes: u64, block: u64 },
    /// Waits for them, to compare them with a complete file.
    Existing { file: File, bytes: u64, block: u64 },
    /// The sender is to send the bytes from `offset` on.
    Granted { partial: Option<Partial>, offset: u64 },
}

/// An announced file that is not complete.
struct Announced {
    path: RelativePath,
    size: Option<u64>,
    attributes: Attributes,
    open: Open,
}

/// The file whose bytes arrive.
struct Current {
    id: u64,
    path: RelativePath,
    size: Option<u64>,
    attributes: Attributes,
    kept: u64,
    sink: Sink,
}

enum Sink {
    Partial(Box<Partial>),
    Stream { digest: Sha256, bytes: u64 },
}

/// The receiver's side of one transfer.
pub struct Store {
    place: Target,
    /// Identity of the sender, which partial files depend on.
    sender: String,
    rules: Rules,
    counts: Arc<Counts>,
    begin: Option<Begin>,
    /// Number of entries so far, and the number of the last one.
    entries: u64,
    last: Option<u64>,
    open: BTreeMap<u64, Announced>,
    current: Option<Current>,
    /// Folders of this transfer; true for those that it has created.
    folders: BTreeMap<RelativePath, bool>,
    /// Bytes that the sender was asked for and that have not arrived.
    promised: u64,
    /// Bytes that have arrived, and the number of them at which to look at the disk again.
    arrived: u64,
    look_at: u64,
    outcome: Outcome,
    conflict: Arc<Notify>,
}

/// Replies for the sender, in order.
type Replies<'a> = &'a mut Vec<Reply>;

fn protocol(what: &str) -> Error {
    Error::Protocol(format!("the sender {what}"))
}

impl Store {
    /// Opens the output.
    ///
    /// # Errors
    ///
    /// The folder does not exist, or the output names no file.
    pub fn new(
        output: Output,
        sender: String,
        rules: Rules,
        counts: Arc<Counts>,
    ) -> Result<Self, Error> {
        let place = match output {
            Output::Folder(path) => Target::Folder(
                Folder::open(&path).map_err(|error| Error::file("open", &path, &error))?,
            ),
            Output::File(path) => {
                let no_file =
                    || Error::Local(format!("{} is not the name of a file", path.display()));
                if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                    return Err(no_file());
                }
                let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(no_file)?;
                let name = RelativePath::new(vec![name.to_owned()], true)
                    .map_err(|problem| Error::Local(format!("{}: {problem}", path.display())))?;
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let folder = Folder::open(parent.unwrap_or_else(|| Path::new(".")))
                    .map_err(|error| Error::file("create", &path, &error))?;
                Target::File(folder, name)
            }
            Output::Stream(stream) => Target::Stream(stream),
        };
        Ok(Self {
            place,
            sender,
            rules,
            counts,
            begin: None,
            entries: 0,
            last: None,
            open: BTreeMap::new(),
            current: None,
            folders: BTreeMap::new(),
            promised: 0,
            arrived: 0,
            look_at: LEAST_LOOK,
            outcome: Outcome::default(),
            conflict: Arc::default(),
        })
    }

    /// Notified when another transfer has locked a file that this one needs.
    pub fn conflict(&self) -> Arc<Notify> {
        self.conflict.clone()
    }

    /// What the sender has announced.
    pub const fn begin(&self) -> Option<&Begin> {
        self.begin.as_ref()
    }

    /// Handles a message of the sender; true if it was the last one.
    ///
    /// # Errors
    ///
    /// The transfer cannot continue: the sender breaks the protocol or a limit, or the disk fails.
    pub fn handle(&mut self, message: FromSender, replies: Replies<'_>) -> Result<bool, Error> {
        match message {
            FromSender::Begin(begin) => self.begins(begin)?,
            FromSender::Alive => {}
            _ if self.begin.is_none() => return Err(protocol("did not announce what it sends")),
            FromSender::Entry(entry) => self.entry(entry, replies)?,
            FromSender::Blocks(blocks) => self.blocks(&blocks, replies)?,
            FromSender::Start(place) => self.start(place)?,
            FromSender::Bytes(bytes) => self.bytes(&bytes)?,
            FromSender::End(end) => self.end(&end, replies)?,
            FromSender::Broken(Reason { id, reason }) => self.broken(id, reason)?,
            FromSender::Close(entry) => self.close(entry)?,
            FromSender::Finish => {
                if self.current.is_some() || !self.open.is_empty() {
                    return Err(protocol("ends before everything is complete"));
                }
                replies.push(Reply::Finished);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The outcome after the last message.
    pub fn finish(mut self) -> Outcome {
        if let Some(begin) = self.begin.take() {
            self.outcome.name = begin.name;
        }
        self.outcome
    }

    /// Ends a transfer that has failed. Partial files stay for the next run, unless they are empty
    /// or the disk is full.
    pub fn abandon(self, error: &Error) {
        let full = is_full(error);
        let current = self.current.map(|current| current.sink);
        let partials = self.open.into_values().filter_map(|announced| match announced.open {
            Open::Offered { partial, .. } => Some(partial),
            Open::Granted { partial, .. } => partial,
            Open::Existing { .. } => None,
        });
        let writing = match current {
            Some(Sink::Partial(partial)) => Some(*partial),
            _ => None,
        };
        for partial in partials.chain(writing) {
            if full { partial.discard() } else { partial.leave() }
        }
    }

    fn begins(&mut self, begin: Begin) -> Result<(), Error> {
        if self.begin.is_some() {
            return Err(protocol("begins twice"));
        }
        if begin.entries > self.rules.most_entries {
            return Err(Error::Local(format!(
                "{} entries exceed the limit of {}",
                begin.entries, self.rules.most_entries
            )));
        }
        if let (Some(bytes), Some(most)) = (begin.size, self.rules.most_bytes)
            && bytes > most
        {
            return Err(too_large(most));
        }
        if !matches!(self.place, Target::Folder(_)) && begin.entries > 1 {
            return Err(Error::Local(
                "a folder or several files need a folder as the output".to_owned(),
            ));
        }
        if let (Some(bytes), Some(folder)) = (begin.size, self.folder())
            && begin.tops.iter().all(|top| self.is_new(folder, top))
        {
            has_room(folder, bytes)?;
        }
        self.begin = Some(Begin { name: shown(&begin.name), ..begin });
        Ok(())
    }

    /// Whether neither the entry nor a part of it exists.
    fn is_new(&self, folder: &Folder, top: &str) -> bool {
        let Ok(path) = RelativePath::new(vec![top.to_owned()], true) else { return false };
        let path = if let Target::File(_, chosen) = &self.place { chosen.clone() } else { path };
        let part = partial::name(&self.sender, &path);
        [path.split().1, &part].iter().all(|name| matches!(folder.look(name), Ok(None)))
    }

    const fn folder(&self) -> Option<&Folder> {
        match &self.place {
            Target::Folder(folder) | Target::File(folder, _) => Some(folder),
            Target::Stream(_) => None,
        }
    }

    fn start(&mut self, place: Place) -> Result<(), Error> {
        let announced = self.open.remove(&place.id);
        let (Some(Announced { path, size, attributes, open }), None) = (announced, &self.current)
        else {
            return Err(protocol("sends a file that was not requested"));
        };
        let Open::Granted { partial, offset } = open else {
            return Err(protocol("sends a file that was not requested"));
        };
        if offset != place.offset {
            return Err(protocol("continues a file from another offset"));
        }
        let sink = match (partial, self.enter(&path)?) {
            (Some(mut partial), _) => {
                partial.begin()?;
                Sink::Partial(Box::new(partial))
            }
            (None, Some(folder)) => {
                let name = path.split().1;
                let mut partial = Partial::open(
                    folder,
                    partial::name(&self.sender, &path),
                    name,
                    &self.conflict,
                )?;
                partial.begin()?;
                Sink::Partial(Box::new(partial))
            }
            (None, None) => Sink::Stream { digest: Sha256::new(), bytes: 0 },
        };
        self.counts.keep_bytes(offset);
        self.current = Some(Current { id: place.id, path, size, attributes, kept: offset, sink });
        Ok(())
    }

    fn bytes(&mut self, bytes: &Bytes) -> Result<(), Error> {
        let Some(current) = &mut self.current else {
            return Err(protocol("sends bytes without a file"));
        };
        let count = bytes.len() as u64;
        let so_far = match &current.sink {
            Sink::Partial(partial) => partial.bytes(),
            Sink::Stream { bytes, .. } => *bytes,
        };
        if let Some(size) = current.size
            && so_far + count > size
        {
            return Err(Error::Protocol(format!(
                "the sender sent more than the {size} bytes that it announced"
            )));
        }
        self.arrived += count;
        self.promised = self.promised.saturating_sub(count);
        if let Some(most) = self.rules.most_bytes
            && self.arrived > most
        {
            return Err(too_large(most));
        }
        match &mut current.sink {
            Sink::Partial(partial) => partial.append(bytes)?,
            Sink::Stream { digest, bytes: so_far } => {
                digest.update(bytes);
                *so_far += count;
                if let Target::Stream(stream) = &mut self.place {
                    stream
                        .write_all(bytes)
                        .map_err(|error| Error::file("write", Path::new("the output"), &error))?;
                }
            }
        }
        self.counts.move_bytes(count);
        if self.arrived >= self.look_at
            && let Some(folder) = self.folder()
        {
            // Other transfers and programs fill the disk too.
            let free = has_room(folder, 1)?;
            self.look_at = self.arrived + (free / LOOK_SHARE).clamp(LEAST_LOOK, LOOK);
        }
        Ok(())
    }

    fn end(&mut self, end: &End, replies: Replies<'_>) -> Result<(), Error> {
        let Some(current) = self.current.take_if(|current| current.id == end.id) else {
            return Err(protocol("ends a file that it did not begin"));
        };
        let Current { id, path, attributes, kept, sink, size } = current;
        if size.is_some_and(|size| size != end.size) {
            return Err(Error::Protocol(format!(
                "{path} has changed while it was sent: it has {} bytes now",
                end.size
            )));
        }
        let overwrite = self.rules.overwrite;
        let finished = match sink {
            Sink::Partial(partial) => partial.finish(end.size, &end.sha256, attributes, overwrite),
            Sink::Stream { digest, bytes } => {
                if let Target::Stream(stream) = &mut self.place {
                    let failed = |error| Error::file("write", Path::new("the output"), &error);
                    stream.flush().map_err(failed)?;
                }
                let found = hex(&digest.finalize());
                if (bytes, &found) == (end.size, &end.sha256) {
                    Ok(found)
                } else {
                    Err(Error::Protocol("the SHA-256 of the output differs".to_owned()))
                }
            }
        };
        match finished {
            Ok(sha256) => {
                self.counts.complete_file();
                let path = match self.enter(&path)? {
                    Some(folder) => folder.path(path.split().1),
                    None => PathBuf::from("-"),
                };
                self.outcome.complete(Done { path, bytes: end.size, kept, sha256 });
                replies.push(Reply::Done { id });
                Ok(())
            }
            Err(Error::Local(reason)) => {
                self.reject(id, reason, replies);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn broken(&mut self, id: u64, reason: String) -> Result<(), Error> {
        let current = self.current.take_if(|current| current.id == id);
        if let Some(Current { sink: Sink::Partial(partial), size, .. }) = &current {
            self.promised =
                self.promised.saturating_sub(size.unwrap_or(0).saturating_sub(partial.bytes()));
            partial.leave();
        }
        match (current, self.open.remove(&id)) {
            (None, None) => return Err(protocol("gives up a file that it has not announced")),
            (_, Some(Announced { open: Open::Granted { offset, .. }, size, .. })) => {
                self.promised =
                    self.promised.saturating_sub(size.unwrap_or(0).saturating_sub(offset));
            }
            _ => {}
        }
        self.outcome.reject(reason);
        Ok(())
    }

    /// Sets a folder's attributes after its content has changed them.
    fn close(&self, entry: Entry) -> Result<(), Error> {
        let (Target::Folder(_), Kind::Folder) = (&self.place, &entry.kind) else { return Ok(()) };
        // Rejected when it was announced, if its name is not acceptable.
        let Ok(path) = RelativePath::new(entry.path, self.rules.hidden) else { return Ok(()) };
        let Some(is_new) = self.folders.get(&path) else { return Ok(()) };
        // The permissions of a folder that existed before are not the sender's to change.
        let mode = entry.mode.filter(|_| *is_new);
        let attributes = Attributes { mode, modified: entry.modified };
        let folder = self.enter(&path)?.map(|folder| folder.enter(path.split().1));
        if let Some(Ok(folder)) = folder {
            // Not every file system stores them.
            let _ = folder.set(attributes);
            folder.sync();
        }
        Ok(())
    }
}

/// Checks that an output can be opened now, so that a mistake shows before a sender comes.
///
/// # Errors
///
/// The folder does not exist, or the output names no file.
pub fn check(output: Output) -> Result<(), Error> {
    Store::new(output, String::new(), Rules::default(), Arc::default()).map(drop)
}

fn too_large(most: u64) -> Error {
    Error::Local(format!("the size exceeds the limit of {most} bytes"))
}

#[cfg(test)]
mod tests;
