//! The sender's side.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use polypath::{Association, CloseReason};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::Error;
use crate::pace::Pace;
use crate::transfer::message::{Blocks, End, FromSender, Kind, MOST_OPEN, Place, Reason, Reply};
use crate::transfer::outcome::{Counts, Done, Outcome};
use crate::transfer::source::{Compared, Manifest, Origin, Source, read};

/// Maximum number of chunks read ahead.
const AHEAD: usize = 32;
/// Maximum number of replies that wait.
const REPLIES: usize = 256;
/// Interval of signs of life while there is nothing to send.
const ALIVE: Duration = Duration::from_secs(2);

/// An announced entry that the receiver has not completed or rejected.
#[derive(Default)]
struct Waiting {
    compared: Option<Compared>,
    /// Its size and SHA-256, once all bytes are sent.
    sent: Option<(u64, String)>,
    kept: u64,
    /// How often the receiver has requested digests, and whether it has requested bytes.
    comparisons: u8,
    is_granted: bool,
}

/// Maximum number of comparisons of an entry: with a complete file and with a partial one.
const COMPARISONS: u8 = 2;

/// What the receiver has requested.
enum Request {
    Blocks { id: u64, bytes: u64, block: u64 },
    Bytes(Place),
}

struct Sending<'a> {
    association: &'a Association,
    manifest: &'a Manifest,
    counts: &'a Counts,
    pace: Pace,
    replies: mpsc::Receiver<Reply>,
    /// Number of announced entries.
    announced: usize,
    waiting: BTreeMap<u64, Waiting>,
    requests: VecDeque<Request>,
    /// Path of the folder that was rejected last: what is in it is not announced.
    without: Option<Vec<String>>,
    finished: bool,
    outcome: Outcome,
}

/// Sends everything in the manifest, after consent. `limit` is in bytes per second.
///
/// # Errors
///
/// The association ended, or the receiver reports a failure. Rejected entries are no error: the
/// outcome lists them.
pub async fn send(
    association: &Association,
    manifest: &Manifest,
    counts: &Arc<Counts>,
    limit: Option<u64>,
) -> Result<Outcome, Error> {
    let (sender, replies) = mpsc::channel(REPLIES);
    let mut sending = Sending {
        association,
        manifest,
        counts,
        pace: Pace::new(limit),
        replies,
        announced: 0,
        waiting: BTreeMap::new(),
        requests: VecDeque::new(),
        without: None,
        finished: false,
        outcome: Outcome { name: manifest.name().to_owned(), ..Outcome::default() },
    };
    manifest.skipped.iter().for_each(|reason| sending.outcome.reject(reason.clone()));
    let reading = read_replies(association, sender);
    tokio::pin!(reading);
    let sent = tokio::select! {
        biased;
        // An error of the receiver explains more than the failure to send.
        error = &mut reading => return Err(error),
        sent = sending.run() => sent,
    };
    match sent {
        // The receiver may have sent the reason.
        Err(Error::Closed(reason)) => match timeout(Duration::ZERO, &mut reading).await {
            Ok(Error::Peer(why)) => Err(Error::Peer(why)),
            _ => Err(Error::Closed(reason)),
        },
        Err(error) => Err(error),
        Ok(()) => Ok(sending.outcome),
    }
}

