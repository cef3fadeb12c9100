//! Failures as reported to the user: one line, optionally a hint, and an exit code.

use std::fmt;
use std::io;

use polypath::proto::closest;

/// Exit code for failures at run time.
const FAILED: u8 = 1;
/// Exit code for an invalid command line.
const USAGE: u8 = 2;

/// Reason why the program ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: FAILED }
    }

    /// An invalid command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, ..Self::new(message) }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// The reason to send to the peer.
    pub(crate) fn reason(&self) -> String {
        one_line(&self.message)
    }

    /// Whether the command line is invalid.
    pub(crate) const fn is_usage(&self) -> bool {
        self.code == USAGE
    }

    pub(crate) const fn exit_code(&self) -> u8 {
        self.code
    }

    /// An error about a file: "cannot open NAME: no such file or directory".
    pub(crate) fn file(verb: &str, path: &std::path::Path, error: &io::Error) -> Self {
        Self::new(format!("cannot {verb} {}: {}", path.display(), system_text(error)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "polypath: {}", one_line(&self.message))?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {}", one_line(hint))?;
        }
        Ok(())
    }
}

/// The operating system's error message without the number: "no space left on device".
pub(crate) fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => text.to_owned(),
    }
}

/// A suggestion for a name that is not among the known ones: `did you mean "hybrid"? `.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> Option<String> {
    closest(name, known).map(|known| format!("did you mean \"{known}\"? "))
}

/// Replaces line breaks and control characters, which file names and texts of the peer may contain.
pub(crate) fn one_line(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_each() {
        let failure = Failure::new("no\nway").hint("try\tagain\n");
        assert_eq!(failure.to_string(), "polypath: no way\nhint: try again");
    }

    #[test]
    fn system_errors_without_numbers() {
        let error = io::Error::from_raw_os_error(28);
        assert_eq!(system_text(&error), "no space left on device");
    }
}
