//! Applications over many paths, on the public interface of [`polypath`]: file transfer with
//! consent and resume.
//!
//! A transfer begins with [`consent`]: the receiver accepts a sender that it knows by its
//! certificate, or that proves a code phrase. [`transfer`] then moves files and folders; after an
//! interruption the next run continues where the files still agree.
//!
//! Everything that a peer sends is checked before it has an effect: names before a file is
//! created, sizes before a byte is written, message sizes and counts before anything is stored.

#![forbid(unsafe_code)]

pub mod accept;
pub mod consent;
pub mod error;
pub mod forward;
pub mod limits;
mod liveness;
mod pace;
pub mod perf;
pub mod private;
pub mod transfer;
mod wire;
