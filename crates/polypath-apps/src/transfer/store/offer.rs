//! Replies to announced entries: rejected, complete, or the bytes that are needed.

use std::io;

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::transfer::digest::{block_size, hex, read_blocks};
use crate::transfer::folder::{Attributes, Folder, Found};
use crate::transfer::message::{Blocks, Entry, Kind, MOST_OPEN, Place, Reason, Reply};
use crate::transfer::names::{RelativePath, stays_inside};
use crate::transfer::outcome::Done;
use crate::transfer::partial::{self, Partial};
use crate::transfer::room::{has_room, is_full};
use crate::transfer::store::{Announced, Open, Replies, Store, Target, protocol};
use crate::wire::shown;

impl Store {
    pub(super) fn entry(&mut self, entry: Entry, replies: Replies<'_>) -> Result<(), Error> {
        let announced = self.begin.as_ref().map_or(0, |begin| begin.entries);
        if self.entries >= announced {
            return Err(protocol("sends more entries than it announced"));
        }
        if self.open.len() > MOST_OPEN || self.last.is_some_and(|last| entry.id <= last) {
            return Err(protocol("announces entries out of order"));
        }
        self.entries += 1;
        self.last = Some(entry.id);
        let id = entry.id;
        match self.accept(entry) {
            Ok(reply) => replies.push(reply),
            Err(error) if is_full(&error) => return Err(error),
            Err(error) => self.reject(id, error.to_string(), replies),
        }
        Ok(())
    }

    pub(super) fn reject(&mut self, id: u64, reason: String, replies: Replies<'_>) {
        self.outcome.reject(reason.clone());
        replies.push(Reply::Refused(Reason { id, reason }));
    }

    /// Creates a folder or a link, or prepares a file.
    fn accept(&mut self, entry: Entry) -> Result<Reply, Error> {
        let last = entry.path.last().cloned().unwrap_or_default();
        let path = match &self.place {
            Target::Folder(_) => {
                RelativePath::new(entry.path, self.rules.hidden).map_err(|why| {
                    Error::Local(format!("{:?} is refused as a name: {why}", shown(&last)))
                })?
            }
            Target::File(_, chosen) => chosen.clone(),
            Target::Stream(_) => RelativePath::new(vec!["-".to_owned()], true)
                .map_err(|why| Error::Local(why.to_string()))?,
        };
        let id = entry.id;
        let attributes = Attributes { mode: entry.mode, modified: entry.modified };
        match entry.kind {
            Kind::File(size) => {
                let (open, reply) = match self.enter(&path)? {
                    Some(folder) => self.prepare(id, &path, size, &folder)?,
                    None => (Open::Granted { partial: None, offset: 0 }, grant(id, 0)),
                };
                if let Open::Granted { offset, .. } = open {
                    self.promised += size.unwrap_or(0).saturating_sub(offset);
                }
                self.open.insert(id, Announced { path, size, attributes, open });
                return Ok(reply);
            }
            _ if !matches!(self.place, Target::Folder(_)) => {
                return Err(Error::Local("a folder needs a folder to go to".to_owned()));
            }
            Kind::Folder => {
                if let Some(folder) = self.enter(&path)? {
                    has_room(&folder, self.promised.saturating_add(1))?;
                    let name = path.split().1;
                    let (_, new) = folder
                        .make(name, attributes.mode.unwrap_or(0o777))
                        .map_err(|error| Error::file("create", &folder.path(name), &error))?;
                    self.folders.insert(path, new);
                }
            }
            Kind::Link(target) => self.link(&path, &target)?,
        }
        Ok(Reply::Done { id })
    }

    /// The folder that `path` is in; `None` if the output is a stream.
    pub(super) fn enter(&self, path: &RelativePath) -> Result<Option<Folder>, Error> {
        let Some(root) = self.folder() else { return Ok(None) };
        let failed = |folder: &Folder, name: &str, error: &io::Error| {
            Error::file("open", &folder.path(name), error)
        };
        let mut folder = root.again().map_err(|error| failed(root, ".", &error))?;
        for name in path.split().0 {
            folder = folder.enter(name).map_err(|error| failed(&folder, name, &error))?;
        }
        Ok(Some(folder))
    }

    fn link(&self, path: &RelativePath, target: &str) -> Result<(), Error> {
        if !stays_inside(path, target) {
            return Err(Error::Local(format!("the link {path} points outside of what is sent")));
        }
        let Some(folder) = self.enter(path)? else { return Ok(()) };
        let name = path.split().1;
        let failed = |error: io::Error| Error::file("create", &folder.path(name), &error);
        has_room(&folder, self.promised.saturating_add(1))?;
        match folder.look(name).map_err(failed)? {
            None => folder.link(name, target).map_err(failed),
            Some(_) if folder.link_target(name).is_ok_and(|found| found == target.as_bytes()) => {
                Ok(())
            }
            Some(Found::File(_) | Found::Other) if self.rules.overwrite => {
                let new = partial::name(&self.sender, path);
                // A link that an earlier run has left.
                let _ = folder.remove(&new);
                folder.link(&new, target).map_err(failed)?;
                folder.rename(&new, name, true).map_err(failed)
            }
            Some(_) => Err(partial::exists(&folder, name)),
        }
    }

