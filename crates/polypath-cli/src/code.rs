//! Code phrases and secrets on the command line, and questions to the person at the terminal.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use polypath_apps::consent::Phrase;

use crate::failure::Failure;

/// Options of a command that connects.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Consent")]
pub(crate) struct CodeOptions {
    /// Code phrase that the peer prints; proves each side to the other
    #[arg(long, value_name = "PHRASE", conflicts_with_all = ["psk", "psk_file"])]
    code: Option<Phrase>,
    /// Read the code phrase from the first line of this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["code", "psk", "psk_file"])]
    code_file: Option<PathBuf>,
}

impl CodeOptions {
    /// The phrase, if one was given.
    pub(crate) fn phrase(&self) -> Result<Option<Phrase>, Failure> {
        match &self.code_file {
            Some(path) => read(path).map(Some),
            None => Ok(self.code.clone()),
        }
    }
}

/// Reads a phrase or a secret: the first line of a file.
pub(crate) fn read(path: &Path) -> Result<Phrase, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
    parse(text.lines().next().unwrap_or_default(), &path.display().to_string())
}

/// A phrase or a secret; `origin` is where it comes from.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Phrase, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("cannot use {origin}: {error}")))
}

/// Whether a person can be asked.
pub(crate) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks the person at the terminal for a line.
pub(crate) async fn ask(question: String) -> Result<String, Failure> {
    let asked = tokio::task::spawn_blocking(move || {
        let mut stderr = io::stderr().lock();
        write!(stderr, "{question} ")?;
        stderr.flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok::<_, io::Error>(line.trim().to_owned())
    });
    match asked.await {
        Ok(Ok(line)) if !line.is_empty() => Ok(line),
        _ => Err(Failure::new("no reply was entered")),
    }
}
