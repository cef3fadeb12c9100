//! Errors in a scenario, each in one line.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::key::{Key, Segment};

/// Reason why a scenario cannot be run. Each displays as one line.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The text is not TOML.
    #[error("{place}not TOML: {message}")]
    Syntax {
        /// File and line, as far as they are known.
        place: Place,
        /// Message of the parser.
        message: String,
    },
    /// A key is unknown, missing, or its value is not allowed.
    #[error("{place}{key}: {problem}")]
    Key {
        /// File and line, as far as they are known.
        place: Place,
        /// The full dotted key.
        key: Key,
        /// The problem and what is allowed.
        problem: String,
    },
}

/// A file and a line of it; each may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file; `None` if the text did not come from one.
    pub file: Option<PathBuf>,
    /// The line, counted from 1.
    pub line: Option<usize>,
}

impl fmt::Display for Place {
    /// Ends with a colon and a space, as the prefix of a message; empty if nothing is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display()),
            (Some(file), None) => write!(f, "{}: ", file.display()),
            (None, Some(line)) => write!(f, "line {line}: "),
            (None, None) => Ok(()),
        }
    }
}

/// A problem at a key, before its place in a file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) key: Key,
    pub(crate) text: String,
}

impl Problem {
    pub(crate) fn new(key: Key, text: impl Into<String>) -> Self {
        Self { key, text: text.into() }
    }

    /// There is no `what` called `name`; `known` are the existing names.
    pub(crate) fn unknown<'a>(
        key: Key,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self::new(key, format!("no {what} \"{name}\"{}", allowed(name, known)))
    }

    /// The same problem, with `field` prepended to its key.
    pub(super) fn under(mut self, field: &str) -> Self {
        self.key = self.key.under(Segment::Field(field.to_owned()));
        self
    }

    /// The same problem, with its index into the outermost array `array` renumbered.
    pub(super) fn renumbered(mut self, array: &str, number: impl Fn(usize) -> usize) -> Self {
        self.key.renumber(array, number);
        self
    }

    pub(crate) fn at(self, place: Place) -> ScenarioError {
        ScenarioError::Key { place, key: self.key, problem: self.text }
    }
}

/// Text such as `; did you mean "x"? allowed: a, b, c`.
pub(super) fn allowed<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let guess = polypath_proto::closest(name, &known);
    let guess = guess.map(|g| format!("; did you mean \"{g}\"?")).unwrap_or_default();
    let separator = if guess.is_empty() { "; " } else { " " };
    if known.is_empty() {
        return format!("{separator}nothing is allowed here");
    }
    format!("{guess}{separator}allowed: {}", known.join(", "))
}