    /// Looks for what exists of a file.
    fn prepare(
        &self,
        id: u64,
        path: &RelativePath,
        size: Option<u64>,
        folder: &Folder,
    ) -> Result<(Open, Reply), Error> {
        let name = path.split().1;
        let failed = |error: io::Error| Error::file("create", &folder.path(name), &error);
        match folder.look(name).map_err(failed)? {
            Some(Found::Folder) => {
                return Err(Error::Local(format!("{} is a folder", folder.path(name).display())));
            }
            Some(Found::File(bytes)) if Some(bytes) == size => {
                let file = folder.read(name).map_err(failed)?;
                let block = block_size(bytes);
                return Ok((
                    Open::Existing { file, bytes, block },
                    Reply::Have { id, bytes, block },
                ));
            }
            Some(_) if !self.rules.overwrite => return Err(partial::exists(folder, name)),
            _ => {}
        }
        self.prepare_partial(id, path, size, folder)
    }

    fn prepare_partial(
        &self,
        id: u64,
        path: &RelativePath,
        size: Option<u64>,
        folder: &Folder,
    ) -> Result<(Open, Reply), Error> {
        let (_, name) = path.split();
        let part = partial::name(&self.sender, path);
        let found =
            folder.look(&part).map_err(|e| Error::file("create", &folder.path(name), &e))?;
        if let (Some(Found::File(bytes)), Some(size)) = (found, size)
            && bytes.min(size) > 0
        {
            let handle = folder.again().map_err(|e| Error::file("open", &folder.path(name), &e))?;
            let partial = Partial::open(handle, part, name, &self.conflict)?;
            let (bytes, block) = (bytes.min(size), block_size(size));
            return Ok((Open::Offered { partial, bytes, block }, Reply::Have { id, bytes, block }));
        }
        has_room(folder, self.promised.saturating_add(size.unwrap_or(0)).max(1))?;
        if found.is_none() {
            // A name that the disk cannot store is rejected before its bytes are sent.
            folder.try_name(&part).map_err(|e| Error::file("create", &folder.path(name), &e))?;
        }
        Ok((Open::Granted { partial: None, offset: 0 }, grant(id, 0)))
    }

    pub(super) fn blocks(&mut self, blocks: &Blocks, replies: Replies<'_>) -> Result<(), Error> {
        let id = blocks.id;
        let Some(announced) = self.open.remove(&id) else {
            return Err(protocol("sends digests that were not requested"));
        };
        match self.compare(id, announced, blocks) {
            Ok(reply) => replies.push(reply),
            Err(error) if is_full(&error) => return Err(error),
            Err(error) => self.reject(id, error.to_string(), replies),
        }
        Ok(())
    }

    fn compare(
        &mut self,
        id: u64,
        mut announced: Announced,
        blocks: &Blocks,
    ) -> Result<Reply, Error> {
        let size = announced.size.unwrap_or(0);
        let folder = self.enter(&announced.path)?.ok_or_else(|| protocol("mixes files up"))?;
        let reply = match announced.open {
            Open::Offered { mut partial, bytes, block } => {
                let offset = partial.compare(bytes, block, &blocks.digests)?;
                has_room(&folder, self.promised.saturating_add(size - offset))?;
                self.promised += size - offset;
                announced.open = Open::Granted { partial: Some(partial), offset };
                grant(id, offset)
            }
            Open::Existing { mut file, bytes, block } => {
                let name = announced.path.split().1;
                let mut expected = blocks.digests.iter();
                let agree = &mut |found, _: &Sha256| expected.next() == Some(&found);
                let (digest, same) = read_blocks(&mut file, bytes, block, agree)
                    .map_err(|error| Error::file("read", &folder.path(name), &error))?;
                if same == size {
                    self.counts.keep_bytes(size);
                    self.counts.complete_file();
                    self.outcome.complete(Done {
                        path: folder.path(name),
                        bytes: size,
                        kept: size,
                        sha256: hex(&digest.finalize()),
                    });
                    return Ok(Reply::Done { id });
                }
                if !self.rules.overwrite {
                    return Err(partial::exists(&folder, name));
                }
                let (open, reply) =
                    self.prepare_partial(id, &announced.path, announced.size, &folder)?;
                if matches!(open, Open::Granted { .. }) {
                    self.promised += size;
                }
                announced.open = open;
                reply
            }
            Open::Granted { .. } => return Err(protocol("sends digests that were not requested")),
        };
        self.open.insert(id, announced);
        Ok(reply)
    }
}

pub(super) const fn grant(id: u64, offset: u64) -> Reply {
    Reply::From(Place { id, offset })
}
