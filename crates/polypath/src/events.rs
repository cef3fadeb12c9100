//! What an association tells besides its messages.

use polypath_proto::Event;
use thiserror::Error;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// How many events may wait for a receiver of [`Events`] that does not keep up.
pub(crate) const CAPACITY: usize = 256;

/// The events of an association from the moment on when it was made, by
/// [`Association::events`](crate::Association::events).
///
/// It ends after [`Event::Closed`]. What `recv` and `send` wait for anyway
/// ([`Event::Readable`], [`Event::Writable`], [`Event::Drained`]) is left out.
#[derive(Debug)]
pub struct Events(pub(crate) broadcast::Receiver<Event>);

/// Why there is no next event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventsError {
    /// The receiver was too slow: more than 256 events waited and the oldest were dropped. The next
    /// call goes on with what is left.
    #[error("{missed} events were missed")]
    Lagged {
        /// How many were dropped.
        missed: u64,
    },
    /// The association is over; no more events.
    #[error("the association has no more events")]
    Ended,
}

impl Events {
    /// Waits for the next event. Cancellation-safe: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Event, EventsError> {
        self.0.recv().await.map_err(|error| match error {
            RecvError::Lagged(missed) => EventsError::Lagged { missed },
            RecvError::Closed => EventsError::Ended,
        })
    }
}

/// Whether receivers of [`Events`] see it.
pub(crate) const fn is_public(event: &Event) -> bool {
    !matches!(event, Event::Readable | Event::Writable | Event::Drained)
}
