//! A validated scenario.

use std::path::PathBuf;

use polypath_sim::Scenario as Inner;
use polypath_sim::scenario::Side;
use pyo3::prelude::*;

use crate::error;

/// A validated scenario. It never changes.
#[pyclass(frozen, module = "polypath._core")]
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) inner: Inner,
}

#[pymethods]
impl Scenario {
    /// From TOML.
    #[staticmethod]
    fn from_toml(text: &str) -> PyResult<Self> {
        let inner = Inner::from_toml(text).map_err(error::scenario)?;
        Ok(Self { inner })
    }

    /// From a file of TOML and the files that it extends.
    #[staticmethod]
    fn from_file(path: PathBuf) -> PyResult<Self> {
        let inner = Inner::from_file(path).map_err(error::scenario)?;
        Ok(Self { inner })
    }

    /// From JSON of the same shape. Errors have keys, but no line numbers.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let table = serde_json::from_str::<toml::Table>(text)
            .map_err(|error| not_a_scenario(&error.to_string()))?;
        let text = toml::to_string(&table).map_err(|error| not_a_scenario(&error.to_string()))?;
        let inner = Inner::from_toml(&text).map_err(error::without_place)?;
        Ok(Self { inner })
    }

    /// The same scenario with other values: `changes` is JSON of pairs of a dotted key and its value,
    /// null to take it away.
    fn with_json(&self, changes: &str) -> PyResult<Self> {
        let changes: Vec<(String, Option<toml::Value>)> =
            serde_json::from_str(changes).map_err(|error| not_a_scenario(&error.to_string()))?;
        let inner = self.inner.with(changes).map_err(error::without_place)?;
        Ok(Self { inner })
    }

    /// As TOML in the one form that equal scenarios share.
    fn to_toml(&self) -> String {
        self.inner.to_toml()
    }

    /// As JSON of the same shape.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner)
            .map_err(|error| error::ScenarioError::new_err(error.to_string()))
    }

    /// All parameters and policies that hold for the side that opens the association ("sender") and
    /// for the other ("receiver"), as JSON in the scenario's own form.
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

    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }
}

/// JSON that holds what TOML cannot. Where in the JSON it stands is nothing that anybody has seen.
fn not_a_scenario(error: &str) -> PyErr {
    let what = error.split(" at line").next().unwrap_or_default();
    error::ScenarioError::new_err(format!("not a scenario: {what}"))
}

/// A value as somebody types it, as JSON: as TOML has it, or else a string without its quotes.
#[pyfunction]
pub(crate) fn literal(text: &str) -> PyResult<String> {
    let value = polypath_sim::scenario::literal(text);
    serde_json::to_string(&value).map_err(|error| not_a_scenario(&error.to_string()))
}
