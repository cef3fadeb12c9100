//! Data on stdout.

use std::fmt::Display;
use std::io::{self, Write};

use crate::failure::{Failure, system_text};

/// Prints to stdout. A reader that has closed the pipe is not a failure.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to stdout: {}", system_text(&error))))
        }
        _ => Ok(()),
    }
}

/// Prints a line.
pub(crate) fn print_line(text: impl Display) -> Result<(), Failure> {
    print(format_args!("{text}\n"))
}
