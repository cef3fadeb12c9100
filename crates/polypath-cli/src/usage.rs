//! Errors of the command line parser as one line and a hint.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

/// Turns an error of the command line parser into one line and a hint.
///
/// `command` is the command that the arguments were for, such as "polypath recv".
pub(crate) fn failure(error: &Error, command: &str) -> Failure {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = first.strip_prefix("error: ").unwrap_or(&first);
    // The parser appends the allowed values to the message.
    let (message, allowed) = match message.split_once(" [possible values: ") {
        Some((message, allowed)) => (message, Some(allowed.trim_end_matches(']'))),
        None => (message, None),
    };
    // The error of Rust's integers.
    let message = match message.strip_suffix("invalid digit found in string") {
        Some(start) => format!("{start}expected a number"),
        None => message.to_owned(),
    };
    let failure = Failure::usage(message);
    match (suggestion(error), allowed) {
        (Some(guess), Some(allowed)) => {
            failure.hint(format!("did you mean \"{guess}\"? allowed: {allowed}"))
        }
        (Some(guess), None) => failure.hint(format!("did you mean \"{guess}\"?")),
        (None, Some(allowed)) => failure.hint(format!("allowed: {allowed}")),
        (None, None) => match usage(error) {
            Some(usage) => failure.hint(usage),
            None => failure.hint(format!("see `{command} --help`")),
        },
    }
}

/// The usage of the command, if an argument is missing.
fn usage(error: &Error) -> Option<String> {
    let usage = error.get(ContextKind::Usage).filter(|_| {
        matches!(error.kind(), ErrorKind::MissingRequiredArgument | ErrorKind::MissingSubcommand)
    })?;
    let text = usage.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").strip_prefix("Usage: ").map(|usage| format!("usage: {usage}"))
}

/// The most similar argument, command or value.
fn suggestion(error: &Error) -> Option<String> {
    error.context().find_map(|(kind, value)| {
        let is_guess = matches!(
            kind,
            ContextKind::SuggestedArg
                | ContextKind::SuggestedSubcommand
                | ContextKind::SuggestedValue
        );
        match value {
            ContextValue::String(guess) if is_guess => Some(guess.clone()),
            ContextValue::Strings(guesses) if is_guess => guesses.last().cloned(),
            _ => None,
        }
    })
}

/// The command among these words of a command line, the first of which is the program.
pub(crate) fn command<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let known = crate::command();
    let mut words = words.into_iter().skip(1);
    match words.find_map(|word| known.find_subcommand(word)) {
        Some(found) => format!("polypath {}", found.get_name()),
        None => "polypath".to_owned(),
    }
}
