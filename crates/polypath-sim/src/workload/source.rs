//! The messages of an application, numbered.

use polypath_proto::{Reliability, Time};

use crate::application::{Application, Message};

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// Number in its flow, counted from 0.
    pub(crate) number: u64,
    pub(crate) stream: u16,
    pub(crate) size: u32,
    pub(crate) unordered: bool,
    pub(crate) reliability: Reliability,
}

impl Planned {
    pub(crate) const fn message(&self) -> Message {
        let Self { number: _, stream, size, unordered, reliability } = *self;
        Message { size, stream, unordered, reliability }
    }
}

/// An application, and the message for which the send buffer had no room.
#[derive(Debug)]
pub(crate) struct Source {
    application: Box<dyn Application>,
    next_number: u64,
    pending: Option<Planned>,
}

impl Source {
    pub(crate) const fn new(application: Box<dyn Application>) -> Self {
        Self { application, next_number: 0, pending: None }
    }

    /// The next message, if one may be sent now.
    #[inline]
    pub(crate) fn next(&mut self, now: Time) -> Option<Planned> {
        if let Some(planned) = self.pending.take() {
            return Some(planned);
        }
        let Message { size, stream, unordered, reliability } = self.application.next(now)?;
        let number = self.next_number;
        self.next_number += 1;
        Some(Planned { number, stream, size, unordered, reliability })
    }

    /// Keeps a message that could not be sent yet.
    pub(crate) const fn put_back(&mut self, planned: Planned) {
        self.pending = Some(planned);
    }

    pub(crate) fn received(&mut self, now: Time, message: &Planned) {
        self.application.received(now, &message.message());
    }

    pub(crate) fn wakes_at(&self) -> Option<Time> {
        self.application.wakes_at()
    }

    /// Whether every message has been handed to the association.
    pub(crate) fn is_finished(&self) -> bool {
        self.pending.is_none() && self.application.is_finished()
    }
}
