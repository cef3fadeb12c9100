//! The receiver's side: one transfer from a sender that has been let in.

use std::sync::Arc;
use std::time::Duration;

use polypath::{Association, CloseReason};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::accept::Peer;
use crate::error::Error;
use crate::liveness;
use crate::transfer::message::{Begin, FromSender, Reply};
use crate::transfer::outcome::{Counts, Outcome};
use crate::transfer::rules::{Output, Rules};
use crate::transfer::store::Store;

/// Maximum number of messages queued for the thread that writes.
const WAITING: usize = 32;
/// Silence after which a sender is dropped, and after which its paths are probed.
const SILENCE: Duration = Duration::from_secs(10);
const PROBE: Duration = Duration::from_secs(3);
/// Bytes of stack of the thread that writes: it recurses nowhere.
const STACK: usize = 256 << 10;
/// Time for the sender to close the association after the last reply.
const FAREWELL: Duration = Duration::from_secs(5);
/// Time for an error to reach the sender.
const GOODBYE: Duration = Duration::from_secs(3);

/// A sender that has been let in.
#[derive(Debug)]
pub struct Incoming(Peer);

impl Incoming {
    /// Begins with a peer that has been let in.
    pub const fn new(peer: Peer) -> Self {
        Self(peer)
    }

    /// The peer.
    pub const fn peer(&self) -> &Peer {
        &self.0
    }

    /// Identity of the sender, on which its partial files depend. A sender in clear has none.
    fn identity(&self) -> String {
        self.0.association.peer().map_or_else(String::new, |peer| peer.to_string())
    }

    /// Waits for the sender to announce what it sends.
    ///
    /// # Errors
    ///
    /// The association ended, or the sender announces nothing in time.
    pub async fn begin(&self) -> Result<Begin, Error> {
        let first = timeout(self.0.patience, next(&self.0.association)).await;
        match first {
            Ok(Ok(FromSender::Begin(begin))) => Ok(begin),
            Ok(Ok(_)) => self.failed(protocol("did not announce what it sends")).await,
            Ok(Err(error)) => self.failed(error).await,
            Err(_) => {
                let silent = Error::Local("the sender connected and sent nothing".to_owned());
                self.failed(silent).await
            }
        }
    }

    /// Refuses the transfer, and reports the reason to the sender.
    pub async fn refuse(&self, reason: &str) {
        report(&self.0.association, &Error::Local(reason.to_owned())).await;
    }

    async fn failed<T>(&self, error: Error) -> Result<T, Error> {
        report(&self.0.association, &error).await;
        Err(error)
    }

    /// Receives what was announced. After success, the sender closes the association.
    ///
    /// # Errors
    ///
    /// The association ended, the sender is silent for ten seconds, or the transfer has failed.
    /// Rejected entries are no error: the outcome lists them.
    pub async fn receive(
        &self,
        begin: Begin,
        output: Output,
        rules: Rules,
        counts: Arc<Counts>,
    ) -> Result<Outcome, Error> {
        let result = self.run(begin, output, rules, counts).await;
        if let Err(error) = &result {
            report(&self.0.association, error).await;
        }
        result
    }

