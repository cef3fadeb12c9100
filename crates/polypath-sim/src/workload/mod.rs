//! Applications: what they send, how they read, and whether what arrives is what was sent.

mod application;
mod content;
mod conversation;
mod ledger;
mod progress;
mod source;

pub(crate) use application::Application;
pub(crate) use conversation::{Changed, Conversation, StateChange};
pub(crate) use progress::{Gap, Progress};
