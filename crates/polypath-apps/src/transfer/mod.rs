//! File transfer: several files and folders from a sender to a receiver.
//!
//! The sender announces entries (files, folders, symbolic links), and the receiver replies to each:
//! rejected, already complete, or the offset from which it needs the bytes. To find that offset,
//! the sender lists digests of the blocks of its file, and the receiver compares them with what an
//! earlier run has left. A file gets its name when its SHA-256 has been verified and it is on disk.

mod digest;
mod folder;
pub mod message;
pub mod names;
pub mod outcome;
mod partial;
pub mod receive;
mod room;
pub mod rules;
pub mod send;
pub mod source;
pub mod store;

use crate::consent::Service;

/// The file protocol. Version 1 had one file, no consent and no resume.
pub const FILES: Service = Service { name: "files", version: 2, oldest: 2 };
