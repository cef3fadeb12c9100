//! The connections of an association: their streams, windows and ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use polypath::{Association, StreamId};

use crate::error::Error;
use crate::forward::credit::Credit;
use crate::forward::inbox::{Event, Inbox};
use crate::forward::message::{Failure, Open, Part, Reset, To, Window};

/// Bytes of a connection that may be sent before the first grant.
const INITIAL: u64 = 32 << 10;
/// Bytes that all connections together may have in this side's queues.
const BUDGET: u64 = 64 << 20;
/// Largest and smallest window of a connection in bytes.
const LARGEST: u64 = 2 << 20;
const SMALLEST: u64 = 16 << 10;

/// Side of the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It has opened the association.
    Client,
    /// It has accepted it.
    Server,
}

/// State that the connections of an association share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) association: Association,
    /// Serves the tasks that send in the order of their requests.
    pub(crate) turn: tokio::sync::Mutex<()>,
    pub(crate) side: Side,
    pub(crate) table: Mutex<Table>,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) connections: BTreeMap<u16, Slot>,
    serial: u64,
    /// Where to look for a free stream.
    next: u16,
}

/// A stream in use.
#[derive(Debug)]
pub(crate) struct Slot {
    serial: u64,
    inbox: Arc<Inbox>,
    credit: Arc<Credit>,
    /// Bytes that the peer may still send.
    allowance: u64,
    /// Bytes that have arrived and were not taken.
    queued: u64,
    /// Whether this side's direction has ended, and the peer's.
    sent_end: bool,
    got_end: bool,
    /// Whether the connection has come about, and whether the peer has reset it.
    is_open: bool,
    is_reset: bool,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

impl Shared {
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message when it is its turn.
    pub(crate) async fn give(&self, stream: StreamId, part: Part) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        Ok(self.association.send(part.message(stream)).await?)
    }

    /// Takes a free stream; `None` if all are in use.
    pub(crate) fn new_connection(self: &Arc<Self>) -> Option<Connection> {
        let (outgoing, incoming) = self.association.streams();
        let end = outgoing.min(incoming);
        let mut table = self.table();
        let first = if self.side == Side::Client { 2 } else { 1 };
        let count = end.saturating_sub(first).div_ceil(2);
        let begin = table.next;
        let free = (0..count)
            .map(|step| first + 2 * (begin.wrapping_add(step) % count))
            .find(|id| !table.connections.contains_key(id))?;
        table.next = (free - first) / 2 + 1;
        let serial = table.serial;
        table.serial += 1;
        Some(self.add(&mut table, free, serial, false))
    }

    /// Adds a connection; `is_open` is whether the peer has requested it.
    fn add(self: &Arc<Self>, table: &mut Table, id: u16, serial: u64, is_open: bool) -> Connection {
        let inbox = Arc::<Inbox>::default();
        let credit = Arc::new(Credit::new(INITIAL));
        let slot = Slot {
            serial,
            inbox: inbox.clone(),
            credit: credit.clone(),
            allowance: INITIAL,
            queued: 0,
            sent_end: false,
            got_end: false,
            is_open,
            is_reset: false,
        };
        table.connections.insert(id, slot);
        Connection::new(self.clone(), StreamId(id), serial, inbox, credit)
    }

    /// The application has taken bytes: returns how many more to grant.
    pub(crate) fn taken(&self, stream: StreamId, serial: u64, bytes: u64) -> Option<u64> {
        let mut table = self.table();
        let count = table.connections.len() as u64;
        let slot = table.connections.get_mut(&stream.0).filter(|slot| slot.serial == serial)?;
        slot.queued = slot.queued.saturating_sub(bytes);
        let window = (BUDGET / count.max(1)).clamp(SMALLEST, LARGEST);
        let grant = window.saturating_sub(slot.allowance + slot.queued);
        if slot.got_end || grant < window / 4 {
            return None;
        }
        slot.allowance += grant;
        Some(grant)
    }

    /// This side's direction has ended: the stream is free when the other one has too.
    pub(crate) fn end_sent(&self, stream: StreamId, serial: u64) {
        let mut table = self.table();
        if let Some(slot) = table.connections.get_mut(&stream.0)
            && slot.serial == serial
        {
            slot.sent_end = true;
            if slot.got_end {
                table.connections.remove(&stream.0);
            }
        }
    }

    /// Whether a stream belongs to connections that the peer opens.
    const fn is_peers(&self, stream: StreamId) -> bool {
        stream.0 != 0 && stream.0.is_multiple_of(2) == matches!(self.side, Side::Server)
    }

