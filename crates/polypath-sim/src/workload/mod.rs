//! Applications: the data that they send, how they read, and the check that data arrives as it was
//! sent.

mod content;
mod conversation;
mod kinds;
mod ledger;
mod pair;
mod progress;
mod source;

pub(crate) use conversation::{Changed, Conversation, StateChange};
pub(crate) use kinds::application;
pub(crate) use pair::ApplicationPair;
pub(crate) use progress::{Gap, Progress};
pub(crate) use source::Source;
