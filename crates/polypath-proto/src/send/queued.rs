//! A message in the send queue.

use std::sync::Arc;

use super::partial::Partial;
use crate::allocation::ALLOCATION;
use crate::event::Message;

/// Memory of a message waiting to be sent, with its entry in the scheduler's order.
pub(super) const QUEUED: usize = 2 * size_of::<Queued>() + 2 * 16 + ALLOCATION;

/// A message that waits to be sent.
#[derive(Debug)]
pub(super) struct Queued {
    /// Its number in the order in which messages were queued.
    pub(super) number: u64,
    pub(super) message: Message,
    /// Its state, if it may be abandoned.
    pub(super) partial: Option<Arc<Partial>>,
}
