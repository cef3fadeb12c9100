//! The program as users run it: real processes, exit codes, one line of error, files.

#![expect(clippy::disallowed_methods, reason = "no runtime here: a test waits for processes")]

mod encryption;
mod failures;
mod paths;
mod setup;
mod sim;
mod transfer;
