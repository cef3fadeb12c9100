//! A validated scenario.

use std::path::PathBuf;

use polypath_sim::Scenario as Inner;
use polypath_sim::scenario::Side;
use pyo3::prelude::*;

use crate::{error, registry};

/// A validated scenario; immutable.
#[pyclass(frozen, module = "polypath._core")]
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) inner: Inner,
}

#[pymethods]
impl Scenario {
    /// Parses TOML.
    #[staticmethod]
    fn from_toml(text: &str) -> PyResult<Self> {
        let inner = Inner::from_toml_with(text, registry()).map_err(error::scenario)?;
        Ok(Self { inner })
    }

    /// Reads a TOML file and the files that it extends.
    #[staticmethod]
    fn from_file(path: PathBuf) -> PyResult<Self> {
        let inner = Inner::from_file_with(path, registry()).map_err(error::scenario)?;
        Ok(Self { inner })
    }

    /// Parses JSON of the same structure. Errors report keys, but no line numbers.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let table = serde_json::from_str::<toml::Table>(text)
            .map_err(|error| not_a_scenario(&error.to_string()))?;
        let text = toml::to_string(&table).map_err(|error| not_a_scenario(&error.to_string()))?;
        let inner = Inner::from_toml_with(&text, registry()).map_err(error::without_place)?;
        Ok(Self { inner })
    }

    /// The scenario with other values: `changes` is a JSON list of pairs of a dotted key and its
    /// value, or null to remove the key.
    fn with_json(&self, changes: &str) -> PyResult<Self> {
        let changes: Vec<(String, Option<toml::Value>)> =
            serde_json::from_str(changes).map_err(|error| not_a_scenario(&error.to_string()))?;
        let inner = self.inner.with(changes).map_err(error::without_place)?;
        Ok(Self { inner })
    }

    /// The scenario as TOML in canonical form: equal scenarios have the same text.
    fn to_toml(&self) -> String {
        self.inner.to_toml()
    }

    /// The scenario as JSON of the same structure.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner)
            .map_err(|error| error::ScenarioError::new_err(error.to_string()))
    }

    /// All parameters and policies in effect for the side that opens the association ("sender") and
    /// for the other ("receiver"), as JSON in the form of the scenario.
    fn effective(&self) -> PyResult<String> {
        let side = |side| self.inner.effective(side).map_err(error::without_place);
        let sides = [("sender", side(Side::Sender)?), ("receiver", side(Side::Receiver)?)];
        serde_json::to_string(&sides.into_iter().collect::<std::collections::BTreeMap<_, _>>())
            .map_err(|error| error::ScenarioError::new_err(error.to_string()))
    }

    /// Root of all randomness.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// Name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }
}

/// The error for JSON that TOML cannot represent. The position is removed: users have not seen the
/// JSON.
fn not_a_scenario(error: &str) -> PyErr {
    let what = error.split(" at line").next().unwrap_or_default();
    error::ScenarioError::new_err(format!("not a scenario: {what}"))
}

/// Parses a value as typed on a command line and returns it as JSON: a TOML value, or else a string
/// without quotes.
#[pyfunction]
pub(crate) fn literal(text: &str) -> PyResult<String> {
    let value = polypath_sim::scenario::literal(text);
    serde_json::to_string(&value).map_err(|error| not_a_scenario(&error.to_string()))
}