/// Passes replies on; ends with an error of the receiver or the end of the association.
async fn read_replies(association: &Association, replies: mpsc::Sender<Reply>) -> Error {
    loop {
        let reply = match association.recv().await {
            Ok(Some(received)) => Reply::read(received),
            Ok(None) => Err(Error::Closed(CloseReason::Graceful)),
            Err(error) => Err(error.into()),
        };
        match reply {
            Ok(Reply::Error(reason)) => return Error::Peer(reason),
            Ok(reply) => {
                // If the receiver of the replies has gone, the transfer is over.
                if replies.send(reply).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            Err(error) => return error,
        }
    }
}

impl Sending<'_> {
    async fn run(&mut self) -> Result<(), Error> {
        self.give(FromSender::Begin(self.manifest.begin.clone())).await?;
        loop {
            while let Ok(reply) = self.replies.try_recv() {
                self.reply(reply)?;
            }
            if self.waiting.len() < MOST_OPEN && self.announce().await? {
                continue;
            }
            match self.requests.pop_front() {
                Some(Request::Blocks { id, bytes, block }) => {
                    self.compare(id, bytes, block).await?;
                }
                Some(Request::Bytes(place)) => self.file(place).await?,
                None if self.waiting.is_empty() => break,
                None => self.wait().await?,
            }
        }
        let folders = self.manifest.sources.iter().rev();
        for folder in folders.filter(|source| source.entry.kind == Kind::Folder) {
            self.give(FromSender::Close(folder.entry.clone())).await?;
        }
        self.give(FromSender::Finish).await?;
        while !self.finished {
            self.wait().await?;
        }
        Ok(())
    }

    async fn give(&self, message: FromSender) -> Result<(), Error> {
        Ok(self.association.send(message.message()).await?)
    }

    /// Waits for a reply, with signs of life.
    async fn wait(&mut self) -> Result<(), Error> {
        loop {
            match timeout(ALIVE, self.replies.recv()).await {
                Ok(Some(reply)) => return self.reply(reply),
                Ok(None) => return Err(Error::Closed(CloseReason::Graceful)),
                Err(_) => self.give(FromSender::Alive).await?,
            }
        }
    }

    /// Announces the next entry; false if there is none.
    async fn announce(&mut self) -> Result<bool, Error> {
        while let Some(Source { entry, .. }) = self.manifest.sources.get(self.announced) {
            self.announced += 1;
            if self.without.as_ref().is_some_and(|without| entry.path.starts_with(without)) {
                continue;
            }
            self.waiting.insert(entry.id, Waiting::default());
            self.give(FromSender::Entry(entry.clone())).await?;
            return Ok(true);
        }
        Ok(false)
    }

    fn source(&self, id: u64) -> Result<&Source, Error> {
        let source = usize::try_from(id).ok().and_then(|index| self.manifest.sources.get(index));
        source.filter(|_| self.waiting.contains_key(&id)).ok_or_else(confused)
    }

    fn reply(&mut self, reply: Reply) -> Result<(), Error> {
        match reply {
            Reply::Have { id, bytes, block } => {
                let Kind::File(Some(size)) = self.source(id)?.entry.kind else {
                    return Err(confused());
                };
                let waiting = self.waiting.get_mut(&id).ok_or_else(confused)?;
                waiting.comparisons += 1;
                let is_again = waiting.is_granted || waiting.comparisons > COMPARISONS;
                if is_again || bytes > size || block < 4096 || bytes.div_ceil(block) > 1024 {
                    return Err(confused());
                }
                self.requests.push_back(Request::Blocks { id, bytes, block });
            }
            Reply::From(place) => {
                let waiting = self.waiting.get_mut(&place.id).ok_or_else(confused)?;
                if std::mem::replace(&mut waiting.is_granted, true) {
                    return Err(confused());
                }
                self.requests.push_back(Request::Bytes(place));
            }
            Reply::Done { id } => self.complete(id)?,
            Reply::Refused(Reason { id, reason }) => {
                let entry = &self.source(id)?.entry;
                if entry.kind == Kind::Folder {
                    self.without = Some(entry.path.clone());
                }
                self.waiting.remove(&id);
                self.outcome.reject(reason);
            }
            Reply::Finished => self.finished = true,
            Reply::Alive => {}
            // The task that reads has ended with it.
            Reply::Error(reason) => return Err(Error::Peer(reason)),
        }
        Ok(())
    }

    /// The receiver has the whole entry.
    fn complete(&mut self, id: u64) -> Result<(), Error> {
        let Source { origin, entry } = self.source(id)?;
        let (Kind::File(size), path) = (&entry.kind, origin.clone()) else {
            self.waiting.remove(&id);
            return Ok(());
        };
        let announced = size.unwrap_or(0);
        let Some(waiting) = self.waiting.remove(&id) else { return Ok(()) };
        let (bytes, sha256, kept) = match (waiting.sent, waiting.compared) {
            (Some((bytes, sha256)), _) => (bytes, sha256, waiting.kept),
            (None, Some(compared)) => (announced, compared.sha256(), announced),
            (None, None) => return Err(confused()),
        };
        if kept == bytes {
            self.counts.keep_bytes(kept);
        }
        self.counts.complete_file();
        let path = match path {
            Origin::Path(path) => path,
            Origin::StandardInput => "-".into(),
        };
        self.outcome.complete(Done { path, bytes, kept, sha256 });
        Ok(())
    }

    /// Sends digests of what the receiver may have.
    async fn compare(&mut self, id: u64, bytes: u64, block: u64) -> Result<(), Error> {
        let Origin::Path(path) = self.source(id)?.origin.clone() else { return Err(confused()) };
        let reading = tokio::task::spawn_blocking(move || Compared::read(&path, bytes, block));
        match self.alive_while(reading).await? {
            Ok(compared) => {
                let digests = compared.digests.clone();
                if let Some(waiting) = self.waiting.get_mut(&id) {
                    waiting.compared = Some(compared);
                }
                self.give(FromSender::Blocks(Blocks { id, digests })).await
            }
            Err(error) => self.give_up(id, &error).await,
        }
    }

    /// Waits for a thread, with signs of life.
    async fn alive_while<T>(&self, task: tokio::task::JoinHandle<T>) -> Result<T, Error> {
        tokio::pin!(task);
        loop {
            match timeout(ALIVE, &mut task).await {
                Ok(done) => {
                    return done.map_err(|_| Error::Local("reading a file has failed".to_owned()));
                }
                Err(_) => self.give(FromSender::Alive).await?,
            }
        }
    }

    /// Reports that a file cannot be sent.
    async fn give_up(&mut self, id: u64, error: &Error) -> Result<(), Error> {
        self.waiting.remove(&id);
        let reason = error.to_string();
        self.outcome.reject(reason.clone());
        self.give(FromSender::Broken(Reason { id, reason })).await
    }

    /// Sends the bytes of a file from an offset on.
    async fn file(&mut self, place: Place) -> Result<(), Error> {
        let Place { id, offset } = place;
        let source = self.source(id)?.clone();
        let compared = self.waiting.get(&id).and_then(|waiting| waiting.compared.as_ref());
        let state = match compared {
            Some(compared) => compared.state(offset),
            None if offset == 0 => Some(Sha256::new()),
            None => None,
        };
        let state = state.ok_or_else(confused)?;
        self.give(FromSender::Start(place)).await?;
        if let Some(waiting) = self.waiting.get_mut(&id) {
            waiting.kept = offset;
        }
        self.counts.keep_bytes(offset);
        let (sender, mut chunks) = mpsc::channel(AHEAD);
        let reading = tokio::task::spawn_blocking(move || read(&source, offset, state, &sender));
        loop {
            let chunk = match timeout(ALIVE, chunks.recv()).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(_) => {
                    self.give(FromSender::Alive).await?;
                    continue;
                }
            };
            let size = chunk.len();
            self.pace.wait(size).await;
            self.give(FromSender::Bytes(chunk)).await?;
            self.counts.move_bytes(size as u64);
        }
        match self.alive_while(reading).await? {
            Ok((size, sha256)) => {
                if let Some(waiting) = self.waiting.get_mut(&id) {
                    waiting.sent = Some((size, sha256.clone()));
                }
                self.give(FromSender::End(End { id, size, sha256 })).await
            }
            Err(error) => self.give_up(id, &error).await,
        }
    }
}

fn confused() -> Error {
    Error::Protocol("the receiver's replies do not fit what was sent".to_owned())
}
