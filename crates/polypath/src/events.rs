//! The events of an association.

use polypath_proto::Event;
use thiserror::Error;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Maximum number of events queued for a slow receiver of [`Events`].
pub(crate) const CAPACITY: usize = 256;

/// The events of an association since this was created by
/// [`Association::events`](crate::Association::events).
///
/// The last one is [`Event::Closed`]. Events that `recv` and `send` wait for anyway
/// ([`Event::Readable`], [`Event::Writable`], [`Event::Drained`]) are left out.
#[derive(Debug)]
pub struct Events(pub(crate) broadcast::Receiver<Event>);

/// Reason why there is no next event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventsError {
    /// The receiver was too slow: more than 256 events were queued, and the oldest were dropped.
    /// The next call returns the oldest that is left.
    #[error("{missed} events were missed")]
    Lagged {
        /// Number of events dropped.
        missed: u64,
    },
    /// The association is over; there are no more events.
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

/// Whether receivers of [`Events`] get this event.
pub(crate) const fn is_public(event: &Event) -> bool {
    !matches!(event, Event::Readable | Event::Writable | Event::Drained)
}