    /// Handles a message about a connection.
    pub(crate) fn handle(
        self: &Arc<Self>,
        stream: StreamId,
        part: Part,
    ) -> Result<Option<(Connection, To)>, Error> {
        let mut table = self.table();
        let Some(slot) = table.connections.get_mut(&stream.0) else {
            return match part {
                Part::Open(Open { serial, to }) if self.is_peers(stream) => {
                    let connection = self.add(&mut table, stream.0, serial, true);
                    Ok(Some((connection, to)))
                }
                // About a connection that is over.
                Part::Window(_) | Part::Reset(_) => Ok(None),
                _ => Err(protocol("refers to no connection")),
            };
        };
        let event = match part {
            // Grants and resets may be about an earlier connection of the stream, which is over.
            Part::Window(Window { serial, bytes }) => {
                return if serial != slot.serial || slot.credit.add(bytes) {
                    Ok(None)
                } else {
                    Err(protocol("grants too large a window"))
                };
            }
            Part::Reset(reset) if slot.is_reset || reset.serial != slot.serial => return Ok(None),
            _ if slot.got_end && !matches!(part, Part::Reset(_)) => {
                return Err(protocol("goes on after the end"));
            }
            Part::Data(bytes) => {
                let count = bytes.len() as u64;
                slot.allowance = slot
                    .allowance
                    .checked_sub(count)
                    .ok_or_else(|| protocol("sends more than its window"))?;
                slot.queued += count;
                Event::Data(bytes)
            }
            Part::Opened if slot.is_open => {
                return Err(protocol("opens a connection twice"));
            }
            Part::Opened => {
                slot.is_open = true;
                Event::Opened
            }
            Part::Failed(failure) => {
                slot.got_end = true;
                Event::Failed(failure)
            }
            Part::End => {
                slot.got_end = true;
                Event::End
            }
            Part::Reset(Reset { failure, .. }) => {
                slot.got_end = true;
                slot.is_reset = true;
                Event::Reset(failure)
            }
            Part::Open(_) | Part::Listen(_) | Part::Listening(_) => {
                return Err(protocol("opens a connection twice"));
            }
        };
        slot.inbox.push(event);
        if slot.got_end && slot.sent_end {
            table.connections.remove(&stream.0);
        }
        Ok(None)
    }
}

/// A connection. Dropping it before its direction has ended resets it.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    receiver: Receiver,
}

/// The sending direction.
#[derive(Debug)]
pub(crate) struct Sender {
    shared: Arc<Shared>,
    stream: StreamId,
    serial: u64,
    credit: Arc<Credit>,
    /// Whether this direction has ended, and whether the connection is over.
    ended: bool,
    over: bool,
}

/// The receiving direction.
#[derive(Debug)]
pub(crate) struct Receiver {
    shared: Arc<Shared>,
    stream: StreamId,
    serial: u64,
    inbox: Arc<Inbox>,
}

impl Connection {
    pub(crate) fn new(
        shared: Arc<Shared>,
        stream: StreamId,
        serial: u64,
        inbox: Arc<Inbox>,
        credit: Arc<Credit>,
    ) -> Self {
        let sender =
            Sender { shared: shared.clone(), stream, serial, credit, ended: false, over: false };
        Self { sender, receiver: Receiver { shared, stream, serial, inbox } }
    }

    pub(crate) const fn serial(&self) -> u64 {
        self.sender.serial
    }

    pub(crate) async fn give(&mut self, part: Part) -> Result<(), Error> {
        self.sender.give(part).await
    }

    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.receiver.inbox.next().await
    }

    /// Accepts a connection that the other side has requested.
    ///
    /// # Errors
    ///
    /// The association has ended.
    pub async fn accept(&mut self) -> Result<(), Error> {
        self.sender.give(Part::Opened).await
    }

    /// Refuses it.
    pub async fn refuse(mut self, failure: Failure) {
        if self.sender.give(Part::Failed(failure)).await.is_ok() {
            self.sender.ended();
            // The other side ends its direction when it learns of it.
            self.sender.over();
        }
    }

    pub(crate) fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }
}

impl Sender {
    async fn give(&self, part: Part) -> Result<(), Error> {
        self.shared.give(self.stream, part).await
    }

    /// Waits for credit of at most `most` bytes.
    pub(crate) async fn credit(&self, most: usize) -> usize {
        usize::try_from(self.credit.take(most as u64).await).unwrap_or(most)
    }

    /// Gives back credit that was not used.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.credit.give_back(bytes as u64);
    }

    /// Sends bytes, for which there is credit.
    pub(crate) async fn data(&self, bytes: Bytes) -> Result<(), Error> {
        self.give(Part::Data(bytes)).await
    }

    /// Ends this direction.
    pub(crate) async fn end(&mut self) -> Result<(), Error> {
        if !self.ended {
            self.give(Part::End).await?;
            self.ended();
        }
        Ok(())
    }

    /// Nothing is left to reset.
    pub(crate) const fn over(&mut self) {
        self.over = true;
    }

    fn ended(&mut self) {
        self.ended = true;
        self.shared.end_sent(self.stream, self.serial);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // Even after the end of this direction: the other side still sends.
        let (shared, stream, serial) = (self.shared.clone(), self.stream, self.serial);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let reset = Part::Reset(Reset { serial, failure: Failure::Reset });
            // An error means that the association has ended.
            if shared.give(stream, reset).await.is_ok() {
                shared.end_sent(stream, serial);
            }
        });
    }
}

impl Receiver {
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.inbox.next().await
    }

    /// Grants what was taken.
    pub(crate) async fn taken(&self, bytes: usize) -> Result<(), Error> {
        match self.shared.taken(self.stream, self.serial, bytes as u64) {
            Some(bytes) => {
                let window = Window { serial: self.serial, bytes };
                self.shared.give(self.stream, Part::Window(window)).await
            }
            None => Ok(()),
        }
    }
}

pub(crate) fn protocol(what: &str) -> Error {
    Error::Protocol(format!("the peer {what}"))
}
