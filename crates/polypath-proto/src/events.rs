//! The events that wait for the application.

use std::collections::VecDeque;

use crate::budget::{EVENT, MOST_EVENTS};
use crate::event::Event;

/// The queue of an association's events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: VecDeque<Event>,
    /// Whether [`Event::Readable`] is queued.
    readable: bool,
}

impl Events {
    /// Queues an event that the peer can cause repeatedly; drops it if the application does not
    /// poll events.
    pub(crate) fn push(&mut self, event: Event) {
        if self.queue.len() < MOST_EVENTS {
            self.queue.push_back(event);
        }
    }

    /// Queues an event whose number is limited otherwise.
    pub(crate) fn push_always(&mut self, event: Event) {
        self.queue.push_back(event);
    }

    /// Queues [`Event::Readable`] unless it is queued already.
    pub(crate) fn push_readable(&mut self) {
        if !std::mem::replace(&mut self.readable, true) {
            self.queue.push_back(Event::Readable);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let event = self.queue.pop_front();
        if event == Some(Event::Readable) {
            self.readable = false;
        }
        event
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes of memory in use, beyond those of the first events.
    pub(crate) fn memory(&self) -> usize {
        self.queue.len().saturating_sub(MOST_EVENTS) * EVENT
    }

    /// Checks that the number of events is limited, those of abandoned messages apart.
    pub(crate) fn check(&self) -> Result<(), String> {
        let failed = |e: &&Event| matches!(e, Event::SendFailed { .. });
        if self.queue.len() - self.queue.iter().filter(failed).count() > 4096 {
            return Err(format!("{} events wait to be taken", self.queue.len()));
        }
        Ok(())
    }
}
