//! Applications: the data that they send, how they read, and the check that data arrives as it was
//! sent.

mod application;
mod content;
mod conversation;
mod ledger;
mod progress;
mod source;

pub(crate) use application::Application;
pub(crate) use conversation::{Changed, Conversation, StateChange};
pub(crate) use progress::{Gap, Progress};
