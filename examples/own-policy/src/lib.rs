//! An example of policies of your own: a congestion controller with two parameters and a scheduler,
//! in the simulator, on sockets and in Python. `docs/own-policy.md` explains it step by step.

pub mod aimd;
pub mod fastest;

use polypath_proto::Registry;

/// polypath's policies and profiles, and those of this crate.
pub fn registry() -> Registry {
    Registry::standard().with(&aimd::AIMD).with(&fastest::FASTEST)
}

/// The simulator for Python: `import own_policy`, then `import polypath`.
#[cfg(feature = "python")]
#[pyo3::pymodule]
fn own_policy(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
    polypath_core::replace(module, registry())
}
