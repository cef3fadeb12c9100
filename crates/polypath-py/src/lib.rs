//! `polypath._core`: the simulator and the sockets for Python.
//!
//! A thin layer: this module validates scenarios and runs them with the interpreter's lock
//! released; the convenient interface is Python code (`python/polypath`). An outcome is passed as
//! JSON, its samples over time as numpy arrays that own the memory the simulator filled. `net` has
//! endpoints and associations for `polypath.aio`.

mod error;
mod many;
mod net;
mod outcome;
mod packets;
mod run;
mod scenario;
mod series;
mod units;

use std::sync::OnceLock;

use polypath_sim::Registry;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Version of the engine, with a fingerprint of its sources: equal strings mean equal results.
const ENGINE: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("POLYPATH_SOURCES"));

/// The policies and profiles that scenarios may name.
static REGISTRY: OnceLock<Registry> = OnceLock::new();

pub(crate) fn registry() -> &'static Registry {
    REGISTRY.get_or_init(Registry::standard)
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fill(module)
}

/// Makes `module` the simulator of the Python package `polypath`, in which scenarios may name the
/// policies and profiles of `registry`. The module of a crate with policies of its own calls this;
/// Python programs import that module before `polypath`.
///
/// # Errors
/// `ImportError` if `polypath` was imported before.
pub fn replace(module: &Bound<'_, PyModule>, registry: Registry) -> PyResult<()> {
    const CORE: &str = "polypath._core";
    let modules = module.py().import("sys")?.getattr("modules")?;
    if modules.contains(CORE)? || REGISTRY.set(registry).is_err() {
        let text =
            format!("import {} before polypath, which has its simulator now", module.name()?);
        return Err(PyImportError::new_err(text));
    }
    fill(module)?;
    modules.set_item(CORE, module)
}

fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ENGINE", ENGINE)?;
    module.add("ScenarioError", py.get_type::<error::ScenarioError>())?;
    module.add("SimulationError", py.get_type::<error::SimulationError>())?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<series::PathSeries>()?;
    module.add_class::<packets::PacketTrace>()?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(many::run_many, module)?)?;
    module.add_function(wrap_pyfunction!(units::quantity, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::literal, module)?)?;
    net::fill(module)
}