    async fn run(
        &self,
        begin: Begin,
        output: Output,
        rules: Rules,
        counts: Arc<Counts>,
    ) -> Result<Outcome, Error> {
        let association = &self.0.association;
        let mut store = Store::new(output, self.identity(), rules, counts)?;
        let conflict = store.conflict();
        let (messages, inbox) = mpsc::channel(WAITING);
        let (outbox, mut replies) = mpsc::unbounded_channel();
        let (ended, mut end) = oneshot::channel();
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            // The other side has gone if the transfer was given up.
            let _ = ended.send(match store.handle(FromSender::Begin(begin), &mut Vec::new()) {
                Ok(_) => write(store, inbox, &outbox),
                Err(error) => {
                    store.abandon(&error);
                    Err(error)
                }
            });
        });
        thread.map_err(|error| Error::Local(format!("cannot start a thread: {error}")))?;
        let reading = async {
            loop {
                let message = match next(association).await {
                    Ok(message) => message,
                    Err(error) => return error,
                };
                if messages.send(message).await.is_err() {
                    // The thread has ended, and its result is the reason.
                    std::future::pending::<()>().await;
                }
            }
        };
        let sending = async {
            while let Some(reply) = replies.recv().await {
                if let Err(error) = association.send(Reply::message(&reply)).await {
                    return Error::from(error);
                }
            }
            std::future::pending().await
        };
        // The same sender's earlier connection may still hold a file.
        let conflicts = async {
            loop {
                conflict.notified().await;
                self.0.end_silent_ones().await;
            }
        };
        let failed = || Error::Local("writing the files failed".to_owned());
        let ended = tokio::select! {
            ended = &mut end => return self.all_sent(&mut replies, ended.map_err(|_| failed())?).await,
            error = reading => error,
            error = sending => error,
            () = conflicts => failed(),
            () = liveness::silence(association, PROBE, SILENCE) => {
                Error::Silent { seconds: SILENCE.as_secs() }
            }
        };
        // The thread ends when its inbox is closed, and reports what had gone wrong before.
        drop(messages);
        match end.await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(Error::Closed(_))) | Err(_) => Err(ended),
            Ok(Err(error)) => Err(error),
        }
    }

    /// Sends the last replies.
    async fn all_sent(
        &self,
        replies: &mut mpsc::UnboundedReceiver<Reply>,
        result: Result<Outcome, Error>,
    ) -> Result<Outcome, Error> {
        let outcome = result?;
        while let Ok(reply) = replies.try_recv() {
            self.0.association.send(Reply::message(&reply)).await?;
        }
        // The protocol limits the time until the reply is acknowledged: if the primary path is cut,
        // which this side notices only by sending, another path takes the reply after a timeout.
        if self.0.association.drained().await.is_ok() {
            let _ = timeout(FAREWELL, self.0.association.closed()).await;
        }
        Ok(outcome)
    }
}

/// Handles messages in a thread of its own until the last one.
fn write(
    mut store: Store,
    mut inbox: mpsc::Receiver<FromSender>,
    outbox: &mpsc::UnboundedSender<Reply>,
) -> Result<Outcome, Error> {
    let mut replies = Vec::new();
    loop {
        let result = match inbox.blocking_recv() {
            Some(message) => store.handle(message, &mut replies),
            None => Err(Error::Closed(CloseReason::LocalAbort)),
        };
        for reply in replies.drain(..) {
            // The other side has gone if the association has ended.
            let _ = outbox.send(reply);
        }
        match result {
            Ok(false) => {}
            Ok(true) => return Ok(store.finish()),
            Err(error) => {
                store.abandon(&error);
                return Err(error);
            }
        }
    }
}

/// Reports an error to the sender, and ends the association.
async fn report(association: &Association, error: &Error) {
    if !matches!(error, Error::Closed(_) | Error::Silent { .. }) {
        let sent = async {
            association.send(Reply::Error(error.to_string()).message()).await.ok()?;
            association.drained().await.ok()?;
            // The sender reads it and leaves.
            Some(association.closed().await)
        };
        let _ = timeout(GOODBYE, sent).await;
    }
    association.abort(match error {
        // An empty reason: the sender may continue.
        Error::Silent { .. } => String::new(),
        error => error.to_string(),
    });
}

async fn next(association: &Association) -> Result<FromSender, Error> {
    match association.recv().await {
        Ok(Some(received)) => FromSender::read(received),
        Ok(None) => Err(Error::Closed(CloseReason::Graceful)),
        Err(error) => Err(error.into()),
    }
}

fn protocol(what: &str) -> Error {
    Error::Protocol(format!("the sender {what}"))
}
