//! Many connections over one association.

use std::sync::{Arc, Mutex};

use polypath::{Association, CloseReason, StreamId};
use tokio::sync::mpsc;

use crate::error::Error;
use crate::forward::connection::{Connection, Shared, protocol};
use crate::forward::inbox::Event;
use crate::forward::message::{Failure, Listen, Listening, Open, Part, Target, To};

pub use crate::forward::connection::Side;

/// Maximum number of requests that wait for the application.
const REQUESTS: usize = 64;
/// Stream of messages that belong to no connection.
const CONTROL: StreamId = StreamId(0);

/// What the other side requests.
#[derive(Debug)]
pub enum Request {
    /// A connection to a target.
    Connect(Connection, Target),
    /// A connection has come in on a port that this side has requested.
    Arrived(Connection, u64),
    /// A port of this side, for connections of the other side's listener with this number.
    Listen {
        /// Number of the listener.
        listener: u64,
        /// Local address; empty for the loopback address.
        bind: String,
        /// TCP port; 0 for any free one.
        port: u16,
    },
    /// The reply to [`Mux::listen`]: the port, or the reason why there is none.
    Listening {
        /// Number of the listener.
        listener: u64,
        /// The port.
        port: Result<u16, String>,
    },
}

/// The connections of an association.
#[derive(Clone, Debug)]
pub struct Mux(Arc<Shared>);

impl Mux {
    /// Starts to serve an association; the second value yields the other side's requests.
    pub fn start(association: Association, side: Side) -> (Self, mpsc::Receiver<Request>) {
        let (sender, requests) = mpsc::channel(REQUESTS);
        let shared = Arc::new(Shared {
            association,
            turn: tokio::sync::Mutex::new(()),
            side,
            table: Mutex::default(),
        });
        tokio::spawn(serve(shared.clone(), sender));
        (Self(shared), requests)
    }

    /// The association.
    pub fn association(&self) -> &Association {
        &self.0.association
    }

    /// Number of connections.
    pub fn connections(&self) -> usize {
        self.0.table().connections.len()
    }

    /// Opens a connection to a target on the other side.
    ///
    /// # Errors
    ///
    /// The other side reports a failure, or the association has ended.
    pub async fn connect(&self, target: Target) -> Result<Connection, Failure> {
        self.open(To::Target(target)).await
    }

    /// Passes on a connection that has come in on a port that the other side has requested.
    ///
    /// # Errors
    ///
    /// The other side reports a failure, or the association has ended.
    pub async fn arrived(&self, listener: u64) -> Result<Connection, Failure> {
        self.open(To::Listener(listener)).await
    }

    async fn open(&self, to: To) -> Result<Connection, Failure> {
        let mut connection = self.0.new_connection().ok_or(Failure::TooMany)?;
        let open = Part::Open(Open { serial: connection.serial(), to });
        connection.give(open).await.map_err(|_| Failure::Reset)?;
        match connection.next().await {
            Some(Event::Opened) => Ok(connection),
            Some(Event::Failed(failure)) => Err(failure),
            _ => Err(Failure::Reset),
        }
    }

    /// Requests a port of the other side. The reply is [`Request::Listening`].
    ///
    /// # Errors
    ///
    /// The association has ended.
    pub async fn listen(&self, listener: u64, bind: String, port: u16) -> Result<(), Error> {
        self.0.give(CONTROL, Part::Listen(Listen { listener, bind, port })).await
    }

    /// Replies to [`Request::Listen`].
    ///
    /// # Errors
    ///
    /// The association has ended.
    pub async fn listening(&self, listener: u64, port: Result<u16, String>) -> Result<(), Error> {
        self.0.give(CONTROL, Part::Listening(Listening { listener, port })).await
    }
}

/// Passes all messages on until the association ends.
async fn serve(shared: Arc<Shared>, requests: mpsc::Sender<Request>) {
    let error = loop {
        let part = match shared.association.recv().await {
            Ok(Some(received)) => Part::read(received),
            Ok(None) => break Error::Closed(CloseReason::Graceful),
            Err(error) => break error.into(),
        };
        let request = match part {
            Ok((CONTROL, Part::Listen(Listen { listener, bind, port }))) => {
                Ok(Some(Request::Listen { listener, bind, port }))
            }
            Ok((CONTROL, Part::Listening(Listening { listener, port }))) => {
                Ok(Some(Request::Listening { listener, port }))
            }
            Ok((CONTROL, _)) => Err(protocol("mixes up its streams")),
            Ok((stream, part)) => shared.handle(stream, part).map(|opened| {
                opened.map(|(connection, to)| match to {
                    To::Target(target) => Request::Connect(connection, target),
                    To::Listener(listener) => Request::Arrived(connection, listener),
                })
            }),
            Err(error) => Err(error),
        };
        match request {
            Ok(None) => {}
            Ok(Some(request)) => {
                // The application serves requests at once, each in a task of its own.
                if requests.send(request).await.is_err() {
                    break Error::Closed(CloseReason::LocalAbort);
                }
            }
            Err(error) => break error,
        }
    };
    if !matches!(error, Error::Closed(_)) {
        shared.association.abort(error.to_string());
    }
    // Every connection learns of it by the end of its events.
    shared.table().connections.clear();
}
