//! The program as a user has it: real processes, exit codes, one line of complaint, files.

#![expect(clippy::disallowed_methods, reason = "no runtime here: a test waits for processes")]

mod encryption;
mod failures;
mod paths;
mod setup;
mod sim;
mod transfer;
