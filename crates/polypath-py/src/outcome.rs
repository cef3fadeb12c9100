//! The outcome of a run.

use polypath_sim::Outcome as Inner;
use pyo3::prelude::*;

use crate::error::SimulationError;
use crate::packets::PacketTrace;
use crate::series::PathSeries;

/// The outcome of a run: samples over time as arrays, the rest as JSON.
#[pyclass(frozen, module = "polypath._core")]
#[derive(Debug)]
pub(crate) struct Outcome {
    inner: Inner,
    series: Vec<Py<PathSeries>>,
    packets: Option<Py<PacketTrace>>,
}

impl Outcome {
    pub(crate) fn new(py: Python<'_>, mut inner: Inner) -> PyResult<Self> {
        let series = std::mem::take(&mut inner.series);
        let series = series.into_iter().map(|one| Py::new(py, PathSeries::new(py, one)));
        let packets = inner.packets.take().map(|trace| Py::new(py, PacketTrace::new(py, trace)));
        Ok(Self { series: series.collect::<PyResult<_>>()?, packets: packets.transpose()?, inner })
    }
}

#[pymethods]
impl Outcome {
    /// Everything but the samples over time, as JSON.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner)
            .map_err(|error| SimulationError::new_err(format!("the outcome has no JSON: {error}")))
    }

    /// The samples over time of each path: the same objects at every call.
    #[getter]
    fn series(&self, py: Python<'_>) -> Vec<Py<PathSeries>> {
        self.series.iter().map(|one| one.clone_ref(py)).collect()
    }

    /// Every packet at every link, if they were requested.
    #[getter]
    fn packets(&self, py: Python<'_>) -> Option<Py<PacketTrace>> {
        self.packets.as_ref().map(|trace| trace.clone_ref(py))
    }
}
