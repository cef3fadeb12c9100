//! Converts errors to Python exceptions, each with one line of text.

use polypath_sim::{ScenarioError as Wrong, SimError};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    polypath,
    ScenarioError,
    PyValueError,
    "A scenario is wrong: which key, what is wrong with it, what is allowed, in one line."
);

pyo3::create_exception!(
    polypath,
    SimulationError,
    PyRuntimeError,
    "A run gave no outcome: an invariant did not hold, which is a bug in polypath."
);

/// Converts the error of a scenario that has a text or file, with its place.
pub(crate) fn scenario(error: Wrong) -> PyErr {
    match error {
        Wrong::Read { path, source } => file(&path, &source),
        error => ScenarioError::new_err(error.to_string()),
    }
}

/// Converts the error of a scenario that was not read from a text: line numbers would mean nothing.
pub(crate) fn without_place(error: Wrong) -> PyErr {
    match error {
        Wrong::Key { key, problem, .. } => ScenarioError::new_err(format!("{key}: {problem}")),
        error => scenario(error),
    }
}

/// `OSError` of the kind that Python itself raises: `FileNotFoundError`, `PermissionError`, ...
pub(crate) fn file(path: &std::path::Path, error: &std::io::Error) -> PyErr {
    let path = path.display().to_string();
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((number, text, path))
        }
        None => PyOSError::new_err(format!("{path}: {error}")),
    }
}

/// Reason of a failed run, before conversion to an exception: worker threads do not hold the GIL.
#[derive(Debug)]
pub(crate) enum Failure {
    Scenario(Wrong),
    Run(String),
    File(std::path::PathBuf, std::io::Error),
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Scenario(wrong) => Self::Scenario(wrong),
            error => Self::Run(error.to_string()),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Scenario(wrong) => without_place(wrong),
            Failure::Run(text) => SimulationError::new_err(text),
            Failure::File(path, error) => file(&path, &error),
        }
    }
}
